//! Counts of each interval, on their way from rank to rank.

use rbench_core::timeline::IntervalPart;
use rbench_core::{Nanos, Rank};
use rbench_sys::limits;

use super::{ExecError, Group, News, Word};
use crate::intervals::Letter;

impl Group<'_> {
    /// Adds what a worker of this rank did in an interval.
    pub fn add_interval(&self, row: u64, part: &IntervalPart) {
        self.probes.intervals.add(row, part);
        if self.is_root() {
            self.probes.intervals.tell_host(self.host_name(), row, part);
        }
    }

    /// Adds another rank's report of an interval.
    pub(super) fn hear_interval(&self, from: Rank, (row, part): Letter) {
        self.probes.intervals.add(row, &part);
        if self.is_root() {
            let host = self.host_name_of(from);
            self.probes.intervals.tell_host(host, row, &part);
        }
    }

    /// With an observer: sends rank 0 the CPU time of this rank and, at the leader of a host, of
    /// the file system's client.
    pub(super) fn tell_used(&self) {
        if !self.probes.intervals.looked_on.get() {
            return;
        }
        let tool = limits::process_cpu().unwrap_or_default();
        let watched = self.probes.sight.client.borrow();
        let watched = watched.as_ref().filter(|_| self.is_leader());
        let client = watched.and_then(|watched| {
            let each = watched.processes.iter();
            let sum = each
                .map(|process| Some(process.cpu()?.0))
                .sum::<Option<u64>>()?;
            (!watched.processes.is_empty()).then_some(Nanos(sum))
        });
        match self.is_root() {
            true => self.hear_used(self.rank(), tool, client),
            false => self.post(Rank(0), &Word::Used { tool, client }),
        }
    }

    /// At rank 0: takes a rank's report of CPU time.
    pub(super) fn hear_used(&self, rank: Rank, tool: Nanos, client: Option<Nanos>) {
        let host = self.host_name_of(rank);
        self.probes.intervals.tell_used(rank, host, tool, client);
    }

    /// Passes on what is known of the intervals: to the leader of the host, leaders to rank 0,
    /// which reports them to the observer. All of it when the phase is `over`, else as far as it is
    /// time to.
    pub(super) fn pass_on(&self, over: bool) {
        if self.is_root() {
            return self.probes.intervals.tell(over);
        }
        for letter in self.probes.intervals.letters(over) {
            self.post_news(self.next_on_the_way(), News::Interval(letter));
        }
        self.tell_passed();
    }

    /// The rank that receives this rank's intervals.
    pub(super) fn next_on_the_way(&self) -> Rank {
        let mine = self.host_number();
        let leader = self.host_of.iter().position(|host| *host == mine);
        match self.is_leader() {
            true => Rank(0),
            false => Rank(leader.unwrap_or(0) as u32),
        }
    }

    /// At the end of a phase, on all ranks: afterwards the observer has all intervals.
    pub async fn settle_intervals(&self) -> Result<(), ExecError> {
        self.probes.marks.left();
        if !self.probes.intervals.wanted() {
            return Ok(());
        }
        let of_host = u64::from(self.host.size() - 1);
        let expected = match (self.is_root(), self.is_leader()) {
            (true, _) => of_host + u64::from(self.leaders.size() - 1),
            (false, true) => of_host,
            (false, false) => 0,
        };
        let all = async {
            self.probes.intervals.all_ended(expected).await;
            Ok::<(), ExecError>(())
        };
        self.quietly(all).await?;
        self.pass_on(true);
        if !self.is_root() {
            self.post_news(self.next_on_the_way(), News::IntervalsEnd);
        }
        Ok(())
    }
}
