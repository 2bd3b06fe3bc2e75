//! The charts of an operation: latency by percentile, rate, bandwidth and latency over time; those of
//! several runs in one.

use std::collections::BTreeMap;

use rbench_core::hist::Hist;
use rbench_core::units::human_nanos;

use super::svg::{self, Axis, Content};
use crate::figures::merged;
use crate::schema::{PhaseResult, TimelineRow};
use crate::table::printable;

/// Points of a percentile curve for each factor of 10 in the distance to 100 %.
const POINTS: u32 = 10;
/// Fewest values for which a distribution or a course is drawn.
const LEAST: u64 = 10;
/// Operations that a slice of time has on average, if there are enough of them.
const ENOUGH: u64 = 100;
/// Slices that a chart has at least, as long as each has [`LEAST`] operations.
const SLICES_MIN: u64 = 10;
/// Most slices.
const SLICES_MAX: u64 = 48;
/// Most slices of iterations that are shown beside others.
const SLICES_SMALL: u64 = 24;

/// A chart with the names of its lines, in the order of their colours.
pub struct Chart {
    /// Title, which names the value and the axes.
    pub title: String,
    /// Colours and names of lines.
    pub keys: Vec<(usize, String)>,
    /// It has a heat map, which needs a legend.
    pub heat: bool,
    /// The element `svg`.
    pub svg: String,
}

impl Chart {
    /// Draws this content between two axes, across and up.
    pub fn new(
        title: impl Into<String>,
        keys: impl IntoIterator<Item = (usize, String)>,
        [x, y]: [&Axis; 2],
        content: &Content,
    ) -> Chart {
        Chart {
            title: title.into(),
            keys: keys.into_iter().collect(),
            heat: !content.tiles.is_empty(),
            svg: svg::chart(x, y, content),
        }
    }
}

/// The iterations of an operation in a run.
pub struct Side<'r> {
    /// Name of the run; empty if there is only one.
    pub name: &'r str,
    /// The iterations, one at least.
    pub phases: Vec<&'r PhaseResult>,
}

impl<'r> Side<'r> {
    /// The iteration whose rate is the median of those that finished; of an even number the
    /// slower one in the middle.
    fn typical(&self) -> Option<&'r PhaseResult> {
        let whole = self.phases.iter().filter(|phase| phase.complete);
        let mut whole: Vec<&PhaseResult> = whole.copied().collect();
        whole.sort_by(|a, b| a.rate.total_cmp(&b.rate));
        let middle = whole.len().saturating_sub(1) / 2;
        whole.get(middle).or(self.phases.first()).copied()
    }

    /// A name that tells it from other runs, then these words.
    fn called(&self, words: &str) -> String {
        match (self.name, words) {
            ("", words) => words.to_owned(),
            (name, "") => name.to_owned(),
            (name, words) => format!("{name}: {words}"),
        }
    }
}

/// The charts of an operation.
pub struct Charts {
    /// Charts of all iterations, or of the median one.
    pub main: Vec<Chart>,
    /// Charts of each iteration, by the name of the run; empty without several.
    pub each: Vec<(String, Vec<Chart>)>,
}

