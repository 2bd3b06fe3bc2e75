//! Tests each rule at its limit.

use rbench_core::effort::Effort;
use rbench_core::outcome::{CommonStart, PhaseOutcome, Retries};
use rbench_core::timeline::Gap;
use rbench_core::{Failure, FailureKind, Latency, Nanos, OpKind};
use rbench_report::RunResult;
use rbench_report::schema::Warning;

use crate::fixtures::{Made, fail, meta_phases, meta_spec, no_space, run};

/// A phase without warnings: 2000 items of 100 us in 200 ms.
fn quiet(op: OpKind) -> PhaseOutcome {
    Made::on(2, 2, 500, 0, 100_000).phase("phase", "The phase", op)
}

fn of(phases: Vec<PhaseOutcome>) -> RunResult {
    run(2, 2, meta_spec(), phases)
}

fn codes(result: &RunResult) -> Vec<&str> {
    result.warnings.iter().map(|w| w.code.as_str()).collect()
}

fn message<'a>(result: &'a RunResult, code: &str) -> &'a str {
    let warning = result.warnings.iter().find(|w| w.code == code);
    &warning.expect("the rule found something").message
}

/// Returns true if `code` is raised for a phase changed by `change`.
fn finds(code: &str, change: impl Fn(&mut PhaseOutcome)) -> bool {
    let mut phase = quiet(OpKind::Create);
    change(&mut phase);
    codes(&of(vec![phase])).contains(&code)
}

/// Sets every service time to `ns`.
fn all_at(phase: &mut PhaseOutcome, ns: u64) {
    phase.service = Latency::new();
    (0..phase.items).for_each(|_| phase.service.record(Nanos(ns)));
}

#[test]
fn a_quiet_phase_has_no_warning() {
    assert_eq!(codes(&of(vec![quiet(OpKind::Stat)])), Vec::<&str>::new());
}

#[test]
fn time_outside_calls_is_not_judged_in_short_phases_and_they_are_named() {
    let idle = |name: &str, items| {
        let mut phase = Made::on(2, 2, items, 0, 100_000).phase(name, name, OpKind::Stat);
        phase.effort = Effort {
            workers: 4,
            active: Nanos(1000),
            in_calls: Nanos(500),
            ..Effort::default()
        };
        phase
    };
    let said = |phases| {
        let result = of(phases);
        message(&result, "time-outside-calls")
            .rsplit_once("): ")
            .map(|(_, list)| list.to_owned())
    };
    let long = "long (50.0% in calls).";
    assert_eq!(said(vec![idle("long", 500)]).as_deref(), Some(long));
    let both = said(vec![
        idle("long", 500),
        idle("brief", 10),
        quiet(OpKind::Stat),
    ]);
    let named = format!("{long} Not judged under 10 ms: brief.");
    assert_eq!(both, Some(named));
}

#[test]
fn a_host_that_stood_still_for_more_than_a_second_is_named() {
    let stood = |ms: u64, longest_ms: u64, median_ms: u64| {
        finds("stalled", |phase| {
            let host = &mut phase.hosts[1];
            host.gap = Some(Gap {
                length: Nanos(ms * 1_000_000),
                from: Nanos(2_500_000_000),
            });
            host.service = Latency::new();
            (0..9).for_each(|_| host.service.record(Nanos(median_ms * 1_000_000)));
            host.service.record(Nanos(longest_ms * 1_000_000));
        })
    };
    assert!(stood(1_001, 1_000, 1));
    assert!(!stood(1_000, 1_000, 1), "not more than a second");
    assert!(!stood(5_000, 2_000, 1), "a pause: nothing was under way");
    assert!(
        !stood(5_000, 5_000, 3_000),
        "such operations take that long"
    );
    let mut phase = quiet(OpKind::Create);
    for host in &mut phase.hosts {
        host.gap = Some(Gap {
            length: Nanos(3_000_000_000),
            from: Nanos(2_500_000_000),
        });
        host.service.record(Nanos(3_000_000_000));
    }
    phase.hosts[0].gap = None;
    let result = of(vec![phase]);
    let text = message(&result, "stalled");
    assert!(text.contains("client2 from 2.50 s to 5.50 s"), "{text}");
    assert!(!text.contains("client1"), "{text}");
}

