//! The conclusions from the runs of `rbench DIR` as sentences, and the runs' tables.

use std::collections::BTreeMap;

use rbench_core::residency::Evidence;
use rbench_core::units::{human_count, human_nanos, human_rate};

use super::suite;
use crate::check;
use crate::figures::Row;
use crate::figures::caches::{Memory, UNKNOWN, memory, verdict};
use crate::schema::{
    CellResult, CheckResult, PhaseResult, PromiseVerdict, RunResult, SeriesResult,
};
use crate::table::{distinct, sentence};
use crate::text::header::place;
use crate::view::View;

/// Below this round trip, a call of the kernel's own file systems did not reach a server, ns.
const ROUND_TRIP_MIN_NS: u64 = 20_000;
/// More threads must raise the rate by at least this share to count as scaling.
const GAIN_MIN: f64 = 0.2;
/// Maximum number of promises that are named.
const NAMED_MAX: usize = 3;

/// The sentences, then the tables of the steps.
pub fn render(series: &SeriesResult, view: View) -> String {
    let mut out: String = sentences(series)
        .iter()
        .map(|text| sentence(view, "- ", text))
        .collect();
    let tables = suite::render(series, view);
    if !out.is_empty() && !tables.is_empty() {
        out.push('\n');
    }
    out + &tables
}

/// Mount, cache verdict, missing promises, limit of scaling, and the next command to run.
pub(super) fn sentences(series: &SeriesResult) -> Vec<String> {
    let Some(first) = series.results().next() else {
        return Vec::new();
    };
    let scaling: Vec<Scaling> = ["file-create", "file-stat"]
        .iter()
        .filter_map(|name| Scaling::of(series, name))
        .collect();
    let memory = answered_by_memory(series);
    let mut all = vec![
        format!("{}.", place(first).join(", ").replacen(", ", " is ", 1)),
        cost(series, first, &memory),
    ];
    all.extend(series.check.as_ref().map(promises));
    all.extend(throughput(series));
    if !scaling.is_empty() {
        let parts: Vec<String> = scaling.iter().map(Scaling::text).collect();
        all.push(format!(
            "{}. The threads of a rank share a directory, in which the kernel creates one name at a time.",
            parts.join("; ")
        ));
    }
    all.extend(failures(series));
    all.push(next(series, first, &memory, &scaling));
    all
}

/// The operations for which `label` returns a text, each text once.
fn operations(
    series: &SeriesResult,
    label: impl Fn(&PhaseResult) -> Option<String>,
) -> Vec<String> {
    let phases = series.results().flat_map(|result| &result.phases);
    distinct(phases.filter_map(label))
}

fn answered_by_memory(series: &SeriesResult) -> Vec<String> {
    let labels = operations(series, |phase| Some(phase.label.clone()));
    let answered = |label: String| {
        let phases = series.results().flat_map(|result| &result.phases);
        match of_all(phases.filter(|phase| phase.label == label)) {
            Memory::All => Some(label),
            Memory::Part => Some(format!("{PART}{label}")),
            Memory::None => None,
        }
    };
    let mut all: Vec<String> = labels.into_iter().filter_map(answered).collect();
    // "a part of" counts for what follows it.
    all.sort_by_key(|text| text.starts_with(PART));
    all
}

/// Begins the label of an operation that memory answered in part.
const PART: &str = "a part of ";

/// The part of several phases that the host's memory answered.
fn of_all<'p>(phases: impl Iterator<Item = &'p PhaseResult>) -> Memory {
    let parts = phases.map(memory);
    let joined = parts.reduce(|one, other| if one == other { one } else { Memory::Part });
    joined.unwrap_or(Memory::None)
}

