//! Builds the result: all facts about a run except its phases.

use std::collections::BTreeSet;
use std::iter::repeat;
use std::path::Path;

use rbench_comm::Clocks;
use rbench_core::Rank;
use rbench_exec::Calibration;
use rbench_plan::meta::PHASES;
use rbench_plan::{Setting, SettingValue, Work};
use rbench_report::schema::{self, RunResult, SCHEMA, Warning};
use rbench_sys::surroundings::without_credentials;
use rbench_sys::{MountInfo, Space, mountinfo};
use serde_json::Value;

use crate::front::Scope;
use crate::hosts::Hosts;
use crate::launch::Launch;
use crate::version;

/// All facts about a run except its phases.
pub struct Frame<'f> {
    /// The plan and the launch.
    pub scope: Scope<'f>,
    /// `--label`
    pub labels: &'f [(String, String)],
    /// `solo`, `mpi`
    pub communicator: &'f str,
    /// The hosts.
    pub hosts: &'f Hosts,
    /// The cache number of each rank.
    pub cache_of: &'f [u32],
    /// Overhead of the tool on each host, at rank 0.
    pub calibration: Vec<Calibration>,
    /// Parent of the run's directory.
    pub parent: &'f Path,
    /// The mount and the space there.
    pub standing: (Option<MountInfo>, Option<Space>),
    /// Duration of a request, by host.
    pub round_trip: Vec<schema::RoundTrip>,
    /// The most data that the plan reads, and memory, by host.
    pub data_sizes: Vec<schema::DataSize>,
    /// One per host.
    pub surroundings: &'f [Option<schema::Surroundings>],
}

/// The mount at `parent`, or at the nearest existing directory above it, and its space: what is
/// unknown is `None`, and the run goes on.
pub fn standing(parent: &Path) -> (Option<MountInfo>, Option<Space>) {
    let existing = parent.ancestors().find(|dir| dir.exists());
    let existing = existing.unwrap_or(parent);
    (
        mountinfo::of(existing).ok(),
        rbench_sys::space(existing).ok(),
    )
}

/// Identity and start time of the launch.
pub fn run(launch: &Launch, seed: u64, labels: &[(String, String)]) -> schema::Run {
    let words = launch.argv.iter();
    schema::Run {
        id: launch.run_id.clone(),
        command: words.map(|w| w.to_string_lossy().into_owned()).collect(),
        version: version::VERSION.to_owned(),
        program: Some(version::program()),
        started: launch.started.clone(),
        finished: None,
        utc_offset_s: jiff::Zoned::now().offset().seconds(),
        seed,
        labels: labels.iter().cloned().collect(),
    }
}

