//! Checks of the promises of a directory's file system (`rbench check`). Clients (the first rank of
//! each host, or one rank for each mount) try them in directories of their own, and then between
//! each other. Nothing is timed unless it says so.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_sys::between::Check;
use rbench_sys::files;
use rbench_sys::promises::{self, Evidence, Promise, Verdict};
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group};
use crate::target::{Place, Target};

mod between;

pub use between::{Between, Counted, Pair};
use between::{Clients, Load};

/// After this number of consecutive promises that did not finish, nothing more is tried.
const SILENT_MAX: usize = 3;

/// Time limit for removing the files of a promise.
const REMOVED_WITHIN: Duration = Duration::from_secs(60);

/// The checks to run.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Promises, in this order.
    pub promises: Vec<&'static Promise>,
    /// Seed of all random choices.
    pub seed: u64,
    /// Time limit of one promise.
    pub longest: Duration,
    /// The rank of each client, in ascending order. All see the same file system, each by a mount
    /// of its own.
    pub clients: Vec<Rank>,
    /// Checks between the clients, in this order; left out with one client.
    pub between: Vec<&'static Check>,
    /// Set if clients work on other files meanwhile.
    pub under_load: bool,
    /// This program.
    pub program: PathBuf,
}

/// Results of all checks.
#[derive(Debug)]
pub struct Checked {
    /// Results of each client.
    pub hosts: Vec<HostCheck>,
    /// Results between clients, in the order of the checks. After a stop the rest is missing.
    pub between: Vec<Between>,
    /// Files that clients created as load, and an error if it failed; `None` without load.
    pub load: Option<(u64, Option<String>)>,
    /// Largest possible distance of two clients' instants that were meant to be equal, if something
    /// was judged by them.
    pub clock_error: Nanos,
    /// Files that could not be removed.
    pub left: Vec<String>,
}

/// Results of a client.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCheck {
    /// Set if it ran as root.
    pub root: bool,
    /// Result of each promise, in the order of the checks. After a stop the rest is missing.
    pub found: Vec<Seen>,
}

/// Result of a promise.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Time that it took.
    pub took: Nanos,
}

impl Seen {
    fn new(name: &str, verdict: Verdict, took: Nanos) -> Seen {
        let name = name.to_owned();
        Seen {
            name,
            verdict,
            took,
        }
    }
}

/// Checks the promises on each client, and then between them; returns the results at rank 0. Files
/// created for it are removed, unless calls that have not returned use them.
///
/// # Errors
/// When the directory cannot be created (one sentence, the same on every rank), or the ranks
/// cannot communicate.
pub async fn check(
    group: &Group<'_>,
    place: &Place<'_>,
    asked: &Asked,
) -> Result<Checked, ExecError> {
    let target = Target::set_up(group, place).await?;
    let held = target.held_path();
    let mut silent = false;
    let me = asked.clients.iter().position(|rank| *rank == group.rank());
    let mine = match me {
        Some(_) => {
            let (host, hangs) = host(group, &held, asked).await?;
            silent = hangs;
            Some(host)
        }
        None => None,
    };
    let hosts = group.gather(&mine).await?.into_iter().flatten().collect();
    let mut silent = group.any(silent).await?;
    let (mut between, mut load, mut clock_error) = (Vec::new(), None, Nanos(0));
    if !asked.between.is_empty() {
        if let Some(why) = why_not(asked, silent, &target) {
            between = asked
                .between
                .iter()
                .map(|check| not_tried(check, why.clone()))
                .collect();
        } else {
            let clients = Clients {
                group,
                asked,
                me,
                target: &held,
                working: Arc::new(()),
                slack: Cell::default(),
            };
            let (found, loaded, hangs) = all_between(&clients).await?;
            (between, load, clock_error) = (found, loaded, clients.slack.get());
            silent = group.any(hangs).await?;
        }
    }
    let left = target.end_unless(group, silent).await?;
    Ok(Checked {
        hosts,
        between,
        load,
        clock_error,
        left,
    })
}

/// Returns why nothing is checked between the clients; `silent`: one has a call that has not
/// returned.
fn why_not(asked: &Asked, silent: bool, target: &Target) -> Option<Verdict> {
    if asked.clients.len() < 2 {
        let why = "there is only one client".to_owned();
        return Some(Verdict::LeftOut(why));
    }
    let why = match (silent, target.shared()) {
        (true, _) => "a client has a call that has not returned",
        (false, false) => "the hosts do not see the same directory",
        (false, true) => return None,
    };
    Some(undecided("", why, target.path()))
}

fn not_tried(check: &Check, verdict: Verdict) -> Between {
    Between {
        seen: Seen::new(check.name, verdict, Nanos(0)),
        counted: Counted::default(),
    }
}

type Loaded = Option<(u64, Option<String>)>;

