//! A Plan in words, for reports.

use std::path::PathBuf;

use rbench_core::Bytes;

use crate::find::{FindPlan, Than};
use crate::io::{FsyncRule, IoPlan, Layout as IoLayout};
use crate::jobs::{BlockSizes, BufferContent, Distribution, JobsPlan};
use crate::meta::{
    Backend, Content, ItemOwner, Layout as TreeLayout, Location, Making, MetaPlan, PHASES,
};
use crate::resolve::{Plan, Work};
use crate::tree::ItemKind;

impl Plan {
    /// The options that shaped the run, as (name, value), for reports.
    pub fn describe(&self) -> Vec<(&'static str, String)> {
        let mut rows = match &self.work {
            Work::Meta(meta) if meta.is_table() => describe_table(meta, self.threads),
            Work::Meta(meta) => describe_meta(meta),
            Work::Io(io) => describe_io(io),
            Work::Jobs(jobs) => return describe_jobs(jobs),
            Work::Find(find) => describe_find(find),
        };
        if self.keep {
            rows.push(("keep", "yes".to_owned()));
        }
        rows.push(("threads", self.threads.to_string()));
        rows.push(("iterations", self.iterations.to_string()));
        if self.pin {
            rows.push(("pin", "yes".to_owned()));
        }
        if self.shift > 0 {
            rows.push(("shift", self.shift.to_string()));
        }
        if self.drop_caches {
            rows.push(("drop-caches", "yes".to_owned()));
        }
        rows.extend(yes_rows(&[
            ("private-dirs", self.leave.private_dirs),
            ("overfill", self.leave.overfill),
        ]));
        rows
    }
}

fn journal_row(path: Option<&PathBuf>) -> Option<(&'static str, String)> {
    path.map(|path| ("ack-journal", path.display().to_string()))
}

