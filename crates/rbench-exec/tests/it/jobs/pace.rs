//! Tests rates, times and searches in virtual time: every clock reading takes a step, and so does
//! every operation. `timing` tests with the machine's own clock.

use nix::errno::Errno;
use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Nanos, SimulatedClock};

use super::*;

mod timing;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000 * US;
/// Time between the launch of a job and its start.
const LEAD: u64 = MS;

/// Runs a job on one rank in virtual time.
pub fn run_by(clock: &'static SimulatedClock, dir: &Path, line: &str) -> Outcome {
    let mut run = job(&[0], dir, line);
    run.clocks = vec![clock];
    finish(run, line)
}

/// Like `run_well`, with operations of duration `step`.
pub fn run_stepped(step: u64, dir: &Path, line: &str) -> Outcome {
    let outcome = finish(job(&[0], dir, line).stepped(step), line);
    check_sound(&outcome, line);
    outcome
}

/// A job without files, with operations of 1 us.
fn null(more: &str) -> Outcome {
    let line = format!("--name=x --rw=randread --size=64M --ioengine=null {more}");
    run_stepped(US, tempdir().path(), &line)
}

/// Checks that `expect` operations of a row were due, and each was done within microseconds.
fn check_due(outcome: &Outcome, row: &str, expect: u64, what: &str) {
    let row = outcome.row(row);
    assert_eq!((row.items, row.unissued), (expect, 0), "{what}");
    let response = row.response.as_ref().expect("a rate is given");
    assert_eq!(response.count(), expect, "{what}");
    assert!(response.max().0 < 20 * US, "{what}: {}", response.max());
}

#[test]
fn rates_are_kept() {
    let timed = "--time_based --runtime=1";
    for (more, expect) in [
        ("--rate_iops=20000", 20_000),
        ("--rate=40m", 10_240),
        ("--rate=40m --bs=64k", 640),
        ("--rate_iops=1000 --iodepth=8 --size=4M", 1_000),
    ] {
        let outcome = null(&format!("{timed} {more}"));
        check_due(&outcome, "x-read", expect, more);
        let job = only(&outcome);
        let response = job.read.response.as_ref().expect("a rate is given");
        assert_eq!((job.read.ios, response.count()), (expect, expect));
    }
    let mix = format!("{timed} --rw=randrw --rwmixread=75 --rate_iops=3000,1000");
    let outcome = null(&mix);
    check_due(&outcome, "x-read", 3000, "reads of a mix");
    check_due(&outcome, "x-write", 1000, "writes of a mix");
}

#[test]
fn a_rate_of_one_direction_does_not_limit_the_other() {
    let timed = "--time_based --runtime=100ms --rw=randrw";
    for (more, limited, other) in [
        ("--rwmixread=75 --rate_iops=,100", "x-write", "x-read"),
        ("--rwmixread=25 --rate=400k,", "x-read", "x-write"),
        (
            "--rate_iops=,100 --iodepth=4 --size=4M",
            "x-write",
            "x-read",
        ),
    ] {
        let outcome = null(&format!("{timed} {more}"));
        let items = |row: &str| outcome.row(row).items;
        assert!(
            (9..=10).contains(&items(limited)),
            "{more}: {}",
            items(limited)
        );
        assert!(items(other) > 1000, "{more}: {}", items(other));
        assert_eq!(outcome.row(limited).unissued, 0, "{more}");
    }
    let poisson = null(&format!("{timed} --rate_iops=,100 --rate_process=poisson"));
    assert!(poisson.row("x-read").items > 1000);
    assert!((1..30).contains(&poisson.row("x-write").items));
    // No operation is of a direction that the mix leaves out.
    let reads = null(&format!("{timed} --rwmixread=100 --rate_iops=100,100"));
    assert_eq!(reads.row("x-read").items, 10);
}

