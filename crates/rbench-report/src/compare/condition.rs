//! `--fail-if`: conditions on a comparison, such as `file-create.p50>+10%`.

use std::fmt;

use rbench_core::near::nearest;
use schemars::JsonSchema;
use serde::Serialize;

use super::figure::{FIGURES, Figure};
use super::whole::{self, Whole, WholeFigure};
use super::{Comparison, Interval, Missing, Row, Verdict, within};
use crate::json::ten_digits;
use crate::table::distinct;

/// A change that is not accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The condition as typed.
    pub text: String,
    place: Place,
    figure: Wanted,
    direction: Direction,
    /// Limit of new / base − 1.
    limit: f64,
}

/// The place that a condition names; names have no blanks, since conditions are read without them.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Every operation.
    Everywhere,
    /// Every operation of a cell.
    Cell(String),
    /// An operation, or one of a cell: both names, joined by a colon.
    Operation(String),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Wanted {
    Row(&'static Figure),
    /// A figure of a series as a whole.
    Whole(&'static WholeFigure),
}

impl Wanted {
    fn name(self) -> &'static str {
        match self {
            Wanted::Row(figure) => &figure.name,
            Wanted::Whole(figure) => figure.name,
        }
    }
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect()
}

impl Place {
    /// Returns true if the condition includes this operation.
    fn holds(&self, cell: Option<&str>, row: &str) -> bool {
        match self {
            Place::Everywhere => true,
            Place::Cell(wanted) => cell.is_some_and(|cell| squeezed(cell) == *wanted),
            Place::Operation(wanted) => {
                squeezed(row) == *wanted
                    || cell.is_some() && squeezed(&within(cell, row)) == *wanted
            }
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Above,
    Below,
}

/// The reason why a condition is invalid: a clause that follows `--fail-if`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionError(String);

const FORM: &str = "FIGURE>+N% or FIGURE<-N%, with OPERATION. before it for one operation and CELL: for one cell, \
     such as file-create.p50>+10% or rate<-5%";

impl Condition {
    /// Reads `[CELL:][OPERATION.]FIGURE>+N%` or `…<-N%`.
    ///
    /// # Errors A clause that describes the error, or says which changes are impossible.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let wrong = |why: String| Err(ConditionError(format!("'{text}' {why}")));
        let typed = squeezed(text);
        let Some(at) = typed.find(['<', '>']) else {
            return wrong(format!("is not {FORM}"));
        };
        let (left, right) = typed.split_at(at);
        let direction = if right.starts_with('>') {
            Direction::Above
        } else {
            Direction::Below
        };
        let Some(number) = right[1..].strip_suffix('%') else {
            return wrong(format!("has no limit in percent (expected {FORM})"));
        };
        let percent = match number.parse::<f64>() {
            Ok(percent) if percent.is_finite() => percent,
            _ => return wrong(format!("has no number before % (expected {FORM})")),
        };
        let Some((place, figure)) = split(left) else {
            let names: Vec<&str> = figures().map(Wanted::name).collect();
            let last = left.rsplit(['.', ':']).next().unwrap_or(left);
            let near = nearest(last, names.iter().copied());
            let near = near.map_or_else(String::new, |name| format!(" (nearest: {name})"));
            return wrong(format!(
                "does not name a figure{near}: use one of {}",
                names.join(", ")
            ));
        };
        if let (Wanted::Whole(figure), true) = (figure, place != Place::Everywhere) {
            let name = figure.name;
            return wrong(format!(
                "names a cell or operation, but {name} is a figure of the whole series"
            ));
        }
        match direction {
            Direction::Above if percent < 0.0 => {
                return wrong(
                    "is met even if nothing changes: use > with an increase (+5%), < with a decrease (-5%)"
                        .to_owned(),
                );
            }
            Direction::Below if percent > 0.0 || number.starts_with('+') => {
                return wrong(
                    "is met even if nothing changes: use < with a decrease (-5%), > with an increase (+5%)"
                        .to_owned(),
                );
            }
            Direction::Below if percent <= -100.0 => {
                return wrong("can never be met: nothing falls by 100% or more".to_owned());
            }
            Direction::Above | Direction::Below => {}
        }
        Ok(Condition {
            text: text.to_owned(),
            place,
            figure,
            direction,
            limit: percent / 100.0,
        })
    }

    /// The reason why the condition cannot be judged if these rows have lost their figures and it
    /// includes one. A row that a comparison of runs lacks is not included.
    pub(super) fn without(&self, gone: &[Missing]) -> Option<String> {
        let Wanted::Row(_) = self.figure else {
            return None;
        };
        let about = match &self.place {
            Place::Everywhere => "every operation",
            Place::Cell(_) => "every operation of a cell",
            Place::Operation(_) => "an operation of every cell that has it",
        };
        let own = gone.iter().filter(|gone| {
            let one = matches!(self.place, Place::Operation(_));
            self.place.holds(gone.cell.as_deref(), &gone.row) && !(one && gone.cell.is_none())
        });
        let own: Vec<String> = own
            .map(|gone| within(gone.cell.as_deref(), &gone.row))
            .collect();
        (!own.is_empty()).then(|| {
            format!(
                "'{}' is about {about}, but NEW has no figure of {}: find out why, or name the operations",
                self.text,
                own.join(", ")
            )
        })
    }

    /// The reason why nothing in this comparison can meet it.
    pub(super) fn without_a_figure(&self, comparison: &Comparison) -> Option<String> {
        match self.figure {
            Wanted::Row(figure) => self.without_a_row(figure, &comparison.rows),
            Wanted::Whole(figure) => self.without_a_whole(figure, comparison),
        }
    }

    fn without_a_row(&self, figure: &Figure, rows: &[Row]) -> Option<String> {
        let text = &self.text;
        let named = |row: &&Row| self.place.holds(row.cell.as_deref(), &row.name);
        if rows.iter().find(named).is_none() {
            let (what, wanted) = match &self.place {
                Place::Everywhere => {
                    return Some(format!("'{text}': no operation is compared"));
                }
                Place::Cell(cell) => ("cell", cell),
                Place::Operation(row) => ("operation", row),
            };
            let known: Vec<String> = match self.place {
                Place::Cell(_) => rows.iter().filter_map(|row| row.cell.clone()).collect(),
                _ => rows
                    .iter()
                    .flat_map(|row| [row.name.clone(), row.full_name()])
                    .collect(),
            };
            let near = match nearest(wanted, known.iter().map(String::as_str)) {
                Some(name) => format!(" (nearest: {name})"),
                None => format!(" (compared: {})", some_of(distinct(known))),
            };
            return Some(format!(
                "'{text}' names the {what} {wanted}, which is not compared{near}"
            ));
        }
        let is_response = figure.name.starts_with("response");
        if let Some(row) = rows
            .iter()
            .filter(named)
            .find(|row| row.starved && is_response)
        {
            return Some(format!(
                "'{text}' cannot be judged: due operations of {} were never started, and response times do not \
                 include them",
                row.full_name()
            ));
        }
        let own = |row: &Row| {
            row.figures
                .iter()
                .find(|f| f.figure == figure)
                .map(|f| f.interval)
        };
        let found: Vec<(&Row, bool)> = rows
            .iter()
            .filter(named)
            .filter_map(|row| Some((row, own(row)?.is_some())))
            .collect();
        if found.is_empty() {
            let name = &figure.name;
            return Some(format!(
                "'{text}' is about {name}, which no operation has here"
            ));
        }
        // One repetition cannot separate a change from chance.
        let (row, _) = found.iter().find(|(_, is_judged)| !is_judged)?;
        Some(format!(
            "'{text}' cannot be judged: {} has too few samples (BASE {}, NEW {}); repeat with --iterations 5",
            row.full_name(),
            row.base.words(),
            row.new.words()
        ))
    }

    fn without_a_whole(&self, figure: &WholeFigure, comparison: &Comparison) -> Option<String> {
        let (text, name) = (&self.text, figure.name);
        let Some(found) = whole_of(comparison, figure) else {
            return Some(format!(
                "'{text}' is about {name}, which these results do not have"
            ));
        };
        let says_nothing = match found.verdict {
            Some(verdict) => verdict == Verdict::TooFew || found.base.value.is_none(),
            None => found.ratio.is_none(),
        };
        says_nothing.then(|| {
            format!(
                "'{text}' cannot be judged: the {} of one side is inconclusive",
                found.label
            )
        })
    }

    /// Judges the condition by a comparison.
    pub(super) fn judge(&self, comparison: &Comparison) -> Judged {
        let mut judged = Judged {
            text: self.text.clone(),
            met: Vec::new(),
            undecided: Vec::new(),
        };
        match self.figure {
            Wanted::Row(figure) => self.judge_rows(figure, &comparison.rows, &mut judged),
            Wanted::Whole(figure) => {
                if let Some(whole) = whole_of(comparison, figure) {
                    self.judge_whole(whole, &mut judged);
                }
            }
        }
        judged
    }

    fn judge_rows(&self, figure: &Figure, rows: &[Row], judged: &mut Judged) {
        let rows = rows.iter();
        let own = rows.filter(|row| self.place.holds(row.cell.as_deref(), &row.name));
        for row in own {
            let found = row.figures.iter().find(|f| f.figure == figure);
            let Some(outcome) = found else { continue };
            let change = outcome.ratio - 1.0;
            if self.is_beyond(change) && outcome.is_shown() {
                judged.met.push(Met {
                    cell: row.cell.clone(),
                    row: row.name.clone(),
                    change,
                    shown: true,
                });
            } else if let Some(Interval { low, high, .. }) = outcome.interval {
                let undecided = Undecided {
                    cell: row.cell.clone(),
                    row: row.name.clone(),
                    low: low - 1.0,
                    high: high - 1.0,
                };
                self.add_undecided(undecided, judged);
            }
        }
    }

    /// Judges a bracket: the change must exceed the limit, and the brackets must not share a rate.
    fn judge_whole(&self, whole: &Whole, judged: &mut Judged) {
        // A search that found no rate has lost all of it.
        let change = whole.ratio.unwrap_or(0.0) - 1.0;
        let apart = match self.direction {
            _ if whole.verdict.is_none() => true,
            Direction::Above => whole.low.is_some_and(|low| low >= 1.0),
            Direction::Below => whole.high.is_some_and(|high| high <= 1.0),
        };
        if self.is_beyond(change) && apart {
            judged.met.push(Met {
                cell: None,
                row: whole.name.clone(),
                change,
                shown: whole.verdict.is_some(),
            });
        } else if whole.verdict.is_some() {
            let undecided = Undecided {
                cell: None,
                row: whole.name.clone(),
                low: whole.low.unwrap_or(0.0) - 1.0,
                high: whole.high.unwrap_or(f64::INFINITY) - 1.0,
            };
            self.add_undecided(undecided, judged);
        }
    }

    /// Adds a change that may exceed the limit.
    fn add_undecided(&self, change: Undecided, judged: &mut Judged) {
        if [change.low, change.high]
            .iter()
            .any(|end| self.is_beyond(*end))
        {
            judged.undecided.push(change);
        }
    }

    fn is_beyond(&self, change: f64) -> bool {
        match self.direction {
            Direction::Above => change > self.limit,
            Direction::Below => change < self.limit,
        }
    }
}

fn whole_of<'c>(comparison: &'c Comparison, figure: &WholeFigure) -> Option<&'c Whole> {
    let mut wholes = comparison.series.as_ref()?.wholes.iter();
    wholes.find(|whole| whole.name == figure.name)
}

