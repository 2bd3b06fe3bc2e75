//! The machine in fio's outputs: block devices and idle processors.

use std::fmt::Write as _;

use rbench_core::machine::{CpuIdle, DiskUse, HostUse};

use super::tree::Json;

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
            disk,
            parts: Parts::of(disk, &host.disks),
        })
    }

    /// The devices in the normal output; empty without devices.
    pub fn disks_as_text(&self) -> String {
        let mut out = String::new();
        for shown in self.disks() {
            if out.is_empty() {
                out.push_str("\nDisk stats (read/write):\n");
            }
            let disk = shown.disk;
            let ([r, w], [rm, wm], [rt, wt]) = (disk.ios, disk.merges, disk.ticks_ms);
            let (name, queue, busy) = (&shown.name, disk.in_queue_ms, disk.percent_busy());
            let _ = write!(
                out,
                "  {name}: ios={r}/{w}, merge={rm}/{wm}, ticks={rt}/{wt}, in_queue={queue}, util={busy:.2}%"
            );
            if let Some(parts) = shown.parts {
                let ([r, w], [rm, wm], [rt, wt]) = (parts.ios, parts.merges, parts.ticks_ms);
                let _ = write!(
                    out,
                    ", aggrios={r}/{w}, aggrmerge={rm}/{wm}, aggrticks={rt}/{wt}, \
                     aggrin_queue={}, aggrutil={:.2}%",
                    parts.in_queue_ms, parts.busiest
                );
            }
            out.push('\n');
        }
        out
    }

    /// The devices as fields, which the terse output appends to each line.
    pub fn disks_as_fields(&self) -> String {
        let mut out = String::new();
        for shown in self.disks() {
            let disk = shown.disk;
            let _ = write!(out, ";{}", shown.name);
            let amounts = [disk.ios, disk.merges, disk.ticks_ms];
            push_fields(&mut out, amounts, disk.in_queue_ms, disk.percent_busy());
            if let Some(parts) = shown.parts {
                out.push_str(";slaves");
                let amounts = [parts.ios, parts.merges, parts.ticks_ms];
                push_fields(&mut out, amounts, parts.in_queue_ms, parts.busiest);
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
    fn unit(&self) -> (f64, f64) {
        let all = self.hosts.iter().flat_map(|host| &host.unit_us);
        mean_and_deviation(&all.copied().collect::<Vec<f64>>())
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
        let mut fields = vec![("system".to_owned(), Json::from(self.idle()?))];
        if self.each_cpu {
            let all = self.cpus();
            fields.extend(
                all.into_iter()
                    .map(|(name, one)| (name, Json::from(one.percent()))),
            );
        }
        let (mean, deviation) = self.unit();
        fields.push(("unit_mean".to_owned(), Json::from(mean)));
        fields.push(("unit_stddev".to_owned(), Json::from(deviation)));
        Some(Json::map(fields))
    }
}

/// The output of `--idle-prof=calibrate`: the time of a piece of work on each processor, us.
pub fn calibration(unit_us: &[f64]) -> String {
    format!("CPU idleness:\n{}", unit_line(mean_and_deviation(unit_us)))
}

fn unit_line((mean, deviation): (f64, f64)) -> String {
    format!("  unit work: mean={mean:3.2}us, stddev={deviation:3.2}\n")
}

/// Mean and deviation of a sample; 0 without values.
fn mean_and_deviation(all: &[f64]) -> (f64, f64) {
    let n = all.len() as f64;
    let mean = all.iter().sum::<f64>() / n.max(1.0);
    let squares: f64 = all.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (n - 1.0).max(1.0)).sqrt())
}

/// Fields of the terse output: requests, merges and times, all together, busy.
fn push_fields(out: &mut String, amounts: [[u64; 2]; 3], in_queue_ms: u64, busy: f64) {
    for value in amounts.into_iter().flatten() {
        let _ = write!(out, ";{value}");
    }
    let _ = write!(out, ";{in_queue_ms};{busy:.2}%");
}

/// A device with the values of its line.
struct Shown<'m> {
    name: String,
    host: Option<&'m str>,
    disk: &'m DiskUse,
    parts: Option<Parts>,
}

