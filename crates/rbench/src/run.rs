//! A workload from the command line to the report: the whole way on one
//! screen ([`pipeline`]).

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use rbench_cli::{Communicator as Which, Invocation, Output, Stop};
use rbench_comm::{Choice, ClockOffset, Communicator, Topology, World};
use rbench_core::random::key;
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Bytes, MonotonicClock, Rank};
use rbench_exec::{Calibration, ExecError, Group, Place, StopReason, calibrate, execute};
use rbench_plan::{Facts, Plan, Spec, resolve};
use rbench_report::{PhaseResult, RunResult, json};
use rbench_sys::engine::ENGINES;
use rbench_sys::limits::{HostFacts, available_memory, host_facts};

use crate::embedded::Embedded;
use crate::files::ResultFile;
use crate::launch::Launch;
use crate::progress::Display;
use crate::result::{Frame, warning};
use crate::show::render;
use crate::signals::Signals;
use crate::{FAILED, USAGE, complain, print};

/// Why a run gives no report. Every rank has the same; rank 0 says it.
enum Refusal {
    /// Help was asked for, or the command line is wrong.
    Cli(Stop),
    /// The command line cannot be done here.
    Usage(String),
    /// It could not be done.
    Failed(String),
    /// The other ranks no longer answer: they have to be ended.
    Silent(String),
}

impl From<ExecError> for Refusal {
    fn from(error: ExecError) -> Refusal {
        match error {
            ExecError::Usage(message) => Refusal::Usage(message),
            ExecError::SetUp(message) => Refusal::Failed(message),
            ExecError::Comm(_) | ExecError::NoAnswer => Refusal::Silent(error.to_string()),
        }
    }
}

impl From<rbench_comm::CommError> for Refusal {
    fn from(error: rbench_comm::CommError) -> Refusal {
        ExecError::from(error).into()
    }
}

/// Runs the workload that rank 0's command line asks for.
pub fn run(argv: &[OsString]) -> ExitCode {
    let choice = match rbench_cli::communicator(argv) {
        Which::Auto => Choice::Auto,
        Which::Solo => Choice::Solo,
        Which::Mpi => Choice::Mpi,
    };
    let env = |name: &str| std::env::var(name).ok();
    let world = match rbench_comm::start(choice, env) {
        Ok(world) => world,
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
    let code = match runtime.block_on(pipeline(world.communicator(), argv)) {
        Ok(code) => code,
        Err(refusal) => refuse(&world, root, refusal),
    };
    match world.finish() {
        Ok(()) => code,
        Err(error) => {
            complain(&error.to_string());
            ExitCode::from(FAILED)
        }
    }
}

fn refuse(world: &World, root: bool, refusal: Refusal) -> ExitCode {
    match refusal {
        Refusal::Cli(Stop { text, code: 0 }) => {
            if root {
                print(&text)
            } else {
                ExitCode::SUCCESS
            }
        }
        Refusal::Cli(Stop { text, .. }) => {
            if root {
                eprint!("{text}");
            }
            ExitCode::from(USAGE)
        }
        Refusal::Usage(message) => {
            if root {
                complain(&message);
            }
            ExitCode::from(USAGE)
        }
        Refusal::Failed(message) => {
            if root {
                complain(&message);
            }
            ExitCode::from(FAILED)
        }
        Refusal::Silent(message) => {
            complain(&message);
            world.abort(i32::from(FAILED))
        }
    }
}

/// argv → Spec → Plan → outcomes → result → report.
async fn pipeline(comm: &dyn Communicator, argv: &[OsString]) -> Result<ExitCode, Refusal> {
    let launch = Launch::share(comm, argv).await?;
    let (spec, output) = read(&launch)?;
    let hosts = Hosts::find(comm).await?;
    let plan = plan(&spec, &hosts, &launch)?;
    check_digests(comm, &plan).await?;

    let signals = Signals::new();
    let display = Display::new(output.progress, comm.rank() == Rank(0));
    let names = hosts
        .topology
        .hosts
        .iter()
        .map(|h| h.name.clone())
        .collect();
    let offset_ns =
        hosts.offsets[hosts.topology.host_of[comm.rank().0 as usize] as usize].offset_ns;
    let host_of = hosts.topology.host_of.clone();
    let group = Group::form(comm, names, host_of, offset_ns, &signals, &display).await?;

    let (parent, embedded) = target_directory(&group, &plan, &launch).await?;
    let report = measure(&group, &plan, &launch, &output, &hosts, &parent).await;
    display.end();
    // Unmounted before the report: what follows needs it no more.
    drop(embedded);
    finish(&group, report?, &output)
}

fn read(launch: &Launch) -> Result<(Spec, Output), Refusal> {
    match rbench_cli::parse(&launch.argv, launch.env_dir.as_deref()).map_err(Refusal::Cli)? {
        Invocation::Run(spec, output) => Ok((*spec, output)),
        Invocation::Testfs(_) | Invocation::Show { .. } => Err(Refusal::Usage(
            "only meta and io run on several ranks".to_owned(),
        )),
    }
}

/// The hosts of the run, the same on every rank.
struct Hosts {
    topology: Topology,
    offsets: Vec<ClockOffset>,
    facts: Vec<HostFacts>,
}

impl Hosts {
    async fn find(comm: &dyn Communicator) -> Result<Hosts, Refusal> {
        // Naming a host cannot fail on Linux; without a name it is one more host.
        let mine = host_facts().unwrap_or_else(|_| HostFacts {
            name: format!("unnamed-{}", std::process::id()),
            kernel: "unknown".to_owned(),
            cpus: 1,
        });
        let topology = rbench_comm::topology(comm, &mine.name).await?;
        let offsets = rbench_comm::clock_offsets(comm, &topology, &MonotonicClock).await?;
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
            offsets,
            facts,
        })
    }
}

