//! Writes the seeds of every target as files for the fuzzer: `seeds FOLDER` creates
//! `FOLDER/TARGET/NAME`.

use std::path::PathBuf;
use std::{env, fs, io};

use rbench_fuzz::TARGETS;

#[expect(
    clippy::disallowed_methods,
    reason = "the files are for the fuzzer, in a folder that scripts/fuzz names"
)]
fn main() -> io::Result<()> {
    let folder = env::args_os()
        .nth(1)
        .map(PathBuf::from)
        .ok_or_else(|| io::Error::other("usage: seeds FOLDER"))?;
    for target in TARGETS {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in target.seeds() {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
