//! Space that a run needs on its target, as far as the plan determines it.

use crate::io::{IoPlan, Rw};
use crate::jobs::{BufferContent, Buffers};
use crate::meta::{Content, Layout, Location, MetaPlan, Packet, PhaseInfo, PhaseKind};
use crate::mix::sizes::Sizes;
use crate::mix::{FileSet, MixPlan};
use crate::resolve::{Plan, Work};
use crate::tree::ItemKind;

/// Bytes and inodes at their maximum.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Demand {
    /// Bytes that are certainly written, and that every file system stores in full.
    pub bytes: u64,
    /// Bytes that are certainly written, with any content.
    pub plain_bytes: u64,
    /// Most bytes that may be written.
    pub bytes_at_most: u64,
    /// Files and directories that are certainly created.
    pub inodes: u64,
}

impl Demand {
    /// Each of the numbers with that of another demand.
    fn zip(self, other: Demand, of: impl Fn(u64, u64) -> u64) -> Demand {
        Demand {
            bytes: of(self.bytes, other.bytes),
            plain_bytes: of(self.plain_bytes, other.plain_bytes),
            bytes_at_most: of(self.bytes_at_most, other.bytes_at_most),
            inodes: of(self.inodes, other.inodes),
        }
    }

    /// Sum of both demands.
    pub fn and(self, other: Demand) -> Demand {
        self.zip(other, u64::saturating_add)
    }

    /// This demand `n` times.
    pub fn times(self, n: u64) -> Demand {
        self.zip(self, |number, _| number.saturating_mul(n))
    }
}

/// True if no file system can store this data in less than its length: no two blocks are
/// equal, and nothing in them compresses.
pub fn is_incompressible(buffers: &Buffers) -> bool {
    let random = matches!(&buffers.content, BufferContent::Random { percent: 0, .. });
    random && buffers.dedupe_percent == 0 && (buffers.refill || buffers.scramble)
}

/// Space that `ranks` ranks of `plan` need on their target, including the remains of
/// earlier iterations. Jobs depend on existing files: see [`crate::jobs`].
pub fn demand(plan: &Plan, ranks: u32) -> Demand {
    let passes = u64::from(plan.passes());
    let kept = if plan.keep { passes } else { 1 };
    match &plan.work {
        Work::Meta(meta) => {
            let ranks = u64::from(ranks);
            let missing = plan.missing(meta.items_per_rank);
            let (peak, left) = of_meta(meta, (ranks, missing), u64::from(plan.threads));
            let stays = plan.keep || meta.site != Location::Own;
            let earlier = if stays { passes - 1 } else { 0 };
            peak.and(left.times(earlier))
        }
        Work::Io(io) => {
            let workers = u64::from(ranks) * u64::from(plan.threads);
            of_io(io, workers).times(kept)
        }
        Work::Mix(mix) => of_mix(mix).times(mix.copies(ranks)).times(kept),
        // The demand of a trace is only known after it was read.
        Work::Jobs(_) | Work::Find(_) | Work::Replay(_) => Demand::default(),
    }
}

