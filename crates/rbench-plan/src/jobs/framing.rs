//! What surrounds the operations of a job: opens and closes, and what becomes of its files.

/// Whether opens and closes of files are timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Framing {
    /// Files are open before the start, and closed when all is over.
    #[default]
    Untimed,
    /// Each worker opens its files when it starts, and closes them when its last
    /// operation and the sync behind it are done.
    Timed,
    /// The same, and all workers wait for each other behind the opens and before the
    /// syncs and closes.
    Apart,
}

impl Framing {
    /// Whether they are.
    pub fn is_timed(self) -> bool {
        self != Framing::Untimed
    }
}

/// What the run asks of files before its first operation, and leaves of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Where one is there before the run, the run is refused.
    pub must_be_new: bool,
    /// Where one is not there before the run, the run is refused.
    pub must_be_there: bool,
    /// What the run has made of them it removes: behind a round with `unlink`, or when it
    /// ends early. What was there before stays.
    pub temporary: bool,
}
