//! Current results of the workers of jobs, for reports during the run.

use std::collections::BTreeMap;
use std::sync::Mutex;

use rbench_core::job::JobOutcome;
use rbench_plan::jobs::JobsPlan;

/// Current results of the workers of this process, for reports on the way. Each stores its own
/// about twice a second, between two operations.
#[derive(Debug)]
pub struct LiveStats(Mutex<BTreeMap<(u32, u64), JobOutcome>>);

impl LiveStats {
    /// Creates one in which every worker of the jobs has done nothing yet.
    pub fn of(plan: &JobsPlan) -> LiveStats {
        let mut all = BTreeMap::new();
        for (job, plan) in (0..).zip(plan.rounds.iter().flatten()) {
            for worker in 0..u64::from(plan.numjobs) {
                let outcome = JobOutcome {
                    job,
                    worker,
                    workers: 1,
                    pid: std::process::id(),
                    ..JobOutcome::default()
                };
                all.insert((job, worker), outcome);
            }
        }
        LiveStats(Mutex::new(all))
    }

    /// Returns all results, by job and worker.
    pub fn outcomes(&self) -> Vec<JobOutcome> {
        let all = self.0.lock();
        all.map_or_else(|_| Vec::new(), |all| all.values().cloned().collect())
    }

    pub(crate) fn put(&self, outcome: JobOutcome) {
        if let Ok(mut all) = self.0.lock() {
            all.insert((outcome.job, outcome.worker), outcome);
        }
    }
}
