//! The conclusions from the runs of `rbench DIR` as sentences, and the runs' tables.

use rbench_core::units::{human_bandwidth, human_nanos, human_rate};

use super::suite;
use crate::figures::Figures;
use crate::figures::caches::{UNKNOWN, verdict};
use crate::schema::{
    CellResult, CheckResult, PromiseResult, PromiseVerdict, RunResult, SeriesResult,
};
use crate::table::sentence;
use crate::text::header::place;
use crate::view::View;

/// Below this round trip, a request did not leave the host's kernel, ns.
const ROUND_TRIP_MIN_NS: u64 = 20_000;
/// Doubling the threads must raise the rate by at least this share to count as scaling.
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
fn sentences(series: &SeriesResult) -> Vec<String> {
    let Some(first) = results(series).next() else {
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
        all.push(format!("{}.", parts.join("; ")));
    }
    all.push(next(series, &first.target.path, &memory, &scaling));
    all
}

fn results(series: &SeriesResult) -> impl Iterator<Item = &RunResult> {
    series.cells.iter().filter_map(|cell| cell.result.as_ref())
}

/// Rows whose cache verdict matches, except those of the ladder of threads.
fn with_verdict(series: &SeriesResult, is: impl Fn(&str) -> bool) -> Vec<String> {
    let runs = series.cells.iter().filter(|cell| cell.values.is_empty());
    let phases = runs
        .filter_map(|cell| cell.result.as_ref())
        .flat_map(|result| &result.phases);
    phases
        .filter(|phase| verdict(phase).is_some_and(|word| is(&word)))
        .map(|phase| phase.label.clone())
        .collect()
}

fn answered_by_memory(series: &SeriesResult) -> Vec<String> {
    with_verdict(series, |word| word.contains("warm") || word == "mixed")
}

