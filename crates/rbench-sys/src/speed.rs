//! How fast processors are, and whether their counters agree: what fio's `--idle-prof` and
//! `--cpuclock-test` ask.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use rbench_core::clock::counter;

use crate::limits::{allowed_cpus, page_size, stay_on};

/// The fastest of so many tries counts.
const TRIES: usize = 20;
/// Pieces of work of each try.
const PIECES: usize = 100;

/// The time that a piece of work (writing each byte of a page) takes on each processor that
/// this process may use, us; ascending by processor, all at the same time.
pub fn unit_of_each_cpu() -> Vec<f64> {
    std::thread::scope(|scope| {
        let cpus = allowed_cpus().unwrap_or_default().into_iter();
        let threads: Vec<_> = cpus
            .map(|cpu| {
                scope.spawn(move || {
                    // Where it may not, another processor is measured.
                    let _ = stay_on(cpu);
                    unit_us()
                })
            })
            .collect();
        let all = threads.into_iter().filter_map(|thread| thread.join().ok());
        all.collect()
    })
}

fn unit_us() -> f64 {
    let mut page = vec![0_u8; usize::try_from(page_size()).unwrap_or(4096)];
    let length = page.len();
    let once = |page: &mut Vec<u8>| {
        let begun = Instant::now();
        for piece in 0..PIECES {
            for at in 0..length {
                page[(at + piece) % length] = at as u8;
            }
            std::hint::black_box(&mut *page);
        }
        begun.elapsed().as_secs_f64() * 1e6 / PIECES as f64
    };
    let all = (0..TRIES).map(|_| once(&mut page));
    all.fold(f64::INFINITY, f64::min)
}

/// What one processor saw of its counter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CounterSeen {
    /// Its number.
    pub cpu: usize,
    /// Readings.
    pub readings: u64,
    /// The first of them.
    pub first: u64,
}

/// What comparing the counters of all processors gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountersSeen {
    /// Each of them.
    pub cpus: Vec<CounterSeen>,
    /// Where one was behind another although it was read later: (the processor, its counter,
    /// the one before, its counter).
    pub behind: Option<(usize, u64, usize, u64)>,
}

/// Readings of each processor that are compared.
const READINGS: usize = 100_000;

/// Reads the counters of all processors that this process may use in turns, such that it is
/// known which reading came before which; `None` where there is no counter.
pub fn compare_counters() -> Option<CountersSeen> {
    counter()?;
    let cpus = allowed_cpus().unwrap_or_default();
    let (turn, enough) = (AtomicU64::new(0), AtomicBool::new(false));
    let mut read: Vec<(usize, Vec<(u64, u64)>)> = std::thread::scope(|scope| {
        let (turn, enough) = (&turn, &enough);
        let threads: Vec<_> = cpus
            .iter()
            .map(|cpu| {
                scope.spawn(move || {
                    let _ = stay_on(*cpu);
                    (*cpu, readings(turn, enough))
                })
            })
            .collect();
        let all = threads.into_iter().filter_map(|thread| thread.join().ok());
        all.collect()
    });
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

/// Takes turns with the other processors until one of them has enough: (turn, counter).
fn readings(turn: &AtomicU64, enough: &AtomicBool) -> Vec<(u64, u64)> {
    let mut all = Vec::with_capacity(READINGS);
    while all.len() < READINGS && !enough.load(Ordering::Relaxed) {
        let mine = turn.load(Ordering::SeqCst);
        let ticks = counter().unwrap_or(0);
        // Only if nobody else has read since: the counter was read between two turns.
        let taken = turn.compare_exchange(mine, mine + 1, Ordering::SeqCst, Ordering::SeqCst);
        if taken.is_ok() {
            all.push((mine, ticks));
        }
    }
    enough.store(true, Ordering::Relaxed);
    all
}

/// The first reading that is behind the one of the turn before.
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