/// All figures that a condition may name.
fn figures() -> impl Iterator<Item = Wanted> {
    let wholes = whole::figures().map(Wanted::Whole);
    FIGURES.iter().map(Wanted::Row).chain(wholes)
}

/// Splits `file-create.p99.9` or `bs=4k:p99` into place and figure; names may contain points and
/// colons.
fn split(text: &str) -> Option<(Place, Wanted)> {
    if let Some(figure) = figures().find(|figure| figure.name() == text) {
        return Some((Place::Everywhere, figure));
    }
    let place = |figure: Wanted| {
        let before = text.strip_suffix(figure.name())?;
        let end = before.chars().next_back()?;
        let name = before[..before.len() - end.len_utf8()].to_owned();
        match (end, name.is_empty()) {
            ('.', false) => Some(Place::Operation(name)),
            (':', false) => Some(Place::Cell(name)),
            _ => None,
        }
    };
    figures().find_map(|figure| place(figure).map(|place| (place, figure)))
}

/// Result of a condition.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedCondition")]
pub struct Judged {
    /// The condition as it was typed.
    #[serde(rename = "condition")]
    pub text: String,
    /// The operations that meet it; empty: it is not met.
    pub met: Vec<Met>,
    /// The operations in which it is not met, but the samples leave room for a change beyond its
    /// limit.
    #[serde(default)]
    pub undecided: Vec<Undecided>,
}

