//! Notes: many to one, one to all, beside collectives, and dropped waits.

use std::time::Duration;

use rbench_comm::{Chosen, Combine, CommError, Communicator, NOTE_BYTES, Note};
use rbench_core::Rank;

use crate::checks::{Checks, Outcome, ensure, passed};

const EACH: u64 = 50;

pub async fn check_all(comm: &dyn Communicator, checks: &mut Checks<'_>) -> Result<(), CommError> {
    let outcome = many_to_one(comm).await;
    checks
        .record("notes of many reach one, each sender's in order", outcome)
        .await?;
    let outcome = one_to_all(comm).await;
    checks
        .record("notes of one reach all, itself too", outcome)
        .await?;
    let outcome = long_ones(comm).await;
    checks
        .record("long and short notes arrive whole and in order", outcome)
        .await?;
    let outcome = dropped_waits(comm).await;
    checks
        .record("a dropped wait for a note loses none", outcome)
        .await?;
    let outcome = beside_a_collective(comm).await;
    checks
        .record("notes arrive while a collective is under way", outcome)
        .await?;
    let outcome = among_chosen_ranks(comm).await;
    checks
        .record("chosen ranks are a group with notes of their own", outcome)
        .await
}

/// A note of that kind, with words that follow from a number.
fn content(kind: u64, number: u64) -> Vec<u8> {
    let words = (0..6).map(|place| number.wrapping_mul(1 << 40) ^ place);
    let all = std::iter::once(kind).chain(words);
    all.flat_map(u64::to_le_bytes).collect()
}

fn kind(note: &Note) -> u64 {
    let word = note.content.first_chunk();
    word.map_or(u64::MAX, |word| u64::from_le_bytes(*word))
}

async fn many_to_one(comm: &dyn Communicator) -> Outcome {
    let target = Rank(comm.size() - 1);
    for number in 0..EACH {
        comm.post(target, content(number, number));
    }
    let mut next = vec![0; comm.size() as usize];
    if comm.rank() == target {
        for _ in 0..EACH * u64::from(comm.size()) {
            let note = comm.next_note().await?;
            let expected = &mut next[note.from.0 as usize];
            let kind = kind(&note);
            ensure!(
                kind == *expected,
                "note {kind} of rank {} came when {expected} was due",
                note.from
            );
            ensure!(note.content == content(kind, kind), "other words: {note:?}");
            *expected += 1;
        }
        ensure!(next.iter().all(|&n| n == EACH), "{next:?}");
    }
    comm.barrier().await?;
    passed()
}

async fn one_to_all(comm: &dyn Communicator) -> Outcome {
    let sender = Rank(comm.size() / 2);
    if comm.rank() == sender {
        for to in (0..comm.size()).map(Rank) {
            comm.post(to, content(7, to.0.into()));
        }
    }
    let note = comm.next_note().await?;
    ensure!(note.from == sender, "{note:?}");
    ensure!(note.content == content(7, comm.rank().0.into()), "{note:?}");
    comm.barrier().await?;
    passed()
}

/// Every rank sends to every other; the lengths go up to the longest there may be.
async fn long_ones(comm: &dyn Communicator) -> Outcome {
    let lengths = [0, 1, 4000, NOTE_BYTES, 3, NOTE_BYTES - 1];
    let content = |from: u32, number: usize| {
        let byte = |place: usize| (place / 251 + place + number) as u8 ^ from as u8;
        (0..lengths[number]).map(byte).collect::<Vec<u8>>()
    };
    for to in (0..comm.size()).map(Rank) {
        for number in 0..lengths.len() {
            comm.post(to, content(comm.rank().0, number));
        }
    }
    let mut next = vec![0_usize; comm.size() as usize];
    for _ in 0..lengths.len() * comm.size() as usize {
        let note = comm.next_note().await?;
        let number = &mut next[note.from.0 as usize];
        let (length, expected) = (note.content.len(), content(note.from.0, *number));
        ensure!(
            length == expected.len(),
            "out of order: {length} bytes came as note {number}"
        );
        ensure!(note.content == expected, "{length} other bytes");
        *number += 1;
    }
    comm.barrier().await?;
    passed()
}

