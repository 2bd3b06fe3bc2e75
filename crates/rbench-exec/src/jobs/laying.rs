//! Laying out the files of a group of jobs: what each rank has to make, and making it.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use rbench_core::OpKind;
use rbench_core::random::key;

use super::layout::{self, FileNeeds, Task, Tasks, Unmade, Whose};
use super::{JobRound, why_unmade};
use crate::group::{ExecError, Group};
use crate::phase::{OpRow, Phase};
use crate::round;
use crate::worker::MakeRunner;

/// Most threads that lay out files on one rank.
const LAYOUT_THREADS: u32 = 32;

impl JobRound<'_> {
    /// Makes what the jobs need; whether all hosts see the same files, or
    /// `None` when it was stopped.
    pub(super) async fn lay_out(
        &self,
        group: &Group<'_>,
        made: &mut BTreeSet<PathBuf>,
    ) -> Result<Option<bool>, ExecError> {
        group.step("checking files");
        let ranks = group.world.size();
        let (mut own, mut shared) = (FileNeeds::default(), FileNeeds::default());
        for member in self.members.iter().filter(|m| m.engine.uses_files) {
            let (job, base, mapped) = (&member.job, self.common.base, member.engine.mapped);
            own.add(job, mapped, base, Whose::Own(group.rank()));
            shared.add(job, mapped, base, Whose::Shared { ranks });
        }
        made.extend(self.missing(group).await?);
        let mut first = own.clone();
        if group.is_root() {
            first.join(shared.clone());
        }
        if self.make(group, first, &shared).await? {
            return Ok(None);
        }
        let one_view = self.is_seen_everywhere(group).await?;
        // Where the hosts do not see the same files, each has its own.
        if group.host_names.len() > 1 {
            let elsewhere = group.is_leader() && !group.is_root();
            let second = match elsewhere {
                true => shared.clone(),
                false => FileNeeds::default(),
            };
            if self.make(group, second, &shared).await? {
                return Ok(None);
            }
        }
        if group.is_leader() {
            own.join(shared.clone());
        }
        let label = "reading files once";
        let stopped = self.tasks(group, own.reads(), label, &shared).await?;
        Ok((!stopped).then_some(one_view))
    }

    /// Makes the files that this rank is to make; whether it was stopped.
    async fn make(
        &self,
        group: &Group<'_>,
        needs: FileNeeds,
        shared: &FileNeeds,
    ) -> Result<bool, ExecError> {
        let survey = group.agree_on_target(move || Ok(needs.survey()));
        let (tasks, failed) = survey.await?;
        self.do_without(group, failed, shared).await?;
        // Files are there before any part of them is filled.
        let (makes, fills): (Vec<Task>, Vec<Task>) =
            tasks.into_iter().partition(Task::makes_the_file);
        if self.tasks(group, makes, "creating files", shared).await? {
            return Ok(true);
        }
        let unmade = self.unmade.borrow().clone();
        let fills = fills.into_iter().filter(|task| !task.is_of(&unmade));
        self.tasks(group, fills.collect(), "laying out files", shared)
            .await
    }

    /// Goes on without the files of this rank's workers that could not be made
    /// ready: these workers count as failed. Nobody can go on without a file
    /// that all workers share.
    async fn do_without(
        &self,
        group: &Group<'_>,
        failed: Vec<Unmade>,
        shared: &FileNeeds,
    ) -> Result<(), ExecError> {
        let of_all = failed.iter().find(|(path, _)| shared.has(path));
        let of_all = of_all.map_or(Ok(()), |(_, failure)| {
            Err(format!("the files could not be prepared: {failure}"))
        });
        for (path, failure) in failed {
            self.unmade.borrow_mut().entry(path).or_insert(failure);
        }
        group.agree(of_all).await
    }

    /// Does the tasks of all ranks as a phase; whether it was stopped.
    async fn tasks(
        &self,
        group: &Group<'_>,
        tasks: Vec<Task>,
        label: &str,
        shared: &FileNeeds,
    ) -> Result<bool, ExecError> {
        let pieces = tasks.iter().map(Task::pieces).sum();
        let total = group.sums(vec![pieces]).await?[0];
        if total == 0 {
            return group.stopped().await;
        }
        let tasks = Tasks::new(tasks);
        let done = Arc::clone(&tasks);
        let seed = key(&[
            self.common.run.key,
            self.number as u64,
            u64::from(group.rank().0),
        ]);
        let make: MakeRunner =
            Arc::new(move |thread| layout::prepare(Arc::clone(&tasks), &[seed, u64::from(thread)]));
        let threads = self.workers().clamp(1, LAYOUT_THREADS);
        let phase = Phase {
            iteration: self.iteration,
            total: Some(total),
            ..Phase::untimed(label, OpRow::layout(OpKind::Write), threads, make)
        };
        let end = round::run(group, &phase).await?;
        if let Some(refused) = done.refused() {
            group.trouble(&format!(
                "{refused}: the file is written without preallocation"
            ));
        }
        let why = why_unmade(&end, "prepared");
        if end.failed {
            self.failed_layout.replace(Some(end.rows));
        }
        // A failure that was to end the run is reported.
        if end.stopped {
            group.agree(why).await?;
        }
        self.do_without(group, done.failed(), shared).await?;
        Ok(end.stopped)
    }
}
