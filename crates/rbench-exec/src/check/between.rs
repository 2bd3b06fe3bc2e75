//! The checks between clients: all ranks take the same steps, each client does its part of a
//! step in a thread of its own, and all hear how that ended before the next one.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_sys::between::{Check, Step, Trial, appear, make};
use rbench_sys::promises::{Evidence, Verdict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{Asked, SILENT_MAX, Seen, all_end, not_within};
use crate::group::{ExecError, Group};
use crate::target::SEEN_WITHIN;

mod crowd;
mod load;
mod locks;
mod races;
mod sights;

pub(super) use load::Load;

/// Outcome of a check.
#[derive(Debug, PartialEq, Eq)]
pub struct Between {
    /// Its result.
    pub seen: Seen,
    /// Its counts.
    pub counted: Counted,
}

/// Counts of a check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Counted {
    /// Number of tries that could have failed.
    pub tries: u64,
    /// Number of tries that failed.
    pub violations: u64,
    /// The pairs of clients, where it is about pairs.
    pub pairs: Vec<Pair>,
}

/// Counts between two clients.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pair {
    /// The client that did something, or had the lock.
    pub from: usize,
    /// The one that looked, or got the lock next.
    pub to: usize,
    /// Like in `Counted`.
    pub tries: u64,
    /// Like in `Counted`.
    pub violations: u64,
    /// For each change that was seen: the time from the return of the last call of `from` to the
    /// start of the look that saw it; 0: no look after it saw anything else. With locks: the time
    /// from the start of the unlocking to the acquisition by the next client, if that waited.
    pub times: Vec<Nanos>,
    /// Resolution of each of `times`: the longest time from the last look that did not see it, or
    /// from the change, to the look that did. With locks: the largest difference of instants of
    /// both that count as equal.
    pub gap: Nanos,
    /// The latest start, after the change, of a look that did not see it.
    pub late: Nanos,
    /// Violations that are worse than that it was late (by as much as was looked, where it was
    /// stale to the end): nothing seen, seen before it was done or
    /// not for good, something else seen, two holders at once.
    pub worse: u64,
}

/// Reasons why a check ends early.
enum End {
    /// The ranks cannot talk.
    Ranks(ExecError),
    /// Stopped: nothing is known of the check.
    Stopped,
    /// With a verdict. `late`: a call has not returned.
    Verdict { verdict: Verdict, late: bool },
}

impl From<ExecError> for End {
    fn from(error: ExecError) -> End {
        End::Ranks(error)
    }
}

/// The end of a client's part of a step, with the value for the others; `None`: it has none.
type Part<T> = Option<Result<T, Unfinished>>;

/// Reasons why a part did not complete.
#[derive(Serialize, Deserialize)]
enum Unfinished {
    /// With a failure.
    Failed(Evidence),
    /// It has not ended.
    Late,
}

/// The ranks as clients.
pub(super) struct Clients<'a, 'g> {
    pub(super) group: &'a Group<'g>,
    pub(super) asked: &'a Asked,
    /// Number of this rank among the clients.
    pub(super) me: Option<usize>,
    /// The directory of the run as this rank sees it.
    pub(super) target: &'a Path,
    /// Threads that were given up have it too.
    pub(super) working: Arc<()>,
    /// The largest slack that counted for nobody.
    pub(super) slack: Cell<Nanos>,
}

