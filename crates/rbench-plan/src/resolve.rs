//! Resolves a Spec to a Plan: sets defaults and checks combinations, so that nothing is
//! left to decide.

use std::path::PathBuf;

use rbench_core::timeline::INTERVAL;
use rbench_core::{Bytes, Nanos, OpKind, plain, plain_lines};

use crate::arrival::{Arrival, OpenLoop, check_rate};
use crate::io::IoPlan;
use crate::jobs::{FileNames, JobsPlan};
use crate::meta::{
    ItemOwner, Layout as TreeLayout, Location, MetaPlan, PHASES, PhaseKind, PhasePlan, Renaming,
    UNTIL_THE_DEADLINE, with_needed,
};
use crate::mix::MixPlan;
use crate::refusal::PlanError;
use crate::replay::ReplayPlan;
use crate::shift;
use crate::spec::{self, Spec, Workload};
use crate::tree::{Forest, ItemKind, NATIVE, PATH_MAX, Paths, Private, Shape};

/// The shortest `--interval`.
const INTERVAL_MIN: Nanos = Nanos(10_000_000);
/// The longest `--interval`.
const INTERVAL_MAX: Nanos = Nanos(60_000_000_000);

mod blocks;
mod find;
mod fio;
mod in_flight;
mod io;
mod ior;
mod mdtest;
mod mix;
mod ops;
mod repeats;
mod replay;
mod surroundings;
mod timed;
mod workers;

use mdtest::counts;
pub use repeats::Until;
pub use surroundings::Limits;
use timed::Timed;

/// Facts for resolving a Spec; the same on all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The host of each rank, as a number.
    pub host_of: Vec<u32>,
    /// The seed if none is given.
    pub seed: u64,
    /// (name, most requests in flight) of each engine.
    pub engines: Vec<(&'static str, u32)>,
    /// Items or transfers of each rank after a stonewall, from the file of
    /// `rbench mdtest -x` or IOR's stoneWallingStatusFile, if it was read.
    pub stonewalled: Option<u64>,
}

impl Facts {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.host_of.len() as u32
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.host_of.iter().max().map_or(1, |h| h + 1)
    }

    /// Number of ranks of the first host; `None` if ranks are placed on the hosts in turn.
    fn on_first_host(&self) -> Option<u32> {
        let first = self.host_of.first();
        let in_turn = self.hosts() > 1 && self.host_of.get(1) != first;
        let same = self.host_of.iter().filter(|host| Some(*host) == first);
        (!in_turn).then(|| same.count() as u32)
    }
}

#[cfg(test)]
impl Facts {
    /// A launch with a rank on each of these hosts.
    pub(crate) fn on(host_of: &[u32]) -> Facts {
        Facts {
            host_of: host_of.to_vec(),
            seed: 7,
            engines: vec![("psync", 1)],
            stonewalled: None,
        }
    }

    /// The plan of a workload.
    pub(crate) fn plan(&self, common: spec::Common, workload: Workload) -> Result<Plan, String> {
        resolve(&Spec { common, workload }, self).map_err(|error| error.0)
    }

    /// The plan of a workload of jobs, and its notes.
    pub(crate) fn jobs(
        &self,
        common: spec::Common,
        workload: Workload,
    ) -> Result<(JobsPlan, Vec<String>), String> {
        let plan = self.plan(common, workload)?;
        match plan.work {
            Work::Jobs(jobs) => Ok((jobs, plan.notes)),
            other => panic!("{other:?}"),
        }
    }
}

/// The workload, complete.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// `rbench meta`
    Meta(MetaPlan),
    /// `rbench io`
    Io(Box<IoPlan>),
    /// `rbench fio`, `rbench ior`
    Jobs(JobsPlan),
    /// `rbench find`
    Find(spec::Find),
    /// `rbench mix`
    Mix(MixPlan),
    /// `rbench replay`
    Replay(ReplayPlan),
}

