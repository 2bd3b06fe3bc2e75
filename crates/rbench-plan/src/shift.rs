//! Choice of the rank whose items a rank works on, so that it does not use items that its own
//! client has just created.

use rbench_core::Rank;

use crate::permutation::Permutation;

/// Distance in ranks to the owner of the items in the `step`-th phase after creation (from 1).
/// Rank r works on the items of rank r − step·shift, or of the next multiple that is not its
/// own. Zero if `step` or `shift` is zero, or `shift` a multiple of `ranks`.
pub fn ahead(shift: u32, step: u32, ranks: u32) -> u32 {
    let unit = shift % ranks.max(1);
    if unit == 0 || step == 0 {
        return 0;
    }
    let distance = (step..)
        .map(|k| (u64::from(k) * u64::from(unit) % u64::from(ranks)) as u32)
        .find(|d| *d != 0)
        .unwrap_or(unit);
    ranks - distance
}

/// The rank at distance `ahead` after `rank`.
pub fn owner(rank: Rank, ahead: u32, ranks: u32) -> Rank {
    Rank(((u64::from(rank.0) + u64::from(ahead)) % u64::from(ranks.max(1))) as u32)
}

/// The rank whose items `rank` works on in a random assignment: never its own, and different
/// for each rank. The ranks form a circle in random order, and each takes the items of the
/// next one.
pub fn drawn(rank: Rank, seed: u64, ranks: u32) -> Rank {
    let circle = Permutation::new(u64::from(ranks.max(1)), &[seed]);
    let places = 0..u64::from(ranks);
    let position = places
        .into_iter()
        .find(|at| circle.at(*at) == u64::from(rank.0));
    let next = position.map_or(0, |at| (at + 1) % u64::from(ranks.max(1)));
    Rank(circle.at(next) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rank_r_works_on_what_rank_r_minus_n_made() {
        let worked_on = |rank, shift, step| owner(Rank(rank), ahead(shift, step, 12), 12);
        assert_eq!(worked_on(5, 4, 1), Rank(1));
        assert_eq!(worked_on(1, 4, 1), Rank(9));
        assert_eq!(worked_on(5, 4, 2), Rank(9));
        // 3·4 = 12 would be its own items: the next multiple is taken.
        assert_eq!(worked_on(5, 4, 3), Rank(1));
        assert_eq!(worked_on(5, 0, 1), Rank(5));
    }

    #[test]
    fn a_seed_draws_another_order_of_ranks() {
        let order = |seed| {
            (0..16)
                .map(move |r| drawn(Rank(r), seed, 16))
                .collect::<Vec<_>>()
        };
        assert_ne!(order(1), order(2));
        assert_eq!(order(1), order(1));
        assert_eq!(drawn(Rank(0), 1, 1), Rank(0));
    }

    proptest! {
        #[test]
        fn ranks_that_are_drawn_are_others_and_none_is_left_out(ranks in 2_u32..200, seed: u64) {
            let mut owners: Vec<u32> = (0..ranks).map(|r| drawn(Rank(r), seed, ranks).0).collect();
            prop_assert!(owners.iter().enumerate().all(|(r, o)| r as u32 != *o));
            owners.sort_unstable();
            prop_assert_eq!(owners, (0..ranks).collect::<Vec<_>>());
        }

        #[test]
        fn no_rank_meets_its_own_items_and_none_is_left_out(
            ranks in 2_u32..200, shift in 1_u32..200, step in 1_u32..7,
        ) {
            prop_assume!(shift % ranks != 0);
            let d = ahead(shift, step, ranks);
            let mut owners: Vec<u32> = (0..ranks).map(|r| owner(Rank(r), d, ranks).0).collect();
            prop_assert!(owners.iter().enumerate().all(|(r, o)| r as u32 != *o));
            owners.sort_unstable();
            prop_assert_eq!(owners, (0..ranks).collect::<Vec<_>>());
        }
    }
}