impl Clients<'_, '_> {
    /// Tries the checks; what was seen, at every rank, and whether a call is left here that has
    /// not returned.
    pub(super) async fn run(&self) -> Result<(Vec<Between>, bool), ExecError> {
        let checks = &self.asked.between;
        let mut found = Vec::new();
        let mut silent = 0;
        for (number, check) in checks.iter().enumerate() {
            if self.group.stopped().await? {
                break;
            }
            self.group.keep_time().await?;
            let of = checks.len();
            let text = format!("between clients, {} of {of}: {}", number + 1, check.name);
            self.group.step(&text);
            let begun = MonotonicClock.now();
            let tired = silent >= SILENT_MAX;
            let outcome = match tired {
                true => Err(End::undecided(format!(
                    "not tried: {SILENT_MAX} earlier tests did not finish"
                ))),
                false => self.check(check, number).await,
            };
            let (verdict, counted) = match outcome {
                Ok(found) => {
                    silent = 0;
                    found
                }
                Err(End::Ranks(error)) => return Err(error),
                Err(End::Stopped) => break,
                Err(End::Verdict { verdict, late }) => {
                    silent = match late {
                        true => silent + 1,
                        false if tired => silent,
                        false => 0,
                    };
                    (verdict, Counted::default())
                }
            };
            let took = MonotonicClock.now().since(begun);
            let seen = Seen::new(check.name, verdict, took);
            found.push(Between { seen, counted });
        }
        // Also of what nobody heard because of a stop, or because something else failed.
        let hangs = !all_end(self.group, &self.working).await?;
        Ok((found, hangs))
    }

    async fn check(&self, check: &'static Check, number: usize) -> Result<(Verdict, Counted), End> {
        match &check.trial {
            Trial::Sight(sight) => self.sight(sight, number).await,
            Trial::Race(race) => self.race(*race, number).await,
            Trial::Append => self.append(number).await,
            Trial::Listing => self.listing(number).await,
            Trial::Exclusion(lock) => self.exclusion(*lock, number).await,
        }
    }

    /// Does this rank's part of a step.
    async fn part<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn() -> bool) -> Step<T> + Send + 'static,
    ) -> Result<Result<T, Unfinished>, ExecError> {
        let stop = self.group.stop_flag();
        let given_up = Arc::new(AtomicBool::new(false));
        let (ended, works) = (Arc::clone(&given_up), Arc::clone(&self.working));
        let work = move || {
            let done = work(&|| stop.is_raised() || ended.load(Ordering::Relaxed));
            drop(works);
            done
        };
        let done = self.group.within(self.asked.longest, work).await?;
        given_up.store(done.is_none(), Ordering::Relaxed);
        Ok(match done {
            Some(Ok(Ok(done))) => Ok(done),
            Some(Ok(Err(evidence))) => Err(Unfinished::Failed(evidence)),
            Some(Err(seen)) => Err(Unfinished::Failed(Evidence::new("", seen, ""))),
            None => Err(Unfinished::Late),
        })
    }

    /// Exchanges the results of the parts of a step: all ranks get those of all clients.
    async fn meet<T: Serialize + DeserializeOwned>(
        &self,
        part: Part<T>,
    ) -> Result<Vec<Option<T>>, End> {
        let parts = self.group.world.all_values(&part);
        let mut parts = self.group.quietly(parts).await?;
        // All of them hear of a stop before the next step.
        if self.group.stopped().await? {
            return Err(End::Stopped);
        }
        let (mut all, mut failed) = (Vec::new(), None);
        for client in &self.asked.clients {
            match parts[client.0 as usize].take().transpose() {
                Ok(told) => all.push(told),
                Err(Unfinished::Failed(mut evidence)) => {
                    evidence.seen = format!("{} {}", evidence.seen, self.who(*client));
                    failed.get_or_insert(End::failed(evidence));
                }
                // A part that has not ended is a stronger finding than one that failed.
                Err(Unfinished::Late) => return Err(self.late(*client)),
            }
        }
        failed.map_or(Ok(all), Err)
    }

    /// Has each client do the part that `work` makes for its number, if it makes one; all ranks
    /// get the results.
    async fn each<T, W>(&self, work: impl FnOnce(usize) -> Option<W>) -> Result<Vec<Option<T>>, End>
    where
        T: Serialize + DeserializeOwned + Send + 'static,
        W: FnOnce(&dyn Fn() -> bool) -> Step<T> + Send + 'static,
    {
        let part = match self.me.and_then(work) {
            Some(work) => Some(self.part(work).await?),
            None => None,
        };
        self.meet(part).await
    }

    fn late(&self, client: Rank) -> End {
        let seen = format!("{} {}", not_within(self.asked.longest), self.who(client));
        End::Verdict {
            verdict: Verdict::Undecided(Evidence::new("", seen, self.target)),
            late: true,
        }
    }

    fn who(&self, rank: Rank) -> String {
        format!("at rank {rank} on {}", self.group.host_name_of(rank))
    }

    /// A client for people: its rank and host.
    fn client(&self, number: usize) -> String {
        self.who(self.asked.clients[number])
    }

    /// Largest difference of instants of two clients that count as equal, one of these of rank 0's
    /// clock.
    fn slack(&self, at: impl IntoIterator<Item = Nanos>) -> Nanos {
        let each = at.into_iter().map(|at| self.group.clock_error(at));
        let slack = each.max().unwrap_or_default();
        self.slack.set(self.slack.get().max(slack));
        slack
    }

    /// The present instant of rank 0's clock.
    fn now(&self) -> Nanos {
        self.group.by_root(MonotonicClock.now())
    }

    /// The directory of a part of a check.
    fn directory(&self, check: usize, part: &str) -> PathBuf {
        self.target.join(format!("between-{check}{part}"))
    }

    /// One client makes a directory and something in it for all of them, who wait until they see
    /// all of it: what they do with it is what is tried.
    async fn prepared(
        &self,
        client: usize,
        directory: &Path,
        made: Vec<PathBuf>,
        work: impl FnOnce(&Path) -> Step<()> + Send + 'static,
    ) -> Result<(), End> {
        let directory = directory.to_owned();
        let work = move |_: &dyn Fn() -> bool| {
            make(&directory)?;
            work(&directory)
        };
        self.each(|me| (me == client).then_some(work)).await?;
        let within = (self.asked.longest / 2).min(SEEN_WITHIN.into());
        let wait = move |stop: &dyn Fn() -> bool| {
            appear(&made, within, stop);
            Ok(())
        };
        let waited = self.each(|me| (me != client).then_some(wait));
        waited.await.map(drop)
    }

    /// Lets go of open files and processes, which may take long.
    async fn release<T: Send + 'static>(&self, held: T) -> Result<(), ExecError> {
        let works = Arc::clone(&self.working);
        let work = move || {
            drop(held);
            drop(works);
        };
        // A drop that takes longer is left to its thread.
        let longest = self.asked.longest;
        self.group.within(longest, work).await.map(drop)
    }
}

