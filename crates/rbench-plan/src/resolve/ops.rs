//! `rbench ops`: the rows of the per-operation table as phases of a metadata workload.
//! Each row is a phase that is shown under the row's name; what it needs comes before
//! it, untimed.

use rbench_core::Bytes;
use rbench_core::ops_table::{OPS_ROWS, OpsRow};

use super::{PlanError, nonzero_time};
use crate::meta::{
    Backend, Content, Hooks, ItemOwner, Layout, Location, Making, MetaPlan, Part, PhaseInfo,
    PhaseKind, PhasePlan, Renaming, Showing, UNTIL_THE_DEADLINE, with_needed,
};
use crate::shift;
use crate::spec::{self, Ops};
use crate::tree::{NATIVE, Shape};

/// Operations of each row and worker when nothing is said.
const OPERATIONS: u64 = 1000;
/// Directories of each worker that are filled with 10 entries.
const FEW_ENTRIES: u64 = 100;
/// Directories of each worker that are filled with 1000 entries.
const MANY_ENTRIES: u64 = 4;

/// The phase that is the row; that of `close` is a part of another.
const PHASE_OF: &[(&str, PhaseKind)] = &[
    ("mkdir", PhaseKind::DirCreate),
    ("mvdir", PhaseKind::DirRename),
    ("rmdir", PhaseKind::DirRemove),
    ("readdir_10", PhaseKind::DirList10),
    ("readdir_1k", PhaseKind::DirList1k),
    ("mknod", PhaseKind::FileMknod),
    ("create", PhaseKind::FileCreate),
    ("close", PhaseKind::FileCreate),
    ("rename", PhaseKind::FileRename),
    ("unlink", PhaseKind::FileRemove),
    ("link", PhaseKind::FileLink),
    ("symlink", PhaseKind::FileSymlink),
    ("readlink", PhaseKind::FileReadlink),
    ("lookup", PhaseKind::FileLookup),
    ("resolve", PhaseKind::DirResolve),
    ("getattr", PhaseKind::FileGetattr),
    ("setattr", PhaseKind::FileChmod),
    ("utimes", PhaseKind::FileUtimes),
    ("truncate", PhaseKind::FileTruncate),
    ("access", PhaseKind::FileAccess),
    ("setxattr", PhaseKind::FileSetxattr),
    ("getxattr", PhaseKind::FileGetxattr),
    ("removexattr", PhaseKind::FileRemovexattr),
    ("listxattr_1", PhaseKind::FileListxattr1),
    ("listxattr_10", PhaseKind::FileListxattr10),
    ("statfs", PhaseKind::FileStatfs),
    ("write", PhaseKind::FileWriteSync),
    ("read_1", PhaseKind::FileRead1),
    ("read_10", PhaseKind::FileRead10),
];

/// The phase of a row; `None` where no system call reaches it.
fn phase_of(row: &OpsRow) -> Option<PhaseKind> {
    let mut all = PHASE_OF.iter();
    all.find(|(name, _)| *name == row.name)
        .map(|(_, kind)| *kind)
}

pub(super) fn resolve(
    ops: &Ops,
    common: &spec::Common,
    threads: u32,
    ranks: u32,
) -> Result<MetaPlan, PlanError> {
    if ops.operations.is_some() && ops.time.is_some() {
        refuse!("--ops and --time exclude each other");
    }
    if ops.operations == Some(0) {
        refuse!("--ops must be at least 1");
    }
    let time = nonzero_time("--time", ops.time)?;
    let asked = |row: &&OpsRow| ops.only.as_ref().is_none_or(|only| only.contains(row));
    let rows: Vec<&'static OpsRow> = OPS_ROWS.iter().filter(asked).collect();
    let kinds: Vec<PhaseKind> = rows.iter().filter_map(|row| phase_of(row)).collect();
    if kinds.is_empty() {
        refuse!("--only newchunk leaves no row to measure: no system call reaches it");
    }
    let each = match (time, ops.operations) {
        (Some(_), _) => UNTIL_THE_DEADLINE,
        (None, operations) => operations.unwrap_or(OPERATIONS),
    };
    let items = match time {
        Some(_) => UNTIL_THE_DEADLINE,
        None => each.saturating_mul(u64::from(threads)),
    };
    if items > UNTIL_THE_DEADLINE {
        refuse!("--ops {each} is more than the 2^40 operations that a rank can have");
    }
    // The first of a phase's rows names it, asked for or not.
    let named = |kind: PhaseKind| {
        let mut all = PHASE_OF.iter().filter(|_| kinds.contains(&kind));
        all.find(|(_, phase)| *phase == kind).map(|(name, _)| *name)
    };
    let plan = |info: &&PhaseInfo| PhasePlan {
        kind: info.kind,
        who: ItemOwner::Each {
            ahead: match info.step {
                0 => 0,
                step => shift::ahead(common.shift.unwrap_or(0), step, ranks),
            },
        },
        shuffled: false,
        deadline: time.filter(|_| named(info.kind).is_some() || info.creates()),
        showing: named(info.kind).map_or(Showing::Untimed, Showing::Row),
        part: part(info.kind, each),
        open_loop: None,
    };
    Ok(MetaPlan {
        shape: Shape {
            branch: 1,
            depth: 0,
            items_per_node: items,
            leaf_only: false,
        },
        nodes: 1,
        loops: 1,
        items_per_rank: items,
        layout: Layout::Unique,
        tree_ahead: 0,
        stated_shift: 0,
        stated_random: false,
        naming: NATIVE,
        site: Location::Own,
        backend: Backend::Posix,
        in_flight: None,
        phases: with_needed(&kinds).iter().map(plan).collect(),
        barriers: true,
        making: Making::New,
        renaming: Renaming::Onward,
        time,
        content: Content::Fresh,
        write: Bytes(0),
        read: Bytes(0),
        fsync: false,
        direct: false,
        verify_read: false,
        verify_write: false,
        around: Hooks::default(),
        made: None,
        failures_end_the_run: false,
        rows: rows.iter().map(|row| row.name).collect(),
    })
}

/// Filling directories takes long: few of them are listed again and again.
fn part(kind: PhaseKind, each: u64) -> Option<Part> {
    let most = match kind {
        PhaseKind::DirFill10 | PhaseKind::DirList10 | PhaseKind::DirEmpty10 => FEW_ENTRIES,
        PhaseKind::DirFill1k | PhaseKind::DirList1k | PhaseKind::DirEmpty1k => MANY_ENTRIES,
        _ => return None,
    };
    let items = each.min(most);
    let again = matches!(kind, PhaseKind::DirList10 | PhaseKind::DirList1k);
    Some(Part {
        items,
        again: again.then_some(each),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_that_a_system_call_reaches_has_its_phase() {
        for row in OPS_ROWS {
            assert_eq!(
                phase_of(row).is_none(),
                row.out_of_reach.is_some(),
                "{}",
                row.name
            );
        }
        assert_eq!(PHASE_OF.len() + 1, OPS_ROWS.len());
    }
}
