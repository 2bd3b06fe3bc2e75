use std::sync::{Arc, Mutex};

use super::*;
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn recorded(times: &[u64]) -> Timeline {
    let mut recorder = TimelineRecorder::new(INTERVAL, true);
    for t in times {
        recorder.done(Nanos(*t), 10, Nanos(*t), Some(Nanos(*t + 5)));
    }
    recorder.finish()
}

#[test]
fn a_long_run_keeps_at_most_1024_bins_and_loses_nothing() {
    let times: Vec<u64> = (0..5000).map(|i| i * 7 * MS).collect();
    let line = recorded(&times);
    assert!(line.bins().len() <= BINS && line.bins().len() > BINS / 2 - 1);
    assert_eq!(line.bins().iter().map(|b| b.items).sum::<u64>(), 5000);
    let of_slices = |of: fn(&Latencies) -> u64| line.slices().map(|(_, _, l)| of(&l)).sum::<u64>();
    assert_eq!(of_slices(|l| l.service.count()), 5000);
    assert_eq!(of_slices(|l| l.response.count()), 5000);
}

#[test]
fn bins_and_slices_begin_where_intervals_do() {
    let line = recorded(&[10, 5_999 * MS, 6_000 * MS, 8_000 * MS]);
    // 1024 bins of 1/64 s would end before 8 s; a third bin of 16.
    assert_eq!(line.power(), -7 + 1);
    assert_eq!(line.slice_width_s(), 0.0625);
    let slices: Vec<(Nanos, u64)> = line
        .slices()
        .filter(|(_, bin, _)| bin.items > 0)
        .map(|(start, bin, _)| (start, bin.items))
        .collect();
    assert_eq!(
        slices,
        [
            (Nanos(0), 1),
            (Nanos(5_937_500_000), 1),
            (Nanos(6_000 * MS), 1),
            (Nanos(8_000 * MS), 1)
        ]
    );
}

#[test]
fn half_a_bin_counts_half() {
    let line = recorded(&[10_000, 20_000, 30_000, 40_000]);
    let (whole, width) = (Nanos(1 << 20), line.width().0);
    assert_eq!(line.done_by(Nanos(width / 2 + 1), whole), 2);
    assert_eq!(line.done_by(Nanos(width + 1), whole), 4);
    assert_eq!(line.done_by(Nanos(0), whole), 0);
}

#[test]
fn the_nth_operation_ended_where_as_many_were_done() {
    let line = recorded(&[10_000, 20_000, 30_000, 40_000, 1 << 20]);
    assert_eq!(line.when(2), Some(Nanos(line.start(1).0 / 2)));
    assert_eq!(line.when(4), Some(line.start(1)));
    assert_eq!(line.when(5), Some(line.start(18)));
    assert_eq!(line.when(6), None);
}

#[test]
fn at_the_end_of_the_phase_everything_is_done() {
    let times: Vec<u64> = (1..=1000).map(|i| i * 777_777).collect();
    let (line, end) = (recorded(&times), Nanos(1000 * 777_777));
    assert_eq!(line.done_by(end, end), 1000);
    assert!((499..=501).contains(&line.done_by(Nanos(end.0 / 2), end)));
}

#[test]
fn the_longest_gap_is_exact_however_wide_the_bins_are() {
    let mut times: Vec<u64> = (0..1000).map(|i| i * MS).collect();
    times.extend((0..9000).map(|i| 3_999 * MS + 123 + i * MS));
    let gap = |from: u64| {
        recorded(&times)
            .longest_gap(Nanos(from))
            .expect("there is one")
    };
    let expect = Gap {
        length: Nanos(3_000 * MS + 123),
        from: Nanos(999 * MS),
    };
    assert_eq!(gap(0), expect);
    assert_eq!(gap(2_000 * MS).length, Nanos(1_999 * MS + 123));
    assert_eq!(Timeline::default().longest_gap(Nanos(0)), None);
    let late = recorded(&[700 * MS, 800 * MS]).longest_gap(Nanos(0));
    assert_eq!(late.map(|gap| gap.length), Some(Nanos(700 * MS)));
}

/// The parts that a worker with operations at these times hands over.
fn parts(interval: u64, times: &[u64]) -> (Vec<IntervalPart>, Timeline) {
    let taken = Arc::new(Mutex::new(Vec::new()));
    let mut recorder = TimelineRecorder::new(Nanos(interval), false);
    let into = Arc::clone(&taken);
    recorder.hand_over_to(Box::new(move |part| {
        into.lock().expect("nobody panics").push(part)
    }));
    for t in times {
        recorder.done(Nanos(*t), 10, Nanos(*t % 1000), None);
    }
    let line = recorder.finish();
    let taken = std::mem::take(&mut *taken.lock().expect("nobody panics"));
    (taken, line)
}

#[test]
fn intervals_are_handed_over_when_the_next_one_has_begun() {
    let (parts, _) = parts(1000 * MS, &[5, 10, 1000 * MS, 4500 * MS, 999 * MS]);
    let operations: Vec<(u64, u64)> = parts.iter().map(|p| (p.number, p.bin.items)).collect();
    // The last operation ended in the first interval.
    assert_eq!(operations, [(0, 2), (1, 1), (4, 1), (0, 1)]);
}

