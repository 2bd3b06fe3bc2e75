//! Speed of processors, and agreement of their counters: for fio's `--idle-prof` and
//! `--cpuclock-test`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rbench_core::clock::counter;

use crate::limits::{allowed_cpus, page_size, stay_on};

/// Number of attempts; the fastest counts.
const TRIES: usize = 20;
/// Number of units of work per attempt.
const PIECES: usize = 100;

/// Measures the time of a unit of work (writing each byte of a page) on each processor that
/// this process may use. All are measured at the same time. In us, ascending by processor.
pub fn unit_of_each_cpu() -> Vec<f64> {
    on_each_cpu(|_| unit_us())
}

/// Runs `work` on each processor that this process may use, at the same time. Its results are in
/// the order of the processors.
fn on_each_cpu<T: Send>(work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let work = &work;
    std::thread::scope(|scope| {
        let of_cpu = |cpu| {
            // If pinning fails, another processor is measured.
            let _ = stay_on(cpu);
            work(cpu)
        };
        let cpus = allowed_cpus().unwrap_or_default().into_iter();
        let threads: Vec<_> = cpus.map(|cpu| scope.spawn(move || of_cpu(cpu))).collect();
        let all = threads.into_iter().filter_map(|thread| thread.join().ok());
        all.collect()
    })
}

fn unit_us() -> f64 {
    let mut page = vec![0_u8; usize::try_from(page_size()).unwrap_or(4096)];
    let length = page.len();
    let once = |page: &mut Vec<u8>| {
        let start = Instant::now();
        for piece in 0..PIECES {
            for at in 0..length {
                page[(at + piece) % length] = at as u8;
            }
            std::hint::black_box(&mut *page);
        }
        start.elapsed().as_secs_f64() * 1e6 / PIECES as f64
    };
    let all = (0..TRIES).map(|_| once(&mut page));
    all.fold(f64::INFINITY, f64::min)
}

/// Readings of one processor's counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterSeen {
    /// Number of the processor.
    pub cpu: usize,
    /// Number of readings.
    pub readings: u64,
    /// Value of the first reading.
    pub first: u64,
}

/// Result of comparing the counters of all processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountersSeen {
    /// Readings by processor.
    pub cpus: Vec<CounterSeen>,
    /// Two readings where the later one has the lower value: (processor, its counter,
    /// previous processor, its counter).
    pub behind: Option<(usize, u64, usize, u64)>,
}

/// Number of compared readings per processor.
const READINGS: usize = 100_000;

/// Reads the counters of all processors that this process may use, in turns, so that the
/// order of the readings is known. `None` without a counter.
pub fn compare_counters() -> Option<CountersSeen> {
    counter()?;
    let (turn, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut read = on_each_cpu(|cpu| (cpu, readings(&turn, &enough)));
    read.sort_by_key(|(cpu, _)| *cpu);
    let cpus = read.iter().map(|(cpu, all)| CounterSeen {
        cpu: *cpu,
        readings: all.len() as u64,
        first: all.first().map_or(0, |(_, ticks)| *ticks),
    });
    Some(CountersSeen {
        cpus: cpus.collect(),
        behind: behind(&read),
    })
}

/// Takes turns with the other processors until one of them has enough readings: (turn,
/// counter).
fn readings(turn: &AtomicU64, enough: &AtomicBool) -> Vec<(u64, u64)> {
    let mut all = Vec::with_capacity(READINGS);
    while all.len() < READINGS && !enough.load(Ordering::Relaxed) {
        let own_turn = turn.load(Ordering::SeqCst);
        let ticks = counter().unwrap_or(0);
        // Succeeds only if no other thread has read since: the reading was then between two
        // turns.
        let taken =
            turn.compare_exchange(own_turn, own_turn + 1, Ordering::SeqCst, Ordering::SeqCst);
        if taken.is_ok() {
            all.push((own_turn, ticks));
        }
    }
    enough.store(true, Ordering::Relaxed);
    all
}

/// First reading with a lower value than the reading of the previous turn.
fn behind(read: &[(usize, Vec<(u64, u64)>)]) -> Option<(usize, u64, usize, u64)> {
    let of_cpu = |(cpu, all): &(usize, Vec<(u64, u64)>)| {
        let cpu = *cpu;
        let all = all.clone();
        all.into_iter().map(move |(turn, ticks)| (turn, cpu, ticks))
    };
    let mut all: Vec<(u64, usize, u64)> = read.iter().flat_map(of_cpu).collect();
    all.sort_unstable();
    let back = all.windows(2).find(|two| two[1].2 < two[0].2)?;
    Some((back[1].1, back[1].2, back[0].1, back[0].2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_takes_some_time_for_a_piece_of_work() {
        let all = unit_of_each_cpu();
        assert_eq!(all.len(), allowed_cpus().expect("the kernel tells").len());
        assert!(all.iter().all(|us| *us > 0.0 && us.is_finite()), "{all:?}");
    }

    #[test]
    fn a_counter_that_goes_back_is_found() {
        let sound = vec![(0, vec![(0, 10), (3, 40)]), (1, vec![(1, 20), (2, 30)])];
        assert_eq!(behind(&sound), None);
        let back = vec![(0, vec![(0, 10), (3, 40)]), (1, vec![(1, 20), (2, 15)])];
        assert_eq!(behind(&back), Some((1, 15, 1, 20)));
        let other = vec![(4, vec![(0, 10)]), (5, vec![(1, 9)])];
        assert_eq!(behind(&other), Some((5, 9, 4, 10)));
    }

    #[test]
    fn counters_of_this_host_are_read_by_each_processor() {
        let Some(seen) = compare_counters() else {
            return assert_eq!(counter(), None);
        };
        let cpus: Vec<usize> = seen.cpus.iter().map(|cpu| cpu.cpu).collect();
        assert_eq!(cpus, allowed_cpus().expect("the kernel tells"));
        let most = seen.cpus.iter().map(|cpu| cpu.readings).max();
        assert_eq!(most, Some(READINGS as u64));
    }
}
