//! Rules for the warnings that the reader should know before trusting the numbers.
//!
//! A rule judges one phase. Its findings in several phases become one warning that lists them.

use rbench_core::units::{human_count, human_nanos};

use crate::schema::{HostResult, PhaseResult, RunResult, Warning};
use crate::summary::{is_short, rate_per_rank, slowest_rank};
use crate::table::grouped;
use crate::text::seconds;
use crate::text::steady::window;

mod dead_mounts;
mod place;
mod residency;
mod short;
mod workers;

use short::advice;
use workers::left_out;
pub(crate) use workers::{Limit, all_workers, limit, of_the_tool};

/// Maximum overhead of the tool, as a share of a phase's median.
const TOOL_COST_SHARE: f64 = 0.05;
/// Maximum start skew, as a share of a phase's elapsed time.
const SKEW_SHARE: f64 = 0.1;
/// Start skew that is always acceptable, s.
const SKEW_FLOOR_S: f64 = 0.001;
const SHORT_PHASE: &str = "short-phase";
/// Maximum factor of a rank's time over the median.
pub(crate) const STRAGGLER_FACTOR: f64 = 1.5;
/// Maximum factor between the hosts' rates per rank.
const UNEVEN_FACTOR: f64 = 2.0;

struct Rule {
    code: &'static str,
    /// Text before the list of phases.
    before: fn(&RunResult) -> String,
    /// Text after it.
    after: fn(&RunResult) -> String,
    find: fn(&RunResult, &PhaseResult) -> Option<Finding>,
    over_iterations: Over,
}

/// A rule's finding in a phase: its severity and a note.
struct Finding {
    weight: f64,
    note: String,
}

impl Finding {
    fn new(weight: f64, note: String) -> Finding {
        Finding { weight, note }
    }
}

/// Summary of a finding in several iterations.
#[derive(Clone, Copy, PartialEq)]
enum Over {
    /// The sum of the weights, which are counts.
    Total,
    /// The note with the greatest weight.
    Worst,
}

/// Rules as rows: code, judgement, summary over iterations, and the text before the list of
/// phases; after it a stop, or the text that follows.
macro_rules! rules {
    (@text $text:literal) => { |_| $text.to_owned() };
    (@text $of:expr) => { $of };
    (@after) => { |_| ".".to_owned() };
    (@after $after:tt) => { rules!(@text $after) };
    ($($code:expr, $find:expr, $over:ident: $before:tt $(, $after:tt)?;)*) => {
        &[$(Rule {
            code: $code,
            before: rules!(@text $before),
            after: rules!(@after $($after)?),
            find: $find,
            over_iterations: Over::$over,
        }),*]
    };
}

