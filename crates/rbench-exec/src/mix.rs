//! A mix of operations: the sets are prepared, untimed, then all workers go through their
//! lists or draw their operations in one phase.

use std::sync::Arc;

use rbench_core::random::{DataStream, Stream};
use rbench_core::{Bytes, OpKind, OpenFlags, Rank};
use rbench_plan::arrival::{Schedule, Workers};
use rbench_plan::cache::Seen;
use rbench_plan::meta::ItemOwner;
use rbench_plan::mix::course::Course;
use rbench_plan::mix::names::Tree;
use rbench_plan::mix::share::{Existence, Share, is_prepared};
use rbench_plan::mix::{FileSet, Place, Role, Row, SetKind, Step, Verb, named};
use rbench_plan::{MixPlan, Plan};
use rbench_sys::{Fs, NullFs};

use crate::caches::drop_caches;
use crate::creation::{self, Entry, Permissions};
use crate::group::{ExecError, Group};
use crate::listener::Listener;
use crate::needs::{NamesInFlight, Need, Needs};
use crate::passes;
use crate::phase::{Before, Looking, OpRow, Phase, Starts};
use crate::residency;
use crate::round;
use crate::steps::{self, StepRunner};
use crate::target::{Target, Workspace as _};
use crate::worker::{MakeRunner, Prepared, Runner};
use crate::workload::{Pass, Run, Running, Workload};

mod worker;

use worker::{Counters, MixSource};

/// Target of symbolic links.
const TARGET: &[u8] = b"nowhere";
/// Permissions of the entries that exist at the start.
const PERMISSIONS: Permissions = Permissions {
    file: OpenFlags::CREATE_NEW.mode,
    directory: 0o775,
};
/// Stream of draws.
const STREAM_DRAWS: u64 = 40;
/// Stream of random gaps between intended starts.
const STREAM_STARTS: u64 = 41;
/// Stream of the data that rounds write.
const STREAM_DATA: u64 = 42;
/// Stream of the data of the files present at the start.
const STREAM_PREPARED: u64 = 43;

impl Workload for MixPlan {
    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        let steps = || self.roles.iter().flat_map(|role| role.all_steps());
        let any = |wanted: fn(Verb) -> bool| steps().any(|step| wanted(step.verb));
        let links = self.sets.iter().any(|set| set.kind == SetKind::Links);
        let attributes = any(|verb| {
            let op = verb.word(false).map(|word| word.op);
            matches!(op, Some(OpKind::Setxattr | OpKind::Getxattr))
        });
        let random = any(|verb| matches!(verb, Verb::Write(_, Place::Random)));
        needs.add(random, Need::RandomWrites, &self.name);
        needs.add(links, Need::SymbolicLinks, &self.name);
        needs.add(attributes, Need::ExtendedAttributes, &self.name);
        needs
    }

    fn in_flight(&self) -> Option<NamesInFlight> {
        let steps = self.roles.iter().flat_map(Role::all_steps);
        let of_step = |step: &Step| {
            let directories = self.sets[step.set].kind == SetKind::Directories;
            step.verb.call(directories)
        };
        // The buffer of a round: the mean over the kinds of workers.
        let bytes =
            |role: &Role| u64::from(role.threads) * steps::buffer_bytes(role.call_bytes()) as u64;
        let all: u64 = self.roles.iter().map(bytes).sum();
        Some(NamesInFlight {
            depth: self.in_flight?,
            calls: steps.filter_map(of_step).collect(),
            data: Bytes(all.div_ceil(u64::from(self.threads()).max(1))),
        })
    }

    /// One of each set and each round in flight, and a directory that is listed, or a ring.
    fn open_files_each(&self) -> u32 {
        // Files left open by a role's first steps, and a file for each round of its own.
        let (sets, depth) = (self.sets.len() as u32, self.in_flight.unwrap_or(1));
        let held = if depth > 1 { sets } else { 0 };
        sets.saturating_mul(depth) + held + 1
    }

    fn bare_loop(&self, operations: u64) -> Option<Box<dyn Runner>> {
        over_nothing(self, operations).ok()
    }

    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a> {
        let pass = |iteration| MixPass {
            plan: run.plan,
            mix: Arc::new(self.clone()),
            iteration,
            left: 0,
        };
        Box::pin(passes::in_own_directory(run, listener, pass))
    }
}

/// One pass.
struct MixPass<'p> {
    plan: &'p Plan,
    mix: Arc<MixPlan>,
    iteration: u32,
    /// Entries created and not removed, at rank 0.
    left: u64,
}

