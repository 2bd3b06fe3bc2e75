//! The rule: which contents a block may have after a crash.
//!
//! - A write is durable when it was acknowledged, then a sync of the file
//!   through the same descriptor began, and that sync was acknowledged. A sync
//!   that fails makes nothing durable, and neither does a later one what began
//!   before it: the kernel may have dropped those pages.
//! - A write is superseded when it had ended before a durable write of the
//!   same block began.
//! - A block may have the content of every write that is not superseded
//!   (acknowledged, failed, or never answered), and that of no write at all
//!   (zeros, or nothing) as long as no write of it is durable.
//!
//! The records of one worker are in the order in which it took them down: a
//! start before it happened, an end after it. What may have been at the same
//! time therefore counts as at the same time. Only the worker's own syncs
//! count, though those of others cover its writes in a shared file as well:
//! their order is not known.

use std::collections::HashMap;

use super::format::{Kind, Record};

/// Superseded writes that are remembered, to tell them from damage.
const OLD_MAX: usize = 4;

/// A write of a block that it may still hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// Its generation.
    pub generation: u64,
    /// Number of the record of its start.
    started: u64,
    /// Number of the record of its end; [`u64::MAX`]: under way.
    ended: u64,
    acknowledged: bool,
}

/// The writes of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// The writes that are not superseded, in the order of their start.
    permitted: Vec<Written>,
    /// Generations of the last writes that are superseded.
    pub old: Vec<u64>,
    /// Generation of the durable write that began last; without one the block may be empty.
    pub durable: Option<u64>,
    /// Generation of the write that began last.
    pub newest: u64,
}

impl Block {
    /// The generations that it may have, oldest first.
    pub fn permitted(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.permitted.iter().map(|write| write.generation)
    }

    /// Returns true if parts of a write may be there without the rest: one of them failed, was
    /// never answered, or was in flight at the same time as another.
    pub fn in_parts(&self) -> bool {
        let mut ended = 0;
        // In the order of their start.
        self.permitted.iter().any(|write| {
            let beside = write.started < ended;
            ended = ended.max(write.ended);
            beside || !write.acknowledged
        })
    }

    /// Returns true if `generation` is what a reader would have seen before the crash:
    /// acknowledged, and no acknowledged write started after it.
    pub fn is_current(&self, generation: u64) -> bool {
        let found = self.permitted.iter().find(|w| w.generation == generation);
        found.is_some_and(|found| {
            let newer = |w: &Written| w.acknowledged && w.started > found.ended;
            found.acknowledged && !self.permitted.iter().any(newer)
        })
    }

    fn unfinished(&mut self, generation: u64) -> Option<&mut Written> {
        let open = |w: &&mut Written| w.generation == generation && w.ended == u64::MAX;
        self.permitted.iter_mut().find(open)
    }

    /// The write of `generation` is durable.
    fn settle(&mut self, generation: u64) {
        let durable = |w: &&Written| w.generation == generation && w.acknowledged;
        let Some(floor) = self.permitted.iter().rfind(durable).copied() else {
            // A later durable write has superseded it.
            return;
        };
        let Block { permitted, old, .. } = self;
        permitted.retain(|write| {
            let stays = write.ended >= floor.started;
            if !stays {
                old.push(write.generation);
            }
            stays
        });
        old.drain(..old.len().saturating_sub(OLD_MAX));
        self.durable = self.durable.max(Some(generation));
    }
}

/// Blocks `first` to `last` of a file in one generation.
#[derive(Debug, Clone, Copy)]
struct Piece {
    first: u64,
    last: u64,
    generation: u64,
}

/// Writes to a file that may become durable.
#[derive(Debug, Clone, Default)]
struct Pending {
    /// Acknowledged since the last sync began.
    unsynced: Vec<Piece>,
    /// Acknowledged before the sync that is under way began.
    covered: Vec<Piece>,
    /// Number of the record after which a write must have started: a sync failed, or the file was
    /// opened.
    since: u64,
}