/// Errors with which a file system says that it has no such thing.
const UNSUPPORTED: [Errno; 3] = [Errno::EOPNOTSUPP, Errno::ENOSYS, Errno::ENOTTY];

impl End {
    fn incomplete() -> End {
        End::undecided("a client's report arrived incomplete".to_owned())
    }

    fn undecided(seen: String) -> End {
        End::Verdict {
            verdict: Verdict::Undecided(Evidence::new("", seen, "")),
            late: false,
        }
    }

    /// The end that follows from a failed call.
    fn failed(evidence: Evidence) -> End {
        // To a kind of lock that is not known.
        let invalid = evidence.errno == Some(Errno::EINVAL) && evidence.call == "fcntl";
        // By a file system that shares no mappings: FUSE with direct I/O.
        let unmapped = evidence.errno == Some(Errno::ENODEV) && evidence.call == "mmap";
        let known = invalid || unmapped;
        let unsupported = known || evidence.errno.is_some_and(|e| UNSUPPORTED.contains(&e));
        End::Verdict {
            verdict: match unsupported {
                true => Verdict::Unsupported(evidence),
                false => Verdict::Undecided(evidence),
            },
            late: false,
        }
    }
}

/// The verdict that follows from a count of violations.
fn judged(counted: Counted, note: String, broken: impl FnOnce() -> Evidence) -> (Verdict, Counted) {
    let verdict = match counted.violations {
        0 => Verdict::Holds(note),
        _ => Verdict::Broken(broken()),
    };
    (verdict, counted)
}
