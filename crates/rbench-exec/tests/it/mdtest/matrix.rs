//! Tests all combinations of options that affect names, trees and ownership, call by call and rank
//! by rank.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rbench_core::Bytes;
use rbench_plan::spec::Mdtest;
use rbench_sys::TraceFs;

use super::{BY_BLOCK, IN_TURN, calls, oracle, record, recorders};
use crate::group::Run;

/// -n and -I.
const SIZES: [(Option<u64>, Option<u64>); 3] =
    [(None, Some(3)), (Some(7), None), (Some(6), Some(3))];

/// Neither, -F, -D.
const KINDS: [(bool, bool); 3] = [(false, false), (true, false), (false, true)];

/// The hosts of the ranks.
const PLACES: [&[u32]; 4] = [&[0], &[0; 3], &[0, 0, 1, 1, 2, 2], &IN_TURN];

/// A combination, by the number of each choice.
struct Case {
    digits: Vec<usize>,
    options: Mdtest,
}

/// All combinations, possible or not.
fn cases() -> Vec<Case> {
    let choices = [3, 3, SIZES.len(), 2, 2, 3, KINDS.len(), 2, 2];
    let all: usize = choices.iter().product();
    (0..all)
        .map(|mut number| {
            let digits: Vec<usize> = choices
                .iter()
                .map(|n| {
                    let digit = number % n;
                    number /= n;
                    digit
                })
                .collect();
            let options = options(&digits);
            Case { digits, options }
        })
        .collect()
}

fn options(digits: &[usize]) -> Mdtest {
    let [b, z, size, u, l, n, kind, s, c] = digits else {
        panic!("a digit for each choice");
    };
    Mdtest {
        dirs: vec!["/t/out".into()],
        branch: Some([1, 2, 3][*b]),
        depth: Some([0, 1, 2][*z]),
        items: SIZES[*size].0,
        items_per_dir: SIZES[*size].1,
        unique_dir: *u == 1,
        leaf_only: *l == 1,
        stride: Some([0, 1, 4][*n]),
        files_only: KINDS[*kind].0,
        dirs_only: KINDS[*kind].1,
        shared: *s == 1,
        collective: *c == 1,
        write_bytes: Some(Bytes(9)),
        read_bytes: Some(Bytes(5)),
        ..Mdtest::default()
    }
}

/// The first difference between the calls.
fn difference(expect: &[Vec<String>], got: &[Vec<String>]) -> Option<String> {
    for (rank, (expect, got)) in expect.iter().zip(got).enumerate() {
        for nth in 0..expect.len().max(got.len()) {
            let (should, is) = (expect.get(nth), got.get(nth));
            if should != is {
                return Some(format!(
                    "call {nth} of rank {rank} should be {should:?} and is {is:?}"
                ));
            }
        }
    }
    None
}

/// Describes a mistake of a run of `options` on `recorders`. `there`: true if its directories
/// already exist.
fn fault_on(recorders: &[TraceFs], options: &Mdtest, hosts: &[u32], there: bool) -> Option<String> {
    let expected = oracle::expected(options, hosts, there);
    recorders.iter().for_each(TraceFs::clear);
    let outcome = record(options, hosts, recorders);
    let phases: Vec<(String, u64)> = outcome
        .rows
        .iter()
        .map(|row| (row.name.clone(), row.items))
        .collect();
    let failures: u64 = outcome.rows.iter().map(|row| row.failures.total()).sum();
    if let Some(difference) = difference(&expected.calls, &calls(recorders)) {
        Some(difference)
    } else if phases != expected.phases {
        Some(format!(
            "rows should be {:?} and are {phases:?}",
            expected.phases
        ))
    } else if failures > 0 || !outcome.complete {
        Some(format!(
            "{failures} failures, complete: {}",
            outcome.complete
        ))
    } else {
        None
    }
}

/// Like `fault_on`, on empty recorders.
fn fault(options: &Mdtest, hosts: &[u32]) -> Option<String> {
    fault_on(&recorders(hosts.len()), options, hosts, false)
}

/// Checks all `jobs`, several at a time: a run mostly waits.
fn check(jobs: &[(&Mdtest, &[u32])]) {
    let (next, faults) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some((options, hosts)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Some(fault) = fault(options, hosts) {
                let mut faults = faults.lock().expect("no panic");
                faults.push(format!("{options:?} on {hosts:?}: {fault}"));
            }
        }
    };
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
    let faults = faults.into_inner().expect("no panic");
    let mut text = String::new();
    for fault in faults.iter().take(5) {
        writeln!(text, "{fault}").expect("a string takes it");
    }
    assert!(
        faults.is_empty(),
        "{} of {} runs:\n{text}",
        faults.len(),
        jobs.len()
    );
}

/// Number of choices that are combined in every possible way on each of [`PLACES`]. Runs with more
/// ranks take longer.
const STRENGTHS: [u32; 4] = [4, 3, 3, 2];

