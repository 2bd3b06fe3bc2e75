//! fio's options, checked and translated into jobs: groups formed,
//! sizes divided.
//!
//! What each option means is in docs/reference/fio.md. Sentences name fio's own options.

use std::path::PathBuf;

use rbench_core::operations::NameEngine;
use rbench_core::steady::{Criterion, SteadyRule};
use rbench_core::{Nanos, plain};

use super::{Facts, PlanError};
use crate::jobs::{
    BufferContent, Buffers, COMPRESS_CHUNK, ContinueOn, Distribution, Each, Errors, Exit,
    Favourites, FileNames, Files, Flow, JobPlan, JobsPlan, LatencyTarget, Others, Pace, Pattern,
    Syncing, WorkingSet,
};
use crate::paths::climbs;
use crate::pattern::shares_files;
use crate::shift;
use crate::spec::fio::{Extent, Fio, Job, Settings};

mod blocks;
mod course;
mod engine;
mod journal;
mod names;
mod parts;
mod priorities;
mod process;
mod replay;
mod report;
mod trims;
mod verify;

use blocks::{align, aligned, sizes, smallest_block};
use parts::{Moved, Parts};

/// Seed of random offsets unless `randseed` or `randrepeat=0` says something else: every run is
/// like the one before.
const SEED: u64 = 0x89;

/// Most workers of all jobs on each rank, as in fio.
const WORKERS_MAX: u32 = 4096;

/// Most jobs of all iterations.
const JOBS_MAX: usize = 1 << 16;

/// Number of runs of all jobs, and the distance of the readers of one run from those of the last.
#[derive(Debug, Clone, Copy)]
pub(super) struct Repeats {
    pub(super) iterations: u32,
    pub(super) shift: u32,
}

pub(super) fn resolve(
    options: &Fio,
    facts: &Facts,
    Repeats { iterations, shift }: Repeats,
    notes: &mut Vec<String>,
) -> Result<JobsPlan, PlanError> {
    refuse_if! {
        options.jobs.is_empty() =>
            "no job is given: start one with --name, or with [name] in a job file";
        options.jobs.len().saturating_mul(iterations as usize) > JOBS_MAX =>
            "--iterations {iterations}: more than {JOBS_MAX} jobs in total, from {} given", options.jobs.len();
    }
    let mut rounds = once(options, facts, notes)?;
    if shift > 0 {
        shift_readers(&mut rounds, shift, facts.ranks())?;
    }
    let repeated = (iterations, facts.ranks());
    let asked = options.ack_journal.as_ref();
    let ack_journal = journal::journal(&mut rounds, asked, repeated, notes)?;
    if options.whole.rates {
        report::log_together(&mut rounds);
    }
    Ok(JobsPlan {
        iterations,
        ack_journal,
        rounds: again_and_again(rounds, options, iterations),
        global_options: options.globals.clone(),
        whole: options.whole.clone(),
    })
}

/// The rounds of every iteration. Each is like a new start of the jobs: it has its own groups, and
/// random choices repeat if they are [`repeatable`].
fn again_and_again(first: Vec<Vec<JobPlan>>, options: &Fio, iterations: u32) -> Vec<Vec<JobPlan>> {
    let jobs = || first.iter().flatten();
    let groups = jobs().filter_map(|job| job.report.as_ref());
    let groups = groups.map(|report| report.group + 1).max().unwrap_or(1);
    let mut all = first.clone();
    for iteration in 1..iterations {
        let mut rounds = first.clone();
        for (plan, job) in rounds.iter_mut().flatten().zip(&options.jobs) {
            if let Some(report) = &mut plan.report {
                report.group += iteration * groups;
            }
            if job.settings.randseed.is_none() && !repeatable(&job.settings) {
                let seed = &mut plan.pattern.seed;
                *seed = rbench_core::random::key(&[*seed, u64::from(iteration)]);
            }
        }
        all.append(&mut rounds);
    }
    all
}

/// Returns true if every run makes the same random choices. As in fio since 3.35, `allrandrepeat`
/// is another name of `randrepeat`; if both are given, it decides.
fn repeatable(settings: &Settings) -> bool {
    settings.allrandrepeat.or(settings.randrepeat) != Some(false)
}

