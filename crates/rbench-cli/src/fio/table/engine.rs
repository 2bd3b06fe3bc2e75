//! Options of the engine and of the data that is written.

use std::path::PathBuf;

use rbench_core::StatType;
use rbench_core::memory::MemoryKind;
use rbench_plan::spec::fio::{EngineSettings, Settings, SyncMode};

use super::{Given, Opt, put, text};
use crate::given::one_of;

/// What the kernel calls the words of `write_hint`.
const HINTS: [(&str, u64); 5] = [
    ("none", 1),
    ("short", 2),
    ("medium", 3),
    ("long", 4),
    ("extreme", 5),
];

/// How operations are done.
pub const ENGINE: &[Opt] = &[
    Opt::job(
        "ioengine",
        "NAME",
        "I/O engine, one of those listed by --enghelp",
        engine,
    )
    .default("psync"),
    Opt::job(
        "iodepth",
        "N",
        "Requests in flight per worker (libaio, io_uring, posixaio)",
        |s, g| put(&mut s.iodepth, g.count(1)),
    )
    .default("1"),
    Opt::job(
        "iodepth_batch",
        "N",
        "Requests to submit at a time; 0: as many as iodepth",
        |s, g| put(&mut s.iodepth_batch, g.count(0)),
    )
    .or(&["iodepth_batch_submit"])
    .default("1"),
    Opt::job(
        "iodepth_batch_complete_min",
        "N",
        "Reap at least this many completions at a time",
        |s, g| put(&mut s.iodepth_batch_complete_min, g.count(0)),
    )
    .or(&["iodepth_batch_complete"])
    .default("1"),
    Opt::job(
        "iodepth_batch_complete_max",
        "N",
        "Reap up to this many completions before submitting more",
        |s, g| put(&mut s.iodepth_batch_complete_max, g.count(0)),
    )
    .default("iodepth_batch_complete_min"),
    Opt::job(
        "iodepth_low",
        "N",
        "After iodepth is reached, submit again at this depth",
        |s, g| put(&mut s.iodepth_low, g.count(0)),
    )
    .default("iodepth"),
    Opt::job(
        "io_submit_mode",
        "HOW",
        "Who submits requests: worker (inline), iodepth threads (offload)",
        |s, g| {
            let words = [("inline", false), ("offload", true)];
            put(&mut s.offload, one_of(g.text, &words))
        },
    )
    .default("inline"),
    Opt::job(
        "serialize_overlap",
        "0|1",
        "Let requests for overlapping blocks wait for each other",
        |s, g| put(&mut s.serialize_overlap, g.flag()),
    )
    .default("0"),
    Opt::job("direct", "0|1", "Open files with O_DIRECT", |s, g| {
        put(&mut s.direct, g.flag())
    })
    .default("0"),
    Opt::job("buffered", "0|1", "Opposite of direct", |s, g| {
        put(&mut s.direct, g.flag().map(|buffered| !buffered))
    })
    .default("1"),
    Opt::job(
        "sync",
        "HOW",
        "Open files with: none (0), sync (1, O_SYNC), dsync (O_DSYNC)",
        |s, g| put(&mut s.sync, sync(g)),
    )
    .default("none"),
    Opt::job("dsync", "0|1", "Same as sync=dsync", |s, g| {
        let mode = |on| if on { SyncMode::Dsync } else { SyncMode::None };
        put(&mut s.sync, g.flag().map(mode))
    })
    .default("0"),
    Opt::job(
        "fsync",
        "N",
        "Call fsync after every N writes; 0: never",
        |s, g| put(&mut s.fsync, g.count(0)),
    )
    .default("0"),
    Opt::job(
        "fdatasync",
        "N",
        "Call fdatasync after every N writes; 0: never",
        |s, g| put(&mut s.fdatasync, g.count(0)),
    )
    .default("0"),
    Opt::job(
        "write_barrier",
        "N",
        "Accepted: no engine uses it, as in fio",
        |_, g| g.count::<u64>(0).map(drop),
    )
    .or(&["barrier"]),
    Opt::job(
        "write_hint",
        "HOW",
        "Expected lifetime of data: none, short, medium, long, extreme",
        |s, g| put(&mut s.write_hint, one_of(g.text, &HINTS)),
    ),
    Opt::job(
        "end_fsync",
        "0|1",
        "Call fsync after the last write, within the run time",
        |s, g| put(&mut s.end_fsync, g.flag()),
    )
    .default("0"),
    Opt::job(
        "end_syncfs",
        "0|1",
        "Like end_fsync, with one syncfs per file system",
        |s, g| put(&mut s.end_syncfs, g.flag()),
    )
    .default("0"),
    Opt::job(
        "sync_file_range",
        "HOW[,...]:N",
        "Sync a range every N writes, with wait_before, write, wait_after",
        |s, g| put(&mut s.sync_file_range, g.range_sync()),
    ),
    Opt::job(
        "fsync_on_close",
        "0|1",
        "Call fsync before closing a file",
        |s, g| put(&mut s.fsync_on_close, g.flag()),
    )
    .default("0"),
];