/// The cache verdict, and the duration of a request that reaches the file system.
fn cost(series: &SeriesResult, first: &RunResult, memory: &[String]) -> String {
    let mut text = match memory {
        [] => "This host's memory was not seen to answer any operation".to_owned(),
        rows => format!("This host's memory answered {}", list(rows)),
    };
    let unknown = operations(series, |phase| {
        let is_unknown = verdict(phase).is_some_and(|word| word == UNKNOWN);
        is_unknown.then(|| phase.label.clone())
    });
    if !unknown.is_empty() {
        text.push_str(&format!(
            " (unknown for {}: this host had created the files they used)",
            list(&unknown)
        ));
    }
    let slowest = first.target.round_trip.iter().max_by_key(|rt| rt.median_ns);
    let fs_type = first.target.fs_type.as_deref().unwrap_or_default();
    let client = Evidence::of(fs_type) == Evidence::Client;
    let Some(trip) = slowest else {
        text.push('.');
        return text;
    };
    if !client && trip.median_ns < ROUND_TRIP_MIN_NS {
        text.push_str(&format!(
            ". A call takes {}: too short for a request to a server.",
            human_nanos(trip.median_ns as f64)
        ));
        return text;
    }
    let each: Vec<String> = Row::finished(first)
        .iter()
        .filter_map(|row| {
            let trips = row.number("service", "p50")? / trip.median_ns as f64;
            (trips >= 0.5).then(|| format!("{} {trips:.1}", row.label()))
        })
        .collect();
    text.push_str(&format!(
        ". A request to the file system takes {}",
        human_nanos(trip.median_ns as f64)
    ));
    match each.as_slice() {
        [] => text.push('.'),
        each => text.push_str(&format!(
            "; in such round trips, the operations take: {}.",
            list(each)
        )),
    }
    text
}

/// The number of promises by verdict; names some that do not hold.
fn promises(check: &CheckResult) -> String {
    use PromiseVerdict::{Broken, Holds, LeftOut, Undecided, Unsupported};
    // With several hosts, the worst.
    let worst = [Broken, Unsupported, Undecided, LeftOut, Holds];
    let mut all: BTreeMap<&str, (usize, &str)> = BTreeMap::new();
    for promise in check::promises(check) {
        let place = worst.iter().position(|verdict| *verdict == promise.verdict);
        let found = (place.unwrap_or(worst.len()), promise.says.as_str());
        let known = all.entry(&promise.name).or_insert(found);
        *known = (*known).min(found);
    }
    let names = |is: PromiseVerdict| {
        let of = all
            .iter()
            .filter(|(_, (place, _))| worst.get(*place) == Some(&is));
        let names = of.map(|(name, (_, says))| format!("{name} ({says})"));
        names.collect::<Vec<String>>()
    };
    let mut parts = vec![format!(
        "Of {} promises of POSIX and Linux, {} hold",
        all.len(),
        names(Holds).len()
    )];
    let named = [(Broken, "broken"), (Unsupported, "not supported")];
    for (verdict, word) in named {
        match names(verdict).as_slice() {
            [] => {}
            [one] => parts.push(format!("1 is {word}: {one}")),
            several => parts.push(format!(
                "{} are {word}: {}",
                several.len(),
                shortened(several)
            )),
        }
    }
    let counted = [(Undecided, "could not be decided"), (LeftOut, "not tested")];
    for (verdict, word) in counted {
        match names(verdict).len() {
            0 => {}
            n => parts.push(format!("{n} {word}")),
        }
    }
    format!("{}.", parts.join("; "))
}

