//! Mounts that no longer answer: each rank knows those of its host, and rank 0 those of all hosts.
//!
//! A dead mount is detected by asking it. Failed operations decide when it is asked: one whose
//! error indicates a lost mount, or a series of nothing but failures.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::{Failure, FailureKind, Nanos};
use rbench_sys::mountinfo::{self, MountInfo};
use rbench_sys::space;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until};

use crate::inbox::Inbox;

/// Time for a mount to answer while operations on it fail.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// After an answer it is not asked again for this time.
const ASK_AGAIN: Duration = Duration::from_secs(2);

/// Consecutive checks, half a second apart, with failed operations and none done, after which the
/// mount is asked.
const FAILING_LOOKS: u32 = 2;

/// A directory that the run works in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WatchedMount {
    /// The directory to ask.
    pub dir: PathBuf,
    /// Its mount; `None` if unknown.
    pub mount: Option<MountInfo>,
}

impl WatchedMount {
    /// Returns its mount point, if known.
    fn place(&self) -> String {
        let place = self.mount.as_ref().map_or(&self.dir, |m| &m.mount_point);
        place.display().to_string()
    }

    /// Asks by a call that FUSE and network file systems pass on (statfs), and checks that the
    /// mount is in the kernel's table; `None`: it is alive.
    fn ask(&self) -> Option<Answer> {
        match space(&self.dir) {
            Err(errno) if FailureKind::from(errno).may_be_of_a_lost_mount() => {
                return Some(Answer::Error(errno));
            }
            // A missing directory is an answer of the file system, too.
            Ok(_) | Err(_) => {}
        }
        self.is_unmounted().then_some(Answer::Unmounted)
    }

    /// Returns whether its mount is known and no longer in the kernel's table.
    fn is_unmounted(&self) -> bool {
        let mount = self.mount.as_ref();
        mount.is_some_and(|mount| !mountinfo::is_mounted(mount).unwrap_or(true))
    }
}

/// Answer of a dead mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// statfs(2) on it failed.
    Error(Errno),
    /// No answer within [`PATIENCE`].
    Nothing,
    /// It is no longer mounted.
    Unmounted,
}

impl Answer {
    /// In result files and reports: the error's name, `nothing`, `unmounted`.
    pub fn name(self) -> String {
        match self {
            Answer::Error(errno) => FailureKind::from(errno).name(),
            Answer::Nothing => "nothing".to_owned(),
            Answer::Unmounted => "unmounted".to_owned(),
        }
    }
}

/// A mount that no longer answers on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadMount {
    /// The host.
    pub host: String,
    /// Its mount point.
    pub mount: String,
    /// Its answer: [`Answer::name`].
    pub answer: String,
    /// The running phase, for people.
    pub phase: String,
    /// Time from the phase's start to the first failed operation that led there; `None` before it.
    pub after: Option<Nanos>,
    /// The first failed operation: its name, its path, the name of its error.
    pub first: [String; 3],
    /// Time when rank 0 was informed, on its clock.
    pub at: Nanos,
    /// Failures there, row by row.
    pub rows: Vec<RowErrors>,
}

/// Operations of a row that failed on a dead mount.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowErrors {
    /// The pass over all phases, from 0.
    pub iteration: u32,
    /// The row, for machines.
    pub name: String,
    /// The row, for people.
    pub label: String,
    /// Number of failures, by kind.
    pub kinds: Vec<(FailureKind, u64)>,
}

/// The failed operation that makes a mount suspect.
#[derive(Debug, Clone)]
pub struct Doubt {
    /// The operation.
    pub failure: Failure,
    /// Time after the start of its phase; `None` before it.
    pub after: Option<Nanos>,
}

/// Result of asking the mounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Alive.
    Alive,
    /// Lost: the number of the directory, and its answer.
    Lost(usize, Answer),
}

/// A question in progress.
#[derive(Debug)]
struct Question {
    until: Instant,
    /// The directory being asked.
    at: Arc<AtomicUsize>,
}

