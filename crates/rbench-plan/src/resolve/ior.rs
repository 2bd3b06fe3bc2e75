//! Checks IOR's options and translates them into jobs: a round for each write, write check and
//! read of each repetition.
//!
//! docs/reference/ior.md describes the options. Sentences name IOR's own letters.

use std::path::{Path, PathBuf};

use rbench_core::Nanos;
use rbench_core::random::key;

use super::{Facts, PlanError};
use crate::jobs::{
    BlockSizes, Carries, ContinueOn, Course, Directions, Each, Errors, Fallocate, FileNames, Files,
    Framing, JobPlan, JobsPlan, Pace, Pattern, Sequel, Standing, Syncing, Verify, Whole,
};
use crate::meta::Packet;
use crate::spec::{Common, Ior, Segments};

const MIB: u64 = 1 << 20;

/// Most bytes of one call.
const TRANSFER_MAX: u64 = 1 << 30;

/// Alignment of offsets and lengths with O_DIRECT.
const SECTOR: u64 = 512;

/// The number of ranks that take part: `-N`.
///
/// # Errors
/// A sentence that names the option.
pub(super) fn tasks(options: &Ior, ranks: u32) -> Result<u32, PlanError> {
    match options.tasks {
        None | Some(0) => Ok(ranks),
        Some(tasks) if tasks > ranks => {
            refuse!("-N {tasks} is more than the number of ranks that were started, {ranks}")
        }
        Some(tasks) => Ok(tasks),
    }
}

impl Ior {
    /// True if no operation was named, so that it writes and reads.
    fn all(&self) -> bool {
        !(self.write || self.read || self.check_write || self.check_read)
    }

    /// True if the run writes files.
    pub fn writes(&self) -> bool {
        self.write || self.all()
    }

    fn reads(&self) -> bool {
        self.read || self.check_read || self.all()
    }

    /// The file in which an earlier run recorded the transfers of each rank.
    pub fn status_to_read(&self) -> Option<&PathBuf> {
        self.status_file.as_ref().filter(|_| !self.writes())
    }

    /// The file in which this run records the transfers of each rank.
    pub fn status_to_write(&self) -> Option<&PathBuf> {
        self.status_file.as_ref().filter(|_| self.writes())
    }

    /// The files of `-o`.
    pub fn files(&self) -> Vec<PathBuf> {
        match self.files.is_empty() {
            true => vec![PathBuf::from("testFile")],
            false => self.files.clone(),
        }
    }

    /// Bytes of a transfer.
    pub fn transfer(&self) -> u64 {
        self.transfer.map_or(MIB / 4, |size| size.0)
    }

    /// Bytes of a block.
    pub fn block(&self) -> u64 {
        self.block.map_or(MIB, |size| size.0)
    }
}

/// Extent that all jobs share.
struct Extent {
    transfer: u64,
    block: u64,
    /// Bytes of each rank; `None`: the length of the files.
    each: Option<u64>,
}

/// Operation of a job.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Does {
    Write,
    CheckWrite,
    Read,
}

pub(super) fn resolve(
    options: &Ior,
    facts: &Facts,
    common: &Common,
    notes: &mut Vec<String>,
) -> Result<JobsPlan, PlanError> {
    let ranks = facts.ranks();
    let extent = extent(options, ranks)?;
    exclusions(options, &extent)?;
    let transfers_max = transfers_max(options, facts)?;
    let repetitions = options.repetitions.unwrap_or(1);
    let wanted = [
        (options.writes(), Does::Write),
        (options.check_write, Does::CheckWrite),
        (options.reads(), Does::Read),
    ];
    let all: Vec<Does> = wanted
        .into_iter()
        .filter_map(|(wanted, does)| wanted.then_some(does))
        .collect();
    if options.reorder && options.reorder_random {
        refuse!("-C and -Z cannot be combined: the shift is either constant or random");
    }
    if options.reorder_seed.is_some() && !options.reorder_random {
        notes.push("-X has no effect without -Z".to_owned());
    }
    if options.task_offset.is_some() && !options.reorder {
        notes.push("-Q has no effect without -C".to_owned());
    }
    let seed = key(&[common.seed.unwrap_or(facts.seed)]);
    let mut rounds = Vec::new();
    for repetition in 0..repetitions {
        for (nth, does) in all.iter().enumerate() {
            let maker = Maker {
                options,
                extent: &extent,
                seed: match options.random_seed {
                    Some(given) => key(&[u64::from(given as u32)]),
                    None => key(&[seed, u64::from(repetition), nth as u64]),
                },
                ranks,
                data_seed: options.data_seed.unwrap_or(facts.seed as u32 as i32),
                ahead: ahead(options, *does, facts),
                drawn: drawn(options, *does, seed, repetition),
                transfers_max,
                repetition,
                last: nth + 1 == all.len(),
                first_of_all: rounds.is_empty(),
            };
            rounds.push(vec![maker.job(*does)?]);
        }
    }
    Ok(JobsPlan {
        rounds,
        iterations: repetitions,
        ack_journal: None,
        global_options: told(options, &extent),
        whole: Whole {
            time_max: options
                .minutes_max
                .filter(|minutes| *minutes > 0)
                .map(|minutes| Nanos(minutes.saturating_mul(60 * Nanos::SECOND.0))),
            ..Whole::default()
        },
    })
}

