//! Extended attributes of files: setting one, or nine more, reading the first,
//! listing their names, removing the first.

use std::ffi::CStr;
use std::os::fd::RawFd;

use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::PhaseKind;
use rbench_sys::engine::NameRequest;
use rbench_sys::{Fs, OpenMode};

use super::opened::{FileCall, RingCall, ring_runner, runner};
use super::{OpEntry, Places};

/// `fsetxattr`
pub const SET_ROW: OpEntry = OpEntry {
    op: OpKind::Setxattr,
    make: |scene, thread| {
        let names = match scene.info.kind {
            PhaseKind::FileSetxattr9 => &NAMES[1..],
            _ => &NAMES[..1],
        };
        let value = [0; VALUE];
        ring_runner(scene, thread, Set { names, value })
    },
};

/// `fgetxattr`
pub const GET_ROW: OpEntry = OpEntry {
    op: OpKind::Getxattr,
    make: |scene, thread| {
        let get = Get {
            expected: [0; VALUE],
            found: [0; VALUE + 1],
            length: 0,
            nothing_behind: scene.fs.directory().is_none(),
        };
        ring_runner(scene, thread, get)
    },
};

/// `flistxattr`
pub const LIST_ROW: OpEntry = OpEntry {
    op: OpKind::Listxattr,
    make: |scene, thread| {
        let list = List {
            expected: match scene.info.kind {
                PhaseKind::FileListxattr10 => NAMES.len(),
                _ => 1,
            },
            found: [0; LIST],
            length: 0,
            nothing_behind: scene.fs.directory().is_none(),
        };
        runner(scene, thread, list)
    },
};

/// `fremovexattr`
pub const REMOVE_ROW: OpEntry = OpEntry {
    op: OpKind::Removexattr,
    make: |scene, thread| runner(scene, thread, Remove),
};

/// The names of the attributes; the first one is set, read and removed on its own.
const NAMES: [&CStr; 10] = [
    c"user.rbench",
    c"user.rbench.1",
    c"user.rbench.2",
    c"user.rbench.3",
    c"user.rbench.4",
    c"user.rbench.5",
    c"user.rbench.6",
    c"user.rbench.7",
    c"user.rbench.8",
    c"user.rbench.9",
];
/// Length of a value, in bytes.
const VALUE: usize = 16;
/// Room for a list of names, others' included.
const LIST: usize = 4096;

/// The value that the attributes of an item have: no other item's.
fn value(places: &Places) -> [u8; VALUE] {
    let identity = places.identity(0);
    let mut value = [0; VALUE];
    value[..8].copy_from_slice(&u64::from(identity.owner).to_le_bytes());
    value[8..].copy_from_slice(&identity.number.to_le_bytes());
    value
}

struct Set {
    names: &'static [&'static CStr],
    value: [u8; VALUE],
}

impl FileCall for Set {
    const OP: OpKind = OpKind::Setxattr;
    const MODE: OpenMode = OpenMode::Read;

    fn aim(&mut self, places: &Places) {
        self.value = value(places);
    }

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        for name in self.names {
            fs.setxattr(fd, name, &self.value)?;
        }
        Ok(0)
    }
}

impl RingCall for Set {
    const BLOCK: usize = VALUE;

    fn requests(&self) -> Vec<NameRequest> {
        let set = |name: &&'static CStr| NameRequest::Setxattr(name);
        self.names.iter().map(set).collect()
    }

    fn load(&self, data: &mut [u8]) {
        data.copy_from_slice(&self.value);
    }
}

struct Get {
    expected: [u8; VALUE],
    found: [u8; VALUE + 1],
    length: usize,
    /// A file system that does nothing answers.
    nothing_behind: bool,
}

impl FileCall for Get {
    const OP: OpKind = OpKind::Getxattr;
    const MODE: OpenMode = OpenMode::Read;

    fn aim(&mut self, places: &Places) {
        self.expected = value(places);
        self.length = 0;
    }

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        self.length = fs.getxattr(fd, NAMES[0], &mut self.found)?;
        Ok(0)
    }

    fn check(&mut self) -> Result<(), (FailureKind, String)> {
        self.compare(&self.found, self.length)
    }
}

impl Get {
    fn compare(&self, found: &[u8], length: usize) -> Result<(), (FailureKind, String)> {
        if self.nothing_behind || found.get(..length) == Some(&self.expected[..]) {
            return Ok(());
        }
        let told = format!("not the value that was set, of {length} bytes");
        Err((FailureKind::Mismatch, told))
    }
}

impl RingCall for Get {
    const BLOCK: usize = VALUE + 1;

    fn requests(&self) -> Vec<NameRequest> {
        vec![NameRequest::Getxattr(NAMES[0])]
    }

    fn settle(&self, data: &[u8], length: usize) -> Result<(), (FailureKind, String)> {
        self.compare(data, length)
    }
}

struct List {
    /// Names of ours.
    expected: usize,
    found: [u8; LIST],
    length: usize,
    /// A file system that does nothing answers.
    nothing_behind: bool,
}

impl FileCall for List {
    const OP: OpKind = OpKind::Listxattr;
    const MODE: OpenMode = OpenMode::Read;

    fn aim(&mut self, _places: &Places) {
        self.length = 0;
    }

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        self.length = fs.listxattr(fd, &mut self.found)?;
        Ok(0)
    }

    fn check(&mut self) -> Result<(), (FailureKind, String)> {
        let list = &self.found[..self.length.min(LIST)];
        let ours = NAMES[0].to_bytes();
        let found = list
            .split(|byte| *byte == 0)
            .filter(|name| name.starts_with(ours))
            .count();
        if self.nothing_behind || found == self.expected {
            return Ok(());
        }
        let told = format!("{found} attributes listed, {} expected", self.expected);
        Err((FailureKind::Mismatch, told))
    }
}

struct Remove;

impl FileCall for Remove {
    const OP: OpKind = OpKind::Removexattr;
    const MODE: OpenMode = OpenMode::Read;

    fn call(&mut self, fs: &dyn Fs, fd: RawFd) -> Result<u64, FailureKind> {
        fs.removexattr(fd, NAMES[0])?;
        Ok(0)
    }
}
