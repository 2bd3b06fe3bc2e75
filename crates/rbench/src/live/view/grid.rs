//! The tables of the view: rows of the phase, hosts, finished phases.

use super::*;

/// Style of secondary text.
pub const GREY: Style = Style::new().add_modifier(Modifier::DIM);

/// A column of a table.
#[derive(Debug, Clone)]
pub struct Column {
    head: &'static str,
    width: u16,
    left: bool,
}

/// A table with lines of headings.
#[derive(Debug, Clone, Default)]
pub struct Grid {
    columns: Vec<Column>,
    lines: Vec<(Vec<String>, Style)>,
}

fn left(head: &'static str, width: u16) -> Column {
    Column {
        head,
        width,
        left: true,
    }
}

fn right(head: &'static str, width: u16) -> Column {
    Column {
        head,
        width,
        left: false,
    }
}

/// A cell below its column's heading.
type Cell = (Column, String);

fn figures(figures: &LiveFigures) -> [Cell; 5] {
    let time = |ns: u64| match figures.items {
        0 => "-".to_owned(),
        _ => human_nanos(ns as f64),
    };
    [
        (right("per s", 9), rate(figures.rate)),
        (right("p50", 7), time(figures.p50_ns)),
        (right("p99", 7), time(figures.p99_ns)),
        (right("p99.9", 7), time(figures.p999_ns)),
        (right("max", 7), time(figures.max_ns)),
    ]
}

fn gap(longest_s: Option<f64>) -> Cell {
    (right("gap", 7), longest_s.map_or_else(String::new, seconds))
}

fn failed(errors: u64) -> Cell {
    (right("failed", 6), count(errors))
}

/// Formats a rate to fit its column, since a truncated number would be wrong.
fn rate(per_s: f64) -> String {
    let rate = human_rate(per_s);
    match rate.len() > 9 {
        true => rate.replace(',', ""),
        false => rate,
    }
}

fn bandwidth(figures: &LiveFigures) -> String {
    match figures.bandwidth > 0.0 {
        true => human_bandwidth(figures.bandwidth),
        false => String::new(),
    }
}

fn seconds(s: f64) -> String {
    human_nanos(s * 1e9)
}

/// Formats the length of an interval: `1 s`, `250 ms`.
fn whole_seconds(s: f64) -> String {
    match s.fract() == 0.0 && s < 1e6 {
        true => format!("{s:.0} s"),
        false => seconds(s),
    }
}

fn count(n: u64) -> String {
    match n {
        0 => String::new(),
        n => human_count(n),
    }
}

impl Grid {
    /// A table of these lines, which all have the same columns.
    fn of(lines: impl Iterator<Item = (Vec<Cell>, Style)>) -> Grid {
        let mut grid = Grid::default();
        for (cells, style) in lines {
            let (columns, cells) = cells.into_iter().unzip();
            grid.columns = columns;
            grid.lines.push((cells, style));
        }
        grid
    }

    /// The rows of the running phase: two lines each, or one if there is room.
    pub fn of_rows(known: &LiveResult, width: u16) -> Grid {
        let last = whole_seconds(known.interval_s);
        let rows = known
            .rows
            .iter()
            .filter(|row| row.all.items + row.all.errors > 0);
        if width < WIDE {
            let line = |label: String, span: String, of: &LiveFigures, longest_s| {
                let mut line = vec![(left("operation", 16), label), (left("", 5), span)];
                line.extend(figures(of));
                line.extend([gap(longest_s), failed(of.errors)]);
                line
            };
            return Grid::of(rows.flat_map(|row| {
                let now = line(text(&row.label), last.clone(), &row.last, None);
                let times = times_of(row).to_owned();
                let all = line(times, "all".to_owned(), &row.all, row.longest_gap_s);
                let style = bad(row.all.errors);
                [(now, style), (all, style.add_modifier(Modifier::DIM))]
            }));
        }
        Grid::of(rows.map(|row| {
            let mut line = vec![
                (left("operation", 20), text(&row.label)),
                (left("", 6), last.clone()),
            ];
            line.extend(both_spans(&row.last, &row.all));
            line.push((right("", 11), bandwidth(&row.all)));
            line.extend([gap(row.longest_gap_s), failed(row.all.errors)]);
            (line, bad(row.all.errors))
        }))
    }