const RULES: &[Rule] = rules! {
    "errors", errors, Total: "Operations failed; items, rates and latencies do not include them: ";
    "already-there", |result, phase| count(there(result, phase)), Total:
        "Directories and nodes to create already existed; items and rates do not include them: ";
    "missed", missed, Worst:
        "More than 1% of the operations found no file to work on (none was left, or another worker was faster); \
         no figure includes them: ";
    "unchecked-blocks", |_, phase| count(phase.unchecked), Total:
        "Blocks were not verified because their write had failed: ";
    "open-loop-behind", workers::behind, Worst: "The requested rate was not reached: ";
    "not-steady", not_steady, Worst:
        "The rate did not become steady (--steadystate) during the phase: ";
    "time-outside-calls", workers::outside_calls, Worst:
        "Workers spent more than 5% of their time outside calls, which lowers the rate (filling and checking \
         data, recording, waiting for a CPU; waits for intended starts and think time do not count): ", left_out;
    "stalled", workers::stalled, Worst:
        "No worker of a host finished anything for more than a second: ";
    "given-up-workers", workers::given_up, Worst: "Workers were given up (--op-timeout): ";
    "first-failed", workers::first_failed, Worst:
        "The rate 'first done' is missing because most operations of the worker that finished first failed: ";
    "interrupted-calls", |_, phase| count(phase.interrupted), Total: "Interrupted calls were retried (EINTR): ";
    "short-transfers", |_, phase| count(phase.continued), Total: "Short reads or writes were completed by further calls: ";
    "cache-hit", residency::memory_answered, Worst:
        "This host's memory answered, not the file system: ";
    "cache-part", residency::memory_answered_partly, Worst:
        "This host's memory, not the file system, answered some of the operations: ";
    "cold-then-warm", residency::came_round, Worst:
        "Cold only at first: workers then read data again that they had already read: ", use_more_data;
    "rewritten", residency::rewritten, Worst:
        "Workers had time to write everything more than once, and overwrote the same blocks: ";
    "verified-memory", residency::verified_memory, Worst:
        "The verified data came, at least in part, from this host's memory, so the storage itself was not \
         checked: ";
    SHORT_PHASE, short_phase, Worst:
        "Too short for a trustworthy rate (under 10 ms): ", advice;
    "straggler", straggler, Worst: "A rank took more than 1.5 times as long as the median rank: ";
    "uneven-hosts", uneven_hosts, Worst: "Rates per rank differ more than 2 times between hosts: ";
    "start-skew", start_skew, Worst: "Workers did not all start on time, which lowers the rate: ";
    "start-unsure", start_unsure, Worst:
        "The hosts' clock offsets are too uncertain to show that all started together; they may have started \
         this far apart: ";
    "tool-cost", tool_cost, Worst: own_cost;
    "latency-above-range", above_range, Total:
        "Latencies above one hour are outside the histogram's range: ", ". Mean and maximum include them exactly.";
};

/// The codes of the rules of this module.
pub fn codes() -> impl Iterator<Item = &'static str> {
    RULES
        .iter()
        .map(|rule| rule.code)
        .chain([dead_mounts::CODE])
        .chain(place::CODES)
}

/// Returns true if `code` belongs to a rule of this module.
pub fn is_rule_code(code: &str) -> bool {
    codes().any(|known| known == code)
}

/// All warnings: one for each dead mount, those about the target, and at most one per rule.
pub fn find(result: &RunResult) -> Vec<Warning> {
    let dead = result.dead_mounts.iter().map(dead_mounts::warning);
    dead.chain(place::warnings(result))
        .chain(by_rules(result))
        .collect()
}

fn by_rules(result: &RunResult) -> impl Iterator<Item = Warning> {
    RULES.iter().filter_map(|rule| {
        let list = phases_found(rule, result);
        let message = || message(rule, result, &list, &(rule.after)(result));
        (!list.is_empty()).then(|| Warning::new(rule.code, message()))
    })
}

fn message(rule: &Rule, result: &RunResult, list: &[String], after: &str) -> String {
    format!("{}{}{after}", (rule.before)(result), list.join(", "))
}

/// The text of a cell's warning for the user of a series of this kind.
pub(crate) fn in_a_series(kind: &str, result: &RunResult, warning: &Warning) -> String {
    let said = || {
        let rule = RULES.iter().find(|rule| rule.code == warning.code)?;
        let after = short::advice_of_series(kind, result).filter(|_| rule.code == SHORT_PHASE)?;
        let list = phases_found(rule, result);
        (!list.is_empty()).then(|| message(rule, result, &list, &after))
    };
    said().unwrap_or_else(|| warning.message.clone())
}

/// Codes of the run's warnings about one of these operations. A warning about no single operation is
/// about all.
pub(crate) fn about<'r>(result: &'r RunResult, names: &[&str]) -> Vec<&'r str> {
    let is_about = |warning: &&Warning| {
        let rule = RULES.iter().find(|rule| rule.code == warning.code);
        let phases = result.phases.iter();
        let found = phases.filter(|phase| rule.is_some_and(|r| (r.find)(result, phase).is_some()));
        let mut found = found.map(|phase| phase.name.as_str()).peekable();
        found.peek().is_none() || found.any(|name| names.contains(&name))
    };
    let all = result.warnings.iter().filter(is_about);
    all.map(|warning| warning.code.as_str()).collect()
}

