//! IOR's command line, read into a Spec. Which options there are and what each sets is in
//! [`table`]; how they are written is [`crate::letters`]' business.

use std::ffi::OsString;
use std::path::PathBuf;

use rbench_plan::spec::{self, Spec, Workload};

use crate::definitions::Definition;
use crate::letters::{self, Table};
use crate::{Invocation, IorView, Output, Start, Stop};

mod script;
mod table;

pub use script::{options_of, script_of};

/// What the words read so far ask for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    spec: spec::Ior,
    /// `-f`: its options are words of the command line by then.
    script: Option<PathBuf>,
    view: IorView,
    output: Output,
    limits: spec::LimitOptions,
    leave: spec::Leave,
    drop_caches: bool,
}

impl letters::Line for Line {
    const TABLE: Table<Line> = table::TABLE;

    fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    fn limits(&mut self) -> &mut spec::LimitOptions {
        &mut self.limits
    }

    fn leave(&mut self) -> &mut spec::Leave {
        &mut self.leave
    }

    fn drop_caches(&mut self) -> &mut bool {
        &mut self.drop_caches
    }

    fn report(&mut self) -> &mut bool {
        &mut self.view.report
    }
}

/// The text of `rbench ior --help`.
pub fn help() -> String {
    letters::help::<Line>()
}

/// The options, for completions and man pages.
pub fn definitions() -> Vec<Definition> {
    letters::definitions::<Line>()
}

/// Reads the words after `rbench ior`.
pub fn read(words: &[OsString]) -> Result<Invocation, Stop> {
    Ok(line(words)?.invocation())
}

/// How these words ask ranks to come together.
pub fn start(words: &[OsString]) -> Start {
    line(words).map_or(Start::default(), |line| line.output.start)
}

fn line(words: &[OsString]) -> Result<Line, Stop> {
    let mut line = Line::default();
    letters::read(&mut line, words)?;
    Ok(line)
}

impl Line {
    fn invocation(self) -> Invocation {
        let Line {
            spec: ior,
            script: _,
            view,
            mut output,
            limits,
            leave,
            drop_caches,
        } = self;
        output.progress = output.progress.unless(output.quiet);
        output.ior = Some(view);
        let common = spec::Common {
            iterations: ior.repetitions,
            limits,
            leave,
            drop_caches,
            ..spec::Common::default()
        };
        let workload = Workload::Ior(Box::new(ior));
        Invocation::Run(Box::new(Spec { common, workload }), output)
    }
}

#[cfg(test)]
mod tests;
