//! A file system that is full. Only one that is small is filled.

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::sys::statvfs::statvfs;

use super::Group;
use super::ground::{Breach, Ground, Promise, pattern, promise};

pub(super) const GROUP: Group = Group {
    name: "full",
    about: "a full file system: only where less than 256 MiB are free",
    promises: PROMISES,
};

/// More free space than this is not filled, bytes.
const SMALL: u64 = 256 << 20;
const BLOCK: usize = 64 << 10;

const PROMISES: &[Promise] = &[
    promise(
        "full.error",
        "a write into a full file system fails with ENOSPC",
        |g| fill(g).map(drop),
    ),
    promise(
        "full.keeps",
        "what was written before the file system was full is there",
        |g| {
            let length = fill(g)?;
            let fd = g.open("filler", OFlag::O_RDONLY).ok()?;
            let block = pattern(BLOCK);
            let mut offset = 0;
            while offset < length {
                let part = BLOCK.min((length - offset) as usize);
                let found = g.read("filler", &fd, part, offset).ok()?;
                g.bytes("pread64", "filler", &block[..part], &found)?;
                offset += BLOCK as i64;
            }
            Ok(())
        },
    ),
    promise(
        "full.names",
        "names are removed and renamed in a full file system",
        |g| {
            g.put("a", b"x")?;
            g.put("b", b"y")?;
            fill(g)?;
            g.rename("a", "c").ok()?;
            g.unlink("b").ok()?;
            g.holds("c", b"x")
        },
    ),
    promise("full.frees", "removing a file makes room again", |g| {
        fill(g)?;
        g.unlink("filler").ok()?;
        let fd = g.open("a", OFlag::O_CREAT | OFlag::O_RDWR).ready()?;
        let begun = std::time::Instant::now();
        // Some free in the background.
        while g.write("a", &fd, &pattern(1 << 20), 0).result.is_err() {
            let late = begun.elapsed().as_secs() >= 5;
            g.is("pwrite64", "a", !late, ("room for 1 MiB", "none after 5 s"))?;
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Ok(())
    }),
    promise(
        "full.free-told",
        "statvfs tells less free space when a file was written",
        |g| {
            small(g)?;
            let before = free(g)?;
            let fd = g.file("a")?;
            g.write("a", &fd, &pattern(4 << 20), 0).ready()?;
            g.did("fsync", "a", nix::unistd::fsync(&fd)).ready()?;
            let less = before.saturating_sub(free(g)?);
            g.is(
                "statvfs",
                ".",
                less >= 2 << 20,
                ("4 MiB less", &format!("{less} bytes less")),
            )
        },
    ),
];

fn free(g: &Ground) -> Result<u64, Breach> {
    let told = g.did("statvfs", ".", statvfs(&g.at("."))).ready()?;
    Ok(told.blocks_free() * told.fragment_size())
}

fn small(g: &Ground) -> Result<(), Breach> {
    match free(g)? {
        0..SMALL => Ok(()),
        _ => Err(Breach::left_out(
            "more than 256 MiB are free: it is not filled",
        )),
    }
}

/// Fills the file system with one file; returns its length.
fn fill(g: &Ground) -> Result<i64, Breach> {
    small(g)?;
    let fd = g.file("filler")?;
    let block = pattern(BLOCK);
    let mut length = 0_i64;
    loop {
        let at = length as usize % BLOCK;
        match nix::sys::uio::pwrite(&fd, &block[at..], length) {
            Ok(n) if n > 0 && length < 2 * SMALL as i64 => length += n as i64,
            Ok(n) => {
                let seen = format!("{n} bytes written at {length}");
                g.broken("pwrite64", "filler", "ENOSPC".to_owned(), seen)?;
            }
            Err(Errno::EDQUOT) => break,
            Err(errno) => {
                g.did("pwrite64", "filler", Err::<(), _>(errno))
                    .fails(Errno::ENOSPC)?;
                break;
            }
        }
    }
    // What a file system says late it says here.
    match g.did("fsync", "filler", nix::unistd::fsync(&fd)).result {
        Ok(()) => Ok(length),
        Err(errno) => {
            let told = format!("fsync says {errno:?} of what was acknowledged");
            Err(g.undecided("fsync", told))
        }
    }
}
