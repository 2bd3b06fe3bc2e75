//! Cost of the file system's clients, and their own counters.

use rbench_core::units::{human_bytes, human_count, human_nanos};

use super::{heading, iterations, label, seconds};
use crate::schema::{CLIENT_WORK, ClientCostResult, HostClientResult, PhaseResult, RunResult};
use crate::table::{NONE, Table, grouped, left, or_none, right};
use crate::view::View;

/// Maximum number of hosts of a phase that are all shown.
const MOST_HOSTS: usize = 16;

/// Minimum CPU time of a host, s, to report the kernel's part: that is counted in ticks of 10 ms.
const LEAST_SPLIT_S: f64 = 0.1;

/// Rows that ran at the same time and share a cost.
pub(crate) struct Shared<'r> {
    /// The first row.
    pub phase: &'r PhaseResult,
    /// Names of all rows.
    pub label: String,
    /// Resources that the client used.
    pub cost: &'r ClientCostResult,
}

/// The phases in which a client was monitored.
pub(crate) fn watched(result: &RunResult) -> Vec<Shared<'_>> {
    let mut all: Vec<Shared<'_>> = Vec::new();
    for phase in &result.phases {
        let Some(cost) = &phase.client else {
            continue;
        };
        match all.last_mut() {
            // CPU time is in ns: two phases never use the same amount on every host.
            Some(last) if (last.phase.iteration, last.cost) == (phase.iteration, cost) => {
                last.label = format!("{} + {}", last.label, label(phase));
            }
            _ => all.push(Shared {
                phase,
                label: label(phase),
                cost,
            }),
        }
    }
    all
}

/// A row for each phase, of several iterations for their means. With details, a row for each
/// iteration and for each of several hosts.
pub fn cost(result: &RunResult, view: View) -> String {
    let mut table = Table::new([
        left("CLIENT"),
        right("CPU/op"),
        right("CPU time"),
        right("User"),
        right("System"),
        right("Resident"),
        right("Processes"),
        left("").optional(),
    ]);
    let total = iterations(result);
    let all = watched(result);
    if total > 1 && !view.details {
        means(&all, &mut table);
    } else {
        let mut current = None;
        for Shared { phase, label, cost } in all {
            heading(&mut table, (phase.iteration, total), &mut current);
            table.row(of_phase(label, cost));
            let hosts = cost.hosts.iter().take(MOST_HOSTS);
            for host in hosts.filter(|_| view.details && cost.hosts.len() > 1) {
                table.row(of_host(host));
            }
        }
    }
    table.render(view)
}

