//! Defaults and checks of `rbench io`.

use std::path::PathBuf;

use rbench_core::operations::NameEngine;
use rbench_core::steady::SteadyRule;
use rbench_core::timeline::INTERVAL;
use rbench_core::{Bytes, Nanos};

use super::{Facts, PlanError, blocks, nonzero_time, open_loop};
use crate::io::{FsyncRule, IoPlan, Layout, Rw, SMALL_FILE_MAX, SmallFiles, VERIFY_BLOCK_MIN};
use crate::jobs::{BlockSizes, Buffers, Distribution, JobPlan, Pace, Pattern, Verify};
use crate::pattern;
use crate::spec;

/// The largest block: Linux limits a read or write call to just below 2 GiB.
const BLOCK_MAX: Bytes = Bytes(1 << 30);

/// Block size without an option, where the file is not smaller.
const BLOCK: u64 = 128 << 10;

/// The options that give block sizes.
const OPTIONS: blocks::Options = blocks::Options {
    split: "--bs-split",
    range: "--bs-range",
    fixed: "--bs",
};

/// `interval`: of the timelines; `threads`: of each rank.
pub(super) fn resolve(
    io: &spec::Io,
    interval: Nanos,
    facts: &Facts,
    threads: u32,
) -> Result<IoPlan, PlanError> {
    let small = small_files(io)?;
    let default_size = small.map_or(Bytes(256 << 20), |s| s.size);
    let size = match (io.size, io.total_size) {
        (Some(_), Some(_)) => refuse!("--size and --total-size cannot be combined"),
        (None, Some(total)) => Some(part(io, total, (facts.ranks(), threads))?),
        (size, None) => size,
    };
    if small.is_some() && size.is_some() {
        refuse!("--size and --files cannot be combined: the size is --files times --file-size");
    }
    let size = size.unwrap_or(default_size);
    let blocks = Blocks::new(io, size)?;
    check_blocks(&blocks, size, small, io)?;
    let phases = io.rw.clone().unwrap_or_else(|| vec![Rw::Write, Rw::Read]);
    refuse_if! {
        phases.is_empty() => "--rw needs at least one of {}", Rw::ALL.map(Rw::name).join(", ");
    }
    let mixes = phases.iter().any(|rw| rw.reads() && rw.writes());
    refuse_if!(io.mix.is_some() && !mixes => "--mix needs --rw rw or randrw");
    let mix_read = percentage("--mix", io.mix.unwrap_or(50))?;
    let layout = io_layout(io, size, &blocks)?;
    let (engine, depth) = engine_and_depth(io, facts)?;
    check_small(small, layout, depth, mixes, &engine)?;
    check_verify(io, &blocks, size, mixes, &engine)?;
    refuse_if! {
        io.direct && engine == "mmap" =>
            "--direct and --engine mmap cannot be combined: mappings go through the page cache";
    }
    let verify_threads = verify_threads(io, small, depth, &engine)?;
    let distribution = distribution(io, small, &phases)?;
    let fsync = fsync_rule(io, &phases)?;
    let runtime = nonzero_time("--time", io.time)?;
    let (ramp, steady, think) = (ramp(io, small)?, steady(io, interval)?, think(io, small)?);
    let together = open_loop(io.rate, io.arrival)?;
    let ack_journal = ack_journal(io, &phases)?;
    let plan = IoPlan::new(phases, blocks.sizes, size, layout);
    Ok(IoPlan {
        fsync,
        ack_journal,
        job: JobPlan {
            small,
            engine,
            depth,
            // As many as fit.
            batch_submit: depth,
            direct: io.direct,
            buffers: buffers(io)?,
            verify: io.verify.then(|| Verify {
                threads: verify_threads,
                ..Verify::stamped(blocks.least.0)
            }),
            pattern: Pattern {
                mix_read,
                distribution,
                ..plan.job.pattern
            },
            pace: Pace {
                runtime,
                time_based: runtime.is_some(),
                ramp,
                steady,
                think,
                together,
                ..plan.job.pace
            },
            ..plan.job
        },
        ..plan
    })
}

