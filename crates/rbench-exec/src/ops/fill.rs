//! Filling directories with files, or with a chain of directories, and emptying them.

use std::ffi::CStr;

use rbench_core::{Call, FailureKind, OpKind};
use rbench_plan::meta::STEPS_DOWN;
use rbench_sys::{Fs, Operands};

use super::{ItemOp, OpContext, Places};
use crate::worker::Prepared;

/// Creates the runner of one worker of a phase of [`OpKind::Fill`] or [`OpKind::Empty`].
pub fn make(scene: &OpContext, thread: u32) -> Prepared {
    let (mut names, files): (Vec<String>, bool) = match scene.info.entries {
        Some(entries) => ((0..entries).map(|n| format!("/e.{n}")).collect(), true),
        None => (STEPS_DOWN.iter().map(ToString::to_string).collect(), false),
    };
    let empties = scene.info.op == OpKind::Empty;
    if empties {
        // The deepest first.
        names.reverse();
    }
    let op = Fill {
        places: scene.places(scene.renamed),
        names,
        call: match (empties, files) {
            (false, true) => Call::MKNOD,
            (false, false) => Call::MKDIR,
            (true, true) => Call::Unlink,
            (true, false) => Call::Rmdir,
        },
        paths: Vec::new(),
    };
    scene.runner(op, thread)
}

struct Fill {
    places: Places,
    /// The names that follow the directory's path.
    names: Vec<String>,
    /// Makes or removes one of them.
    call: Call,
    /// The prepared paths, each with its NUL.
    paths: Vec<u8>,
}

impl ItemOp for Fill {
    fn aim(&mut self, index: u64) {
        self.places.item(index);
        let directory = self.places.current().to_bytes();
        self.paths.clear();
        for name in &self.names {
            self.paths.extend_from_slice(directory);
            self.paths.extend_from_slice(name.as_bytes());
            self.paths.push(0);
        }
    }

    fn paths(&self) -> (&CStr, &CStr) {
        (self.places.current(), c"")
    }

    fn own<F: Fs + ?Sized>(&mut self, fs: &F) -> Option<Result<u64, FailureKind>> {
        let mut rest = &self.paths[..];
        while let Ok(path) = CStr::from_bytes_until_nul(rest) {
            if let Err(errno) = fs.call(&self.call, Operands::path(path)) {
                return Some(Err(errno.into()));
            }
            rest = &rest[path.count_bytes() + 1..];
        }
        Some(Ok(0))
    }
}
