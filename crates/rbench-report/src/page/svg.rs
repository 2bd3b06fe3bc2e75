//! Charts as SVG: axes, lines, marks and tiles. The caller decides their content; colours are those
//! of style.css, so that they follow the reader's light or dark mode.

use std::fmt::Write as _;
use std::ops::Range;

use maud::{PreEscaped, html};

/// Size of a chart in its own units: legible at the width of a phone.
const SIZE: (f64, f64) = (380.0, 230.0);
/// Positions of its axes: left, top, right, bottom.
const LEFT: f64 = 58.0;
const TOP: f64 = 8.0;
const RIGHT: f64 = 366.0;
const BOTTOM: f64 = 206.0;
/// Distance between names of posts, one below the other, and their number before it starts again.
const NAME_HEIGHT: f64 = 14.0;
const NAMES_BELOW: usize = 5;
/// Ratio of the highest to the lowest rate above which a linear scale hides the lowest.
pub const WIDE: f64 = 30.0;
/// Colours of lines, in the order of the key.
pub const COLOURS: usize = 7;

/// The class of what has that number: its colour; further lines are dashed.
pub fn class(number: usize) -> String {
    let dashed = if number / COLOURS % 2 == 1 {
        " dashed"
    } else {
        ""
    };
    format!("k{}{dashed}", number % COLOURS)
}

/// An axis; `label` formats its numbers.
pub struct Axis {
    /// From the smallest to the largest value, in axis units.
    pub range: Range<f64>,
    /// Positions of lines and labels.
    pub ticks: Vec<f64>,
    /// The text of a tick.
    pub label: Box<dyn Fn(f64) -> String>,
}

impl Axis {
    /// A linear axis from 0 to at least `max`.
    pub fn from_zero(max: f64, label: impl Fn(f64) -> String + 'static) -> Axis {
        let max = usable(max);
        let step = step(max / 4.0);
        let count = (max / step).ceil() as u32;
        Axis {
            range: 0.0..f64::from(count.max(1)) * step,
            ticks: (0..=count).map(|i| f64::from(i) * step).collect(),
            label: Box::new(label),
        }
    }

    /// A linear axis of the time from 0 to `end`, s.
    pub fn time(end: f64) -> Axis {
        let end = usable(end);
        let step = step(end / 4.0);
        let count = (end / step).floor() as u32;
        Axis {
            range: 0.0..end,
            ticks: (0..=count).map(|i| f64::from(i) * step).collect(),
            label: Box::new(seconds),
        }
    }

