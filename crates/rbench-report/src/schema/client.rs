//! Counters of a file system's client for its own work.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The work that is reported: the name of the counter of a JuiceFS client, and the
/// name for people, those of `juicefs bench`.
pub const CLIENT_WORK: [(&str, &str); 7] = [
    ("fuse_ops_durations_histogram_seconds", "FUSE operation"),
    ("transaction_durations_histogram_seconds", "Update meta"),
    (
        "object_request_durations_histogram_seconds_PUT",
        "Put object",
    ),
    (
        "object_request_durations_histogram_seconds_GET",
        "Get object",
    ),
    (
        "object_request_durations_histogram_seconds_DELETE",
        "Delete object",
    ),
    ("blockcache_write_hist_seconds", "Write into cache"),
    ("blockcache_read_hist_seconds", "Read from cache"),
];

/// The counters whose last word is a label: it is absent until the first such
/// request.
const LABELLED: &str = "object_request_durations_histogram_seconds_";

/// Work of the client of one cache from before the run's first phase until its files were removed,
/// for any process.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientCounters {
    /// The host of the ranks that go through it.
    pub host: String,
    /// Duration by the client's clock, s; `None` if it does not report it.
    pub uptime_s: Option<f64>,
    /// Processor time that the client used, s; `None` if it does not tell.
    pub cpu_s: Option<f64>,
    /// Memory of the client at the end, bytes; `None` if it does not tell.
    pub memory_bytes: Option<u64>,
    /// Each kind of work that it counts.
    pub work: Vec<ClientWork>,
}

/// One kind of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientWork {
    /// The counter, a name of [`CLIENT_WORK`].
    pub name: String,
    /// Number of times that it was done.
    pub count: u64,
    /// Total duration, s.
    pub seconds: f64,
}

impl ClientCounters {
    /// The difference of two readings, by names without `juicefs_`; `None` if a
    /// counter went back, as that of a client that was started again.
    pub fn between(
        host: &str,
        before: &BTreeMap<String, f64>,
        after: &BTreeMap<String, f64>,
    ) -> Option<ClientCounters> {
        let at = |reading: &BTreeMap<String, f64>, name: &str| reading.get(name).copied();
        let change = |name: &str| Some(at(after, name)? - at(before, name).unwrap_or(0.0));
        let mut work = Vec::new();
        for (name, _) in CLIENT_WORK {
            let count = change(&format!("{name}_total"));
            let seconds = change(&format!("{name}_sum"));
            let labelled = name.starts_with(LABELLED);
            let family = || after.keys().any(|key| key.starts_with(LABELLED));
            let (count, seconds) = match (count, seconds) {
                (Some(count), Some(seconds)) => (count, seconds),
                _ if labelled && family() => (0.0, 0.0),
                _ => continue,
            };
            if count < 0.0 {
                return None;
            }
            work.push(ClientWork {
                name: name.to_owned(),
                count: count as u64,
                seconds: seconds.max(0.0),
            });
        }
        let uptime_s = change("uptime");
        if uptime_s.is_some_and(|uptime| uptime < 0.0) || work.is_empty() {
            return None;
        }
        Some(ClientCounters {
            host: host.to_owned(),
            uptime_s,
            cpu_s: change("cpu_usage"),
            memory_bytes: at(after, "memory").map(|bytes| bytes.max(0.0) as u64),
            work,
        })
    }

    /// Number of times and total duration (s) of that work.
    pub fn work(&self, name: &str) -> Option<(u64, f64)> {
        let found = self.work.iter().find(|work| work.name == name)?;
        Some((found.count, found.seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), *value));
        owned.collect()
    }

    const FUSE: &str = "fuse_ops_durations_histogram_seconds";
    const PUT: &str = "object_request_durations_histogram_seconds_PUT";

    fn full(count: f64) -> BTreeMap<String, f64> {
        reading(&[
            (&format!("{FUSE}_total"), count),
            (&format!("{FUSE}_sum"), count / 4.0),
            (&format!("{PUT}_total"), 1.0),
            (&format!("{PUT}_sum"), 0.5),
            ("uptime", count),
            ("memory", 4096.0),
        ])
    }

    #[test]
    fn a_label_without_requests_is_zero_and_an_absent_counter_nothing() {
        let found = ClientCounters::between("a", &full(4.0), &full(12.0)).expect("a difference");
        assert_eq!(found.work(FUSE), Some((8, 2.0)));
        assert_eq!(found.work(PUT), Some((0, 0.0)));
        let deleted = "object_request_durations_histogram_seconds_DELETE";
        assert_eq!(found.work(deleted), Some((0, 0.0)));
        assert_eq!(found.work("transaction_durations_histogram_seconds"), None);
        assert_eq!(
            (found.uptime_s, found.memory_bytes),
            (Some(8.0), Some(4096))
        );
        assert_eq!(found.cpu_s, None);
    }

    #[test]
    fn a_client_that_was_started_again_has_no_difference() {
        assert_eq!(ClientCounters::between("a", &full(9.0), &full(3.0)), None);
        assert_eq!(
            ClientCounters::between("a", &full(1.0), &reading(&[])),
            None
        );
    }
}
