//! IOR's command line, read into a Spec. `table` lists the options and what each sets; `letters`
//! reads how they are written.

use std::ffi::OsString;
use std::path::PathBuf;

use rbench_plan::spec::{self, Spec, Workload};

use crate::letters::{self, Shared, Table};
use crate::{Invocation, IorView, Stop};

mod script;
mod table;

pub use script::{options_of, script_of};

/// The options read from the words until now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    spec: spec::Ior,
    /// `-f`: its options are already among the words of the command line.
    script: Option<PathBuf>,
    view: IorView,
    shared: Shared,
}

impl letters::Line for Line {
    const TABLE: Table<Line> = table::TABLE;

    fn shared(&mut self) -> &mut Shared {
        &mut self.shared
    }

    fn report(&mut self) -> &mut bool {
        &mut self.view.report
    }
}

/// Reads the words after `rbench ior`.
pub fn read(words: &[OsString]) -> Result<Invocation, Stop> {
    Ok(letters::read::<Line>(words)?.invocation())
}

impl Line {
    fn invocation(self) -> Invocation {
        let (mut common, mut output) = self.shared.split();
        output.ior = Some(self.view);
        common.iterations = self.spec.repetitions;
        let workload = Workload::Ior(Box::new(self.spec));
        Invocation::Run(Box::new(Spec { common, workload }), output)
    }
}

#[cfg(test)]
mod tests;