    /// A logarithmic axis over values above 0, in units of log10.
    pub fn log(low: f64, high: f64, label: impl Fn(f64) -> String + 'static) -> Axis {
        // Beyond any latency: such values are damaged.
        let most = 1e30;
        let low = if (LEAST..most).contains(&low) {
            low
        } else {
            1.0
        };
        let high = if high < most {
            high.max(low * 1.2)
        } else {
            low * 10.0
        };
        let (from, to) = (low.log10() - 0.02, high.log10() + 0.04);
        let wide = to - from > 2.5;
        let multiples: &[f64] = if wide { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let (first, last) = (from.floor() as i32, to.ceil() as i32);
        let all = (first..=last).flat_map(|decade| {
            let multiples = multiples.iter();
            multiples.map(move |m| f64::from(decade) + m.log10())
        });
        Axis {
            range: from..to,
            ticks: all.filter(|tick| (from..=to).contains(tick)).collect(),
            label: Box::new(move |log| label(10_f64.powf(log))),
        }
    }
}

/// Smallest end of an axis: below it the step between ticks would vanish.
const LEAST: f64 = 1e-12;

/// The end of a linear axis.
fn usable(end: f64) -> f64 {
    match end > LEAST && end.is_finite() {
        true => end,
        false => 1.0,
    }
}

/// 1, 2 or 5 times a power of ten, at least `least`.
fn step(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let found = [1.0, 2.0, 5.0, 10.0].into_iter().map(|m| m * power);
    found
        .into_iter()
        .find(|step| *step >= least)
        .unwrap_or(least)
}

/// `0`, `250 ms`, `1.5 s`, `20 s`
fn seconds(s: f64) -> String {
    let (value, unit) = match s {
        0.0 => return "0".to_owned(),
        s if s < 1e-3 => (s * 1e6, "us"),
        s if s < 1.0 => (s * 1e3, "ms"),
        s => (s, "s"),
    };
    let text = format!("{value:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    format!("{text} {unit}")
}

/// The content of a pair of axes.
#[derive(Default)]
pub struct Content {
    /// Left, bottom, right, top, and darkness, 0 to 1.
    pub tiles: Vec<([f64; 4], f64)>,
    /// Points of lines, by their numbers.
    pub lines: Vec<(usize, Vec<(f64, f64)>)>,
    /// Show the points of lines.
    pub dots: bool,
    /// Limits: a dashed line at that height, by its number, with its name.
    pub limits: Vec<(usize, f64, String)>,
    /// Events along the axis, with their names.
    pub posts: Vec<(f64, String)>,
    /// Highlight the posts.
    pub loud: bool,
    /// Points that are good, as a disc, or bad, as a cross.
    pub marks: Vec<((f64, f64), bool)>,
}

/// Positions of values on a chart.
struct Places<'a> {
    x: &'a Axis,
    y: &'a Axis,
}

/// A place between two ends, as far along as a value is on its axis; in whole units.
fn along(axis: &Axis, value: f64, from: f64, to: f64) -> i32 {
    let Range { start, end } = axis.range;
    let share = (value - start) / (end - start);
    (from + share.clamp(0.0, 1.0) * (to - from)).round() as i32
}

impl Places<'_> {
    fn x(&self, value: f64) -> i32 {
        along(self.x, value, LEFT, RIGHT)
    }

    fn y(&self, value: f64) -> i32 {
        along(self.y, value, BOTTOM, TOP)
    }

    fn points(&self, points: &[(f64, f64)]) -> String {
        let point = |(x, y): &(f64, f64)| format!("{},{}", self.x(*x), self.y(*y));
        points.iter().map(point).collect::<Vec<String>>().join(" ")
    }

    fn grid(&self) -> String {
        let mut path = String::new();
        for tick in &self.x.ticks {
            let _ = write!(path, "M{} {BOTTOM}V{TOP}", self.x(*tick));
        }
        for tick in &self.y.ticks {
            let _ = write!(path, "M{LEFT} {}H{RIGHT}", self.y(*tick));
        }
        path
    }

    /// Tiles as a path for each of a few shades; neighbours beside each other are one.
    fn tiles(&self, tiles: &[([f64; 4], f64)]) -> Vec<(f64, String)> {
        const SHADES: f64 = 10.0;
        let mut places: Vec<(u32, [i32; 4])> = tiles
            .iter()
            .map(|([left, bottom, right, top], dark)| {
                let shade = (dark * SHADES).round().clamp(1.0, SHADES) as u32;
                let (top, bottom) = (self.y(*top), self.y(*bottom));
                (
                    shade,
                    [top, bottom.max(top + 1), self.x(*left), self.x(*right)],
                )
            })
            .collect();
        places.sort_unstable();
        let mut wide: Vec<(u32, [i32; 4])> = Vec::new();
        for (shade, [top, bottom, left, right]) in places {
            match wide.last_mut() {
                Some((own, [above, below, _, end]))
                    if (*own, *above, *below, *end) == (shade, top, bottom, left) =>
                {
                    *end = right;
                }
                _ => wide.push((shade, [top, bottom, left, right])),
            }
        }
        let shades = wide.chunk_by(|a, b| a.0 == b.0);
        let path = |tiles: &[(u32, [i32; 4])]| {
            let mut path = String::new();
            for (_, [top, bottom, left, right]) in tiles {
                let (width, height) = (right - left, bottom - top);
                let _ = write!(path, "M{left} {top}h{width}v{height}h-{width}z");
            }
            (f64::from(tiles[0].0) / SHADES, path)
        };
        shades.map(path).collect()
    }
}

