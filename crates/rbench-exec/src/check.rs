//! Whether the file system of a directory keeps its promises, tried by the first rank of each
//! host in a directory of its own (`rbench check`). Nothing here is timed but what it says.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use rbench_comm::{Combine, CommError};
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use rbench_sys::files;
use rbench_sys::promises::{Evidence, Promise, Verdict};

use crate::group::{ExecError, Group};
use crate::limited::limited;
use crate::removal::Remover;
use crate::target::{Place, Target, Workspace as _};

/// After so many promises in a row that did not come to an end nothing more is tried.
const SILENT_MAX: usize = 3;

/// What is to be tried.
#[derive(Debug, Clone)]
pub struct Asked {
    /// In this order.
    pub promises: Vec<&'static Promise>,
    /// What is drawn at random follows from it.
    pub seed: u64,
    /// How long one promise may take.
    pub longest: Duration,
}

/// What was found.
#[derive(Debug)]
pub struct Checked {
    /// Each host, in the order of the group.
    pub hosts: Vec<HostCheck>,
    /// What could not be removed.
    pub left: Vec<String>,
}

/// What a host found.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HostCheck {
    /// Whether it was tried as root.
    pub root: bool,
    /// What was seen of each promise, in the order in which they were tried. After a stop the
    /// rest is missing.
    pub found: Vec<Seen>,
}

/// What was seen of a promise.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    /// Its name.
    pub name: String,
    /// What came of it.
    pub verdict: Verdict,
    /// How long it took.
    pub took: Nanos,
}

/// Tries the promises on the first rank of each host; at rank 0 what was found. What is made
/// there is removed, but for what belongs to calls that have not returned.
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
    let mut silent = false;
    let message = match group.is_leader() {
        true => {
            let (host, hangs) = host(group, target.path(), asked).await?;
            silent = hangs;
            encode(&host)
        }
        false => Vec::new(),
    };
    let all = group.quietly(group.world.gather(Rank(0), message)).await?;
    let all = all.unwrap_or_default();
    let told = all.iter().filter(|message| !message.is_empty());
    let hosts: Option<Vec<HostCheck>> = told.map(|message| decode(message)).collect();
    let hosts = hosts.ok_or_else(|| {
        let text = "what a host found did not arrive whole at rank 0";
        ExecError::Comm(CommError::Start(text.to_owned()))
    })?;
    let word = vec![u64::from(silent)];
    let silent = group.world.all_reduce(Combine::Max, word);
    let silent = group.quietly(silent).await?[0] != 0;
    let left = match silent {
        // Removing would wait as well.
        true => target.leave(group).await?,
        false => {
            group.step("removing what was made");
            target.end(group, &Remover::new(1)).await?
        }
    };
    Ok(Checked { hosts, left })
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
    let made = limited(group, asked.longest, move || files::make_directory(&made)).await?;
    let why = match made {
        Some(Ok(())) => None,
        Some(Err(error)) => Some(error.to_string()),
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
        let verdict = if let Some(why) = &why {
            undecided("mkdir", why, &directory)
        } else if silent >= SILENT_MAX {
            let why = format!("not tried: {SILENT_MAX} before it did not end");
            undecided("", &why, &directory)
        } else {
            let (place, seed) = (directory.clone(), asked.seed);
            let (stop, longest) = (group.stop_flag(), asked.longest);
            let given_up = Arc::new(AtomicBool::new(false));
            let (ended, works) = (Arc::clone(&given_up), Arc::clone(&working));
            let work = move || {
                let ends = || stop.is_raised() || ended.load(Ordering::Relaxed);
                let verdict = promise.keep(&place, seed, longest, &ends);
                drop(works);
                verdict
            };
            let kept = limited(group, longest, work).await?;
            // It ends behind the call in which it is.
            given_up.store(kept.is_none(), Ordering::Relaxed);
            silent = if kept.is_none() { silent + 1 } else { 0 };
            late |= kept.is_none();
            kept.unwrap_or_else(|| {
                undecided(
                    "",
                    &not_within(asked.longest),
                    &directory.join(promise.name),
                )
            })
        };
        host.found.push(Seen {
            name: promise.name.to_owned(),
            verdict,
            took: MonotonicClock.now().since(begun),
        });
    }
    let hangs = hangs || late && !all_end(group, &working).await?;
    Ok((host, hangs))
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
    format!("no end within {} s", longest.as_secs_f64())
}

