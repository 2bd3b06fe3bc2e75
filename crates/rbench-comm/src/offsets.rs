//! Offsets between the clocks of a group at one moment.
//!
//! Owns the ping-pong and its estimator (F. Cristian, "Probabilistic clock synchronization", 1989):
//! of many exchanges, the one with the smallest round trip bounds the offset most closely. `drift`
//! tracks the offset from then on.

use rbench_core::{Clock, Nanos, Rank};
use serde::{Deserialize, Serialize};

use crate::{CommError, Communicator};

/// Number of exchanges with each clock. The first few set up connections, and the best one counts.
const ROUNDS: u64 = 50;

/// A clock compared with that of rank 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClockOffset {
    /// Rank 0's clock minus this clock, in ns: add it to an instant of this clock to get the
    /// instant of rank 0's clock.
    pub offset_ns: i64,
    /// The true offset is within this many ns of `offset_ns`.
    pub error_ns: u64,
}

/// The offset of a clock at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Comparison {
    /// The moment, by rank 0's clock.
    pub at: Nanos,
    /// The offset at that moment; its error is half of the smallest round trip.
    pub offset: ClockOffset,
}

impl Comparison {
    /// Result of one exchange. Rank 0 sent its ping at `sent_ns` and received the answer at
    /// `received_ns`, both by its own clock. The other clock read `there_ns` in between.
    fn of_exchange(sent_ns: u64, there_ns: u64, received_ns: u64) -> Comparison {
        let round_trip_ns = received_ns.saturating_sub(sent_ns);
        let middle_ns = sent_ns + round_trip_ns / 2;
        Comparison {
            at: Nanos(middle_ns),
            offset: ClockOffset {
                offset_ns: middle_ns.wrapping_sub(there_ns) as i64,
                error_ns: round_trip_ns.div_ceil(2),
            },
        }
    }
}

/// Compares the clocks of the ranks `others` with rank 0's, in that order. A collective call of all
/// ranks, with the same `others` and the same result at each. `clock` is the calling rank's own.
///
/// Each clock costs about 50 round trips, which two ranks busy-poll, and a barrier in which all
/// others wait quietly. Nothing may be timed meanwhile.
///
/// # Errors
/// When the ranks cannot communicate.
pub async fn compare(
    comm: &dyn Communicator,
    others: &[Rank],
    clock: &dyn Clock,
) -> Result<Vec<Comparison>, CommError> {
    let mut comparisons = Vec::new();
    for other in others {
        if comm.rank() == Rank(0) {
            comparisons.push(measure(comm, *other, clock)?);
        } else if comm.rank() == *other {
            answer(comm, clock)?;
        }
        comm.barrier().await?;
    }
    comm.broadcast_value(Rank(0), &comparisons).await
}

/// Rank 0's side of the ping-pong.
fn measure(
    comm: &dyn Communicator,
    other: Rank,
    clock: &dyn Clock,
) -> Result<Comparison, CommError> {
    let exchange = |round| {
        let sent_ns = clock.now().0;
        comm.send(other, [round, 0])?;
        let [_, there_ns] = comm.receive(other)?;
        Ok(Comparison::of_exchange(sent_ns, there_ns, clock.now().0))
    };
    let mut best = exchange(0)?;
    for round in 1..ROUNDS {
        let next = exchange(round)?;
        if next.offset.error_ns < best.offset.error_ns {
            best = next;
        }
    }
    Ok(best)
}

/// The other clock's side of the ping-pong.
fn answer(comm: &dyn Communicator, clock: &dyn Clock) -> Result<(), CommError> {
    for _ in 0..ROUNDS {
        let [round, _] = comm.receive(Rank(0))?;
        comm.send(Rank(0), [round, clock.now().0])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: u64, there: u64, received: u64, offset_ns: i64, error_ns: u64) {
        assert_eq!(
            Comparison::of_exchange(sent, there, received).offset,
            ClockOffset {
                offset_ns,
                error_ns
            }
        );
    }

    #[test]
    fn the_answer_is_taken_to_lie_in_the_middle_of_the_round_trip() {
        check(1_000, 1_050, 1_100, 0, 50);
        check(1_000, 50, 1_100, 1_000, 50);
        check(1_000, 9_050, 1_100, -8_000, 50);
    }

    #[test]
    fn the_error_of_an_odd_round_trip_is_rounded_up() {
        check(0, 0, 3, 1, 2);
    }

    #[test]
    fn the_true_offset_lies_within_the_error_however_uneven_the_ways_are() {
        // The other clock lags by 500 ns.
        for way_there in 0..=100_u64 {
            let there_ns = 10_000 + way_there - 500;
            let offset = Comparison::of_exchange(10_000, there_ns, 10_100).offset;
            assert!((offset.offset_ns - 500).unsigned_abs() <= offset.error_ns);
        }
    }
}