#[test]
fn an_open_loop_covers_the_time_that_ended_it() {
    let timed = "--time_based --runtime=1";
    for more in [
        "--rate_iops=3",
        "--rate=12k",
        "--rate_iops=3 --ramp_time=2",
        "--rate_iops=3 --startdelay=1",
        "--rate_iops=3 --iodepth=4 --size=4M",
        "--rw=randrw --rwmixread=75 --rate_iops=2,1",
    ] {
        let outcome = null(&format!("{timed} {more}"));
        let rows = outcome.rows.iter();
        assert_eq!(rows.map(|row| row.items).sum::<u64>(), 3, "{more}");
        for row in &outcome.rows {
            assert_eq!(row.elapsed, Nanos::SECOND, "{more}: {}", row.name);
        }
        let [iops, bandwidth] = [&only(&outcome).read.iops, &only(&outcome).read.bw];
        assert!(iops.max < 3.1, "{more}: {iops:?}");
        assert!(bandwidth.max < 12.1, "{more}: {bandwidth:?}");
    }
    // Time ends neither of them: the work does, and each operation follows the one before.
    let work = null("--rate_iops=3 --size=8k --runtime=9")
        .row("x-read")
        .clone();
    assert!(
        (333 * MS..334 * MS).contains(&work.elapsed.0),
        "{}",
        work.elapsed
    );
    let line = "--name=x --rw=read --size=1m --thinktime=300ms --runtime=1";
    let closed = run_stepped(US, tempdir().path(), line);
    assert!(closed.row("x-read").elapsed.0 < 901 * MS);
}

#[test]
fn poisson_arrivals_come_to_the_rate_at_a_high_rate_too() {
    let line = "--time_based --runtime=2 --rate_process=poisson --bs=512";
    for (rate, jobs) in [(1000_u64, 1_u64), (50_000, 1), (20_000, 3)] {
        let more = format!("{line} --rate_iops={rate} --numjobs={jobs} --group_reporting");
        let outcome = null(&more);
        let due = outcome.row("x-read").items;
        check_due(&outcome, "x-read", due, &more);
        // Four standard deviations of a Poisson process; the seed is fixed.
        let expect = (rate * jobs * 2) as f64;
        let off = due as f64 - expect;
        assert!(off.abs() < 4.0 * expect.sqrt(), "{more}: {due}");
    }
}

#[test]
fn gaps_of_poisson_arrivals_are_spread_like_exponential_ones() {
    let more = "--rate_iops=500 --rate_process=poisson --time_based --runtime=20 --write_lat_log=x";
    let outcome = null(more);
    let samples = &outcome.logs[0].samples;
    let starts: Vec<f64> = samples.iter().map(|s| (s.at.0 - s.lat.0) as f64).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|w| w[1] - w[0]).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!((mean / (2 * MS) as f64 - 1.0).abs() < 0.04, "{mean}");
    // A share of 1 − e^−n of exponential gaps is below n times their mean.
    for times in [0.5, 1.0, 2.0] {
        let below = gaps.iter().filter(|gap| **gap < times * mean).count();
        let share = below as f64 / gaps.len() as f64;
        let off = share - (1.0 - f64::exp(-times));
        assert!(off.abs() < 0.02, "{share} below {times} means");
    }
}

#[test]
fn thinking_comes_behind_operations() {
    let dir = tempdir();
    for (more, pauses) in [
        ("--thinktime=10ms", 20),
        ("--thinktime=10ms --thinktime_blocks=5", 4),
        (
            "--thinktime=10ms --thinktime_spin=5ms --thinktime_blocks=10",
            2,
        ),
    ] {
        let line = format!("--name=x --rw=write --size=80k {more}");
        let outcome = run_stepped(US, dir.path(), &line);
        let job = only(&outcome);
        let least = pauses * 10 * MS;
        let elapsed = job.elapsed.0;
        assert!(
            (least..least + MS).contains(&elapsed),
            "{line}: {}",
            job.elapsed
        );
        // Spinning also counts as waiting.
        let waited = outcome.row("x-write").effort.waited.0;
        assert!((least..least + MS).contains(&waited), "{line}: {waited} ns");
        assert_eq!((job.write.ios, job.write.lat.max()), (20, Nanos(US)));
    }
}

