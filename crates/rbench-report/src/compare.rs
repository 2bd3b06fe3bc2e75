//! Comparison of runs with each other, or with published figures. Each operation has its figures,
//! their ratio with an interval, and a verdict.
//!
//! The statistics are in docs/reference/compare.md.

mod condition;
mod dist;
mod even;
mod figure;
mod notes;
pub mod published;
#[cfg(test)]
mod rates;
mod render;
mod samples;
mod series;
mod sides;
mod whole;

use rbench_core::hist::HistError;
use rbench_core::permutation::{self, Sides};
use rbench_core::plain::plain;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

pub use condition::{Condition, ConditionError, Judged, Met, Undecided};
pub use even::Difference;
pub use figure::{COMPARED, FIGURES, Figure};
pub use render::{COMPARE_SCHEMA, FORMATS, Format};
pub(crate) use render::{ComparisonResult, headline, interval, marked, ratio};
pub use samples::{Basis, Run, SeriesRun};
pub use series::{Cell, SeriesPart, compare_series};
pub use sides::Side;
pub use whole::{Bracket, Whole, WholeFigure};

use crate::json::ten_digits;
use crate::stats::{self, Estimate, holm};
use crate::warnings;
use figure::{Sampled, find};
use published::{Column, Unmeasured};
use samples::{RowSamples, Samples, gather};

/// Thresholds of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Smallest change of a figure that counts, as a share of the base.
    pub min_effect: f64,
    /// Probability that no row differs by chance if there is no difference; below 1.
    pub confidence: f64,
    /// True to compare runs that did different things.
    pub even_if_different: bool,
    /// `--fail-if`
    pub conditions: Vec<Condition>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            min_effect: 0.05,
            confidence: 0.95,
            even_if_different: false,
            conditions: Vec::new(),
        }
    }
}

/// The reason for refusing a comparison. Each text is one sentence.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A result file holds an invalid distribution.
    #[error("{run}: {row}: {error}")]
    Unreadable {
        /// The file.
        run: String,
        /// The row.
        row: String,
        /// The error.
        error: HistError,
    },
    /// The runs did different things.
    #[error("these runs are not comparable: {}; --even-if-different compares them anyway", listed(.0))]
    Uneven(Vec<Difference>),
    /// They have no row in common.
    #[error("no operation has finished in both {base} and {new}{keys}")]
    NothingInCommon {
        /// The base of the comparison.
        base: String,
        /// The compared runs.
        new: String,
        /// The differing keys of sweeps, a clause after a colon; empty where none differ.
        keys: String,
    },
    /// A condition about an operation or figure that does not exist.
    #[error("--fail-if {0}")]
    Condition(String),
}

fn listed(differences: &[Difference]) -> String {
    let all: Vec<String> = differences.iter().map(ToString::to_string).collect();
    plain(&all.join("; ")).into_owned()
}

/// Result of comparing a row of NEW with that of BASE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Faster by at least the smallest change that counts, and not by chance.
    Faster,
    /// Slower by at least that much, and not by chance.
    Slower,
    /// No difference is shown.
    NoDifference,
    /// Too few samples for a verdict.
    TooFew,
}

impl Verdict {
    /// The verdict in words.
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::NoDifference => "no difference shown",
            Verdict::TooFew => "too few samples",
        }
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.words().serialize(serializer)
    }
}

/// A figure of both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedFigure")]
pub struct Outcome {
    /// Its name: `rate`, `bandwidth`, `mean`, `p50` … `max`, `response-mean` …, and others of docs/reference/figures.md.
    #[schemars(with = "String")]
    pub figure: &'static Figure,
    /// Its unit: `ops/s`, `bytes/s`, `ns`, `us`; empty for a ratio.
    pub unit: &'static str,
    /// Value of BASE.
    #[serde(serialize_with = "ten_digits")]
    pub base: f64,
    /// Value of NEW.
    #[serde(serialize_with = "ten_digits")]
    pub new: f64,
    /// NEW / BASE.
    #[serde(serialize_with = "ten_digits")]
    pub ratio: f64,
    /// The ratios that fit the samples; `None` where there are too few of them.
    pub interval: Option<Interval>,
}