#[test]
fn the_tools_cost_may_be_a_twentieth_of_the_median() {
    let with_cost = |null_op_ns: f64| {
        let mut phase = quiet(OpKind::Create);
        all_at(&mut phase, 2_000);
        let mut result = of(vec![phase]);
        result.calibration.clock_ns = 40.0;
        result.calibration.record_ns = 20.0;
        result.calibration.null_op_ns = null_op_ns;
        rbench_report::finish(&mut result);
        codes(&result).contains(&"tool-cost")
    };
    assert!(!with_cost(100.0));
    assert!(with_cost(100.5));
}

/// The workers' time, in ms.
fn time(in_calls: u64, outside: u64, waited: u64, full: u64) -> Effort {
    Effort {
        workers: 4,
        active: Nanos((in_calls + outside) * 1_000_000),
        waited: Nanos(waited * 1_000_000),
        in_calls: Nanos(in_calls * 1_000_000),
        full: Nanos(full * 1_000_000),
        ..Effort::default()
    }
}

/// The warning of an open loop in which 2,000 operations were started and `unissued` were not.
fn behind(unissued: u64, effort: Effort) -> Option<String> {
    let mut phase = quiet(OpKind::Write);
    (phase.unissued, phase.effort) = (unissued, effort);
    let result = of(vec![phase]);
    let mut warnings = result.warnings.into_iter();
    warnings
        .find(|w| w.code == "open-loop-behind")
        .map(|w| w.message)
}

#[test]
fn an_open_loop_is_behind_when_more_than_a_hundredth_of_what_was_due_was_never_started() {
    let target = time(60, 1, 39, 60);
    assert_eq!(behind(0, target), None);
    assert_eq!(behind(1, target), None);
    assert_eq!(behind(20, target), None);
    let text = behind(21, target).expect("more than 1% of 2,021");
    assert!(text.contains("21 due operations (1.0%) were"), "{text}");
}

#[test]
fn an_open_loop_is_behind_when_half_of_its_operations_start_late() {
    let with = |late_ns: u64| {
        let mut phase = quiet(OpKind::Write);
        phase.elapsed = Nanos(1_000_000_000);
        all_at(&mut phase, 100_000);
        let mut response = Latency::new();
        (0..2000).for_each(|_| response.record(Nanos(100_000 + late_ns)));
        phase.response = Some(response);
        codes(&of(vec![phase])).contains(&"open-loop-behind")
    };
    assert!(!with(0));
    assert!(!with(4_900_000));
    assert!(with(5_100_000));
}

#[test]
fn an_open_loop_that_is_behind_names_what_held_it_up() {
    let of = |effort| behind(500, effort).expect("20% were never started");
    let busy = of(time(97, 3, 0, 97));
    let words = "all 4 workers were busy all the time; more threads or depth";
    assert!(busy.contains(words), "{busy}");
    assert!(!busy.contains("target"), "{busy}");
    // Workers with time to wait were not the limit.
    let idle = of(time(60, 3, 37, 60));
    assert!(idle.ends_with("the target did not keep up)."), "{idle}");
    let tool = of(time(30, 70, 0, 30));
    assert!(
        tool.contains("rbench itself was the limit: its workers spent 70.0% of their time"),
        "{tool}"
    );
    // With a depth, an operation was always pending, but not all slots were in use.
    let deep = of(time(99, 1, 0, 20));
    assert!(deep.ends_with("the target did not keep up)."), "{deep}");
    // Older results lack the figures.
    let unknown = of(Effort::default());
    assert!(
        unknown.ends_with("the target did not keep up)."),
        "{unknown}"
    );
}

#[test]
fn workers_may_spend_a_twentieth_of_their_time_outside_of_calls() {
    let with = |effort| finds("time-outside-calls", |p| p.effort = effort);
    assert!(!with(time(950, 50, 0, 950)));
    assert!(with(time(949, 51, 0, 949)));
    // Waiting does not count.
    assert!(!with(time(950, 50, 4000, 950)));
    let of_one = finds("time-outside-calls", |p| {
        (p.effort, p.one_each) = (time(20, 80, 0, 20), true);
    });
    assert!(!of_one, "a sync at the end has its writes' time");
}

