//! `rbench check`: tests whether a mount keeps the promises of POSIX and Linux, on each host of the
//! launch.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rbench_cli::{Check, CheckFormat, Progress};
use rbench_comm::{Chosen, Combine, Communicator, Topology};
use rbench_core::units::counted;
use rbench_core::{Nanos, Rank};
use rbench_exec::check::{Asked, Between, Checked, Counted, HostCheck, Pair, Seen, check};
use rbench_exec::probe::{PATIENCE, answers};
use rbench_exec::{ExecError, Place};
use rbench_plan::expect::{self, Deviation, Expectation, PRESETS};
use rbench_report::check::{json, junit, tap, text};
use rbench_report::schema::{
    BetweenResult, CHECK_SCHEMA, CheckLoadResult, CheckResult, HostChecksResult, PairResult,
    PromiseResult, PromiseVerdict, SeenAfterResult, Surroundings,
};
use rbench_sys::between::{self, Lock};
use rbench_sys::promises::{self, Evidence, GROUPS, Promise, Verdict};

use crate::console::{complain, fail, print};
use crate::exit::{FAILED, SUCCESS, USAGE, exit_code, stop_code};
use crate::hosts::Hosts;
use crate::launch::Launch;
use crate::live::Feed;
use crate::marker::marker;
use crate::progress::Display;
use crate::refusal::Refusal;
use crate::show;
use crate::signals::Signals;
use crate::surroundings;

/// Default time limit of one promise.
const LONGEST: Nanos = Nanos(20_000_000_000);

/// Tests the promises on every host; rank 0 prints the result.
pub async fn run(
    comm: &dyn Communicator,
    launch: &Launch,
    asked: &Check,
    signals: &Signals,
) -> Result<u8, Refusal> {
    let mut report = |found: &CheckResult| {
        print(&match asked.format {
            CheckFormat::Text => text(found, show::view()),
            CheckFormat::Json => json(found),
            CheckFormat::Junit => junit(found),
            CheckFormat::Tap => tap(found),
        })
    };
    reported(comm, launch, (asked, &mut report), signals).await
}

/// Tests all promises of a directory's file system. Returns the result at rank 0, or the exit code
/// of a run that was stopped.
pub async fn of_directory(
    comm: &dyn Communicator,
    launch: &Launch,
    (directory, quiet): (&Path, bool),
    signals: &Signals,
) -> Result<Result<Option<CheckResult>, u8>, Refusal> {
    let asked = Check {
        dirs: vec![directory.to_owned()],
        quiet,
        ..Check::default()
    };
    let mut result = None;
    let mut keep = |found: &CheckResult| {
        result = Some(found.clone());
        SUCCESS
    };
    let code = reported(comm, launch, (&asked, &mut keep), signals).await?;
    // A broken promise is a result, not a failure.
    Ok(match code > FAILED {
        true => Err(code),
        false => Ok(result),
    })
}

/// Reports a result at rank 0 and returns the exit code.
type Reports<'r> = &'r mut dyn FnMut(&CheckResult) -> u8;

