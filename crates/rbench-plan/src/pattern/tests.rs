use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use proptest::prelude::*;

use super::*;
use crate::jobs::{Directions, FileNames, Files, Pace, Pattern};

mod course;
mod parts;
mod trims;

const KIB: u64 = 1024;

fn job(read: bool, write: bool, random: bool, block: u64, size: u64) -> JobPlan {
    let directions = Directions {
        read,
        write,
        trim: false,
        random,
    };
    let pattern = Pattern {
        one_position: false,
        ..Pattern::new(directions, BlockSizes::Fixed(block), 7)
    };
    let names = FileNames::Format("$jobname.$jobnum.$filenum".to_owned());
    let files = Files::new("d".into(), names, size);
    JobPlan::new("j", pattern, files)
}

fn random(block: u64, size: u64) -> JobPlan {
    job(true, false, true, block, size)
}

fn steps(job: &JobPlan, jobnum: u64) -> Vec<Step> {
    Steps::new(job, jobnum, |file| file_size(job, jobnum, file)).collect()
}

/// Offsets of the steps of one direction.
fn offsets_of(steps: &[Step], direction: Direction) -> Vec<u64> {
    let own = steps.iter().filter(|s| s.direction == direction);
    own.map(|s| s.offset).collect()
}

/// Checks that the steps cover `from..to` of the file without overlap or gap.
fn check_covers(steps: &[Step], from: u64, to: u64) {
    let places = steps.iter().map(|s| (s.offset, s.length));
    crate::testing::check_covers(places, from, to);
}

#[test]
fn sequential_blocks_follow_each_other_and_a_rest_below_a_block_is_left_out() {
    let all = steps(&job(false, true, false, 4096, 10_000), 0);
    let places: Vec<_> = all.iter().map(|s| (s.offset, s.length)).collect();
    assert_eq!(places, [(0, 4096), (4096, 4096)]);
    assert!(all.iter().all(|s| s.direction == Direction::Write));
    assert!(all[1].ends_file && all[1].ends_pass && !all[0].ends_pass);
}

#[test]
fn random_blocks_come_each_once_in_another_order_for_each_worker_and_pass() {
    let mut plan = random(4096, 4 << 20);
    plan.pace.loops = 2;
    let all = steps(&plan, 0);
    let (first, second) = all.split_at(1024);
    check_covers(first, 0, 4 << 20);
    check_covers(second, 0, 4 << 20);
    let offsets = |steps: &[Step]| steps.iter().map(|s| s.offset).collect::<Vec<_>>();
    assert_ne!(offsets(first), offsets(second));
    assert_ne!(offsets(first), offsets(&steps(&plan, 1)[..1024]));
    assert_eq!(offsets(&all), offsets(&steps(&plan, 0)));
    let pairs = first.windows(2);
    let ascending = pairs.filter(|w| w[1].offset > w[0].offset).count();
    assert!((400..620).contains(&ascending), "{ascending}");
}

#[test]
fn mixed_sizes_cover_the_whole_file_once() {
    let (min, max) = (4 * KIB, 64 * KIB);
    let ranges = [
        BlockSizes::Range { min, max },
        BlockSizes::Split(vec![(4 * KIB, 60), (8 * KIB, 40)]),
        BlockSizes::Split(vec![(512, 99), (1 << 20, 1)]),
    ];
    for sizes in ranges {
        let mut plan = random(4096, 0);
        plan.files.size = (10_000 * KIB, 10_000 * KIB);
        plan.pattern.sizes.read = sizes.clone();
        let all = steps(&plan, 3);
        check_covers(&all, 0, 10_000 * KIB);
        assert!(all.iter().filter(|s| s.ends_pass).count() == 1);
    }
}

#[test]
fn the_shares_of_a_split_are_those_asked_for() {
    let mut plan = random(4096, 256 << 20);
    plan.pattern.sizes.read = BlockSizes::Split(vec![(4 * KIB, 60), (8 * KIB, 40)]);
    for repeats in [false, true] {
        plan.pattern.repeats = repeats;
        let all = steps(&plan, 0);
        let small = all.iter().filter(|s| s.length == 4 * KIB).count() as f64;
        let share = small / all.len() as f64;
        assert!((share - 0.6).abs() < 0.01, "{share}");
    }
}

