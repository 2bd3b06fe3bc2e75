//! Opens and closes around the operations of a job, and the handling of its files before
//! and after.

/// Timing of opens and closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Framing {
    /// Files are opened before the start, and closed after the end.
    #[default]
    Untimed,
    /// Each worker opens its files when it starts, and closes them after its last operation
    /// and the sync.
    Timed,
    /// Like `Timed`, and all workers wait for each other after the opens, and before the
    /// syncs and closes.
    Apart,
}

impl Framing {
    /// True if opens and closes are timed.
    pub fn is_timed(self) -> bool {
        self != Framing::Untimed
    }
}

/// Requirements of files before the first operation, and their removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// True if the run is refused when one exists.
    pub must_be_new: bool,
    /// True if the run is refused when one is missing.
    pub must_be_there: bool,
    /// True if the run removes files that it has created: after a round with `unlink`, or
    /// when it ends early. Files that existed before stay.
    pub temporary: bool,
}
