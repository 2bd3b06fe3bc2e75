//! Aligned text: tables whose columns are as wide as their cells, and lines wrapped to a width.
//! Cells are opaque text; their control characters are escaped.

use std::borrow::Cow;
use std::ops::Range;

use rbench_core::plain::plain;

use crate::view::View;

/// A cell without a value.
pub const NONE: &str = "-";

/// The text of a cell, which may be without a value.
pub fn or_none(text: Option<String>) -> String {
    text.unwrap_or_else(|| NONE.to_owned())
}

/// Width down to which cells may be broken into lines to save room.
const CELL_MIN: usize = 16;
/// Minor columns are hidden before cells of up to this width are broken.
const CELL_USUAL: usize = 30;

/// Alignment of a cell in its column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Align {
    Left,
    Right,
}

/// A column and its title.
#[derive(Debug, Clone)]
pub struct Column {
    title: Cow<'static, str>,
    /// Title above neighbouring columns, which share it.
    group: &'static str,
    align: Align,
    optional: bool,
    /// Order of removal to save room, the highest first; 0: never removed.
    minor: u8,
}

/// A column of words.
pub fn left(title: impl Into<Cow<'static, str>>) -> Column {
    Column {
        title: title.into(),
        group: "",
        align: Align::Left,
        optional: false,
        minor: 0,
    }
}

/// A column of numbers.
pub fn right(title: impl Into<Cow<'static, str>>) -> Column {
    Column {
        align: Align::Right,
        ..left(title)
    }
}

impl Column {
    /// Puts the column below a title that it shares with its neighbours.
    pub fn under(self, group: &'static str) -> Column {
        Column { group, ..self }
    }

    /// Hides the column when no cell has a value.
    pub fn optional(self) -> Column {
        Column {
            optional: true,
            ..self
        }
    }

    /// Hides the column when room is short and details are off; the column with the highest number
    /// first.
    pub fn minor(self, minor: u8) -> Column {
        Column { minor, ..self }
    }
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<String>),
    /// A heading over the following rows.
    Heading(String),
}

