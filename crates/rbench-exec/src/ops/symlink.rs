//! Giving each file a symbolic link in the same directory, and reading its target.

use rbench_core::{FailureKind, OpKind};
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, OpContext, OpEntry, Places, SYMLINKED};
use crate::worker::Prepared;

/// `symlinkat`
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Symlink,
    make: |scene, thread| {
        let op = Symlink {
            names: Names::of(scene),
        };
        scene.ring_runner(op, thread)
    },
};

/// `readlinkat`
pub const READ_ROW: OpEntry = OpEntry {
    op: OpKind::Readlink,
    make: make_reader,
};

/// Room for the target: the name of an item is far shorter.
const BUFFER: usize = 256;

fn make_reader(scene: &OpContext, thread: u32) -> Prepared {
    let op = Readlink {
        names: Names::of(scene),
        buffer: [0; BUFFER],
        length: 0,
    };
    scene.runner(op, thread)
}

/// A link and what it leads to.
struct Names {
    item: Places,
    link: Places,
}

impl Names {
    fn of(scene: &OpContext) -> Names {
        Names {
            item: scene.places(scene.renamed),
            link: scene.suffixed(SYMLINKED),
        }
    }

    fn aim(&mut self, index: u64) {
        self.item.item(index);
        self.link.item(index);
    }

    /// The target: the item's name, without the way to it.
    fn target(&self) -> &std::ffi::CStr {
        let path = self.item.current();
        let bytes = path.to_bytes_with_nul();
        let start = bytes
            .iter()
            .rposition(|b| *b == b'/')
            .map_or(0, |at| at + 1);
        std::ffi::CStr::from_bytes_with_nul(&bytes[start..]).unwrap_or(path)
    }
}

struct Symlink {
    names: Names,
}

impl ItemOp for Symlink {
    fn prepare(&mut self, index: u64) {
        self.names.aim(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        fs.symlink(self.names.target(), self.names.link.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.names.link.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Symlink
    }
}

impl RingOp for Symlink {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Symlink], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.names.link.current());
        ring.set_other(slot, self.names.target());
    }
}

struct Readlink {
    names: Names,
    buffer: [u8; BUFFER],
    /// Of the target that was read.
    length: usize,
}

impl ItemOp for Readlink {
    fn prepare(&mut self, index: u64) {
        self.names.aim(index);
        self.length = 0;
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        self.length = fs.readlink(self.names.link.current(), &mut self.buffer)?;
        Ok(0)
    }

    fn check(&mut self, fs: &dyn Fs) -> Result<(), (FailureKind, String)> {
        let (found, expected) = (&self.buffer[..self.length], self.names.target());
        // Nothing is behind a file system that does nothing.
        if found == expected.to_bytes() || self.length == 0 && fs.directory().is_none() {
            return Ok(());
        }
        let (found, expected) = (String::from_utf8_lossy(found), expected.to_string_lossy());
        let told = format!("it leads to '{found}', '{expected}' expected");
        Err((FailureKind::Mismatch, told))
    }

    fn path(&mut self) -> String {
        self.names.link.to_text()
    }

    fn op(&self) -> OpKind {
        OpKind::Readlink
    }
}