fn plan(spec: &Spec, hosts: &Hosts, launch: &Launch) -> Result<Plan, Refusal> {
    let facts = Facts {
        host_of: hosts.topology.host_of.clone(),
        seed: launch.seed,
        engines: ENGINES
            .iter()
            .map(|e| (e.name, e.depth_max as u32))
            .collect(),
    };
    resolve(spec, &facts).map_err(|e| Refusal::Usage(e.to_string()))
}

/// All ranks must have come to the same plan.
async fn check_digests(comm: &dyn Communicator, plan: &Plan) -> Result<(), Refusal> {
    let digest = plan.digest();
    let bounds = comm
        .all_reduce(rbench_comm::Combine::Max, vec![digest, !digest])
        .await?;
    if bounds[0] == !bounds[1] {
        return Ok(());
    }
    Err(Refusal::Failed(
        "the ranks run different versions of rbench: their plans differ".to_owned(),
    ))
}

/// The directory to test: the user's, or this host's built-in file system,
/// which ends when the second value is dropped.
async fn target_directory(
    group: &Group<'_>,
    plan: &Plan,
    launch: &Launch,
) -> Result<(PathBuf, Option<Embedded>), Refusal> {
    if let Some(dir) = &plan.dir {
        return Ok((Path::new(&launch.cwd).join(dir), None));
    }
    let mounted = if group.is_leader() {
        let here = plan.data_bytes() / u64::from(plan.ranks) * u64::from(group.host.size());
        room_for(here).and_then(Embedded::mount).map(Some)
    } else {
        Ok(None)
    };
    let mounted = group.agree(mounted).await?;
    let path = mounted.as_ref().map_or(Vec::new(), |m| {
        m.path().as_os_str().as_encoded_bytes().to_vec()
    });
    let path = group.quietly(group.host.broadcast(Rank(0), path)).await?;
    Ok((
        PathBuf::from(String::from_utf8_lossy(&path).into_owned()),
        mounted,
    ))
}

/// Memory for the built-in file system: half of what is available.
fn room_for(data: u64) -> Result<Bytes, String> {
    let half = available_memory().map_or(1 << 30, |all| all.0 / 2);
    if data > half {
        return Err(format!(
            "the run needs {} MiB and the built-in file system has {} MiB of memory: give a directory with --dir",
            data >> 20,
            half >> 20
        ));
    }
    Ok(Bytes(half))
}

/// What a run leaves for its end.
struct Report {
    result: RunResult,
    file: Option<ResultFile>,
    /// The journal could not be written.
    trouble: Option<String>,
    kept: Option<PathBuf>,
    /// Why the run did not reach its end; what was measured is reported all
    /// the same.
    broken: Option<Refusal>,
}

/// Rank 0 calibrates while the others wait, so that they do not disturb it.
async fn calibrate_alone(group: &Group<'_>) -> Result<Calibration, Refusal> {
    let mine = if group.is_root() {
        calibrate(group.clock)
    } else {
        Calibration::default()
    };
    group.quietly(group.world.barrier()).await?;
    Ok(mine)
}

