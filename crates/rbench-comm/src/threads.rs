//! A group whose ranks are threads of one process: a single rank without MPI, or several for tests.
//! It makes no MPI calls and needs no MPI library.
//!
//! Owns the meeting point of each collective and the mailboxes. When a rank drops its communicator,
//! collectives that still need it fail at the others instead of hanging. Every collective waits for
//! all ranks, which MPI allows but does not guarantee.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rbench_core::Rank;
use tokio::sync::Notify;

use crate::communicator::{assert_fits, assert_member};
use crate::{Combine, CommError, Communicator, Note, Wait};

/// Time limit of [`Communicator::receive`].
const PATIENCE: Duration = Duration::from_secs(10);

/// Creates a group of `ranks` ranks (at least 1): one communicator for each, in rank order, to be
/// moved to a thread of its own.
pub fn world(ranks: u32) -> Vec<ThreadsCommunicator> {
    assert!(ranks >= 1, "a group has at least one rank");
    let group = Arc::new(Group::new("threads", ranks, true));
    (0..ranks)
        .map(|rank| ThreadsCommunicator::new(Arc::clone(&group), Rank(rank)))
        .collect()
}

/// Creates a group of one rank: every collective completes at once.
pub fn solo() -> ThreadsCommunicator {
    ThreadsCommunicator::new(Arc::new(Group::new("solo", 1, true)), Rank(0))
}

/// One rank of a group of threads.
///
/// # Panics
///
/// If ranks call different collectives at the same point, or post notes in a sub-group.
#[derive(Debug)]
pub struct ThreadsCommunicator {
    group: Arc<Group>,
    rank: Rank,
    /// The number of this rank's next collective.
    next_meeting: Cell<u64>,
}

/// State shared by the ranks of a group.
struct Group {
    kind: &'static str,
    size: u32,
    has_notes: bool,
    state: Mutex<State>,
    /// Notified after every change of the state that a rank may wait for.
    changed: Notify,
}

struct State {
    /// True for each rank whose communicator was dropped.
    gone: Vec<bool>,
    /// The pending collectives, by number.
    meetings: BTreeMap<u64, Meeting>,
    /// The unread notes of each rank.
    notes: Vec<VecDeque<Note>>,
    /// Numbers that were sent and not yet received, by sender and receiver.
    sent: BTreeMap<(Rank, Rank), VecDeque<[u64; 2]>>,
}

/// One collective, to which every rank contributes.
struct Meeting {
    call: Call,
    parts: Vec<Option<Part>>,
    /// The combined numbers, once the first rank has read them.
    combined: Option<Vec<u64>>,
    /// After [`Call::Split`], the group of each color, once its first rank has read it.
    groups: BTreeMap<u32, Arc<Group>>,
    /// Number of ranks that have not read the result yet.
    left: u32,
}

/// Properties of a collective that all ranks must agree on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Barrier,
    Broadcast(Rank),
    Gather(Rank),
    Reduce(Rank, Combine),
    AllReduce(Combine),
    Split,
}

/// The contribution of a rank.
enum Part {
    Nothing,
    Bytes(Vec<u8>),
    Numbers(Vec<u64>),
    Color(u32),
}

impl fmt::Debug for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Group")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Meeting {
    /// The bytes that each rank contributed.
    fn bytes(&self) -> impl Iterator<Item = &[u8]> {
        self.parts.iter().map(|part| match part {
            Some(Part::Bytes(bytes)) => bytes.as_slice(),
            Some(Part::Nothing | Part::Numbers(_) | Part::Color(_)) | None => &[],
        })
    }

    /// The numbers of all ranks, combined.
    fn combined(&mut self, combine: Combine) -> Vec<u64> {
        let parts = &self.parts;
        let combined = self
            .combined
            .get_or_insert_with(|| combined(parts, combine));
        combined.clone()
    }

    /// The group of a color, and the rank in it of this group's `rank`.
    fn group_of(&mut self, color: u32, rank: Rank, kind: &'static str) -> (Arc<Group>, Rank) {
        let same = |part: &&Option<Part>| matches!(part, Some(Part::Color(c)) if *c == color);
        let size = self.parts.iter().filter(same).count();
        let place = self.parts[..rank.0 as usize].iter().filter(same).count();
        let new = || Arc::new(Group::new(kind, size as u32, false));
        let group = self.groups.entry(color).or_insert_with(new);
        (Arc::clone(group), Rank(place as u32))
    }
}

