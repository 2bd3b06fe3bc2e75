//! Options of the engine and of the data that is written.

use std::path::PathBuf;

use rbench_core::memory::MemoryKind;
use rbench_core::{By, Call, EngineOptions};
use rbench_plan::jobs::SyncMode;
use rbench_plan::spec::fio::{Cmdprio, Settings};

use super::{Given, Refused, text};
use rbench_plan::given::one_of;

options! {
    /// Engines and how they issue operations.
    ENGINE: Job () {
    ioengine: set("NAME", engine) = "psync", "I/O engine, one of those listed by --enghelp";
    iodepth => plan.depth: number(1) = "1",
        "Requests in flight per worker (libaio, io_uring, posixaio)";
    iodepth_batch | iodepth_batch_submit => plan.batch_submit: number = "1",
        "Requests to submit at a time; 0: as many as iodepth";
    iodepth_batch_complete_min | iodepth_batch_complete => plan.batch_complete_min: number = "1",
        "Reap at least this many completions at a time";
    iodepth_batch_complete_max => plan.batch_complete_max: number = "iodepth_batch_complete_min",
        "Reap up to this many completions before submitting more";
    iodepth_low => plan.depth_low: number = "iodepth",
        "After iodepth is reached, submit again at this depth";
    io_submit_mode => plan.submission.offload: words("HOW", "inline" = false,
            "offload" = true) = "inline",
        "Who submits requests: worker (inline), iodepth threads (offload)";
    serialize_overlap => plan.submission.serialize: flag = "0",
        "Let requests for overlapping blocks wait for each other";
    direct => plan.direct: flag = "0", "Open files with O_DIRECT";
    buffered => plan.direct: inverted = "1", "Opposite of direct";
    sync => plan.syncing.opens: words("HOW", "none" = SyncMode::None, "0" = SyncMode::None,
            "sync" = SyncMode::Sync, "1" = SyncMode::Sync, "dsync" = SyncMode::Dsync) = "none",
        "Open files with: none (0), sync (1, O_SYNC), dsync (O_DSYNC)";
    dsync => plan.syncing.opens: words("0|1", "0" = SyncMode::None, "1" = SyncMode::Dsync) = "0",
        "Same as sync=dsync";
    fsync => plan.syncing.fsync: number = "0", "Call fsync after every N writes; 0: never";
    fdatasync => plan.syncing.fdatasync: number = "0",
        "Call fdatasync after every N writes; 0: never";
    write_barrier | barrier: accept(number), "Accepted: no engine uses it, as in fio";
    write_hint => plan.files.write_hint: words("HOW", "none" = 1, "short" = 2, "medium" = 3,
            "long" = 4, "extreme" = 5),
        "Expected lifetime of data: none, short, medium, long, extreme";
    end_fsync => plan.syncing.end_fsync: flag = "0",
        "Call fsync after the last write, within the run time";
    end_syncfs => plan.syncing.end_syncfs: flag = "0",
        "Like end_fsync, with one syncfs per file system";
    sync_file_range => plan.syncing.range: of("HOW[,...]:N", Given::range_sync),
        "Sync a range every N writes, with wait_before, write, wait_after";
    fsync_on_close => plan.syncing.fsync_on_close: flag = "0", "Call fsync before closing a file";
}}

options! {
    /// Options of particular engines.
    ENGINE_OPTIONS: Job (engine_options) {
    hipri [io_uring pvsync2]: switch, "poll for completions";
    hipri_percentage [pvsync2]: percent = "100", "percentage of operations that use hipri";
    fixedbufs [io_uring]: switch, "require registered buffers; otherwise used if possible";
    registerfiles [io_uring]: switch, "require registered files; otherwise used if possible";
    sqthread_poll [io_uring]: switch, "let a kernel thread take the requests";
    sqthread_poll_cpu [io_uring]: number, "processor of the sqthread_poll thread";
    nonvectored [io_uring]: of("0|1", nonvectored) = "1", "read and write without vectors";
    force_async [io_uring]: number = "0", "let the kernel hand every Nth request to a thread";
    uncached [io_uring pvsync2]: flag = "0", "RWF_DONTCACHE without direct";
    nowait [libaio io_uring pvsync2]: flag = "0", "RWF_NOWAIT";
    atomic [libaio io_uring pvsync2]: switch, "RWF_ATOMIC for writes";
    userspace_reap [libaio]: switch, "take completions from mapped memory";
    libaio_vectored [libaio]: flag = "0", "submit vectored requests, as preadv and pwritev";
    stat_type [filestat dirstat]: words("HOW", "stat" = Call::Stat(By::Path),
            "lstat" = Call::Stat(By::Link),
            "statx" = Call::Lookup(By::Path, Call::STATX_ALL)) = "stat",
        "system call: stat, lstat, statx";
}}

