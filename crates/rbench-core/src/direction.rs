//! Direction of an operation on blocks of a file.

use serde::{Deserialize, Serialize};

/// Direction of an operation on a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// Reads from the file.
    #[default]
    Read,
    /// Writes to the file.
    Write,
    /// Deallocates blocks, which then read as zeros.
    Trim,
}

impl Direction {
    /// Every direction, in fio's order.
    pub const ALL: [Direction; 3] = [Direction::Read, Direction::Write, Direction::Trim];

    /// Its number in fio's logs.
    pub const fn number(self) -> u8 {
        match self {
            Direction::Read => 0,
            Direction::Write => 1,
            Direction::Trim => 2,
        }
    }
}

/// `unified_rw_reporting`: rows for each direction, or one for all, called `mixed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unified {
    /// A row for each direction.
    #[default]
    Apart,
    /// One row for all.
    Mixed,
    /// Both kinds of rows.
    Both,
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Each<T> {
    /// The value of reads.
    pub read: T,
    /// The value of writes.
    pub write: T,
    /// The value of trims.
    pub trim: T,
}

impl<T> Each<T> {
    /// The value of a direction.
    #[inline(always)]
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// The value of a direction, mutable.
    #[inline(always)]
    pub const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }

    /// All values, in fio's order.
    pub const fn all(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// All values, mutable, in fio's order.
    pub const fn all_mut(&mut self) -> [&mut T; 3] {
        [&mut self.read, &mut self.write, &mut self.trim]
    }

    /// Applies `make` to each value.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Each<U> {
        Each {
            read: make(self.read),
            write: make(self.write),
            trim: make(self.trim),
        }
    }
}

impl<T: Clone> Each<T> {
    /// One value for all.
    pub fn same(value: T) -> Each<T> {
        Each {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}
