//! The declarations: a figure is added here, and nowhere else.

use super::Better::{Higher, Lower};
use super::Output::{Compare, Markdown, OpenMetrics, Page, Text};
use super::Shown::{In, Listed, Named, Not};
use super::{Better, Figure, Measure, Output, Quantity, Read, Shown, Unit, active_rate, caches};
use crate::schema::{EvidenceResult, PhaseResult};

/// The first table of a report.
const TABLE: &str = "main table";
/// Reason why Markdown does not have a figure.
const SUMMARY: &str = "Markdown is a summary for a pull request: a line for each operation";
/// Reasons why a comparison does not have it.
const NEITHER: &str = "more of it is neither better nor worse";
const FROM_RATE: &str = "the rate, which is compared, follows from it";
const FROM_MEAN: &str = "it follows from the mean latency, which is compared";
const COUNTED: &str = "it counts rare events: their ratio says nothing";
const FEW: &str = "single events decide it, and so does chance";
const EXPLAINS: &str = "it explains the rate, which is compared";
const IN_ACCESS: &str = "access-bandwidth, which is compared, follows from them";
/// Neither OpenMetrics nor a comparison has it.
const OF_TRACE: &str = "it is a property of the trace, not of the run";
/// Parts of outputs.
const OPS_TABLE: &str = "the table of ops";
const A_NOTE: &str = "a note";
const UNLIKE: &str = "a note, if it differs";
const BESIDE: &str = "BESIDE THE TRACE";
/// The family of all times.
const LATENCY: &str = "rbench_latency_seconds";

const fn figure(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    fields: &'static [&'static str],
    read: Read,
    about: &'static str,
) -> Figure {
    Figure {
        name,
        title,
        unit,
        about,
        fields,
        read,
        better: Better::Neither,
        shown: [Listed, Not(SUMMARY), Listed, Listed, Listed, Not(NEITHER)],
    }
}

impl Figure {
    const fn put(mut self, output: Output, shown: Shown) -> Figure {
        self.shown[output as usize] = shown;
        self
    }

    /// It is in the first table of reports.
    const fn in_table(self) -> Figure {
        self.put(Text, In(TABLE))
            .put(Markdown, In(TABLE))
            .put(Page, In(TABLE))
    }

    const fn better(mut self, better: Better, shown: Shown) -> Figure {
        self.better = better;
        self.put(Compare, shown)
    }
}

macro_rules! figures {
    ($($name:literal, $title:literal, $unit:ident, [$($field:literal),*], $kind:ident($read:expr),
        $about:literal $(, $set:ident($($value:expr),*))*;)*) => {
        &[$(
            figure($name, $title, Unit::$unit, &[$($field),*], Read::$kind($read), $about)
                $(.$set($($value),*))*
        ),*]
    };
}

/// The evidence of all caches together.
fn evidence(phase: &PhaseResult) -> Option<&EvidenceResult> {
    Some(&phase.residency.as_ref()?.total)
}

