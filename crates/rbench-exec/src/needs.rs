//! A run's needs of the file system beyond reading and writing files in order, tried on every host
//! before the run creates anything.
//!
//! The attempts are those of `rbench probe` (`sys::abilities`), in a directory of their own at the
//! run's place, which is removed again. An inconclusive attempt refuses nothing: the run itself
//! will show it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use rbench_core::{Bytes, Call, OpenFlags, Rank};
use rbench_plan::Plan;
use rbench_sys::engine::{Lack, lacking};
use rbench_sys::limits;
use rbench_sys::promises::Verdict;
use rbench_sys::promises::abilities::{WRONG_READ, try_in};
use rbench_sys::standing::standing;
use rbench_sys::surroundings::without_credentials;
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group, Ranks};
use crate::spots::{Spot, looks_at};

/// Maximum number of refusals in a message.
const MOST: usize = 4;
/// Time limit for attempts of unlimited length; none of these is one.
const LONGEST: Duration = Duration::from_secs(60);

/// Something that a run needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Need {
    Direct,
    SharedMapping,
    RandomWrites,
    Trims,
    HardLinks,
    SymbolicLinks,
    ExtendedAttributes,
}

impl Need {
    /// Returns the ability that is tried for it, and its description in a sentence.
    fn row(self) -> (&'static str, &'static str) {
        match self {
            Need::Direct => ("direct", "O_DIRECT"),
            Need::SharedMapping => ("mmap-shared", "writing to a shared memory mapping"),
            Need::RandomWrites => ("random-write", "writes at any offset"),
            Need::Trims => ("punch-hole", "punching holes"),
            Need::HardLinks => ("link", "hard links"),
            Need::SymbolicLinks => ("symlink", "symbolic links"),
            Need::ExtendedAttributes => ("xattr", "extended attributes"),
        }
    }

    /// Returns whether a call that succeeds but does something else also refuses the run. An
    /// operation on names is measured nevertheless.
    fn is_of_data(self) -> bool {
        self <= Need::Trims
    }
}

/// Needs of a plan, each with its purpose.
#[derive(Debug, Default)]
pub(crate) struct Needs(BTreeMap<Need, String>);

impl Needs {
    /// Adds a need for `what`, on this condition.
    pub fn add(&mut self, condition: bool, need: Need, what: &str) {
        if condition {
            self.0.entry(need).or_insert_with(|| what.to_owned());
        }
    }
}

/// Operations on names that a plan keeps in flight in a ring.
#[derive(Debug)]
pub(crate) struct NamesInFlight {
    /// Number in flight for each worker.
    pub depth: u32,
    /// Their calls, besides opens and closes.
    pub calls: Vec<Call>,
    /// Buffer of each operation.
    pub data: Bytes,
}

/// Tries on every host the plan's needs, in each of `spots` in which it creates something. `name`
/// is the run's.
///
/// # Errors
/// One sentence for each kind of refusal, the same on every rank; all files of the attempts
/// are removed.
pub(crate) async fn check(
    group: &Group<'_>,
    Needs(needs): &Needs,
    spots: &[Spot],
    name: &str,
) -> Result<(), ExecError> {
    if needs.is_empty() || spots.is_empty() {
        return Ok(());
    }
    group.step("testing the features that the run needs");
    let scratch = format!(".{name}.needs-{}", group.rank().0);
    let mine = looks_at(group, spots);
    let which: Vec<Need> = needs.keys().copied().collect();
    let tried = group.agree_on_target(move || {
        let makes = mine.iter().map(|(_, spot)| spot);
        let makes = makes.filter(|spot| spot.makes_something());
        let at = |spot: &Spot| refusals(&spot.path, &scratch, &which);
        Ok(makes.flat_map(at).collect::<Vec<Refusal>>())
    });
    let mine = tried.await?;
    if !group.any(!mine.is_empty()).await? {
        return Ok(());
    }
    let text = sentences(needs, group, group.gather(&mine).await?);
    Err(ExecError::Usage(group.broadcast(&text).await?))
}

/// Checks that the kernel of every host can perform the plan's operations in a ring, and has room
/// for them.
///
/// # Errors
/// One sentence, the same on every rank.
pub(crate) async fn names_in_flight(
    group: &Group<'_>,
    plan: &Plan,
    names: NamesInFlight,
) -> Result<(), ExecError> {
    let NamesInFlight { depth, calls, data } = names;
    let calls: Vec<Call> = calls.into_iter().chain(AROUND).collect();
    let lacking = lacking(&calls, depth).map_err(|lack| match lack {
        Lack::Ring(errno) => format!(
            "--engine io_uring: the kernel lacks or forbids io_uring (io_uring_setup: {errno:?}): use --engine sync"
        ),
        Lack::Threads => format!(
            "--iodepth {depth}: the limit on processes (ulimit -u) permits fewer of the kernel threads that make \
             the calls"
        ),
        Lack::Request { call, since } => format!(
            "--engine io_uring: this kernel does not support {call}, which needs Linux {since}: use \
             --engine sync"
        ),
    });
    let here = group.host_number();
    let ranks = group.host_of.iter().zip(0..);
    let ranks = ranks.filter(|(host, _)| **host == here);
    let workers = ranks.map(|(_, rank)| u64::from(plan.workers_of(Rank(rank))));
    let room = Room {
        memory: limits::available_memory().ok(),
        threads: limits::processes().ok().flatten(),
    };
    let fits = lacking.and_then(|()| room.check(depth, workers.sum(), data));
    group.agree(fits).await.map_err(|e| group.as_usage(e))
}