impl Frame<'_> {
    /// A result without phases. `shared`: true if all hosts see the same target.
    pub fn result(&self, shared: bool) -> RunResult {
        let several = self.hosts.topology.hosts.len() > 1;
        let plan = self.scope.plan;
        let notes = plan.notes.iter();
        let mut warnings: Vec<Warning> = notes
            .map(|note| Warning::new("plan", note.clone()))
            .collect();
        if several && !shared && !plan.embedded() {
            warnings.push(Warning::new(
                "target-not-shared",
                "the hosts do not see the same directory: each one tested a file system of its own"
                    .to_owned(),
            ));
        }
        let settings = plan.describe();
        RunResult {
            schema: SCHEMA.to_owned(),
            run: run(self.scope.launch, plan.seed, self.labels),
            world: self.world(),
            target: self.target(several.then_some(shared)),
            calibration: self.calibration(),
            spec: settings
                .iter()
                .map(|s| (s.name.to_owned(), Value::String(s.text.clone())))
                .collect(),
            settings: settings
                .iter()
                .map(|s| (s.name.to_owned(), setting(s)))
                .collect(),
            repetition: self.repetition(),
            warnings,
            ..RunResult::default()
        }
    }

    /// The rule of `--iterations auto`, if given.
    fn repetition(&self) -> Option<schema::RepetitionResult> {
        let until = self.scope.plan.until?;
        let of_the_tree = PHASES.iter().filter(|info| info.items.is_none());
        Some(schema::RepetitionResult {
            precision: until.precision,
            max_iterations: self.scope.plan.iterations,
            max_time_ns: until.time.map(|time| time.0),
            not_awaited: match &self.scope.plan.work {
                Work::Meta(_) => of_the_tree.map(|info| info.name.to_owned()).collect(),
                Work::Io(_) | Work::Jobs(_) | Work::Find(_) | Work::Mix(_) | Work::Replay(_) => {
                    Vec::new()
                }
            },
            enough: None,
            missed: Vec::new(),
        })
    }

    fn calibration(&self) -> schema::Calibration {
        // Rank 0 leads the first host.
        let first = self.calibration.first().copied().unwrap_or_default();
        let all = self.hosts.topology.hosts.iter().zip(&self.calibration);
        let several = self.hosts.topology.hosts.len() > 1;
        let hosts = all
            .filter(|_| several)
            .map(|(host, costs)| schema::HostCalibration {
                host: host.name.clone(),
                clock_ns: costs.clock_ns,
                record_ns: costs.record_ns,
                null_op_ns: costs.null_op_ns,
            });
        schema::Calibration {
            clock_ns: first.clock_ns,
            record_ns: first.record_ns,
            null_op_ns: first.null_op_ns,
            hosts: hosts.collect(),
        }
    }

    fn world(&self) -> schema::World {
        let hosts = self.hosts.topology.hosts.iter().zip(&self.hosts.facts);
        let around = self.surroundings.iter().cloned().chain(repeat(None));
        schema::World {
            communicator: self.communicator.to_owned(),
            ranks: self.scope.plan.ranks,
            threads_per_rank: self.scope.plan.threads,
            hosts: hosts
                .zip(around)
                .map(|((host, facts), surroundings)| schema::Host {
                    name: host.name.clone(),
                    ranks: host.ranks.iter().map(|r| r.0).collect(),
                    kernel: facts.kernel.clone(),
                    cpus: facts.cpus,
                    // The schema defines the offset as the host's clock minus rank 0's.
                    clock_offset_ns: -self.hosts.clocks.first_offset(host.leader()).offset_ns,
                    clock_error_ns: self.hosts.clocks.first_offset(host.leader()).error_ns,
                    clock: Some(schema::HostClock {
                        number: self.hosts.topology.clock_of[host.leader().0 as usize],
                        boot: host.kernel.clone(),
                        drift_ppm: None,
                        drift_error_ppm: None,
                    }),
                    caches: self.caches(&host.ranks),
                    surroundings,
                })
                .collect(),
        }
    }

    /// The caches that these ranks use, ascending.
    fn caches(&self, ranks: &[Rank]) -> Vec<u32> {
        let caches = ranks.iter().map(|rank| self.cache_of[rank.0 as usize]);
        caches.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    fn target(&self, shared: Option<bool>) -> schema::Target {
        let (mount, space) = &self.standing;
        let mount = mount.as_ref();
        let space = space.map(|space| schema::Space {
            bytes_total: space.bytes_total,
            bytes_free: space.bytes_free,
            inodes_total: space.inodes_total,
            inodes_free: space.inodes_free,
        });
        schema::Target {
            path: self.parent.display().to_string(),
            fs_type: mount.map(|m| m.fs_type.clone()),
            mount_source: mount.map(|m| without_credentials(&m.source)),
            mount_point: mount.map(|m| m.mount_point.display().to_string()),
            mount_options: mount.map(|m| m.options.join(",")),
            embedded: self.scope.plan.embedded(),
            shared,
            space,
            round_trip: self.round_trip.clone(),
            data_sizes: Vec::new(),
        }
    }
}

/// Adds the drift of the clocks to the hosts of a result.
pub fn note_drifts(result: &mut RunResult, clocks: &Clocks) {
    for host in &mut result.world.hosts {
        let leader = host.ranks.first().map(|rank| Rank(*rank));
        let drift = leader.and_then(|rank| clocks.drift(rank));
        if let (Some(clock), Some(drift)) = (&mut host.clock, drift) {
            clock.drift_ppm = Some(drift.ppm);
            clock.drift_error_ppm = Some(drift.error_ppm);
        }
    }
}

/// A setting as data.
fn setting(setting: &Setting) -> schema::SettingResult {
    let (value, unit) = match setting.value {
        SettingValue::Text => (Value::String(setting.text.clone()), None),
        SettingValue::On => (Value::Bool(true), None),
        SettingValue::Off => (Value::Bool(false), None),
        SettingValue::Count(count) => (count.into(), Some("count")),
        SettingValue::Size(size) => (size.0.into(), Some("bytes")),
        SettingValue::Time(time) => (time.0.into(), Some("ns")),
        SettingValue::PerSecond(rate) => (rate.into(), Some("1/s")),
        SettingValue::Percent(percent) => (percent.into(), Some("percent")),
    };
    schema::SettingResult {
        text: setting.text.clone(),
        value,
        unit: unit.map(str::to_owned),
    }
}
