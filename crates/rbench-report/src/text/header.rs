//! The header of the report: command, hosts, target, settings, and the cost of measuring.

use rbench_core::plain::{ranges, shell_word};
use rbench_core::units::human_nanos;
use serde_json::Value;

use crate::schema::{Host, RoundTrip, RunResult, remarks};
use crate::table::{Table, left, printable, right, sentence, wrapped};
use crate::view::View;

/// Maximum number of hosts with a line of their own, without details.
const MOST_HOSTS: usize = 8;

/// The header of the report.
pub fn render(result: &RunResult, view: View) -> String {
    let mut out = String::new();
    if result.target.embedded {
        out.push_str(&sentence(view, "", &demonstration(&result.run.command)));
        out.push('\n');
    }
    let run = &result.run;
    out.push_str(&wrapped(view, "rbench ", &[&run.version], ""));
    out.push('\n');
    let command: Vec<String> = run.command.iter().map(|w| shell_word(w)).collect();
    fact(&mut out, view, "Command", (&command, " "));
    for Fact {
        name,
        words,
        separator,
    } in all(result)
    {
        fact(&mut out, view, name, (&words, separator));
        if name == WORLD && result.world.hosts.len() > 1 {
            hosts(&mut out, view, &result.world.hosts);
        }
    }
    out
}

/// The note on figures of the built-in file system, for the user of this command.
pub(crate) fn demonstration(command: &[String]) -> String {
    let how = match command.get(1).map(String::as_str) {
        Some("quick") => "name a directory: rbench quick PATH",
        Some("knee" | "sweep") => "choose a directory with --dir of the workload, after --",
        _ => "choose a directory with --dir",
    };
    format!("DEMONSTRATION on rbench's built-in file system in memory, not your storage: {how}.")
}

/// Name of the fact that hosts follow.
const WORLD: &str = "Ranks";

/// A line of the header.
struct Fact {
    name: &'static str,
    words: Vec<String>,
    separator: &'static str,
}

/// Everything except the command; a fact without words is not shown.
fn all(result: &RunResult) -> [Fact; 8] {
    let run = &result.run;
    let mut identity = vec![run.id.clone(), format!("seed {}", run.seed)];
    identity.push(match &run.finished {
        Some(finished) => format!("{} to {finished}", run.started),
        None => format!("started {}", run.started),
    });
    let labels = run.labels.iter().map(|(k, v)| format!("{k}={v}"));
    let cost = &result.calibration;
    let mut costs = vec![
        format!("clock {}", human_nanos(cost.clock_ns)),
        format!("recording {}", human_nanos(cost.record_ns)),
    ];
    // A replay has no loop of operations to calibrate.
    if cost.null_op_ns > 0.0 {
        costs.push(format!(
            "null operation {}{}",
            human_nanos(cost.null_op_ns),
            dearer(result)
        ));
    }
    let fact = |name, words, separator| Fact {
        name,
        words,
        separator,
    };
    [
        fact("Target", place(result), ", "),
        fact(WORLD, world(result), ", "),
        fact("State", state(&result.world.hosts), "   "),
        fact("Settings", settings(result), "   "),
        fact("Run", identity, "   "),
        fact("Labels", labels.collect(), "   "),
        fact("Tool cost", costs, "   "),
        fact("Round trip", round_trips(result), ", "),
    ]
}

/// The command line, quoted for a shell.
pub(crate) fn command(result: &RunResult) -> String {
    let words = result.run.command.iter().map(|w| shell_word(w));
    printable(&words.collect::<Vec<String>>().join(" "))
}

/// The header without the command, as names and sentences.
pub(crate) fn facts(result: &RunResult) -> Vec<(&'static str, String)> {
    let shown = all(result)
        .into_iter()
        .filter(|fact| !fact.words.is_empty());
    shown
        .map(|fact| {
            let separator = if fact.separator == "   " {
                ", "
            } else {
                fact.separator
            };
            (fact.name, fact.words.join(separator))
        })
        .collect()
}

/// Hosts where a null operation costs clearly more than on the host of rank 0.
fn dearer(result: &RunResult) -> String {
    const CLEARLY: f64 = 1.25;
    let cost = &result.calibration;
    let worst = cost.hosts.iter();
    let worst = worst.max_by(|a, b| a.null_op_ns.total_cmp(&b.null_op_ns));
    let worst = worst.filter(|host| host.null_op_ns > CLEARLY * cost.null_op_ns);
    worst.map_or_else(String::new, |host| {
        format!(" ({} on {})", human_nanos(host.null_op_ns), host.host)
    })
}