#[test]
fn what_a_worker_that_was_given_up_takes_with_it_is_told() {
    let mut phase = quiet(OpKind::Write);
    phase.effort = Effort {
        workers: 4,
        given_up: 1,
        lost: 500,
        ..time(95, 5, 0, 95)
    };
    phase.given_up_at = Some(Nanos(2_100_000_000));
    let result = of(vec![phase]);
    let text = message(&result, "given-up-workers");
    assert!(
        text.contains("1 of 4 workers after 2.10 s, with 500 operations that are not counted: 20.0% of the rate"),
        "{text}"
    );
    assert!(!finds("given-up-workers", |_| ()));
}

#[test]
fn a_first_finisher_whose_operations_failed_is_named() {
    let mut phase = quiet(OpKind::Stat);
    (phase.first_done, phase.first_failed) = (None, Some("client2".to_owned()));
    let result = of(vec![phase]);
    assert!(message(&result, "first-failed").contains("The phase (on client2)"));
}

#[test]
fn one_block_that_was_not_verified_is_a_warning() {
    let with = |iteration, unchecked| {
        let mut phase = quiet(OpKind::Read);
        (phase.iteration, phase.unchecked) = (iteration, unchecked);
        phase
    };
    assert_eq!(codes(&of(vec![with(0, 0)])), [""; 0]);
    let result = of(vec![with(0, 1)]);
    assert_eq!(codes(&result), ["unchecked-blocks"]);
    let words = "Blocks were not verified because their write had failed: The phase";
    let text = message(&result, "unchecked-blocks");
    assert_eq!(text, format!("{words} (1)."));
    let result = of(vec![with(0, 1_200), with(1, 0), with(2, 34)]);
    let text = message(&result, "unchecked-blocks");
    assert_eq!(text, format!("{words} in iterations 1, 3 (1,234)."));
}

#[test]
fn calls_beyond_the_first_of_an_operation_are_a_warning() {
    let messages = |interrupted, continued| {
        let mut phase = quiet(OpKind::Write);
        phase.again = Retries {
            interrupted,
            continued,
        };
        let mut result = of(vec![phase]);
        rbench_report::finish(&mut result);
        let messages = result.warnings.into_iter().map(|w| w.message);
        let messages = messages.filter(|message| message.contains("calls"));
        messages.collect::<Vec<String>>()
    };
    assert_eq!(messages(0, 0), [""; 0]);
    let expect = "Interrupted calls were retried (EINTR): The phase (1,234).";
    assert_eq!(messages(1234, 0), [expect]);
    let expect = "Short reads or writes were completed by further calls: The phase (6).";
    assert_eq!(messages(0, 6), [expect]);
}

#[test]
fn one_failure_is_a_warning() {
    let path = "d/f";
    assert!(!finds("errors", |_| ()));
    assert!(finds("errors", |p| fail(
        p,
        1,
        1,
        no_space(OpKind::Create, path)
    )));
}

#[test]
fn what_mdtest_was_to_make_and_found_is_no_failure() {
    let codes_of = |command: &str, op: OpKind, errno: i32| {
        let mut phase = quiet(op);
        let failure = Failure::new(op, "d/f", FailureKind::Errno(errno));
        fail(&mut phase, 1, 3, failure);
        let mut result = of(vec![phase]);
        result.run.command[1] = command.to_owned();
        result.warnings.clear();
        rbench_report::finish(&mut result);
        codes(&result).join(" ")
    };
    for op in [OpKind::Mkdir, OpKind::Mknod] {
        assert_eq!(codes_of("mdtest", op, 17), "already-there");
        assert_eq!(codes_of("mdtest", op, 28), "errors");
        assert_eq!(codes_of("meta", op, 17), "errors");
    }
    assert_eq!(codes_of("mdtest", OpKind::Rename, 17), "errors");
}

