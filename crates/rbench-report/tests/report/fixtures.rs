//! Generated runs, identical at every call: nothing is measured, and every number follows from the
//! arguments.

use rbench_core::failure::{Failure, FailureKind};
use rbench_core::outcome::{Cache, CommonStart, FirstDone, HostOutcome, PhaseOutcome, RankOutcome};
use rbench_core::timeline::{INTERVAL, TimelineRecorder};
use rbench_core::{Latency, Nanos, OpKind, Rank};
use rbench_report::schema::{
    Calibration, Forms, Host, HostClock, Run, SCHEMA, SettingResult, Space, Target, World,
};
use rbench_report::{PhaseResult, RunResult, View};
use serde_json::{Map, Value, json};

use crate::valid;

/// Parameters of a generated phase.
pub struct Made {
    /// Names of the hosts, each with `ranks` ranks.
    pub hosts: Vec<String>,
    /// Ranks of each host.
    pub ranks: u32,
    /// Items of each rank.
    pub items: u64,
    /// Bytes of each item.
    pub bytes: u64,
    /// Shortest service time, ns.
    pub base_ns: u64,
}

impl Made {
    /// One rank on one host.
    pub fn solo(items: u64, bytes: u64, base_ns: u64) -> Made {
        Made::on(1, 1, items, bytes, base_ns)
    }

    /// `ranks` ranks on each of the hosts client1, client2 …
    pub fn on(hosts: u32, ranks: u32, items: u64, bytes: u64, base_ns: u64) -> Made {
        Made {
            hosts: (1..=hosts).map(|i| format!("client{i}")).collect(),
            ranks,
            items,
            bytes,
            base_ns,
        }
    }

    /// Service time of item `i` of `rank`: spread over half the base, every hundredth 4 times as
    /// long, every thousandth 30 times. Later hosts are slightly slower.
    fn service_ns(&self, rank: u32, i: u64) -> u64 {
        let host = u64::from(rank / self.ranks);
        let spread = (i * 7919 + u64::from(rank) * 104_729) % 997;
        let usual = self.base_ns + self.base_ns * spread / 1994 + self.base_ns * host / 20;
        match i {
            i if i % 1000 == 999 => usual * 30,
            i if i % 100 == 99 => usual * 4,
            _ => usual,
        }
    }

    /// Generates the phase.
    pub fn phase(&self, name: &str, label: &str, op: OpKind) -> PhaseOutcome {
        let mut all = PhaseOutcome {
            complete: true,
            ..PhaseOutcome::empty(0, name, label, op)
        };
        for (h, host) in self.hosts.iter().enumerate() {
            self.add_host(&mut all, h as u32, host);
        }
        let first = all
            .ranks
            .iter()
            .map(|r| r.elapsed)
            .min()
            .unwrap_or_default();
        let items = all.timeline.done_by(first, all.elapsed);
        let host = self
            .hosts
            .first()
            .map_or_else(String::new, |h| h.to_string());
        all.first_done = Some(FirstDone::new(first, items, host));
        if all.ranks.len() > 1 {
            all.start_skew = Nanos(180_000 + self.base_ns % 70_000);
            all.start = Some(CommonStart {
                at: Nanos(7_000_000_000),
                error: Nanos(if all.hosts.len() > 1 { 4_900 } else { 0 }),
            });
        }
        all
    }

    fn add_host(&self, all: &mut PhaseOutcome, h: u32, host: &str) {
        let mut service = Latency::new();
        let mut elapsed = Nanos(0);
        for rank in h * self.ranks..(h + 1) * self.ranks {
            let of_rank = self.add_rank(all, rank, host);
            elapsed = elapsed.max(of_rank.elapsed);
            let mut own = Latency::new();
            (0..self.items).for_each(|i| own.record(Nanos(self.service_ns(rank, i))));
            service.merge(&own);
            all.ranks.push(RankOutcome {
                p50: own.quantile(0.5),
                p99: own.quantile(0.99),
                max: own.max(),
                ..of_rank
            });
        }
        let items = self.items * u64::from(self.ranks);
        all.items += items;
        all.bytes += items * self.bytes;
        all.elapsed = all.elapsed.max(elapsed);
        all.service.merge(&service);
        all.hosts.push(HostOutcome {
            host: host.to_owned(),
            items,
            bytes: items * self.bytes,
            errors: 0,
            elapsed,
            service,
            response: None,
            gap: None,
        });
    }

    /// Generates the consecutive operations of a rank.
    fn add_rank(&self, all: &mut PhaseOutcome, rank: u32, host: &str) -> RankOutcome {
        let mut line = TimelineRecorder::new(INTERVAL, false);
        let mut at = 0;
        for i in 0..self.items {
            let ns = self.service_ns(rank, i);
            at += ns + 900;
            line.done(Nanos(at), self.bytes, Nanos(ns), None);
        }
        all.timeline.merge(&line.finish());
        RankOutcome {
            rank: Rank(rank),
            host: host.to_owned(),
            items: self.items,
            errors: 0,
            elapsed: Nanos(at),
            p50: Nanos(0),
            p99: Nanos(0),
            max: Nanos(0),
            cpu: Nanos(at / 12),
        }
    }
}

/// Turns `count` items of `rank` into failures. Their latencies stay, since tests do not use them.
pub fn fail(phase: &mut PhaseOutcome, rank: u32, count: u64, failure: Failure) {
    let place = phase
        .ranks
        .iter()
        .position(|r| r.rank.0 == rank)
        .expect("the rank exists");
    let host = phase.ranks[place].host.clone();
    for _ in 0..count {
        phase.failures.add(Rank(rank), &host, failure.clone());
    }
    phase.ranks[place].errors += count;
    phase.ranks[place].items -= count;
    phase.items -= count;
    for part in phase.hosts.iter_mut().filter(|h| h.host == host) {
        part.errors += count;
        part.items -= count;
    }
}

