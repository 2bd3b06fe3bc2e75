//! The sequence of a job's operations for one worker: direction, file, offset and length
//! of each.
//!
//! [`Steps`] depends only on the job and on the worker. So the same seed gives the same
//! operations on any number of threads or ranks, and a verification generates them again
//! instead of storing them. A step allocates nothing.
//!
//! Random offsets that cover a file without hitting a block twice need no bitmap:
//!
//! - blocks of one size are visited in the order of a keyed
//!   [`Permutation`](crate::permutation::Permutation);
//! - mixed sizes (`bsrange`, `bssplit`): a keyed draw cuts the file into blocks of these
//!   sizes, group by group (`tiles`). Each round visits one block of every group, with
//!   groups and blocks in keyed orders;
//! - if reads and writes of a mix have different sizes, each direction covers the file
//!   separately;
//! - blocks may repeat or be left out with a `blockalign` other than the smallest block.
//!   The same is true for a `percentage_random` below 100 and for any distribution except
//!   uniform;
//! - of runs (`rw=randread:8`), each starts at a block where none has started. In a zone
//!   (`zonemode=strided`) each block is visited once before any is repeated.
//!
//! If a job trims and writes, each range is trimmed and then written: in one piece if ranges are
//! random or if both directions have the same sizes, otherwise in blocks of the size of writes.

use rbench_core::random::{Stream, key};

use crate::jobs::{
    BlockSizes, Course, Direction, Distribution, Each, Favourites, FileService, JobPlan, Sequel,
};

mod budget;
pub(crate) mod draw;
mod files;
mod parts;
mod place;
#[cfg(test)]
mod tests;
pub(crate) mod tiles;
mod zones;

pub use files::{file_path, file_size, shares_files};

use budget::Budget;
use draw::Choice;
use place::Active;

/// One operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Its direction.
    pub direction: Direction,
    /// Number of the file among the worker's, from 0.
    pub file: u64,
    /// Its offset in the file in bytes.
    pub offset: u64,
    /// Its length in bytes.
    pub length: u64,
    /// True if it completes the file in this pass.
    pub ends_file: bool,
    /// True if it is the last operation of a pass over the work (`loops`).
    pub ends_pass: bool,
}

/// Purposes of a worker's random streams.
const STREAM_CHOICES: u64 = 1;
const STREAM_MIX: u64 = 2;
const STREAM_ORDER: u64 = 3;
const STREAM_SCATTER: u64 = 4;
const STREAM_SIZE: u64 = 5;

/// Order of a direction's offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Walk {
    /// Sequential.
    Ascending,
    /// Random, each block once.
    Cover,
    /// Random for this percentage of the operations; the others continue where the last
    /// one ended.
    Free(u32),
    /// Random now and then, each time at another block.
    Picks,
    /// One zone after the other.
    Zones,
    /// The whole file at once: operations on names.
    Whole,
}

/// Rule for the direction of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turns {
    /// This direction only.
    Only(Direction),
    /// Reads and writes; the percentage of reads.
    Mix(u32),
    /// Trims each range, and then writes it.
    TrimThenWrite,
}

/// Rules that do not change while a worker runs.
#[derive(Debug, Clone)]
struct Rules {
    turns: Turns,
    sizes: Each<BlockSizes>,
    walk: Each<Walk>,
    align: Each<u64>,
    /// True if reads and writes share one cover.
    together: bool,
    /// Smallest block; lengths of regions are multiples of it.
    unit: u64,
    seed: u64,
    worker: u64,
    favourites: u64,
    /// See [`crate::jobs::Pattern::one_position`].
    one_position: bool,
    course: Course,
    /// True if offsets are random.
    random: bool,
    /// True if a trimmed range is written in one piece.
    whole: bool,
    /// Start of the worker's part in each file.
    start: u64,
    /// Start of the worker's part for each file, if not the same in all.
    starts: Box<[u64]>,
    /// Length of a worker's own pieces, and of the others' between two of them, if pieces
    /// of all workers alternate.
    gap: Option<(u64, u64)>,
}

/// Lengths of the job's part of each file.
#[derive(Debug, Clone)]
enum Regions {
    Same(u64, u64),
    Each(Vec<u64>),
}

impl Regions {
    fn count(&self) -> u64 {
        match self {
            Regions::Same(_, count) => *count,
            Regions::Each(all) => all.len() as u64,
        }
    }

