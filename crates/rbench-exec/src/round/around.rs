//! The steps around a phase, untimed: a pause, and the user's commands.

use std::time::Duration;

use rbench_core::Nanos;
use rbench_sys::background::Background;
use rbench_sys::command;
use tokio::time::Instant;

use crate::group::{ExecError, Group, HookedPhase};
use crate::phase::{Before, Phase};
use crate::target::gather_texts;

/// Does what comes before a phase; a stop ends the pause.
pub(super) async fn go_before(
    group: &Group<'_>,
    before: &Before,
) -> Result<Result<(), String>, ExecError> {
    if before.pause > Nanos(0) {
        group.step("pausing");
        let stop = group.stop_flag();
        let end = Instant::now() + Duration::from(before.pause);
        let pause = async {
            while Instant::now() < end && !stop.is_raised() {
                let left = end - Instant::now();
                tokio::time::sleep(left.min(Duration::from_millis(100))).await;
            }
        };
        group.attend(pause, || 0).await?;
    }
    // After a request to stop, no further command is waited for.
    let stopped = group.stop_flag().is_raised();
    match before.command.clone().filter(|_| !stopped) {
        Some(text) => {
            let stop = group.stop_flag();
            let done = group.in_thread(move || command::run(&text, &|| stop.is_raised()).result);
            Ok(done.await?.and_then(|result| result))
        }
        None => Ok(Ok(())),
    }
}

/// On every host runs what `--before-phase` asks for; all ranks wait for all of them. What of it
/// still runs ends when the value is dropped.
///
/// # Errors
/// When it failed on some host (the same error on every rank), or the ranks cannot talk.
pub(super) async fn before_phase(
    group: &Group<'_>,
    phase: &Phase,
) -> Result<Option<Background>, ExecError> {
    let Some(of) = hooked(phase) else {
        return Ok(None);
    };
    group.probes.hooks.count();
    let Some(command) = &group.probes.hooks.commands.before else {
        return Ok(None);
    };
    group.step("running --before-phase");
    let ended = group.run_hook("--before-phase", command, of).await?;
    group.agree(ended).await
}

/// Like [`before_phase`], for `--after-phase`, when the phase has come to its end. A failure
/// becomes a warning.
pub(super) async fn after_phase(
    group: &Group<'_>,
    phase: &Phase,
    stopped: bool,
) -> Result<(), ExecError> {
    let hooks = &group.probes.hooks;
    let (Some(command), Some(of), false) = (&hooks.commands.after, hooked(phase), stopped) else {
        return Ok(());
    };
    group.step("running --after-phase");
    let ended = group.run_hook("--after-phase", command, of).await?;
    let failed = ended.err();
    let failed = gather_texts(group, failed.into_iter().collect()).await?;
    hooks.warnings.borrow_mut().extend(failed);
    Ok(())
}

fn hooked(phase: &Phase) -> Option<HookedPhase<'_>> {
    Some(HookedPhase {
        name: phase.before.name.as_deref()?,
        label: &phase.label,
        iteration: phase.iteration,
    })
}
