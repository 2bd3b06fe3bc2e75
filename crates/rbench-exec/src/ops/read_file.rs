//! Opening files, reading what was asked for in one call, closing them.

use rbench_core::{FailureKind, OpKind};
use rbench_plan::tree::Paths;
use rbench_sys::Fs;
use rbench_sys::fs::OpenMode;

use super::{ItemOp, ItemRunner, OpRow, Scene};

/// `openat(O_RDONLY)`, `read`, `close`
pub const ROW: OpRow = OpRow {
    op: OpKind::ReadFile,
    make,
};

fn make(scene: &Scene, thread: u32) -> Box<dyn crate::worker::Runner> {
    let op = ReadFile {
        paths: scene.paths(scene.renamed),
        buffer: vec![0; scene.plan.read.0 as usize],
    };
    Box::new(ItemRunner::new(
        op,
        scene.fs.clone(),
        scene.visit(thread, true),
    ))
}

struct ReadFile {
    paths: Paths,
    buffer: Vec<u8>,
}

impl ReadFile {
    fn read(&mut self, fs: &dyn Fs, fd: i32) -> Result<(), FailureKind> {
        if !self.buffer.is_empty() && fs.read(fd, &mut self.buffer)? < self.buffer.len() {
            return Err(FailureKind::Short);
        }
        Ok(())
    }
}

impl ItemOp for ReadFile {
    fn aim(&mut self, index: u64) {
        self.paths.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        let fd = fs.open(self.paths.current(), OpenMode::Read, false)?;
        let read = self.read(fs, fd);
        let closed = fs.close(fd).map_err(FailureKind::from);
        read.and(closed)?;
        Ok(self.buffer.len() as u64)
    }

    fn path(&mut self) -> String {
        self.paths.current().to_string_lossy().into_owned()
    }

    fn op(&self) -> OpKind {
        OpKind::ReadFile
    }
}
