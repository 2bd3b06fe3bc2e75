//! Logs of I/O: what is replayed, and what is recorded.

use super::super::PlanError;
use crate::iolog::{Replay, Skip};
use crate::jobs::{Directions, JobPlan};
use crate::paths::climbs;
use crate::spec::fio::Settings;

/// The job with what it replays or records.
pub(super) fn replay(
    mut plan: JobPlan,
    s: &Settings,
    readonly: bool,
    notes: &mut Vec<String>,
) -> Result<JobPlan, PlanError> {
    if s.replay.logs.is_empty() {
        if plan.names.is_some() && plan.iolog.is_some() {
            refuse!("write_iolog: an I/O log cannot record this engine's operations on names");
        }
        return Ok(plan);
    }
    if let Some(option) = unfit(&plan, s) {
        refuse!("read_iolog and {option} cannot be combined");
    }
    refuse_if!(plan.names.is_some() => "read_iolog needs an engine that moves data");
    let below = &plan.files.directory;
    let redirect = s.replay.redirect.as_ref();
    if let Some(name) = redirect.filter(|name| !below.as_os_str().is_empty() && climbs(name)) {
        refuse!(
            "replay_redirect: {name} is outside of the directory {}",
            below.display()
        );
    }
    let repeats = plan.pace.loops > 1 || plan.pace.time_based;
    let without = [
        (plan.iolog.take().is_some(), "write_iolog"),
        (repeats, "loops and time_based"),
    ];
    for (_, option) in without.iter().filter(|(given, _)| *given) {
        notes.push(format!("read_iolog ignores {option}, as fio does"));
    }
    let mut skip = s.replay.skip;
    if readonly {
        notes.push("--readonly: writes and trims of the log are left out".to_owned());
        skip = Skip {
            write: true,
            trim: true,
            ..skip
        };
    }
    let checks = s.verify_only == Some(true);
    if let Some(verify) = &mut plan.verify {
        verify.only = checks;
        verify.read_back &= !checks;
        // Only the log knows which of several writes of a block was the last one.
        verify.once = true;
        plan.pattern.repeats = true;
    }
    if checks {
        skip = Skip {
            read: true,
            write: false,
            trim: true,
            sync: true,
        };
    }
    // Its real directions follow from its logs.
    plan.pattern.directions = Directions {
        random: plan.pattern.directions.random,
        ..Directions::READ
    };
    plan.pace.loops = 1;
    plan.pace.time_based = false;
    plan.files.size = (0, 0);
    plan.replay = Some(Replay {
        stalls: s.replay.stalls && !checks,
        below: plan.files.directory.clone(),
        scale: s.replay.scale.max(1),
        align: s.replay.align.max(1),
        skip,
        verify_interval: s.verify_interval,
        ..s.replay.clone()
    });
    Ok(plan)
}

/// An option that says otherwise what is done, or when.
fn unfit(plan: &JobPlan, s: &Settings) -> Option<&'static str> {
    let rates = plan
        .pace
        .rate_iops
        .all()
        .into_iter()
        .chain(plan.pace.rate_bytes.all());
    if rates.into_iter().any(Option::is_some) {
        return Some("rates (use replay_time_scale to set the speed)");
    }
    let parts = plan.verify.as_ref();
    let parts = parts.is_some_and(|v| v.backlog.is_some() || v.trims.is_some() || v.load_state);
    let given = [
        (parts, "verify_backlog, trim_percentage, verify_state_load"),
        (plan.files.fill, "fill_device"),
        (plan.files.create_only, "create_only"),
        (plan.files.unlink_each_loop, "unlink_each_loop"),
        (s.latency_target.is_some(), "latency_target"),
    ];
    let found = given.into_iter().find(|(given, _)| *given);
    found.map(|(_, option)| option)
}
