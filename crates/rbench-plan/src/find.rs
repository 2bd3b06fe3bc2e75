//! A search of a tree, complete: where, and for what.

use std::path::PathBuf;

/// What is looked for; without a test every entry matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FindPlan {
    /// Modified after this file was.
    pub newer: Option<PathBuf>,
    /// How large.
    pub size: Option<SizeTest>,
    /// A pattern for the last part of its name, as fnmatch(3) has it.
    pub name: Option<Vec<u8>>,
}

impl FindPlan {
    /// Whether a name alone does not tell whether an entry matches.
    pub fn needs_attributes(&self) -> bool {
        self.newer.is_some() || self.size.is_some()
    }
}

/// `-size`, as find(1) has it: a length in units, the last one begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeTest {
    /// How it compares.
    pub than: Than,
    /// So many units.
    pub units: u64,
    /// Bytes of a unit.
    pub unit: u64,
}

/// How a size compares with the one asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Than {
    /// `N`
    Exactly,
    /// `+N`
    More,
    /// `-N`
    Less,
}

impl SizeTest {
    /// Whether it holds for so many bytes.
    pub fn holds(&self, bytes: u64) -> bool {
        let units = bytes.div_ceil(self.unit.max(1));
        match self.than {
            Than::Exactly => units == self.units,
            Than::More => units > self.units,
            Than::Less => units < self.units,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_count_begun_units_as_find_does() {
        let check = |than, units, unit, holds: &[u64], fails: &[u64]| {
            let test = SizeTest { than, units, unit };
            assert!(holds.iter().all(|bytes| test.holds(*bytes)), "{test:?}");
            assert!(!fails.iter().any(|bytes| test.holds(*bytes)), "{test:?}");
        };
        check(Than::Exactly, 3901, 1, &[3901], &[3900, 3902]);
        check(Than::Exactly, 1, 512, &[1, 512], &[0, 513]);
        check(Than::More, 1, 1024, &[1025], &[0, 1024]);
        check(Than::Less, 1, 1024, &[0], &[1]);
    }
}