/// The chart as an element `svg`.
pub fn chart(x: &Axis, y: &Axis, content: &Content) -> String {
    let at = Places { x, y };
    let post = if content.loud { "post loud" } else { "post" };
    // Names stand on the side that has room for them; neighbours below each other.
    let names = content.posts.iter().enumerate().map(|(i, (place, name))| {
        let (anchor, dx) = match 2.0 * place > x.range.start + x.range.end {
            true => ("end", -4),
            false => ("start", 4),
        };
        let top = TOP + NAME_HEIGHT * (i % NAMES_BELOW) as f64;
        (at.x(*place) + dx, top, anchor, name)
    });
    let svg = html! { svg viewBox=(format!("0 0 {} {}", SIZE.0, SIZE.1)) {
        path.grid d=(at.grid()) {}
        path.axis d=(format!("M{LEFT} {TOP}V{BOTTOM}H{RIGHT}")) {}
        @for tick in &y.ticks { text x=(LEFT - 8.0) y=(at.y(*tick) + 3) text-anchor="end" { ((y.label)(*tick)) } }
        @for tick in &x.ticks {
            // At the right end there is room for half a label alone.
            @let last = at.x(*tick) > RIGHT as i32 - 18;
            @let (x, anchor) = if last { (SIZE.0 as i32 - 2, "end") } else { (at.x(*tick), "middle") };
            text x=(x) y=(BOTTOM + 16.0) text-anchor=(anchor) { ((at.x.label)(*tick)) }
        }
        @for (dark, path) in at.tiles(&content.tiles) { path.tile opacity=(dark) d=(path) {} }
        @for (number, points) in &content.lines {
            polyline class=(class(*number)) points=(at.points(points)) {}
            @if content.dots { @for (x, y) in points { circle class=(class(*number)) cx=(at.x(*x)) cy=(at.y(*y)) r="3" {} } }
        }
        @for (number, height, name) in &content.limits {
            path class=(format!("limit {}", class(*number))) d=(format!("M{LEFT} {}H{RIGHT}", at.y(*height))) {}
            text x=(LEFT + 4.0) y=(at.y(*height) - 4) { (name) }
        }
        @for (place, _) in &content.posts { path class=(post) d=(format!("M{} {BOTTOM}V{TOP}", at.x(*place))) {} }
        @for (x, top, anchor, name) in names { text x=(x) y=(top + 8.0) text-anchor=(anchor) { (name) } }
        @for ((x, y), good) in &content.marks {
            @let (x, y) = (at.x(*x), at.y(*y));
            @if *good { circle.held cx=(x) cy=(y) r="4" {} }
            @else { path.failed d=(format!("M{} {}l8 8m0 -8l-8 8", x - 4, y - 4)) {} }
        }
    } };
    let PreEscaped(svg) = svg;
    svg
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_lie_on_the_axis() {
        let axis = Axis::from_zero(730.0, |v| v.to_string());
        assert_eq!(axis.ticks, [0.0, 200.0, 400.0, 600.0, 800.0]);
        assert_eq!(axis.range, 0.0..800.0);
        let time = Axis::time(11.0);
        assert_eq!(time.ticks, [0.0, 5.0, 10.0]);
        assert_eq!(time.range, 0.0..11.0);
        let narrow = Axis::log(2_100.0, 9_000.0, |v| format!("{v:.0}"));
        let labels: Vec<String> = narrow.ticks.iter().map(|t| (narrow.label)(*t)).collect();
        assert_eq!(labels, ["5000"]);
        let wide = Axis::log(50.0, 5e6, |v| format!("{v:.0}"));
        assert_eq!(wide.ticks.len(), 5);
    }

    #[test]
    fn nothing_measured_is_an_empty_chart() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 5e-324, f64::MAX] {
            let svg = chart(
                &Axis::time(bad),
                &Axis::log(bad, bad, |v| v.to_string()),
                &Content::default(),
            );
            assert!(svg.starts_with("<svg") && svg.contains("</svg>"), "{svg}");
        }
    }

    #[test]
    fn times_have_the_unit_that_fits() {
        for (s, text) in [
            (0.0, "0"),
            (0.25, "250 ms"),
            (0.00005, "50 us"),
            (1.5, "1.5 s"),
            (20.0, "20 s"),
        ] {
            assert_eq!(seconds(s), text);
        }
    }
}