/// An operation or figure that meets a condition or not: the samples do not show it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedUndecided")]
pub struct Undecided {
    /// The cell, of a series; absent where runs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The operation, or the figure of the whole.
    #[serde(rename = "name")]
    pub row: String,
    /// The lowest change that fits the samples: NEW / BASE − 1.
    #[serde(serialize_with = "ten_digits")]
    pub low: f64,
    /// The highest; `None` if nothing bounds it.
    #[serde(serialize_with = "ten_digits")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
}

/// An operation or figure that meets a condition.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedMet")]
pub struct Met {
    /// The cell, of a series; absent where runs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// The operation, or the figure of the whole.
    #[serde(rename = "name")]
    pub row: String,
    /// NEW / BASE − 1.
    #[serde(serialize_with = "ten_digits")]
    pub change: f64,
    /// True if an interval or the brackets show that it is not chance; a score has neither.
    #[serde(rename = "by_interval")]
    pub shown: bool,
}

/// Maximum number of undecided rows that are named.
const OPEN_MAX: usize = 4;

impl Undecided {
    /// `file-create (-9.1% to +2.0%)`
    fn words(&self) -> String {
        let place = within(self.cell.as_deref(), &self.row);
        // Wider intervals say no more.
        let high = match self.high {
            high if high < 10.0 => format!("{:+.1}%", 100.0 * high),
            _ => "over +1000%".to_owned(),
        };
        format!("{place} ({:+.1}% to {high})", 100.0 * self.low)
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.met.is_empty() && self.undecided.is_empty() {
            return write!(f, "{}: not met", self.text);
        }
        if self.met.is_empty() {
            let open = self.undecided.iter().take(OPEN_MAX).map(Undecided::words);
            let mut open: Vec<String> = open.collect();
            let more = self.undecided.len().saturating_sub(OPEN_MAX);
            open.extend((more > 0).then(|| format!("{more} more")));
            let open = open.join(", ");
            return write!(
                f,
                "{}: cannot be decided with these samples: {open}",
                self.text
            );
        }
        let one = |met: &Met| {
            let chance = if met.shown {
                ""
            } else {
                ", judged without an interval"
            };
            let place = within(met.cell.as_deref(), &met.row);
            format!("{place} ({:+.1}%{chance})", 100.0 * met.change)
        };
        let all: Vec<String> = self.met.iter().map(one).collect();
        write!(f, "{}: MET by {}", self.text, all.join(", "))
    }
}

