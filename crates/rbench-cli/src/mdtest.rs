//! mdtest's command line, read into a Spec. [`table`] lists the options and what each sets;
//! [`crate::letters`] reads how they are written.

use std::ffi::{OsStr, OsString};

use rbench_plan::spec::{self, Spec, Workload};

use crate::letters::{self, Shared, Table};
use crate::{Invocation, MdtestView, Stop, invocation};

mod table;

/// The options read from the words until now.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Line {
    spec: spec::Mdtest,
    view: MdtestView,
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

/// Reads the words after `rbench mdtest`.
pub fn read(words: &[OsString], env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
    letters::read::<Line>(words)?.invocation(env_dir)
}

impl Line {
    fn invocation(self, env_dir: Option<&OsStr>) -> Result<Invocation, Stop> {
        let (mut common, mut output) = self.shared.split();
        let mut mdtest = self.spec;
        if mdtest.dirs.is_empty() {
            mdtest.dirs.extend(invocation::env_dir(env_dir)?);
        }
        output.mdtest = Some(self.view);
        common.seed = mdtest.seed;
        common.iterations = mdtest.iterations;
        let workload = Workload::Mdtest(Box::new(mdtest));
        Ok(Invocation::Run(Box::new(Spec { common, workload }), output))
    }
}

#[cfg(test)]
mod tests;
