//! Open loops against the formulas of queues: workers of a rank are the servers, in virtual time.

#![allow(clippy::print_stdout, reason = "the table is read by a person")]

use std::ffi::CStr;
use std::sync::Arc;

use rbench_core::random::Stream;
use rbench_core::{Clock as _, FailureKind, Nanos, OpKind, Rank, SimulatedClock};
use rbench_plan::arrival::{Arrival, Schedule, Workers};
use rbench_plan::meta::Calls;
use rbench_sys::{Fs, NullFs};

use super::{ItemOp, ItemRunner, Visit};
use crate::meter::{LaneKind, Meter};
use crate::pace::Gate;

/// Mean time of an operation.
const SERVICE: Nanos = Nanos(100_000_000);
/// Time that passes with each reading of the clock.
const STEP: Nanos = Nanos(10_000);

/// An operation that takes its time.
struct Serve {
    clock: &'static SimulatedClock,
    worker: usize,
    /// Exponential times; else all are the same.
    random: Option<Stream>,
}

impl ItemOp for Serve {
    fn aim(&mut self, _index: u64) {}

    fn paths(&self) -> (&CStr, &CStr) {
        (c"", c"")
    }

    fn own<F: Fs + ?Sized>(&mut self, _fs: &F) -> Option<Result<u64, FailureKind>> {
        let share = self.random.as_mut().map_or(1.0, Stream::exponential);
        let time = Nanos((SERVICE.0 as f64 * share) as u64);
        self.clock.advance(self.worker, time);
        Some(Ok(0))
    }
}

struct Server {
    runner: ItemRunner<Serve>,
    gate: Gate,
    meter: Meter,
}

/// The mean response time in units of the mean service time, of `count` operations that arrive at
/// `load` of what `workers` can do. `shared`: any free worker takes the next one.
fn response(workers: u32, load: f64, random: bool, shared: bool, count: u64) -> f64 {
    let clock = SimulatedClock::new(STEP);
    let rate = load * f64::from(workers) / SERVICE.as_secs_f64();
    let schedule = |workers: Workers, seed: u64| {
        Arc::new(Schedule::new(Arrival::Poisson, rate, workers, &[7, seed]))
    };
    let of_all = schedule(Workers::of_rank(Rank(0), 1, workers), 0);
    let server = |worker: u32| {
        let own = || {
            schedule(
                Workers::of_rank(Rank(worker), workers, 1),
                u64::from(worker),
            )
        };
        let visit = Visit {
            first: 0,
            count: u64::MAX,
            visits: u64::MAX,
            order: None,
            schedule: Some(if shared { Arc::clone(&of_all) } else { own() }),
        };
        let serve = Serve {
            clock,
            worker: worker as usize,
            random: random.then(|| Stream::new(&[3, u64::from(worker)])),
        };
        let mut meter = Meter::of(&[LaneKind {
            starts: true,
            ..LaneKind::plain(OpKind::Stat)
        }]);
        let start = SimulatedClock::ORIGIN;
        meter.start_at(start);
        let serve = (OpKind::Stat, serve);
        Server {
            runner: ItemRunner::new(serve, Calls::default(), Arc::new(NullFs), visit)
                .unwrap_or_else(|failure| panic!("{failure}")),
            gate: Gate::new(clock.counter().clock().of_worker(worker), start),
            meter,
        }
    };
    let mut servers: Vec<Server> = (0..workers).map(server).collect();
    // The worker that is free first goes on.
    let mut free: Vec<Nanos> = vec![SimulatedClock::ORIGIN; workers as usize];
    for _ in 0..count {
        let first = (0..free.len()).min_by_key(|worker| free[*worker]);
        let worker = first.expect("there are workers");
        let Server {
            runner,
            gate,
            meter,
        } = &mut servers[worker];
        runner.limit = runner.issued + 1;
        assert!(runner.one_by_one(gate, meter));
        free[worker] = gate.clock.now();
    }
    let lanes = servers
        .into_iter()
        .map(|server| server.meter.into_parts().0);
    let responses = lanes.filter_map(|lanes| lanes.into_iter().next()?.response);
    let (mut total, mut number) = (0.0, 0);
    for response in responses {
        total += response.mean_ns() * response.count() as f64;
        number += response.count();
    }
    assert_eq!(number, count);
    total / number as f64 / SERVICE.0 as f64
}

/// Mean wait in M/M/c, in units of the mean service time (Erlang's C).
fn mmc(workers: u32, load: f64) -> f64 {
    let servers = f64::from(workers);
    let offered = load * servers;
    // Erlang's B by its recursion.
    let blocked = (1..=workers).fold(1.0, |b, n| offered * b / (f64::from(n) + offered * b));
    let waits = blocked / (1.0 - load * (1.0 - blocked));
    waits / (servers * (1.0 - load))
}

/// Mean wait in M/D/c: exact for one server, else Cosmetatos' approximation (Management Science 22,
/// 1975), which is true to about 1 %.
fn mdc(workers: u32, load: f64) -> f64 {
    let servers = f64::from(workers);
    let more = (1.0 - load) * (servers - 1.0) * ((4.0 + 5.0 * servers).sqrt() - 2.0);
    mmc(workers, load) / 2.0 * (1.0 + more / (16.0 * load * servers))
}

#[test]
fn response_times_are_those_of_a_queue_with_as_many_servers_as_workers() {
    println!("| workers | load | service | formula | measured |\n|---|---|---|---|---|");
    for (workers, load) in [(1, 0.7), (4, 0.8), (64, 0.95)] {
        for random in [false, true] {
            let wait = if random { mmc } else { mdc };
            let expected = 1.0 + wait(workers, load);
            let found = response(workers, load, random, true, 300_000);
            let service = if random { "exponential" } else { "constant" };
            println!("| {workers} | {load} | {service} | {expected:.3} | {found:.3} |");
            assert!(
                (found / expected - 1.0).abs() < 0.05,
                "{workers} {service}: {found} against {expected}"
            );
            let (found, expected) = (found - 1.0, expected - 1.0);
            assert!(
                (found / expected - 1.0).abs() < 0.1,
                "wait with {workers} {service}: {found} against {expected}"
            );
        }
    }
}

#[test]
fn a_schedule_for_each_worker_would_make_operations_wait_while_workers_are_free() {
    let alone = response(4, 0.8, false, false, 200_000);
    let expected = 1.0 + mdc(1, 0.8);
    assert!((alone / expected - 1.0).abs() < 0.05, "{alone}");
    assert!(alone > 1.5 * response(4, 0.8, false, true, 200_000));
}