#[test]
fn pauses_come_after_a_time_of_operations_and_put_off_what_is_due() {
    let dir = tempdir();
    let check = |expect: u64, more: &str| {
        let line = format!("--name=x --rw=read --bs=4k --size=400k {more}");
        let outcome = run_stepped(US, dir.path(), &line);
        assert_eq!(only(&outcome).read.ios, 100, "{line}");
        let took = only(&outcome).elapsed.0;
        assert!((expect..expect + MS).contains(&took), "{line}: {took} ns");
    };
    // Starts are 5 ms apart. Each pause follows 50 ms of operations; the last one is at the end.
    let timed = "--thinktime=50ms --thinktime_iotime=50ms";
    check(520 * MS, &format!("--rate_iops=200 {timed}"));
    // Each of the five pauses except the last one delays the following operations.
    let counted = "--thinktime=100ms --thinktime_blocks=20 --rate_ignore_thinktime=1";
    check(
        99 * 5 * MS + 5 * 100 * MS,
        &format!("--rate_iops=200 {counted}"),
    );
}

#[test]
fn cycles_of_thinking_keep_the_processor_busy() {
    let dir = tempdir();
    let line = "--name=x --rw=read --bs=4k --size=400k --thinkcycles=20000000 --thinktime_blocks=10 \
                --thinktime_blocks_type=issue";
    let outcome = run_well(dir.path(), line);
    let job = only(&outcome);
    assert_eq!(job.read.ios, 100);
    // No counter runs at 20 GHz.
    assert!(job.elapsed.0 >= 10 * MS, "{}", job.elapsed);
}

#[test]
fn what_is_done_in_the_ramp_is_not_counted() {
    let more = "--rate_iops=2000 --time_based --ramp_time=400ms --runtime=500ms --write_lat_log=x";
    let outcome = null(more);
    let job = only(&outcome);
    check_due(&outcome, "x-read", 1000, "after the ramp");
    assert_eq!(job.read.ios, 1000);
    for time in [job.elapsed, job.read.runtime] {
        assert!(time.0.abs_diff(500 * MS) < MS, "{time}");
    }
    // Log times count from the end of the ramp, like in fio; times of a given clock do not.
    let log = &outcome.logs[0];
    assert_eq!(log.samples.len(), 1000);
    let first = log.samples[0].at.0;
    assert!(first < MS, "{first} ns");
    assert_eq!(log.start_ms - job.start_ms, 400);
}

#[test]
fn averages_and_histograms_of_logs_are_over_intervals_of_equal_length() {
    let logs = "--write_lat_log=x --log_avg_msec=100 --write_hist_log=x --log_hist_msec=200";
    let outcome = null(&format!("--rate_iops=1000 --time_based --runtime=1 {logs}"));
    let log = &outcome.logs[0];
    let averages: Vec<_> = log.samples.iter().map(|s| (s.at.0, s.ios)).collect();
    let histograms: Vec<u64> = log.histograms.iter().map(|h| h.at.0).collect();
    // The job's end cuts the last ones short.
    let whole: Vec<_> = (1..10).map(|n| (n * 100 * MS, 100)).collect();
    assert_eq!((averages.len(), &averages[..9]), (10, &whole[..]));
    assert_eq!(histograms.len(), 5);
    assert_eq!(histograms[..4], [200, 400, 600, 800].map(|ms| ms * MS));
}

#[test]
fn a_job_that_ends_within_its_ramp_is_reported_as_in_fio() {
    let dir = tempdir();
    let line = "--name=x --rw=write --size=256k --fsync=8 --ramp_time=60s --write_lat_log=x";
    let outcome = run_well(dir.path(), line);
    let job = only(&outcome);
    assert_eq!((job.write.ios, job.write.bytes), (64, 256 * KIB));
    assert_eq!((job.write.lat.count(), job.sync.count()), (64, 7));
    assert!(job.write.runtime.0 > 0 && job.elapsed >= job.write.runtime);
    super::course::check_ramp_only(&outcome, "x");
    assert!(outcome.logs.is_empty(), "logs have what was measured");
}