fn yes_rows(flags: &[(&'static str, bool)]) -> impl Iterator<Item = (&'static str, String)> {
    flags
        .iter()
        .filter(|(_, on)| *on)
        .map(|(name, _)| (*name, "yes".to_owned()))
}

/// The rows of the per-operation table, and how long each is.
fn describe_table(meta: &MetaPlan, threads: u32) -> Vec<(&'static str, String)> {
    let time = meta.phases.iter().find_map(|phase| phase.deadline);
    vec![
        ("rows", meta.rows.join(",")),
        match time {
            Some(time) => ("time", time.to_string()),
            None => {
                let each = meta.items_per_rank / u64::from(threads.max(1));
                ("ops", each.to_string())
            }
        },
    ]
}

fn describe_meta(meta: &MetaPlan) -> Vec<(&'static str, String)> {
    let mut rows = vec![
        ("branch", meta.shape.branch.to_string()),
        ("depth", meta.shape.depth.to_string()),
        ("items", meta.shape.items_per_node.to_string()),
        ("items-per-rank", meta.items_per_rank.to_string()),
        (
            "layout",
            match meta.layout {
                TreeLayout::Unique => "unique".to_owned(),
                TreeLayout::Shared => "shared".to_owned(),
            },
        ),
        ("write", meta.write.to_string()),
        ("read", meta.read.to_string()),
    ];
    rows.extend(yes_rows(&[
        ("leaf-only", meta.shape.leaf_only),
        ("fsync", meta.fsync),
        (
            "random-order",
            meta.phases.iter().any(|phase| phase.shuffled),
        ),
    ]));
    let has = |kind: ItemKind| meta.kinds().any(|k| k.info().items == Some(kind));
    rows.extend(yes_rows(&[
        ("files-only", !has(ItemKind::Dir)),
        ("dirs-only", !has(ItemKind::File)),
    ]));
    let usual = PHASES
        .iter()
        .filter(|info| info.by_default() && info.items.is_none_or(has))
        .map(|info| info.kind);
    if meta.kinds().any(|kind| !kind.info().by_default()) || meta.phases.len() < usual.count() {
        let names: Vec<&str> = meta.kinds().map(|kind| kind.info().name).collect();
        rows.push(("phases", names.join(",")));
    }
    if let Some(deadline) = meta.phases.iter().find_map(|phase| phase.deadline) {
        rows.push(("stonewall", deadline.to_string()));
    }
    if let Location::TestDirs(dirs) = &meta.site {
        let dirs: Vec<String> = dirs.iter().map(|d| d.display().to_string()).collect();
        rows.push(("directories", dirs.join("@")));
    }
    if meta.loops > 1 {
        rows.push(("loops", meta.loops.to_string()));
    }
    if let (Content::Packet { seed, .. }, true) = (meta.content, meta.write.0 + meta.read.0 > 0) {
        rows.push(("data-seed", seed.to_string()));
    }
    rows.extend(yes_rows(&[
        (
            "collective",
            meta.phases.iter().any(|p| p.who == ItemOwner::FirstForAll),
        ),
        ("shared-names", meta.naming.common.is_some()),
        ("mknod", meta.making == Making::Node),
        ("no-barriers", !meta.barriers),
        ("direct", meta.direct),
        ("verify-read", meta.verify_read),
        ("verify-write", meta.verify_write),
        ("sync", meta.around.sync),
        ("dummy", meta.backend == Backend::Dummy),
    ]));
    rows
}

/// What the jobs share; their own options stand in the report of each.
fn describe_jobs(jobs: &JobsPlan) -> Vec<(&'static str, String)> {
    let all = || jobs.rounds.iter().flatten();
    let join = |texts: Vec<String>| texts.join(", ");
    let mut directories: Vec<String> = all()
        .flat_map(|job| job.files.directories())
        .map(|directory| directory.display().to_string())
        .filter(|name| !name.is_empty())
        .collect();
    directories.dedup();
    let mut rows = vec![
        ("jobs", join(all().map(|job| job.name.clone()).collect())),
        ("threads", jobs.workers().to_string()),
    ];
    let mut engines: Vec<String> = all().map(|job| job.engine.clone()).collect();
    engines.dedup();
    rows.push(("engine", join(engines)));
    if !directories.is_empty() {
        rows.push(("directories", join(directories)));
    }
    rows.extend(journal_row(jobs.ack_journal.as_ref()));
    if !jobs.global_options.is_empty() {
        let options = jobs.global_options.iter();
        let typed = options.map(|(name, value)| format!("{name}={value}"));
        rows.push(("options", join(typed.collect())));
    }
    rows
}

fn describe_find(find: &FindPlan) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(file) = &find.newer {
        rows.push(("newer", file.display().to_string()));
    }
    if let Some(size) = find.size {
        let sign = match size.than {
            Than::Exactly => "",
            Than::More => "+",
            Than::Less => "-",
        };
        rows.push((
            "size",
            format!("{sign}{} x {} bytes", size.units, size.unit),
        ));
    }
    if let Some(name) = &find.name {
        rows.push(("name", String::from_utf8_lossy(name).into_owned()));
    }
    rows
}

fn describe_io(io: &IoPlan) -> Vec<(&'static str, String)> {
    let phases: Vec<&str> = io.phases.iter().map(|rw| rw.name()).collect();
    let mut rows = vec![("rw", phases.join(",")), sizes(&io.sizes)];
    match io.small {
        Some(small) => {
            rows.push(("files", small.files.to_string()));
            rows.push(("file-size", small.size.to_string()));
        }
        None => rows.push(("size", io.size.to_string())),
    }
    let layout = match io.layout {
        IoLayout::PerWorker => "per-worker",
        IoLayout::SharedSegmented => "shared, segmented",
        IoLayout::SharedInterleaved => "shared, interleaved",
    };
    rows.push(("layout", layout.to_owned()));
    rows.push(("engine", io.engine.clone()));
    rows.push(("depth", io.depth.to_string()));
    let fsync = match io.fsync {
        FsyncRule::End if io.small.is_some() => "each file".to_owned(),
        FsyncRule::End => "end".to_owned(),
        FsyncRule::Never => "never".to_owned(),
        FsyncRule::Every(n) => format!("every={n}"),
        FsyncRule::Close => "close".to_owned(),
    };
    if io.phases.iter().any(|rw| rw.writes()) {
        rows.push(("fsync", fsync));
    }
    if io.phases.iter().any(|rw| rw.reads() && rw.writes()) {
        rows.push(("mix", format!("{}% reads", io.mix_read)));
    }
    rows.extend(distribution(&io.distribution).map(|text| ("random-distribution", text)));
    rows.extend(yes_rows(&[("direct", io.direct), ("verify", io.verify)]));
    if io.verify_threads > 0 {
        rows.push(("verify-threads", io.verify_threads.to_string()));
    }
    rows.extend(journal_row(io.ack_journal.as_ref()));
    let compress = match io.buffers.content {
        BufferContent::Random { percent, .. } => percent,
        BufferContent::Zero | BufferContent::Pattern(_) => 0,
    };
    for (name, percent) in [
        ("compress", compress),
        ("dedupe", io.buffers.dedupe_percent),
    ] {
        if percent > 0 {
            rows.push((name, format!("{percent}%")));
        }
    }
    if !io.buffers.refill {
        rows.push(("refill", "no".to_owned()));
    }
    if let Some(time) = io.time {
        rows.push(("time", time.to_string()));
    }
    for (name, time) in [("ramp", io.ramp), ("think", io.think)] {
        if time.0 > 0 {
            rows.push((name, time.to_string()));
        }
    }
    if let Some(open_loop) = io.open_loop {
        rows.push(("rate", format!("{}/s over all workers", open_loop.rate)));
        rows.push(("arrival", open_loop.arrival.name().to_owned()));
    }
    rows
}

/// Block sizes, by the name of their option and in its form.
fn sizes(sizes: &BlockSizes) -> (&'static str, String) {
    match sizes {
        BlockSizes::Fixed(size) => ("bs", Bytes(*size).to_string()),
        BlockSizes::Range { min, max } | BlockSizes::Unaligned { min, max } => {
            ("bs-range", format!("{}-{}", Bytes(*min), Bytes(*max)))
        }
        BlockSizes::Split(parts) => {
            let part = |(size, percent): &(u64, u32)| format!("{}/{percent}", Bytes(*size));
            let parts: Vec<String> = parts.iter().map(part).collect();
            ("bs-split", parts.join(":"))
        }
    }
}

/// A distribution in the form of its option; `None`: the default.
fn distribution(distribution: &Distribution) -> Option<String> {
    Some(match distribution {
        Distribution::Uniform => return None,
        Distribution::Zipf(theta) => format!("zipf:{theta}"),
        Distribution::Pareto(power) => format!("pareto:{power}"),
        Distribution::Normal(deviation) => format!("normal:{deviation}"),
        Distribution::Zoned(zones) => {
            let zone = |(accesses, space): &(f64, f64)| format!("{accesses}/{space}");
            let zones: Vec<String> = zones.iter().map(zone).collect();
            format!("zoned:{}", zones.join(":"))
        }
        Distribution::ZonedBytes(zones) => {
            let zone = |(accesses, bytes): &(f64, u64)| format!("{accesses}/{}", Bytes(*bytes));
            let zones: Vec<String> = zones.iter().map(zone).collect();
            format!("zoned_abs:{}", zones.join(":"))
        }
        Distribution::Centred(of, at) => {
            format!("{}:{at}", self::distribution(of).unwrap_or_default())
        }
        Distribution::Sequence(blocks) => {
            let blocks: Vec<String> = blocks.iter().map(u64::to_string).collect();
            format!("sequence:{}", blocks.join(","))
        }
    })
}
