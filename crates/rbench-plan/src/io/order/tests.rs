use std::collections::BTreeMap;

use super::*;
use crate::io::{FsyncRule, Layout, Rw, fresh_data};
use proptest::prelude::*;
use rbench_core::Bytes;

const KIB: u64 = 1024;

fn plan(sizes: BlockSizes, size: u64, distribution: Distribution) -> IoPlan {
    IoPlan {
        phases: vec![Rw::RandRead],
        mix_read: 50,
        sizes,
        distribution,
        size: Bytes(size),
        small: None,
        layout: Layout::PerWorker,
        engine: "psync".to_owned(),
        depth: 1,
        direct: false,
        fsync: FsyncRule::End,
        time: None,
        open_loop: None,
        verify: false,
        ack_journal: None,
        verify_threads: 0,
        buffers: fresh_data(0, 0),
    }
}

fn order(plan: &IoPlan, random: bool) -> Order {
    Order::new(plan, random, [1, 2, 3], [1, 0, 3])
}

fn pass(order: &mut Order) -> Vec<(u64, u64)> {
    let count = order.operations();
    (0..count).map(|_| order.step()).collect()
}

/// Every byte once: the blocks are sorted and laid end to end.
fn check_covers(mut blocks: Vec<(u64, u64)>, size: u64) {
    blocks.sort_unstable();
    let mut at = 0;
    for (start, length) in blocks {
        assert_eq!(start, at);
        assert!(length > 0);
        at += length;
    }
    assert_eq!(at, size);
}

fn split() -> BlockSizes {
    BlockSizes::Split(vec![(4 * KIB, 60), (8 * KIB, 30), (64 * KIB, 10)])
}

fn zipf() -> Distribution {
    Distribution::Zipf(1.2)
}

#[test]
fn each_pass_visits_every_block_once_in_another_order() {
    let plan = plan(BlockSizes::Fixed(512), 512_000, Distribution::Uniform);
    let mut order = order(&plan, true);
    let first = pass(&mut order);
    assert_eq!(order.pass(), 0);
    let second = pass(&mut order);
    assert_eq!(order.pass(), 1);
    assert_ne!(first, second);
    for blocks in [first, second] {
        assert_eq!(blocks.len(), 1000);
        check_covers(blocks, 512_000);
    }
}

#[test]
fn blocks_of_a_split_have_their_shares_by_number() {
    let plan = plan(split(), 1 << 30, Distribution::Uniform);
    for random in [false, true] {
        let mut counts = BTreeMap::new();
        let blocks = pass(&mut order(&plan, random));
        for (_, length) in &blocks {
            *counts.entry(*length).or_insert(0_u64) += 1;
        }
        for (size, percent) in [(4 * KIB, 60.0), (8 * KIB, 30.0), (64 * KIB, 10.0)] {
            let got = 100.0 * counts[&size] as f64 / blocks.len() as f64;
            assert!(
                (got - percent).abs() < 1.5,
                "{got}% of {size}, random {random}"
            );
        }
        if random {
            assert!(
                blocks
                    .windows(2)
                    .filter(|w| w[0].0 + w[0].1 == w[1].0)
                    .count()
                    < 1000
            );
        } else {
            assert!(blocks.is_sorted());
        }
    }
}

#[test]
fn a_skewed_distribution_repeats_blocks_as_often_as_the_theory_says() {
    let blocks = 1000_u64;
    let plan = plan(BlockSizes::Fixed(512), 512 * blocks, zipf());
    let mut order = order(&plan, true);
    assert!(!order.covers());
    let draws = 400_000;
    let mut hits = BTreeMap::new();
    for _ in 0..draws {
        let (start, length) = order.step();
        assert_eq!((start % 512, length), (0, 512));
        *hits.entry(start / 512).or_insert(0_u64) += 1;
    }
    assert_eq!(order.pass(), 0);
    let mut hits: Vec<u64> = hits.into_values().collect();
    hits.sort_unstable_by(|a, b| b.cmp(a));
    let norm: f64 = (1..=blocks).map(|rank| (rank as f64).powf(-1.2)).sum();
    for rank in [1_u32, 2, 3, 10] {
        let expect = f64::from(draws) * f64::from(rank).powf(-1.2) / norm;
        let got = hits[rank as usize - 1] as f64;
        assert!(
            (got - expect).abs() < 5.0 * expect.sqrt() + 0.01 * expect,
            "rank {rank}: {got} for {expect}"
        );
    }
}

#[test]
fn the_favourites_are_the_same_in_every_phase_and_others_in_another_part() {
    let plan = plan(BlockSizes::Fixed(512), 512_000, Distribution::Zipf(2.0));
    let favourite = |phase: u64, owner: u64| {
        let mut order = Order::new(&plan, true, [1, phase, 3], [1, 0, owner]);
        let mut hits = BTreeMap::new();
        for _ in 0..1000 {
            *hits.entry(order.step().0).or_insert(0) += 1;
        }
        hits.into_iter().max_by_key(|(_, n)| *n).expect("drawn")
    };
    assert_eq!(favourite(1, 7).0, favourite(2, 7).0);
    assert_ne!(favourite(1, 7), favourite(2, 7));
    assert_ne!(favourite(1, 7).0, favourite(1, 8).0);
}

#[test]
fn skewed_blocks_of_several_sizes_begin_on_the_smallest_and_stay_inside() {
    let size = 1000 * KIB;
    let plan = plan(split(), size, zipf());
    let mut order = order(&plan, true);
    let blocks = pass(&mut order);
    assert_eq!(blocks.iter().map(|(_, length)| length).sum::<u64>(), size);
    for (start, length) in blocks {
        assert!(start.is_multiple_of(4 * KIB) && start + length <= size);
    }
}

proptest! {
    #[test]
    fn passes_of_mixed_sizes_cover_the_part_without_overlap(
        least in 1_u64..5000, factor in 1_u64..9, extra in 0_u64..2_000_000, random: bool, range: bool,
    ) {
        let most = least * factor + 3;
        let sizes = if range {
            BlockSizes::Range { min: least, max: most }
        } else {
            BlockSizes::Split(vec![(least, 70), (most, 30)])
        };
        let size = most + extra;
        let plan = plan(sizes, size, Distribution::Uniform);
        let mut order = order(&plan, random);
        prop_assert!(order.covers());
        let first = pass(&mut order);
        prop_assert_eq!(order.pass(), 0);
        check_covers(first, size);
        // The second pass may have another number of blocks.
        let (mut second, mut left) = (Vec::new(), size);
        while left > 0 {
            let block = order.step();
            left -= block.1;
            second.push(block);
        }
        prop_assert_eq!(order.pass(), 1);
        check_covers(second, size);
    }
}