/// The rounds of one iteration.
fn once(
    options: &Fio,
    facts: &Facts,
    notes: &mut Vec<String>,
) -> Result<Vec<Vec<JobPlan>>, PlanError> {
    let mut rounds: Vec<Vec<JobPlan>> = Vec::new();
    let mut group = 0;
    let mut workers = 0_u32;
    // All errors are reported together.
    let mut wrong: Vec<String> = Vec::new();
    for (index, job) in options.jobs.iter().enumerate() {
        let mut told = job.settings.notes.clone();
        let of_job = |what: String| plain(&format!("job '{}': {what}", job.name)).into_owned();
        let begins = match rounds.last() {
            None => true,
            Some(_) if job.settings.stonewall == Some(true) || job.apart => true,
            Some(round) => waits(&options.jobs[..index], job, round).unwrap_or_else(|error| {
                wrong.push(of_job(error.0));
                false
            }),
        };
        let settings = &job.settings;
        let apart = settings.stonewall == Some(true) || job.apart;
        if index > 0 && (apart || settings.new_group == Some(true)) {
            group += 1;
        }
        let made = one(job, index, group, facts, &mut told);
        let made =
            made.and_then(|plan| replay::replay(plan, settings, options.readonly, &mut told));
        let plan = match made {
            Ok(plan) => plan,
            Err(PlanError(why)) => {
                wrong.push(of_job(why));
                continue;
            }
        };
        let changes = plan.names.is_some_and(|op| op.makes() || op.removes());
        if options.readonly && (plan.pattern.directions.changes() || changes) {
            let does = match plan.pattern.directions.trim {
                true if !plan.pattern.directions.write => "trims",
                _ => "writes",
            };
            wrong.push(of_job(format!("it {does}, which --readonly forbids")));
        }
        workers = workers.saturating_add(plan.numjobs);
        if workers > WORKERS_MAX {
            let all = format!(
                "all jobs together have {workers} workers (numjobs): the limit is {WORKERS_MAX}"
            );
            refuse!("{}", of_job(all));
        }
        let last = rounds.iter().flatten().next_back();
        let reports = last.and_then(|last| last.report.as_ref().zip(plan.report.as_ref()));
        if reports.is_some_and(|(last, own)| {
            own.joins(last) && own.shown.lat_percentiles != last.shown.lat_percentiles
        }) {
            let why =
                "lat_percentiles differs from that of the job before it in the same reported group";
            wrong.push(of_job(why.to_owned()));
        }
        notes.extend(told.into_iter().map(of_job));
        match rounds.last_mut() {
            Some(last) if !begins => last.push(plan),
            _ => rounds.push(vec![plan]),
        }
    }
    if !wrong.is_empty() {
        let lines: Vec<_> = wrong.iter().map(|why| plain(why)).collect();
        return Err(PlanError(lines.join("\n")));
    }
    Ok(rounds)
}

/// Workers that only read use the files of other ranks, one step further round the
/// ranks in each group that has any.
fn shift_readers(rounds: &mut [Vec<JobPlan>], shift: u32, ranks: u32) -> Result<(), PlanError> {
    let mut step = 0;
    for round in rounds {
        let reads = |job: &&mut JobPlan| {
            let directions = job.pattern.directions;
            let own = !shares_files(&job.files) && job.replay.is_none();
            directions.read && !directions.changes() && own
        };
        let mut readers = round.iter_mut().filter(reads).peekable();
        step += u32::from(readers.peek().is_some());
        readers.for_each(|job| job.files.ahead = shift::ahead(shift, step, ranks));
    }
    refuse_if! {
        step == 0 =>
            "--shift {shift} needs a job that only reads, and a separate set of files for each worker";
    }
    Ok(())
}

/// Returns true if `wait_for` names a job of the round that is being filled, so that a new one has
/// to begin.
fn waits(before: &[Job], job: &Job, round: &[JobPlan]) -> Result<bool, PlanError> {
    let Some(name) = &job.settings.wait_for else {
        return Ok(false);
    };
    if !before.iter().any(|earlier| earlier.name == *name) {
        refuse!("wait_for={name}: no earlier job has this name");
    }
    Ok(round.iter().any(|plan| plan.name == *name))
}

