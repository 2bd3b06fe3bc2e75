//! Block sizes from the options that give them, native or fio's: one size, a
//! range, or a split by percentages.

use super::PlanError;
use crate::jobs::BlockSizes;
use crate::spec::fio::Split;

/// What these options are called.
pub(super) struct Options {
    pub(super) split: &'static str,
    pub(super) range: &'static str,
    pub(super) fixed: &'static str,
}

impl Options {
    /// A split counts before a range, that before one size for all.
    pub(super) fn sizes(
        &self,
        split: Option<&[Split]>,
        range: Option<(u64, u64)>,
        fixed: u64,
    ) -> Result<BlockSizes, PlanError> {
        let positive = |option: &str, size: u64| {
            if size == 0 {
                refuse!("{option}: a block must have at least 1 byte");
            }
            Ok(size)
        };
        if let Some(split) = split {
            for (size, _) in split {
                positive(self.split, *size)?;
            }
            return self.shares(split).map(|parts| match parts.as_slice() {
                [(size, 100)] => BlockSizes::Fixed(*size),
                _ => BlockSizes::Split(parts),
            });
        }
        if let Some((min, max)) = range {
            let (min, max) = (min.min(max), min.max(max));
            positive(self.range, min)?;
            return Ok(if min == max {
                BlockSizes::Fixed(min)
            } else {
                BlockSizes::Range { min, max }
            });
        }
        positive(self.fixed, fixed).map(BlockSizes::Fixed)
    }

    /// Entries without a percentage share what the others leave.
    fn shares(&self, split: &[Split]) -> Result<Vec<(u64, u32)>, PlanError> {
        let given: u32 = split.iter().filter_map(|(_, percent)| *percent).sum();
        let open = split
            .iter()
            .filter(|(_, percent)| percent.is_none())
            .count() as u32;
        if given > 100 || (open == 0 && given != 100) {
            refuse!("{}: the percentages add up to {given}, not 100", self.split);
        }
        let rest = 100 - given;
        let mut seen = 0;
        let parts = split.iter().map(|(size, percent)| {
            let percent = percent.unwrap_or_else(|| {
                seen += 1;
                // What does not divide evenly goes to the first ones.
                rest / open + u32::from(seen <= rest % open)
            });
            (*size, percent)
        });
        Ok(parts.filter(|(_, percent)| *percent > 0).collect())
    }
}