/// The charts of an operation in some runs; `heat`: with a heat map of each iteration.
pub fn all(sides: &[Side<'_>], heat: bool) -> Charts {
    let bounds = Bounds::of(sides);
    let open_loop = sides
        .iter()
        .flat_map(|side| &side.phases)
        .any(|p| p.latency.response.is_some());
    let service = if open_loop || sides.len() == 1 {
        "service time"
    } else {
        ""
    };
    let lines = sides.iter().flat_map(|side| {
        let of = |time: fn(&PhaseResult) -> Option<&Hist>| {
            side.phases.iter().filter_map(|p| time(p)).collect()
        };
        [
            (side.called(service), of(|p| Some(&p.latency.service))),
            (
                side.called("response time"),
                of(|p| p.latency.response.as_ref()),
            ),
        ]
    });
    let mut main = Vec::new();
    main.extend(percentiles(lines.collect(), &bounds));
    let typical: Vec<(String, &PhaseResult)> = sides
        .iter()
        .filter_map(|side| {
            let phase = side.typical()?;
            let words = match side.phases.len() {
                1 => String::new(),
                _ => format!("iteration {}", phase.iteration.saturating_add(1)),
            };
            Some((side.called(&words), phase))
        })
        .collect();
    main.extend(courses(&typical, &bounds, SLICES_MAX));
    main.extend(
        typical
            .iter()
            .filter_map(|(name, phase)| latency(name, phase, &bounds, SLICES_MAX)),
    );
    let several = sides.iter().filter(|side| side.phases.len() > 1);
    let each = several.map(|side| (side.name.to_owned(), each(side, &bounds, heat)));
    Charts {
        main,
        each: each.filter(|(_, charts)| !charts.is_empty()).collect(),
    }
}

/// The charts of each iteration of a run.
fn each(side: &Side<'_>, bounds: &Bounds, heat: bool) -> Vec<Chart> {
    let named = |phase: &PhaseResult| format!("iteration {}", phase.iteration.saturating_add(1));
    let lines = side.phases.iter().flat_map(|phase| {
        let response = phase.latency.response.as_ref();
        let response =
            response.map(|hist| (format!("{}, response time", named(phase)), vec![hist]));
        [(named(phase), vec![&phase.latency.service])]
            .into_iter()
            .chain(response)
    });
    let mut charts = Vec::new();
    charts.extend(percentiles(lines.collect(), bounds));
    let phases: Vec<(String, &PhaseResult)> = side
        .phases
        .iter()
        .map(|phase| (named(phase), *phase))
        .collect();
    charts.extend(courses(&phases, bounds, SLICES_SMALL));
    let typical = side.typical().map(|phase| phase.iteration);
    let others = phases
        .iter()
        .filter(|(_, phase)| heat && Some(phase.iteration) != typical);
    charts.extend(others.filter_map(|(name, phase)| latency(name, phase, bounds, SLICES_SMALL)));
    charts
}

/// Bounds of the axes of an operation's charts, so that those of several results and iterations
/// have the same ones.
struct Bounds {
    low_ns: f64,
    high_ns: f64,
    nines: f64,
    end_s: f64,
}

impl Bounds {
    fn of(sides: &[Side<'_>]) -> Bounds {
        let mut bounds = Bounds {
            low_ns: f64::INFINITY,
            high_ns: 0.0,
            nines: 1.0,
            end_s: 0.0,
        };
        for side in sides {
            let mut count = 0_u64;
            for phase in &side.phases {
                let service = Some(&phase.latency.service);
                let both = [service, phase.latency.response.as_ref()];
                for hist in both.into_iter().flatten().filter(|hist| hist.count > 0) {
                    bounds.low_ns = bounds.low_ns.min(hist.min_ns.max(1) as f64);
                    bounds.high_ns = bounds.high_ns.max(hist.max_ns as f64);
                }
                let response = phase.latency.response.as_ref().map_or(0, |hist| hist.count);
                count = count.saturating_add(phase.latency.service.count.max(response));
                let end = course_end(phase).unwrap_or(0.0);
                bounds.end_s = bounds.end_s.max(end);
            }
            bounds.nines = bounds.nines.max((count as f64).log10());
        }
        bounds
    }

    fn latencies(&self) -> Axis {
        Axis::log(self.low_ns, self.high_ns, human_nanos)
    }
}

/// Latency by percentile, percentiles as far apart as their distance to 100 %: each line, of the
/// times of some iterations together, ends with its maximum. `None` with too few values.
fn percentiles(lines: Vec<(String, Vec<&Hist>)>, bounds: &Bounds) -> Option<Chart> {
    let curves = lines
        .into_iter()
        .filter_map(|(name, hists)| Some((name, curve(&hists)?)));
    let (names, curves): (Vec<String>, Vec<_>) = curves.unzip();
    if curves.is_empty() {
        return None;
    }
    let x = Axis {
        range: 0.0..bounds.nines,
        ticks: (0..=bounds.nines as u32).map(f64::from).collect(),
        label: Box::new(percentile),
    };
    let content = Content {
        lines: curves.into_iter().enumerate().collect(),
        ..Content::default()
    };
    let (keys, axes) = (names.into_iter().enumerate(), [&x, &bounds.latencies()]);
    Some(Chart::new("Latency by percentile", keys, axes, &content))
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

/// Points (nines, log10 of ns) of some distributions together, up to the largest value, which
/// stands where a single one of all lies; none below 1 ns.
fn curve(hists: &[&Hist]) -> Option<Vec<(f64, f64)>> {
    let count = hists
        .iter()
        .map(|hist| hist.count)
        .fold(0, u64::saturating_add);
    let max_ns = hists.iter().map(|hist| hist.max_ns).max()?;
    if count < LEAST {
        return None;
    }
    let decoded = merged(hists.iter().copied())?;
    let last = (count as f64).log10();
    let steps = (last * f64::from(POINTS)).ceil() as u32;
    let at = |i: u32| {
        let nines = (f64::from(i) / f64::from(POINTS)).min(last);
        let quantile = 1.0 - 10_f64.powf(-nines);
        // The last point is that of a single value: the largest.
        let ns = match nines < last {
            true => decoded.value_at_quantile(quantile).min(max_ns),
            false => max_ns,
        };
        (nines, (ns.max(1) as f64).log10())
    };
    Some((0..=steps).map(at).collect())
}

/// Operations and bytes each second over time, a line for each phase; without those that have too
/// few operations.
fn courses(phases: &[(String, &PhaseResult)], bounds: &Bounds, most: u64) -> Vec<Chart> {
    let courses: Vec<(usize, Course<'_>)> = phases
        .iter()
        .enumerate()
        .filter_map(|(n, (_, phase))| Some((n, Course::of(phase, most)?)))
        .collect();
    let draw = |title: &str, of: fn(&Slice) -> f64| {
        // Drawn as steps: a rate is that of a whole slice.
        let steps = |course: &Course<'_>| -> Vec<(f64, f64)> {
            let slices = course
                .slices
                .iter()
                .filter(|slice| slice.width() * 2.0 >= course.step);
            slices
                .flat_map(|slice| {
                    let rate = of(slice) / slice.width();
                    [(slice.from_s, rate), (slice.to_s, rate)]
                })
                .collect()
        };
        let lines: Vec<(usize, Vec<(f64, f64)>)> = courses
            .iter()
            .map(|(n, course)| (*n, steps(course)))
            .collect();
        let most = lines
            .iter()
            .flat_map(|(_, points)| points)
            .map(|(_, rate)| *rate)
            .fold(0.0, f64::max);
        let keys = courses
            .iter()
            .map(|(n, _)| (*n, phases[*n].0.clone()))
            .filter(|(_, name)| !name.is_empty());
        let content = Content {
            lines,
            posts: courses
                .iter()
                .flat_map(|(_, course)| posts(course.phase))
                .collect(),
            loud: true,
            ..Content::default()
        };
        let axes = [&Axis::time(bounds.end_s), &Axis::from_zero(most, short)];
        Chart::new(title, keys, axes, &content)
    };
    let mut charts = Vec::new();
    if !courses.is_empty() {
        charts.push(draw("Operations per second over time", |slice| {
            slice.items as f64
        }));
    }
    if courses
        .iter()
        .any(|(_, course)| course.phase.bandwidth.is_some())
    {
        const MIB: f64 = (1 << 20) as f64;
        charts.push(draw("MiB per second over time", |slice| {
            slice.bytes as f64 / MIB
        }));
    }
    charts
}

/// Service times over time: a heat map, the darker the more of a slice's operations
/// took this long, under the 99th percentile and the longest of each slice. `None`
/// with too few operations.
fn latency(name: &str, phase: &PhaseResult, bounds: &Bounds, most: u64) -> Option<Chart> {
    let course = Course::of(phase, most)?;
    let line = |ns: fn(&Slice) -> u64| -> Vec<(f64, f64)> {
        let slices = course.slices.iter().filter(|slice| ns(slice) > 0);
        let middle = |slice: &Slice| f64::midpoint(slice.from_s, slice.to_s);
        slices
            .map(|slice| (middle(slice), (ns(slice) as f64).log10()))
            .collect()
    };
    let (p99, longest) = (line(|slice| slice.p99_ns), line(|slice| slice.max_ns));
    // Older files have neither heat nor percentiles.
    let lines = [(1, "p99", p99), (0, "longest", longest)];
    let lines = || lines.iter().filter(|(_, _, points)| !points.is_empty());
    let content = Content {
        tiles: course.tiles(bounds),
        lines: lines().map(|(n, _, points)| (*n, points.clone())).collect(),
        posts: posts(phase),
        loud: true,
        ..Content::default()
    };
    let title = match name {
        "" => "Latency over time".to_owned(),
        name => format!("Latency over time ({name})"),
    };
    let keys = lines().map(|(n, name, _)| (*n, (*name).to_owned()));
    let axes = [&Axis::time(bounds.end_s), &bounds.latencies()];
    Some(Chart::new(title, keys, axes, &content))
}

/// The marks of a phase at their times.
fn posts(phase: &PhaseResult) -> Vec<(f64, String)> {
    let marks = phase.marks.iter();
    marks
        .map(|mark| (mark.t_s, short_name(&mark.name)))
        .collect()
}

/// Shortens a name to fit half a chart.
fn short_name(name: &str) -> String {
    const MOST: usize = 18;
    let name = printable(name);
    match name.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name,
    }
}

/// Darkness of the tile of a share of the operations of a slice, 0 to 1: by its square root, so
/// that few are seen, too.
pub fn darkness(share: f64) -> f64 {
    (0.06 + 0.74 * share.sqrt()).min(0.8)
}

/// Width of the bucket of a heat map that begins there, ns: 256 ns below 2048 ns, then there are
/// four to a factor of two.
fn bucket(lowest: u64) -> u64 {
    match lowest {
        0..2048 => 256,
        _ => 1 << (lowest.ilog2() - 2),
    }
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

/// End of the timeline of a phase, s; `None` if it is too short for a chart. The last slice is cut
/// short by the end of the phase.
fn course_end(phase: &PhaseResult) -> Option<f64> {
    let step = phase.timeline_step_s;
    let last = phase.timeline.last()?;
    let end = phase.measured_from_s + phase.elapsed_s + phase.set_aside_s;
    let enough = phase.items >= LEAST && step > 0.0 && phase.timeline.len() > 1;
    enough.then(|| end.clamp(last.t_s + step / 1000.0, last.t_s + step))
}

/// A phase over time, in slices with enough operations in each.
struct Course<'p> {
    phase: &'p PhaseResult,
    /// Length of a slice, s; the last one may be shorter.
    step: f64,
    slices: Vec<Slice>,
}

/// Operations that ended in some neighbouring rows of a timeline.
struct Slice {
    from_s: f64,
    to_s: f64,
    items: u64,
    bytes: u64,
    p99_ns: u64,
    max_ns: u64,
    heat: BTreeMap<u64, u64>,
}

impl Course<'_> {
    /// `None` with too few operations; at most this many slices.
    fn of(phase: &PhaseResult, most: u64) -> Option<Course<'_>> {
        let end = course_end(phase)?;
        let wanted = (phase.items / ENOUGH)
            .max(SLICES_MIN)
            .min(phase.items / LEAST)
            .clamp(2, most);
        let together = phase.timeline.len().div_ceil(wanted as usize);
        let slices = phase
            .timeline
            .chunks(together)
            .map(|rows| Slice::of(rows, phase.timeline_step_s, end));
        Some(Course {
            phase,
            step: phase.timeline_step_s * together as f64,
            slices: slices.collect(),
        })
    }

    /// The tiles of a heat map: left, bottom, right, top, and how dark. On a long axis two buckets
    /// are put together: a tile would be a line.
    fn tiles(&self, bounds: &Bounds) -> Vec<([f64; 4], f64)> {
        const BUCKETS_MAX: f64 = 40.0;
        let long = 4.0 * (bounds.high_ns / bounds.low_ns).log2() > BUCKETS_MAX;
        let together = if long { 2 } else { 1 };
        let of = |slice: &Slice| {
            let all = slice.heat.values().copied().fold(0, u64::saturating_add);
            let mut sums: BTreeMap<(u64, u64), u64> = BTreeMap::new();
            for (lowest, items) in &slice.heat {
                let width = bucket(*lowest).saturating_mul(together);
                let start = lowest / width * width;
                let sum = sums
                    .entry((start, start.saturating_add(width)))
                    .or_default();
                *sum = sum.saturating_add(*items);
            }
            let tile = |((start, end), items): ((u64, u64), u64)| {
                let [bottom, top] = [start, end].map(|ns| (ns.max(1) as f64).log10());
                let place = [slice.from_s, bottom, slice.to_s, top];
                (place, darkness(items as f64 / all.max(1) as f64))
            };
            sums.into_iter().map(tile).collect::<Vec<_>>()
        };
        self.slices.iter().flat_map(of).collect()
    }
}