/// Runs the checks between clients, with load if requested. Returns whether a call of this rank has
/// not returned.
async fn all_between(clients: &Clients<'_, '_>) -> Result<(Vec<Between>, Loaded, bool), ExecError> {
    let Clients { group, asked, .. } = *clients;
    let loads = asked.under_load && clients.me.is_some();
    let load = loads.then(|| Load::start(group, clients.target));
    let (found, hangs) = clients.run().await?;
    if !asked.under_load {
        return Ok((found, None, hangs));
    }
    let (files, wrong, slow) = match load {
        Some(load) => load.end(group).await?,
        None => (0, None, false),
    };
    let all = group.gather(&(files, wrong)).await?;
    let (mut sum, mut example) = (0, None);
    for (rank, (files, wrong)) in (0..).map(Rank).zip(all) {
        sum += files;
        if let Some(text) = wrong {
            let host = group.host_name_of(rank);
            example.get_or_insert(format!("{text} at rank {rank} on {host}"));
        }
    }
    Ok((found, Some((sum, example)), hangs || slow))
}

/// Returns this host's results, and whether a call has not returned.
async fn host(
    group: &Group<'_>,
    target: &Path,
    asked: &Asked,
) -> Result<(HostCheck, bool), ExecError> {
    let directory = target.join(format!("host-{}", group.rank().0));
    let mut host = HostCheck {
        root: rbench_sys::promises::is_root(),
        found: Vec::new(),
    };
    let made = directory.clone();
    let make = move || files::make_directory(&made).map_err(|error| error.to_string());
    let made = group.within(asked.longest, make).await?;
    let hangs = made.is_none();
    let why = in_time(made, asked.longest).and_then(|made| made).err();
    // The number of consecutive promises that did not finish in time, and whether any did not.
    let (mut silent, mut late) = (0, false);
    let working = Arc::new(());
    let count = asked.promises.len();
    for (number, promise) in asked.promises.iter().copied().enumerate() {
        if group.stop_reason().is_some() {
            break;
        }
        group.step(&format!("{} of {count}: {}", number + 1, promise.name));
        let begun = MonotonicClock.now();
        let mut took = Nanos(0);
        let verdict = if let Some(why) = &why {
            undecided("mkdir", why, &directory)
        } else if silent >= SILENT_MAX {
            let why = format!("not tried: {SILENT_MAX} earlier tests did not finish");
            undecided("", &why, &directory)
        } else {
            let (place, seed) = (directory.clone(), asked.seed);
            let (stop, longest) = (group.stop_flag(), asked.longest);
            let given_up = Arc::new(AtomicBool::new(false));
            let (ended, works) = (Arc::clone(&given_up), Arc::clone(&working));
            let work = move || {
                let ends = || stop.is_raised() || ended.load(Ordering::Relaxed);
                let verdict = promise.keep(&place, seed, longest, &ends);
                if ended.load(Ordering::Relaxed) {
                    // Nobody waits for it, and nobody else removes it before the end.
                    promises::clear(&place, promise);
                }
                drop(works);
                verdict
            };
            let kept = group.within(longest, work).await?;
            took = MonotonicClock.now().since(begun);
            // It ends after its current call.
            given_up.store(kept.is_none(), Ordering::Relaxed);
            silent = if kept.is_none() { silent + 1 } else { 0 };
            late |= kept.is_none();
            if kept.is_some() {
                // Removing the files is not part of the promise: it has a time limit of its own.
                let (place, works) = (directory.clone(), Arc::clone(&working));
                let clear = move || {
                    promises::clear(&place, promise);
                    drop(works);
                };
                late |= group
                    .within(longest.max(REMOVED_WITHIN), clear)
                    .await?
                    .is_none();
            }
            let failed = |why: String| undecided("", &why, &directory.join(promise.name));
            in_time(kept, longest).unwrap_or_else(failed)
        };
        if group.stop_reason().is_some() {
            // It may have been interrupted.
            break;
        }
        host.found.push(Seen::new(promise.name, verdict, took));
    }
    let hangs = hangs || late && !all_end(group, &working).await?;
    Ok((host, hangs))
}

/// Returns whether the abandoned threads end soon: slow calls, not hanging ones.
async fn all_end(group: &Group<'_>, working: &Arc<()>) -> Result<bool, ExecError> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const STEP: Duration = Duration::from_millis(20);
    let ended = async {
        while Arc::strong_count(working) > 1 {
            tokio::time::sleep(STEP).await;
        }
    };
    let ended = tokio::time::timeout(PATIENCE, ended);
    Ok(group.attend(ended, || 0).await?.is_ok())
}

/// The result of work that ended in time.
fn in_time<T>(done: Option<Result<T, String>>, longest: Duration) -> Result<T, String> {
    done.unwrap_or_else(|| Err(not_within(longest)))
}

fn not_within(longest: Duration) -> String {
    format!("did not finish within {} s", longest.as_secs_f64())
}

fn undecided(call: &str, seen: &str, path: &Path) -> Verdict {
    Verdict::Undecided(Evidence::new(call, seen, path))
}
