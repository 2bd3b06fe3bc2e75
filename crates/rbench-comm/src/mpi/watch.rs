//! Messages about ranks that do not join at the start, and the time limit after which all ranks
//! exit.
//!
//! MPI may wait forever for a rank that was never started or that its network does not reach, and
//! its call blocks the main thread. So a thread of its own monitors the start.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rbench_core::Rank;
use rbench_core::plain::{plain, ranges};

use crate::arrival::Arrival;

/// Time for rank 0 to report the reason before other ranks exit: when the first process ends, the
/// launcher ends all.
pub(super) const LAST_WORD: Duration = Duration::from_secs(3);

/// The messages that a rank waits for, for its report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Starts MPI.
    Starting,
    /// Rank 0: waits for a first message of each other rank.
    Calling {
        /// Number of ranks.
        size: u32,
        /// Hosts of the ranks that have sent one.
        heard: BTreeMap<u32, String>,
    },
    /// Another rank: waits for the first answers.
    Answering {
        /// This rank.
        me: Rank,
        /// Ranks that have not answered.
        missing: Vec<u32>,
    },
    /// Rank 0: has heard all ranks, and waits for the first collective operations.
    Joining {
        /// Number of ranks.
        size: u32,
    },
    /// Another rank: waits for the first collective operations, which rank 0 reports.
    Following,
}

/// Monitors the start of the ranks until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// `None` once all ranks have joined.
    stage: Mutex<Option<Stage>>,
    changed: Condvar,
}

impl Watch {
    /// Starts to monitor. `speaks`: true if this rank reports. All ranks exit at the limit.
    pub(crate) fn begin(arrival: Arrival, speaks: bool) -> Watch {
        let shared = Arc::new(Shared {
            stage: Mutex::new(Some(Stage::Starting)),
            changed: Condvar::new(),
        });
        let watch = Watch(Arc::clone(&shared));
        // Without the thread the start is not monitored, but may well succeed.
        let _ = std::thread::Builder::new()
            .name("rbench-start".to_owned())
            .spawn(move || shared.look_on(&arrival, speaks));
        watch
    }

