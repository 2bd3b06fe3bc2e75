//! Tests rates, times and searches on the machine's own clock, which may be busy.

use std::time::Instant;

use rbench_testfs::Kind;

use super::*;
use crate::clock::tried_again;
use crate::testfs::{Mount, mount};

fn reads_take(time: &str) -> Mount {
    mount(|config| config.latency = format!("read={time}").parse().expect("valid"))
}

/// A job without files.
fn null(dir: &Path, more: &str) -> Outcome {
    let line = format!("--name=x --rw=randread --size=64M --ioengine=null {more}");
    run_well(dir, &line)
}

/// Checks that about `expect` operations of a row were due, and nearly all of them done in time: a
/// busy machine may wake a worker late at the end.
fn check_due(outcome: &Outcome, row: &str, expect: f64, percent: f64, what: &str) {
    let row = outcome.row(row);
    check_share(row.items + row.unissued, expect, percent, what);
    assert!(
        row.items as f64 > 0.8 * expect,
        "{what}: {} in time",
        row.items
    );
}

fn check_share(got: u64, expect: f64, percent: f64, what: &str) {
    let off = 100.0 * (got as f64 / expect - 1.0);
    eprintln!("{what}: {got} for {expect} ({off:+.2} %)");
    assert!(off.abs() <= percent, "{what}: {got} for {expect}");
}

#[test]
fn rates_are_kept() {
    tried_again(rates_are_kept_once);
}

fn rates_are_kept_once() {
    let dir = tempdir();
    let timed = "--time_based --runtime=1";
    for (more, expect) in [
        ("--rate_iops=20000", 20_000.0),
        ("--rate=40m", 10_240.0),
        ("--rate=40m --bs=64k", 640.0),
        (
            "--rate_iops=1000 --ioengine=io_uring --iodepth=8 --size=4M",
            1_000.0,
        ),
    ] {
        let outcome = null(dir.path(), &format!("{timed} {more}"));
        check_due(&outcome, "x-read", expect, 2.0, more);
        let job = only(&outcome);
        let response = job.read.response.as_ref().expect("a rate is given");
        assert_eq!(response.count(), job.read.ios);
    }
    let mix = format!("{timed} --rw=randrw --rwmixread=75 --rate_iops=3000,1000");
    let outcome = null(dir.path(), &mix);
    check_due(&outcome, "x-read", 3000.0, 2.0, "reads of a mix");
    check_due(&outcome, "x-write", 1000.0, 2.0, "writes of a mix");
}

#[test]
fn poisson_arrivals_come_to_the_rate_at_a_high_rate_too() {
    tried_again(poisson_arrivals_come_to_the_rate_at_a_high_rate_too_once);
}

fn poisson_arrivals_come_to_the_rate_at_a_high_rate_too_once() {
    let dir = tempdir();
    let line = "--time_based --runtime=2 --rate_process=poisson --bs=512";
    for (rate, jobs) in [(1000_u64, 1_u64), (50_000, 1), (20_000, 3)] {
        let more = format!("{line} --rate_iops={rate} --numjobs={jobs} --group_reporting");
        let outcome = null(dir.path(), &more);
        // Four standard deviations of a Poisson process, or 2 %.
        let expect = (rate * jobs * 2) as f64;
        let percent = (400.0 / expect.sqrt()).max(2.0);
        check_due(&outcome, "x-read", expect, percent, &more);
    }
}

#[test]
fn gaps_of_poisson_arrivals_are_spread_like_exponential_ones() {
    tried_again(gaps_of_poisson_arrivals_are_spread_like_exponential_ones_once);
}