/// Each worker's part of all bytes: whole blocks, where it has room for one.
fn part(io: &spec::Io, total: Bytes, (ranks, threads): (u32, u32)) -> Result<Bytes, PlanError> {
    let workers = u64::from(ranks) * u64::from(threads);
    let each = total.0 / workers.max(1);
    let block = io.block.map_or(BLOCK, |block| block.0).max(1);
    let part = match each >= block {
        true => each - each % block,
        false if io.block.is_none() => each,
        false => 0,
    };
    refuse_if! {
        part == 0 =>
            "--total-size {total} leaves each of {workers} workers {}: less than a block", Bytes(each);
    }
    Ok(Bytes(part))
}

/// Most threads that check for one worker.
const VERIFY_THREADS_MAX: u32 = 64;

/// Engines that can give away a buffer while its block is verified.
const LENDING: [&str; 6] = ["psync", "sync", "vsync", "pvsync", "pvsync2", "splice"];

fn verify_threads(
    io: &spec::Io,
    small: Option<SmallFiles>,
    depth: u32,
    engine: &str,
) -> Result<u32, PlanError> {
    let threads = io.verify_threads.unwrap_or(0);
    if threads == 0 {
        return Ok(0);
    }
    refuse_if! {
        threads > VERIFY_THREADS_MAX =>
            "--verify-threads {threads} is more than {VERIFY_THREADS_MAX}";
        !io.verify => "--verify-threads needs --verify";
        small.is_some() =>
            "--verify-threads and --files cannot be combined: small files are checked by their worker";
        depth > 1 || !LENDING.contains(&engine) =>
            "--verify-threads needs --depth 1 and one of the engines {}: others cannot hand over their \
             buffers", LENDING.join(", ");
    }
    Ok(threads)
}

fn percentage(flag: &str, value: u32) -> Result<u32, PlanError> {
    refuse_if!(value > 100 => "{flag} {value} is not a percentage");
    Ok(value)
}

fn small_files(io: &spec::Io) -> Result<Option<SmallFiles>, PlanError> {
    match (io.files, io.file_size) {
        (None, None) => Ok(None),
        (Some(0), _) => refuse!("--files must be at least 1"),
        (_, Some(Bytes(0))) => refuse!("--file-size must be at least 1"),
        (Some(_), Some(size)) if size > SMALL_FILE_MAX => {
            refuse!("--file-size {size} is more than {SMALL_FILE_MAX}: use --size for large files")
        }
        (Some(files), Some(size)) => Ok(Some(SmallFiles { files, size })),
        (Some(_), None) => refuse!("--files needs --file-size"),
        (None, Some(_)) => refuse!("--file-size needs --files"),
    }
}

/// Block sizes, and the name of their option.
struct Blocks {
    sizes: BlockSizes,
    least: Bytes,
    most: Bytes,
    flag: &'static str,
}

impl Blocks {
    fn new(io: &spec::Io, size: Bytes) -> Result<Blocks, PlanError> {
        let given = [
            (OPTIONS.fixed, io.block.is_some()),
            (OPTIONS.range, io.block_range.is_some()),
            (OPTIONS.split, io.block_split.is_some()),
        ];
        let flags: Vec<&'static str> = given
            .into_iter()
            .filter_map(|(flag, given)| given.then_some(flag))
            .collect();
        if let [one, other, ..] = flags.as_slice() {
            refuse!("{one} and {other} cannot be combined");
        }
        let fixed = io.block.unwrap_or(Bytes(BLOCK.min(size.0)));
        let sizes = OPTIONS.sizes(io.block_split.as_deref(), io.block_range, fixed.0)?;
        Ok(Blocks {
            least: Bytes(pattern::smallest(&sizes)),
            most: Bytes(pattern::largest(&sizes)),
            sizes,
            flag: flags.first().copied().unwrap_or(OPTIONS.fixed),
        })
    }

    fn mixed(&self) -> bool {
        !matches!(self.sizes, BlockSizes::Fixed(_))
    }