/// One entry for each phase name with a finding.
fn phases_found(rule: &Rule, result: &RunResult) -> Vec<String> {
    let rows = grouped(result.phases.iter().map(|phase| (&phase.name, phase)));
    let entries = rows.into_iter().filter_map(|(_, phases)| {
        let finding = |phase: &&PhaseResult| Some((phase.iteration, (rule.find)(result, phase)?));
        let found: Vec<(u32, Finding)> = phases.iter().filter_map(finding).collect();
        (!found.is_empty()).then(|| entry(rule, &phases[0].label, &found, phases.len()))
    });
    entries.collect()
}

fn entry(rule: &Rule, label: &str, found: &[(u32, Finding)], iterations: usize) -> String {
    let numbers: Vec<String> = found
        .iter()
        .map(|(i, _)| i.saturating_add(1).to_string())
        .collect();
    let place = match (found.len() == iterations, numbers.len()) {
        (true, _) => String::new(),
        (false, 1) => format!(" in iteration {}", numbers[0]),
        (false, _) => format!(" in iterations {}", numbers.join(", ")),
    };
    let note = match rule.over_iterations {
        Over::Total => {
            let counts = found.iter().map(|(_, f)| f.weight as u64);
            human_count(counts.fold(0, u64::saturating_add))
        }
        Over::Worst => {
            let worst = found
                .iter()
                .max_by(|a, b| a.1.weight.total_cmp(&b.1.weight))
                .map_or("", |(_, f)| f.note.as_str());
            let prefix = if found.len() > 1 { "at worst " } else { "" };
            format!("{prefix}{worst}")
        }
    };
    format!("{label}{place} ({note})")
}

fn own_cost(result: &RunResult) -> String {
    let (cost, host) = dearest(result);
    let cost = human_nanos(cost);
    let host = host.map_or_else(String::new, |host| format!(" on {host}"));
    format!(
        "rbench's own cost ({cost} for a null operation{host}, measuring included) exceeds 5% of the median of "
    )
}

fn use_more_data(result: &RunResult) -> String {
    match result.run.command.get(1).map(String::as_str) {
        Some("fio") => ". Use larger files or a shorter runtime.".into(),
        _ => ". Use larger files or a shorter --time.".into(),
    }
}

/// The cost of a null operation on the most expensive host, and that host if there are several.
/// Reading the clock and recording are parts of it.
fn dearest(result: &RunResult) -> (f64, Option<&str>) {
    let hosts = result.calibration.hosts.iter();
    let worst = hosts.max_by(|a, b| a.null_op_ns.total_cmp(&b.null_op_ns));
    match worst {
        Some(host) => (host.null_op_ns, Some(&host.host)),
        None => (result.calibration.null_op_ns, None),
    }
}

/// Compares each host's cost with its own median if known, otherwise the only cost with the median
/// of all.
fn tool_cost(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let cost_on = |host: &str| {
        let mut hosts = result.calibration.hosts.iter();
        hosts.find(|h| h.host == host).map(|h| h.null_op_ns)
    };
    let share_on = |host: &HostResult| {
        let median = host.latency.p50_ns as f64;
        Some((cost_on(&host.host)? / median, median))
    };
    let whole = phase.latency.service.p50_ns as f64;
    let of_hosts = phase.hosts.iter().filter(|host| host.items > 0);
    let (share, median) = of_hosts
        .filter_map(share_on)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or((result.calibration.null_op_ns / whole, whole));
    (phase.items > 0 && share > TOOL_COST_SHARE).then(|| Finding {
        weight: share,
        note: if median == 0.0 {
            "of 0 ns".to_owned()
        } else {
            format!("{:.1}% of {}", share * 100.0, human_nanos(median))
        },
    })
}

/// Excludes failures on dead mounts and items that already existed: other warnings report them.
fn errors(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let elsewhere = result.failed_on_dead_mounts(phase);
    let elsewhere = elsewhere.saturating_add(there(result, phase));
    count(phase.error_count().saturating_sub(elsewhere))
}

/// Returns true if operations failed, apart from creations of existing items.
pub fn has_failures(result: &RunResult) -> bool {
    let mut phases = result.phases.iter();
    phases.any(|phase| phase.error_count() > there(result, phase))
}

