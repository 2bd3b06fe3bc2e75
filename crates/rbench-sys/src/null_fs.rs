//! Metadata operations that all succeed and do nothing. They measure the cost of the
//! tool itself, like the engine `null`.

use std::os::fd::{OwnedFd, RawFd};

use nix::errno::Errno;
use rbench_core::Call;

use crate::fs::{Fs, Operands};

/// The descriptor of every file: no process may have so high a number, so it is never
/// mistaken for a real one.
const FD: RawFd = RawFd::MAX;

/// No file system: every call succeeds. Reads and writes return the whole length and
/// touch no byte. Sizes, numbers of entries, and lengths of targets and attributes
/// are 0.
#[derive(Debug, Clone, Copy, Default)]
pub struct NullFs;

impl Fs for NullFs {
    #[inline]
    fn call(&self, call: &Call, on: Operands<'_>) -> Result<u64, Errno> {
        Ok(match call {
            Call::Open(_) => FD as u64,
            Call::Read | Call::ReadAt(_) | Call::Write | Call::WriteAt(_) => {
                on.data.bytes().len() as u64
            }
            _ => 0,
        })
    }

    fn directory(&self) -> Option<&OwnedFd> {
        None
    }
}

#[cfg(test)]
mod tests {
    use rbench_core::OpKind;
    use rbench_core::operations::{OPERATIONS, WORDS};

    use super::*;

    #[test]
    fn everything_succeeds_whatever_was_asked_before() {
        let mut buffer = [7; 100];
        let of_phases = OPERATIONS.iter().flat_map(|operation| operation.timed);
        let all = of_phases
            .copied()
            .chain(WORDS.iter().map(|word| (word.call)(9)));
        let all: Vec<Call> = all.collect();
        for call in [&all[..], &all[..]].concat() {
            let on = Operands::paths(c"/no/where", c"b").receiving(&mut buffer[..60]);
            let moves = matches!(call.op(), OpKind::Read | OpKind::Write);
            let expect = match call {
                Call::Open(_) => FD as u64,
                _ if moves => 60,
                _ => 0,
            };
            assert_eq!(NullFs.call(&call, on), Ok(expect), "{call:?}");
        }
        assert_eq!(buffer, [7; 100], "no byte is touched");
        assert!(NullFs.directory().is_none());
    }
}