async fn dropped_waits(comm: &dyn Communicator) -> Outcome {
    let neighbour = Rank((comm.rank().0 + 1) % comm.size());
    let mut due = 0;
    for number in 0..EACH {
        comm.post(neighbour, content(number, number));
        // The wait is dropped sooner or later than the note arrives.
        let patience = Duration::from_millis(number % 7);
        if let Ok(note) = tokio::time::timeout(patience, comm.next_note()).await {
            ensure!(kind(&note?) == due, "a note came out of order");
            due += 1;
        }
    }
    while due < EACH {
        ensure!(kind(&comm.next_note().await?) == due, "a note was lost");
        due += 1;
    }
    comm.barrier().await?;
    passed()
}

/// Each rank waits in a reduction that the last rank joins only when it has
/// had a note of everybody, and they say that they have had its answer.
async fn beside_a_collective(comm: &dyn Communicator) -> Outcome {
    let last = Rank(comm.size() - 1);
    if comm.rank() == last {
        let mut satisfied = 1;
        while satisfied < comm.size() {
            let note = comm.next_note().await?;
            match kind(&note) {
                1 => comm.post(note.from, content(2, 1)),
                _ => satisfied += 1,
            }
        }
        comm.all_reduce(Combine::Sum, vec![1]).await?;
        return passed();
    }
    let collective = comm.all_reduce(Combine::Sum, vec![1]);
    tokio::pin!(collective);
    let mut answered = false;
    comm.post(last, content(1, 0));
    loop {
        tokio::select! {
            biased;
            note = comm.next_note(), if !answered => {
                let note = note?;
                ensure!(note.from == last && kind(&note) == 2, "{note:?}");
                answered = true;
                comm.post(last, content(3, 0));
            }
            sum = &mut collective => {
                ensure!(sum? == [u64::from(comm.size())], "the sum differs");
                ensure!(answered, "the reduction was ready before the note");
                return passed();
            }
        }
    }
}

/// The ranks from the second on, without the last but one. Each has a note of
/// the first, which is none of them, before those of the others.
async fn among_chosen_ranks(comm: &dyn Communicator) -> Outcome {
    let size = comm.size();
    let chosen = |rank: &u32| size == 1 || *rank > 0 && (*rank + 2 != size || size < 4);
    let members: Vec<Rank> = (0..size).filter(chosen).map(Rank).collect();
    if comm.rank() == Rank(0) && size > 1 {
        members.iter().for_each(|to| comm.post(*to, content(99, 0)));
    }
    comm.barrier().await?;
    if let Some(part) = Chosen::of(comm, members.clone()).await? {
        let place = members.iter().position(|rank| *rank == comm.rank());
        ensure!(
            place == Some(part.rank().0 as usize) && part.size() as usize == members.len(),
            "rank {} of {} is {} of {}",
            comm.rank(),
            size,
            part.rank(),
            part.size()
        );
        for to in (0..part.size()).map(Rank) {
            part.post(to, content(5, part.rank().0.into()));
        }
        let mut heard = vec![0; members.len()];
        for _ in 0..part.size() {
            let note = part.next_note().await?;
            ensure!(
                note.content == content(5, note.from.0.into()),
                "{note:?} among the chosen"
            );
            heard[note.from.0 as usize] += 1;
        }
        ensure!(heard.iter().all(|n| *n == 1), "heard {heard:?}");
        let last = Rank(part.size() - 1);
        if part.size() > 1 && part.rank() == Rank(0) {
            part.send(last, [7, 8])?;
        } else if part.size() > 1 && part.rank() == last {
            let numbers = part.receive(Rank(0))?;
            ensure!(numbers == [7, 8], "received {numbers:?}");
        }
        part.barrier().await?;
    }
    comm.barrier().await?;
    // Nothing is left of that note, whether or not the chosen ranks have met it.
    if comm.rank() == Rank(0) && size > 1 {
        members
            .iter()
            .for_each(|to| comm.post(*to, content(100, 0)));
    } else if size > 1 && members.contains(&comm.rank()) {
        while kind(&comm.next_note().await?) != 100 {}
    }
    comm.barrier().await?;
    passed()
}
