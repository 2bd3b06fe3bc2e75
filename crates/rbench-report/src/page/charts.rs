//! The charts of an operation: latency by percentile, rate over time, latency over
//! time.

use std::collections::BTreeMap;

use rbench_core::units::human_nanos;

use super::svg::{Axis, Content, chart};
use crate::hist::Hist;
use crate::schema::{PhaseResult, TimelineRow};

/// Most points of a percentile curve.
const POINTS: u32 = 10;
/// Least values of which a distribution or a course is drawn.
const LEAST: u64 = 10;

/// A chart with the names of its lines, in the order of their colours.
pub struct Chart {
    /// What it shows, on which axes.
    pub title: String,
    /// Colours and names of lines.
    pub keys: Vec<(usize, String)>,
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
            let key = match phases.len() {
                1 => name.to_owned(),
                _ => format!("{name}, iteration {nth}"),
            };
            keys.push((lines.len(), key));
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

/// Service times over time: a heat map, the darker the more of a slice's operations
/// took so long, under the 99th percentile and the longest of each slice. `None`
/// with too few operations.
fn latency(phase: &PhaseResult) -> Option<Chart> {
    let course = Course::of(phase)?;
    let tiles = tiles(phase, &course);
    let middle = |slice: &TimelineRow| slice.t_s + course.width(slice.t_s) / 2.0;
    let line = |ns: fn(&TimelineRow) -> u64| -> Vec<(f64, f64)> {
        let slices = phase.timeline.iter().filter(|slice| ns(slice) > 0);
        slices
            .map(|slice| (middle(slice), (ns(slice) as f64).log10()))
            .collect()
    };
    let (p99, longest) = (line(|slice| slice.p99_ns), line(|slice| slice.max_ns));
    let low = phase.latency.service.min_ns.max(1) as f64;
    let high = (phase.latency.service.max_ns as f64).max(low);
    // Older files have neither heat nor percentiles.
    let mut keys = Vec::new();
    let mut lines = Vec::new();
    for (n, name, points) in [(1, "p99", p99), (0, "longest", longest)] {
        if points.is_empty() {
            continue;
        }
        keys.push((n, name.to_owned()));
        lines.push((n, points));
    }
    let content = Content {
        tiles,
        lines,
        ..Content::default()
    };
    Some(Chart {
        title: "Latency over time".to_owned(),
        keys,
        marks: Vec::new(),
        svg: chart(
            &Axis::time(course.end),
            &Axis::log(low, high, human_nanos),
            &content,
        ),
    })
}

/// Most columns of a heat map: neighbouring slices are put together.
const COLUMNS: usize = 64;

/// The tiles of a heat map: shares of the operations of a column, its square root so
/// that few are seen, too.
fn tiles(phase: &PhaseResult, course: &Course) -> Vec<([f64; 4], f64)> {
    let together = phase.timeline.len().div_ceil(COLUMNS).max(1);
    let mut tiles = Vec::new();
    for slices in phase.timeline.chunks(together) {
        let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
        for (lowest, items) in slices.iter().flat_map(|slice| &slice.heat) {
            let sum = buckets.entry(*lowest).or_default();
            *sum = sum.saturating_add(*items);
        }
        let all = buckets.values().copied().fold(0, u64::saturating_add);
        let (Some(first), Some(last)) = (slices.first(), slices.last()) else {
            continue;
        };
        let (left, right) = (first.t_s, last.t_s + course.width(last.t_s));
        for (lowest, items) in buckets {
            let dark = (items as f64 / all.max(1) as f64).sqrt();
            let bottom = (lowest.max(1) as f64).log10();
            let top = (heat_end(lowest) as f64).log10();
            tiles.push(([left, bottom, right, top], (0.06 + 0.74 * dark).min(0.8)));
        }
    }
    tiles
}

/// Where the bucket of a heat map ends that begins there, ns: 256 ns wide below 2048
/// ns, then four to a factor of two.
fn heat_end(lowest: u64) -> u64 {
    let width = match lowest {
        0..2048 => 256,
        _ => 1 << (lowest.ilog2() - 2),
    };
    lowest.saturating_add(width)
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
