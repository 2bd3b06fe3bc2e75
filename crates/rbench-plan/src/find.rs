//! The sizes that a search of a tree matches.

/// `-size` as in find(1): a length in units, rounded up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SizeTest {
    /// The comparison.
    pub than: Than,
    /// Number of units.
    pub units: u64,
    /// Bytes of a unit.
    pub unit: u64,
}

/// Comparison of a size with the given one.
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
    /// True if a file of this many bytes passes the test.
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