impl Work {
    /// Prefix of the names of the journals of acknowledged writes.
    pub fn ack_journal(&self) -> Option<&PathBuf> {
        match self {
            Work::Meta(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => None,
            Work::Io(io) => io.ack_journal.as_ref(),
            Work::Jobs(jobs) => jobs.ack_journal.as_ref(),
        }
    }
}

/// The complete plan of a run; no value means "default".
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The directory; `None`: the built-in file system.
    pub dir: Option<PathBuf>,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// The host of each rank, as a number.
    pub host_of: Vec<u32>,
    /// Workers of each rank, except those in `short`.
    pub threads: u32,
    /// Ranks that lack their last worker, ascending.
    pub short: Vec<u32>,
    /// True if each worker stays on one processor.
    pub pin: bool,
    /// Passes over all phases before those that count; nothing of them is recorded.
    pub warmup: u32,
    /// Passes over all phases; with `until` the most.
    pub iterations: u32,
    /// Rule by which fewer passes are enough; `None`: all are done.
    pub until: Option<Until>,
    /// Rank r works on the items that rank r − shift·k created.
    pub shift: u32,
    /// True if the caches of every host are dropped before each phase that reads or
    /// stats.
    pub drop_caches: bool,
    /// True if the run's directory is kept.
    pub keep: bool,
    /// Limits at which the run stops by itself.
    pub limits: Limits,
    /// Commands around each phase.
    pub commands: spec::CommandOptions,
    /// The workload.
    pub work: Work,
    /// Values that were rounded or implied, for the report.
    pub notes: Vec<String>,
    /// Refusals that are disabled for the target.
    pub leave: spec::Leave,
    /// True if start and duration of each operation are kept.
    pub log: bool,
    /// The interval of the timelines, 10 ms to 60 s.
    pub interval: Nanos,
}

impl Plan {
    /// True if everything happens in a directory of the run.
    pub fn works_in_its_own_directory(&self) -> bool {
        match &self.work {
            Work::Meta(meta) => meta.site == Location::Own,
            Work::Io(_) | Work::Mix(_) | Work::Replay(_) => true,
            Work::Jobs(_) | Work::Find(_) => false,
        }
    }

    /// Number of workers of all ranks.
    pub fn workers(&self) -> u64 {
        u64::from(self.ranks) * u64::from(self.threads) - self.short.len() as u64
    }

    /// Most passes over all phases, counted or not.
    pub fn passes(&self) -> u32 {
        self.iterations.saturating_add(self.warmup)
    }

    /// Number of workers of a rank.
    pub fn workers_of(&self, rank: rbench_core::Rank) -> u32 {
        self.threads - u32::from(self.short.binary_search(&rank.0).is_ok())
    }

    /// The share of `of_rank` items of a rank that belongs to missing workers.
    pub fn missing(&self, of_rank: u64) -> u64 {
        let each = of_rank / u64::from(self.threads.max(1));
        each.saturating_mul(self.short.len() as u64)
    }

