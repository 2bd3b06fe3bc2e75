//! A result as OpenMetrics text, for a push gateway or a textfile collector: a
//! summary for each distribution, counters for what was done.

use std::fmt::Write as _;

use crate::hist::Hist;
use crate::schema::{PhaseResult, RunResult};

/// Kind, unit and meaning of a family.
struct Family {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
    samples: fn(&mut Samples<'_>, &RunResult),
}

const FAMILIES: &[Family] = &[
    Family {
        name: "rbench_run",
        kind: "info",
        unit: "",
        help: "A run of rbench: which version on what",
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
        help: "Whether every phase of the run reached its end",
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

/// The results as one exposition.
pub fn render(results: &[RunResult]) -> String {
    let mut text = String::new();
    for family in FAMILIES {
        let Family {
            name,
            kind,
            unit,
            help,
            samples,
        } = family;
        let mut lines = String::new();
        for result in results {
            let mut out = Samples {
                text: &mut lines,
                family: name,
                run: &result.run.id,
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
    text.push_str("# EOF\n");
    text
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
