//! Priorities that a worker's requests draw (`cmdprio_percentage`), and latencies by priority.

use rbench_core::priority::AtPriority;
use rbench_core::random::Stream;
use rbench_core::{Direction, IoPriority, Latency, Nanos};
use rbench_plan::jobs::{ByPriority, JobPlan, Priorities};

/// Random stream of the draws.
const STREAM_PRIORITIES: u64 = 16;

/// The draws of a worker.
#[derive(Debug)]
pub(super) struct Draws {
    stream: Stream,
    priorities: Priorities,
}

impl Draws {
    /// The draws of this worker; `None`: all of its requests have the job's own priority.
    pub(super) fn of(job: &JobPlan, worker: u64) -> Option<Box<Draws>> {
        let priorities = job.priorities.clone()?;
        Some(Box::new(Draws {
            stream: Stream::new(&[job.pattern.seed, worker, STREAM_PRIORITIES]),
            priorities,
        }))
    }

    /// The priority of the next request; the default is the job's own.
    pub(super) fn draw(&mut self, direction: Direction, length: u64) -> IoPriority {
        let shares = self.priorities.shares.of(direction);
        if shares.is_empty() {
            return IoPriority::default();
        }
        let mut left = self.stream.below(100) as u32;
        let of_length = |block: Option<u64>| block.is_none_or(|block| block == length);
        for share in shares.iter().filter(|share| of_length(share.block)) {
            match left.checked_sub(share.percent) {
                None => return share.priority,
                Some(rest) => left = rest,
            }
        }
        IoPriority::default()
    }
}

/// Latencies of one direction by priority.
#[derive(Debug, Clone)]
pub(super) struct Split {
    of: ByPriority,
    /// That of the job comes first.
    all: Vec<AtPriority>,
}

impl Split {
    /// Room for all priorities of a direction; `None`: there is only that of the job, or the report
    /// has no such latency.
    pub(super) fn new(job: &JobPlan, direction: Direction) -> Option<Split> {
        let priorities = job.priorities.as_ref()?;
        let of = job.report.as_ref()?.by_priority()?;
        let all = priorities.of(direction, job.own_priority());
        let empty = |priority| AtPriority {
            priority,
            latency: Latency::new(),
        };
        Some(Split {
            of,
            all: all.into_iter().map(empty).collect(),
        })
    }

    /// Begins again, without any.
    pub(super) fn clear(&mut self) {
        for one in &mut self.all {
            one.latency = Latency::new();
        }
    }

    /// Notes an operation with these latencies; one without a priority has that of the job.
    pub(super) fn record(&mut self, priority: IoPriority, clat: Nanos, lat: Nanos) {
        let took = match self.of {
            ByPriority::Clat => clat,
            ByPriority::Lat => lat,
        };
        let place = self.all.iter().position(|one| one.priority == priority);
        if let Some(one) = self.all.get_mut(place.unwrap_or(0)) {
            one.latency.record(took);
        }
    }

    /// All of them, in fio's order.
    pub(super) fn into_all(self) -> Vec<AtPriority> {
        self.all
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rbench_plan::jobs::{
        BlockSizes, Directions, Each, FileNames, Files, Pattern, PriorityShare,
    };

    use super::*;

    const A: IoPriority = IoPriority::new(1, 0, 0);
    const B: IoPriority = IoPriority::new(3, 7, 0);

    fn job(shares: &[(Option<u64>, u32, IoPriority)]) -> JobPlan {
        let share = |&(block, percent, priority): &(_, _, _)| PriorityShare {
            block,
            percent,
            priority,
        };
        let pattern = Pattern::new(Directions::MIX, BlockSizes::Fixed(4096), 7);
        let files = Files::new(PathBuf::new(), FileNames::Given(vec!["f".to_owned()]), 4096);
        JobPlan {
            priorities: Some(Priorities {
                shares: Each {
                    read: shares.iter().map(share).collect(),
                    ..Each::default()
                },
            }),
            ..JobPlan::new("a", pattern, files)
        }
    }

    /// How many of 10 000 requests have no priority, A, and B.
    fn drawn(draws: &mut Draws, direction: Direction, length: u64) -> [u32; 3] {
        let mut counts = [0; 3];
        for _ in 0..10_000 {
            let priority = draws.draw(direction, length);
            let all = [IoPriority::default(), A, B];
            let place = all.iter().position(|one| *one == priority);
            counts[place.expect("one of those")] += 1;
        }
        counts
    }

    #[test]
    fn each_priority_has_its_share_of_the_requests_of_its_size() {
        let job = job(&[
            (Some(4096), 30, A),
            (Some(8192), 100, B),
            (Some(4096), 20, B),
        ]);
        let mut draws = Draws::of(&job, 0).expect("it draws");
        let [none, a, b] = drawn(&mut draws, Direction::Read, 4096);
        // Four standard deviations.
        for (count, expect) in [(none, 5000), (a, 3000), (b, 2000)] {
            assert!(count.abs_diff(expect) < 200, "{none} {a} {b}");
        }
        assert_eq!(drawn(&mut draws, Direction::Read, 8192), [0, 0, 10_000]);
        assert_eq!(drawn(&mut draws, Direction::Read, 512), [10_000, 0, 0]);
        assert_eq!(drawn(&mut draws, Direction::Write, 4096), [10_000, 0, 0]);
    }

    #[test]
    fn a_worker_draws_the_same_in_each_run_and_another_than_others() {
        let job = job(&[(None, 50, A)]);
        let of = |worker| {
            let mut draws = Draws::of(&job, worker).expect("it draws");
            (0..100)
                .map(|_| draws.draw(Direction::Read, 4096) == A)
                .collect::<Vec<_>>()
        };
        assert_eq!(of(3), of(3));
        assert_ne!(of(3), of(4));
        let plain = JobPlan {
            priorities: None,
            ..job.clone()
        };
        assert!(Draws::of(&plain, 0).is_none());
    }

    #[test]
    fn requests_without_a_priority_count_as_those_of_the_job() {
        let mut split = Split {
            of: ByPriority::Clat,
            all: [B, A]
                .map(|priority| AtPriority {
                    priority,
                    latency: Latency::new(),
                })
                .into(),
        };
        let (clat, lat) = (Nanos(70), Nanos(100));
        split.record(IoPriority::default(), clat, lat);
        split.record(A, clat, lat);
        split.of = ByPriority::Lat;
        split.record(A, clat, lat);
        let found = split.clone().into_all();
        let found = found.iter().map(|one| {
            let (least, most) = (one.latency.min(), one.latency.max());
            (one.priority, one.latency.count(), least.0, most.0)
        });
        assert_eq!(found.collect::<Vec<_>>(), [(B, 1, 70, 70), (A, 2, 70, 100)]);
        split.clear();
        assert!(split.into_all().iter().all(|one| one.latency.is_empty()));
    }
}