    /// True if `holds` for every size. A range consists of the multiples of its
    /// least.
    fn all(&self, holds: impl Fn(u64) -> bool) -> bool {
        match &self.sizes {
            BlockSizes::Fixed(_) | BlockSizes::Range { .. } => holds(self.least.0),
            BlockSizes::Unaligned { .. } => false,
            BlockSizes::Split(parts) => parts.iter().all(|(bytes, _)| holds(*bytes)),
        }
    }
}

fn check_blocks(
    blocks: &Blocks,
    size: Bytes,
    small: Option<SmallFiles>,
    io: &spec::Io,
) -> Result<(), PlanError> {
    let Blocks { most, flag, .. } = blocks;
    refuse_if!(*most > BLOCK_MAX => "{flag} {most} is more than {BLOCK_MAX}");
    if *most > size {
        let of = if small.is_some() {
            "--file-size"
        } else {
            "--size"
        };
        refuse!("{of} {size} is smaller than one block of {flag} {most}");
    }
    refuse_if! {
        small.is_some() && blocks.mixed() =>
            "{flag} and --files cannot be combined: small files are written and read in blocks of --bs";
    }
    let sectors = |bytes: u64| bytes.is_multiple_of(512);
    if io.direct && (!blocks.all(sectors) || !sectors(size.0)) {
        refuse!("--direct needs {flag} and sizes that are multiples of 512");
    }
    Ok(())
}

/// Content of the data without stamps.
fn buffers(io: &spec::Io) -> Result<Buffers, PlanError> {
    refuse_if! {
        io.no_refill && io.dedupe.is_some() =>
            "--no-refill and --dedupe cannot be combined: without refill every block is a copy";
    }
    let fresh = Buffers::fresh(
        percentage("--compress", io.compress.unwrap_or(0))?,
        percentage("--dedupe", io.dedupe.unwrap_or(0))?,
    );
    Ok(Buffers {
        refill: !io.no_refill,
        ..fresh
    })
}

/// Checks the requirements of stamps.
fn check_verify(
    io: &spec::Io,
    blocks: &Blocks,
    size: Bytes,
    mixes: bool,
    engine: &str,
) -> Result<(), PlanError> {
    if !io.verify {
        return Ok(());
    }
    let Blocks { least, flag, .. } = blocks;
    refuse_if! {
        mixes =>
            "--verify cannot be combined with --rw rw or randrw: a read may hit a block that is being written";
        engine == "null" => "--verify needs an engine that moves data, and null does not";
    }
    for (flag, given) in [
        ("--compress", io.compress.is_some()),
        ("--dedupe", io.dedupe.is_some()),
        ("--no-refill", io.no_refill),
    ] {
        refuse_if!(given => "--verify and {flag} cannot be combined: stamps fill the blocks");
    }
    refuse_if! {
        least.0.min(size.0) < VERIFY_BLOCK_MIN =>
            "--verify needs {flag} of at least {VERIFY_BLOCK_MIN} bytes for the stamp";
        !blocks.all(|bytes| bytes.is_multiple_of(least.0)) =>
            "--verify needs the sizes of {flag} to be multiples of the smallest, {least}";
        !size.0.is_multiple_of(least.0) =>
            "--verify needs a size that is a multiple of {flag}: {size} is not a multiple of {least}";
    }
    Ok(())
}

fn ack_journal(io: &spec::Io, phases: &[Rw]) -> Result<Option<PathBuf>, PlanError> {
    let Some(path) = &io.ack_journal else {
        return Ok(None);
    };
    refuse_if! {
        !io.verify =>
            "--ack-journal needs --verify: rbench verify recognises blocks by their stamps";
        !phases.iter().any(|rw| rw.writes()) => "--ack-journal needs a phase that writes in --rw";
        path.file_name().is_none() => "--ack-journal {} is not a file name", path.display();
    }
    Ok(Some(path.clone()))
}

