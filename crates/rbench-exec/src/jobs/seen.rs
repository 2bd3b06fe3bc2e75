//! Checks that all hosts see the files that rank 0 sees.

use std::path::PathBuf;
use std::time::Duration;

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
        let there = |path: &Option<PathBuf>| path.as_deref().is_some_and(layout::is_there);
        if !group.any(group.is_root() && there(&path)).await? {
            return Ok(true);
        }
        let mut seen = !group.is_leader() || there(&path);
        let begun = group.now();
        while !seen && group.now().since(begun) < SEEN_WITHIN {
            tokio::time::sleep(Duration::from_millis(50)).await;
            seen = there(&path);
        }
        group.all(seen).await
    }
}