    fn of(&self, file: u64) -> u64 {
        match self {
            Regions::Same(length, _) => *length,
            Regions::Each(all) => all[file as usize],
        }
    }

    /// Bytes that a pass moves.
    fn total(&self, rules: &Rules) -> u64 {
        match self {
            Regions::Same(length, count) => rules.moves(*length).saturating_mul(*count),
            Regions::Each(all) => all.iter().map(|length| rules.moves(*length)).sum(),
        }
    }
}

/// Identity of a worker in its job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// Its number; its random draws derive from the pattern's seed and this.
    pub worker: u64,
    /// The worker whose files, or part of a shared file, it uses.
    pub owner: u64,
    /// Number of workers of the job.
    pub workers: u64,
}

/// The operations of one worker.
#[derive(Debug, Clone)]
pub struct Steps {
    rules: Rules,
    service: FileService,
    regions: Regions,
    /// Total bytes of the regions.
    total: u64,
    /// True if any region has a rest that is shorter than a block, and a pass visits all
    /// other blocks.
    rest: bool,
    drawing: Drawing,
    budget: Budget,
    /// Most bytes and operations of this pass.
    pass_bytes_max: u64,
    pass_ios_max: u64,
    /// True if a pass ends with its files.
    all_of_files: bool,
    /// Files in current use; `done` of them are complete.
    active: Vec<Active>,
    done: usize,
    /// Most files in use at once.
    window: usize,
    /// The next file to become active.
    next_file: u64,
    /// Index in `active` of the file in use, and operations on it until now.
    current: usize,
    on_current: u64,
    /// Number of rounds over the files until now: random orders differ.
    round: u64,
    /// Number of completed passes, and progress of this one.
    pass: u64,
    pass_bytes: u64,
    pass_ios: u64,
    /// Bytes and operations of the previous passes.
    bytes_before: u64,
    issued_before: u64,
    /// Operations of the first pass, after its end.
    first_pass: Option<u64>,
    /// True if a pass visits each block once.
    covers: bool,
    /// Directions of each hundred operations of a mix.
    mixer: place::Mixer,
}

/// Random state for offsets.
#[derive(Debug, Clone)]
struct Drawing {
    choice: Choice,
    stream: Stream,
    /// Offsets of the blocks of one group.
    scratch: Vec<u64>,
    /// Remaining operations of the run.
    run_left: u64,
}

impl Steps {
    /// Creates the operations of the worker `jobnum` of `job`. `region` returns the length
    /// in bytes of the job's part of each of its files, from the offset in
    /// [`JobPlan::files`] on.
    pub fn new(job: &JobPlan, jobnum: u64, region: impl Fn(u64) -> u64) -> Steps {
        let part = Part {
            worker: jobnum,
            owner: jobnum,
            workers: 1,
        };
        Steps::of(job, part, region)
    }

    /// Creates the operations of a worker that may use the files of another one.
    pub fn of(job: &JobPlan, part: Part, region: impl Fn(u64) -> u64) -> Steps {
        let (files, pace) = (&job.files, &job.pace);
        let rules = Rules::new(job, part);
        let count = files.count;
        // A range that is trimmed and written counts in both directions, like in fio.
        let both = match rules.turns {
            Turns::TrimThenWrite => 2,
            Turns::Only(_) | Turns::Mix(_) => 1,
        };
        let share = |percent: u32| {
            let all: u128 = (0..count).map(|file| u128::from(region(file))).sum();
            (all * u128::from(percent) / 100) as u64
        };
        let bytes = pace.io_size.or_else(|| pace.io_share.map(share));
        let ios = pace.number_ios.unwrap_or(u64::MAX).saturating_mul(both);
        // A special course visits whole blocks only.
        let cut = |length: u64| match job.pattern.rest || !rules.course.is_plain() {
            true => length,
            false => length - length % rules.unit,
        };
        let first = cut(if count == 0 { 0 } else { region(0) });
        let regions = if (1..count).all(|file| cut(region(file)) == first) {
            Regions::Same(first, count)
        } else {
            Regions::Each((0..count).map(|file| cut(region(file))).collect())
        };
        let window = files.window();
        let pattern = &job.pattern;
        let total = regions.total(&rules).saturating_mul(both);
        // Random blocks that may repeat leave no rest: like in fio, they move at least as much.
        let repeats = pattern.repeats && pattern.directions.random && rules.course.is_plain();
        let moved = match repeats {
            true => total.max(share(100).saturating_mul(both)),
            false => total,
        };
        let budget = Budget::new(
            job,
            moved,
            bytes.map(|bytes| bytes.saturating_mul(both)),
            ios,
        );
        Steps {
            drawing: Drawing {
                choice: Choice::new(&pattern.distribution, rules.course.sequence_moves_on),
                stream: Stream::new(&[rules.seed, rules.worker, STREAM_CHOICES]),
                scratch: rules.scratch(),
                run_left: match pattern.course.sequel {
                    Sequel::Run { length: 0, .. } => u64::MAX,
                    _ => 0,
                },
            },
            service: files.service,
            active: Vec::with_capacity(window as usize),
            done: 0,
            window: window as usize,
            next_file: 0,
            current: 0,
            on_current: 0,
            round: 0,
            pass: 0,
            pass_bytes: 0,
            pass_ios: 0,
            bytes_before: 0,
            issued_before: 0,
            first_pass: None,
            covers: pattern.course.is_plain()
                && (!pattern.directions.random
                    || pattern.distribution == Distribution::Uniform && !pattern.repeats),
            mixer: place::Mixer::new(rules.seed, rules.worker),
            pass_bytes_max: budget.pass.min(budget.all),
            pass_ios_max: budget.ios,
            all_of_files: bytes.is_none(),
            total,
            rest: bytes.is_none()
                && !repeats
                && pace.number_ios.is_none()
                && (0..count).any(|file| cut(region(file)) < region(file)),
            rules,
            regions,
            budget,
        }
    }