/// The options for the amount of data, by their long names.
fn told(options: &Ior, extent: &Extent) -> Vec<(String, String)> {
    let segments = extent.each.map(|each| (each / extent.block).to_string());
    let mut all = vec![
        ("blockSize", extent.block.to_string()),
        ("transferSize", extent.transfer.to_string()),
        ("segmentCount", segments.unwrap_or_else(|| "-1".to_owned())),
    ];
    let switches = [
        ("filePerProc", options.file_per_process),
        ("fsync", options.fsync),
        ("fsyncPerWrite", options.fsync_each),
        ("reorderTasks", options.reorder),
        ("reorderTasksRandom", options.reorder_random),
        ("intraTestBarriers", options.barriers),
        ("useO_DIRECT", options.direct),
        ("stoneWallingWearOut", options.wear_out),
    ];
    let on = switches.into_iter().filter(|(_, on)| *on);
    all.extend(on.map(|(name, _)| (name, "1".to_owned())));
    if options.random > 0 {
        all.push(("randomOffset", options.random.to_string()));
    }
    if let Some(deadline) = options.deadline {
        all.push(("deadlineForStonewalling", deadline.to_string()));
    }
    let all = all.into_iter();
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

fn extent(options: &Ior, ranks: u32) -> Result<Extent, PlanError> {
    let (transfer, block) = (options.transfer(), options.block());
    for (flag, size) in [("-t", transfer), ("-b", block)] {
        refuse_if! {
            size == 0 => "{flag} must be at least 1 byte";
            options.direct && !size.is_multiple_of(SECTOR) =>
                "--posix.odirect needs {flag} to be a multiple of {SECTOR}, and {size} is not";
        }
    }
    refuse_if! {
        !block.is_multiple_of(transfer) => "-b {block} is not a multiple of -t {transfer}";
        transfer > TRANSFER_MAX => "-t {transfer} is more than the 1GiB that one call moves";
    }
    let each = match options.segments.unwrap_or(Segments::Count(1)) {
        Segments::Count(0) => {
            refuse!("-s must be at least 1, or -1 for the number of segments in the files")
        }
        Segments::Count(segments) => Some(segments.saturating_mul(block)),
        Segments::AsInFiles if options.writes() || !options.file_per_process => {
            refuse!("-s -1 reads files up to their end: it needs -F, and no phase that writes")
        }
        Segments::AsInFiles => None,
    };
    if each.is_some_and(|each| each.saturating_mul(u64::from(ranks)) > 1 << 62) {
        refuse!("-b and -s give all ranks over 2^62 bytes");
    }
    Ok(Extent {
        transfer,
        block,
        each,
    })
}

fn exclusions(options: &Ior, extent: &Extent) -> Result<(), PlanError> {
    refuse_if! {
        options.files.iter().any(|file| file.to_str().is_none_or(str::is_empty)) =>
            "-o must be a file name in UTF-8";
        options.files.len() > 1 && !options.file_per_process => "-o with several files needs -F";
    }
    let deadline = options.deadline.filter(|time| time.0 > 0);
    refuse_if! {
        options.wear_out && deadline.is_none() => "stoneWallingWearOut needs -D";
        options.time_min.is_some() && (deadline.is_some() || options.writes()) =>
            "minTimeDuration repeats the reads: it needs -r alone, and no -D";
    }
    let behind = options.reads() || options.check_write;
    if options.writes() && deadline.is_some() && !options.wear_out {
        refuse_if! {
            behind =>
                "-D without -O stoneWallingWearOut=1 makes ranks write different amounts: -r, -W and -R \
                 would read past the written data";
            options.status_file.is_some() =>
                "stoneWallingStatusFile needs -O stoneWallingWearOut=1 when -D ends the writes";
        }
    }
    let checks = options.check_read || options.check_write;
    refuse_if! {
        checks && !options.writes() && options.data_seed.is_none() =>
            "-W and -R on files of an earlier run need its -G";
        options.fsync_each && !options.writes() => "-Y needs -w: it syncs each write";
    }
    let operations = extent.each.map_or(1, |each| each / extent.transfer);
    refuse_if! {
        options.random > 1 && checks =>
            "-z -z leaves some blocks out and visits others again: -W and -R cannot check them";
        options.random_seed.is_some() && options.random == 0 => "--random-offset-seed needs -z";
        options.random == 1 && operations > 1 << 40 =>
            "-z supports at most 2^40 transfers per rank";
    }
    Ok(())
}

/// Most transfers of each rank that reads, as recorded by an earlier run's stonewall.
fn transfers_max(options: &Ior, facts: &Facts) -> Result<Option<u64>, PlanError> {
    let Some(file) = options.status_to_read() else {
        return Ok(options.transfers_max);
    };
    match facts.stonewalled {
        Some(0) => refuse!(
            "stoneWallingStatusFile {}: it records no transfers",
            file.display()
        ),
        Some(transfers) => Ok(Some(
            options.transfers_max.unwrap_or(u64::MAX).min(transfers),
        )),
        None => refuse!("stoneWallingStatusFile {} does not exist", file.display()),
    }
}

/// Distance in ranks to the owner of a job's files, like in IOR. With `-C` it is `-Q` nodes, in a
/// write check two. Ranks that are placed in turn count as nodes.
fn ahead(options: &Ior, does: Does, facts: &Facts) -> u32 {
    if !options.reorder {
        return 0;
    }
    let (ranks, hosts) = (facts.ranks(), facts.hosts());
    let unit = facts.on_first_host().unwrap_or(1);
    let nodes = match does {
        Does::Write => 0,
        Does::CheckWrite => 2,
        Does::Read => options.task_offset.unwrap_or(1).min(hosts - 1),
    };
    (u64::from(nodes) * u64::from(unit) % u64::from(ranks.max(1))) as u32
}

/// Seed for drawing the ranks to read from, with `-Z`. A negative seed changes in each
/// repetition, like in IOR.
fn drawn(options: &Ior, does: Does, seed: u64, repetition: u32) -> Option<u64> {
    let given = match options.reorder_seed {
        Some(given) if given < 0 => u64::from(given.unsigned_abs()) + u64::from(repetition),
        Some(given) => u64::from(given.unsigned_abs()),
        None => key(&[seed, u64::from(repetition)]),
    };
    (options.reorder_random && does == Does::Read).then_some(given)
}

/// Creates jobs.
struct Maker<'m> {
    options: &'m Ior,
    extent: &'m Extent,
    seed: u64,
    ranks: u32,
    data_seed: i32,
    ahead: u32,
    drawn: Option<u64>,
    transfers_max: Option<u64>,
    repetition: u32,
    /// True if it is the last one of its repetition.
    last: bool,
    first_of_all: bool,
}