#[test]
fn every_size_of_a_range_is_as_frequent_as_any_other() {
    let mut plan = random(4096, 256 << 20);
    plan.pattern.repeats = true;
    plan.pattern.sizes.read = BlockSizes::Range {
        min: 4 * KIB,
        max: 32 * KIB,
    };
    let mut seen = BTreeMap::new();
    let all = steps(&plan, 0);
    for step in &all {
        *seen.entry(step.length / KIB).or_insert(0_usize) += 1;
    }
    let sizes: Vec<u64> = seen.keys().copied().collect();
    assert_eq!(sizes, [4, 8, 12, 16, 20, 24, 28, 32]);
    let even = all.len() / 8;
    let alike = seen.values().all(|n| n.abs_diff(even) < even / 10);
    assert!(alike, "{seen:?}");
}

#[test]
fn of_every_hundred_operations_of_a_mix_exactly_so_many_read() {
    for percent in [0, 1, 30, 70, 100] {
        let mut plan = job(true, true, true, 4096, 4096 * 1000);
        plan.pattern.mix_read = percent;
        let all = steps(&plan, 0);
        check_covers(&all, 0, 4096 * 1000);
        for hundred in all.chunks(100) {
            let reads = offsets_of(hundred, Direction::Read);
            assert_eq!(reads.len(), percent as usize);
        }
    }
}

#[test]
fn in_a_sequential_mix_each_direction_begins_at_the_front() {
    let all = steps(&job(true, true, false, 4096, 4096 * 100), 0);
    for direction in [Direction::Read, Direction::Write] {
        let offsets = offsets_of(&all, direction);
        assert_eq!(offsets, (0..50).map(|i| i * 4096).collect::<Vec<_>>());
    }
}

#[test]
fn directions_of_different_sizes_do_not_hit_a_block_twice_by_themselves() {
    let mut plan = job(true, true, true, 4096, 1 << 20);
    plan.pattern.sizes.write = BlockSizes::Fixed(8192);
    let all = steps(&plan, 0);
    assert_eq!(all.iter().map(|s| s.length).sum::<u64>(), 1 << 20);
    for direction in [Direction::Read, Direction::Write] {
        let offsets = offsets_of(&all, direction);
        assert_eq!(offsets.len(), offsets.iter().collect::<BTreeSet<_>>().len());
    }
}

#[test]
fn offsets_budgets_and_passes_are_kept() {
    let mut plan = job(false, true, false, 4096, 64 * KIB);
    plan.files.offset = 32 * KIB;
    plan.files.offset_increment = 8 * KIB;
    check_covers(&steps(&plan, 2), 48 * KIB, 112 * KIB);
    let count = |change: &dyn Fn(&mut Pace)| {
        let mut plan = plan.clone();
        change(&mut plan.pace);
        let all = steps(&plan, 0);
        (all.len(), all.iter().filter(|s| s.ends_pass).count())
    };
    // The number that fio 3.33 issues.
    assert_eq!(count(&|p| p.loops = 3), (48, 3));
    assert_eq!(count(&|p| p.number_ios = Some(10)), (10, 1));
    assert_eq!(count(&|p| p.number_ios = Some(30)), (16, 1));
    assert_eq!(count(&|p| (p.number_ios, p.loops) = (Some(5), 2)), (10, 2));
    assert_eq!(count(&|p| p.io_size = Some(8 * KIB)), (2, 1));
    assert_eq!(count(&|p| p.io_size = Some(10 * KIB)), (3, 1));
    for (io_size, loops, expected) in [
        (8, 2, (4, 1)),
        (66, 1, (16, 1)),
        (66, 2, (32, 2)),
        (160, 1, (40, 3)),
        (160, 2, (48, 3)),
        (160, 4, (64, 4)),
    ] {
        let counted = count(&|p| (p.io_size, p.loops) = (Some(io_size * KIB), loops));
        assert_eq!(counted, expected, "{io_size} {loops}");
    }
    for (number_ios, loops, expected) in [(10, 1, (10, 1)), (30, 1, (30, 2)), (12, 2, (24, 2))] {
        let counted = count(&|p| {
            (p.io_size, p.number_ios, p.loops) = (Some(160 * KIB), Some(number_ios), loops);
        });
        assert_eq!(counted, expected, "{number_ios} {loops}");
    }
    // Work repeats after a pass, however much is left.
    let mut plan = plan.clone();
    (plan.pace.number_ios, plan.pace.loops) = (Some(10), 2);
    let mut all = Steps::new(&plan, 0, |_| 64 * KIB);
    assert_eq!((all.once(), all.by_ref().count()), (Some(10), 20));
    assert_eq!(all.once(), Some(10));
}