/// Combines the ranks' numbers.
fn combined(parts: &[Option<Part>], combine: Combine) -> Vec<u64> {
    let mut lists = parts.iter().map(|part| match part {
        Some(Part::Numbers(numbers)) => numbers.as_slice(),
        Some(Part::Nothing | Part::Bytes(_) | Part::Color(_)) | None => &[],
    });
    let mut all = lists.next().unwrap_or_default().to_vec();
    for list in lists {
        assert_eq!(
            all.len(),
            list.len(),
            "ranks reduce vectors of different lengths"
        );
        for (into, number) in all.iter_mut().zip(list) {
            *into = match combine {
                Combine::Sum => into.wrapping_add(*number),
                Combine::Min => (*number).min(*into),
                Combine::Max => (*number).max(*into),
            };
        }
    }
    all
}

impl Group {
    fn new(kind: &'static str, size: u32, has_notes: bool) -> Group {
        Group {
            kind,
            size,
            has_notes,
            state: Mutex::new(State {
                gone: vec![false; size as usize],
                meetings: BTreeMap::new(),
                notes: (0..size).map(|_| VecDeque::new()).collect(),
                sent: BTreeMap::new(),
            }),
            changed: Notify::new(),
        }
    }

    /// Locks the state. Ignores poisoning: if a rank panicked here, the others learn that it has
    /// gone.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes all waiting ranks if `change` returns true.
    fn change(&self, change: impl FnOnce(&mut State) -> bool) {
        let wakes = change(&mut self.state());
        if wakes {
            self.changed.notify_waiters();
        }
    }

    /// Waits until `ready` returns a value.
    async fn wait_for<T>(
        &self,
        mut ready: impl FnMut(&mut State) -> Option<Result<T, CommError>>,
    ) -> Result<T, CommError> {
        loop {
            let mut changed = pin!(self.changed.notified());
            // Registers before checking, so that no change is missed.
            changed.as_mut().enable();
            let now = ready(&mut self.state());
            if let Some(result) = now {
                return result;
            }
            changed.await;
        }
    }
}

impl State {
    /// Adds a rank's part. Returns true if it was the last one.
    fn bring(&mut self, number: u64, call: Call, rank: Rank, part: Part) -> bool {
        let size = self.gone.len();
        let meeting = self.meetings.entry(number).or_insert_with(|| Meeting {
            call,
            parts: (0..size).map(|_| None).collect(),
            combined: None,
            groups: BTreeMap::new(),
            left: size as u32,
        });
        assert_eq!(
            call, meeting.call,
            "rank {rank} makes a different collective call than the previous rank"
        );
        meeting.parts[rank.0 as usize] = Some(part);
        meeting.parts.iter().all(Option::is_some)
    }

    /// The result as `read` from the meeting, if all ranks have contributed; an error if a missing
    /// one has gone.
    fn take<T>(
        &mut self,
        number: u64,
        read: impl FnOnce(&mut Meeting) -> T,
    ) -> Option<Result<T, CommError>> {
        let meeting = self.meetings.get_mut(&number)?;
        if meeting.parts.iter().any(Option::is_none) {
            return (0..)
                .map(Rank)
                .zip(meeting.parts.iter().zip(&self.gone))
                .find(|(_, (part, gone))| part.is_none() && **gone)
                .map(|(rank, _)| Err(CommError::Gone(rank)));
        }
        let result = read(meeting);
        meeting.left -= 1;
        if meeting.left == 0 {
            self.meetings.remove(&number);
        }
        Some(Ok(result))
    }
}

impl ThreadsCommunicator {
    fn new(group: Arc<Group>, rank: Rank) -> ThreadsCommunicator {
        ThreadsCommunicator {
            group,
            rank,
            next_meeting: Cell::new(0),
        }
    }