fn distribution(
    io: &spec::Io,
    small: Option<SmallFiles>,
    phases: &[Rw],
) -> Result<Distribution, PlanError> {
    if io.distribution.is_some() {
        refuse_if! {
            small.is_some() =>
                "--random-distribution and --files cannot be combined: it selects blocks within a large file";
            !phases.iter().any(|rw| rw.random()) =>
                "--random-distribution needs --rw with randread, randwrite or randrw";
        }
    }
    Ok(io.distribution.clone().unwrap_or(Distribution::Uniform))
}

fn io_layout(io: &spec::Io, size: Bytes, blocks: &Blocks) -> Result<Layout, PlanError> {
    match (io.layout.unwrap_or_default(), io.interleave) {
        (Layout::PerWorker, true) => refuse!("--interleave needs --layout shared"),
        (layout, false) => Ok(layout),
        (_, true) if blocks.mixed() => {
            refuse!(
                "--interleave and {} cannot be combined: interleaved blocks all have one size",
                blocks.flag
            )
        }
        (_, true) if !size.0.is_multiple_of(blocks.least.0) => {
            refuse!(
                "--interleave needs --size {size} to be a multiple of --bs {}",
                blocks.least
            )
        }
        (_, true) => Ok(Layout::SharedInterleaved),
    }
}

/// Engines that move no data.
const MOVE_NOTHING: [&str; 2] = ["falloc", "ftruncate"];

fn engine_and_depth(io: &spec::Io, facts: &Facts) -> Result<(String, u32), PlanError> {
    let depth = io.depth.unwrap_or(1);
    let name = io.engine.clone().unwrap_or_else(|| "psync".to_owned());
    let moves = |name: &str| !MOVE_NOTHING.contains(&name) && NameEngine::named(name).is_none();
    refuse_if!(!moves(&name) => "--engine {name} moves no data: it is only for rbench fio");
    let Some((_, depth_max)) = facts.engines.iter().find(|(n, _)| *n == name) else {
        let names: Vec<&str> = facts
            .engines
            .iter()
            .map(|(n, _)| *n)
            .filter(|name| moves(name))
            .collect();
        refuse!("--engine {name} is not one of {}", names.join(", "));
    };
    refuse_if!(depth == 0 => "--depth (--iodepth) must be at least 1");
    if depth > *depth_max {
        let advice = if *depth_max == 1 {
            ": a synchronous engine has one request in flight; use --engine io_uring"
        } else {
            ""
        };
        refuse!(
            "--depth (--iodepth) {depth} is more than {depth_max}, the limit of --engine {name}{advice}"
        );
    }
    Ok((name, depth))
}

fn check_small(
    small: Option<SmallFiles>,
    layout: Layout,
    depth: u32,
    mixes: bool,
    engine: &str,
) -> Result<(), PlanError> {
    if small.is_none() {
        return Ok(());
    }
    refuse_if! {
        layout.shared() => "--files and --layout shared cannot be combined";
        depth > 1 =>
            "--files and --depth (--iodepth) {depth} cannot be combined: a worker has one small file open at a time";
        mixes => "--files cannot be combined with --rw rw or randrw";
        engine == "null" =>
            "--files and --engine null cannot be combined: small files are real files";
    }
    Ok(())
}

fn fsync_rule(io: &spec::Io, phases: &[Rw]) -> Result<FsyncRule, PlanError> {
    if let Some(rule) = io.fsync {
        refuse_if! {
            rule == FsyncRule::Every(0) =>
                "--fsync every=0: not an interval (expected every=1 or more, or never)";
            matches!(rule, FsyncRule::Every(_)) && io.files.is_some() =>
                "--fsync every=N and --files cannot be combined: each file is synced once, before it is closed";
            rule != FsyncRule::Never && !phases.iter().any(|rw| rw.writes()) =>
                "--fsync needs a phase that writes in --rw";
        }
    }
    Ok(io.fsync.unwrap_or_default())
}