/// Jobs that are measured at other times: [`SPANS`].
fn jobs_of_spans() -> String {
    let null = "--rw=randread --size=64M --ioengine=null --rate_iops=1000 --time_based";
    format!(
        "--name=late {null} --startdelay=500ms --ramp_time=1500ms --runtime=1 \
         --name=soon {null} --runtime=500ms \
         --name=long {null} --runtime=3"
    )
}

/// Name of each job, and the begin and end of its measured time in ms.
const SPANS: [(&str, u64, u64); 3] = [("late", 2000, 3000), ("soon", 0, 500), ("long", 0, 3000)];

/// Checks that parts of a row are not over a longer time than the row.
fn check_parts(row: &PhaseOutcome) {
    let first = row.first_done.as_ref().expect("someone was busy");
    assert!(first.elapsed <= row.elapsed && first.items <= row.items);
    let longest = row.ranks.iter().map(|r| r.elapsed).max();
    assert_eq!(longest, Some(row.elapsed), "{}", row.name);
    let longest = row.hosts.iter().map(|h| h.elapsed).max();
    assert_eq!(longest, Some(row.elapsed), "{}", row.name);
}

#[test]
fn a_row_of_a_job_is_over_the_time_in_which_its_own_operations_were_measured() {
    let (dir, line) = (tempdir(), jobs_of_spans());
    let run = job(&[0, 1], dir.path(), &line).stepped(US);
    let outcome = finish(run, &line);
    for (name, from, to) in SPANS {
        let row = outcome.row(&format!("{name}-read"));
        assert_eq!(row.measured_from.0, from * MS, "{name}");
        assert_eq!((row.set_aside.0, row.start_skew.0), (0, 0), "{name}");
        check_due(&outcome, &row.name, 2 * (to - from), name);
        assert_eq!(row.elapsed.0, (to - from) * MS, "{name}");
        check_parts(row);
    }
}

#[test]
fn reading_back_is_no_part_of_the_time_of_the_writes() {
    let dir = tempdir();
    let job = "--name=x --size=160k --verify=crc32c";
    for (more, reads) in [
        ("--rw=write", 1),
        ("--rw=write --loops=3", 3),
        ("--rw=write --verify_backlog=8", 1),
        ("--rw=write --verify_backlog=8 --numjobs=2", 1),
    ] {
        // Reading back takes 40 times 5 ms in each pass.
        let outcome = run_stepped(5 * MS, dir.path(), &format!("{job} {more}"));
        let (writes, read) = (outcome.row("x-write"), outcome.row("x-read"));
        let whole = outcome.jobs.iter().map(|job| job.elapsed).max();
        let whole = whole.expect("there is a job");
        let reading = reads * 40 * 5 * MS;
        assert!(read.elapsed.0 >= reading, "{more}: {}", read.elapsed);
        assert!(
            writes.elapsed.0 + reading <= whole.0,
            "{more}: writes took {} of {whole}",
            writes.elapsed
        );
        let spans = [writes, read].map(|row| row.measured_from.0 + row.set_aside.0 + row.elapsed.0);
        assert!(spans.iter().all(|end| *end <= whole.0), "{more}: {spans:?}");
        assert_eq!((writes.measured_from.0, read.items), (0, writes.items));
        assert!(read.measured_from > writes.measured_from, "{more}");
    }
}

#[test]
fn a_delayed_start_counts_nowhere_but_in_the_clock() {
    let dir = tempdir();
    let line = "--name=x --rw=write --size=64k --startdelay=300ms --name=y --rw=write --size=64k";
    let outcome = run_stepped(US, dir.path(), line);
    for job in &outcome.jobs {
        assert_eq!(job.write.ios, 16);
        assert!(job.elapsed.0 < MS && job.write.runtime <= job.elapsed);
    }
    for (name, delay) in [("x-write", 300 * MS), ("y-write", 0)] {
        let row = outcome.row(name);
        assert_eq!(row.measured_from.0, delay);
        assert!(row.elapsed.0 < MS, "{name}: {}", row.elapsed);
        let waited = row.effort.waited.0;
        assert!(waited.abs_diff(delay) < MS, "{name}: {waited} ns");
    }
}

