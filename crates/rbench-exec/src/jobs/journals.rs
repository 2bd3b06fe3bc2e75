//! Journals of acknowledged writes for jobs (`--ack-journal`): one for each worker that
//! writes, all made before anything else is.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rbench_core::Rank;
use rbench_core::random::key;
use rbench_plan::io::Layout;
use rbench_plan::jobs::{JobPlan, JobsPlan};
use rbench_plan::pattern::{file_path, file_size};

use super::{find, layout};
use crate::ack::format::NamedFile;
use crate::ack::journal::journal_path;
use crate::ack::{self, Header, Journal, Log};
use crate::blocks::mark;
use crate::group::{ExecError, Group};

/// The journals of this rank's workers of each job, by its position; those of jobs that
/// write nothing are none.
#[derive(Default)]
pub struct Journals {
    of: Vec<Vec<Log>>,
}

impl Journals {
    /// Makes those of a plan's jobs. `run` is what headers of blocks derive from.
    ///
    /// # Errors
    /// When one cannot be made, or could say nothing of its files since something is there.
    pub async fn open(
        group: &Group<'_>,
        plan: &JobsPlan,
        base: &Path,
        run: u64,
    ) -> Result<Journals, ExecError> {
        let Some(name) = &plan.ack_journal else {
            return Ok(Journals::default());
        };
        let place = Place {
            rank: group.rank(),
            ranks: u64::from(group.world.size()),
            base: base.to_owned(),
            run,
        };
        let (plan, base) = (plan.clone(), name.clone());
        let headers = group.agree_on_target(move || place.headers(&plan, &base));
        Journals::make(group, name, headers.await?).await
    }

    /// Makes journals whose names begin with `name`, with these headers, job by job.
    ///
    /// # Errors
    /// When one cannot be made on some rank.
    pub async fn make(
        group: &Group<'_>,
        name: &Path,
        headers: Vec<Vec<Header>>,
    ) -> Result<Journals, ExecError> {
        let mut made = Journals::default();
        let all = headers.iter().try_for_each(|job| {
            let mut own = Vec::new();
            let ended: Result<(), String> = job.iter().try_for_each(|header| {
                let path = journal_path(name, header.pass, header.worker);
                own.push(Log::new(Journal::create(path, header)?));
                Ok(())
            });
            made.of.push(own);
            ended
        });
        let agreed = group.agree(all).await;
        if agreed.is_err() {
            made.of.drain(..).flatten().for_each(Log::discard);
        }
        agreed.map(|()| made)
    }

    /// The journals of the job with that position; where all have the same, they are those of the
    /// first.
    pub fn of(&self, job: u32) -> Vec<Log> {
        let own = self.of.get(job as usize).or(self.of.first());
        own.cloned().unwrap_or_default()
    }

    /// Ends the run when one is not complete.
    ///
    /// # Errors
    /// Why it is not.
    pub async fn check(&self, group: &Group<'_>) -> Result<(), ExecError> {
        // This is the same on all ranks.
        if self.of.is_empty() {
            return Ok(());
        }
        let trouble = self.of.iter().flatten().find_map(Log::trouble);
        group.agree(trouble.map_or(Ok(()), Err)).await
    }
}

/// The common properties of the journals of a rank.
struct Place {
    rank: Rank,
    ranks: u64,
    base: PathBuf,
    run: u64,
}

impl Place {
    fn headers(&self, plan: &JobsPlan, name: &Path) -> Result<Vec<Vec<Header>>, String> {
        let ranks = self.ranks;
        let writes = |job: &&JobPlan| job.pattern.directions.write;
        let writers = plan.rounds.iter().flatten().filter(writes);
        let workers: u64 = writers.map(|job| u64::from(job.numjobs) * ranks).sum();
        let mut names = BTreeSet::new();
        let mut before = 0;
        let rounds = plan.rounds.iter().enumerate();
        let jobs = rounds.flat_map(|(number, jobs)| jobs.iter().map(move |job| (number, job)));
        let mut headers = Vec::new();
        for (index, (number, job)) in (0..).zip(jobs) {
            let mut own = Vec::new();
            if writes(&job) {
                self.check(job, name)?;
                for jobnum in job.workers_of(self.rank) {
                    own.push(Header {
                        run: key(&[self.run, number as u64]),
                        directory: self.base.clone(),
                        pass: 0,
                        worker: before + jobnum,
                        workers,
                        block: job.verify.as_ref().map_or(0, |verify| verify.interval),
                        size: 0,
                        layout: Layout::PerWorker,
                        small: None,
                        named: self.files(job, jobnum, &mut names)?,
                        mark: mark(index, jobnum),
                    });
                }
                before += u64::from(job.numjobs) * ranks;
            }
            headers.push(own);
        }
        Ok(headers)
    }

    /// Checks that journals can cover the writes of `job`.
    fn check(&self, job: &JobPlan, name: &Path) -> Result<(), String> {
        if !find(job).moves_data {
            let (job, engine) = (&job.name, &job.engine);
            return Err(format!(
                "job '{job}': --ack-journal needs an engine that writes data, but ioengine={engine} does not"
            ));
        }
        let mut directories = job.files.directories();
        directories.try_for_each(|directory| ack::check_place(name, &self.base.join(directory)))
    }

    /// The files of a worker, where nothing is yet.
    fn files(
        &self,
        job: &JobPlan,
        jobnum: u64,
        names: &mut BTreeSet<PathBuf>,
    ) -> Result<Vec<NamedFile>, String> {
        let one = |file| {
            let path = file_path(job, jobnum, file);
            let whole = self.base.join(&path);
            let shown = format!("job '{}': --ack-journal: {}", job.name, whole.display());
            if !layout::is_missing(&whole) {
                return Err(format!(
                    "{shown} already exists, and its content is unknown: remove it"
                ));
            }
            if !names.insert(whole) {
                return Err(format!("{shown} is written by two jobs"));
            }
            let (from, length) = job.files.part(jobnum, file_size(job, jobnum, file), 0);
            Ok(NamedFile { path, from, length })
        };
        (0..job.files.count).map(one).collect()
    }
}
