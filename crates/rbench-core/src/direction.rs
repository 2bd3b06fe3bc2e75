//! What an operation on the blocks of a file does.

/// What an operation does to a range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// From the file.
    #[default]
    Read,
    /// Into the file.
    Write,
    /// Its blocks are given back, and it reads as zeros from then on.
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

/// `unified_rw_reporting`: whether all directions are shown as one, `mixed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unified {
    /// Each has rows of its own.
    #[default]
    Apart,
    /// All have one row.
    Mixed,
    /// Both ways.
    Both,
}

/// A value for each direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Each<T> {
    /// Of reads.
    pub read: T,
    /// Of writes.
    pub write: T,
    /// Of trims.
    pub trim: T,
}

impl<T> Each<T> {
    /// That of one direction.
    #[inline(always)]
    pub const fn of(&self, direction: Direction) -> &T {
        match direction {
            Direction::Read => &self.read,
            Direction::Write => &self.write,
            Direction::Trim => &self.trim,
        }
    }

    /// The same, to be changed.
    #[inline(always)]
    pub const fn of_mut(&mut self, direction: Direction) -> &mut T {
        match direction {
            Direction::Read => &mut self.read,
            Direction::Write => &mut self.write,
            Direction::Trim => &mut self.trim,
        }
    }

    /// All of them, in fio's order.
    pub const fn all(&self) -> [&T; 3] {
        [&self.read, &self.write, &self.trim]
    }

    /// The same, to be changed.
    pub const fn all_mut(&mut self) -> [&mut T; 3] {
        [&mut self.read, &mut self.write, &mut self.trim]
    }

    /// What `make` makes of each.
    pub fn map<U>(self, mut make: impl FnMut(T) -> U) -> Each<U> {
        Each {
            read: make(self.read),
            write: make(self.write),
            trim: make(self.trim),
        }
    }
}

impl<T: Clone> Each<T> {
    /// The same for all.
    pub fn same(value: T) -> Each<T> {
        Each {
            read: value.clone(),
            write: value.clone(),
            trim: value,
        }
    }
}
