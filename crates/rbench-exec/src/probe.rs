//! Abilities of a directory's file system on each host, and the visibility of files between hosts
//! (`rbench probe`). Nothing is timed unless it says so.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_sys::files;
use rbench_sys::promises::Verdict;
use rbench_sys::promises::abilities::{self, ABILITIES};
use rbench_sys::round_trip::round_trip;
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group};
use crate::target::{Place, Target};

/// Time limit of an answer of the file system, for people.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit of a host's search for another one's file.
const SEEN_WITHIN: Nanos = Nanos(10_000_000_000);
/// Pause between two checks: the resolution of the time until a file is seen.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Results of a probe.
#[derive(Debug)]
pub struct Probed {
    /// Results of each host, in the order of the group.
    pub hosts: Vec<HostProbe>,
    /// Set if all hosts see the same directory; always with one host.
    pub shared: bool,
    /// Each pair of hosts that see the same directory.
    pub sights: Vec<Sight>,
    /// Files that could not be removed.
    pub left: Vec<String>,
}

/// Results of a host.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct HostProbe {
    /// The cheapest call that the file system answers itself: its name and median, ns.
    pub round_trip: Option<(String, Nanos)>,
    /// Abilities by name, in the order of [`ABILITIES`]. The list ends at one that the file system
    /// did not answer.
    pub found: Vec<(String, Verdict)>,
    /// The ability at which it did not answer.
    pub silent_at: Option<String>,
}

/// A file that one host created and another one searched. The other one had searched the name
/// before, and found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sight {
    /// Number of the host that created it.
    pub maker: usize,
    /// Number of the host that searched.
    pub looker: usize,
    /// Time from the maker's word that the file is closed to the first check that found it, at most
    /// 1 ms and one call too long. `None`: not within 10 s.
    pub after: Option<Nanos>,
    /// Set if it had its content then.
    pub whole: bool,
}

/// Checks that the file system at `directory` answers at every rank that asks.
///
/// # Errors
/// When one does not within `patience` (one sentence, the same on every rank), or the ranks
/// cannot communicate.
pub async fn answers(
    group: &Group<'_>,
    directory: &Path,
    asks: bool,
    patience: Duration,
) -> Result<(), ExecError> {
    let mut said = Ok(());
    if asks {
        let path = directory.to_owned();
        if limited(group, patience, move || abilities::is_there(&path))
            .await?
            .is_none()
        {
            let (directory, seconds) = (directory.display(), patience.as_secs());
            said = Err(format!("{directory} did not answer within {seconds} s"));
        }
    }
    group.agree(said).await
}

/// Tries the abilities of the file system of `place`, on the first rank of each host; returns the
/// results at rank 0. Its files are removed. A host stops at a call that has not returned after
/// `patience`.
///
/// # Errors
/// When the directory cannot be created (one sentence, the same on every rank), or the ranks
/// cannot communicate.
pub async fn probe(
    group: &Group<'_>,
    place: &Place<'_>,
    patience: Duration,
) -> Result<Probed, ExecError> {
    let target = Target::set_up(group, place).await?;
    let held = target.held_path();
    let mine = match group.is_leader() {
        true => Some(host(group, &held, patience).await?),
        false => None,
    };
    let silent = mine.as_ref().is_some_and(|host| host.silent_at.is_some());
    let hosts = group.gather(&mine).await?.into_iter().flatten().collect();
    let silent = group.any(silent).await?;
    let shared = target.shared();
    let sights = match shared && !silent {
        true => sights(group, &held, patience).await?,
        false => Ok(Vec::new()),
    };
    let left = target.end_unless(group, silent).await?;
    Ok(Probed {
        hosts,
        shared,
        sights: sights.map_err(ExecError::SetUp)?,
        left,
    })
}

/// Works in a thread, for at most this time; `None`: it takes longer, and its thread is abandoned.
///
/// # Errors
/// When the thread cannot be started, or the ranks cannot communicate.
async fn limited<T: Send + 'static>(
    group: &Group<'_>,
    longest: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<T>, ExecError> {
    let done = group.within(longest, work).await?;
    done.transpose().map_err(ExecError::SetUp)
}

