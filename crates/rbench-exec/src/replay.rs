//! Replays of traces (`rbench replay`). Each is read twice: first by every rank, before anything is
//! created, for its contents; then during the replay, when each rank hands its workers their
//! operations.

use std::collections::BTreeMap;
use std::hash::{Hash as _, Hasher as _};
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::hist::Hist;
use rbench_core::outcome::{NotReplayed, PhaseOutcome, ReplayTotals, Replayed, TraceName};
use rbench_core::plain::plain;
use rbench_core::random::{DataStream, key};
use rbench_core::units::{counted, human_count, human_nanos};
use rbench_core::{Bytes, Failure, Nanos, OpKind};
use rbench_plan::replay::Pace;
use rbench_plan::trace::names::Names;
use rbench_plan::trace::survey::{Found, Survey};
use rbench_plan::trace::{Kind, why};
use rbench_plan::{Plan, ReplayPlan};
use rbench_sys::{PosixFs, space};
use xxhash_rust::xxh3::Xxh3;

use crate::caches::drop_caches;
use crate::creation::{self, Entry, Permissions};
use crate::group::{ExecError, Group, Ranks};
use crate::listener::Listener;
use crate::pace::StopFlag;
use crate::passes;
use crate::phase::{Before, OpRow, Phase, Starts};
use crate::round;
use crate::target::Workspace;
use crate::worker::MakeRunner;
use crate::workload::{Pass, Run, Running, Workload};

mod player;
mod stream;

use player::{Common, Counts, Player};
use stream::{Form, Merged, Own, PIECES, Task};

/// Code of the warning: operations start later than recorded.
const LATE: &str = "replay-late";

/// Code of the warning: results differ from those of the trace.
const DIFFERS: &str = "replay-differs";

/// Code of the warning: unreadable lines are left out.
const UNREADABLE: &str = "unreadable-lines";

/// Delay that still counts as on time, and the share of operations that must meet it.
const CLOSE: Nanos = Nanos::MILLISECOND;
const WITHIN: f64 = 0.99;

/// Interval of checks for a stop while waiting for the traces.
const LOOKS: Duration = Duration::from_millis(100);

/// Permissions of the entries that existed before the trace.
const PERMISSIONS: Permissions = Permissions {
    file: 0o644,
    directory: 0o755,
};

/// The longest target of a link.
const TARGET_MAX: u64 = 4095;

/// Returns an entry like one that existed before the trace.
fn entry(kind: Kind, size: u64) -> Entry {
    match kind {
        Kind::Directory => Entry::Directory,
        Kind::Link => Entry::Link(vec![b'x'; size.clamp(1, TARGET_MAX) as usize]),
        Kind::File => Entry::File(size),
    }
}

/// Returns the path of a copy's file, relative to the directory of the pass.
fn relative(copy: u32, path: &[u8]) -> Vec<u8> {
    let mut relative = format!("c{copy}").into_bytes();
    if !path.is_empty() {
        relative.push(b'/');
        relative.extend_from_slice(path);
    }
    relative
}

impl Workload for ReplayPlan {
    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a> {
        Box::pin(async move {
            let (all, target) = (run.plan, run.place.parent);
            let looked = look_through(run.group, all, self, target).await?;
            let pass = |iteration| ReplayPass {
                all,
                plan: self,
                looked: &looked,
                iteration,
            };
            passes::in_own_directory(run, listener, pass).await
        })
    }
}

/// Findings in the traces before anything is created.
#[derive(Debug)]
struct Looked {
    forms: Vec<Form>,
    found: Arc<Found>,
    left_out: BTreeMap<&'static str, u64>,
    gaps: u64,
    /// The first unreadable line of each trace, with the reason.
    unreadable: Vec<String>,
}

/// Inspects the traces, on every rank.
///
/// # Errors
/// A sentence with the file, and the line if one is wrong; the same on every rank.
async fn look_through(
    group: &Group<'_>,
    all: &Plan,
    plan: &ReplayPlan,
    target: &Path,
) -> Result<Looked, ExecError> {
    group.step("reading the traces");
    let (mine, stop) = (plan.clone(), group.stop_flag());
    let looked = group.agree_in_thread(move || look(&mine, &stop));
    let looked = looked.await.map_err(|e| group.as_usage(e))?;
    let stopped = group.stopped().await?;
    let Some(looked) = looked.filter(|_| !stopped) else {
        return Err(ExecError::SetUp(
            "the run was stopped while the traces were read; nothing was created".to_owned(),
        ));
    };
    alike(group, &looked).await.map_err(|e| group.as_usage(e))?;
    let needed = looked.found.bytes_before();
    let (needed, target) = (
        needed.saturating_mul(u64::from(plan.copies)),
        target.to_owned(),
    );
    let judges = group.is_root() && !all.leave.overfill;
    let fits = group.agree_on_target_if(judges, move || fits(needed, &target));
    fits.await.map_err(|e| group.as_usage(e))?;
    Ok(looked)
}

