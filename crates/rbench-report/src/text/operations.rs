//! The table of operations: a row for each, its other times below it.

use crate::figures::caches;
use crate::figures::{FIGURES, Figure, Output, Row, Shown, about};
use crate::schema::{PhaseResult, RunResult};
use crate::table::{Column, Table, left, or_none, right};
use crate::view::View;

use super::{STOPPED, UNSYNCED, for_phases, iterations, marks};

/// A column after the name of the operation.
pub(crate) struct Cell {
    /// Its title below that of its neighbours.
    pub title: &'static str,
    /// Its title where there is none above it.
    pub alone: &'static str,
    figure: &'static str,
    quantity: &'static str,
    minor: u8,
}

const fn cell(title: &'static str, figure: &'static str, minor: u8) -> Cell {
    Cell {
        title,
        alone: title,
        figure,
        quantity: "",
        minor,
    }
}

const fn time(title: &'static str, quantity: &'static str, minor: u8) -> Cell {
    Cell {
        quantity,
        ..cell(title, "service", minor)
    }
}

/// The columns, in their order.
pub(crate) const CELLS: [Cell; 11] = [
    cell("Items", "items", 0),
    Cell {
        alone: "Items/s",
        ..cell("last done", "rate", 0)
    },
    cell("first done", FIRST_DONE, 2),
    cell("Bandwidth", "bandwidth", 0),
    time("Mean", "mean", 0),
    time("p50", "p50", 0),
    time("p99", "p99", 0),
    time("p99.9", "p99.9", 1),
    time("Max", "max", 0),
    cell("Errors", "errors", 0),
    cell("Cache", "cache", 0),
];

const FIRST_DONE: &str = "first_done_rate";

/// Figures that are 0 or nothing where an operation has no items.
const OF_ITEMS: [&str; 3] = ["items", "rate", FIRST_DONE];

/// The lines below a row, if it has the first figure: for each quantity of the service time
/// the figure and quantity in that column.
type Below = (
    &'static str,
    &'static str,
    fn(&'static str) -> (&'static str, &'static str),
);

const BELOW: [Below; 3] = [
    ("response time", "response", |of| ("response", of)),
    ("late to start", "lateness_mean_ns", |of| match of {
        "mean" => ("lateness_mean_ns", ""),
        "max" => ("lateness_max_ns", ""),
        _ => ("", ""),
    }),
    ("by the stonewall", "stonewalled", |of| ("stonewalled", of)),
];

impl Cell {
    /// Its meaning, in words.
    pub(crate) fn about(&self) -> String {
        about(self.figure, self.quantity)
    }

    /// Returns true if it is left out when it has no value.
    pub(crate) fn is_optional(&self) -> bool {
        matches!(self.figure, "bandwidth" | "cache")
    }

    /// Returns true if it holds words.
    pub(crate) fn is_left(&self) -> bool {
        self.figure == "cache"
    }

    /// The title that it shares with its neighbours; empty without one.
    pub(crate) fn group(&self, open_loop: bool) -> &'static str {
        match self.figure {
            "rate" | FIRST_DONE => "Items per second",
            "service" if open_loop => "Service time",
            "service" => "Latency",
            _ => "",
        }
    }

    fn column(&self, open_loop: bool, several: bool) -> Column {
        let (group, title) = match several && self.figure == "rate" {
            true => ("", self.alone),
            false => (self.group(open_loop), self.title),
        };
        let column = match self.is_left() {
            true => left(title),
            false => right(title),
        };
        let column = column.under(group).minor(self.minor);
        match self.is_optional() {
            true => column.optional(),
            false => column,
        }
    }

    fn show(&self, row: &Row<'_>) -> Option<String> {
        if OF_ITEMS.contains(&self.figure) && row.number("items", "") == Some(0.0) {
            return None;
        }
        match (self.figure, row.phases.as_slice()) {
            ("cache", [phase]) => Some(caches::cell(phase)),
            _ => row.show(self.figure, self.quantity),
        }
    }
}

/// The name of a row, with the marks of its phases.
fn name(row: &Row<'_>) -> String {
    let marked = |has: fn(&&PhaseResult) -> bool, mark| match row.phases.iter().any(has) {
        true => mark,
        false => "",
    };
    let stopped = marked(|phase| !phase.complete, STOPPED);
    let unsynced = marked(|phase| phase.unsynced, UNSYNCED);
    format!("{}{stopped}{unsynced}", row.label())
}

/// The lines of a row, each with the name in front of [`CELLS`]: its own, and below it those of
/// its other times. A dash where there is no value.
pub(crate) fn lines(row: &Row<'_>) -> Vec<Vec<String>> {
    let own = CELLS.iter().map(|cell| or_none(cell.show(row)));
    let own = [name(row)].into_iter().chain(own).collect();
    let below = BELOW.iter().filter(|(_, figure, _)| row.has(figure));
    let below = below.map(|(words, _, of)| {
        let cells = CELLS.iter().map(|cell| match of(cell.quantity) {
            ("", _) => String::new(),
            _ if cell.quantity.is_empty() => String::new(),
            (figure, of) => or_none(row.show(figure, of)),
        });
        [format!("  {words}")].into_iter().chain(cells).collect()
    });
    [own].into_iter().chain(below).collect()
}

/// Each operation of each iteration; without details of all iterations together, whose rates
/// are means.
pub fn render(result: &RunResult, view: View) -> String {
    let several = iterations(result) > 1 && !view.details;
    let open_loop = result.phases.iter().any(|p| p.latency.response.is_some());
    let kept = |cell: &Cell| !several || cell.figure != FIRST_DONE;
    let first = if several {
        "All iterations"
    } else {
        "Operation"
    };
    let columns = CELLS.iter().filter(|cell| kept(cell));
    let columns = columns.map(|cell| cell.column(open_loop, several));
    let mut table = Table::new([left(first)].into_iter().chain(columns));
    let add = |row: Row<'_>, table: &mut Table| {
        for line in lines(&row) {
            let mut cells = line.into_iter();
            let name = cells.next();
            let cells = CELLS.iter().zip(cells).filter(|(cell, _)| kept(cell));
            table.row(name.into_iter().chain(cells.map(|(_, text)| text)));
        }
    };
    match several {
        true => Row::all(result)
            .into_iter()
            .for_each(|row| add(row, &mut table)),
        false => for_phases(result, &mut table, |phase, table| {
            add(Row::of(vec![phase]), table)
        }),
    }
    match table.is_empty() {
        true => "No phase has finished.\n".to_owned(),
        false => table.render(view) + &marks(result),
    }
}

/// The figures that an output lists and none of its other parts has.
pub(crate) fn others(output: Output) -> impl Iterator<Item = &'static Figure> {
    FIGURES
        .iter()
        .filter(move |figure| figure.shown(output) == Shown::Listed)
}

/// Figures that no other part of the report has, where they are not 0.
pub fn more(result: &RunResult, view: View) -> String {
    let figures = || others(Output::Text);
    let columns = figures().map(|figure| right(figure.title).optional());
    let mut table = Table::new([left("MORE FIGURES")].into_iter().chain(columns));
    for_phases(result, &mut table, |phase, table| {
        let row = Row::of(vec![phase]);
        let cell = |figure: &Figure| {
            let some = row
                .number(figure.name, "")
                .is_some_and(|number| number != 0.0);
            row.show(figure.name, "").filter(|_| some)
        };
        let cells = figures().map(|figure| or_none(cell(figure)));
        table.row([name(&row)].into_iter().chain(cells));
    });
    table.render(view)
}
