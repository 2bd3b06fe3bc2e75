//! Rules for offsets besides their order: the number after `rw`, `zonemode`, `bs_is_seq_rand`.

use super::super::PlanError;
use crate::jobs::{BlockSizes, Course, Directions, Distribution, Each, Sequel, Zones};
use crate::pattern::smallest;
use crate::spec::fio::Settings;

/// The course of a job; `sizes` become those of what it moves where `bs_is_seq_rand`
/// says the same for all of it.
pub(super) fn course(
    s: &Settings,
    directions: Directions,
    covers: bool,
    sizes: &mut Each<BlockSizes>,
    notes: &mut Vec<String>,
) -> Result<Course, PlanError> {
    let sequel = sequel(s, directions)?;
    let zones = zones(s, notes)?;
    if zones.is_some() && sequel != Sequel::Next {
        refuse!("zonemode=strided cannot be combined with a number after rw");
    }
    let sequence_moves_on = s.random_sequence_stride.unwrap_or(false);
    let is_sequence = matches!(s.plan.pattern.distribution, Distribution::Sequence(_));
    if sequence_moves_on && !is_sequence {
        refuse!("random_sequence_stride needs random_distribution=sequence");
    }
    let mut course = Course {
        sequence_moves_on,
        sequel,
        zones,
        sizes_by_order: false,
        covers,
    };
    if s.bs_is_seq_rand == Some(true) {
        let mut percents = s.percentage_random.all().into_iter();
        let all_random = percents.all(|percent| percent.unwrap_or(100) == 100);
        if !directions.random {
            *sizes = Each::same(sizes.read.clone());
        } else if all_random && sequel == Sequel::Next {
            *sizes = Each::same(sizes.write.clone());
        } else {
            course.sizes_by_order = true;
        }
    }
    Ok(course)
}

fn sequel(s: &Settings, directions: Directions) -> Result<Sequel, PlanError> {
    let identical = s.rw_identical.unwrap_or(false);
    Ok(match (directions.random, s.rw_number) {
        (_, None) | (false, Some(0)) | (true, Some(1)) => Sequel::Next,
        (false, Some(bytes)) => Sequel::Skip(bytes),
        (true, Some(length)) => match u64::try_from(length) {
            Ok(length) => Sequel::Run { length, identical },
            Err(_) => {
                refuse!("the number after rw is a number of operations, but {length} is negative")
            }
        },
    })
}

fn zones(s: &Settings, notes: &mut Vec<String>) -> Result<Option<Zones>, PlanError> {
    let bytes = s.zonesize.filter(|bytes| *bytes > 0);
    if s.strided != Some(true) {
        refuse_if!(bytes.is_some() => "zonesize needs zonemode=strided");
        if s.zonerange.is_some() || s.zoneskip.is_some() {
            notes.push("zonerange and zoneskip have no effect without zonemode=strided".to_owned());
        }
        return Ok(None);
    }
    let Some(bytes) = bytes else {
        refuse!("zonemode=strided needs zonesize, the bytes to move in a zone");
    };
    Ok(Some(Zones {
        bytes,
        range: s.zonerange.filter(|range| *range > 0).unwrap_or(bytes),
        skip: s.zoneskip.unwrap_or(0),
    }))
}

/// Returns true if offsets are drawn in other steps than the smallest block, so that a block may
/// come twice.
pub(super) fn overlaps(sizes: &Each<BlockSizes>, align: Each<u64>) -> bool {
    let of = |sizes: &BlockSizes, align| match sizes {
        BlockSizes::Unaligned { .. } => true,
        sizes => smallest(sizes) != align,
    };
    let Each { read, write, trim } = sizes;
    of(read, align.read) || of(write, align.write) || of(trim, align.trim)
}