/// Maximum number of names in a message.
const NAMED_MAX: usize = 12;

/// The names, or the first of many.
fn some_of(mut names: Vec<String>) -> String {
    let more = names.len() > NAMED_MAX;
    names.truncate(NAMED_MAX);
    names.join(", ") + if more { " …" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Place, &'static str, f64) {
        let condition = Condition::parse(text).expect(text);
        (condition.place, condition.figure.name(), condition.limit)
    }

    #[test]
    fn conditions_name_a_figure_and_perhaps_a_row_or_a_cell() {
        let row = |name: &str| Place::Operation(name.to_owned());
        let cell = |name: &str| Place::Cell(name.to_owned());
        assert_eq!(parsed("rate<-5%"), (Place::Everywhere, "rate", -0.05));
        assert_eq!(parsed("held<-5%"), (Place::Everywhere, "held", -0.05));
        assert_eq!(
            parsed("hosts=2 bs=4k: rate<-5%"),
            (cell("hosts=2bs=4k"), "rate", -0.05)
        );
        assert_eq!(
            parsed("hosts=2 bs=4k: file-stat.p99.9>+5%"),
            (row("hosts=2bs=4k:file-stat"), "p99.9", 0.05)
        );
        assert_eq!(
            parsed("file-create.p99>+10%"),
            (row("file-create"), "p99", 0.1)
        );
        assert_eq!(parsed("p99.9 > 10%"), (Place::Everywhere, "p99.9", 0.1));
        assert_eq!(parsed("a.b.p99.9>0%"), (row("a.b"), "p99.9", 0.0));
        assert_eq!(
            parsed("randread.response-p99>+2.5%"),
            (row("randread"), "response-p99", 0.025)
        );
    }

    #[test]
    fn an_operation_is_found_by_its_name_or_behind_that_of_its_cell() {
        let holds = |text: &str, cell, row| {
            let condition = Condition::parse(text).expect(text);
            condition.place.holds(cell, row)
        };
        let cell = Some("small files: bs=4k n=1");
        for text in [
            "rate<-5%",
            "small files: bs=4k n=1: rate<-5%",
            "write all.rate<-5%",
            "small files: bs=4k n=1: write all.rate<-5%",
        ] {
            assert!(holds(text, cell, "write all"), "{text}");
        }
        for text in [
            "bs=4k n=1: rate<-5%",
            "write.rate<-5%",
            "small files: rate<-5%",
        ] {
            assert!(!holds(text, cell, "write all"), "{text}");
        }
        assert!(holds("write all.rate<-5%", None, "write all"));
        assert!(!holds("write all: rate<-5%", None, "write all"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "is not FIGURE>+N%"),
            ("rate", "is not FIGURE>+N%"),
            ("rate<-5", "no limit in percent"),
            ("rate<%", "no number"),
            ("rate<nan%", "no number"),
            ("rate<inf%", "no number"),
            ("p98>+5%", "nearest: p90"),
            (".rate<-5%", "does not name a figure"),
            (":rate<-5%", "does not name a figure"),
            ("bs=4k:hold<-5%", "nearest: held"),
            ("bs=4k:held<-5%", "a figure of the whole series"),
            ("rate>-5%", "is met even if nothing changes"),
            ("rate<+5%", "is met even if nothing changes"),
            ("rate<-100%", "can never be met"),
        ] {
            let error = Condition::parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