    /// The reason why every host must see the same directory; `None` if it need not.
    pub fn needs_shared(&self) -> Option<&'static str> {
        let several_hosts = self.host_of.iter().any(|h| *h != 0);
        let shared_layout = match &self.work {
            // The hosts' views are compared when its directories are created.
            Work::Meta(meta) if meta.site != Location::Own => return None,
            Work::Meta(meta) => meta.layout == TreeLayout::Shared,
            Work::Io(io) => io.layout.shared(),
            Work::Mix(mix) => mix.shared,
            // Every host works on its own files, or on those that it sees.
            Work::Replay(_) => true,
            Work::Jobs(_) | Work::Find(_) => return None,
        };
        match (several_hosts, self.shift > 0, shared_layout) {
            (false, _, _) => None,
            (true, true, _) => Some("--shift"),
            (true, _, true) if matches!(self.work, Work::Replay(_)) => Some("rbench replay"),
            (true, _, true) => Some("--layout shared"),
            _ => None,
        }
    }

    /// True if it runs on the built-in file system.
    pub fn embedded(&self) -> bool {
        self.dir.is_none() && self.works_in_its_own_directory()
    }

    /// The first directory of the run; `None`: the built-in file system.
    pub fn first_dir(&self) -> Option<&PathBuf> {
        match &self.work {
            Work::Jobs(jobs) => Some(&jobs.rounds.iter().flatten().next()?.files.directory),
            _ => self.dirs().first(),
        }
    }

    /// The directories of any workload except jobs, which have their own.
    fn dirs(&self) -> &[PathBuf] {
        match &self.work {
            Work::Meta(MetaPlan {
                site: Location::TestDirs(dirs),
                ..
            }) => dirs,
            _ => self.dir.as_slice(),
        }
    }

    /// All directories and named files of the run, each once, as given; empty for the
    /// built-in file system.
    pub fn places(&self) -> Vec<PathBuf> {
        let mut places: Vec<PathBuf> = match &self.work {
            Work::Jobs(jobs) => {
                let files = jobs.rounds.iter().flatten().map(|job| &job.files);
                let places = files.flat_map(|files| match &files.names {
                    FileNames::Given(names) => names
                        .iter()
                        .map(|name| files.directory.join(name))
                        .collect::<Vec<_>>(),
                    FileNames::Format(_) | FileNames::Numbered { .. } => {
                        files.directories().cloned().collect()
                    }
                });
                places.collect()
            }
            _ => self.dirs().to_vec(),
        };
        places.sort_unstable();
        places.dedup();
        places
    }

    /// Bytes of data on the target at the maximum, all ranks together.
    pub fn data_bytes(&self) -> u64 {
        match &self.work {
            // The number of files created until the deadline is unknown.
            Work::Meta(meta) if meta.open_ended() => 0,
            Work::Meta(meta) => meta
                .items_per_rank
                .saturating_mul(u64::from(self.ranks))
                .saturating_sub(self.missing(meta.items_per_rank))
                .saturating_mul(meta.file_bytes()),
            Work::Io(io) => {
                let each = io
                    .job
                    .small
                    .map_or(io.size.0, |s| s.size.0.saturating_mul(s.files));
                each.saturating_mul(self.workers())
            }
            Work::Jobs(jobs) => jobs.data_bytes(self.ranks).0,
            Work::Find(_) | Work::Replay(_) => 0,
            Work::Mix(mix) => mix.data_bytes(self.ranks),
        }
    }

    /// A digest that two plans share only if they are equal.
    pub fn digest(&self) -> u64 {
        let text = format!("{self:?}");
        let words: Vec<u64> = text
            .as_bytes()
            .chunks(8)
            .map(|c| c.iter().fold(0_u64, |word, b| (word << 8) | u64::from(*b)))
            .collect();
        rbench_core::random::key(&words)
    }
}

/// The numbers of ranks to run with, in order.
///
/// # Errors
/// A sentence that names the option at fault.
pub fn task_counts(spec: &Spec, ranks: u32) -> Result<Vec<u32>, PlanError> {
    match &spec.workload {
        Workload::Mdtest(options) => counts(options, ranks).map_err(PlanError::plain),
        Workload::Ior(options) => ior::tasks(options, ranks).map(|tasks| vec![tasks]),
        _ => Ok(vec![ranks]),
    }
}

/// Checks the interval: shorter ones would be too many, and longer ones lose too much in
/// a crash.
fn interval(given: Option<Nanos>) -> Result<Nanos, PlanError> {
    let interval = given.unwrap_or(INTERVAL);
    if !(INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
        refuse!("--interval {interval} is not in the range {INTERVAL_MIN} to {INTERVAL_MAX}");
    }
    Ok(interval)
}

/// Sets the defaults, and checks that the Spec can be done.
///
/// # Errors
/// A sentence that names the option at fault.
pub fn resolve(spec: &Spec, facts: &Facts) -> Result<Plan, PlanError> {
    complete(spec, facts).map_err(|error| match spec.workload {
        // There may be several, each on its own line.
        Workload::Fio(_) => PlanError(plain_lines(&error.0).into_owned()),
        _ => error.plain(),
    })
}