/// Adds a row for each name, in the order of first appearance: the mean of its iterations.
fn means(all: &[Shared<'_>], table: &mut Table) {
    table.heading("Mean of the iterations");
    for (label, costs) in grouped(all.iter().map(|one| (&one.label, one.cost))) {
        table.row(of_phase(label.clone(), &mean(&costs)));
    }
}

/// The mean of several iterations of a phase; a value that one of them lacks is unknown.
fn mean(costs: &[&ClientCostResult]) -> ClientCostResult {
    let sum = |value: &dyn Fn(&ClientCostResult) -> Option<f64>| {
        costs.iter().map(|cost| value(cost)).sum::<Option<f64>>()
    };
    let each = |sum: f64| sum / costs.len().max(1) as f64;
    let cpu_s = sum(&|cost| cost.cpu_s);
    let operations = sum(&|cost| Some(cost.operations? as f64)).filter(|sum| *sum > 0.0);
    let host = |host: &HostClientResult| {
        let own = |cost: &ClientCostResult| {
            let mut hosts = cost.hosts.iter();
            hosts.find(|own| own.host == host.host).cloned()
        };
        let time =
            |value: fn(&HostClientResult) -> Option<f64>| sum(&|cost| value(&own(cost)?)).map(each);
        let count = |value: fn(&HostClientResult) -> Option<u64>| {
            let mean = sum(&|cost| Some(value(&own(cost)?)? as f64)).map(each);
            mean.map(|mean| mean.round() as u64)
        };
        HostClientResult {
            host: host.host.clone(),
            unknown: costs.iter().find_map(|cost| own(cost)?.unknown),
            processes: count(|host| host.processes),
            cpu_s: time(|host| host.cpu_s),
            user_s: time(|host| host.user_s),
            system_s: time(|host| host.system_s),
            resident_bytes: count(|host| host.resident_bytes),
            peak_resident_bytes: count(|host| host.peak_resident_bytes),
        }
    };
    let first = costs.first();
    ClientCostResult {
        watch: first.and_then(|cost| cost.watch.clone()),
        operations: None,
        cpu_s: cpu_s.map(each),
        cpu_us_per_operation: cpu_s.zip(operations).map(|(cpu_s, sum)| 1e6 * cpu_s / sum),
        hosts: first
            .iter()
            .flat_map(|cost| &cost.hosts)
            .map(host)
            .collect(),
    }
}

/// The cells of a phase: name, CPU time per operation, CPU time, user, system, resident memory,
/// processes, and the reason if values are missing.
pub(crate) fn of_phase(name: String, cost: &ClientCostResult) -> Vec<String> {
    let per_operation = cost.cpu_us_per_operation.map(|us| human_nanos(us * 1e3));
    if let [host] = cost.hosts.as_slice() {
        let mut cells = of_host(host);
        cells[0] = name;
        cells[1] = or_none(per_operation);
        return cells;
    }
    let split = cost
        .hosts
        .iter()
        .map(split)
        .collect::<Option<Vec<[f64; 2]>>>();
    let part = |which: usize| {
        let split = split.as_ref()?;
        Some(split.iter().map(|parts| parts[which]).sum::<f64>())
    };
    let processes = cost
        .hosts
        .iter()
        .map(|host| host.processes)
        .try_fold(0, |sum: u64, number| Some(sum.saturating_add(number?)));
    let why = match cost.cpu_s {
        Some(_) => String::new(),
        None => "not known for every host".to_owned(),
    };
    vec![
        name,
        or_none(per_operation),
        or_none(cost.cpu_s.map(seconds)),
        or_none(part(0).map(seconds)),
        or_none(part(1).map(seconds)),
        NONE.to_owned(),
        or_none(processes.map(human_count)),
        why,
    ]
}

/// CPU time of a host in user mode and in the kernel, if there was enough of it.
fn split(host: &HostClientResult) -> Option<[f64; 2]> {
    let enough = host.cpu_s.is_some_and(|cpu_s| cpu_s >= LEAST_SPLIT_S);
    Some([host.user_s?, host.system_s?]).filter(|_| enough)
}

fn of_host(client: &HostClientResult) -> Vec<String> {
    let HostClientResult {
        host,
        unknown,
        processes,
        cpu_s,
        user_s: _,
        system_s: _,
        resident_bytes,
        peak_resident_bytes: _,
    } = client;
    let [user_s, system_s] = split(client).map_or([None; 2], |parts| parts.map(Some));
    let why = match unknown.as_deref() {
        None => "",
        Some("replaced") => "ended or replaced during the phase",
        Some("absent") => "no such process",
        Some(_) => "the kernel did not answer in time",
    };
    vec![
        format!("  {host}"),
        NONE.to_owned(),
        or_none(cpu_s.map(seconds)),
        or_none(user_s.map(seconds)),
        or_none(system_s.map(seconds)),
        or_none(resident_bytes.map(human_bytes)),
        or_none(processes.map(human_count)),
        why.to_owned(),
    ]
}

/// A row for each client and kind of work.
pub fn counters(result: &RunResult, view: View) -> String {
    let mut table = Table::new([
        left("CLIENT COUNTERS"),
        left("Work"),
        right("Count"),
        right("Each"),
    ]);
    for client in &result.client_counters {
        let mut host = client.host.clone();
        for (name, label) in CLIENT_WORK {
            let Some((count, seconds)) = client.work(name) else {
                continue;
            };
            let each = match count {
                0 => NONE.to_owned(),
                count => human_nanos(seconds * 1e9 / count as f64),
            };
            let host = std::mem::take(&mut host);
            table.row([host, label.to_owned(), human_count(count), each]);
        }
    }
    table.render(view)
}
