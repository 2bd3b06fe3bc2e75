//! A result as OpenMetrics text, for a push gateway or a textfile collector: a summary for each
//! distribution, and counters. A running run also has its current state.

use std::fmt::Write as _;

use rbench_core::hist::Hist;

use crate::figures::{self, Figure, Measure, Output, QUANTITIES, Read, Unit, Value};
use crate::schema::{LiveFigures, LiveProgress, LiveResult, LiveState, PhaseResult, RunResult};

/// Kind and meaning of a family.
struct Family<T: 'static> {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    samples: fn(&mut Samples<'_>, &T),
}

/// Families as rows: kind, name and meaning, and how their samples are made.
macro_rules! families {
    ($($kind:ident $name:expr, $help:literal: $samples:expr;)*) => {
        &[$(Family { name: $name, kind: stringify!($kind), help: $help, samples: $samples }),*]
    };
}

/// The families in the order in which they always stood; further ones follow.
const ORDER: [&str; 14] = [
    "rbench_run",
    "rbench_label",
    "rbench_run_complete",
    "rbench_warning",
    "rbench_operations",
    "rbench_errors",
    "rbench_moved_bytes",
    "rbench_elapsed_seconds",
    "rbench_operations_per_second",
    "rbench_bytes_per_second",
    LATENCY,
    "rbench_client_cpu_seconds",
    "rbench_host_operations",
    "rbench_host_latency_seconds",
];

const LATENCY: &str = "rbench_latency_seconds";

/// Families that are not figures of a phase, or have a label of their own.
const FAMILIES: &[Family<RunResult>] = families! {
    info "rbench_run", "A run of rbench, with its version and target": |out, result| {
        let world = &result.world;
        let (ranks, hosts) = (world.ranks.to_string(), world.hosts.len().to_string());
        let fs_type = result.target.fs_type.as_deref().unwrap_or_default();
        out.add(
            "_info",
            &[
                ("version", &result.run.version),
                ("target", &result.target.path),
                ("fs_type", fs_type),
                ("ranks", &ranks),
                ("hosts", &hosts),
            ],
            1.0,
        );
    };
    info "rbench_label", "A label of the run": |out, result| {
        for (name, value) in &result.run.labels {
            out.add("_info", &[("name", name), ("value", value)], 1.0);
        }
    };
    gauge "rbench_run_complete", "Whether every phase of the run finished":
        |out, result| out.add("", &[], f64::from(u8::from(result.complete)));
    gauge "rbench_warning", "Warnings of the run by code": |out, result| {
        let mut codes: Vec<&str> = result.warnings.iter().map(|w| w.code.as_str()).collect();
        codes.sort_unstable();
        for same in codes.chunk_by(|a, b| a == b) {
            out.add("", &[("code", same[0])], same.len() as f64);
        }
    };
    counter "rbench_errors", "Failed operations by error": |out, result| {
        each_phase(result, |phase, key| {
            for (error, count) in &phase.errors {
                out.add("_total", &with(key, "error", error), *count as f64);
            }
        });
    };
    summary LATENCY,
        "Time of an operation, from its actual (service) or intended (response) start": |out, result| {
        let listed = figures::listed(Output::OpenMetrics);
        let times: Vec<&Figure> = listed
            .filter(|(_, name)| *name == LATENCY)
            .map(|(figure, _)| figure)
            .collect();
        each_phase(result, |phase, key| {
            for figure in &times {
                if let Some(Value::Times(hist)) = figure.of(phase) {
                    out.summary(&with(key, "time", figure.name), hist);
                }
            }
        });
    };
    counter "rbench_client_cpu_seconds",
        "CPU time of the file system's client on a host while the phase ran": |out, result| {
        each_phase(result, |phase, key| {
            let hosts = phase.client.iter().flat_map(|client| &client.hosts);
            for (host, cpu_s) in hosts.filter_map(|host| Some((host, host.cpu_s?))) {
                out.add("_total", &with(key, "host", &host.host), cpu_s);
            }
        });
    };
    counter "rbench_host_operations", "Operations done without error on a host": |out, result| {
        each_phase(result, |phase, key| {
            for host in &phase.hosts {
                out.add("_total", &with(key, "host", &host.host), host.items as f64);
            }
        });
    };
    summary "rbench_host_latency_seconds", "Service time of an operation on a host": |out, result| {
        each_phase(result, |phase, key| {
            for host in &phase.hosts {
                out.summary(&with(key, "host", &host.host), &host.latency);
            }
        });
    };
};