/// Number of items that a phase of mdtest should create but found: mdtest continues with those.
fn there(result: &RunResult, phase: &PhaseResult) -> u64 {
    let makes = matches!(phase.op.as_str(), "mkdir" | "mknod" | "create");
    let command = result.run.command.get(1).map(String::as_str);
    match makes && command == Some("mdtest") {
        true => phase.errors.get("EEXIST").copied().unwrap_or(0),
        false => 0,
    }
}

/// Returns true if a dead mount explains the differences between ranks and hosts.
fn is_torn(result: &RunResult, phase: &PhaseResult) -> bool {
    result.failed_on_dead_mounts(phase) > 0
}

fn not_steady(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let steady = phase.steady.as_ref().filter(|steady| !steady.attained)?;
    // A stopped phase had no time to become steady.
    phase
        .complete
        .then(|| Finding::new(steady.value.unwrap_or(f64::INFINITY).abs(), window(steady)))
}

/// Share of operations that may miss without a warning.
const MISSED_SHARE: f64 = 0.01;

fn missed(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let all = phase.items.saturating_add(phase.error_count());
    let all = all.saturating_add(phase.missed);
    let share = phase.missed as f64 / all.max(1) as f64;
    (share > MISSED_SHARE).then(|| {
        Finding::new(
            share,
            format!("{} of {}", human_count(phase.missed), human_count(all)),
        )
    })
}

fn above_range(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let response = phase.latency.response.as_ref().map_or(0, |h| h.above);
    count(phase.latency.service.above.max(response))
}

fn count(n: u64) -> Option<Finding> {
    (n > 0).then(|| Finding::new(n as f64, human_count(n)))
}

fn start_unsure(_: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    // Two clocks may be off in opposite directions.
    let (apart, elapsed) = (2.0 * phase.start_error_s?, phase.elapsed_s);
    (apart > SKEW_FLOOR_S && apart > SKEW_SHARE * elapsed).then(|| {
        Finding::new(
            apart / elapsed,
            format!("{} in {}", seconds(apart), seconds(elapsed)),
        )
    })
}

fn start_skew(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let (skew, elapsed) = (phase.start_skew_s, phase.elapsed_s);
    let alone = phase.has_one_worker(&result.world);
    let what = if alone { "late" } else { "apart" };
    (skew > SKEW_FLOOR_S && skew > SKEW_SHARE * elapsed).then(|| {
        Finding::new(
            skew / elapsed,
            format!("{} {what} in {}", seconds(skew), seconds(elapsed)),
        )
    })
}

fn short_phase(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    short::is_listed(result, phase)
        .then(|| Finding::new(-phase.elapsed_s, seconds(phase.elapsed_s)))
}

/// Finds stragglers; short phases are excluded, since the scheduler decides there.
fn straggler(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let (slowest, median) = slowest_rank(phase)?;
    let factor = slowest.elapsed.as_secs_f64() / median;
    let compares = !is_short(phase) && !phase.one_each && !is_torn(result, phase);
    (compares && median > 0.0 && factor > STRAGGLER_FACTOR).then(|| Finding {
        weight: factor,
        note: format!(
            "rank {} on {}, {factor:.1} times",
            slowest.rank, slowest.host
        ),
    })
}

/// Compares the hosts' rates per rank, as hosts may differ in ranks. Idle hosts are left out.
fn uneven_hosts(result: &RunResult, phase: &PhaseResult) -> Option<Finding> {
    let rates: Vec<(f64, &str)> = phase
        .hosts
        .iter()
        .filter(|h| h.elapsed_s > 0.0)
        .filter_map(|h| Some((rate_per_rank(result, phase, h)?, h.host.as_str())))
        .collect();
    let (low, slow) = rates.iter().min_by(|a, b| a.0.total_cmp(&b.0))?;
    let (high, fast) = rates.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let factor = high / low;
    let compares = !is_short(phase) && !phase.one_each && !is_torn(result, phase);
    (compares && factor > UNEVEN_FACTOR)
        .then(|| Finding::new(factor, format!("{fast} {factor:.1} times {slow}")))
}
