//! The settings of a run, and values derived from them.

use super::ini::{self, Given};
use super::keys::{TIMESTAMP, Takes, keys_of, sections};
use super::phases::{PHASES, Phase};
use crate::document::DocumentError;
use crate::suite::scaled;

/// The stonewall required by the rules, in seconds.
const STONEWALL_S: u64 = 300;
/// The stonewall required in the Student Cluster Competition, in seconds.
const STONEWALL_SCC_S: u64 = 30;

/// The settings of a run, complete.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// The given settings, by section and key.
    given: Given,
}

/// Reads a settings file of IO500.
///
/// # Errors
/// The error, with its line.
pub fn read(text: &str) -> Result<Settings, DocumentError> {
    let settings = Settings {
        given: ini::read(text)?,
    };
    // The error concerns more than one line.
    let whole = |message: String| DocumentError { line: 1, message };
    settings.check().map_err(whole)?;
    Ok(settings)
}

impl Settings {
    /// All settings with their defaults, in the form of the file.
    pub fn text() -> String {
        let mut out = format!(
            "# Settings of rbench suite {}, with their defaults: each may be left out.\n",
            super::NAME
        );
        for section in sections() {
            out.push_str(&format!("\n[{section}]\n"));
            // An alias of another key.
            for key in keys_of(section).iter().filter(|key| key.name != "noRun") {
                out.push_str(&format!("# {}\n", key.help));
                let line = format!("{} = {}", key.name, key.default);
                out.push_str(&format!("{}\n", line.trim_end()));
            }
        }
        out
    }

    /// The value of a key; may be empty.
    pub(super) fn value(&self, section: &str, name: &str) -> &str {
        let mut given = self.given.iter();
        let given = given.find(|((s, n), _)| *s == section && *n == name);
        let key = || keys_of(section).into_iter().find(|key| key.name == name);
        match given {
            Some((_, value)) => value,
            None => key().map_or("", |key| key.default),
        }
    }

    pub(super) fn is_true(&self, section: &str, name: &str) -> bool {
        ini::truth(self.value(section, name)) == Some(true)
    }

    /// `datadir`, if set.
    pub fn dir(&self) -> Option<&str> {
        Some(self.value("global", "datadir")).filter(|dir| !dir.is_empty())
    }

    /// `resultdir`, if set.
    pub fn result_dir(&self) -> Option<&str> {
        Some(self.value("global", "resultdir")).filter(|dir| !dir.is_empty())
    }

    /// Duration of phases that write, in seconds.
    pub fn stonewall_s(&self) -> u64 {
        let text = self.value("debug", "stonewall-time");
        text.parse().unwrap_or(STONEWALL_S)
    }

    /// Duration that the rules require of them, in seconds.
    pub fn required_s(&self) -> u64 {
        match self.is_true("global", "scc") {
            true => STONEWALL_SCC_S,
            false => STONEWALL_S,
        }
    }

    /// Sets the duration of phases that write, in seconds.
    pub fn set_stonewall(&mut self, seconds: u64) {
        let key = ("debug", "stonewall-time");
        self.given.insert(key, seconds.to_string());
    }

    /// The phases to run, in their order.
    pub fn phases(&self) -> Vec<&'static Phase> {
        PHASES.iter().filter(|phase| self.runs(phase)).collect()
    }

    /// True if a phase runs.
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

    /// True if the kernel's caches are dropped before phases that read or stat.
    pub fn drops_caches(&self) -> bool {
        self.is_true("global", "drop-caches")
    }

    pub(super) fn find_ranks(&self) -> Option<u32> {
        self.value("find", "nproc").parse().ok()
    }

    /// Scales the amount of data and the time by a factor above 0, at most 1.
    ///
    /// # Errors
    /// A sentence that names a value that cannot be scaled.
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

    /// Every setting with an effect, for the result: `section.key` and value.
    pub fn all(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for section in sections() {
            for key in keys_of(section) {
                let is_reported =
                    !matches!(key.takes, Takes::Anything | Takes::Only(_) | Takes::Dir);
                if is_reported && key.name != "noRun" && key.help != TIMESTAMP {
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

    /// The reasons why the run will not be valid, whatever its results. `scale` is the
    /// part of the full size.
    pub fn invalid_because(&self, scale: f64) -> Vec<String> {
        let mut reasons = Vec::new();
        if scale < 1.0 {
            reasons.push(format!("it has only {scale} of the full size"));
        }
        let (stonewall, required) = (self.stonewall_s(), self.required_s());
        if stonewall < required {
            reasons.push(format!(
                "the stonewall is at {stonewall} s, but phases that write must last {required} s"
            ));
        }
        let left_out = PHASES.iter().filter(|phase| !self.runs(phase));
        reasons.extend(left_out.map(|phase| format!("{} is not run", phase.name)));
        for section in ["mdtest-easy", "mdtest-hard"] {
            if !self.value(section, "files-per-dir").is_empty() {
                reasons.push(format!("[{section}] files-per-dir is set"));
            }
        }
        reasons
    }

    /// Checks that the settings are consistent.
    fn check(&self) -> Result<(), String> {
        for phase in self.phases().into_iter().filter(|p| p.name != "find") {
            let written = PHASES.iter().find(|p| p.writes() && p.files == phase.files);
            if let Some(first) = written.filter(|first| !self.runs(first)) {
                return Err(format!(
                    "[{}] needs the files of [{}], which is not run: enable it, since each run has its own directory",
                    phase.name, first.name
                ));
            }
            let shared = !self.is_true("ior-easy", "filePerProc");
            if shared && phase.name == "ior-rnd4K-easy-read" {
                return Err(
                    "[ior-rnd4K-easy-read] needs [ior-easy] filePerProc = TRUE: skip it with run = FALSE"
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