#[test]
fn one_value_above_an_hour_is_a_warning() {
    let hour = Nanos(3_600_000_000_000);
    assert!(!finds("latency-above-range", |p| p.service.record(hour)));
    assert!(finds("latency-above-range", |p| p
        .service
        .record(Nanos(hour.0 + 1))));
    assert!(finds("latency-above-range", |p| {
        let mut response = Latency::new();
        response.record(Nanos(hour.0 + 1));
        p.response = Some(response);
    }));
}

#[test]
fn start_skew_may_be_a_tenth_of_the_phase_or_a_millisecond() {
    let skewed = |skew_ns: u64, elapsed_ns: u64| {
        finds("start-skew", |p| {
            p.start_skew = Nanos(skew_ns);
            p.elapsed = Nanos(elapsed_ns);
        })
    };
    assert!(!skewed(2_000_000, 20_000_000));
    assert!(skewed(2_000_001, 20_000_000));
    assert!(!skewed(1_000_000, 5_000_000));
    assert!(skewed(1_000_001, 5_000_000));
}

#[test]
fn a_single_worker_starts_late_and_several_start_apart() {
    for (ranks, threads, with_work, word) in [
        (1, 1, None, "late"),
        (1, 2, None, "apart"),
        (2, 1, None, "apart"),
        (2, 1, Some(1), "late"),
        (2, 1, Some(2), "apart"),
    ] {
        let mut phase = Made::on(1, ranks, 500, 0, 100_000).phase("p", "The phase", OpKind::Stat);
        phase.start_skew = Nanos(100_000_000);
        phase.effort.workers = with_work.unwrap_or(0);
        let mut result = run(1, ranks, meta_spec(), vec![phase]);
        result.world.threads_per_rank = threads;
        rbench_report::finish(&mut result);
        let text = message(&result, "start-skew");
        assert!(text.contains(&format!("100 ms {word} in ")), "{text}");
    }
}

#[test]
fn clocks_that_are_not_known_well_enough_may_hide_a_start_apart() {
    let unsure = |error_ns: u64, elapsed_ns: u64| {
        finds("start-unsure", |p| {
            p.start = Some(CommonStart {
                at: Nanos(1),
                error: Nanos(error_ns),
            });
            p.elapsed = Nanos(elapsed_ns);
        })
    };
    // Errors go in either direction, so twice as much between two hosts.
    assert!(!unsure(1_000_000, 20_000_000));
    assert!(unsure(1_000_001, 20_000_000));
    assert!(!unsure(500_000, 5_000_000));
    assert!(unsure(500_001, 5_000_000));
    assert!(!finds("start-unsure", |p| p.start = None));
}

#[test]
fn a_phase_under_ten_milliseconds_is_short_if_it_did_anything() {
    let short = |elapsed_ns: u64| finds("short-phase", |p| p.elapsed = Nanos(elapsed_ns));
    assert!(!short(10_000_000));
    assert!(short(9_999_999));
    assert!(!finds("short-phase", |p| {
        p.elapsed = Nanos(5);
        p.items = 0;
    }));
}