fn gaps_of_poisson_arrivals_are_spread_like_exponential_ones_once() {
    let target = reads_take("1us");
    let line = "--name=x --rw=randread --size=4M --direct=1 --rate_iops=500 --rate_process=poisson \
                --write_lat_log=x";
    let outcome = run_well(target.path(), line);
    let samples = &outcome.logs[0].samples;
    let starts: Vec<f64> = samples.iter().map(|s| (s.at.0 - s.lat.0) as f64).collect();
    let gaps: Vec<f64> = starts.windows(2).map(|w| (w[1] - w[0]).max(0.0)).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let below = gaps.iter().filter(|g| **g < mean).count() as f64 / gaps.len() as f64;
    // A share of 1 − 1/e of exponential gaps is below their mean; of equal gaps, half.
    assert!((below - 0.632).abs() < 0.06, "{below}");
    target.end();
}

#[test]
fn thinking_comes_behind_operations() {
    tried_again(thinking_comes_behind_operations_once);
}

fn thinking_comes_behind_operations_once() {
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
        let started = Instant::now();
        let outcome = run_well(dir.path(), &line);
        let whole = started.elapsed().as_nanos() as u64;
        let job = only(&outcome);
        let least = pauses * 10 * MS;
        assert!(
            job.elapsed.0 >= least && whole >= least,
            "{line}: {}",
            job.elapsed
        );
        assert!(job.elapsed.0 < least + 100 * MS, "{line}: {}", job.elapsed);
        // No operation took this long.
        assert_eq!(job.write.ios, 20);
        if more.contains("spin") {
            // Other processes also use a part of its spinning time.
            assert!(job.cpu_user.0 + job.cpu_system.0 >= MS, "{}", job.cpu_user);
        }
    }
}

#[test]
fn what_is_done_in_the_ramp_is_not_counted() {
    tried_again(what_is_done_in_the_ramp_is_not_counted_once);
}

fn what_is_done_in_the_ramp_is_not_counted_once() {
    let dir = tempdir();
    let line = "--name=x --rw=randread --size=1M --ioengine=null --rate_iops=2000 --time_based \
                --ramp_time=400ms --runtime=500ms --write_lat_log=x";
    let outcome = run_well(dir.path(), line);
    let job = only(&outcome);
    check_due(&outcome, "x-read", 1000.0, 5.0, "behind the ramp");
    assert_eq!(outcome.row("x-read").items, job.read.ios);
    assert!(
        job.elapsed.0 >= 490 * MS && job.elapsed.0 < 1500 * MS,
        "{}",
        job.elapsed
    );
    assert!(
        job.read.runtime.0 >= 490 * MS && job.read.runtime <= job.elapsed,
        "{}",
        job.read.runtime
    );
    let first = outcome.logs[0].samples[0].at;
    // Counted from the end of the ramp.
    assert!(first.0 < 300 * MS, "{first}");
}

#[test]
fn a_row_of_a_job_is_over_the_time_in_which_its_own_operations_were_measured() {
    // A worker that waits for a processor during its whole second measures nothing.
    tried_again(rows_are_over_their_own_time);
}

fn rows_are_over_their_own_time() {
    let outcome = run_on(&[0, 1], tempdir().path(), &jobs_of_spans());
    for (name, from, to) in SPANS {
        let row = outcome.row(&format!("{name}-read"));
        assert_eq!(row.measured_from.0, from * MS, "{name}");
        assert_eq!(row.set_aside.0, 0, "{name}");
        let end = row.measured_from.0 + row.elapsed.0;
        // Operations start before the deadline, however late they end.
        let latest = to * MS + row.service.max().0;
        assert!((to * MS..=latest).contains(&end), "{name}: {end} ns");
        check_parts(row);
    }
}

#[test]
fn a_delayed_start_counts_nowhere_but_in_the_clock() {
    tried_again(a_delayed_start_counts_nowhere_but_in_the_clock_once);
}

