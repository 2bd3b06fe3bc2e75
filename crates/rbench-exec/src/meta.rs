//! The metadata workload: phase after phase over the trees of all ranks.

use std::path::PathBuf;
use std::sync::Arc;

use rbench_core::{Bytes, Nanos, OpKind, Rank};
use rbench_plan::cache::Seen;
use rbench_plan::meta::{
    Backend, Calls, Layout, Location, PhaseInfo, PhaseKind, PhasePlan, Renaming, Showing,
};
use rbench_plan::tree::{Forest, ItemKind, Paths};
use rbench_plan::{MetaPlan, Plan, shift};

use crate::caches::drop_caches;
use crate::group::{ExecError, Group};
use crate::hooks::After;
use crate::listener::Listener;
use crate::needs::{NamesInFlight, Need, Needs};
use crate::ops::{self, OpContext};
use crate::passes;
use crate::phase::{Before, Looking, OpRow, Phase};
use crate::residency;
use crate::room::{self, Demands};
use crate::round::{self, PhaseEnd};
use crate::spots::Spot;
use crate::target::Workspace;
use crate::testdirs::{self, TestDirs};
use crate::worker::{MakeRunner, Runner};
use crate::workload::{Pass, Run, Running, Workload};

impl Workload for MetaPlan {
    fn spots(&self, run: Run<'_>) -> Vec<Spot> {
        match &self.site {
            _ if run.place.recorder.is_some() || self.backend == Backend::Dummy => Vec::new(),
            Location::Own => run.own_spot(),
            Location::TestDirs(dirs) => testdirs::spots(dirs, run.plan.ranks),
        }
    }

    /// A row of the per-operation table that fails reports so itself.
    fn needs(&self) -> Needs {
        let mut needs = Needs::default();
        let is_row = |p: &PhasePlan| matches!(p.showing, Showing::Row(_));
        for phase in self
            .phases
            .iter()
            .filter(|_| !self.phases.iter().any(is_row))
        {
            let info = phase.kind.info();
            let need = match info.op {
                OpKind::Link => Need::HardLinks,
                OpKind::Symlink => Need::SymbolicLinks,
                OpKind::Setxattr => Need::ExtendedAttributes,
                _ => continue,
            };
            needs.add(true, need, &format!("--phases {}", info.name));
        }
        needs
    }

    fn in_flight(&self) -> Option<NamesInFlight> {
        // The largest read or write of an operation of the plan.
        let data = |phase: &PhasePlan| Calls::of_phase(phase.kind.info(), self, phase.who).data;
        Some(NamesInFlight {
            depth: self.in_flight?,
            calls: self
                .kinds()
                .flat_map(|kind| kind.info().timed)
                .copied()
                .collect(),
            data: Bytes(self.phases.iter().map(data).max().unwrap_or(0)),
        })
    }

    /// Its file, or those in flight and a ring.
    fn open_files_each(&self) -> u32 {
        self.in_flight.map_or(1, |depth| depth + 1)
    }

    fn demands(&self, run: Run<'_>, spots: Vec<(PathBuf, Vec<u32>)>) -> Demands {
        if self.site == Location::Own {
            return room::of_plan(run.plan, spots);
        }
        let plan = run.plan.clone();
        Box::new(move |looks| {
            // Trees of an earlier run are used again.
            let new = spots.iter().filter(|(dir, _)| !testdirs::has_trees(dir));
            room::of_plan(&plan, new.cloned().collect())(looks)
        })
    }

    fn bare_loop(&self, operations: u64) -> Option<Box<dyn Runner>> {
        ops::over_nothing(self, operations).ok()
    }

    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a> {
        let (plan, group) = (run.plan, run.group);
        Box::pin(async move {
            let pass = |i| pass(plan, self, i);
            if self.site == Location::Own {
                return passes::in_own_directory(run, listener, pass).await;
            }
            let dirs = TestDirs::set_up(group, self, run.place).await?;
            if let (Location::TestDirs(dirs), Backend::Posix) = (&self.site, self.backend) {
                residency::turn_to(group, dirs.clone()).await?;
            }
            let shared = dirs.shared();
            passes::all(run, dirs, shared, listener, pass).await
        })
    }
}

/// State from earlier phases of an iteration that later ones need, for one kind of item.
#[derive(Debug, Clone, Default)]
struct Made {
    /// After a deadline: number of items that each worker created.
    each: Option<u64>,
    renamed: bool,
    all_there: bool,
    seen: Seen,
}

/// One pass over the phases.
struct MetaPass<'p> {
    plan: &'p Plan,
    meta: Arc<MetaPlan>,
    iteration: u32,
    forest: Arc<Forest>,
    dirs: Made,
    files: Made,
    /// Entries created and not removed, at rank 0.
    left: u64,
}

/// Creates the pass with the number `iteration`.
fn pass<'p>(plan: &'p Plan, meta: &MetaPlan, iteration: u32) -> MetaPass<'p> {
    MetaPass {
        plan,
        forest: Arc::new(meta.forest(iteration, plan.ranks)),
        meta: Arc::new(meta.clone()),
        iteration,
        dirs: Made::default(),
        files: Made {
            each: meta.made,
            ..Made::default()
        },
        left: 0,
    }
}

