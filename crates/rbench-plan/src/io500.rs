//! IO500's phases as command lines: their order and options, and the results of an
//! interrupted run that can be kept. `settings.rs` parses the settings; reports interpret
//! the results.

use std::ffi::OsString;

use crate::series::{Cell, Selection};

mod ini;
mod keys;
mod phases;
mod settings;

pub use phases::{FILES, PHASES, Phase, kept, stamped_before};
pub use settings::{Settings, read};

/// Name of the suite.
pub const NAME: &str = "io500";
/// Version of the suite: results of different versions are not comparable.
pub const VERSION: u32 = 1;
/// Purpose of the suite, in a line.
pub const TITLE: &str = "A rehearsal of IO500: its phases, lines and score, plus latencies";

/// Seeds of the data, the same for writes and reads: those of IO500's first versions.
const SEED_EASY: &str = "271";
const SEED_HARD: &str = "27";

/// Directories of a run, as absolute paths.
#[derive(Debug, Clone, Copy)]
pub struct Places<'p> {
    /// Directory that is searched and measured.
    pub data: &'p str,
    /// Directory of the stonewall files and of the time stamp.
    pub state: &'p str,
}

impl Places<'_> {
    /// The folder of a set of files.
    fn of(&self, files: &str) -> String {
        format!("{}/{files}", self.data)
    }

    fn status(&self, files: &str) -> String {
        format!("{}/{files}.stonewall", self.state)
    }

    /// The file whose modification time selects the files that `find` searches.
    pub fn stamp(&self) -> String {
        format!("{}/{STAMP}", self.state)
    }
}

/// Name of the time stamp's file.
pub const STAMP: &str = "timestampfile";

/// The runs of the selected phases, in their order.
pub fn cells(settings: &Settings, places: Places<'_>) -> Vec<Cell> {
    let of = |phase: &&Phase| Cell {
        name: phase.name.to_owned(),
        values: vec![("phase".to_owned(), phase.name.to_owned())],
        words: words(phase, settings, places),
        selection: Selection {
            ranks: match phase.name {
                "find" => settings.find_ranks(),
                _ => None,
            },
            ..Selection::default()
        },
    };
    settings.phases().iter().map(of).collect()
}

/// The command line of a phase, after the program's name.
fn words(phase: &Phase, settings: &Settings, places: Places<'_>) -> Vec<OsString> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |text: &str| words.extend(text.split(' ').map(str::to_owned));
    let stonewall = settings.stonewall_s().to_string();
    match phase.name {
        "find" => {
            add("find");
            words.push(places.data.to_owned());
            words.extend(["-newer".to_owned(), places.stamp()]);
            words.extend(["-size", "3901c", "-name", "*01*"].map(str::to_owned));
        }
        "ior-rnd4K-easy-read" => {
            add("ior -C -Q 2 -g -k -F -t 4096 -b 4096 -s -1 -z -r --stoneWallingWearOut");
            add(&format!("-G {SEED_EASY} -D {stonewall}"));
            words.extend(["-o".to_owned(), ior_file(phase, places)]);
        }
        _ if phase.files.starts_with("ior") => {
            words = ior(phase, settings, places);
            words.extend(match phase.writes() {
                true => ["-w", "--stoneWallingWearOut", "-D", &stonewall]
                    .map(str::to_owned)
                    .to_vec(),
                false => ["-r", "-R"].map(str::to_owned).to_vec(),
            });
        }
        _ => {
            words = mdtest(phase, settings, places);
            words.extend(match phase.name {
                "mdtest-easy-write" | "mdtest-hard-write" => {
                    ["-C", "-Y", "-W", &stonewall].map(str::to_owned).to_vec()
                }
                "mdtest-easy-stat" | "mdtest-hard-stat" => vec!["-T".to_owned()],
                "mdtest-hard-read" => vec!["-E".to_owned(), "-X".to_owned()],
                _ => vec!["-r".to_owned()],
            });
        }
    }
    if phase.name != "find" {
        words.extend(["--dataPacketType".to_owned(), settings.packet().to_owned()]);
        if settings.direct(phase) {
            words.push("--posix.odirect".to_owned());
        }
    }
    // The maximum size does not fit anywhere: the stonewall ends the phase.
    if phase.writes() {
        words.push("--overfill".to_owned());
    }
    if settings.drops_caches() {
        words.push("--drop-caches".to_owned());
    }
    words.into_iter().map(OsString::from).collect()
}

fn ior_file(phase: &Phase, places: Places<'_>) -> String {
    let name = match phase.files {
        "ior-easy" => "ior_file_easy",
        _ => "file",
    };
    format!("{}/{name}", places.of(phase.files))
}

fn ior(phase: &Phase, settings: &Settings, places: Places<'_>) -> Vec<String> {
    let mut words: Vec<String> = ["ior", "-C", "-Q", "1", "-g", "-k", "-e"]
        .map(str::to_owned)
        .to_vec();
    let easy = phase.files == "ior-easy";
    let seed = if easy { SEED_EASY } else { SEED_HARD };
    words.extend(["-G".to_owned(), seed.to_owned()]);
    words.extend(match easy {
        true => vec![
            "-t".to_owned(),
            settings.value("ior-easy", "transferSize").to_owned(),
            "-b".to_owned(),
            settings.value("ior-easy", "blockSize").to_owned(),
        ],
        false => ["-t", "47008", "-b", "47008", "-s"]
            .into_iter()
            .chain([settings.value("ior-hard", "segmentCount")])
            .map(str::to_owned)
            .collect(),
    });
    if easy && settings.is_true("ior-easy", "filePerProc") {
        words.push("-F".to_owned());
    }
    words.extend(["-o".to_owned(), ior_file(phase, places)]);
    words.extend([
        "--stoneWallingStatusFile".to_owned(),
        places.status(phase.files),
    ]);
    words
}

fn mdtest(phase: &Phase, settings: &Settings, places: Places<'_>) -> Vec<String> {
    let mut words = vec!["mdtest".to_owned()];
    words.extend(["-n".to_owned(), settings.value(phase.files, "n").to_owned()]);
    let options: &[&str] = match phase.files {
        "mdtest-easy" => &["-u", "-L", "-G", SEED_EASY],
        _ => &["-t", "-w", "3901", "-e", "3901", "-G", SEED_HARD],
    };
    words.extend(options.iter().map(|word| (*word).to_owned()));
    words.extend(["-F", "-N", "1"].map(str::to_owned));
    let most = settings.value(phase.files, "files-per-dir");
    if !most.is_empty() {
        words.extend(["-I".to_owned(), most.to_owned()]);
    }
    words.extend(["-d".to_owned(), places.of(phase.files)]);
    words.extend(["-x".to_owned(), places.status(phase.files)]);
    words
}

#[cfg(test)]
mod tests;
