//! Options of jobs: on the command line and in job files.

use std::path::PathBuf;

use rbench_plan::jobs::{Advised, Directions, Fallocate, FileLock, FileService};
use rbench_plan::spec::fio::Settings;

use super::{Does, Given, Opt, Takes, put, put_each, text};
use crate::fio::listing;
use crate::given::one_of;

/// Jobs, and the order in which they run.
pub const JOBS: &[Opt] = &[
    Opt {
        name: "name",
        aliases: &[],
        takes: Takes::Value("NAME"),
        default: "",
        help: "Start a job; options before the first one apply to all jobs",
        does: Does::Name,
    },
    Opt::job(
        "description",
        "TEXT",
        "Description of the job, for the report",
        |_, g| text(g).map(drop),
    ),
    Opt::job(
        "numjobs",
        "N",
        "Workers (threads) of the job on each rank",
        |s, g| put(&mut s.numjobs, g.count(0)),
    )
    .default("1"),
    Opt::switch(
        "stonewall",
        "Start when all jobs before this one have ended",
        |s, g| put(&mut s.stonewall, g.flag()),
    )
    .or(&["wait_for_previous"]),
    Opt::job(
        "wait_for",
        "NAME",
        "Start when the named job and all running beside it have ended",
        |s, g| put(&mut s.wait_for, text(g)),
    ),
    Opt::switch("new_group", "Start a new group in the report", |s, g| {
        put(&mut s.new_group, g.flag())
    }),
    Opt::switch("thread", "Accepted: workers are always threads", |_, g| {
        g.flag().map(drop)
    })
    .or(&["threads"]),
    Opt {
        name: "kb_base",
        aliases: &[],
        takes: Takes::Value("1024|1000"),
        default: "1024",
        help: "1024: k is 1024 and kib 1000; 1000: k is 1000 and kib 1024",
        does: Does::Base,
    },
];

