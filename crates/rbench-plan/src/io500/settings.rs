//! The settings: a table of sections and keys, what each may be, and what it is by itself.

use std::collections::BTreeMap;

use super::ini;
use super::phases::{PHASES, Phase};
use crate::suite::{SuiteError, scaled};

/// The stonewall that the rules ask for, s.
const STONEWALL_S: u64 = 300;
/// The same in the Student Cluster Competition, s.
const STONEWALL_SCC_S: u64 = 30;

/// What a value may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// `TRUE` or `FALSE`.
    Switch,
    /// A number from 1 on, or nothing where nothing is the default.
    Count,
    /// A number of seconds from 1 on.
    Seconds,
    /// A size with a suffix, or in bytes.
    Size,
    /// A directory.
    Dir,
    /// `POSIX`, and whether it goes around the page cache.
    Interface,
    /// A type of data.
    Packet,
    /// A command that drops the kernel's caches.
    DropCommand,
    /// Anything: it steers what rbench does otherwise, or not at all.
    Anything,
    /// Nothing but what it is by itself; why.
    Only(&'static str),
}

/// A key of a section.
pub(super) struct Key {
    pub section: &'static str,
    pub name: &'static str,
    /// What it is by itself; empty: nothing.
    pub default: &'static str,
    pub takes: Takes,
    /// What it is, in a line.
    help: &'static str,
}

const fn key(
    section: &'static str,
    name: &'static str,
    default: &'static str,
    takes: Takes,
    help: &'static str,
) -> Key {
    Key {
        section,
        name,
        default,
        takes,
        help,
    }
}

const NO_SCRIPT: &str = "rbench searches by itself";
const NO_PAUSE: &str = "rbench does not pause between phases";
const NO_GPU: &str = "rbench has no buffers on GPUs";
const NO_COLLECTIVE: &str = "collective operations are those of MPI-IO, and rbench has POSIX alone";
const NO_HINTS: &str = "hints are those of MPI-IO, and rbench has POSIX alone";
const NO_DIRS: &str = "rbench ior has no directories of each rank";
const SCHEDULING: &str = "Without effect: rbench find has its own way to share work";
const TIMESTAMP: &str = "Without effect: each run has a directory and a file of its own";

