//! The I/O workload: its phases, its files, and the order of offsets.

use std::path::PathBuf;
use std::sync::Arc;

use rbench_core::random::key;
use rbench_core::{Bytes, Rank};

pub use crate::jobs::SmallFiles;
use crate::jobs::{
    Advised, BlockSizes, Buffers, ContinueOn, Directions, Distribution, Each, Errors, Favourites,
    FileNames, Files, JobPlan, Pace, Pattern, Syncing,
};
use crate::pattern;
use crate::shift;
use crate::tree::{Forest, ItemKind, NATIVE, Paths, Private, Shape};

/// Smallest block that can carry the stamp of `--verify`.
pub const VERIFY_BLOCK_MIN: u64 = 512;

/// Kind of an I/O phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rw {
    /// Sequential writes.
    Write,
    /// Sequential reads.
    Read,
    /// Random writes.
    RandWrite,
    /// Random reads.
    RandRead,
    /// Sequential reads and writes, mixed.
    Rw,
    /// Random reads and writes, mixed.
    RandRw,
}

impl Rw {
    /// All kinds.
    pub const ALL: [Rw; 6] = [
        Rw::Write,
        Rw::Read,
        Rw::RandWrite,
        Rw::RandRead,
        Rw::Rw,
        Rw::RandRw,
    ];

    /// Its name on the command line and of the phase, its name for people, and its directions.
    const fn row(self) -> (&'static str, &'static str, Directions) {
        use Directions as D;
        match self {
            Rw::Write => ("write", "Sequential write", D::WRITE),
            Rw::Read => ("read", "Sequential read", D::READ),
            Rw::RandWrite => ("randwrite", "Random write", D::WRITE.at_random()),
            Rw::RandRead => ("randread", "Random read", D::READ.at_random()),
            Rw::Rw => ("rw", "Sequential mix", D::MIX),
            Rw::RandRw => ("randrw", "Random mix", D::MIX.at_random()),
        }
    }

    /// The name on the command line and of the phase.
    pub fn name(self) -> &'static str {
        self.row().0
    }

    /// The name for people.
    pub fn label(self) -> &'static str {
        self.row().1
    }

    /// Its directions.
    pub fn directions(self) -> Directions {
        self.row().2
    }

    /// True if it reads.
    pub fn reads(self) -> bool {
        self.directions().read
    }

    /// True if it writes.
    pub fn writes(self) -> bool {
        self.directions().write
    }

    /// True if offsets are in random order.
    pub fn random(self) -> bool {
        self.directions().random
    }

    /// True if it needs complete files.
    pub fn needs_files(self) -> bool {
        self != Rw::Write
    }
}

/// The assignment of files to workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Layout {
    /// Each worker has its own file
    #[default]
    PerWorker,
    /// All workers share one file; each has its own segment
    #[value(name = "shared")]
    SharedSegmented,
    /// One file; the workers' blocks alternate (`--interleave`).
    #[value(skip)]
    SharedInterleaved,
}

impl Layout {
    /// True if all workers use one file.
    pub fn shared(self) -> bool {
        self != Layout::PerWorker
    }

    /// The offset in the file of the byte at `start` in the part of worker `worker` (of
    /// `workers`). Parts have `size` bytes, blocks `block`.
    #[inline]
    pub fn offset(self, start: u64, (worker, workers): (u64, u64), size: u64, block: u64) -> u64 {
        match self {
            Layout::PerWorker => start,
            Layout::SharedSegmented => worker * size + start,
            Layout::SharedInterleaved => start * workers + worker * block,
        }
    }

    /// The name of the file with worker `worker`'s blocks, relative to the directory of
    /// the pass.
    pub fn file_name(self, worker: u64) -> String {
        if self.shared() {
            "data.shared".to_owned()
        } else {
            OWN_FILE.replace("$jobnum", &worker.to_string())
        }
    }
}

/// Rule for syncing written data to stable storage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FsyncRule {
    /// Once, after the last write, within the phase's time.
    #[default]
    End,
    /// Never.
    Never,
    /// After this number of writes, and at the end.
    Every(u64),
    /// By closing the file, within the phase's time.
    Close,
}

