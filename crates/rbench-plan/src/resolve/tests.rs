use super::*;
use crate::arrival::Arrival;
use crate::describe::{Setting, SettingValue};
use crate::io::{FsyncRule, Layout as IoLayout, Rw};
use crate::jobs::Distribution;
use rbench_core::Rank;
use rbench_core::steady::Criterion;

const KIB: u64 = 1024;

fn facts(host_of: &[u32]) -> Facts {
    Facts {
        host_of: host_of.to_vec(),
        seed: 7,
        engines: vec![
            ("psync", 1),
            ("mmap", 1),
            ("io_uring", 4096),
            ("null", 4096),
        ],
        stonewalled: None,
    }
}

fn twelve() -> Facts {
    facts(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
}

fn meta(
    change: impl FnOnce(&mut spec::Common, &mut spec::Meta),
    facts: &Facts,
) -> Result<Plan, String> {
    let (mut common, mut meta) = (
        spec::Common {
            dir: Some("/mnt".into()),
            ..Default::default()
        },
        spec::Meta::default(),
    );
    change(&mut common, &mut meta);
    resolve(
        &Spec {
            common,
            workload: Workload::Meta(meta),
        },
        facts,
    )
    .map_err(|e| e.0)
}

fn io(
    change: impl FnOnce(&mut spec::Common, &mut spec::Io),
    facts: &Facts,
) -> Result<Plan, String> {
    let (mut common, mut io) = (
        spec::Common {
            dir: Some("/mnt".into()),
            ..Default::default()
        },
        spec::Io::default(),
    );
    change(&mut common, &mut io);
    resolve(
        &Spec {
            common,
            workload: Workload::Io(Box::new(io)),
        },
        facts,
    )
    .map_err(|e| e.0)
}

fn check_meta(expect: &str, change: impl FnOnce(&mut spec::Common, &mut spec::Meta)) {
    let got = meta(change, &twelve()).expect_err(expect);
    assert!(got.contains(expect), "'{got}' does not contain '{expect}'");
}

fn check_io(expect: &str, change: impl FnOnce(&mut spec::Common, &mut spec::Io)) {
    let got = io(change, &twelve()).expect_err(expect);
    assert!(got.contains(expect), "'{got}' does not contain '{expect}'");
}

#[test]
fn a_bare_meta_is_the_published_metadata_test() {
    let plan = meta(|_, _| (), &twelve()).expect("valid");
    let Work::Meta(work) = &plan.work else {
        panic!("not meta")
    };
    assert_eq!((work.nodes, work.items_per_rank), (4, 400));
    let native = PHASES.iter().filter(|p| p.by_default).count();
    assert_eq!((work.phases.len(), native), (12, 12));
    assert_eq!((plan.threads, plan.iterations, plan.seed), (1, 1, 7));
}

#[test]
fn asked_phases_bring_what_they_need() {
    let plan = meta(|_, m| m.phases = Some(vec![PhaseKind::FileStat]), &twelve()).expect("valid");
    let Work::Meta(work) = &plan.work else {
        panic!("not meta")
    };
    assert_eq!(
        work.kinds().collect::<Vec<_>>(),
        [
            PhaseKind::TreeCreate,
            PhaseKind::FileCreate,
            PhaseKind::FileStat
        ]
    );
    assert_eq!(
        plan.notes,
        ["--phases also needs tree-create and file-create"]
    );
}

/// The phases for the requested ones with their prerequisites, in order.
fn kinds(asked: &[PhaseKind]) -> String {
    let plan = meta(|_, m| m.phases = Some(asked.to_vec()), &twelve()).expect("valid");
    let Work::Meta(work) = &plan.work else {
        panic!("not meta")
    };
    let names = work.kinds().map(|kind| kind.info().name);
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn hard_links_are_made_when_asked_for_and_removed_before_the_tree() {
    let phases = "tree-create file-create file-link";
    assert_eq!(kinds(&[PhaseKind::FileLink]), phases);
    assert_eq!(
        kinds(&[PhaseKind::LinkRemove]),
        format!("{phases} link-remove")
    );
    assert_eq!(
        kinds(&[PhaseKind::FileLink, PhaseKind::TreeRemove]),
        format!("{phases} link-remove file-remove tree-remove")
    );
    assert_eq!(
        kinds(&[PhaseKind::FileLink, PhaseKind::FileRemove]),
        format!("{phases} link-remove file-remove")
    );
    let others = kinds(&[PhaseKind::FileStat, PhaseKind::TreeRemove]);
    assert_eq!(
        others,
        "tree-create file-create file-stat file-remove tree-remove"
    );
}

#[test]
fn what_phases_fill_is_emptied_before_others_fill_or_remove_it() {
    let phases = "tree-create dir-create dir-fill-10 dir-list-10";
    assert_eq!(kinds(&[PhaseKind::DirList10]), phases);
    assert_eq!(
        kinds(&[PhaseKind::DirList10, PhaseKind::DirList1k]),
        format!("{phases} dir-empty-10 dir-fill-1k dir-list-1k")
    );
    assert_eq!(
        kinds(&[PhaseKind::DirResolve, PhaseKind::DirRemove]),
        "tree-create dir-create dir-deepen dir-resolve dir-flatten dir-remove"
    );
    assert_eq!(
        kinds(&[PhaseKind::FileListxattr10, PhaseKind::FileRead10]),
        "tree-create file-create file-setxattr file-setxattr-9 file-listxattr-10 file-build-10 file-read-10"
    );
    assert_eq!(
        kinds(&[
            PhaseKind::FileReadlink,
            PhaseKind::FileMknod,
            PhaseKind::FileRemove
        ]),
        "tree-create file-create file-mknod node-remove file-symlink file-readlink symlink-remove file-remove"
    );
}

fn ops(change: impl FnOnce(&mut spec::Ops)) -> Result<crate::MetaPlan, String> {
    let mut ops = spec::Ops::default();
    change(&mut ops);
    let common = spec::Common {
        threads: Some(3),
        ..Default::default()
    };
    let workload = Workload::Ops(ops);
    let plan = resolve(&Spec { common, workload }, &twelve()).map_err(|e| e.0)?;
    match plan.work {
        Work::Meta(work) => Ok(work),
        other => panic!("{other:?}"),
    }
}

#[test]
fn rows_of_the_table_are_shown_and_what_they_need_is_not() {
    let only = |names: &[&str]| {
        let row = |name: &&str| rbench_core::operations::row(name).expect("a row");
        Some(names.iter().map(row).collect::<Vec<_>>())
    };
    let shown = |plan: &crate::MetaPlan| -> Vec<(&'static str, Showing)> {
        let phases = plan.phases.iter();
        phases.map(|p| (p.kind.info().name, p.showing)).collect()
    };
    let plan = ops(|ops| ops.only = only(&["getxattr", "rmdir"])).expect("valid");
    assert_eq!((plan.items_per_rank, plan.shape.depth), (3000, 0));
    assert_eq!(
        shown(&plan),
        [
            ("tree-create", Showing::Untimed),
            ("dir-create", Showing::Untimed),
            ("dir-remove", Showing::Row("rmdir")),
            ("file-create", Showing::Untimed),
            ("file-setxattr", Showing::Untimed),
            ("file-getxattr", Showing::Row("getxattr")),
        ]
    );
    let plan = ops(|ops| (ops.only, ops.time) = (only(&["rmdir", "symlink"]), Some(Nanos(9))));
    let plan = plan.expect("valid");
    let ends = |p: &PhasePlan| (p.kind.info().name, p.deadline.is_some());
    assert_eq!(
        plan.phases.iter().map(ends).collect::<Vec<_>>(),
        [
            ("tree-create", false),
            ("dir-create", true),
            ("dir-remove", true),
            ("file-create", true),
            ("file-symlink", true),
        ]
    );
    for (expect, change) in [
        (
            "--only newchunk leaves no row to measure: it makes no system call",
            (|ops| {
                ops.only = Some(vec![
                    rbench_core::operations::row("newchunk").expect("a row"),
                ])
            }) as fn(&mut spec::Ops),
        ),
        ("--ops and --time cannot be combined", |ops| {
            (ops.operations, ops.time) = (Some(1), Some(Nanos(1)));
        }),
        ("--ops must be at least 1", |ops| ops.operations = Some(0)),
        ("--ops 99999999999999", |ops| {
            ops.operations = Some(99_999_999_999_999)
        }),
        ("--time must be longer than 0", |ops| {
            ops.time = Some(Nanos(0))
        }),
    ] {
        let got = ops(change).expect_err(expect);
        assert!(got.contains(expect), "'{got}' does not contain '{expect}'");
    }
}

#[test]
fn removing_the_tree_needs_its_items_removed_first() {
    let phases = Some(vec![PhaseKind::FileCreate, PhaseKind::TreeRemove]);
    let plan = meta(|_, m| m.phases = phases, &twelve()).expect("valid");
    let Work::Meta(work) = &plan.work else {
        panic!("not meta")
    };
    let expect = [
        PhaseKind::TreeCreate,
        PhaseKind::FileCreate,
        PhaseKind::FileRemove,
        PhaseKind::TreeRemove,
    ];
    assert_eq!(work.kinds().collect::<Vec<_>>(), expect);
}

#[test]
fn items_per_rank_are_spread_over_the_tree_and_rounding_is_said() {
    let plan = meta(
        |_, m| (m.items_per_rank, m.branch, m.depth) = (Some(5000), Some(1), Some(2)),
        &twelve(),
    );
    let plan = plan.expect("valid");
    let Work::Meta(work) = &plan.work else {
        panic!("not meta")
    };
    assert_eq!(
        (work.shape.items_per_node, work.items_per_rank),
        (1666, 4998)
    );
    assert_eq!(plan.notes.len(), 1);
}

#[test]
fn impossible_metadata_runs_are_refused_by_the_name_of_the_flag() {
    check_meta("--branch", |_, m| m.branch = Some(0));
    check_meta("--items must", |_, m| m.items = Some(0));
    check_meta("--items-per-rank 3 is less", |_, m| {
        m.items_per_rank = Some(3)
    });
    check_meta("--items and --items-per-rank", |_, m| {
        (m.items, m.items_per_rank) = (Some(1), Some(4))
    });
    check_meta("--files-only and --dirs-only", |_, m| {
        (m.files_only, m.dirs_only) = (true, true)
    });
    check_meta("--read 8KiB", |_, m| {
        (m.write, m.read) = (Some(Bytes(4 * KIB)), Some(Bytes(8 * KIB)))
    });
    check_meta("--fsync needs --write", |_, m| m.fsync = true);
    check_meta("--phases file-stat and --dirs-only", |_, m| {
        (m.dirs_only, m.phases) = (true, Some(vec![PhaseKind::FileStat]));
    });
    check_meta("2^62", |_, m| (m.branch, m.depth) = (Some(1000), Some(40)));
    check_meta("--depth 600 makes paths", |_, m| {
        (m.branch, m.depth) = (Some(1), Some(600))
    });
    check_meta("--shift 12", |c, _| c.shift = Some(12));
    check_meta("--threads", |c, _| c.threads = Some(0));
    check_meta("--iterations", |c, _| c.iterations = Some(0));
    check_meta("--precision needs --iterations auto", |c, _| {
        c.auto.precision = Some(0.05);
    });
    check_meta("--max-iterations needs --iterations auto", |c, _| {
        c.auto.max_iterations = Some(5);
    });
    check_meta("--max-iterations 2 is too few", |c, _| {
        (c.auto.wanted, c.auto.max_iterations) = (true, Some(2));
    });
    check_meta("--max-time", |c, _| {
        (c.auto.wanted, c.auto.max_time) = (true, Some(Nanos(0)));
    });
    check_meta("--stonewall", |_, m| m.stonewall = Some(Nanos(0)));
    let alone = meta(|c, _| c.shift = Some(1), &facts(&[0])).expect_err("one rank");
    assert!(alone.contains("--shift 1 needs several ranks"), "{alone}");
}

#[test]
fn impossible_io_runs_are_refused_by_the_name_of_the_flag() {
    check_io("--size 1KiB is smaller", |_, i| {
        (i.size, i.block) = (Some(Bytes(KIB)), Some(Bytes(4 * KIB)))
    });
    check_io("--bs: a block must have", |_, i| i.block = Some(Bytes(0)));
    check_io("--files needs", |_, i| i.files = Some(3));
    check_io("--file-size needs", |_, i| i.file_size = Some(Bytes(3)));
    check_io(
        "--engine warp is not one of psync, mmap, io_uring, null",
        |_, i| i.engine = Some("warp".into()),
    );
    check_io("use --engine io_uring", |_, i| i.depth = Some(4));
    check_io("--depth (--iodepth) must", |_, i| i.depth = Some(0));
    check_io("--mix needs", |_, i| i.mix = Some(30));
    check_io("--mix 130", |_, i| {
        (i.mix, i.rw) = (Some(130), Some(vec![Rw::RandRw]))
    });
    check_io("--arrival needs --rate", |_, i| {
        i.arrival = Some(Arrival::Poisson)
    });
    check_io("--rate", |_, i| i.rate = Some(-3.0));
    check_io("--time", |_, i| i.time = Some(Nanos(0)));
    check_io("multiples of 512", |_, i| {
        (i.direct, i.block) = (true, Some(Bytes(1000)))
    });
    check_io("--interleave needs --layout", |_, i| i.interleave = true);
    check_io("--fsync every=0", |_, i| {
        i.fsync = Some(FsyncRule::Every(0))
    });
    check_io("--fsync needs", |_, i| {
        (i.fsync, i.rw) = (Some(FsyncRule::End), Some(vec![Rw::Read]))
    });
    check_io("--verify cannot", |_, i| {
        (i.verify, i.rw) = (true, Some(vec![Rw::RandRw]))
    });
    check_io(
        "--files and --depth (--iodepth) 2 cannot be combined",
        |_, i| {
            (i.files, i.file_size) = (Some(2), Some(Bytes(4096)));
            (i.engine, i.depth) = (Some("io_uring".into()), Some(2));
        },
    );
}

#[test]
fn options_of_the_pattern_and_the_data_that_exclude_each_other_are_refused() {
    let split = |parts: &[(u64, Option<u32>)]| Some(parts.to_vec());
    let half = || split(&[(4 * KIB, Some(50)), (8 * KIB, None)]);
    check_io("--bs and --bs-split cannot be combined", |_, i| {
        (i.block, i.block_split) = (Some(Bytes(4096)), half())
    });
    check_io("--bs-range and --bs-split cannot be combined", |_, i| {
        (i.block_range, i.block_split) = (Some((512, 4096)), half())
    });
    check_io("--bs-split: the percentages add up to 90", |_, i| {
        i.block_split = split(&[(4096, Some(50)), (8192, Some(40))])
    });
    check_io("--bs-split: a block must have", |_, i| {
        i.block_split = split(&[(0, None)])
    });
    check_io(
        "--size 4KiB is smaller than one block of --bs-split 8KiB",
        |_, i| (i.size, i.block_split) = (Some(Bytes(4 * KIB)), half()),
    );
    check_io("--bs-split and --files cannot be combined", |_, i| {
        (i.files, i.file_size) = (Some(3), Some(Bytes(64 * KIB)));
        i.block_split = half();
    });
    check_io("--interleave and --bs-split cannot be combined", |_, i| {
        (i.layout, i.interleave) = (Some(IoLayout::SharedSegmented), true);
        i.block_split = half();
    });
    check_io("--direct needs --bs-split", |_, i| {
        (i.direct, i.block_split) = (true, split(&[(4096, Some(50)), (5000, Some(50))]))
    });
    check_io(
        "--verify needs the sizes of --bs-split to be multiples of",
        |_, i| (i.verify, i.block_split) = (true, split(&[(4096, Some(50)), (6144, Some(50))])),
    );
    check_io("--verify needs --bs-range of at least 512", |_, i| {
        (i.verify, i.block_range) = (true, Some((256, 4096)))
    });
    check_io("--random-distribution needs --rw with randread", |_, i| {
        i.distribution = Some(Distribution::Zipf(1.2))
    });
    check_io(
        "--random-distribution and --files cannot be combined",
        |_, i| {
            i.distribution = Some(Distribution::Zipf(1.2));
            (i.rw, i.files) = (Some(vec![Rw::RandRead]), Some(3));
            i.file_size = Some(Bytes(4096));
        },
    );
    check_io("--ramp needs --time", |_, i| {
        i.ramp = Some(Nanos::SECOND);
    });
    check_io("--ramp and --files cannot", |_, i| {
        (i.ramp, i.time) = (Some(Nanos::SECOND), Some(Nanos::SECOND));
        (i.files, i.file_size, i.size) = (Some(1), Some(Bytes(4096)), None);
    });
    let steady = |i: &mut spec::Io, seconds: [u64; 4]| {
        let [time, duration, every, ramp] = seconds.map(|s| Some(Nanos(s * SECOND)));
        i.time = time;
        i.steady = spec::SteadyOptions {
            criterion: Some(Criterion {
                bandwidth: false,
                slope: false,
                limit: 2.0,
                percent: true,
            }),
            duration,
            every,
            ramp,
        };
    };
    const SECOND: u64 = Nanos::SECOND.0;
    check_io("--steadystate needs --time", |_, i| {
        steady(i, [9, 4, 1, 0]);
        i.time = None;
    });
    check_io("--steadystate needs --ss-dur", |_, i| {
        steady(i, [9, 4, 1, 0]);
        i.steady.duration = None;
    });
    check_io("--ss-ramp needs --steadystate", |_, i| {
        steady(i, [9, 4, 1, 0]);
        (i.steady.criterion, i.steady.duration) = (None, None);
    });
    check_io("not a multiple of --interval 60", |c, i| {
        steady(i, [900, 400, 100, 0]);
        c.interval = Some(Nanos(60 * SECOND));
    });
    check_io(
        "--ss-dur 4.00 s is not 2 to 100000 times --ss-interval 3.00 s",
        |_, i| {
            steady(i, [9, 4, 3, 0]);
        },
    );
    check_io("--ss-dur 4.00 s is not 2 to", |_, i| {
        steady(i, [9, 4, 4, 0])
    });
    check_io("no window would be complete", |_, i| {
        steady(i, [9, 4, 1, 6])
    });
    check_io("--think and --files cannot", |_, i| {
        i.think = Some(Nanos(1));
        (i.files, i.file_size, i.size) = (Some(1), Some(Bytes(4096)), None);
    });
    check_io("--think must be", |_, i| i.think = Some(Nanos(0)));
    check_io("--verify-threads needs --verify", |_, i| {
        i.verify_threads = Some(1)
    });
    check_io("--verify-threads 65 is more than 64", |_, i| {
        (i.verify, i.verify_threads) = (true, Some(65))
    });
    check_io("--verify-threads and --pin cannot", |c, i| {
        (c.pin, i.verify, i.verify_threads) = (true, true, Some(1));
    });
    check_io("--verify-threads and --files cannot", |_, i| {
        (i.verify, i.verify_threads) = (true, Some(1));
        (i.files, i.file_size) = (Some(2), Some(Bytes(4096)))
    });
    check_io("--verify-threads needs --depth 1 and one of", |_, i| {
        (i.verify, i.verify_threads) = (true, Some(1));
        (i.engine, i.depth) = (Some("io_uring".into()), Some(4))
    });
    check_io("--verify-threads needs --depth 1 and one of", |_, i| {
        (i.verify, i.verify_threads) = (true, Some(1));
        i.engine = Some("mmap".into())
    });
    check_io("--verify and --compress cannot be combined", |_, i| {
        (i.verify, i.compress) = (true, Some(50))
    });
    check_io("--verify and --dedupe cannot be combined", |_, i| {
        (i.verify, i.dedupe) = (true, Some(50))
    });
    check_io("--verify and --no-refill cannot be combined", |_, i| {
        (i.verify, i.no_refill) = (true, true)
    });
    check_io("--no-refill and --dedupe cannot be combined", |_, i| {
        (i.no_refill, i.dedupe) = (true, Some(50))
    });
    check_io("--compress 101 is not a percentage", |_, i| {
        i.compress = Some(101)
    });
    check_io("--dedupe 101 is not a percentage", |_, i| {
        i.dedupe = Some(101)
    });
    check_io("--direct and --engine mmap cannot be combined", |_, i| {
        (i.direct, i.engine) = (true, Some("mmap".into()))
    });
    check_io("--engine falloc moves no data", |_, i| {
        i.engine = Some("falloc".into())
    });
}

#[test]
fn an_interval_is_from_10_ms_to_a_minute() {
    check_io(
        "--interval 9.00 ms is not in the range 10.0 ms to 60.0 s",
        |c, _| {
            c.interval = Some(Nanos(9_000_000));
        },
    );
    let plan = io(|_, _| (), &twelve()).expect("valid");
    assert_eq!(plan.interval, Nanos(1_000_000_000));
}

#[test]
fn what_shapes_blocks_and_data_is_in_the_settings_in_the_form_of_its_option() {
    let plan = io(
        |_, i| {
            i.rw = Some(vec![Rw::RandWrite]);
            i.block_split = Some(vec![(4 * KIB, Some(60)), (8 * KIB, None)]);
            i.distribution = Some(Distribution::Zoned(vec![(60.0, 10.0), (40.0, 90.0)]));
            (i.compress, i.dedupe) = (Some(30), Some(20));
        },
        &twelve(),
    )
    .expect("valid");
    let rows = plan.describe();
    for row in [
        ("bs-split", "4KiB/60:8KiB/40"),
        ("random-distribution", "zoned:60/10:40/90"),
        ("compress", "30%"),
        ("dedupe", "20%"),
    ] {
        let setting = rows.iter().find(|setting| setting.name == row.0);
        assert_eq!(setting.map(|setting| setting.text.as_str()), Some(row.1));
    }
    let value = |name: &str| rows.iter().find(|s| s.name == name).map(|s| s.value);
    assert_eq!(value("compress"), Some(SettingValue::Percent(30)));
    assert_eq!(value("bs-split"), Some(SettingValue::Text));
    assert_eq!(value("size"), Some(SettingValue::Size(Bytes(256 << 20))));
    assert_eq!(value("depth"), Some(SettingValue::Count(1)));
    let bare = io(|_, _| (), &twelve()).expect("valid").describe();
    let named = |name: &str| bare.iter().any(|setting| setting.name == name);
    assert!(!named("random-distribution") && !named("compress") && !named("dedupe"));
    assert!(!named("refill") && !named("pin"));
    let plan = io(|c, i| (c.pin, i.no_refill) = (true, true), &twelve()).expect("valid");
    let rows = plan.describe();
    for (name, text, value) in [
        ("refill", "no", SettingValue::Off),
        ("pin", "yes", SettingValue::On),
    ] {
        let text = text.to_owned();
        assert!(rows.contains(&Setting { name, text, value }), "{name}");
    }
}

#[test]
fn the_built_in_file_system_is_private_to_each_host() {
    check_meta("--layout shared needs a directory", |c, m| {
        (c.dir, m.layout) = (None, Some(TreeLayout::Shared))
    });
    check_meta("--shift needs a directory", |c, _| {
        (c.dir, c.shift) = (None, Some(4))
    });
    check_io("--layout shared needs a directory", |c, i| {
        (c.dir, i.layout) = (None, Some(IoLayout::SharedSegmented))
    });
    check_meta("--keep needs --dir", |c, _| (c.dir, c.keep) = (None, true));
    assert!(
        meta(
            |c, m| (c.dir, m.layout) = (None, Some(TreeLayout::Shared)),
            &facts(&[0, 0])
        )
        .is_ok()
    );
}

#[test]
fn a_journal_of_acknowledged_writes_needs_stamps_writes_and_data_that_stays() {
    let asks = |io: &mut spec::Io| (io.verify, io.ack_journal) = (true, Some("/var/acks".into()));
    let plan = io(|_, i| asks(i), &twelve()).expect("valid");
    assert!(plan.keep);
    let is_journal = |s: &Setting| (s.name, s.text.as_str()) == ("ack-journal", "/var/acks");
    assert!(plan.describe().iter().any(is_journal));
    check_io("--ack-journal needs --verify", |_, i| {
        i.ack_journal = Some("/var/acks".into());
    });
    check_io("--ack-journal needs a phase that writes", |_, i| {
        asks(i);
        i.rw = Some(vec![Rw::RandRead]);
    });
    check_io("--ack-journal needs --dir", |c, i| {
        asks(i);
        c.dir = None;
    });
    check_io("--ack-journal / is not a file name", |_, i| {
        asks(i);
        i.ack_journal = Some("/".into());
    });
}

#[test]
fn equal_plans_have_equal_digests_and_others_do_not() {
    let a = meta(|_, _| (), &twelve()).expect("valid");
    let b = meta(|_, m| m.items = Some(101), &twelve()).expect("valid");
    assert_eq!(a.digest(), a.clone().digest());
    assert_ne!(a.digest(), b.digest());
}

#[test]
fn small_files_are_moved_in_blocks_of_at_most_their_size() {
    let plan = io(
        |_, i| (i.files, i.file_size) = (Some(1000), Some(Bytes(4096))),
        &twelve(),
    )
    .expect("valid");
    let Work::Io(work) = &plan.work else {
        panic!("not io")
    };
    assert_eq!((work.block(), work.whole()), (4096, 1000));
    assert_eq!(crate::io::worker_number(Rank(3), 1, 2), 7);
    assert_eq!(plan.data_bytes(), 12 * 1000 * 4096);
}

#[test]
fn a_time_or_a_rate_measures_what_was_asked_for_and_prepares_the_rest() {
    let of = |change: &dyn Fn(&mut spec::Meta)| {
        let plan = meta(
            |c, m| {
                c.threads = Some(2);
                m.phases = Some(vec![PhaseKind::FileRemove]);
                change(m);
            },
            &twelve(),
        );
        let Work::Meta(meta) = plan.expect("a plan").work else {
            panic!("it is metadata");
        };
        meta
    };
    let shown = |meta: &MetaPlan| -> Vec<PhaseKind> {
        let shown = meta.phases.iter().filter(|p| p.showing == Showing::Phase);
        shown.map(|phase| phase.kind).collect()
    };
    let second = Some(Nanos(1_000_000_000));
    let rated = of(&|m| (m.time, m.rate) = (second, Some(2400.0)));
    assert_eq!(shown(&rated), [PhaseKind::FileRemove]);
    // 100 for each of 24 workers in a second, and one in reserve.
    assert_eq!(rated.items_per_rank, 202);
    let removal = rated
        .phases
        .iter()
        .find(|p| p.kind == PhaseKind::FileRemove);
    let removal = removal.expect("the phase");
    assert_eq!(removal.deadline, second);
    assert_eq!(removal.open_loop.map(|open| open.rate), Some(2400.0));
    let creation = rated
        .phases
        .iter()
        .find(|p| p.kind == PhaseKind::FileCreate);
    let creation = creation.expect("it is needed");
    assert_eq!((creation.deadline, creation.open_loop), (None, None));
    // The number is unknown: items are created for the same time.
    let closed = of(&|m| m.time = second);
    assert!(closed.open_ended());
    let creation = closed
        .phases
        .iter()
        .find(|p| p.kind == PhaseKind::FileCreate);
    assert_eq!(creation.and_then(|phase| phase.deadline), second);
    // Repeatable phases need no more items than requested.
    let stat = of(&|m| {
        m.phases = Some(vec![PhaseKind::FileStat]);
        (m.time, m.items, m.depth) = (second, Some(7), Some(0));
    });
    assert_eq!(stat.items_per_rank, 7);
}

#[test]
fn impossible_times_and_rates_are_refused() {
    let error = |change: &dyn Fn(&mut spec::Common, &mut spec::Meta)| {
        meta(|c, m| change(c, m), &twelve()).expect_err("refused")
    };
    let second = Some(Nanos(1_000_000_000));
    assert!(error(&|_, m| m.rate = Some(0.0)).contains("--rate 0"));
    assert!(error(&|_, m| m.time = Some(Nanos(0))).contains("--time must"));
    assert!(error(&|_, m| m.arrival = Some(Arrival::Poisson)).contains("--arrival needs"));
    assert!(error(&|_, m| (m.time, m.stonewall) = (second, second)).contains("--stonewall"));
    assert!(error(&|_, m| (m.time, m.depth) = (second, Some(2))).contains("--depth 2"));
    let tree = Some(vec![PhaseKind::TreeRemove]);
    assert!(error(&|_, m| (m.time, m.phases) = (second, tree.clone())).contains("tree-remove"));
    let few = |c: &mut spec::Common, m: &mut spec::Meta| {
        c.threads = Some(5);
        (m.rate, m.items, m.depth) = (Some(9.0), Some(4), Some(0));
        m.phases = Some(vec![PhaseKind::FileStat]);
    };
    assert!(error(&few).contains("at least 5 items"));
}

/// Options `--engine` and `--iodepth`.
fn flight(engine: &str, depth: u32) -> spec::InFlight {
    spec::InFlight {
        engine: (!engine.is_empty()).then(|| engine.to_owned()),
        depth: (depth != 1).then_some(depth),
    }
}

#[test]
fn names_in_flight_are_a_matter_of_the_ring_and_leave_out_what_it_does_not_perform() {
    let planned = |engine: &str, depth| {
        let plan = meta(|_, m| m.in_flight = flight(engine, depth), &twelve()).expect("fine");
        let Work::Meta(meta) = plan.work.clone() else {
            unreachable!("it is meta");
        };
        (meta, plan.describe())
    };
    let says = |rows: &[Setting], name: &str| {
        let row = rows.iter().find(|row| row.name == name);
        row.map(|row| row.text.clone())
    };
    for engine in ["", "sync"] {
        let (plan, rows) = planned(engine, 1);
        assert_eq!(plan.in_flight, None);
        assert!(plan.runs(PhaseKind::DirList));
        assert_eq!(
            (says(&rows, "engine"), says(&rows, "iodepth")),
            (None, None)
        );
    }
    let ring = |_: &mut spec::Common, m: &mut spec::Meta| m.in_flight = flight("io_uring", 8);
    assert_eq!(
        meta(ring, &twelve()).expect("valid").notes,
        ["--engine io_uring does not perform dir-list: it is left out"]
    );
    for depth in [1, 32, 4096] {
        let (plan, rows) = planned("io_uring", depth);
        assert_eq!(plan.in_flight, Some(depth));
        assert!(
            !plan.runs(PhaseKind::DirList),
            "left out of what is run by default"
        );
        assert!(plan.runs(PhaseKind::FileRename));
        assert_eq!(says(&rows, "engine").as_deref(), Some("io_uring"));
        assert_eq!(says(&rows, "iodepth"), Some(depth.to_string()));
        assert_eq!(
            says(&rows, "phases"),
            None,
            "as many as there are by default"
        );
    }
}

#[test]
fn impossible_names_in_flight_are_refused_by_the_name_of_the_flag() {
    let check = |engine: &str, depth, phases: &[PhaseKind], expect: &str| {
        let change = |_: &mut spec::Common, m: &mut spec::Meta| {
            m.in_flight = flight(engine, depth);
            m.phases = (!phases.is_empty()).then(|| phases.to_vec());
        };
        let refusal = meta(change, &twelve()).expect_err("refused");
        assert_eq!(refusal, expect, "{engine} {depth} {phases:?}");
    };
    use PhaseKind::*;
    check("io_uring", 0, &[], "--iodepth must be at least 1");
    check(
        "io_uring",
        4097,
        &[],
        "--iodepth 4097 is more than 4096, the most operations that a worker can have in flight",
    );
    for engine in ["", "sync"] {
        check(
            engine,
            2,
            &[],
            "--iodepth 2 needs --engine io_uring: system calls are made one at a time",
        );
    }
    check(
        "psync",
        1,
        &[],
        "--engine psync is not one of sync, io_uring",
    );
    for (kind, name) in [
        (DirList, "dir-list"),
        (FileChmod, "file-chmod"),
        (FileMknod, "file-mknod"),
        (FileReadlink, "file-readlink"),
        (FileRemovexattr, "file-removexattr"),
        (FileStatfs, "file-statfs"),
    ] {
        check(
            "io_uring",
            4,
            &[kind],
            &format!("--engine io_uring does not perform {name}: use --engine sync"),
        );
    }
}