/// Metrics that only a running run has.
const LIVE_FAMILIES: &[Family<LiveResult>] = families! {
    gauge "rbench_stopping", "Whether a stop was requested":
        |out, now| out.add("", &[], f64::from(u8::from(now.state == LiveState::Stopping)));
    info "rbench_phase", "The running phase, or the work between phases":
        |out, now| out.add("_info", &[("label", &now.label)], 1.0);
    gauge "rbench_phase_elapsed_seconds", "Time since the start of the running phase":
        |out, now| progress(out, now, |p| Some(p.elapsed_s));
    gauge "rbench_phase_left_seconds", "Time until the end of the phase, if known":
        |out, now| progress(out, now, |p| p.left_s);
    gauge "rbench_phase_operations", "Operations of the running phase, done without error":
        |out, now| progress(out, now, |p| Some(p.items as f64));
    gauge "rbench_phase_planned_operations", "Total operations of the phase, if known":
        |out, now| progress(out, now, |p| Some(p.total? as f64));
    gauge "rbench_phase_failed_operations", "Operations of the phase that failed":
        |out, now| progress(out, now, |p| Some(p.failed as f64));
    gauge "rbench_backlog_operations", "In an open loop: due operations that are not done":
        |out, now| progress(out, now, |p| Some(p.backlog? as f64));
    gauge "rbench_interval_operations_per_second",
        "Operations per second without error in the last interval": |out, now| each_row(out, now, |f| f.rate);
    gauge "rbench_interval_bytes_per_second", "Bytes per second in the last interval":
        |out, now| each_row(out, now, |f| f.bandwidth);
    gauge "rbench_interval_errors", "Operations that failed in the last interval":
        |out, now| each_row(out, now, |f| f.errors as f64);
    gauge "rbench_interval_latency_seconds",
        "Latency quantiles of the last interval, from the intended start if there is one": |out, now| {
        for row in &now.rows {
            out.quantiles(&[("operation", &row.name)], &row.last);
        }
    };
    gauge "rbench_longest_gap_seconds",
        "The longest time in which no operation of the row finished, if longer than an interval": |out, now| {
        for row in &now.rows {
            if let Some(gap) = row.longest_gap_s {
                out.add("", &[("operation", &row.name)], gap);
            }
        }
    };
    gauge "rbench_host_interval_operations_per_second",
        "Operations per second of a host without error in the last interval": |out, now| {
        for host in &now.hosts {
            out.add("", &[("host", &host.host)], host.last.rate);
        }
    };
    gauge "rbench_host_interval_latency_seconds",
        "Latency quantiles of a host in the last interval, from the intended start if there is one": |out, now| {
        for host in &now.hosts {
            out.quantiles(&[("host", &host.host)], &host.last);
        }
    };
    gauge "rbench_host_silent_seconds",
        "Time since the host's last finished operation in the running phase": |out, now| {
        for host in &now.hosts {
            out.add("", &[("host", &host.host)], host.silent_s);
        }
    };
    gauge "rbench_busy_processors",
        "Processors that rbench itself (tool) and the file system's client keep busy": |out, now| {
        let both = [("tool", now.tool_cpus), ("client", now.client_cpus)];
        for (program, cpus) in both {
            if let Some(cpus) = cpus {
                out.add("", &[("program", program)], cpus);
            }
        }
    };
};

/// A sample of the running phase, if it has one.
fn progress(out: &mut Samples<'_>, now: &LiveResult, of: impl Fn(&LiveProgress) -> Option<f64>) {
    if let Some(value) = now.progress.as_ref().and_then(of) {
        out.add("", &[], value);
    }
}

/// A sample of each row of the running phase, for its last interval.
fn each_row(out: &mut Samples<'_>, now: &LiveResult, of: impl Fn(&LiveFigures) -> f64) {
    for row in &now.rows {
        out.add("", &[("operation", &row.name)], of(&row.last));
    }
}

/// The results as one exposition.
pub fn render(results: &[RunResult]) -> String {
    of_runs(results) + END
}

/// Renders a running run: its results until now like those of a finished run, and its current
/// state.
pub fn render_live(so_far: &[RunResult], now: &LiveResult) -> String {
    let now = [(now.run.as_str(), now)].into_iter();
    let live = LIVE_FAMILIES
        .iter()
        .map(|family| family.render(now.clone()));
    of_runs(so_far) + &live.collect::<String>() + END
}

const END: &str = "# EOF\n";

fn of_runs(results: &[RunResult]) -> String {
    let each = results.iter().map(|run| (run.run.id.as_str(), run));
    let own = FAMILIES.iter();
    let own = own.map(|family| (family.name.to_owned(), family.render(each.clone())));
    let listed = figures::listed(Output::OpenMetrics).filter(|(_, name)| *name != LATENCY);
    let listed = listed.map(|(figure, name)| of_figure(figure, name, each.clone()));
    let mut all: Vec<(String, String)> = own.chain(listed).collect();
    let place = |name: &str| ORDER.iter().position(|known| *known == name);
    all.sort_by_key(|(name, _)| place(name).unwrap_or(ORDER.len()));
    all.into_iter().map(|(_, text)| text).collect()
}

/// The name of the family of a figure that is listed by this name: in seconds if it is a time.
pub fn family_name(figure: &Figure, name: &str) -> String {
    let (stem, unit) = match figure.unit {
        Unit::Seconds => (name.trim_end_matches("_s"), "_seconds"),
        Unit::Nanos => (name.trim_end_matches("_ns"), "_seconds"),
        _ => (name, ""),
    };
    match name.starts_with("rbench_") {
        true => name.to_owned(),
        false => format!("rbench_{stem}{unit}"),
    }
}