    /// Moves the parts to these offsets in the files, in order.
    pub fn beginning_at(mut self, starts: Vec<u64>) -> Steps {
        self.rules.starts = match starts.iter().all(|start| *start == self.rules.start) {
            true => Box::default(),
            false => starts.into(),
        };
        self
    }

    /// Number of operations until the end, as far as it is known; estimated for mixed
    /// sizes. `None` if time decides.
    pub fn expected(&self) -> Option<u64> {
        if self.budget.passes == u64::MAX {
            return None;
        }
        let rules = &self.rules;
        let mean = match rules.turns {
            Turns::Mix(percent) => {
                let reads = f64::from(percent) / 100.0;
                reads * mean(&rules.sizes.read) + (1.0 - reads) * mean(&rules.sizes.write)
            }
            _ => rules.mean(),
        };
        let operations = |bytes: u64| (bytes as f64 / mean.max(1.0)).ceil() as u64;
        let each = match self.is_of_names() {
            true => (u128::from(self.budget.pass) * u128::from(self.regions.count()))
                .div_ceil(u128::from(self.total.max(1))) as u64,
            false => operations(self.budget.pass),
        };
        let left = self.budget.passes.saturating_sub(self.pass);
        let most = operations(self.budget.all.saturating_sub(self.bytes_before));
        let most = most.min(self.budget.all_ios.saturating_sub(self.issued_before));
        Some(each.min(self.budget.ios).saturating_mul(left).min(most))
    }

    /// Number of operations after which everything was visited and the same order starts
    /// again. `None` if there is only one pass, or if blocks may repeat at any time. For
    /// mixed sizes, `None` until the first pass is over. It is an estimate if a pass of
    /// mixed sizes visits blocks more than once (`io_size`).
    pub fn once(&self) -> Option<u64> {
        let rules = &self.rules;
        if self.is_of_names() {
            let again = self.budget.passes > 1 || self.revisits();
            return again.then(|| self.regions.count().min(self.budget.ios));
        }
        if !self.covers || self.budget.passes < 2 && !self.revisits() {
            return None;
        }
        let mixed = |sizes: &BlockSizes| !matches!(sizes, BlockSizes::Fixed(_));
        let mixed = rules.sizes.all().into_iter().any(mixed);
        if mixed && !self.revisits() {
            return self.first_pass;
        }
        let bytes = self.budget.pass.min(self.total);
        let each = (bytes as f64 / rules.mean().max(1.0)).ceil() as u64;
        Some(each.min(self.budget.ios))
    }

    /// True if each operation covers a whole file.
    fn is_of_names(&self) -> bool {
        matches!(self.rules.walk.read, Walk::Whole)
    }

    /// True if a pass visits every block exactly once.
    pub fn covers(&self) -> bool {
        self.covers
    }

    /// True if a pass is longer than the files (`io_size`): it visits blocks again.
    pub fn revisits(&self) -> bool {
        self.budget.pass > self.total
    }

