//! What a seed says: a workload, its faults, and how it ends.

use std::time::Duration;

use rbench_core::random::Stream;
use rbench_core::{Bytes, Nanos};
use rbench_plan::io::{FsyncRule, Layout, Rw};
use rbench_plan::jobs::Distribution;
use rbench_plan::spec::{Common, Io, OnError};
use rbench_testfs::{Config, Kind, Survivors};

use super::{Bed, journaled};
use crate::group::{Run, Signal};

/// When the power is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// When the run has ended.
    AtTheEnd,
    /// When a signal has stopped it.
    Stopped,
    /// While it goes on; then it goes on with what is left.
    InTheMidst,
}

#[derive(Debug)]
pub struct Scenario {
    ranks: usize,
    threads: u32,
    iterations: u32,
    phases: Vec<Rw>,
    block: u64,
    /// A range of block sizes up to `block` times this.
    range: u64,
    size: u64,
    layout: Option<Layout>,
    interleave: bool,
    files: Option<u64>,
    engine: &'static str,
    direct: bool,
    fsync: FsyncRule,
    time: Option<Nanos>,
    skewed: bool,
    latency: bool,
    faults: Vec<&'static str>,
    on_error: Option<OnError>,
    pub ends: Ends,
    after: Duration,
    survivors: Survivors,
}

fn one_of<T: Copy>(chance: &mut Stream, all: &[T]) -> T {
    all[chance.below(all.len() as u64) as usize]
}

fn often(chance: &mut Stream, percent: u64) -> bool {
    chance.below(100) < percent
}

impl Scenario {
    pub fn draw(chance: &mut Stream) -> Scenario {
        let small = often(chance, 15);
        // Not mmap: its unmapping waits for writes that a file system within
        // the same process cannot serve meanwhile.
        let engine = match small {
            true => "psync",
            false => one_of(chance, &["psync", "io_uring"]),
        };
        let range = if !small && often(chance, 25) { 4 } else { 1 };
        let block = one_of(chance, &[512, 1000, 4096, 4096, 4096, 8192, 16_384]);
        let layout = (!small && often(chance, 40)).then_some(Layout::SharedSegmented);
        let mut phases = Vec::new();
        for _ in 0..=chance.below(3) {
            let all = [Rw::Write, Rw::RandWrite, Rw::RandWrite, Rw::RandRead];
            phases.push(one_of(chance, &all));
        }
        phases.push(one_of(chance, &[Rw::Write, Rw::RandWrite]));
        let fsyncs = [
            FsyncRule::End,
            FsyncRule::End,
            FsyncRule::Every(1 + chance.below(20)),
            FsyncRule::Every(1 + chance.below(5)),
            FsyncRule::Never,
            FsyncRule::Close,
        ];
        let fsync = match one_of(chance, &fsyncs) {
            FsyncRule::Every(_) if small => FsyncRule::End,
            rule => rule,
        };
        let faults = ["write:EIO@p=0.02", "fsync:EIO@p=0.1", "write:short@p=0.02"];
        Scenario {
            ranks: 1 + chance.below(2) as usize,
            threads: 1 + chance.below(2) as u32,
            iterations: if often(chance, 15) { 2 } else { 1 },
            phases,
            block,
            range,
            size: block * range * (2 + chance.below(30)),
            layout,
            interleave: layout.is_some() && range == 1 && often(chance, 50),
            files: small.then(|| 1 + chance.below(12)),
            engine,
            direct: block.is_multiple_of(512) && often(chance, 30),
            fsync,
            time: often(chance, 40).then(|| Nanos((5 + chance.below(40)) * 1_000_000)),
            skewed: !small && often(chance, 25),
            latency: often(chance, 50),
            faults: faults.into_iter().filter(|_| often(chance, 12)).collect(),
            on_error: often(chance, 30).then_some(OnError::Stop),
            ends: one_of(chance, &[Ends::AtTheEnd, Ends::Stopped, Ends::InTheMidst]),
            after: Duration::from_micros(chance.below(60_000)),
            survivors: if often(chance, 30) {
                Survivors::None
            } else {
                Survivors::Seeded(chance.next_u64())
            },
        }
    }

    pub fn configure(&self, config: &mut Config) {
        if self.latency {
            config.latency.set(Kind::Write, Nanos(300_000));
            config.latency.set(Kind::Fsync, Nanos(500_000));
        }
        config.seed = self.after.as_nanos() as u64;
        config.faults = self
            .faults
            .iter()
            .map(|fault| fault.parse().expect("valid"))
            .collect();
    }

    fn io(&self, bed: &Bed) -> Io {
        let random = self.phases.iter().any(|rw| rw.random());
        let blocks = if self.files.is_some() { 4 } else { u64::MAX };
        let size = self.size.min(self.block.saturating_mul(blocks));
        let whole = Io {
            layout: self.layout,
            interleave: self.interleave,
            engine: Some(self.engine.to_owned()),
            depth: Some(if self.engine == "io_uring" { 8 } else { 1 }),
            direct: self.direct,
            fsync: Some(self.fsync),
            time: self.time,
            distribution: (self.skewed && random).then_some(Distribution::Zipf(1.1)),
            ..journaled(bed, &self.phases, self.block, size)
        };
        if let Some(files) = self.files {
            return Io {
                size: None,
                file_size: Some(Bytes(size)),
                files: Some(files),
                ..whole
            };
        }
        if self.range > 1 {
            return Io {
                block: None,
                block_range: Some((self.block, self.block * self.range)),
                ..whole
            };
        }
        whole
    }

    /// Plays it up to what the crash has left.
    pub fn run(&self, bed: &Bed, chance: &mut Stream) {
        let hosts = [0, 0];
        let mut run = Run::io(&hosts[..self.ranks], bed.target.path(), self.io(bed));
        run.common = Common {
            threads: Some(self.threads),
            iterations: Some(self.iterations),
            seed: Some(chance.next_u64()),
            ..Common::default()
        };
        run.common.limits.on_error = self.on_error;
        run.key = chance.next_u64();
        if self.ends == Ends::Stopped {
            let nth = chance.below(self.phases.len() as u64) as usize;
            run.signal = Some(Signal {
                rank: 0,
                during: self.phases[nth].label(),
                // The common start is a little ahead of the display.
                after: self.after / 2,
            });
        }
        if self.ends == Ends::InTheMidst {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_millis(10) + self.after);
                    bed.cut(self.survivors);
                });
                // It may end with any error.
                let _ = run.go();
            });
            // What was written behind the cut is cut as well, or not.
            if chance.below(2) == 0 {
                bed.cut(self.survivors);
            }
            return;
        }
        run.go().expect("what was done is told");
        bed.cut(self.survivors);
    }
}
