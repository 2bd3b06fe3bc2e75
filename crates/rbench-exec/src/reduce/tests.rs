use rbench_core::timeline::Bin;

use super::*;

fn first(at: u64, items: u64) -> Option<First> {
    Some(First {
        at: Nanos(at),
        items,
        failed: false,
    })
}

#[test]
fn the_first_finisher_is_the_one_with_the_earlier_end() {
    let at = |a, b| First::earlier(a, b).map(|first| (first.at.0, first.items));
    assert_eq!(at(first(5, 1), first(7, 2)), Some((5, 1)));
    assert_eq!(at(first(7, 2), first(5, 1)), Some((5, 1)));
    assert_eq!(at(first(5, 1), first(5, 2)), Some((5, 1)));
    assert_eq!(at(None, first(7, 2)), Some((7, 2)));
    assert_eq!(at(first(7, 2), None), Some((7, 2)));
    assert_eq!(at(None, None), None);
}

#[test]
fn the_skew_of_starts_is_from_the_earliest_to_the_latest_on_either_side_of_the_common_start() {
    let skew = |ranks: &[&[i64]]| {
        let at = |ns: &i64| START_BIAS.saturating_add_signed(*ns);
        let most = |a: [u64; 2], b: [u64; 2]| [a[0].max(b[0]), a[1].max(b[1])];
        let ranks = || (0..).zip(ranks);
        let starts = ranks().map(|(_, starts)| bounds(starts.iter().map(at)));
        let numbers = ranks().map(|(rank, starts)| bounds((rank << 32..).take(starts.len())));
        super::skew(starts.fold([0, 0], most), numbers.fold([0, 0], most)).0
    };
    assert_eq!(skew(&[&[5, -3], &[1]]), 8);
    assert_eq!(skew(&[&[-10], &[-4]]), 6);
    assert_eq!(skew(&[&[2], &[], &[9, 4]]), 7);
    assert_eq!(skew(&[&[3], &[3]]), 0);
    // A single one is compared with the common start.
    assert_eq!((skew(&[&[], &[7]]), skew(&[&[-7]])), (7, 7));
    assert_eq!(skew(&[&[], &[]]), 0);
}

#[test]
fn at_its_end_all_have_done_at_least_what_the_first_finisher_did() {
    let mut timeline = Timeline::new(Nanos::SECOND);
    let bin = |items| Bin {
        items,
        ..Bin::default()
    };
    // All in the first bin, which is wider than the moment.
    timeline.record(Nanos(1000), bin(4));
    let measured = Measured::until(Nanos(timeline.width().0));
    let half = timeline.width().0 / 2 + 1;
    let items = |at, items| first(at, items).map(|f| f.items_of_all(&timeline, measured));
    assert_eq!(items(half, 1), Some(2));
    assert_eq!(items(half, 2), Some(2));
    assert_eq!(items(half, 3), Some(3));
}
