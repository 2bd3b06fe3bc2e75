//! External influences on a run: signals and viewers.

use rbench_cli::Progress;
use rbench_cli::live::Serve;
use rbench_comm::Communicator;

use crate::live::{Feed, Watched};
use crate::refusal::Refusal;
use crate::signals::Signals;

/// External influences on a running run.
pub struct Outside {
    /// The signals of this process, and the viewers' requests to stop.
    pub signals: Signals,
    watched: Watched,
}

impl Outside {
    /// Opens the live status. `shown`: address, progress mode, and whether notes are suppressed.
    ///
    /// # Errors
    /// Those of [`Watched::open`].
    pub async fn open(
        comm: &dyn Communicator,
        signals: Signals,
        (serve, progress, quiet): (&Serve, Progress, bool),
    ) -> Result<Outside, Refusal> {
        let (watched, stops) = Watched::open(comm, serve, progress, quiet).await?;
        signals.hear(stops);
        Ok(Outside { signals, watched })
    }

    /// Channel to the viewers.
    pub fn feed(&self) -> Feed {
        self.watched.feed()
    }

    /// Tells viewers why the run ended early, if it did.
    pub fn tell_end(&self, ended: &Result<u8, Refusal>) {
        if let Err(Refusal::Usage(why) | Refusal::Failed(why) | Refusal::Silent(why)) = ended {
            let why = why.clone();
            self.watched.feed().tell(|live| live.fail(why));
        }
    }
}