impl FsyncRule {
    /// True if all written data is synced in the end. A close sends data to the server
    /// of some file systems, but no standard makes it stable.
    pub fn syncs(self) -> bool {
        match self {
            FsyncRule::End | FsyncRule::Every(_) => true,
            FsyncRule::Never | FsyncRule::Close => false,
        }
    }
}

/// Largest file of the small-file form: all its blocks are prepared before it
/// is opened.
pub const SMALL_FILE_MAX: Bytes = Bytes(64 << 20);

/// The I/O workload, complete.
#[derive(Debug, Clone, PartialEq)]
pub struct IoPlan {
    /// The phases in order.
    pub phases: Vec<Rw>,
    /// Bytes of each worker (of its file or its part of the shared one).
    pub size: Bytes,
    /// Distribution of workers over files.
    pub layout: Layout,
    /// The times at which data is synced.
    pub fsync: FsyncRule,
    /// Records every write and sync in journals whose names start with this path; the
    /// run's directory stays.
    pub ack_journal: Option<PathBuf>,
    /// The job that every phase has in common; [`IoPlan::rounds`] adds the rest. Uniform random
    /// operations hit every block once before any of them again; others repeat blocks by their
    /// distribution.
    pub job: JobPlan,
}

/// A phase of blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct Round {
    /// Its kind.
    pub rw: Rw,
    /// Number of the phase in its pass. The number before it belongs to the layout that
    /// it may need.
    pub step: u32,
    /// The job that performs it.
    pub job: JobPlan,
}

/// Bytes of one write of a layout, if blocks are contiguous.
const LAYOUT_PIECE: u64 = 4 << 20;

/// Random numbers of a layout derive from the phase's seed and this number.
const LAYOUT: u64 = 1;

/// Name of a worker's own file.
const OWN_FILE: &str = "data.$jobnum";

impl IoPlan {
    /// Phases of workers with `size` bytes each, one block at a time.
    pub fn new(phases: Vec<Rw>, sizes: BlockSizes, size: Bytes, layout: Layout) -> IoPlan {
        let names = match layout.shared() {
            true => FileNames::Given(vec![layout.file_name(0)]),
            false => FileNames::Format(OWN_FILE.to_owned()),
        };
        let (offset_increment, interleave) = match layout {
            Layout::PerWorker => (0, 0),
            Layout::SharedSegmented => (size.0, 0),
            Layout::SharedInterleaved => (0, pattern::smallest(&sizes)),
        };
        let files = Files {
            offset_increment,
            interleave,
            advice: Advised::Mappings,
            write_only: true,
            allow_mounted_write: true,
            ..Files::new(PathBuf::new(), names, size.0)
        };
        let pattern = Pattern {
            rest: true,
            ..Pattern::new(Directions::READ, sizes, 0)
        };
        let pace = Pace {
            loops: 1,
            think_blocks: 1,
            // After every operation that was started, even if several are in flight.
            think_by_issue: true,
            ..Pace::default()
        };
        IoPlan {
            phases,
            size,
            layout,
            fsync: FsyncRule::default(),
            ack_journal: None,
            job: JobPlan {
                pace,
                ..JobPlan::new("", pattern, files)
            },
        }
    }

    /// Sizes of the operations; the last of a file may be shorter.
    pub fn sizes(&self) -> &BlockSizes {
        &self.job.pattern.sizes.read
    }

    /// Bytes of the smallest operation. Each stamp covers as much, so operations of
    /// different sizes meet the same stamps.
    #[inline]
    pub fn block(&self) -> u64 {
        pattern::smallest(self.sizes())
    }

    /// Bytes of the largest operation.
    pub fn block_max(&self) -> u64 {
        pattern::largest(self.sizes())
    }

    /// Complete work of a worker: bytes of its part, or small files.
    pub fn whole(&self) -> u64 {
        match self.job.small {
            Some(small) => small.files,
            None => self.size.0,
        }
    }

    /// Approximate number of operations that move as many bytes as a worker's part has.
    pub fn operations(&self) -> u64 {
        match self.job.small {
            Some(small) => small.files,
            None => (self.size.0 as f64 / pattern::mean(self.sizes())).ceil() as u64,
        }
    }

