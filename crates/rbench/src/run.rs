//! One run from its Spec to its report ([`once`]).

use std::io::IsTerminal as _;
use std::path::Path;
use std::rc::Rc;

use rbench_cli::{Output, Progress};
use rbench_comm::{Combine, Communicator};
use rbench_core::Rank;
use rbench_core::random::key;
use rbench_exec::group::{PhaseHooks, WorkerResources};
use rbench_exec::{ExecError, Group, Place, Show as _, ack, caches, calibrate, client, execute};
use rbench_plan::spec::Workload;
use rbench_plan::{Facts, Plan, Spec, Work, resolve};
use rbench_sys::engine::{self, ENGINES};
use rbench_sys::identity::identity;

use crate::embedded::WITHOUT_TESTFS;
use crate::front::{FrontEnd, Scope};
use crate::hosts::Hosts;
use crate::launch::Launch;
use crate::outside::Outside;
use crate::progress::Display;
use crate::publish::finish;
use crate::recording::{Job, Recording};
use crate::refusal::{Refusal, checked_at_root};
use crate::report::{Report, Sink};
use crate::result::Frame;
use crate::{
    client_counters, command, data_size, marker, recording, result, round_trip, status,
    surroundings, target,
};

/// Executes one run from Spec to report, or to the series that it belongs to. Returns the exit
/// code.
pub async fn once(
    comm: &dyn Communicator,
    launch: &Launch,
    (spec, output): (&Spec, &Output),
    outside: &Outside,
    cell: Option<Sink>,
) -> Result<u8, Refusal> {
    let hosts = Hosts::find(comm).await?;
    let mut front = command::front_end(spec, output);
    // Items that an earlier run's stonewall left to each rank.
    let stonewalled = match front.status_to_read() {
        Some((option, path)) => status::read(comm, option, &path).await?,
        None => None,
    };
    let plan = plan(spec, &hosts.topology.host_of, launch, stonewalled)?;
    check_digests(comm, &plan).await?;
    let instead = front.instead(comm.size(), comm.rank() == Rank(0));
    if let Some(code) = instead.map_err(Refusal::Usage)? {
        return Ok(code);
    }
    if cell.is_none() {
        checked_at_root(comm, || recording::outputs_are_free(output, launch)).await?;
    }

    let progress = progress_of(front.as_ref(), output.progress);
    let feed = outside.feed();
    let display = Display::new(progress, comm.rank() == Rank(0), feed.clone());
    let group = hosts.group(comm, &outside.signals, &display).await?;
    let mut group = group.with_interval(plan.interval);
    group.limits = plan.limits;
    group.rows = front.rows();
    group.seats = WorkerResources {
        pinned: plan.pin,
        own_files: !one_file_table(&plan),
    };

    let (parent, embedded) = target::directory(&group, &plan, launch).await?;
    let places = target::places(&plan, launch, &parent);
    let cache_of = caches(&group, &identity().kernel, places.clone()).await?;
    let commands = plan.commands.clone();
    let hooks = PhaseHooks::new(commands, &launch.run_id, plan.iterations, &parent);
    group.probes.hooks = Rc::new(hooks);
    let group = group.with_caches(cache_of);
    // The built-in file system is this program: it is watched only on request.
    if output.watch.is_some() || !plan.embedded() {
        client::watch(&group, output.watch.clone(), places.clone()).await?;
    }
    group.watch_mounts(places).await?;
    let scope = Scope {
        plan: &plan,
        launch,
    };
    let opened = front.open(scope, comm.rank());
    let (rank, here, whole) = (comm.rank(), parent.clone(), plan.clone());
    let ready = move || {
        opened?;
        match &whole.work {
            Work::Io(io) => ack::check_journals(io, &whole, rank, &here),
            Work::Meta(_) | Work::Jobs(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => {
                Ok(())
            }
        }
    };
    if let Err(error) = group.agree_on_target(ready).await {
        front.discard();
        // The files of fio, mdtest and IOR are checked as they do it.
        let foreign = matches!(
            spec.workload,
            Workload::Fio(_) | Workload::Mdtest(_) | Workload::Ior(_)
        );
        return Err(match foreign {
            true => error.into(),
            false => group.as_usage(error).into(),
        });
    }
    let job = Job {
        scope,
        output,
        front,
        cell,
        feed,
    };
    let report = measure(&group, job, &hosts, &parent, &display).await;
    display.end();
    // The report does not need the mount.
    drop(embedded);
    finish(&group, report?, scope, output)
}

/// The progress mode: without a terminal, some front ends show progress only on request.
fn progress_of(front: &dyn FrontEnd, asked: Progress) -> Progress {
    if !front.shows_progress() && asked == Progress::Auto && !std::io::stderr().is_terminal() {
        Progress::Off
    } else {
        asked
    }
}

/// Returns true if an engine of the plan makes calls in threads that all workers share.
fn one_file_table(plan: &Plan) -> bool {
    let shares = |name: &str| engine::find(name).is_some_and(|engine| engine.one_file_table);
    match &plan.work {
        Work::Meta(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => false,
        Work::Io(io) => shares(&io.job.engine),
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

/// Checks that all ranks resolved the same plan.
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
    let calibration = calibrate::on_each_host(group, &job.scope.plan.work).await?;
    let scope = job.scope;
    let Scope { plan, launch } = scope;
    let round_trip = round_trip::measure(group, plan, job.output, parent).await?;
    let data_sizes = data_size::gather(group, plan, job.output).await?;
    let around = surroundings::gather(group, parent, plan.embedded()).await?;
    let place = parent.to_owned();
    let standing = group.on_target(move || result::standing(&place), || 0);
    let standing = standing.await?.unwrap_or_default();
    let frame = Frame {
        scope,
        labels: &job.output.labels,
        communicator: group.world.kind(),
        hosts,
        cache_of: &group.cache_of,
        calibration,
        parent,
        standing,
        round_trip,
        data_sizes,
        surroundings: &around,
    };
    let name = format!("rbench.{}", launch.run_id);
    let mut marker = marker::marker(&launch.run_id, &launch.origin);
    if plan.keep {
        marker.push_str(marker::KEPT);
    }
    let live = job.front.begin(scope);
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
    // Launchers kill their ranks soon after a signal.
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
        // Errors here must not discard the measurements.
        if let Ok(counters) = clients.end(group).await {
            recording.clients(counters);
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

/// Compares the clocks again after all measurements, except after a stop. Ignores errors: the
/// measurements matter more than better clocks.
async fn keep_time_at_the_end(group: &Group<'_>) {
    let several = !group.clocks().others().is_empty();
    if several && matches!(group.stopped().await, Ok(false)) {
        group.keep_time_at_the_end().await.ok();
    }
}