/// Tests the promises on every host; rank 0 reports the result.
async fn reported(
    comm: &dyn Communicator,
    launch: &Launch,
    (asked, report): (&Check, Reports<'_>),
    signals: &Signals,
) -> Result<u8, Refusal> {
    let (promises, between) = chosen(&asked.only).map_err(Refusal::Usage)?;
    if asked.list {
        let root = comm.rank() == Rank(0);
        return Ok(if root {
            print(&list(&promises, &between))
        } else {
            SUCCESS
        });
    }
    if asked.dirs.is_empty() {
        let text = "--dir must name a directory of the file system to check";
        return Err(Refusal::Usage(text.to_owned()));
    }
    let longest = asked.time_limit.unwrap_or(LONGEST);
    if longest == Nanos(0) {
        return Err(Refusal::Usage("--time-limit must be above 0".to_owned()));
    }
    let plan = Asked {
        promises,
        seed: asked.seed.unwrap_or(launch.seed),
        longest: Duration::from(longest),
        clients: Vec::new(),
        between,
        under_load: asked.under_load,
        program: PathBuf::new(),
    };
    let Some(count) = asked.hosts else {
        return on(comm, launch, (asked, report), plan, signals).await;
    };
    // The ranks of the other hosts wait.
    let all = Hosts::find(comm).await?.topology;
    let hosts = all.hosts.len();
    if count == 0 || count as usize > hosts {
        return Err(Refusal::Usage(format!(
            "--hosts {count}: the launch has {hosts} {}",
            if hosts == 1 { "host" } else { "hosts" }
        )));
    }
    let members = (0..comm.size()).map(Rank);
    let members = members.filter(|rank| all.host_of[rank.0 as usize] < count);
    let ended = match Chosen::of(comm, members.collect()).await? {
        Some(part) => on(&part, launch, (asked, report), plan, signals).await,
        None => Ok(SUCCESS),
    };
    let (code, ended) = match ended {
        Err(Refusal::Silent(message)) => return Err(Refusal::Silent(message)),
        Ok(code) => (code, Ok(code)),
        Err(refusal) => (FAILED, Err(refusal)),
    };
    comm.all_reduce(Combine::Max, vec![u64::from(code)]).await?;
    ended
}

/// Tests the promises on the hosts of a group.
async fn on(
    comm: &dyn Communicator,
    launch: &Launch,
    (asked, report): (&Check, Reports<'_>),
    mut plan: Asked,
    signals: &Signals,
) -> Result<u8, Refusal> {
    let hosts = Hosts::find(comm).await?;
    plan.clients = clients(&hosts.topology, asked.dirs.len()).map_err(Refusal::Usage)?;
    if plan.promises.is_empty() && plan.clients.len() < 2 {
        let text = "--only: these promises need several clients: use two hosts or more, or two mounts of the file system and as many ranks (--dir A,B)";
        return Err(Refusal::Usage(text.to_owned()));
    }
    if plan.clients.len() < 2 {
        if asked.under_load {
            let text = "--under-load needs several clients, and there is only one: use two hosts or more, or two mounts (--dir A,B)";
            return Err(Refusal::Usage(text.to_owned()));
        }
        if asked.only.is_empty() {
            // The user did not select these by name.
            plan.between.clear();
        }
    }
    let me = plan.clients.iter().position(|rank| *rank == comm.rank());
    let progress = Progress::Auto.unless(asked.quiet);
    let display = Display::new(progress, comm.rank() == Rank(0), Feed::default());
    let group = hosts.group(comm, signals, &display).await?;
    let expectation = match group.is_root() {
        true => expectation(asked, launch),
        false => Ok(None),
    };
    let agreed = group.agree(expectation).await;
    let expectation = agreed.map_err(|error| match error {
        ExecError::SetUp(message) => Refusal::Usage(message),
        other => other.into(),
    })?;
    let program = std::env::current_exe();
    let program = program.map_err(|e| format!("cannot find the program file of rbench: {e}"));
    plan.program = group.agree(program).await?;
    // The ranks of a host use its mounts in turn.
    let directory = |rank: Rank| {
        let of = place_in_host(&hosts.topology, rank) % asked.dirs.len();
        Path::new(&launch.cwd).join(&asked.dirs[of])
    };
    let own_directory = directory(comm.rank());
    answers(&group, &own_directory, me.is_some(), PATIENCE).await?;
    let around = surroundings::of_ranks(&group, &own_directory, false, me.is_some()).await?;
    let marker = marker(&launch.run_id, &launch.origin);
    let place = Place {
        live: None,
        parent: &own_directory,
        name: &format!("rbench.{}", launch.run_id),
        marker: marker.as_bytes(),
        needs_shared: None,
        recorder: None,
    };
    let checked = check(&group, &place, &plan).await;
    display.end();
    let checked = checked.map_err(|error| match error {
        ExecError::SetUp(message) if asked.dirs.len() > 1 => ExecError::SetUp(format!(
            "{message} (the directories of --dir must be the same directory of one file system)"
        )),
        other => other,
    })?;
    if !group.is_root() {
        return Ok(stop_code(&group).unwrap_or(SUCCESS));
    }
    for left in &checked.left {
        complain(left);
    }
    let inputs = Found {
        launch,
        hosts: &hosts,
        directories: plan.clients.iter().map(|rank| directory(*rank)).collect(),
        plan: &plan,
        expect: asked.expect.as_deref().zip(expectation.as_ref()),
    };
    let result = inputs.result(around, checked);
    let printed = report(&result);
    Ok(exit_code(&group, result.passed, printed))
}

/// Ranks that act as clients, in ascending order: one per mount on each host.
fn clients(topology: &Topology, mounts: usize) -> Result<Vec<Rank>, String> {
    let mut clients = Vec::new();
    for host in &topology.hosts {
        let of = host.ranks.get(..mounts).ok_or_else(|| {
            format!(
                "--dir: each of {mounts} mounts needs its own rank, but {} has {}",
                host.name,
                host.ranks.len()
            )
        })?;
        clients.extend_from_slice(of);
    }
    clients.sort_unstable();
    Ok(clients)
}

/// Index of a rank among the ranks of its host, from 0.
fn place_in_host(topology: &Topology, rank: Rank) -> usize {
    let host = topology.host_of[rank.0 as usize] as usize;
    let ranks = &topology.hosts[host].ranks;
    ranks.iter().position(|of| *of == rank).unwrap_or(0)
}

/// Promises of one client, and promises between clients.
type Named = (Vec<&'static Promise>, Vec<&'static between::Check>);

/// The names and the texts of all promises, of one client and between clients.
fn all_promises() -> impl Iterator<Item = (&'static str, &'static str)> {
    let one = promises::all().map(|promise| (promise.name, promise.says));
    one.chain(between::all().map(|check| (check.name, check.says)))
}

/// Returns true if a pattern matches any promise.
fn names_any(pattern: &str) -> bool {
    all_promises().any(|(name, _)| promises::names(pattern, name))
}

/// Promises that match `--only`, in the order of the report.
fn chosen(only: &[String]) -> Result<Named, String> {
    if let Some(pattern) = only.iter().find(|pattern| !names_any(pattern)) {
        let groups = GROUPS.iter().map(|group| group.name);
        let groups: Vec<&str> = groups
            .chain(between::GROUPS.iter().map(|group| group.name))
            .collect();
        return Err(format!(
            "--only: there is no group or promise '{pattern}'; groups are {}; --list shows all promises",
            groups.join(", ")
        ));
    }
    let wanted =
        |name: &str| only.is_empty() || only.iter().any(|pattern| promises::names(pattern, name));
    Ok((
        promises::all()
            .filter(|promise| wanted(promise.name))
            .collect(),
        between::all().filter(|check| wanted(check.name)).collect(),
    ))
}

/// Lists the groups and their promises as text.
fn list(chosen: &[&Promise], between: &[&between::Check]) -> String {
    let mut out = String::new();
    let mut put = |heading: String, lines: Vec<String>| {
        if !lines.is_empty() {
            out.push_str(&format!("{heading}\n{}", lines.concat()));
        }
    };
    for group in GROUPS {
        let within = |promise: &&&Promise| group.promises.iter().any(|p| p.name == promise.name);
        let line = |promise: &&Promise| {
            let root = if promise.root { " (root)" } else { "" };
            format!("  {}: {}{root}\n", promise.name, promise.says)
        };
        let lines = chosen.iter().filter(within).map(line);
        put(format!("{}: {}", group.name, group.about), lines.collect());
    }
    for group in between::GROUPS {
        let within = |check: &&&between::Check| group.promises.iter().any(|c| c.name == check.name);
        let line = |check: &&between::Check| format!("  {}: {}\n", check.name, check.says);
        let heading = format!("{} (between clients): {}", group.name, group.about);
        put(heading, between.iter().filter(within).map(line).collect());
    }
    let all = (chosen.len() + between.len()) as u64;
    out.push_str(&format!("{}\n", counted(all, "promise")));
    out
}

/// `rbench hold-lock`: takes a lock and holds it while a check runs.
pub fn hold(kind: &str, path: &Path) -> u8 {
    let Some(lock) = Lock::ALL.into_iter().find(|lock| lock.name() == kind) else {
        return fail(USAGE, format!("there is no lock '{kind}'"));
    };
    match between::hold(lock, path) {
        Ok(()) => SUCCESS,
        Err(e) => fail(
            FAILED,
            format!("cannot hold the lock of {}: {e}", path.display()),
        ),
    }
}

/// Reads the file of `--expect`.
fn expectation(asked: &Check, launch: &Launch) -> Result<Option<Expectation>, String> {
    let Some(named) = &asked.expect else {
        return Ok(None);
    };
    let shown = named.display();
    let preset = named.to_str().and_then(expect::preset);
    let text = match preset {
        Some(text) => text.to_owned(),
        None => std::fs::read_to_string(Path::new(&launch.cwd).join(named)).map_err(|e| {
            let known = PRESETS.map(|(name, _)| name).join(", ");
            format!("--expect: {shown} is neither a file that can be read ({e}) nor one of {known}")
        })?,
    };
    let read = expect::read(&text).map_err(|e| format!("--expect: {shown}: {e}"))?;
    match read.deviations.iter().find(|d| !names_any(&d.promise)) {
        None => Ok(Some(read)),
        Some(d) => Err(format!(
            "--expect: {shown}: line {}: there is no promise '{}'",
            d.line, d.promise
        )),
    }
}

/// Evidence with an observation only.
fn only(seen: String) -> Evidence {
    Evidence {
        seen,
        ..Evidence::default()
    }
}

/// Inputs of a check's result.
struct Found<'a> {
    launch: &'a Launch,
    hosts: &'a Hosts,
    /// One per client.
    directories: Vec<PathBuf>,
    plan: &'a Asked,
    expect: Option<(&'a Path, &'a Expectation)>,
}

impl Found<'_> {
    fn result(&self, around: Vec<Option<Surroundings>>, checked: Checked) -> CheckResult {
        let Checked {
            hosts,
            between,
            load,
            clock_error,
            left,
        } = checked;
        let complete = |host: &HostCheck| host.found.len() == self.plan.promises.len();
        let complete = hosts.iter().all(complete) && between.len() == self.plan.between.len();
        let each = hosts.into_iter().enumerate();
        let hosts: Vec<HostChecksResult> = each
            .map(|(client, found)| self.host(client, found, &around))
            .collect();
        let between: Vec<BetweenResult> = between.into_iter().map(|b| self.between(b)).collect();
        let decided = |promise: &PromiseResult| {
            promise.verdict == PromiseVerdict::Holds || promise.allowed.is_some()
        };
        let all = hosts.iter().flat_map(|host| &host.promises);
        let mut all = all.chain(between.iter().map(|between| &between.promise));
        let fails = all.clone().any(PromiseResult::fails);
        let anything = all.any(decided);
        let load = load.map(|(files, error)| CheckLoadResult { files, error });
        let loaded = load.as_ref().is_none_or(|load| load.error.is_none());
        let directories: Vec<String> = self
            .directories
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        let mut named = directories.clone();
        named.dedup();
        CheckResult {
            schema: CHECK_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            directory: named.join(", "),
            started: self.launch.started.clone(),
            seed: self.plan.seed,
            expect: self.expect.map(|(name, _)| name.display().to_string()),
            passed: complete && left.is_empty() && anything && loaded && !fails,
            complete,
            hosts,
            between,
            clock_error_ns: clock_error.0,
            load,
        }
    }

    fn host(
        &self,
        client: usize,
        found: HostCheck,
        around: &[Option<Surroundings>],
    ) -> HostChecksResult {
        let HostCheck { root, found } = found;
        let rank = self.plan.clients[client];
        let host = self.hosts.topology.host_of[rank.0 as usize] as usize;
        let name = self.hosts.topology.hosts.get(host);
        let around = around.get(rank.0 as usize).cloned().flatten();
        HostChecksResult {
            host: name.map_or_else(String::new, |host| host.name.clone()),
            rank: rank.0,
            directory: self.directories[client].display().to_string(),
            kernel: self.hosts.kernel(host),
            surroundings: around.unwrap_or_default(),
            root,
            promises: found
                .into_iter()
                .map(|seen| self.promise(seen, None))
                .collect(),
        }
    }

    fn between(&self, found: Between) -> BetweenResult {
        let Between { seen, counted } = found;
        let Counted {
            tries,
            violations,
            pairs,
        } = counted;
        let worse: u64 = pairs.iter().map(|pair| pair.worse).sum();
        let counts_pairs = pairs.iter().map(|pair| pair.violations).sum::<u64>() == violations;
        let late = pairs.iter().map(|pair| pair.late).max();
        let late = late.filter(|_| worse == 0 && counts_pairs);
        let times = pairs.iter().flat_map(|pair| &pair.times);
        let gap = pairs.iter().map(|pair| pair.gap.0).max().unwrap_or(0);
        let times = SeenAfterResult::of(times.map(|time| time.0).collect(), gap);
        BetweenResult {
            promise: self.promise(seen, late),
            tries,
            violations,
            times,
            pairs: pairs.into_iter().map(pair).collect(),
        }
    }

    /// `late`: the delay, if the delay is the only violation.
    fn promise(&self, seen: Seen, late: Option<Nanos>) -> PromiseResult {
        let Seen {
            name,
            verdict,
            took,
        } = seen;
        let says = all_promises().find(|(known, _)| *known == name);
        let says = says.map_or_else(String::new, |(_, says)| says.to_owned());
        let (verdict, evidence) = match verdict {
            Verdict::Holds(note) => (PromiseVerdict::Holds, only(note)),
            Verdict::Broken(evidence) => (PromiseVerdict::Broken, evidence),
            Verdict::Unsupported(evidence) => (PromiseVerdict::Unsupported, evidence),
            Verdict::Undecided(evidence) => (PromiseVerdict::Undecided, evidence),
            Verdict::LeftOut(why) => (PromiseVerdict::LeftOut, only(why)),
        };
        let allowed = verdict.fails().then(|| self.allowed(&name, late)).flatten();
        let told = |text: String| Some(text).filter(|text| !text.is_empty());
        PromiseResult {
            name,
            says,
            verdict,
            expected: told(evidence.expected),
            seen: told(evidence.seen),
            call: told(evidence.call),
            errno: evidence.errno.map(|errno| format!("{errno:?}")),
            path: told(evidence.path.display().to_string()),
            allowed,
            took_ns: took.0,
        }
    }

    /// The reason why a promise may be broken.
    fn allowed(&self, name: &str, late: Option<Nanos>) -> Option<String> {
        let (_, expectation) = self.expect?;
        let in_time = |within| late.is_some_and(|late| late <= within);
        let covers =
            |d: &&Deviation| promises::names(&d.promise, name) && d.within.is_none_or(in_time);
        let deviation = expectation.deviations.iter().find(covers)?;
        Some(format!("{} ({})", deviation.why, deviation.source))
    }
}

fn pair(pair: Pair) -> PairResult {
    let Pair {
        from,
        to,
        tries,
        violations,
        times,
        gap,
        late,
        worse,
    } = pair;
    PairResult {
        from,
        to,
        tries,
        violations,
        worse,
        late_ns: late.0,
        times: SeenAfterResult::of(times.into_iter().map(|time| time.0).collect(), gap.0),
    }
}
