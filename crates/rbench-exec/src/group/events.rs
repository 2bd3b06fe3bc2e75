//! The end of what `--event` has started.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Group;

/// Time between checks whether commands have ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Group<'_> {
    /// Ends the running commands when all phases are over: after `patience` at most, or at once
    /// when the group is asked to stop. Does nothing except at rank 0.
    pub async fn end_commands(&self, patience: Duration) {
        let (stop, deadline) = (self.stop_flag(), Instant::now() + patience);
        let running = || self.probes.marks.any_running() && Instant::now() < deadline;
        if running() {
            self.step("waiting for the commands of --event");
        }
        let by_themselves = async {
            while running() && !stop.is_raised() {
                sleep(LOOK_EVERY).await;
            }
        };
        // Commands are ended even if the ranks can no longer talk.
        let _ = self.attend(by_themselves, || 0).await;
        self.probes.marks.end().await;
    }
}
