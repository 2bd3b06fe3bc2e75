//! `rbench clean`: removal of directories that interrupted runs left behind, and
//! the markers by which it recognises them.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use rbench_cli::Clean;
use rbench_sys::WorkDir;
use rbench_sys::limits::{Process, host_facts, process_space, this_process};

use crate::launch::Launch;
use crate::{FAILED, SUCCESS, complain, print};

/// How every marker starts.
const BEGIN: &str = "rbench run ";

/// The content of the marker file of a run: its id, and the process of rank 0
/// as [`origin`] gives it.
pub fn marker(launch: &Launch) -> String {
    marker_of(&launch.run_id, launch)
}

/// The same for a run that an earlier launch began.
pub fn marker_of(run_id: &str, launch: &Launch) -> String {
    format!("{BEGIN}{run_id}\n{}", launch.origin)
}

/// The number of the process that a marker names, if it is certain to be running.
pub fn at_work(marker: &[u8]) -> Option<u64> {
    let marker = read(marker)?;
    let here = process_space()?;
    let process = marker.process.filter(|_| marker.space == here)?;
    process.is_running().then(|| u64::from(process.number))
}

/// This process, so that others can tell whether it is still there.
pub fn origin() -> String {
    let host = host_facts().map_or_else(|_| String::new(), |facts| facts.name);
    let Process { number, started } = this_process();
    let space = process_space().unwrap_or_default();
    format!("host {host}\nspace {space}\nprocess {number} {started}\n")
}

/// What a marker says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Marker {
    run: String,
    host: String,
    /// Where its process number is valid: a boot and a PID namespace.
    space: String,
    process: Option<Process>,
}

fn read(bytes: &[u8]) -> Option<Marker> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut marker = Marker {
        run: text.strip_prefix(BEGIN)?.lines().next()?.to_owned(),
        ..Marker::default()
    };
    for line in text.lines() {
        match line.split_once(' ') {
            Some(("host", name)) => name.clone_into(&mut marker.host),
            Some(("space", space)) => space.clone_into(&mut marker.space),
            Some(("process", numbers)) => {
                let (number, started) = numbers.split_once(' ')?;
                marker.process = Some(Process {
                    number: number.parse().ok()?,
                    started: started.parse().ok()?,
                });
            }
            _ => {}
        }
    }
    Some(marker)
}

/// Why a run's directory must stay; `None`: the run is dead.
fn reason_to_stay(marker: &Marker, here: &str, force: bool) -> Option<String> {
    match marker.process {
        Some(process) if !here.is_empty() && marker.space == here => process
            .is_running()
            .then(|| format!("process {} is still running", process.number)),
        _ if force => None,
        _ => Some(format!(
            "it belongs to a run on host {} (another machine, or this one before its last boot): run rbench clean \
             there, or use --force once that run has ended",
            marker.host
        )),
    }
}

/// Removes directories whose runs are dead, and prints which.
pub fn clean(what: &Clean) -> ExitCode {
    let found = match WorkDir::find(&what.dir) {
        Ok(found) => found,
        Err(error) => {
            complain(&error.to_string());
            return ExitCode::from(FAILED);
        }
    };
    let here = process_space().unwrap_or_default();
    let (mut said, mut code) = (String::new(), SUCCESS);
    for (name, bytes) in found {
        let path = what.dir.join(&name);
        let Some(marker) = read(&bytes) else {
            continue;
        };
        if let Some(why) = reason_to_stay(&marker, &here, what.force) {
            complain(&format!("{} stays: {why}", path.display()));
            code = FAILED;
            continue;
        }
        if what.dry_run {
            let _ = writeln!(said, "would remove {}", path.display());
            continue;
        }
        match remove(what, &name, &bytes) {
            // Somebody else has removed it.
            Ok(None) => {}
            Ok(Some(entries)) => {
                let _ = writeln!(said, "removed {}: {entries} entries", path.display());
            }
            Err(why) => {
                complain(&why);
                code = FAILED;
            }
        }
    }
    if said.is_empty() && code == SUCCESS {
        let _ = writeln!(said, "{}: nothing to clean", what.dir.display());
    }
    ExitCode::from(code.max(print(&said)))
}

/// Removes a run's directory; `None`: it no longer exists.
fn remove(what: &Clean, name: &str, marker: &[u8]) -> Result<Option<u64>, String> {
    let run = WorkDir::open(&what.dir, name, marker).map_err(|e| e.to_string())?;
    let Some(run) = run else {
        return Ok(None);
    };
    run.remove(&AtomicBool::new(false), &mut |_| ())
        .map(Some)
        .map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_tells_run_host_and_process() {
        let text = format!("{BEGIN}20261121-aaaa\nhost one\nspace b/1\nprocess 12 345\n");
        let marker = read(text.as_bytes()).expect("a marker");
        assert_eq!(
            (
                marker.run.as_str(),
                marker.host.as_str(),
                marker.space.as_str()
            ),
            ("20261121-aaaa", "one", "b/1")
        );
        let process = marker.process.expect("a process");
        assert_eq!((process.number, process.started), (12, 345));
        assert_eq!(read(b"something else"), None);
        assert_eq!(read(b"\xff"), None);
    }

    #[test]
    fn only_what_is_dead_for_certain_may_go() {
        let marker = |space: &str, process| Marker {
            run: "r".to_owned(),
            host: "the same name everywhere".to_owned(),
            space: space.to_owned(),
            process,
        };
        let (me, none) = (
            this_process(),
            Process {
                number: 1,
                started: u64::MAX,
            },
        );
        let stays = |marker: &Marker, force| reason_to_stay(marker, "here", force).is_some();
        assert!(stays(&marker("here", Some(me)), false));
        assert!(stays(&marker("here", Some(me)), true));
        assert!(!stays(&marker("here", Some(none)), false));
        assert!(stays(&marker("there", Some(none)), false));
        assert!(!stays(&marker("there", Some(none)), true));
        assert!(stays(&marker("here", None), false));
        // If that cannot be known, nothing is removed without --force.
        assert!(reason_to_stay(&marker("", Some(none)), "", false).is_some());
    }
}