    /// Total bytes of all parts of files.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// True if a pass omits the end of a file, because it is shorter than a block.
    pub fn leaves_rest(&self) -> bool {
        self.rest
    }

    /// True if any file has room for a block.
    pub fn has_work(&self) -> bool {
        self.total > 0
    }

    /// Bytes of all operations until now.
    pub fn bytes(&self) -> u64 {
        self.bytes_before + self.pass_bytes
    }

    /// True if there are no more passes.
    pub fn is_over(&self) -> bool {
        self.pass >= self.budget.passes || self.total == 0
    }

    /// The largest operation that moves data in bytes.
    pub fn length_max(job: &JobPlan) -> u64 {
        let Each { read, write, trim } = &job.pattern.sizes;
        let directions = job.pattern.directions;
        let of = |wanted: bool, sizes| if wanted { largest(sizes) } else { 0 };
        let writes_trims = directions.write && directions.trim && directions.random;
        of(directions.read, read)
            .max(of(directions.write, write))
            .max(of(writes_trims, trim))
    }

    /// The next file with work, if this round has one left.
    fn next_active(&mut self) -> Option<Active> {
        while self.next_file < self.regions.count() {
            let file = self.next_file;
            self.next_file += 1;
            let region = self.regions.of(file);
            if self.rules.moves(region) > 0 {
                return Some(Active::new(&self.rules, file, region, self.round));
            }
        }
        None
    }

    /// Starts a round over the files.
    fn begin_round(&mut self) {
        if self.next_file >= self.regions.count() {
            self.next_file = 0;
            self.round += 1;
        }
        self.active.clear();
        (self.done, self.current, self.on_current) = (0, 0, 0);
        while self.active.len() < self.window {
            match self.next_active() {
                Some(active) => self.active.push(active),
                None => break,
            }
        }
    }

    /// Chooses the file of the next operation if there is not exactly one. Returns false
    /// if there is no more work.
    #[inline(never)]
    fn choose_file(&mut self) -> bool {
        if self.pass >= self.budget.passes || self.total == 0 {
            return false;
        }
        if self.active.is_empty() {
            self.begin_round();
        }
        // A single file leaves no choice.
        match self.active.len() {
            1 => self.current = 0,
            _ => self.turn(),
        }
        true
    }

    /// Chooses among several files.
    fn turn(&mut self) {
        let all = self.active.len();
        let through = self.active[self.current].is_done();
        let due = |each: u64| through || self.on_current >= each.max(1);
        match self.service {
            FileService::Random(each) if due(each) || self.on_current == 0 => loop {
                self.current = self.drawing.stream.below(all as u64) as usize;
                self.on_current = 0;
                if !self.active[self.current].is_done() {
                    break;
                }
            },
            FileService::RoundRobin(each) if due(each) => self.advance(),
            FileService::Sequential if through => self.advance(),
            _ => {}
        }
        self.on_current = self.on_current.saturating_add(1);
    }

    fn advance(&mut self) {
        let active = &self.active[..];
        loop {
            // A remainder would take longer than all else here.
            let next = self.current + 1;
            self.current = if next < active.len() { next } else { 0 };
            if !active[self.current].is_done() {
                break;
            }
        }
        self.on_current = 0;
    }

    /// Replaces a complete file in the rotation by another. Without one it is skipped,
    /// until half of the files are complete.
    #[cold]
    fn retire(&mut self) {
        if let Some(next) = self.next_active() {
            self.active[self.current] = next;
            // The turn goes to the next file, unless there is only one.
            self.on_current = u64::MAX;
            return;
        }
        self.done += 1;
        if self.done * 2 > self.active.len() {
            let alive = |active: &&Active| !active.is_done();
            let before = self.active[..self.current].iter().filter(alive).count();
            self.active.retain(|active| !active.is_done());
            self.done = 0;
            // Continues as if the last one before it had just been used.
            self.current = match (before, self.active.len()) {
                (_, 0) => 0,
                (0, all) => all - 1,
                (n, _) => n - 1,
            };
            self.on_current = u64::MAX;
        }
    }

    /// True if gaps have left less work than planned. Every file is then at its end, and
    /// so is the pass, like in fio without `io_size`.
    fn is_short_of_room(&self) -> bool {
        matches!(self.rules.course.sequel, Sequel::Skip(_))
            && self.all_of_files
            && self.next_file >= self.regions.count()
            && self.active.iter().all(Active::is_done)
    }

