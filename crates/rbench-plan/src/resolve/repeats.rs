//! Number of passes over the phases: fixed, or until their rates are known with
//! enough precision.

use super::{PlanError, at_least_one, nonzero_time};
use crate::spec::{self, Workload};
use rbench_core::Nanos;

/// Least number of iterations for a confidence interval.
const ITERATIONS_MIN: u32 = 3;
/// Default of `--max-iterations`.
const ITERATIONS_MAX: u32 = 30;
/// Default of `--precision`.
const PRECISION: f64 = 0.03;

/// Rule by which enough iterations were done, from their results.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Until {
    /// Most permitted half width of the confidence interval of each row's rate, as a
    /// share of the rate.
    pub precision: f64,
    /// Time after which no further iteration starts; `None`: no limit.
    pub time: Option<Nanos>,
}

/// The counted iterations: their number, or the most of them with the rule for
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
        refuse_if! {
            most < ITERATIONS_MIN =>
                "--max-iterations {most} is too few: an interval needs at least {ITERATIONS_MIN} iterations";
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
        refuse_if!(given => "{flag} needs --iterations auto");
    }
    let flag = match workload {
        Workload::Mdtest(_) | Workload::Ior(_) => "-i",
        _ => "--iterations",
    };
    let iterations = at_least_one(flag, common.iterations.unwrap_or(1))?;
    Ok((iterations, None))
}