    /// The hosts of the phase; those that have waited longest come first.
    pub fn of_hosts(known: &LiveResult, width: u16) -> Grid {
        let wide = width >= WIDE;
        let (name_width, span_width) = if wide { (20, 6) } else { (16, 5) };
        let last = whole_seconds(known.interval_s);
        Grid::of(known.hosts.iter().map(|host: &LiveHost| {
            let mut line = vec![
                (left("host", name_width), text(&host.host)),
                (left("", span_width), last.clone()),
            ];
            if wide {
                line.extend(both_spans(&host.last, &host.all));
                let cpus = |cpus: Option<f64>| cpus.map(|cpus| format!("{cpus:.2}"));
                let both = [cpus(host.tool_cpus), cpus(host.client_cpus)];
                let both = both.map(Option::unwrap_or_default).join("/");
                line.push((right("CPUs/client", 11), both));
            } else {
                line.extend(figures(&host.last));
            }
            let silent = match host.silent_s > known.interval_s {
                true => seconds(host.silent_s),
                false => String::new(),
            };
            line.extend([(right("silent", 7), silent), failed(host.all.errors)]);
            (line, bad(host.all.errors))
        }))
    }

    /// The finished phases; the latest is last.
    pub fn of_finished(known: &LiveResult, width: u16) -> Grid {
        let wide = width >= WIDE;
        Grid::of(known.finished.iter().map(|row: &LiveFinished| {
            let pass = match row.iteration {
                0 => String::new(),
                pass => format!(" (pass {})", pass + 1),
            };
            let part = if row.complete { "" } else { " (a part)" };
            let name = format!("{}{pass}{part}", text(&row.label));
            let mut line = vec![(left("ended", if wide { 27 } else { 22 }), name)];
            let mut of = figures(&row.all);
            if row.one_each {
                of[0].1 = "-".to_owned();
            }
            line.extend(of);
            line.extend([gap(row.longest_gap_s), failed(row.all.errors)]);
            if wide {
                let cache = row.cache.as_deref().map_or("", rbench_report::cache_word);
                line.push((right("", 12), bandwidth(&row.all)));
                line.push((left("cache", 20), cache.to_owned()));
            }
            (line, bad(row.all.errors))
        }))
    }

    /// Height in lines.
    pub fn height(&self) -> u16 {
        match self.lines.len() {
            0 => 0,
            // One line for the headings and one blank line.
            lines => u16::try_from(lines).unwrap_or(u16::MAX).saturating_add(2),
        }
    }

    /// Draws the first lines that fit.
    pub fn draw(&self, frame: &mut Frame<'_>, area: Rect) {
        self.draw_from(frame, area, 0);
    }

    /// Draws the last lines that fit.
    pub fn draw_end(&self, frame: &mut Frame<'_>, area: Rect) {
        let room = usize::from(area.height).saturating_sub(2);
        self.draw_from(frame, area, self.lines.len().saturating_sub(room));
    }

    fn draw_from(&self, frame: &mut Frame<'_>, area: Rect, first: usize) {
        if area.height < 3 {
            return;
        }
        let room = usize::from(area.height) - 2;
        let heads = self
            .columns
            .iter()
            .map(|column| column.head.to_owned())
            .collect();
        let mut lines = vec![Line::raw(""), self.line(&heads).style(GREY)];
        let shown = self.lines.iter().skip(first).take(room);
        lines.extend(shown.map(|(cells, style)| self.line(cells).style(*style)));
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn line(&self, cells: &Vec<String>) -> Line<'static> {
        let both = self.columns.iter().zip(cells);
        let fitted = both.map(|(column, cell)| column.fit(cell));
        Line::raw(fitted.collect::<Vec<String>>().join(" "))
    }
}

impl Column {
    /// The text cut to the column's width; cut text ends with a dot.
    fn fit(&self, cell: &str) -> String {
        let width = usize::from(self.width);
        let line = Line::raw(cell);
        let room = width.saturating_sub(line.width());
        if line.width() <= width {
            let pad = " ".repeat(room);
            return match self.left {
                true => format!("{cell}{pad}"),
                false => format!("{pad}{cell}"),
            };
        }
        let mut cut = String::new();
        for c in cell.chars() {
            let longer = format!("{cut}{c}");
            if Line::raw(longer.as_str()).width() >= width {
                break;
            }
            cut = longer;
        }
        let missing = width.saturating_sub(Line::raw(cut.as_str()).width() + 1);
        format!("{cut}…{}", " ".repeat(missing))
    }
}

/// The figures of the last interval, and those of the whole phase.
fn both_spans(last: &LiveFigures, all: &LiveFigures) -> impl Iterator<Item = Cell> + use<> {
    let between = [
        (right("", 11), bandwidth(last)),
        (left("", 4), "all".to_owned()),
    ];
    figures(last).into_iter().chain(between).chain(figures(all))
}

/// The start from which the row's times count.
fn times_of(row: &LiveRow) -> &'static str {
    match row.response {
        true => "  response times",
        false => "",
    }
}

fn bad(errors: u64) -> Style {
    match errors {
        0 => Style::new(),
        _ => Style::new().red(),
    }
}