impl Slice {
    fn of(rows: &[TimelineRow], step: f64, end: f64) -> Slice {
        let sum = |of: fn(&TimelineRow) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
        let mut heat: BTreeMap<u64, u64> = BTreeMap::new();
        for (lowest, items) in rows.iter().flat_map(|row| &row.heat) {
            let sum = heat.entry(*lowest).or_default();
            *sum = sum.saturating_add(*items);
        }
        let from_s = rows.first().map_or(0.0, |row| row.t_s);
        let to_s = rows.last().map_or(0.0, |row| row.t_s + step).min(end);
        // Percentiles of each row hold that of all between them.
        let p99s = || rows.iter().map(|row| row.p99_ns).filter(|ns| *ns > 0);
        let p99_ns = match (p99s().min(), p99s().max()) {
            (Some(low), Some(high)) => quantile(&heat, 0.99).map_or(high, |ns| ns.clamp(low, high)),
            _ => 0,
        };
        Slice {
            from_s,
            to_s: to_s.max(from_s + step / 1000.0),
            items: sum(|row| row.items),
            bytes: sum(|row| row.bytes),
            p99_ns,
            max_ns: rows.iter().map(|row| row.max_ns).max().unwrap_or(0),
            heat,
        }
    }

    fn width(&self) -> f64 {
        self.to_s - self.from_s
    }
}