fn a_delayed_start_counts_nowhere_but_in_the_clock_once() {
    let dir = tempdir();
    let line = "--name=x --rw=write --size=64k --startdelay=300ms --name=y --rw=write --size=64k";
    let started = Instant::now();
    let outcome = run_well(dir.path(), line);
    assert!(started.elapsed().as_millis() >= 300);
    let (x, y) = (&outcome.jobs[0], &outcome.jobs[1]);
    let apart = x.start_ms - y.start_ms;
    assert!((250..900).contains(&apart), "{apart} ms");
    assert!(
        x.elapsed.0 < 250 * MS && x.write.runtime.0 < 250 * MS,
        "{}",
        x.elapsed
    );
    assert_eq!((x.write.ios, y.write.ios), (16, 16));
}

#[test]
fn runtime_caps_what_would_take_longer_and_time_based_work_begins_again() {
    tried_again(runtime_caps_what_would_take_longer_and_time_based_work_begins_again_once);
}

fn runtime_caps_what_would_take_longer_and_time_based_work_begins_again_once() {
    let target = reads_take("10ms");
    let line = "--name=x --rw=read --direct=1 --runtime=300ms";
    let outcome = run_well(target.path(), &format!("{line} --size=4M"));
    let cut = only(&outcome);
    // Each read takes at least 10 ms, so there are at most 30.
    assert!((5..=31).contains(&cut.read.ios), "{}", cut.read.ios);
    assert!(cut.elapsed.0 >= 290 * MS, "{}", cut.elapsed);
    let outcome = run_well(target.path(), &format!("{line} --size=20k --time_based"));
    let again = only(&outcome);
    assert!((6..=31).contains(&again.read.ios), "{}", again.read.ios);
    assert!(again.elapsed.0 >= 290 * MS, "{}", again.elapsed);
    // Work that ends early is not stretched.
    let outcome = run_well(target.path(), &format!("{line} --size=20k"));
    assert_eq!(only(&outcome).read.ios, 5);
    assert!(only(&outcome).elapsed.0 < 280 * MS);
    target.end();
}

#[test]
fn the_depth_that_keeps_a_latency_is_found_and_shown_by_itself() {
    tried_again(the_depth_that_keeps_a_latency_is_found_and_shown_by_itself_once);
}

fn the_depth_that_keeps_a_latency_is_found_and_shown_by_itself_once() {
    let target = reads_take("2ms");
    let line = "--name=x --rw=randread --size=1M --direct=1 --ioengine=io_uring --iodepth=8 \
                --time_based --latency_window=150ms --latency_percentile=90";
    let outcome = run_well(
        target.path(),
        &format!("{line} --runtime=20 --latency_target=500000"),
    );
    let job = only(&outcome);
    assert_eq!(job.latency_depth, 8);
    // 1, 2, 4, 8, and 8 again.
    assert!(
        job.elapsed.0 >= 5 * 150 * MS && job.elapsed.0 < 6_000 * MS,
        "{}",
        job.elapsed
    );
    // Only the last window counts.
    assert!(
        job.read.runtime.0 < job.elapsed.0 / 2,
        "{}",
        job.read.runtime
    );
    let deep = job.depths[3] as f64 / job.read.ios as f64;
    assert!(deep > 0.9, "{:?}", job.depths);
    // If a single request misses the target, no depth meets it.
    let outcome = run_well(
        target.path(),
        &format!("{line} --runtime=600ms --latency_target=1000"),
    );
    let job = only(&outcome);
    assert_eq!(job.latency_depth, 0);
    assert!(
        job.elapsed.0 >= 590 * MS && job.read.ios > 10,
        "{}",
        job.read.ios
    );
    assert_eq!(job.depths[1..], [0; 6]);
    target.end();
}

#[test]
fn a_steady_rate_ends_the_job() {
    tried_again(a_steady_rate_ends_the_job_once);
}