/// Options of particular engines.
pub const ENGINE_OPTIONS: &[Opt] = &[
    Opt::switch(
        "hipri",
        "io_uring, pvsync2: poll for completions",
        |s, g| put(&mut s.engine_options.hipri, g.flag()),
    ),
    Opt::job(
        "hipri_percentage",
        "PERCENT",
        "pvsync2: percentage of operations that use hipri",
        |s, g| put(&mut s.engine_options.hipri_percentage, g.percent()),
    )
    .default("100"),
    Opt::switch(
        "fixedbufs",
        "io_uring: require registered buffers; otherwise used if possible",
        |s, g| put(&mut s.engine_options.fixedbufs, g.flag()),
    ),
    Opt::switch(
        "registerfiles",
        "io_uring: require registered files; otherwise used if possible",
        |s, g| put(&mut s.engine_options.registerfiles, g.flag()),
    ),
    Opt::switch(
        "sqthread_poll",
        "io_uring: let a kernel thread take the requests",
        |s, g| put(&mut s.engine_options.sqthread_poll, g.flag()),
    ),
    Opt::job(
        "sqthread_poll_cpu",
        "N",
        "io_uring: processor of the sqthread_poll thread",
        |s, g| put(&mut s.engine_options.sqthread_poll_cpu, g.count(0)),
    ),
    Opt::job(
        "nonvectored",
        "0|1",
        "io_uring: read and write without vectors",
        |s, g| put(&mut s.engine_options.nonvectored, nonvectored(g)),
    )
    .default("1"),
    Opt::job(
        "force_async",
        "N",
        "io_uring: let the kernel hand every Nth request to a thread",
        |s, g| put(&mut s.engine_options.force_async, g.count(0)),
    )
    .default("0"),
    Opt::job(
        "uncached",
        "0|1",
        "io_uring, pvsync2: RWF_DONTCACHE without direct",
        |s, g| put(&mut s.engine_options.uncached, g.flag()),
    )
    .default("0"),
    Opt::job(
        "nowait",
        "0|1",
        "libaio, io_uring, pvsync2: RWF_NOWAIT",
        |s, g| put(&mut s.engine_options.nowait, g.flag()),
    )
    .default("0"),
    Opt::switch(
        "atomic",
        "libaio, io_uring, pvsync2: RWF_ATOMIC for writes",
        |s, g| put(&mut s.engine_options.atomic, g.flag()),
    ),
    Opt::switch(
        "userspace_reap",
        "libaio: take completions from mapped memory",
        |s, g| put(&mut s.engine_options.userspace_reap, g.flag()),
    ),
    Opt::job(
        "stat_type",
        "HOW",
        "filestat, dirstat: system call: stat, lstat, statx",
        |s, g| {
            let words = [
                ("stat", StatType::Stat),
                ("lstat", StatType::Lstat),
                ("statx", StatType::Statx),
            ];
            put(&mut s.engine_options.stat_type, one_of(g.text, &words))
        },
    )
    .default("stat"),
];
/// Written data.
pub const BUFFERS: &[Opt] = &[
    Opt::switch(
        "refill_buffers",
        "Generate new data for every write",
        |s, g| put(&mut s.refill_buffers, g.flag()),
    ),
    Opt::job(
        "scramble_buffers",
        "0|1",
        "Change a few bytes for every write",
        |s, g| put(&mut s.scramble_buffers, g.flag()),
    )
    .default("1"),
    Opt::switch("zero_buffers", "Write zeros", |s, g| {
        put(&mut s.zero_buffers, g.flag())
    }),
    Opt::job(
        "buffer_pattern",
        "PATTERN",
        "Data to write: 0xBYTES, a number, \"text\", 'file', or several of these",
        |s, g| put(&mut s.buffer_pattern, g.pattern()),
    ),
    Opt::job(
        "buffer_compress_percentage",
        "PERCENT",
        "Compressible percentage of the data; new data for every write",
        |s, g| put(&mut s.buffer_compress_percentage, g.percent()),
    )
    .default("0"),
    Opt::job(
        "buffer_compress_chunk",
        "SIZE",
        "Chunk of data to which that percentage applies (bytes); 0: the block",
        |s, g| put(&mut s.buffer_compress_chunk, g.count(0)),
    )
    .default("512"),
    Opt::job(
        "dedupe_percentage",
        "PERCENT",
        "Percentage of blocks that are copies; new data for every write",
        |s, g| put(&mut s.dedupe_percentage, g.percent()),
    )
    .default("0"),
    Opt::job(
        "dedupe_mode",
        "HOW",
        "Blocks to copy: the latest (repeat) or those of a working_set",
        |s, g| {
            let words = [("repeat", false), ("working_set", true)];
            put(&mut s.dedupe_working_set, one_of(g.text, &words))
        },
    )
    .default("repeat"),
    Opt::job(
        "dedupe_working_set_percentage",
        "PERCENT",
        "Size of the working set, as a percentage of size",
        |s, g| put(&mut s.dedupe_working_set_percentage, g.percent()),
    )
    .default("5"),
    Opt::job(
        "dedupe_global",
        "0|1",
        "Share one working set among all jobs",
        |s, g| put(&mut s.dedupe_global, g.flag()),
    )
    .default("0"),
    Opt::job(
        "mem",
        "KIND[:PATH]",
        "Memory of buffers: malloc, shm, shmhuge, mmap, mmaphuge, mmapshared",
        |s, g| put(&mut s.mem, memory(g)),
    )
    .or(&["iomem"])
    .default("malloc"),
    Opt::job(
        "hugepage-size",
        "SIZE",
        "Size of a huge page (bytes)",
        |s, g| put(&mut s.hugepage_size, g.count(1)),
    )
    .default("2m"),
    Opt::job(
        "iomem_align",
        "SIZE",
        "Offset of the first buffer from a page start; others follow (bytes)",
        |s, g| put(&mut s.iomem_align, g.count(0)),
    )
    .or(&["mem_align"])
    .default("the page"),
    Opt::job(
        "lockmem",
        "SIZE",
        "Memory to lock per worker, to make memory scarce (bytes)",
        |s, g| put(&mut s.lockmem, g.count(0)),
    )
    .default("0"),
];
/// An engine does not inherit what was given for another one.
fn engine(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let name = text(g)?;
    if s.ioengine.as_ref().is_some_and(|before| *before != name) {
        s.engine_options = EngineSettings::default();
    }
    s.ioengine = Some(name);
    Ok(())
}

