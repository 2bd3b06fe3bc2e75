//! Gaps, runs, zones and sequences as fio 3.33 logged them (`write_lat_log` with
//! `log_offset`), and as its documentation describes random offsets.

use super::*;
use crate::jobs::{Sequel, Zones};

/// Offsets in KiB, negative for writes.
fn places(plan: &JobPlan) -> Vec<i64> {
    let sign = |step: &Step| match step.direction {
        Direction::Write => -1,
        _ => 1,
    };
    let of = |step: &Step| sign(step) * (step.offset / KIB) as i64;
    steps(plan, 0).iter().map(of).collect()
}

fn sequential(size: u64, skip: i64) -> JobPlan {
    let mut plan = job(true, false, false, 4 * KIB, size * KIB);
    plan.pattern.course.sequel = Sequel::Skip(skip * KIB as i64);
    plan
}

fn zoned(random: bool, size: u64, (bytes, range, skip): (u64, u64, u64)) -> JobPlan {
    let mut plan = job(true, false, random, 4 * KIB, size * KIB);
    plan.pattern.course.covers = true;
    plan.pattern.course.zones = Some(Zones {
        bytes: bytes * KIB,
        range: range * KIB,
        skip: skip * KIB,
    });
    plan
}

#[test]
fn gaps_between_sequential_blocks_lead_to_the_beginning_again() {
    let round = [0, 8, 16, 24, 32, 40, 48, 56];
    assert_eq!(places(&sequential(64, 4)), [round, round].concat());
    assert_eq!(places(&sequential(64, 60)), [0; 16]);
    let mut more = sequential(64, 4);
    more.pace.io_size = Some(128 * KIB);
    assert_eq!(places(&more), [round, round, round, round].concat());
    let back = [0, 56, 52, 48, 44, 40, 36, 32, 28, 24, 20, 16, 12, 8, 4, 0];
    assert_eq!(places(&sequential(64, -8)), back);
}

#[test]
fn where_no_block_has_room_the_pass_ends() {
    assert_eq!(places(&sequential(32, 1)), [0, 5, 10, 15, 20, 25]);
    let mut ahead = sequential(64, 4);
    ahead.files.offset = 64 * KIB;
    assert_eq!(places(&ahead), [64, 72, 80, 88, 96, 104, 112, 120]);
    ahead.pace.loops = 2;
    assert_eq!(places(&ahead).len(), 16);
    (ahead.pace.loops, ahead.pace.io_size) = (1, Some(96 * KIB));
    assert_eq!(places(&ahead).len(), 24);
    let mut back = sequential(64, -8);
    back.files.offset = 64 * KIB;
    assert_eq!(places(&back)[..3], [64, 120, 116]);
}

#[test]
fn a_block_at_the_end_of_the_file_ends_the_pass() {
    let all: Vec<i64> = (0..6).map(|n| 12 * n).collect();
    assert_eq!(places(&sequential(64, 8)), all);
    let mut twice = sequential(64, 8);
    twice.pace.loops = 2;
    assert_eq!(places(&twice), [all.clone(), all].concat());
}

#[test]
fn each_direction_leaves_its_own_gaps() {
    let mut plan = sequential(64, 4);
    plan.pattern.directions.write = true;
    let all = places(&plan);
    let reads = offsets_of(&steps(&plan, 0), Direction::Read);
    let expect: Vec<u64> = (0..).map(|n| n % 8 * 8 * KIB).take(reads.len()).collect();
    assert_eq!(reads, expect);
    assert_eq!(all.len(), 16);
}

fn runs(length: u64, identical: bool) -> JobPlan {
    let mut plan = random(4 * KIB, 128 * KIB);
    plan.pattern.repeats = true;
    plan.pattern.course.covers = true;
    plan.pattern.course.sequel = Sequel::Run { length, identical };
    plan
}

#[test]
fn runs_begin_at_different_places_and_go_on_from_there() {
    let all = places(&runs(4, false));
    assert_eq!(all.len(), 32);
    let mut starts = BTreeSet::new();
    for run in all.chunks(4) {
        starts.insert(run[0]);
        // At the end of the file a run continues at another offset.
        for pair in run.windows(2).filter(|pair| pair[0] < 124) {
            assert_eq!(pair[1], pair[0] + 4, "{run:?}");
        }
    }
    assert_eq!(starts.len(), 8);
    for run in places(&runs(4, true)).chunks(4) {
        assert!(run.iter().all(|place| *place == run[0]), "{run:?}");
    }
    let ascending: Vec<i64> = (0..32).map(|n| n * 4).collect();
    assert_eq!(places(&runs(0, false)), ascending);
}