/// Columns and rows.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
    /// A heading that waits for its first row.
    pending: Option<String>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Table {
        Table {
            columns: columns.into_iter().collect(),
            rows: Vec::new(),
            pending: None,
        }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells = cells.into_iter().map(|cell| printable(&cell));
        let cells: Vec<String> = cells.collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.extend(self.pending.take().map(Row::Heading));
        self.rows.push(Row::Cells(cells));
    }

    /// Adds a heading over the following rows; it is dropped if none follow before the next
    /// heading.
    pub fn heading(&mut self, words: impl Into<String>) {
        self.pending = Some(words.into());
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Renders the table as lines no wider than `view`, with columns two spaces apart, or one. To
    /// save room it hides minor columns (without details), breaks long cells, and moves remaining
    /// columns to a further table, which repeats the first column.
    pub fn render(mut self, view: View) -> String {
        if self.is_empty() {
            return String::new();
        }
        self.drop_empty_columns();
        if !view.details {
            self.drop_minor_columns(view.width());
        }
        let parts = self.parts(view.width());
        let shown = parts.iter().map(|part| part.lines(view.width()));
        shown.collect::<Vec<String>>().join("\n")
    }

    fn cells(&self) -> impl Iterator<Item = &Vec<String>> {
        self.rows.iter().filter_map(|row| match row {
            Row::Cells(cells) => Some(cells),
            Row::Heading(_) => None,
        })
    }

    fn drop_empty_columns(&mut self) {
        let has_value = |i: usize| self.cells().any(|c| !c[i].is_empty() && c[i] != NONE);
        let kept: Vec<bool> = (0..self.columns.len())
            .map(|i| !self.columns[i].optional || has_value(i))
            .collect();
        *self = self.only(&kept);
    }

    fn drop_minor_columns(&mut self, width: usize) {
        loop {
            let widths = self.widths().into_iter().map(|width| width.min(CELL_USUAL));
            if total(&widths.collect::<Vec<_>>(), 1) <= width {
                return;
            }
            let minor = self.columns.iter().map(|column| column.minor);
            let Some(most) = minor.max().filter(|most| *most > 0) else {
                return;
            };
            let kept = self.columns.iter().map(|column| column.minor < most);
            *self = self.only(&kept.collect::<Vec<bool>>());
        }
    }

    /// Returns a table of only those columns.
    fn only(&self, kept: &[bool]) -> Table {
        let mut part = self.clone();
        keep(&mut part.columns, kept);
        for row in &mut part.rows {
            if let Row::Cells(cells) = row {
                keep(cells, kept);
            }
        }
        part
    }

    /// Splits the table into parts that fit the width with long cells broken; each starts with the
    /// first column.
    fn parts(&self, width: usize) -> Vec<Table> {
        let least = self.widths().into_iter().map(|width| width.min(CELL_MIN));
        let least: Vec<usize> = least.collect();
        let mut parts: Vec<Vec<bool>> = Vec::new();
        let first = least.first().copied().unwrap_or(0);
        let mut used = width;
        for (i, least) in least.iter().enumerate().skip(1) {
            if used + 1 + least > width {
                parts.push((0..self.columns.len()).map(|k| k == 0).collect());
                used = first;
            }
            if let Some(part) = parts.last_mut() {
                part[i] = true;
            }
            used += 1 + least;
        }
        match parts.len() {
            0 | 1 => vec![self.clone()],
            _ => parts.iter().map(|kept| self.only(kept)).collect(),
        }
    }

    fn lines(&self, width: usize) -> String {
        let mut widths = self.widths();
        let gap = if total(&widths, 2) <= width { 2 } else { 1 };
        narrow(&mut widths, gap, width);
        let mut out = String::new();
        if self.columns.iter().any(|c| !c.group.is_empty()) {
            push_line(&mut out, &self.group_line(&widths, gap));
        }
        let titles: Vec<&str> = self.columns.iter().map(|c| &*c.title).collect();
        if titles.iter().any(|t| !t.is_empty()) {
            self.push_cells(&mut out, &titles, &widths, gap);
            push_line(&mut out, &"-".repeat(total(&widths, gap)));
        }
        for (i, row) in self.rows.iter().enumerate() {
            match row {
                Row::Cells(cells) => {
                    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                    self.push_cells(&mut out, &cells, &widths, gap);
                }
                Row::Heading(words) => {
                    if i > 0 {
                        out.push('\n');
                    }
                    push_line(&mut out, words);
                }
            }
        }
        out
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |i: usize| self.cells().map(|c| width_of(&c[i])).max().unwrap_or(0);
        let columns = self.columns.iter().enumerate();
        let mut widths: Vec<usize> = columns
            .map(|(i, c)| widest(i).max(width_of(&c.title)))
            .collect();
        // Columns make room for the title above them.
        for group in self.groups() {
            let last = group.end - 1;
            let title = width_of(self.columns[last].group);
            let others = total(&widths[group.start..last], 1) + usize::from(group.len() > 1);
            widths[last] = widths[last].max(title.saturating_sub(others));
        }
        widths
    }

    /// The ranges of columns below each group title, or below none.
    fn groups(&self) -> Vec<Range<usize>> {
        let mut at = 0;
        let same = |a: &Column, b: &Column| a.group == b.group;
        let runs = self.columns.chunk_by(same).map(|run| {
            at += run.len();
            at - run.len()..at
        });
        runs.collect()
    }

    /// Writes a row on as many lines as its longest cell needs.
    fn push_cells(&self, out: &mut String, cells: &[&str], widths: &[usize], gap: usize) {
        let broken = cells.iter().zip(widths);
        let broken: Vec<Vec<String>> = broken.map(|(cell, width)| lines_of(cell, *width)).collect();
        let height = broken.iter().map(Vec::len).max().unwrap_or(1);
        for line in 0..height {
            let cells = broken
                .iter()
                .map(|cell| cell.get(line).map_or("", String::as_str));
            push_line(out, &self.join(&cells.collect::<Vec<&str>>(), widths, gap));
        }
    }

    fn join(&self, cells: &[&str], widths: &[usize], gap: usize) -> String {
        let aligned = |i: usize| {
            let space = " ".repeat(widths[i] - width_of(cells[i]));
            match self.columns[i].align {
                Align::Left => format!("{}{space}", cells[i]),
                Align::Right => format!("{space}{}", cells[i]),
            }
        };
        let all: Vec<String> = (0..cells.len()).map(aligned).collect();
        all.join(&" ".repeat(gap))
    }

    /// Centres each group title above its columns.
    fn group_line(&self, widths: &[usize], gap: usize) -> String {
        let mut line = String::new();
        for columns in self.groups() {
            let group = self.columns[columns.start].group;
            let span = total(&widths[columns], gap);
            line.push_str(&format!("{group:^span$}"));
            line.push_str(&" ".repeat(gap));
        }
        line
    }
}