/// Every figure, in the order of columns: those of earlier versions first, in their order.
pub const FIGURES: &[Figure] = figures! {
    "items", "Items", Count, ["items"], Count(|p| Some(p.items)),
        "operations done without error",
        in_table(), put(OpenMetrics, Named("rbench_operations")), put(Compare, In(A_NOTE));
    "bytes", "Moved", Bytes, ["bytes"], Count(|p| Some(p.bytes)),
        "bytes that the operations moved",
        put(OpenMetrics, Named("rbench_moved_bytes")), put(Compare, In(UNLIKE));
    "errors", "Errors", Count, ["errors"], Count(|p| Some(p.error_count())),
        "failed operations; in no other figure",
        in_table(), put(OpenMetrics, In("`rbench_errors`, by error")), better(Lower, In(A_NOTE));
    "unissued", "Never started", Count, ["unissued"], Count(|p| Some(p.unissued)),
        "open loop: operations that were due and never started; in no response time",
        better(Lower, In(A_NOTE));
    "missed", "Missed", Count, ["missed"], Count(|p| Some(p.missed)),
        "mix: operations that found no file to work on; in no latency",
        better(Lower, Not(COUNTED));
    "elapsed_s", "Elapsed", Seconds, ["elapsed_s"], Number(|p| Some(p.elapsed_s)),
        "the time in which the operations were measured, up to the end of the last one",
        put(Compare, Not(FROM_RATE));
    // Single operations have a time and no rate.
    "rate", "Items/s", PerSecond, ["rate"], Number(|p| (!p.one_each).then_some(p.rate)),
        "operations without error / elapsed time, up to the end of the last worker",
        in_table(), put(OpenMetrics, Named("rbench_operations_per_second")), better(Higher, Named("rate"));
    "bandwidth", "Bandwidth", BytesPerSecond, ["bandwidth"], Number(|p| p.bandwidth),
        "bytes moved / elapsed time",
        in_table(), put(OpenMetrics, Named("rbench_bytes_per_second")), better(Higher, Named("bandwidth"));
    "first_done_rate", "First done", PerSecond, ["first_done.rate"], Number(|p| Some(p.first_done.as_ref()?.rate)),
        "operations per second up to the end of the first worker, while all were busy",
        in_table(), put(OpenMetrics, Named("rbench_first_done_per_second")), better(Higher, Named("first-done"));
    "start_skew_s", "Start skew", Seconds, ["start_skew_s"], Largest(|p| Some(p.start_skew_s)),
        "spread of the actual starts of the workers that had work; of a single one, its distance from the common start",
        put(Text, In("BY RANK")), better(Lower, Not(FEW));
    "busy", "In calls", Share, ["busy"], Number(|p| p.busy),
        "share of the workers' time that was spent in calls; the rest is rbench and the machine",
        better(Higher, Not(EXPLAINS));
    "cache", "Cache", Word, ["cache", "residency.verdict"], Word(caches::verdict),
        "who answered: warm (the host's memory), cold, mixed, unknown",
        in_table(), put(Compare, In(UNLIKE));
    "client_cpu_s", "Client CPU", Seconds, ["client.cpu_s", "client.hosts.cpu_s"], Number(|p| p.client.as_ref()?.cpu_s),
        "CPU time of the file system's client on all hosts while the phase ran",
        put(Text, In("CLIENT")), put(OpenMetrics, In("`rbench_client_cpu_seconds`, by host")),
        better(Lower, Not("client-cpu, which is compared, has it per operation"));
    "client_cpu_us_per_operation", "Client CPU/op", Micros, ["client.cpu_us_per_operation"],
        Number(|p| p.client.as_ref()?.cpu_us_per_operation),
        "CPU time of the file system's client for an operation",
        put(Text, In("CLIENT")), put(OpenMetrics, Named("rbench_client_cpu_seconds_per_operation")),
        better(Lower, Named("client-cpu"));
    "service", "Service time", Nanos, ["latency.service"], Times(|p| Some(&p.latency.service)),
        "from the actual start of an operation to its end",
        in_table(), put(OpenMetrics, Named(LATENCY)), better(Lower, Named(""));
    "response", "Response time", Nanos, ["latency.response"], Times(|p| p.latency.response.as_ref()),
        "open loop: from the intended start of an operation to its end",
        put(Text, In(TABLE)), put(Page, In(TABLE)), put(OpenMetrics, Named(LATENCY)),
        better(Lower, Named("response-"));
    "first_done_s", "First done after", Seconds, ["first_done.elapsed_s"],
        Number(|p| Some(p.first_done.as_ref()?.elapsed.as_secs_f64())),
        "when the first worker finished, from the start of measuring";
    "first_done_items", "First done items", Count, ["first_done.items"],
        Count(|p| Some(p.first_done.as_ref()?.items)),
        "operations of all workers done by then";
    "start_error_s", "Start error", Seconds, ["start_error_s"], Largest(|p| p.start_error_s),
        "how far a host's clock may have missed the common start",
        better(Lower, Not(FEW));
    "lateness_mean_ns", "Late (mean)", Nanos, ["latency.lateness.mean_ns"],
        Number(|p| Some(p.latency.lateness.as_ref()?.mean_ns as f64)),
        "open loop: from the intended start of an operation to its actual one, the mean",
        put(Text, In(TABLE)), put(Page, In(TABLE)), better(Lower, Named("lateness"));
    "lateness_max_ns", "Late (most)", Nanos, ["latency.lateness.max_ns"],
        Largest(|p| Some(p.latency.lateness.as_ref()?.max_ns as f64)),
        "open loop: from the intended start of an operation to its actual one, the longest",
        put(Text, In(TABLE)), put(Page, In(TABLE)), better(Lower, Not(FEW));
    "unchecked", "Unchecked", Count, ["unchecked"], Count(|p| Some(p.unchecked)),
        "verification: blocks that were not read back because their write had failed",
        better(Lower, Not(COUNTED));
    "interrupted", "Interrupted", Count, ["interrupted"], Count(|p| Some(p.interrupted)),
        "interrupted calls (EINTR) that were retried",
        better(Lower, Not(COUNTED));
    "continued", "Continued", Count, ["continued"], Count(|p| Some(p.continued)),
        "short reads and writes that further calls completed",
        better(Lower, Not(COUNTED));
    "workers", "Workers", Count, ["workers.count"], Largest(|p| Some(p.workers.as_ref()?.workers as f64)),
        "workers that had such operations";
    "workers_active_s", "Active", Seconds, ["workers.active_s"], Number(|p| Some(p.workers.as_ref()?.active.as_secs_f64())),
        "time of all workers from their start to their end, without waits";
    "workers_waited_s", "Waited", Seconds, ["workers.waited_s"], Number(|p| Some(p.workers.as_ref()?.waited.as_secs_f64())),
        "time of all workers spent waiting: for intended starts, think time, start delays, untimed calls";
    "workers_in_calls_s", "In flight", Seconds, ["workers.in_calls_s"],
        Number(|p| Some(p.workers.as_ref()?.in_calls.as_secs_f64())),
        "time of all workers with a timed call in flight";
    "workers_full_s", "At full depth", Seconds, ["workers.full_s"], Number(|p| Some(p.workers.as_ref()?.full.as_secs_f64())),
        "service times of all operations / depth: the time of all workers at full depth";
    "stonewall_deadline_s", "Stonewall", Seconds, ["stonewall.deadline_s"],
        Number(|p| Some(p.stonewall.as_ref()?.deadline.as_secs_f64())),
        "the stonewall's deadline, from the common start",
        put(Text, In("STONEWALL"));
    "stonewall_stopped_s", "Stopped", Seconds, ["stonewall.stopped_s"],
        Number(|p| Some(p.stonewall.as_ref()?.stopped.as_secs_f64())),
        "when the last worker had ended what it did at the stonewall";
    "stonewall_items", "By the stonewall", Count, ["stonewall.items"],
        Count(|p| Some(p.stonewall.as_ref()?.items)),
        "operations that the workers together had started by the stonewall",
        put(Text, In("STONEWALL"));
    "stonewall_least", "Least of a worker", Count, ["stonewall.least"],
        Count(|p| Some(p.stonewall.as_ref()?.least)),
        "operations that the worker with the fewest had started by the stonewall",
        put(Text, In("STONEWALL"));
    "stonewall_most", "Most of a worker", Count, ["stonewall.most"],
        Count(|p| Some(p.stonewall.as_ref()?.most)),
        "operations that the worker with the most had started by the stonewall",
        put(Text, In("STONEWALL"));
    "stonewalled", "By the stonewall", Nanos, ["latency.stonewalled"], Times(|p| p.latency.stonewalled.as_ref()),
        "service times of the operations that had started by the stonewall",
        put(Text, In(TABLE)), put(Page, In(TABLE)), put(OpenMetrics, Named(LATENCY)),
        better(Lower, Not("the service times, which are compared, include them"));
    "access_open_s", "Open", Seconds, ["access.open_s"], Number(|p| Some(p.access.as_ref()?.open_s)),
        "ior: from the first open to the end of the last one",
        better(Lower, Not(IN_ACCESS));
    "access_transfer_s", "Transfer", Seconds, ["access.transfer_s"],
        Number(|p| Some(p.access.as_ref()?.transfer_s)),
        "ior: from the first transfer to the end of the last one, or of the last fsync",
        better(Lower, Not(IN_ACCESS));
    "access_close_s", "Close", Seconds, ["access.close_s"], Number(|p| Some(p.access.as_ref()?.close_s)),
        "ior: from the first close to the end of the last one",
        better(Lower, Not(IN_ACCESS));
    "access_total_s", "Open to close", Seconds, ["access.total_s"], Number(|p| Some(p.access.as_ref()?.total_s)),
        "ior: from the first open to the end of the last close",
        better(Lower, Not(IN_ACCESS));
    "access_bandwidth", "Access bandwidth", BytesPerSecond, ["access.bandwidth"],
        Number(|p| Some(p.access.as_ref()?.bandwidth)),
        "ior: bytes moved / the time from the first open to the end of the last close",
        put(OpenMetrics, Named("rbench_access_bytes_per_second")), better(Higher, Named("access-bandwidth"));
    "rewritten_passes", "Passes", Ratio, ["rewritten.passes"], Number(|p| Some(p.rewritten.as_ref()?.passes)),
        "how often workers with a time limit wrote all of their data";
    "given_up_workers", "Given up", Count, ["given_up.workers"],
        Count(|p| Some(p.given_up.as_ref()?.workers)),
        "workers that were given up (--op-timeout)",
        better(Lower, Not(FEW));
    "given_up_share", "Lost share", Share, ["given_up.share"], Number(|p| Some(p.given_up.as_ref()?.share)),
        "share of the rate that was lost with them",
        better(Lower, Not(FEW));
    "longest_gap_s", "Longest gap", Seconds, ["longest_gap.length_s"],
        Largest(|p| Some(p.longest_gap.as_ref()?.length_s)),
        "the longest time in which a rank finished no operation",
        put(OpenMetrics, Named("rbench_rank_gap_seconds")), better(Lower, Not(FEW));
    "empty_share", "Empty slices", Share, ["empty_share"], Number(|p| p.empty_share),
        "share of the time, in quarters of a slice, in which no worker finished anything",
        better(Lower, Not(EXPLAINS));
    "measured_from_s", "Measured from", Seconds, ["measured_from_s"], Number(|p| Some(p.measured_from_s)),
        "when measuring started, from the common start";
    "set_aside_s", "Set aside", Seconds, ["set_aside_s"], Number(|p| Some(p.set_aside_s)),
        "time in which only other operations ran, such as reading back; not part of the elapsed time";
    "requests_per_operation", "Requests/op", Ratio, ["residency.total.requests.per_operation"],
        Number(|p| Some(evidence(p)?.requests.as_ref()?.per_operation)),
        "requests to the mount that no memory answered, for an operation",
        put(Text, In("CACHES")), put(Markdown, In("Cache")), better(Lower, Named("requests"));
    "own_share", "Own items", Share, ["residency.total.own.share"],
        Number(|p| Some(evidence(p)?.own.as_ref()?.share)),
        "share of the items that hosts with the same cache had created or used",
        put(Text, In("CACHES"));
    "resident_before_share", "In memory before", Share, ["residency.total.resident_before.share"],
        Number(|p| Some(evidence(p)?.resident_before.as_ref()?.share)),
        "share of the data that the page cache held before the phase",
        put(Text, In("CACHES")), put(Markdown, In("Cache"));
    "resident_after_share", "In memory after", Share, ["residency.total.resident_after.share"],
        Number(|p| Some(evidence(p)?.resident_after.as_ref()?.share)),
        "share of the data that the page cache held after the phase";
    "fetched_per_byte", "Fetched/byte", Ratio, ["residency.total.fetched.per_byte"],
        Number(|p| Some(evidence(p)?.fetched.as_ref()?.per_byte)),
        "bytes that block devices delivered, for a byte returned",
        put(Text, In("CACHES"));
    "steady_after_s", "Steady after", Seconds, ["steady.attained_at_s"],
        Number(|p| p.steady.as_ref()?.attained_at_s),
        "when the rate had become steady, from the common start",
        put(Text, In("STEADY")), put(Markdown, In("Steady state"));
    "steady_rate", "Steady items/s", PerSecond, ["steady.iops_mean"], Number(|p| p.steady.as_ref()?.iops_mean),
        "operations per second of all workers in the steady window, the mean",
        put(Text, In("STEADY")), put(Markdown, In("Steady state")), put(OpenMetrics, Named("rbench_steady_operations_per_second")),
        better(Higher, Named("steady-rate"));
    "steady_bandwidth", "Steady bandwidth", BytesPerSecond, ["steady.bandwidth_mean"],
        Number(|p| p.steady.as_ref()?.bandwidth_mean),
        "bytes per second of all workers in the steady window, the mean",
        put(Text, In("STEADY")), put(Markdown, In("Steady state")), put(OpenMetrics, Named("rbench_steady_bytes_per_second")),
        better(Higher, Named("steady-bandwidth"));
    "found_files", "Files", Count, ["found.files"], Count(|p| Some(p.found.as_ref()?.files)),
        "find: entries visited that are not directories",
        put(Text, In("FOUND"));
    "found_directories", "Directories", Count, ["found.directories"],
        Count(|p| Some(p.found.as_ref()?.directories)),
        "find: directories visited, the first one included",
        put(Text, In("FOUND"));
    "found_matches", "Matches", Count, ["found.matches"], Count(|p| Some(p.found.as_ref()?.matches)),
        "find: entries for which all tests hold",
        put(Text, In("FOUND"));
    "found_files_per_s", "Files/s", PerSecond, ["found.files_per_s"],
        Number(|p| Some(p.found.as_ref()?.files_per_s)),
        "find: files visited / elapsed time",
        put(Text, In("FOUND")), put(OpenMetrics, Named("rbench_found_files_per_second")),
        better(Higher, Named("files-rate"));
    "replay_wanted", "In the trace", Count, ["replayed.wanted"], Count(|p| Some(p.replayed.as_ref()?.wanted)),
        "replay: operations of this kind in the traces",
        put(Text, In(BESIDE)), put(OpenMetrics, Not(OF_TRACE));
    "replay_differ", "Differ", Count,
        ["replayed.differ.failed", "replayed.differ.worked", "replayed.differ.error", "replayed.differ.length"],
        Count(|p| Some(p.replayed.as_ref()?.differ.total())),
        "replay: results that differ from the recorded ones",
        put(Text, In(BESIDE)), better(Lower, Not(COUNTED));
    "replay_unopened", "Not open", Count, ["replayed.unopened"],
        Count(|p| Some(p.replayed.as_ref()?.unopened)),
        "replay: operations that were not done because their file was not open",
        put(Text, In(BESIDE)), better(Lower, Not(COUNTED));
    "recorded", "Recorded", Nanos, ["replayed.recorded"], Times(|p| p.replayed.as_ref()?.recorded.as_ref()),
        "replay: times of the operations when they were recorded",
        put(Text, In(BESIDE)), put(Page, In("the table Replay")), put(OpenMetrics, Not(OF_TRACE)),
        put(Compare, Not(OF_TRACE));
    "concurrency", "Concurrency", Ratio, ["latency.service", "elapsed_s"],
        Number(|p| Some(&p.latency.service).filter(|_| p.elapsed_s > 0.0).map(|hist| {
            hist.mean_ns * hist.count as f64 / 1e9 / p.elapsed_s
        })),
        "operations in flight on average: the sum of service times / elapsed time (Little's law)";
    "active_rate", "Active rate", PerSecond, ["workers.active_s"],
        Number(|p| Some(p).filter(|p| !p.one_each).and_then(active_rate)),
        "operations per second of the workers' own time, without untimed opening and closing; ops: per second",
        put(Text, In(OPS_TABLE)), put(OpenMetrics, Named("rbench_active_operations_per_second")),
        better(Higher, Not(FROM_MEAN));
};

