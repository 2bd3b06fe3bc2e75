//! A workload from the command line to the report, on one screen
//! ([`pipeline`]).

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use rbench_cli::{Communicator as Which, Output, Progress, Stop};
use rbench_comm::{
    Choice, Chosen, Clocks, Combine, CommError, Communicator, Identity, Topology, World, compare,
};
use rbench_core::plain::plain;
use rbench_core::random::key;
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Clock as _, MonotonicClock, Rank};
use rbench_exec::group::{PhaseHooks, WorkerResources};
use rbench_exec::{
    ExecError, Group, Place, Show as _, StopReason, ack, caches, calibrate, client, execute,
};
use rbench_plan::{Facts, Plan, Spec, Work, resolve, task_counts};
use rbench_report::{RunResult, json, text};
use rbench_sys::engine::{self, ENGINES};
use rbench_sys::identity::identity;
use rbench_sys::limits::{HostFacts, host_facts};

use crate::clean;
use crate::client_counters;
use crate::data_size;
use crate::files;
use crate::front::{self, Asked, FrontEnd, Scope};
use crate::launch::{Launch, arrival};
use crate::live::Outside;
use crate::progress::Display;
use crate::recording::{Job, Recording, Report, Sink, note_trouble};
use crate::result::{Frame, warning};
use crate::round_trip;
use crate::series;
use crate::signals::Signals;
use crate::surroundings;
use crate::target;
use crate::{FAILED, SUCCESS, USAGE, WITHOUT_TESTFS, complain, print, to_stderr};
use crate::{check, probe};

/// The warning of a run that could not go on.
pub const ENDED_EARLY: &str = "ended-early";

/// The warning of something that could not be removed.
pub const LEFT_BEHIND: &str = "left-behind";

/// Warnings of something that went wrong; the others explain numbers.
const WRONG: [&str; 6] = [
    "errors",
    "already-there",
    "dead-mount",
    "stalled",
    "unchecked-blocks",
    LEFT_BEHIND,
];

/// Why a run has no report. It is the same on every rank; rank 0 prints it.
pub enum Refusal {
    /// Help was asked for, or the command line is wrong.
    Cli(Stop),
    /// The command line cannot be carried out here.
    Usage(String),
    /// The run failed.
    Failed(String),
    /// The other ranks no longer answer and must be ended.
    Silent(String),
}

impl From<ExecError> for Refusal {
    fn from(error: ExecError) -> Refusal {
        match error {
            ExecError::Usage(message) => Refusal::Usage(message),
            ExecError::SetUp(message) => Refusal::Failed(message),
            ExecError::Lost(message) => Refusal::Silent(message),
            ExecError::Comm(_) | ExecError::NoAnswer => Refusal::Silent(error.to_string()),
        }
    }
}

impl From<rbench_comm::CommError> for Refusal {
    fn from(error: rbench_comm::CommError) -> Refusal {
        ExecError::from(error).into()
    }
}

/// How long the launcher may take to notice that a host is gone.
const LAUNCHERS_TURN: Duration = Duration::from_secs(3);