fn one(
    job: &Job,
    index: usize,
    group: u32,
    facts: &Facts,
    notes: &mut Vec<String>,
) -> Result<JobPlan, PlanError> {
    let s = &job.settings;
    if index == 0
        && let Some(name) = &s.wait_for
    {
        refuse!("wait_for={name}: no earlier job has this name");
    }
    let numjobs = s.plan.numjobs;
    refuse_if!(numjobs == 0 => "numjobs must be at least 1");
    let pattern = pattern(s, index, facts, notes)?;
    let smallest = smallest_block(&pattern);
    let (files, io) = files(job, &pattern, notes)?;
    inside(&files)?;
    reachable(&files, u64::from(facts.ranks()) * u64::from(numjobs))?;
    let (engine, depth) = engine::engine(s, facts, notes)?;
    if pattern.directions.trim {
        trims::possible(&engine, notes)?;
    }
    let engine_options = engine::options(s, &engine)?;
    if files.shares.append && engine == "mmap" {
        refuse!("file_append: ioengine=mmap cannot extend files");
    }
    let names = NameEngine::named(&engine);
    let moves = !matches!(engine.as_str(), "null" | "mmap" | "falloc" | "ftruncate");
    if s.plan.direct && moves && names.is_none() {
        aligned(&pattern, &files)?;
    }
    let pace = pace(s, io, notes)?;
    let verify = verify::verify(s, &pattern, &pace, notes)?;
    report::check_logs(s)?;
    refuse_if! {
        files.unlink_each_loop && matches!(files.names, FileNames::Given(_)) =>
            "unlink_each_loop and filename cannot be combined: named files are removed only if the run \
             created them (unlink)";
    }
    let mut plan = JobPlan {
        name: job.name.clone(),
        engine,
        names,
        engine_options,
        memory: engine::memory(s)?,
        depth,
        batch_submit: match s.plan.batch_submit {
            0 => depth,
            n => n.min(depth),
        },
        batch_complete_min: s.plan.batch_complete_min.min(depth),
        batch_complete_max: s.plan.batch_complete_max.min(depth),
        // Like in fio, a mark that is not lower than the depth is ignored.
        depth_low: s.plan.depth_low.filter(|low| (1..depth).contains(low)),
        priorities: priorities::priorities(s, pattern.directions, notes)?,
        pattern,
        files,
        syncing: Syncing {
            range: s.plan.syncing.range.filter(|range| range.every > 0),
            ..s.plan.syncing
        },
        buffers: buffers(s, smallest)?,
        verify,
        pace,
        others: others(s, notes),
        process: process::process(s)?,
        errors: Errors::End(continue_on(s)),
        report: Some(report::report(job, group, notes)),
        ..s.plan.clone()
    };
    if let Some(engine) = names {
        names::of_names(&mut plan, engine, notes)?;
    }
    Ok(plan)
}

/// The job's connections to others.
fn others(s: &Settings, notes: &mut Vec<String>) -> Others {
    let always = s.exitall.unwrap_or(false);
    let on_error = s.exitall_on_error.unwrap_or(false);
    let weight = s.flow.unwrap_or(0);
    if s.exit_what.is_some() && !always && !on_error {
        notes.push("exit_what has no effect without exitall".to_owned());
    }
    if weight == 0 && (s.flow_id.is_some() || s.flow_sleep.is_some()) {
        notes.push("flow_id and flow_sleep have no effect without flow".to_owned());
    }
    Others {
        exit: (always || on_error).then(|| Exit {
            what: s.exit_what.unwrap_or_default(),
            always,
        }),
        flow: (weight > 0).then(|| Flow {
            id: s.flow_id.unwrap_or(0),
            weight,
            sleep: s.flow_sleep.unwrap_or_default(),
        }),
    }
}

/// Errors after which the job goes on: a list of them switches that on, as in fio.
fn continue_on(s: &Settings) -> ContinueOn {
    let given = s.continue_on_error.clone().unwrap_or_default();
    let [reads, writes, checks] = &s.ignore_error;
    ContinueOn {
        read: given.read || !reads.is_empty(),
        write: given.write || !writes.is_empty(),
        verify: given.verify || !checks.is_empty(),
        errors: s.ignore_error.clone(),
    }
}

