//! A power cut on request of the owner of a mount. The back end loses the changes
//! that were not durable, and the kernel drops its caches of them.

use std::io;

use fuser::INodeNo;
use nix::errno::Errno;
use rbench_core::random::Stream;

use crate::control::Control;
use crate::fault::log::FaultRecord;
use crate::fault::table::POWER_CUT;
use crate::memory::Memory;

/// Changes that survive a power cut without having been synced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Survivors {
    /// None.
    #[default]
    None,
    /// Like on a disk, chosen by the seed. Of the changes of content, a third each survives, is
    /// lost, or is torn between blocks of 4 KiB, in any combination. Half of the new names survive.
    Seeded(u64),
}

/// The reason why the power could not be cut. Its texts are whole clauses.
#[derive(Debug, thiserror::Error)]
pub enum PowerCutError {
    /// The file system was mounted without power cuts.
    #[error("the file system does not know what is durable (it was mounted without power cuts)")]
    NotPrepared,
    /// Durable data that was removed since no longer fits.
    #[error("what was durable cannot be restored: {}", .0.desc())]
    Restore(Errno),
    /// The kernel could not be made to drop its caches.
    #[error("the kernel still holds what it has seen: {0}")]
    Kernel(io::Error),
}

/// Cuts the power. Returns the fate of each change that was not durable.
pub(crate) fn cut(
    memory: &Memory,
    control: &Control,
    survivors: Survivors,
) -> Result<Vec<FaultRecord>, PowerCutError> {
    // The kernel cannot drop pages that a held reply is to fill.
    control.hangs.release();
    let draws = match survivors {
        Survivors::None => None,
        Survivors::Seeded(seed) => Some(Stream::new(&[seed])),
    };
    let cut = memory.cut_power(draws).map_err(PowerCutError::Restore)?;
    control.history.clear();
    let notifier = control.notifier.lock().clone();
    // Without a session the kernel has not seen anything.
    if let Some(notifier) = notifier {
        let forget = || {
            for (parent, name) in &cut.names {
                notifier.inval_entry(INodeNo(*parent), name)?;
            }
            for ino in &cut.inodes {
                notifier.inval_inode(INodeNo(*ino), 0, 0)?;
            }
            Ok(())
        };
        forget().map_err(PowerCutError::Kernel)?;
    }
    let faults = control.stats.faults();
    for record in &cut.records {
        faults.log().add(record.clone());
    }
    let end = FaultRecord {
        kind: "power_cut".to_owned(),
        action: "done".to_owned(),
        path: ".".to_owned(),
        ..FaultRecord::default()
    };
    faults.happened(POWER_CUT, end);
    Ok(cut.records)
}