/// -1 is fio's "where the kernel can do it".
fn nonvectored(g: Given<'_>) -> Result<bool, String> {
    match g.text {
        "-1" => Ok(true),
        _ => g.number().map(|n| n != 0),
    }
}
fn sync(g: Given<'_>) -> Result<SyncMode, String> {
    one_of(
        g.text,
        &[
            ("none", SyncMode::None),
            ("0", SyncMode::None),
            ("sync", SyncMode::Sync),
            ("1", SyncMode::Sync),
            ("dsync", SyncMode::Dsync),
        ],
    )
}

/// A kind of memory, and the file behind a colon that some can be mapped from.
fn memory(g: Given<'_>) -> Result<(MemoryKind, Option<PathBuf>), String> {
    use MemoryKind::{Malloc, Mmap, MmapHuge, MmapShared, Shm, ShmHuge};
    let (word, file) = match g.text.split_once(':') {
        Some((word, file)) => (word, Some(PathBuf::from(file))),
        None => (g.text, None),
    };
    if word == "cudamalloc" {
        return Err("cudamalloc is not supported: rbench has no GPU buffers".to_owned());
    }
    let kinds = [Malloc, Shm, ShmHuge, Mmap, MmapHuge, MmapShared];
    let kind = one_of(word, &kinds.map(|kind| (kind.name(), kind)))?;
    match (kind, file) {
        (Mmap | MmapHuge | MmapShared, Some(file)) if file.as_os_str().is_empty() => {
            Err(format!("{word}: a path must follow the colon"))
        }
        (Malloc | Shm | ShmHuge, Some(_)) => Err(format!("{word} takes no file")),
        (kind, file) => Ok((kind, file)),
    }
}