impl Maker<'_> {
    fn job(&self, does: Does) -> Result<JobPlan, PlanError> {
        let options = self.options;
        let write = does == Does::Write;
        let checks = does != Does::Read || options.check_read;
        let deadline = options.deadline.filter(|time| time.0 > 0);
        // A check reads everything that was written.
        let deadline = deadline.filter(|_| does != Does::CheckWrite);
        let time_min = options.time_min.filter(|time| time.0 > 0);
        let name = match does {
            Does::Write => "write",
            Does::CheckWrite => "check-write",
            Does::Read => "read",
        };
        Ok(JobPlan {
            direct: options.direct,
            framing: match options.barriers {
                true => Framing::Apart,
                false => Framing::Timed,
            },
            syncing: Syncing {
                fsync: u64::from(write && options.fsync_each),
                end_fsync: write && (options.fsync || options.fsync_each),
                close: true,
                ..Syncing::default()
            },
            verify: checks.then(|| Verify {
                carries: Carries::Packet {
                    packet: options.packet.unwrap_or(Packet::Unique),
                    seed: self.data_seed,
                },
                ..Verify::stamped(self.extent.transfer)
            }),
            pace: Pace {
                runtime: deadline,
                wear_out: options.wear_out && deadline.is_some(),
                time_min,
                loops: time_min.map_or(1, |_| u64::MAX),
                number_ios: self.transfers(write),
                as_many_as_written: !write && options.writes(),
                pause: options
                    .delay
                    .filter(|_| !self.first_of_all)
                    .unwrap_or_default(),
                think_by_issue: true,
                ..Pace::default()
            },
            // Wrong data is counted; a failed transfer ends the rank's part.
            errors: Errors::End(ContinueOn {
                verify: true,
                ..ContinueOn::default()
            }),
            ..JobPlan::new(name, self.pattern(write), self.files(write)?)
        })
    }

    /// The most transfers of a rank; of blocks at random places, those that its part has.
    fn transfers(&self, write: bool) -> Option<u64> {
        let most = self.transfers_max.filter(|_| !write);
        let of_part = self.extent.each.filter(|_| self.options.random > 1);
        let of_part = of_part.map(|each| each / self.extent.transfer);
        most.into_iter().chain(of_part).min()
    }

    fn pattern(&self, write: bool) -> Pattern {
        // Transfers of a block follow each other, and blocks are drawn from the whole file.
        let blocks = self.options.random > 1;
        let length = self.extent.block / self.extent.transfer;
        let directions = Directions {
            read: !write,
            write,
            trim: false,
            random: self.options.random > 0,
        };
        let sizes = BlockSizes::Fixed(self.extent.transfer);
        let mut pattern = Pattern::new(directions, sizes, self.seed);
        pattern.repeats = blocks;
        if blocks {
            pattern.align = Each::same(self.extent.block);
        }
        if blocks && length > 1 {
            pattern.course = Course {
                sequel: Sequel::Run {
                    length,
                    identical: false,
                },
                ..Course::default()
            };
        }
        pattern
    }

    fn files(&self, write: bool) -> Result<Files, PlanError> {
        let options = self.options;
        let end = match options.multi_file {
            true => format!(".{}", self.repetition),
            false => String::new(),
        };
        let (directories, names) = names(options, &end)?;
        let mut directories = directories.into_iter();
        let shared = !options.file_per_process;
        // With blocks at random offsets, the file has its length before the first is written.
        let blocks = options.random > 1;
        let everywhere = shared && blocks;
        let ranks = if everywhere { self.ranks } else { 1 };
        let each = self.extent.each.unwrap_or(0) * u64::from(ranks);
        // The next repetition creates it again.
        let again = !options.multi_file && self.repetition + 1 < options.repetitions.unwrap_or(1);
        let makes = options.writes() && !options.use_existing;
        let removes = options.writes() && (!options.keep || again && makes);
        let directory = directories.next().unwrap_or_default();
        Ok(Files {
            more_directories: directories.collect(),
            ahead: self.ahead,
            drawn: self.drawn,
            interleave: match shared && !everywhere {
                true => self.extent.block,
                false => 0,
            },
            fallocate: match blocks && write {
                true => Fallocate::Truncate,
                false => Fallocate::None,
            },
            may_create: write,
            create_fsync: false,
            // A file that all share is made by one, before all open it.
            create_on_open: !(write && (shared || blocks)),
            unlink: removes && self.last,
            standing: Standing {
                must_be_new: write && makes,
                must_be_there: !options.writes(),
                temporary: removes,
            },
            ..Files::new(directory, names, each)
        })
    }
}

/// The directories of the files of `-o`, the first one first, and the names of the workers'
/// files.
fn names(options: &Ior, end: &str) -> Result<(Vec<PathBuf>, FileNames), PlanError> {
    let files = options.files();
    let mut directories: Vec<PathBuf> = Vec::new();
    for file in &files {
        let Some(name) = file.file_name() else {
            refuse!("-o {} is not a file name", file.display());
        };
        if name.len() + ".00000000.4294967295".len() > 255 {
            refuse!("-o {}: the name is too long", file.display());
        }
        let directory = file.parent().unwrap_or(Path::new("")).to_owned();
        if !directories.contains(&directory) {
            directories.push(directory);
        }
    }
    let names = match (options.file_per_process, files.first()) {
        (false, Some(file)) => {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            FileNames::Given(vec![format!("{name}{end}")])
        }
        _ => FileNames::Numbered {
            names: files,
            end: end.to_owned(),
        },
    };
    Ok((directories, names))
}

#[cfg(test)]
mod tests;
