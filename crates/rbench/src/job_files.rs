//! Files that a command line names and every rank needs in order to read it. Rank 0 reads them for
//! all.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rbench_cli::fio::{Surroundings, files_named, listing, read, variables_named};
use rbench_cli::ior::script_of;
use rbench_cli::{Invocation, Stop};
use rbench_sys::limits::{host_facts, page_size, total_memory};
use serde::{Deserialize, Serialize};

use crate::profile;

/// Maps by paths, which need not be UTF-8, in messages.
mod by_path {
    use std::collections::BTreeMap;
    use std::ffi::OsString;
    use std::path::PathBuf;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<V: Serialize, S: Serializer>(
        map: &BTreeMap<PathBuf, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(map.iter().map(|(path, value)| (path.as_os_str(), value)))
    }

    pub fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<PathBuf, V>, D::Error> {
        let map = BTreeMap::<OsString, V>::deserialize(deserializer)?;
        Ok(map
            .into_iter()
            .map(|(path, value)| (path.into(), value))
            .collect())
    }
}

/// The files that a command line of fio refers to, and the profile of `rbench mix`; read by rank 0
/// for all.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct JobFiles {
    #[serde(with = "by_path")]
    files: BTreeMap<PathBuf, Vec<u8>>,
    variables: Vec<(String, String)>,
    page_size: u64,
    cpus: u64,
    memory_mib: u64,
    /// Reasons why files could not be read.
    #[serde(with = "by_path")]
    unreadable: BTreeMap<PathBuf, String>,
}

impl JobFiles {
    /// Reads the files that this command line names; none for other commands.
    pub fn read(argv: &[OsString]) -> JobFiles {
        let mut job_files = JobFiles {
            page_size: page_size(),
            cpus: host_facts().map_or(1, |facts| u64::from(facts.cpus)),
            memory_mib: total_memory() >> 20,
            ..JobFiles::default()
        };
        loop {
            let mut missing = files_named(argv, &job_files.files);
            missing.retain(|file| !job_files.unreadable.contains_key(file));
            if missing.is_empty() {
                break;
            }
            for file in missing {
                let read = content(&file);
                job_files.add(file, read);
            }
        }
        if let Some((file, read)) = profile::named(argv) {
            job_files.add(file, read);
        }
        if let Some(file) = script_of(argv) {
            let read = content(&file);
            job_files.add(file, read);
        }
        let names = variables_named(&job_files.files).into_iter();
        let set = |name: String| Some((name.clone(), std::env::var(name).ok()?));
        job_files.variables = names.filter_map(set).collect();
        job_files
    }

    fn add(&mut self, file: PathBuf, read: std::io::Result<Vec<u8>>) {
        match read {
            Ok(bytes) => drop(self.files.insert(file, bytes)),
            Err(error) => drop(self.unreadable.insert(file, error.to_string())),
        }
    }

    /// A file's text, or its read error; `None` if it was not read.
    pub fn text(&self, file: &Path) -> Option<Result<String, String>> {
        if let Some(why) = self.unreadable.get(file) {
            return Some(Err(why.clone()));
        }
        let bytes = self.files.get(file)?.clone();
        Some(String::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned()))
    }

    /// The invocation of a fio command line.
    ///
    /// # Errors
    /// [`Stop`] if there is nothing to run.
    pub fn fio(&self, argv: &[OsString]) -> Result<Invocation, Stop> {
        let variable = |name: &str| {
            let mut all = self.variables.iter();
            all.find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        let around = Surroundings {
            files: &self.files,
            unreadable: &self.unreadable,
            variable: &variable,
            page_size: self.page_size,
            cpus: self.cpus,
            memory_mib: self.memory_mib,
        };
        read(argv, &around)
    }

    /// One file, for tests.
    #[cfg(test)]
    pub fn of_one(path: &str, bytes: &[u8]) -> JobFiles {
        JobFiles {
            files: BTreeMap::from([(path.into(), bytes.to_vec())]),
            variables: vec![("A".to_owned(), "b".to_owned())],
            page_size: 4096,
            cpus: 2,
            memory_mib: 1024,
            unreadable: BTreeMap::from([("x".into(), "gone".to_owned())]),
        }
    }
}

fn content(file: &Path) -> std::io::Result<Vec<u8>> {
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
fn list(directory: &Path, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
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
