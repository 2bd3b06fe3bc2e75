//! The plan of a series as text: its runs and the expected duration.

use rbench_core::units::{counted, human_nanos};
use rbench_plan::Plan;
use rbench_plan::estimate::{BYTES_PER_S, OPERATIONS_PER_S, estimate_s};
use rbench_plan::series::Cell;

use super::course::Outline;

/// One line for each cell, then the total time.
pub fn text(series: &Outline, cells: &[(&Cell, Plan)]) -> String {
    let mut out = String::new();
    let mut all = 0.0;
    for remark in &series.remarks {
        out.push_str(&format!("# {remark}\n"));
    }
    for (cell, plan) in cells {
        let time = estimate_s(plan).min(series.most_s.unwrap_or(f64::INFINITY));
        all += time;
        let words: Vec<_> = cell
            .words
            .iter()
            .map(|word| word.to_string_lossy())
            .collect();
        out.push_str(&format!(
            "# {}: {}, about {}\n",
            cell.name,
            counted(plan.ranks.into(), "rank"),
            shown(time)
        ));
        out.push_str(&format!("rbench {}\n", words.join(" ")));
    }
    if let Some(most) = series.most_s {
        out.push_str(&format!(
            "# assuming that no phase takes longer than the stonewall, {}\n",
            shown(most)
        ));
    }
    for left in &series.result.left_out {
        out.push_str(&format!("# left out: {}: {}\n", left.name, left.why));
    }
    out.push_str(&format!(
        "# {}, an estimate of {}, assuming {OPERATIONS_PER_S} operations a second of each worker and {:.0} \
         MiB/s of each host; nothing was run\n",
        counted(cells.len() as u64, "cell"),
        shown(all),
        BYTES_PER_S / 1_048_576.0,
    ));
    out
}

/// Formats a time in seconds, minutes or hours.
pub fn shown(seconds: f64) -> String {
    match seconds {
        ..120.0 => human_nanos(seconds * 1e9),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}
