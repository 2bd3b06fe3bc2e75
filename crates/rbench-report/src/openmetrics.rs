//! A result as OpenMetrics text, for a push gateway or a textfile collector: a
//! summary for each distribution, counters for what was done; of a run that goes on also
//! what it does now.

use std::fmt::Write as _;

use crate::hist::Hist;
use crate::schema::{LiveFigures, LiveProgress, LiveResult, LiveState, PhaseResult, RunResult};

/// Kind, unit and meaning of a family.
struct Family<T: 'static> {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
    samples: fn(&mut Samples<'_>, &T),
}

const FAMILIES: &[Family<RunResult>] = &[
    Family {
        name: "rbench_run",
        kind: "info",
        unit: "",
        help: "A run of rbench, with its version and target",
        samples: |out, result| {
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
        },
    },
    Family {
        name: "rbench_label",
        kind: "info",
        unit: "",
        help: "A label of the run",
        samples: |out, result| {
            for (name, value) in &result.run.labels {
                out.add("_info", &[("name", name), ("value", value)], 1.0);
            }
        },
    },
    Family {
        name: "rbench_run_complete",
        kind: "gauge",
        unit: "",
        help: "Whether every phase of the run finished",
        samples: |out, result| out.add("", &[], f64::from(u8::from(result.complete))),
    },
    Family {
        name: "rbench_warning",
        kind: "gauge",
        unit: "",
        help: "Warnings of the run by code",
        samples: |out, result| {
            let mut codes: Vec<&str> = result.warnings.iter().map(|w| w.code.as_str()).collect();
            codes.sort_unstable();
            for same in codes.chunk_by(|a, b| a == b) {
                out.add("", &[("code", same[0])], same.len() as f64);
            }
        },
    },
    Family {
        name: "rbench_operations",
        kind: "counter",
        unit: "",
        help: "Operations done without error",
        samples: |out, result| each(out, result, |p| Some(("_total", p.items as f64))),
    },
    Family {
        name: "rbench_errors",
        kind: "counter",
        unit: "",
        help: "Failed operations by error",
        samples: |out, result| {
            each_phase(result, |phase, key| {
                for (error, count) in &phase.errors {
                    let labels = [key, &[("error", error.as_str())]].concat();
                    out.add("_total", &labels, *count as f64);
                }
            });
        },
    },
    Family {
        name: "rbench_moved_bytes",
        kind: "counter",
        unit: "bytes",
        help: "Bytes that the operations moved",
        samples: |out, result| {
            each(out, result, |p| {
                p.bandwidth.map(|_| ("_total", p.bytes as f64))
            });
        },
    },
    Family {
        name: "rbench_elapsed_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Time in which the operations were measured",
        samples: |out, result| each(out, result, |p| Some(("", p.elapsed_s))),
    },
    Family {
        name: "rbench_operations_per_second",
        kind: "gauge",
        unit: "",
        help: "Operations without error over the elapsed time",
        samples: |out, result| {
            each(out, result, |p| (!p.one_each).then_some(("", p.rate)));
        },
    },
    Family {
        name: "rbench_bytes_per_second",
        kind: "gauge",
        unit: "",
        help: "Bytes over the elapsed time",
        samples: |out, result| each(out, result, |p| p.bandwidth.map(|b| ("", b))),
    },
    Family {
        name: "rbench_latency_seconds",
        kind: "summary",
        unit: "seconds",
        help: "Time of an operation, from its actual (service) or intended (response) start",
        samples: |out, result| {
            each_phase(result, |phase, key| {
                let service = [key, &[("time", "service")]].concat();
                out.summary(&service, &phase.latency.service);
                if let Some(response) = &phase.latency.response {
                    let labels = [key, &[("time", "response")]].concat();
                    out.summary(&labels, response);
                }
            });
        },
    },
    Family {
        name: "rbench_client_cpu_seconds",
        kind: "counter",
        unit: "seconds",
        help: "CPU time of the file system's client on a host while the phase ran",
        samples: |out, result| {
            each_phase(result, |phase, key| {
                let hosts = phase.client.iter().flat_map(|client| &client.hosts);
                for (host, cpu_s) in hosts.filter_map(|host| Some((host, host.cpu_s?))) {
                    let labels = [key, &[("host", host.host.as_str())]].concat();
                    out.add("_total", &labels, cpu_s);
                }
            });
        },
    },
    Family {
        name: "rbench_host_operations",
        kind: "counter",
        unit: "",
        help: "Operations done without error on a host",
        samples: |out, result| {
            each_phase(result, |phase, key| {
                for host in &phase.hosts {
                    let labels = [key, &[("host", host.host.as_str())]].concat();
                    out.add("_total", &labels, host.items as f64);
                }
            });
        },
    },
    Family {
        name: "rbench_host_latency_seconds",
        kind: "summary",
        unit: "seconds",
        help: "Service time of an operation on a host",
        samples: |out, result| {
            each_phase(result, |phase, key| {
                for host in &phase.hosts {
                    let labels = [key, &[("host", host.host.as_str())]].concat();
                    out.summary(&labels, &host.latency);
                }
            });
        },
    },
];