fn ramp(io: &spec::Io, small: Option<SmallFiles>) -> Result<Nanos, PlanError> {
    let ramp = nonzero_time("--ramp", io.ramp)?;
    refuse_if! {
        ramp.is_some() && io.time.is_none() =>
            "--ramp needs --time: otherwise a phase may end before anything is recorded";
        ramp.is_some() && small.is_some() =>
            "--ramp and --files cannot be combined: the ramp applies to the blocks of a large file";
    }
    Ok(ramp.unwrap_or(Nanos(0)))
}

/// Most values of a window; all of them are kept.
const STEADY_VALUES_MAX: u64 = 100_000;

fn steady(io: &spec::Io, interval: Nanos) -> Result<Option<SteadyRule>, PlanError> {
    let given = io.steady;
    let Some(criterion) = given.criterion else {
        for (flag, time) in [
            ("--ss-dur", given.duration),
            ("--ss-ramp", given.ramp),
            ("--ss-interval", given.every),
        ] {
            refuse_if!(time.is_some() => "{flag} needs --steadystate");
        }
        return Ok(None);
    };
    let Some(limit) = nonzero_time("--time", io.time)? else {
        refuse!("--steadystate needs --time, the limit for a phase that does not become steady");
    };
    let Some(duration) = nonzero_time("--ss-dur", given.duration)? else {
        refuse!("--steadystate needs --ss-dur, the time for which the rate must be steady");
    };
    let every = nonzero_time("--ss-interval", given.every)?;
    let every = every.unwrap_or(Nanos(INTERVAL.0.max(interval.0)));
    refuse_if! {
        !every.0.is_multiple_of(interval.0) =>
            "--ss-interval {every} is not a multiple of --interval {interval}, in which operations are counted";
    }
    let values = duration.0 / every.0;
    if !duration.0.is_multiple_of(every.0) || !(2..=STEADY_VALUES_MAX).contains(&values) {
        refuse!(
            "--ss-dur {duration} is not 2 to {STEADY_VALUES_MAX} times --ss-interval {every}, the time between two samples"
        );
    }
    let ramp = given.ramp.unwrap_or_default();
    refuse_if! {
        ramp.0.saturating_add(duration.0) > limit.0 =>
            "--time {limit} is shorter than --ss-ramp {ramp} plus --ss-dur {duration}: no window would be complete";
    }
    Ok(Some(SteadyRule {
        criterion,
        duration,
        every,
        ramp,
    }))
}

fn think(io: &spec::Io, small: Option<SmallFiles>) -> Result<Nanos, PlanError> {
    let think = nonzero_time("--think", io.think)?;
    refuse_if! {
        think.is_some() && small.is_some() =>
            "--think and --files cannot be combined: the pause applies between blocks of a large file";
    }
    Ok(think.unwrap_or(Nanos(0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::check_error;

    /// The size of each of twelve workers on three ranks, or why there is none.
    fn size(change: impl FnOnce(&mut spec::Io)) -> Result<u64, String> {
        let mut io = spec::Io::default();
        change(&mut io);
        let plan = resolve(&io, INTERVAL, &Facts::on(&[0, 0, 1]), 4);
        plan.map(|plan| plan.size.0).map_err(|error| error.0)
    }

    #[test]
    fn a_total_size_is_divided_among_all_workers_in_whole_blocks() {
        let total = |bytes| move |io: &mut spec::Io| io.total_size = Some(Bytes(bytes));
        assert_eq!(size(total(12 << 20)), Ok(1 << 20));
        assert_eq!(size(total((12 << 20) + 12 * 4096)), Ok(1 << 20));
        assert_eq!(size(total(12 * 1000)), Ok(1000), "a block of its own");
        let of_blocks = |bytes| {
            size(|io| {
                io.block = Some(Bytes(4096));
                total(bytes)(io);
            })
        };
        assert_eq!(of_blocks(12 * 10_000), Ok(8192));
        check_error(of_blocks(12 * 4095), "each of 12 workers 4095");
        let both =
            |io: &mut spec::Io| (io.size, io.total_size) = (Some(BLOCK_MAX), Some(BLOCK_MAX));
        check_error(size(both), "cannot be combined");
    }
}
