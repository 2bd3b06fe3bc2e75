//! The passes of a workload in sequence: each leaves only items that the plan leaves.

use crate::group::ExecError;
use crate::listener::{Listener, RunEnd, stopped_by_itself, tell_stopped};
use crate::removal::Remover;
use crate::residency;
use crate::target::{Target, Workspace};
use crate::warm_up::WarmUp;
use crate::workload::{Pass, Run};

/// Runs the passes of a workload in a directory of the run's own.
///
/// # Errors
/// Like [`crate::execute`].
pub(crate) async fn in_own_directory<P: Pass<Target>>(
    run: Run<'_>,
    listener: &mut dyn Listener,
    pass: impl Fn(u32) -> P,
) -> Result<RunEnd, ExecError> {
    let group = run.group;
    let target = Target::set_up(group, run.place).await?;
    let (shared, path) = (target.shared(), target.path().to_owned());
    group.probes.hooks.work_in(&path);
    residency::turn_to(group, vec![path.clone()]).await?;
    let end = all(run, target, shared, listener, pass).await?;
    Ok(RunEnd {
        kept: run.plan.keep.then_some(path),
        ..end
    })
}

/// Runs pass after pass in `workspace`; `shared`: all hosts see the same.
///
/// # Errors
/// Like [`crate::execute`].
pub(crate) async fn all<G: Workspace, P: Pass<G>>(
    run: Run<'_>,
    mut workspace: G,
    shared: bool,
    listener: &mut dyn Listener,
    pass: impl Fn(u32) -> P,
) -> Result<RunEnd, ExecError> {
    let Run { group, plan, .. } = run;
    let mut end = RunEnd::default();
    let ready = match group.is_root() {
        true => listener.begun(shared),
        false => Ok(()),
    };
    let mut broken_off = end.trouble_of(group.agree(ready).await.map(|()| false))?;
    let removes = !plan.keep && workspace.holds_something();
    let last = plan.iterations;
    // Warm-up passes are numbered after all that may count.
    let warmup = last..plan.passes();
    for iteration in warmup.chain(0..last) {
        if broken_off {
            break;
        }
        let counts = iteration < last;
        group.probes.intervals.paused.set(!counts);
        let mut pass = pass(iteration);
        let own = pass.own_dirs(group.rank());
        let result = match counts {
            true => pass.run(group, &mut workspace, listener).await,
            false => {
                let mut unheard = WarmUp(&mut *listener);
                pass.run(group, &mut workspace, &mut unheard).await
            }
        };
        broken_off = end.trouble_of(result)?;
        if broken_off && end.trouble.is_none() {
            end.trouble = stopped_by_itself(group);
        }
        if broken_off && end.trouble.is_none() && group.is_root() {
            tell_stopped(group, listener);
        }
        group.share_dead_mounts().await?;
        if broken_off {
            // Removing would block, too, if a call has not returned.
            group.any_stuck().await?;
        }
        if removes {
            group.begin_phase("removal", pass.left(), None);
            group.begin_work(group.now());
            let remover = Remover::new(plan.workers_of(group.rank()));
            let left = workspace
                .close(group, iteration, own, broken_off, &remover)
                .await?;
            end.left.extend(left);
        }
        let asks = plan.until.is_some() && counts && !broken_off;
        if asks && !group.decided(|| listener.another()).await? {
            break;
        }
    }
    end.complete = !broken_off;
    if removes {
        let remover = Remover::new(plan.workers_of(group.rank()));
        end.left.extend(workspace.end(group, &remover).await?);
    }
    Ok(end)
}

impl RunEnd {
    /// Returns whether a pass was interrupted; records the error that did it.
    fn trouble_of(&mut self, result: Result<bool, ExecError>) -> Result<bool, ExecError> {
        match result {
            Err(ExecError::SetUp(message)) => {
                self.trouble = Some(message);
                Ok(true)
            }
            other => other,
        }
    }
}