options! {
    /// Priorities of single requests; those of all requests of a job are options of its threads.
    REQUEST_PRIORITIES: Job (cmdprio) {
    cmdprio_percentage => percentage [libaio io_uring]: each(percent) = "0",
        "percentage of requests with their own priority";
    cmdprio_class => class [libaio io_uring]: each(within(1, 3)) = "1",
        "their I/O class: 1 real time, 2 best effort, 3 idle";
    cmdprio => level [libaio io_uring]: each(within(0, 7)) = "0",
        "their level, from 0 (highest) to 7";
    cmdprio_hint => hint [libaio io_uring]: each(within(0, 1023)) = "0",
        "their hint to the device, 0 to 1023";
    cmdprio_bssplit => split [libaio io_uring]:
        each(of("SIZE/PERCENT[/CLASS/LEVEL[/HINT]]:...", Given::priority_splits)),
        "percentage and priority of requests by size";
}}

/// Unsupported options of these engines.
pub const REFUSED: &[Refused] = refused! {
    [engine] "thp": "the system chooses the pages of mappings";
};

options! {
    /// Written data.
    BUFFERS: Job () {
    refill_buffers => plan.buffers.refill: switch, "Generate new data for every write";
    scramble_buffers => plan.buffers.scramble: flag = "1", "Change a few bytes for every write";
    zero_buffers: switch, "Write zeros";
    buffer_pattern: of("PATTERN", Given::pattern),
        "Data to write: 0xBYTES, a number, \"text\", 'file', or several of these";
    buffer_compress_percentage: percent = "0",
        "Compressible percentage of the data; new data for every write";
    buffer_compress_chunk: size = "512",
        "Chunk of data to which that percentage applies (bytes); 0: the block";
    dedupe_percentage => plan.buffers.dedupe_percent: percent = "0",
        "Percentage of blocks that are copies; new data for every write";
    dedupe_mode => dedupe_working_set: words("HOW", "repeat" = false,
            "working_set" = true) = "repeat",
        "Blocks to copy: the latest (repeat) or those of a working_set";
    dedupe_working_set_percentage: percent = "5",
        "Size of the working set, as a percentage of size";
    dedupe_global: flag = "0", "Share one working set among all jobs";
    mem | iomem: set("KIND[:PATH]", memory) = "malloc",
        "Memory of buffers: malloc, shm, shmhuge, mmap, mmaphuge, mmapshared";
    "hugepage-size" => plan.memory.huge_page: size(1) = "2m", "Size of a huge page (bytes)";
    iomem_align | mem_align => plan.memory.align: size = "the page",
        "Offset of the first buffer from a page start; others follow (bytes)";
    lockmem => plan.memory.locked: size = "0",
        "Memory to lock per worker, to make memory scarce (bytes)";
}}

/// Sets the engine. An engine does not inherit options given for another engine.
fn engine(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
    let name = text(g)?;
    if s.ioengine.as_ref().is_some_and(|before| *before != name) {
        s.engine_options = EngineOptions::default();
        s.cmdprio = Cmdprio::default();
        s.of_engines.clear();
    }
    s.ioengine = Some(name);
    Ok(())
}

/// Reads the switch; -1 is fio's "where the kernel can do it".
fn nonvectored(g: Given<'_>) -> Result<bool, String> {
    match g.text {
        "-1" => Ok(true),
        _ => g.number().map(|n| n != 0),
    }
}

/// Sets the kind of memory, and the file after a colon that some kinds map.
fn memory(s: &mut Settings, g: Given<'_>) -> Result<(), String> {
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
        (kind, file) => {
            (s.plan.memory.kind, s.plan.memory.file) = (kind, file);
            Ok(())
        }
    }
}
