//! Filling directories with files, or with a chain of directories, and emptying them.

use std::ffi::CStr;

use nix::errno::Errno;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::STEPS_DOWN;
use rbench_sys::Fs;

use super::{ItemOp, OpContext, OpEntry, Places};
use crate::worker::Prepared;

/// `mknodat` or `mkdirat` of all that is to lie in a directory
pub const ROW: OpEntry = OpEntry {
    op: OpKind::Fill,
    make,
};

/// `unlinkat` of all of it
pub const EMPTY_ROW: OpEntry = OpEntry {
    op: OpKind::Empty,
    make,
};

fn make(scene: &OpContext, thread: u32) -> Prepared {
    let (mut names, files): (Vec<String>, bool) = match scene.info.kind.entries() {
        Some(entries) => ((0..entries).map(|n| format!("/e.{n}")).collect(), true),
        None => (STEPS_DOWN.iter().map(ToString::to_string).collect(), false),
    };
    let empties = scene.info.op == OpKind::Empty;
    if empties {
        // The deepest first.
        names.reverse();
    }
    let op = Fill {
        op: scene.info.op,
        places: scene.places(scene.renamed),
        names,
        call: match (empties, files) {
            (false, true) => |fs, path| fs.mknod(path),
            (false, false) => |fs, path| fs.mkdir(path),
            (true, true) => |fs, path| fs.unlink(path),
            (true, false) => |fs, path| fs.rmdir(path),
        },
        paths: Vec::new(),
    };
    scene.runner(op, thread)
}

struct Fill {
    op: OpKind,
    places: Places,
    /// What stands behind the directory's path.
    names: Vec<String>,
    /// Makes or removes one of them.
    call: fn(&dyn Fs, &CStr) -> Result<(), Errno>,
    /// The prepared paths, each with its NUL.
    paths: Vec<u8>,
}

impl ItemOp for Fill {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
        let directory = self.places.current().to_bytes();
        self.paths.clear();
        for name in &self.names {
            self.paths.extend_from_slice(directory);
            self.paths.extend_from_slice(name.as_bytes());
            self.paths.push(0);
        }
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        let mut rest = &self.paths[..];
        while let Ok(path) = CStr::from_bytes_until_nul(rest) {
            (self.call)(fs, path)?;
            rest = &rest[path.count_bytes() + 1..];
        }
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        self.op
    }
}