/// The mounts of a run as a rank knows them.
#[derive(Default)]
pub struct Mounts {
    watched: RefCell<Vec<WatchedMount>>,
    doubt: RefCell<Option<Doubt>>,
    question: RefCell<Option<Question>>,
    answered: Cell<Option<Instant>>,
    /// Operations done and failed at the last check, and consecutive checks with nothing but
    /// failures.
    seen: Cell<(u64, u64)>,
    failing: Cell<u32>,
    /// The dead mount of this rank's host, if this rank knows one.
    dead: RefCell<Option<DeadMount>>,
    /// At rank 0: dead mounts of all hosts, one for each host.
    found: RefCell<Vec<DeadMount>>,
    /// At rank 0: ranks on which every operation fails, and the hosts for which this was reported.
    all_fail: RefCell<Vec<u32>>,
    told: RefCell<Vec<u32>>,
    answers: Inbox<(Arc<AtomicUsize>, Verdict)>,
}

impl Mounts {
    /// Sets the mounts to ask from now on.
    pub fn watch(&self, watched: Vec<WatchedMount>) {
        *self.watched.borrow_mut() = watched;
    }

    /// Returns whether any of them is known to be no longer mounted.
    pub fn is_one_unmounted(&self) -> bool {
        self.watched.borrow().iter().any(WatchedMount::is_unmounted)
    }

    /// Starts a phase.
    pub fn begin(&self) {
        self.doubt.replace(None);
        self.seen.set((0, 0));
        self.failing.set(0);
        self.all_fail.borrow_mut().clear();
    }

    /// Remembers a failed operation, unless an earlier one said more.
    pub fn note(&self, failure: &Failure, after: Option<Nanos>) {
        let lost = |failure: &Failure| failure.kind.says_the_mount_is_lost();
        let mut doubt = self.doubt.borrow_mut();
        let more = doubt
            .as_ref()
            .is_none_or(|known| lost(failure) && !lost(&known.failure));
        if more {
            let failure = failure.clone();
            *doubt = Some(Doubt { failure, after });
        }
    }

    /// Returns the remembered operation.
    pub fn doubt(&self) -> Option<Doubt> {
        self.doubt.borrow().clone()
    }

    /// Records how many operations of the phase were done and failed until now; returns whether for
    /// some time there were only failures.
    pub fn only_failures(&self, done: u64, failed: u64) -> bool {
        let (done_before, failed_before) = self.seen.replace((done, failed));
        let only = done == done_before && failed > failed_before;
        self.failing.set(match only {
            true => self.failing.get().saturating_add(1),
            false => 0,
        });
        self.is_failing()
    }

    /// Returns whether for some time there were only failures.
    pub fn is_failing(&self) -> bool {
        self.failing.get() >= FAILING_LOOKS
    }

    /// Asks the mounts in a thread of its own, unless they are being asked or have just answered.
    pub fn ask(&self) {
        let now = Instant::now();
        let recent = self.answered.get().is_some_and(|at| now < at + ASK_AGAIN);
        let known = recent || self.is_asked() || self.dead.borrow().is_some();
        let watched = self.watched.borrow().clone();
        if known || watched.is_empty() {
            return;
        }
        let at = Arc::new(AtomicUsize::new(0));
        let (answers, here) = (self.answers.sender(), Arc::clone(&at));
        let thread = std::thread::Builder::new().name("rbench-mount".to_owned());
        let started = thread.spawn(move || {
            let verdict = look(&watched, &here);
            // The run may be over.
            let _ = answers.send((here, verdict));
        });
        if started.is_ok() {
            let until = now + PATIENCE;
            *self.question.borrow_mut() = Some(Question { until, at });
        }
    }

    /// Asks them if one is known to be no longer mounted, even if it has just answered.
    pub fn ask_if_unmounted(&self) {
        if self.is_one_unmounted() {
            self.answered.set(None);
            self.ask();
        }
    }

