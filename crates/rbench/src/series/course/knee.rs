//! `rbench knee`: each step depends on the results of the earlier ones.

use rbench_cli::series;
use rbench_core::Nanos;
use rbench_core::units::{counted, human_rate};
use rbench_plan::knee::{Figure, Form, Reached, Search, Stage, Step, Tried};
use rbench_plan::series::Cell;
use rbench_report::schema::{
    CellResult, KneeLimit, KneeObjective, KneeResult, KneeStep, SeriesResult,
};

use super::{Course, Outline};
use crate::series::dry_run::shown;

/// A search for the highest rate at which an objective holds.
pub struct Knee {
    outline: Outline,
    search: Search,
    form: Form,
    words: Vec<std::ffi::OsString>,
}

impl Knee {
    /// # Errors
    /// A sentence that names the option.
    pub fn new(knee: &series::Knee) -> Result<Knee, String> {
        let mut new = Knee {
            outline: Outline::new("knee", Vec::new(), Vec::new()),
            search: knee.asked.resolve().map_err(|e| e.to_string())?,
            form: Form::of(&knee.words).map_err(|e| e.to_string())?,
            words: knee.words.clone(),
        };
        let open = Step {
            rate: 1000.0,
            stage: Stage::Search,
            window: new.search.time,
        };
        new.outline.cells = vec![new.cell(new.search.first(), [0; 3])];
        new.outline.forms = vec![new.cell(open, [1; 3])];
        new.outline.result.knee = Some(without_results(&new.search));
        new.outline.beforehand = Some(beforehand(&new.search));
        Ok(new)
    }

    fn closed(&self, first: &CellResult, knee: &KneeResult) -> Option<Closed> {
        let closed = first.result.as_ref()?;
        let world = &closed.world;
        let workers = f64::from(world.ranks) * f64::from(world.threads_per_rank);
        let done = ["read", "write", "trim"].map(|op| {
            let of_op = closed.phases.iter().filter(|phase| phase.op == op);
            of_op.map(|phase| phase.items).fold(0, u64::saturating_add)
        });
        let together = self.form == Form::Fio;
        let (grain, least) = match self.form {
            Form::Native => (0.0, 0.0),
            Form::Fio => (workers, workers * least_each(done) as f64),
        };
        let reached = Reached {
            rate: knee.closed_rate(together)?,
            grain,
            least,
        };
        Some(Closed {
            reached,
            workers,
            done,
        })
    }

    fn cell(&self, step: Step, rates: [u64; 3]) -> Cell {
        let mut values = vec![("stage".to_owned(), step.stage.name().to_owned())];
        if step.stage != Stage::Closed {
            values.push(("rate".to_owned(), step.rate.to_string()));
        }
        values.push(("window_s".to_owned(), step.window.as_secs_f64().to_string()));
        Cell {
            name: match step.stage {
                Stage::Closed => "without a rate".to_owned(),
                Stage::Search => format!("rate={}", step.rate),
                Stage::Confirm => format!("rate={} for {}", step.rate, step.window),
            },
            values,
            words: self
                .form
                .words(&self.words, step, self.search.arrival, rates),
            ..Cell::default()
        }
    }
}

/// Result of the first step.
struct Closed {
    reached: Reached,
    workers: f64,
    /// Operations of each of fio's directions.
    done: [u64; 3],
}

/// Converts a step of the result for the search.
fn tried(step: &KneeStep) -> Option<Tried> {
    let stages = [Stage::Search, Stage::Confirm];
    Some(Tried {
        rate: step.rate?,
        stage: stages
            .into_iter()
            .find(|stage| stage.name() == step.stage)?,
        held: step.held?,
        clearly: step.far_behind,
        window: Nanos((step.window_s * 1e9).round() as u64),
        share: step.rarest_share(),
    })
}

/// Splits `rate` into rates for reads, writes and trims of each worker of fio's jobs. The split
/// follows the proportions measured without a rate.
fn of_each(rate: f64, workers: f64, done: [u64; 3]) -> [u64; 3] {
    let each = (rate / workers).round().max(1.0) as u64;
    let all = done.iter().copied().fold(0, u64::saturating_add).max(1);
    let part = |items: u64| (each as f64 * items as f64 / all as f64).round() as u64;
    let mut rates = done.map(part);
    // The largest rate absorbs the rounding error.
    let spread: u64 = rates.iter().sum();
    if let Some(largest) = (0..3).rev().max_by_key(|i| done[*i]) {
        rates[largest] = (rates[largest] + each).saturating_sub(spread);
    }
    rates
}

/// The lowest rate of a worker at which each kind of operation in `done` occurs at least once a
/// second. A rate of 0 would mean no limit.
fn least_each(done: [u64; 3]) -> u64 {
    let all = done.iter().copied().fold(0, u64::saturating_add);
    let rarest = done.iter().copied().filter(|items| *items > 0).min();
    rarest.map_or(1, |rarest| all.div_ceil(rarest))
}