fn undecided(call: &str, seen: &str, path: &Path) -> Verdict {
    Verdict::Undecided(Evidence {
        seen: seen.to_owned(),
        call: call.to_owned(),
        path: path.to_owned(),
        ..Evidence::default()
    })
}

fn encode(host: &HostCheck) -> Vec<u8> {
    let HostCheck { root, found } = host;
    let mut w = Writer::default();
    w.number(u64::from(*root));
    for Seen {
        name,
        verdict,
        took,
    } in found
    {
        w.text(name).number(took.0);
        let (kind, evidence) = match verdict {
            Verdict::Holds(note) => {
                w.number(0).text(note);
                continue;
            }
            Verdict::LeftOut(why) => {
                w.number(1).text(why);
                continue;
            }
            Verdict::Broken(evidence) => (2, evidence),
            Verdict::Unsupported(evidence) => (3, evidence),
            Verdict::Undecided(evidence) => (4, evidence),
        };
        let Evidence {
            expected,
            seen,
            call,
            errno,
            path,
        } = evidence;
        w.number(kind).text(expected).text(seen).text(call);
        w.number(errno.map_or(0, |errno| errno as i32) as u64);
        w.bytes(path.as_os_str().as_bytes());
    }
    w.finish()
}

/// `None` when it did not arrive whole.
fn decode(message: &[u8]) -> Option<HostCheck> {
    let mut r = Reader::new(message);
    let mut host = HostCheck {
        root: r.number()? != 0,
        found: Vec::new(),
    };
    while !r.is_empty() {
        let (name, took) = (r.text()?, Nanos(r.number()?));
        let verdict = match r.number()? {
            0 => Verdict::Holds(r.text()?),
            1 => Verdict::LeftOut(r.text()?),
            kind => {
                let (expected, seen, call) = (r.text()?, r.text()?, r.text()?);
                let errno = Some(r.number()?).filter(|errno| *errno != 0);
                let evidence = Evidence {
                    expected,
                    seen,
                    call,
                    errno: errno.map(|errno| Errno::from_raw(errno as i32)),
                    path: PathBuf::from(OsString::from_vec(r.bytes()?.to_vec())),
                };
                match kind {
                    2 => Verdict::Broken(evidence),
                    3 => Verdict::Unsupported(evidence),
                    _ => Verdict::Undecided(evidence),
                }
            }
        };
        host.found.push(Seen {
            name,
            verdict,
            took,
        });
    }
    Some(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_host_found_arrives() {
        let evidence = |errno| Evidence {
            expected: "success".to_owned(),
            seen: "another thing".to_owned(),
            call: "openat".to_owned(),
            errno,
            path: PathBuf::from("/mnt/x"),
        };
        let verdicts = [
            Verdict::Holds(String::new()),
            Verdict::Holds("5 operations".to_owned()),
            Verdict::LeftOut("only root".to_owned()),
            Verdict::Broken(evidence(None)),
            Verdict::Unsupported(evidence(Some(Errno::EOPNOTSUPP))),
            Verdict::Undecided(evidence(Some(Errno::ENOSPC))),
        ];
        let seen = |(number, verdict): (usize, Verdict)| Seen {
            name: format!("promise {number}"),
            verdict,
            took: Nanos(number as u64),
        };
        let host = HostCheck {
            root: true,
            found: verdicts.into_iter().enumerate().map(seen).collect(),
        };
        let message = encode(&host);
        assert_eq!(decode(&message).as_ref(), Some(&host));
        assert!(decode(&message[..message.len() - 3]).is_none());
    }
}
