//! The search of a tree (`rbench find`): one phase, in which all workers walk it together.

use std::ffi::CString;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_comm::Combine;
use rbench_core::outcome::{Found, PhaseOutcome};
use rbench_core::wire::{Reader, Writer};
use rbench_core::{OpKind, Rank};
use rbench_plan::jobs::Framing;
use rbench_plan::{FindPlan, Plan};
use rbench_sys::walk::{self, Attributes};

use crate::caches::drop_caches;
use crate::group::{ExecError, Group, StopReason};
use crate::phase::{Before, OpRow, Phase, Starts};
use crate::residency;
use crate::round;
use crate::thread::in_thread;
use crate::workload::{Ending, Listener, stopped_by_itself, tell_stopped};

mod queue;
mod walker;

use queue::Queue;
use walker::{Search, Totals, Walker};

/// Searches the tree at `root`, an absolute path.
///
/// # Errors
/// As [`crate::execute`].
pub(crate) async fn execute(
    group: &Group<'_>,
    (all, plan): (&Plan, &FindPlan),
    root: &Path,
    listener: &mut dyn Listener,
) -> Result<Ending, ExecError> {
    let newer_than = reference(group, plan).await?;
    let device = start(group, root).await?;
    residency::turn_to(group, vec![root.to_owned()]).await?;
    let ready = match group.is_root() {
        true => listener.begun(!all.leave.private_dirs),
        false => Ok(()),
    };
    group.agree(ready).await?;
    let mut ending = Ending::default();
    for iteration in 0..all.iterations {
        if all.drop_caches {
            drop_caches(group).await?;
        }
        let search = Arc::new(Search {
            root: root.to_owned(),
            device,
            newer_than,
            size: plan.size,
            // A name has no byte 0, so that such a pattern fits none.
            name: plan
                .name
                .clone()
                .map(|name| CString::new(name).unwrap_or_default()),
            rank: group.rank().0,
            ranks: group.world.size(),
            threads: all.threads,
            queue: Queue::new(),
            totals: Totals::default(),
        });
        let phase = phase(all, iteration, &search);
        let end = round::run(group, &phase).await?;
        let found = sum(group, &search.totals).await?;
        let names: Vec<&str> = phase.lanes.iter().map(|row| row.name.as_str()).collect();
        if all.log {
            listener.details(iteration, &names, end.details);
        }
        for row in end.rows {
            let found = (row.op == OpKind::Readdir).then_some(found);
            listener.row(PhaseOutcome { found, ..row });
        }
        if end.stopped {
            let interrupted = matches!(group.stop_reason(), Some(StopReason::Signal(_)));
            if group.is_root() && interrupted {
                tell_stopped(group, listener);
            }
            ending.trouble = stopped_by_itself(group);
            return Ok(ending);
        }
    }
    ending.complete = true;
    Ok(ending)
}

/// When the content of the file of `--newer` was changed, as rank 0 sees it.
async fn reference(group: &Group<'_>, plan: &FindPlan) -> Result<Option<(i64, i64)>, ExecError> {
    let Some(file) = plan.newer.clone() else {
        return Ok(None);
    };
    let mut message = Writer::default();
    let mut looked = Ok(());
    if group.is_root() {
        let path = file.clone();
        let found = in_thread(move || walk::attributes(&path));
        match group.attend(found, || 0).await? {
            Ok(Ok((Attributes { modified, .. }, _))) => {
                message.number(modified.0 as u64).number(modified.1 as u64);
            }
            Ok(Err(errno)) => looked = Err(unseen("--newer ", &file, errno)),
            Err(lost) => looked = Err(lost),
        }
    }
    group.agree(looked).await.map_err(usage)?;
    let told = group.world.broadcast(Rank(0), message.finish());
    let told = group.quietly(told).await?;
    let mut reader = Reader::new(&told);
    Ok(reader
        .number()
        .zip(reader.number())
        .map(|(s, ns)| (s as i64, ns as i64)))
}

/// The device number of the directory at which the search starts, on this rank.
async fn start(group: &Group<'_>, root: &Path) -> Result<u64, ExecError> {
    let path = root.to_owned();
    let looked = in_thread(move || match walk::attributes(&path) {
        Ok((
            Attributes {
                is_directory: true, ..
            },
            device,
        )) => Ok(device),
        Ok(_) => Err(unseen("", &path, Errno::ENOTDIR)),
        Err(errno) => Err(unseen("", &path, errno)),
    });
    let looked = group.attend(looked, || 0).await?.and_then(|found| found);
    group.agree(looked).await.map_err(usage)
}

fn unseen(option: &str, path: &Path, errno: Errno) -> String {
    let (shown, why) = (path.display(), errno.desc());
    format!("{option}{shown} cannot be inspected: {why} ({errno:?})")
}

fn usage(error: ExecError) -> ExecError {
    match error {
        ExecError::SetUp(message) => ExecError::Usage(message),
        other => other,
    }
}

fn phase(plan: &Plan, iteration: u32, search: &Arc<Search>) -> Phase {
    let row = |(op, name, label): (OpKind, &str, &str)| OpRow {
        op,
        name: name.to_owned(),
        label: label.to_owned(),
        unsynced: false,
        aside: false,
        starts: Starts::ByKind,
    };
    let search = Arc::clone(search);
    Phase {
        iteration,
        label: "searching".to_owned(),
        shown: true,
        lanes: walker::ROWS.map(row).into(),
        open_loop: false,
        offered: None,
        deadline: None,
        steady: None,
        wear_out: false,
        framing: Framing::Untimed,
        // Nobody knows who has looked there before.
        cache: None,
        total: None,
        threads: plan.threads,
        lanes_of: Vec::new(),
        log_operations: plan.log,
        before: Before {
            name: Some("find".to_owned()),
            ..Before::default()
        },
        make: Arc::new(move |thread| Ok(Box::new(Walker::new(Arc::clone(&search), thread)))),
    }
}

/// What all ranks have looked at and found.
async fn sum(group: &Group<'_>, totals: &Totals) -> Result<Found, ExecError> {
    let all = group.world.all_reduce(Combine::Sum, totals.words());
    let all = group.quietly(all).await?;
    Ok(Found {
        files: all[0],
        directories: all[1],
        matches: all[2],
    })
}
