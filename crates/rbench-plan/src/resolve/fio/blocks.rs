//! Block sizes of a job: `bs`, `bsrange`, `bssplit`, `blockalign`.

use super::super::PlanError;
use super::super::blocks::Options;
use crate::jobs::{BlockSizes, Each};
use crate::spec::fio::{Settings, Split};

/// Block size without an option.
const BLOCK: u64 = 4096;

/// The smallest and the largest block.
pub(super) fn bounds(sizes: &BlockSizes) -> (u64, u64) {
    match sizes {
        BlockSizes::Fixed(size) => (*size, *size),
        BlockSizes::Range { min, max } | BlockSizes::Unaligned { min, max } => (*min, *max),
        BlockSizes::Split(parts) => {
            let sizes = || parts.iter().map(|(size, _)| *size);
            (
                sizes().min().unwrap_or(BLOCK),
                sizes().max().unwrap_or(BLOCK),
            )
        }
    }
}

/// The options that give block sizes.
const OPTIONS: Options = Options {
    split: "bssplit",
    range: "bsrange",
    fixed: "bs",
};

/// `bssplit` counts before `bsrange`, that before `bs`, as in fio.
pub(super) fn sizes(s: &Settings) -> Result<Each<BlockSizes>, PlanError> {
    let of = |split: &Option<Vec<Split>>, range, fixed: Option<u64>| {
        OPTIONS.sizes(split.as_deref(), range, fixed.unwrap_or(BLOCK))
    };
    let any = |sizes| match sizes {
        BlockSizes::Range { min, max } if s.bs_unaligned == Some(true) => {
            BlockSizes::Unaligned { min, max }
        }
        others => others,
    };
    Ok(Each {
        read: any(of(&s.bssplit.read, s.bsrange.read, s.bs.read)?),
        write: any(of(&s.bssplit.write, s.bsrange.write, s.bs.write)?),
    })
}

/// `blockalign`, or the smallest block.
pub(super) fn align(s: &Settings, sizes: &Each<BlockSizes>) -> Each<u64> {
    Each {
        read: s.blockalign.read.unwrap_or(bounds(&sizes.read).0),
        write: s.blockalign.write.unwrap_or(bounds(&sizes.write).0),
    }
}
