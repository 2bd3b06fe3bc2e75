//! The engine of a job: its depth, and the options that belong to it.

use rbench_core::EngineOptions;
use rbench_core::memory::{Memory, MemoryKind};

use super::super::{Facts, PlanError};
use crate::name_ops::NameOp;
use crate::spec::fio::{EngineSettings, Settings};

/// Engines of fio that rbench may not have.
const ENGINES: &str = "sync psync vsync pvsync pvsync2 libaio io_uring io_uring_cmd posixaio mmap \
    null cpuio net netsplice splice sg rbd rados rdma falloc ftruncate filecreate filestat \
    filedelete exec e4defrag gfapi gfapi_async mtd nbd pmemblk dev-dax libpmem external http \
    libhdfs libiscsi libzbc libblkio solarisaio windowsaio guasi dircreate dirstat dirdelete \
    xnvme";

/// Most threads of a worker that make requests for it.
const THREADS_MAX: u32 = 1024;

/// The engine and its depth.
pub(super) fn engine(
    s: &Settings,
    facts: &Facts,
    notes: &mut Vec<String>,
) -> Result<(String, u32), PlanError> {
    let name = s.ioengine.as_deref().unwrap_or("psync");
    let depth = s.iodepth.unwrap_or(1);
    let Some((_, most)) = facts.engines.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = facts.engines.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        if ENGINES.split_whitespace().any(|of_fio| of_fio == name) {
            refuse!("ioengine={name} is not supported: use one of {known}");
        }
        refuse!("ioengine={name} is unknown: use one of {known}");
    };
    if depth == 0 {
        refuse!("iodepth must be at least 1");
    }
    if s.offload == Some(true) {
        if NameOp::of_engine(name).is_some() {
            refuse!("io_submit_mode=offload: ioengine={name} performs one operation at a time");
        }
        if matches!(name, "sync" | "vsync") {
            refuse!(
                "io_submit_mode=offload: with ioengine={name} threads would share a file position: use \
                 p{name}"
            );
        }
        if depth > THREADS_MAX {
            refuse!(
                "io_submit_mode=offload starts iodepth={depth} threads: the limit is {THREADS_MAX}"
            );
        }
        return Ok((name.to_owned(), depth));
    }
    if *most == 1 && depth > 1 {
        notes.push(format!(
            "ioengine={name} is synchronous: iodepth is capped at 1"
        ));
    } else if depth > *most {
        refuse!(
            "iodepth={depth} is more than the {most} operations that ioengine={name} can have in flight"
        );
    }
    Ok((name.to_owned(), depth.min(*most)))
}

/// The options that were given, each with the engines to which it belongs.
fn given(
    settings: &EngineSettings,
) -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    const RING: &[&str] = &["io_uring"];
    const AIO: &[&str] = &["libaio"];
    const CALL: &[&str] = &["pvsync2"];
    const POLLED: &[&str] = &["io_uring", "pvsync2"];
    const STAT: &[&str] = &["filestat", "dirstat"];
    const FLAGGED: &[&str] = &["io_uring", "libaio", "pvsync2"];
    let EngineSettings {
        hipri,
        hipri_percentage,
        fixedbufs,
        registerfiles,
        sqthread_poll,
        sqthread_poll_cpu,
        nonvectored,
        force_async,
        uncached,
        nowait,
        atomic,
        userspace_reap,
        stat_type,
    } = *settings;
    [
        ("hipri", POLLED, hipri.is_some()),
        ("hipri_percentage", CALL, hipri_percentage.is_some()),
        ("fixedbufs", RING, fixedbufs.is_some()),
        ("registerfiles", RING, registerfiles.is_some()),
        ("sqthread_poll", RING, sqthread_poll.is_some()),
        ("sqthread_poll_cpu", RING, sqthread_poll_cpu.is_some()),
        ("nonvectored", RING, nonvectored.is_some()),
        ("force_async", RING, force_async.is_some()),
        ("uncached", POLLED, uncached.is_some()),
        ("nowait", FLAGGED, nowait.is_some()),
        ("atomic", FLAGGED, atomic.is_some()),
        ("userspace_reap", AIO, userspace_reap.is_some()),
        ("stat_type", STAT, stat_type.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, engines, given)| given.then_some((name, engines)))
}

/// The options of `engine`. fio knows an option of engines only once such an engine
/// is given.
pub(super) fn options(
    s: &Settings,
    engine: &str,
    direct: bool,
) -> Result<EngineOptions, PlanError> {
    let settings = &s.engine_options;
    for (option, engines) in given(settings) {
        if !engines.contains(&engine) {
            let engines = engines.join(", ");
            refuse!("{option} belongs to ioengine {engines}, but the job uses {engine}");
        }
    }
    let default = EngineOptions::default();
    Ok(EngineOptions {
        hipri: settings.hipri.unwrap_or(default.hipri),
        hipri_percentage: settings
            .hipri_percentage
            .unwrap_or(default.hipri_percentage),
        fixedbufs: settings.fixedbufs,
        registerfiles: settings.registerfiles,
        sqthread_poll: settings.sqthread_poll.unwrap_or(default.sqthread_poll),
        sqthread_poll_cpu: settings.sqthread_poll_cpu,
        nonvectored: settings.nonvectored.unwrap_or(default.nonvectored),
        force_async: settings.force_async.unwrap_or(default.force_async),
        // Direct transfers are not cached anyway, and have no such flag.
        uncached: settings.uncached.unwrap_or(default.uncached) && !direct,
        nowait: settings.nowait.unwrap_or(default.nowait),
        atomic: settings.atomic.unwrap_or(default.atomic),
        userspace_reap: settings.userspace_reap.unwrap_or(default.userspace_reap),
        stat_type: settings.stat_type.unwrap_or(default.stat_type),
    })
}

/// What the buffers lie in, and what is locked.
pub(super) fn memory(s: &Settings) -> Result<Memory, PlanError> {
    let (kind, file) = s.mem.clone().unwrap_or_default();
    if kind == MemoryKind::MmapHuge && file.is_none() {
        refuse!("mem=mmaphuge needs the path of a file on hugetlbfs: mem=mmaphuge:/path/to/file");
    }
    let huge_page = s.hugepage_size.unwrap_or(Memory::HUGE_PAGE);
    if !huge_page.is_power_of_two() {
        refuse!("hugepage-size={huge_page}: not a power of 2");
    }
    Ok(Memory {
        kind,
        file,
        align: s.iomem_align.filter(|align| *align > 0),
        huge_page,
        locked: s.lockmem.unwrap_or(0),
    })
}
