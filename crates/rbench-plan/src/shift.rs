//! Which rank's items a rank works on, so that it does not meet what its own
//! client has just made.

use rbench_core::Rank;

/// The distance for the `step`-th phase after creation (from 1): `step·shift`
/// modulo `ranks`, or the next multiple that is not zero, so that no rank
/// meets its own items. Zero when `shift` is zero or a multiple of `ranks`.
pub fn distance(shift: u32, step: u32, ranks: u32) -> u32 {
    let unit = shift % ranks.max(1);
    if unit == 0 {
        return 0;
    }
    (step..)
        .map(|k| (u64::from(k) * u64::from(unit) % u64::from(ranks)) as u32)
        .find(|d| *d != 0)
        .unwrap_or(unit)
}

/// The rank whose items `rank` works on at `distance`.
pub fn owner(rank: Rank, distance: u32, ranks: u32) -> Rank {
    Rank((rank.0 + ranks - distance % ranks) % ranks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rank_r_works_on_what_rank_r_minus_n_made() {
        assert_eq!(owner(Rank(5), 4, 12), Rank(1));
        assert_eq!(owner(Rank(1), 4, 12), Rank(9));
        assert_eq!(distance(4, 1, 12), 4);
        assert_eq!(distance(4, 2, 12), 8);
        // 3·4 = 12 would be the own items: the next multiple is taken.
        assert_eq!(distance(4, 3, 12), 4);
        assert_eq!(distance(0, 1, 12), 0);
    }

    proptest! {
        #[test]
        fn no_rank_meets_its_own_items_and_none_is_left_out(
            ranks in 2_u32..200, shift in 1_u32..200, step in 1_u32..5,
        ) {
            prop_assume!(shift % ranks != 0);
            let d = distance(shift, step, ranks);
            let mut owners: Vec<u32> = (0..ranks).map(|r| owner(Rank(r), d, ranks).0).collect();
            prop_assert!(owners.iter().enumerate().all(|(r, o)| r as u32 != *o));
            owners.sort_unstable();
            prop_assert_eq!(owners, (0..ranks).collect::<Vec<_>>());
        }
    }
}
