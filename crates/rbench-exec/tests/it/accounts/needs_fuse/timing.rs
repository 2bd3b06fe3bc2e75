//! Upper bounds, which only the clock of an idle machine can decide.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::closing::{SLOW, fio, write_and_read};
use super::ops::{ASKED, Asked, Latencies, REQUESTS, injected, latencies, rows};
use super::runs::stalled;
use super::*;
use crate::clock::tried_again;

/// Kinds with thousands of requests in preparation and removal.
const PREPARING: [Kind; 3] = [Kind::Mkdir, Kind::Mknod, Kind::Unlink];

fn ms(time: Nanos) -> f64 {
    time.0 as f64 / MS as f64
}

/// Mean service time of a row, in ms.
fn mean(outcome: &Outcome, name: &str) -> f64 {
    outcome.row(name).service.mean_ns() / MS as f64
}

/// Describes a wrong mean of a row, given the means with and without injected latency. All in ms;
/// `room` is the tolerance for a noisy machine.
fn wrong(name: &str, means: [f64; 2], injected: f64, room: f64) -> Option<String> {
    let [with, without] = means;
    let text = format!("{name}: {with:.3} ms, {injected} ms injected, {without:.3} ms without");
    eprintln!("{text}");
    let most = injected + without + room;
    (with < injected || with > most).then_some(text)
}

/// Repeats rows until each was right once: a row that measures something else never is.
fn each_right_once<'n>(names: &[&'n str], try_rows: impl Fn(&[&'n str]) -> Vec<(&'n str, String)>) {
    let right: RefCell<BTreeSet<&str>> = RefCell::default();
    tried_again(|| {
        let left: Vec<&str> = names
            .iter()
            .filter(|name| !right.borrow().contains(*name))
            .copied()
            .collect();
        let wrong = try_rows(&left);
        let bad: BTreeSet<&str> = wrong.iter().map(|(name, _)| *name).collect();
        right
            .borrow_mut()
            .extend(left.iter().filter(|name| !bad.contains(*name)));
        assert!(wrong.is_empty(), "{wrong:?}");
    });
}

#[test]
fn each_row_takes_the_time_of_its_own_requests_and_no_more() {
    let latencies = latencies(|number| 2 + number);
    let all: Vec<&str> = REQUESTS.iter().map(|(name, _)| *name).collect();
    each_right_once(&all, |names| {
        let without = rows(names, 3, true, &Latencies::new());
        let with = rows(names, 3, true, &latencies);
        let tried = REQUESTS.iter().filter(|(name, _)| names.contains(name));
        let judge = |(name, requests): &(&'static str, &[Kind])| {
            let injected = ms(injected(requests, &latencies));
            // The latencies of two kinds differ by more.
            let room = 0.9;
            let means = [&with, &without].map(|outcome| mean(outcome, name));
            Some((*name, wrong(name, means, injected, room)?))
        };
        tried.filter_map(judge).collect()
    });
}

#[test]
fn rows_that_caches_would_answer_take_the_time_of_their_requests_and_of_no_other() {
    let all: Vec<&str> = ASKED.iter().map(|asked| asked.row).collect();
    each_right_once(&all, |names| {
        let tried = ASKED.iter().filter(|asked| names.contains(&asked.row));
        let judge = |asked: &Asked| Some((asked.row, wrong_asked(asked)?));
        tried.filter_map(judge).collect()
    });
}

/// Describes a wrong row, tested with slow requests of its own kind, and with slow requests of all
/// others.
fn wrong_asked(asked: &Asked) -> Option<String> {
    let Asked {
        row,
        kind,
        requests,
        keeps_names,
    } = asked;
    let mean = |latencies: Latencies| mean(&rows(&[row], 3, *keeps_names, &latencies), row);
    let without = mean(Latencies::new());
    let latency = Nanos(if *requests > 1 { 3 * MS } else { 10 * MS });
    let with = mean(BTreeMap::from([(*kind, latency)]));
    let mut others = latencies(|_| 5);
    others.retain(|other, _| other != kind && !PREPARING.contains(other));
    let beside = mean(others);
    if beside > without + 1.5 {
        return Some(format!(
            "{row}: {beside:.3} ms, though only requests of others are late"
        ));
    }
    let injected = ms(latency) * *requests as f64;
    wrong(row, [with, without], injected, 0.5 + 0.1 * injected)
}

#[test]
fn one_service_time_shows_a_stall_and_few_others_do() {
    tried_again(|| {
        let late = at_least(&stalled().service, Nanos(100 * MS));
        assert!((1..=3).contains(&late), "{late}");
    });
}

#[test]
fn operations_have_nothing_of_the_time_of_closes_and_syncs() {
    tried_again(|| {
        let check = |outcome: &Outcome, name: &str, of: u64| {
            let late = at_least(&outcome.row(name).service, SLOW);
            assert!(late < of, "{name}: {late} operations took as long");
        };
        let target = slow("flush=100ms");
        let (io, _) = write_and_read(&target, None);
        check(&io, "write", 3);
        check(&io, "read", 3);
        check(&fio(&target, ""), "j-write", 8);
        target.end();
        let target = slow("fsync=100ms");
        check(&fio(&target, "--end_fsync=1"), "j-write", 8);
        target.end();
    });
}