macro_rules! quantities {
    ($($name:literal, $field:ident, $title:literal, $measure:expr, $least:literal, $about:literal;)*) => {
        &[$(Quantity {
            name: $name,
            column: stringify!($field),
            title: $title,
            about: $about,
            measure: $measure,
            least: $least,
            field: |hist| hist.$field as f64,
        }),*]
    };
}

/// The quantities of a distribution, in the order of columns.
pub const QUANTITIES: &[Quantity] = quantities! {
    "count", count, "Count", Measure::Count, 0, "number of times";
    "min", min_ns, "Min", Measure::Quantile(0.0), 1, "the shortest";
    "mean", mean_ns, "Mean", Measure::Mean, 1, "arithmetic mean";
    "stddev", stddev_ns, "Std dev", Measure::Deviation, 2, "standard deviation";
    "p50", p50_ns, "p50", Measure::Quantile(0.5), 2, "the median: half of the operations took at most this long";
    "p90", p90_ns, "p90", Measure::Quantile(0.9), 10, "90 % of the operations took at most this long";
    "p95", p95_ns, "p95", Measure::Quantile(0.95), 20, "95 % of the operations took at most this long";
    "p99", p99_ns, "p99", Measure::Quantile(0.99), 100, "99 % of the operations took at most this long";
    "p99.9", p999_ns, "p99.9", Measure::Quantile(0.999), 1000, "99.9 % of the operations took at most this long";
    "p99.99", p9999_ns, "p99.99", Measure::Quantile(0.9999), 10_000, "99.99 % of the operations took at most this long";
    "max", max_ns, "Max", Measure::Quantile(1.0), 1, "the longest";
};

