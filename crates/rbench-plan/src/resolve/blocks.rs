//! Block sizes from native options or fio's: one size, a range, or a split by
//! percentages.

use super::PlanError;
use crate::jobs::BlockSizes;
use crate::spec::fio::Split;

/// Names of the options.
pub(super) struct Options {
    pub(super) split: &'static str,
    pub(super) range: &'static str,
    pub(super) fixed: &'static str,
}

impl Options {
    /// The sizes: a split takes precedence over a range, and a range over a single
    /// size.
    pub(super) fn sizes(
        &self,
        split: Option<&[Split]>,
        range: Option<(u64, u64)>,
        fixed: u64,
    ) -> Result<BlockSizes, PlanError> {
        let positive = |option: &str, size: u64| {
            refuse_if!(size == 0 => "{option}: a block must have at least 1 byte");
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

    /// The shares of a split. Entries without a percentage share the rest.
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
                // The first ones get the remainder of the division.
                rest / open + u32::from(seen <= rest % open)
            });
            (*size, percent)
        });
        Ok(parts.filter(|(_, percent)| *percent > 0).collect())
    }
}
