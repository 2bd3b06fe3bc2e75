//! Microbenchmarks of rbench's computations between two system calls.
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rbench_core::random::DataStream;
use rbench_core::timeline::{INTERVAL, TimelineRecorder};
use rbench_core::{Bytes, Counter, Latency, Nanos, Rank};
use rbench_exec::calibrate::null_loop;
use rbench_exec::verify::{BlockHeader, Expected, Headers};
use rbench_exec::worker::Runner as _;
use rbench_plan::io::Rw;
use rbench_plan::pattern::Steps;
use rbench_plan::spec::{Common, Io, Workload};
use rbench_plan::tree::{Forest, ItemKind, NATIVE, Paths, Private, Shape};
use rbench_plan::{Facts, Spec, Work, resolve};

fn record(c: &mut Criterion) {
    let mut latency = Latency::new();
    let mut ns = 0;
    c.bench_function("record a latency", |b| {
        b.iter(|| {
            ns = (ns + 997) & 0xf_ffff;
            latency.record(black_box(Nanos(ns)));
        });
    });
}

fn timeline(c: &mut Criterion) {
    let mut timeline = TimelineRecorder::new(INTERVAL, false);
    let mut at = Nanos(0);
    c.bench_function("record into the timeline", |b| {
        b.iter(|| {
            at.0 += 1000;
            timeline.done(black_box(at), 4096, Nanos(900), None);
        });
    });
}

fn path(c: &mut Criterion) {
    let shape = Shape {
        branch: 3,
        depth: 2,
        items_per_node: 100,
        leaf_only: false,
    };
    let forest = Forest {
        shape,
        naming: NATIVE,
        prefixes: vec!["0".to_owned()],
        numbered: None,
        private: Some(Private {
            ahead: 0,
            ranks: 12,
        }),
    };
    let mut paths = Paths::new(forest.into(), Rank(11), ItemKind::File);
    let mut index = 0;
    c.bench_function("build the path of the next file", |b| {
        b.iter(|| {
            index = (index + 1) % 1300;
            black_box(paths.item(index));
        });
    });
}

fn fill(c: &mut Criterion) {
    let mut group = c.benchmark_group("fill a buffer");
    for (name, size) in [("4 KiB", 4 << 10), ("4 MiB", 4 << 20)] {
        let mut buffer = vec![0; size];
        let mut data = DataStream::new(&[1]);
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(name, |b| b.iter(|| data.fill(black_box(&mut buffer))));
    }
}

fn stamps(c: &mut Criterion) {
    let headers = Headers::every(u64::MAX);
    let header = BlockHeader {
        run: 1,
        file: 2,
        offset: 4096,
        generation: 3,
        worker: 0,
    };
    let expected = Expected::of(&header);
    for (name, size) in [("4 KiB", 4 << 10), ("1 MiB", 1 << 20)] {
        let mut block = vec![0; size];
        let mut group = c.benchmark_group("verify");
        group.throughput(Throughput::Bytes(size as u64));
        group.bench_function(format!("stamp {name}"), |b| {
            b.iter(|| headers.stamp(black_box(&mut block), &header));
        });
        headers.stamp(&mut block, &header);
        assert!(headers.check(&block, &expected).is_ok());
        group.bench_function(format!("check {name}"), |b| {
            b.iter(|| black_box(headers.check(black_box(&block), &expected)));
        });
    }
}

fn offset(c: &mut Criterion) {
    let io = Io {
        rw: Some(vec![Rw::RandRead]),
        block: Some(Bytes(4 << 10)),
        size: Some(Bytes(4 << 30)),
        ..Io::default()
    };
    let spec = Spec {
        common: Common::default(),
        workload: Workload::Io(Box::new(io)),
    };
    let facts = Facts {
        host_of: vec![0],
        seed: 1,
        engines: vec![("psync", 1)],
        stonewalled: None,
    };
    let plan = resolve(&spec, &facts).expect("the plan is sound");
    let Work::Io(mut plan) = plan.work else {
        unreachable!("the spec is of rbench io")
    };
    plan.job.pace.time_based = true;
    let rounds = plan.rounds(1, 0, (0, 1), 1);
    let mut steps = Steps::new(&rounds[0].job, 0, |_| plan.size.0);
    c.bench_function("next random offset", |b| b.iter(|| black_box(steps.next())));
}

fn merge(c: &mut Criterion) {
    let parts: Vec<Latency> = (0..64_u64)
        .map(|part| {
            let mut latency = Latency::new();
            (0..1000).for_each(|i| latency.record(Nanos((part + 1) * 1000 + i * 37)));
            latency
        })
        .collect();
    c.bench_function("merge 64 histograms", |b| {
        b.iter_batched_ref(
            Latency::new,
            |all| parts.iter().for_each(|part| all.merge(part)),
            BatchSize::LargeInput,
        );
    });
}

fn null_operation(c: &mut Criterion) {
    const OPERATIONS: u64 = 10_000;
    let clock = Counter::begin(true).clock_in_a_moment();
    let mut group = c.benchmark_group("null engine");
    group.throughput(Throughput::Elements(OPERATIONS));
    group.bench_function("10,000 operations, fully measured", |b| {
        b.iter_batched_ref(
            || null_loop(clock, OPERATIONS),
            |parts| {
                if let Some((runner, gate, meter)) = parts {
                    runner.run(gate, meter, None);
                }
            },
            BatchSize::LargeInput,
        );
    });
}

criterion_group!(
    benches,
    record,
    timeline,
    path,
    fill,
    stamps,
    offset,
    merge,
    null_operation
);
criterion_main!(benches);
