//! The machine in fio's outputs: block devices and idle processors.

use std::fmt::Write as _;

use rbench_core::machine::{CpuIdle, DiskUse, HostUse};

use super::tree::{Fields, Json};
use crate::summary::{Spread, spread};

/// The use of the hosts of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Machine {
    /// Names of the hosts, by position; hosts are only named if there are several.
    pub names: Vec<String>,
    /// Use of each host, by position.
    pub hosts: Vec<HostUse>,
    /// True to show each processor separately.
    pub each_cpu: bool,
}

impl Machine {
    /// The host's name and a colon, if there are several hosts.
    fn prefix(&self, host: &HostUse) -> String {
        let name = self.name(host);
        name.map_or(String::new(), |name| format!("{name}:"))
    }

    fn name(&self, host: &HostUse) -> Option<&str> {
        let name = self.names.get(host.host as usize);
        name.filter(|_| self.names.len() > 1).map(String::as_str)
    }

    fn disks(&self) -> impl Iterator<Item = Shown<'_>> {
        let all = self.hosts.iter();
        let all = all.flat_map(|host| host.disks.iter().map(move |disk| (host, disk)));
        all.map(|(host, disk)| Shown {
            name: format!("{}{}", self.prefix(host), disk.name),
            host: self.name(host),
            device: &disk.name,
            all: Figures::of(disk),
            parts: Figures::of_parts(disk, &host.disks),
        })
    }

    /// The devices in the normal output; empty without devices.
    pub fn disks_as_text(&self) -> String {
        let mut out = String::new();
        for shown in self.disks() {
            if out.is_empty() {
                out.push_str("\nDisk stats (read/write):\n");
            }
            let _ = write!(out, "  {}: {}", shown.name, shown.all.words(""));
            if let Some(parts) = &shown.parts {
                let _ = write!(out, ", {}", parts.words("aggr"));
            }
            out.push('\n');
        }
        out
    }

    /// The devices as fields, which the terse output appends to each line.
    pub fn disks_as_fields(&self) -> String {
        let mut out = String::new();
        for shown in self.disks() {
            let _ = write!(out, ";{}{}", shown.name, shown.all.fields());
            if let Some(parts) = &shown.parts {
                let _ = write!(out, ";slaves{}", parts.fields());
            }
        }
        out
    }

    /// `disk_util` of the JSON; `None` without devices. With several hosts each entry has its
    /// `hostname`.
    pub fn disks_as_json(&self) -> Option<Json> {
        let all: Vec<Json> = self.disks().map(|shown| shown.json()).collect();
        (!all.is_empty()).then_some(Json::List(all))
    }

    /// All processors of all hosts, with their displayed names.
    fn cpus(&self) -> Vec<(String, &CpuIdle)> {
        let all = self.hosts.iter();
        let all = all.flat_map(|host| host.cpus.iter().map(move |one| (host, one)));
        all.map(|(host, one)| (format!("{}cpu-{}", self.prefix(host), one.cpu), one))
            .collect()
    }

    /// Mean idle share; `None` if it was not requested.
    fn idle(&self) -> Option<f64> {
        let cpus = self.cpus();
        let sum: f64 = cpus.iter().map(|(_, one)| one.percent()).sum();
        (!cpus.is_empty()).then(|| sum / cpus.len() as f64)
    }

    /// Mean and deviation of the time of a piece of work, us.
    fn unit(&self) -> Spread {
        let all = self.hosts.iter().flat_map(|host| &host.unit_us);
        spread(&all.copied().collect::<Vec<f64>>())
    }

    /// The processors in the normal output; empty if not requested.
    pub fn idle_as_text(&self) -> String {
        let Some(system) = self.idle() else {
            return String::new();
        };
        let mut out = format!("\nCPU idleness:\n  system: {system:3.2}%\n");
        if self.each_cpu {
            let all = self.cpus();
            let cells = all.iter().map(|(_, one)| format!("{:3.2}%", one.percent()));
            let _ = writeln!(out, "  percpu: {}", cells.collect::<Vec<_>>().join(", "));
        }
        out.push_str(&unit_line(self.unit()));
        out
    }

    /// `cpu_idleness` of the JSON; `None` if not requested.
    pub fn idle_as_json(&self) -> Option<Json> {
        let mut fields = Fields::default().with("system", self.idle()?);
        for (name, one) in self.cpus().into_iter().filter(|_| self.each_cpu) {
            fields = fields.with(name, one.percent());
        }
        let Spread { mean, stddev, .. } = self.unit();
        let fields = fields.with("unit_mean", mean).with("unit_stddev", stddev);
        Some(fields.into())
    }
}