/// Inspects the traces. `None`: `stop` came before they were read.
fn look(plan: &ReplayPlan, stop: &StopFlag) -> Result<Option<Looked>, String> {
    let forms = plan.traces.iter();
    let forms = forms.map(|path| stream::form(path, plan.format));
    let forms: Vec<Form> = forms.collect::<Result<_, _>>()?;
    let mut merged = Merged::open(plan, &forms)?;
    let mut survey = Survey::default();
    while let Some(step) = merged.next()? {
        if stop.is_raised() {
            return Ok(None);
        }
        let taken = plan.pace.comes(step.op.at);
        let taken = taken.and_then(|()| survey.take(&step));
        taken.map_err(|why| merged.wrong(&step, &why))?;
    }
    let (mut left_out, mut gaps, mut unreadable) = (BTreeMap::new(), 0, Vec::new());
    for out in merged.out() {
        for (why, count) in &out.left_out.0 {
            *left_out.entry(*why).or_insert(0) += count;
        }
        gaps += out.gaps;
        unreadable.extend(out.unreadable.clone());
    }
    let found = survey.finish();
    if found.operations == 0 {
        if let Some(line) = unreadable.first() {
            return Err(format!("the traces have nothing to replay: {line}"));
        }
        let all: u64 = left_out.values().sum();
        let elsewhere = match left_out.contains_key(why::ELSEWHERE) {
            // An error there must not replace the refusal.
            true => most_below(plan, &forms).unwrap_or(None),
            false => None,
        };
        let reason = |(why, n): (&&'static str, &u64)| match &elsewhere {
            Some(directory) if *why == why::ELSEWHERE => {
                format!("{n}: {why}; most are below {directory}")
            }
            _ => format!("{n}: {why}"),
        };
        let reasons: Vec<String> = left_out.iter().map(reason).collect();
        return Err(match all {
            0 => "the traces have nothing to replay".to_owned(),
            _ => format!(
                "the traces have nothing to replay; {} {} left out ({})",
                counted(all, "operation"),
                if all == 1 { "is" } else { "are" },
                reasons.join("; ")
            ),
        });
    }
    Ok(Some(Looked {
        forms,
        found: Arc::new(found),
        left_out,
        gaps,
        unreadable,
    }))
}

/// Operations that are read to find where most paths are.
const OPERATIONS_MAX: usize = 100_000;

/// The deepest directory with more than half of the paths, whatever `--below` says; `None` if it is
/// the root.
fn most_below(plan: &ReplayPlan, forms: &[Form]) -> Result<Option<String>, String> {
    let mut all = plan.clone();
    all.reading.names = Names::below(None);
    let mut merged = Merged::open(&all, forms)?;
    let mut paths: Vec<Vec<Vec<u8>>> = Vec::new();
    for _ in 0..OPERATIONS_MAX {
        let Some(step) = merged.next()? else {
            break;
        };
        let path = step.op.path.iter();
        paths.extend(path.map(|path| path.split(|b| *b == b'/').map(<[u8]>::to_vec).collect()));
    }
    let half = paths.len() / 2;
    let mut directory: Vec<Vec<u8>> = Vec::new();
    loop {
        let mut children: BTreeMap<&[u8], usize> = BTreeMap::new();
        // The last part may be a file.
        let inside = paths.iter().filter(|path| path.len() > directory.len() + 1);
        for path in inside.filter(|path| path.starts_with(&directory)) {
            *children.entry(&path[directory.len()]).or_default() += 1;
        }
        match children.into_iter().find(|(_, count)| *count > half) {
            Some((child, _)) => directory.push(child.to_vec()),
            None => break,
        }
    }
    let path = directory.join(&b'/');
    Ok((!directory.is_empty())
        .then(|| plain(&format!("/{}", String::from_utf8_lossy(&path))).into_owned()))
}