/// Files.
pub const FILES: &[Opt] = &[
    Opt::job(
        "directory",
        "DIR[:DIR]",
        "Existing directory for the files; several are used in turn",
        directories,
    )
    .default("the working directory"),
    Opt::job(
        "filename",
        "LIST",
        "File names, separated by colons, shared by all workers",
        filenames,
    ),
    Opt::job(
        "opendir",
        "DIR",
        "Use all regular files in and below a directory, like filename",
        opendir,
    ),
    Opt::job(
        "filename_format",
        "TEXT",
        "Format of file names, with $jobname, $jobnum and $filenum",
        |s, g| put(&mut s.filename_format, text(g)),
    )
    .default("$jobname.$jobnum.$filenum"),
    Opt::job("nrfiles", "N", "Files per worker", |s, g| {
        put(&mut s.nrfiles, g.count(0))
    })
    .or(&["nr_files"])
    .default("1"),
    Opt::job(
        "openfiles",
        "N",
        "Maximum number of open files per worker",
        |s, g| put(&mut s.openfiles, g.count(0)),
    )
    .default("all"),
    Opt::job(
        "file_service_type",
        "HOW",
        "File order: roundrobin, random (:N operations each), sequential",
        |s, g| put(&mut s.file_service_type, service(g)),
    )
    .default("roundrobin"),
    Opt::job(
        "size",
        "SIZE|PERCENT%",
        "Bytes per worker, divided among its files; PERCENT%: of each file",
        |s, g| put(&mut s.size, g.extent()),
    ),
    Opt::job(
        "filesize",
        "SIZE[-SIZE]",
        "Bytes per file, or a range",
        |s, g| put(&mut s.filesize, g.size_or_range()),
    ),
    Opt::job(
        "io_size",
        "SIZE|PERCENT%",
        "Bytes to transfer, if not the size of the files",
        |s, g| put(&mut s.io_size, g.extent()),
    )
    .or(&["io_limit"]),
    Opt::job(
        "offset",
        "SIZE|PERCENT%",
        "Offset in each file where the job starts (bytes)",
        |s, g| put(&mut s.offset, g.extent()),
    )
    .or(&["fileoffset"])
    .default("0"),
    Opt::job(
        "offset_increment",
        "SIZE|PERCENT%",
        "Distance between the start offsets of successive workers (bytes)",
        |s, g| put(&mut s.offset_increment, g.extent()),
    )
    .default("0"),
    Opt::job(
        "offset_align",
        "SIZE",
        "Round offsets given in percent up to a multiple of this (bytes)",
        |s, g| put(&mut s.offset_align, g.count(0)),
    )
    .default("the smallest block"),
    Opt::job(
        "file_append",
        "0|1",
        "Write after the end of the files",
        |s, g| put(&mut s.file_append, g.flag()),
    )
    .default("0"),
    Opt::job(
        "overwrite",
        "0|1",
        "Lay out files before writing them",
        |s, g| put(&mut s.overwrite, g.flag()),
    )
    .default("0"),
    Opt::job(
        "create_serialize",
        "0|1",
        "Accepted: files are laid out in parallel",
        |_, g| g.flag().map(drop),
    ),
    Opt::job(
        "create_fsync",
        "0|1",
        "Call fsync on laid-out files",
        |s, g| put(&mut s.create_fsync, g.flag()),
    )
    .default("1"),
    Opt::job(
        "allow_file_create",
        "0|1",
        "Create missing files; 0: all files must exist",
        |s, g| put(&mut s.allow_file_create, g.flag()),
    )
    .default("1"),
    Opt::job(
        "unique_filename",
        "0|1",
        "Accepted: rbench has no network clients to distinguish",
        |_, g| g.flag().map(drop),
    ),
    Opt::job(
        "filetype",
        "KIND",
        "Accepted: none, file, block, char; rbench detects the type",
        |_, g| {
            let kinds = [("none", ()), ("file", ()), ("block", ()), ("char", ())];
            one_of(g.text, &kinds)
        },
    ),
    Opt::job(
        "create_on_open",
        "0|1",
        "Create files when they are opened",
        |s, g| put(&mut s.create_on_open, g.flag()),
    )
    .default("0"),
    Opt::job(
        "create_only",
        "0|1",
        "Lay out files and do nothing else",
        |s, g| put(&mut s.create_only, g.flag()),
    )
    .default("0"),
    Opt::job(
        "fallocate",
        "HOW",
        "How to reserve blocks: none, native, posix, keep, truncate",
        |s, g| put(&mut s.fallocate, fallocate(g)),
    )
    .default("native"),
    Opt::job(
        "pre_read",
        "0|1",
        "Read all files once before the run, not timed",
        |s, g| put(&mut s.pre_read, g.flag()),
    )
    .default("0"),
    Opt::job(
        "invalidate",
        "0|1",
        "Drop the files' pages from this host's page cache before each pass",
        |s, g| put(&mut s.invalidate, g.flag()),
    )
    .default("1"),
    Opt::job(
        "fadvise_hint",
        "0|1",
        "Tell the kernel whether offsets are random or sequential",
        |s, g| put(&mut s.fadvise_hint, fadvise(g)),
    )
    .default("1"),
    Opt::job("unlink", "0|1", "Remove the files at the end", |s, g| {
        put(&mut s.unlink, g.flag())
    })
    .default("0"),
    Opt::job(
        "unlink_each_loop",
        "0|1",
        "Remove the files before each repetition (loops)",
        |s, g| put(&mut s.unlink_each_loop, g.flag()),
    )
    .default("0"),
    Opt::job(
        "fill_device",
        "0|1",
        "Write until the file system is full",
        |s, g| put(&mut s.fill_device, g.flag()),
    )
    .or(&["fill_fs"])
    .default("0"),
    Opt::job(
        "lockfile",
        "HOW",
        "Lock the file for each operation: none, exclusive, readwrite",
        |s, g| {
            let words = [
                ("none", FileLock::None),
                ("exclusive", FileLock::Exclusive),
                ("readwrite", FileLock::ReadWrite),
            ];
            put(&mut s.lockfile, one_of(g.text, &words))
        },
    )
    .default("none"),
    Opt::job(
        "allow_mounted_write",
        "0|1",
        "Write even to devices that are mounted or otherwise in use",
        |s, g| put(&mut s.allow_mounted_write, g.flag()),
    )
    .default("0"),
];