#[test]
fn time_based_work_never_ends_and_begins_again() {
    let mut plan = random(4096, 64 * KIB);
    plan.pace.time_based = true;
    let mut all = Steps::new(&plan, 0, |_| 64 * KIB);
    assert_eq!(all.expected(), None);
    for _ in 0..50 {
        let pass: Vec<Step> = all.by_ref().take(16).collect();
        check_covers(&pass, 0, 64 * KIB);
    }
}

fn files_of(service: FileService, count: u64, open: u64) -> (JobPlan, Vec<Step>) {
    let mut plan = job(true, false, false, 4096, 8192);
    plan.files.count = count;
    plan.files.open = open;
    plan.files.service = service;
    let all = steps(&plan, 0);
    (plan, all)
}

#[test]
fn files_are_served_as_asked_for() {
    let order = |service, open| {
        let (_, all) = files_of(service, 4, open);
        all.iter().map(|s| s.file).collect::<Vec<_>>()
    };
    let pairs = [0, 0, 1, 1, 2, 2, 3, 3];
    assert_eq!(order(FileService::Sequential, 4), pairs);
    assert_eq!(order(FileService::RoundRobin(1), 4)[..4], [0, 1, 2, 3]);
    assert_eq!(order(FileService::RoundRobin(2), 4), pairs);
    let two = order(FileService::RoundRobin(1), 2);
    assert_eq!(two, [0, 1, 0, 1, 2, 3, 2, 3]);
    let (mut plan, _) = files_of(FileService::RoundRobin(1), 100, 100);
    plan.files.size = (4096, 4096);
    let each_once: Vec<u64> = steps(&plan, 0).iter().map(|s| s.file).collect();
    assert_eq!(each_once, (0..100).collect::<Vec<_>>());
    for service in [
        FileService::Sequential,
        FileService::RoundRobin(3),
        FileService::Random(1),
        FileService::Random(5),
    ] {
        for open in [1, 2, 4] {
            let (_, all) = files_of(service, 4, open);
            for file in 0..4 {
                let file_steps: Vec<Step> =
                    all.iter().filter(|s| s.file == file).copied().collect();
                check_covers(&file_steps, 0, 8192);
                assert!(file_steps[1].ends_file && !file_steps[0].ends_file);
            }
        }
    }
}

#[test]
fn a_random_choice_of_files_uses_each_of_them_alike() {
    let mut plan = job(true, false, false, 4096, 4 << 20);
    (plan.files.count, plan.files.open) = (4, 4);
    plan.files.service = FileService::Random(1);
    let all = Steps::new(&plan, 0, |_| 4 << 20);
    let mut seen = [0_u32; 4];
    all.take(2000).for_each(|s| seen[s.file as usize] += 1);
    assert!(seen.iter().all(|n| (430..570).contains(n)), "{seen:?}");
}

