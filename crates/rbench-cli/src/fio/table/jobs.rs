//! Options of jobs: on the command line and in job files.

use std::path::PathBuf;

use rbench_plan::jobs::{Advised, Directions, Fallocate, FileLock, FileService};
use rbench_plan::spec::fio::Settings;

use super::{Given, text};
use crate::fio::listing;
use rbench_plan::given::one_of;

options! {
    /// Jobs, and the order in which they run.
    JOBS: Job () {
    name: starts_job("NAME"), "Start a job; options before the first one apply to all jobs";
    description: accept(of("TEXT", text)), "Description of the job, for the report";
    numjobs => plan.numjobs: number = "1", "Workers (threads) of the job on each rank";
    stonewall | wait_for_previous: switch, "Start when all jobs before this one have ended";
    wait_for: of("NAME", text), "Start when the named job and all running beside it have ended";
    new_group: switch, "Start a new group in the report";
    thread | threads: accept(switch), "Accepted: workers are always threads";
    kb_base: base("1024|1000") = "1024",
        "1024: k is 1024 and kib 1000; 1000: k is 1000 and kib 1024";
}}

options! {
    /// Files.
    FILES: Job () {
    directory: set("DIR[:DIR]", directories) = "the working directory",
        "Existing directory for the files; several are used in turn";
    filename: set("LIST", filenames), "File names, separated by colons, shared by all workers";
    opendir: set("DIR", opendir), "Use all regular files in and below a directory, like filename";
    filename_format: of("TEXT", text) = "$jobname.$jobnum.$filenum",
        "Format of file names, with $jobname, $jobnum and $filenum";
    nrfiles | nr_files: number = "1", "Files per worker";
    openfiles: number = "all", "Maximum number of open files per worker";
    file_service_type => plan.files.service: of("HOW", service) = "roundrobin",
        "File order: roundrobin, random (:N operations each), sequential";
    size: of("SIZE|PERCENT%", Given::extent),
        "Bytes per worker, divided among its files; PERCENT%: of each file";
    filesize: of("SIZE[-SIZE]", Given::size_or_range), "Bytes per file, or a range";
    io_size | io_limit: of("SIZE|PERCENT%", Given::extent),
        "Bytes to transfer, if not the size of the files";
    offset | fileoffset: of("SIZE|PERCENT%", Given::extent) = "0",
        "Offset in each file where the job starts (bytes)";
    offset_increment: of("SIZE|PERCENT%", Given::extent) = "0",
        "Distance between the start offsets of successive workers (bytes)";
    offset_align: size = "the smallest block",
        "Round offsets given in percent up to a multiple of this (bytes)";
    file_append: flag = "0", "Write after the end of the files";
    overwrite: flag = "0", "Lay out files before writing them";
    create_serialize: accept(flag), "Accepted: files are laid out in parallel";
    create_fsync => plan.files.create_fsync: flag = "1", "Call fsync on laid-out files";
    allow_file_create => plan.files.may_create: flag = "1",
        "Create missing files; 0: all files must exist";
    unique_filename: accept(flag), "Accepted: rbench has no network clients to distinguish";
    filetype: accept(words("KIND", "none" = (), "file" = (), "block" = (), "char" = ())),
        "Accepted: none, file, block, char; rbench detects the type";
    create_on_open => plan.files.create_on_open: flag = "0", "Create files when they are opened";
    create_only => plan.files.create_only: flag = "0", "Lay out files and do nothing else";
    fallocate => plan.files.fallocate: words("HOW", "none" = Fallocate::None, "0" = Fallocate::None,
            "native" = Fallocate::Native, "posix" = Fallocate::Posix, "1" = Fallocate::Posix,
            "keep" = Fallocate::Keep, "truncate" = Fallocate::Truncate) = "native",
        "How to reserve blocks: none, native, posix, keep, truncate";
    pre_read => plan.files.pre_read: flag = "0", "Read all files once before the run, not timed";
    invalidate => plan.files.invalidate: flag = "1",
        "Drop the files' pages from this host's page cache before each pass";
    fadvise_hint => plan.files.advice: words("0|1", "0" = Advised::Nobody,
            "1" = Advised::Kernel(None), "random" = Advised::Kernel(Some(true)),
            "sequential" = Advised::Kernel(Some(false))) = "1",
        "Tell the kernel whether offsets are random or sequential";
    unlink => plan.files.unlink: flag = "0", "Remove the files at the end";
    unlink_each_loop => plan.files.unlink_each_loop: flag = "0",
        "Remove the files before each repetition (loops)";
    fill_device | fill_fs => plan.files.fill: flag = "0", "Write until the file system is full";
    lockfile => plan.files.lock: words("HOW", "none" = FileLock::None,
            "exclusive" = FileLock::Exclusive, "readwrite" = FileLock::ReadWrite) = "none",
        "Lock the file for each operation: none, exclusive, readwrite";
    allow_mounted_write => plan.files.allow_mounted_write: flag = "0",
        "Write even to devices that are mounted or otherwise in use";
}}

