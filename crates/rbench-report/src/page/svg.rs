//! Charts as SVG: axes, lines, marks and tiles. What they show is decided by
//! whoever draws; colours are those that style.css knows, so that they follow the
//! reader's light or dark mode.

use std::ops::Range;

use plotters::chart::{ChartBuilder, ChartContext};
use plotters::coord::Shift;
use plotters::coord::cartesian::Cartesian2d;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea as _};
use plotters::element::{Circle, Cross, Rectangle, Text};
use plotters::series::{DashedLineSeries, LineSeries};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{
    Color as _, FontDesc, FontFamily, FontStyle, RGBColor, ShapeStyle, TextStyle,
};
use plotters_svg::SVGBackend;

/// Size of a chart in its own units: legible at the width of a phone.
const SIZE: (u32, u32) = (380, 230);
const FONT_SIZE: f64 = 12.0;
/// How far below each other names of posts stand, and how many, before it starts again.
const NAME_HEIGHT: i32 = 14;
const NAMES_BELOW: usize = 5;

/// Lines and tiles; the names are those of style.css.
pub const ACCENT: RGBColor = RGBColor(0x0B, 0x63, 0xC4);
/// The second line.
pub const WARM: RGBColor = RGBColor(0xB3, 0x54, 0x1E);
/// The third.
pub const THIRD: RGBColor = RGBColor(0x7D, 0x3A, 0xC1);
/// The fourth.
pub const GOOD: RGBColor = RGBColor(0x1A, 0x7F, 0x37);
const BAD: RGBColor = RGBColor(0xB4, 0x23, 0x18);
const QUIET: RGBColor = RGBColor(0x59, 0x63, 0x6E);
const GRID: RGBColor = RGBColor(0xD1, 0xD9, 0xE0);

/// Colours of lines, in the order of the key; [`is_dashed`] tells more lines apart.
pub const LINES: [RGBColor; 7] = [
    ACCENT,
    WARM,
    THIRD,
    GOOD,
    RGBColor(0xBE, 0x18, 0x5D),
    RGBColor(0x0F, 0x76, 0x6E),
    RGBColor(0x6B, 0x6B, 0x00),
];

/// Whether the line with that number has the colour of an earlier one, and is dashed.
pub fn is_dashed(number: usize) -> bool {
    number / LINES.len() % 2 == 1
}

/// An axis: what its numbers are called is told by `label`.
pub struct Axis {
    /// From the smallest to the largest value, in axis units.
    pub range: Range<f64>,
    /// Where there are lines and labels.
    pub ticks: Vec<f64>,
    /// The text of a tick.
    pub label: Box<dyn Fn(f64) -> String>,
}

impl Axis {
    /// A linear axis from 0 to at least `max`.
    pub fn from_zero(max: f64, label: impl Fn(f64) -> String + 'static) -> Axis {
        let max = if max > LEAST && max.is_finite() {
            max
        } else {
            1.0
        };
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
        let end = if end > LEAST && end.is_finite() {
            end
        } else {
            1.0
        };
        let step = step(end / 4.0);
        let count = (end / step).floor() as u32;
        Axis {
            range: 0.0..end,
            ticks: (0..=count).map(|i| f64::from(i) * step).collect(),
            label: Box::new(seconds),
        }
    }