/// All that are known, but for those that every phase has ([`OF_PHASES`]).
pub(super) const KEYS: &[Key] = {
    use Takes::{
        Anything, Count, Dir, DropCommand, Interface, Only, Packet, Seconds, Size, Switch,
    };
    &[
        key(
            "global",
            "datadir",
            "",
            Dir,
            "The directory to test; --dir goes before it",
        ),
        key("global", "timestamp-datadir", "TRUE", Switch, TIMESTAMP),
        key(
            "global",
            "resultdir",
            "",
            Dir,
            "The directory of the result file unless --out names one; it is made",
        ),
        key("global", "timestamp-resultdir", "TRUE", Switch, TIMESTAMP),
        key(
            "global",
            "api",
            "POSIX",
            Interface,
            "The interface of all phases",
        ),
        key(
            "global",
            "drop-caches",
            "FALSE",
            Switch,
            "Drop the kernel's caches before phases that read or stat",
        ),
        key(
            "global",
            "drop-caches-cmd",
            "",
            DropCommand,
            "Only one that writes to /proc/sys/vm/drop_caches",
        ),
        key(
            "global",
            "io-buffers-on-gpu",
            "FALSE",
            Only(NO_GPU),
            "Not there",
        ),
        key(
            "global",
            "verbosity",
            "1",
            Anything,
            "Without effect: the result file has everything",
        ),
        key(
            "global",
            "scc",
            "FALSE",
            Switch,
            "By the rules of the Student Cluster Competition: 30 s are enough",
        ),
        key(
            "global",
            "dataPacketType",
            "timestamp",
            Packet,
            "What is written: timestamp, offset, incompressible, random, unique",
        ),
        key(
            "debug",
            "stonewall-time",
            "300",
            Seconds,
            "How long phases that write go on, s",
        ),
        key("debug", "pause-dir", "", Only(NO_PAUSE), "Not there"),
        key(
            "ior-easy",
            "transferSize",
            "2m",
            Size,
            "Bytes of a transfer",
        ),
        key(
            "ior-easy",
            "blockSize",
            "9920000m",
            Size,
            "The most that a rank writes; a multiple of transferSize",
        ),
        key(
            "ior-easy",
            "filePerProc",
            "TRUE",
            Switch,
            "Each rank has a file of its own",
        ),
        key("ior-easy", "uniqueDir", "FALSE", Only(NO_DIRS), "Not there"),
        key("ior-easy", "hintsFileName", "", Only(NO_HINTS), "Not there"),
        key("ior-easy", "verbosity", "", Anything, "Without effect"),
        key(
            "mdtest-easy",
            "n",
            "1000000",
            Count,
            "The most files of a rank",
        ),
        key(
            "mdtest-easy",
            "files-per-dir",
            "",
            Count,
            "Files in a directory; makes the run invalid",
        ),
        key(
            "ior-hard",
            "segmentCount",
            "10000000",
            Count,
            "The most transfers of a rank",
        ),
        key(
            "ior-hard",
            "collective",
            "FALSE",
            Only(NO_COLLECTIVE),
            "Not there",
        ),
        key("ior-hard", "hintsFileName", "", Only(NO_HINTS), "Not there"),
        key("ior-hard", "verbosity", "", Anything, "Without effect"),
        key(
            "ior-hard-write",
            "collective",
            "FALSE",
            Only(NO_COLLECTIVE),
            "Not there",
        ),
        key(
            "ior-hard-read",
            "collective",
            "FALSE",
            Only(NO_COLLECTIVE),
            "Not there",
        ),
        key(
            "mdtest-hard",
            "n",
            "1000000",
            Count,
            "The most files of a rank",
        ),
        key(
            "mdtest-hard",
            "files-per-dir",
            "",
            Count,
            "Files in a directory; makes the run invalid",
        ),
        key("find", "external-script", "", Only(NO_SCRIPT), "Not there"),
        key(
            "find",
            "external-mpi-args",
            "",
            Only(NO_SCRIPT),
            "Not there",
        ),
        key(
            "find",
            "external-extra-args",
            "",
            Only(NO_SCRIPT),
            "Not there",
        ),
        key(
            "find",
            "nproc",
            "",
            Count,
            "Ranks that search; all of them by itself",
        ),
        key("find", "pfind-queue-length", "10000", Anything, SCHEDULING),
        key("find", "pfind-steal-next", "FALSE", Anything, SCHEDULING),
        key(
            "find",
            "pfind-parallelize-single-dir-access-using-hashing",
            "FALSE",
            Anything,
            SCHEDULING,
        ),
    ]
};

/// The keys of every phase and every set of files.
pub(super) const OF_PHASES: [Key; 4] = [
    key("", "run", "TRUE", Takes::Switch, "Whether it is run"),
    key(
        "",
        "noRun",
        "FALSE",
        Takes::Switch,
        "Whether it is not run, as older files have it",
    ),
    key(
        "",
        "API",
        "",
        Takes::Interface,
        "POSIX; with --posix.odirect around the page cache",
    ),
    key(
        "",
        "posix.odirect",
        "FALSE",
        Takes::Switch,
        "Around the page cache (O_DIRECT)",
    ),
];

/// Sections of IO500's extended mode, none of which is part of the score.
pub(super) const EXTENDED: [&str; 15] = [
    "find-easy",
    "find-hard",
    "mdworkbench",
    "mdworkbench-create",
    "mdworkbench-bench",
    "mdworkbench-delete",
    "ior-rnd4K",
    "ior-rnd4K-write",
    "ior-rnd4K-read",
    "ior-rnd1MB",
    "ior-rnd1MB-write",
    "ior-rnd1MB-read",
    "ior-rnd-write",
    "ior-rnd-read",
    "concurrent",
];