options! {
    /// The offsets of operations.
    PATTERN: Job () {
    rw | readwrite: set("WHAT", rw) = "read",
        "read, write, rw, trim, trimwrite, also rand...; :N: see rw_sequencer";
    rw_sequencer => rw_identical: words("HOW", "sequential" = false, "identical" = true) = "sequential",
        "With rw=rand...:N, offsets after a random one: sequential, identical";
    rwmixread => plan.pattern.mix_read: percent = "50", "Percentage of reads in rw and randrw";
    rwmixwrite => plan.pattern.mix_read:
        of("PERCENT", |g| g.percent().map(|writes| 100 - writes)) = "50",
        "Percentage of writes in rw and randrw";
    bs | blocksize: each(size(1)) = "4k", "Block size of reads, writes, trims (bytes)";
    bsrange | blocksize_range: each(of("SIZE-SIZE", Given::range)),
        "Random block sizes in this range, multiples of the smallest";
    bssplit: each(of("SIZE/PERCENT:...", Given::splits)),
        "Block sizes and the percentage of operations of each";
    bs_unaligned | blocksize_unaligned: switch,
        "Allow any number of bytes in bsrange; blocks may repeat";
    bs_is_seq_rand: switch, "Values of bs are for sequential,random instead of reads,writes";
    ba | blockalign => blockalign: each(size(1)) = "the smallest block",
        "Alignment of random offsets (bytes)";
    random_distribution => plan.pattern.distribution: of("HOW", Given::distribution) = "random",
        "random, zipf:T, pareto:P, normal:D, zoned:A/S:..., sequence:N,...";
    random_sequence_stride: flag = "0", "Count blocks of a sequence from the end of its last round";
    random_generator => lfsr: words("NAME", "tausworthe" = false, "tausworthe64" = false,
            "lfsr" = true) = "tausworthe",
        "tausworthe, tausworthe64, lfsr (always covers every block once)";
    zonemode => strided: of("HOW", zones) = "none",
        "none; strided: zonesize bytes in a zone, then the next zone";
    zonesize: size, "Bytes to move in a zone";
    zonerange: size = "zonesize", "Length of a zone (bytes)";
    zoneskip: size = "0", "Bytes between zones";
    percentage_random: each(percent) = "100", "Percentage of random operations in a random job";
    norandommap: switch, "Allow blocks to repeat before all have been covered";
    softrandommap: accept(switch), "Accepted: covering every block once needs no memory";
    allrandrepeat: flag = "0", "Repeat all random choices, whatever randrepeat says";
    randrepeat: flag = "1", "Use the same offsets in every run";
    randseed: number = "0x89", "Seed of all random choices";
}}
/// Adds directories; empty names between colons are ignored, like in fio.
fn directories(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let names = g.names().into_iter().filter(|name| !name.is_empty());
    let mut names = names.map(PathBuf::from);
    let files = &mut s.plan.files;
    files.directory = names.next().ok_or("it must not be empty")?;
    files.more_directories = names.collect();
    Ok(())
}

/// Adds file names, each in the directory given before it. fio's `filename` also creates its file
/// entries at once.
fn filenames(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let names = g.names();
    if names.iter().any(String::is_empty) {
        return Err("a name must not be empty".to_owned());
    }
    let directory = s.plan.files.directory.clone();
    let all = s.filename.get_or_insert_default();
    for name in names {
        let mut known = all.iter().zip(&s.filename_directories);
        if !known.any(|known| known == (&name, &directory)) {
            all.push(name);
            s.filename_directories.push(directory.clone());
        }
    }
    Ok(())
}

/// Adds the files of a directory by name.
fn opendir(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let directory = s.plan.files.directory.clone();
    let names = match g.files {
        // The caller lists the directory before the next reading.
        None => return Ok(()),
        Some(files) => listing::read(g.text, files)?,
    };
    let all = s.filename.get_or_insert_default();
    s.filename_directories
        .resize(all.len() + names.len(), directory);
    all.extend(names);
    Ok(())
}

fn service(g: Given<'_>) -> Result<FileService, String> {
    let (word, number) = match g.text.split_once(':') {
        Some((word, number)) => (word, Some(number)),
        None => (g.text, None),
    };
    let each = || match number {
        Some(text) => Given { text, ..g }.count(1),
        None => Ok(1),
    };
    match (word, number) {
        ("roundrobin", _) => each().map(FileService::RoundRobin),
        ("random", _) => each().map(FileService::Random),
        ("sequential", None) => Ok(FileService::Sequential),
        ("sequential", Some(_)) => {
            Err("sequential takes no number: each file is finished before the next".to_owned())
        }
        ("zipf" | "pareto" | "normal" | "gauss", _) => Err(format!(
            "{word} is not supported: use roundrobin, random or sequential"
        )),
        _ => Err(format!(
            "'{word}' is not one of roundrobin, random, sequential"
        )),
    }
}

fn zones(g: Given<'_>) -> Result<bool, String> {
    match g.text {
        "zbd" => Err("zbd is not supported: a mounted file system has no zones".to_owned()),
        text => one_of(text, &[("none", false), ("strided", true)]),
    }
}

/// The direction, and the number after it.
fn rw(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let (word, number) = match g.text.split_once(':') {
        Some((word, number)) => (word, Some(number)),
        None => (g.text, None),
    };
    use Directions as D;
    let words = [
        ("read", D::READ),
        ("write", D::WRITE),
        ("randread", D::READ.at_random()),
        ("randwrite", D::WRITE.at_random()),
        ("rw", D::MIX),
        ("readwrite", D::MIX),
        ("randrw", D::MIX.at_random()),
        ("trim", D::TRIM),
        ("randtrim", D::TRIM.at_random()),
        ("trimwrite", D::TRIM_WRITE),
        ("randtrimwrite", D::TRIM_WRITE.at_random()),
    ];
    let directions = one_of(word, &words)?;
    let count = |text: &str| {
        let (sign, digits) = match text.strip_prefix('-') {
            Some(digits) => (-1, digits),
            None => (1, text),
        };
        if directions.random && !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(format!("'{text}' is not a number of operations"));
        }
        Ok(sign * Given { text: digits, ..g }.count::<i64>(0)?)
    };
    s.rw_number = number.map(count).transpose()?;
    s.rw = Some(directions);
    Ok(())
}