impl Shown<'_> {
    fn json(&self) -> Json {
        let disk = self.disk;
        let mut fields = vec![("name", Json::from(disk.name.as_str()))];
        let mut push = |keys: [&'static str; 10], values: [[u64; 2]; 4], queue: u64, busy: f64| {
            let values = values.into_iter().flatten().chain([queue]);
            fields.extend(keys.into_iter().zip(values.map(Json::from)));
            fields.push((keys[9], Json::from(busy)));
        };
        push(
            [
                "read_ios",
                "write_ios",
                "read_sectors",
                "write_sectors",
                "read_merges",
                "write_merges",
                "read_ticks",
                "write_ticks",
                "in_queue",
                "util",
            ],
            [disk.ios, disk.sectors, disk.merges, disk.ticks_ms],
            disk.in_queue_ms,
            disk.percent_busy(),
        );
        if let Some(parts) = &self.parts {
            push(
                [
                    "aggr_read_ios",
                    "aggr_write_ios",
                    "aggr_read_sectors",
                    "aggr_write_sectors",
                    "aggr_read_merges",
                    "aggr_write_merge",
                    "aggr_read_ticks",
                    "aggr_write_ticks",
                    "aggr_in_queue",
                    "aggr_util",
                ],
                [parts.ios, parts.sectors, parts.merges, parts.ticks_ms],
                parts.in_queue_ms,
                parts.busiest,
            );
        }
        fields.extend(self.host.map(|host| ("hostname", Json::from(host))));
        Json::map(fields)
    }
}

/// The mean over the devices that form another one, and the busiest of them.
struct Parts {
    ios: [u64; 2],
    sectors: [u64; 2],
    merges: [u64; 2],
    ticks_ms: [u64; 2],
    in_queue_ms: u64,
    busiest: f64,
}

impl Parts {
    fn of(disk: &DiskUse, all: &[DiskUse]) -> Option<Parts> {
        let named = |name: &String| all.iter().find(|other| other.name == *name);
        let parts: Vec<&DiskUse> = disk.parts.iter().filter_map(named).collect();
        let count = parts.len() as u64;
        let mean = |of: fn(&DiskUse) -> u64| parts.iter().map(|part| of(part)).sum::<u64>() / count;
        let busy = parts.iter().map(|part| part.percent_busy());
        let busiest = busy.fold(0.0, f64::max);
        (count > 0).then(|| Parts {
            ios: [mean(|d| d.ios[0]), mean(|d| d.ios[1])],
            sectors: [mean(|d| d.sectors[0]), mean(|d| d.sectors[1])],
            merges: [mean(|d| d.merges[0]), mean(|d| d.merges[1])],
            ticks_ms: [mean(|d| d.ticks_ms[0]), mean(|d| d.ticks_ms[1])],
            in_queue_ms: mean(|d| d.in_queue_ms),
            busiest,
        })
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

    #[test]
    fn devices_have_fios_line_fields_and_keys() {
        let machine = one(vec![disk("vda", 2, &[])]);
        // In the format of fio 3.33.
        assert_eq!(
            machine.disks_as_text(),
            "\nDisk stats (read/write):\n  vda: ios=45652/47378, merge=0/3932, ticks=5158/37704, \
             in_queue=44160, util=80.95%\n"
        );
        assert_eq!(
            machine.disks_as_fields(),
            ";vda;45652;47378;0;3932;5158;37704;44160;80.95%"
        );
        let json = machine.disks_as_json().expect("a device").document();
        let parsed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(parsed[0]["write_merges"], 3932);
        assert_eq!(parsed[0]["util"], 80.95);
        assert_eq!(parsed[0]["write_sectors"], 6000);
        assert_eq!(parsed[0].get("hostname"), None);
        let none = one(Vec::new());
        assert_eq!(
            (none.disks_as_text(), none.disks_as_json()),
            (String::new(), None)
        );
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
        assert!(
            first.ends_with(
                "util=40.48%, aggrios=34239/35533, aggrmerge=0/2949, aggrticks=3868/28278, \
                 aggrin_queue=33120, aggrutil=80.95%"
            ),
            "{first}"
        );
        assert_eq!(text.lines().count(), 5);
        assert!(
            machine
                .disks_as_fields()
                .contains(";40.48%;slaves;34239;35533;0;2949;")
        );
        let json = machine.disks_as_json().expect("devices").document();
        let parsed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
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
        assert!(
            text.contains("\n  a:vda: ios=") && text.contains("\n  b:vda: ios="),
            "{text}"
        );
        let json = machine.disks_as_json().expect("devices").document();
        let parsed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(
            (&parsed[1]["name"], &parsed[1]["hostname"]),
            (&"vda".into(), &"b".into())
        );
        assert_eq!(
            machine.idle_as_text(),
            "\nCPU idleness:\n  system: 25.00%\n  percpu: 80.00%, 0.00%, 20.00%, 0.00%\n  \
             unit work: mean=15.00us, stddev=5.77\n"
        );
        let json = machine.idle_as_json().expect("asked").document();
        let parsed: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        let keys: Vec<&String> = parsed.as_object().expect("an object").keys().collect();
        assert!(keys.contains(&&"b:cpu-0".to_owned()), "{keys:?}");
    }

    #[test]
    fn a_calibration_alone_has_fios_form() {
        let text = calibration(&[28.0, 29.0]);
        assert_eq!(
            text,
            "CPU idleness:\n  unit work: mean=28.50us, stddev=0.71\n"
        );
        assert_eq!(one(Vec::new()).idle_as_text(), "");
    }
}
