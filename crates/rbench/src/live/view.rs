//! Draws the live state of a run: a pure function of the state and the terminal's size.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Gauge, Paragraph, Sparkline};
use rbench_core::plain::plain;
use rbench_core::units::{clock, human_bandwidth, human_count, human_nanos, human_rate};
use rbench_report::schema::{
    LiveFigures, LiveFinished, LiveHost, LiveProgress, LiveResult, LiveRow, LiveState,
};

mod grid;

use grid::{GREY, Grid};

/// Minimum width for rows with both time spans side by side.
const WIDE: u16 = 156;

/// Maximum length of a text from a run, in characters.
const TEXT_MAX: usize = 400;

/// Height of a curve on a screen with `height` lines.
fn curve_lines(height: u16) -> u16 {
    (height / 8).clamp(3, 8)
}

/// Content of the last line, in place of the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    /// The keys.
    None,
    /// Asks whether to stop the run.
    Stop,
    /// The stop was refused: the run is on another host.
    Refused,
    /// Another run has started meanwhile.
    Another,
    /// The stop request was not answered.
    Unheard,
    /// The run has sent nothing for this many seconds.
    Silent(u64),
}

/// Shortens a text of a run and removes its control characters.
fn text(text: &str) -> String {
    let short: String = text.chars().take(TEXT_MAX).collect();
    let plain = plain(&short);
    if !plain.contains(turns) {
        return plain.into_owned();
    }
    let mut out = String::with_capacity(plain.len() + 8);
    for c in plain.chars() {
        match turns(c) {
            true => out.extend(c.escape_unicode()),
            false => out.push(c),
        }
    }
    out
}

/// Returns true for characters that change the text's direction or have no width.
fn turns(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Draws a frame.
pub fn draw(frame: &mut Frame<'_>, known: &LiveResult, question: Question) {
    let area = frame.area();
    let trouble = trouble(known);
    let rows = Grid::of_rows(known, area.width);
    let hosts = Grid::of_hosts(known, area.width);
    let finished = Grid::of_finished(known, area.width);
    let fixed = 5 + trouble.len() as u16;
    let mut free = area.height.saturating_sub(fixed);
    let mut take = |wanted: u16| {
        let taken = wanted.min(free);
        free -= taken;
        taken
    };
    let rows_height = take(rows.height());
    let curves = known.rows.len().min(2) as u16;
    let curves_height = match area.height {
        20.. => take(curves.min(1) * (curve_lines(area.height) + 1)),
        _ => 0,
    };
    // Hosts and finished phases share the rest; each leaves unused lines to the other.
    let rest = area
        .height
        .saturating_sub(fixed + rows_height + curves_height);
    let of_hosts = rest.div_ceil(2).max(rest.saturating_sub(finished.height()));
    let hosts_height = take(hosts.height().min(of_hosts));
    let finished_height = take(finished.height());
    let parts = [
        Constraint::Length(4),
        Constraint::Length(trouble.len() as u16),
        Constraint::Length(rows_height),
        Constraint::Length(curves_height),
        Constraint::Length(hosts_height),
        Constraint::Length(finished_height),
        Constraint::Min(0),
        Constraint::Length(1),
    ];
    let [head, errors, ops, curve, host, end, _, foot] = Layout::vertical(parts).areas(area);
    draw_head(frame, head, known);
    let red = Style::new().red();
    let trouble: Vec<Line<'_>> = trouble
        .into_iter()
        .map(|line| Line::styled(line, red))
        .collect();
    frame.render_widget(Paragraph::new(trouble), errors);
    rows.draw(frame, ops);
    draw_curves(frame, curve, known);
    hosts.draw(frame, host);
    finished.draw_end(frame, end);
    frame.render_widget(Paragraph::new(foot_line(known, question)), foot);
}

/// The latest problems.
fn trouble(known: &LiveResult) -> Vec<String> {
    let notes = known.notes.iter().rev().take(2).rev();
    known
        .first_error
        .iter()
        .chain(notes)
        .map(|note| text(note))
        .collect()
}

fn draw_head(frame: &mut Frame<'_>, area: Rect, known: &LiveResult) {
    let [command, place, phase, sums] = Layout::vertical([Constraint::Length(1); 4]).areas(area);
    let mut words: Vec<String> = known
        .command
        .iter()
        .take(100)
        .map(|word| text(word))
        .collect();
    // Only the program's name matters, not its path.
    if let Some((_, name)) = words.first().and_then(|first| first.rsplit_once('/')) {
        words[0] = name.to_owned();
    }
    let title = words.join(" ");
    let bold = Style::new().add_modifier(Modifier::BOLD);
    frame.render_widget(Paragraph::new(Line::styled(title, bold)), command);
    frame.render_widget(Paragraph::new(place_line(known)), place);
    let label = text(&known.label);
    match known.progress.filter(|_| known.phase) {
        Some(progress) => draw_phase(frame, phase, &label, &progress),
        None => frame.render_widget(Paragraph::new(Line::styled(label, bold)), phase),
    }
    frame.render_widget(Paragraph::new(sums_line(known)), sums);
}

fn place_line(known: &LiveResult) -> String {
    let fs_type = known
        .fs_type
        .as_deref()
        .map(|name| format!(" ({})", text(name)));
    let many = |n: u64, what: &str| match n {
        1 => format!("1 {what}"),
        n => format!("{} {what}s", human_count(n)),
    };
    if known.run.is_empty() {
        return "no run has started yet".to_owned();
    }
    let ranks = many(u64::from(known.ranks), "rank");
    let mut line = format!("{ranks} on {}", many(known.hosts_total, "host"));
    if let Some(cpus) = known.tool_cpus {
        line += &format!(", CPUs: rbench {cpus:.2}");
    }
    if let Some(cpus) = known.client_cpus {
        line += &format!(", client {cpus:.2}");
    }
    // Last, because it may be long.
    let fs_type = fs_type.unwrap_or_default();
    line + &format!(", {}{fs_type}", text(&known.target))
}

/// Draws the phase as a bar, if its progress is known.
fn draw_phase(frame: &mut Frame<'_>, area: Rect, label: &str, progress: &LiveProgress) {
    let LiveProgress {
        elapsed_s,
        left_s,
        items,
        total,
        failed,
        ..
    } = *progress;
    let done = items.saturating_add(failed) as f64;
    let by_count = total.map(|total| done / (total.max(1)) as f64);
    let by_time = left_s.map(|left| elapsed_s / (elapsed_s + left).max(1e-9));
    let ratio = by_count.or(by_time).filter(|ratio| ratio.is_finite());
    let time = |s: f64| clock(s.clamp(0.0, 1e15).round() as u64);
    let left = left_s.map_or_else(String::new, |left| format!(", {} left", time(left)));
    let share = ratio.map_or_else(String::new, |ratio| {
        format!(" {:.0} %", (ratio * 100.0).min(100.0))
    });
    let words = format!("{label}{share}, {} elapsed{left}", time(elapsed_s));
    let bold = Style::new().add_modifier(Modifier::BOLD);
    match ratio {
        Some(ratio) => {
            let gauge = Gauge::default().ratio(ratio.clamp(0.0, 1.0)).label(words);
            frame.render_widget(gauge.gauge_style(bold), area);
        }
        None => frame.render_widget(Paragraph::new(Line::styled(words, bold)), area),
    }
}

/// Totals of the phase.
fn sums_line(known: &LiveResult) -> Line<'static> {
    let mut spans = Vec::new();
    let mut say = |text: String, bad: bool| {
        if !spans.is_empty() {
            spans.push(Span::raw(", "));
        }
        let style = if bad {
            Style::new().red()
        } else {
            Style::new()
        };
        spans.push(Span::styled(text, style));
    };
    if let Some(progress) = &known.progress {
        let of = progress
            .total
            .map_or_else(String::new, |total| format!(" of {}", human_count(total)));
        say(format!("{}{of} done", human_count(progress.items)), false);
        if progress.failed > 0 {
            say(format!("{} failed", human_count(progress.failed)), true);
        }
        say(format!("{}/s", human_rate(progress.rate)), false);
        if progress.bytes > 0 {
            say(human_bandwidth(progress.bandwidth), false);
        }
        if let Some(backlog) = progress.backlog {
            say(format!("backlog {}", human_count(backlog)), false);
        }
    }
    Line::from(spans)
}

