//! Whether the file system of a directory keeps its promises, tried by clients (the first rank of
//! each host, or one rank for each mount) in directories of their own, and then between them
//! (`rbench check`). Nothing here is timed but what it says.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rbench_comm::Combine;
use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_sys::between::Check;
use rbench_sys::files;
use rbench_sys::promises::{self, Evidence, Promise, Verdict};
use serde::{Deserialize, Serialize};

use crate::group::{ExecError, Group};
use crate::limited::limited;
use crate::removal::Remover;
use crate::target::{Place, Target, Workspace as _};

mod between;

pub use between::{Between, Counted, Pair};
use between::{Clients, Load};

/// After so many promises in a row that did not come to an end nothing more is tried.
const SILENT_MAX: usize = 3;

/// How long removing what a promise made may take.
const REMOVED_WITHIN: Duration = Duration::from_secs(60);

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Asked {
    /// In this order.
    pub promises: Vec<&'static Promise>,
    /// What is drawn at random follows from it.
    pub seed: u64,
    /// How long one promise may take.
    pub longest: Duration,
    /// The rank of each client, in ascending order: the ranks that try it. All see the same
    /// file system, each by a mount of its own.
    pub clients: Vec<Rank>,
    /// What is to be tried between them, in this order; with one client it is left out.
    pub between: Vec<&'static Check>,
    /// Whether the clients work on other files besides, while it is.
    pub under_load: bool,
    /// This program.
    pub program: PathBuf,
}

/// What was found.
#[derive(Debug)]
pub struct Checked {
    /// Each client.
    pub hosts: Vec<HostCheck>,
    /// What was seen between them, in the order in which it was tried. After a stop the rest
    /// is missing.
    pub between: Vec<Between>,
    /// Files that clients made besides, and what went wrong with that; `None`: none were to.
    pub load: Option<(u64, Option<String>)>,
    /// How far instants of two clients may have been apart at worst that were told to be the
    /// same, when something was judged by them.
    pub clock_error: Nanos,
    /// What could not be removed.
    pub left: Vec<String>,
}

/// What a client found.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCheck {
    /// Whether it was tried as root.
    pub root: bool,
    /// What was seen of each promise, in the order in which they were tried. After a stop the
    /// rest is missing.
    pub found: Vec<Seen>,
}

/// What was seen of a promise.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Nanos,
}

/// Tries the promises on each client, and then what they promise each other; at rank 0 what was
/// found. What is made there is removed, but for what belongs to calls that have not returned.
///
/// # Errors
/// When the directory cannot be made (one sentence, the same on every rank), or the ranks
/// cannot talk.
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
    let all = group.quietly(group.world.gather_values(&mine)).await?;
    let hosts = all.into_iter().flatten().flatten().collect();
    let mut silent = any(group, silent).await?;
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
                ranks: &asked.clients,
                me,
                target: &held,
                program: &asked.program,
                longest: asked.longest,
                working: Arc::new(()),
                slack: Cell::default(),
            };
            let (found, loaded, hangs) = all_between(&clients, asked).await?;
            (between, load, clock_error) = (found, loaded, clients.slack.get());
            silent = any(group, hangs).await?;
        }
    }
    let left = match silent {
        // Removing would wait as well.
        true => target.leave(group).await?,
        false => {
            group.step("removing test files");
            target.end(group, &Remover::new(1)).await?
        }
    };
    Ok(Checked {
        hosts,
        between,
        load,
        clock_error,
        left,
    })
}

/// Whether it is so at any rank.
async fn any(group: &Group<'_>, mine: bool) -> Result<bool, ExecError> {
    let word = vec![u64::from(mine)];
    let word = group.world.all_reduce(Combine::Max, word);
    Ok(group.quietly(word).await?[0] != 0)
}

/// Why nothing is tried between the clients; `silent`: one has a call that has not returned.
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
        name: check.name.to_owned(),
        verdict,
        took: Nanos(0),
        counted: Counted::default(),
    }
}

type Loaded = Option<(u64, Option<String>)>;

/// What is seen between clients, beside a load if there is to be one; whether a call of this
/// rank has not returned.
async fn all_between(
    clients: &Clients<'_, '_>,
    asked: &Asked,
) -> Result<(Vec<Between>, Loaded, bool), ExecError> {
    let group = clients.group;
    let loads = asked.under_load && clients.me.is_some();
    let load = loads.then(|| Load::start(group, clients.target));
    let (found, hangs) = clients.run(&asked.between).await?;
    if !asked.under_load {
        return Ok((found, None, hangs));
    }
    let (files, wrong, slow) = match load {
        Some(load) => load.end(group).await?,
        None => (0, None, false),
    };
    let all = group.world.gather_values(&(files, wrong));
    let all = group.quietly(all).await?.unwrap_or_default();
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

/// What this host finds, and whether a call is left that has not returned.
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
    let made = alone(group, asked.longest, move || files::make_directory(&made)).await?;
    let why = match &made {
        Some(Ok(Ok(()))) => None,
        Some(Ok(Err(error))) => Some(error.to_string()),
        Some(Err(why)) => Some(why.clone()),
        None => Some(not_within(asked.longest)),
    };
    // How many in a row did not come to an end in time, and whether any did not.
    let (mut silent, mut late) = (0, false);
    let hangs = why.as_ref().is_some_and(|_| made.is_none());
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
            let kept = alone(group, longest, work).await?;
            took = MonotonicClock.now().since(begun);
            // It ends behind the call in which it is.
            given_up.store(kept.is_none(), Ordering::Relaxed);
            silent = if kept.is_none() { silent + 1 } else { 0 };
            late |= kept.is_none();
            if kept.is_some() {
                // Removing what was made says nothing of the promise: it has a time of its own.
                let (place, works) = (directory.clone(), Arc::clone(&working));
                let clear = move || {
                    promises::clear(&place, promise);
                    drop(works);
                };
                late |= alone(group, longest.max(REMOVED_WITHIN), clear)
                    .await?
                    .is_none();
            }
            let kept = kept.unwrap_or_else(|| Err(not_within(longest)));
            kept.unwrap_or_else(|why| undecided("", &why, &directory.join(promise.name)))
        };
        if group.stop_reason().is_some() {
            // It was broken off, perhaps.
            break;
        }
        host.found.push(Seen {
            name: promise.name.to_owned(),
            verdict,
            took,
        });
    }
    let hangs = hangs || late && !all_end(group, &working).await?;
    Ok((host, hangs))
}

/// Does work in a thread, for at most so long (`None`: it takes longer): its result, or why there
/// is none, as a sentence. That is this rank's matter alone, the others wait for its word.
async fn alone<T: Send + 'static>(
    group: &Group<'_>,
    longest: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Option<Result<T, String>>, ExecError> {
    match limited(group, longest, work).await {
        Ok(done) => Ok(done.map(Ok)),
        Err(ExecError::SetUp(why)) => Ok(Some(Err(why))),
        Err(error) => Err(error),
    }
}

/// Whether the threads that were given up end soon: what was slow, and does not hang.
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

fn not_within(longest: Duration) -> String {
    format!("did not finish within {} s", longest.as_secs_f64())
}

fn undecided(call: &str, seen: &str, path: &Path) -> Verdict {
    Verdict::Undecided(Evidence {
        seen: seen.to_owned(),
        call: call.to_owned(),
        path: path.to_owned(),
        ..Evidence::default()
    })
}
