//! Common results of all ranks: numbers over all of them, and work beside the control plane whose
//! result they agree on.

use rbench_comm::Combine;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ExecError, Group};
use crate::thread::in_thread;

impl ExecError {
    /// A refusal of the set-up as misuse: the plan cannot be done on these hosts.
    pub fn as_usage(self) -> ExecError {
        match self {
            ExecError::SetUp(message) => ExecError::Usage(message),
            other => other,
        }
    }
}

impl Group<'_> {
    /// All ranks' values merged, at rank 0: those of each host first, so that rank 0 gets one message
    /// from each host.
    pub async fn merged<T: Serialize + DeserializeOwned>(
        &self,
        mine: T,
        merge: impl Fn(T, T) -> T,
    ) -> Result<Option<T>, ExecError> {
        let all = self.quietly(self.host.gather_values(&mine)).await?;
        let Some(of_host) = all.and_then(|all| all.into_iter().reduce(&merge)) else {
            return Ok(None);
        };
        let all = self.quietly(self.leaders.gather_values(&of_host)).await?;
        Ok(all.and_then(|all| all.into_iter().reduce(&merge)))
    }

    /// The largest of each number over all ranks.
    pub async fn largest(&self, mine: Vec<u64>) -> Result<Vec<u64>, ExecError> {
        let all = self.world.all_reduce(Combine::Max, mine);
        self.quietly(all).await
    }

    /// The sum of each number over all ranks.
    pub async fn sums(&self, mine: Vec<u64>) -> Result<Vec<u64>, ExecError> {
        let all = self.world.all_reduce(Combine::Sum, mine);
        self.quietly(all).await
    }

    /// Returns true if it is so on any rank.
    pub async fn any(&self, mine: bool) -> Result<bool, ExecError> {
        Ok(self.largest(vec![u64::from(mine)]).await?[0] > 0)
    }

    /// Returns true if it is so on all ranks.
    pub async fn all(&self, mine: bool) -> Result<bool, ExecError> {
        Ok(!self.any(!mine).await?)
    }

    /// Does blocking work beside the control plane; an error inside says that there was no
    /// thread.
    pub async fn in_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Result<T, String>, ExecError> {
        self.attend(in_thread(work), || 0).await
    }

    /// Like [`Group::in_thread`], on all ranks, which agree on its success.
    ///
    /// # Errors
    /// When it failed on some rank, or the ranks cannot talk.
    pub async fn agree_in_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, ExecError> {
        let done = self.in_thread(work).await?.and_then(|done| done);
        self.agree(done).await
    }
}
