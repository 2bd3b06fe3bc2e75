//! Completion of a request: the rule about partial, interrupted and unaligned
//! transfers that all engines share.

use nix::errno::Errno;
use nix::libc;

use super::contract::{Request, RetriesByTransfer};

/// The smallest logical block of a device: a direct transfer that ended within a
/// block cannot be continued.
const SECTOR: usize = 512;

/// Processes the result of one system call for the rest of `request`: adds it to
/// `moved`, and counts further calls in `again`. `None` if another call is needed.
#[inline]
pub(super) fn advance(
    request: &Request,
    moved: &mut usize,
    returned: Result<usize, Errno>,
    again: &mut RetriesByTransfer,
) -> Option<Result<usize, Errno>> {
    match returned {
        Ok(_) if request.transfer.is_sync() => Some(Ok(0)),
        // No counting: almost all calls end like this.
        Ok(n) if n >= request.length && n > 0 => {
            *moved = n;
            Some(Ok(n))
        }
        _ => advance_by_part(request, moved, returned, again),
    }
}

#[cold]
fn advance_by_part(
    request: &Request,
    moved: &mut usize,
    returned: Result<usize, Errno>,
    again: &mut RetriesByTransfer,
) -> Option<Result<usize, Errno>> {
    match returned {
        // The previous call was short: there is no more data.
        Ok(0) => Some(Ok(*moved)),
        Ok(n) => {
            // The rest of the previous call follows.
            again.of(request.transfer).continued += u64::from(*moved > 0);
            *moved += n;
            let ends =
                *moved >= request.length || (!n.is_multiple_of(SECTOR) && is_direct(request));
            ends.then_some(Ok(*moved))
        }
        Err(Errno::EINTR) => {
            again.of(request.transfer).interrupted += 1;
            None
        }
        // A device with blocks larger than SECTOR refuses the rest.
        Err(Errno::EINVAL) if *moved > 0 && is_direct(request) => Some(Ok(*moved)),
        Err(errno) => Some(Err(errno)),
    }
}

/// True if the file is open with `O_DIRECT`. Only checked after a partial transfer,
/// because it costs a system call.
#[cold]
fn is_direct(request: &Request) -> bool {
    // SAFETY: F_GETFL has no argument and changes nothing; a closed descriptor gives
    // -1.
    let flags = unsafe { libc::fcntl(request.fd, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_DIRECT != 0
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::OpenOptionsExt;

    use rbench_core::outcome::Retries;
    use rbench_core::{IoPriority, each};

    use super::*;
    use crate::engine::contract::Transfer;

    /// The result of a request of 8192 bytes, with the kernel's results `calls` in
    /// order.
    fn outcome(file: &File, transfer: Transfer, calls: &[Result<usize, Errno>]) -> String {
        followed(file, transfer, calls).0
    }

    /// Like `outcome`, with the counts of further calls.
    fn followed(
        file: &File,
        transfer: Transfer,
        calls: &[Result<usize, Errno>],
    ) -> (String, RetriesByTransfer) {
        let request = Request {
            transfer,
            fd: file.as_raw_fd(),
            offset: 0,
            length: 8192,
            at: 0,
            priority: IoPriority::default(),
        };
        let (mut moved, mut again) = (0, RetriesByTransfer::default());
        for (i, call) in calls.iter().enumerate() {
            if let Some(result) = advance(&request, &mut moved, *call, &mut again) {
                return (format!("{result:?} after {}", i + 1), again);
            }
        }
        (format!("{moved} and more to come"), again)
    }

    #[test]
    fn calls_beyond_the_first_are_counted_for_what_they_did() {
        let file = tempfile::tempfile().expect("a temporary file");
        let interrupted = Err(Errno::EINTR);
        let check = |transfer, calls: &[_], interrupted, continued| {
            let mut expect = RetriesByTransfer::default();
            *expect.of(transfer) = Retries {
                interrupted,
                continued,
            };
            let (outcome, again) = followed(&file, transfer, calls);
            assert_eq!(again, expect, "{transfer:?} {calls:?}: {outcome}");
        };
        for transfer in [Transfer::Read, Transfer::Write] {
            check(transfer, &[Ok(8192)], 0, 0);
            check(transfer, &[Ok(100), Ok(8092)], 0, 1);
            check(transfer, &[Ok(100), Ok(100), Ok(7992)], 0, 2);
            check(transfer, &[interrupted, interrupted, Ok(8192)], 2, 0);
            check(transfer, &[Ok(1), interrupted, Ok(8191)], 1, 1);
            // The end of the file: no further call had the rest.
            check(transfer, &[Ok(0)], 0, 0);
            check(transfer, &[Ok(100), Ok(0)], 0, 0);
            check(transfer, &[Ok(100), Err(Errno::EIO)], 0, 0);
        }
        check(Transfer::Fsync, &[interrupted, Ok(0)], 1, 0);
        check(Transfer::DataSync, &[interrupted, Ok(0)], 1, 0);
    }

    #[test]
    fn a_request_ends_when_all_is_moved_or_nothing_more_comes() {
        let file = tempfile::tempfile().expect("a temporary file");
        let check = |transfer, calls: &[_], expect| {
            assert_eq!(outcome(&file, transfer, calls), expect);
        };
        each! { check:
            Transfer::Read => &[Ok(8192)] => "Ok(8192) after 1";
            Transfer::Read => &[Ok(0)] => "Ok(0) after 1";
            Transfer::Read => &[Ok(100), Ok(0)] => "Ok(100) after 2";
            Transfer::Write => &[Ok(100), Ok(8092)] => "Ok(8192) after 2";
            Transfer::Write => &[Ok(100)] => "100 and more to come";
            Transfer::Read => &[Err(Errno::EINTR), Ok(1), Err(Errno::EINTR), Ok(8191)] => "Ok(8192) after 4";
            Transfer::Write => &[Ok(4096), Err(Errno::ENOSPC)] => "Err(ENOSPC) after 2";
            Transfer::Write => &[Ok(4096), Err(Errno::EINVAL)] => "Err(EINVAL) after 2";
            Transfer::Fsync => &[Err(Errno::EINTR), Ok(0)] => "Ok(0) after 2";
            Transfer::Fsync => &[Err(Errno::EIO)] => "Err(EIO) after 1";
            Transfer::DataSync => &[Ok(0)] => "Ok(0) after 1";
        }
    }

    #[test]
    fn a_direct_transfer_is_continued_only_where_it_can_be() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = File::options()
            .write(true)
            .create(true)
            .truncate(true)
            .custom_flags(libc::O_DIRECT)
            .open(directory.path().join("f"))
            .expect("the temporary directory takes O_DIRECT");
        let check = |calls: &[_], expect| {
            assert_eq!(outcome(&file, Transfer::Read, calls), expect);
        };
        check(&[Ok(100)], "Ok(100) after 1");
        check(&[Ok(4096), Ok(100)], "Ok(4196) after 2");
        check(&[Ok(512), Ok(0)], "Ok(512) after 2");
        check(&[Ok(512), Err(Errno::EINVAL)], "Ok(512) after 2");
        check(&[Err(Errno::EINVAL)], "Err(EINVAL) after 1");
    }
}
