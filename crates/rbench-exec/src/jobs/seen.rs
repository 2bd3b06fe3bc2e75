//! Checks that all hosts see the files that rank 0 sees.

use std::time::Duration;

use rbench_core::{Clock as _, MonotonicClock};
use rbench_plan::pattern::file_path;

use super::{JobRound, Member, layout};
use crate::group::{ExecError, Group};
use crate::target::SEEN_WITHIN;

impl JobRound<'_> {
    /// Returns true if every host sees a file that rank 0 has.
    pub(super) async fn is_seen_everywhere(&self, group: &Group<'_>) -> Result<bool, ExecError> {
        if group.host_names.len() == 1 {
            return Ok(true);
        }
        // Each rank's logs that are replayed name files of their own.
        let same = |member: &&Member| member.engine.uses_files && member.job.replay.is_none();
        let real = self.members.iter().find(same);
        let path = real.map(|member| self.common.base.join(file_path(&member.job, 0, 0)));
        let Some(path) = path else {
            return Ok(true);
        };
        let here = path.clone();
        let first = group.agree_on_target_if(group.is_root(), move || Ok(layout::is_there(&here)));
        if !group.any(first.await? == Some(true)).await? {
            return Ok(true);
        }
        let seen = group.agree_on_target_if(group.is_leader(), move || {
            let begun = MonotonicClock.now();
            while !layout::is_there(&path) {
                if MonotonicClock.now().since(begun) >= SEEN_WITHIN {
                    return Ok(false);
                }
                std::thread::sleep(Duration::from_millis(50));
            }
            Ok(true)
        });
        group.all(seen.await? != Some(false)).await
    }
}
