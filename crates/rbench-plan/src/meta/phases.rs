//! Prerequisites of phases.

use std::collections::BTreeSet;

use rbench_core::operations::PhaseKind::*;

use super::{PHASES, PhaseInfo, PhaseKind};
use crate::tree::ItemKind;

/// The requested native phases with their prerequisites, in the order in which they
/// run.
pub fn with_needed(asked: &[PhaseKind]) -> Vec<&'static PhaseInfo> {
    let mut wanted: BTreeSet<PhaseKind> = asked.iter().copied().collect();
    let has = |items: Option<ItemKind>| asked.iter().any(|kind| kind.info().items == items);
    wanted.insert(TreeCreate);
    for (items, create, remove) in [
        (Some(ItemKind::Dir), DirCreate, DirRemove),
        (Some(ItemKind::File), FileCreate, FileRemove),
    ] {
        if has(items) {
            wanted.insert(create);
            // The tree can only be removed when it is empty.
            if asked.contains(&TreeRemove) {
                wanted.insert(remove);
            }
        }
    }
    // Prerequisites come before the phases that need them.
    for info in PHASES
        .iter()
        .rev()
        .filter(|info| asked.contains(&info.kind))
    {
        wanted.extend(info.needs);
    }
    let undone: Vec<PhaseKind> = PHASES
        .iter()
        .filter(|info| wanted.contains(&info.kind))
        .filter_map(|info| {
            let removed = match info.items {
                Some(ItemKind::Dir) => wanted.contains(&DirRemove),
                // A file is only removed with its last name.
                Some(ItemKind::File) => wanted.contains(&FileRemove),
                None => false,
            };
            // Both fill the same directories.
            let in_the_way = info.kind == DirFill10 && wanted.contains(&DirFill1k);
            info.undone_by.filter(|_| removed || in_the_way)
        })
        .collect();
    wanted.extend(undone);
    PHASES
        .iter()
        .filter(|info| info.native() && wanted.contains(&info.kind))
        .collect()
}
