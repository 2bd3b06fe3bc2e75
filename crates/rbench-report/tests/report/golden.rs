//! Compares reports with files in tests/golden. A difference or a missing file fails.
//! `RBENCH_ACCEPT_GOLDEN=1` rewrites the files and also fails, so that a person reads the
//! difference before accepting it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use rbench_core::failure::{Failure, FailureKind};
use rbench_core::hist::Hist;
use rbench_core::outcome::{Cache, PhaseOutcome, Stonewall};
use rbench_core::{Latency, Nanos, OpKind};
use rbench_report::{RunResult, View, journal, json, text};
use serde_json::json;

use crate::fixtures::DETAILS;
use crate::fixtures::{Made, fail, meta_phases, meta_spec, no_space, run, words};

const ACCEPT: &str = "RBENCH_ACCEPT_GOLDEN";

fn path_of(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

#[test]
fn no_report_steers_the_terminal() {
    let mut result = run(1, 1, meta_spec(), meta_phases(1, 1));
    result.target.path = "/mnt/\x1b[2J\u{9b}x\x7f".to_owned();
    let text = text::render(&result, DETAILS);
    assert!(text.contains(r"/mnt/\u{1b}[2J\u{9b}x\u{7f}"), "{text}");
    let json = json::render(&result);
    assert!(json.contains(r#""/mnt/\u001b[2J\u009bx\u007f""#), "{json}");
    assert_eq!(journal::read_any(json.as_bytes()), Ok(result));
}

/// Compares `got` with the golden file `name`.
pub fn check(name: &str, got: &str) {
    check_at(&path_of(name), got);
}

/// Compares `got` with the file at `path`.
pub fn check_at(path: &Path, got: &str) {
    let name = path.display();
    if std::env::var_os(ACCEPT).is_some() {
        std::fs::write(path, got).expect("the golden can be written");
        panic!("{name} was rewritten: read its difference, then test without {ACCEPT}");
    }
    let expect = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        expect == got,
        "what is made differs from {name} (- golden, + now); if it should, \
         run the tests once with {ACCEPT}=1 and read the difference:\n{}",
        difference(&expect, got)
    );
}

/// The lines that differ, with their numbers.
fn difference(expect: &str, got: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (expect.lines().collect(), got.lines().collect());
    let mut out = String::new();
    for i in 0..old.len().max(new.len()) {
        let (a, b) = (old.get(i), new.get(i));
        if a != b {
            let n = i + 1;
            a.map(|line| writeln!(out, "{n:4} - {line}"));
            b.map(|line| writeln!(out, "{n:4} + {line}"));
        }
    }
    out
}

fn check_text(name: &str, result: &RunResult) {
    let got = text::render(result, DETAILS);
    for line in got.lines() {
        let width = line.chars().count();
        assert!(width <= 120, "{width} columns: {line}");
        assert_eq!(line, line.trim_end());
    }
    check(name, &got);
}

#[test]
fn one_rank_on_one_host() {
    check_text("one_rank.txt", &io_run());
}

#[test]
fn the_result_file_of_one_rank() {
    let mut result = io_run();
    result.phases.truncate(1);
    result.phases[0].timeline.truncate(3);
    rbench_report::finish(&mut result);
    check_json("one_rank.json", result);
}

#[test]
fn the_ends_of_the_range_in_a_result_file() {
    const HOUR: u64 = 3_600_000_000_000;
    let phase = |name: &str, values: &[u64]| {
        let mut phase = Made::solo(0, 0, 1).phase(name, name, OpKind::Fsync);
        values.iter().for_each(|v| phase.service.record(Nanos(*v)));
        phase.items = values.len() as u64;
        phase.response = Some(Latency::new());
        phase
    };
    let doubled: Vec<u64> = (0..42).map(|bit| 1 << bit).filter(|v| *v <= HOUR).collect();
    let thousands: Vec<u64> = (1..=5000).map(|i| i * i * 140_000).collect();
    let result = run(
        1,
        1,
        json!({}),
        vec![
            phase("nothing", &[]),
            phase("zero", &[0, 0, 0]),
            phase("one-hour", &[1, HOUR]),
            phase("above", &[5, 7, HOUR + 1, 3 * HOUR]),
            phase("doubled", &doubled),
            phase("thousands", &thousands),
        ],
    );
    check_json("ends_of_range.json", result);
}

/// Compares a result file with a golden file. `hdr` is compared after decoding, since its bytes may
/// change with the compressor.
fn check_json(name: &str, mut result: RunResult) {
    let golden: RunResult = std::fs::read(path_of(name))
        .ok()
        .and_then(|bytes| rbench_report::journal::read_any(&bytes).ok())
        .unwrap_or_else(|| result.clone());
    for (new, old) in result.phases.iter_mut().zip(&golden.phases) {
        keep_equal_hdr(&mut new.latency.service, &old.latency.service);
        if let (Some(new), Some(old)) = (&mut new.latency.response, &old.latency.response) {
            keep_equal_hdr(new, old);
        }
        for (new, old) in new.hosts.iter_mut().zip(&old.hosts) {
            keep_equal_hdr(&mut new.latency, &old.latency);
        }
    }
    check(name, &json::render(&result));
}

fn keep_equal_hdr(new: &mut Hist, old: &Hist) {
    if new.latency() == old.latency() {
        new.hdr.clone_from(&old.hdr);
    }
}

fn io_run() -> RunResult {
    let io =
        |name, label, op, items, bytes, ns| Made::solo(items, bytes, ns).phase(name, label, op);
    let mut phases = vec![
        io(
            "write",
            "Sequential write",
            OpKind::Write,
            1024,
            4 << 20,
            8_900_000,
        ),
        io(
            "read",
            "Sequential read",
            OpKind::Read,
            1024,
            4 << 20,
            2_310_000,
        ),
        io(
            "randwrite",
            "Random write",
            OpKind::Write,
            65_536,
            4096,
            218_000,
        ),
        io("randread", "Random read", OpKind::Read, 65_536, 4096, 1_100),
    ];
    for phase in &mut phases[1..] {
        phase.cache = Some(Cache::Warm);
    }
    phases[1].cache = Some(Cache::Mixed);
    let spec = json!({
        "bs": "4MiB", "size": "4GiB", "rw": ["write", "read", "randwrite", "randread"],
        "engine": "psync", "fsync": "end", "direct": false, "layout": "per-worker",
        "depth": 1, "verify": false,
    });
    let mut result = run(1, 1, spec, phases);
    result.run.command = words("rbench io --bs 4M --size 4G --rw write,read --dir /mnt/jfs");
    result.run.labels.insert("engine".into(), "redis".into());
    result.run.labels.insert("ticket".into(), "1234".into());
    result
}

#[test]
fn twelve_ranks_on_three_hosts() {
    let mut result = run(3, 4, meta_spec(), meta_phases(3, 4));
    result.run.command = words(
        "mpirun -np 12 --hostfile myhost rbench meta --shift 4 --dir /mnt/jfs --out meta.json",
    );
    check_text("twelve_ranks.txt", &result);
}

fn of_three_iterations() -> RunResult {
    let mut phases = Vec::new();
    for iteration in 0..3_u32 {
        let slower = 1 + u64::from(iteration);
        let template = |items, bytes, ns: u64| Made::on(2, 2, items, bytes, ns + ns * slower / 20);
        let mut pass = vec![
            template(500, 0, 1_300_000).phase("dir-create", "Directory creation", OpKind::Mkdir),
            template(500, 102_400, 2_100_000).phase("file-create", "File creation", OpKind::Create),
            template(500, 0, 390_000).phase("file-stat", "File stat", OpKind::Stat),
            template(500, 0, 1_400_000).phase("file-remove", "File removal", OpKind::Unlink),
        ];
        pass.iter_mut().for_each(|p| p.iteration = iteration);
        phases.extend(pass);
    }
    // A straggler in the second iteration only.
    phases[5].ranks[3].elapsed.0 *= 3;
    phases[5].hosts[1].elapsed.0 *= 3;
    phases[5].elapsed.0 *= 3;
    let mut spec = meta_spec();
    spec["iterations"] = json!(3);
    run(2, 2, spec, phases)
}

#[test]
fn three_iterations() {
    check_text("three_iterations.txt", &of_three_iterations());
}

#[test]
fn three_iterations_in_80_columns_without_details() {
    let narrow = View::USUAL.wide(80);
    let text = text::render(&of_three_iterations(), narrow);
    check("three_iterations_80.txt", &text);
}

#[test]
fn errors_of_several_kinds() {
    let mut phases = meta_phases(2, 2);
    phases.truncate(10);
    let dir = "/mnt/jfs/rbench.20250102-031415-5f2c/rank.003/tree.0/dir.2";
    let full = |i: u32| no_space(OpKind::Create, &format!("{dir}/file.{i}"));
    fail(&mut phases[6], 3, 12, full(388));
    fail(&mut phases[6], 1, 2, full(398));
    let mut wrong = Failure::new(
        OpKind::ReadFile,
        format!("{dir}/file.17\u{1b}[31m\nx"),
        FailureKind::Mismatch,
    );
    wrong.detail = "block at 4096 is of file.18, generation 2".to_owned();
    fail(&mut phases[8], 2, 1, wrong);
    // A phase without a successful operation.
    let (hosts, all) = (phases[9].hosts.clone(), 400);
    for rank in 0..4 {
        let gone = Failure::new(
            OpKind::Rename,
            format!("{dir}/file.0"),
            FailureKind::Errno(2),
        );
        fail(&mut phases[9], rank, all, gone);
    }
    assert_eq!(phases[9].items, 0);
    phases[9].service = Latency::new();
    for (part, whole) in phases[9].hosts.iter_mut().zip(hosts) {
        assert_eq!(part.errors, whole.items);
        part.service = Latency::new();
    }
    check_text("errors.txt", &run(2, 2, meta_spec(), phases));
}

#[test]
fn an_open_loop_shows_response_times() {
    let mut phases = vec![
        Made::on(1, 4, 5000, 4096, 310_000).phase("randread", "Random read", OpKind::Read),
        Made::on(1, 4, 5000, 4096, 520_000).phase("randwrite", "Random write", OpKind::Write),
    ];
    for phase in &mut phases {
        let mut response = phase.service.clone();
        // A stall of 500 ms: operations due meanwhile waited for its end.
        (0..500_u64).for_each(|i| response.record(Nanos(500_000_000 - i * 1_000_000)));
        phase.response = Some(response);
        phase.late.record(Nanos(0));
        phase.late.record(Nanos(499_000_000));
        phase.cache = Some(Cache::Mixed);
    }
    let spec = json!({
        "bs": "4KiB", "size": "64MiB", "rw": ["randread", "randwrite"], "rate": 1000,
        "arrival": "poisson", "direct": true, "engine": "io_uring", "depth": 16,
    });
    let mut result = run(1, 4, spec, phases);
    result.run.command = words("rbench io --rate 1000 --arrival poisson --direct --dir /mnt/jfs");
    check_text("open_loop.txt", &result);
}

#[test]
fn the_built_in_file_system_says_so_first() {
    let mut result = run(1, 2, meta_spec(), meta_phases(1, 2));
    result.target.embedded = true;
    result.target.path = "/tmp/rbench-testfs.x1/mnt".to_owned();
    result.target.fs_type = Some("fuse.rbench-testfs".to_owned());
    result.target.mount_source = Some("rbench-testfs".to_owned());
    result.run.command = words("rbench meta");
    let text = text::render(&result, DETAILS);
    assert!(text.starts_with("DEMONSTRATION"), "{text}");
    check_text("embedded.txt", &result);
}

#[test]
fn a_null_operation_that_was_not_measured_costs_nothing_that_is_told() {
    let mut result = run(1, 2, meta_spec(), meta_phases(1, 2));
    result.calibration.null_op_ns = 0.0;
    let text = text::render(&result, DETAILS);
    assert!(
        text.contains("Tool cost") && !text.contains("null operation"),
        "{text}"
    );
}

#[test]
fn an_incomplete_run_says_so() {
    let mut phases = meta_phases(3, 4);
    phases.truncate(8);
    phases[7].complete = false;
    phases[6].stonewall = Some(Stonewall {
        deadline: Nanos(500_000_000),
        stopped: Nanos(500_000_000),
        items: 2_310,
        least: 180,
        most: 211,
    });
    let mut result = run(3, 4, meta_spec(), phases);
    result.complete = false;
    result.run.finished = None;
    check_text("incomplete.txt", &result);
}

#[test]
fn a_run_stopped_in_its_first_iteration_says_how_many_were_asked_for() {
    let mut spec = meta_spec();
    spec["iterations"] = json!("3");
    let mut result = run(1, 1, spec, meta_phases(1, 1));
    result.complete = false;
    let text = text::render(&result, DETAILS);
    assert!(text.contains("\nIteration 1 of 3\n"), "{text}");
}

#[test]
fn a_journal_without_a_phase_yet_is_a_report() {
    let mut result = crate::fixtures::empty_run();
    result.complete = false;
    check_text("no_phase.txt", &result);
}

#[test]
fn of_many_hosts_the_slowest_and_the_fastest_are_shown() {
    let phases: Vec<PhaseOutcome> = meta_phases(40, 2).into_iter().skip(6).take(2).collect();
    check_text("forty_hosts.txt", &run(40, 2, meta_spec(), phases));
}

#[test]
fn wide_numbers_still_fit() {
    let mut phase =
        Made::on(3, 1, 2000, 1 << 20, 89_000_000).phase("write", "Sequential write", OpKind::Write);
    phase.items = 123_456_789;
    phase.bytes = phase.items << 20;
    phase.elapsed = Nanos(123_000_000_000);
    phase.cache = Some(Cache::Mixed);
    check_text("wide.txt", &run(3, 1, meta_spec(), vec![phase]));
}