impl<G: Workspace> Pass<G> for MetaPass<'_> {
    /// Returns the rank's private trees.
    fn own_dirs(&self, rank: Rank) -> Vec<String> {
        if self.meta.layout == Layout::Shared {
            return Vec::new();
        }
        // The tree with the rank's number holds the items of the rank `tree_ahead` before it.
        let back = self.plan.ranks - self.meta.tree_ahead % self.plan.ranks;
        let owner = shift::owner(rank, back, self.plan.ranks);
        let mut paths = Paths::new(Arc::clone(&self.forest), owner, ItemKind::Dir);
        (0..self.meta.loops)
            .map(|tree| {
                paths
                    .node(tree * self.meta.nodes)
                    .to_string_lossy()
                    .into_owned()
            })
            .collect()
    }

    fn left(&self) -> Option<u64> {
        // A tree that existed before: nobody has counted it.
        (self.meta.made.is_none()).then_some(self.left)
    }

    async fn run(
        &mut self,
        group: &Group<'_>,
        ground: &mut G,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        ground.open(group, self.iteration).await?;
        let plans = self.meta.phases.clone();
        for step in self.steps(&plans) {
            let mut phases = Vec::new();
            for plan in step {
                let cache = self.cache(group, plan).await?;
                phases.push(self.phase(group, ground, *plan, cache));
            }
            let (ends, trouble) = match &phases[..] {
                [one] => (vec![round::run(group, one).await?], None),
                several => round::run_freely(group, several).await?,
            };
            let mut broken_off = false;
            for (plan, end) in step.iter().zip(ends) {
                broken_off |= self.note(plan, end, listener)?;
            }
            if let Some(message) = trouble {
                return Err(ExecError::SetUp(message));
            }
            if broken_off {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl MetaPass<'_> {
    /// Groups the phases that run without a meeting of the ranks in between.
    fn steps<'a>(&self, plans: &'a [PhasePlan]) -> Vec<&'a [PhasePlan]> {
        let together = |a: &PhasePlan, b: &PhasePlan| {
            let of_items = |p: &PhasePlan| p.kind.info().items.is_some();
            !self.meta.barriers && of_items(a) && of_items(b)
        };
        plans.chunk_by(together).collect()
    }

    /// Returns the steps before a phase: a pause before the first one of each kind of item, and the
    /// user's commands.
    fn before(&self, plan: &PhasePlan) -> Before {
        let items = plan.kind.info().items;
        let first = self.meta.kinds().find(|k| k.info().items == items);
        let name = match plan.showing {
            Showing::Row(name) => Some(name.to_owned()),
            Showing::Phase => Some(plan.kind.info().name.to_owned()),
            Showing::Untimed => None,
        };
        let (around, of_items) = (&self.meta.around, items.is_some());
        let pauses = of_items && first == Some(plan.kind);
        Before {
            name,
            pause: if pauses { around.pause } else { Nanos(0) },
            command: around.before.clone().filter(|_| of_items),
        }
    }

    /// Returns the steps after the operations on items.
    fn after(&self, info: &PhaseInfo, is_timed: bool) -> Option<After> {
        let around = &self.meta.around;
        let any = info.items.is_some() && (around.sync || around.after.is_some());
        any.then(|| After {
            sync: around.sync,
            command: around.after.clone(),
            tops_up: info.makes() && is_timed,
        })
    }

    fn made(&mut self, items: Option<ItemKind>) -> &mut Made {
        match items {
            Some(ItemKind::File) => &mut self.files,
            Some(ItemKind::Dir) | None => &mut self.dirs,
        }
    }

    /// Hands over the results of a phase and remembers the state for later ones; returns whether
    /// the pass ends here.
    fn note(
        &mut self,
        plan: &PhasePlan,
        end: PhaseEnd,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        let (info, each) = (plan.kind.info(), end.each);
        let untimed = plan.showing == Showing::Untimed;
        for row in &end.rows {
            match row.op {
                OpKind::Mkdir | OpKind::Create | OpKind::Mknod | OpKind::Symlink | OpKind::Link => {
                    self.left += row.items;
                }
                OpKind::Rmdir | OpKind::Unlink => self.left = self.left.saturating_sub(row.items),
                _ => {}
            }
        }
        end.rows
            .into_iter()
            .filter(|row| !untimed || row.failures.total() > 0)
            .for_each(|row| listener.row(row));
        if !end.details.is_empty() {
            let lanes = self.lanes(plan);
            let names: Vec<&str> = lanes.iter().map(|row| row.name.as_str()).collect();
            listener.details(self.iteration, &names, end.details);
        }
        if plan.open_loop.is_some() && info.creates() && each == Some(0) {
            return Err(ExecError::SetUp(format!(
                "{}: --rate and --time left some workers without an item for later phases: use \
                 a higher --rate, a longer --time or fewer --threads",
                info.label
            )));
        }
        let made = self.made(info.items);
        match plan.kind {
            PhaseKind::DirCreate | PhaseKind::FileCreate => {
                made.each = each;
                made.all_there = end.covered && each.is_none();
            }
            PhaseKind::DirRename | PhaseKind::FileRename => made.renamed = true,
            // Items not reached do not exist for later phases either.
            _ if info.makes() => made.each = [made.each, each].into_iter().flatten().min(),
            _ => {}
        }
        if end.failed && self.meta.failures_end_the_run {
            return Err(ExecError::SetUp(format!(
                "operations of {} failed, which ends the run",
                info.label
            )));
        }
        Ok(end.stopped)
    }

    /// Drops the caches if requested; returns the cache state for a phase that asks.
    async fn cache(
        &mut self,
        group: &Group<'_>,
        plan: &PhasePlan,
    ) -> Result<Option<Looking>, ExecError> {
        let info = plan.kind.info();
        let Some(items) = info.items else {
            return Ok(None);
        };
        let asks = info.asks();
        if asks && self.plan.drop_caches {
            drop_caches(group).await?;
        }
        let caches = residency::caches(group);
        if info.creates() {
            self.made(info.items).seen.make(caches, plan.who);
        }
        let seen = self.made(info.items).seen.visit(caches, plan.who);
        // In a shared tree every host has the directories in its cache, and all ranks use shared
        // files.
        let common = info.kind == PhaseKind::DirList && self.meta.layout == Layout::Shared
            || self.meta.naming.common.is_some();
        let shares = match (self.meta.makes(items), common) {
            // Created by an earlier run: later visitors are unknown.
            (false, _) => None,
            (true, true) => Some(Seen::visit_common(caches, plan.who)),
            (true, false) => Some(seen),
        };
        let real = self.meta.backend == Backend::Posix;
        Ok((asks && real).then_some(Looking {
            shares,
            dropped: self.plan.drop_caches,
            direct: self.meta.direct && info.op == OpKind::ReadFile,
            verifies: if self.meta.verify_read && info.op == OpKind::ReadFile {
                vec![0]
            } else {
                Vec::new()
            },
            ramps: false,
            opens: info.opens_untimed(),
        }))
    }

    /// Returns the rows of a phase.
    fn lanes(&self, plan: &PhasePlan) -> Vec<OpRow> {
        let info = plan.kind.info();
        let row = |op: OpKind, name: &str, label: &str| OpRow {
            unsynced: info.kind == PhaseKind::FileCreate && self.meta.leaves_unsynced(),
            ..OpRow::new(op, name, label)
        };
        let (name, label) = match plan.showing {
            Showing::Row(name) => (name, name),
            Showing::Phase | Showing::Untimed => (info.name, info.label),
        };
        let mut lanes = vec![row(info.op, name, label)];
        if info.kind == PhaseKind::FileCreate && self.meta.is_table() {
            lanes.push(row(OpKind::Close, "close", "close"));
        }
        lanes
    }

    fn phase<G: Workspace>(
        &mut self,
        group: &Group<'_>,
        ground: &G,
        plan: PhasePlan,
        cache: Option<Looking>,
    ) -> Phase {
        let info: &'static PhaseInfo = plan.kind.info();
        let made = self.made(info.items).clone();
        let scene = OpContext {
            plan: Arc::clone(&self.meta),
            phase: plan,
            info,
            fs: ground.fs(),
            forest: Arc::clone(&self.forest),
            rank: group.rank(),
            ranks: self.plan.ranks,
            threads: self.plan.threads,
            seed: [self.plan.seed, u64::from(self.iteration)],
            made: made.each,
            // A chain keeps the names.
            renamed: made.renamed && info.items.is_some() && self.meta.renaming == Renaming::Suffix,
            all_there: made.all_there,
            schedule: None,
            after: self.after(info, plan.deadline.is_some()),
        }
        .scheduled();
        let lanes = self.lanes(&plan);
        let steps = lanes.len() as u64;
        let total = plan.deadline.is_none().then(|| {
            let missing = info
                .items
                .map_or(0, |_| self.plan.missing(self.meta.items_per_rank));
            scene.total().saturating_sub(missing).saturating_mul(steps)
        });
        let label = match plan.showing {
            Showing::Phase => info.label.to_owned(),
            Showing::Row(name) => name.to_owned(),
            Showing::Untimed => format!("{} (untimed)", info.label),
        };
        let make: MakeRunner = Arc::new(move |thread| ops::make(&scene, thread));
        Phase {
            iteration: self.iteration,
            shown: plan.showing != Showing::Untimed,
            open_loop: plan.open_loop.is_some(),
            offered: plan.open_loop.map(|open| open.rate),
            deadline: plan.deadline,
            wear_out: info.makes(),
            cache,
            total,
            log_operations: self.plan.log && plan.showing != Showing::Untimed,
            before: self.before(&plan),
            ..Phase::new(label, lanes, self.plan.workers_of(group.rank()), make)
        }
    }
}
