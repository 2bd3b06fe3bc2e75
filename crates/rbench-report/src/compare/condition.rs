//! `--fail-if`: conditions on a comparison, such as `file-create.p99>+10%`.

use std::fmt;

use rbench_core::near::nearest;

use super::figure::{FIGURES, Figure, find};
use super::{Comparison, Outcome, Row};

/// A change that is not accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// As it was typed.
    pub text: String,
    /// The row; `None`: all of them.
    row: Option<String>,
    figure: &'static Figure,
    direction: Direction,
    /// Limit of new / base − 1.
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Above,
    Below,
}

/// Why a condition is none. The text is a clause that follows `--fail-if`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConditionError(String);

const FORM: &str = "FIGURE>+N% or FIGURE<-N%, with OPERATION. before it for one operation, \
     such as file-create.p99>+10% or rate<-5%";

impl Condition {
    /// Reads `[OPERATION.]FIGURE>+N%` or `…<-N%`.
    ///
    /// # Errors
    /// A clause that says what is wrong, or which changes can never be.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        let wrong = |why: String| Err(ConditionError(format!("'{text}' {why}")));
        let typed: String = text.split_whitespace().collect();
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
            return wrong(format!("has no limit in percent: it must be {FORM}"));
        };
        let percent = match number.parse::<f64>() {
            Ok(percent) if percent.is_finite() => percent,
            _ => return wrong(format!("has no number before %: it must be {FORM}")),
        };
        let Some((row, figure)) = split(left) else {
            let names: Vec<&str> = FIGURES.iter().map(|figure| figure.name).collect();
            let last = left.rsplit('.').next().unwrap_or(left);
            let near = nearest(last, names.iter().copied());
            let near = near.map_or_else(String::new, |name| format!(" (nearest: {name})"));
            return wrong(format!(
                "names no figure: one of {}{near}",
                names.join(", ")
            ));
        };
        match direction {
            Direction::Above if percent < 0.0 => {
                return wrong(
                    "is met where nothing changes: > takes an increase (+5%), < a decrease (-5%)"
                        .to_owned(),
                );
            }
            Direction::Below if percent > 0.0 || number.starts_with('+') => {
                return wrong(
                    "is met where nothing changes: < takes a decrease (-5%), > an increase (+5%)"
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
            row,
            figure,
            direction,
            limit: percent / 100.0,
        })
    }

    /// Why it cannot be judged when these rows have no figure any more: it is about
    /// every row.
    pub(super) fn without(&self, gone: &[String]) -> Option<String> {
        (self.row.is_none() && !gone.is_empty()).then(|| {
            format!(
                "'{}' is about every operation, and NEW has no figure of {}: look why, or name the operations",
                self.text,
                gone.join(", ")
            )
        })
    }

    /// Why it can be met by none of these rows.
    pub(super) fn without_a_row(&self, rows: &[Row]) -> Option<String> {
        let text = &self.text;
        let named = |row: &&Row| self.row.as_ref().is_none_or(|name| *name == row.name);
        if let (Some(wanted), None) = (&self.row, rows.iter().find(named)) {
            let near = nearest(wanted, rows.iter().map(|row| row.name.as_str()));
            let near = near.map_or_else(String::new, |name| format!(" (nearest: {name})"));
            return Some(format!(
                "'{text}' names the operation {wanted}, which is not compared{near}"
            ));
        }
        let is_response = self.figure.name.starts_with("response");
        if let Some(row) = rows
            .iter()
            .filter(named)
            .find(|row| row.starved && is_response)
        {
            return Some(format!(
                "'{text}' cannot be judged: operations of {} were due and never started, and are in no response time",
                row.name
            ));
        }
        let has = |row: &Row| row.figures.iter().any(|f| f.figure == self.figure);
        let any = rows.iter().filter(named).any(has);
        (!any).then(|| {
            let name = self.figure.name;
            format!("'{text}' is about {name}, which no operation has here")
        })
    }

    /// Holds it against a comparison.
    pub(super) fn judge(&self, comparison: &Comparison) -> Judged {
        let rows = comparison.rows.iter();
        let own = rows.filter(|row| self.row.as_ref().is_none_or(|name| *name == row.name));
        let mut met = Vec::new();
        for row in own {
            let found = row.figures.iter().find(|f| f.figure == self.figure);
            let Some(outcome) = found else { continue };
            if self.is_met_by(outcome) {
                met.push(Met {
                    row: row.name.clone(),
                    change: outcome.ratio - 1.0,
                    shown: outcome.interval.is_some(),
                });
            }
        }
        Judged {
            text: self.text.clone(),
            met,
        }
    }

    /// Whether the change lies beyond the limit and, where there is an interval, is
    /// shown not to be chance.
    fn is_met_by(&self, outcome: &Outcome) -> bool {
        let change = outcome.ratio - 1.0;
        let beyond = match self.direction {
            Direction::Above => change > self.limit,
            Direction::Below => change < self.limit,
        };
        beyond && (outcome.interval.is_none() || outcome.is_shown())
    }
}

/// The row and the figure of `file-create.p99.9`; both may have points in them.
fn split(text: &str) -> Option<(Option<String>, &'static Figure)> {
    if let Some(figure) = find(text) {
        return Some((None, figure));
    }
    let fits = |figure: &&Figure| {
        let row = text.strip_suffix(figure.name)?.strip_suffix('.')?;
        (!row.is_empty()).then(|| row.to_owned())
    };
    FIGURES
        .iter()
        .find_map(|figure| fits(&figure).map(|row| (Some(row), figure)))
}

/// What a condition came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The condition as it was typed.
    pub text: String,
    /// The rows in which it is met.
    pub met: Vec<Met>,
}

/// A row in which a condition is met.
#[derive(Debug, Clone, PartialEq)]
pub struct Met {
    /// The name of the row.
    pub row: String,
    /// new / base − 1.
    pub change: f64,
    /// Whether an interval says that it is no chance; else it is judged by the
    /// figures alone.
    pub shown: bool,
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.met.is_empty() {
            return write!(f, "{}: not met", self.text);
        }
        let one = |met: &Met| {
            let chance = if met.shown {
                ""
            } else {
                ", judged without an interval"
            };
            format!("{} ({:+.1}%{chance})", met.row, 100.0 * met.change)
        };
        let all: Vec<String> = self.met.iter().map(one).collect();
        write!(f, "{}: MET by {}", self.text, all.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Option<String>, &'static str, f64) {
        let condition = Condition::parse(text).expect(text);
        (condition.row, condition.figure.name, condition.limit)
    }

    #[test]
    fn conditions_name_a_figure_and_perhaps_a_row() {
        let row = |name: &str| Some(name.to_owned());
        assert_eq!(parsed("rate<-5%"), (None, "rate", -0.05));
        assert_eq!(
            parsed("file-create.p99>+10%"),
            (row("file-create"), "p99", 0.1)
        );
        assert_eq!(parsed("p99.9 > 10%"), (None, "p99.9", 0.1));
        assert_eq!(parsed("a.b.p99.9>0%"), (row("a.b"), "p99.9", 0.0));
        assert_eq!(
            parsed("randread.response-p99>+2.5%"),
            (row("randread"), "response-p99", 0.025)
        );
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
            (".rate<-5%", "names no figure"),
            ("rate>-5%", "is met where nothing changes"),
            ("rate<+5%", "is met where nothing changes"),
            ("rate<-100%", "can never be met"),
        ] {
            let error = Condition::parse(text).expect_err(text).to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
