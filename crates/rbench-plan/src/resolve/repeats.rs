//! How often the phases are passed over: a number of times, or until their rates are
//! known well enough.

use super::{PlanError, at_least_one, nonzero_time};
use crate::spec::{self, Workload};
use rbench_core::Nanos;

/// Iterations below which no interval can be told.
const ITERATIONS_MIN: u32 = 3;
/// `--max-iterations` where it is not given.
const ITERATIONS_MAX: u32 = 30;
/// `--precision` where it is not given.
const PRECISION: f64 = 0.03;

/// When iterations are enough; decided by what they have yielded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Half of the confidence interval of each row's rate, as a share of it, at most.
    pub precision: f64,
    /// After so long no further iteration begins; `None`: however long it takes.
    pub time: Option<Nanos>,
}

/// The iterations that count: their number, or the most of them and when they are
/// enough.
pub(super) fn of(
    workload: &Workload,
    common: &spec::Common,
) -> Result<(u32, Option<Until>), PlanError> {
    let spec::AutoIterations {
        wanted,
        precision,
        max_iterations,
        max_time,
    } = common.auto;
    if wanted {
        let most = max_iterations.unwrap_or(ITERATIONS_MAX);
        if most < ITERATIONS_MIN {
            refuse!(
                "--max-iterations {most} is too few: an interval needs at least {ITERATIONS_MIN} iterations"
            );
        }
        let until = Until {
            precision: precision.unwrap_or(PRECISION),
            time: nonzero_time("--max-time", max_time)?,
        };
        return Ok((most, Some(until)));
    }
    for (flag, given) in [
        ("--precision", precision.is_some()),
        ("--max-iterations", max_iterations.is_some()),
        ("--max-time", max_time.is_some()),
    ] {
        if given {
            refuse!("{flag} needs --iterations auto");
        }
    }
    let flag = match workload {
        Workload::Mdtest(_) | Workload::Ior(_) => "-i",
        Workload::Meta(_)
        | Workload::Ops(_)
        | Workload::Io(_)
        | Workload::Fio(_)
        | Workload::Find(_)
        | Workload::Mix(_)
        | Workload::Replay(_) => "--iterations",
    };
    let iterations = at_least_one(flag, common.iterations.unwrap_or(1))?;
    Ok((iterations, None))
}
