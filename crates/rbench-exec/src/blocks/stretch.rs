//! The stretches of a job's time: which operations had it to themselves, and
//! what follows for the time that each direction's rates are over.
//!
//! Two counts are kept apart. fio's `runtime` of a direction is the whole time
//! of the job's own work, think times and the last waiting included, and reads
//! have the time of the final reading back besides. rbench's own rows are over
//! the time from the begin of measuring to the last end, less the stretches of
//! other operations in between.

use rbench_core::outcome::Measured;
use rbench_core::{Direction, Each, Nanos};
use rbench_plan::jobs::JobPlan;

/// The purpose of a stretch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The job's own work.
    Work,
    /// Reading back the latest writes in the middle of the work.
    Backlog,
    /// Reading back after a pass.
    ReadBack,
}

/// One stretch.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    kind: Kind,
    from: Nanos,
    /// From where fio's run time counts.
    counts_from: Nanos,
    /// The end of the last operation that was recorded; zero: there was none.
    last_end: Nanos,
}

/// One direction.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// The job's own work has this direction.
    works: bool,
    runtime: Nanos,
    measured: Option<Measured>,
    /// Stretches of others since its last one.
    others: Nanos,
}

impl Way {
    fn new(works: bool) -> Way {
        Way {
            works,
            runtime: Nanos(0),
            measured: None,
            others: Nanos(0),
        }
    }

    /// A stretch that it has a part in.
    fn add(&mut self, from: Nanos, to: Nanos) {
        let others = std::mem::take(&mut self.others);
        match &mut self.measured {
            Some(measured) => {
                measured.to = to;
                measured.aside.0 += others.0;
            }
            None => {
                let aside = Nanos(0);
                self.measured = Some(Measured { from, to, aside });
            }
        }
    }
}

/// The stretches of one worker until now.
#[derive(Debug)]
pub struct Stretches {
    ways: Each<Way>,
    begun: bool,
    now: Option<Stretch>,
}

impl Stretches {
    /// None yet.
    pub fn new(job: &JobPlan) -> Stretches {
        let directions = job.pattern.directions;
        let trims_some = job.verify.as_ref().is_some_and(|v| v.trims.is_some());
        Stretches::of(Each {
            read: directions.read,
            write: directions.write,
            trim: directions.trim || trims_some,
        })
    }

    /// Those of a job whose own work has these directions.
    fn of(works: Each<bool>) -> Stretches {
        Stretches {
            ways: works.map(Way::new),
            begun: false,
            now: None,
        }
    }

    /// One begins at `now`; nothing before `least` is measured. Work at the start
    /// counts from there on, however late the worker comes to it.
    pub fn begin(&mut self, kind: Kind, now: Nanos, least: Nanos) {
        let late = self.begun || kind != Kind::Work;
        self.begun = true;
        let from = if late { now.max(least) } else { least };
        self.now = Some(Stretch {
            kind,
            from,
            counts_from: from,
            last_end: Nanos(0),
        });
    }

    /// An operation of this one ended at `end`, which may be no time at all.
    pub fn note_end(&mut self, end: Nanos) {
        if let Some(stretch) = &mut self.now {
            stretch.last_end = stretch.last_end.max(end);
        }
    }

    /// fio's run time begins again.
    pub fn restart(&mut self, now: Nanos) {
        for way in self.ways.all_mut() {
            way.runtime = Nanos(0);
        }
        if let Some(stretch) = &mut self.now {
            stretch.counts_from = now;
        }
    }

    /// It is recorded from now on.
    pub fn end_ramp(&mut self, now: Nanos) {
        if let Some(stretch) = &mut self.now {
            (stretch.from, stretch.counts_from) = (now, now);
        }
    }

    /// This one, if there is any, is over. `did`: whether anything was read, written and
    /// trimmed at all.
    pub fn end(&mut self, now: Nanos, did: [bool; 3]) {
        let runtimes = self.runtimes(now, did);
        for (way, runtime) in self.ways.all_mut().into_iter().zip(runtimes) {
            way.runtime = runtime;
        }
        let Some(stretch) = self.now.take() else {
            return;
        };
        for direction in Direction::ALL {
            let way = self.ways.of_mut(direction);
            let takes_part = match stretch.kind {
                Kind::Work => way.works,
                Kind::Backlog | Kind::ReadBack => direction == Direction::Read,
            };
            if !takes_part {
                way.others.0 += now.since(stretch.from).0;
            } else if stretch.last_end > stretch.from {
                way.add(stretch.from, stretch.last_end);
            }
        }
    }

    /// fio's run time of reads, writes and trims, if this stretch ends at `now`.
    pub fn runtimes(&self, now: Nanos, did: [bool; 3]) -> [Nanos; 3] {
        let ways = Direction::ALL.into_iter().zip(self.ways.all()).zip(did);
        let mut runtimes = self.ways.all().map(|way| way.runtime);
        if let Some(Stretch {
            kind, counts_from, ..
        }) = self.now
        {
            for (runtime, ((direction, way), did)) in runtimes.iter_mut().zip(ways) {
                let checks = direction == Direction::Read && kind != Kind::Work;
                let works =
                    way.works && did && (direction == Direction::Read || kind != Kind::ReadBack);
                if checks || works {
                    runtime.0 += now.since(counts_from).0;
                }
            }
        }
        runtimes
    }

