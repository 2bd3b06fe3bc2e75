//! Making files that are not there yet: open, one write of new data, fsync if
//! asked for, close.

use rbench_core::random::DataStream;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::tree::Paths;
use rbench_sys::Fs;
use rbench_sys::fs::OpenMode;

use super::{ItemOp, ItemRunner, OpRow, Scene};

/// `openat(O_CREAT | O_EXCL)`, `write`, `fsync`, `close`
pub const ROW: OpRow = OpRow {
    op: OpKind::Create,
    make,
};

fn make(scene: &Scene, thread: u32) -> Box<dyn crate::worker::Runner> {
    let op = Create {
        paths: scene.paths(false),
        data: DataStream::new(&scene.data_parts(thread)),
        buffer: vec![0; scene.plan.write.0 as usize],
        fsync: scene.plan.fsync,
    };
    Box::new(ItemRunner::new(
        op,
        scene.fs.clone(),
        scene.visit(thread, false),
    ))
}

struct Create {
    paths: Paths,
    data: DataStream,
    buffer: Vec<u8>,
    fsync: bool,
}

impl Create {
    fn write(&self, fs: &dyn Fs, fd: i32) -> Result<(), FailureKind> {
        if !self.buffer.is_empty() && fs.write(fd, &self.buffer)? < self.buffer.len() {
            return Err(FailureKind::Short);
        }
        if self.fsync {
            fs.fsync(fd)?;
        }
        Ok(())
    }
}

impl ItemOp for Create {
    fn aim(&mut self, index: u64) {
        self.paths.item(index);
        self.data.fill(&mut self.buffer);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        let fd = fs.open(self.paths.current(), OpenMode::CreateNew, false)?;
        let written = self.write(fs, fd);
        // Closed in any case; of two errors the first is told.
        let closed = fs.close(fd).map_err(FailureKind::from);
        written.and(closed)?;
        Ok(self.buffer.len() as u64)
    }

    fn path(&mut self) -> String {
        self.paths.current().to_string_lossy().into_owned()
    }

    fn op(&self) -> OpKind {
        OpKind::Create
    }
}
