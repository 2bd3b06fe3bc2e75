//! `verify` and its companions.

use super::super::PlanError;
use super::trims;
use crate::jobs::{BlockSizes, Carries, Checksum, FioLayout, Pace, Pattern, Verify};
use crate::pattern::{largest, smallest};
use crate::spec::fio::{Check, Settings};
use crate::verify::HEADER;

/// Threads of `verify_async` at most.
const THREADS_MAX: u32 = 64;

pub(super) fn verify(
    s: &Settings,
    pattern: &Pattern,
    pace: &Pace,
    notes: &mut Vec<String>,
) -> Result<Option<Verify>, PlanError> {
    // A job that only reads checks what it reads in any case, as in fio.
    let asked = s.verify_only.unwrap_or(false);
    let replays = !s.replay.logs.is_empty();
    let only = asked && (pattern.directions.changes() || replays);
    let checksum = match &s.verify {
        None | Some(Check::Off) if asked => refuse!("verify_only needs verify"),
        None | Some(Check::Off) => {
            trims::unverified(s, notes);
            return Ok(None);
        }
        Some(Check::With(checksum)) => *checksum,
    };
    if matches!(checksum, Checksum::Pattern | Checksum::PatternHeader) && s.layout.pattern.is_none()
    {
        let name = checksum.name();
        refuse!("verify={name} needs verify_pattern");
    }
    let directions = pattern.directions;
    if !directions.read && !directions.write {
        notes.push("verify has no effect: the job neither writes nor reads".to_owned());
        return Ok(None);
    }
    let mut read_back = s.do_verify.unwrap_or(true) && (directions.write || replays) && !only;
    let backlog = s.checks.backlog.filter(|n| *n > 0 && read_back);
    if read_back && pace.time_based && backlog.is_none() {
        notes.push("writing takes all of runtime (time_based): nothing is read back".to_owned());
        read_back = false;
    }
    let trimmed = trims::backlog(s, (read_back, only), notes)?;
    let threads = s.checks.threads;
    refuse_if!(threads > THREADS_MAX => "verify_async={threads} is more than {THREADS_MAX}");
    let interval = interval(s, pattern, notes);
    Ok(Some(Verify {
        interval,
        carries: Carries::Fio(layout(s, checksum, interval)?),
        read_back,
        // The last thing that was done to a block counts, where that may be a trim.
        once: trimmed.is_some()
            || directions.random
                && pattern.repeats
                && (directions.trim || !s.experimental_verify.unwrap_or(false)),
        backlog,
        backlog_batch: match s.verify_backlog_batch {
            None | Some(0) => backlog.unwrap_or(0),
            Some(batch) => batch,
        },
        only,
        save_state: s.checks.save_state && directions.write,
        trims: trimmed,
        ..s.checks.clone()
    }))
}

/// The layout of headers, and of the data around them.
fn layout(s: &Settings, checksum: Checksum, interval: u64) -> Result<FioLayout, PlanError> {
    let offset = match checksum.has_header() {
        true => s.layout.offset,
        false => 0,
    };
    let (name, length) = (checksum.name(), HEADER + checksum.length());
    refuse_if! {
        checksum.has_header() && offset.saturating_add(length) > interval =>
            "verify={name} needs {length} bytes for each header: at verify_offset={offset} it does not fit \
             into an interval ({interval} bytes: verify_interval, bs)";
        offset > 0 && offset < length =>
            "verify_offset={offset} is within the {length} bytes of the header of verify={name}: use 0 or \
             at least {length}";
    }
    Ok(FioLayout {
        checksum,
        offset,
        ..s.layout.clone()
    })
}

/// Bytes between headers, as fio chooses them: what was asked for up to the smallest
/// block, if it divides all of them.
fn interval(s: &Settings, pattern: &Pattern, notes: &mut Vec<String>) -> u64 {
    let sizes = if pattern.directions.write {
        &pattern.sizes.write
    } else {
        &pattern.sizes.read
    };
    let least = smallest(sizes);
    let divisor = divisor(sizes);
    let reads = match pattern.directions.read {
        true => smallest(&pattern.sizes.read),
        false => u64::MAX,
    };
    let asked = s.verify_interval.unwrap_or(least).max(1);
    let mut interval = asked.min(least).min(reads);
    if !divisor.is_multiple_of(interval) {
        interval = divisor;
    }
    if s.verify_interval.is_some() && interval != asked {
        notes.push(format!(
            "verify_interval={asked} does not divide the block size (bs): {interval} bytes are used"
        ));
    }
    interval
}

/// The largest number of bytes that divides all blocks.
pub(super) fn divisor(sizes: &BlockSizes) -> u64 {
    match sizes {
        BlockSizes::Split(parts) => parts.iter().fold(0, |all, (size, _)| gcd(all, *size)),
        BlockSizes::Unaligned { .. } => 1,
        BlockSizes::Fixed(_) | BlockSizes::Range { .. } => gcd(smallest(sizes), largest(sizes)),
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}
