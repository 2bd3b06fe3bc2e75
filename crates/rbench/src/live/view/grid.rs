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

/// The columns of figures.
fn figures_columns() -> [Column; 5] {
    [
        right("per s", 9),
        right("p50", 7),
        right("p99", 7),
        right("p99.9", 7),
        right("max", 7),
    ]
}

fn figures(figures: &LiveFigures) -> [String; 5] {
    let time = |ns: u64| match figures.items {
        0 => "-".to_owned(),
        _ => human_nanos(ns as f64),
    };
    [
        rate(figures.rate),
        time(figures.p50_ns),
        time(figures.p99_ns),
        time(figures.p999_ns),
        time(figures.max_ns),
    ]
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
    /// The rows of the running phase: two lines each, or one if there is room.
    pub fn of_rows(known: &LiveResult, width: u16) -> Grid {
        let last = whole_seconds(known.interval_s);
        let rows = known
            .rows
            .iter()
            .filter(|row| row.all.items + row.all.errors > 0);
        if width < WIDE {
            let mut columns = vec![left("operation", 16), left("", 5)];
            columns.extend(figures_columns());
            columns.extend([right("gap", 7), right("failed", 6)]);
            let lines = rows.flat_map(|row| {
                let mut now = vec![text(&row.label), last.clone()];
                now.extend(figures(&row.last));
                now.extend([String::new(), count(row.last.errors)]);
                let mut all = vec![times_of(row).to_owned(), "all".to_owned()];
                all.extend(figures(&row.all));
                let gap = row.longest_gap_s.map_or_else(String::new, seconds);
                all.extend([gap, count(row.all.errors)]);
                let style = bad(row.all.errors);
                [(now, style), (all, style.add_modifier(Modifier::DIM))]
            });
            let lines = lines.collect();
            return Grid { columns, lines };
        }
        let mut columns = vec![left("operation", 20), left("", 6)];
        columns.extend(figures_columns());
        columns.extend([right("", 11), left("", 4)]);
        columns.extend(figures_columns());
        columns.extend([right("", 11), right("gap", 7), right("failed", 6)]);
        let lines = rows.map(|row| {
            let mut line = vec![text(&row.label), last.clone()];
            line.extend(figures(&row.last));
            line.extend([bandwidth(&row.last), "all".to_owned()]);
            line.extend(figures(&row.all));
            let gap = row.longest_gap_s.map_or_else(String::new, seconds);
            line.extend([bandwidth(&row.all), gap, count(row.all.errors)]);
            (line, bad(row.all.errors))
        });
        let lines = lines.collect();
        Grid { columns, lines }
    }

    /// The hosts of the phase; those that have waited longest come first.
    pub fn of_hosts(known: &LiveResult, width: u16) -> Grid {
        if known.hosts.is_empty() {
            return Grid::default();
        }
        let wide = width >= WIDE;
        let mut columns = match wide {
            true => vec![left("host", 20), left("", 6)],
            false => vec![left("host", 16), left("", 5)],
        };
        columns.extend(figures_columns());
        if wide {
            columns.extend([right("", 11), left("", 4)]);
            columns.extend(figures_columns());
            columns.push(right("CPUs/client", 11));
        }
        columns.extend([right("silent", 7), right("failed", 6)]);
        let last = whole_seconds(known.interval_s);
        let line = |host: &LiveHost| {
            let mut line = vec![text(&host.host), last.clone()];
            line.extend(figures(&host.last));
            if wide {
                line.extend([bandwidth(&host.last), "all".to_owned()]);
                line.extend(figures(&host.all));
                let cpus = |cpus: Option<f64>| cpus.map(|cpus| format!("{cpus:.2}"));
                let both = [cpus(host.tool_cpus), cpus(host.client_cpus)];
                line.push(both.map(Option::unwrap_or_default).join("/"));
            }
            let silent = match host.silent_s > known.interval_s {
                true => seconds(host.silent_s),
                false => String::new(),
            };
            line.extend([silent, count(host.all.errors)]);
            (line, bad(host.all.errors))
        };
        let lines = known.hosts.iter().map(line).collect();
        Grid { columns, lines }
    }

    /// The finished phases; the latest is last.
    pub fn of_finished(known: &LiveResult, width: u16) -> Grid {
        if known.finished.is_empty() {
            return Grid::default();
        }
        let wide = width >= WIDE;
        let mut columns = vec![left("ended", if wide { 27 } else { 22 })];
        columns.extend(figures_columns());
        columns.extend([right("gap", 7), right("failed", 6)]);
        if wide {
            columns.extend([right("", 12), left("cache", 20)]);
        }
        let line = |row: &LiveFinished| {
            let LiveFigures { errors, .. } = row.all;
            let pass = match row.iteration {
                0 => String::new(),
                pass => format!(" (pass {})", pass + 1),
            };
            let part = if row.complete { "" } else { " (a part)" };
            let mut line = vec![format!("{}{pass}{part}", text(&row.label))];
            let mut of = figures(&row.all);
            if row.one_each {
                of[0] = "-".to_owned();
            }
            line.extend(of);
            let gap = row.longest_gap_s.map_or_else(String::new, seconds);
            line.extend([gap, count(errors)]);
            if wide {
                let cache = row.cache.as_deref().map_or("", rbench_report::cache_word);
                line.extend([bandwidth(&row.all), cache.to_owned()]);
            }
            (line, bad(errors))
        };
        let lines = known.finished.iter().map(line).collect();
        Grid { columns, lines }
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