/// Runs the workload that rank 0's command line asks for.
pub fn run(argv: &[OsString]) -> ExitCode {
    let start = rbench_cli::start(argv);
    let choice = match start.communicator {
        Which::Auto => Choice::Auto,
        Which::Solo => Choice::Solo,
        Which::Mpi => Choice::Mpi,
    };
    let env = |name: &str| std::env::var(name).ok();
    let mut world = match rbench_comm::start(choice, arrival(start), env) {
        Ok(world) => world,
        // Rank 0 says why.
        Err(CommError::Refused) => return ExitCode::from(FAILED),
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(FAILED);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("the control plane cannot be started: {error}"));
            world.abort(i32::from(FAILED))
        }
    };
    let root = world.communicator().rank() == Rank(0);
    let code = match runtime.block_on(pipeline(&mut world, argv)) {
        Ok(code) => code,
        Err(Refusal::Silent(message)) => {
            complain(&message);
            // The report is out. Open MPI's launcher, asked to end a job while
            // one of its own daemons is unreachable, may wait for that daemon
            // for ever; left alone it notices by itself and ends all ranks.
            std::thread::sleep(LAUNCHERS_TURN);
            world.abort(i32::from(FAILED))
        }
        Err(refusal) => say(root, refusal),
    };
    match world.finish() {
        Ok(()) => ExitCode::from(code),
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

/// Prints at rank 0 why there is no report; returns the exit code.
pub fn say(root: bool, refusal: Refusal) -> u8 {
    match refusal {
        Refusal::Cli(Stop { text, code: 0 }) => {
            if root {
                print(&text)
            } else {
                SUCCESS
            }
        }
        Refusal::Cli(Stop { text, .. }) => {
            if root {
                to_stderr(&text);
            }
            USAGE
        }
        Refusal::Usage(message) => {
            if root {
                message.lines().for_each(complain);
            }
            USAGE
        }
        Refusal::Failed(message) | Refusal::Silent(message) => {
            if root {
                complain(&message);
            }
            FAILED
        }
    }
}

/// argv → Spec → Plan → outcomes → result → report.
async fn pipeline(world: &mut World, argv: &[OsString]) -> Result<u8, Refusal> {
    let launch = Launch::share(world.communicator(), argv).await?;
    world.together();
    let comm = world.communicator();
    let signals = Signals::new();
    match front::read(&launch)? {
        Asked::Run(run) => {
            let shown = (&run.1.serve, run.1.progress, run.1.quiet);
            let outside = Outside::open(comm, signals, shown).await?;
            let ended = counts(comm, &launch, (&run.0, &run.1), &outside).await;
            outside.tell_end(&ended);
            ended
        }
        Asked::Series(series) => {
            let shown = (&series.serve, series.progress, series.quiet);
            let outside = Outside::open(comm, signals, shown).await?;
            let ended = series::run(comm, &launch, &series, &outside).await;
            outside.tell_end(&ended);
            ended
        }
        Asked::Probe(asked) => probe::run(comm, &launch, &asked, &signals).await,
        Asked::Check(asked) => check::run(comm, &launch, &asked, &signals).await,
        Asked::Clean(asked) => clean::run(comm, &launch, &asked, &signals).await,
    }
}

/// A run, once for each number of ranks that the command line asks for.
async fn counts(
    comm: &dyn Communicator,
    launch: &Launch,
    (spec, output): (&Spec, &Output),
    outside: &Outside,
) -> Result<u8, Refusal> {
    let output = &named(output, launch);
    let counts = task_counts(spec, comm.size()).map_err(|e| Refusal::Usage(e.to_string()))?;
    if counts == [comm.size()] {
        return once(comm, launch, (spec, output), outside, None).await;
    }
    let mut worst = SUCCESS;
    for ranks in counts {
        let (launch, output) = (launch.with(ranks), with(output, ranks));
        let leading = (0..ranks).map(Rank).collect();
        let code = match Chosen::of(comm, leading).await? {
            Some(part) => match once(&part, &launch, (spec, &output), outside, None).await {
                Err(Refusal::Silent(message)) => return Err(Refusal::Silent(message)),
                Err(refusal) => say(comm.rank() == Rank(0), refusal),
                Ok(code) => code,
            },
            None => SUCCESS,
        };
        let all = comm.all_reduce(Combine::Max, vec![u64::from(code)]).await?;
        worst = worst.max(all[0] as u8);
        // After a signal or a failure there is no next one.
        if worst > FAILED {
            break;
        }
    }
    Ok(worst)
}

/// The output with the name of the result file.
fn named(output: &Output, launch: &Launch) -> Output {
    let mut output = output.clone();
    let name = |out| files::named_after(out, &launch.cwd, &launch.run_id);
    output.out = output.out.map(name);
    output
}

/// The output of one run among several with different numbers of ranks: each
/// has its own result file.
fn with(output: &Output, ranks: u32) -> Output {
    let mut output = output.clone();
    output.out = output.out.map(|out| {
        let extension = out
            .extension()
            .map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
        out.with_extension(format!("{ranks}{extension}"))
    });
    output
}

/// One run from Spec to report, or to the series that it belongs to; the exit
/// code.
pub async fn once(
    comm: &dyn Communicator,
    launch: &Launch,
    (spec, output): (&Spec, &Output),
    outside: &Outside,
    cell: Option<Rc<dyn Sink>>,
) -> Result<u8, Refusal> {
    let hosts = Hosts::find(comm).await?;
    let mut front = front::of(spec, output);
    let stonewalled = front::stonewalled(comm, front.as_ref()).await?;
    let plan = plan(spec, &hosts.topology.host_of, launch, stonewalled)?;
    check_digests(comm, &plan).await?;
    let instead = front.instead(comm.size(), comm.rank() == Rank(0));
    if let Some(code) = instead.map_err(Refusal::Usage)? {
        return Ok(code);
    }

    let progress = progress_of(front.as_ref(), output.progress);
    let feed = outside.feed();
    let display = Display::new(progress, comm.rank() == Rank(0), feed.clone());
    let group = hosts
        .group(comm, &outside.signals, &display)
        .await?
        .with_limits(plan.limits)
        .with_interval(plan.interval)
        .with_rows(front.rows())
        .with_seats(WorkerResources {
            pinned: plan.pin,
            own_files: !one_file_table(&plan),
        });

    let (parent, embedded) = target::directory(&group, &plan, launch).await?;
    let places = target::places(&plan, launch, &parent);
    let cache_of = caches(&group, &identity().kernel, places.clone()).await?;
    let commands = plan.commands.clone();
    let hooks = PhaseHooks::new(commands, &launch.run_id, plan.iterations, &parent);
    let group = group.with_caches(cache_of).with_hooks(hooks);
    // The built-in file system is this program: it is only watched when that is asked for.
    if output.watch.is_some() || !plan.embedded() {
        client::watch(&group, output.watch.clone(), places.clone()).await?;
    }
    group.watch_mounts(places).await?;
    let scope = Scope {
        plan: &plan,
        launch,
    };
    let opened = front
        .open(scope, comm.rank())
        .and_then(|()| match &plan.work {
            Work::Io(io) => ack::check_journals(io, &plan, comm.rank(), &parent),
            Work::Meta(_) | Work::Jobs(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => {
                Ok(())
            }
        });
    if let Err(error) = group.agree(opened).await {
        front.discard();
        return Err(error.into());
    }
    let job = Job {
        plan: &plan,
        launch,
        output,
        front,
        cell,
        feed,
    };
    let report = measure(&group, job, &hosts, &parent, &display).await;
    display.end();
    // Unmounted before the report, which does not need it.
    drop(embedded);
    finish(&group, report?, &plan, launch, output)
}

/// How progress is shown: without a terminal, some front ends show none unless
/// asked to.
fn progress_of(front: &dyn FrontEnd, asked: Progress) -> Progress {
    if !front.shows_progress() && asked == Progress::Auto && !std::io::stderr().is_terminal() {
        Progress::Off
    } else {
        asked
    }
}

/// The hosts of the run, the same on every rank.
pub struct Hosts {
    /// Which rank is on which.
    pub topology: Topology,
    clocks: Clocks,
    facts: Vec<HostFacts>,
}

impl Hosts {
    /// Looked for by all ranks together.
    pub async fn find(comm: &dyn Communicator) -> Result<Hosts, Refusal> {
        let here = identity();
        // uname and sysconf cannot fail on Linux.
        let mine = host_facts().unwrap_or_else(|_| HostFacts {
            name: here.node.clone(),
            kernel: "unknown".to_owned(),
            cpus: 1,
        });
        let here = Identity {
            node: here.node,
            kernel: here.kernel,
            clock: here.clock,
        };
        let topology = rbench_comm::topology(comm, &here).await?;
        let mut clocks = Clocks::of(&topology);
        let begun = MonotonicClock.now();
        let found = compare(comm, clocks.others(), &MonotonicClock).await?;
        clocks.learn(&found, MonotonicClock.now().since(begun));
        let mut message = Writer::default();
        message.text(&mine.kernel).number(u64::from(mine.cpus));
        let all = comm
            .gather(Rank(0), message.finish())
            .await?
            .unwrap_or_default();
        let facts = topology
            .hosts
            .iter()
            .filter_map(|host| {
                let mut r = Reader::new(all.get(host.leader().0 as usize)?);
                Some(HostFacts {
                    name: host.name.clone(),
                    kernel: r.text()?,
                    cpus: r.number()? as u32,
                })
            })
            .collect();
        Ok(Hosts {
            topology,
            clocks,
            facts,
        })
    }

    /// The group of all ranks on them.
    pub async fn group<'a>(
        &self,
        comm: &'a dyn Communicator,
        signals: &'a Signals,
        display: &'a Display,
    ) -> Result<Group<'a>, ExecError> {
        let names = self.topology.hosts.iter().map(|h| h.name.clone());
        let (names, host_of) = (names.collect(), self.topology.host_of.clone());
        Group::form(comm, names, host_of, self.clocks.clone(), signals, display).await
    }

    /// The kernel of a host; known at rank 0.
    pub fn kernel(&self, host: usize) -> String {
        self.facts
            .get(host)
            .map_or_else(String::new, |facts| facts.kernel.clone())
    }
}

