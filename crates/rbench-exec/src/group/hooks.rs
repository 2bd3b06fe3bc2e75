//! Commands of the user's around each phase, on every host by its first rank.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::Signal;
use rbench_plan::spec::CommandOptions;
use rbench_sys::background::{Background, CommandEnd, Start};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

use super::{ExecError, Group};

/// Time between checks whether a command has ended.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Time for a process to end after it was asked to.
const LAST_BREATH: Duration = Duration::from_secs(2);

/// The commands around the phases of a run.
#[derive(Debug, Default)]
pub struct PhaseHooks {
    pub(crate) commands: CommandOptions,
    run: String,
    /// Passes that count.
    iterations: u32,
    /// Working directory of the run.
    directory: RefCell<PathBuf>,
    /// Phases until now.
    number: Cell<u32>,
    /// Failures after phases that were not taken yet.
    pub warnings: RefCell<Vec<String>>,
}

/// A phase with commands around it.
#[derive(Debug, Clone, Copy)]
pub struct HookedPhase<'p> {
    /// Its name, for machines.
    pub name: &'p str,
    /// Its name, for people.
    pub label: &'p str,
    /// The pass, from 0.
    pub iteration: u32,
}

impl PhaseHooks {
    /// The commands of the run with that id and this many passes that count, which works in
    /// `directory` unless that is changed.
    pub fn new(
        commands: CommandOptions,
        run: &str,
        iterations: u32,
        directory: &Path,
    ) -> PhaseHooks {
        PhaseHooks {
            commands,
            run: run.to_owned(),
            iterations,
            directory: RefCell::new(directory.to_owned()),
            ..PhaseHooks::default()
        }
    }

    /// The run works in this directory.
    pub fn work_in(&self, directory: &Path) {
        *self.directory.borrow_mut() = directory.to_owned();
    }

    /// A phase begins that is reported.
    pub fn count(&self) {
        self.number.set(self.number.get().saturating_add(1));
    }

    fn environment(&self, host: &str, phase: HookedPhase<'_>) -> Vec<(&'static str, OsString)> {
        // Passes that do not count have numbers after those of all that may.
        let iteration = match phase.iteration < self.iterations {
            true => phase.iteration.saturating_add(1),
            false => 0,
        };
        vec![
            ("RBENCH_PHASE", phase.name.into()),
            ("RBENCH_PHASE_LABEL", phase.label.into()),
            ("RBENCH_PHASE_NUMBER", self.number.get().to_string().into()),
            ("RBENCH_ITERATION", iteration.to_string().into()),
            ("RBENCH_RUN_ID", self.run.clone().into()),
            (
                "RBENCH_DIRECTORY",
                self.directory.borrow().clone().into_os_string(),
            ),
            ("RBENCH_HOST", host.into()),
        ]
    }
}

impl Group<'_> {
    /// On the first rank of each host: runs the command of `option` and waits for its end; the
    /// inner error is a sentence. What it has left running ends when the value is dropped.
    /// Nothing to do on other ranks, and when a stop was asked for.
    pub async fn run_hook(
        &self,
        option: &str,
        command: &str,
        phase: HookedPhase<'_>,
    ) -> Result<Result<Option<Background>, String>, ExecError> {
        if !self.is_leader() || self.stop_flag().is_raised() {
            return Ok(Ok(None));
        }
        // With several hosts, messages name this one.
        let host = self.host_name();
        let on = match self.host_names.len() {
            1 => format!(" on {host}"),
            _ => String::new(),
        };
        let failed = |why: &str| {
            Err(format!(
                "{option} of {}{on}: '{command}' {why}",
                phase.label
            ))
        };
        let (sender, mut ended) = oneshot::channel();
        // Nobody may wait for it any more.
        let when_ended = move |end: CommandEnd| drop(sender.send(end));
        let start = Start {
            command,
            environment: &self.probes.hooks.environment(host, phase),
            prefix: format!("{host}: "),
        };
        let background = match Background::start_as(&start, when_ended) {
            Ok(background) => background,
            Err(error) => return Ok(failed(&format!("cannot be started: {error}"))),
        };
        let (stop, patience) = (
            self.stop_flag(),
            Duration::from(self.probes.hooks.commands.patience()),
        );
        let deadline = Instant::now() + patience;
        let end = async {
            loop {
                tokio::select! {
                    end = &mut ended => return end.ok(),
                    () = sleep(LOOK_EVERY) => {
                        if stop.is_raised() || Instant::now() >= deadline {
                            return None;
                        }
                    }
                }
            }
        };
        match self.attend(end, || 0).await? {
            Some(end) => Ok(match why(&end) {
                None => Ok(Some(background)),
                Some(why) => failed(&why),
            }),
            None => {
                self.attend(put_an_end_to(background), || 0).await?;
                // A stop by request needs no message.
                Ok(match stop.is_raised() {
                    true => Ok(None),
                    false => failed(&format!(
                        "did not finish within {} s (--hook-timeout) and was stopped",
                        patience.as_secs_f64()
                    )),
                })
            }
        }
    }
}

/// Asks it to end, and kills what is left of it after a while.
async fn put_an_end_to(background: Background) {
    background.ask_to_end();
    let patience = Instant::now() + LAST_BREATH;
    while background.has_processes() && Instant::now() < patience {
        sleep(LOOK_EVERY).await;
    }
}

/// The reason why it is not a success.
fn why(end: &CommandEnd) -> Option<String> {
    let why = match (end.status, end.signal) {
        (Some(0), _) => return None,
        (Some(status), _) => format!("failed with exit status {status}"),
        (None, Some(number)) => match Signal::try_from(number) {
            Ok(signal) => format!("was killed by {signal}"),
            Err(_) => format!("was killed by signal {number}"),
        },
        (None, None) => "ended with an unknown status".to_owned(),
    };
    Some(match &end.said {
        Some(said) => format!("{why}: {said}"),
        None => why,
    })
}
