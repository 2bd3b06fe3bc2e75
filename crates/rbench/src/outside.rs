//! Who has to do with a run from outside of it: signals, and those who watch.

use rbench_cli::Progress;
use rbench_cli::live::Serve;
use rbench_comm::Communicator;

use crate::live::{Feed, Watched};
use crate::refusal::Refusal;
use crate::signals::Signals;

/// Who has to do with a run while it goes on, beside its ranks.
pub struct Outside {
    /// The signals of this process, and who asks for a stop like them.
    pub signals: Signals,
    watched: Watched,
}

impl Outside {
    /// With whoever may watch: where, how progress is shown, and whether notes are not.
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

    /// The way to whoever watches.
    pub fn feed(&self) -> Feed {
        self.watched.feed()
    }

    /// Why it ends early, if it does, for whoever watches.
    pub fn tell_end(&self, ended: &Result<u8, Refusal>) {
        if let Err(Refusal::Usage(why) | Refusal::Failed(why) | Refusal::Silent(why)) = ended {
            let why = why.clone();
            self.watched.feed().tell(|live| live.fail(why));
        }
    }
}