    /// The phases in order, each as a job with one worker per thread of each rank.
    /// Random numbers derive from `seed` and the pass.
    pub fn rounds(&self, seed: u64, iteration: u32, ranks: (u32, u32), threads: u32) -> Vec<Round> {
        let (shift, ranks) = ranks;
        let mut reads = 0;
        let round = |(nth, rw): (usize, &Rw)| {
            // Each phase that reads shifts by one more step around the ranks.
            reads += u32::from(!rw.writes());
            let ahead = match rw.writes() {
                true => 0,
                false => shift::ahead(shift, reads, ranks),
            };
            let step = 2 * (nth as u32 + 1);
            let seeds = [
                key(&[seed, u64::from(iteration) << 32 | u64::from(step)]),
                key(&[seed, u64::from(iteration)]),
            ];
            Round {
                rw: *rw,
                step,
                job: self.job_of(*rw, seeds, ahead, (iteration, threads)),
            }
        };
        self.phases.iter().enumerate().map(round).collect()
    }

    fn job_of(
        &self,
        rw: Rw,
        [seed, favourites]: [u64; 2],
        ahead: u32,
        (iteration, threads): (u32, u32),
    ) -> JobPlan {
        let mut job = self.job.clone();
        (job.name, job.label) = (rw.name().to_owned(), Some(rw.label().to_owned()));
        job.numjobs = threads;
        (job.pattern.directions, job.pattern.seed) = (rw.directions(), seed);
        // They lie where they lay in the phases before.
        job.pattern.favourites = Favourites::OfPart(favourites);
        (job.files.directory, job.files.ahead) = (iteration.to_string().into(), ahead);
        if rw.writes() {
            job.syncing = self.syncing();
        }
        job
    }

    /// The writes of each worker (of `workers`) before a job that needs its part in full, where
    /// `there` bytes (or small files) of it exist: in large pieces, as far as its blocks lie side
    /// by side.
    pub fn layout(&self, job: &JobPlan, there: u64, workers: u64) -> JobPlan {
        let job = job.clone();
        let is_small = self.job.small.is_some();
        let rest = self.size.0.saturating_sub(there);
        let spread = match self.layout {
            Layout::SharedInterleaved => workers,
            Layout::PerWorker | Layout::SharedSegmented => 1,
        };
        JobPlan {
            pattern: Pattern {
                directions: Directions::WRITE,
                sizes: Each::same(BlockSizes::Fixed(self.layout_piece())),
                distribution: Distribution::Uniform,
                seed: key(&[job.pattern.seed, LAYOUT]),
                ..job.pattern
            },
            files: Files {
                offset: there * spread,
                size: (rest, rest),
                ahead: 0,
                ..job.files
            },
            engine: match is_small {
                true => job.engine,
                false => "psync".to_owned(),
            },
            depth: 1,
            batch_submit: 1,
            direct: false,
            syncing: match is_small {
                true => self.syncing(),
                // Synced here, so that the phase does not pay for it.
                false => Syncing {
                    end_fsync: true,
                    ..Syncing::default()
                },
            },
            buffers: Buffers {
                refill: job.buffers.refill || !is_small,
                ..job.buffers
            },
            pace: Pace {
                loops: 1,
                ..Pace::default()
            },
            errors: Errors::End(ContinueOn::default()),
            ..job
        }
    }

    /// Bytes that are written in one call where a part is laid out.
    fn layout_piece(&self) -> u64 {
        let block = self.block();
        match self.layout {
            Layout::SharedInterleaved => block,
            Layout::PerWorker | Layout::SharedSegmented => (LAYOUT_PIECE / block).max(1) * block,
        }
    }

    fn syncing(&self) -> Syncing {
        Syncing {
            fsync: match self.fsync {
                FsyncRule::Every(writes) => writes,
                FsyncRule::End | FsyncRule::Never | FsyncRule::Close => 0,
            },
            end_fsync: self.fsync.syncs(),
            close: self.fsync == FsyncRule::Close,
            ..Syncing::default()
        }
    }
}

/// Paths of the small files of a worker: in one directory, named like the root of a tree
/// that the worker owns.
pub fn small_paths(prefix: &str, worker: u64, files: u64) -> Paths {
    let forest = Forest {
        shape: Shape::flat(files),
        naming: NATIVE,
        prefixes: vec![prefix.to_owned()],
        numbered: None,
        // Here the trees belong to workers.
        private: Some(Private {
            ahead: 0,
            ranks: u32::MAX,
        }),
    };
    Paths::new(Arc::new(forest), Rank(worker as u32), ItemKind::File)
}