#[test]
fn short_phases_are_told_with_the_option_that_makes_them_longer() {
    let told = |words: &str, spec: &[(&str, &str)], names: &[&str]| {
        let short = |name: &&str| {
            let mut phase = quiet(OpKind::Create);
            phase.name = (*name).to_owned();
            phase.elapsed = Nanos(1_000_000);
            phase
        };
        let mut result = of(names.iter().map(short).collect());
        result.run.command = words.split(' ').map(str::to_owned).collect();
        for (name, value) in spec {
            result.spec.insert((*name).to_owned(), (*value).into());
        }
        result.warnings.clear();
        rbench_report::finish(&mut result);
        message(&result, "short-phase").to_owned()
    };
    let meta = [("items", "30"), ("items-per-rank", "120"), ("depth", "1")];
    let check = |told: String, end: &str| assert!(told.ends_with(end), "{told}");
    let words = "rbench meta --items 30";
    check(
        told(words, &meta, &["file-create"]),
        "). Use more items: --items 1000, or --time 1.",
    );
    let both = told(words, &meta, &["tree-create", "file-create"]);
    assert!(
        both.contains("under 10 ms): The phase (1.00 ms). Use more items"),
        "{both}"
    );
    check(
        both,
        "--items 1000, or --time 1. Also short: The phase; --depth and --branch set the number of its directories.",
    );
    let timed = [("items", "30"), ("time", "1s")];
    check(
        told(words, &timed, &["file-create"]),
        "). Use more items: --items 1000.",
    );
    let tree = [("items", "30"), ("phases", "tree-create,file-create")];
    check(
        told(words, &tree, &["file-create"]),
        "). Use more items: --items 1000.",
    );
    check(
        told("rbench mdtest -n 120", &meta, &["tree-create"]),
        "-b and -z set the number of directories in the tree.",
    );
    check(
        told("rbench mix --list x", &[], &["read"]),
        "). Use more items, or --time 1.",
    );
    check(
        told(words, &meta, &["tree-create"]),
        "--depth and --branch set the number of directories in the tree.",
    );
    check(
        told("rbench mdtest -n 120", &meta, &["dir-stat"]),
        " -n 5000.",
    );
    check(
        told("rbench mdtest -Fb2I30", &meta, &["dir-stat"]),
        " -I 1000.",
    );
    check(
        told("rbench ops", &[("ops", "10")], &["mkdir"]),
        " --ops 200, or --time 1.",
    );
    let io = [("size", "64KiB")];
    check(
        told("rbench io --size 64k", &io, &["write"]),
        " --size 2M, or --time 1.",
    );
    let small = [("size", "64KiB"), ("files", "4")];
    check(
        told("rbench io --files 4", &small, &["write"]),
        " --files 100, or --time 1.",
    );
    check(
        told("rbench fio x.fio", &[], &["write"]),
        "). Use more data (size), or time_based with a runtime.",
    );
    check(told("rbench find", &[], &["find"]), "). Use more items.");
}

#[test]
fn a_rank_may_take_one_and_a_half_times_the_median() {
    let factor = |slow_ns: u64| {
        finds("straggler", |p| {
            p.ranks
                .iter_mut()
                .for_each(|r| r.elapsed = Nanos(250_000_000));
            p.ranks[2].elapsed = Nanos(slow_ns);
        })
    };
    assert!(!factor(375_000_000));
    assert!(factor(375_000_001));
    // Ranks without work do not lower the median.
    assert!(!finds("straggler", |p| {
        for rank in &mut p.ranks[1..] {
            rank.elapsed = Nanos(0);
            rank.items = 0;
        }
    }));
    // In a phase of milliseconds the scheduler determines the last rank.
    assert!(!finds("straggler", |p| {
        p.elapsed = Nanos(9_000_000);
        p.ranks[2].elapsed = Nanos(900_000_000);
    }));
}

#[test]
fn a_straggler_is_named_with_its_host() {
    let mut phase = quiet(OpKind::Create);
    phase
        .ranks
        .iter_mut()
        .for_each(|r| r.elapsed = Nanos(100_000_000));
    phase.ranks[3].elapsed = Nanos(230_000_000);
    assert_eq!(
        message(&of(vec![phase]), "straggler"),
        "A rank took more than 1.5 times as long as the median rank: \
         The phase (rank 3 on client2, 2.3 times)."
    );
}

#[test]
fn hosts_may_differ_twofold_in_rate_per_rank() {
    let differ = |items: [u64; 2]| {
        finds("uneven-hosts", |p| {
            for (host, n) in p.hosts.iter_mut().zip(items) {
                host.items = n;
                host.elapsed = Nanos(1_000_000_000);
            }
        })
    };
    assert!(!differ([2000, 1000]));
    assert!(differ([2001, 1000]));
    assert!(differ([1000, 2001]));
    // A host without work is not slow.
    assert!(!differ([1000, 0]));
    // A host with three of four ranks does three times the work.
    assert!(!finds("uneven-hosts", |p| {
        p.hosts[0].items = 3000;
        p.hosts[1].items = 1000;
        p.hosts
            .iter_mut()
            .for_each(|h| h.elapsed = Nanos(1_000_000_000));
        p.ranks[2].host = "client1".to_owned();
    }));
}