    /// Measured spans of reads, writes and trims, in the stretches that are over.
    pub fn measured(&self) -> [Measured; 3] {
        let ways = self.ways.all();
        ways.map(|way| way.measured.unwrap_or(Measured::NOTHING))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretches(read: bool, write: bool) -> Stretches {
        Stretches::of(Each {
            read,
            write,
            trim: false,
        })
    }

    /// fio's run times of reads and writes that there were.
    fn times(all: &Stretches, now: Nanos, [reads, writes]: [bool; 2]) -> [Nanos; 2] {
        let [read, write, _] = all.runtimes(now, [reads, writes, false]);
        [read, write]
    }

    /// Measured spans of reads and writes.
    fn both(all: &Stretches) -> [Measured; 2] {
        let [reads, writes, _] = all.measured();
        [reads, writes]
    }

    /// Stretches (kind, begin, last end, end) of a job that records from 100 on.
    fn after(mut all: Stretches, done: &[(Kind, u64, u64, u64)]) -> Stretches {
        for (kind, begin, last_end, end) in done {
            all.begin(*kind, Nanos(*begin), Nanos(100));
            all.note_end(Nanos(*last_end));
            all.end(Nanos(*end), [true, true, false]);
        }
        all
    }

    fn measured(from: u64, to: u64, aside: u64) -> Measured {
        Measured {
            from: Nanos(from),
            to: Nanos(to),
            aside: Nanos(aside),
        }
    }

    #[test]
    fn both_directions_of_a_mix_have_the_whole_time_of_the_work() {
        let all = after(stretches(true, true), &[(Kind::Work, 103, 190, 200)]);
        assert_eq!(both(&all), [measured(100, 190, 0); 2]);
        assert_eq!(times(&all, Nanos(999), [true; 2]), [Nanos(100); 2]);
    }

    #[test]
    fn reading_back_between_writes_is_set_aside() {
        let passes = [
            (Kind::Work, 100, 190, 200),
            (Kind::ReadBack, 200, 240, 250),
            (Kind::Work, 260, 300, 310),
            (Kind::ReadBack, 310, 350, 360),
        ];
        let all = after(stretches(false, true), &passes);
        let reads = measured(200, 350, 50);
        assert_eq!(both(&all), [reads, measured(100, 300, 50)]);
        assert_eq!(both(&all)[1].elapsed(), Nanos(150));
        let fio = [Nanos(100), Nanos(150)];
        assert_eq!(times(&all, Nanos(999), [true; 2]), fio);
    }

    #[test]
    fn a_backlog_is_read_back_in_fios_time_of_the_writes() {
        let turns = [
            (Kind::Work, 100, 190, 200),
            (Kind::Backlog, 200, 240, 250),
            (Kind::Work, 250, 300, 310),
        ];
        let all = after(stretches(false, true), &turns);
        let reads = measured(200, 240, 0);
        assert_eq!(both(&all), [reads, measured(100, 300, 50)]);
        let fio = [Nanos(50), Nanos(210)];
        assert_eq!(times(&all, Nanos(999), [true; 2]), fio);
    }

    #[test]
    fn what_ends_in_the_ramp_is_not_measured() {
        let all = after(stretches(true, false), &[(Kind::Work, 10, 0, 90)]);
        assert_eq!(both(&all), [Measured::NOTHING; 2]);
        assert_eq!(times(&all, Nanos(999), [false; 2]), [Nanos(0); 2]);
    }

    #[test]
    fn a_stretch_under_way_counts_up_to_now_and_from_a_new_start() {
        let mut all = stretches(true, true);
        all.begin(Kind::Work, Nanos(100), Nanos(100));
        let so_far = times(&all, Nanos(150), [true, false]);
        assert_eq!(so_far, [Nanos(50), Nanos(0)]);
        all.restart(Nanos(140));
        let so_far = times(&all, Nanos(150), [true, true]);
        assert_eq!(so_far, [Nanos(10); 2]);
    }

    #[test]
    fn trims_have_the_time_of_the_work_and_not_that_of_reading_back() {
        let mut all = stretches(false, true);
        all.ways.trim = Way::new(true);
        let all = after(
            all,
            &[(Kind::Work, 100, 190, 200), (Kind::ReadBack, 200, 240, 250)],
        );
        assert_eq!(all.measured()[2], measured(100, 190, 0));
        // None were done: no time of theirs.
        assert_eq!(all.runtimes(Nanos(999), [true; 3])[2], Nanos(0));
        let mut all = stretches(false, true);
        all.ways.trim = Way::new(true);
        all.begin(Kind::Work, Nanos(100), Nanos(100));
        assert_eq!(
            all.runtimes(Nanos(150), [true; 3]),
            [Nanos(0), Nanos(50), Nanos(50)]
        );
    }
}