/// The number of worker `thread` of `rank` among all.
pub fn worker_number(rank: Rank, thread: u32, threads: u32) -> u64 {
    u64::from(rank.0) * u64::from(threads) + u64::from(thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::Direction;
    use crate::pattern::{Part, Step, Steps};
    use crate::testing::check_covers;
    use proptest::prelude::*;

    fn plan(layout: Layout, size: u64, block: u64) -> IoPlan {
        let sizes = BlockSizes::Fixed(block);
        IoPlan::new(vec![Rw::Write], sizes, Bytes(size), layout)
    }

    fn random(sizes: BlockSizes, size: u64, distribution: Distribution) -> IoPlan {
        let mut plan = IoPlan::new(vec![Rw::Write], sizes, Bytes(size), Layout::PerWorker);
        plan.job.pattern.distribution = distribution;
        plan
    }

    fn timed(sizes: BlockSizes, size: u64) -> IoPlan {
        let mut plan = random(sizes, size, Distribution::Uniform);
        plan.job.pace.time_based = true;
        plan
    }

    fn steps(plan: &IoPlan, rw: Rw, seed: u64, favourites: u64) -> Steps {
        let job = plan.job_of(rw, [seed, favourites], 0, (0, 1));
        Steps::new(&job, 3, |_| plan.size.0)
    }

    /// Offsets and lengths of one pass.
    fn pass(plan: &IoPlan, rw: Rw, seed: u64) -> Vec<(u64, u64)> {
        steps(plan, rw, seed, 7)
            .map(|step| (step.offset, step.length))
            .collect()
    }

    #[test]
    fn another_phase_has_another_order_of_the_same_blocks() {
        // The last block is shorter.
        let plan = random(BlockSizes::Fixed(512), 512_100, Distribution::Uniform);
        let (first, second) = (pass(&plan, Rw::RandRead, 1), pass(&plan, Rw::RandRead, 2));
        assert_eq!((first.len(), second.len()), (1001, 1001));
        assert_ne!(first, second);
        [first, second]
            .into_iter()
            .for_each(|blocks| check_covers(blocks, 0, 512_100));
    }

    #[test]
    fn a_mix_visits_each_block_once_in_sequence_or_at_random() {
        let plan = random(BlockSizes::Fixed(512), 512_000, Distribution::Uniform);
        for rw in [Rw::Rw, Rw::RandRw] {
            let steps: Vec<_> = steps(&plan, rw, 1, 7).collect();
            assert_eq!(
                steps
                    .iter()
                    .filter(|step| step.direction == Direction::Write)
                    .count(),
                500
            );
            let blocks = steps.iter().map(|step| (step.offset, step.length));
            assert_eq!(blocks.clone().is_sorted(), rw == Rw::Rw);
            check_covers(blocks, 0, 512_000);
        }
    }

    #[test]
    fn a_pass_over_blocks_of_several_sizes_is_as_long_as_it_was() {
        let split = vec![(4096, 90), (1 << 20, 10)];
        let plan = timed(BlockSizes::Split(split), 64 << 20);
        let mut steps = steps(&plan, Rw::RandRead, 1, 7);
        let (mut given, mut bytes) = (0, 0);
        while bytes < 64 << 20 {
            assert_eq!(steps.once(), None);
            bytes += steps.next().expect("time decides").length;
            given += 1;
        }
        assert_eq!(steps.once(), Some(given));
    }

    #[test]
    fn the_favourites_are_the_same_in_every_phase_and_others_in_another_part() {
        let plan = random(BlockSizes::Fixed(512), 512_000, Distribution::Zipf(2.0));
        let favourite = |seed: u64, favourites: u64| {
            let mut hits = std::collections::BTreeMap::new();
            for step in steps(&plan, Rw::RandRead, seed, favourites) {
                *hits.entry(step.offset).or_insert(0) += 1;
            }
            hits.into_iter().max_by_key(|(_, n)| *n).expect("drawn")
        };
        assert_ne!(pass(&plan, Rw::RandRead, 1), pass(&plan, Rw::RandRead, 2));
        assert_eq!(favourite(1, 7).0, favourite(2, 7).0);
        assert_ne!(favourite(1, 7).0, favourite(1, 8).0);
    }

    #[test]
    fn skewed_blocks_of_several_sizes_begin_on_the_smallest_and_stay_inside() {
        const KIB: u64 = 1024;
        let size = 1000 * KIB;
        let split = vec![(4 * KIB, 60), (8 * KIB, 30), (64 * KIB, 10)];
        let plan = random(BlockSizes::Split(split), size, Distribution::Zipf(1.2));
        let blocks = pass(&plan, Rw::RandRead, 1);
        assert_eq!(blocks.iter().map(|(_, length)| length).sum::<u64>(), size);
        for (start, length) in blocks {
            assert!(start.is_multiple_of(4 * KIB) && start + length <= size);
        }
    }

    proptest! {
        #[test]
        fn passes_of_mixed_sizes_cover_the_part_without_overlap(
            least in 1_u64..5000, factor in 1_u64..9, extra in 0_u64..2_000_000, shuffled: bool, range: bool,
        ) {
            let most = least * factor + 3;
            let sizes = if range {
                BlockSizes::Range { min: least, max: most }
            } else {
                BlockSizes::Split(vec![(least, 70), (most, 30)])
            };
            let size = most + extra;
            let plan = timed(sizes, size);
            let rw = if shuffled { Rw::RandRead } else { Rw::Read };
            let mut steps = steps(&plan, rw, 1, 7);
            prop_assert!(steps.covers());
            for _ in 0..2 {
                let mut blocks = Vec::new();
                for step in steps.by_ref() {
                    blocks.push((step.offset, step.length));
                    if step.ends_pass {
                        break;
                    }
                }
                check_covers(blocks, 0, size);
            }
        }

        #[test]
        fn the_workers_blocks_cover_the_shared_file_without_overlap(
            workers in 1_u64..9, blocks in 1_u64..40, interleaved: bool,
        ) {
            let layout = if interleaved { Layout::SharedInterleaved } else { Layout::SharedSegmented };
            let job = plan(layout, blocks * 512, 512).job_of(Rw::Write, [0; 2], 0, (0, 1));
            let of = |worker| Part { worker, owner: worker, workers };
            let mut offsets: Vec<u64> = (0..workers)
                .flat_map(|w| Steps::of(&job, of(w), |_| blocks * 512))
                .map(|step| step.offset)
                .collect();
            offsets.sort_unstable();
            prop_assert_eq!(offsets, (0..workers * blocks).map(|i| i * 512).collect::<Vec<_>>());
        }

        #[test]
        fn a_shared_file_has_one_length_for_all_workers(
            workers in 1_u64..9, size in 1_u64..1000, shape in 1_usize..3,
        ) {
            let layouts = [Layout::PerWorker, Layout::SharedSegmented, Layout::SharedInterleaved];
            let job = plan(layouts[shape], size * 512, 512).job_of(Rw::Write, [0; 2], 0, (0, 1));
            for owner in 0..workers {
                let part = Part { worker: owner, owner, workers };
                prop_assert_eq!(job.files.end(part, size * 512), workers * size * 512);
            }
        }

        #[test]
        fn what_is_laid_out_is_what_was_not_there(
            workers in 1_u64..9, blocks in 1_u64..5000, there in 0_u64..5000, shape in 0_usize..3,
        ) {
            let layouts = [Layout::PerWorker, Layout::SharedSegmented, Layout::SharedInterleaved];
            let (layout, size) = (layouts[shape], blocks * 512);
            let existing = there % blocks * 512;
            let plan = plan(layout, size, 512);
            let round = plan.rounds(1, 0, (0, workers as u32), 1).remove(0);
            let job = plan.layout(&round.job, existing, workers);
            for owner in 0..workers {
                let part = Part { worker: owner, owner, workers };
                let written = Steps::of(&job, part, |_| job.files.size.0);
                let blocks = |step: Step| {
                    (step.offset..step.offset + step.length).step_by(512)
                };
                let written: Vec<u64> = written.flat_map(blocks).collect();
                let offset_of = |nth| layout.offset(nth * 512, (owner, workers), size, 512);
                let lacking: Vec<u64> = (existing / 512..size / 512).map(offset_of).collect();
                prop_assert_eq!(written, lacking);
            }
        }
    }
}
