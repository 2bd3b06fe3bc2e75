//! Files that a command line names and every rank needs in order to read it. Rank 0 reads them for
//! all.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::{Path, PathBuf};

use rbench_cli::fio::{Surroundings, files_named, listing, variables_named};
use rbench_cli::ior::script_of;
use rbench_cli::profile_file;
use rbench_sys::limits::{host_facts, page_size, total_memory};

/// Maximum size of a profile of `rbench mix`, bytes.
const PROFILE_MAX: u64 = 1 << 20;

/// Reads the files that this command line of fio, mix or ior names; none for other commands.
pub fn read(argv: &[OsString]) -> Surroundings {
    let mut all = Surroundings {
        page_size: page_size(),
        cpus: host_facts().map_or(1, |facts| u64::from(facts.cpus)),
        memory_mib: total_memory() >> 20,
        ..Surroundings::default()
    };
    let add = |all: &mut Surroundings, file: PathBuf, read: Result<Vec<u8>>| match read {
        Ok(bytes) => drop(all.files.insert(file, bytes)),
        Err(error) => drop(all.unreadable.insert(file, error.to_string())),
    };
    loop {
        let mut missing = files_named(argv, &all.files);
        missing.retain(|file| !all.unreadable.contains_key(file));
        if missing.is_empty() {
            break;
        }
        for file in missing {
            let read = content(&file);
            add(&mut all, file, read);
        }
    }
    if let Some(file) = profile_file(argv) {
        let read = profile(&file);
        add(&mut all, file, read);
    }
    if let Some(file) = script_of(argv) {
        let read = content(&file);
        add(&mut all, file, read);
    }
    let names = variables_named(&all.files).into_iter();
    let set = |name: String| Some((name.clone(), std::env::var(name).ok()?));
    all.variables = names.filter_map(set).collect();
    all
}

/// A file's text, or its read error; `None` if it was not read.
pub fn text(all: &Surroundings, file: &Path) -> Option<std::result::Result<String, String>> {
    if let Some(why) = all.unreadable.get(file) {
        return Some(Err(why.clone()));
    }
    let bytes = all.files.get(file)?.clone();
    Some(String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()))
}

fn profile(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // Limits the read: some files have no end.
    File::open(file)?
        .take(PROFILE_MAX + 1)
        .read_to_end(&mut bytes)?;
    match bytes.len() as u64 > PROFILE_MAX {
        true => Err(Error::new(
            ErrorKind::FileTooLarge,
            "it is larger than 1 MiB",
        )),
        false => Ok(bytes),
    }
}

fn content(file: &Path) -> Result<Vec<u8>> {
    if let Some(directory) = listing::asked(file) {
        let mut paths = Vec::new();
        list(&directory, &mut paths)?;
        paths.sort();
        return Ok(listing::answer(&paths));
    }
    if file != Path::new("-") {
        return std::fs::read(file);
    }
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Lists the regular files of a directory and its subdirectories, without following symbolic links.
fn list(directory: &Path, into: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(&entry.path(), into)?;
        } else if kind.is_file() {
            into.push(entry.path());
        }
    }
    Ok(())
}
