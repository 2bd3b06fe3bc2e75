//! Commands around each phase: options of the native commands.

use clap::Args;
use rbench_core::Nanos;
use rbench_plan::spec::CommandOptions;

use crate::values;

#[derive(Debug, Args)]
pub struct CommandArgs {
    /// Run COMMAND (sh -c) on every host before each phase, untimed; RBENCH_PHASE and others
    /// in its environment tell which one: docs/reference/hooks.md. If it fails the run ends
    #[arg(long, value_name = "COMMAND", help_heading = "Run")]
    before_phase: Option<String>,
    /// Run COMMAND on every host after each phase in the same way; if it fails the result has
    /// a warning
    #[arg(long, value_name = "COMMAND", help_heading = "Run")]
    after_phase: Option<String>,
    /// The longest time that --before-phase and --after-phase may take for a phase (s)
    /// [default: 60s]
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
