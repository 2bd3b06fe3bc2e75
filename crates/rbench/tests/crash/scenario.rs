//! A scenario derived from a seed: a workload, its faults, and its end.

use std::path::PathBuf;
use std::time::Duration;

use nix::sys::signal::Signal;
use rbench_core::random::Stream;

use super::bed::Bed;
use super::witness;

/// The end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// It finishes; then the power is cut.
    ByItself,
    /// SIGINT stops it; then the power is cut.
    Stopped,
    /// SIGKILL ends it; then the power is cut.
    Killed,
    /// SIGKILL ends it; the file system continues.
    OnlyKilled,
    /// The power is cut during the run, which continues with the remaining data.
    CutInTheMidst,
}

#[derive(Debug)]
pub struct Scenario {
    threads: u64,
    iterations: u64,
    phases: Vec<&'static str>,
    block: u64,
    /// Block sizes range up to `block` times this.
    range: u64,
    size: u64,
    shared: bool,
    interleave: bool,
    files: Option<u64>,
    engine: &'static str,
    direct: bool,
    fsync: String,
    time_ms: Option<u64>,
    skewed: bool,
    latency: bool,
    /// Failures that the run receives as errors.
    faults: Vec<&'static str>,
    /// Silent damage.
    harm: Option<&'static str>,
    stop_on_error: bool,
    ends: Ends,
    after: Duration,
    tear: bool,
    seed: u64,
}

fn one_of<T: Copy>(chance: &mut Stream, all: &[T]) -> T {
    all[chance.below(all.len() as u64) as usize]
}

fn often(chance: &mut Stream, percent: u64) -> bool {
    chance.below(100) < percent
}

impl Scenario {
    pub fn draw(chance: &mut Stream) -> Scenario {
        let small = often(chance, 20);
        let engine = match small {
            true => one_of(chance, &["psync", "psync", "mmap"]),
            false => one_of(chance, &["psync", "psync", "io_uring", "io_uring", "mmap"]),
        };
        let range = if !small && often(chance, 25) { 4 } else { 1 };
        let block = one_of(chance, &[512, 1000, 4096, 4096, 4096, 8192, 16_384]);
        let shared = !small && often(chance, 40);
        let mut phases = Vec::new();
        for _ in 0..=chance.below(3) {
            phases.push(one_of(
                chance,
                &["write", "randwrite", "randwrite", "randread"],
            ));
        }
        phases.push(one_of(chance, &["write", "randwrite"]));
        let mapped = engine == "mmap";
        let fsync = match chance.below(if small { 4 } else { 6 }) {
            0 | 1 => "end".to_owned(),
            2 => "never".to_owned(),
            3 => "close".to_owned(),
            4 => format!("every={}", 1 + chance.below(20)),
            _ => format!("every={}", 1 + chance.below(5)),
        };
        // The kernel itself handles partial writes of pages.
        let faults = ["write:EIO@p=0.02", "fsync:EIO@p=0.1", "write:short@p=0.02"];
        let mut faults = faults[..if mapped { 2 } else { 3 }].to_vec();
        faults.retain(|_| often(chance, 12));
        let ends = [
            Ends::ByItself,
            Ends::ByItself,
            Ends::Stopped,
            Ends::Killed,
            Ends::Killed,
            Ends::OnlyKilled,
            Ends::CutInTheMidst,
            Ends::CutInTheMidst,
        ];
        let most = if small { 4 } else { 30 };
        let scenario = Scenario {
            threads: 1 + chance.below(3),
            iterations: if often(chance, 15) { 2 } else { 1 },
            phases,
            block,
            range,
            size: block * range * (1 + chance.below(most)),
            shared,
            interleave: shared && range == 1 && often(chance, 50),
            files: small.then(|| 1 + chance.below(12)),
            engine,
            direct: block.is_multiple_of(512) && !mapped && often(chance, 30),
            fsync,
            time_ms: often(chance, 40).then(|| 5 + chance.below(40)),
            skewed: !small && often(chance, 25),
            latency: often(chance, 50),
            faults,
            harm: None,
            stop_on_error: often(chance, 30),
            ends: one_of(chance, &ends),
            after: Duration::from_micros(chance.below(60_000)),
            tear: often(chance, 60),
            seed: chance.next_u64() >> 1,
        };
        if often(chance, 12) {
            scenario.harmed(chance)
        } else {
            scenario
        }
    }

    /// Changes it so that each block is written once and synced, while the file system damages data
    /// silently.
    fn harmed(self, chance: &mut Stream) -> Scenario {
        let harms = [
            "write:lost@p=0.05",
            "write:zero@p=0.05",
            "write:flip@p=0.05",
            "write:misdirect@p=0.05",
        ];
        Scenario {
            phases: vec!["write"],
            engine: if self.engine == "mmap" {
                "psync"
            } else {
                self.engine
            },
            // Damage to a part of a block could hit its neighbours.
            block: self.block.max(4096),
            size: self.block.max(4096) * self.range * (self.size / self.block / self.range),
            // A short write fails, and the next ones are elsewhere.
            faults: Vec::new(),
            fsync: "end".to_owned(),
            time_ms: None,
            harm: Some(one_of(chance, &harms)),
            ends: Ends::ByItself,
            ..self
        }
    }