/// The ratios that fit the samples.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedInterval")]
pub struct Interval {
    /// The lowest.
    #[serde(serialize_with = "ten_digits")]
    pub low: f64,
    /// The highest; `None`: beyond any number.
    #[serde(serialize_with = "ten_digits")]
    #[schemars(with = "Option<f64>")]
    pub high: f64,
    /// The level of significance at which `p` shows a difference.
    #[serde(serialize_with = "ten_digits")]
    pub level: f64,
    /// The probability of such a difference in any operation if there is none.
    #[serde(serialize_with = "ten_digits")]
    pub p: f64,
}

impl Outcome {
    /// Returns true if the interval shows a difference.
    pub fn is_shown(&self) -> bool {
        self.interval.is_some_and(|interval| {
            let holds_no_change = (interval.low..=interval.high).contains(&1.0);
            interval.p <= interval.level && !holds_no_change
        })
    }
}

/// An operation on both sides.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ComparedRow")]
pub struct Row {
    /// Its cell, of a series; absent where runs are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cell: Option<String>,
    /// Its name for machines.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// `faster`, `slower`, `no difference shown`, `too few samples`.
    #[schemars(with = "String")]
    pub verdict: Verdict,
    /// The figure that the verdict is about.
    #[schemars(with = "String")]
    pub judged_by: &'static Figure,
    /// The samples of BASE.
    #[serde(rename = "base_samples")]
    #[schemars(with = "Samples")]
    pub base: Basis,
    /// The samples of NEW.
    #[serde(rename = "new_samples")]
    #[schemars(with = "Samples")]
    pub new: Basis,
    /// Differences between the measurements of both sides: another cache, other sizes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unlike: Vec<Difference>,
    /// The figures that both sides have.
    pub figures: Vec<Outcome>,
    /// On at least one side, too many due operations never started: no response time includes them.
    #[serde(skip)]
    pub starved: bool,
}

impl Row {
    /// A row of these names and samples, without figures yet.
    fn new(
        (name, label): (String, String),
        [base, new]: [Basis; 2],
        judged_by: &'static Figure,
    ) -> Row {
        Row {
            cell: None,
            name,
            label,
            verdict: Verdict::TooFew,
            judged_by,
            base,
            new,
            unlike: Vec::new(),
            figures: Vec::new(),
            starved: false,
        }
    }

    /// The figure that the verdict judges.
    pub fn judged(&self) -> Option<&Outcome> {
        self.figures.iter().find(|f| f.figure == self.judged_by)
    }

    /// Returns true if it has too few samples for any verdict.
    fn lacks_samples(&self) -> bool {
        self.judged()
            .is_none_or(|outcome| outcome.interval.is_none())
    }

    /// Its name, after that of its cell.
    pub fn full_name(&self) -> String {
        within(self.cell.as_deref(), &self.name)
    }
}

/// The name of an operation, after that of its cell.
fn within(cell: Option<&str>, row: &str) -> String {
    cell.map_or_else(|| row.to_owned(), |cell| format!("{cell}: {row}"))
}

/// The whole comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The base of the comparison.
    pub base: Side,
    /// The compared runs.
    pub new: Side,
    /// The thresholds.
    pub options: Options,
    /// Further results of comparing series.
    pub series: Option<SeriesPart>,
    /// The operations of both sides, in the order of BASE; of a series, of each cell.
    pub rows: Vec<Row>,
    /// Other differences, which did not prevent the comparison; with published figures: the
    /// set-ups.
    pub differences: Vec<Difference>,
    /// Published rows that the runs did not measure.
    pub unmeasured: Vec<Unmeasured>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// The conditions.
    pub judged: Vec<Judged>,
}

