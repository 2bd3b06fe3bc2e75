//! A full file system; only small ones are filled.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::statvfs::statvfs;

use rbench_core::random::DataStream;

use super::did::{Breach, Verdict};
use super::ground::{Ground, Promise, promise};
use super::prepare::pattern;

/// Size above which a file system is not filled, even if it is almost full: others use
/// it. In bytes.
const LARGE: u64 = 512 << 20;
/// Free space above which it is not filled, in bytes.
const SMALL: u64 = 256 << 20;
const BLOCK: usize = 64 << 10;
/// Time for a file system that frees space in the background.
const IN_BACKGROUND: Duration = Duration::from_secs(5);

pub(super) const PROMISES: &[Promise] = &[
    promise("full.error")
        .says("a write to a full file system fails with ENOSPC, or with EDQUOT at a quota")
        .test(|g| fill(g).map(drop)),
    promise("full.keeps")
        .says("data written before the file system was full is intact")
        .test(|g| {
            let length = fill(g)?;
            if length == 0 {
                return Err(g.undecided("pwrite64", "it was full before the first write"));
            }
            let fd = g.open("filler", OFlag::O_RDONLY).ok()?;
            let mut block = vec![0; BLOCK];
            let mut offset = 0;
            while offset < length {
                let part = BLOCK.min((length - offset) as usize);
                data(g, offset, &mut block);
                g.read("filler", &fd, part, offset).bytes(&block[..part])?;
                offset += BLOCK as i64;
            }
            Ok(())
        }),
    promise("full.names")
        .says("unlink and rename work in a full file system")
        .test(|g| {
            g.put("a", b"x")?;
            g.put("b", b"y")?;
            fill(g)?;
            g.rename("a", "c").ok()?;
            g.unlink("b").ok()?;
            g.holds("c", b"x")
        }),
    promise("full.frees")
        .says("removing a file frees space")
        .test(|g| {
            fill(g)?;
            g.unlink("filler").ok()?;
            let fd = g.open("a", OFlag::O_CREAT | OFlag::O_RDWR).ready()?;
            let start = Instant::now();
            loop {
                let soon = start.elapsed() < IN_BACKGROUND;
                if g.write("a", &fd, &pattern(1 << 20), 0).result.is_ok() {
                    return Ok(());
                }
                let words = ("space for 1 MiB", "none after 5 s");
                g.is("pwrite64", "a", soon, words)?;
                std::thread::sleep(Duration::from_millis(20));
            }
        }),
    promise("full.free-told")
        .says("statvfs reports less free space after a file is written")
        .test(|g| {
            small(g)?;
            let fd = g.file("a")?;
            let start = Instant::now();
            let mut length = 0;
            loop {
                let soon = start.elapsed() < IN_BACKGROUND;
                let before = free(g)?;
                g.write("a", &fd, &pattern(4 << 20), length).ready()?;
                g.fsync("a", &fd).ready()?;
                let less = before.saturating_sub(free(g)?);
                if less >= 2 << 20 {
                    return Ok(());
                }
                // The space of files that were removed earlier may be freed meanwhile.
                let words = ("4 MiB less", format!("{less} bytes less"));
                g.is("statvfs", ".", soon, (words.0, &words.1))?;
                std::thread::sleep(Duration::from_secs(1));
                length += 4 << 20;
            }
        }),
];

fn free(g: &Ground) -> Result<u64, Breach> {
    let totals = g.did("statvfs", ".", statvfs(&g.at("."))).ready()?;
    Ok(totals.blocks_free() * totals.fragment_size())
}

/// Returns without an error if the file system may be filled.
fn small(g: &Ground) -> Result<(), Breach> {
    let totals = g.did("statvfs", ".", statvfs(&g.at("."))).ready()?;
    let bytes = |blocks: u64| blocks.saturating_mul(totals.fragment_size());
    let fillable = fillable(bytes(totals.blocks()), bytes(totals.blocks_free()));
    fillable.map_err(|why| Box::new(Verdict::LeftOut(why.to_owned())))
}

/// Decides whether a file system with this size and free space is filled; the error is
/// the reason why not.
fn fillable(size: u64, free: u64) -> Result<(), &'static str> {
    match (size, free) {
        (0, _) => Err("the file system does not report its size, so it is not filled"),
        (1..=LARGE, ..SMALL) => Ok(()),
        (1..=LARGE, _) => Err("256 MiB or more are free, so it is not filled"),
        _ => Err("the file system is larger than 512 MiB, so it is not filled"),
    }
}

/// Content of the file at this offset, a multiple of [`BLOCK`]; it cannot be compressed.
fn data(g: &Ground, offset: i64, block: &mut [u8]) {
    DataStream::new(&[g.shared.seed, offset as u64]).fill(block);
}

/// Fills the file system with one file. Returns its length.
fn fill(g: &Ground) -> Result<i64, Breach> {
    small(g)?;
    let fd = g.file("filler")?;
    let start = Instant::now();
    let mut block = vec![0; BLOCK];
    let mut length = 0_i64;
    loop {
        if g.stopped() {
            return Err(g.undecided("pwrite64", "interrupted"));
        }
        let at = length as usize % BLOCK;
        if at == 0 {
            data(g, length, &mut block);
        }
        let soon = start.elapsed() < IN_BACKGROUND;
        match nix::sys::uio::pwrite(&fd, &block[at..], length) {
            Ok(n) if n > 0 && length < 2 * SMALL as i64 => length += n as i64,
            Ok(0) => {
                let seen = format!("0 bytes written at {length}");
                g.is("pwrite64", "filler", false, ("ENOSPC", &seen))?;
            }
            Ok(_) => {
                let seen = format!("it is not full after {length} bytes");
                return Err(g.undecided("pwrite64", seen));
            }
            // The space of files that were removed earlier may not be free yet.
            Err(Errno::ENOSPC | Errno::EDQUOT) if length == 0 && soon => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(Errno::EDQUOT) => break,
            Err(errno) => {
                g.did("pwrite64", "filler", Err::<(), _>(errno))
                    .fails(Errno::ENOSPC)?;
                break;
            }
        }
    }
    // A file system may report late errors here.
    match g.fsync("filler", &fd).result {
        Ok(()) => Ok(length),
        Err(errno) => {
            let message = format!("fsync fails with {errno:?} for acknowledged data");
            Err(g.undecided("fsync", message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_file_system_of_known_size_is_filled() {
        const MIB: u64 = 1 << 20;
        for (size, free, expect) in [
            (64 * MIB, 60 * MIB, true),
            (512 * MIB, 255 * MIB, true),
            (512 * MIB, 256 * MIB, false),
            // Almost full, but used by others.
            (513 * MIB, MIB, false),
            (100 << 40, 0, false),
            (u64::MAX, 100 * MIB, false),
            (0, 0, false),
            (0, 100 * MIB, false),
        ] {
            assert_eq!(fillable(size, free).is_ok(), expect, "{size} {free}");
        }
    }
}