#[test]
fn what_is_passed_over_is_handed_over_and_the_timeline_stays_the_same() {
    let second = 1000 * MS;
    let times = [5, 10, second + 7, 2 * second - 3, 5 * second, 4 * second];
    let taken = Arc::new(Mutex::new(Vec::new()));
    let mut recorder = TimelineRecorder::new(Nanos(second), false);
    let into = Arc::clone(&taken);
    recorder.hand_over_to(Box::new(move |part| {
        into.lock().expect("nobody panics").push(part)
    }));
    let handed_over = || -> Vec<(u64, u64)> {
        let parts = taken.lock().expect("nobody panics");
        parts.iter().map(|p| (p.number, p.bin.items)).collect()
    };
    let mut done = |at: u64| {
        let entered = recorder.done(Nanos(at), 10, Nanos(at % 1000), None);
        (entered, recorder.interval())
    };
    assert_eq!([done(5), done(10)], [(false, 0); 2]);
    assert_eq!((done(second + 7), handed_over()), ((true, 1), vec![(0, 2)]));
    assert_eq!(done(2 * second - 3), (false, 1));
    recorder.pass(1);
    assert_eq!(handed_over(), [(0, 2)], "more may come of the present one");
    recorder.pass(4);
    assert_eq!(
        (handed_over().last(), recorder.interval()),
        (Some(&(1, 2)), 4)
    );
    recorder.pass(u64::MAX);
    for late in [5 * second, 4 * second] {
        assert!(recorder.done(Nanos(late), 10, Nanos(late % 1000), None));
    }
    let line = recorder.finish();
    assert_eq!(handed_over(), [(0, 2), (1, 2), (5, 1), (4, 1)]);
    assert_eq!(line, parts(second, &times).1);
}

#[test]
fn an_open_loop_alone_has_response_times() {
    let mut recorder = TimelineRecorder::new(INTERVAL, false);
    recorder.done(Nanos(5), 1, Nanos(3), Some(Nanos(4)));
    let line = recorder.finish();
    let (_, _, latencies) = line.slices().next().expect("there is one");
    assert_eq!(latencies.service.count(), 1);
    assert!(latencies.response.is_empty());
}

#[test]
fn a_gap_counts_where_any_of_it_lies() {
    // No operation ends from 1 to 4 s, and from 6 to 8 s.
    let times: Vec<u64> = [0, 1, 4, 5, 6, 8].map(|s| s * 1000 * MS).to_vec();
    let line = recorded(&times);
    let s = |s: f64| Nanos((s * 1e9) as u64);
    let gap = |after: f64, until: f64| {
        let gap = line.longest_gap_between(Nanos(0), s(after), s(until));
        gap.map(|gap| (gap.from.as_secs_f64(), gap.length.as_secs_f64()))
    };
    assert_eq!(gap(0.0, 9.0), Some((1.0, 3.0)));
    assert_eq!(gap(3.9, 9.0), Some((1.0, 3.0)), "it began before");
    assert_eq!(gap(4.0, 9.0), Some((6.0, 2.0)));
    assert_eq!(gap(4.0, 5.5), Some((4.0, 1.0)));
    assert_eq!(gap(8.0, 9.0), None);
}

#[test]
fn intervals_are_slices_put_together() {
    for seconds in [1_u64, 7, 100, 1000] {
        let times: Vec<u64> = (0..seconds * 3).map(|i| i * 333 * MS).collect();
        let line = recorded(&times);
        let intervals = line.intervals();
        let width = line.interval_width_s();
        let slices = line.slices().count() as f64 * line.slice_width_s();
        assert_eq!(
            intervals.len(),
            (slices / width).ceil() as usize,
            "{seconds}"
        );
        assert!(width >= 1.0 && (seconds > 255 || width == 1.0), "{seconds}");
        for (i, (start, bin, latencies)) in intervals.iter().enumerate() {
            assert_eq!(start.as_secs_f64(), i as f64 * width);
            let end = start.0 + (width * 1e9) as u64;
            let here = times.iter().filter(|t| (start.0..end).contains(t)).count() as u64;
            assert_eq!((bin.items, latencies.service.count()), (here, here));
        }
    }
}

proptest! {
    #[test]
    fn merging_equals_recording_all_in_one(
        x in prop::collection::vec(0_u64..20_000_000_000, 0..60),
        y in prop::collection::vec(0_u64..20_000_000_000, 0..60),
    ) {
        let mut merged = recorded(&x);
        merged.merge(&recorded(&y));
        let all: Vec<u64> = x.iter().chain(&y).copied().collect();
        prop_assert_eq!(merged, recorded(&all));
    }

    #[test]
    fn every_operation_is_in_its_own_interval_and_in_its_own_slice(
        times in prop::collection::vec(0_u64..30_000_000_000, 1..200),
        interval in 1_000_000_u64..3_000_000_000,
    ) {
        let (parts, line) = parts(interval, &times);
        let mut by_interval = std::collections::BTreeMap::new();
        for part in &parts {
            *by_interval.entry(part.number).or_insert(0) += part.bin.items;
            prop_assert_eq!(part.latencies.service.count(), part.bin.items);
        }
        let mut expect = std::collections::BTreeMap::new();
        for t in &times {
            *expect.entry(t / interval).or_insert(0) += 1;
        }
        prop_assert_eq!(by_interval, expect);
        for (place, (start, bin, latencies)) in line.slices().enumerate() {
            let end = line.start((place + 1) * SLICE_BINS);
            let here = times.iter().filter(|t| (start.0..end.0).contains(t)).count() as u64;
            prop_assert_eq!((bin.items, latencies.service.count()), (here, here));
        }
    }
}
