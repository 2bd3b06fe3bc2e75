//! Reads the command line that all ranks share, and selects its front end. No other file knows all
//! front ends.

use std::path::{Path, PathBuf};

use rbench_cli::{Invocation, Mistake, Output, Stop};
use rbench_core::Rank;
use rbench_core::event::check_events;
use rbench_core::outcome::OpTime;
use rbench_core::plain::plain;
use rbench_plan::Spec;
use rbench_plan::spec::{MixText, Workload};

use crate::console::print;
use crate::front::{Done, FrontEnd, Scope};
use crate::launch::Launch;
use crate::operations::OperationLog;
use crate::refusal::Refusal;
use crate::show::render;
use crate::{fio, ior, job_files, mdtest};

/// The native commands.
struct Native {
    /// `--log`
    prefix: Option<PathBuf>,
    log: Option<OperationLog>,
}

impl FrontEnd for Native {
    fn open(&mut self, _scope: Scope<'_>, rank: Rank) -> Result<(), String> {
        let create = |prefix: &PathBuf| OperationLog::create("--log", prefix, rank);
        self.log = self.prefix.as_ref().map(create).transpose()?;
        Ok(())
    }

    fn discard(&mut self) {
        self.log.take().into_iter().for_each(OperationLog::discard);
    }

    fn log(&mut self, iteration: u32, rows: &[&str], operations: &[OpTime]) -> Result<(), String> {
        match &mut self.log {
            Some(log) => log.add(iteration, rows, operations),
            None => Ok(()),
        }
    }

    fn report(&self, _scope: Scope<'_>, output: &Output, done: Done<'_>) -> Result<u8, String> {
        Ok(print(&render(done.result, output.format, output.details)))
    }
}

/// The front end of a command line.
pub fn front_end(spec: &Spec, output: &Output) -> Box<dyn FrontEnd> {
    match (&spec.workload, &output.mdtest, &output.fio) {
        (Workload::Mdtest(options), Some(view), _) => {
            Box::new(mdtest::Front::new(options.as_ref().clone(), view.clone()))
        }
        (_, _, Some(view)) => Box::new(fio::Front::new(view.clone())),
        (Workload::Ior(options), _, _) => {
            let view = output.ior.clone().unwrap_or_default();
            Box::new(ior::Front::new(options.as_ref().clone(), view))
        }
        _ => Box::new(Native {
            prefix: spec.common.log.clone(),
            log: None,
        }),
    }
}

/// Reason why ranks refuse a command of one process.
pub const ONE_RANK_ONLY: &str = "this command runs on one rank only";

/// Reads the command line. Its paths are relative to rank 0's working directory.
pub fn read(launch: &Launch) -> Result<Invocation, Refusal> {
    let cwd = Path::new(&launch.cwd);
    let invocation = match launch.argv.get(1) {
        Some(command) if command == "fio" => rbench_cli::fio::read(&launch.argv, &launch.job_files),
        _ => {
            let argv = ior::with_script(launch).map_err(Refusal::Usage)?;
            rbench_cli::parse(&argv, launch.env_dir.as_deref())
        }
    };
    match invocation.map_err(|stop| Refusal::Cli(with_directory(stop, launch)))? {
        Invocation::Run(_, output) if output.hlog.is_some() && output.hlog == output.out => Err(
            Refusal::Usage("--hlog and --out name the same file".to_owned()),
        ),
        Invocation::Run(mut spec, output) => {
            check_events(&output.events).map_err(Refusal::Usage)?;
            mdtest::anchor(&mut spec, cwd);
            ior::anchor(&mut spec, cwd);
            spec.common.log = spec.common.log.take().map(|prefix| cwd.join(prefix));
            let journal = match &mut spec.workload {
                Workload::Io(io) => Some(&mut io.ack_journal),
                Workload::Fio(fio) => Some(&mut fio.ack_journal),
                Workload::Find(find) => {
                    find.newer = find.newer.take().map(|file| cwd.join(file));
                    None
                }
                Workload::Mix(mix) => {
                    if let MixText::Profile { name, text } = &mut mix.text {
                        *text = job_files::text(&launch.job_files, Path::new(name));
                    }
                    None
                }
                Workload::Replay(replay) => {
                    for trace in &mut replay.traces {
                        *trace = cwd.join(&trace);
                    }
                    None
                }
                Workload::Meta(_) | Workload::Ops(_) | Workload::Mdtest(_) | Workload::Ior(_) => {
                    None
                }
            };
            if let Some(journal) = journal {
                *journal = journal.take().map(|base| cwd.join(base));
            }
            Ok(Invocation::Run(spec, output))
        }
        other @ (Invocation::Series(_) | Invocation::Tool(_)) => Ok(other),
    }
}

/// Adds a tip if the first word is not a command but a directory.
fn with_directory(stop: Stop, launch: &Launch) -> Stop {
    match &stop.mistake {
        // A similar command would mislead.
        Some(Mistake::Command(word))
            if launch
                .argv
                .get(1)
                .is_some_and(|first| first == word.as_str())
                && !word.is_empty()
                && Path::new(&launch.cwd).join(word).is_dir() =>
        {
            let word = plain(word);
            Stop::misuse(format!(
                "error: unrecognized subcommand '{word}'\n\n  tip: for a directory of that name: rbench \
                 ./{word}\n\nFor more information, try '--help'.\n"
            ))
        }
        _ => stop,
    }
}