/// What only a run that goes on has.
const LIVE_FAMILIES: &[Family<LiveResult>] = &[
    Family {
        name: "rbench_stopping",
        kind: "gauge",
        unit: "",
        help: "Whether a stop was requested",
        samples: |out, now| {
            out.add(
                "",
                &[],
                f64::from(u8::from(now.state == LiveState::Stopping)),
            );
        },
    },
    Family {
        name: "rbench_phase",
        kind: "info",
        unit: "",
        help: "The running phase, or the work between phases",
        samples: |out, now| out.add("_info", &[("label", &now.label)], 1.0),
    },
    Family {
        name: "rbench_phase_elapsed_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Time since the start of the running phase",
        samples: |out, now| progress(out, now, |p| Some(p.elapsed_s)),
    },
    Family {
        name: "rbench_phase_left_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Time until the end of the phase, if known",
        samples: |out, now| progress(out, now, |p| p.left_s),
    },
    Family {
        name: "rbench_phase_operations",
        kind: "gauge",
        unit: "",
        help: "Operations of the running phase, done without error",
        samples: |out, now| progress(out, now, |p| Some(p.items as f64)),
    },
    Family {
        name: "rbench_phase_planned_operations",
        kind: "gauge",
        unit: "",
        help: "Total operations of the phase, if known",
        samples: |out, now| progress(out, now, |p| Some(p.total? as f64)),
    },
    Family {
        name: "rbench_phase_failed_operations",
        kind: "gauge",
        unit: "",
        help: "Operations of the phase that failed",
        samples: |out, now| progress(out, now, |p| Some(p.failed as f64)),
    },
    Family {
        name: "rbench_backlog_operations",
        kind: "gauge",
        unit: "",
        help: "In an open loop: due operations that are not done",
        samples: |out, now| progress(out, now, |p| Some(p.backlog? as f64)),
    },
    Family {
        name: "rbench_interval_operations_per_second",
        kind: "gauge",
        unit: "",
        help: "Operations per second without error in the last interval",
        samples: |out, now| each_row(out, now, |f| f.rate),
    },
    Family {
        name: "rbench_interval_bytes_per_second",
        kind: "gauge",
        unit: "",
        help: "Bytes per second in the last interval",
        samples: |out, now| each_row(out, now, |f| f.bandwidth),
    },
    Family {
        name: "rbench_interval_errors",
        kind: "gauge",
        unit: "",
        help: "Operations that failed in the last interval",
        samples: |out, now| each_row(out, now, |f| f.errors as f64),
    },
    Family {
        name: "rbench_interval_latency_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Latency quantiles of the last interval, from the intended start if there is one",
        samples: |out, now| {
            for row in &now.rows {
                out.quantiles(&[("operation", &row.name)], &row.last);
            }
        },
    },
    Family {
        name: "rbench_longest_gap_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "The longest time in which no operation of the row finished, if longer than an interval",
        samples: |out, now| {
            for row in &now.rows {
                if let Some(gap) = row.longest_gap_s {
                    out.add("", &[("operation", &row.name)], gap);
                }
            }
        },
    },
    Family {
        name: "rbench_host_interval_operations_per_second",
        kind: "gauge",
        unit: "",
        help: "Operations per second of a host without error in the last interval",
        samples: |out, now| {
            for host in &now.hosts {
                out.add("", &[("host", &host.host)], host.last.rate);
            }
        },
    },
    Family {
        name: "rbench_host_interval_latency_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Latency quantiles of a host in the last interval, from the intended start if there is one",
        samples: |out, now| {
            for host in &now.hosts {
                out.quantiles(&[("host", &host.host)], &host.last);
            }
        },
    },
    Family {
        name: "rbench_host_silent_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Time since the host's last finished operation in the running phase",
        samples: |out, now| {
            for host in &now.hosts {
                out.add("", &[("host", &host.host)], host.silent_s);
            }
        },
    },
    Family {
        name: "rbench_busy_processors",
        kind: "gauge",
        unit: "",
        help: "Processors that rbench itself (tool) and the file system's client keep busy",
        samples: |out, now| {
            let both = [("tool", now.tool_cpus), ("client", now.client_cpus)];
            for (program, cpus) in both {
                if let Some(cpus) = cpus {
                    out.add("", &[("program", program)], cpus);
                }
            }
        },
    },
];