/// Draws the first row's rate and 99th percentile side by side; with enough room, also the second
/// row's.
fn draw_curves(frame: &mut Frame<'_>, area: Rect, known: &LiveResult) {
    if area.height < 2 {
        return;
    }
    let rows = if area.width >= WIDE { 2 } else { 1 };
    let rows = known.rows.iter().take(rows);
    let curves: Vec<(String, Vec<u64>)> = rows.flat_map(curves).collect();
    let width = Constraint::Ratio(1, curves.len().max(1) as u32);
    let areas = Layout::horizontal(vec![width; curves.len()])
        .spacing(2)
        .split(area);
    for (area, (title, values)) in areas.iter().zip(curves) {
        let [head, curve] =
            Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(*area);
        frame.render_widget(Paragraph::new(Line::styled(title, GREY)), head);
        // The newest value is at the right edge.
        let room = usize::from(curve.width);
        let newest = &values[values.len().saturating_sub(room)..];
        let mut padded = vec![0; room - newest.len()];
        padded.extend_from_slice(newest);
        frame.render_widget(Sparkline::default().data(padded), curve);
    }
}

/// The curves of a row: titles and values.
fn curves(row: &LiveRow) -> [(String, Vec<u64>); 2] {
    let top = |values: &[u64]| values.iter().copied().max().unwrap_or(0);
    let rates: Vec<u64> = row
        .rates
        .iter()
        .map(|rate| rate.clamp(0.0, 1e15).round() as u64)
        .collect();
    let label = text(&row.label);
    [
        (
            format!("{label}: rate, max {}/s", human_rate(top(&rates) as f64)),
            rates,
        ),
        (
            format!(
                "{label}: p99, max {}",
                human_nanos(top(&row.p99s_ns) as f64)
            ),
            row.p99s_ns.clone(),
        ),
    ]
}

fn foot_line(known: &LiveResult, question: Question) -> Line<'static> {
    let reverse = Style::new().add_modifier(Modifier::REVERSED);
    let bold_red = Style::new().red().add_modifier(Modifier::BOLD);
    let (words, style) = match question {
        Question::Stop => (
            " stop the run? y: end now and report the results; any other key: continue ".to_owned(),
            reverse,
        ),
        Question::Refused => (
            "not stopped: a run can be stopped only from its own host".to_owned(),
            bold_red,
        ),
        Question::Another => (
            "not stopped: a different run is active there".to_owned(),
            bold_red,
        ),
        Question::Unheard => ("not stopped: the run does not answer".to_owned(), bold_red),
        Question::Silent(s) => (format!("no data from the run for {s} s"), bold_red),
        Question::None => match known.state {
            LiveState::Running => ("q leave   s stop the run".to_owned(), Style::new()),
            LiveState::Stopping => ("q leave   the run stops".to_owned(), bold_red),
            LiveState::Ended => ("the run has ended".to_owned(), Style::new()),
        },
    };
    Line::styled(words, style)
}

#[cfg(test)]
mod tests;