/// Checks that all ranks read the same.
async fn alike(group: &Group<'_>, looked: &Looked) -> Result<(), ExecError> {
    let Found {
        before,
        groups,
        group_of: _,
        processes,
        kinds,
        operations,
        span,
        largest,
        written,
    } = looked.found.as_ref();
    let mut digest = Xxh3::new();
    (groups, processes, operations, span, largest, written).hash(&mut digest);
    (before, &looked.left_out).hash(&mut digest);
    for (kind, recorded) in kinds {
        (kind, recorded.operations).hash(&mut digest);
    }
    let digest = digest.finish();
    // The smallest is the complement of the largest complement.
    let bounds = group.largest(vec![digest, !digest]).await?;
    match bounds[0] == !bounds[1] {
        true => Ok(()),
        false => Err(ExecError::SetUp(
            "the traces differ between hosts: copy the same files to all hosts, since every rank reads them".to_owned(),
        )),
    }
}

/// Checks that `needed` bytes of files created beforehand fit on the target. Later writes may
/// overwrite the same places, and are not predicted.
fn fits(needed: u64, target: &Path) -> Result<(), String> {
    // Without this information, writing will show it.
    let free = space(target).ok().filter(|free| free.bytes_total > 0);
    match free {
        Some(free) if needed > free.bytes_available => Err(format!(
            "the files that existed before the trace need {}, but {} has {} free (use --overfill to start anyway)",
            Bytes(needed),
            target.display(),
            Bytes(free.bytes_available)
        )),
        _ => Ok(()),
    }
}

/// One pass over the traces.
struct ReplayPass<'p> {
    all: &'p Plan,
    plan: &'p ReplayPlan,
    looked: &'p Looked,
    iteration: u32,
}

impl<G: Workspace> Pass<G> for ReplayPass<'_> {
    async fn run(
        &mut self,
        group: &Group<'_>,
        ground: &mut G,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        ground.open(group, self.iteration).await?;
        let name = self.iteration.to_string();
        let parent = ground.fs();
        let open = move || {
            let fs = match parent.directory() {
                Some(parent) => PosixFs::below(parent, &name),
                None => Err(Errno::ENOTDIR),
            };
            fs.map_err(|errno| {
                let what = "the directory of the pass";
                format!(
                    "{what}, {name}, cannot be opened: {} ({errno:?})",
                    errno.desc()
                )
            })
        };
        let fs = group.agree_on_target(open).await?;
        if self.prepare(group, &fs, listener).await? {
            return Ok(true);
        }
        if self.all.drop_caches {
            drop_caches(group).await?;
        }
        self.play(group, fs, listener).await
    }
}

