//! The table of `juicefs bench`, followed by additional figures: latencies and the cache verdict.

use rbench_core::Bytes;

use crate::figures::Row as Figures;
use crate::schema::{CLIENT_WORK, ClientCounters, PhaseResult, RunResult, SeriesResult};
use crate::table::{Table, left, or_none, right, sentence};
use crate::view::{Colour, View};

/// The unit of a row's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    /// MiB per second; the cost is seconds per file.
    Data,
    /// Files per second; the cost is milliseconds per file.
    Files,
}

/// A row of a phase.
struct Row {
    /// The phase.
    phase: &'static str,
    label: &'static str,
    unit: Unit,
    /// Limits of juicefs bench: the values above which it is usual and good, and the costs (ms) below
    /// which it is good and usual.
    limits: [f64; 4],
}

const fn data(phase: &'static str, label: &'static str, limits: [f64; 4]) -> Row {
    Row {
        phase,
        label,
        unit: Unit::Data,
        limits,
    }
}

const fn files(phase: &'static str, label: &'static str, limits: [f64; 4]) -> Row {
    Row {
        unit: Unit::Files,
        ..data(phase, label, limits)
    }
}

const ROWS: [Row; 5] = [
    data("write", "Write big file", [100.0, 200.0, 10.0, 50.0]),
    data("read", "Read big file", [100.0, 200.0, 10.0, 50.0]),
    files("file-create", "Write small file", [12.5, 20.0, 50.0, 80.0]),
    files("file-read", "Read small file", [50.0, 100.0, 10.0, 20.0]),
    files("file-stat", "Stat file", [20.0, 1000.0, 1.0, 5.0]),
];

/// Limits for the clients' kinds of work, in the order of [`CLIENT_WORK`]: milliseconds below which
/// a cost is good, and usual.
const WORK_COSTS: [(f64, f64); CLIENT_WORK.len()] = [
    (0.5, 2.0),
    (2.0, 5.0),
    (100.0, 200.0),
    (100.0, 200.0),
    (30.0, 100.0),
    (10.0, 20.0),
    (1.0, 5.0),
];

const GREEN: u8 = 32;
const YELLOW: u8 = 33;
const RED: u8 = 31;
const MEBI: f64 = 1_048_576.0;

/// A figure with its colour and unit.
struct Shown {
    number: String,
    unit: &'static str,
    colour: Option<u8>,
}

impl Shown {
    fn none() -> Shown {
        Shown {
            number: "n/a".to_owned(),
            unit: "",
            colour: None,
        }
    }

    fn width(&self) -> usize {
        self.number.len() + self.unit.len()
    }

    fn text(&self, width: usize, colour: Colour) -> String {
        let space = " ".repeat(width.saturating_sub(self.width()));
        let Shown { number, unit, .. } = self;
        match self.colour.filter(|_| colour == Colour::On) {
            Some(code) => format!("{space}\x1b[1;{code}m{number}\x1b[0m{unit}"),
            None => format!("{space}{number}{unit}"),
        }
    }
}

/// The tables.
pub fn render(series: &SeriesResult, view: View) -> String {
    let results: Vec<&RunResult> = series.results().collect();
    if results.is_empty() {
        return String::new();
    }
    let mut out = settings(series, &results)
        .lines()
        .map(|line| sentence(view, "", line))
        .collect::<String>();
    let mut lines: Vec<[Shown; 2]> = Vec::new();
    let mut labels: Vec<&str> = Vec::new();
    for row in &ROWS {
        let of = |result: &&RunResult| Some(measured(row, result, phase(row, result)?));
        if let Some(line) = results.iter().find_map(of) {
            labels.push(row.label);
            lines.push(line);
        }
    }
    for ((name, label), limits) in CLIENT_WORK.into_iter().zip(WORK_COSTS) {
        labels.push(label);
        lines.push(worked(&results, name, limits));
    }
    out.push_str(&framed(&labels, &lines, view.colour));
    out.push_str(&beside(series, &results, view));
    out
}

fn phase<'r>(row: &Row, result: &'r RunResult) -> Option<&'r PhaseResult> {
    let named = result.phases.iter().find(|phase| phase.name == row.phase);
    named.filter(|phase| phase.complete && phase.elapsed_s > 0.0)
}

/// Number of workers of a run.
fn workers(result: &RunResult) -> f64 {
    f64::from(result.world.ranks) * f64::from(result.world.threads_per_rank)
}

/// Value: amount without error, divided by the time from the common start to the end of the last
/// worker. Cost: that time divided by the files of a worker.
fn measured(row: &Row, result: &RunResult, phase: &PhaseResult) -> [Shown; 2] {
    let workers = workers(result);
    let (value, digits, units, cost, of_each) = match row.unit {
        Unit::Data => {
            let value = phase.bytes as f64 / MEBI / phase.elapsed_s;
            let units = (" MiB/s", " s/file");
            (value, 2, units, Some(phase.elapsed_s), 1.0)
        }
        Unit::Files => {
            let value = phase.items as f64 / phase.elapsed_s;
            // None if every file failed.
            let cost = (phase.items > 0).then(|| workers * 1000.0 / value);
            (value, 1, (" files/s", " ms/file"), cost, workers)
        }
    };
    let [low, high, good, usual] = row.limits;
    let value = Shown {
        number: format!("{value:.digits$}"),
        unit: units.0,
        colour: Some(match value {
            value if value > high * of_each => GREEN,
            value if value > low * of_each => YELLOW,
            _ => RED,
        }),
    };
    let cost = cost.map_or_else(Shown::none, |cost| costing(cost, units.1, (good, usual)));
    [value, cost]
}