/// The objectives of a search, without results.
fn without_results(search: &Search) -> KneeResult {
    let objective = &search.objective;
    let limit = |limit: &rbench_plan::knee::Limit| KneeLimit {
        figure: limit.figure.name(),
        percentile: match limit.figure {
            Figure::Percentile(percent) => Some(percent),
            Figure::Mean | Figure::Max => None,
        },
        most_ns: limit.most.0,
    };
    KneeResult {
        objective: KneeObjective {
            limits: objective.limits.iter().map(limit).collect(),
            errors: objective.errors,
            row: objective.row.clone(),
        },
        from: search.from,
        to: search.to,
        precision: search.precision,
        time_s: search.time.as_secs_f64(),
        arrival: search.arrival.name().to_owned(),
        ..KneeResult::default()
    }
}

/// The expected duration of a search.
fn beforehand(search: &Search) -> String {
    let expected = search.expected_least();
    format!(
        "a step needs {} and takes {} or more; about {} and {} or more in all, without preparing files",
        counted(search.operations(), "operation"),
        search.time,
        counted(expected.steps as u64 + 1, "step"),
        shown(expected.time.as_secs_f64() + search.time.as_secs_f64()),
    )
}

/// True if a step could not be judged or did not finish, which ends the search.
fn cannot_go_on(so_far: &SeriesResult, knee: &KneeResult) -> bool {
    knee.trouble.is_some() || so_far.cells.iter().any(|cell| !cell.is_complete())
}

impl Course for Knee {
    fn outline(&self) -> &Outline {
        &self.outline
    }

    fn ended(&self, index: u32, so_far: &SeriesResult) -> Option<String> {
        let first = so_far.cells.first()?;
        let knee = so_far.knee.as_ref()?;
        if cannot_go_on(so_far, knee) {
            return None;
        }
        let reached = self.closed(first, knee)?.reached;
        let tried: Vec<Tried> = knee.steps.iter().filter_map(tried).collect();
        // Of the first step, and while the search goes down: those steps take longer.
        if tried.iter().any(|one| one.held) || (index == 0) != tried.is_empty() {
            return None;
        }
        let expected = self.search.expected(reached, &tried);
        if expected.steps == 0 {
            return None;
        }
        // Each run creates and removes its files.
        let around = (first.wall_s - self.search.time.as_secs_f64()).max(0.0);
        let seconds = expected.time.as_secs_f64() + around * expected.steps as f64;
        let result = match tried.last() {
            None => format!(
                "{} operations a second without a rate",
                human_rate(reached.rate)
            ),
            Some(last) => format!("the objective did not hold at {}", human_rate(last.rate)),
        };
        Some(format!(
            "rbench: {result}: about {} follow, {} in all, more if the limit is far below\n",
            counted(expected.steps as u64, "step"),
            shown(seconds),
        ))
    }

    fn next(&self, so_far: &SeriesResult) -> Option<(u32, Cell)> {
        let Some(first) = so_far.cells.first() else {
            return Some((0, self.cell(self.search.first(), [0; 3])));
        };
        let knee = so_far.knee.as_ref()?;
        if cannot_go_on(so_far, knee) {
            return None;
        }
        let Closed {
            reached,
            workers,
            done,
        } = self.closed(first, knee)?;
        let tried: Vec<Tried> = knee.steps.iter().filter_map(tried).collect();
        let step = self.search.next(reached, &tried)?;
        let rates = of_each(step.rate, workers, done);
        let number = so_far.cells.len() as u32;
        let mut cell = self.cell(step, rates);
        self.form.seed(&mut cell.words, (so_far.run.seed, number));
        Some((number, cell))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mix_of_reads_and_writes_stays_and_their_rates_add_up() {
        assert_eq!(of_each(480.0, 48.0, [9, 0, 0]), [10, 0, 0]);
        assert_eq!(of_each(480.0, 48.0, [700, 300, 0]), [7, 3, 0]);
        assert_eq!(of_each(528.0, 48.0, [1, 1, 1]), [3, 4, 4]);
        assert_eq!(of_each(1.0, 48.0, [1, 0, 0]), [1, 0, 0]);
    }

    #[test]
    fn the_lowest_rate_has_some_of_each_kind() {
        for (done, least) in [
            ([9, 0, 0], 1),
            ([0, 0, 0], 1),
            ([90, 10, 0], 10),
            ([700, 300, 0], 4),
            ([999, 1, 0], 1000),
        ] {
            assert_eq!(least_each(done), least, "{done:?}");
            let rates = of_each(48.0 * least as f64, 48.0, done);
            for (rate, items) in rates.into_iter().zip(done) {
                assert_eq!(
                    rate > 0,
                    items > 0 || least == 1 && done == [0; 3] && rate > 0,
                    "{done:?}: {rates:?}"
                );
            }
        }
    }
}
