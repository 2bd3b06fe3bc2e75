//! The charts of an operation: latency by percentile, rate over time, latency over
//! time.

use rbench_core::units::human_nanos;

use super::svg::{Axis, Content, chart};
use crate::hist::Hist;
use crate::schema::PhaseResult;

/// Most points of a percentile curve.
const POINTS: u32 = 10;
/// Least values of which a distribution or a course is drawn.
const LEAST: u64 = 10;

/// A chart with the names of its lines, in the order of their colours.
pub struct Chart {
    /// What it shows, on which axes.
    pub title: String,
    /// Names of lines.
    pub keys: Vec<String>,
    /// Names of marks, numbered from 1 in the chart.
    pub marks: Vec<String>,
    /// The element `svg`.
    pub svg: String,
}

/// Latency by percentile of the iterations of an operation, percentiles as far
/// apart as their distance to 100 %: each line ends with its maximum. `None` with
/// too few values.
pub fn percentiles(phases: &[&PhaseResult]) -> Option<Chart> {
    let mut keys = Vec::new();
    let mut lines = Vec::new();
    for phase in phases {
        let nth = phase.iteration.saturating_add(1);
        let times = [
            ("service time", Some(&phase.latency.service)),
            ("response time", phase.latency.response.as_ref()),
        ];
        for (name, hist) in times {
            let Some(points) = hist.and_then(curve) else {
                continue;
            };
            keys.push(match phases.len() {
                1 => name.to_owned(),
                _ => format!("{name}, iteration {nth}"),
            });
            lines.push((lines.len(), points));
        }
    }
    let points = || lines.iter().flat_map(|(_, points)| points);
    let low = points().map(|(_, ns)| *ns).fold(f64::INFINITY, f64::min);
    let high = points().map(|(_, ns)| *ns).fold(0.0, f64::max);
    let nines = points().map(|(nines, _)| *nines).fold(1.0, f64::max);
    if lines.is_empty() {
        return None;
    }
    let y = Axis::log(low, high, human_nanos);
    let x = Axis {
        range: 0.0..nines,
        ticks: (0..=nines as u32).map(f64::from).collect(),
        label: Box::new(percentile),
    };
    let lines = lines
        .into_iter()
        .map(|(n, points)| {
            (
                n,
                points.into_iter().map(|(x, ns)| (x, ns.log10())).collect(),
            )
        })
        .collect();
    Some(Chart {
        title: "Latency by percentile".to_owned(),
        keys,
        marks: Vec::new(),
        svg: chart(
            &x,
            &y,
            &Content {
                lines,
                ..Content::default()
            },
        ),
    })
}

/// `0%`, `90%`, `99%`, `99.9%` by the number of nines.
fn percentile(nines: f64) -> String {
    match nines.round() as i32 {
        0 => "0%".to_owned(),
        1 => "90%".to_owned(),
        n => format!(
            "99{}{}%",
            if n > 2 { "." } else { "" },
            "9".repeat((n - 2).max(0) as usize)
        ),
    }
}

/// Points (nines, ns) of a distribution, up to the largest value, which stands
/// where a single one of all lies; none below 1 ns.
fn curve(hist: &Hist) -> Option<Vec<(f64, f64)>> {
    if hist.count < LEAST {
        return None;
    }
    let decoded = hist.latency().ok()?;
    let last = (hist.count as f64).log10();
    let steps = (last * f64::from(POINTS)).ceil() as u32;
    let at = |i: u32| {
        let nines = (f64::from(i) / f64::from(POINTS)).min(last);
        let quantile = 1.0 - 10_f64.powf(-nines);
        // The last point is that of a single value: the largest.
        let ns = match nines < last {
            true => decoded.value_at_quantile(quantile).min(hist.max_ns),
            false => hist.max_ns,
        };
        (nines, ns.max(1) as f64)
    };
    Some((0..=steps).map(at).collect())
}

/// Operations each second over time, with marks. `None` with too few of them.
pub fn rate(phase: &PhaseResult) -> Option<Chart> {
    let course = Course::of(phase)?;
    let slices = phase.timeline.iter();
    let per_s = |items: u64, at: f64| items as f64 / course.width(at);
    let points: Vec<(f64, f64)> = slices
        .flat_map(|slice| {
            let rate = per_s(slice.items, slice.t_s);
            // As steps: a rate is that of a whole slice.
            let end = slice.t_s + course.width(slice.t_s);
            [(slice.t_s, rate), (end, rate)]
        })
        .collect();
    let most = points.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let y = Axis::from_zero(most, short);
    let content = Content {
        lines: vec![(0, points)],
        ..Content::default()
    };
    Some(Chart {
        title: "Operations per second over time".to_owned(),
        keys: Vec::new(),
        marks: Vec::new(),
        svg: chart(&Axis::time(course.end), &y, &content),
    })
}

/// Service times over time: a heat map, the darker the more operations of a slice
/// took so long, under the 99th percentile and the longest of each slice. `None`
/// with too few operations.
fn latency(phase: &PhaseResult) -> Option<Chart> {
    let course = Course::of(phase)?;
    let slices = || phase.timeline.iter().filter(|slice| slice.items > 0);
    let longest: Vec<(f64, f64)> = slices()
        .map(|slice| {
            (
                slice.t_s + course.width(slice.t_s) / 2.0,
                slice.max_ns as f64,
            )
        })
        .collect();
    let low = phase.latency.service.min_ns.max(1) as f64;
    let high = longest.iter().map(|(_, ns)| *ns).fold(low, f64::max);
    let logs = |points: Vec<(f64, f64)>| {
        points
            .into_iter()
            .map(|(t, ns)| (t, ns.max(1.0).log10()))
            .collect()
    };
    let content = Content {
        lines: vec![(0, logs(longest))],
        ..Content::default()
    };
    Some(Chart {
        title: "Latency over time".to_owned(),
        keys: vec!["longest".to_owned()],
        marks: Vec::new(),
        svg: chart(
            &Axis::time(course.end),
            &Axis::log(low, high, human_nanos),
            &content,
        ),
    })
}

/// `950`, `12k`, `1.5M`
pub fn short(value: f64) -> String {
    let (value, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "G"),
        v if v >= 1e6 => (v / 1e6, "M"),
        v if v >= 1e4 => (v / 1e3, "k"),
        v => (v, ""),
    };
    let text = format!("{value:.2}");
    format!("{}{unit}", text.trim_end_matches('0').trim_end_matches('.'))
}

/// The slices of a timeline that lie within the phase.
struct Course {
    step: f64,
    end: f64,
}

impl Course {
    fn of(phase: &PhaseResult) -> Option<Course> {
        let step = phase.timeline_step_s;
        let last = phase.timeline.last()?;
        let end = phase.measured_from_s + phase.elapsed_s + phase.set_aside_s;
        let enough = phase.items >= LEAST && step > 0.0 && phase.timeline.len() > 1;
        enough.then(|| Course {
            step,
            // The last slice is cut short by the end of the phase.
            end: end.clamp(last.t_s + step / 1000.0, last.t_s + step),
        })
    }

    /// How long the slice from `start` is.
    fn width(&self, start: f64) -> f64 {
        self.step.min(self.end - start).max(self.step / 1000.0)
    }
}

/// Rate and latency over time.
pub fn over_time(phase: &PhaseResult) -> Vec<Chart> {
    rate(phase).into_iter().chain(latency(phase)).collect()
}