fn a_steady_rate_ends_the_job_once() {
    let dir = tempdir();
    let line = "--time_based --runtime=20 --rate_iops=500 --steadystate=iops:20% \
                --steadystate_duration=2";
    let outcome = null(dir.path(), line);
    let job = only(&outcome);
    assert_eq!(job.steady, Some(true));
    assert_eq!(job.steady_window.len(), 2);
    for (ios, bytes) in &job.steady_window {
        assert!(ios.abs_diff(500) < 100 && bytes.abs_diff(500 * 4096) < 100 * 4096);
    }
    assert!(job.elapsed.0 < 10_000 * MS, "{}", job.elapsed);
    let line = "--time_based --runtime=1 --steadystate=iops:1% --steadystate_duration=2";
    assert_eq!(only(&null(dir.path(), line)).steady, Some(false));
}

#[test]
fn a_job_that_is_too_slow_or_has_a_late_operation_fails() {
    tried_again(|| {
        let target = reads_take("10ms");
        let line = "--name=x --rw=read --size=8M --direct=1";
        let one = |more: &str| {
            let line = format!("{line} {more}");
            only(&run(target.path(), &line)).clone()
        };
        let slow = one("--rate_min=2m --runtime=20");
        assert_eq!(slow.error, Errno::EIO as i32);
        assert!(
            slow.elapsed.0 < 19_000 * MS && slow.read.ios > 0,
            "{}",
            slow.elapsed
        );
        let slow = one("--rate_iops_min=1000 --rate_cycle=200 --runtime=20");
        assert_eq!(slow.error, Errno::EIO as i32);
        assert!(slow.elapsed.0 < 19_000 * MS, "{}", slow.elapsed);
        assert_eq!(one("--rate_iops_min=2 --runtime=1500ms").error, 0);
        let enough = one("--rate_min=4k --runtime=1500ms");
        assert_eq!(enough.error, 0);
        // Reading back takes 1.2 s without writes; that does not count as slow.
        let back = "--name=y --rw=write --size=480k --direct=1 --rate_min=4k --verify=crc32c";
        let back = run(target.path(), back);
        assert_eq!((only(&back).error, only(&back).read.ios), (0, 120));
        let late = one("--max_latency=5ms");
        assert_eq!((late.error, late.read.ios), (Errno::ETIMEDOUT as i32, 1));
        let fine = one("--max_latency=60s --number_ios=10");
        assert_eq!((fine.error, fine.read.ios), (0, 10));
        target.end();
    });
}

#[test]
fn an_operation_that_stalls_ends_the_job_where_it_was() {
    let target = mount(|config| {
        let stall = "read:stall=1500ms@nth=20".parse().expect("valid");
        config.faults.push(stall);
    });
    let line = "--name=x --rw=read --size=1M --direct=1 --max_latency=1000ms";
    // The layout only writes.
    assert_eq!(target.fs.stats().snapshot().counts(Kind::Read).requests, 0);
    let outcome = run(target.path(), line);
    let job = only(&outcome);
    assert_eq!((job.error, job.read.ios), (Errno::ETIMEDOUT as i32, 20));
    assert!(job.read.clat.max().0 >= 1500 * MS);
    target.end();
}

#[test]
fn a_stall_shows_in_the_response_times_of_those_that_had_to_wait() {
    tried_again(a_stall_shows_in_the_response_times_of_those_that_had_to_wait_once);
}

fn a_stall_shows_in_the_response_times_of_those_that_had_to_wait_once() {
    let target = mount(|config| {
        let stall = "read:stall=500ms@nth=200".parse().expect("valid");
        config.faults.push(stall);
    });
    let line =
        "--name=x --rw=randread --size=8M --direct=1 --rate_iops=500 --time_based --runtime=2";
    let outcome = run_well(target.path(), line);
    let job = only(&outcome);
    check_share(
        job.read.ios + outcome.row("x-read").unissued,
        1000.0,
        1.0,
        "due",
    );
    let response = job.read.response.as_ref().expect("a rate is given");
    // About 250 of 1000 were due while the 200th took 500 ms.
    assert!(job.read.lat.quantile(0.9).0 < 100 * MS);
    let waited = response.quantile(0.9).0;
    assert!((150 * MS..500 * MS).contains(&waited), "{waited}");
    target.end();
}
