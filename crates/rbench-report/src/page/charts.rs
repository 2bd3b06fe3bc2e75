//! The charts of an operation: latency by percentile, rate over time, latency over
//! time.

use std::collections::BTreeMap;

use rbench_core::units::human_nanos;

use super::svg::{Axis, Content, chart};
use crate::hist::Hist;
use crate::schema::{PhaseResult, TimelineRow};
use crate::table::printable;

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
    /// The element `svg`.
    pub svg: String,
}

/// What the axes of an operation's charts have to hold, so that those of several
/// results and iterations have the same ones.
pub struct Bounds {
    low_ns: f64,
    high_ns: f64,
    nines: f64,
    rate: f64,
    end_s: f64,
}

impl Bounds {
    /// Of all phases of that name.
    pub fn of(phases: &[&PhaseResult]) -> Bounds {
        let mut bounds = Bounds {
            low_ns: f64::INFINITY,
            high_ns: 0.0,
            nines: 1.0,
            rate: 0.0,
            end_s: 0.0,
        };
        for phase in phases {
            let hists = [
                Some(&phase.latency.service),
                phase.latency.response.as_ref(),
            ];
            for hist in hists
                .into_iter()
                .flatten()
                .filter(|hist| hist.count >= LEAST)
            {
                bounds.low_ns = bounds.low_ns.min(hist.min_ns.max(1) as f64);
                bounds.high_ns = bounds.high_ns.max(hist.max_ns as f64);
                bounds.nines = bounds.nines.max((hist.count as f64).log10());
            }
            if let Some(course) = Course::of(phase) {
                let rates = course.slices(phase).map(|slice| course.rate(slice));
                bounds.rate = rates.fold(bounds.rate, f64::max);
                bounds.end_s = bounds.end_s.max(course.end);
            }
        }
        bounds
    }

    fn latencies(&self) -> Axis {
        Axis::log(self.low_ns, self.high_ns, human_nanos)
    }
}

/// Latency by percentile of the iterations of an operation, percentiles as far
/// apart as their distance to 100 %: each line ends with its maximum. `None` with
/// too few values.
pub fn percentiles(phases: &[&PhaseResult], bounds: &Bounds) -> Option<Chart> {
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
    if lines.is_empty() {
        return None;
    }
    let x = Axis {
        range: 0.0..bounds.nines,
        ticks: (0..=bounds.nines as u32).map(f64::from).collect(),
        label: Box::new(percentile),
    };
    let content = Content {
        lines,
        ..Content::default()
    };
    Some(Chart {
        title: "Latency by percentile".to_owned(),
        keys,
        svg: chart(&x, &bounds.latencies(), &content),
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

/// Points (nines, log10 of ns) of a distribution, up to the largest value, which stands
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
        (nines, (ns.max(1) as f64).log10())
    };
    Some((0..=steps).map(at).collect())
}

/// Operations each second over time. `None` with too few of them.
fn rate(phase: &PhaseResult, bounds: &Bounds) -> Option<Chart> {
    let course = Course::of(phase)?;
    let points = course.slices(phase).flat_map(|slice| {
        let rate = course.rate(slice);
        // As steps: a rate is that of a whole slice.
        [
            (slice.t_s, rate),
            (slice.t_s + course.width(slice.t_s), rate),
        ]
    });
    let content = Content {
        lines: vec![(0, points.collect())],
        posts: posts(phase),
        loud: true,
        ..Content::default()
    };
    Some(Chart {
        title: "Operations per second over time".to_owned(),
        keys: Vec::new(),
        svg: chart(
            &Axis::time(bounds.end_s),
            &Axis::from_zero(bounds.rate, short),
            &content,
        ),
    })
}

/// Service times over time: a heat map, the darker the more of a slice's operations
/// took so long, under the 99th percentile and the longest of each slice. `None`
/// with too few operations.
fn latency(phase: &PhaseResult, bounds: &Bounds) -> Option<Chart> {
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
        posts: posts(phase),
        loud: true,
        ..Content::default()
    };
    Some(Chart {
        title: "Latency over time".to_owned(),
        keys,
        svg: chart(&Axis::time(bounds.end_s), &bounds.latencies(), &content),
    })
}

/// The marks of a phase, where they were set.
fn posts(phase: &PhaseResult) -> Vec<(f64, String)> {
    let marks = phase.marks.iter();
    marks
        .map(|mark| (mark.t_s, short_name(&mark.name)))
        .collect()
}

/// A name that has room in half a chart.
fn short_name(name: &str) -> String {
    const MOST: usize = 18;
    let name = printable(name);
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
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

    /// The slices that have a rate: not the last one, where the end of the phase has
    /// left little of it.
    fn slices<'p>(&'p self, phase: &'p PhaseResult) -> impl Iterator<Item = &'p TimelineRow> {
        let slices = phase.timeline.iter();
        slices.filter(|slice| self.width(slice.t_s) * 2.0 >= self.step)
    }

    /// Operations each second of a slice.
    fn rate(&self, slice: &TimelineRow) -> f64 {
        slice.items as f64 / self.width(slice.t_s)
    }

    /// How long the slice from `start` is.
    fn width(&self, start: f64) -> f64 {
        self.step.min(self.end - start).max(self.step / 1000.0)
    }
}

/// Rate and latency over time.
pub fn over_time(phase: &PhaseResult, bounds: &Bounds) -> Vec<Chart> {
    let latency = latency(phase, bounds);
    rate(phase, bounds).into_iter().chain(latency).collect()
}