/// Whether an engine of the plan makes calls in threads that all workers share.
fn one_file_table(plan: &Plan) -> bool {
    let shares = |name: &str| engine::find(name).is_some_and(|engine| engine.one_file_table);
    match &plan.work {
        Work::Meta(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => false,
        Work::Io(io) => shares(&io.engine),
        Work::Jobs(jobs) => jobs.rounds.iter().flatten().any(|job| shares(&job.engine)),
    }
}

/// The plan of a run on ranks whose hosts are `host_of`.
pub fn plan(
    spec: &Spec,
    host_of: &[u32],
    launch: &Launch,
    stonewalled: Option<u64>,
) -> Result<Plan, Refusal> {
    let facts = Facts {
        host_of: host_of.to_vec(),
        seed: launch.seed,
        engines: ENGINES
            .iter()
            .map(|e| (e.name, e.depth_max as u32))
            .collect(),
        stonewalled,
    };
    let plan = resolve(spec, &facts).map_err(|e| Refusal::Usage(e.to_string()))?;
    if plan.embedded() && cfg!(not(feature = "testfs")) {
        return Err(Refusal::Usage(format!(
            "{WITHOUT_TESTFS}: give a directory with --dir"
        )));
    }
    Ok(plan)
}

/// All ranks must have resolved the same plan.
async fn check_digests(comm: &dyn Communicator, plan: &Plan) -> Result<(), Refusal> {
    let digest = plan.digest();
    let bounds = comm.all_reduce(Combine::Max, vec![digest, !digest]).await?;
    if bounds[0] == !bounds[1] {
        return Ok(());
    }
    Err(Refusal::Failed(
        "the ranks run different versions of rbench: their plans differ".to_owned(),
    ))
}

/// Measures, and journals each phase as it ends.
async fn measure(
    group: &Group<'_>,
    mut job: Job<'_>,
    hosts: &Hosts,
    parent: &Path,
    display: &Display,
) -> Result<Report, Refusal> {
    let calibration = calibrate::on_each_host(group, &job.plan.work).await?;
    let (plan, launch) = (job.plan, job.launch);
    let round_trip = round_trip::measure(group, plan, job.output, parent).await?;
    let data_sizes = data_size::gather(group, plan, job.output).await?;
    let around = surroundings::gather(group, parent, plan.embedded()).await?;
    let frame = Frame {
        launch,
        plan,
        labels: &job.output.labels,
        communicator: group.world.kind(),
        topology: &hosts.topology,
        clocks: &hosts.clocks,
        cache_of: &group.cache_of,
        facts: &hosts.facts,
        calibration,
        parent,
        embedded: plan.embedded(),
        round_trip,
        data_sizes,
        surroundings: &around,
    };
    let name = format!("rbench.{}", launch.run_id);
    let mut marker = clean::marker(launch);
    if plan.keep {
        marker.push_str(clean::KEPT);
    }
    let live = job.front.begin(Scope { plan, launch });
    let place = Place {
        live,
        // Jobs name their directories themselves.
        parent: match &plan.work {
            Work::Jobs(_) => Path::new(&launch.cwd),
            Work::Meta(_) | Work::Io(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => parent,
        },
        name: &name,
        marker: marker.as_bytes(),
        needs_shared: plan.needs_shared(),
        recorder: None,
    };
    let run_key = key(&launch.run_id.bytes().map(u64::from).collect::<Vec<u64>>());
    let mut recording = Recording::new(&frame, job, display, group);
    recording.observe(group);
    // Launchers end their ranks soon after a signal.
    let leaves = plan.works_in_its_own_directory() && !plan.embedded() && !plan.keep;
    if leaves && group.world.size() > 1 {
        display.at_risk(format!(
            "if this is interrupted, {} is left behind; remove it with: rbench clean {}",
            parent.join(&name).display(),
            parent.display()
        ));
    }
    let clients = client_counters::begin(group, recording.output(), parent).await?;
    let outcome = execute(group, plan, &place, run_key, &mut recording).await;
    recording.ended();
    recording.end_commands(group, outcome.is_ok()).await;
    if outcome.is_ok()
        && let Some(clients) = clients
    {
        // What was measured is worth more than what the client counted.
        if let Ok(found) = clients.end(group).await {
            recording.clients(found);
        }
    }
    if matches!(&outcome, Err(e) if !matches!(e, ExecError::Usage(_) | ExecError::SetUp(_))) {
        display.stopping();
    }
    if outcome.is_ok() {
        keep_time_at_the_end(group).await;
        recording.settle_clocks(&group.clocks());
    }
    Ok(recording.end(outcome))
}

/// Compares the clocks for the last time, after all measuring; after a stop there
/// is no time for it. An error here does not end the run: the measurements are
/// worth more than knowing the clocks better.
async fn keep_time_at_the_end(group: &Group<'_>) {
    let several = !group.clocks().others().is_empty();
    if several && matches!(group.stopped().await, Ok(false)) {
        group.keep_time_at_the_end().await.ok();
    }
}

/// Writes the result and the report; returns the exit code of every rank.
fn finish(
    group: &Group<'_>,
    mut report: Report,
    plan: &Plan,
    launch: &Launch,
    output: &Output,
) -> Result<u8, Refusal> {
    if !group.is_root() {
        let local = if report.trouble.is_some() {
            FAILED
        } else {
            SUCCESS
        };
        if let Some(message) = &report.trouble {
            message.lines().for_each(complain);
        }
        if report.broken.is_some() {
            report.front.discard();
        }
        // Only rank 0 knows of failed operations; the launcher takes its code.
        return match (stop_code(group), report.broken) {
            // A command ended by the same signal is not a failure of its own.
            (Some(code), None | Some(ExecError::SetUp(_))) => Ok(code),
            (_, Some(error)) => Err(error.into()),
            (None, None) => Ok(local),
        };
    }
    if stop_code(group).is_some() && matches!(report.broken, Some(ExecError::SetUp(_))) {
        report.broken = None;
    }
    let mut warnings = report.result.warnings.iter();
    let failed = rbench_report::warnings::has_failures(&report.result)
        || report.jobs.iter().any(|job| job.error != 0)
        || warnings.any(|warning| warning.code == LEFT_BEHIND);
    let broken = report.broken.clone();
    if let Some(error) = broken.as_ref().filter(|_| report.result.phases.is_empty()) {
        let scope = Scope { plan, launch };
        let why = error.to_string();
        report.front.without_result(scope, &report.result, &why);
        report.discard();
    } else {
        let published = match report.published {
            Some(code) => code,
            None => publish(&mut report, plan, launch, output),
        };
        if broken.is_none() {
            return Ok(match stop_code(group) {
                Some(code) => code,
                None if failed => FAILED,
                None => published,
            });
        }
    }
    broken.map_or(Ok(FAILED), |error| Err(error.into()))
}

/// Completes the result and writes the files that hold it; what could not be
/// written, in a sentence.
pub fn conclude(report: &mut Report) -> Option<String> {
    let mut trouble = report.take_trouble();
    let result = &mut report.result;
    if let Some(
        error @ (ExecError::SetUp(_)
        | ExecError::Comm(_)
        | ExecError::Lost(_)
        | ExecError::NoAnswer),
    ) = &report.broken
    {
        result
            .warnings
            .push(warning(ENDED_EARLY, error.to_string()));
    }
    result.run.finished = Some(format!("{:.3}", jiff::Timestamp::now()));
    rbench_report::finish(result);
    let file = report.file.borrow_mut().take();
    if let Some(file) = file
        && let Err(message) = file.finish(&json::render(result))
    {
        note_trouble(&mut trouble, message);
    }
    if let Err(message) = report.front.finish(result) {
        note_trouble(&mut trouble, message);
    }
    trouble
}

/// The result file, the report on standard output, and where they are; returns
/// the exit code.
pub fn publish(report: &mut Report, plan: &Plan, launch: &Launch, output: &Output) -> u8 {
    let scope = Scope { plan, launch };
    if report.file.borrow().is_some() || report.cell.is_some() {
        report.result.forms = report.front.forms(scope, &report.result, &report.jobs);
    }
    if let Some(cell) = report.cell.clone() {
        return cell.take(report);
    }
    let mut trouble = conclude(report);
    let result = &mut report.result;

    let printed = match report.front.report(scope, output, result, &report.jobs) {
        Ok(code) => code,
        Err(message) => {
            note_trouble(&mut trouble, message);
            FAILED
        }
    };
    let has_ours = output.has_report();
    if !has_ours && !report.front.tells_failures() {
        text::failures(result)
            .iter()
            .for_each(|failure| complain(failure));
    }
    if !has_ours && !result.complete && report.broken.is_none() {
        complain("the run was interrupted; the report covers what it did until then");
    }
    // Other tools print nothing on standard error unless something is wrong.
    let people = std::io::stderr().is_terminal();
    if !has_ours && !output.quiet {
        tell_trouble(result, people);
    }
    if !output.quiet && (has_ours || people) {
        if let Some(out) = output.out.as_ref().filter(|_| trouble.is_none()) {
            to_stderr(&format!("result: {}\n", plain(&out.to_string_lossy())));
        }
        if let Some(path) = &report.kept {
            to_stderr(&format!("kept: {}\n", plain(&path.to_string_lossy())));
        }
    }
    let code = match trouble {
        Some(message) => {
            message.lines().for_each(complain);
            FAILED
        }
        None => printed,
    };
    report.published = Some(code);
    code
}

/// Prints on standard error what another tool's tables have no room for: what
/// went wrong and, on a terminal, what to know before trusting the tables.
fn tell_trouble(result: &RunResult, people: bool) {
    // Whoever ends the run early prints why.
    let told = |code: &str| code != ENDED_EARLY && (people || WRONG.contains(&code));
    for warning in result.warnings.iter().filter(|w| told(&w.code)) {
        complain(&warning.message);
    }
}

/// The exit code after a signal: 128 + its number, as shells do.
pub fn stop_code(group: &Group<'_>) -> Option<u8> {
    match group.stop_reason()? {
        StopReason::Signal(number) => Some(128 + number as u8),
        StopReason::Errors
        | StopReason::Stuck
        | StopReason::Start
        | StopReason::Trigger
        | StopReason::DeadMount => None,
    }
}
