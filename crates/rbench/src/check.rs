//! `rbench check`: whether a mount keeps the promises of POSIX and Linux, on each host of the
//! launch.

use std::path::Path;
use std::time::Duration;

use rbench_cli::{Check, CheckFormat, Progress};
use rbench_comm::Communicator;
use rbench_core::{Nanos, Rank};
use rbench_exec::check::{Asked, Checked, HostCheck, Seen, check};
use rbench_exec::probe::answers;
use rbench_exec::{ExecError, Place};
use rbench_plan::expect::{self, Deviation, Expectation, PRESETS};
use rbench_report::check::{json, junit, tap, text};
use rbench_report::schema::{
    CHECK_SCHEMA, CheckResult, HostChecksResult, PromiseResult, PromiseVerdict, Surroundings,
};
use rbench_sys::promises::{self, Evidence, GROUPS, Promise, Verdict};

use crate::launch::Launch;
use crate::live::Feed;
use crate::progress::Display;
use crate::run::{Hosts, Refusal, stop_code};
use crate::show;
use crate::signals::Signals;
use crate::{FAILED, SUCCESS, clean, complain, print, surroundings};

/// How long one promise may take, if nothing else is said.
const LONGEST: Nanos = Nanos(20_000_000_000);

/// Tries the promises on every host; rank 0 prints what was found.
pub async fn run(
    comm: &dyn Communicator,
    launch: &Launch,
    asked: &Check,
    signals: &Signals,
) -> Result<u8, Refusal> {
    let promises = chosen(&asked.only).map_err(Refusal::Usage)?;
    if asked.list {
        let root = comm.rank() == Rank(0);
        return Ok(if root {
            print(&list(&promises))
        } else {
            SUCCESS
        });
    }
    let Some(dir) = &asked.dir else {
        let text = "--dir must name a directory of the file system that is checked";
        return Err(Refusal::Usage(text.to_owned()));
    };
    let longest = asked.time_limit.unwrap_or(LONGEST);
    if longest == Nanos(0) {
        return Err(Refusal::Usage("--time-limit must be above 0".to_owned()));
    }
    let hosts = Hosts::find(comm).await?;
    let progress = match asked.quiet {
        true => Progress::Off,
        false => Progress::Auto,
    };
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
    let directory = Path::new(&launch.cwd).join(dir);
    answers(&group, &directory).await?;
    let around = surroundings::gather(&group, &directory, false).await?;
    let marker = clean::marker(launch);
    let place = Place {
        live: None,
        parent: &directory,
        name: &format!("rbench.{}", launch.run_id),
        marker: marker.as_bytes(),
        needs_shared: None,
        recorder: None,
    };
    let plan = Asked {
        promises,
        seed: asked.seed.unwrap_or(launch.seed),
        longest: Duration::from(longest),
    };
    let checked = check(&group, &place, &plan).await;
    display.end();
    let checked = checked?;
    if !group.is_root() {
        return Ok(stop_code(&group).unwrap_or(SUCCESS));
    }
    for left in &checked.left {
        complain(left);
    }
    let found = Found {
        launch,
        hosts: &hosts,
        directory: &directory,
        plan: &plan,
        expect: asked.expect.as_deref().zip(expectation.as_ref()),
    };
    let found = found.result(around, checked);
    let printed = print(&match asked.format {
        CheckFormat::Text => text(&found, show::view()),
        CheckFormat::Json => json(&found),
        CheckFormat::Junit => junit(&found),
        CheckFormat::Tap => tap(&found),
    });
    Ok(match stop_code(&group) {
        Some(code) => code,
        None if found.passed => printed,
        None => FAILED,
    })
}

/// The promises that `--only` names, in the order of the report.
fn chosen(only: &[String]) -> Result<Vec<&'static Promise>, String> {
    let names = |pattern: &String, promise: &Promise| promises::names(pattern, promise.name);
    let nothing = only
        .iter()
        .find(|pattern| !promises::all().any(|promise| names(pattern, promise)));
    if let Some(pattern) = nothing {
        let groups: Vec<&str> = GROUPS.iter().map(|group| group.name).collect();
        return Err(format!(
            "--only: there is no group or promise '{pattern}'; groups are {}, and --list has all",
            groups.join(", ")
        ));
    }
    let wanted =
        |promise: &&Promise| only.is_empty() || only.iter().any(|pattern| names(pattern, promise));
    Ok(promises::all().filter(wanted).collect())
}