/// ENOSPC on `path`.
pub fn no_space(op: OpKind, path: &str) -> Failure {
    Failure::new(op, path, FailureKind::Errno(28))
}

/// A finished run with these phases.
pub fn run(hosts: u32, ranks: u32, spec: Value, phases: Vec<PhaseOutcome>) -> RunResult {
    let Value::Object(spec) = spec else {
        panic!("the spec is a map");
    };
    let settings = spec.iter().map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let number = text.parse::<u64>().ok();
        let setting = SettingResult {
            value: number.map_or_else(|| Value::from(text.clone()), Value::from),
            unit: number.map(|_| "count".to_owned()),
            text,
        };
        (name.clone(), setting)
    });
    let settings = settings.collect();
    let mut result = RunResult {
        schema: SCHEMA.to_owned(),
        run: Run {
            id: "20250102-031415-5f2c".to_owned(),
            command: words("rbench meta --dir /mnt/jfs --out run.json"),
            version: "0.1.0".to_owned(),
            started: "2025-01-02T03:14:15Z".to_owned(),
            finished: Some("2025-01-02T03:15:02Z".to_owned()),
            program: None,
            utc_offset_s: 3600,
            seed: 42,
            labels: Default::default(),
        },
        world: world(hosts, ranks),
        target: Target {
            path: "/mnt/jfs".to_owned(),
            fs_type: Some("fuse.juicefs".to_owned()),
            mount_source: Some("JuiceFS:test".to_owned()),
            mount_point: Some("/mnt/jfs".to_owned()),
            mount_options: Some("rw,nosuid,nodev,relatime".to_owned()),
            embedded: false,
            shared: (hosts > 1).then_some(true),
            space: Some(Space {
                bytes_total: 16_750_372_454,
                bytes_free: 16_748_000_000,
                inodes_total: 4_089_447,
                inodes_free: 4_088_000,
            }),
            round_trip: Vec::new(),
            data_sizes: Vec::new(),
        },
        calibration: Calibration {
            clock_ns: 22.4,
            record_ns: 8.7,
            null_op_ns: 35.1,
            hosts: Vec::new(),
        },
        spec,
        client_counters: Vec::new(),
        marks: Vec::new(),
        dead_mounts: Vec::new(),
        replays: Vec::new(),
        repetition: None,
        settings,
        phases: phases.iter().map(PhaseResult::from).collect(),
        summary: Vec::new(),
        warnings: Vec::new(),
        complete: true,
        forms: Forms::default(),
    };
    rbench_report::finish(&mut result);
    valid::check(&rbench_report::json::render(&result));
    result
}

/// All details, in the width used without a terminal.
pub const DETAILS: View = View::USUAL.with_details(true);

/// A run without phases.
pub fn empty_run() -> RunResult {
    run(1, 1, Value::Object(Map::new()), Vec::new())
}

fn world(hosts: u32, ranks: u32) -> World {
    let host = |h: u32| Host {
        name: format!("client{}", h + 1),
        ranks: (h * ranks..(h + 1) * ranks).collect(),
        kernel: "Linux 6.1.0-28-amd64".to_owned(),
        cpus: 8,
        clock_offset_ns: -3_120 * i64::from(h),
        clock_error_ns: 2_450 * u64::from(h),
        clock: Some(HostClock {
            number: h,
            boot: format!("00000000-0000-4000-8000-00000000000{h}"),
            drift_ppm: None,
            drift_error_ppm: None,
        }),
        caches: vec![h],
        surroundings: None,
    };
    World {
        communicator: if hosts * ranks > 1 { "mpi" } else { "solo" }.to_owned(),
        ranks: hosts * ranks,
        threads_per_rank: 1,
        hosts: (0..hosts).map(host).collect(),
    }
}

/// The words of a command line.
pub fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// The spec of a metadata run.
pub fn meta_spec() -> Value {
    json!({
        "branch": 3, "depth": 1, "items": 100, "layout": "unique", "shift": 4,
        "random-order": false, "write": "0B", "iterations": 1,
    })
}

/// The thirteen phases of a metadata run.
pub fn meta_phases(hosts: u32, ranks: u32) -> Vec<PhaseOutcome> {
    let template = |items: u64, base_ns: u64| Made::on(hosts, ranks, items, 0, base_ns);
    let cold = |mut phase: PhaseOutcome| {
        phase.cache = Some(Cache::Cold);
        phase
    };
    vec![
        template(4, 2_900_000).phase("tree-create", "Tree creation", OpKind::Mkdir),
        template(400, 1_310_000).phase("dir-create", "Directory creation", OpKind::Mkdir),
        cold(template(400, 402_000).phase("dir-stat", "Directory stat", OpKind::Stat)),
        template(400, 1_720_000).phase("dir-rename", "Directory rename", OpKind::Rename),
        cold(template(4, 3_370_000).phase("dir-list", "Directory listing", OpKind::List)),
        template(400, 1_540_000).phase("dir-remove", "Directory removal", OpKind::Rmdir),
        template(400, 2_150_000).phase("file-create", "File creation", OpKind::Create),
        cold(template(400, 395_000).phase("file-stat", "File stat", OpKind::Stat)),
        cold(template(400, 811_000).phase("file-read", "File read", OpKind::ReadFile)),
        template(400, 1_690_000).phase("file-rename", "File rename", OpKind::Rename),
        template(400, 1_480_000).phase("file-remove", "File removal", OpKind::Unlink),
        template(4, 2_050_000).phase("tree-remove", "Tree removal", OpKind::Rmdir),
    ]
}
