//! `rbench compare`: its options.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::{Compare, CompareFormat, Invocation, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A difference is shown only if chance would hardly ever show one in any operation where there is none \
    (--confidence). This takes at least 4 iterations or runs of each side, better 5 (--iterations 5): from fewer there is no \
    verdict, and --fail-if is refused. Conditions of \
    --fail-if: [CELL:][OPERATION.]FIGURE>+N% or …FIGURE<-N%; figures are rate, bandwidth, mean, p50, p90, p99, p99.9, \
    max, and response-mean … response-max of open loops; of series as a whole held (knee), score, score-bandwidth and \
    score-metadata (io500). Of series (sweep, knee, nn, quick, suite) every cell is compared; a condition is about all of \
    them or about the CELL before its colon. Exit code: 0; 1 if a condition is met; 2 if there is no comparison. \
    docs/reference/compare.md has the formulas.\n\nExamples:\n  rbench compare before.json after.json\n  rbench compare --base b2.json \
    --base b3.json b1.json a1.json a2.json a3.json --format md\n  rbench compare before.json after.json --fail-if \
    'file-create.p99>+10%' --fail-if 'rate<-5%'\n  rbench compare old-sweep.json new-sweep.json --fail-if 'threads=4 bs=4k: \
    rate<-5%'\n  rbench compare run.json --published juicefs-1.1/redis-always"
)]
pub struct CompareArgs {
    /// The result that is compared with, of a run or a series, then one result or
    /// several of the same thing; with --published: these only
    #[arg(value_name = "BASE NEW")]
    files: Vec<PathBuf>,
    /// Another run of what BASE is; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "published")]
    base: Vec<PathBuf>,
    /// Compare with published figures; list: name them all
    #[arg(long, value_name = "SET/COLUMN|list")]
    published: Option<String>,
    /// The least change that counts as a difference [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = values::effect)]
    min_effect: Option<f64>,
    /// How sure it has to be that no operation differs by chance [default: 95%]
    #[arg(long, value_name = "PERCENT", value_parser = values::confidence)]
    confidence: Option<f64>,
    /// Exit with code 1 on such a change, as in file-create.p99>+10%; may be
    /// repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Compare also runs that did different things, and name what differs
    #[arg(long)]
    even_if_different: bool,
    /// Format of the comparison
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: CompareFormat,
}

impl CompareArgs {
    pub fn invocation(self) -> Invocation {
        Invocation::Compare(Compare {
            files: self.files,
            more_bases: self.base,
            published: self.published,
            min_effect: self.min_effect,
            confidence: self.confidence,
            fail_if: self.fail_if,
            even_if_different: self.even_if_different,
            format: self.format,
        })
    }
}