    /// Ends a pass.
    #[cold]
    fn end_pass(&mut self) {
        self.pass += 1;
        self.issued_before += self.pass_ios;
        self.bytes_before = self.bytes_before.saturating_add(self.pass_bytes);
        let left = self.budget.all.saturating_sub(self.bytes_before);
        self.pass_bytes_max = self.budget.pass.min(left);
        let ios_left = self.budget.all_ios.saturating_sub(self.issued_before);
        self.pass_ios_max = self.budget.ios.min(ios_left);
        if left == 0 || ios_left == 0 {
            self.budget.passes = self.pass;
        }
        self.first_pass.get_or_insert(self.pass_ios);
        (self.pass_bytes, self.pass_ios) = (0, 0);
        self.active.clear();
        self.next_file = self.regions.count();
    }
}

impl Steps {
    /// The next step. In a mix of reads and writes it has the direction `asked`, if given and not
    /// excluded by the percentage: rates decide then.
    #[inline(always)]
    pub fn next_as(&mut self, asked: Option<Direction>) -> Option<Step> {
        if self.active.len() != 1 && !self.choose_file() {
            return None;
        }
        let direction = match (self.rules.turns, asked) {
            (Turns::Only(direction), _) => Some(direction),
            (Turns::Mix(1..=99), Some(asked)) => Some(asked),
            (Turns::Mix(reads), _) => {
                Some(self.mixer.next(self.issued_before + self.pass_ios, reads))
            }
            (Turns::TrimThenWrite, _) => None,
        };
        let active = self.active.get_mut(self.current)?;
        let mut step = match direction {
            Some(direction) => active.step(&self.rules, direction, &mut self.drawing),
            None => active.trim_or_write(&self.rules, &mut self.drawing),
        };
        self.pass_bytes += step.length;
        self.pass_ios += 1;
        let mut over = false;
        if step.ends_file {
            self.retire();
            over = self.is_short_of_room();
        }
        if (self.pass_bytes >= self.pass_bytes_max || self.pass_ios >= self.pass_ios_max || over)
            && !self.owes_a_write(&step)
        {
            step.ends_pass = true;
            self.end_pass();
        }
        Some(step)
    }

    /// True if a trimmed range of the file of this step must still be written.
    #[cold]
    fn owes_a_write(&self, step: &Step) -> bool {
        let active = self.active.get(self.current);
        !step.ends_file && active.is_some_and(Active::owes_a_write)
    }
}

impl Iterator for Steps {
    type Item = Step;

    #[inline(always)]
    fn next(&mut self) -> Option<Step> {
        self.next_as(None)
    }
}

impl Rules {
    fn new(job: &JobPlan, part: Part) -> Rules {
        let (pattern, files) = (&job.pattern, &job.files);
        let directions = pattern.directions;
        let turns = match (directions.read, directions.write, directions.trim) {
            (_, true, true) => Turns::TrimThenWrite,
            (true, true, false) => Turns::Mix(pattern.mix_read),
            (_, _, true) => Turns::Only(Direction::Trim),
            (false, true, _) => Turns::Only(Direction::Write),
            (_, false, false) => Turns::Only(Direction::Read),
        };
        let Each { read, write, trim } = &pattern.sizes;
        let unit = match turns {
            Turns::Only(direction) => smallest(pattern.sizes.of(direction)),
            Turns::Mix(_) => smallest(read).min(smallest(write)),
            Turns::TrimThenWrite => smallest(trim),
        }
        .max(1);
        let align = |given: u64, sizes| if given == 0 { smallest(sizes) } else { given };
        let align = Each {
            read: align(pattern.align.read, read),
            write: align(pattern.align.write, write),
            trim: align(pattern.align.trim, trim),
        };
        let course = pattern.course;
        let walk = |percent: u32, align: u64, sizes: &BlockSizes| {
            let even = pattern.distribution == Distribution::Uniform && align == smallest(sizes);
            let covers = !pattern.repeats && even;
            let picks = course.covers && even && matches!(sizes, BlockSizes::Fixed(_));
            let runs = matches!(course.sequel, Sequel::Run { .. });
            match (directions.random, percent) {
                _ if job.names.is_some() => Walk::Whole,
                _ if course.zones.is_some() => Walk::Zones,
                (false, _) | (_, 0) => Walk::Ascending,
                (true, 100) if runs && picks => Walk::Picks,
                (true, 100) if covers && !runs && !course.sizes_by_order => Walk::Cover,
                _ => Walk::Free(percent),
            }
        };
        Rules {
            turns,
            walk: Each {
                read: walk(pattern.random_percent.read, align.read, read),
                write: walk(pattern.random_percent.write, align.write, write),
                trim: walk(pattern.random_percent.trim, align.trim, trim),
            },
            together: read == write,
            sizes: pattern.sizes.clone(),
            align,
            unit,
            seed: pattern.seed,
            worker: part.worker,
            favourites: match pattern.favourites {
                Favourites::Same(seed) => seed,
                Favourites::OfPart(seed) => key(&[seed, part.owner]),
            },
            one_position: pattern.one_position,
            course,
            random: directions.random,
            whole: directions.random || write == trim,
            start: files.start(part.owner) + part.owner * files.interleave,
            starts: Box::default(),
            gap: match files.interleave {
                0 => None,
                piece => Some((piece, piece * part.workers.saturating_sub(1))),
            },
        }
    }