#[test]
fn files_of_a_range_of_sizes_are_multiples_of_the_block() {
    let mut plan = job(false, true, false, 4096, 0);
    plan.files.size = (5000, 64 * KIB);
    (plan.files.count, plan.files.open) = (200, 200);
    let sizes_of = |jobnum| -> Vec<u64> {
        let files = 0..200;
        files.map(|file| file_size(&plan, jobnum, file)).collect()
    };
    let sizes = sizes_of(0);
    let fits = |n: &u64| n.is_multiple_of(4096) && (4096..=64 * KIB).contains(n);
    assert!(sizes.iter().all(fits));
    assert!(sizes.iter().collect::<BTreeSet<_>>().len() > 10);
    assert_ne!(sizes, sizes_of(1));
    let moved: u64 = steps(&plan, 0).iter().map(|s| s.length).sum();
    assert_eq!(moved, sizes.iter().sum::<u64>());
}

#[test]
fn names_are_those_of_fio() {
    let mut plan = job(true, false, false, 4096, 0);
    assert_eq!(file_path(&plan, 3, 5).to_string_lossy(), "d/j.3.5");
    assert!(!shares_files(&plan.files));
    plan.files.names = FileNames::Given(vec!["a".to_owned(), "/b".to_owned()]);
    assert_eq!(file_path(&plan, 3, 0).to_string_lossy(), "d/a");
    // Names cannot leave a given directory; without one, a path is a path.
    assert_eq!(file_path(&plan, 3, 1).to_string_lossy(), "d/b");
    plan.files.directory = PathBuf::new();
    assert_eq!(file_path(&plan, 3, 1).to_string_lossy(), "/b");
    assert!(shares_files(&plan.files));
    plan.files.names = FileNames::Format("x.$filenum".to_owned());
    assert!(shares_files(&plan.files));
}

/// Number of hits of each 4 KiB block of a file.
fn hits(distribution: Distribution, blocks: u64, draws: usize) -> Vec<u64> {
    let mut plan = random(4096, blocks * 4096);
    plan.pattern.distribution = distribution;
    plan.pace.time_based = true;
    let mut seen = vec![0; blocks as usize];
    Steps::new(&plan, 0, |_| blocks * 4096)
        .take(draws)
        .for_each(|s| seen[(s.offset / 4096) as usize] += 1);
    seen
}

#[test]
fn zipf_hits_ranks_in_proportion_to_their_power() {
    for theta in [0.6, 1.0, 1.1, 1.8] {
        let mut seen = hits(Distribution::Zipf(theta), 1000, 400_000);
        let front: u64 = seen[..10].iter().sum();
        seen.sort_unstable_by(|a, b| b.cmp(a));
        let whole: f64 = (1..=1000).map(|k| f64::from(k).powf(-theta)).sum();
        for rank in [1, 2, 5, 20] {
            let share = seen[rank - 1] as f64 / 400_000.0;
            let right = (rank as f64).powf(-theta) / whole;
            assert!(
                (share / right - 1.0).abs() < 0.08,
                "{theta} {rank}: {share} {right}"
            );
        }
        let top: u64 = seen[..10].iter().sum();
        assert!(front < top, "the favourites lie at the front of the file");
    }
}

#[test]
fn pareto_gives_a_share_of_the_blocks_the_rest_of_the_accesses() {
    let mut seen = hits(Distribution::Pareto(0.2), 10_000, 400_000);
    seen.sort_unstable_by(|a, b| b.cmp(a));
    let share = |blocks: usize| seen[..blocks].iter().sum::<u64>() as f64 / 400_000.0;
    assert!((share(2000) - 0.8).abs() < 0.01, "{}", share(2000));
    assert!((share(400) - 0.64).abs() < 0.01, "{}", share(400));
}

#[test]
fn normal_offsets_have_the_deviation_asked_for() {
    let seen = hits(Distribution::Normal(10.0), 10_000, 200_000);
    let all = 200_000.0;
    let mean_of = |value: &dyn Fn(f64) -> f64| {
        let weighed = seen.iter().zip(0_u32..);
        let sum: f64 = weighed.map(|(n, i)| *n as f64 * value(f64::from(i))).sum();
        sum / all
    };
    let mean = mean_of(&|i| i);
    let deviation = mean_of(&|i| (i - mean).powi(2)).sqrt();
    assert!((mean - 5000.0).abs() < 20.0, "{mean}");
    assert!((deviation - 1000.0).abs() < 20.0, "{deviation}");
}