/// Returns this host's results.
async fn host(
    group: &Group<'_>,
    target: &Path,
    patience: Duration,
) -> Result<HostProbe, ExecError> {
    let mut found = HostProbe::default();
    let directory = target.join(format!("host-{}", group.rank().0));
    let made = directory.clone();
    let first = move || {
        files::make_directory(&made).ok();
        round_trip(&made, &AtomicU64::default())
    };
    let Some(trip) = limited(group, patience, first).await? else {
        found.silent_at = Some("mkdir".to_owned());
        return Ok(found);
    };
    found.round_trip = trip.map(|trip| (trip.name().to_owned(), trip.median));
    for ability in ABILITIES {
        if group.stop_reason().is_some() {
            break;
        }
        group.step(&format!("trying {}", ability.name));
        let own = directory.clone();
        let attempt = move || ability.attempt(&own, patience);
        match limited(group, patience, attempt).await? {
            Some(verdict) => found.found.push((ability.name.to_owned(), verdict)),
            None => {
                found.silent_at = Some(ability.name.to_owned());
                break;
            }
        }
    }
    Ok(found)
}

/// Each host creates a file; all others search it. Returns all pairs at rank 0; on every rank the
/// error if a file could not be created: nobody could see it.
async fn sights(
    group: &Group<'_>,
    target: &Path,
    patience: Duration,
) -> Result<Result<Vec<Sight>, String>, ExecError> {
    let hosts = group.host_names.len();
    let leader = |host: usize| {
        let mut all = group.host_of.iter();
        let rank = all.position(|of| *of as usize == host).unwrap_or(0);
        Rank(rank as u32)
    };
    let me = group.host_number() as usize;
    let mut all = Vec::new();
    for maker in 0..if hosts > 1 { hosts } else { 0 } {
        group.step("checking for other hosts' files");
        let path = target.join(format!("seen-{maker}"));
        let looks = group.is_leader() && me != maker;
        if looks {
            // Clients may cache that it does not exist.
            let path = path.clone();
            limited(group, patience, move || abilities::is_there(&path)).await?;
        }
        group.meet().await?;
        let mut trouble = None;
        if group.rank() == leader(maker) {
            let (path, content) = (path.clone(), content(maker));
            let made = move || abilities::put(&path, content.as_bytes());
            let why = match limited(group, patience, made).await? {
                Some(Ok(())) => None,
                Some(Err(errno)) => Some(format!("{} ({errno:?})", errno.desc())),
                None => Some("no answer".to_owned()),
            };
            let host = group.host_name();
            trouble = why.map(|why| format!("{host} cannot create a file for other hosts: {why}"));
        }
        let trouble = group.world.broadcast_value(leader(maker), &trouble);
        if let Some(why) = group.quietly(trouble).await? {
            return Ok(Err(why));
        }
        let mut sight = None;
        if looks {
            let seen = limited(group, patience, move || look(&path, &content(maker))).await?;
            let (after, whole) = seen.unwrap_or((None, false));
            sight = Some(Sight {
                maker,
                looker: me,
                after,
                whole,
            });
        }
        all.extend(group.gather(&sight).await?.into_iter().flatten());
    }
    Ok(Ok(all))
}

/// Returns the content of a host's file.
fn content(maker: usize) -> String {
    format!("made by host {maker}")
}

/// Checks for a file until it exists; returns the time until then, and whether its content is
/// complete.
fn look(path: &Path, content: &str) -> (Option<Nanos>, bool) {
    let begun = MonotonicClock.now();
    loop {
        let found = abilities::is_there(path);
        let after = MonotonicClock.now().since(begun);
        if found {
            let whole = abilities::holds(path, content.as_bytes());
            return (Some(after), whole == Some(true));
        }
        if after > SEEN_WITHIN {
            return (None, false);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