/// Where operations go.
pub const PATTERN: &[Opt] = &[
    Opt::job(
        "rw",
        "WHAT",
        "read, write, rw, trim, trimwrite, also rand...; :N: see rw_sequencer",
        |s, g| {
            let (directions, number) = directions(g)?;
            (s.rw, s.rw_number) = (Some(directions), number);
            Ok(())
        },
    )
    .or(&["readwrite"])
    .default("read"),
    Opt::job(
        "rw_sequencer",
        "HOW",
        "With rw=rand...:N, offsets after a random one: sequential, identical",
        |s, g| {
            let words = [("sequential", false), ("identical", true)];
            put(&mut s.rw_identical, one_of(g.text, &words))
        },
    )
    .default("sequential"),
    Opt::job(
        "rwmixread",
        "PERCENT",
        "Percentage of reads in rw and randrw",
        |s, g| put(&mut s.rwmixread, g.percent()),
    )
    .default("50"),
    Opt::job(
        "rwmixwrite",
        "PERCENT",
        "Percentage of writes in rw and randrw",
        |s, g| put(&mut s.rwmixread, g.percent().map(|writes| 100 - writes)),
    )
    .default("50"),
    Opt::job(
        "bs",
        "SIZE[,...]",
        "Block size of reads, writes, trims (bytes)",
        |s, g| put_each(&mut s.bs, g.each(|g| g.count(1))),
    )
    .or(&["blocksize"])
    .default("4k"),
    Opt::job(
        "bsrange",
        "SIZE-SIZE[,...]",
        "Random block sizes in this range, multiples of the smallest",
        |s, g| put_each(&mut s.bsrange, g.each(|g| g.range())),
    )
    .or(&["blocksize_range"]),
    Opt::job(
        "bssplit",
        "SIZE/PERCENT:...[,...]",
        "Block sizes and the percentage of operations of each",
        |s, g| put_each(&mut s.bssplit, g.each(|g| g.splits())),
    ),
    Opt::switch(
        "bs_unaligned",
        "Allow any number of bytes in bsrange; blocks may repeat",
        |s, g| put(&mut s.bs_unaligned, g.flag()),
    )
    .or(&["blocksize_unaligned"]),
    Opt::switch(
        "bs_is_seq_rand",
        "Values of bs are for sequential,random instead of reads,writes",
        |s, g| put(&mut s.bs_is_seq_rand, g.flag()),
    ),
    Opt::job(
        "ba",
        "SIZE[,...]",
        "Alignment of random offsets (bytes)",
        |s, g| put_each(&mut s.blockalign, g.each(|g| g.count(1))),
    )
    .or(&["blockalign"])
    .default("the smallest block"),
    Opt::job(
        "random_distribution",
        "HOW",
        "random, zipf:T, pareto:P, normal:D, zoned:A/S:..., sequence:N,...",
        |s, g| put(&mut s.random_distribution, g.distribution()),
    )
    .default("random"),
    Opt::job(
        "random_sequence_stride",
        "0|1",
        "Count blocks of a sequence from the end of its last round",
        |s, g| put(&mut s.random_sequence_stride, g.flag()),
    )
    .default("0"),
    Opt::job(
        "random_generator",
        "NAME",
        "tausworthe, tausworthe64, lfsr (always covers every block once)",
        |s, g| {
            let words = [
                ("tausworthe", false),
                ("tausworthe64", false),
                ("lfsr", true),
            ];
            put(&mut s.lfsr, one_of(g.text, &words))
        },
    )
    .default("tausworthe"),
    Opt::job(
        "zonemode",
        "HOW",
        "none; strided: zonesize bytes in a zone, then the next zone",
        |s, g| {
            if g.text == "zbd" {
                return Err("zbd is not supported: a mounted file system has no zones".to_owned());
            }
            let words = [("none", false), ("strided", true)];
            put(&mut s.strided, one_of(g.text, &words))
        },
    )
    .default("none"),
    Opt::job("zonesize", "SIZE", "Bytes to move in a zone", |s, g| {
        put(&mut s.zonesize, g.number())
    }),
    Opt::job("zonerange", "SIZE", "Length of a zone (bytes)", |s, g| {
        put(&mut s.zonerange, g.number())
    })
    .default("zonesize"),
    Opt::job("zoneskip", "SIZE", "Bytes between zones", |s, g| {
        put(&mut s.zoneskip, g.number())
    })
    .default("0"),
    Opt::job(
        "percentage_random",
        "PERCENT[,...]",
        "Percentage of random operations in a random job",
        |s, g| put_each(&mut s.percentage_random, g.each(|g| g.percent())),
    )
    .default("100"),
    Opt::switch(
        "norandommap",
        "Allow blocks to repeat before all have been covered",
        |s, g| put(&mut s.norandommap, g.flag()),
    ),
    Opt::switch(
        "softrandommap",
        "Accepted: covering every block once needs no memory",
        |_, g| g.flag().map(drop),
    ),
    Opt::job(
        "allrandrepeat",
        "0|1",
        "Repeat all random choices, even with randrepeat=0",
        |s, g| put(&mut s.allrandrepeat, g.flag()),
    )
    .default("0"),
    Opt::job(
        "randrepeat",
        "0|1",
        "Use the same offsets in every run",
        |s, g| put(&mut s.randrepeat, g.flag()),
    )
    .default("1"),
    Opt::job("randseed", "N", "Seed of all random choices", |s, g| {
        put(&mut s.randseed, g.number())
    })
    .default("0x89"),
];