/// The sections, in the order in which they are printed.
pub(super) fn sections() -> Vec<&'static str> {
    let mut all = vec!["global", "debug"];
    for phase in &PHASES {
        for name in [phase.files, phase.name] {
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all
}

/// The keys of a section.
pub(super) fn keys_of(section: &str) -> Vec<&'static Key> {
    let own = KEYS.iter().filter(|key| key.section == section);
    let common: &[Key] = match section {
        "global" | "debug" => &[],
        "find" => &OF_PHASES[..2],
        _ => &OF_PHASES,
    };
    own.chain(common).collect()
}

/// What a run is made of, complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// What was set, by section and key.
    given: BTreeMap<(&'static str, &'static str), String>,
}

/// Reads a settings file of IO500.
///
/// # Errors
/// What is wrong, and in which line.
pub fn read(text: &str) -> Result<Settings, SuiteError> {
    let settings = Settings {
        given: ini::read(text)?,
    };
    // Not of one line alone.
    let whole = |message: String| SuiteError { line: 1, message };
    settings.check().map_err(whole)?;
    Ok(settings)
}

impl Settings {
    /// All settings with what they are by themselves, in the form of the file.
    pub fn text() -> String {
        let mut out = format!(
            "# The settings of IO500 as rbench suite {} has them: all may be left out.\n",
            super::NAME
        );
        for section in sections() {
            out.push_str(&format!("\n[{section}]\n"));
            // An older name of another key.
            for key in keys_of(section).iter().filter(|key| key.name != "noRun") {
                out.push_str(&format!("# {}\n", key.help));
                let line = format!("{} = {}", key.name, key.default);
                out.push_str(&format!("{}\n", line.trim_end()));
            }
        }
        out
    }

    /// A value; empty where there is none.
    pub(super) fn value(&self, section: &str, name: &str) -> &str {
        let given = self.given.iter();
        let mut given = given.filter(|((s, n), _)| *s == section && *n == name);
        match given.next() {
            Some((_, value)) => value,
            None => {
                let keys = keys_of(section);
                keys.iter()
                    .find(|key| key.name == name)
                    .map_or("", |key| key.default)
            }
        }
    }

    pub(super) fn is_true(&self, section: &str, name: &str) -> bool {
        ini::truth(self.value(section, name)) == Some(true)
    }

    /// `datadir`, if it is given.
    pub fn dir(&self) -> Option<&str> {
        Some(self.value("global", "datadir")).filter(|dir| !dir.is_empty())
    }

    /// `resultdir`, if it is given.
    pub fn result_dir(&self) -> Option<&str> {
        Some(self.value("global", "resultdir")).filter(|dir| !dir.is_empty())
    }

    /// How long phases that write go on, s.
    pub fn stonewall_s(&self) -> u64 {
        let text = self.value("debug", "stonewall-time");
        text.parse().unwrap_or(STONEWALL_S)
    }

    /// How long they have to take by the rules, s.
    pub fn required_s(&self) -> u64 {
        match self.is_true("global", "scc") {
            true => STONEWALL_SCC_S,
            false => STONEWALL_S,
        }
    }

    /// Sets how long phases that write go on, s.
    pub fn set_stonewall(&mut self, seconds: u64) {
        let place = ("debug", "stonewall-time");
        self.given.insert(place, seconds.to_string());
    }