/// Width of a table with columns of these widths.
fn total(widths: &[usize], gap: usize) -> usize {
    widths.iter().sum::<usize>() + gap * widths.len().saturating_sub(1)
}

/// Shrinks the widest columns until all fit, down to [`CELL_MIN`] each.
fn narrow(widths: &mut [usize], gap: usize, room: usize) {
    while total(widths, gap) > room {
        let Some(widest) = widths.iter_mut().max().filter(|width| **width > CELL_MIN) else {
            return;
        };
        *widest -= 1;
    }
}

/// Splits text into lines of at most `width`: between words, and within a word that is wider.
fn lines_of(text: &str, width: usize) -> Vec<String> {
    if width_of(text) <= width || width == 0 {
        return vec![text.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits = |line: &String| line.is_empty() || width_of(line) + 1 + width_of(word) <= width;
        match lines.last_mut() {
            Some(line) if fits(line) && !line.is_empty() => {
                line.push(' ');
                line.push_str(word);
            }
            Some(line) if line.is_empty() => line.push_str(word),
            _ => lines.push(word.to_owned()),
        }
        while let Some(last) = lines.last_mut().filter(|last| width_of(last) > width) {
            let end: usize = last.chars().take(width).map(char::len_utf8).sum();
            let rest = last.split_off(end);
            lines.push(rest);
        }
    }
    lines
}

/// Joins the sections that are not empty; a blank line apart if each ends with a newline.
pub fn sections(all: impl IntoIterator<Item = String>) -> String {
    let filled = all.into_iter().filter(|section| !section.is_empty());
    filled.collect::<Vec<String>>().join("\n")
}

/// Lines below a title; empty without lines.
pub fn titled(title: &str, lines: impl IntoIterator<Item = String>) -> String {
    let lines: String = lines.into_iter().collect();
    match lines.is_empty() {
        true => lines,
        false => format!("{title}\n{lines}"),
    }
}

/// The values without repetitions, in the order of their first appearances.
pub fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    all.into_iter().fold(Vec::new(), |mut known, one| {
        if !known.contains(&one) {
            known.push(one);
        }
        known
    })
}