/// Noteworthy facts about the hosts, apart from the target.
fn state(hosts: &[Host]) -> Vec<String> {
    let mut all = Vec::new();
    for host in hosts {
        let around = host.surroundings.as_ref();
        all.extend(around.map(|around| (host.name.as_str(), host.cpus, around)));
    }
    remarks(&all)
}

/// Adds a line `name words…`; nothing if there are no words.
fn fact(out: &mut String, view: View, name: &str, (words, separator): (&[String], &str)) {
    if !words.is_empty() {
        out.push_str(&wrapped(view, &format!("{name:<11}"), words, separator));
    }
}

/// Describes the directory and its file system.
pub(crate) fn place(result: &RunResult) -> Vec<String> {
    let t = &result.target;
    let mut words = vec![t.path.clone()];
    words.extend(t.fs_type.clone());
    words.extend(t.mount_source.as_deref().map(|source| {
        let place = t.mount_point.as_deref();
        let place = place.map_or_else(String::new, |place| format!(" at {place}"));
        format!("mounted from {source}{place}")
    }));
    if result.world.hosts.len() > 1 {
        words.extend(t.shared.map(|shared| {
            if shared {
                "shared by the hosts".to_owned()
            } else {
                "private to each host".to_owned()
            }
        }));
    }
    words
}

fn world(result: &RunResult) -> Vec<String> {
    let w = &result.world;
    let place = match w.hosts.as_slice() {
        [host] => format!(" on {}", host.name),
        hosts => format!(" on {} hosts", hosts.len()),
    };
    let mut words = vec![
        format!("{}{place}", number_of(w.ranks, "rank")),
        match w.ranks {
            1 => number_of(w.threads_per_rank, "thread"),
            _ => format!("{} each", number_of(w.threads_per_rank, "thread")),
        },
        format!("communicator {}", w.communicator),
    ];
    if let [host] = w.hosts.as_slice() {
        words.push(number_of(host.cpus, "CPU"));
        words.push(host.kernel.clone());
    }
    words
}