/// Limits of a host for operations in flight; `None`: unlimited or unknown.
struct Room {
    memory: Option<Bytes>,
    /// For all of them, where [`Lack::Threads`] is about those of one worker.
    threads: Option<u64>,
}

impl Room {
    /// Checks the room for `depth` operations of each worker, with that much data in each.
    fn check(&self, depth: u32, workers: u64, data: Bytes) -> Result<(), String> {
        let all = workers.saturating_mul(u64::from(depth));
        let bytes = all.saturating_mul(data.0);
        match (self.memory, self.threads) {
            (Some(Bytes(memory)), _) if bytes > memory => Err(format!(
                "--iodepth {depth}: {all} operations in flight on a host, with {data} each, need {} MiB \
                 of memory, but only {} MiB are available",
                bytes >> 20,
                memory >> 20
            )),
            (_, Some(limit)) if all > limit => Err(format!(
                "--iodepth {depth}: {all} operations in flight on a host need as many kernel threads, \
                 but the limit on processes is {limit} (ulimit -u)"
            )),
            _ => Ok(()),
        }
    }
}

/// Calls around a call on an open file.
const AROUND: [Call; 2] = [Call::Open(OpenFlags::READ), Call::Close];

/// A refusal of a file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Refusal {
    need: Need,
    /// `fuse.mergerfs (/a:/b) refuses it (openat: EINVAL)`
    how: String,
}

/// Tries `which` below `path`.
fn refusals(path: &Path, scratch: &str, which: &[Need]) -> Vec<Refusal> {
    let names: Vec<&str> = which.iter().map(|need| need.row().0).collect();
    let found = try_in(&path.join(scratch), &names, LONGEST);
    let mount = standing(path).ok().and_then(|found| found.mount);
    let there = match mount {
        Some(mount) => format!("{} ({})", mount.fs_type, without_credentials(&mount.source)),
        None => path.display().to_string(),
    };
    let refused = |(need, verdict): (&Need, Verdict)| {
        let seen = match verdict {
            Verdict::Broken(seen) | Verdict::Unsupported(seen) => seen,
            // Such a file system is not to be measured, whatever its abilities.
            Verdict::Undecided(seen) if seen.seen == WRONG_READ => seen,
            _ => return None,
        };
        let how = match seen.errno {
            Some(errno) => format!("{there} refuses it ({}: {errno:?})", seen.call),
            None if seen.seen == WRONG_READ => format!("{there}: {WRONG_READ} ({})", seen.call),
            None if need.is_of_data() => {
                let call = seen.call;
                format!("{there} does not support it ({call}: unexpected result)")
            }
            None => return None,
        };
        Some(Refusal { need: *need, how })
    };
    which.iter().zip(found).filter_map(refused).collect()
}

/// `O_DIRECT (--direct): fuse.mergerfs (/a:/b) refuses it (openat: EINVAL) on client2`
fn sentences(needs: &BTreeMap<Need, String>, ranks: &Ranks<'_>, all: Vec<Vec<Refusal>>) -> String {
    let mut hosts: BTreeMap<(Need, String), Vec<&str>> = BTreeMap::new();
    for (rank, refusals) in (0..).map(Rank).zip(all) {
        for Refusal { need, how } in refusals {
            let on = hosts.entry((need, how)).or_default();
            on.push(ranks.host_name_of(rank));
        }
    }
    let several = ranks.host_names.len() > 1;
    let sentence = |((need, how), mut on): ((Need, String), Vec<&str>)| {
        on.dedup();
        let what = needs.get(&need).map_or("", String::as_str);
        let more = on.len().saturating_sub(MOST);
        let mut on = on.iter().take(MOST).copied().collect::<Vec<_>>().join(", ");
        if more > 0 {
            on += &format!(" and {more} more");
        }
        let on = match several {
            true => format!(" on {on}"),
            false => String::new(),
        };
        format!("{} ({what}): {how}{on}", need.row().1)
    };
    let sentences: Vec<String> = hosts.into_iter().map(sentence).collect();
    sentences.join("\n")
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn what_all_workers_of_a_host_have_in_flight_has_room_or_is_refused() {
        let room = |memory, threads| Room { memory, threads };
        let check = |room: &Room, depth| room.check(depth, 3, Bytes(1 << 20));
        let refused = |room: &Room, depth| check(room, depth).expect_err("there is no room");
        let memory = room(Some(Bytes(90 << 20)), None);
        assert_eq!(check(&memory, 30), Ok(()));
        assert_eq!(
            refused(&memory, 31),
            "--iodepth 31: 93 operations in flight on a host, with 1MiB each, need 93 MiB of memory, but only \
             90 MiB are available"
        );
        let threads = room(None, Some(90));
        assert_eq!(check(&threads, 30), Ok(()));
        assert_eq!(
            refused(&threads, 31),
            "--iodepth 31: 93 operations in flight on a host need as many kernel threads, but the limit on processes is 90 (ulimit -u)"
        );
        assert_eq!(check(&room(None, None), u32::MAX), Ok(()));
    }
}
