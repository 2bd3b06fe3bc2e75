//! The engine of a job: its depth, and the options that belong to it.

use rbench_core::EngineOptions;
use rbench_core::memory::{Memory, MemoryKind};
use rbench_core::operations::NameEngine;

use super::super::{Facts, PlanError};
use crate::spec::fio::Settings;

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
    let depth = s.plan.depth;
    let Some((_, most)) = facts.engines.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = facts.engines.iter().map(|(name, _)| *name).collect();
        let known = known.join(", ");
        if ENGINES.split_whitespace().any(|of_fio| of_fio == name) {
            refuse!("ioengine={name} is not supported: use one of {known}");
        }
        refuse!("ioengine={name} is unknown: use one of {known}");
    };
    refuse_if!(depth == 0 => "iodepth must be at least 1");
    if s.plan.submission.offload {
        refuse_if! {
            NameEngine::named(name).is_some() =>
                "io_submit_mode=offload: ioengine={name} performs one operation at a time";
            matches!(name, "sync" | "vsync") =>
                "io_submit_mode=offload: with ioengine={name} threads would share a file position: use p{name}";
            depth > THREADS_MAX =>
                "io_submit_mode=offload starts iodepth={depth} threads: the limit is {THREADS_MAX}";
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

/// The options of `engine`. fio knows an option of engines only once such an engine
/// is given.
pub(super) fn options(s: &Settings, engine: &str) -> Result<EngineOptions, PlanError> {
    for (option, engines) in &s.of_engines {
        if !engines.contains(&engine) {
            let engines = engines.join(", ");
            refuse!("{option} belongs to ioengine {engines}, but the job uses {engine}");
        }
    }
    Ok(EngineOptions {
        // Direct transfers are not cached anyway, and have no such flag.
        uncached: s.engine_options.uncached && !s.plan.direct,
        ..s.engine_options
    })
}

/// The memory of the buffers, and of locked pages.
pub(super) fn memory(s: &Settings) -> Result<Memory, PlanError> {
    let given = &s.plan.memory;
    if given.kind == MemoryKind::MmapHuge && given.file.is_none() {
        refuse!("mem=mmaphuge needs the path of a file on hugetlbfs: mem=mmaphuge:/path/to/file");
    }
    let huge_page = given.huge_page;
    refuse_if!(!huge_page.is_power_of_two() => "hugepage-size={huge_page}: not a power of 2");
    Ok(Memory {
        align: given.align.filter(|align| *align > 0),
        ..given.clone()
    })
}
