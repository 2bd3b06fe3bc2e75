//! Notes: many to one, one to all, beside collectives, and dropped waits.

use std::time::Duration;

use rbench_comm::{Chosen, Combine, CommError, Communicator, NOTE_MORE, NOTE_WORDS};
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

fn words(number: u64) -> [u64; NOTE_WORDS] {
    std::array::from_fn(|place| number.wrapping_mul(1 << 40) ^ place as u64)
}

async fn many_to_one(comm: &dyn Communicator) -> Outcome {
    let target = Rank(comm.size() - 1);
    for number in 0..EACH {
        comm.post(target, number, words(number));
    }
    let mut next = vec![0; comm.size() as usize];
    if comm.rank() == target {
        for _ in 0..EACH * u64::from(comm.size()) {
            let note = comm.next_note().await?;
            let expected = &mut next[note.from.0 as usize];
            ensure!(
                note.kind == *expected,
                "note {} of rank {} came when {expected} was due",
                note.kind,
                note.from
            );
            ensure!(note.words == words(note.kind), "other words: {note:?}");
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
            comm.post(to, 7, words(u64::from(to.0)));
        }
    }
    let note = comm.next_note().await?;
    ensure!(note.from == sender && note.kind == 7, "{note:?}");
    ensure!(note.words == words(comm.rank().0.into()), "{note:?}");
    comm.barrier().await?;
    passed()
}

/// Every rank sends to every other; the lengths go up to the longest there may be.
async fn long_ones(comm: &dyn Communicator) -> Outcome {
    let lengths = [0, 1, 500, NOTE_MORE, 3, NOTE_MORE - 1];
    let more = |from: u32, length: usize| {
        let first = u64::from(from) << 32;
        (first..first + length as u64).collect::<Vec<u64>>()
    };
    for to in (0..comm.size()).map(Rank) {
        for (number, length) in (0..).zip(lengths) {
            let more = more(comm.rank().0, length);
            comm.post_with(to, number, words(number), more);
        }
    }
    let mut next = vec![0_usize; comm.size() as usize];
    for _ in 0..lengths.len() * comm.size() as usize {
        let note = comm.next_note().await?;
        let number = &mut next[note.from.0 as usize];
        ensure!(note.kind == *number as u64, "out of order: {}", note.kind);
        ensure!(note.words == words(note.kind), "other words");
        let expected = more(note.from.0, lengths[*number]);
        ensure!(note.more == expected, "{} other words", note.more.len());
        *number += 1;
    }
    comm.barrier().await?;
    passed()
}

async fn dropped_waits(comm: &dyn Communicator) -> Outcome {
    let neighbour = Rank((comm.rank().0 + 1) % comm.size());
    let mut due = 0;
    for number in 0..EACH {
        comm.post(neighbour, number, words(number));
        // The wait is dropped sooner or later than the note arrives.
        let patience = Duration::from_millis(number % 7);
        if let Ok(note) = tokio::time::timeout(patience, comm.next_note()).await {
            ensure!(note?.kind == due, "a note came out of order");
            due += 1;
        }
    }
    while due < EACH {
        ensure!(comm.next_note().await?.kind == due, "a note was lost");
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
            match note.kind {
                1 => comm.post(note.from, 2, words(1)),
                _ => satisfied += 1,
            }
        }
        comm.all_reduce(Combine::Sum, vec![1]).await?;
        return passed();
    }
    let collective = comm.all_reduce(Combine::Sum, vec![1]);
    tokio::pin!(collective);
    let mut answered = false;
    comm.post(last, 1, words(0));
    loop {
        tokio::select! {
            biased;
            note = comm.next_note(), if !answered => {
                let note = note?;
                ensure!(note.from == last && note.kind == 2, "{note:?}");
                answered = true;
                comm.post(last, 3, words(0));
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
        members.iter().for_each(|to| comm.post(*to, 99, words(0)));
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
            part.post(to, 5, words(u64::from(part.rank().0)));
        }
        let mut heard = vec![0; members.len()];
        for _ in 0..part.size() {
            let note = part.next_note().await?;
            ensure!(
                note.kind == 5 && note.words == words(u64::from(note.from.0)),
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
        members.iter().for_each(|to| comm.post(*to, 100, words(0)));
    } else if size > 1 && members.contains(&comm.rank()) {
        while comm.next_note().await?.kind != 100 {}
    }
    comm.barrier().await?;
    passed()
}