/// The output of `--idle-prof=calibrate`: the time of a piece of work on each processor, us.
pub fn calibration(unit_us: &[f64]) -> String {
    format!("CPU idleness:\n{}", unit_line(spread(unit_us)))
}

fn unit_line(Spread { mean, stddev, .. }: Spread) -> String {
    format!("  unit work: mean={mean:3.2}us, stddev={stddev:3.2}\n")
}

/// A device with the values of its line.
struct Shown<'m> {
    name: String,
    host: Option<&'m str>,
    device: &'m str,
    all: Figures,
    /// The mean over the devices that it is made of, and the busiest of them.
    parts: Option<Figures>,
}

impl Shown<'_> {
    fn json(&self) -> Json {
        let name = Fields::default().with("name", self.device);
        let mut fields = self.all.keyed(name, |key| key.to_owned());
        if let Some(parts) = &self.parts {
            fields = parts.keyed(fields, |key| match key {
                // fio's spelling.
                "write_merges" => "aggr_write_merge".to_owned(),
                key => format!("aggr_{key}"),
            });
        }
        fields.with_some("hostname", self.host).into()
    }
}

/// Figures of a device; pairs are reads and writes.
struct Figures {
    ios: [u64; 2],
    sectors: [u64; 2],
    merges: [u64; 2],
    ticks_ms: [u64; 2],
    in_queue_ms: u64,
    /// In percent.
    busy: f64,
}

impl Figures {
    fn of(disk: &DiskUse) -> Figures {
        Figures {
            ios: disk.ios,
            sectors: disk.sectors,
            merges: disk.merges,
            ticks_ms: disk.ticks_ms,
            in_queue_ms: disk.in_queue_ms,
            busy: disk.percent_busy(),
        }
    }

    fn of_parts(disk: &DiskUse, all: &[DiskUse]) -> Option<Figures> {
        let named = |name: &String| all.iter().find(|other| other.name == *name);
        let parts: Vec<Figures> = disk
            .parts
            .iter()
            .filter_map(named)
            .map(Figures::of)
            .collect();
        let count = parts.len() as u64;
        let mean = |of: &dyn Fn(&Figures) -> u64| parts.iter().map(of).sum::<u64>() / count;
        let means = |of: fn(&Figures) -> [u64; 2]| [0, 1].map(|way| mean(&|part| of(part)[way]));
        (count > 0).then(|| Figures {
            ios: means(|part| part.ios),
            sectors: means(|part| part.sectors),
            merges: means(|part| part.merges),
            ticks_ms: means(|part| part.ticks_ms),
            in_queue_ms: mean(&|part| part.in_queue_ms),
            busy: parts.iter().map(|part| part.busy).fold(0.0, f64::max),
        })
    }

    /// The figures of the normal output, with this prefix to their names.
    fn words(&self, prefix: &str) -> String {
        let ([r, w], [rm, wm], [rt, wt]) = (self.ios, self.merges, self.ticks_ms);
        let (p, queue, busy) = (prefix, self.in_queue_ms, self.busy);
        format!(
            "{p}ios={r}/{w}, {p}merge={rm}/{wm}, {p}ticks={rt}/{wt}, {p}in_queue={queue}, {p}util={busy:.2}%"
        )
    }

    /// Fields of the terse output: requests, merges and times, all together, busy.
    fn fields(&self) -> String {
        let ([r, w], [rm, wm], [rt, wt]) = (self.ios, self.merges, self.ticks_ms);
        let (queue, busy) = (self.in_queue_ms, self.busy);
        format!(";{r};{w};{rm};{wm};{rt};{wt};{queue};{busy:.2}%")
    }

