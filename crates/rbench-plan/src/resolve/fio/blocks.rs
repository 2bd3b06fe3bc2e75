//! Block sizes of a job: `bs`, `bsrange`, `bssplit`, `blockalign`.

use super::super::PlanError;
use super::super::blocks::Options;
use crate::jobs::{BlockSizes, Each, Files, Pattern};
use crate::pattern::smallest;
use crate::spec::fio::{BLOCK, Settings, Split};

/// Blocks and places of O_DIRECT are multiples of it at least.
const SECTOR: u64 = 512;

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
    let (split, range, fixed) = (&s.bssplit, s.bsrange, s.bs);
    Ok(Each {
        read: any(of(&split.read, range.read, fixed.read)?),
        write: any(of(&split.write, range.write, fixed.write)?),
        trim: any(of(&split.trim, range.trim, fixed.trim)?),
    })
}

/// `blockalign`, or the smallest block.
pub(super) fn align(s: &Settings, sizes: &Each<BlockSizes>) -> Each<u64> {
    Each {
        read: s.blockalign.read.unwrap_or(smallest(&sizes.read)),
        write: s.blockalign.write.unwrap_or(smallest(&sizes.write)),
        trim: s.blockalign.trim.unwrap_or(smallest(&sizes.trim)),
    }
}

/// The smallest block of the directions that the job has.
pub(super) fn smallest_block(pattern: &Pattern) -> u64 {
    let Each { read, write, trim } = &pattern.sizes;
    let directions = pattern.directions;
    let of = |wanted: bool, sizes| if wanted { smallest(sizes) } else { u64::MAX };
    of(directions.read, read)
        .min(of(directions.write, write))
        .min(of(directions.trim, trim))
}

/// Checks that direct I/O has offsets and lengths that a device takes.
pub(super) fn aligned(pattern: &Pattern, files: &Files) -> Result<(), PlanError> {
    let check = |option: &str, value: u64| {
        if !value.is_multiple_of(SECTOR) {
            refuse!("direct=1 needs multiples of {SECTOR} bytes, but {option} is {value}");
        }
        Ok(())
    };
    let directions = pattern.directions;
    let each = [
        (directions.read, &pattern.sizes.read, pattern.align.read),
        (directions.write, &pattern.sizes.write, pattern.align.write),
    ];
    for (_, sizes, align) in each.into_iter().filter(|(on, ..)| *on) {
        match sizes {
            BlockSizes::Fixed(size) => check("bs", *size)?,
            BlockSizes::Range { min, max } => {
                check("bsrange", *min)?;
                check("bsrange", *max)?;
            }
            BlockSizes::Unaligned { .. } => check("a block size of bs_unaligned", 1)?,
            BlockSizes::Split(parts) => {
                for (size, _) in parts {
                    check("bssplit", *size)?;
                }
            }
        }
        check("blockalign", align)?;
    }
    if files.shares.offset.is_some() || files.shares.increment.is_some() {
        check("offset_align", files.shares.align)?;
    }
    check("offset", files.offset)?;
    check("offset_increment", files.offset_increment)
}
