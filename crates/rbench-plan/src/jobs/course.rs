//! Course of a job's offsets: gaps, runs, zones.

/// Course of a job's offsets; by default sequential, or each random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Course {
    /// The number after `rw`.
    pub sequel: Sequel,
    /// `zonemode=strided`
    pub zones: Option<Zones>,
    /// `bs_is_seq_rand`: operations that continue where the last one ended have the
    /// sizes of reads, in both directions. Operations at random offsets have the sizes
    /// of writes.
    pub sizes_by_order: bool,
    /// The blocks of a sequence count from a base that moves on after each round
    /// (`random_sequence_stride`).
    pub sequence_moves_on: bool,
    /// True if no random offset repeats before all were used, as far as the course
    /// permits.
    pub covers: bool,
}

impl Course {
    /// True if a pass visits the whole file exactly once.
    pub fn is_plain(&self) -> bool {
        let Course {
            sequel,
            zones,
            sizes_by_order,
            sequence_moves_on: _,
            covers: _,
        } = self;
        *sequel == Sequel::Next && zones.is_none() && !sizes_by_order
    }
}

/// Offset of an operation after its predecessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sequel {
    /// The next block, or another random offset.
    #[default]
    Next,
    /// Sequential: this many bytes after the next block (negative: before).
    Skip(i64),
    /// A random offset once in this number of operations (0: never). The others continue
    /// after it (`rw_sequencer=sequential`) or stay there (identical).
    Run {
        /// Number of operations.
        length: u64,
        /// True if they stay.
        identical: bool,
    },
}

/// `zonemode=strided`: parts of the file, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zones {
    /// Bytes to move in a zone before the next (`zonesize`).
    pub bytes: u64,
    /// Length of a zone in bytes (`zonerange`).
    pub range: u64,
    /// Bytes between two zones (`zoneskip`).
    pub skip: u64,
}