/// Creates a loop of `operations` stat calls of a name on a null file system: the loop of steps
/// without real I/O.
///
/// # Errors
/// When memory is short.
fn over_nothing(mix: &MixPlan, operations: u64) -> Prepared {
    let step = Step {
        verb: Verb::Plain(const { named("stat") }, 0),
        set: 0,
        last: false,
        row: 0,
    };
    let row = Row {
        op: OpKind::Stat,
        name: String::new(),
        label: String::new(),
    };
    let role = Role {
        name: String::new(),
        text: String::new(),
        threads: 1,
        first: Vec::new(),
        steps: vec![step],
        weights: vec![1],
        every: None,
        per: None,
        // The loop that this measures has one row.
        rows: vec![row],
    };
    let set = FileSet {
        number: 1,
        prepared: 100,
        ..mix.sets[0].clone()
    };
    let mix = Arc::new(MixPlan {
        shared: false,
        sets: vec![set],
        roles: vec![role],
        time: None,
        rounds: Some(operations),
        think: rbench_core::Nanos(0),
        open_loop: None,
        in_flight: None,
        ..mix.clone()
    });
    let scene = Scene {
        trees: vec![Arc::new(Tree::new(&mix.sets[0], "set".to_owned()))],
        mix,
        fs: Arc::new(NullFs),
        rank: Rank(0),
        ranks: 1,
        seed: [0; 2],
    };
    Arc::new(scene).work()(0)
}

/// State common to all workers of a rank.
struct Scene {
    mix: Arc<MixPlan>,
    fs: Arc<dyn Fs>,
    /// Tree of each set.
    trees: Vec<Arc<Tree>>,
    rank: Rank,
    ranks: u32,
    seed: [u64; 2],
}

impl Scene {
    /// Returns the number of ranks that share the sets.
    fn sharing(&self) -> u64 {
        if self.mix.shared {
            u64::from(self.ranks)
        } else {
            1
        }
    }

    /// Returns the number of this rank among those.
    fn place(&self) -> u64 {
        if self.mix.shared {
            u64::from(self.rank.0)
        } else {
            0
        }
    }

    /// Returns the number of workers that own names of a set, of all ranks that share it.
    fn owners(&self, set: usize) -> u64 {
        self.mix.owners(set) * self.sharing()
    }

    /// Returns the number of a worker among those.
    fn owner(&self, set: usize, thread: u32) -> Option<u64> {
        let within = self.mix.owner(set, thread)?;
        Some(self.place() * self.mix.owners(set) + within)
    }

    fn stream(&self, purpose: u64, thread: u32) -> [u64; 5] {
        let (rank, thread) = (u64::from(self.rank.0), u64::from(thread));
        [self.seed[0], self.seed[1], purpose, rank, thread]
    }

    /// Returns the seed of the sizes of files.
    fn size_seed(&self) -> u64 {
        let own = if self.mix.shared {
            0
        } else {
            u64::from(self.rank.0)
        };
        rbench_core::random::key(&[self.seed[0], own])
    }

    /// Returns a worker's part of `of` things that all workers divide among themselves.
    fn part(&self, thread: u32, of: u64) -> impl Iterator<Item = u64> + use<> {
        let threads = u64::from(self.mix.threads());
        let first = self.place() * threads + u64::from(thread);
        (first..of).step_by((self.sharing() * threads) as usize)
    }

    /// Creates the directories of one level of each set, each worker its part of them.
    fn make_level(self: &Arc<Self>, level: usize) -> MakeRunner {
        let scene = Arc::clone(self);
        Arc::new(move |thread| {
            let own = Arc::clone(&scene);
            let of_set = move |tree: Arc<Tree>| {
                let count = tree.levels().get(level).copied().unwrap_or(0);
                own.part(thread, count).map(move |number| {
                    let mut path = Vec::new();
                    tree.directory(level + 1, number, &mut path);
                    (path, Entry::Directory)
                })
            };
            scene.creator(scene.trees.clone().into_iter().flat_map(of_set), thread)
        })
    }

    /// Creates the items present at the start, each worker its part of them.
    fn make_names(self: &Arc<Self>) -> MakeRunner {
        let scene = Arc::clone(self);
        Arc::new(move |thread| {
            let own = Arc::clone(&scene);
            let of_set = move |set: usize| {
                let (plan, owners) = (own.mix.sets[set].clone(), own.owners(set));
                let (tree, seed) = (Arc::clone(&own.trees[set]), own.size_seed());
                let part = own.part(thread, plan.number);
                let part = part.filter(move |name| is_prepared(*name, owners, plan.prepared));
                part.map(move |name| {
                    let mut path = Vec::new();
                    tree.name(name, &mut path);
                    let entry = match plan.kind {
                        SetKind::Directories => Entry::Directory,
                        SetKind::Links => Entry::Link(TARGET.to_vec()),
                        SetKind::Files => Entry::File(plan.sizes.of(&[seed, set as u64, name])),
                    };
                    (path, entry)
                })
            };
            scene.creator((0..scene.mix.sets.len()).flat_map(of_set), thread)
        })
    }