    /// A logarithmic axis over values above 0: its units are log10.
    pub fn log(low: f64, high: f64, label: impl Fn(f64) -> String + 'static) -> Axis {
        // Beyond any latency: what lies there has nothing to do with time.
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

/// Ends of axes below this are none: a step between ticks would be nothing.
const LEAST: f64 = 1e-12;

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

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Context<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// An axis as plotters asks for it: linear, with ticks where we want them.
struct Scale {
    range: Range<f64>,
    ticks: Vec<f64>,
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, pixels: (i32, i32)) -> i32 {
        let Range { start, end } = self.range;
        let share = (value - start) / (end - start);
        let (from, to) = (f64::from(pixels.0), f64::from(pixels.1));
        (from + share.clamp(0.0, 1.0) * (to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// What stands on a pair of axes.
#[derive(Default)]
pub struct Content {
    /// Left, bottom, right, top, and how dark, 0 to 1.
    pub tiles: Vec<([f64; 4], f64)>,
    /// Points of lines by the number of their colour.
    pub lines: Vec<(usize, Vec<(f64, f64)>)>,
    /// Whether the points of lines are seen.
    pub dots: bool,
    /// Limits: a dashed line at that height, by the number of its colour, with its name.
    pub limits: Vec<(usize, f64, String)>,
    /// Where along the axis something is, with its name.
    pub posts: Vec<(f64, String)>,
    /// Whether these stand out.
    pub loud: bool,
    /// Points that are good, as a disc, or bad, as a cross.
    pub marks: Vec<((f64, f64), bool)>,
}

/// The chart as an element `svg`.
pub fn chart(x: &Axis, y: &Axis, content: &Content) -> String {
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        draw(&area, x, y, content).expect("drawing into memory does not fail");
    }
    text
}

fn draw(area: &Area<'_>, x: &Axis, y: &Axis, content: &Content) -> Drawn {
    let font = || FontDesc::new(FontFamily::SansSerif, FONT_SIZE, FontStyle::Normal);
    let scale = |axis: &Axis| Scale {
        range: axis.range.clone(),
        ticks: axis.ticks.clone(),
    };
    let mut chart: Context<'_, '_> = ChartBuilder::on(area)
        .margin_top(8)
        .margin_right(14)
        .x_label_area_size(24)
        .y_label_area_size(58)
        .build_cartesian_2d(scale(x), scale(y))?;
    chart
        .configure_mesh()
        .bold_line_style(GRID.stroke_width(1))
        .light_line_style(ShapeStyle::from(&GRID.mix(0.0)))
        .axis_style(QUIET.stroke_width(1))
        .x_label_style(font())
        .y_label_style(font())
        .x_label_formatter(&|value| (x.label)(*value))
        .y_label_formatter(&|value| (y.label)(*value))
        .draw()?;
    chart.draw_series(
        content
            .tiles
            .iter()
            .map(|([left, bottom, right, top], dark)| {
                Rectangle::new(
                    [(*left, *bottom), (*right, *top)],
                    ACCENT.mix(*dark).filled(),
                )
            }),
    )?;
    for (number, points) in &content.lines {
        let color = LINES[number % LINES.len()];
        let (points_of, style) = (points.iter().copied(), color.stroke_width(2));
        match is_dashed(*number) {
            true => chart.draw_series(DashedLineSeries::new(points_of, 6, 4, style))?,
            false => chart.draw_series(LineSeries::new(points_of, style))?,
        };
        let dots = points.iter().filter(|_| content.dots);
        chart.draw_series(dots.map(|point| Circle::new(*point, 3, color.filled())))?;
    }
    draw_notes(area, &mut chart, (x, y), content)?;
    area.present()
}

/// Limits, posts and marks, over the lines.
fn draw_notes(
    area: &Area<'_>,
    chart: &mut Context<'_, '_>,
    (x, y): (&Axis, &Axis),
    content: &Content,
) -> Drawn {
    let style = |horizontal: HPos, vertical: VPos| {
        let font = FontDesc::new(FontFamily::SansSerif, FONT_SIZE, FontStyle::Normal);
        TextStyle::from(font).pos(Pos::new(horizontal, vertical))
    };
    for (number, height, name) in &content.limits {
        let color = LINES[number % LINES.len()];
        let ends = [(x.range.start, *height), (x.range.end, *height)];
        chart.draw_series(DashedLineSeries::new(ends, 6, 4, color.stroke_width(1)))?;
        let name = Text::new(
            format!("\u{a0}{name}"),
            (x.range.start, *height),
            style(HPos::Left, VPos::Bottom),
        );
        chart.draw_series([name])?;
    }
    let color = if content.loud { BAD } else { QUIET };
    for (i, (place, name)) in content.posts.iter().enumerate() {
        let ends = [(*place, y.range.start), (*place, y.range.end)];
        chart.draw_series(LineSeries::new(ends, color.stroke_width(1)))?;
        // On the side that has room for it; a plain blank at an end would be lost.
        let (side, name) = match 2.0 * place > x.range.start + x.range.end {
            true => (HPos::Right, format!("{name}\u{a0}")),
            false => (HPos::Left, format!("\u{a0}{name}")),
        };
        // Names of neighbours stand below each other.
        let (left, top) = chart.backend_coord(&(*place, y.range.end));
        let below = NAME_HEIGHT * (i % NAMES_BELOW) as i32;
        let text = Text::new(name, (left, top + below), style(side, VPos::Top));
        area.draw(&text)?;
    }
    for (place, good) in &content.marks {
        match good {
            true => chart.draw_series([Circle::new(*place, 4, GOOD.filled())])?,
            false => chart.draw_series([Cross::new(*place, 4, BAD.stroke_width(2))])?,
        };
    }
    Ok(())
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