#[test]
fn zones_follow_one_another() {
    let check = |zones, size, expect: &[i64]| {
        assert_eq!(places(&zoned(false, size, zones)), expect, "{zones:?}");
    };
    let strides = [0, 4, 16, 20, 32, 36, 48, 52];
    check((8, 8, 8), 64, &[strides, strides].concat());
    let narrow = [0, 4, 0, 4, 8, 12, 8, 12, 16, 20, 16, 20, 24, 28, 24, 28];
    check((16, 8, 0), 64, &narrow);
    let beyond = [0, 4, 8, 16, 20, 24, 32, 36, 40, 48, 52, 56, 0, 4, 8, 16];
    check((10, 10, 6), 64, &beyond);
    let all = [strides, strides].concat();
    check((8, 8, 8), 60, &all[..15]);
    let wide = places(&zoned(false, 128, (8, 16, 4)));
    assert_eq!(wide[..6], [0, 4, 20, 24, 40, 44]);
    assert_eq!((wide.len(), wide[13], wide[14]), (32, 124, 0));
}

#[test]
fn in_a_zone_at_random_no_block_comes_again_before_all_have() {
    let all = places(&zoned(true, 128, (16, 32, 0)));
    assert_eq!(all.len(), 32);
    for (zone, visit) in all.chunks(4).enumerate() {
        let from = (zone as i64 % 4) * 32;
        assert!(visit.iter().all(|place| (from..from + 32).contains(place)));
        assert_eq!(visit.iter().collect::<BTreeSet<_>>().len(), 4, "{visit:?}");
    }
    assert!(!all.chunks(4).all(<[i64]>::is_sorted), "in order: {all:?}");
    let twice = places(&zoned(true, 64, (32, 16, 0)));
    for (zone, visit) in twice.chunks(8).enumerate() {
        let from = zone as i64 * 16;
        for round in visit.chunks(4) {
            let round: BTreeSet<i64> = round.iter().copied().collect();
            assert_eq!(round, (0..4).map(|n| from + n * 4).collect());
        }
    }
    let alike = |visit: &[i64]| visit[..4] == visit[4..];
    assert!(!twice.chunks(8).all(alike), "each round in one order");
}

#[test]
fn sequences_come_again_and_again_or_move_on() {
    let places = |stride| {
        let mut plan = random(4 * KIB, 48 * KIB);
        plan.pattern.repeats = true;
        plan.pace.io_size = Some(24 * KIB);
        plan.pattern.distribution = Distribution::Sequence([2, 0, 1].into());
        plan.pattern.course.sequence_moves_on = stride;
        places(&plan)
    };
    assert_eq!(places(false), [8, 0, 4, 8, 0, 4]);
    assert_eq!(places(true), [8, 0, 4, 20, 12, 16]);
}

#[test]
fn zones_by_bytes_leave_out_what_lies_behind_them() {
    let mut plan = random(4 * KIB, 1024 * KIB);
    plan.pattern.repeats = true;
    plan.pattern.distribution =
        Distribution::ZonedBytes([(90.0, 64 * KIB), (10.0, 192 * KIB)].into());
    let all = places(&plan);
    assert!(all.iter().all(|place| *place < 256));
    let hot = all.iter().filter(|place| **place < 64).count();
    assert!((215..245).contains(&hot), "{hot} of {}", all.len());
}

#[test]
fn the_favourite_of_a_centred_distribution_lies_where_it_was_asked_for() {
    for of in [Distribution::Zipf(2.0), Distribution::Pareto(0.1)] {
        let mut plan = random(4 * KIB, 4096 * KIB);
        plan.pattern.repeats = true;
        plan.pattern.distribution = Distribution::Centred(Box::new(of.clone()), 0.25);
        let mut seen: BTreeMap<i64, usize> = BTreeMap::new();
        for place in places(&plan) {
            *seen.entry(place).or_default() += 1;
        }
        let favourite = seen.iter().max_by_key(|(_, times)| **times);
        assert_eq!(favourite.map(|(place, _)| *place), Some(1024), "{of:?}");
    }
}

#[test]
fn sizes_by_order_differ_between_what_goes_on_and_what_is_random() {
    let mut plan = random(4 * KIB, 1024 * KIB);
    plan.pattern.sizes.write = BlockSizes::Fixed(8 * KIB);
    plan.pattern.random_percent.read = 50;
    plan.pattern.repeats = true;
    plan.pattern.course.sizes_by_order = true;
    let all = steps(&plan, 0);
    let mut end = 0;
    for step in &all[..all.len() - 1] {
        // A long one may also follow the last one by chance.
        assert!(step.length == 8 * KIB || step.offset == end % (1024 * KIB));
        end = step.offset + step.length;
    }
    let long = all.iter().filter(|step| step.length == 8 * KIB).count();
    assert!(long * 3 > all.len() && long < all.len(), "{long}");
}

#[test]
fn sizes_far_apart_need_little_room() {
    let sizes = BlockSizes::Split(vec![(512, 99), (1 << 30, 1)]);
    assert!(tiles::most(&sizes) < 5000);
    let mut plan = random(512, 2 << 30);
    plan.pattern.sizes.read = sizes.clone();
    plan.pattern.sizes.write = sizes;
    check_covers(&steps(&plan, 0), 0, 2 << 30);
}
