//! How far the clocks of the hosts are apart, measured once at start-up.
//!
//! Owns the ping-pong and its estimator (F. Cristian, "Probabilistic clock
//! synchronization", 1989): of many exchanges the one with the smallest round
//! trip bounds the offset most closely. It does not correct for the drift of
//! the clocks after the measurement.

use rbench_core::{Clock, Rank};

use crate::{CommError, Communicator, Topology};

/// Exchanges with each host. The first few set connections up, and the best
/// one counts.
const ROUNDS: u64 = 50;

/// The clock of a host compared with the clock of rank 0's host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockOffset {
    /// Rank 0's clock minus this host's clock, in ns: add it to an instant of
    /// this host's clock to get the instant of rank 0's.
    pub offset_ns: i64,
    /// The true offset lies within this many ns of `offset_ns`: half of the
    /// smallest round trip.
    pub error_ns: u64,
}

impl ClockOffset {
    /// What one exchange says: rank 0 sent its ping at `sent_ns` and had the
    /// answer at `received_ns`, both by its own clock, and the other host's
    /// clock read `there_ns` in between.
    fn of_exchange(sent_ns: u64, there_ns: u64, received_ns: u64) -> ClockOffset {
        let round_trip_ns = received_ns.saturating_sub(sent_ns);
        let middle_ns = sent_ns + round_trip_ns / 2;
        ClockOffset {
            offset_ns: middle_ns.wrapping_sub(there_ns) as i64,
            error_ns: round_trip_ns.div_ceil(2),
        }
    }
}

/// Measures the offset of every host's clock from rank 0's, in the order of
/// `topology.hosts`; a collective call with the same result at every rank.
/// `clock` is the calling rank's own.
///
/// Rank 0's host is 0 ± 0 by definition. Each other host costs about 50 round
/// trips, polled without pause by the two ranks that measure, and a barrier in
/// which all the others wait quietly.
pub async fn clock_offsets(
    comm: &dyn Communicator,
    topology: &Topology,
    clock: &dyn Clock,
) -> Result<Vec<ClockOffset>, CommError> {
    let mut offsets = vec![ClockOffset::default()];
    for host in &topology.hosts[1..] {
        if comm.rank() == Rank(0) {
            offsets.push(measure(comm, host.leader(), clock)?);
        } else if comm.rank() == host.leader() {
            answer(comm, clock)?;
        }
        comm.barrier().await?;
    }
    let table = comm.broadcast(Rank(0), encode(&offsets)).await?;
    Ok(decode(&table))
}

/// Rank 0's side of the ping-pong.
fn measure(
    comm: &dyn Communicator,
    leader: Rank,
    clock: &dyn Clock,
) -> Result<ClockOffset, CommError> {
    let exchange = |round| {
        let sent_ns = clock.now().0;
        comm.send(leader, [round, 0])?;
        let [_, there_ns] = comm.receive(leader)?;
        Ok(ClockOffset::of_exchange(sent_ns, there_ns, clock.now().0))
    };
    let mut best = exchange(0)?;
    for round in 1..ROUNDS {
        let next = exchange(round)?;
        if next.error_ns < best.error_ns {
            best = next;
        }
    }
    Ok(best)
}

/// The other host's side of the ping-pong.
fn answer(comm: &dyn Communicator, clock: &dyn Clock) -> Result<(), CommError> {
    for _ in 0..ROUNDS {
        let [round, _] = comm.receive(Rank(0))?;
        comm.send(Rank(0), [round, clock.now().0])?;
    }
    Ok(())
}

/// Each offset as 16 bytes, little endian.
fn encode(offsets: &[ClockOffset]) -> Vec<u8> {
    let mut encoded = Vec::with_capacity(offsets.len() * 16);
    for ClockOffset {
        offset_ns,
        error_ns,
    } in offsets
    {
        encoded.extend_from_slice(&offset_ns.to_le_bytes());
        encoded.extend_from_slice(&error_ns.to_le_bytes());
    }
    encoded
}

/// Reads what [`encode`] wrote.
fn decode(encoded: &[u8]) -> Vec<ClockOffset> {
    let (numbers, _) = encoded.as_chunks::<8>();
    let (pairs, _) = numbers.as_chunks::<2>();
    pairs
        .iter()
        .map(|&[offset, error]| ClockOffset {
            offset_ns: i64::from_le_bytes(offset),
            error_ns: u64::from_le_bytes(error),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(sent: u64, there: u64, received: u64, offset_ns: i64, error_ns: u64) {
        assert_eq!(
            ClockOffset::of_exchange(sent, there, received),
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
        // The other clock is 500 ns behind.
        for way_there in 0..=100_u64 {
            let there = 10_000 + way_there - 500;
            let found = ClockOffset::of_exchange(10_000, there, 10_100);
            assert!((found.offset_ns - 500).unsigned_abs() <= found.error_ns);
        }
    }

    #[test]
    fn a_table_survives_its_encoding() {
        let table = [
            ClockOffset::default(),
            ClockOffset {
                offset_ns: -7,
                error_ns: u64::MAX,
            },
        ];
        assert_eq!(decode(&encode(&table)), table);
    }
}
