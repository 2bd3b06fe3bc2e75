//! Commands that work on results, or on rbench's own definitions; none of them
//! measures anything.

use std::path::PathBuf;

use clap::Args as ClapArgs;
use clap_complete::Shell;

use crate::{Invocation, Page, ShowFormat};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Several files are shown one after the other; in csv and openmetrics they form one table. \
    docs/reference/show.md describes each format.\n\nExamples:\n  rbench show run.json\n  rbench show \
    run.json.journal\n  rbench show --format csv monday.json tuesday.json >both.csv\n  rbench show --format \
    hgrm --only randread run.json >randread.hgrm"
)]
pub struct Show {
    /// Result files written by --out or their journals, or a directory to list its results
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Format of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    format: ShowFormat,
    /// Show only rows with these names (file-create, randread …), separated by commas
    /// [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// In text: show everything, not only totals and findings that deserve attention
    #[arg(long)]
    details: bool,
}

impl Show {
    pub fn invocation(self) -> Invocation {
        Invocation::Show(crate::Show {
            files: self.files,
            format: self.format,
            only: self.only,
            details: self.details,
        })
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "The page is one file: it loads nothing else, works without scripts, follows the reader's \
    light or dark mode, and includes the results themselves. Several results are shown side by \
    side.\n\nExamples:\n  rbench report run.json --html run.html\n  rbench report old.json new.json --html \
    both.html --overwrite"
)]
pub struct Report {
    /// Result files written by --out, or their journals
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Page to write
    #[arg(long, value_name = "OUT", required = true)]
    html: PathBuf,
    /// Replace the page if rbench wrote it; other files are never replaced
    #[arg(long)]
    overwrite: bool,
}

impl Report {
    pub fn invocation(self) -> Invocation {
        Invocation::Report(Page {
            files: self.files,
            html: self.html,
            overwrite: self.overwrite,
        })
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  rbench completions bash >/etc/bash_completion.d/rbench\n  rbench completions zsh \
    >/usr/local/share/zsh/site-functions/_rbench\n  rbench completions fish >~/.config/fish/completions/rbench.fish"
)]
pub struct Completions {
    /// Shell to print completions for
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub fn invocation(self) -> Invocation {
        Invocation::Completions(self.shell)
    }
}

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "Examples:\n  rbench man | man -l -\n  rbench man --out /usr/local/share/man/man1"
)]
pub struct Man {
    /// Write rbench.1, rbench-io.1 … into this existing directory; existing files are not
    /// replaced
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Man {
    pub fn invocation(self) -> Invocation {
        Invocation::Man { out: self.out }
    }
}