impl Comparison {
    /// Returns true if one of the conditions is met.
    pub fn fails(&self) -> bool {
        self.judged.iter().any(|judged| !judged.met.is_empty())
    }
}

/// Compares NEW with BASE; several runs of a side are its samples.
///
/// # Errors A sentence that says why they are not compared.
pub fn compare(
    base: &[Run<'_>],
    new: &[Run<'_>],
    options: &Options,
) -> Result<Comparison, Refusal> {
    let paired = paired(base, new, options.even_if_different)?;
    if !paired.differences.is_empty() && !options.even_if_different {
        return Err(Refusal::Uneven(paired.differences));
    }
    if paired.pairs.is_empty() {
        return Err(Refusal::NothingInCommon {
            base: names(base).join(", "),
            new: names(new).join(", "),
            keys: String::new(),
        });
    }
    paired.judged(Side::of_runs(base, new), options)
}

/// A comparison before judging: the rows and differences of two sides.
#[derive(Default)]
struct Paired {
    series: Option<SeriesPart>,
    pairs: Vec<Pair>,
    differences: Vec<Difference>,
    unmeasured: Vec<Unmeasured>,
    notes: Vec<String>,
    /// Warnings about compared rows of BASE, and of NEW.
    warned: [Vec<Warned>; 2],
    /// Rows of BASE without a figure in NEW.
    gone: Vec<Missing>,
}

/// A warning of a compared run.
struct Warned {
    code: String,
    file: String,
}

/// The warnings of runs about the operations that are compared.
fn warned(runs: &[Run<'_>], pairs: &[Pair]) -> Vec<Warned> {
    let names: Vec<&str> = pairs.iter().map(|pair| pair.row.name.as_str()).collect();
    let mut all = Vec::new();
    for run in runs.iter().filter(|_| !pairs.is_empty()) {
        let codes = warnings::about(run.result, &names).into_iter();
        all.extend(codes.map(|code| Warned {
            code: code.to_owned(),
            file: run.name.to_owned(),
        }));
    }
    all
}

/// An operation of BASE without a figure in NEW, by its cell and its name.
#[derive(Debug, Clone, PartialEq)]
struct Missing {
    cell: Option<String>,
    row: String,
}

/// Finds the rows of both sides; `different` allows runs that did different things.
fn paired(base: &[Run<'_>], new: &[Run<'_>], different: bool) -> Result<Paired, Refusal> {
    let (base_rows, new_rows) = (gather(base)?, gather(new)?);
    let differences = even::of_runs(base, new);
    let mut pairs = Vec::new();
    for base in base_rows.iter().filter(|row| !row.runs.is_empty()) {
        let same = new_rows.iter().find(|row| row.name == base.name);
        pairs.extend(
            same.filter(|row| !row.runs.is_empty())
                .map(|new| pair(base, new)),
        );
    }
    let mut notes = notes::of_side("BASE", &base_rows);
    notes.extend(notes::of_side("NEW", &new_rows));
    notes.extend(notes::one_sided("BASE", &base_rows, &new_rows));
    notes.extend(notes::one_sided("NEW", &new_rows, &base_rows));
    let gone = gone(&base_rows, &new_rows, different);
    Ok(Paired {
        warned: [base, new].map(|runs| warned(runs, &pairs)),
        pairs,
        differences,
        notes,
        gone: gone
            .into_iter()
            .map(|row| Missing { cell: None, row })
            .collect(),
        ..Paired::default()
    })
}

/// Compares runs with a published column: the rows that measure the same thing.
///
/// # Errors A sentence that says why they are not compared.
pub fn against(
    column: &Column,
    runs: &[Run<'_>],
    options: &Options,
) -> Result<Comparison, Refusal> {
    let rows = gather(runs)?;
    // The runs must have done the same among themselves.
    let (first, others) = runs.split_at(runs.len().min(1));
    let uneven = even::of_runs(first, others);
    if !uneven.is_empty() && !options.even_if_different {
        return Err(Refusal::Uneven(uneven));
    }
    let mut pairs: Vec<Pair> = Vec::new();
    let mut unmeasured = Vec::new();
    let mut workloads: Vec<&'static published::Workload> = Vec::new();
    for published in &column.rows {
        match published.place(runs, &rows) {
            Ok((row, figure)) => {
                if !workloads
                    .iter()
                    .any(|own| own.name == published.workload.name)
                {
                    workloads.push(published.workload);
                }
                add_published(&mut pairs, published, row, figure);
            }
            Err(reason) => unmeasured.push(Unmeasured {
                workload: published.workload.name.to_owned(),
                operation: published.operation.clone(),
                reason,
            }),
        }
    }
    let set_ups = published::set_ups(&column.set_ups(&workloads), runs, &rows);
    let mut notes = column.notes();
    notes.extend(notes::of_side("NEW", &rows));
    let paired = Paired {
        warned: [Vec::new(), warned(runs, &pairs)],
        pairs,
        differences: uneven.into_iter().chain(set_ups).collect(),
        unmeasured,
        notes,
        ..Paired::default()
    };
    paired.judged(Side::of_column(column, runs), options)
}

fn names(runs: &[Run<'_>]) -> Vec<String> {
    runs.iter().map(|run| run.name.to_owned()).collect()
}

/// A row before judging, and the estimates of both sides for its figures.
struct Pair {
    row: Row,
    sampled: Vec<(&'static Figure, Sampled, Sampled)>,
}

impl Pair {
    fn sampled(&self, figure: &Figure) -> Option<(&Sampled, &Sampled)> {
        let mut sampled = self.sampled.iter();
        let (_, base, new) = sampled.find(|(own, ..)| *own == figure)?;
        Some((base, new))
    }

    /// Returns true if there are few samples, all of one side are above all of the other, and the
    /// sides differ by half or more.
    fn is_apart(&self) -> bool {
        let Some((base, new)) = self.sampled(self.row.judged_by) else {
            return false;
        };
        let ends = |logs: &[f64]| {
            let all = logs.iter().copied();
            (
                all.clone().fold(f64::INFINITY, f64::min),
                all.fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let ((low, high), (least, most)) = (ends(&base.logs), ends(&new.logs));
        (2..notes::SAMPLES_ENOUGH).contains(&base.logs.len().min(new.logs.len()))
            && (high < least || most < low)
            && (base.value / new.value).ln().abs() >= 1.5_f64.ln()
    }
}

/// The figure that a verdict judges: the rate, or the mean response time in an open loop, whose
/// rate is given. Single operations, and those of `rbench ops`, are judged by their time.
fn judging(response: bool, by_time: bool) -> &'static Figure {
    let name = match (response, by_time) {
        (true, _) => "response-mean",
        (false, true) => "mean",
        (false, false) => "rate",
    };
    find(name).unwrap_or(&FIGURES[0])
}

fn pair(base: &RowSamples, new: &RowSamples) -> Pair {
    let (old, young) = (base.units(), new.units());
    let by_time = [base, new].iter().any(|row| row.one_each || row.by_time);
    let response =
        |samples: &[samples::Repetition]| samples.iter().all(samples::Repetition::is_open_loop);
    let sampled = FIGURES
        .iter()
        .filter_map(|figure| Some((figure, figure.of(&old)?, figure.of(&young)?)));
    Pair {
        row: Row {
            unlike: even::of_rows(base, new),
            starved: base.is_starved() || new.is_starved(),
            ..Row::new(
                (base.name.clone(), base.label.clone()),
                [base.basis(), new.basis()],
                judging(response(&old) && response(&young), by_time),
            )
        },
        sampled: sampled.collect(),
    }
}

/// Adds a published figure to the row that measures it.
fn add_published(
    pairs: &mut Vec<Pair>,
    published: &published::Figures,
    row: &RowSamples,
    figure: &'static Figure,
) {
    let base = Sampled::published(published.value);
    let Some(new) = figure.of(&row.units()) else {
        return;
    };
    let label = format!("{} ({})", row.label, published.workload.name);
    let place = pairs.iter().position(|pair| pair.row.label == label);
    let place = place.unwrap_or_else(|| {
        let sides = [Basis::Published, row.basis()];
        pairs.push(Pair {
            row: Row::new((row.name.clone(), label), sides, figure),
            sampled: Vec::new(),
        });
        pairs.len() - 1
    });
    pairs[place].sampled.push((figure, base, new));
}

impl Paired {
    /// # Errors A condition about an operation or figure that does not exist.
    fn judged(self, [base, new]: [Side; 2], options: &Options) -> Result<Comparison, Refusal> {
        let Paired {
            series,
            pairs,
            differences,
            unmeasured,
            notes: of_pairs,
            warned,
            gone,
        } = self;
        let sides = [("BASE", &base), ("NEW", &new)].into_iter().zip(&warned);
        let of_warnings = sides.filter_map(|((name, side), warned)| {
            notes::of_warnings(name, warned, side.names.len())
        });
        let mut notes: Vec<String> = of_warnings.chain(of_pairs).collect();
        let conditions = || options.conditions.iter();
        if let Some(why) = conditions().find_map(|c| c.without(&gone)) {
            return Err(Refusal::Condition(why));
        }
        let apart = pairs.iter().map(Pair::is_apart).collect::<Vec<bool>>();
        let rows = judge(pairs, options);
        notes.extend(notes::row_notes(&rows, options));
        notes.extend(notes::undecided(&rows, &apart));
        let mut comparison = Comparison {
            base,
            new,
            options: options.clone(),
            series,
            rows,
            differences,
            unmeasured,
            notes,
            judged: Vec::new(),
        };
        if let Some(why) = conditions().find_map(|c| c.without_a_figure(&comparison)) {
            return Err(Refusal::Condition(why));
        }
        comparison.judged = conditions().map(|c| c.judge(&comparison)).collect();
        Ok(comparison)
    }
}

/// Tests the judged figures of all rows together, and each other figure by itself.
fn judge(pairs: Vec<Pair>, options: &Options) -> Vec<Row> {
    // Round off the digits that subtraction made inexact.
    let alpha = ((1.0 - options.confidence) * 1e12).round() / 1e12;
    let of = |choose: &dyn Fn(&Pair) -> &'static Figure| -> Vec<Option<Interval>> {
        let figures = pairs.iter().map(|pair| pair.sampled(choose(pair)));
        intervals(&figures.collect::<Vec<_>>(), alpha)
    };
    let verdicts = of(&|pair| pair.row.judged_by);
    // Rows that are judged by a figure have its interval already.
    let is_wanted = |figure: &'static Figure| {
        let mut pairs = pairs.iter();
        pairs.any(|pair| pair.row.judged_by != figure && pair.sampled(figure).is_some())
    };
    let by_figure: Vec<Vec<Option<Interval>>> = FIGURES
        .iter()
        .map(|figure| match is_wanted(figure) {
            true => of(&|_| figure),
            false => vec![None; pairs.len()],
        })
        .collect();
    let interval = |place: usize, row: &Row, figure: &'static Figure| {
        if row.judged_by == figure {
            return verdicts[place];
        }
        let column = FIGURES.iter().position(|own| own == figure)?;
        by_figure[column][place]
    };
    let rows = pairs.iter().enumerate().map(|(place, pair)| {
        let figures = pair.sampled.iter().map(|(figure, base, new)| Outcome {
            figure,
            unit: figure.unit.name(),
            base: base.value,
            new: new.value,
            ratio: new.value / base.value,
            interval: interval(place, &pair.row, figure),
        });
        let mut row = Row {
            figures: figures.collect(),
            ..pair.row.clone()
        };
        // Response times without the operations that waited longest prove nothing.
        let judged = row.judged().filter(|_| !row.starved);
        row.verdict = judged.map_or(Verdict::TooFew, |o| verdict(o, options));
        row
    });
    rows.collect()
}

/// Intervals of one figure of some rows: by permutation, or by Student's t for published figures.
fn intervals(rows: &[Option<(&Sampled, &Sampled)>], alpha: f64) -> Vec<Option<Interval>> {
    let is_published = rows.iter().flatten().any(|(base, _)| base.logs.is_empty());
    let (found, levels) = match is_published {
        true => against_published(rows, alpha),
        false => (by_permutation(rows, alpha), vec![Some(alpha); rows.len()]),
    };
    let rows = rows.iter().zip(found).zip(levels);
    rows.map(|((sides, found), level)| {
        let ((low, high), p) = found?;
        let (base, new) = (*sides)?;
        // A percentile of all merged values may differ from those of the samples.
        let ratio = new.value / base.value;
        Some(Interval {
            low: low.min(ratio),
            high: high.max(ratio),
            level: level?,
            p,
        })
    })
    .collect()
}

/// Lowest and highest ratio, and p; `None` with too few samples.
type Tested = Option<((f64, f64), f64)>;

fn by_permutation(rows: &[Option<(&Sampled, &Sampled)>], alpha: f64) -> Vec<Tested> {
    let sides: Vec<Sides<'_>> = rows
        .iter()
        .map(|row| Sides {
            base: row.map_or(&[], |(base, _)| &base.logs),
            new: row.map_or(&[], |(_, new)| &new.logs),
        })
        .collect();
    let chances = permutation::test(&sides, alpha);
    let tested = sides.into_iter().zip(chances);
    tested
        .map(|(sides, chance)| {
            let chance = chance?;
            let (low, high) = chance.interval(sides)?;
            Some(((low.exp(), high.exp()), chance.p))
        })
        .collect()
}

/// Tests against published figures, with levels by Holm's procedure.
fn against_published(
    rows: &[Option<(&Sampled, &Sampled)>],
    alpha: f64,
) -> (Vec<Tested>, Vec<Option<f64>>) {
    let differences = rows.iter().map(|row| {
        let (base, new) = (*row)?;
        Estimate::of_logarithms(&new.logs)?.against(base.value)
    });
    let differences: Vec<Option<stats::Difference>> = differences.collect();
    let ps: Vec<Option<f64>> = differences.iter().map(|d| d.map(|d| d.p())).collect();
    let levels = holm(&ps, alpha);
    let tested = differences.iter().zip(&levels);
    let tested = tested.map(|(difference, level)| {
        let difference = (*difference)?;
        Some((difference.interval((*level)?), difference.p()))
    });
    (tested.collect(), levels)
}

fn verdict(outcome: &Outcome, options: &Options) -> Verdict {
    if outcome.interval.is_none() {
        return Verdict::TooFew;
    }
    let counts = (outcome.ratio - 1.0).abs() >= options.min_effect;
    if !outcome.is_shown() || !counts {
        return Verdict::NoDifference;
    }
    match (outcome.ratio > 1.0) == outcome.figure.more_is_better() {
        true => Verdict::Faster,
        false => Verdict::Slower,
    }
}

/// The rows of BASE without a figure in NEW. With `different`, rows that NEW did not even try may
/// be missing.
fn gone(base: &[RowSamples], new: &[RowSamples], different: bool) -> Vec<String> {
    let has_none = |row: &&RowSamples| match new.iter().find(|other| other.name == row.name) {
        Some(other) => other.runs.is_empty(),
        None => !different,
    };
    let measured = base.iter().filter(|row| !row.runs.is_empty());
    measured
        .filter(has_none)
        .map(|row| row.name.clone())
        .collect()
}
