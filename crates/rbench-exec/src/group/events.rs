//! The end of what `--event` has started.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Group;

/// How often it is looked whether commands have ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

impl Group<'_> {
    /// When all phases are over: what commands have started ends, after `patience` at
    /// most, or at once when the group is asked to stop. Nothing to do but at rank 0.
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
        // Ranks that can no longer talk are no reason to leave anything running.
        let _ = self.attend(by_themselves, || 0).await;
        self.probes.marks.end().await;
    }
}