    fn creator(
        &self,
        entries: impl Iterator<Item = (Vec<u8>, Entry)> + 'static,
        thread: u32,
    ) -> Prepared {
        let (fs, data) = (Arc::clone(&self.fs), self.data(STREAM_PREPARED, thread));
        creation::runner(fs, entries, PERMISSIONS, false, data)
    }

    /// Returns the data that a worker writes.
    fn data(&self, purpose: u64, thread: u32) -> DataStream {
        DataStream::new(&self.stream(purpose, thread))
    }

    /// Creates the measured workers.
    fn work(self: &Arc<Self>) -> MakeRunner {
        let scene = Arc::clone(self);
        let existence = |(number, set): (usize, &FileSet)| {
            let owners = self.owners(number);
            let there = |name| is_prepared(name, owners, set.prepared);
            Arc::new(Existence::new(set.number, there))
        };
        let all: Vec<_> = self.mix.sets.iter().enumerate().map(existence).collect();
        let counters = Arc::new(Counters::new(&self.mix));
        let schedule = self.schedule();
        Arc::new(move |thread| scene.worker(thread, &all, (&counters, &schedule)))
    }

    /// Returns the intended starts of all workers of this rank.
    fn schedule(&self) -> Option<Arc<Schedule>> {
        let open = self.mix.open_loop?;
        let workers = Workers::of_rank(self.rank, self.ranks, self.mix.threads());
        let seed = self.stream(STREAM_STARTS, 0);
        let schedule = Schedule::new(open.arrival, open.rate, workers, &seed);
        Some(Arc::new(schedule))
    }

    fn worker(
        &self,
        thread: u32,
        all: &[Arc<Existence>],
        (counters, schedule): (&Arc<Counters>, &Option<Arc<Schedule>>),
    ) -> Prepared {
        let (role, within) = self.mix.role_of(thread);
        let share = |(number, set): (usize, &FileSet)| {
            let me = (self.owner(number, thread), self.owners(number));
            Share::new(Arc::clone(&all[number]), set.number, me, set.prepared)
        };
        let shares = self.mix.sets.iter().enumerate().map(share).collect();
        let leaves = self.trees.iter().map(|tree| tree.leaves()).collect();
        let draws = Stream::new(&self.stream(STREAM_DRAWS, thread));
        let course = Course::new(
            (Arc::clone(&self.mix), self.mix.rounds_in_flight()),
            role,
            self.size_seed(),
            draws,
            (shares, leaves),
        );
        let script = MixSource::new(
            (Arc::clone(&self.mix), role, within),
            course,
            self.trees.clone(),
            schedule.clone(),
            Arc::clone(counters),
        );
        let (sets, bytes) = (self.mix.sets.len(), self.mix.roles[role].call_bytes());
        let data = self.data(STREAM_DATA, thread);
        let runner = |room| StepRunner::new(script, Arc::clone(&self.fs), room, data);
        let Some(depth) = self.mix.in_flight else {
            return Ok(Box::new(runner((sets, bytes))?));
        };
        let depth = depth as usize;
        let runner = runner((sets * depth, 0))?;
        Ok(Box::new(runner.together(depth, bytes)?))
    }
}