/// A covering array: a few cases that contain every combination of `strength` choices that any case
/// contains. Cases with many new combinations are selected first.
fn covering(cases: &[Case], strength: u32) -> Vec<&Case> {
    let meetings: Vec<_> = cases.iter().map(|case| meetings(case, strength)).collect();
    let most = meetings.first().map_or(0, Vec::len);
    let mut covered: HashSet<(u32, u32)> = HashSet::new();
    let mut chosen = Vec::new();
    let halves = std::iter::successors(Some(most), |least| Some(least / 2));
    for least in halves.take_while(|least| *least > 0) {
        for (case, all) in cases.iter().zip(&meetings) {
            if all.iter().filter(|one| !covered.contains(*one)).count() >= least {
                covered.extend(all);
                chosen.push(case);
            }
        }
    }
    chosen
}

/// All combinations of `strength` choices in `case`: positions as bits, digits in two bits each.
fn meetings(case: &Case, strength: u32) -> Vec<(u32, u32)> {
    let digits: Vec<u32> = case.digits.iter().map(|digit| *digit as u32).collect();
    assert!(digits.iter().all(|digit| *digit < 4), "two bits each");
    (0..1_u32 << digits.len())
        .filter(|chosen| chosen.count_ones() == strength)
        .map(|chosen| {
            let of_chosen = digits
                .iter()
                .enumerate()
                .filter(|(nth, _)| chosen >> nth & 1 == 1);
            (
                chosen,
                of_chosen.fold(0, |all, (_, digit)| all << 2 | digit),
            )
        })
        .collect()
}

#[test]
fn every_rank_makes_the_calls_that_mdtest_makes() {
    let mut cases = cases();
    cases.retain(|case| oracle::excluded(&case.options).is_none());
    let mut jobs = Vec::new();
    for (hosts, strength) in PLACES.iter().zip(STRENGTHS) {
        let part = covering(&cases, strength);
        let of = |case: &Case| meetings(case, strength);
        let possible: HashSet<_> = cases.iter().flat_map(of).collect();
        let covered: HashSet<_> = part.iter().flat_map(|case| of(case)).collect();
        assert_eq!(covered, possible, "choices that never meet on {hosts:?}");
        jobs.extend(part.into_iter().map(|case| (&case.options, *hosts)));
    }
    check(&jobs);
}

#[test]
fn what_mdtest_excludes_is_refused_and_nothing_else() {
    for case in cases() {
        for hosts in PLACES {
            let run = Run::mdtest(hosts, Path::new("/t/out"), case.options.clone());
            match (oracle::excluded(&case.options), run.plan()) {
                (None, Ok(_)) => {}
                (Some(letter), Err(error)) => assert!(
                    error.0.contains(letter),
                    "'{error}' does not name {letter}: {:?}",
                    case.options
                ),
                (excluded, plan) => panic!(
                    "{:?}: should be refused: {excluded:?}, is: {:?}",
                    case.options,
                    plan.err()
                ),
            }
        }
    }
}

fn three(change: impl FnOnce(&mut Mdtest)) -> Mdtest {
    let mut options = Mdtest {
        dirs: vec!["/t/out".into()],
        items_per_dir: Some(3),
        branch: Some(2),
        depth: Some(1),
        ..Mdtest::default()
    };
    change(&mut options);
    options
}

#[test]
fn what_surrounds_the_operations_is_where_it_belongs() {
    let changes: [fn(&mut Mdtest); 11] = [
        |o| o.iterations = Some(3),
        |o| {
            o.direct = true;
            (o.write_bytes, o.read_bytes) = (Some(Bytes(512)), Some(Bytes(512)));
        },
        |o| o.sync = true,
        |o| (o.sync, o.no_barriers) = (true, true),
        |o| o.no_barriers = true,
        |o| o.mknod = true,
        |o| (o.mknod, o.collective) = (true, true),
        // Without -w there is nothing to sync.
        |o| o.fsync = true,
        |o| (o.fsync, o.write_bytes) = (true, Some(Bytes(4096))),
        |o| {
            (o.fsync, o.collective) = (true, true);
            (o.write_bytes, o.read_bytes) = (Some(Bytes(7)), Some(Bytes(7)));
        },
        |o| (o.items_per_dir, o.items) = (None, None),
    ];
    let one_dir: Vec<Mdtest> = changes.into_iter().map(three).collect();
    let several = three(|o| {
        o.dirs = vec!["/t/a".into(), "/t/b".into()];
        o.unique_dir = true;
    });
    let hosts: [&[u32]; 2] = [&[0], &[0; 3]];
    let mut jobs: Vec<(&Mdtest, &[u32])> = one_dir
        .iter()
        .flat_map(|options| hosts.map(|hosts| (options, hosts)))
        .collect();
    jobs.push((&several, &[0; 3]));
    jobs.push((&several, &BY_BLOCK));
    check(&jobs);
}

#[test]
fn a_directory_that_is_there_is_used_and_stays() {
    let recorders = recorders(3);
    let options = three(|o| o.dirs = vec!["/t".into()]);
    assert_eq!(fault_on(&recorders, &options, &[0; 3], true), None);
    // A second run: the first one removed everything.
    assert_eq!(fault_on(&recorders, &options, &[0; 3], true), None);
}