/// A sample of the phase that runs, if it has one.
fn progress(out: &mut Samples<'_>, now: &LiveResult, of: impl Fn(&LiveProgress) -> Option<f64>) {
    if let Some(value) = now.progress.as_ref().and_then(of) {
        out.add("", &[], value);
    }
}

/// A sample of each row of the phase that runs, of its last interval.
fn each_row(out: &mut Samples<'_>, now: &LiveResult, of: impl Fn(&LiveFigures) -> f64) {
    for row in &now.rows {
        out.add("", &[("operation", &row.name)], of(&row.last));
    }
}

/// The results as one exposition.
pub fn render(results: &[RunResult]) -> String {
    let mut text = String::new();
    let each = results.iter().map(|run| (run.run.id.as_str(), run));
    families(&mut text, FAMILIES, each);
    text.push_str("# EOF\n");
    text
}

/// A run that goes on: what it has done so far in the words of one that has ended, and what
/// it does now.
pub fn render_live(so_far: &[RunResult], now: &LiveResult) -> String {
    let mut text = String::new();
    let each = so_far.iter().map(|run| (run.run.id.as_str(), run));
    families(&mut text, FAMILIES, each);
    families(
        &mut text,
        LIVE_FAMILIES,
        [(now.run.as_str(), now)].into_iter(),
    );
    text.push_str("# EOF\n");
    text
}

fn families<'r, T: 'static>(
    text: &mut String,
    all: &[Family<T>],
    results: impl Iterator<Item = (&'r str, &'r T)> + Clone,
) {
    for family in all {
        let Family {
            name,
            kind,
            unit,
            help,
            samples,
        } = family;
        let mut lines = String::new();
        for (run, result) in results.clone() {
            let mut out = Samples {
                text: &mut lines,
                family: name,
                run,
            };
            samples(&mut out, result);
        }
        if lines.is_empty() {
            continue;
        }
        let _ = writeln!(text, "# TYPE {name} {kind}");
        if !unit.is_empty() {
            let _ = writeln!(text, "# UNIT {name} {unit}");
        }
        let _ = writeln!(text, "# HELP {name} {help}");
        text.push_str(&lines);
    }
}

type Labels<'l> = [(&'l str, &'l str)];

/// What names an operation beside its run.
fn each_phase(result: &RunResult, mut of: impl FnMut(&PhaseResult, &Labels<'_>)) {
    for phase in &result.phases {
        let iteration = phase.iteration.to_string();
        of(
            phase,
            &[("operation", &phase.name), ("iteration", &iteration)],
        );
    }
}

/// A sample of each operation that has one.
fn each(
    out: &mut Samples<'_>,
    result: &RunResult,
    of: impl Fn(&PhaseResult) -> Option<(&'static str, f64)>,
) {
    each_phase(result, |phase, key| {
        if let Some((suffix, value)) = of(phase) {
            out.add(suffix, key, value);
        }
    });
}

/// The lines of a family.
struct Samples<'s> {
    text: &'s mut String,
    family: &'static str,
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

    /// Those of an interval; none where nothing ended in it.
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
            let labels = [labels, &[("quantile", quantile)]].concat();
            self.add("", &labels, ns as f64 / NS_PER_S);
        }
    }

    /// Quantiles, sum and count.
    fn summary(&mut self, labels: &Labels<'_>, hist: &Hist) {
        const NS_PER_S: f64 = 1e9;
        let quantiles = [
            ("0.5", hist.p50_ns),
            ("0.9", hist.p90_ns),
            ("0.95", hist.p95_ns),
            ("0.99", hist.p99_ns),
            ("0.999", hist.p999_ns),
            ("0.9999", hist.p9999_ns),
            ("1", hist.max_ns),
        ];
        for (quantile, ns) in quantiles {
            let labels = [labels, &[("quantile", quantile)]].concat();
            let value = if hist.count > 0 {
                ns as f64 / NS_PER_S
            } else {
                f64::NAN
            };
            self.add("", &labels, value);
        }
        self.add("_sum", labels, hist.mean_ns * hist.count as f64 / NS_PER_S);
        self.add("_count", labels, hist.count as f64);
    }
}

/// A value between quotes.
fn escaped(text: &str) -> String {
    let plain = crate::table::printable(text);
    plain.replace('\\', r"\\").replace('"', "\\\"")
}
