//! Sizes of files, and the part of them that a worker uses: `size`, `filesize`, `io_size`, `offset`
//! and its companions.

use super::super::PlanError;
use crate::jobs::{Pattern, Shares};
use crate::spec::fio::{Extent, Settings};

/// The values that follow from the options.
pub(super) struct Parts {
    /// See [`crate::jobs::Files::size`].
    pub(super) size: (u64, u64),
    /// See [`crate::jobs::Files::offset`].
    pub(super) offset: u64,
    /// See [`crate::jobs::Files::offset_increment`].
    pub(super) increment: u64,
    /// See [`crate::jobs::Files::shares`].
    pub(super) shares: Shares,
    /// Bytes to move in all.
    pub(super) io: Moved,
}

/// Total bytes to move, where that is not the size of the files: a number, or a percentage of that
/// size.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Moved {
    pub(super) bytes: Option<u64>,
    pub(super) share: Option<u32>,
}

/// The part of each of `count` files that a worker uses.
pub(super) fn parts(
    s: &Settings,
    pattern: &Pattern,
    count: u64,
    notes: &mut Vec<String>,
) -> Result<Parts, PlanError> {
    let smallest = super::smallest_block(pattern);
    let (total, percent) = bytes_or_percent(s.size, 100);
    let (mut offset, offset_percent) = bytes_or_percent(s.offset, 0);
    let (increment, increment_percent) = bytes_or_percent(s.offset_increment, 0);
    let append = s.file_append.unwrap_or(false);
    if append {
        appends(s, pattern)?;
        offset = None;
    }
    let begins = offset.is_some() || increment.is_some() || append;
    let begins = begins || offset_percent.is_some() || increment_percent.is_some();
    let offset = offset.unwrap_or(0);
    let size = match (s.filesize, total) {
        (Some((a, b)), _) => share_of_files((a.min(b), a.max(b)), percent, offset, smallest)?,
        (None, Some(total)) if count > 1 && total / count < smallest => {
            notes.push(format!(
                "size gives only {} bytes to each of {count} files: each gets one block, {smallest} bytes",
                total / count
            ));
            (smallest, smallest)
        }
        (None, Some(total)) => (total / count, total / count),
        (None, None) if s.plan.files.fill => (ENDLESS, ENDLESS),
        (None, None) => (0, 0),
    };
    if s.plan.files.fill {
        fills(s, pattern)?;
    }
    if size != (0, 0) && size.0 < smallest {
        let option = match s.filesize {
            Some(_) => "filesize",
            None => "size",
        };
        refuse!(
            "{option} is {} bytes, less than the smallest block (bs), {smallest} bytes",
            size.0
        );
    }
    let shares = Shares {
        size: percent.filter(|_| s.filesize.is_none()),
        block: smallest,
        offset: offset_percent,
        increment: increment_percent,
        align: match s.offset_align {
            None | Some(0) => smallest,
            Some(align) => align,
        },
        append,
        of_file: begins && percent.is_none() && s.filesize.is_some(),
    };
    Ok(Parts {
        size,
        offset,
        increment: increment.unwrap_or(0),
        shares: match begins || shares.size.is_some() {
            true => shares,
            false => Shares::default(),
        },
        io: moved(s, size, total, count, begins)?,
    })
}

/// A number of bytes, or per cent: `all` per cent and 0 per cent say nothing.
fn bytes_or_percent(given: Option<Extent>, all: u32) -> (Option<u64>, Option<u32>) {
    match given {
        None | Some(Extent::Bytes(0)) => (None, None),
        Some(Extent::Bytes(bytes)) => (Some(bytes), None),
        Some(Extent::Percent(percent)) if percent == 0 || percent == all => (None, None),
        Some(Extent::Percent(percent)) => (None, Some(percent)),
    }
}

/// `size`, per cent of `filesize`: whole blocks, and not beyond the end.
fn share_of_files(
    (least, most): (u64, u64),
    percent: Option<u32>,
    offset: u64,
    block: u64,
) -> Result<(u64, u64), PlanError> {
    if offset > 0 && offset >= least {
        refuse!("offset ({offset}) is not within the {least} bytes of filesize");
    }
    let Some(percent) = percent else {
        return Ok((least, most));
    };
    let share = |all: u64| {
        let bytes = (u128::from(all) * u128::from(percent) / 100) as u64;
        let bytes = bytes.min(all - offset);
        bytes - bytes % block.max(1)
    };
    if share(least) == 0 {
        refuse!("size={percent}% of filesize ({least}) is less than one block (bs), {block} bytes");
    }
    Ok((share(least), share(most)))
}

/// Bytes to move in all where `size` or `io_size` says so.
fn moved(
    s: &Settings,
    size: (u64, u64),
    total: Option<u64>,
    count: u64,
    begins: bool,
) -> Result<Moved, PlanError> {
    let all = |each: u64| each.saturating_mul(count);
    let bytes = |bytes: u64| Moved {
        bytes: Some(bytes),
        share: None,
    };
    Ok(match (s.io_size, s.filesize, total) {
        (Some(Extent::Bytes(0)), ..) => Moved::default(),
        (Some(Extent::Bytes(given)), ..) => bytes(given),
        (Some(Extent::Percent(percent)), ..) if size.0 == size.1 && size.0 > 0 && !begins => {
            bytes((u128::from(all(size.0)) * u128::from(percent) / 100) as u64)
        }
        (Some(Extent::Percent(percent)), ..) => Moved {
            bytes: None,
            share: Some(percent).filter(|percent| *percent > 0),
        },
        (None, Some(range), Some(total)) if total <= all(range.0) => bytes(total),
        (None, Some(range), Some(total)) if total < all(range.1) => {
            refuse!(
                "size ({total}) is between the smallest and the largest total of files of filesize: \
                 give io_size instead"
            )
        }
        (None, ..) => Moved::default(),
    })
}

/// The size of a file that is written until there is no more room, bytes: the end comes
/// before.
const ENDLESS: u64 = 1 << 60;

/// A file system is filled by writing in sequence.
fn fills(s: &Settings, pattern: &Pattern) -> Result<(), PlanError> {
    refuse_if! {
        pattern.directions.read || pattern.directions.random =>
            "fill_device needs rw=write: it fills the file system sequentially";
        s.plan.files.create_only || s.overwrite == Some(true) =>
            "fill_device cannot be combined with create_only or overwrite: nothing is laid out";
        s.plan.pace.time_based =>
            "fill_device cannot be combined with time_based: it ends when the file system is full";
    }
    Ok(())
}

/// Checks that a job that appends only writes, and says how many bytes.
fn appends(s: &Settings, pattern: &Pattern) -> Result<(), PlanError> {
    refuse_if! {
        pattern.directions.read =>
            "file_append needs a job that only writes: nothing can be read after the end of a file";
        s.filesize.is_none() && !matches!(s.size, Some(Extent::Bytes(1..))) =>
            "file_append needs size, the number of bytes to append";
        s.plan.files.create_only || s.overwrite == Some(true) =>
            "file_append cannot be combined with create_only or overwrite: nothing is laid out after the end";
    }
    Ok(())
}