/// Empty names between colons are none, as in fio.
fn directories(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let names = g.names().into_iter().filter(|name| !name.is_empty());
    let mut names = names.map(PathBuf::from);
    s.directory = Some(names.next().ok_or("it must not be empty")?);
    s.more_directories = names.collect();
    Ok(())
}

/// Names add up, and each lies in the directory that was given before it: as in fio, where
/// `filename` opens its files' entries at once.
fn filenames(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let names = g.names();
    if names.iter().any(String::is_empty) {
        return Err("a name must not be empty".to_owned());
    }
    let directory = s.directory.clone().unwrap_or_default();
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

/// The files of a directory are names like others.
fn opendir(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let directory = s.directory.clone().unwrap_or_default();
    let names = match g.files {
        // It is known later.
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

fn fallocate(g: Given<'_>) -> Result<Fallocate, String> {
    one_of(
        g.text,
        &[
            ("none", Fallocate::None),
            ("0", Fallocate::None),
            ("native", Fallocate::Native),
            ("posix", Fallocate::Posix),
            ("1", Fallocate::Posix),
            ("keep", Fallocate::Keep),
            ("truncate", Fallocate::Truncate),
        ],
    )
}

fn fadvise(g: Given<'_>) -> Result<Advised, String> {
    let words = [
        ("0", Advised::Nobody),
        ("1", Advised::Kernel(None)),
        ("random", Advised::Kernel(Some(true))),
        ("sequential", Advised::Kernel(Some(false))),
    ];
    one_of(g.text, &words)
}

/// What follows `rw`, and the number behind it.
fn directions(g: Given<'_>) -> Result<(Directions, Option<i64>), String> {
    let (word, number) = match g.text.split_once(':') {
        Some((word, number)) => (word, Some(number)),
        None => (g.text, None),
    };
    let of = |read, write, random| Directions {
        read,
        write,
        trim: false,
        random,
    };
    let trim = |write, random| Directions {
        read: false,
        write,
        trim: true,
        random,
    };
    let directions = one_of(
        word,
        &[
            ("read", of(true, false, false)),
            ("write", of(false, true, false)),
            ("randread", of(true, false, true)),
            ("randwrite", of(false, true, true)),
            ("rw", of(true, true, false)),
            ("readwrite", of(true, true, false)),
            ("randrw", of(true, true, true)),
            ("trim", trim(false, false)),
            ("randtrim", trim(false, true)),
            ("trimwrite", trim(true, false)),
            ("randtrimwrite", trim(true, true)),
        ],
    )?;
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
    Ok((
        directions,
        number.map_or(Ok(None), |text| count(text).map(Some))?,
    ))
}
