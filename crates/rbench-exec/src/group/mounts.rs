//! Mounts that no longer answer: asking, telling rank 0 and people, and ending the run.

use std::path::PathBuf;
use std::time::Duration;

use rbench_comm::Combine;
use rbench_core::{Failure, Rank};
use rbench_sys::mountinfo;
use tokio::time::sleep;

use super::{ExecError, Group, StopReason, Word, fitting};
use crate::mounts::{DeadMount, Doubt, PATIENCE, Verdict, WatchedMount};

/// Time between checks whether the answer has come.
const LOOK_EVERY: Duration = Duration::from_millis(5);

impl Group<'_> {
    /// From now on the mounts of these directories are asked when operations fail. Every rank
    /// calls this.
    pub async fn watch_mounts(&self, dirs: Vec<PathBuf>) -> Result<(), ExecError> {
        let plain = |dir: PathBuf| WatchedMount { dir, mount: None };
        let without = dirs.iter().cloned().map(plain).collect();
        let found = self.within(PATIENCE, move || find(dirs)).await?;
        let found = found.and_then(Result::ok).unwrap_or(without);
        self.probes.mounts.watch(found);
        Ok(())
    }

    /// An operation of this rank has failed: the mount is asked if that says that it is lost.
    pub fn doubt_mount(&self, failure: &Failure) {
        self.probes.mounts.note(failure, self.worked_for());
        if failure.kind.says_the_mount_is_lost() {
            self.probes.mounts.ask();
        }
    }

    /// Takes the number of operations of this rank that are done and have failed in the phase: the
    /// mount is probed if for some time there were only failures.
    pub(super) fn look_at_failures(&self, done: u64, failed: u64) {
        if self.probes.mounts.only_failures(done, failed) {
            self.probes.mounts.ask();
        }
    }

    /// Takes the verdict of a probe: it has answered, or has not within its time.
    pub(super) fn mount_answered(&self, verdict: Verdict) {
        let lost = self.probes.mounts.answered(verdict);
        let doubt = self.probes.mounts.doubt();
        let Some((mount, answer)) = lost else {
            if let Some(doubt) = doubt.filter(|_| self.probes.mounts.is_failing()) {
                let text = doubt.failure.to_string();
                match self.is_root() {
                    true => self.every_fails(self.rank(), &text),
                    false => self.post(Rank(0), &Word::AllFail(fitting(&text))),
                }
            }
            return;
        };
        let (first, after) = match doubt {
            Some(Doubt { failure, after }) => {
                let Failure { op, path, kind, .. } = failure;
                ([op.name().to_owned(), path, kind.name()], after)
            }
            // It was asked although no operation has failed.
            None => (
                ["statfs".to_owned(), mount.clone(), answer.name()],
                self.worked_for(),
            ),
        };
        let dead = DeadMount {
            host: self.host_name().to_owned(),
            mount,
            answer: answer.name(),
            phase: self.label.borrow().clone(),
            after,
            first,
            at: self.now(),
            rows: Vec::new(),
        };
        if self.is_root() {
            self.hear_of_dead_mount(dead.clone());
        } else {
            self.post(Rank(0), &Word::DeadMount(dead.clone()));
        }
        self.probes.mounts.note_dead(dead);
        if !self.limits.outlives_dead_mounts {
            // Workers of this rank have nothing more to measure; other hosts go on.
            self.phase_stop().abandon();
        }
    }

    /// At rank 0: a host has a dead mount, which is reported once.
    pub fn hear_of_dead_mount(&self, dead: DeadMount) {
        let at = self.now();
        let dead = DeadMount { at, ..dead };
        let text = told(
            &dead,
            self.host_names.len() > 1,
            !self.limits.outlives_dead_mounts,
        );
        if self.probes.mounts.add(dead) {
            self.show.trouble(&text);
        }
    }

    /// At rank 0: every operation of a rank fails, and its mount answers all the same.
    pub(super) fn every_fails(&self, rank: Rank, text: &str) {
        let host = self.host_of[rank.0 as usize];
        let ranks = (0..).zip(&self.host_of).filter(|(_, of)| **of == host);
        // Ranks that have done nothing are not counted.
        let counts = ranks.map(|(rank, _)| rank);
        let counts = counts.filter(|other| self.progress.has_tried(Rank(*other)));
        if self.probes.mounts.every_fails(rank.0, host, counts) {
            let host = self.host_name_of(rank);
            self.show.trouble(&format!(
                "every operation on {host} fails, for example {text}; but its mount answers"
            ));
        }
    }

    /// At the end of a phase: waits for what was asked to answer, so that all that is to be
    /// known of this rank's mount is known. If it is dead and that is to end the run, all ranks
    /// hear of it in [`Group::stopped`], which comes next on all of them.
    pub async fn settle_mounts(&self) -> Result<(), ExecError> {
        // Where nothing is mounted any more, operations fail so fast that a phase may be over
        // before any check.
        if self.probes.mounts.doubt().is_some() {
            self.probes.mounts.ask_if_unmounted();
        }
        let answered = async {
            while self.probes.mounts.is_asked() {
                sleep(LOOK_EVERY).await;
            }
            Ok::<(), ExecError>(())
        };
        self.quietly(answered).await?;
        if self.probes.mounts.dead().is_some() && !self.limits.outlives_dead_mounts {
            self.note_stop(StopReason::DeadMount);
        }
        Ok(())
    }

    /// At the end of a run, on all ranks: if any of them could not go on, checks for a dead mount,
    /// also if no operation of a phase has reported one; rank 0 knows of it afterwards.
    pub async fn examine_mounts_if(&self, broken: bool) -> Result<(), ExecError> {
        if !self.any(broken).await? {
            return Ok(());
        }
        self.probes.mounts.ask();
        self.settle_mounts().await?;
        self.stopped().await?;
        let mine = self.probes.mounts.dead();
        for dead in self.gather(&mine).await?.into_iter().flatten() {
            self.hear_of_dead_mount(dead);
        }
        Ok(())
    }

    /// Before anything is removed, on all ranks: those of a host learn whether any of them
    /// has found its mount dead.
    pub async fn share_dead_mounts(&self) -> Result<(), ExecError> {
        let mine = self.probes.mounts.dead();
        let any = vec![u64::from(mine.is_some())];
        let any = self
            .quietly(self.host.all_reduce(Combine::Max, any))
            .await?;
        if any[0] == 0 {
            return Ok(());
        }
        let all = self.quietly(self.host.all_values(&mine)).await?;
        if let Some(dead) = all.into_iter().flatten().next() {
            self.probes.mounts.note_dead(dead);
        }
        Ok(())
    }
}

/// The message for users.
fn told(dead: &DeadMount, several: bool, ends: bool) -> String {
    let DeadMount {
        host,
        mount,
        answer,
        phase,
        after,
        first: [op, path, error],
        at: _,
        rows: _,
    } = dead;
    let when = match after {
        Some(after) => format!("{:.1} s into {phase}", after.as_secs_f64()),
        None => format!("before {phase}"),
    };
    let then = match (ends, several) {
        (true, true) => "; the run ends when the other hosts finish the phase",
        (true, false) => "; the run ends",
        (false, _) => "; the run continues",
    };
    format!(
        "the mount {mount} on {host} no longer answers ({answer}), {when}: {op} {path}: {error}{then} (--on-dead-mount {})",
        if ends { "stop" } else { "continue" },
    )
}

/// One directory on each mount.
fn find(dirs: Vec<PathBuf>) -> Vec<WatchedMount> {
    let mut all: Vec<WatchedMount> = Vec::new();
    for dir in dirs {
        // A directory that does not exist yet lies where its parent does.
        let mount = dir.ancestors().find_map(|dir| mountinfo::of(dir).ok());
        if mount.is_none() || all.iter().all(|known| known.mount != mount) {
            all.push(WatchedMount { dir, mount });
        }
    }
    all
}
