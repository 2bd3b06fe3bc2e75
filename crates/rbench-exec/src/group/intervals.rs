//! What is done in each interval, on its way from rank to rank.

use rbench_core::Rank;

use super::{ExecError, Group, NOTE_INTERVAL, NOTE_INTERVALS_END};

impl Group<'_> {
    /// Passes on what is known of the intervals: to the leader of the host, leaders to
    /// rank 0, which tells whoever observes. All of it when the phase is `over`, else as
    /// far as it is time to.
    pub(super) fn pass_on(&self, over: bool) {
        if self.is_root() {
            return self.intervals.tell(over);
        }
        let phase = self.phase_number.get();
        for ([row, number, response], more) in self.intervals.letters(over) {
            let words = [phase, row, number, response, 0];
            self.post_with(self.next_on_the_way(), NOTE_INTERVAL, words, more);
        }
        self.tell_passed();
    }

    /// Who hears of this rank's intervals.
    pub(super) fn next_on_the_way(&self) -> Rank {
        let mine = self.host_of[self.rank().0 as usize];
        let leader = self.host_of.iter().position(|host| *host == mine);
        match self.is_leader() {
            true => Rank(0),
            false => Rank(leader.unwrap_or(0) as u32),
        }
    }

    /// At the end of a phase, on all ranks: whoever observes has heard of all intervals
    /// afterwards.
    ///
    /// # Errors
    /// When the ranks cannot talk.
    pub async fn settle_intervals(&self) -> Result<(), ExecError> {
        self.marks.left();
        if !self.intervals.wanted() {
            return Ok(());
        }
        let of_host = u64::from(self.host.size() - 1);
        let expected = match (self.is_root(), self.is_leader()) {
            (true, _) => of_host + u64::from(self.leaders.size() - 1),
            (false, true) => of_host,
            (false, false) => 0,
        };
        let all = async {
            self.intervals.all_ended(expected).await;
            Ok::<(), ExecError>(())
        };
        self.quietly(all).await?;
        self.pass_on(true);
        if !self.is_root() {
            let words = [self.phase_number.get(), 0, 0, 0, 0];
            self.post(self.next_on_the_way(), NOTE_INTERVALS_END, words);
        }
        Ok(())
    }
}