    /// Sets the stage that the rank is in.
    pub(crate) fn at(&self, stage: Stage) {
        *self.0.lock() = Some(stage);
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.0.lock() = None;
        self.0.changed.notify_all();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Stage>> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_on(&self, arrival: &Arrival, speaks: bool) {
        let notice = arrival
            .limit
            .map_or(arrival.notice, |limit| arrival.notice.min(limit));
        let Some(stage) = self.still_after(notice) else {
            return;
        };
        let say = |text: Option<String>| text.filter(|_| speaks).as_deref().map(arrival.say);
        if arrival.limit.is_none_or(|limit| limit > notice) {
            say(sentence(&stage, arrival, notice));
        }
        let Some(limit) = arrival.limit else { return };
        let Some(stage) = self.still_after(limit.saturating_sub(notice)) else {
            return;
        };
        say(last_sentence(&stage, arrival, limit));
        // The first process to exit ends all, and rank 0 knows most.
        let waits = matches!(stage, Stage::Answering { .. } | Stage::Following);
        if waits && self.still_after(LAST_WORD).is_none() {
            return;
        }
        (arrival.end)()
    }

    /// The rank's stage if the ranks have not joined after this time.
    fn still_after(&self, time: Duration) -> Option<Stage> {
        let together = |stage: &mut Option<Stage>| stage.is_some();
        let waited = self.changed.wait_timeout_while(self.lock(), time, together);
        let (stage, _) = waited.unwrap_or_else(PoisonError::into_inner);
        stage.clone()
    }
}

/// The message while the ranks may still join.
fn sentence(stage: &Stage, arrival: &Arrival, waited: Duration) -> Option<String> {
    let end = match arrival.limit {
        Some(limit) => format!(
            "all ranks exit after {} s (--start-timeout)",
            limit.as_secs()
        ),
        None => "waiting on".to_owned(),
    };
    let facts = facts(stage, &arrival.host)?;
    let (waited, advice) = (waited.as_secs(), advice(stage));
    Some(format!(
        "{waited} s after the start: {facts}; {end}\n{advice}"
    ))
}

/// The last message before the exit.
fn last_sentence(stage: &Stage, arrival: &Arrival, limit: Duration) -> Option<String> {
    let facts = facts(stage, &arrival.host)?;
    let (limit, advice) = (limit.as_secs(), advice(stage));
    Some(format!(
        "not all ranks joined within {limit} s (--start-timeout): {facts}\n{advice}"
    ))
}

/// Facts for the message; `None` if another rank reports.
fn facts(stage: &Stage, host: &str) -> Option<String> {
    let host = plain(host);
    Some(match stage {
        Stage::Starting => format!("MPI_Init on host {host} is still waiting for other ranks"),
        Stage::Calling { size, heard } => {
            let missing: Vec<u32> = (1..*size)
                .filter(|rank| !heard.contains_key(rank))
                .collect();
            let mut hosts: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
            hosts.entry(&host).or_default().push(0);
            for (rank, host) in heard {
                hosts.entry(host).or_default().push(*rank);
            }
            let heard_from = hosts
                .iter()
                .map(|(host, ranks)| format!("{} ({})", plain(host), ranks_text(ranks)));
            format!(
                "rank 0 has not heard from {} of {size} ranks: {}; it has heard from {}",
                missing.len(),
                ranges(&missing),
                heard_from.collect::<Vec<_>>().join(", ")
            )
        }
        Stage::Answering { me, missing } => format!(
            "rank {me} on host {host} has received no message from {}",
            ranks_text(missing)
        ),
        Stage::Joining { size } => format!(
            "rank 0 has heard from all {size} ranks, but their first collective operation \
             does not finish: the hosts may reach this one but not each other"
        ),
        Stage::Following => return None,
    })
}

fn ranks_text(ranks: &[u32]) -> String {
    match ranks {
        [one] => format!("rank {one}"),
        several => format!("ranks {}", ranges(several)),
    }
}

fn advice(stage: &Stage) -> &'static str {
    match stage {
        Stage::Starting => {
            "Check that all ranks were started: every host must accept logins without a prompt \
             (ssh HOST true: host keys) and have this program and the same MPI library."
        }
        _ => {
            "MPI may use a network that the hosts do not share: choose the right one, in Open MPI with \
             --mca btl_tcp_if_include 192.168.1.0/24, in MPICH with -iface. Check for a firewall between \
             the hosts, and that all have the same rbench and MPI library (rbench version)."
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Instant;

    use super::*;

    fn arrival(notice_ms: u64, limit_ms: Option<u64>) -> Arrival {
        Arrival {
            host: "a".to_owned(),
            program: "rbench".to_owned(),
            notice: Duration::from_millis(notice_ms),
            limit: limit_ms.map(Duration::from_millis),
            say: |_| {},
            end: || std::process::exit(1),
        }
    }

    fn wait_until(happened: impl Fn() -> bool) {
        let started = Instant::now();
        while !happened() {
            assert!(started.elapsed() < Duration::from_secs(300), "in vain");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn rank_0_names_who_is_missing_and_where_it_has_heard_of_the_others() {
        let heard = [(1, "a"), (4, "b"), (5, "b"), (7, "\u{1b}c")];
        let stage = Stage::Calling {
            size: 9,
            heard: heard.map(|(rank, host)| (rank, host.to_owned())).into(),
        };
        let text = sentence(
            &stage,
            &arrival(20_000, Some(120_000)),
            Duration::from_secs(20),
        )
        .expect("rank 0 tells");
        let start = "20 s after the start: rank 0 has not heard from 4 of 9 ranks: 2-3,6,8; it has heard from \\u{1b}c (rank 7), a (ranks 0-1), b (ranks 4-5); all ranks exit after 120 s (--start-timeout)\nMPI may use";
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains("btl_tcp_if_include"), "{text}");
    }

    #[test]
    fn others_name_themselves_and_whom_they_wait_for() {
        let stage = Stage::Answering {
            me: Rank(4),
            missing: vec![0, 3],
        };
        let text = last_sentence(&stage, &arrival(1, Some(1)), Duration::from_secs(120))
            .expect("it tells");
        let start = "not all ranks joined within 120 s (--start-timeout): rank 4 on host a has received no message from ranks 0,3\n";
        assert!(text.starts_with(start), "{text}");
        let starting = facts(&Stage::Starting, "b").expect("it tells");
        assert_eq!(
            starting,
            "MPI_Init on host b is still waiting for other ranks"
        );
        assert_eq!(facts(&Stage::Following, "b"), None);
        assert!(advice(&Stage::Starting).contains("host keys"));
    }

    #[test]
    fn it_is_said_while_the_ranks_are_apart_and_never_after() {
        static SAID: AtomicU32 = AtomicU32::new(0);
        let mut arrival = arrival(20, None);
        arrival.say = |_| {
            SAID.fetch_add(1, Ordering::Relaxed);
        };
        let watch = Watch::begin(arrival.clone(), true);
        wait_until(|| SAID.load(Ordering::Relaxed) > 0);
        drop(watch);
        arrival.notice = Duration::from_secs(3600);
        let shared = {
            let watch = Watch::begin(arrival, true);
            watch.at(Stage::Joining { size: 2 });
            Arc::clone(&watch.0)
        };
        // The monitoring thread has ended without a message.
        wait_until(|| Arc::strong_count(&shared) == 1);
        assert_eq!(SAID.load(Ordering::Relaxed), 1);
    }
}