/// Other values of a phase in the result file, by the beginnings of their paths (separated by
/// blanks), and the reason why they are not figures.
pub const NOT_FIGURES: &[(&str, &str)] = &[
    ("iteration name label", "identifies the row in every output"),
    ("op", "identifies the row; a column of `csv`"),
    (
        "complete",
        "says how to read the row: marked in reports, a column of `csv`",
    ),
    ("unsynced", "says how to read the row: marked in reports"),
    ("one_each", "says how to read the row: it has no rate"),
    (
        "error_examples",
        "sentences: in the report, the page and their warnings",
    ),
    ("first_failed", "a name: in a warning"),
    ("first_done.host", "a name: in BY RANK"),
    (
        "latency.lateness.operations",
        "the number of operations with an intended start",
    ),
    (
        "rewritten.after_s rewritten.once rewritten.done",
        "part of rewritten_passes; in a warning",
    ),
    (
        "given_up.of given_up.at_s given_up.lost",
        "part of given_up_share; in a warning",
    ),
    (
        "hosts",
        "figures of a host: BY HOST, `csv-hosts`, `rbench_host_…`, the page's Hosts and ranks",
    ),
    ("host_crowd", "the spread over hosts: in the result file"),
    (
        "ranks",
        "figures of a rank: BY RANK, `csv-ranks`, the page's Hosts and ranks",
    ),
    ("crowd", "the spread over ranks: in the result file"),
    (
        "timeline timeline_step_s",
        "figures of a slice: `csv-intervals`, the page's charts",
    ),
    (
        "marks",
        "figures of a mark: MARKS, `csv-marks`, the page's Marks",
    ),
    (
        "longest_gap.from_s longest_gap.rank longest_gap.host",
        "where and when longest_gap_s was: in the result file",
    ),
    ("residency", "evidence for cache: CACHES, the result file"),
    ("client.watch", "says what client_cpu_s is about"),
    ("client.operations", "part of client_cpu_us_per_operation"),
    (
        "client.hosts",
        "figures of a host: CLIENT, `csv-hosts`, `rbench_client_cpu_seconds`",
    ),
    (
        "steady",
        "the criterion and its window: STEADY, the result file",
    ),
];