    /// Returns whether an answer is pending.
    pub fn is_asked(&self) -> bool {
        self.question.borrow().is_some()
    }

    /// Resolves with the answer, or when it has taken too long.
    pub async fn next(&self) -> Verdict {
        let until = self.question.borrow().as_ref().map(|asked| asked.until);
        let late = async {
            match until {
                Some(until) => sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        let answer = async {
            loop {
                if let Some((at, verdict)) = self.answers.next().await
                    && self.is_of_the_question(&at)
                {
                    return verdict;
                }
            }
        };
        tokio::select! {
            biased;
            verdict = answer => verdict,
            () = late => {
                let question = self.question.borrow();
                let at = question.as_ref().map_or(0, |asked| asked.at.load(Ordering::Relaxed));
                Verdict::Lost(at, Answer::Nothing)
            }
        }
    }

    fn is_of_the_question(&self, at: &Arc<AtomicUsize>) -> bool {
        let question = self.question.borrow();
        question
            .as_ref()
            .is_some_and(|asked| Arc::ptr_eq(&asked.at, at))
    }

    /// Takes the answer; returns the lost mount with its answer.
    pub fn answered(&self, verdict: Verdict) -> Option<(String, Answer)> {
        self.question.replace(None);
        self.answered.set(Some(Instant::now()));
        match verdict {
            Verdict::Alive => None,
            Verdict::Lost(number, answer) => {
                let watched = self.watched.borrow();
                Some((watched.get(number)?.place(), answer))
            }
        }
    }

    /// Records that this host's mount is dead.
    pub fn note_dead(&self, dead: DeadMount) {
        self.dead.borrow_mut().get_or_insert(dead);
    }

    /// Returns the dead mount of this host, if this rank knows of it.
    pub fn dead(&self) -> Option<DeadMount> {
        self.dead.borrow().clone()
    }

    /// At rank 0: records a dead mount; returns whether it is the first of its host.
    pub fn add(&self, dead: DeadMount) -> bool {
        let mut found = self.found.borrow_mut();
        let new = found.iter().all(|known| known.host != dead.host);
        if new {
            found.push(dead);
        }
        new
    }

    /// At rank 0: adds the failures on the dead mount of a host; nothing if it has none.
    pub fn add_errors(&self, host: &str, row: RowErrors) {
        let mut found = self.found.borrow_mut();
        let Some(dead) = found.iter_mut().find(|dead| dead.host == host) else {
            return;
        };
        let same =
            |known: &&mut RowErrors| (known.iteration, &known.name) == (row.iteration, &row.name);
        match dead.rows.iter_mut().find(same) {
            Some(known) => add_kinds(&mut known.kinds, &row.kinds),
            None => dead.rows.push(row),
        }
    }

    /// At rank 0: returns the dead mounts of all hosts.
    pub fn found(&self) -> Vec<DeadMount> {
        self.found.borrow().clone()
    }

    /// At rank 0: records that every operation of a rank fails. Returns whether it is so on all
    /// ranks of its `host` that `count`, and is not yet reported.
    pub fn every_fails(&self, rank: u32, host: u32, counts: impl Iterator<Item = u32>) -> bool {
        let mut all = self.all_fail.borrow_mut();
        if !all.contains(&rank) {
            all.push(rank);
        }
        let mut told = self.told.borrow_mut();
        let news = !told.contains(&host) && counts.into_iter().all(|rank| all.contains(&rank));
        if news {
            told.push(host);
        }
        news
    }
}

fn add_kinds(kinds: &mut Vec<(FailureKind, u64)>, more: &[(FailureKind, u64)]) {
    for (kind, count) in more {
        match kinds.iter_mut().find(|(known, _)| known == kind) {
            Some((_, sum)) => *sum += count,
            None => kinds.push((*kind, *count)),
        }
    }
    kinds.sort_unstable_by_key(|(kind, _)| *kind);
}

/// Asks one after the other, and publishes which one it is asking.
fn look(watched: &[WatchedMount], at: &AtomicUsize) -> Verdict {
    for (number, mount) in watched.iter().enumerate() {
        at.store(number, Ordering::Relaxed);
        if let Some(answer) = mount.ask() {
            return Verdict::Lost(number, answer);
        }
    }
    Verdict::Alive
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use rbench_core::OpKind;

    fn dead(host: &str) -> DeadMount {
        DeadMount {
            host: host.to_owned(),
            mount: "/mnt/a b".to_owned(),
            answer: Answer::Error(Errno::ENOTCONN).name(),
            phase: "File creation".to_owned(),
            after: Some(Nanos(7)),
            first: ["create", "/mnt/a b/f", "ENOTCONN"].map(str::to_owned),
            at: Nanos(3),
            rows: Vec::new(),
        }
    }

    #[test]
    fn a_host_has_one_dead_mount_and_its_rows_add_up() {
        let mounts = Mounts::default();
        assert!(mounts.add(dead("a")) && !mounts.add(dead("a")) && mounts.add(dead("b")));
        let row = |kind: Errno, count| RowErrors {
            iteration: 0,
            name: "w".to_owned(),
            label: "W".to_owned(),
            kinds: vec![(kind.into(), count)],
        };
        mounts.add_errors("a", row(Errno::ENOTCONN, 2));
        mounts.add_errors("a", row(Errno::EIO, 3));
        mounts.add_errors("a", row(Errno::ENOTCONN, 5));
        mounts.add_errors("elsewhere", row(Errno::EIO, 1));
        let found = mounts.found();
        let expect = [(Errno::EIO.into(), 3), (Errno::ENOTCONN.into(), 7)];
        assert_eq!(found[0].rows.len(), 1);
        assert_eq!(found[0].rows[0].kinds, expect);
        assert!(found[1].rows.is_empty());
    }

    #[test]
    fn only_failures_for_some_time_are_a_reason_to_ask() {
        let mounts = Mounts::default();
        let looks = [
            (5, 0),
            (5, 1),
            (6, 2),
            (6, 3),
            (6, 3),
            (6, 4),
            (6, 9),
            (7, 9),
        ];
        let found = looks.map(|(done, failed)| mounts.only_failures(done, failed));
        let expect = [false, false, false, false, false, false, true, false];
        assert_eq!(found, expect);
    }

    #[test]
    fn what_says_that_the_mount_is_lost_is_remembered_before_other_failures() {
        let mounts = Mounts::default();
        let failure = |errno: Errno| Failure::new(OpKind::Stat, format!("{errno}"), errno);
        for errno in [Errno::ENOENT, Errno::EIO, Errno::ESTALE, Errno::ENOTCONN] {
            mounts.note(&failure(errno), None);
        }
        let doubt = mounts.doubt().expect("one was noted");
        assert_eq!(doubt.failure, failure(Errno::ESTALE));
    }

    #[test]
    fn a_directory_that_is_not_there_is_no_lost_mount_and_one_that_is_not_mounted_is() {
        let watched = |dir: &str, mount| WatchedMount {
            dir: PathBuf::from(dir),
            mount,
        };
        let root = mountinfo::of(Path::new("/")).expect("/ is there");
        let gone = MountInfo {
            mount_point: "/there/is/no/such/directory".into(),
            ..root.clone()
        };
        let there = [
            watched("/", Some(root.clone())),
            watched("/there/is/no/such/directory", Some(root)),
            watched("/", None),
        ];
        let at = AtomicUsize::new(0);
        assert_eq!(look(&there, &at), Verdict::Alive);
        assert_eq!(at.load(Ordering::Relaxed), 2);
        let one_is_gone = [watched("/", None), watched("/", Some(gone))];
        assert_eq!(look(&one_is_gone, &at), Verdict::Lost(1, Answer::Unmounted));
    }
}
