//! Values and numbers over all ranks.

use rbench_comm::Combine;
use rbench_core::Rank;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{ExecError, Group};

impl Group<'_> {
    /// Waits until every rank has come here.
    pub async fn meet(&self) -> Result<(), ExecError> {
        self.quietly(self.world.barrier()).await
    }

    /// Every rank's value at rank 0, in the order of the ranks; nothing at the others.
    pub async fn gather<T: Serialize + DeserializeOwned>(
        &self,
        mine: &T,
    ) -> Result<Vec<T>, ExecError> {
        let all = self.quietly(self.world.gather_values(mine)).await?;
        Ok(all.unwrap_or_default())
    }

    /// Rank 0's value, at every rank.
    pub async fn broadcast<T: Serialize + DeserializeOwned>(
        &self,
        value: &T,
    ) -> Result<T, ExecError> {
        self.quietly(self.world.broadcast_value(Rank(0), value))
            .await
    }

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
}