/// The first names, and the number of the others.
fn shortened(names: &[String]) -> String {
    let shown = names.iter().take(NAMED_MAX).cloned().collect::<Vec<_>>();
    match names.len().saturating_sub(NAMED_MAX) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Rates of reads and writes, sequential and random.
fn throughput(series: &SeriesResult) -> Option<String> {
    let cells = series.cells.iter();
    let rows: Vec<String> = cells
        .filter(|cell| ["sequential", "random"].contains(&cell.name.as_str()))
        .filter_map(|cell| cell.result.as_ref())
        .flat_map(Row::finished)
        .filter_map(|row| {
            let moved = row.show("bandwidth", "")?;
            let from = match of_all(row.phases.iter().copied()) {
                Memory::All => " (this host's memory)",
                Memory::Part => " (partly this host's memory)",
                Memory::None => "",
            };
            Some(format!("{} {moved}{from}", row.label()))
        })
        .collect();
    (!rows.is_empty()).then(|| {
        format!(
            "With one thread per rank: {} (sequential: 1 MiB blocks, random: 4 KiB).",
            list(&rows)
        )
    })
}

/// Failed operations, by operation and error.
fn failures(series: &SeriesResult) -> Option<String> {
    let mut counts: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for phase in series.results().flat_map(|result| &result.phases) {
        for (errno, count) in &phase.errors {
            let sum = counts.entry((&phase.label, errno)).or_default();
            *sum = sum.saturating_add(*count);
        }
    }
    let each = counts.iter();
    let each: Vec<String> = each
        .map(|((label, errno), count)| format!("{label} {} ({errno})", human_count(*count)))
        .collect();
    (!each.is_empty()).then(|| format!("Operations failed: {}.", list(&each)))
}

/// The rates of a phase by number of threads.
struct Scaling {
    label: String,
    /// The part that the host's memory answered, over all numbers of threads.
    memory: Memory,
    /// Threads per rank, and operations per second of all ranks.
    rates: Vec<(u32, f64)>,
}

impl Scaling {
    fn of(series: &SeriesResult, name: &str) -> Option<Scaling> {
        let mut scaling = Scaling {
            label: String::new(),
            memory: Memory::None,
            rates: Vec::new(),
        };
        let mut measured = Vec::new();
        for cell in &series.cells {
            let Some((threads, row)) = threads_of(cell).zip(cell.result.as_ref()) else {
                continue;
            };
            measured.extend(row.phases.iter().filter(|phase| phase.name == name));
            let rows = Row::finished(row);
            let row = rows.into_iter().find(|row| row.name() == name);
            if let Some((label, rate)) = row.and_then(|row| Some((row.label(), row.rate()?))) {
                scaling.label = label.to_owned();
                scaling.rates.push((threads, rate));
            }
        }
        scaling.memory = of_all(measured.into_iter());
        (scaling.rates.len() > 1).then_some(scaling)
    }

    /// Index of the first rate that no number of more threads raises by [`GAIN_MIN`]; `None` if
    /// the rate still grows at the last step.
    fn stops_at(&self) -> Option<usize> {
        let mut places = 0..self.rates.len().saturating_sub(1);
        places.find(|place| self.best_after(*place).1 < (1.0 + GAIN_MIN) * self.rates[*place].1)
    }

    /// The number of threads with the highest rate after a place, and that rate.
    fn best_after(&self, place: usize) -> (u32, f64) {
        let later = self.rates[place + 1..].iter().copied();
        later.fold(self.rates[place + 1], |best, one| {
            if one.1 > best.1 { one } else { best }
        })
    }

    fn text(&self) -> String {
        if self.memory == Memory::All {
            let fastest = self.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
            return format!(
                "{} came from this host's memory (up to {}/s), which says nothing about the mount",
                self.label,
                human_rate(fastest)
            );
        }
        let at = |place: usize| {
            let (threads, rate) = self.rates[place];
            let s = if threads == 1 { "" } else { "s" };
            format!("{threads} thread{s} per rank ({}/s", human_rate(rate))
        };
        let label = match self.memory {
            Memory::Part => format!("{} (partly from this host's memory)", self.label),
            Memory::None | Memory::All => self.label.clone(),
        };
        match self.stops_at() {
            Some(place) => {
                let ((_, rate), (threads, next)) = (self.rates[place], self.best_after(place));
                let change = (next / rate - 1.0) * 100.0;
                format!(
                    "{label} stops scaling at {}; {threads} threads: {change:+.0} %)",
                    at(place)
                )
            }
            None => {
                let last = self.rates.len() - 1;
                format!("{label} still scales at {})", at(last))
            }
        }
    }
}

/// Number of threads of a cell of the ladder.
fn threads_of(cell: &CellResult) -> Option<u32> {
    let value = cell.values.iter().find(|value| value.key == "threads")?;
    value.value.parse().ok()
}

/// The next command to run, and the question that it answers.
fn next(
    series: &SeriesResult,
    first: &RunResult,
    memory: &[String],
    scaling: &[Scaling],
) -> String {
    let dir = &first.target.path;
    let broken =
        |check: &CheckResult| check::promises(check).any(|p| p.verdict == PromiseVerdict::Broken);
    let grows = |rates: &Scaling| rates.memory == Memory::None && rates.stops_at().is_none();
    let evidence = Evidence::of(first.target.fs_type.as_deref().unwrap_or_default());
    let (command, why) = if series.check.as_ref().is_some_and(broken) {
        (
            format!("rbench check --dir {dir}"),
            "to see what each broken promise means",
        )
    } else if scaling.iter().any(grows) {
        (
            format!("rbench sweep --over threads=16,32,64 -- meta --dir {dir} --time 10"),
            "to find where it stops scaling",
        )
    } else if !memory.is_empty() && evidence == Evidence::Kernel {
        (
            format!("rbench io --dir {dir} --rw read,randread --drop-caches"),
            "to measure it without this host's memory",
        )
    } else if !memory.is_empty() && evidence != Evidence::Memory && series.hosts.len() < 2 {
        (
            format!("mpirun -np 12 --hostfile HOSTS rbench meta --dir {dir} --shift 4"),
            "to measure it without this host's memory",
        )
    } else {
        (
            format!("rbench knee --slo p99=10ms -- meta --dir {dir} --phases file-create"),
            "to find the load at which response times are still good",
        )
    };
    format!("Next: {command}  ({why}).")
}

/// Joins words with commas, and the last one with "and".
fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scaling(rates: &[f64]) -> Scaling {
        let threads = (0..).map(|power| 1 << power);
        Scaling {
            label: "File stat".to_owned(),
            memory: Memory::None,
            rates: threads.zip(rates.iter().copied()).collect(),
        }
    }

    #[test]
    fn it_stops_scaling_where_more_threads_bring_less_than_a_fifth_more() {
        assert_eq!(scaling(&[100.0, 190.0, 350.0]).stops_at(), None);
        assert_eq!(scaling(&[100.0, 190.0, 220.0]).stops_at(), Some(1));
        // A dip does not end scaling.
        assert_eq!(scaling(&[100.0, 60.0, 220.0]).stops_at(), None);
        assert_eq!(scaling(&[100.0, 90.0]).stops_at(), Some(0));
        let text = "File stat stops scaling at 2 threads per rank (190/s; 4 threads: +10 %)";
        assert_eq!(scaling(&[100.0, 190.0, 209.0]).text(), text);
        let text = "File stat still scales at 2 threads per rank (190/s)";
        assert_eq!(scaling(&[100.0, 190.0]).text(), text);
        let cached = Scaling {
            memory: Memory::All,
            ..scaling(&[100.0, 190.0])
        };
        let start = "File stat came from this host's memory (up to 190/s)";
        assert!(cached.text().starts_with(start));
        let partly = Scaling {
            memory: Memory::Part,
            ..scaling(&[100.0, 190.0])
        };
        let text =
            "File stat (partly from this host's memory) still scales at 2 threads per rank (190/s)";
        assert_eq!(partly.text(), text);
        let text = scaling(&[100.0, 0.0]).text();
        assert!(text.ends_with("2 threads: -100 %)"));
    }

    #[test]
    fn few_names_are_listed_whole() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).to_vec();
        assert_eq!(shortened(&names[..3]), "a, b, c");
        assert_eq!(shortened(&names), "a, b, c and 2 more");
        assert_eq!(list(&names[..1]), "a");
        assert_eq!(list(&names[..3]), "a, b and c");
    }
}
