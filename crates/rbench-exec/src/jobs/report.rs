//! Gathers the workers' results at rank 0, as fio reports them.

use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::moved::Moved;
use rbench_core::outcome::PhaseOutcome;

use super::{JobRound, Member};
use crate::blocks::Sink;
use crate::group::{ExecError, Group};
use crate::listener::Listener;

/// The code of the warning of jobs that did nothing after their ramp.
const RAMP_ONLY: &str = "ramp-only";

impl JobRound<'_> {
    /// Warns of jobs that were over before they were measured.
    pub(super) fn warn_of_ramps(
        &self,
        group: &Group<'_>,
        rows: &[PhaseOutcome],
        listener: &mut dyn Listener,
    ) {
        let unmeasured = |member: &&Member| {
            let own = rows.get(member.lane_numbers.clone()).unwrap_or_default();
            let ramps = member.job.pace.ramps() && member.job.label.is_none();
            ramps && own.iter().all(|row| row.items == 0)
        };
        let jobs = self.members.iter().filter(unmeasured);
        let names: Vec<&str> = jobs.map(|member| member.job.name.as_str()).collect();
        if group.is_root() && !names.is_empty() && group.stop_reason().is_none() {
            listener.warning(
                RAMP_ONLY,
                format!(
                    "{}: the work ended before the ramp (ramp_time, ramp_size), so nothing was measured; \
                     fio's report shows the work of the ramp",
                    names.join(", ")
                ),
            );
        }
    }

    /// Brings the outcomes of all workers to rank 0; logs stay with their rank.
    pub(super) async fn report(
        &self,
        group: &Group<'_>,
        sink: &Sink,
        listener: &mut dyn Listener,
    ) -> Result<(), ExecError> {
        let taken = sink.lock().map(|mut all| std::mem::take(&mut *all));
        let (mut outcomes, mut logs): (Vec<JobOutcome>, Vec<JobLog>) =
            taken.unwrap_or_default().into_iter().unzip();
        outcomes.sort_by_key(|outcome| (outcome.job, outcome.worker));
        logs.retain(|log| !log.samples.is_empty() || !log.histograms.is_empty());
        logs.sort_by_key(|log| (log.job, log.worker));
        let merged = self.merge_groups(outcomes).into_iter();
        // The form of an outcome is that of the result file, which has no logs.
        let apart = |mut outcome: JobOutcome| (std::mem::take(&mut outcome.moved), outcome);
        let sent: Vec<(Moved, JobOutcome)> = merged.map(apart).collect();
        let all = group.gather(&sent).await?.into_iter().flatten();
        let whole = |(moved, outcome)| JobOutcome { moved, ..outcome };
        let mut outcomes: Vec<JobOutcome> = all.map(whole).collect();
        outcomes.sort_by_key(|outcome| (outcome.job, outcome.worker));
        if !outcomes.is_empty() {
            listener.jobs(outcomes);
        }
        if !logs.is_empty() {
            listener.job_logs(logs);
        }
        Ok(())
    }

    /// Merges the workers of this rank of each job that reports as a group.
    fn merge_groups(&self, outcomes: Vec<JobOutcome>) -> Vec<JobOutcome> {
        let grouped = |index: u32| {
            let mut members = self.members.iter();
            members.any(|m| {
                let report = m.job.report.as_ref();
                m.index == index && report.is_some_and(|report| report.group_reporting)
            })
        };
        let mut merged: Vec<JobOutcome> = Vec::new();
        for outcome in outcomes {
            match merged.last_mut() {
                Some(last) if last.job == outcome.job && grouped(outcome.job) => {
                    last.merge(&outcome);
                }
                _ => merged.push(outcome),
            }
        }
        merged
    }
}