    /// Options of `rbench testfs`.
    pub fn server(&self) -> String {
        let mut options = format!(
            "--power-cut {} --seed {}",
            if self.tear { "tear" } else { "drop" },
            self.seed
        );
        if self.latency {
            options += " --latency write=300us,fsync=500us";
        }
        for fault in self.faults.iter().chain(&self.harm) {
            options += &format!(" --fault {fault}");
        }
        if self.harm.is_some() {
            options += " --direct-io";
        }
        options
    }

    /// Options of `rbench io`.
    fn options(&self) -> String {
        let mut options = format!(
            "--rw {} --engine {} --fsync {} --threads {} --iterations {} --seed {}",
            self.phases.join(","),
            self.engine,
            self.fsync,
            self.threads,
            self.iterations,
            self.seed
        );
        let mut add = |option: &str| {
            options.push(' ');
            options.push_str(option);
        };
        let (block, size) = (self.block, self.size);
        match (self.files, self.range) {
            (Some(files), _) => add(&format!("--bs {block} --files {files} --file-size {size}")),
            (None, 1) => add(&format!("--bs {block} --size {size}")),
            (None, range) => add(&format!(
                "--bs-range {block}-{} --size {size}",
                block * range
            )),
        }
        if let Some(time_ms) = self.time_ms {
            add(&format!("--time {time_ms}ms"));
        }
        for (given, option) in [
            (self.shared, "--layout shared"),
            (self.interleave, "--interleave"),
            (self.engine == "io_uring", "--depth 8"),
            (self.direct, "--direct"),
            (self.stop_on_error, "--on-error stop"),
            (
                self.skewed && self.phases.iter().any(|rw| rw.starts_with("rand")),
                "--random-distribution zipf:1.1",
            ),
        ] {
            if given {
                add(option);
            }
        }
        options
    }

    /// Runs the scenario up to the state after the crash. Returns the content from before a power
    /// cut that followed the run's end.
    pub fn run(&self, bed: &Bed, chance: &mut Stream) -> Vec<(PathBuf, Vec<u8>)> {
        let mut run = bed.start(&self.options());
        if self.ends != Ends::ByItself {
            run.begun(bed);
            std::thread::sleep(self.after);
        }
        let mut cuts = true;
        match self.ends {
            Ends::ByItself => {}
            Ends::Stopped => run.signal(Signal::SIGINT),
            Ends::Killed => run.signal(Signal::SIGKILL),
            Ends::OnlyKilled => {
                run.signal(Signal::SIGKILL);
                cuts = false;
            }
            Ends::CutInTheMidst => {
                bed.cut();
                if often(chance, 30) {
                    run.signal(Signal::SIGKILL);
                }
                // Data written after the first cut may be cut again.
                cuts = often(chance, 50);
            }
        }
        let status = run.end();
        if self.ends == Ends::ByItself && self.faults.is_empty() {
            assert_eq!(status.code(), Some(0), "{}", self.options());
        }
        let before = witness::data(bed);
        if cuts {
            bed.cut();
        }
        before
    }

    fn syncs(&self) -> bool {
        self.fsync == "end" || self.fsync.starts_with("every")
    }

    /// Returns true if the file system damages data silently.
    pub fn harms(&self) -> bool {
        self.harm.is_some()
    }

    /// Returns true if all data was synced at the end.
    pub fn settles(&self) -> bool {
        self.ends == Ends::ByItself && self.syncs() && self.faults.is_empty()
    }

    /// Returns true if the writes of a block never overlap.
    pub fn writes_in_order(&self) -> bool {
        self.engine != "io_uring" || (self.time_ms.is_none() && !self.skewed)
    }

    /// Returns true if, after the cut, only data exists that the worker who wrote it had synced.
    pub fn only_synced_stays(&self) -> bool {
        let cut_behind = matches!(self.ends, Ends::ByItself | Ends::Stopped | Ends::Killed);
        let own = !self.shared || self.threads == 1;
        cut_behind && own && self.syncs() && self.faults.is_empty() && !self.tear
    }

    /// Labels under which the scenario is counted.
    pub fn traits(&self) -> Vec<String> {
        let form = match (self.files, self.shared, self.interleave) {
            (Some(_), ..) => "small files",
            (None, false, _) => "a file for each worker",
            (None, true, false) => "shared in segments",
            (None, true, true) => "shared and interleaved",
        };
        let rule = self.fsync.split('=').next().unwrap_or_default();
        let mut all = vec![
            format!("ends: {:?}", self.ends),
            format!("engine: {}", self.engine),
            format!("form: {form}"),
            format!("fsync: {rule}"),
            format!("survivors: {}", if self.tear { "tear" } else { "drop" }),
        ];
        for (given, name) in [
            (!self.faults.is_empty(), "with failing calls"),
            (self.harms(), "with silent damage"),
            (self.settles(), "settled"),
        ] {
            if given {
                all.push(name.to_owned());
            }
        }
        all
    }
}