#[test]
fn runtime_caps_what_would_take_longer_and_time_based_work_begins_again() {
    let dir = tempdir();
    let of = |more: &str| {
        let line = format!("--name=x --rw=read --runtime=300ms {more}");
        only(&run_stepped(10 * MS, dir.path(), &line)).clone()
    };
    // An operation every 20 ms, the first soon after the start.
    for more in ["--size=4M", "--size=20k --time_based"] {
        let cut = of(more);
        assert!(
            (12..=15).contains(&cut.read.ios),
            "{more}: {}",
            cut.read.ios
        );
        let elapsed = cut.elapsed.0;
        assert!((300 * MS..350 * MS).contains(&elapsed), "{more}: {elapsed}");
    }
    // Work that ends early is not stretched.
    let short = of("--size=20k");
    assert_eq!(short.read.ios, 5);
    assert!(short.elapsed.0 < 200 * MS, "{}", short.elapsed);
}

#[test]
fn the_depth_that_keeps_a_latency_is_found_and_shown_by_itself() {
    let line = "--iodepth=32 --time_based --latency_window=15ms --latency_percentile=90";
    // Of the requests in flight at the same time, one takes 1 us, the next 2 us, and so on. With a
    // tenth more in flight than the target allows, nine out of ten still meet the latency.
    for (target, depth, doublings) in [(1, 1, 2), (10, 11, 5), (20, 22, 6), (50, 32, 6)] {
        let more = format!("{line} --runtime=20 --latency_target={target}");
        let outcome = null(&more);
        let job = only(&outcome);
        assert_eq!(job.latency_depth, depth, "{target} us");
        // A window for each depth that is tried, and one with the final depth.
        let windows = job.elapsed.0 / (15 * MS);
        assert!(
            (doublings + 1..12).contains(&windows),
            "{target}: {windows}"
        );
        // Only the last window counts.
        let counted = job.read.runtime.0;
        assert!(counted.abs_diff(15 * MS) < MS, "{target}: {counted} ns");
        let slowest = job.read.lat.max().0;
        assert_eq!(slowest, u64::from(depth) * US, "{target} us");
    }
    // If a single request misses the target, no depth meets it.
    let dir = tempdir();
    let line = format!(
        "--name=x --rw=randread --size=64M --ioengine=null {line} --runtime=60ms --latency_target=1"
    );
    let outcome = run_stepped(2 * US, dir.path(), &line);
    let job = only(&outcome);
    assert_eq!(job.latency_depth, 0);
    assert!(job.elapsed.0.abs_diff(60 * MS) < MS, "{}", job.elapsed);
    assert!(job.read.ios > 10 && job.depths[1..] == [0; 6]);
}

#[test]
fn a_steady_rate_ends_the_job() {
    let line = "--time_based --runtime=20 --rate_iops=500 --steadystate=iops:20% \
                --steadystate_duration=2";
    let outcome = null(line);
    let job = only(&outcome);
    assert_eq!((job.steady, job.steady_window.len()), (Some(true), 2));
    for (ios, bytes) in &job.steady_window {
        assert!(ios.abs_diff(500) < 2 && bytes.abs_diff(500 * 4096) < 2 * 4096);
    }
    // Includes the first window.
    assert!(
        job.elapsed.0.abs_diff(2000 * MS) < 3 * MS,
        "{}",
        job.elapsed
    );
    let line = "--time_based --runtime=1 --steadystate=iops:1% --steadystate_duration=2";
    assert_eq!(only(&null(line)).steady, Some(false));
}