#[test]
fn runs_of_one_phase_each_work_on_the_same_items() {
    let changes: [fn(&mut Mdtest); 9] = [
        |_| (),
        |o| (o.unique_dir, o.stride) = (true, Some(1)),
        |o| o.stride = Some(1),
        |o| o.collective = true,
        |o| (o.collective, o.unique_dir, o.stride) = (true, true, Some(1)),
        |o| o.shared = true,
        |o| o.leaf_only = true,
        |o| o.items = Some(6),
        |o| {
            o.dirs = vec!["/t/a".into(), "/t/b".into()];
            o.unique_dir = true;
        },
    ];
    let phases: [fn(&mut Mdtest); 5] = [
        |o| o.create = true,
        |o| o.stat = true,
        |o| (o.read, o.rename) = (true, !o.shared),
        |o| o.read = true,
        |o| o.remove = true,
    ];
    let all_runs = |change: fn(&mut Mdtest)| {
        let recorders = recorders(3);
        for phase in phases {
            let options = three(|o| {
                change(o);
                phase(o);
            });
            let fault = fault_on(&recorders, &options, &[0; 3], false);
            assert_eq!(fault, None, "{options:?}");
        }
    };
    std::thread::scope(|scope| {
        for change in changes {
            scope.spawn(move || all_runs(change));
        }
    });
}

/// The calls of a run of `options` after a stonewall with `count` items on every rank.
fn after_a_stonewall(mut options: Mdtest, count: u64) -> Vec<Vec<String>> {
    options.status_file = Some("status".into());
    let recorders = recorders(3);
    let mut run = Run::mdtest(&[0; 3], Path::new("/t/out"), options);
    run.recorders = recorders.clone();
    run.stonewalled = Some(count);
    run.go().expect("runs");
    // The files do not exist, but the requests are the same.
    let call = |line: String| line.split(" = ").next().unwrap_or_default().to_owned();
    let all = calls(&recorders).into_iter();
    all.map(|lines| lines.into_iter().map(call).collect())
        .collect()
}

#[test]
fn the_count_of_a_stonewall_stands_for_the_number_of_files() {
    let changes: [fn(&mut Mdtest); 5] = [
        |o| o.unique_dir = true,
        |_| (),
        |o| (o.unique_dir, o.stride) = (true, Some(1)),
        |o| o.shared = true,
        |o| (o.collective, o.unique_dir) = (true, true),
    ];
    for change in changes {
        for told in [None, Some(1000)] {
            let options = |items: Option<u64>| {
                let mut options = Mdtest {
                    dirs: vec!["/t/out".into()],
                    items,
                    files_only: true,
                    mknod: true,
                    stat: true,
                    remove: true,
                    ..Mdtest::default()
                };
                change(&mut options);
                options
            };
            let expect = oracle::expected(&options(Some(5)), &[0; 3], true);
            let got = after_a_stonewall(options(told), 5);
            assert_eq!(difference(&expect.calls, &got), None, "-n {told:?}");
        }
    }
}

#[test]
fn the_count_of_a_stonewall_may_end_in_the_middle_of_a_loop() {
    let options = Mdtest {
        items: Some(6),
        items_per_dir: Some(3),
        files_only: true,
        stat: true,
        ..Mdtest::default()
    };
    let path =
        |nth: u64, k: u64| format!("stat /t/out/test-dir.0-{nth}/mdtest_tree.0/file.mdtest.1.{k}");
    let expect = [path(0, 0), path(0, 1), path(0, 2), path(1, 0)];
    assert_eq!(after_a_stonewall(options, 4)[1], expect);
}

#[test]
fn a_random_order_changes_stat_and_read_alone_and_visits_everything_once() {
    let options = three(|o| {
        (o.items_per_dir, o.random) = (Some(40), true);
        (o.write_bytes, o.read_bytes) = (Some(Bytes(1)), Some(Bytes(1)));
    });
    let all = recorders(3);
    record(&options, &[0; 3], &all);
    let expected = oracle::expected(&options, &[0; 3], false);
    // For each file read, only the call that determines the order.
    let asks = |line: &String| line.starts_with("stat") || line.ends_with(" read");
    let reads = |line: &String| line.starts_with("read ");
    for (expect, got) in expected.calls.iter().zip(calls(&all)) {
        let part = |lines: &[String], wanted: bool| -> Vec<String> {
            let of_phase = |line: &&String| asks(line) == wanted && !reads(line);
            lines.iter().filter(of_phase).cloned().collect()
        };
        let (mut should, mut is) = (part(expect, true), part(&got, true));
        assert_ne!(should, is);
        should.sort();
        is.sort();
        assert_eq!(should, is);
        let rest = |lines: &[String]| -> Vec<String> {
            let rest = part(lines, false);
            rest.into_iter()
                .filter(|l| !l.starts_with("close"))
                .collect()
        };
        assert_eq!(rest(expect), rest(&got));
    }
}
