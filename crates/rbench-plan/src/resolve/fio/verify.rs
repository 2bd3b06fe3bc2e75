//! `verify` and its companions.

use super::super::PlanError;
use super::blocks::bounds;
use crate::jobs::{BlockSizes, Checksum, Pace, Pattern, Verify};
use crate::spec::fio::{Check, Settings};

/// Bytes that an interval with a header has at least, as in fio.
const INTERVAL_MIN: u64 = 80;

pub(super) fn verify(
    s: &Settings,
    pattern: &Pattern,
    pace: &Pace,
    notes: &mut Vec<String>,
) -> Result<Option<Verify>, PlanError> {
    let only = s.verify_only.unwrap_or(false);
    let checksum = match &s.verify {
        None | Some(Check::Off) if only => refuse!("verify_only needs verify"),
        None | Some(Check::Off) => return Ok(None),
        Some(Check::With(Checksum::Pattern(_))) => match &s.verify_pattern {
            Some(pattern) => Checksum::Pattern(pattern.clone()),
            None => refuse!("verify=pattern needs verify_pattern"),
        },
        Some(Check::With(checksum)) => checksum.clone(),
    };
    let directions = pattern.directions;
    if directions.read && directions.write {
        refuse!(
            "verify cannot be combined with a mix of reads and writes (rw): a read may meet a block \
             that was not written yet"
        );
    }
    let mut read_back = s.do_verify.unwrap_or(true) && directions.write && !only;
    let backlog = s.verify_backlog.filter(|n| *n > 0 && read_back);
    if read_back && pace.time_based && backlog.is_none() {
        notes.push("writing takes all of runtime (time_based): nothing is read back".to_owned());
        read_back = false;
    }
    let headed = !matches!(checksum, Checksum::Pattern(_));
    Ok(Some(Verify {
        interval: interval(s, pattern, headed, notes)?,
        pattern: match checksum {
            Checksum::Pattern(_) => None,
            _ => s.verify_pattern.clone(),
        },
        checksum,
        read_back,
        fatal: s.verify_fatal.unwrap_or(false),
        backlog,
        only,
        threads: 0,
    }))
}

fn interval(
    s: &Settings,
    pattern: &Pattern,
    headed: bool,
    notes: &mut Vec<String>,
) -> Result<u64, PlanError> {
    let sizes = if pattern.directions.write {
        &pattern.sizes.write
    } else {
        &pattern.sizes.read
    };
    let smallest = bounds(sizes).0;
    let asked = s.verify_interval.unwrap_or(smallest);
    if asked > smallest {
        notes.push(format!(
            "verify_interval is cut to the smallest block, {smallest} bytes"
        ));
    }
    let interval = asked.min(smallest);
    if headed && interval < INTERVAL_MIN {
        refuse!(
            "verify needs {INTERVAL_MIN} bytes for each header, and the smallest block (bs) has {smallest}"
        );
    }
    let divides = match sizes {
        // Every block of a range is a multiple of the smallest.
        BlockSizes::Fixed(size) | BlockSizes::Range { min: size, .. } => {
            size.is_multiple_of(interval)
        }
        BlockSizes::Unaligned { .. } => false,
        BlockSizes::Split(parts) => parts.iter().all(|(size, _)| size.is_multiple_of(interval)),
    };
    if !divides {
        refuse!("verify_interval={interval} does not divide the blocks (bs)");
    }
    Ok(interval)
}
