//! Engines whose requests run in other threads, and buffers in other memory.

use std::fs;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use nix::errno::Errno;
use rbench_core::Nanos;
use rbench_core::memory::{Memory, MemoryKind};
use rbench_sys::engine::{ENGINES, offload};
use rbench_sys::files::Advice;
use rbench_sys::{BlockMemory, Engine, EngineConfig, EngineInfo};

use crate::blocks::{BLOCK, data, movers, permitted, read_at, read_write, write_at};
use crate::support::disk;

fn configs(depth: usize) -> Vec<EngineConfig> {
    (0..depth).map(|_| EngineConfig::new(1, BLOCK)).collect()
}

/// Each engine that moves data, with `depth` threads.
fn each(depth: usize) -> impl Iterator<Item = (&'static EngineInfo, Box<dyn Engine>)> {
    let movers = movers().filter(|info| !info.moves_position);
    movers.filter_map(move |info| {
        let engine = permitted(info.name, offload(info, configs(depth)))?;
        Some((info, engine))
    })
}

#[test]
fn blocks_go_where_they_belong_when_other_threads_move_them() {
    const DEPTH: usize = 4;
    const BLOCKS: usize = 64;
    let directory = disk();
    let content = data(BLOCKS * BLOCK);
    for (info, mut engine) in each(DEPTH) {
        let path = directory.path().join(info.name);
        let file = read_write(&path);
        file.set_len(content.len() as u64).expect("it is ours");
        engine.attach(file.as_raw_fd(), Some(Advice::Random));
        let mut done = Vec::with_capacity(DEPTH);
        for (writes, round) in [(true, 0), (false, 1)] {
            for first in (0..BLOCKS).step_by(DEPTH) {
                for slot in 0..DEPTH {
                    let at = (first + slot) * BLOCK;
                    let buffer = engine.buffer(slot);
                    let request = if writes {
                        buffer.copy_from_slice(&content[at..at + BLOCK]);
                        write_at(&file, at as u64, BLOCK)
                    } else {
                        buffer.fill(0);
                        read_at(&file, at as u64, BLOCK)
                    };
                    engine.submit(slot, request);
                }
                engine.wait_many(DEPTH, &mut done).expect("it waits");
                assert_eq!(done.len(), DEPTH, "{}: all of them", info.name);
                for completion in done.drain(..) {
                    assert_eq!(completion.result, Ok(BLOCK), "{} {round}", info.name);
                    let at = (first + completion.slot) * BLOCK;
                    let same = *engine.buffer(completion.slot) == content[at..at + BLOCK];
                    assert!(same, "{} {round}", info.name);
                }
            }
            assert!(fs::read(&path).expect("it is there") == content);
        }
        engine.wait(&mut done).expect("nothing is under way");
        engine.wait_for(&mut done, Nanos(1)).expect("as before");
        assert!(done.is_empty());
        let counts = engine.counts();
        assert_eq!(counts.submits[1], 2 * BLOCKS as u64, "{}", info.name);
        engine.detach(file.as_raw_fd());
    }
}

#[test]
fn what_other_threads_cannot_do_is_the_error_of_the_request() {
    let file = fs::File::open("/dev/null").expect("it is there");
    for (info, mut engine) in each(2).filter(|(info, _)| !info.mapped && info.name != "splice") {
        let mut done = Vec::with_capacity(2);
        engine.submit(1, write_at(&file, 0, BLOCK));
        engine.wait(&mut done).expect("the engine is well");
        let ended: Vec<_> = done.iter().map(|c| (c.slot, c.result)).collect();
        assert_eq!(ended, [(1, Err(Errno::EBADF))], "{}", info.name);
    }
}

#[test]
fn threads_do_not_share_the_position_of_a_file() {
    let names: Vec<&str> = ENGINES
        .iter()
        .filter(|info| info.moves_position)
        .map(|info| info.name)
        .collect();
    assert_eq!(names, ["sync", "vsync"]);
    for name in names {
        let info = rbench_sys::engine::find(name).expect("it is in the table");
        assert_eq!(offload(info, configs(2)).err(), Some(Errno::EINVAL));
    }
}

#[test]
fn a_pool_is_let_go_while_nothing_is_under_way() {
    for (_, engine) in each(3) {
        std::thread::sleep(Duration::from_millis(1));
        drop(engine);
    }
}

#[test]
fn every_engine_moves_data_in_memory_of_every_kind() {
    let directory = disk();
    let content = data(4 * BLOCK);
    for kind in [
        MemoryKind::Malloc,
        MemoryKind::Shm,
        MemoryKind::Mmap,
        MemoryKind::MmapShared,
    ] {
        let asked = Memory {
            kind,
            align: Some(512),
            ..Memory::default()
        };
        for info in movers() {
            let depth = info.depth_max.min(4);
            let memory = BlockMemory::new(&asked, depth, BLOCK).expect("there is memory");
            let config = EngineConfig {
                memory: Some(memory),
                ..EngineConfig::new(depth, BLOCK)
            };
            let Some(mut engine) = permitted(info.name, (info.make)(config)) else {
                continue;
            };
            let file = read_write(&directory.path().join(info.name));
            file.write_all_at(&content, 0).expect("there is space");
            let mut done = Vec::with_capacity(depth);
            for slot in 0..depth {
                let start = engine.buffer(slot).as_ptr().addr();
                assert_eq!(start % 4096, (512 + slot * BLOCK) % 4096, "{}", info.name);
                engine.submit(slot, read_at(&file, (slot * BLOCK) as u64, BLOCK));
                if info.depth_max == 1 {
                    break;
                }
            }
            engine.wait_many(depth, &mut done).expect("it waits");
            assert_eq!(done.len(), depth, "{}", info.name);
            for slot in 0..depth {
                let same = *engine.buffer(slot) == content[slot * BLOCK..][..BLOCK];
                assert!(same, "{} {kind:?}", info.name);
            }
        }
    }
}

#[test]
fn memory_that_is_too_small_is_no_memory_of_an_engine() {
    let asked = Memory {
        align: Some(512),
        ..Memory::default()
    };
    let memory = BlockMemory::new(&asked, 1, BLOCK).expect("a page");
    let config = EngineConfig {
        memory: Some(memory),
        ..EngineConfig::new(2, BLOCK)
    };
    let libaio = rbench_sys::engine::find("libaio").expect("it is in the table");
    assert_eq!((libaio.make)(config).err(), Some(Errno::EINVAL));
}
