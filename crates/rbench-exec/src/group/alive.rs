//! Ranks say that they are there, and look whether the others are.

use rbench_core::Rank;
use tokio::time::Instant;

use super::{ALIVE_EVERY, AWAY, ExecError, Group, SILENCE, Word};

impl Group<'_> {
    /// Says that this rank is there, when it is time to. It is `now`.
    pub(super) fn say_alive(&self, now: Instant) {
        let due = now.duration_since(self.heartbeat.told_alive.get()) >= ALIVE_EVERY;
        if self.heartbeat.guarded.get().is_none() || !due {
            return;
        }
        self.heartbeat.told_alive.set(now);
        if self.is_root() {
            self.post_to_others(&Word::Alive);
        } else {
            self.post(Rank(0), &Word::Alive);
        }
    }

    /// Says that this rank is there, and looks whether the others are: rank 0
    /// after all of them, they after rank 0. It is `now`.
    pub(super) fn live(&self, now: Instant) -> Result<(), ExecError> {
        let Some(since) = self.heartbeat.guarded.get() else {
            return Ok(());
        };
        if now.duration_since(self.heartbeat.looked.replace(now)) > AWAY {
            self.heartbeat.alive.borrow_mut().fill(now);
        }
        self.say_alive(now);
        let alive = self.heartbeat.alive.borrow();
        let watched = if self.is_root() { 1..alive.len() } else { 0..1 };
        let silent: Vec<u32> = watched
            .filter(|rank| now.duration_since(alive[*rank].max(since)) > SILENCE)
            .map(|rank| rank as u32)
            .collect();
        let Some(first) = silent.first() else {
            return Ok(());
        };
        let others = match silent.len() {
            1 => " has".to_owned(),
            2 => " and another rank have".to_owned(),
            several => format!(" and {} other ranks have", several - 1),
        };
        Err(ExecError::Lost(format!(
            "rank {first} on {}{others} not been heard from for {} s: the process, its host or the network is down",
            self.host_name_of(Rank(*first)),
            SILENCE.as_secs()
        )))
    }
}