fn costing(cost: f64, unit: &'static str, (good, usual): (f64, f64)) -> Shown {
    Shown {
        number: format!("{cost:.2}"),
        unit,
        colour: Some(match cost {
            cost if cost < good => GREEN,
            cost if cost < usual => YELLOW,
            _ => RED,
        }),
    }
}

/// Returns true if the client of every cache reported its counters in every run.
fn told(results: &[&RunResult]) -> bool {
    results.iter().all(|result| {
        let hosts = result.world.hosts.iter();
        let mut caches: Vec<u32> = hosts.flat_map(|host| host.caches.iter().copied()).collect();
        caches.sort_unstable();
        caches.dedup();
        result.client_counters.len() == caches.len()
    })
}

fn counters<'r>(results: &'r [&RunResult]) -> impl Iterator<Item = &'r ClientCounters> {
    results.iter().flat_map(|result| &result.client_counters)
}

/// The clients' work over all runs; n/a unless all clients report it.
fn worked(results: &[&RunResult], name: &str, limits: (f64, f64)) -> [Shown; 2] {
    let found: Option<Vec<(u64, f64)>> = counters(results).map(|c| c.work(name)).collect();
    let Some(found) = found.filter(|found| told(results) && !found.is_empty()) else {
        return [Shown::none(), Shown::none()];
    };
    let count: u64 = found.iter().map(|(count, _)| count).sum();
    let seconds: f64 = found.iter().map(|(_, seconds)| seconds).sum();
    let cost = match count {
        0 => 0.0,
        count => seconds * 1000.0 / count as f64,
    };
    let value = Shown {
        number: count.to_string(),
        unit: " operations",
        colour: Some(if count > 0 { GREEN } else { RED }),
    };
    [value, costing(cost, " ms/op", limits)]
}

/// The lines above the table.
fn settings(series: &SeriesResult, results: &[&RunResult]) -> String {
    let given = |name: &str| {
        let key = series.keys.iter().find(|key| key.name == name)?;
        key.values.first().cloned()
    };
    let size = |name: &str| {
        let bytes = given(name).and_then(|value| value.parse::<Bytes>().ok());
        or_none(bytes.map(|bytes| binary(bytes.0)))
    };
    let number = |name: &str| {
        let number = given(name).and_then(|value| value.parse::<u64>().ok());
        or_none(number.map(|number| number.to_string()))
    };
    let mut out = format!(
        "BlockSize: {}, BigFileSize: {}, SmallFileSize: {}, SmallFileCount: {}, NumThreads: {}",
        size("block-size"),
        size("big-file-size"),
        size("small-file-size"),
        number("small-file-count"),
        number("threads"),
    );
    let ranks = results.iter().map(|result| result.world.ranks).max();
    if let Some(ranks) = ranks.filter(|ranks| *ranks > 1) {
        out.push_str(&format!(" in each of {ranks} ranks"));
    }
    let wall: f64 = series.cells.iter().map(|cell| cell.wall_s).sum();
    out.push_str(&format!("\nTime used: {wall:.1} s"));
    let sum = |of: fn(&ClientCounters) -> Option<f64>| {
        let all: Option<Vec<f64>> = counters(results).map(of).collect();
        all.filter(|all| told(results) && !all.is_empty())
            .map(|all| all.iter().sum::<f64>())
    };
    if let (Some(cpu), Some(uptime)) = (sum(|c| c.cpu_s), sum(|c| c.uptime_s))
        && uptime > 0.0
    {
        out.push_str(&format!(", CPU: {:.1}%", cpu * 100.0 / uptime));
    }
    let memory = counters(results)
        .filter_map(|client| client.memory_bytes)
        .max();
    if let Some(bytes) = memory {
        out.push_str(&format!(", Memory: {:.1} MiB", bytes as f64 / MEBI));
    }
    out.push('\n');
    out
}

/// Formats a size like juicefs bench: `1.0 MiB`, `128 KiB`.
fn binary(bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit < UNITS.len() - 1 {
        value /= 1024.0;
        unit += 1;
    }
    let digits = usize::from(unit > 0 && value < 9.95);
    format!("{value:.digits$} {}", UNITS[unit])
}