/// Measures, and journals each phase as it ends.
async fn measure(
    group: &Group<'_>,
    plan: &Plan,
    launch: &Launch,
    output: &Output,
    hosts: &Hosts,
    parent: &Path,
) -> Result<Report, Refusal> {
    let calibration = calibrate_alone(group).await?;
    let frame = Frame {
        launch,
        plan,
        labels: &output.labels,
        communicator: group.world.kind(),
        topology: &hosts.topology,
        offsets: &hosts.offsets,
        facts: &hosts.facts,
        calibration,
        parent,
        embedded: plan.dir.is_none(),
    };
    let report = RefCell::new(Report {
        result: frame.result(true),
        file: None,
        trouble: None,
        kept: None,
        broken: None,
    });
    let mut begun = |shared: bool| {
        let mut report = report.borrow_mut();
        report.result = frame.result(shared);
        if let Some(out) = &output.out {
            let path = Path::new(&launch.cwd).join(out);
            let header = rbench_report::journal::header_line(&report.result);
            report.file = Some(ResultFile::begin(&path, &header)?);
        }
        Ok(())
    };
    let mut row = |outcome| {
        let mut report = report.borrow_mut();
        let phase = PhaseResult::from(&outcome);
        let line = rbench_report::journal::phase_line(&phase);
        if let Some(Err(trouble)) = report.file.as_mut().map(|file| file.append(&line)) {
            report.trouble = Some(trouble);
        }
        report.result.phases.push(phase);
    };
    let name = format!("rbench.{}", launch.run_id);
    let marker = format!("rbench run {}\n", launch.run_id);
    let place = Place {
        parent,
        name: &name,
        marker: marker.as_bytes(),
        needs_shared: plan.needs_shared(),
    };
    let run_key = key(&launch.run_id.bytes().map(u64::from).collect::<Vec<u64>>());
    let outcome = execute(group, plan, &place, run_key, &mut begun, &mut row).await;
    let mut report = report.into_inner();
    match outcome {
        Ok(ending) => {
            report.kept = ending.kept;
            report.result.complete = ending.complete;
            let left = ending
                .left
                .into_iter()
                .map(|left| warning("left-behind", left));
            report.result.warnings.extend(left);
            report.broken = ending.trouble.map(Refusal::Failed);
        }
        Err(error) => report.broken = Some(error.into()),
    }
    Ok(report)
}

/// Writes the result and the report; the exit code of every rank.
fn finish(group: &Group<'_>, report: Report, output: &Output) -> Result<ExitCode, Refusal> {
    let Report {
        mut result,
        file,
        trouble,
        kept,
        broken,
    } = report;
    if !group.is_root() {
        // Only rank 0 knows of failed operations; the launcher takes its code.
        return broken.map_or_else(|| Ok(stop_code(group).unwrap_or(ExitCode::SUCCESS)), Err);
    }
    if let Some(refusal) = broken {
        if result.phases.is_empty() {
            if let Some(file) = file {
                file.discard();
            }
            return Err(refusal);
        }
        if let Refusal::Failed(message) | Refusal::Silent(message) = &refusal {
            result
                .warnings
                .push(warning("ended-early", message.clone()));
        }
        publish(result, file, trouble, kept, output);
        return Err(refusal);
    }
    let failed = result.phases.iter().any(|phase| phase.error_count() > 0);
    let published = publish(result, file, trouble, kept, output);
    Ok(match stop_code(group) {
        Some(code) => code,
        None if failed => ExitCode::from(FAILED),
        None => published,
    })
}

/// The result file, the report on standard output, and where things lie.
fn publish(
    mut result: RunResult,
    file: Option<ResultFile>,
    mut trouble: Option<String>,
    kept: Option<PathBuf>,
    output: &Output,
) -> ExitCode {
    result.run.finished = Some(format!("{:.3}", jiff::Timestamp::now()));
    rbench_report::finish(&mut result);
    if let Some(file) = file
        && let Err(message) = file.finish(&json::render(&result))
    {
        trouble = Some(message);
    }
    let printed = print(&render(&result, output.format));
    if !output.quiet {
        if let Some(out) = output.out.as_ref().filter(|_| trouble.is_none()) {
            eprintln!("result: {}", out.display());
        }
        if let Some(path) = kept {
            eprintln!("kept: {}", path.display());
        }
    }
    match trouble {
        Some(message) => {
            complain(&message);
            ExitCode::from(FAILED)
        }
        None => printed,
    }
}

/// The exit code after a signal: 128 and its number, as shells do.
fn stop_code(group: &Group<'_>) -> Option<ExitCode> {
    group
        .stop_reason()
        .map(|StopReason::Signal(number)| ExitCode::from(128 + number as u8))
}
