//! A Plan in words and numbers, for reports.

use std::path::PathBuf;

use rbench_core::steady::Criterion;
use rbench_core::timeline::INTERVAL;
use rbench_core::{Bytes, Nanos};

use crate::arrival::OpenLoop;
use crate::find::Than;
use crate::io::{FsyncRule, IoPlan, Layout as IoLayout};
use crate::jobs::{BlockSizes, BufferContent, Distribution, JobPlan, JobsPlan};
use crate::meta::{
    Backend, Content, ItemOwner, Layout as TreeLayout, Location, Making, MetaPlan, PHASES,
    PhaseInfo, PhaseKind, Showing, UNTIL_THE_DEADLINE,
};
use crate::mix::{FileSet, MixPlan, Role, Scale, SetKind};
use crate::replay::{Pace, ReplayPlan};
use crate::resolve::{Plan, Work};
use crate::spec::{CommandOptions, Find};
use crate::tree::ItemKind;

/// A setting of a run, for reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Name of its option.
    pub name: &'static str,
    /// Text for people.
    pub text: String,
    /// Value for machines.
    pub value: SettingValue,
}

/// The value of a setting in base units.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SettingValue {
    /// No value besides the text.
    Text,
    /// On.
    On,
    /// Off.
    Off,
    /// A number.
    Count(u64),
    /// A size.
    Size(Bytes),
    /// A time.
    Time(Nanos),
    /// Operations per second.
    PerSecond(f64),
    /// A percentage.
    Percent(u32),
}

impl Setting {
    fn new(name: &'static str, text: impl Into<String>, value: SettingValue) -> Setting {
        let text = text.into();
        Setting { name, text, value }
    }

    fn text(name: &'static str, text: impl Into<String>) -> Setting {
        Setting::new(name, text, SettingValue::Text)
    }

    fn count(name: &'static str, count: impl Into<u64>) -> Setting {
        let count = count.into();
        Setting::new(name, count.to_string(), SettingValue::Count(count))
    }

    fn size(name: &'static str, size: Bytes) -> Setting {
        Setting::new(name, size.to_string(), SettingValue::Size(size))
    }

    fn time(name: &'static str, time: Nanos) -> Setting {
        Setting::new(name, time.to_string(), SettingValue::Time(time))
    }

    fn percent(name: &'static str, percent: u32, of: &str) -> Setting {
        let text = format!("{percent}%{of}");
        Setting::new(name, text, SettingValue::Percent(percent))
    }

    fn yes(name: &'static str) -> Setting {
        Setting::new(name, "yes", SettingValue::On)
    }
}

impl Plan {
    /// The options that shaped the run, for reports.
    pub fn describe(&self) -> Vec<Setting> {
        let mut rows = match &self.work {
            Work::Meta(meta) if meta.is_table() => describe_table(meta, self.threads),
            Work::Meta(meta) => describe_meta(meta),
            Work::Io(io) => describe_io(io),
            Work::Jobs(jobs) => return describe_jobs(jobs),
            Work::Find(find) => describe_find(find),
            Work::Mix(mix) => describe_mix(mix),
            Work::Replay(replay) => describe_replay(replay),
        };
        rows.extend(yes_rows(&[("keep", self.keep)]));
        match self.short.is_empty() {
            true => rows.push(Setting::count("threads", self.threads)),
            false => rows.push(Setting::count("workers", self.workers())),
        }
        rows.extend(self.repetition_rows());
        let interval = Some(self.interval).filter(|interval| *interval != INTERVAL);
        rows.extend(interval.map(|interval| Setting::time("interval", interval)));
        rows.extend(yes_rows(&[("pin", self.pin)]));
        rows.extend((self.shift > 0).then(|| Setting::count("shift", self.shift)));
        rows.extend(yes_rows(&[("drop-caches", self.drop_caches)]));
        rows.extend(describe_commands(&self.commands));
        rows.extend(yes_rows(&[
            ("private-dirs", self.leave.private_dirs),
            ("overfill", self.leave.overfill),
            ("untried", self.leave.untried),
        ]));
        rows
    }
}

