//! The search of a tree (`rbench find`): one phase, in which all workers walk it together.

use std::ffi::CString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;
use std::sync::Arc;

use nix::errno::Errno;
use rbench_core::OpKind;
use rbench_core::outcome::{Found, PhaseOutcome};
use rbench_plan::Plan;
use rbench_plan::spec::Find;
use rbench_sys::walk::{self, Attributes};

use crate::caches::drop_caches;
use crate::group::{ExecError, Group};
use crate::listener::Listener;
use crate::passes;
use crate::phase::{Before, OpRow, Phase};
use crate::residency;
use crate::round;
use crate::spots::Spot;
use crate::target::Untouched;
use crate::worker::MakeRunner;
use crate::workload::{Pass, Run, Running, Workload};

mod queue;
mod walker;

use queue::Queue;
use walker::{Search, Totals, Walker};

impl Workload for Find {
    /// A search creates nothing.
    fn spots(&self, _run: Run<'_>) -> Vec<Spot> {
        Vec::new()
    }

    fn run<'a>(&'a self, run: Run<'a>, listener: &'a mut dyn Listener) -> Running<'a> {
        Box::pin(async move {
            let (group, all, root) = (run.group, run.plan, run.place.parent);
            let newer_than = reference(group, self).await?;
            let device = start(group, root).await?;
            residency::turn_to(group, vec![root.to_owned()]).await?;
            let pass = |iteration| {
                let search = Search {
                    root: root.to_owned(),
                    device,
                    newer_than,
                    size: self.size,
                    // A name has no byte 0, so such a pattern matches none.
                    name: self
                        .name
                        .clone()
                        .map(|name| CString::new(name.into_vec()).unwrap_or_default()),
                    rank: group.rank().0,
                    ranks: group.world.size(),
                    threads: all.threads,
                    queue: Queue::default(),
                    totals: Totals::default(),
                };
                FindPass {
                    all,
                    iteration,
                    search: Arc::new(search),
                }
            };
            let shared = !all.leave.private_dirs;
            passes::all(run, Untouched, shared, listener, pass).await
        })
    }
}

/// One search.
struct FindPass<'p> {
    all: &'p Plan,
    iteration: u32,
    search: Arc<Search>,
}

impl Pass<Untouched> for FindPass<'_> {
    async fn run(
        &mut self,
        group: &Group<'_>,
        _: &mut Untouched,
        listener: &mut dyn Listener,
    ) -> Result<bool, ExecError> {
        if self.all.drop_caches {
            drop_caches(group).await?;
        }
        let phase = phase(self.all, self.iteration, &self.search);
        let mut end = round::run(group, &phase).await?;
        let found = sum(group, &self.search.totals).await?;
        end.tell_details(&phase, listener);
        for row in end.rows {
            let found = (row.op == OpKind::Readdir).then_some(found);
            listener.row(PhaseOutcome { found, ..row });
        }
        Ok(end.stopped)
    }
}

/// Returns the time of the last content change of `--newer`'s file, as rank 0 sees it.
async fn reference(group: &Group<'_>, plan: &Find) -> Result<Option<(i64, i64)>, ExecError> {
    let Some(file) = plan.newer.clone() else {
        return Ok(None);
    };
    let looked = group.agree_on_target_if(group.is_root(), move || match walk::attributes(&file) {
        Ok((Attributes { modified, .. }, _)) => Ok(modified),
        Err(errno) => Err(unseen("--newer ", &file, errno)),
    });
    let modified = looked.await.map_err(|e| group.as_usage(e))?;
    group.broadcast(&modified).await
}

/// Returns the device number of the start directory, on this rank.
async fn start(group: &Group<'_>, root: &Path) -> Result<u64, ExecError> {
    let path = root.to_owned();
    let looked = group.agree_on_target(move || match walk::attributes(&path) {
        Ok((found, device)) if found.is_directory => Ok(device),
        Ok(_) => Err(unseen("", &path, Errno::ENOTDIR)),
        Err(errno) => Err(unseen("", &path, errno)),
    });
    looked.await.map_err(|e| group.as_usage(e))
}

fn unseen(option: &str, path: &Path, errno: Errno) -> String {
    let (shown, why) = (path.display(), errno.desc());
    format!("{option}{shown} cannot be inspected: {why} ({errno:?})")
}

fn phase(plan: &Plan, iteration: u32, search: &Arc<Search>) -> Phase {
    let rows = walker::ROWS.map(|(op, name, label)| OpRow::new(op, name, label));
    let search = Arc::clone(search);
    let make: MakeRunner =
        Arc::new(move |thread| Ok(Box::new(Walker::new(Arc::clone(&search), thread))));
    // Earlier visitors are unknown: the cache state is not reported.
    Phase {
        iteration,
        log_operations: plan.log,
        before: Before::named("find"),
        ..Phase::new("searching", rows.into(), plan.threads, make)
    }
}

/// Sums up the visited and matching entries of all ranks.
async fn sum(group: &Group<'_>, totals: &Totals) -> Result<Found, ExecError> {
    let all = group.sums(totals.words()).await?;
    Ok(Found {
        files: all[0],
        directories: all[1],
        matches: all[2],
    })
}
