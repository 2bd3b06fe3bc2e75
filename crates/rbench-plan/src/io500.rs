//! IO500's phases as command lines: their order and options, and the results of an
//! interrupted run that can be kept. `settings.rs` parses the settings; reports interpret
//! the results.

use std::ffi::OsString;

use crate::series::{Cell, Selection, Words};

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
    let stonewall = settings.stonewall_s();
    let mut words = match phase.name {
        "find" => Words::default()
            .with("find", places.data)
            .with("-newer", places.stamp())
            .and("-size 3901c -name *01*"),
        "ior-rnd4K-easy-read" => Words::default()
            .and("ior -C -Q 2 -g -k -F -t 4096 -b 4096 -s -1 -z -r --stoneWallingWearOut")
            .and(&format!("-G {SEED_EASY} -D {stonewall}"))
            .with("-o", ior_file(phase, places)),
        _ if phase.files.starts_with("ior") => {
            let words = ior(phase, settings, places);
            match phase.writes() {
                true => words.and(&format!("-w --stoneWallingWearOut -D {stonewall}")),
                false => words.and("-r -R"),
            }
        }
        name => {
            let words = mdtest(phase, settings, places);
            match name {
                "mdtest-easy-write" | "mdtest-hard-write" => {
                    words.and(&format!("-C -Y -W {stonewall}"))
                }
                "mdtest-easy-stat" | "mdtest-hard-stat" => words.and("-T"),
                "mdtest-hard-read" => words.and("-E -X"),
                _ => words.and("-r"),
            }
        }
    };
    if phase.name != "find" {
        words = words
            .with("--dataPacketType", settings.packet())
            .and_if(settings.direct(phase), "--posix.odirect");
    }
    // The maximum size does not fit anywhere: the stonewall ends the phase.
    words = words.and_if(phase.writes(), "--overfill");
    words.and_if(settings.drops_caches(), "--drop-caches").0
}

fn ior_file(phase: &Phase, places: Places<'_>) -> String {
    let name = match phase.files {
        "ior-easy" => "ior_file_easy",
        _ => "file",
    };
    format!("{}/{name}", places.of(phase.files))
}

fn ior(phase: &Phase, settings: &Settings, places: Places<'_>) -> Words {
    let words = Words::default().and("ior -C -Q 1 -g -k -e");
    let words = match phase.files == "ior-easy" {
        true => words
            .with("-G", SEED_EASY)
            .with("-t", settings.value("ior-easy", "transferSize"))
            .with("-b", settings.value("ior-easy", "blockSize"))
            .and_if(settings.is_true("ior-easy", "filePerProc"), "-F"),
        false => words
            .with("-G", SEED_HARD)
            .and("-t 47008 -b 47008")
            .with("-s", settings.value("ior-hard", "segmentCount")),
    };
    words
        .with("-o", ior_file(phase, places))
        .with("--stoneWallingStatusFile", places.status(phase.files))
}

fn mdtest(phase: &Phase, settings: &Settings, places: Places<'_>) -> Words {
    let words = Words::default().and("mdtest");
    let words = words.with("-n", settings.value(phase.files, "n"));
    let words = match phase.files {
        "mdtest-easy" => words.and("-u -L").with("-G", SEED_EASY),
        _ => words.and("-t -w 3901 -e 3901").with("-G", SEED_HARD),
    };
    let mut words = words.and("-F -N 1");
    let most = settings.value(phase.files, "files-per-dir");
    if !most.is_empty() {
        words = words.with("-I", most);
    }
    words
        .with("-d", places.of(phase.files))
        .with("-x", places.status(phase.files))
}

#[cfg(test)]
mod tests;
