//! Trims of a job: what its engine has to be able to do, and trims among the writes of a
//! verified job.

use rbench_core::operations::NameEngine;

use super::super::PlanError;
use crate::jobs::{Directions, TrimBacklog};
use crate::spec::fio::Settings;

/// Checks that the engine of a job that trims can do so, and notes the meaning of a trim.
pub(super) fn possible(engine: &str, notes: &mut Vec<String>) -> Result<(), PlanError> {
    if NameEngine::named(engine).is_some() {
        refuse!("ioengine={engine} works on names and cannot trim: use another engine");
    }
    match engine {
        "ftruncate" => refuse!("ioengine=ftruncate cannot trim: use another engine"),
        "null" => {}
        _ => notes.push(
            "a trim punches a hole: fallocate(FALLOC_FL_PUNCH_HOLE|FALLOC_FL_KEEP_SIZE)".to_owned(),
        ),
    }
    Ok(())
}

/// Returns true if missing parts of its files are filled with data before the job: a hole that is
/// punched into nothing frees nothing. fio's engine falloc trims reserved blocks.
pub(super) fn fills(s: &Settings, directions: Directions) -> bool {
    let moves_data = !matches!(s.ioengine.as_deref(), Some("falloc" | "null"));
    s.overwrite
        .unwrap_or(directions.trim && !directions.write && moves_data)
}

/// `trim_percentage` and its companions, in a job that reads back what it writes.
pub(super) fn backlog(
    s: &Settings,
    (reads_back, only): (bool, bool),
    notes: &mut Vec<String>,
) -> Result<Option<TrimBacklog>, PlanError> {
    let percent = s.trim_percentage.unwrap_or(0);
    let every = s.trim_backlog.unwrap_or(0);
    if percent == 0 {
        return Ok(None);
    }
    refuse_if! {
        every > 0 && only =>
            "trim_percentage with verify_only: the blocks that the earlier run trimmed are not known";
    }
    if every == 0 || !reads_back || s.experimental_verify == Some(true) {
        notes.push(without_effect());
        return Ok(None);
    }
    possible(s.ioengine.as_deref().unwrap_or("psync"), notes)?;
    Ok(Some(TrimBacklog {
        percent,
        every,
        batch: match s.trim_backlog_batch {
            None | Some(0) => every,
            Some(batch) => batch,
        },
    }))
}

/// Like [`backlog`], in a job that verifies nothing.
pub(super) fn unverified(s: &Settings, notes: &mut Vec<String>) {
    if s.trim_percentage.unwrap_or(0) > 0 {
        notes.push(without_effect());
    }
}

fn without_effect() -> String {
    "trim_percentage has an effect only with trim_backlog, in a job that writes and reads back \
     its data (verify)"
        .to_owned()
}