/// The family of a figure that is listed by this name.
fn of_figure<'r>(
    figure: &Figure,
    name: &str,
    results: impl Iterator<Item = (&'r str, &'r RunResult)>,
) -> (String, String) {
    let name = family_name(figure, name);
    let (kind, suffix) = match figure.read {
        Read::Count(_) => ("counter", "_total"),
        Read::Word(_) => ("info", "_info"),
        Read::Number(_) | Read::Largest(_) | Read::Times(_) => ("gauge", ""),
    };
    let per_second = match figure.unit {
        Unit::Nanos => 1e9,
        Unit::Micros => 1e6,
        _ => 1.0,
    };
    let mut help = figure.about.to_owned();
    if let Some(first) = help.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let head = [name.as_str(), kind, help.as_str()];
    let text = family(head, results, |out, result: &RunResult| {
        each_phase(result, |phase, key| match figure.of(phase) {
            Some(Value::Word(word)) => {
                out.add(suffix, &with(key, figure.name, &word), 1.0);
            }
            Some(value) => {
                if let Some(number) = value.number(None) {
                    out.add(suffix, key, number / per_second);
                }
            }
            None => {}
        });
    });
    (name, text)
}

impl<T> Family<T> {
    fn render<'r>(&self, results: impl Iterator<Item = (&'r str, &'r T)>) -> String {
        let Family {
            name,
            kind,
            help,
            samples,
        } = self;
        family([name, kind, help], results, samples)
    }
}

/// A family, by its name, kind and meaning; empty without a sample.
fn family<'r, T: 'static>(
    [name, kind, help]: [&str; 3],
    results: impl Iterator<Item = (&'r str, &'r T)>,
    samples: impl Fn(&mut Samples<'_>, &T),
) -> String {
    let mut lines = String::new();
    for (run, result) in results {
        let mut out = Samples {
            text: &mut lines,
            family: name,
            run,
        };
        samples(&mut out, result);
    }
    if lines.is_empty() {
        return lines;
    }
    // The unit of a family is the end of its name.
    let mut units = ["seconds", "bytes"].into_iter();
    let unit = units.find(|unit| name.ends_with(&format!("_{unit}")));
    let unit = unit.map_or_else(String::new, |unit| format!("# UNIT {name} {unit}\n"));
    format!("# TYPE {name} {kind}\n{unit}# HELP {name} {help}\n{lines}")
}

type Labels<'l> = [(&'l str, &'l str)];

/// These labels and one more.
fn with<'l>(labels: &Labels<'l>, name: &'l str, text: &'l str) -> Vec<(&'l str, &'l str)> {
    [labels, &[(name, text)]].concat()
}

/// Visits each operation with its labels.
fn each_phase(result: &RunResult, mut of: impl FnMut(&PhaseResult, &Labels<'_>)) {
    for phase in &result.phases {
        let iteration = phase.iteration.to_string();
        of(
            phase,
            &[("operation", &phase.name), ("iteration", &iteration)],
        );
    }
}

/// The lines of a family.
struct Samples<'s> {
    text: &'s mut String,
    family: &'s str,
    run: &'s str,
}

impl Samples<'_> {
    fn add(&mut self, suffix: &str, labels: &Labels<'_>, value: f64) {
        let _ = write!(
            self.text,
            "{}{suffix}{{run=\"{}\"",
            self.family,
            escaped(self.run)
        );
        for (name, text) in labels {
            let _ = write!(self.text, ",{name}=\"{}\"", escaped(text));
        }
        let _ = writeln!(self.text, "}} {value}");
    }

    /// The quantiles of an interval; none if no operation ended in it.
    fn quantiles(&mut self, labels: &Labels<'_>, figures: &LiveFigures) {
        const NS_PER_S: f64 = 1e9;
        if figures.items == 0 {
            return;
        }
        let quantiles = [
            ("0.5", figures.p50_ns),
            ("0.99", figures.p99_ns),
            ("0.999", figures.p999_ns),
            ("1", figures.max_ns),
        ];
        for (quantile, ns) in quantiles {
            self.add(
                "",
                &with(labels, "quantile", quantile),
                ns as f64 / NS_PER_S,
            );
        }
    }

    /// Quantiles, sum and count.
    fn summary(&mut self, labels: &Labels<'_>, hist: &Hist) {
        const NS_PER_S: f64 = 1e9;
        for quantity in QUANTITIES {
            let quantile = match quantity.measure {
                Measure::Quantile(quantile) if quantile > 0.0 => quantile.to_string(),
                _ => continue,
            };
            let labels = with(labels, "quantile", &quantile);
            let value = match hist.count {
                0 => f64::NAN,
                _ => (quantity.field)(hist) / NS_PER_S,
            };
            self.add("", &labels, value);
        }
        self.add("_sum", labels, hist.mean_ns * hist.count as f64 / NS_PER_S);
        self.add("_count", labels, hist.count as f64);
    }
}

/// Escapes a value between quotes.
fn escaped(text: &str) -> String {
    let plain = crate::table::printable(text);
    plain.replace('\\', r"\\").replace('"', "\\\"")
}