    /// Contributes `part`, waits for all others, and reads the result.
    async fn meet<T>(
        &self,
        call: Call,
        part: Part,
        read: impl Fn(&mut Meeting) -> T,
    ) -> Result<T, CommError> {
        let number = self.next_meeting.get();
        self.next_meeting.set(number + 1);
        self.group
            .change(|state| state.bring(number, call, self.rank, part));
        self.group.wait_for(|state| state.take(number, &read)).await
    }
}

impl Drop for ThreadsCommunicator {
    fn drop(&mut self) {
        self.group.change(|state| {
            state.gone[self.rank.0 as usize] = true;
            true
        });
    }
}

impl Communicator for ThreadsCommunicator {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.group.size
    }

    fn kind(&self) -> &'static str {
        self.group.kind
    }

    fn barrier(&self) -> Wait<'_, ()> {
        Box::pin(self.meet(Call::Barrier, Part::Nothing, |_| ()))
    }

    fn broadcast(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Vec<u8>> {
        assert_member(root, self.size());
        let part = match self.rank == root {
            true => Part::Bytes(bytes),
            false => Part::Nothing,
        };
        let of_root = move |met: &mut Meeting| {
            let bytes = met.bytes().nth(root.0 as usize);
            bytes.unwrap_or_default().to_vec()
        };
        Box::pin(self.meet(Call::Broadcast(root), part, of_root))
    }

    fn gather(&self, root: Rank, bytes: Vec<u8>) -> Wait<'_, Option<Vec<Vec<u8>>>> {
        assert_member(root, self.size());
        let here = self.rank == root;
        let all = move |met: &mut Meeting| here.then(|| met.bytes().map(<[u8]>::to_vec).collect());
        Box::pin(self.meet(Call::Gather(root), Part::Bytes(bytes), all))
    }

    fn reduce(
        &self,
        root: Rank,
        combine: Combine,
        numbers: Vec<u64>,
    ) -> Wait<'_, Option<Vec<u64>>> {
        assert_member(root, self.size());
        let here = self.rank == root;
        let combined = move |met: &mut Meeting| here.then(|| met.combined(combine));
        let call = Call::Reduce(root, combine);
        Box::pin(self.meet(call, Part::Numbers(numbers), combined))
    }

    fn all_reduce(&self, combine: Combine, numbers: Vec<u64>) -> Wait<'_, Vec<u64>> {
        let combined = move |met: &mut Meeting| met.combined(combine);
        let call = Call::AllReduce(combine);
        Box::pin(self.meet(call, Part::Numbers(numbers), combined))
    }

    fn split(&self, color: u32) -> Wait<'_, Box<dyn Communicator>> {
        assert!(color < 1 << 31, "the color {color} is not below 2^31");
        let kind = self.group.kind;
        Box::pin(async move {
            let group = move |met: &mut Meeting| met.group_of(color, self.rank, kind);
            let (group, rank) = self.meet(Call::Split, Part::Color(color), group).await?;
            Ok(Box::new(ThreadsCommunicator::new(group, rank)) as Box<dyn Communicator>)
        })
    }

    fn post(&self, to: Rank, content: Vec<u8>) {
        assert!(self.group.has_notes, "a sub-group has no notes");
        assert_member(to, self.size());
        assert_fits(&content);
        let note = Note {
            from: self.rank,
            content,
        };
        self.group.change(|state| {
            state.notes[to.0 as usize].push_back(note);
            true
        });
    }

    fn next_note(&self) -> Wait<'_, Note> {
        assert!(self.group.has_notes, "a sub-group has no notes");
        let me = self.rank.0 as usize;
        Box::pin(
            self.group
                .wait_for(move |state| state.notes[me].pop_front().map(Ok)),
        )
    }

    fn send(&self, to: Rank, numbers: [u64; 2]) -> Result<(), CommError> {
        assert_member(to, self.size());
        self.group.change(|state| {
            let way = (self.rank, to);
            state.sent.entry(way).or_default().push_back(numbers);
            true
        });
        Ok(())
    }

    fn receive(&self, from: Rank) -> Result<[u64; 2], CommError> {
        assert_member(from, self.size());
        let start = Instant::now();
        loop {
            let mut state = self.group.state();
            let queue = state.sent.get_mut(&(from, self.rank));
            if let Some(numbers) = queue.and_then(VecDeque::pop_front) {
                return Ok(numbers);
            }
            // This rank itself could not send it later.
            let never = from == self.rank || state.gone[from.0 as usize];
            if never || start.elapsed() > PATIENCE {
                return Err(CommError::Gone(from));
            }
            drop(state);
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll};
    use std::thread;

    use super::*;

    fn run<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime")
            .block_on(future)
    }

    /// Runs `body` at each rank on its own thread, and returns the ranks' results.
    fn at_each_rank<T: Send>(
        ranks: u32,
        body: impl Fn(ThreadsCommunicator) -> T + Sync,
    ) -> Vec<thread::Result<T>> {
        thread::scope(|scope| {
            let handles: Vec<_> = world(ranks)
                .into_iter()
                .map(|comm| scope.spawn(|| body(comm)))
                .collect();
            handles.into_iter().map(|handle| handle.join()).collect()
        })
    }

    #[test]
    fn a_collective_fails_when_a_rank_that_it_needs_has_gone() {
        let results = at_each_rank(3, |comm| {
            if comm.rank() == Rank(1) {
                thread::sleep(Duration::from_millis(50));
                return Err(CommError::Gone(Rank(1)));
            }
            run(comm.barrier())
        });
        for result in results {
            assert_eq!(
                result.expect("no rank panics"),
                Err(CommError::Gone(Rank(1)))
            );
        }
    }

    #[test]
    fn a_rank_may_go_once_it_has_done_its_part() {
        let results = at_each_rank(2, |comm| {
            if comm.rank() == Rank(1) {
                thread::sleep(Duration::from_millis(50));
            }
            run(comm.all_reduce(Combine::Sum, vec![1]))
        });
        for result in results {
            assert_eq!(result.expect("no rank panics"), Ok(vec![2]));
        }
    }

    #[test]
    fn the_gone_are_noticed_in_sub_groups_too() {
        let results = at_each_rank(4, |comm| {
            let sub_group = run(comm.split(comm.rank().0 % 2))?;
            if comm.rank() == Rank(3) {
                drop(sub_group);
                return Err(CommError::Gone(Rank(1)));
            }
            run(sub_group.barrier())
        });
        let results: Vec<_> = results.into_iter().map(|r| r.expect("no panic")).collect();
        let gone = Err(CommError::Gone(Rank(1)));
        assert_eq!(results, [Ok(()), gone.clone(), Ok(()), gone]);
    }

    #[test]
    fn ranks_that_call_different_collectives_do_not_hang() {
        let waits = std::sync::Barrier::new(2);
        let results = at_each_rank(2, |comm| {
            if comm.rank() == Rank(0) {
                run(async {
                    let mut barrier = std::pin::pin!(comm.barrier());
                    let begin = |context: &mut Context<'_>| {
                        Poll::Ready(barrier.as_mut().poll(context).is_pending())
                    };
                    assert!(std::future::poll_fn(begin).await);
                    waits.wait();
                    barrier.await
                })
            } else {
                waits.wait();
                run(comm.all_reduce(Combine::Sum, vec![])).map(|_| ())
            }
        });
        let panicked = results.iter().filter(|result| result.is_err()).count();
        assert_eq!(panicked, 1);
        assert!(
            results
                .iter()
                .flatten()
                .all(|result| *result == Err(CommError::Gone(Rank(1))))
        );
    }

    #[test]
    fn receiving_from_a_rank_that_has_gone_is_an_error() {
        let results = at_each_rank(2, |comm| match comm.rank() {
            Rank(0) => comm.receive(Rank(1)),
            _ => comm.send(Rank(1), [4, 2]).map(|()| [0, 0]),
        });
        let first = results.into_iter().next().expect("rank 0");
        assert_eq!(first.expect("no panic"), Err(CommError::Gone(Rank(1))));
    }

    #[test]
    fn a_note_to_a_rank_that_has_gone_is_lost() {
        let mut ranks = world(2);
        drop(ranks.pop());
        ranks[0].post(Rank(1), vec![1]);
        ranks[0].post(Rank(0), vec![2]);
        let note = run(ranks[0].next_note());
        assert_eq!(note.map(|note| note.content), Ok(vec![2]));
    }
}
