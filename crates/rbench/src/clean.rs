//! `rbench clean`: removal of directories that interrupted runs left behind.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rbench_cli::{Clean, Progress};
use rbench_comm::{Combine, Communicator};
use rbench_core::Rank;
use rbench_core::units::counted;
use rbench_exec::removal::Remover;
use rbench_exec::{ExecError, Group, Show as _};
use rbench_sys::WorkDir;
use rbench_sys::limits::process_space;
use rbench_sys::workdir::{PREFIX, Runs};

use crate::console::{complain, print};
use crate::exit::{FAILED, SUCCESS, USAGE, stop_code};
use crate::hosts::Hosts;
use crate::launch::Launch;
use crate::live::Feed;
use crate::marker::{Marker, read};
use crate::progress::Display;
use crate::refusal::Refusal;
use crate::signals::Signals;

/// The reason why a run's directory must stay; `None`: the run is dead.
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

/// The directories in `dir` whose runs are dead: name and marker. Directories that stay are
/// reported at once, and set the exit code unless they were to be kept.
fn dead(what: &Clean, code: &mut u8) -> Vec<(String, Vec<u8>)> {
    if let Err(error) = WorkDir::check_parent(&what.dir) {
        complain(&error.to_string());
        *code = USAGE;
        return Vec::new();
    }
    let mut failed = |why: &str| {
        complain(why);
        *code = FAILED;
    };
    let Runs {
        marked,
        unmarked,
        closed,
    } = match WorkDir::find(&what.dir) {
        Ok(found) => found,
        Err(error) => {
            failed(&error.to_string());
            return Vec::new();
        }
    };
    for error in closed {
        failed(&error.to_string());
    }
    for name in unmarked {
        let path = what.dir.join(name);
        complain(&format!(
            "{} stays: it has the name of a run's directory but no marker (a crash may have removed it)",
            path.display()
        ));
    }
    let here = process_space().unwrap_or_default();
    let mut goes = |(name, bytes): &(String, Vec<u8>)| {
        let Some(marker) = read(bytes) else {
            return false;
        };
        let path = what.dir.join(name);
        let why = reason_to_stay(&marker, &here, what.force);
        if let Some(why) = &why {
            failed(&format!("{} stays: {why}", path.display()));
        } else if marker.kept && !what.kept {
            complain(&format!(
                "{} stays: it was kept on purpose (--keep or --ack-journal); --kept removes it too",
                path.display()
            ));
            return false;
        }
        why.is_none()
    };
    marked.into_iter().filter(|found| goes(found)).collect()
}

/// Removes directories whose runs are dead, with all ranks that see them; rank 0 says which
/// these are, and prints what was removed.
pub async fn run(
    comm: &dyn Communicator,
    launch: &Launch,
    what: &Clean,
    signals: &Signals,
) -> Result<u8, Refusal> {
    let hosts = Hosts::find(comm).await?;
    let how = Progress::Auto.unless(what.quiet);
    let root = comm.rank() == Rank(0);
    let display = Display::new(how, root, Feed::default());
    let group = hosts.group(comm, signals, &display).await?;
    let (mut said, mut code) = (String::new(), SUCCESS);
    let found = match root {
        true => dead(what, &mut code),
        false => Vec::new(),
    };
    if what.dry_run {
        for (name, _) in &found {
            let _ = writeln!(said, "would remove {}", what.dir.join(name).display());
        }
    }
    let found = match what.dry_run {
        true => Vec::new(),
        false => found,
    };
    let found = comm.broadcast_value(Rank(0), &found);
    for (name, marker) in group.quietly(found).await? {
        if group.stopped().await? {
            break;
        }
        let path = what.dir.join(&name);
        match remove(&group, launch, what, (&name, &marker)).await? {
            // Somebody else has removed it.
            Ok(None) => {}
            Ok(Some(entries)) => {
                let _ = writeln!(
                    said,
                    "removed {}: {}",
                    path.display(),
                    counted(entries, "entry")
                );
            }
            Err(why) => {
                display.trouble(&why);
                code = FAILED;
            }
        }
    }
    display.end();
    let code = stop_code(&group).unwrap_or(code);
    if !root {
        return Ok(code);
    }
    if said.is_empty() && code == SUCCESS {
        let _ = writeln!(
            said,
            "{}: nothing to clean: it has no directory {PREFIX}… that is to be removed",
            what.dir.display()
        );
    }
    Ok(code.max(print(&said)))
}

/// Removes a run's directory; how many entries it had. `None`: it no longer exists. At ranks
/// other than 0 nothing is wrong.
async fn remove(
    group: &Group<'_>,
    launch: &Launch,
    what: &Clean,
    (name, marker): (&str, &[u8]),
) -> Result<Result<Option<u64>, String>, ExecError> {
    // Rank 0's own directory is where the name starts.
    let parent = match group.is_root() {
        true => what.dir.clone(),
        false => Path::new(&launch.cwd).join(&what.dir),
    };
    let opened = WorkDir::open(&parent, name, marker);
    let there = matches!(&opened, Ok(Some(_)));
    if !group.decided(|| there).await? {
        return Ok(match opened {
            Err(error) if group.is_root() => Err(error.to_string()),
            Err(_) | Ok(_) => Ok(None),
        });
    }
    group.begin_phase(&format!("removal of {name}"), None, None);
    group.begin_work(group.now());
    let remover = Remover::new(what.threads).until(group.stop_flag());
    let found = opened.ok().flatten().map(Arc::new);
    // A host that sees no such directory cannot help.
    let team = group.world.part(found.is_some());
    let team = group.quietly(team).await?;
    if let Some(found) = &found {
        let kept = match group.is_root() {
            true => vec![PathBuf::new()],
            false => Vec::new(),
        };
        remover.shares(group, team.as_ref(), found, &kept).await?;
    }
    // The others let go of their descriptors first.
    let mine = found.and_then(Arc::into_inner);
    let mine = mine.filter(|_| group.is_root());
    group.quietly(group.world.barrier()).await?;
    let rest = move |remover: &Remover| mine.map(|run| remover.with(|how| run.remove(how)));
    let rest = remover.beside(group, rest).await?;
    let removed = group
        .world
        .all_reduce(Combine::Sum, vec![remover.removed()]);
    let removed = group.quietly(removed).await?[0];
    Ok(match rest {
        Ok(None | Some(Ok(_))) => Ok(Some(removed)),
        Ok(Some(Err(error))) => Err(error.to_string()),
        Err(lost) => Err(lost),
    })
}

#[cfg(test)]
mod tests {
    use rbench_sys::processes::Process;

    use super::*;

    #[test]
    fn only_what_is_dead_for_certain_may_go() {
        let marker = |space: &str, process| Marker {
            run: "r".to_owned(),
            host: "the same name everywhere".to_owned(),
            space: space.to_owned(),
            process,
            kept: false,
        };
        let (me, none) = (
            Process::this(),
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