/// Demand at the maximum of a pass, and at its end. `missing` is the number of items of
/// missing workers.
fn of_meta(meta: &MetaPlan, (ranks, missing): (u64, u64), threads: u64) -> (Demand, Demand) {
    let runs = |kind| meta.runs(kind);
    // A deadline may come before anything is created.
    let timed = |kind| {
        let mut phases = meta.phases.iter();
        meta.open_ended() || phases.any(|p| p.kind == kind && p.deadline.is_some())
    };
    let items = meta.items_per_rank.saturating_mul(ranks);
    let items = items.saturating_sub(missing);
    let of = |kind| if runs(kind) && !timed(kind) { items } else { 0 };
    let dirs = of(PhaseKind::DirCreate);
    let files = of(PhaseKind::FileCreate);
    let trees = match (runs(PhaseKind::TreeCreate), meta.layout) {
        (false, _) => 0,
        (true, Layout::Unique) => meta.nodes.saturating_mul(meta.loops).saturating_mul(ranks),
        (true, Layout::Shared) => meta.nodes.saturating_mul(meta.loops),
    };
    let taken = |info: &PhaseInfo| match info.copies {
        true => meta.file_bytes(),
        false => info.reserves,
    };
    let taken = meta.kinds().map(|kind| taken(kind.info()));
    let file_bytes = taken.fold(meta.file_bytes(), u64::saturating_add);
    let written = files.saturating_mul(file_bytes);
    let at_most = match runs(PhaseKind::FileCreate) && !meta.open_ended() {
        true => items.saturating_mul(file_bytes),
        false => written,
    };
    let dense = match meta.content {
        Content::Fresh => true,
        Content::Packet { packet, .. } => matches!(packet, Packet::Random | Packet::Unique),
    };
    let demand = |inodes: u64, bytes: u64, at_most: u64| Demand {
        bytes: if dense { bytes } else { 0 },
        plain_bytes: bytes,
        bytes_at_most: at_most,
        inodes,
    };
    let dirs_left = if runs(PhaseKind::DirRemove) { 0 } else { dirs };
    // Names in, or beside, items while a phase uses them.
    let besides = |of: ItemKind| {
        let phases = meta.phases.iter();
        let own = phases.filter(|p| p.kind.info().items == Some(of) && !timed(p.kind));
        own.map(|phase| {
            let each = phase.part.map_or(items, |part| {
                part.items.saturating_mul(ranks.saturating_mul(threads))
            });
            each.saturating_mul(phase.kind.info().makes_besides)
        })
        .max()
        .unwrap_or(0)
    };
    let with_dirs = dirs.saturating_add(besides(ItemKind::Dir));
    let with_files = files.saturating_add(besides(ItemKind::File));
    let fullest = trees
        .saturating_add(with_dirs)
        .max(trees.saturating_add(dirs_left).saturating_add(with_files));
    let left = |kind, number| if runs(kind) { 0 } else { number };
    let of_files = |number| left(PhaseKind::FileRemove, number);
    let inodes_left = left(PhaseKind::TreeRemove, trees)
        .saturating_add(dirs_left)
        .saturating_add(of_files(files));
    (
        demand(fullest, written, at_most),
        demand(inodes_left, of_files(written), of_files(at_most)),
    )
}

/// The content at the start; at most all names with their files. Drawn sizes may add up to
/// less than their mean.
fn of_mix(mix: &MixPlan) -> Demand {
    let (names, bytes) = mix.prepared();
    let sets = mix.sets.iter();
    let all = sets.map(|set| set.number.saturating_mul(set.sizes.mean()));
    let is_fixed = |set: &FileSet| matches!(set.sizes, Sizes::Fixed(_));
    let sure = bytes / if mix.sets.iter().all(is_fixed) { 1 } else { 2 };
    Demand {
        bytes: sure,
        plain_bytes: sure,
        bytes_at_most: all.fold(0, u64::saturating_add),
        inodes: names,
    }
}