/// The groups and promises, for people.
fn list(chosen: &[&Promise]) -> String {
    let mut out = String::new();
    for group in GROUPS {
        let within = |promise: &&&Promise| group.promises.iter().any(|p| p.name == promise.name);
        let within: Vec<_> = chosen.iter().filter(within).collect();
        if within.is_empty() {
            continue;
        }
        out.push_str(&format!("{}: {}\n", group.name, group.about));
        for promise in within {
            let root = if promise.root { " (root)" } else { "" };
            out.push_str(&format!("  {}: {}{root}\n", promise.name, promise.says));
        }
    }
    out.push_str(&format!("{} promises\n", chosen.len()));
    out
}

/// What `--expect` says.
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
    let unknown = read
        .deviations
        .iter()
        .find(|d| !promises::all().any(|promise| promises::names(&d.promise, promise.name)));
    match unknown {
        None => Ok(Some(read)),
        Some(d) => Err(format!(
            "--expect: {shown}: line {}: there is no promise '{}'",
            d.line, d.promise
        )),
    }
}

/// What was seen, and nothing else.
fn only(seen: String) -> Evidence {
    Evidence {
        seen,
        ..Evidence::default()
    }
}

/// What a result is made from.
struct Found<'a> {
    launch: &'a Launch,
    hosts: &'a Hosts,
    directory: &'a Path,
    plan: &'a Asked,
    expect: Option<(&'a Path, &'a Expectation)>,
}

impl Found<'_> {
    fn result(&self, around: Vec<Option<Surroundings>>, checked: Checked) -> CheckResult {
        let removed = checked.left.is_empty();
        let complete = |host: &HostCheck| host.found.len() == self.plan.promises.len();
        let complete = checked.hosts.iter().all(complete);
        let each = checked.hosts.into_iter().zip(around).enumerate();
        let hosts: Vec<HostChecksResult> = each
            .map(|(number, (found, around))| self.host(number, found, around))
            .collect();
        let fails = |host: &HostChecksResult| host.promises.iter().any(PromiseResult::fails);
        let decided = |promise: &PromiseResult| {
            promise.verdict == PromiseVerdict::Holds || promise.allowed.is_some()
        };
        let anything = hosts.iter().flat_map(|host| &host.promises).any(decided);
        CheckResult {
            schema: CHECK_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            directory: self.directory.display().to_string(),
            started: self.launch.started.clone(),
            seed: self.plan.seed,
            expect: self.expect.map(|(name, _)| name.display().to_string()),
            passed: complete && removed && anything && !hosts.iter().any(fails),
            complete,
            hosts,
        }
    }

    fn host(
        &self,
        number: usize,
        found: HostCheck,
        around: Option<Surroundings>,
    ) -> HostChecksResult {
        let HostCheck { root, found } = found;
        let name = self.hosts.topology.hosts.get(number);
        HostChecksResult {
            host: name.map_or_else(String::new, |host| host.name.clone()),
            kernel: self.hosts.kernel(number),
            surroundings: around.unwrap_or_default(),
            root,
            promises: found.into_iter().map(|seen| self.promise(seen)).collect(),
        }
    }

    fn promise(&self, seen: Seen) -> PromiseResult {
        let Seen {
            name,
            verdict,
            took,
        } = seen;
        let says = promises::all().find(|promise| promise.name == name);
        let says = says.map_or_else(String::new, |promise| promise.says.to_owned());
        let (verdict, evidence) = match verdict {
            Verdict::Holds(note) => (PromiseVerdict::Holds, only(note)),
            Verdict::Broken(evidence) => (PromiseVerdict::Broken, evidence),
            Verdict::Unsupported(evidence) => (PromiseVerdict::Unsupported, evidence),
            Verdict::Undecided(evidence) => (PromiseVerdict::Undecided, evidence),
            Verdict::LeftOut(why) => (PromiseVerdict::LeftOut, only(why)),
        };
        let allowed = verdict.fails().then(|| self.allowed(&name)).flatten();
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

    /// Why a promise need not be kept.
    fn allowed(&self, name: &str) -> Option<String> {
        let (_, expectation) = self.expect?;
        let covers = |d: &&Deviation| promises::names(&d.promise, name);
        let found = expectation.deviations.iter().find(covers)?;
        Some(format!("{} ({})", found.why, found.source))
    }
}