fn number_of(n: u32, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// A line for each host: ranks, CPUs, kernel, clock.
fn hosts(out: &mut String, view: View, hosts: &[Host]) {
    let columns = [left(""), left(""), left(""), right(""), left(""), left("")];
    let mut table = Table::new(columns);
    let most = if view.details { usize::MAX } else { MOST_HOSTS };
    for (i, host) in hosts.iter().take(most).enumerate() {
        table.row([
            format!("{:<9}", if i == 0 { "Hosts" } else { "" }),
            host.name.clone(),
            match host.ranks.len() {
                1 => format!("rank {}", ranges(&host.ranks)),
                _ => format!("ranks {}", ranges(&host.ranks)),
            },
            number_of(host.cpus, "CPU"),
            host.kernel.clone(),
            [clock(host, hosts), shares(host, hosts)].concat(),
        ]);
    }
    out.push_str(&table.render(view));
    if hosts.len() > most {
        let more = hosts.len() - most;
        fact(out, view, "", (&[format!("and {more} more hosts")], ""));
    }
}

/// Offset and drift of the host's clock relative to rank 0's host.
fn clock(host: &Host, hosts: &[Host]) -> String {
    if host.ranks.contains(&0) {
        return "reference clock".to_owned();
    }
    let number = |host: &Host| host.clock.as_ref().map(|clock| clock.number);
    let first = hosts.iter().find(|other| other.ranks.contains(&0));
    if number(host).is_some() && first.and_then(number) == number(host) {
        return "same clock".to_owned();
    }
    let sign = if host.clock_offset_ns < 0 { "-" } else { "+" };
    let offset = human_nanos(host.clock_offset_ns.unsigned_abs() as f64);
    let error = human_nanos(host.clock_error_ns as f64);
    format!("clock {sign}{offset} (+/- {error}){}", drift(host))
}

/// Drift of the host's clock, if it is significant or certainly small.
fn drift(host: &Host) -> String {
    const LITTLE_PPM: f64 = 5.0;
    let known = host.clock.as_ref();
    match known.and_then(|clock| Some((clock.drift_ppm?, clock.drift_error_ppm?))) {
        Some((ppm, error)) if error <= LITTLE_PPM || ppm.abs() > error => {
            format!(", drift {ppm:+.1} ppm (+/- {error:.1})")
        }
        _ => String::new(),
    }
}

/// The first other host that uses the same cache.
fn shares(host: &Host, hosts: &[Host]) -> String {
    let common = |other: &&Host| {
        !std::ptr::eq(*other, host) && other.caches.iter().any(|cache| host.caches.contains(cache))
    };
    match hosts.iter().find(common) {
        Some(other) => format!(", cache shared with {}", other.name),
        None => String::new(),
    }
}

/// The round trip of each host or, with many hosts, the shortest and the longest.
fn round_trips(result: &RunResult) -> Vec<String> {
    let all = &result.target.round_trip;
    let several = result.world.hosts.len() > 1;
    let one = |t: &RoundTrip| {
        let host = if several {
            format!(" ({})", t.host)
        } else {
            String::new()
        };
        format!("{} {}{host}", t.call, human_nanos(t.median_ns as f64))
    };
    if all.len() <= MOST_HOSTS {
        return all.iter().map(one).collect();
    }
    let least = all.iter().min_by_key(|t| t.median_ns);
    let most = all.iter().max_by_key(|t| t.median_ns);
    let ends = least.into_iter().chain(most).map(one);
    let count = format!("shortest and longest of {} hosts", all.len());
    ends.chain([count]).collect()
}

/// The settings as `name value`: switches that are on by name only, unset ones not at all.
fn settings(result: &RunResult) -> Vec<String> {
    let pair = |(name, value): (&String, &Value)| match value {
        Value::Null | Value::Bool(false) => None,
        Value::Bool(true) => Some(name.clone()),
        other => Some(format!("{} {}", name, plain(other))),
    };
    result.spec.iter().filter_map(pair).collect()
}

/// A JSON value without its quotes; lists with commas.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::HostClock;

    fn host(name: &str, ranks: &[u32], number: u32, cache: u32) -> Host {
        Host {
            name: name.to_owned(),
            ranks: ranks.to_vec(),
            cpus: 1,
            clock_offset_ns: 2_000,
            clock_error_ns: 1_000,
            clock: Some(HostClock {
                number,
                ..HostClock::default()
            }),
            caches: vec![cache],
            ..Host::default()
        }
    }

    #[test]
    fn who_shares_a_clock_or_a_cache_is_said() {
        let hosts = [
            host("a", &[0], 0, 0),
            host("b", &[1], 0, 1),
            host("c", &[2], 1, 1),
        ];
        let clocks: Vec<String> = hosts.iter().map(|h| clock(h, &hosts)).collect();
        let apart = "clock +2.00 us (+/- 1.00 us)";
        assert_eq!(clocks, ["reference clock", "same clock", apart]);
        let caches: Vec<String> = hosts.iter().map(|h| shares(h, &hosts)).collect();
        assert_eq!(
            caches,
            ["", ", cache shared with c", ", cache shared with b"]
        );
        // Files of earlier versions do not identify clocks.
        let old = hosts.map(|host| Host {
            clock: None,
            caches: Vec::new(),
            ..host
        });
        assert_eq!(clock(&old[1], &old), apart);
        assert_eq!(shares(&old[1], &old), "");
    }

    #[test]
    fn a_drift_is_told_when_it_is_known_well_enough() {
        let check = |known: Option<(f64, f64)>, expect: &str| {
            let mut host = host("b", &[1], 1, 1);
            if let Some(clock) = &mut host.clock {
                clock.drift_ppm = known.map(|(ppm, _)| ppm);
                clock.drift_error_ppm = known.map(|(_, error)| error);
            }
            assert_eq!(drift(&host), expect);
        };
        check(None, "");
        check(Some((-20.04, 0.66)), ", drift -20.0 ppm (+/- 0.7)");
        check(Some((0.0, 4.0)), ", drift +0.0 ppm (+/- 4.0)");
        check(Some((300.0, 40.0)), ", drift +300.0 ppm (+/- 40.0)");
        check(Some((30.0, 40.0)), "");
    }
}
