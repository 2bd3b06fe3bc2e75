//! The trigger that ends the jobs early on purpose, and its command.

use std::time::Duration;

use rbench_plan::jobs::Trigger;
use rbench_sys::command;

use super::JobRound;
use crate::group::{ExecError, Group, StopReason};

impl JobRound<'_> {
    /// Before the first group of jobs begins, at rank 0: waits from now on.
    pub(super) async fn set_trap(&self, group: &Group<'_>) -> Result<(), ExecError> {
        let trigger = &self.common.whole.trigger;
        if self.number > 0 || !trigger.is_set() {
            return Ok(());
        }
        let file = trigger
            .file
            .as_ref()
            .map(|file| self.common.base.join(file));
        let set = match group.is_root() {
            true => group
                .control
                .trap
                .set(file, trigger.after.map(Duration::from)),
            false => Ok(()),
        };
        group.agree(set).await
    }
}

/// Returns true if the group was stopped by the trigger; runs its command on each host then. All
/// workers have ended, and have left their states.
pub(super) async fn fire(group: &Group<'_>, trigger: &Trigger) -> Result<bool, ExecError> {
    if group.stop_reason() != Some(StopReason::Trigger) {
        return Ok(false);
    }
    let mine = match (group.is_root(), group.is_leader()) {
        (true, _) => &trigger.command,
        (false, true) => &trigger.remote,
        (false, false) => &None,
    };
    if let Some(text) = mine.clone() {
        let done = group.in_thread(move || command::run(&text, &|| false).result);
        let done = done.await?;
        // Like in fio, its exit status is ignored.
        if let Err(why) = done.and_then(|done| done) {
            group.trouble(&why);
        }
    }
    Ok(true)
}