fn pattern(
    s: &Settings,
    index: usize,
    facts: &Facts,
    notes: &mut Vec<String>,
) -> Result<Pattern, PlanError> {
    let directions = s.rw.unwrap_or(crate::jobs::Directions::READ);
    let mut sizes = sizes(s)?;
    let align = align(s, &sizes);
    let given = s.blockalign.all().into_iter().any(Option::is_some);
    // Its order has no repetitions, with or without a map.
    let lfsr = s.lfsr.unwrap_or(false);
    let mut repeats = s.norandommap.unwrap_or(false) && !lfsr;
    if given && directions.random && !repeats {
        notes.push("blockalign turns on norandommap".to_owned());
        repeats = true;
    }
    if s.plan.pattern.distribution != Distribution::Uniform {
        repeats = true;
    }
    let course = course::course(s, directions, !repeats, &mut sizes, notes)?;
    repeats |= !course.is_plain() || directions.random && course::overlaps(&sizes, align);
    let base = match (s.randseed, repeatable(s)) {
        (Some(seed), _) => seed,
        (None, false) => facts.seed,
        (None, true) => SEED,
    };
    let seed = rbench_core::random::key(&[base, index as u64]);
    Ok(Pattern {
        directions,
        align,
        sizes,
        random_percent: s.percentage_random.map(|given| given.unwrap_or(100)),
        repeats,
        seed,
        favourites: Favourites::Same(seed),
        course,
        ..s.plan.pattern.clone()
    })
}

/// Files, and what is moved in all where `size` or `io_size` says so.
fn files(
    job: &Job,
    pattern: &Pattern,
    notes: &mut Vec<String>,
) -> Result<(Files, Moved), PlanError> {
    let s = &job.settings;
    let (names, count) = names(s, &job.files)?;
    let (directory, names) = placed(s, names)?;
    let more_directories = match names {
        FileNames::Given(_) => Vec::new(),
        FileNames::Format(_) | FileNames::Numbered { .. } => s.plan.files.more_directories.clone(),
    };
    let Parts {
        size,
        offset,
        increment,
        shares,
        io,
    } = parts::parts(s, pattern, count, notes)?;
    let open = match s.openfiles.unwrap_or(0) {
        0 => count,
        n => n.min(count),
    };
    let files = Files {
        directory,
        more_directories,
        names,
        count,
        open,
        size,
        offset,
        offset_increment: increment,
        shares,
        overwrite: trims::fills(s, pattern.directions),
        ..s.plan.files.clone()
    };
    Ok((files, io))
}

/// The directory of the files and their names in it. Names that were given in several
/// directories lie in none of them all: each says its own.
fn placed(s: &Settings, names: FileNames) -> Result<(PathBuf, FileNames), PlanError> {
    let general = s.plan.files.directory.clone();
    let FileNames::Given(list) = names else {
        return Ok((general, names));
    };
    let of = |at: usize| s.filename_directories.get(at).unwrap_or(&general).clone();
    let directories: Vec<PathBuf> = (0..list.len()).map(of).collect();
    let first = directories.first().cloned().unwrap_or_default();
    if directories.iter().all(|directory| *directory == first) {
        return Ok((first, FileNames::Given(list)));
    }
    let mut paths = Vec::new();
    for (name, directory) in list.iter().zip(&directories) {
        let alone = directory.as_os_str().is_empty();
        refuse_if! {
            !alone && climbs(name) =>
                "filename: {name} is outside of the directory {}", directory.display();
        }
        let path = match alone {
            true => PathBuf::from(name),
            false => directory.join(name.trim_start_matches('/')),
        };
        paths.push(path.display().to_string());
    }
    Ok((PathBuf::new(), FileNames::Given(paths)))
}

/// Names lie below the directory if one is given.
fn inside(files: &Files) -> Result<(), PlanError> {
    let (option, names) = match &files.names {
        FileNames::Given(names) => ("filename", names.clone()),
        FileNames::Format(format) => ("filename_format", vec![format.clone()]),
        // fio has none.
        FileNames::Numbered { .. } => return Ok(()),
    };
    let climbs = |name: &&String| !files.directory.as_os_str().is_empty() && climbs(name);
    if let Some(name) = names.iter().find(climbs) {
        let directory = files.directory.display();
        refuse!("{option}: {name} is outside of the directory {directory}");
    }
    Ok(())
}