fn complete(spec: &Spec, facts: &Facts) -> Result<Plan, PlanError> {
    let common = &spec.common;
    let asked = match &spec.workload {
        Workload::Meta(meta) => workers::of(meta, common, facts)?,
        _ => None,
    };
    let (threads, short) = match asked {
        Some(found) => found,
        None => (common.threads.unwrap_or(1), Vec::new()),
    };
    let threads = at_least_one("--threads", threads)?;
    let (iterations, until) = repeats::of(&spec.workload, common)?;
    let warmup = match &spec.workload {
        Workload::Meta(meta) => meta.warmup.unwrap_or(0),
        _ => 0,
    };
    let shift = common.shift.unwrap_or(0);
    let ranks = facts.ranks();
    refuse_if! {
        shift > 0 && ranks == 1 =>
            "--shift {shift} needs several ranks, but this run has one: start it with mpirun";
        shift > 0 && shift.is_multiple_of(ranks) =>
            "--shift {shift} with {ranks} ranks gives every rank its own items: use 1 to {}", ranks - 1;
    }
    let interval = interval(common.interval)?;
    let mut notes = Vec::new();
    let work = match &spec.workload {
        Workload::Meta(meta) => {
            Work::Meta(resolve_meta(meta, (threads, ranks), shift, &mut notes)?)
        }
        Workload::Ops(ops) => Work::Meta(ops::resolve(ops, common, threads, ranks)?),
        Workload::Mdtest(options) => Work::Meta(mdtest::resolve(options, facts, &mut notes)?),
        Workload::Io(io) => {
            let plan = io::resolve(io, interval, facts, threads)?;
            refuse_if! {
                plan.job.verify.as_ref().is_some_and(|verify| verify.threads > 0) && common.pin =>
                    "--verify-threads and --pin cannot be combined: the threads would share the worker's processor";
                shift > 0 && plan.phases.iter().any(|rw| rw.writes() && rw.reads()) =>
                    "--shift cannot be combined with --rw rw or randrw: ranks would write to each other's files";
            }
            Work::Io(Box::new(plan))
        }
        Workload::Fio(options) => {
            let repeats = fio::Repeats { iterations, shift };
            Work::Jobs(fio::resolve(options, facts, repeats, &mut notes)?)
        }
        Workload::Find(find) => Work::Find(find::resolve(find, common)?),
        Workload::Mix(options) => Work::Mix(mix::resolve(options, common, ranks)?),
        Workload::Replay(replay) => Work::Replay(replay::resolve(replay, common)?),
        Workload::Ior(options) => Work::Jobs(ior::resolve(options, facts, common, &mut notes)?),
    };
    let threads = match &work {
        Work::Jobs(jobs) => jobs.workers(),
        Work::Mix(mix) => mix.threads(),
        Work::Meta(_) | Work::Io(_) | Work::Find(_) | Work::Replay(_) => threads,
    };
    let journaled = work.ack_journal().is_some();
    let plan = Plan {
        dir: common.dir.clone(),
        seed: common.seed.unwrap_or(facts.seed),
        ranks,
        host_of: facts.host_of.clone(),
        threads,
        short,
        pin: common.pin,
        warmup,
        iterations,
        until,
        shift,
        drop_caches: common.drop_caches,
        // A journal is useless without its data.
        keep: common.keep || journaled,
        limits: surroundings::limits(&common.limits)?,
        commands: surroundings::commands(&common.commands)?,
        work,
        notes: notes.iter().map(|note| plain(note).into_owned()).collect(),
        leave: common.leave,
        interval,
        log: common.log.is_some()
            || matches!(&spec.workload, Workload::Mdtest(o) if o.save_operations.is_some()),
    };
    check_private_trees(&plan)?;
    if plan.embedded() {
        if let Some(flag) = plan.needs_shared() {
            refuse!(
                "{flag} needs a directory that all hosts share, but each of the {} hosts has its own \
                 built-in file system: give a shared directory with --dir",
                facts.hosts()
            );
        }
        refuse_if! {
            journaled =>
                "--ack-journal needs --dir: the built-in file system ends with the run, so nothing is left to verify";
            plan.keep => "--keep needs --dir: the built-in file system ends with the run";
        }
    }
    Ok(plan)
}

/// Checks that mdtest's trees that ranks of several hosts share are on one file system.
fn check_private_trees(plan: &Plan) -> Result<(), PlanError> {
    let several_hosts = plan.host_of.iter().any(|h| *h != 0);
    let Work::Meta(meta) = &plan.work else {
        return Ok(());
    };
    if meta.site == Location::Own || !several_hosts || !plan.leave.private_dirs {
        return Ok(());
    }
    if meta.layout == TreeLayout::Shared {
        refuse!("--private-dirs needs -u: without it the ranks of all hosts share one tree");
    }
    let others = |phase: &PhasePlan| !matches!(phase.who, ItemOwner::Each { ahead: 0 });
    refuse_if! {
        meta.tree_ahead > 0 || meta.phases.iter().any(others) =>
            "--private-dirs cannot be combined with -N or -c: ranks use items that other ranks created";
    }
    Ok(())
}

