//! The metadata workload: phase after phase over the trees of all ranks.

use std::sync::Arc;

use rbench_core::outcome::{Cache, PhaseOutcome};
use rbench_core::{OpKind, Rank};
use rbench_plan::cache::Seen;
use rbench_plan::meta::{Layout, PhaseInfo, PhaseKind};
use rbench_plan::tree::{ItemKind, Paths};
use rbench_plan::{MetaPlan, Plan, shift};

use crate::group::{ExecError, Group};
use crate::ops::{OPS, Scene};
use crate::phase::{self, LaneInfo, Phase, PhaseEnd};
use crate::run::{Pass, drop_caches};
use crate::target::Target;

/// What later phases of an iteration need to know of earlier ones, for one
/// kind of item.
#[derive(Debug, Clone, Default)]
struct Made {
    /// After a stonewall: items that each worker made.
    each: Option<u64>,
    renamed: bool,
    all_there: bool,
    seen: Seen,
}

/// One pass over the phases.
pub(crate) struct MetaPass<'p> {
    plan: &'p Plan,
    meta: Arc<MetaPlan>,
    iteration: u32,
    prefix: String,
    dirs: Made,
    files: Made,
}

/// The pass with the number `iteration`.
pub(crate) fn pass<'p>(plan: &'p Plan, meta: &MetaPlan, iteration: u32) -> MetaPass<'p> {
    MetaPass {
        plan,
        meta: Arc::new(meta.clone()),
        iteration,
        prefix: iteration.to_string(),
        dirs: Made::default(),
        files: Made::default(),
    }
}

impl Pass for MetaPass<'_> {
    fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The rank's private tree.
    fn own_dirs(&self, rank: Rank) -> Vec<String> {
        match self.meta.layout {
            Layout::Unique => vec![self.tree_root(rank)],
            Layout::Shared => Vec::new(),
        }
    }

    async fn run(
        &mut self,
        group: &Group<'_>,
        target: &Target,
        row: &mut dyn FnMut(PhaseOutcome),
    ) -> Result<bool, ExecError> {
        target.make_dirs(group, &self.prefix, &[]).await?;
        for kind in &self.meta.clone().phases {
            let info = kind.info();
            let distance = shift::distance(self.plan.shift, info.step, self.plan.ranks);
            let distance = if info.step == 0 { 0 } else { distance };
            let cache = self.cache(group, info, distance).await?;
            let phase = self.phase(group, target, info, distance, cache);
            let PhaseEnd {
                rows,
                covered,
                most,
                stopped,
            } = phase::run(group, &phase).await?;
            rows.into_iter().for_each(&mut *row);
            if stopped {
                return Ok(true);
            }
            let made = self.made(info.items);
            match kind {
                PhaseKind::DirCreate | PhaseKind::FileCreate => {
                    made.each = most;
                    made.all_there = covered && most.is_none();
                }
                PhaseKind::DirRename | PhaseKind::FileRename => made.renamed = true,
                _ => {}
            }
        }
        Ok(false)
    }
}

impl MetaPass<'_> {
    fn made(&mut self, items: Option<ItemKind>) -> &mut Made {
        match items {
            Some(ItemKind::File) => &mut self.files,
            Some(ItemKind::Dir) | None => &mut self.dirs,
        }
    }

    /// Drops the caches if asked for, and labels the phase.
    async fn cache(
        &mut self,
        group: &Group<'_>,
        info: &PhaseInfo,
        distance: u32,
    ) -> Result<Option<Cache>, ExecError> {
        if info.items.is_none() {
            return Ok(None);
        }
        let asks = info.asks();
        if asks && self.plan.drop_caches {
            drop_caches(group).await?;
            self.dirs.seen.clear();
            self.files.seen.clear();
        }
        // In a shared tree every host has the directories in its cache.
        let known = info.op == OpKind::List && self.meta.layout == Layout::Shared;
        let plan = self.plan;
        let seen = self.made(info.items).seen.visit(&plan.host_of, distance);
        let label = match (self.plan.drop_caches, known) {
            (true, _) => Cache::Forced,
            (false, true) => Cache::Warm,
            (false, false) => seen,
        };
        Ok(asks.then_some(label))
    }

    fn phase(
        &mut self,
        group: &Group<'_>,
        target: &Target,
        info: &'static PhaseInfo,
        distance: u32,
        cache: Option<Cache>,
    ) -> Phase {
        let made = self.made(info.items).clone();
        let scene = Scene {
            plan: Arc::clone(&self.meta),
            info,
            fs: target.fs(),
            prefix: self.prefix.clone(),
            rank: group.rank(),
            ranks: self.plan.ranks,
            threads: self.plan.threads,
            distance,
            seed: [self.plan.seed, u64::from(self.iteration)],
            made: made.each,
            renamed: made.renamed && info.items.is_some(),
            all_there: made.all_there,
        };
        let creates = matches!(info.kind, PhaseKind::DirCreate | PhaseKind::FileCreate);
        let asks = info.asks();
        let deadline = self.meta.stonewall.filter(|_| creates || asks);
        // The row of the operation; every kind in PHASES has one (tested).
        let make = OPS.iter().find(|row| row.op == info.op).map(|row| row.make);
        Phase {
            iteration: self.iteration,
            label: info.label.to_owned(),
            lanes: vec![LaneInfo {
                op: info.op,
                name: info.name.to_owned(),
                label: info.label.to_owned(),
            }],
            open_loop: false,
            deadline,
            wear_out: creates,
            cache,
            total: if deadline.is_some() {
                None
            } else {
                Some(self.total(info))
            },
            threads: self.plan.threads,
            make: Arc::new(move |thread| match make {
                Some(make) => Ok(make(&scene, thread)),
                None => Err(rbench_core::Failure::new(
                    info.op,
                    "",
                    nix::errno::Errno::ENOSYS,
                )),
            }),
        }
    }

    /// Operations of all ranks in a phase.
    fn total(&mut self, info: &PhaseInfo) -> u64 {
        let ranks = u64::from(self.plan.ranks);
        let trees = if self.meta.layout == Layout::Unique {
            ranks
        } else {
            1
        };
        let item_nodes = self.meta.shape.item_nodes();
        match (info.items, info.op) {
            (None, _) => self.meta.nodes * trees,
            (_, OpKind::List) => (item_nodes.end - item_nodes.start) * trees,
            _ => {
                let threads = u64::from(self.plan.threads);
                let each = self
                    .made(info.items)
                    .each
                    .map_or(u64::MAX, |each| each.saturating_mul(threads));
                each.min(self.meta.items_per_rank) * ranks
            }
        }
    }

    /// The root of a rank's private tree, below the iteration's directory.
    fn tree_root(&self, rank: Rank) -> String {
        let mut paths = Paths::new(
            self.meta.shape,
            self.meta.naming,
            "",
            true,
            rank,
            ItemKind::Dir,
            false,
        );
        paths.node(0).to_string_lossy().into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_plan::meta::PHASES;

    #[test]
    fn every_kind_of_phase_has_its_operation() {
        for info in PHASES {
            assert!(OPS.iter().any(|row| row.op == info.op), "{}", info.name);
        }
    }
}