/// The kernel counts offsets in 63 bits; the last worker begins furthest on.
fn reachable(files: &Files, workers: u64) -> Result<(), PlanError> {
    let furthest = u128::from(files.offset_increment) * u128::from(workers.saturating_sub(1));
    let end = furthest + u128::from(files.offset) + u128::from(files.size.1);
    refuse_if! {
        i64::try_from(end).is_err() =>
            "size, offset and offset_increment exceed the largest file size, 2^63 bytes";
    }
    Ok(())
}

/// Names, and how many files they are for each worker. `filename` says how
/// many there are; `nrfiles` can only take fewer of them.
fn names(s: &Settings, job: &str) -> Result<(FileNames, u64), PlanError> {
    if let Some(names) = &s.filename {
        let all = names.len() as u64;
        let count = s.nrfiles.map_or(all, |n| n.min(all));
        refuse_if!(count == 0 => "nrfiles must be at least 1");
        let names = names.iter().take(count as usize).cloned().collect();
        return Ok((FileNames::Given(names), count));
    }
    let format = s
        .filename_format
        .clone()
        .unwrap_or_else(|| "$jobname.$jobnum.$filenum".to_owned());
    refuse_if!(format.contains("$clientuid") => "filename_format: $clientuid is not supported");
    match s.nrfiles.unwrap_or(1) {
        0 => refuse!("nrfiles must be at least 1"),
        count => Ok((FileNames::Format(format.replace("$jobname", job)), count)),
    }
}

fn buffers(s: &Settings, block: u64) -> Result<Buffers, PlanError> {
    let zero = s.zero_buffers.unwrap_or(false);
    let percent = s.buffer_compress_percentage.unwrap_or(0);
    let dedupe_percent = s.plan.buffers.dedupe_percent;
    refuse_if! {
        zero && s.buffer_pattern.is_some() => "zero_buffers and buffer_pattern cannot be combined";
        zero && percent + dedupe_percent > 0 =>
            "zero_buffers cannot be combined with buffer_compress_percentage or dedupe_percentage";
    }
    let content = match (&s.buffer_pattern, zero) {
        (_, true) => BufferContent::Zero,
        (Some(pattern), _) if percent == 0 => BufferContent::Pattern(pattern.clone()),
        (pattern, _) => BufferContent::Random {
            percent,
            chunk: s.buffer_compress_chunk.unwrap_or(COMPRESS_CHUNK),
            pattern: pattern.clone().unwrap_or_default(),
        },
    };
    // The same buffer again and again would compress and dedupe by itself.
    let refill = s.plan.buffers.refill || percent + dedupe_percent > 0;
    Ok(Buffers {
        refill,
        scramble: s.plan.buffers.scramble
            && !refill
            && matches!(content, BufferContent::Random { .. }),
        content,
        dedupe_percent,
        working_set: working_set(s, block)?,
    })
}

/// Blocks that copies are made of, where that is not the latest block.
fn working_set(s: &Settings, block: u64) -> Result<Option<WorkingSet>, PlanError> {
    if s.dedupe_working_set != Some(true) || s.plan.buffers.dedupe_percent == 0 {
        return Ok(None);
    }
    let Some(Extent::Bytes(size)) = s.size else {
        refuse!("dedupe_mode=working_set needs size");
    };
    let percent = s.dedupe_working_set_percentage.unwrap_or(5);
    let blocks = u128::from(size / block.max(1)) * u128::from(percent) / 100;
    if blocks == 0 {
        refuse!("dedupe_working_set_percentage={percent} of size is less than a block");
    }
    Ok(Some(WorkingSet {
        blocks: u64::try_from(blocks).unwrap_or(u64::MAX),
        shared: s.dedupe_global.unwrap_or(false),
    }))
}