fn of_io(io: &IoPlan, workers: u64) -> Demand {
    let small = io.job.small;
    let each = small.map_or(io.size.0, |s| s.size.0.saturating_mul(s.files));
    let all = each.saturating_mul(workers);
    // Files that a phase needs are laid out in full; a time limit may end writes.
    let fills = |rw: &Rw| rw.needs_files() || io.job.pace.runtime.is_none();
    let sure = if io.phases.iter().any(fills) { all } else { 0 };
    let dense = io.job.verify.is_some() || is_incompressible(&io.job.buffers);
    let files = match (small, io.layout.shared()) {
        (Some(small), _) => small.files.saturating_mul(workers),
        (None, true) => 1,
        (None, false) => workers,
    };
    let makes = sure > 0 || small.is_none();
    Demand {
        bytes: if dense { sure } else { 0 },
        plain_bytes: sure,
        bytes_at_most: all,
        inodes: if makes { files } else { 0 },
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::{Bytes, Nanos};

    use super::*;
    use crate::resolve::Facts;
    use crate::spec::{self, Workload};

    fn of(workload: Workload, change: impl FnOnce(&mut spec::Common), ranks: u32) -> Demand {
        let mut common = spec::Common {
            dir: Some("/mnt".into()),
            ..spec::Common::default()
        };
        change(&mut common);
        let facts = Facts::on(&vec![0; ranks as usize]);
        demand(
            &facts.plan(common, workload).expect("it can be done"),
            ranks,
        )
    }

    fn io(change: impl FnOnce(&mut spec::Io)) -> Workload {
        let mut io = spec::Io {
            size: Some(Bytes(1 << 20)),
            ..spec::Io::default()
        };
        change(&mut io);
        Workload::Io(Box::new(io))
    }

    fn check(got: Demand, bytes: u64, plain_bytes: u64, bytes_at_most: u64, inodes: u64) {
        let expect = Demand {
            bytes,
            plain_bytes,
            bytes_at_most,
            inodes,
        };
        assert_eq!(got, expect);
    }

    const MIB: u64 = 1 << 20;

    #[test]
    fn every_worker_of_io_writes_its_part_once() {
        let two = |c: &mut spec::Common| c.threads = Some(2);
        check(of(io(|_| ()), two, 3), 6 * MIB, 6 * MIB, 6 * MIB, 6);
        let shared = io(|io| io.layout = Some(crate::io::Layout::SharedSegmented));
        check(of(shared, |_| (), 3), 3 * MIB, 3 * MIB, 3 * MIB, 1);
        let small = io(|io| {
            (io.size, io.files, io.file_size) = (None, Some(10), Some(Bytes(4096)));
        });
        let bytes = 2 * 10 * 4096;
        check(of(small, |_| (), 2), bytes, bytes, bytes, 20);
        // Each pass removes its files, unless they are kept.
        let passes = |c: &mut spec::Common| c.iterations = Some(3);
        check(of(io(|_| ()), passes, 1), MIB, MIB, MIB, 1);
        let kept = |c: &mut spec::Common| (c.iterations, c.keep) = (Some(3), true);
        check(of(io(|_| ()), kept, 1), 3 * MIB, 3 * MIB, 3 * MIB, 3);
    }

    #[test]
    fn what_time_ends_or_data_that_shrinks_is_not_certain() {
        let timed =
            |rw: Vec<Rw>| io(move |io| (io.rw, io.time) = (Some(rw), Some(Nanos(1_000_000_000))));
        check(of(timed(vec![Rw::Write]), |_| (), 1), 0, 0, MIB, 1);
        // Laid out before the timed part.
        check(of(timed(vec![Rw::RandRead]), |_| (), 1), MIB, MIB, MIB, 1);
        for change in [
            (|io| io.compress = Some(50)) as fn(&mut spec::Io),
            |io| io.dedupe = Some(10),
            |io| io.no_refill = true,
        ] {
            check(of(io(change), |_| (), 1), 0, MIB, MIB, 1);
        }
    }

    #[test]
    fn metadata_runs_are_as_large_as_their_fullest_moment() {
        let meta = |change: fn(&mut spec::Meta)| {
            let mut meta = spec::Meta {
                items: Some(10),
                write: Some(Bytes(100)),
                ..spec::Meta::default()
            };
            change(&mut meta);
            Workload::Meta(meta)
        };
        // 4 tree directories; the directories are removed before files are created.
        check(of(meta(|_| ()), |_| (), 2), 8000, 8000, 8000, 8 + 80);
        let makes = |m: &mut spec::Meta| {
            m.phases = Some(vec![PhaseKind::DirCreate, PhaseKind::FileCreate]);
        };
        let kept = |c: &mut spec::Common| (c.iterations, c.keep) = (Some(2), true);
        check(of(meta(makes), |_| (), 2), 8000, 8000, 8000, 8 + 160);
        check(of(meta(makes), kept, 2), 16000, 16000, 16000, 2 * 168);
        let walled = |m: &mut spec::Meta| m.stonewall = Some(Nanos(1));
        check(of(meta(walled), |_| (), 1), 0, 0, 4000, 4);
    }
}
