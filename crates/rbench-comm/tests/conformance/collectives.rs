//! Every collective with empty, large and uneven content, and sub-groups.

use rbench_comm::{Combine, CommError, Communicator};
use rbench_core::Rank;

use crate::checks::{Checks, Outcome, ensure, passed};

/// More than any eager message.
const MANY_NUMBERS: usize = 300_000;
const MANY_BYTES: usize = 2_000_000;

pub async fn check_all(comm: &dyn Communicator, checks: &mut Checks<'_>) -> Result<(), CommError> {
    let outcome = barrier(comm).await;
    checks
        .record("a barrier opens when the last rank has come", outcome)
        .await?;
    let outcome = broadcast(comm).await;
    checks
        .record("a broadcast reaches every rank", outcome)
        .await?;
    let outcome = gather(comm).await;
    checks
        .record("a gather keeps lengths, content and order", outcome)
        .await?;
    let outcome = reduce(comm).await;
    checks
        .record("a reduction combines every number", outcome)
        .await?;
    let outcome = many_small(comm).await;
    checks
        .record("collectives of many kinds follow each other", outcome)
        .await?;
    let outcome = split(comm).await;
    checks
        .record("sub-groups talk among themselves, nested too", outcome)
        .await?;
    let outcome = abandoned(comm).await;
    checks
        .record("the buffers of a dropped collective stay alive", outcome)
        .await
}

/// Bytes that depend on the length, the salt and the place.
fn pattern(length: usize, salt: u32) -> Vec<u8> {
    (0..length)
        .map(|place| (place as u32).wrapping_mul(31).wrapping_add(salt * 7 + 1) as u8)
        .collect()
}

/// The rank that comes late tells when, on the clock that all processes of
/// the machine share; nobody may leave before.
async fn barrier(comm: &dyn Communicator) -> Outcome {
    use rbench_core::{Clock, MonotonicClock};
    for late in [0, comm.size() - 1].map(Rank) {
        comm.barrier().await?;
        let mut came_ns = 0;
        if comm.rank() == late {
            std::thread::sleep(std::time::Duration::from_millis(30));
            came_ns = MonotonicClock.now().0;
        }
        comm.barrier().await?;
        let left_ns = MonotonicClock.now().0;
        let came_ns = comm.all_reduce(Combine::Max, vec![came_ns]).await?[0];
        ensure!(
            left_ns >= came_ns,
            "left {} ns before rank {late} came",
            came_ns - left_ns
        );
    }
    passed()
}

async fn broadcast(comm: &dyn Communicator) -> Outcome {
    let lengths = [0, 1, 247, 248, 249, 256, 65_537, MANY_BYTES];
    for root in [0, comm.size() / 2, comm.size() - 1].map(Rank) {
        for length in lengths {
            let expected = pattern(length, root.0);
            let mine = if comm.rank() == root {
                expected.clone()
            } else {
                // The others' argument is ignored, whatever its length.
                pattern(comm.rank().0 as usize * 100, 99)
            };
            let got = comm.broadcast(root, mine).await?;
            ensure!(
                got == expected,
                "{length} bytes from rank {root} arrived as {} other bytes",
                got.len()
            );
        }
    }
    passed()
}

async fn gather(comm: &dyn Communicator) -> Outcome {
    type Length = fn(u32) -> usize;
    let lengths: &[Length] = &[
        |_| 0,
        |_| 1,
        |rank| rank as usize,
        // Some bring nothing.
        |rank| (rank % 3) as usize * 5_000,
        |rank| if rank == 0 { MANY_BYTES } else { 3 },
        |rank| 100_000 + rank as usize,
    ];
    for root in [0, comm.size() - 1].map(Rank) {
        for length in lengths {
            let of = |rank: u32| pattern(length(rank), rank);
            let got = comm.gather(root, of(comm.rank().0)).await?;
            let expected = (comm.rank() == root).then(|| (0..comm.size()).map(of).collect());
            ensure!(got == expected, "the gather at rank {root} differs");
        }
    }
    passed()
}

/// The required result of `combine` for the numbers of `number(rank)`, computed from its
/// definition.
fn combined(combine: Combine, size: u32, number: impl Fn(u32) -> u64) -> u64 {
    let numbers = (0..size).map(number);
    match combine {
        Combine::Sum => numbers.fold(0, u64::wrapping_add),
        Combine::Min => numbers.min().unwrap_or_default(),
        Combine::Max => numbers.max().unwrap_or_default(),
    }
}

