//! Keeping time together: comparing the clocks between phases, and the start
//! that all ranks have in common.

use std::time::Duration;

use rbench_comm::{Clocks, Combine, CommError, Communicator, compare};
use rbench_core::outcome::CommonStart;
use rbench_core::{Clock as _, MonotonicClock, Nanos, Rank};
use tokio::time::Instant;

use super::{ExecError, Group};

/// A common start lies no further away than this: some milliseconds are meant.
const START_WITHIN: Nanos = Nanos(10_000_000_000);

/// A number that every rank has for this run, and that no earlier run on the
/// same ranks had: rank 0's clock has gone on since.
pub(super) async fn number_of_run(world: &dyn Communicator) -> Result<u64, CommError> {
    let mine = match world.rank() {
        Rank(0) => MonotonicClock.now().0,
        _ => 0,
    };
    let all = world.all_reduce(Combine::Max, vec![mine]).await?;
    Ok(all[0])
}

impl Group<'_> {
    /// The clocks, as known by now.
    pub fn clocks(&self) -> Clocks {
        self.time.clocks.borrow().clone()
    }

    /// Between phases: compares the clocks again when it is time to. Costs
    /// something only where there are several.
    pub async fn keep_time(&self) -> Result<(), ExecError> {
        self.compare_if(Clocks::is_due).await
    }

    /// At the end of a run: compares the clocks a last time, unless that would
    /// take long beside the run.
    pub async fn keep_time_at_the_end(&self) -> Result<(), ExecError> {
        self.compare_if(Clocks::pays).await
    }

    /// Rank 0 decides: the others may know another time.
    async fn compare_if(&self, due: fn(&Clocks, Nanos) -> bool) -> Result<(), ExecError> {
        if self.time.clocks.borrow().others().is_empty() {
            return Ok(());
        }
        let due = due(&self.time.clocks.borrow(), self.now());
        if self.broadcast(&due).await? {
            self.compare_clocks().await?;
        }
        Ok(())
    }

    /// Compares the clocks, while nothing is timed.
    pub async fn compare_clocks(&self) -> Result<(), ExecError> {
        let others = self.time.clocks.borrow().others().to_vec();
        let begun = self.now();
        let found = compare(self.world, &others, &*self.time.clock);
        let found = self.quietly(found).await?;
        let took = self.now().since(begun);
        self.time.clocks.borrow_mut().learn(&found, took);
        Ok(())
    }

    /// An instant that all ranks come to together, far enough ahead for all to hear of it: on
    /// this rank's clock, and on rank 0's, where it is the same for all.
    pub async fn instant(&self) -> Result<(Nanos, Nanos), ExecError> {
        let at = Nanos(self.now().0 + self.lead().0);
        let at = self.broadcast(&at).await?;
        let offset_ns = self.time.clocks.borrow().offset(self.rank(), at).offset_ns;
        let here = Nanos(at.0.saturating_add_signed(offset_ns.saturating_neg()));
        Ok((here, at))
    }

    /// A past instant of this rank's clock on rank 0's.
    pub fn by_root(&self, here: Nanos) -> Nanos {
        let clocks = self.time.clocks.borrow();
        let about = clocks.first_offset(self.rank()).offset_ns;
        let about = Nanos(here.0.saturating_add_signed(about));
        let offset_ns = clocks.offset(self.rank(), about).offset_ns;
        Nanos(here.0.saturating_add_signed(offset_ns))
    }

    /// Largest difference of two ranks' instants that count as equal, at the instant `at` of rank
    /// 0's clock.
    pub fn clock_error(&self, at: Nanos) -> Nanos {
        let one = self.time.clocks.borrow().error(at);
        Nanos(2 * one.0)
    }

    /// The common start of the present phase, once it is agreed on; `None`
    /// where each rank starts by itself.
    pub fn started(&self) -> Option<CommonStart> {
        self.time.start.get()
    }

    /// Time from now to an instant that rank 0 names and all ranks hear of before it.
    pub(super) fn lead(&self) -> Nanos {
        if self.world.size() == 1 {
            return Nanos(1_000_000);
        }
        // A waiting rank looks every 2 ms at the latest; news takes log2(ranks) hops.
        let hops = u64::from(u32::BITS - self.world.size().leading_zeros());
        Nanos(6_000_000 + hops * 3_000_000)
    }

    /// The common start of a phase on this rank's clock: rank 0 names an
    /// instant far enough ahead for everybody to hear of it. The inner error,
    /// this rank's alone, is why it cannot start with the others, as a sentence.
    pub async fn common_start(&self) -> Result<Result<Nanos, String>, ExecError> {
        let (here, at) = self.instant().await?;
        let error = self.time.clocks.borrow().error(at);
        self.time.start.set(Some(CommonStart { at, error }));
        if self.is_root() {
            let ahead = Duration::from(at.since(self.now()));
            let here = Instant::now() + ahead;
            self.probes.intervals.started(at, here);
            self.probes
                .marks
                .started(&self.probes.intervals.told_rows(), at, here);
        }
        self.time.starts_here.set(Some(here));
        self.begin_work(here);
        let near = near(here, self.now());
        Ok(near.map_err(|far| {
            format!(
                "the common start is {far} by this host's clock: this clock or {}'s has jumped since they were compared, or a rank was suspended",
                self.host_name_of(Rank(0))
            )
        }))
    }
}

/// A common start that can be one: `here` on this host's clock, which shows
/// `now`. Far away, it would be waited for in vain, or would have everything
/// count as slow: the error is how far, and which way.
fn near(here: Nanos, now: Nanos) -> Result<Nanos, String> {
    let (ahead, back) = (here.since(now), now.since(here));
    let (far, way) = if ahead > back {
        (ahead, "ahead")
    } else {
        (back, "back")
    };
    if far <= START_WITHIN {
        return Ok(here);
    }
    Err(format!("{:.1} s {way}", far.0 as f64 / 1e9))
}