#[test]
fn warnings_of_one_code_are_one_line_that_lists_the_phases() {
    let phase_of = |name: &str, label: &str, iteration: u32, failures: u64| {
        let mut phase = Made::on(2, 2, 500, 0, 100_000).phase(name, label, OpKind::Create);
        phase.iteration = iteration;
        fail(&mut phase, 0, failures, no_space(OpKind::Create, "f"));
        phase
    };
    let result = of(vec![
        phase_of("a", "Phase A", 0, 3),
        phase_of("b", "Phase B", 0, 0),
        phase_of("c", "Phase C", 0, 1),
        phase_of("a", "Phase A", 1, 5),
        phase_of("b", "Phase B", 1, 7),
        phase_of("c", "Phase C", 1, 0),
    ]);
    assert_eq!(codes(&result), ["errors"]);
    assert_eq!(
        message(&result, "errors"),
        "Operations failed; items, rates and latencies do not include them: \
         Phase A (8), Phase B in iteration 2 (7), Phase C in iteration 1 (1)."
    );
}

#[test]
fn of_several_iterations_the_worst_is_told() {
    let phase_of = |iteration: u32, elapsed: u64| {
        let mut phase = quiet(OpKind::Create);
        phase.iteration = iteration;
        phase.elapsed = Nanos(elapsed);
        phase
    };
    let result = of(vec![
        phase_of(0, 5_000_000),
        phase_of(1, 4_000_000),
        phase_of(2, 8_000_000),
    ]);
    assert_eq!(
        message(&result, "short-phase"),
        "Too short for a trustworthy rate (under 10 ms): The phase (at worst 4.00 ms). Use more items."
    );
}

#[test]
fn finishing_again_changes_nothing_and_keeps_the_runs_own_warnings() {
    let mut phase = quiet(OpKind::Create);
    fail(&mut phase, 0, 1, no_space(OpKind::Create, "f"));
    let mut result = of(vec![phase]);
    let own = Warning {
        code: "clock-offset".to_owned(),
        message: "The clocks could not be compared.".to_owned(),
    };
    result.warnings.insert(0, own);
    let before = result.clone();
    rbench_report::finish(&mut result);
    assert_eq!(result, before);
    assert_eq!(codes(&result), ["clock-offset", "errors"]);
}

#[test]
fn blocks_that_are_written_again_are_told_with_when_and_how_many() {
    use rbench_core::residency::Round;
    let written = |rewritten| {
        let mut phase = quiet(OpKind::Write);
        phase.rewritten = rewritten;
        run(1, 1, meta_spec(), vec![phase])
    };
    let mut result = written(Some(Round {
        after: Nanos(1_200_000_000),
        once: 250,
        done: 1_000,
    }));
    rbench_report::finish(&mut result);
    let text = message(&result, "rewritten");
    assert!(text.contains("after 1.20 s, 75% of the writes"), "{text}");
    let mut result = written(None);
    rbench_report::finish(&mut result);
    assert!(!codes(&result).contains(&"rewritten"));
}

#[test]
fn a_target_on_the_root_file_system_or_in_memory_is_named() {
    let codes = |point: &str, fs_type: &str, embedded: bool| -> Vec<String> {
        let mut result = run(1, 1, meta_spec(), meta_phases(1, 1));
        result.phases.iter_mut().for_each(|p| p.residency = None);
        let target = &mut result.target;
        (target.mount_point, target.fs_type) = (Some(point.to_owned()), Some(fs_type.to_owned()));
        target.embedded = embedded;
        let all = rbench_report::warnings::find(&result);
        let of_target = all
            .into_iter()
            .filter(|warning| warning.message.starts_with("/mnt/jfs is "));
        of_target.map(|warning| warning.code).collect()
    };
    assert_eq!(codes("/", "ext4", false), ["root-file-system"]);
    assert_eq!(codes("/mnt/jfs", "tmpfs", false), ["target-in-memory"]);
    assert!(codes("/mnt/jfs", "fuse.juicefs", false).is_empty());
    assert!(codes("/", "tmpfs", true).is_empty());
}
