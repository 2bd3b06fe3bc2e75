//! What a job's places follow besides their order: gaps, runs, zones.

/// How the places of a job go on; by default one behind the other, or each at random.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Course {
    /// The number behind `rw`.
    pub sequel: Sequel,
    /// `zonemode=strided`
    pub zones: Option<Zones>,
    /// `bs_is_seq_rand`: the sizes of reads are those of what goes on where the last
    /// operation ended, in both directions, and the sizes of writes those of random
    /// places.
    pub sizes_by_order: bool,
    /// The blocks of a sequence count from one that moves on by as many after each round
    /// (`random_sequence_stride`).
    pub sequence_moves_on: bool,
    /// Whether no random place comes twice before all have come, as far as the course
    /// lets it.
    pub covers: bool,
}

impl Course {
    /// Whether a pass may leave out parts of a file, or visit some of it twice.
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

/// Where an operation goes after the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sequel {
    /// To the next block, or to another random place.
    #[default]
    Next,
    /// Sequential: so many bytes further on than to the next block (negative: back).
    Skip(i64),
    /// To a random place once in so many operations (0: never); the others go on behind
    /// it (`rw_sequencer=sequential`) or stay there (identical).
    Run {
        /// Operations.
        length: u64,
        /// They stay.
        identical: bool,
    },
}

/// `zonemode=strided`: a part of the file, then the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Zones {
    /// Bytes to move in a zone before the next one (`zonesize`).
    pub bytes: u64,
    /// Length of a zone, bytes (`zonerange`).
    pub range: u64,
    /// Bytes between two zones (`zoneskip`).
    pub skip: u64,
}