/// The framed table.
fn framed(labels: &[&str], lines: &[[Shown; 2]], colour: Colour) -> String {
    const TITLES: [&str; 3] = ["ITEM", "VALUE", "COST"];
    let widest = |column: usize| lines.iter().map(|line| line[column].width()).max();
    let names = labels.iter().map(|label| label.len()).max();
    let widths = [names, widest(0), widest(1)];
    let widths: Vec<usize> = widths
        .iter()
        .zip(TITLES)
        .map(|(width, title)| width.unwrap_or(0).max(title.len()))
        .collect();
    let rule: String = widths
        .iter()
        .map(|width| format!("+{}", "-".repeat(width + 2)))
        .collect();
    let rule = format!("{rule}+\n");
    let titles: String = TITLES
        .iter()
        .zip(&widths)
        .map(|(title, &width)| {
            // A title that cannot be centred is moved to the right.
            let before = (width - title.len()).div_ceil(2);
            let after = width - title.len() - before;
            format!("| {}{title}{} ", " ".repeat(before), " ".repeat(after))
        })
        .collect();
    let mut out = format!("{rule}{titles}|\n{rule}");
    for (label, [value, cost]) in labels.iter().zip(lines) {
        out.push_str(&format!(
            "| {label:>width$} | {} | {} |\n",
            value.text(widths[1], colour),
            cost.text(widths[2], colour),
            width = widths[0],
        ));
    }
    out + &rule
}

/// Latencies and the cache verdict of each measured row.
fn beside(series: &SeriesResult, results: &[&RunResult], view: View) -> String {
    let mut table = Table::new([
        left("Latency of"),
        left("one"),
        right("Mean"),
        right("p50"),
        right("p99"),
        right("Max"),
        right("Errors"),
        left("Cache").optional(),
    ]);
    let rows = results.iter().flat_map(|result| Figures::finished(result));
    let rows: Vec<Figures<'_>> = rows.collect();
    for row in &ROWS {
        let Some(figure) = rows.iter().find(|figure| figure.name() == row.phase) else {
            continue;
        };
        let time = |of| figure.text("service", of);
        let one = match row.unit {
            Unit::Data => "block",
            Unit::Files => "file",
        };
        table.row([
            row.label.to_owned(),
            one.to_owned(),
            time("mean"),
            time("p50"),
            time("p99"),
            time("max"),
            figure.number("errors", "").unwrap_or(0.0).to_string(),
            figure.text("cache", ""),
        ]);
    }
    let mut out = format!("\n{}", table.render(view));
    let keeps = |key: &crate::schema::SeriesKey| key.name == "drop-caches" && key.values == ["off"];
    if series.keys.iter().any(keeps) {
        let text = "The kernel's caches were not dropped: reads and stats may have been answered from memory.";
        out.push_str(&sentence(view, "", text));
    }
    if !told(results) || counters(results).next().is_none() {
        let text = "n/a: the mount does not provide these counters (JuiceFS does, in .stats).";
        out.push_str(&sentence(view, "", text));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn n_a_is_what_not_every_client_tells() {
        let client = ClientCounters {
            host: "a".to_owned(),
            work: vec![crate::schema::ClientWork {
                name: CLIENT_WORK[1].0.to_owned(),
                count: 4,
                seconds: 0.008,
            }],
            ..ClientCounters::default()
        };
        let mut run = crate::journal::read_any(include_bytes!("../../tests/golden/one_rank.json"))
            .expect("a result");
        let shown = |run: &RunResult, at: usize| {
            let (name, _) = CLIENT_WORK[at];
            let [value, cost] = worked(&[run], name, WORK_COSTS[at]);
            (value.text(0, Colour::Off), cost.text(0, Colour::Off))
        };
        let none = ("n/a".to_owned(), "n/a".to_owned());
        assert_eq!(shown(&run, 1), none);
        run.world.hosts[0].caches = vec![0];
        assert_eq!(shown(&run, 1), none);
        run.client_counters.push(client);
        assert_eq!(shown(&run, 0), none);
        let told = ("4 operations".to_owned(), "2.00 ms/op".to_owned());
        assert_eq!(shown(&run, 1), told);
        // The client of another host reports nothing, so the sum is unknown.
        run.world.hosts[0].caches = vec![0, 1];
        assert_eq!(shown(&run, 1), none);
    }

    #[test]
    fn sizes_are_written_as_juicefs_bench_writes_them() {
        let check = |bytes: u64, expect: &str| assert_eq!(binary(bytes), expect);
        check(1 << 20, "1.0 MiB");
        check(32 << 20, "32 MiB");
        check(128 << 10, "128 KiB");
        check(1 << 30, "1.0 GiB");
        check(0, "0 B");
    }

    #[test]
    fn colours_take_no_room_in_the_table() {
        let line = || {
            [
                Shown {
                    number: "395.59".to_owned(),
                    unit: " MiB/s",
                    colour: Some(GREEN),
                },
                costing(0.32, " s/file", (10.0, 50.0)),
            ]
        };
        let plain = framed(&["Write big file"], &[line()], Colour::Off);
        let coloured = framed(&["Write big file"], &[line()], Colour::On);
        assert!(
            plain.contains("| Write big file | 395.59 MiB/s | 0.32 s/file |"),
            "{plain}"
        );
        assert!(
            coloured.contains("\x1b[1;32m395.59\x1b[0m MiB/s"),
            "{coloured}"
        );
        let bare = coloured.replace("\x1b[1;32m", "").replace("\x1b[0m", "");
        assert_eq!(bare, plain);
    }
}
