//! Reasons for a run without a report, and their messages.

use rbench_cli::Stop;
use rbench_comm::{CommError, Communicator};
use rbench_core::Rank;
use rbench_exec::ExecError;

use crate::console::{complain, print, to_stderr};
use crate::exit::{FAILED, SUCCESS, USAGE};

/// The reason why a run has no report, the same on every rank. Rank 0 prints it.
pub enum Refusal {
    /// The user asked for help, or the command line is wrong.
    Cli(Stop),
    /// The command line cannot be carried out here.
    Usage(String),
    /// The run failed.
    Failed(String),
    /// The other ranks no longer answer and must be terminated.
    Silent(String),
}

impl From<ExecError> for Refusal {
    fn from(error: ExecError) -> Refusal {
        match error {
            ExecError::Usage(message) => Refusal::Usage(message),
            ExecError::SetUp(message) => Refusal::Failed(message),
            ExecError::Lost(message) => Refusal::Silent(message),
            ExecError::Comm(_) | ExecError::NoAnswer => Refusal::Silent(error.to_string()),
        }
    }
}

impl From<CommError> for Refusal {
    fn from(error: CommError) -> Refusal {
        ExecError::from(error).into()
    }
}

/// Checks something at rank 0, and refuses on all ranks if that fails. A collective call.
///
/// # Errors
/// The sentence that `check` returned, or when the ranks cannot communicate.
pub async fn checked_at_root(
    comm: &dyn Communicator,
    check: impl FnOnce() -> Result<(), String>,
) -> Result<(), Refusal> {
    let refused = match comm.rank() {
        Rank(0) => check().err(),
        _ => None,
    };
    let refused = comm.broadcast_value(Rank(0), &refused).await?;
    refused.map_or(Ok(()), |why| Err(Refusal::Usage(why)))
}

/// At rank 0, prints why there is no report. Returns the exit code.
pub fn say(root: bool, refusal: Refusal) -> u8 {
    match refusal {
        Refusal::Cli(Stop { text, code: 0, .. }) => {
            if root {
                print(&text)
            } else {
                SUCCESS
            }
        }
        Refusal::Cli(Stop { text, .. }) => {
            if root {
                // Every message starts with the program's name.
                let named = |line: &str| match line.strip_prefix("error: ") {
                    Some(message) => format!("rbench: {message}"),
                    None => line.to_owned(),
                };
                to_stderr(&text.split_inclusive('\n').map(named).collect::<String>());
            }
            USAGE
        }
        Refusal::Usage(message) => {
            if root {
                message.lines().for_each(complain);
            }
            USAGE
        }
        Refusal::Failed(message) | Refusal::Silent(message) => {
            if root {
                complain(&message);
            }
            FAILED
        }
    }
}