    /// The phases that are run, in their order.
    pub fn phases(&self) -> Vec<&'static Phase> {
        PHASES.iter().filter(|phase| self.runs(phase)).collect()
    }

    /// Whether a phase is run.
    pub fn runs(&self, phase: &Phase) -> bool {
        [phase.files, phase.name]
            .iter()
            .all(|section| self.is_true(section, "run") && !self.is_true(section, "noRun"))
    }

    pub(super) fn direct(&self, phase: &Phase) -> bool {
        let around = |section: &str, name: &str| self.value(section, name).contains("odirect");
        around("global", "api")
            || [phase.files, phase.name]
                .iter()
                .any(|section| around(section, "API") || self.is_true(section, "posix.odirect"))
    }

    pub(super) fn packet(&self) -> &str {
        self.value("global", "dataPacketType")
    }

    /// Whether the kernel's caches are dropped before phases that read or stat.
    pub fn drops_caches(&self) -> bool {
        self.is_true("global", "drop-caches")
    }

    pub(super) fn find_ranks(&self) -> Option<u32> {
        self.value("find", "nproc").parse().ok()
    }

    /// A part (above 0, at most 1) of what may be written and of the time.
    ///
    /// # Errors
    /// A sentence that names a value of which there is no such part.
    pub fn scaled(&self, scale: f64) -> Result<Settings, String> {
        let mut scaled = self.clone();
        let transfer = self.value("ior-easy", "transferSize");
        for (section, name, unit, least) in [
            ("debug", "stonewall-time", "s", ""),
            ("ior-easy", "blockSize", "", transfer),
            ("ior-hard", "segmentCount", "", ""),
            ("mdtest-easy", "n", "", ""),
            ("mdtest-hard", "n", "", ""),
        ] {
            let mut full = format!("{}{unit}", self.value(section, name));
            if !least.is_empty() {
                full.push_str(&format!(":{least}"));
            }
            let part = scaled::part(&full, scale);
            let part = part.map_err(|e| format!("[{section}] {name}: {e}"))?;
            scaled.given.insert((section, name), part);
        }
        Ok(scaled)
    }

    /// Every setting that has an effect, for the result: `section.key` and value.
    pub fn all(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for section in sections() {
            for key in keys_of(section) {
                let told = !matches!(key.takes, Takes::Anything | Takes::Only(_) | Takes::Dir);
                if told && key.name != "noRun" && key.help != TIMESTAMP {
                    let value = match key.name {
                        "run" => {
                            let off =
                                !self.is_true(section, "run") || self.is_true(section, "noRun");
                            if off { "FALSE" } else { "TRUE" }
                        }
                        name => self.value(section, name),
                    };
                    all.push((format!("{section}.{}", key.name), value.to_owned()));
                }
            }
        }
        all
    }

    /// Why the run will not be valid whatever is measured; `scale`: the part of the full
    /// size.
    pub fn invalid_because(&self, scale: f64) -> Vec<String> {
        let mut why = Vec::new();
        if scale < 1.0 {
            why.push(format!("it has {scale} of the full size"));
        }
        let (stonewall, required) = (self.stonewall_s(), self.required_s());
        if stonewall < required {
            why.push(format!(
                "the stonewall is at {stonewall} s, and phases that write have to go on for {required} s"
            ));
        }
        let left_out = PHASES.iter().filter(|phase| !self.runs(phase));
        why.extend(left_out.map(|phase| format!("{} is not run", phase.name)));
        for section in ["mdtest-easy", "mdtest-hard"] {
            if !self.value(section, "files-per-dir").is_empty() {
                why.push(format!("[{section}] files-per-dir is set"));
            }
        }
        why
    }

    /// Whether the settings go together.
    fn check(&self) -> Result<(), String> {
        for phase in self.phases().into_iter().filter(|p| p.name != "find") {
            let written = PHASES.iter().find(|p| p.writes() && p.files == phase.files);
            if let Some(first) = written.filter(|first| !self.runs(first)) {
                return Err(format!(
                    "[{}] needs the files of [{}], which is not run: each run has a directory of its own",
                    phase.name, first.name
                ));
            }
            let shared = !self.is_true("ior-easy", "filePerProc");
            if shared && phase.name == "ior-rnd4K-easy-read" {
                return Err(
                    "[ior-rnd4K-easy-read] needs [ior-easy] filePerProc = TRUE: leave it out with run = FALSE"
                        .to_owned(),
                );
            }
        }
        match self.phases().is_empty() {
            true => Err("no phase is run".to_owned()),
            false => Ok(()),
        }
    }
}
