//! Aligned text: tables whose columns are as wide as their cells, and lines
//! wrapped to a width. It knows nothing of what the cells mean; control
//! characters in them are escaped.

use std::borrow::Cow;

/// Width of text in columns, unless a single word is wider.
pub const WIDTH: usize = 120;

/// A cell without a value.
pub const NONE: &str = "-";

/// On which side of its column a cell stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Align {
    Left,
    Right,
}

/// A column and its title.
#[derive(Debug, Clone)]
pub struct Column {
    title: Cow<'static, str>,
    /// A title above those of neighbouring columns that have the same.
    group: &'static str,
    align: Align,
    optional: bool,
}

/// A column of words.
pub fn left(title: impl Into<Cow<'static, str>>) -> Column {
    Column {
        title: title.into(),
        group: "",
        align: Align::Left,
        optional: false,
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
    /// Puts the column under a title that it shares with its neighbours.
    pub fn under(self, group: &'static str) -> Column {
        Column { group, ..self }
    }

    /// Leaves the column out when no cell has a value.
    pub fn optional(self) -> Column {
        Column {
            optional: true,
            ..self
        }
    }
}

#[derive(Debug, Clone)]
enum Row {
    Cells(Vec<String>),
    /// Words over the following rows.
    Heading(String),
}

/// Columns and rows.
#[derive(Debug, Clone)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Row>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: impl Into<Vec<Column>>) -> Table {
        Table {
            columns: columns.into(),
            rows: Vec::new(),
        }
    }

    /// Adds a row of as many cells as there are columns.
    pub fn row(&mut self, cells: impl Into<Vec<String>>) {
        let cells: Vec<String> = cells.into();
        debug_assert_eq!(cells.len(), self.columns.len());
        let cells = cells.iter().map(|cell| printable(cell)).collect();
        self.rows.push(Row::Cells(cells));
    }

    /// Adds words over the rows that follow.
    pub fn heading(&mut self, words: impl Into<String>) {
        self.rows.push(Row::Heading(words.into()));
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The table as lines. Columns stand two spaces apart, or one where the
    /// table would be wider than [`WIDTH`].
    pub fn render(mut self) -> String {
        self.drop_empty_columns();
        let widths = self.widths();
        let width = |gap: usize| widths.iter().sum::<usize>() + gap * (widths.len() - 1);
        let gap = if width(2) <= WIDTH { 2 } else { 1 };
        let mut out = String::new();
        if self.columns.iter().any(|c| !c.group.is_empty()) {
            push_line(&mut out, &self.group_line(&widths, gap));
        }
        let titles: Vec<&str> = self.columns.iter().map(|c| &*c.title).collect();
        if titles.iter().any(|t| !t.is_empty()) {
            push_line(&mut out, &self.join(&titles, &widths, gap));
            push_line(&mut out, &"-".repeat(width(gap)));
        }
        for (i, row) in self.rows.iter().enumerate() {
            match row {
                Row::Cells(cells) => {
                    let cells: Vec<&str> = cells.iter().map(String::as_str).collect();
                    push_line(&mut out, &self.join(&cells, &widths, gap));
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
        keep(&mut self.columns, &kept);
        for row in &mut self.rows {
            if let Row::Cells(cells) = row {
                keep(cells, &kept);
            }
        }
    }

    fn widths(&self) -> Vec<usize> {
        let widest = |i: usize| self.cells().map(|c| width_of(&c[i])).max().unwrap_or(0);
        let columns = self.columns.iter().enumerate();
        columns
            .map(|(i, c)| widest(i).max(width_of(&c.title)))
            .collect()
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

    /// Each group title in the middle of the columns it stands over.
    fn group_line(&self, widths: &[usize], gap: usize) -> String {
        let mut line = String::new();
        let mut at = 0;
        while at < self.columns.len() {
            let group = self.columns[at].group;
            let members = self.columns[at..]
                .iter()
                .take_while(|c| c.group == group)
                .count();
            let span = widths[at..at + members].iter().sum::<usize>() + gap * (members - 1);
            line.push_str(&format!("{group:^span$}"));
            line.push_str(&" ".repeat(gap));
            at += members;
        }
        line
    }
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

/// Lines of `words` joined by `separator`, each at most [`WIDTH`] wide where
/// no single word is wider. The first line begins with `label`, the others
/// with as many spaces.
pub fn wrapped<S: AsRef<str>>(label: &str, words: &[S], separator: &str) -> String {
    let indent = " ".repeat(width_of(label));
    let mut out = String::new();
    let mut line = label.to_owned();
    let mut empty = true;
    for word in words.iter().map(|w| printable(w.as_ref())) {
        let needed = width_of(&line) + width_of(separator) + width_of(&word);
        if !empty && needed > WIDTH {
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

/// Text from outside with its control characters escaped, so that a path can
/// neither break a line nor control a terminal.
pub fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let (plain, escaped) = if c.is_control() {
                (None, Some(c.escape_default()))
            } else {
                (Some(c), None)
            };
            plain.into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(list: &[&str]) -> Vec<String> {
        list.iter().map(|c| (*c).to_owned()).collect()
    }

    #[test]
    fn words_stand_left_and_numbers_right() {
        let mut table = Table::new([left("Name"), right("N")]);
        table.row(cells(&["a", "1"]));
        table.row(cells(&["longer", "1,000"]));
        assert_eq!(
            table.render(),
            "Name        N\n-------------\na           1\nlonger  1,000\n"
        );
    }

    #[test]
    fn an_optional_column_without_a_value_is_left_out() {
        let columns = [left("Name"), right("N").optional(), right("M").optional()];
        let mut table = Table::new(columns);
        table.row(cells(&["a", "-", "-"]));
        table.row(cells(&["b", "", "7"]));
        assert_eq!(table.render(), "Name  M\n-------\na     -\nb     7\n");
    }

    #[test]
    fn a_group_title_stands_over_the_middle_of_its_columns() {
        let columns = [
            left("Name"),
            right("one").under("Both"),
            right("two").under("Both"),
            right("x"),
        ];
        let mut table = Table::new(columns);
        table.row(cells(&["a", "1", "2", "3"]));
        assert_eq!(
            table.render(),
            "        Both\nName  one  two  x\n-----------------\na       1    2  3\n"
        );
    }

    #[test]
    fn a_table_that_would_be_too_wide_moves_together() {
        let wide = |n: usize| {
            let mut table = Table::new([left("a"), left("b")]);
            table.row(["x".repeat(n), "y".repeat(10)]);
            table.render().lines().last().map_or(0, str::len)
        };
        assert_eq!(wide(WIDTH - 12), WIDTH);
        assert_eq!(wide(WIDTH - 11), WIDTH);
    }

    #[test]
    fn control_characters_are_spelled_out_and_aligned_as_such() {
        let mut table = Table::new([left("Name"), right("N")]);
        table.row(cells(&["a\u{1b}[1m\n", "1"]));
        table.row(cells(&["é", "2"]));
        let text = table.render();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines, ["a\\u{1b}[1m\\n  1", "é             2"]);
        assert_eq!(wrapped("- ", &["x\ry"], " "), "- x\\ry\n");
    }

    #[test]
    fn long_lines_break_between_words_and_hang_under_the_first() {
        let words: Vec<String> = (0..30).map(|i| format!("word{i:02}")).collect();
        let text = wrapped("Label  ", &words, "  ");
        assert!(text.lines().all(|l| l.len() <= WIDTH), "{text}");
        assert_eq!(text.lines().count(), 3);
        assert!(text.lines().skip(1).all(|l| l.starts_with("       word")));
        assert_eq!(text.split_whitespace().count(), 31);
    }
}
