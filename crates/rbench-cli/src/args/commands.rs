//! Commands around each phase: options of the native commands.

use clap::Args;
use rbench_core::Nanos;
use rbench_plan::spec::CommandOptions;

use crate::values;

#[derive(Debug, Args)]
pub struct CommandArgs {
    /// Run COMMAND (sh -c) on every host before each phase, untimed
    ///
    /// The environment names the phase (RBENCH_PHASE and others: docs/reference/hooks.md).
    /// If the command fails, the run ends.
    #[arg(long, value_name = "COMMAND", help_heading = "Run")]
    before_phase: Option<String>,
    /// Run COMMAND (sh -c) on every host after each phase, untimed
    ///
    /// The environment is that of --before-phase. If the command fails, the result has a
    /// warning.
    #[arg(long, value_name = "COMMAND", help_heading = "Run")]
    after_phase: Option<String>,
    /// Time limit of --before-phase and --after-phase, for each phase (s) [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = values::time, help_heading = "Run")]
    hook_timeout: Option<Nanos>,
}

impl From<CommandArgs> for CommandOptions {
    fn from(args: CommandArgs) -> CommandOptions {
        CommandOptions {
            before: args.before_phase,
            after: args.after_phase,
            timeout: args.hook_timeout,
        }
    }
}
