//! `rbench compare`: its options.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use crate::{Compare, CompareFormat, Invocation, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A difference is shown only if it is unlikely that chance produced one in any of the \
    operations (--confidence). This needs at least 4 iterations or runs on each side, better 5 (--iterations \
    5); with fewer there is no verdict, and --fail-if is refused.\n\nConditions of --fail-if: \
    [CELL:][OPERATION.]FIGURE>+N% or …FIGURE<-N%. Figures are rate, bandwidth, mean, p50, p90, p99, p99.9 and \
    max; in open loops also response-mean … response-max; for a series as a whole held (knee), score, \
    score-bandwidth and score-metadata (io500). In series (sweep, knee, nn, quick, suite) every cell is \
    compared. A condition applies to all cells, or to the CELL before its colon.\n\nExit code: 0; 1 if a \
    condition is met; 2 if nothing can be compared. docs/reference/compare.md has the \
    formulas.\n\nExamples:\n  rbench compare before.json after.json\n  rbench compare --base b2.json --base \
    b3.json b1.json a1.json a2.json a3.json --format md\n  rbench compare before.json after.json --fail-if \
    'file-create.p99>+10%' --fail-if 'rate<-5%'\n  rbench compare old-sweep.json new-sweep.json --fail-if \
    'threads=4 bs=4k: rate<-5%'\n  rbench compare run.json --published juicefs-1.1/redis-always"
)]
pub struct CompareArgs {
    /// BASE is the result of a run or series, followed by one or more NEW results of the
    /// same kind; with --published: only NEW results
    #[arg(value_name = "BASE NEW")]
    files: Vec<PathBuf>,
    /// Another run of the same configuration as BASE; may be repeated
    #[arg(long, value_name = "FILE", conflicts_with = "published")]
    base: Vec<PathBuf>,
    /// Compare with published figures; list: print them all
    #[arg(long, value_name = "SET/COLUMN|list")]
    published: Option<String>,
    /// Smallest change that counts as a difference [default: 5%]
    #[arg(long, value_name = "PERCENT", value_parser = values::effect)]
    min_effect: Option<f64>,
    /// Confidence that no operation differs by chance alone [default: 95%]
    #[arg(long, value_name = "PERCENT", value_parser = values::confidence)]
    confidence: Option<f64>,
    /// Exit with code 1 if this condition is met, such as file-create.p99>+10%; may be
    /// repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Also compare runs that did different things, and list the differences
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
