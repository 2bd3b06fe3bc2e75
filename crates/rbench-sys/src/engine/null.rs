//! The engine `null`: every request completes at once, and nothing is done. It
//! measures the cost of the tool itself.

use nix::errno::Errno;

use super::buffers::Buffers;
use super::contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, Transfer,
};

/// The line in [`super::ENGINES`].
pub const INFO: EngineInfo = EngineInfo {
    name: "null",
    depth_max: 16_384,
    moves_data: false,
    uses_files: false,
    ..EngineInfo::of(make)
};

struct Null {
    buffers: Buffers,
    /// Completed requests that are not collected; at most one per slot.
    done: Vec<Completion>,
    /// A collected batch counts as one call.
    counts: EngineCounts,
}

fn make(mut config: EngineConfig) -> Result<Box<dyn Engine>, Errno> {
    let buffers = Buffers::new(&mut config, INFO.depth_max)?;
    let done = Vec::with_capacity(buffers.depth());
    Ok(Box::new(Null {
        buffers,
        done,
        counts: EngineCounts::default(),
    }))
}

impl Null {
    /// Bytes that `request` claims to move.
    #[inline]
    fn moved(&self, request: &Request) -> usize {
        let length = request.length;
        if request.transfer == Transfer::Trim {
            return length;
        }
        let fits = length <= self.buffers.block();
        assert!(fits, "{length} bytes exceed the buffer");
        if request.transfer.is_sync() {
            0
        } else {
            length
        }
    }
}

impl Engine for Null {
    fn buffer(&mut self, slot: usize) -> &mut [u8] {
        self.buffers.slice(slot)
    }

    #[inline]
    fn submit(&mut self, slot: usize, request: Request) {
        assert!(self.done.len() < self.buffers.depth(), "no slot is free");
        let result = Ok(self.moved(&request));
        self.done.push(Completion { slot, result });
    }

    fn perform(
        &mut self,
        request: Request,
        _room: &mut Vec<Completion>,
    ) -> Result<Result<usize, Errno>, Errno> {
        assert!(self.done.is_empty(), "a request is under way");
        let one = EngineCounts::bucket(1);
        self.counts.submits[one] += 1;
        self.counts.completes[one] += 1;
        Ok(Ok(self.moved(&request)))
    }

    fn wait(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        if !self.done.is_empty() {
            let bucket = EngineCounts::bucket(self.done.len());
            self.counts.submits[bucket] += 1;
            self.counts.completes[bucket] += 1;
            done.append(&mut self.done);
        }
        Ok(())
    }

    fn poll(&mut self, done: &mut Vec<Completion>) -> Result<(), Errno> {
        self.wait(done)
    }

    fn counts(&self) -> EngineCounts {
        self.counts
    }
}