/// A quantile of the times in a heat map, up to a quarter too high.
fn quantile(heat: &BTreeMap<u64, u64>, quantile: f64) -> Option<u64> {
    let all = heat.values().copied().fold(0, u64::saturating_add);
    let mut left = (quantile * all as f64).ceil() as u64;
    for (lowest, items) in heat {
        if left <= *items {
            return Some(lowest.saturating_add(bucket(*lowest)));
        }
        left -= items;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(t_s: f64, items: u64, p99_ns: u64, heat: &[(u64, u64)]) -> TimelineRow {
        TimelineRow {
            t_s,
            items,
            bytes: items * 10,
            errors: 0,
            max_ns: p99_ns + 5,
            p50_ns: 0,
            p99_ns,
            response: None,
            heat: heat.to_vec(),
        }
    }

    #[test]
    fn rows_of_a_timeline_are_added_up() {
        let rows = [
            row(1.0, 60, 2_100, &[(1_792, 59), (2_048, 1)]),
            row(2.0, 40, 9_000, &[(1_792, 1), (8_192, 39)]),
        ];
        let slice = Slice::of(&rows, 1.0, 2.5);
        assert_eq!((slice.from_s, slice.to_s), (1.0, 2.5));
        assert_eq!(
            (slice.items, slice.bytes, slice.max_ns),
            (100, 1_000, 9_005)
        );
        assert_eq!(
            slice.heat,
            BTreeMap::from([(1_792, 60), (2_048, 1), (8_192, 39)])
        );
        // In the bucket from 8192 to 10240, but no row has one above 9000.
        assert_eq!(slice.p99_ns, 9_000);
        assert_eq!(quantile(&slice.heat, 0.6), Some(2_048));
        assert_eq!(quantile(&BTreeMap::new(), 0.5), None);
        assert_eq!(Slice::of(&rows[..1], 1.0, 9.0).p99_ns, 2_100);
    }
}