    /// Adds the fields of the JSON, by names that `key` makes of those of a whole device.
    fn keyed(&self, mut fields: Fields, key: impl Fn(&str) -> String) -> Fields {
        let pairs = [
            ("ios", self.ios),
            ("sectors", self.sectors),
            ("merges", self.merges),
            ("ticks", self.ticks_ms),
        ];
        for (name, values) in pairs {
            for (way, value) in ["read", "write"].into_iter().zip(values) {
                fields = fields.with(key(&format!("{way}_{name}")), value);
            }
        }
        let fields = fields.with(key("in_queue"), self.in_queue_ms);
        fields.with(key("util"), self.busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(name: &str, scale: u64, parts: &[&str]) -> DiskUse {
        DiskUse {
            name: name.to_owned(),
            ios: [22826 * scale, 23689 * scale],
            sectors: [1000 * scale, 3000 * scale],
            merges: [0, 1966 * scale],
            ticks_ms: [2579 * scale, 18852 * scale],
            in_queue_ms: 22080 * scale,
            busy_ms: 1619 * scale,
            span_ms: 4000,
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
        }
    }

    fn one(disks: Vec<DiskUse>) -> Machine {
        Machine {
            names: vec!["a".to_owned()],
            hosts: vec![HostUse {
                disks,
                ..HostUse::default()
            }],
            each_cpu: false,
        }
    }

    fn parsed(json: Option<Json>) -> serde_json::Value {
        let text = json.expect("it is there").document();
        serde_json::from_str(&text).expect("JSON")
    }

    #[test]
    fn devices_have_fios_line_fields_and_keys() {
        let machine = one(vec![disk("vda", 2, &[])]);
        // In the format of fio 3.33.
        let text = "\nDisk stats (read/write):\n  vda: ios=45652/47378, merge=0/3932, ticks=5158/37704, \
             in_queue=44160, util=80.95%\n";
        assert_eq!(machine.disks_as_text(), text);
        let fields = ";vda;45652;47378;0;3932;5158;37704;44160;80.95%";
        assert_eq!(machine.disks_as_fields(), fields);
        let parsed = parsed(machine.disks_as_json());
        assert_eq!(parsed[0]["write_merges"], 3932);
        assert_eq!(parsed[0]["util"], 80.95);
        assert_eq!(parsed[0]["write_sectors"], 6000);
        assert_eq!(parsed[0].get("hostname"), None);
        let none = one(Vec::new());
        assert_eq!(none.disks_as_text(), "");
        assert_eq!(none.disks_as_json(), None);
    }

    #[test]
    fn what_a_device_is_made_of_is_shown_by_its_mean_and_its_busiest() {
        let parts = ["sda", "sdb"];
        let machine = one(vec![
            disk("md0", 1, &parts),
            disk("sda", 1, &[]),
            disk("sdb", 2, &[]),
        ]);
        let text = machine.disks_as_text();
        let first = text.lines().nth(2).expect("a line");
        let expect = "util=40.48%, aggrios=34239/35533, aggrmerge=0/2949, aggrticks=3868/28278, \
             aggrin_queue=33120, aggrutil=80.95%";
        assert!(first.ends_with(expect), "{first}");
        assert_eq!(text.lines().count(), 5);
        let fields = machine.disks_as_fields();
        assert!(fields.contains(";40.48%;slaves;34239;35533;0;2949;"));
        let parsed = parsed(machine.disks_as_json());
        assert_eq!(parsed[0]["aggr_write_merge"], 2949);
        assert_eq!(parsed[0]["aggr_util"], 80.95);
    }

    #[test]
    fn hosts_are_named_where_there_are_several() {
        let cpu = |cpu, idle| CpuIdle {
            cpu,
            idle,
            all: 100,
        };
        let host = |host, idle| HostUse {
            host,
            disks: vec![disk("vda", 1, &[])],
            cpus: vec![cpu(0, idle), cpu(1, 0)],
            unit_us: vec![10.0, 20.0],
        };
        let machine = Machine {
            names: vec!["a".to_owned(), "b".to_owned()],
            hosts: vec![host(0, 80), host(1, 20)],
            each_cpu: true,
        };
        let text = machine.disks_as_text();
        for line in ["\n  a:vda: ios=", "\n  b:vda: ios="] {
            assert!(text.contains(line), "{text}");
        }
        let disks = parsed(machine.disks_as_json());
        assert_eq!(disks[1]["name"], "vda");
        assert_eq!(disks[1]["hostname"], "b");
        let text = "\nCPU idleness:\n  system: 25.00%\n  percpu: 80.00%, 0.00%, 20.00%, 0.00%\n  \
             unit work: mean=15.00us, stddev=5.77\n";
        assert_eq!(machine.idle_as_text(), text);
        let idle = parsed(machine.idle_as_json());
        let keys: Vec<&String> = idle.as_object().expect("an object").keys().collect();
        assert!(keys.contains(&&"b:cpu-0".to_owned()), "{keys:?}");
    }

    #[test]
    fn a_calibration_alone_has_fios_form() {
        let text = calibration(&[28.0, 29.0]);
        let expect = "CPU idleness:\n  unit work: mean=28.50us, stddev=0.71\n";
        assert_eq!(text, expect);
        assert_eq!(one(Vec::new()).idle_as_text(), "");
    }
}