impl MixPass<'_> {
    /// Returns the directory of a set, relative to the run's own.
    fn root(&self, set: &str, rank: Rank) -> String {
        match self.mix.shared {
            true => format!("{}/all/{set}", self.iteration),
            false => format!("{}/{}/{set}", self.iteration, rank.0),
        }
    }

    fn scene(&self, group: &Group<'_>, target: &Target) -> Arc<Scene> {
        let tree = |set: &rbench_plan::mix::FileSet| {
            Arc::new(Tree::new(set, self.root(&set.name, group.rank())))
        };
        Arc::new(Scene {
            fs: target.fs(),
            trees: self.mix.sets.iter().map(tree).collect(),
            rank: group.rank(),
            ranks: self.plan.ranks,
            seed: [self.plan.seed, u64::from(self.iteration)],
            mix: Arc::clone(&self.mix),
        })
    }

    /// Creates the sets; returns whether the group was stopped.
    async fn prepare(
        &mut self,
        group: &Group<'_>,
        target: &Target,
        scene: &Arc<Scene>,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        let prefix = self.iteration.to_string();
        let sets = self.mix.sets.iter();
        let below = |root: String| root[prefix.len() + 1..].to_owned();
        let roots: Vec<String> = sets
            .map(|set| below(self.root(&set.name, group.rank())))
            .collect();
        match self.mix.shared {
            true => {
                for root in roots {
                    let root = format!("{prefix}/{root}");
                    target.make_dirs(group, &root, &[]).await?;
                }
            }
            false => target.make_dirs(group, &prefix, &roots).await?,
        }
        let levels = scene.trees.iter().map(|tree| tree.levels().len()).max();
        for level in 0..levels.unwrap_or(0) {
            let make = scene.make_level(level);
            let phase = self.making(("directories", OpKind::Mkdir), make);
            if self.run_untimed(group, &phase, listener).await? {
                return Ok(true);
            }
        }
        let phase = self.making(("files", OpKind::Create), scene.make_names());
        self.run_untimed(group, &phase, listener).await
    }

    /// Runs a preparing phase; reports only failures.
    async fn run_untimed(
        &mut self,
        group: &Group<'_>,
        phase: &Phase,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        let mut end = round::run(group, phase).await?;
        self.left += end.rows.iter().map(|row| row.items).sum::<u64>();
        end.tell_failures(listener);
        Ok(end.stopped)
    }

    fn making(&self, (what, op): (&str, OpKind), make: MakeRunner) -> Phase {
        let row = OpRow::new(op, format!("prepare-{what}"), format!("Preparing {what}"));
        let what = format!("preparing {what}");
        Phase {
            iteration: self.iteration,
            ..Phase::untimed(&what, row, self.mix.threads(), make)
        }
    }

    /// Returns the rows of all roles, and those of each worker.
    fn rows(&self) -> (Vec<OpRow>, Vec<std::ops::Range<usize>>) {
        let mut lanes = Vec::new();
        for role in &self.mix.roles {
            let syncs = role.all_steps().any(|step| step.verb.syncs());
            let all = role.rows.iter().map(|row| OpRow {
                unsynced: !syncs
                    && (matches!(row.op, OpKind::Write | OpKind::Append)
                        || role.draws() && row.op == OpKind::Create),
                starts: match !role.draws() && row.op != OpKind::Round {
                    true => Starts::InRound,
                    false => Starts::ByKind,
                },
                ..OpRow::new(row.op, &row.name, &row.label)
            });
            lanes.extend(all);
        }
        let of = |thread| {
            let role = self.mix.role_of(thread).0;
            let first = self.mix.first_row(role);
            first..first + self.mix.roles[role].rows.len()
        };
        (lanes, (0..self.mix.threads()).map(of).collect())
    }

    /// Returns the measured phase.
    async fn phase(&self, group: &Group<'_>, scene: &Arc<Scene>) -> Result<Phase, ExecError> {
        if self.plan.drop_caches {
            drop_caches(group).await?;
        }
        let caches = residency::caches(group);
        let who = ItemOwner::Each { ahead: 0 };
        let shares = match self.mix.shared {
            true => Seen::visit_common(caches, who),
            false => {
                let mut seen = Seen::default();
                seen.make(caches, who);
                seen.visit(caches, who)
            }
        };
        let (lanes, lanes_of) = self.rows();
        let mut roles = self.mix.roles.iter();
        let steps = roles.next().filter(|_| self.mix.roles.len() == 1);
        let total = steps.zip(self.mix.rounds).map(|(role, rounds)| {
            let each = if role.draws() {
                1
            } else {
                role.steps.len() as u64
            };
            rounds
                .saturating_mul(each)
                .saturating_mul(self.plan.workers())
        });
        let label = format!("mix {}", self.mix.name);
        Ok(Phase {
            iteration: self.iteration,
            lanes_of,
            open_loop: self.mix.open_loop.is_some(),
            deadline: self.mix.time,
            total: total.filter(|_| self.mix.time.is_none()),
            log_operations: self.plan.log,
            cache: Some(Looking {
                shares: Some(shares),
                dropped: self.plan.drop_caches,
                ..Looking::default()
            }),
            before: Before::named("mix"),
            ..Phase::new(label, lanes, self.mix.threads(), scene.work())
        })
    }
}

impl Pass<Target> for MixPass<'_> {
    fn own_dirs(&self, rank: Rank) -> Vec<String> {
        match self.mix.shared {
            true => Vec::new(),
            false => vec![format!("{}/{}", self.iteration, rank.0)],
        }
    }

    fn left(&self) -> Option<u64> {
        // The mix has created and removed about equally many.
        Some(self.left)
    }

    async fn run(
        &mut self,
        group: &Group<'_>,
        target: &mut Target,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        target.open(group, self.iteration).await?;
        let scene = self.scene(group, target);
        if self.prepare(group, target, &scene, listener).await? {
            return Ok(true);
        }
        let phase = self.phase(group, &scene).await?;
        let mut end = round::run(group, &phase).await?;
        end.tell_details(&phase, listener);
        end.rows.into_iter().for_each(|row| listener.row(row));
        Ok(end.stopped)
    }
}