async fn reduce(comm: &dyn Communicator) -> Outcome {
    let number = |rank: u32, place: usize| {
        // Above 2^63 too, so that a signed comparison would show.
        (u64::from(rank) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ place as u64
    };
    for combine in [Combine::Sum, Combine::Min, Combine::Max] {
        for length in [0, 1, 7_999, 8_000, 8_001, MANY_NUMBERS] {
            let mine = || {
                (0..length)
                    .map(|place| number(comm.rank().0, place))
                    .collect()
            };
            let expected: Vec<u64> = (0..length)
                .map(|place| combined(combine, comm.size(), |rank| number(rank, place)))
                .collect();
            let got = comm.all_reduce(combine, mine()).await?;
            ensure!(
                got == expected,
                "all_reduce {combine:?} of {length} differs"
            );
            for root in [0, comm.size() - 1].map(Rank) {
                let got = comm.reduce(root, combine, mine()).await?;
                let expected = (comm.rank() == root).then(|| expected.clone());
                ensure!(got == expected, "reduce {combine:?} of {length} differs");
            }
        }
    }
    passed()
}

async fn many_small(comm: &dyn Communicator) -> Outcome {
    let me = u64::from(comm.rank().0);
    let size = u64::from(comm.size());
    for round in 0..20 {
        let root = Rank(round as u32 % comm.size());
        let sum = comm.all_reduce(Combine::Sum, vec![me + round]).await?[0];
        ensure!(sum == size * (size - 1) / 2 + size * round, "round {round}");
        let said = comm
            .broadcast(root, vec![root.0 as u8, round as u8])
            .await?;
        ensure!(
            said == [root.0 as u8, round as u8],
            "round {round}: {said:?}"
        );
        let all = comm.gather(root, vec![round as u8; me as usize]).await?;
        ensure!(
            all.is_none_or(|all| all
                .iter()
                .all(|part| part.iter().all(|&b| b == round as u8))),
            "round {round}: a gather of another round"
        );
    }
    passed()
}

async fn split(comm: &dyn Communicator) -> Outcome {
    let me = comm.rank().0;
    let parity = comm.split(me % 2).await?;
    let members: Vec<u32> = (0..comm.size()).filter(|rank| rank % 2 == me % 2).collect();
    check_members(&*parity, me, &members).await?;

    // The groups are of unequal size, and one makes more calls than the other.
    if me.is_multiple_of(2) {
        parity.barrier().await?;
    }
    let nested = parity.split(parity.rank().0 / 2).await?;
    let pair = parity.rank().0 / 2;
    let of_pair: Vec<u32> = (0..).map(|place| pair * 2 + place).take(2).collect();
    let members: Vec<u32> = of_pair
        .iter()
        .filter_map(|&place| members.get(place as usize).copied())
        .collect();
    check_members(&*nested, me, &members).await?;

    // A group is still good after its parent has gone.
    drop(parity);
    check_members(&*nested, me, &members).await?;

    let alone = comm.split(i32::MAX as u32 - me).await?;
    check_members(&*alone, me, &[me]).await?;
    passed()
}

/// `members` are the group's ranks by their numbers in the group of all.
async fn check_members(group: &dyn Communicator, me: u32, members: &[u32]) -> Outcome {
    ensure!(
        group.size() as usize == members.len(),
        "{} ranks instead of {}",
        group.size(),
        members.len()
    );
    ensure!(
        members[group.rank().0 as usize] == me,
        "rank {} of the sub-group is another",
        group.rank()
    );
    let last = Rank(group.size() - 1);
    let all = group.gather(last, me.to_le_bytes().to_vec()).await?;
    if group.rank() == last {
        let expected: Vec<_> = members.iter().map(|m| m.to_le_bytes().to_vec()).collect();
        ensure!(all == Some(expected), "a gather in the sub-group differs");
    }
    let sum = group.all_reduce(Combine::Sum, vec![me.into()]).await?;
    let expected: u32 = members.iter().sum();
    ensure!(sum == [u64::from(expected)], "the sum is {sum:?}");
    let said = group.broadcast(last, me.to_le_bytes().to_vec()).await?;
    ensure!(
        said == members[last.0 as usize].to_le_bytes(),
        "a broadcast in the sub-group differs"
    );
    group.barrier().await?;
    if group.size() > 1 {
        exchange(group)?;
    }
    passed()
}

/// Each rank but the first answers what the first one sends.
fn exchange(group: &dyn Communicator) -> Result<(), Box<dyn std::error::Error>> {
    if group.rank() != Rank(0) {
        let [number, _] = group.receive(Rank(0))?;
        group.send(Rank(0), [number + 1, 0])?;
        return Ok(());
    }
    for other in (1..group.size()).map(Rank) {
        group.send(other, [u64::from(other.0) * 10, 0])?;
        let [answer, _] = group.receive(other)?;
        ensure!(
            answer == u64::from(other.0) * 10 + 1,
            "rank {other} answered {answer}"
        );
    }
    Ok(())
}

/// All ranks but one drop a large reduction while it is under way. When the
/// last one joins, MPI writes into their buffers: memory taken since must not
/// change. Their group goes before that, and another one comes.
async fn abandoned(comm: &dyn Communicator) -> Outcome {
    use std::time::Duration;
    if comm.size() == 1 {
        return Ok("skipped: nothing to wait for".to_owned());
    }
    let group = comm.split(0).await?;
    let late = Rank(comm.size() - 1);
    if comm.rank() == late {
        // Comes when all others have given up.
        for _ in 1..comm.size() {
            comm.next_note().await?;
        }
        comm.split(0).await?.barrier().await?;
        let reduction = group.all_reduce(Combine::Sum, vec![1; MANY_NUMBERS]);
        // The others still take part: their libraries go on with it.
        let (sum, ()) = (reduction.await?, comm.barrier().await?);
        ensure!(
            sum == vec![u64::from(comm.size()); MANY_NUMBERS],
            "the reduction went wrong"
        );
    } else {
        let reduction = group.all_reduce(Combine::Sum, vec![1; MANY_NUMBERS]);
        let given_up = tokio::time::timeout(Duration::from_millis(20), reduction).await;
        ensure!(
            given_up.is_err(),
            "the reduction did not wait for rank {late}"
        );
        drop(group);
        comm.post(late, vec![0]);
        comm.split(0).await?.barrier().await?;
        let canaries: Vec<Vec<u64>> = (0..4).map(|_| vec![0xCA; MANY_NUMBERS]).collect();
        comm.barrier().await?;
        ensure!(
            canaries.iter().flatten().all(|&number| number == 0xCA),
            "MPI wrote into freed memory"
        );
    }
    passed()
}
