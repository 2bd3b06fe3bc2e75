//! Requested output of a run made through mdtest's or fio's command line: with it the file alone
//! gives the same text again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::FioForm;

/// The other tools' forms of a result; none for the native commands.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Forms {
    /// Output of `rbench mdtest`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mdtest: Option<MdtestForm>,
    /// Output of `rbench fio`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fio: Option<FioForm>,
}

impl Forms {
    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        let Forms { mdtest, fio } = self;
        mdtest.is_none() && fio.is_none()
    }
}

/// Requested output of `rbench mdtest`. Its output for each rank and the file of
/// `--saveRankPerformanceDetails` need a result with a row for every rank.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MdtestForm {
    /// `-Z`, `-P`
    pub print: Print,
    /// Requested kinds of items.
    pub kinds: Kinds,
    /// `-v`, `-V`; from 1 on each phase has a line.
    pub verbosity: u32,
    /// `--print-all-procs`: a line for each phase and rank after the table.
    pub all_ranks: bool,
    /// `--showRankStatistics`: the table also has columns over the ranks.
    pub rank_statistics: bool,
    /// Ranks × items of each rank, of one kind; `None` where the stonewall
    /// decides.
    pub items: Option<u64>,
    /// The program's name as it is shown.
    pub command: String,
    /// The directories of `-d`, as they were given.
    pub paths: Vec<String>,
    /// `-N` in ranks; 0: no shift.
    pub shift: u64,
    /// The seed of `-R`.
    pub seed: Option<u64>,
}

/// The tables of mdtest's report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Print {
    /// Operations per second.
    #[default]
    Rates,
    /// Milliseconds per operation.
    Times,
    /// Both, rates first.
    Both,
}

/// Kinds of items that a run of mdtest works on: the table has rows for these and for the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kinds {
    /// Directories and files.
    #[default]
    Both,
    /// `-F`
    Files,
    /// `-D`
    Directories,
}