impl Pending {
    /// No later sync makes durable what began before.
    fn forget(&mut self, position: u64) {
        *self = Pending {
            since: position,
            ..Pending::default()
        };
    }
}

/// The blocks of a worker, from its records.
#[derive(Debug, Clone)]
pub struct History {
    block: u64,
    blocks: HashMap<(u64, u64), Block>,
    pending: HashMap<u64, Pending>,
    position: u64,
}

impl History {
    /// An empty history, of blocks of this many bytes.
    pub fn new(block: u64) -> History {
        History {
            block,
            blocks: HashMap::new(),
            pending: HashMap::new(),
            position: 0,
        }
    }

    /// The writes of the block at `offset` of `file`; `None`: no write of it has started.
    pub fn block(&self, file: u64, offset: u64) -> Option<&Block> {
        self.blocks.get(&(file, offset / self.block))
    }

    /// Takes in the next record.
    ///
    /// # Errors
    /// When it cannot follow those before it, as a clause.
    pub fn take(&mut self, record: Record) -> Result<(), String> {
        let position = self.position;
        self.position += 1;
        let of_write = matches!(
            record.kind,
            Kind::WriteStarted | Kind::WriteAcknowledged | Kind::WriteFailed
        );
        let length = u64::from(record.length);
        let whole = record.offset.is_multiple_of(self.block) && length.is_multiple_of(self.block);
        if of_write && (length == 0 || !whole) {
            return Err(format!("its record {position} does not cover whole blocks"));
        }
        let first = record.offset / self.block;
        let last = (first + length / self.block).saturating_sub(1);
        let piece = Piece {
            first,
            last,
            generation: record.generation,
        };
        match record.kind {
            Kind::Opened | Kind::SyncFailed => {
                self.pending
                    .entry(record.file)
                    .or_default()
                    .forget(position);
            }
            Kind::WriteStarted => self.started(record.file, piece, position),
            Kind::WriteAcknowledged => {
                let started = self.ended(record.file, piece, position, true)?;
                let pending = self.pending.entry(record.file).or_default();
                if started >= pending.since {
                    pending.unsynced.push(piece);
                }
            }
            Kind::WriteFailed => {
                self.ended(record.file, piece, position, false)?;
            }
            Kind::SyncStarted => {
                let pending = self.pending.entry(record.file).or_default();
                pending.covered.append(&mut pending.unsynced);
            }
            Kind::SyncAcknowledged => {
                let pending = self.pending.entry(record.file).or_default();
                let covered = std::mem::take(&mut pending.covered);
                covered
                    .iter()
                    .for_each(|piece| self.settle(record.file, *piece));
            }
        }
        Ok(())
    }

    fn started(&mut self, file: u64, piece: Piece, position: u64) {
        for index in piece.first..=piece.last {
            let block = self.blocks.entry((file, index)).or_default();
            block.newest = block.newest.max(piece.generation);
            block.permitted.push(Written {
                generation: piece.generation,
                started: position,
                ended: u64::MAX,
                acknowledged: false,
            });
        }
    }

    /// Notes how a write ended; the number of the record of its start.
    fn ended(
        &mut self,
        file: u64,
        piece: Piece,
        position: u64,
        acknowledged: bool,
    ) -> Result<u64, String> {
        let mut started = position;
        for index in piece.first..=piece.last {
            let write = self
                .blocks
                .get_mut(&(file, index))
                .and_then(|block| block.unfinished(piece.generation))
                .ok_or_else(|| {
                    format!("its record {position} ends a write that was not started")
                })?;
            (write.ended, write.acknowledged) = (position, acknowledged);
            started = write.started;
        }
        Ok(started)
    }

    fn settle(&mut self, file: u64, piece: Piece) {
        for index in piece.first..=piece.last {
            if let Some(block) = self.blocks.get_mut(&(file, index)) {
                block.settle(piece.generation);
            }
        }
    }
}

#[cfg(test)]
mod tests;