#[test]
fn a_job_that_is_too_slow_or_has_a_late_operation_fails() {
    let dir = tempdir();
    let of = |line: &str| {
        let clock = SimulatedClock::new(Nanos(10 * MS));
        only(&run_by(clock, dir.path(), line)).clone()
    };
    let one = |more: &str| of(&format!("--name=x --rw=read --size=8M {more}"));
    let eio = Errno::EIO as i32;
    // Detected at the end of the first second, or of the first cycle.
    for (more, cycle) in [
        ("--rate_min=2m --runtime=20", 1000),
        ("--rate_iops_min=1000 --rate_cycle=200 --runtime=20", 200),
    ] {
        let slow = one(more);
        assert_eq!(slow.error, eio, "{more}");
        let late = slow.elapsed.0.saturating_sub(cycle * MS);
        assert!(late < 100 * MS, "{more}: {}", slow.elapsed);
        assert!(slow.read.ios >= cycle / 25, "{more}: {}", slow.read.ios);
    }
    assert_eq!(one("--rate_iops_min=2 --runtime=1500ms").error, 0);
    assert_eq!(one("--rate_min=4k --runtime=1500ms").error, 0);
    // Reading back takes 2 s without writes; that does not count as slow.
    let back = of("--name=y --rw=write --size=480k --rate_min=4k --verify=crc32c");
    assert_eq!((back.error, back.read.ios), (0, 120));
    let late = one("--max_latency=5ms");
    assert_eq!((late.error, late.read.ios), (Errno::ETIMEDOUT as i32, 1));
    let fine = one("--max_latency=10ms --number_ios=10");
    assert_eq!((fine.error, fine.read.ios), (0, 10));
}

/// Clocks that stall for `by` soon after `at` since the job's start, each at another reading. Which
/// code makes the reading depends on its number.
fn stalling(at: u64, by: u64) -> impl Iterator<Item = &'static SimulatedClock> {
    let after = move |readings| SimulatedClock::ORIGIN.0 + LEAD + at + readings * US + 1;
    (0..6).map(move |n| SimulatedClock::stalling(Nanos(US), Nanos(after(n)), Nanos(by)))
}

#[test]
fn a_stall_shows_in_the_response_times_of_those_that_had_to_wait() {
    let dir = tempdir();
    let line = "--name=x --rw=randread --size=8M --ioengine=null --rate_iops=500 --time_based \
                --runtime=2";
    let mut slowest = Vec::new();
    for clock in stalling(400 * MS, 500 * MS) {
        let outcome = run_by(clock, dir.path(), line);
        let job = only(&outcome);
        let row = outcome.row("x-read");
        assert_eq!((row.items, row.unissued), (1000, 0));
        assert_eq!(job.read.lat.quantile(0.9), Nanos(US));
        slowest.push(job.read.lat.max().0);
        // 250 of 1000 operations were due during the stall, evenly from 0 to 500 ms. So the
        // hundredth of them waited 300 ms.
        let response = job.read.response.as_ref().expect("a rate is given");
        let waited = response.quantile(0.9).0;
        assert!(waited.abs_diff(300 * MS) < 6 * MS, "{waited}");
        assert!(response.max().0.abs_diff(500 * MS) < 3 * MS);
    }
    // A stall within an operation appears in its service time.
    slowest.sort_unstable();
    assert!(slowest[5] >= 500 * MS, "{slowest:?}");
    assert!(slowest[4] == US, "{slowest:?}");
}

#[test]
fn an_operation_that_stalls_ends_the_job_where_it_was() {
    let dir = tempdir();
    let line = "--name=x --rw=read --size=1M --ioengine=null --rate_iops=1000 --max_latency=1000ms";
    let ends = stalling(19 * MS, 1500 * MS).map(|clock| {
        let outcome = run_by(clock, dir.path(), line);
        let job = only(&outcome);
        (job.error, job.read.ios, job.read.clat.max().0 >= 1500 * MS)
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    // Time outside operations is not latency.
    assert_eq!(ends[..5], [(0, 256, false); 5]);
    assert_eq!(ends[5], (Errno::ETIMEDOUT as i32, 20, true));
}