fn describe_commands(commands: &CommandOptions) -> Vec<Setting> {
    let CommandOptions { before, after, .. } = commands;
    let both = [("before-phase", before), ("after-phase", after)];
    let given = both.into_iter().filter_map(|(name, command)| {
        let command = command.as_deref()?;
        Some(Setting::text(name, command))
    });
    let mut rows: Vec<Setting> = given.collect();
    rows.extend((!rows.is_empty()).then(|| Setting::time("hook-timeout", commands.patience())));
    rows
}

impl Plan {
    /// Settings of the number of passes.
    fn repetition_rows(&self) -> Vec<Setting> {
        let mut rows = Vec::new();
        match self.until {
            None => rows.push(Setting::count("iterations", self.iterations)),
            Some(until) => {
                rows.push(Setting::text("iterations", "auto"));
                let percent = 100.0 * until.precision;
                rows.push(Setting::text("precision", format!("{percent}%")));
                rows.push(Setting::count("max-iterations", self.iterations));
                rows.extend(until.time.map(|time| Setting::time("max-time", time)));
            }
        }
        rows.extend((self.warmup > 0).then(|| Setting::count("warmup", self.warmup)));
        rows
    }
}

fn journal_row(path: Option<&PathBuf>) -> Option<Setting> {
    path.map(|path| Setting::text("ack-journal", path.display().to_string()))
}

/// A setting of paths with `between` between them.
fn paths(name: &'static str, paths: &[PathBuf], between: &str) -> Setting {
    let paths: Vec<String> = paths
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Setting::text(name, paths.join(between))
}