fn at_least_one(flag: &str, value: u32) -> Result<u32, PlanError> {
    refuse_if!(value == 0 => "{flag} must be at least 1");
    Ok(value)
}

fn resolve_meta(
    meta: &spec::Meta,
    (threads, ranks): (u32, u32),
    shift: u32,
    notes: &mut Vec<String>,
) -> Result<MetaPlan, PlanError> {
    let branch = meta.branch.unwrap_or(3);
    refuse_if! {
        branch == 0 => "--branch must be at least 1";
        meta.files_only && meta.dirs_only => "--files-only and --dirs-only cannot be combined";
        meta.items.is_some() && meta.items_per_rank.is_some() =>
            "--items and --items-per-rank cannot be combined";
    }
    let in_flight = in_flight::of(&meta.in_flight)?;
    let timed = Timed::of(meta)?;
    let usual_depth = timed.as_ref().and_then(Timed::depth).unwrap_or(1);
    let mut shape = Shape {
        branch,
        depth: meta.depth.unwrap_or(usual_depth),
        items_per_node: meta.items.unwrap_or(100),
        leaf_only: meta.leaf_only,
    };
    let too_large = || {
        PlanError(format!(
            "--branch {branch} --depth {} is a tree of over 2^62 items",
            shape.depth
        ))
    };
    shape.nodes().ok_or_else(too_large)?;
    if let Some(wanted) = meta.items_per_rank {
        let places = shape.places();
        shape.items_per_node = wanted / places;
        let got = shape.items_per_node * places;
        refuse_if! {
            got == 0 && wanted > 0 =>
                "--items-per-rank {wanted} is less than one for each of the {places} tree directories";
        }
        if got != wanted {
            notes.push(format!(
                "--items-per-rank {wanted} does not divide evenly over {places} tree directories: each rank gets {got}"
            ));
        }
    }
    let needed = timed.as_ref();
    if let Some(needed) = needed.and_then(|timed| timed.items_per_rank(threads, ranks)) {
        shape.items_per_node = match needed {
            UNTIL_THE_DEADLINE => needed,
            _ => needed.div_ceil(shape.places().max(1)),
        };
    }
    refuse_if!(shape.items_per_node == 0 => "--items must be at least 1");
    let items_per_rank = shape.items().ok_or_else(too_large)?;
    let layout = meta.layout.unwrap_or_default();
    // The iteration comes before the tree in the path.
    check_path_length("--depth", shape, NATIVE, &"9".repeat(10), ranks)?;
    let write = meta.write.unwrap_or(Bytes(0));
    let read = meta.read.unwrap_or(write);
    check_file_sizes(meta, write, read)?;
    let stonewall = nonzero_time("--stonewall", meta.stonewall)?;
    let time = timed.as_ref().and_then(|timed| timed.time);
    let phases = match &timed {
        None => phases(meta, notes)?,
        Some(timed) => {
            // The added phases have no row.
            phases(meta, &mut Vec::new())?;
            timed.phases()
        }
    };
    let phase = |kind: &PhaseKind| {
        let plain = native_phase(*kind, meta, layout, stonewall, shift, ranks);
        timed.as_ref().map_or(plain, |timed| timed.phase(plain))
    };
    let plan = MetaPlan {
        layout,
        in_flight,
        phases: phases.iter().map(phase).collect(),
        renaming: match time {
            Some(_) => Renaming::Onward,
            None => Renaming::Suffix,
        },
        time,
        write,
        read,
        fsync: meta.fsync,
        ..MetaPlan::bare(shape, items_per_rank)
    };
    if let Some(timed) = &timed {
        timed.check(&plan, threads, ranks)?;
    }
    in_flight::check(&plan)?;
    Ok(plan)
}

