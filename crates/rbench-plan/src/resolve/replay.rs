//! Checks of `rbench replay`.

use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rbench_core::Nanos;

use super::PlanError;
use crate::replay::{Pace, ReplayPlan};
use crate::spec::{Common, Replay};
use crate::trace::names::Names;
use crate::trace::{Format, Reading};

/// Most parallel copies.
const COPIES_MAX: u32 = 100_000;

pub(super) fn resolve(replay: &Replay, common: &Common) -> Result<ReplayPlan, PlanError> {
    refuse_if! {
        replay.traces.is_empty() => "rbench replay needs a trace";
        common.shift.is_some() =>
            "--shift has no effect on a replay, whose trace assigns the operations: remove it";
    }
    let pace = match (replay.as_fast_as_possible, replay.time_scale) {
        (true, Some(_)) => {
            refuse!("--as-fast-as-possible and --time-scale cannot be combined")
        }
        (true, None) => Pace::AsFastAsPossible,
        (false, speed) => {
            let speed = speed.unwrap_or(1.0);
            if !(speed.is_finite() && (0.001..=1000.0).contains(&speed)) {
                refuse!("--time-scale {speed} is not in the range 0.001 to 1000");
            }
            Pace::Recorded(speed)
        }
    };
    let copies = replay.copies.unwrap_or(1);
    refuse_if! {
        copies == 0 || copies > COPIES_MAX =>
            "--copies {copies} is not in the range 1 to {COPIES_MAX}";
        replay.time_unit.is_some_and(|unit| unit == Nanos(0)) => "--time-unit must be more than 0";
    }
    if let (Some(_), Some(format)) = (replay.time_unit, replay.format)
        && format != Format::Iolog
    {
        let name = format.name();
        refuse!("--time-unit applies to fio's logs only: {name} has a fixed unit of time");
    }
    Ok(ReplayPlan {
        traces: replay.traces.clone(),
        format: replay.format,
        reading: Reading {
            names: Names::below(absolute("--below", replay.below.as_deref())?),
            unit: replay.time_unit.unwrap_or(Nanos::MICROSECOND),
            cwd: absolute("--cwd", replay.cwd.as_deref())?.map(<[u8]>::to_vec),
        },
        strict: replay.strict,
        pace,
        copies,
    })
}

/// Checks a directory of the trace, which need not exist here.
fn absolute<'p>(flag: &str, path: Option<&'p Path>) -> Result<Option<&'p [u8]>, PlanError> {
    match path {
        Some(path) if !path.is_absolute() => {
            let shown = path.display();
            refuse!(
                "{flag} {shown} is not an absolute path: give the path of a directory in the trace"
            )
        }
        path => Ok(path.map(|path| path.as_os_str().as_bytes())),
    }
}