/// The cache verdict, and the duration of a request that reaches the file system.
fn cost(series: &SeriesResult, first: &RunResult, memory: &[String]) -> String {
    let mut text = match memory {
        [] => "This host's memory was not seen to answer any operation".to_owned(),
        rows => format!("This host's memory answered {}", list(rows)),
    };
    let unknown = with_verdict(series, |word| word == UNKNOWN);
    if !unknown.is_empty() {
        text.push_str(&format!(
            " (unknown for {}: this host had created the files they used)",
            list(&unknown)
        ));
    }
    let slowest = first.target.round_trip.iter().max_by_key(|rt| rt.median_ns);
    let trip = slowest.filter(|trip| trip.median_ns >= ROUND_TRIP_MIN_NS);
    let Some(trip) = trip else {
        text.push_str(". No request left this host's kernel.");
        return text;
    };
    let each: Vec<String> = Figures::of(first)
        .iter()
        .filter_map(|row| {
            let trips = row.mean_ns()? / trip.median_ns as f64;
            (trips >= 0.5).then(|| format!("{} {trips:.1}", row.label))
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

/// The tested promises, on each host and between hosts.
fn tried(check: &CheckResult) -> impl Iterator<Item = &PromiseResult> {
    let between = check.between.iter().map(|between| &between.promise);
    let of_each = check.hosts.iter().flat_map(|host| &host.promises);
    of_each.chain(between)
}

/// The promises that are broken.
fn promises(check: &CheckResult) -> String {
    let all: Vec<&PromiseResult> = tried(check).collect();
    let names = |is: PromiseVerdict| {
        let of = all.iter().filter(|promise| promise.verdict == is);
        let mut names: Vec<String> = of
            .map(|promise| format!("{} ({})", promise.name, promise.says))
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let (broken, missing) = (
        names(PromiseVerdict::Broken),
        names(PromiseVerdict::Unsupported),
    );
    let tried = names(PromiseVerdict::Holds).len() + broken.len() + missing.len();
    let mut text = match broken.as_slice() {
        [] => format!("It keeps all of {tried} promises of POSIX and Linux"),
        broken => format!(
            "Of {tried} promises of POSIX and Linux it breaks {}: {}",
            broken.len(),
            shortened(broken)
        ),
    };
    match missing.as_slice() {
        [] => {}
        missing => text.push_str(&format!(
            "{} {} it does not support: {}",
            if broken.is_empty() { " but" } else { ";" },
            missing.len(),
            shortened(missing)
        )),
    }
    text.push('.');
    text
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
        .flat_map(Figures::of)
        .filter_map(|row| {
            let moved = human_bandwidth(row.bandwidth?);
            Some(format!("{} {moved}", row.label))
        })
        .collect();
    (!rows.is_empty()).then(|| {
        format!(
            "With one thread per rank: {} (sequential: 1 MiB blocks, random: 4 KiB).",
            list(&rows)
        )
    })
}

/// The rates of a phase by number of threads.
struct Scaling {
    label: String,
    /// Threads per rank, and operations per second of all ranks.
    rates: Vec<(u32, f64)>,
}

impl Scaling {
    fn of(series: &SeriesResult, name: &str) -> Option<Scaling> {
        let mut scaling = Scaling {
            label: String::new(),
            rates: Vec::new(),
        };
        for cell in &series.cells {
            let Some((threads, row)) = threads_of(cell).zip(cell.result.as_ref()) else {
                continue;
            };
            let rows = Figures::of(row);
            let row = rows.into_iter().find(|row| row.name == name);
            if let Some((row, rate)) = row.and_then(|row| row.rate.map(|rate| (row, rate))) {
                scaling.label = row.label;
                scaling.rates.push((threads, rate));
            }
        }
        (scaling.rates.len() > 1).then_some(scaling)
    }

    /// Index of the last rate that was worth its threads; `None` if the rate still grows.
    fn stops_at(&self) -> Option<usize> {
        let steps = self.rates.windows(2);
        let worth = |pair: &[(u32, f64)]| pair[1].1 >= (1.0 + GAIN_MIN) * pair[0].1;
        steps.into_iter().position(|pair| !worth(pair))
    }

    fn text(&self) -> String {
        let at = |place: usize| {
            let (threads, rate) = self.rates[place];
            let s = if threads == 1 { "" } else { "s" };
            format!("{threads} thread{s} per rank ({}/s", human_rate(rate))
        };
        match self.stops_at() {
            Some(place) => {
                let ((_, rate), (threads, next)) = (self.rates[place], self.rates[place + 1]);
                let change = (next / rate - 1.0) * 100.0;
                format!(
                    "{} stops scaling at {}; {threads} threads: {change:+.0} %)",
                    self.label,
                    at(place)
                )
            }
            None => {
                let last = self.rates.len() - 1;
                format!("{} still scales at {})", self.label, at(last))
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
fn next(series: &SeriesResult, dir: &str, memory: &[String], scaling: &[Scaling]) -> String {
    let broken = |check: &CheckResult| tried(check).any(|p| p.verdict == PromiseVerdict::Broken);
    let (command, why) = if series.check.as_ref().is_some_and(broken) {
        (
            format!("rbench check --dir {dir}"),
            "to see what each broken promise means",
        )
    } else if scaling.iter().any(|rates| rates.stops_at().is_none()) {
        (
            format!("rbench sweep --over threads=16,32,64 -- meta --dir {dir} --time 10"),
            "to find where it stops scaling",
        )
    } else if !memory.is_empty() && series.hosts.len() < 2 {
        (
            format!("mpirun -np 12 --hostfile HOSTS rbench meta --dir {dir} --shift 4"),
            "to measure it without this host's memory",
        )
    } else {
        (
            format!("rbench knee --slo p99=10ms -- meta --dir {dir} --phases file-stat"),
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
            rates: threads.zip(rates.iter().copied()).collect(),
        }
    }

    #[test]
    fn it_stops_scaling_where_twice_the_threads_bring_less_than_a_fifth_more() {
        assert_eq!(scaling(&[100.0, 190.0, 350.0]).stops_at(), None);
        assert_eq!(scaling(&[100.0, 190.0, 220.0, 500.0]).stops_at(), Some(1));
        assert_eq!(scaling(&[100.0, 90.0]).stops_at(), Some(0));
        assert_eq!(
            scaling(&[100.0, 190.0, 209.0]).text(),
            "File stat stops scaling at 2 threads of each rank (190/s; 4 threads: +10 %)"
        );
        assert_eq!(
            scaling(&[100.0, 190.0]).text(),
            "File stat still scales at 2 threads of each rank (190/s)"
        );
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