fn yes_rows(flags: &[(&'static str, bool)]) -> impl Iterator<Item = Setting> {
    let on = flags.iter().filter(|(_, on)| *on);
    on.map(|(name, _)| Setting::yes(name))
}

/// A number of items.
fn items(name: &'static str, number: u64) -> Setting {
    match number {
        UNTIL_THE_DEADLINE => Setting::text(name, "until the time is over"),
        _ => Setting::count(name, number),
    }
}

/// Settings of a rate and its arrivals.
fn rate_rows(open_loop: OpenLoop) -> [Setting; 2] {
    let OpenLoop { rate, arrival } = open_loop;
    let text = format!("{rate}/s over all workers");
    [
        Setting::new("rate", text, SettingValue::PerSecond(rate)),
        Setting::text("arrival", arrival.name()),
    ]
}

/// Settings of the per-operation table: its rows, and their length.
fn describe_table(meta: &MetaPlan, threads: u32) -> Vec<Setting> {
    let time = meta.phases.iter().find_map(|phase| phase.deadline);
    vec![
        Setting::text("rows", meta.rows.join(",")),
        match time {
            Some(time) => Setting::time("time", time),
            None => Setting::count("ops", meta.items_per_rank / u64::from(threads.max(1))),
        },
    ]
}

fn describe_meta(meta: &MetaPlan) -> Vec<Setting> {
    let has = |kind: ItemKind| meta.kinds().any(|k| k.info().items == Some(kind));
    let layout = match meta.layout {
        TreeLayout::Unique => "unique",
        TreeLayout::Shared => "shared",
    };
    let mut rows = vec![
        Setting::count("branch", meta.shape.branch),
        Setting::count("depth", meta.shape.depth),
        items("items", meta.shape.items_per_node),
        items("items-per-rank", meta.items_per_rank),
        Setting::text("layout", layout),
        Setting::size("write", meta.write),
        Setting::size("read", meta.read),
    ];
    rows.extend(yes_rows(&[
        ("leaf-only", meta.shape.leaf_only),
        ("fsync", meta.fsync),
        ("random-order", meta.phases.iter().any(|p| p.shuffled)),
        ("files-only", !has(ItemKind::Dir)),
        ("dirs-only", !has(ItemKind::File)),
    ]));
    let usual = PHASES
        .iter()
        .filter(|info| info.by_default && info.items.is_none_or(has))
        .filter(|info| info.in_a_ring() || meta.in_flight.is_none());
    let shown = meta.phases.iter().filter(|p| p.showing != Showing::Untimed);
    let shown: Vec<&PhaseInfo> = shown.map(|phase| phase.kind.info()).collect();
    let is_shown = |kind: PhaseKind| shown.iter().any(|info| info.kind == kind);
    let left_out: Vec<&PhaseInfo> = usual.filter(|info| !is_shown(info.kind)).collect();
    let names = |all: &[&PhaseInfo]| {
        let names: Vec<&str> = all.iter().map(|info| info.name).collect();
        names.join(",")
    };
    if meta.kinds().any(|kind| !kind.info().by_default) || !left_out.is_empty() {
        rows.push(Setting::text("phases", names(&shown)));
    }
    let open_loop = meta.phases.iter().find_map(|phase| phase.open_loop);
    // What --time and --rate leave out, where --phases names nothing.
    let by_time = meta.time.is_some() || open_loop.is_some();
    let of_trees = |info: &&PhaseInfo| info.items.is_none() || info.kind == PhaseKind::DirList;
    if by_time && left_out.iter().all(of_trees) {
        rows.push(Setting::text("left-out", names(&left_out)));
    }
    let deadline = meta.phases.iter().find_map(|phase| phase.deadline);
    let time = meta.time.map(|time| Setting::time("time", time));
    let stonewall = || deadline.map(|deadline| Setting::time("stonewall", deadline));
    rows.extend(time.or_else(stonewall));
    rows.extend(open_loop.into_iter().flat_map(rate_rows));
    rows.extend(in_flight_rows(meta.in_flight));
    if let Location::TestDirs(dirs) = &meta.site {
        rows.push(paths("directories", dirs, "@"));
    }
    rows.extend((meta.loops > 1).then(|| Setting::count("loops", meta.loops)));
    if let (Content::Packet { seed, .. }, true) = (meta.content, meta.write.0 + meta.read.0 > 0) {
        rows.push(Setting::text("data-seed", seed.to_string()));
    }
    let collective = meta.phases.iter().any(|p| p.who == ItemOwner::FirstForAll);
    rows.extend(yes_rows(&[
        ("collective", collective),
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

/// Settings that all jobs share; a job's own options are in its report.
fn describe_jobs(jobs: &JobsPlan) -> Vec<Setting> {
    let all = || jobs.rounds.iter().flatten();
    let join = |texts: Vec<String>| texts.join(", ");
    let mut directories: Vec<String> = all()
        .flat_map(|job| job.files.directories())
        .map(|directory| directory.display().to_string())
        .filter(|name| !name.is_empty())
        .collect();
    directories.dedup();
    let mut rows = vec![
        Setting::text("jobs", join(all().map(|job| job.name.clone()).collect())),
        Setting::count("threads", jobs.workers()),
    ];
    let mut engines: Vec<String> = all().map(|job| job.engine.clone()).collect();
    engines.dedup();
    rows.push(Setting::text("engine", join(engines)));
    if !directories.is_empty() {
        rows.push(Setting::text("directories", join(directories)));
    }
    rows.extend(journal_row(jobs.ack_journal.as_ref()));
    if !jobs.global_options.is_empty() {
        let options = jobs.global_options.iter();
        let typed = options.map(|(name, value)| format!("{name}={value}"));
        rows.push(Setting::text("options", join(typed.collect())));
    }
    let mut of_jobs: Vec<Vec<String>> = Vec::new();
    for job in all() {
        let report = job.report.iter();
        let options = report.flat_map(|report| &report.options);
        let mut words = vec![format!("[{}]", job.name)];
        words.extend(options.map(|(name, value)| format!("{name}={value}")));
        // They are the same in each iteration.
        if words.len() > 1 && !of_jobs.contains(&words) {
            of_jobs.push(words);
        }
    }
    if !of_jobs.is_empty() {
        rows.push(Setting::text("job-options", join(of_jobs.concat())));
    }
    rows
}

fn describe_set(set: &FileSet) -> String {
    let mut text = format!("{}: {} names", set.name, set.number);
    if set.kind == SetKind::Files {
        text.push_str(&format!(" of {}", set.sizes.describe()));
    }
    if let Some(width) = set.width {
        text.push_str(&format!(", {width} in a directory"));
    }
    format!("{text}, {}% present at the start", set.prepared)
}

fn describe_mix(mix: &MixPlan) -> Vec<Setting> {
    let mut rows = vec![Setting::text("mix", &*mix.name)];
    // One setting for all, because each name occurs only once.
    let sets = mix.sets.iter().map(describe_set).collect::<Vec<_>>();
    rows.push(Setting::text("sets", sets.join("; ")));
    let role = |role: &Role| match role.name.is_empty() {
        true => role.text.clone(),
        false => format!("{} x {}: {}", role.threads, role.name, role.text),
    };
    let roles = mix.roles.iter().map(role).collect::<Vec<_>>();
    rows.push(Setting::text("workers", roles.join(" | ")));
    let layout = if mix.shared { "shared" } else { "unique" };
    rows.push(Setting::text("layout", layout));
    if mix.scale != Scale::WHOLE {
        rows.push(Setting::text("scale", mix.scale.files.to_string()));
        rows.push(Setting::text("scale-size", mix.scale.size.to_string()));
    }
    rows.extend(mix.time.map(|time| Setting::time("time", time)));
    rows.extend(mix.rounds.map(|rounds| Setting::count("rounds", rounds)));
    rows.extend((mix.think.0 > 0).then(|| Setting::time("think", mix.think)));
    rows.extend(mix.open_loop.into_iter().flat_map(rate_rows));
    rows.extend(in_flight_rows(mix.in_flight));
    rows
}

/// Settings of operations on names that a ring performs.
fn in_flight_rows(depth: Option<u32>) -> Vec<Setting> {
    let Some(depth) = depth else {
        return Vec::new();
    };
    let engine = Setting::text("engine", "io_uring");
    vec![engine, Setting::count("iodepth", depth)]
}

fn describe_find(find: &Find) -> Vec<Setting> {
    let newer = find.newer.as_ref();
    let newer = newer.map(|file| Setting::text("newer", file.display().to_string()));
    let size = find.size.map(|size| {
        let sign = match size.than {
            Than::Exactly => "",
            Than::More => "+",
            Than::Less => "-",
        };
        Setting::text(
            "size",
            format!("{sign}{} x {} bytes", size.units, size.unit),
        )
    });
    let name = find.name.as_deref();
    let name = name.map(|name| Setting::text("name", name.to_string_lossy()));
    [newer, size, name].into_iter().flatten().collect()
}

fn describe_replay(replay: &ReplayPlan) -> Vec<Setting> {
    let mut rows = vec![paths("traces", &replay.traces, ",")];
    rows.extend(
        replay
            .format
            .map(|format| Setting::text("format", format.name())),
    );
    rows.push(match replay.pace {
        Pace::Recorded(speed) => Setting::text("time-scale", speed.to_string()),
        Pace::AsFastAsPossible => Setting::yes("as-fast-as-possible"),
    });
    rows.extend((replay.copies > 1).then(|| Setting::count("copies", replay.copies)));
    if let Some(below) = replay.names().directory() {
        rows.push(Setting::text("below", String::from_utf8_lossy(&below)));
    }
    rows
}

fn describe_io(io: &IoPlan) -> Vec<Setting> {
    let JobPlan {
        pattern,
        pace,
        buffers,
        ..
    } = &io.job;
    let phases: Vec<&str> = io.phases.iter().map(|rw| rw.name()).collect();
    let mut rows = vec![Setting::text("rw", phases.join(",")), sizes(io.sizes())];
    match io.job.small {
        Some(small) => {
            rows.push(Setting::count("files", small.files));
            rows.push(Setting::size("file-size", small.size));
        }
        None => rows.push(Setting::size("size", io.size)),
    }
    let layout = match io.layout {
        IoLayout::PerWorker => "per-worker",
        IoLayout::SharedSegmented => "shared, segmented",
        IoLayout::SharedInterleaved => "shared, interleaved",
    };
    rows.push(Setting::text("layout", layout));
    rows.push(Setting::text("engine", io.job.engine.clone()));
    rows.push(Setting::count("depth", io.job.depth));
    let fsync = match io.fsync {
        FsyncRule::End if io.job.small.is_some() => "each file".to_owned(),
        FsyncRule::End => "end".to_owned(),
        FsyncRule::Never => "never".to_owned(),
        FsyncRule::Every(n) => format!("every={n}"),
        FsyncRule::Close => "close".to_owned(),
    };
    if io.phases.iter().any(|rw| rw.writes()) {
        rows.push(Setting::text("fsync", fsync));
    }
    if io.phases.iter().any(|rw| rw.reads() && rw.writes()) {
        rows.push(Setting::percent("mix", pattern.mix_read, " reads"));
    }
    rows.extend(
        distribution(&pattern.distribution).map(|text| Setting::text("random-distribution", text)),
    );
    rows.extend(yes_rows(&[
        ("direct", io.job.direct),
        ("verify", io.job.verify.is_some()),
    ]));
    let threads = io.job.verify.as_ref().map_or(0, |verify| verify.threads);
    rows.extend((threads > 0).then(|| Setting::count("verify-threads", threads)));
    rows.extend(journal_row(io.ack_journal.as_ref()));
    let compress = match buffers.content {
        BufferContent::Random { percent, .. } => percent,
        BufferContent::Zero | BufferContent::Pattern(_) => 0,
    };
    let dedupe = buffers.dedupe_percent;
    let percents = [("compress", compress), ("dedupe", dedupe)];
    let percents = percents.into_iter().filter(|(_, percent)| *percent > 0);
    rows.extend(percents.map(|(name, percent)| Setting::percent(name, percent, "")));
    let refill = || Setting::new("refill", "no", SettingValue::Off);
    rows.extend((!buffers.refill).then(refill));
    rows.extend(pace.runtime.map(|time| Setting::time("time", time)));
    if let Some(steady) = pace.steady {
        let Criterion { limit, .. } = steady.criterion;
        let (name, sign) = (steady.criterion.name(), steady.criterion.sign());
        rows.extend([
            Setting::text("steadystate", format!("{name}:{limit}{sign}")),
            Setting::time("ss-dur", steady.duration),
            Setting::time("ss-interval", steady.every),
        ]);
    }
    let steady_ramp = pace.steady.map_or(Nanos(0), |steady| steady.ramp);
    let times = [
        ("ss-ramp", steady_ramp),
        ("ramp", pace.ramp),
        ("think", pace.think),
    ];
    let times = times.into_iter().filter(|(_, time)| time.0 > 0);
    rows.extend(times.map(|(name, time)| Setting::time(name, time)));
    rows.extend(pace.together.into_iter().flat_map(rate_rows));
    rows
}

/// The setting of block sizes, with the name and in the form of their option.
fn sizes(sizes: &BlockSizes) -> Setting {
    match sizes {
        BlockSizes::Fixed(size) => Setting::size("bs", Bytes(*size)),
        BlockSizes::Range { min, max } | BlockSizes::Unaligned { min, max } => {
            Setting::text("bs-range", format!("{}-{}", Bytes(*min), Bytes(*max)))
        }
        BlockSizes::Split(parts) => {
            let part = |(size, percent): &(u64, u32)| format!("{}/{percent}", Bytes(*size));
            let parts: Vec<String> = parts.iter().map(part).collect();
            Setting::text("bs-split", parts.join(":"))
        }
    }
}

/// A distribution in the form of its option; `None` for the default.
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