fn pace(s: &Settings, io: Moved, notes: &mut Vec<String>) -> Result<Pace, PlanError> {
    let given = &s.plan.pace;
    let runtime = given.runtime.filter(|time| time.0 > 0);
    let mut time_based = given.time_based;
    if time_based && runtime.is_none() {
        notes.push("time_based needs runtime, and is ignored".to_owned());
        time_based = false;
    }
    rates(given)?;
    refuse_if! {
        given.think_spin > given.think =>
            "thinktime_spin is longer than thinktime, which includes it";
        given.ramp.0 > 0 && given.ramp_bytes > 0 => "ramp_time and ramp_size cannot be combined";
    }
    let think_after = given.think_after.filter(|time| time.0 > 0);
    refuse_if!(think_after.is_some() && given.think.0 == 0 => "thinktime_iotime needs thinktime");
    Ok(Pace {
        runtime,
        time_based,
        loops: given.loops.max(1),
        number_ios: given.number_ios.filter(|n| *n > 0),
        io_size: io.bytes,
        io_share: io.share,
        rate_bytes: limits(given.rate_bytes),
        rate_iops: limits(given.rate_iops),
        rate_min: limits(given.rate_min),
        rate_iops_min: limits(given.rate_iops_min),
        // A time alone takes the place of a number, as in fio.
        think_blocks: match (s.thinktime_blocks, think_after) {
            (None, Some(_)) => 0,
            (blocks, _) => blocks.unwrap_or(1).max(1),
        },
        think_after,
        latency_target: latency_target(s)?,
        latency_max: given.latency_max.filter(|time| time.0 > 0),
        steady: steady(s)?,
        ..given.clone()
    })
}

/// 0 means no limit.
fn limits(each: Each<Option<u64>>) -> Each<Option<u64>> {
    each.map(|rate| rate.filter(|rate| *rate > 0))
}

fn rates(pace: &Pace) -> Result<(), PlanError> {
    let (bytes, iops) = (limits(pace.rate_bytes), limits(pace.rate_iops));
    let least = limits(pace.rate_min);
    let given = |each: Each<Option<u64>>| each.all().into_iter().any(Option::is_some);
    refuse_if!(given(bytes) && given(iops) => "rate and rate_iops cannot be combined");
    for (least, most) in least.all().into_iter().zip(bytes.all()) {
        if let (Some(least), Some(most)) = (least, most)
            && least > most
        {
            refuse!("rate_min ({least} bytes a second) is more than rate ({most})");
        }
    }
    if pace.poisson && !given(bytes) && !given(iops) {
        refuse!("rate_process=poisson needs rate or rate_iops");
    }
    Ok(())
}

fn latency_target(s: &Settings) -> Result<Option<LatencyTarget>, PlanError> {
    let Some(target) = s.latency_target.filter(|time| time.0 > 0) else {
        return Ok(None);
    };
    let Some(window) = s.latency_window.filter(|time| time.0 > 0) else {
        refuse!("latency_target needs latency_window, the time for which the latency must hold");
    };
    Ok(Some(LatencyTarget {
        target,
        window,
        percentile: s.latency_percentile.unwrap_or(100.0),
        goes_on: s.latency_run.unwrap_or(false),
    }))
}

fn steady(s: &Settings) -> Result<Option<SteadyRule>, PlanError> {
    let duration = s.steadystate_duration.filter(|time| time.0 > 0);
    let Some(duration) = duration else {
        if s.steadystate.is_some() {
            refuse!("steadystate needs steadystate_duration (ss_dur), the length of its window");
        }
        return Ok(None);
    };
    let every = s.steadystate_check_interval.unwrap_or(Nanos::SECOND);
    // Every value of the window is kept.
    refuse_if! {
        every < Nanos(1_000_000) || every > duration || duration.0 / every.0 > 1_000_000 =>
            "steadystate_check_interval must be at least 1 ms, at most steadystate_duration, and at least \
             a millionth of it";
    }
    let criterion = s.steadystate.unwrap_or(Criterion {
        bandwidth: false,
        slope: true,
        limit: 0.01,
        percent: true,
    });
    Ok(Some(SteadyRule {
        criterion,
        duration,
        every,
        ramp: s.steadystate_ramp_time.unwrap_or_default(),
    }))
}

#[cfg(test)]
mod tests;