#[test]
fn zones_get_their_shares_of_the_accesses() {
    let zones = vec![(60.0, 10.0), (30.0, 20.0), (10.0, 70.0)];
    let seen = hits(Distribution::Zoned(zones), 1000, 200_000);
    let share = |range: std::ops::Range<usize>| seen[range].iter().sum::<u64>() as f64 / 200_000.0;
    for (range, right) in [(0..100, 0.6), (100..300, 0.3), (300..1000, 0.1)] {
        let got = share(range);
        assert!((got - right).abs() < 0.01, "{got} for {right}");
    }
}

#[test]
fn without_a_map_every_aligned_place_is_drawn_and_fits() {
    let mut plan = random(4096, 64 * KIB);
    plan.pattern.repeats = true;
    plan.pattern.align = Each::same(512);
    plan.pace.time_based = true;
    let all: Vec<Step> = Steps::new(&plan, 0, |_| 64 * KIB).take(20_000).collect();
    let fits = |s: &Step| s.offset.is_multiple_of(512) && s.offset + 4096 <= 64 * KIB;
    assert!(all.iter().all(fits));
    let places: BTreeSet<u64> = all.iter().map(|s| s.offset).collect();
    assert_eq!(places.len(), 121);
}

#[test]
fn without_a_map_a_rest_counts_as_a_block_in_every_pass() {
    let mut plan = random(48 * KIB, 1000 * KIB);
    let count = |plan: &JobPlan| steps(plan, 0).len();
    assert_eq!(count(&plan), 20);
    plan.pattern.repeats = true;
    assert_eq!(count(&plan), 21);
    assert!(steps(&plan, 0).iter().all(|step| step.length == 48 * KIB));
    plan.pace.loops = 2;
    assert_eq!(count(&plan), 42);
}

#[test]
fn a_percentage_of_random_operations_leaves_the_others_in_sequence() {
    let mut plan = random(4096, 64 << 20);
    plan.pattern.random_percent.read = 30;
    let all = steps(&plan, 0);
    let pairs = all.windows(2);
    let follows = pairs.filter(|w| w[1].offset == w[0].offset + 4096).count();
    let share = follows as f64 / all.len() as f64;
    assert!((share - 0.7).abs() < 0.02, "{share}");
    plan.pattern.random_percent.read = 0;
    check_covers(&steps(&plan, 0), 0, 64 << 20);
}

proptest! {
    #[test]
    fn any_sizes_move_the_whole_file_and_stay_inside(
        min in 1_u64..40, steps_up in 1_u64..30, blocks in 1_u64..500,
        write: bool, random: bool, repeats: bool, seed: u64, jobnum in 0_u64..1000,
    ) {
        let min = min * 100;
        let mut plan = job(!write, write, random, 1, 0);
        let size = BlockSizes::Range { min, max: min * steps_up };
        plan.pattern.sizes = Each::same(size);
        plan.pattern.seed = seed;
        plan.pattern.repeats = repeats;
        let region = min * blocks;
        let all: Vec<Step> = Steps::new(&plan, jobnum, |_| region + 7).collect();
        prop_assert!(all.iter().all(|s| s.length > 0 && s.offset + s.length <= region));
        let moved = all.iter().map(|s| s.length).sum::<u64>();
        if repeats && random {
            prop_assert!((region + 7..region + 7 + min * steps_up).contains(&moved), "{}", moved);
        } else {
            prop_assert_eq!(moved, region);
            check_covers(&all, 0, region);
        }
    }
}

#[test]
fn sizes_of_a_range_reach_both_ends() {
    let drawn = |sizes: BlockSizes| -> BTreeSet<u64> {
        let ends = [0, u64::MAX];
        ends.map(|bits| tiles::draw(&sizes, bits)).into()
    };
    let (min, max) = (5, 7);
    assert_eq!(drawn(BlockSizes::Unaligned { min, max }), [5, 7].into());
    let (min, max) = (4, 12);
    assert_eq!(drawn(BlockSizes::Range { min, max }), [4, 12].into());
}
