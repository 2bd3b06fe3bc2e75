//! Blocking work beside the control plane. Work that calls the target is watched like the workers:
//! calls that do not return are reported, and given up at `--op-timeout` or after a signal.

use std::collections::BTreeMap;
use std::time::Duration;

use rbench_sys::waiting::{family, times_slept, waiting};

use super::{ExecError, Group, StopReason};
use crate::overdue::{Checks, LONG, Observed, Overdue};
use crate::thread::{Helper, in_thread};

impl Group<'_> {
    /// Returns the longest time of a call (`--op-timeout`).
    pub fn operation_limit(&self) -> Option<Duration> {
        self.limits.operation.map(Duration::from)
    }

    /// Reports a call of this rank that has not returned for long; `who` precedes the rank. If it
    /// is over its limit, the run ends, and nothing on the target is touched any more.
    pub fn tell_overdue(&self, who: &str, overdue: &Overdue) {
        let place = format!("{who}rank {} on {}", self.rank().0, self.host_name());
        if !overdue.over {
            self.trouble(&format!("{place}: {overdue}"));
            return;
        }
        let limit = self.operation_limit();
        let why = match limit.is_some_and(|limit| overdue.span >= limit) {
            true => "--op-timeout",
            false => "the run is to stop",
        };
        let sentence = format!("{overdue} ({why})");
        self.trouble(&format!("{place}: {sentence} and is abandoned"));
        self.touch_no_more(&sentence);
        self.ask_to_stop(StopReason::Stuck);
    }

    /// From now on this rank touches nothing on the target: a call there has not returned.
    pub fn touch_no_more(&self, why: &str) {
        let mut stuck = self.control.stuck.borrow_mut();
        stuck.get_or_insert_with(|| why.to_owned());
    }

    /// Returns whether a call was given up on any rank, whatever the first reason to stop: the same
    /// answer on every rank. If so, no rank touches anything on the target any more.
    pub async fn any_stuck(&self) -> Result<bool, ExecError> {
        let mine = self.control.stuck.borrow().is_some();
        let any = self.any(mine).await?;
        if any {
            self.touch_no_more("a call on another rank has not returned");
        }
        Ok(any)
    }

    /// The reason why nothing is to be touched on this host any more: its mount is dead, or a call
    /// has not returned.
    pub fn untouchable(&self) -> Option<String> {
        if let Some(dead) = self.probes.mounts.dead() {
            return Some(format!("{} no longer answers", dead.mount));
        }
        let stuck = self.control.stuck.borrow();
        let waits = "removing it would wait for the same file system";
        stuck.as_ref().map(|_| waits.to_owned())
    }

    /// Turns a refusal of the set-up into misuse: the plan cannot be done on these hosts. A call that
    /// was given up is not misuse.
    pub fn as_usage(&self, error: ExecError) -> ExecError {
        match error {
            ExecError::SetUp(message) if self.control.stuck.borrow().is_none() => {
                ExecError::Usage(message)
            }
            other => other,
        }
    }

    /// Does blocking work that does not call the target; an error inside says that there was no
    /// thread.
    pub async fn in_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<T, String>, ExecError> {
        self.attend(in_thread(work), || 0).await
    }

    /// Like [`Group::in_thread`], for at most this time; `None`: it takes longer, and its thread is
    /// abandoned.
    pub async fn within<T: Send + 'static>(
        &self,
        longest: Duration,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<Result<T, String>>, ExecError> {
        let done = tokio::time::timeout(longest, in_thread(work));
        Ok(self.attend(done, || 0).await?.ok())
    }

    /// Like [`Group::in_thread`], on all ranks, which agree on its success.
    ///
    /// # Errors
    /// When it failed on some rank, or the ranks cannot talk.
    pub async fn agree_in_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, ExecError> {
        let done = self.in_thread(work).await?.and_then(|done| done);
        self.agree(done).await
    }

    /// Does work that calls the target; `done` returns the items that it has done. An error inside
    /// says why there is no result: there was no thread, a call was given up, or an earlier one of
    /// this rank was.
    pub async fn on_target<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl Fn() -> u64,
    ) -> Result<Result<T, String>, ExecError> {
        self.watched(work, done, true).await
    }

    /// Like [`Group::on_target`], for work on all file systems of the host, which may rightly take
    /// long: calls that do not return are reported, and given up only after a signal.
    pub async fn on_host<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<T, String>, ExecError> {
        self.watched(work, || 0, false).await
    }

    async fn watched<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
        done: impl Fn() -> u64,
        is_limited: bool,
    ) -> Result<Result<T, String>, ExecError> {
        let stuck = self.control.stuck.borrow().clone();
        let mut helper = match stuck.map_or_else(|| Helper::start(work), Err) {
            Ok(helper) => helper,
            Err(why) => return Ok(Err(why)),
        };
        let watched = async {
            let mut checks = Checks::start(self.operation_limit());
            let mut timer = checks.timer();
            let mut threads = BTreeMap::new();
            loop {
                tokio::select! {
                    biased;
                    result = helper.result() => return result,
                    _ = timer.tick() => {
                        let gap = checks.gap();
                        if let Some(thread) = helper.thread() {
                            let limit = self.operation_limit().filter(|_| is_limited);
                            let limit = self.limit_now(limit);
                            self.check_family(thread, &mut threads, (gap, limit))?;
                        }
                    }
                }
            }
        };
        self.attend(watched, done).await
    }

    /// Returns the longest time of a call from now on, with this limit as long as there is no signal.
    fn limit_now(&self, limit: Option<Duration>) -> Option<Duration> {
        match self.stop_reason() {
            // The user does not wait for one call.
            Some(StopReason::Signal(_)) => Some(limit.map_or(LONG, |limit| limit.min(LONG))),
            _ => limit,
        }
    }

    /// Checks a helper thread and those that it has started, `gap` after the last check.
    fn check_family(
        &self,
        founder: i32,
        threads: &mut BTreeMap<i32, Observed>,
        (gap, limit): (Duration, Option<Duration>),
    ) -> Result<(), String> {
        for thread in family(founder) {
            let observed = threads.entry(thread).or_default();
            // Successive calls may look the same, such as reads of one file.
            observed.look(times_slept(thread), waiting(thread), gap);
            let Some(overdue) = observed.overdue(limit) else {
                continue;
            };
            self.tell_overdue("", &overdue);
            if overdue.over {
                let stuck = self.control.stuck.borrow().clone();
                return stuck.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    /// Like [`Group::on_target`], on all ranks, which agree on its success.
    ///
    /// # Errors
    /// When it failed on some rank, or the ranks cannot talk.
    pub async fn agree_on_target<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, ExecError> {
        let done = self.on_target(work, || 0).await?.and_then(|done| done);
        self.agree_on_calls(done).await
    }

    /// Like [`Group::agree_on_target`], where only the ranks work that are to do it `here`.
    ///
    /// # Errors
    /// The same.
    pub async fn agree_on_target_if<T: Send + 'static>(
        &self,
        here: bool,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<Option<T>, ExecError> {
        let done = match here {
            true => self.on_target(work, || 0).await?.and_then(|done| done),
            false => return self.agree_on_calls(Ok(None)).await,
        };
        self.agree_on_calls(done.map(Some)).await
    }

    /// Agrees on the success of calls; if they failed on some rank, all learn whether one was given
    /// up.
    pub async fn agree_on_calls<T>(&self, done: Result<T, String>) -> Result<T, ExecError> {
        let agreed = self.agree(done).await;
        if matches!(agreed, Err(ExecError::SetUp(_))) {
            self.any_stuck().await?;
        }
        agreed
    }
}