    /// The offset in a file of the byte at `offset` in the worker's part.
    #[inline(always)]
    fn spread(&self, offset: u64) -> u64 {
        match self.gap {
            None => offset,
            Some((piece, gap)) => offset + offset / piece * gap,
        }
    }

    /// The start of the worker's part of a file.
    fn start_in(&self, file: u64) -> u64 {
        self.starts.get(file as usize).map_or(self.start, |at| *at)
    }

    /// Average bytes of an operation, with equal numbers of reads and writes.
    fn mean(&self) -> f64 {
        let Each { read, write, trim } = &self.sizes;
        match self.turns {
            Turns::Only(direction) => mean(self.sizes.of(direction)),
            Turns::Mix(_) => (mean(read) + mean(write)) / 2.0,
            Turns::TrimThenWrite if self.whole => mean(trim),
            // Both directions move equal numbers of bytes.
            Turns::TrimThenWrite => {
                let (trim, write) = (mean(trim).max(1.0), mean(write).max(1.0));
                2.0 / (1.0 / trim + 1.0 / write.min(trim))
            }
        }
    }

    /// Bytes that a pass moves in a part of this length.
    fn moves(&self, region: u64) -> u64 {
        match self.course.is_plain() {
            true => region,
            false => region - region % self.unit,
        }
    }

    /// Room for the offsets of a group of tiles.
    fn scratch(&self) -> Vec<u64> {
        let room = |walk: Walk, sizes: &BlockSizes| match (walk, sizes) {
            (Walk::Cover, BlockSizes::Fixed(_)) => 0,
            (Walk::Cover, sizes) => tiles::most(sizes),
            (Walk::Ascending | Walk::Free(_) | Walk::Picks | Walk::Zones | Walk::Whole, _) => 0,
        };
        let most = Direction::ALL
            .map(|direction| room(*self.walk.of(direction), self.sizes.of(direction)));
        Vec::with_capacity(most.into_iter().max().unwrap_or(0) as usize)
    }
}

/// The smallest block.
pub fn smallest(sizes: &BlockSizes) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        BlockSizes::Range { min, .. } | BlockSizes::Unaligned { min, .. } => *min,
        BlockSizes::Split(parts) => parts.iter().map(|(bytes, _)| *bytes).min().unwrap_or(0),
    }
}

/// The largest block.
pub fn largest(sizes: &BlockSizes) -> u64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes,
        BlockSizes::Range { max, .. } | BlockSizes::Unaligned { max, .. } => *max,
        BlockSizes::Split(parts) => parts.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
    }
}

/// The mean block in bytes.
pub(crate) fn mean(sizes: &BlockSizes) -> f64 {
    match sizes {
        BlockSizes::Fixed(bytes) => *bytes as f64,
        BlockSizes::Range { min, max } => {
            let steps = max / (*min).max(1);
            *min as f64 * (steps as f64 + 1.0) / 2.0
        }
        BlockSizes::Unaligned { min, max } => (*min as f64 + *max as f64) / 2.0,
        BlockSizes::Split(parts) => {
            let weight: u32 = parts.iter().map(|(_, percent)| percent).sum();
            let sum: f64 = parts
                .iter()
                .map(|(bytes, percent)| *bytes as f64 * f64::from(*percent))
                .sum();
            sum / f64::from(weight.max(1))
        }
    }
}