/// The values of each key, in the order of the keys' first appearances.
pub fn grouped<K: PartialEq, V>(all: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in all {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

fn keep<T>(list: &mut Vec<T>, kept: &[bool]) {
    let mut flags = kept.iter();
    list.retain(|_| flags.next().copied().unwrap_or(true));
}

fn push_line(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// Joins `words` by `separator` into lines no wider than `view`, unless a single word is wider. The
/// first line starts with `label`, the others with as many spaces.
pub fn wrapped<S: AsRef<str>>(view: View, label: &str, words: &[S], separator: &str) -> String {
    let indent = " ".repeat(width_of(label));
    let mut out = String::new();
    let mut line = label.to_owned();
    let mut empty = true;
    let room = view.width().saturating_sub(width_of(label));
    // A piece longer than a line is broken like a sentence.
    let pieces = words.iter().flat_map(|words| {
        let words = printable(words.as_ref());
        let pieces: Vec<(String, bool)> =
            match width_of(&words) + width_of(separator.trim_end()) > room {
                true => words
                    .split(' ')
                    .enumerate()
                    .map(|(i, word)| (word.to_owned(), i > 0))
                    .collect(),
                false => vec![(words, false)],
            };
        pieces
    });
    for (word, within) in pieces {
        let separator = if within { " " } else { separator };
        let end = separator.trim_end();
        // A comma may follow the word.
        let needed = width_of(&line) + width_of(separator) + width_of(&word) + width_of(end);
        if !empty && needed > view.width() {
            line.push_str(end);
            push_line(&mut out, &line);
            line.clone_from(&indent);
            empty = true;
        }
        if !empty {
            line.push_str(separator);
        }
        line.push_str(&word);
        empty = false;
    }
    push_line(&mut out, &line);
    out
}

/// Wraps a sentence.
pub fn sentence(view: View, label: &str, text: &str) -> String {
    wrapped(view, label, &text.split(' ').collect::<Vec<&str>>(), " ")
}

/// Escapes control characters in text from outside, so that a path can neither break a line nor
/// control a terminal.
pub fn printable(text: &str) -> String {
    plain(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::WIDTH;

    fn cells(list: &[&str]) -> Vec<String> {
        list.iter().map(|c| (*c).to_owned()).collect()
    }

    fn check<const N: usize>(columns: [Column; N], rows: &[&[&str]], expect: &str) {
        let mut table = Table::new(columns);
        rows.iter().for_each(|row| table.row(cells(row)));
        assert_eq!(table.render(View::default()), expect);
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let text = "Name        N\n-------------\na           1\nlonger  1,000\n";
        let rows: [&[&str]; 2] = [&["a", "1"], &["longer", "1,000"]];
        check([left("Name"), right("N")], &rows, text);
    }

    #[test]
    fn an_optional_column_without_a_value_is_left_out() {
        let columns = [left("Name"), right("N").optional(), right("M").optional()];
        let text = "Name  M\n-------\na     -\nb     7\n";
        check(columns, &[&["a", "-", "-"], &["b", "", "7"]], text);
    }

    #[test]
    fn a_group_title_stands_over_the_middle_of_its_columns() {
        let columns = [
            left("Name"),
            right("one").under("Both"),
            right("two").under("Both"),
            right("x"),
        ];
        let text = "        Both\nName  one  two  x\n-----------------\na       1    2  3\n";
        check(columns, &[&["a", "1", "2", "3"]], text);
    }

    #[test]
    fn a_table_that_would_be_too_wide_moves_together() {
        let wide = |n: usize| {
            let mut table = Table::new([left("a"), left("b")]);
            table.row(["x".repeat(n), "y".repeat(10)]);
            let text = table.render(View::default());
            text.lines().last().map_or(0, str::len)
        };
        assert_eq!(wide(WIDTH - 12), WIDTH);
        assert_eq!(wide(WIDTH - 11), WIDTH);
    }

    #[test]
    fn control_characters_are_spelled_out_and_aligned_as_such() {
        let mut table = Table::new([left("Name"), right("N")]);
        table.row(cells(&["a\u{1b}[1m\n", "1"]));
        table.row(cells(&["é", "2"]));
        let text = table.render(View::default());
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, ["a\\u{1b}[1m\\n  1", "é             2"]);
        assert_eq!(wrapped(View::default(), "- ", &["x\ry"], " "), "- x\\ry\n");
    }

    #[test]
    fn long_lines_break_between_words_and_hang_under_the_first() {
        let words: Vec<String> = (0..30).map(|i| format!("word{i:02}")).collect();
        let text = wrapped(View::default(), "Label  ", &words, "  ");
        assert!(text.lines().all(|l| l.len() <= WIDTH), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().skip(1).all(|l| l.starts_with("       word")));
        assert_eq!(text.split_whitespace().count(), 31);
    }
}