fn native_phase(
    kind: PhaseKind,
    meta: &spec::Meta,
    layout: TreeLayout,
    stonewall: Option<Nanos>,
    shift: u32,
    ranks: u32,
) -> PhasePlan {
    let info = kind.info();
    let ahead = shift::ahead(shift, info.step, ranks);
    let of_the_tree = info.items.is_none();
    let asks = info.asks();
    let ordered = of_the_tree || info.creates() || info.op == OpKind::List;
    let who = match of_the_tree && layout == TreeLayout::Shared {
        true => ItemOwner::First,
        false => ItemOwner::Each { ahead },
    };
    PhasePlan {
        shuffled: meta.random_order && !ordered,
        deadline: stonewall.filter(|_| info.creates() || asks),
        ..PhasePlan::new(kind, who)
    }
}

/// Checks that paths of the deepest directory leave room for an item's name.
fn check_path_length(
    flag: &str,
    shape: Shape,
    naming: crate::tree::Naming,
    prefix: &str,
    ranks: u32,
) -> Result<(), PlanError> {
    let too_long = || {
        PlanError(format!(
            "{flag} {} makes paths longer than the limit of {PATH_MAX} bytes",
            shape.depth
        ))
    };
    if shape.depth > PATH_MAX as u32 {
        return Err(too_long());
    }
    let forest = Forest {
        shape,
        naming,
        prefixes: vec![prefix.to_owned()],
        numbered: None,
        private: Some(Private { ahead: 0, ranks }),
    };
    let last = rbench_core::Rank(ranks - 1);
    let mut paths = Paths::new(forest.into(), last, ItemKind::File);
    let deepest = shape.nodes().ok_or_else(too_long)? - 1;
    if paths.node(deepest).count_bytes() + 64 > PATH_MAX {
        return Err(too_long());
    }
    Ok(())
}

fn check_file_sizes(meta: &spec::Meta, write: Bytes, read: Bytes) -> Result<(), PlanError> {
    refuse_if! {
        read > write => "--read {read} is more than the {write} that --write writes to each file";
        meta.fsync && write.0 == 0 =>
            "--fsync needs --write: there is nothing to sync in an empty file";
        meta.dirs_only && write.0 > 0 => "--write and --dirs-only cannot be combined";
        write.0 > 1 << 30 =>
            "--write {write} is more than 1GiB, the limit of one call: use rbench io for large files";
    }
    Ok(())
}

/// The measured phases in order: the requested ones with their prerequisites.
fn phases(meta: &spec::Meta, notes: &mut Vec<String>) -> Result<Vec<PhaseKind>, PlanError> {
    let excluded = meta.excluded();
    let Some(asked) = &meta.phases else {
        let usual = PHASES
            .iter()
            .filter(|p| p.by_default && (p.items.is_none() || p.items != excluded));
        return in_flight::performed(usual, meta, notes);
    };
    refuse_if!(asked.is_empty() => "--phases needs at least one phase");
    for kind in asked {
        let info = kind.info();
        if info.items.is_some() && info.items == excluded {
            let flag = if meta.files_only {
                "--files-only"
            } else {
                "--dirs-only"
            };
            refuse!("--phases {} and {flag} cannot be combined", info.name);
        }
    }
    let chosen = with_needed(asked);
    let added: Vec<&str> = chosen
        .iter()
        .filter(|info| !asked.contains(&info.kind))
        .map(|info| info.name)
        .collect();
    if !added.is_empty() {
        notes.push(format!("--phases also needs {}", added.join(" and ")));
    }
    Ok(chosen.iter().map(|info| info.kind).collect())
}

/// The open loop of `--rate` and `--arrival`.
fn open_loop(rate: Option<f64>, arrival: Option<Arrival>) -> Result<Option<OpenLoop>, PlanError> {
    let Some(rate) = rate else {
        refuse_if!(arrival.is_some() => "--arrival needs --rate");
        return Ok(None);
    };
    check_rate("--rate", rate)?;
    let arrival = arrival.unwrap_or_default();
    Ok(Some(OpenLoop { rate, arrival }))
}

fn nonzero_time(flag: &str, time: Option<Nanos>) -> Result<Option<Nanos>, PlanError> {
    refuse_if!(time == Some(Nanos(0)) => "{flag} must be longer than 0");
    Ok(time)
}

#[cfg(test)]
mod tests;