impl ReplayPass<'_> {
    fn row(&self, op: OpKind, name: &str, label: &str) -> OpRow {
        OpRow {
            starts: Starts::Recorded,
            ..OpRow::new(op, name, label)
        }
    }

    fn seed(&self) -> u64 {
        key(&[self.all.seed, u64::from(self.iteration)])
    }

    /// Returns the workers of this rank among those of all.
    fn own(&self, here: &Ranks<'_>) -> Own {
        Own {
            first: u64::from(here.rank().0) * u64::from(self.all.threads),
            workers: u64::from(self.all.ranks) * u64::from(self.all.threads),
        }
    }

    /// Creates the files that existed before; returns whether the group was stopped.
    async fn prepare(
        &self,
        group: &Group<'_>,
        fs: &PosixFs,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        let own = self.own(group);
        let seed = self.seed();
        let (fs, found) = (fs.clone(), Arc::clone(&self.looked.found));
        let each = found.before.len() as u64 + 1;
        let total = each.saturating_mul(u64::from(self.plan.copies));
        let make: MakeRunner = Arc::new(move |thread| {
            let (worker, found) = (own.first + u64::from(thread), Arc::clone(&found));
            // The first entry of each copy is its own directory.
            let entries = (worker..total).step_by(own.workers.max(1) as usize);
            let entries = entries.map(move |number| {
                let copy = (number / each) as u32;
                let before = (number % each).checked_sub(1);
                match before.and_then(|nth| found.before.get(nth as usize)) {
                    None => (relative(copy, b""), Entry::Directory),
                    Some(one) => (relative(copy, &one.path), entry(one.kind, one.size)),
                }
            });
            let data = DataStream::new(&[seed, worker, 1]);
            creation::runner(Arc::new(fs.clone()), entries, PERMISSIONS, true, data)
        });
        let label = "files from before the trace";
        let lane = self.row(OpKind::Create, "replay-prepare", label);
        let phase = Phase {
            iteration: self.iteration,
            total: Some(total),
            ..Phase::untimed(label, lane, self.all.workers_of(group.rank()), make)
        };
        let mut end = round::run(group, &phase).await?;
        end.tell_failures(listener);
        if end.failed {
            return Err(ExecError::SetUp(format!("{label} could not be created")));
        }
        Ok(end.stopped)
    }

    /// Replays; returns whether the group was stopped.
    async fn play(
        &self,
        group: &Group<'_>,
        fs: PosixFs,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        let found = Arc::clone(&self.looked.found);
        let rows: Vec<OpKind> = found.kinds.keys().copied().collect();
        let own = self.own(group);
        let common = Arc::new(Common {
            fs,
            pace: self.plan.pace,
            seed: self.seed(),
            counts: Mutex::new(Counts::new(rows.len())),
            rows: rows.clone(),
        });
        let (dealer, inboxes) = self.deal(group, own).await?;
        let shared = Arc::clone(&common);
        let make: MakeRunner = Arc::new(move |thread| {
            let mut inboxes = inboxes.lock().unwrap_or_else(PoisonError::into_inner);
            let inbox = inboxes.get_mut(thread as usize).and_then(Option::take);
            let inbox = inbox.ok_or_else(|| Failure::new(OpKind::Read, "", Errno::ECANCELED))?;
            let worker = own.first + u64::from(thread);
            Ok(Box::new(Player::new(Arc::clone(&shared), inbox, worker)?))
        });
        let syncs = |op: &OpKind| matches!(op, OpKind::Fsync | OpKind::Fdatasync);
        let unsynced = !rows.iter().any(syncs);
        let lanes = rows.iter().map(|op| {
            let name = op.name();
            OpRow {
                unsynced: unsynced && *op == OpKind::Write,
                ..self.row(*op, &format!("replay-{name}"), &format!("replay: {name}"))
            }
        });
        let total = found.operations.saturating_mul(u64::from(self.plan.copies));
        let threads = self.all.workers_of(group.rank());
        // Only the trace's own operations show who has seen which files.
        let phase = Phase {
            iteration: self.iteration,
            open_loop: self.plan.pace != Pace::AsFastAsPossible,
            total: Some(total),
            log_operations: self.all.log,
            before: Before::named("replay"),
            ..Phase::new("replaying", lanes.collect(), threads, make)
        };
        let mut end = round::run(group, &phase).await?;
        end.tell_details(&phase, listener);
        drop(phase);
        let read = join(group, dealer).await?;
        let counts = sum(group, &common).await?;
        for (place, row) in end.rows.into_iter().enumerate() {
            listener.row(self.told(row, place, &counts));
        }
        if group.is_root() {
            self.warn(&counts, listener);
            listener.replayed(self.totals(&counts));
        }
        group.agree(read).await?;
        Ok(end.stopped)
    }

    /// Starts reading the traces for the workers of this rank, and waits until enough is read
    /// ahead.
    async fn deal(&self, group: &Group<'_>, own: Own) -> Result<(Dealer, Inboxes), ExecError> {
        let threads = self.all.workers_of(group.rank());
        let (to, inboxes): (Vec<_>, Vec<_>) = (0..threads)
            .map(|_| {
                let (sender, receiver) = sync_channel(PIECES);
                (sender, Some(receiver))
            })
            .unzip();
        let (primed, ready) = sync_channel::<()>(0);
        let (plan, forms) = (self.plan.clone(), self.looked.forms.clone());
        let found = Arc::clone(&self.looked.found);
        let (stopped, stop) = (group.stop_flag(), group.stop_flag());
        let dealer = std::thread::Builder::new()
            .name("rbench-trace".to_owned())
            .spawn(move || stream::deal((&plan, &forms, &found), own, to, primed, &stopped));
        let dealer = dealer.map_err(|error| format!("cannot start a thread: {error}"));
        let dealer = group.agree(dealer).await?;
        // Nothing is sent: the closed channel is the signal.
        let waits = group.agree_in_thread(move || {
            while ready.recv_timeout(LOOKS) == Err(RecvTimeoutError::Timeout) {
                if stop.is_raised() {
                    break;
                }
            }
            Ok(())
        });
        waits.await?;
        Ok((dealer, Arc::new(Mutex::new(inboxes))))
    }

    /// Adds the counts of the trace to a row.
    fn told(&self, row: PhaseOutcome, place: usize, counts: &Counts) -> PhaseOutcome {
        let recorded = self.looked.found.kinds.get(&row.op);
        let copies = u64::from(self.plan.copies);
        let replayed = recorded.map(|recorded| Replayed {
            wanted: recorded.operations.saturating_mul(copies),
            recorded: (!recorded.latency.is_empty()).then(|| Hist::from(&recorded.latency)),
            differ: counts.differ.get(place).copied().unwrap_or_default(),
            unopened: counts.unopened.get(place).copied().unwrap_or_default(),
        });
        PhaseOutcome { replayed, ..row }
    }

    /// Warns of differences to know before comparing with the trace.
    fn warn(&self, counts: &Counts, listener: &mut dyn Listener) {
        let within = counts.late.within(CLOSE);
        if self.plan.pace != Pace::AsFastAsPossible && within < WITHIN {
            let (share, latest) = (100.0 * within, human_nanos(counts.late.max.0 as f64));
            // A worker carries out whole groups: further workers have nothing to do with a single one.
            let groups = u64::from(self.looked.found.groups) * u64::from(self.plan.copies);
            let remedy = match groups {
                0 | 1 => "calls take longer than recorded; a lower --time-scale follows",
                _ => "more workers (--threads, ranks) or a lower --time-scale follow",
            };
            listener.warning(
                LATE,
                format!(
                    "Only {share:.1}% of the operations started within 1 ms of their recorded time, the latest \
                     {latest} late: {remedy} the trace more closely."
                ),
            );
        }
        if let Some(first) = self.looked.unreadable.first() {
            let lines = self.looked.left_out.get(why::UNREADABLE).copied();
            let lines = human_count(lines.unwrap_or(1));
            listener.warning(
                UNREADABLE,
                format!("Lines of the traces that cannot be read and are left out: {lines}. The first: {first}."),
            );
        }
        let differ: u64 = counts.differ.iter().map(|differ| differ.total()).sum();
        let unopened: u64 = counts.unopened.iter().sum();
        if differ + unopened > 0 {
            let (differ, unopened) = (human_count(differ), counted(unopened, "operation"));
            let done = human_count(counts.done);
            listener.warning(
                DIFFERS,
                format!(
                    "{differ} of {done} results differ from the trace, and {unopened} found their file not open: \
                     the load differs from the recorded one."
                ),
            );
        }
    }

    fn totals(&self, counts: &Counts) -> ReplayTotals {
        let Looked {
            forms,
            found,
            left_out,
            gaps,
            unreadable: _,
        } = self.looked;
        let all: u64 = left_out.values().sum();
        let traces = self.plan.traces.iter().zip(forms);
        ReplayTotals {
            iteration: self.iteration,
            traces: traces
                .map(|(path, form)| TraceName {
                    path: path.display().to_string(),
                    format: form.format.name().to_owned(),
                })
                .collect(),
            found: found.operations + all,
            wanted: found.operations,
            copies: self.plan.copies,
            done: counts.done,
            left_out: left_out
                .iter()
                .map(|(why, operations)| NotReplayed {
                    why: (*why).to_owned(),
                    operations: *operations,
                })
                .collect(),
            gaps: *gaps,
            processes: u64::from(found.processes),
            groups: u64::from(found.groups),
            span: self.plan.pace.at(found.span).unwrap_or(found.span),
            prepared: found.before.len() as u64,
            prepared_bytes: found.bytes_before(),
            late: (self.plan.pace != Pace::AsFastAsPossible).then(|| counts.late.into()),
        }
    }
}

/// The thread that reads the traces.
type Dealer = JoinHandle<Result<(), String>>;

/// Sources of the operations of this rank's workers.
type Inboxes = Arc<Mutex<Vec<Option<Receiver<Vec<Task>>>>>>;

/// Joins the reading thread.
async fn join(group: &Group<'_>, dealer: Dealer) -> Result<Result<(), String>, ExecError> {
    let ended = group.in_thread(move || {
        let ended = dealer.join();
        ended.unwrap_or_else(|_| Err("the thread that reads the traces panicked".to_owned()))
    });
    Ok(ended.await?.and_then(|read| read))
}

/// Sums up the counts of all ranks' workers, at rank 0.
async fn sum(group: &Group<'_>, common: &Common) -> Result<Counts, ExecError> {
    let counts = common.counts.lock();
    let mine = counts.unwrap_or_else(PoisonError::into_inner).clone();
    let add = |mut all: Counts, more: Counts| {
        all.add(&more);
        all
    };
    Ok(group.merged(mine, add).await?.unwrap_or_default())
}
