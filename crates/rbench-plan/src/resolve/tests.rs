use super::*;
use crate::describe::{Setting, SettingValue};
use crate::io::Rw;
use crate::jobs::Distribution;
use crate::meta::Showing;
use crate::testing::check_error;
use rbench_core::Rank;

const KIB: u64 = 1024;

fn facts(host_of: &[u32]) -> Facts {
    Facts {
        engines: vec![
            ("psync", 1),
            ("mmap", 1),
            ("io_uring", 4096),
            ("null", 4096),
        ],
        ..Facts::on(host_of)
    }
}

fn twelve() -> Facts {
    facts(&[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2])
}

/// The options of a native command, as clap reads them.
#[derive(clap::Parser)]
struct Line<W: clap::Args> {
    #[command(flatten)]
    common: spec::Common,
    #[command(flatten)]
    work: W,
}

/// The options that are typed in `line`, after `--dir /mnt` unless it says `--no-dir`.
fn typed<W: clap::Args>(line: &str) -> (spec::Common, W) {
    let (dir, line) = match line.strip_prefix("--no-dir") {
        Some(line) => ("", line),
        None => ("--dir /mnt", line),
    };
    let words = ["rbench", dir, line]
        .into_iter()
        .flat_map(str::split_whitespace);
    let Line { common, work } = clap::Parser::try_parse_from(words).expect(line);
    (common, work)
}

fn meta(
    change: impl FnOnce(&mut spec::Common, &mut spec::Meta),
    facts: &Facts,
) -> Result<Plan, String> {
    let (mut common, mut meta) = typed("");
    change(&mut common, &mut meta);
    facts.plan(common, Workload::Meta(meta))
}

/// A valid plan on twelve ranks.
fn meta_plan(change: impl FnOnce(&mut spec::Common, &mut spec::Meta)) -> (Plan, MetaPlan) {
    let plan = meta(change, &twelve()).expect("valid");
    match plan.work.clone() {
        Work::Meta(work) => (plan, work),
        other => panic!("{other:?}"),
    }
}

fn io(
    change: impl FnOnce(&mut spec::Common, &mut spec::Io),
    facts: &Facts,
) -> Result<Plan, String> {
    let (mut common, mut io) = typed("");
    change(&mut common, &mut io);
    facts.plan(common, Workload::Io(Box::new(io)))
}

/// Checks that each of these lines is refused with its sentence.
fn check_refused<W: clap::Args>(workload: fn(W) -> Workload, lines: &[(&str, &str)]) {
    for (line, expect) in lines {
        let (common, work) = typed(line);
        check_error(twelve().plan(common, workload(work)), expect);
    }
}

fn check_meta(lines: &[(&str, &str)]) {
    check_refused(Workload::Meta, lines);
}

fn check_io(lines: &[(&str, &str)]) {
    check_refused(|io: spec::Io| Workload::Io(Box::new(io)), lines);
}

/// Lines that are refused, and their sentences.
macro_rules! refused {
    ($check:ident: $($line:expr => $expect:expr;)+) => {
        $check(&[$(($line, $expect)),+])
    };
}

#[test]
fn a_bare_meta_is_the_published_metadata_test() {
    let (plan, work) = meta_plan(|_, _| ());
    assert_eq!((work.nodes, work.items_per_rank), (4, 400));
    let native = PHASES.iter().filter(|p| p.by_default).count();
    assert_eq!((work.phases.len(), native), (12, 12));
    assert_eq!((plan.threads, plan.iterations, plan.seed), (1, 1, 7));
}

#[test]
fn asked_phases_bring_what_they_need() {
    let phases = kinds(&[PhaseKind::FileStat]);
    assert_eq!(phases, "tree-create file-create file-stat");
    let (plan, _) = meta_plan(|_, m| m.phases = Some(vec![PhaseKind::FileStat]));
    let note = "--phases also needs tree-create and file-create";
    assert_eq!(plan.notes, [note]);
}

/// The phases for the requested ones with their prerequisites, in order.
fn kinds(asked: &[PhaseKind]) -> String {
    let (_, work) = meta_plan(|_, m| m.phases = Some(asked.to_vec()));
    let names = work.kinds().map(|kind| kind.info().name);
    names.collect::<Vec<_>>().join(" ")
}

#[test]
fn hard_links_are_made_when_asked_for_and_removed_before_the_tree() {
    let phases = "tree-create file-create file-link";
    assert_eq!(kinds(&[PhaseKind::FileLink]), phases);
    let check =
        |asked: &[PhaseKind], more: &str| assert_eq!(kinds(asked), format!("{phases} {more}"));
    check(&[PhaseKind::LinkRemove], "link-remove");
    let both = [PhaseKind::FileLink, PhaseKind::TreeRemove];
    check(&both, "link-remove file-remove tree-remove");
    let both = [PhaseKind::FileLink, PhaseKind::FileRemove];
    check(&both, "link-remove file-remove");
    let others = kinds(&[PhaseKind::FileStat, PhaseKind::TreeRemove]);
    let expect = "tree-create file-create file-stat file-remove tree-remove";
    assert_eq!(others, expect);
}

#[test]
fn what_phases_fill_is_emptied_before_others_fill_or_remove_it() {
    let phases = "tree-create dir-create dir-fill-10 dir-list-10";
    assert_eq!(kinds(&[PhaseKind::DirList10]), phases);
    let check = |asked: &[PhaseKind], expect: &str| assert_eq!(kinds(asked), expect);
    use PhaseKind::*;
    each! { check:
        &[DirList10, DirList1k] =>
            &format!("{phases} dir-empty-10 dir-fill-1k dir-list-1k");
        &[DirResolve, DirRemove] =>
            "tree-create dir-create dir-deepen dir-resolve dir-flatten dir-remove";
        &[FileListxattr10, FileRead10] =>
            "tree-create file-create file-setxattr file-setxattr-9 file-listxattr-10 file-build-10 file-read-10";
        &[FileReadlink, FileMknod, FileRemove] =>
            "tree-create file-create file-mknod node-remove file-symlink file-readlink symlink-remove file-remove";
    }
}

fn ops(change: impl FnOnce(&mut spec::Ops)) -> Result<crate::MetaPlan, String> {
    let mut ops = spec::Ops::default();
    change(&mut ops);
    let common = spec::Common {
        threads: Some(3),
        ..Default::default()
    };
    match twelve().plan(common, Workload::Ops(ops))?.work {
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
    let check = |expect: &str, change: &dyn Fn(&mut spec::Ops)| check_error(ops(change), expect);
    each! { check:
        "--only newchunk leaves no row to measure: it makes no system call" =>
            &|ops| ops.only = only(&["newchunk"]);
        "--ops and --time cannot be combined" =>
            &|ops| (ops.operations, ops.time) = (Some(1), Some(Nanos(1)));
        "--ops must be at least 1" => &|ops| ops.operations = Some(0);
        "--ops 99999999999999" => &|ops| ops.operations = Some(99_999_999_999_999);
        "--time must be longer than 0" => &|ops| ops.time = Some(Nanos(0));
    }
}

#[test]
fn removing_the_tree_needs_its_items_removed_first() {
    let phases = kinds(&[PhaseKind::FileCreate, PhaseKind::TreeRemove]);
    assert_eq!(phases, "tree-create file-create file-remove tree-remove");
}

#[test]
fn items_per_rank_are_spread_over_the_tree_and_rounding_is_said() {
    let (plan, work) = meta_plan(|_, m| {
        (m.items_per_rank, m.branch, m.depth) = (Some(5000), Some(1), Some(2));
    });
    let items = (work.shape.items_per_node, work.items_per_rank);
    assert_eq!(items, (1666, 4998));
    assert_eq!(plan.notes.len(), 1);
}

#[test]
fn impossible_metadata_runs_are_refused_by_the_name_of_the_flag() {
    refused! { check_meta:
        "--branch 0" => "--branch";
        "--items 0" => "--items must";
        "--items-per-rank 3" => "--items-per-rank 3 is less";
        "--items 1 --items-per-rank 4" => "--items and --items-per-rank";
        "--files-only --dirs-only" => "--files-only and --dirs-only";
        "--write 4k --read 8k" => "--read 8KiB";
        "--fsync" => "--fsync needs --write";
        "--dirs-only --phases file-stat" => "--phases file-stat and --dirs-only";
        "--branch 1000 --depth 40" => "2^62";
        "--branch 1 --depth 600" => "--depth 600 makes paths";
        "--shift 12" => "--shift 12";
        "--threads 0" => "--threads";
        "--stonewall 0" => "--stonewall";
    }
    let check = |expect: &str, facts: &Facts, change: fn(&mut spec::Common)| {
        check_error(meta(|c, _| change(c), facts), expect);
    };
    let twelve = &twelve();
    each! { check:
        "--precision needs --iterations auto" => twelve => |c| c.auto.precision = Some(0.05);
        "--max-iterations needs --iterations auto" => twelve => |c| c.auto.max_iterations = Some(5);
        "--max-iterations 2 is too few" =>
            twelve => |c| (c.auto.wanted, c.auto.max_iterations) = (true, Some(2));
        "--max-time" => twelve => |c| (c.auto.wanted, c.auto.max_time) = (true, Some(Nanos(0)));
        "--iterations" => twelve => |c| c.iterations = Some(0);
        "--shift 1 needs several ranks" => &facts(&[0]) => |c| c.shift = Some(1);
    }
}

#[test]
fn impossible_io_runs_are_refused_by_the_name_of_the_flag() {
    refused! { check_io:
        "--size 1k --bs 4k" => "--size 1KiB is smaller";
        "--bs 0" => "--bs: a block must have";
        "--files 3" => "--files needs";
        "--file-size 3" => "--file-size needs";
        "--engine warp" => "--engine warp is not one of psync, mmap, io_uring, null";
        "--depth 4" => "use --engine io_uring";
        "--depth 0" => "--depth (--iodepth) must";
        "--mix 30" => "--mix needs";
        "--mix 130 --rw randrw" => "--mix 130";
        "--arrival poisson" => "--arrival needs --rate";
        "--rate=-3" => "--rate";
        "--time 0" => "--time";
        "--direct --bs 1000" => "multiples of 512";
        "--interleave" => "--interleave needs --layout";
        "--fsync every=0" => "--fsync every=0";
        "--fsync end --rw read" => "--fsync needs";
        "--verify --rw randrw" => "--verify cannot";
        "--files 2 --file-size 4k --engine io_uring --depth 2" =>
            "--files and --depth (--iodepth) 2 cannot be combined";
    }
}

#[test]
fn options_of_the_pattern_and_the_data_that_exclude_each_other_are_refused() {
    let none = vec![(0, None)];
    let no_bytes = io(|_, i| i.block_split = Some(none), &twelve());
    check_error(no_bytes, "--bs-split: a block must have");
    refused! { check_io:
        "--bs 4k --bs-split 4k/50:8k" => "--bs and --bs-split cannot be combined";
        "--bs-range 512-4k --bs-split 4k/50:8k" => "--bs-range and --bs-split cannot be combined";
        "--size 4k --bs-split 4k/50:8k" =>
            "--size 4KiB is smaller than one block of --bs-split 8KiB";
        "--files 3 --file-size 64k --bs-split 4k/50:8k" =>
            "--bs-split and --files cannot be combined";
        "--layout shared --interleave --bs-split 4k/50:8k" =>
            "--interleave and --bs-split cannot be combined";
        "--bs-split 4k/50:8k/40" => "--bs-split: the percentages add up to 90";
        "--direct --bs-split 4k/50:5000/50" => "--direct needs --bs-split";
        "--verify --bs-split 4k/50:6k/50" =>
            "--verify needs the sizes of --bs-split to be multiples of";
        "--verify --bs-range 256-4k" => "--verify needs --bs-range of at least 512";
        "--random-distribution zipf:1.2" => "--random-distribution needs --rw with randread";
        "--random-distribution zipf:1.2 --rw randread --files 3 --file-size 4k" =>
            "--random-distribution and --files cannot be combined";
        "--ramp 1" => "--ramp needs --time";
        "--ramp 1 --time 1 --files 1 --file-size 4k" => "--ramp and --files cannot";
        "--think 1ns --files 1 --file-size 4k" => "--think and --files cannot";
        "--think 0" => "--think must be";
        "--verify-threads 1" => "--verify-threads needs --verify";
        "--verify --verify-threads 65" => "--verify-threads 65 is more than 64";
        "--pin --verify --verify-threads 1" => "--verify-threads and --pin cannot";
        "--verify --verify-threads 1 --files 2 --file-size 4k" =>
            "--verify-threads and --files cannot";
        "--verify --verify-threads 1 --engine io_uring --depth 4" =>
            "--verify-threads needs --depth 1 and one of";
        "--verify --verify-threads 1 --engine mmap" =>
            "--verify-threads needs --depth 1 and one of";
        "--verify --compress 50" => "--verify and --compress cannot be combined";
        "--verify --dedupe 50" => "--verify and --dedupe cannot be combined";
        "--verify --no-refill" => "--verify and --no-refill cannot be combined";
        "--no-refill --dedupe 50" => "--no-refill and --dedupe cannot be combined";
        "--direct --engine mmap" => "--direct and --engine mmap cannot be combined";
        "--engine falloc" => "--engine falloc moves no data";
    }
    let check = |expect: &str, change: fn(&mut spec::Io)| {
        check_error(io(|_, i| change(i), &twelve()), expect);
    };
    check("--compress 101 is not a percentage", |i| {
        i.compress = Some(101)
    });
    check("--dedupe 101 is not a percentage", |i| i.dedupe = Some(101));
}

#[test]
fn a_steady_rate_is_judged_over_windows_of_whole_samples() {
    let steady = |[time, duration, every, ramp]: [u64; 4]| {
        format!(
            "--steadystate iops:2% --time {time} --ss-dur {duration} --ss-interval {every} --ss-ramp {ramp}"
        )
    };
    refused! { check_io:
        "--steadystate iops:2% --ss-dur 4 --ss-interval 1" => "--steadystate needs --time";
        "--steadystate iops:2% --time 9 --ss-interval 1" => "--steadystate needs --ss-dur";
        "--time 9 --ss-interval 1 --ss-ramp 0" => "--ss-ramp needs --steadystate";
        &(steady([900, 400, 100, 0]) + " --interval 60") => "not a multiple of --interval 60";
        &steady([9, 4, 3, 0]) => "--ss-dur 4.00 s is not 2 to 100000 times --ss-interval 3.00 s";
        &steady([9, 4, 4, 0]) => "--ss-dur 4.00 s is not 2 to";
        &steady([9, 4, 1, 6]) => "no window would be complete";
    }
}

#[test]
fn an_interval_is_from_10_ms_to_a_minute() {
    let expect = "--interval 9.00 ms is not in the range 10.0 ms to 60.0 s";
    check_io(&[("--interval 9ms", expect)]);
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
    refused! { check_meta:
        "--no-dir --layout shared" => "--layout shared needs a directory";
        "--no-dir --shift 4" => "--shift needs a directory";
        "--no-dir --keep" => "--keep needs --dir";
    }
    check_io(&[(
        "--no-dir --layout shared",
        "--layout shared needs a directory",
    )]);
    let (common, work) = typed("--no-dir --layout shared");
    assert!(facts(&[0, 0]).plan(common, Workload::Meta(work)).is_ok());
}

#[test]
fn a_journal_of_acknowledged_writes_needs_stamps_writes_and_data_that_stays() {
    let asks = |io: &mut spec::Io| (io.verify, io.ack_journal) = (true, Some("/var/acks".into()));
    let plan = io(|_, i| asks(i), &twelve()).expect("valid");
    assert!(plan.keep);
    let is_journal = |s: &Setting| (s.name, s.text.as_str()) == ("ack-journal", "/var/acks");
    assert!(plan.describe().iter().any(is_journal));
    refused! { check_io:
        "--ack-journal /var/acks" => "--ack-journal needs --verify";
        "--verify --ack-journal /var/acks --rw randread" =>
            "--ack-journal needs a phase that writes";
        "--no-dir --verify --ack-journal /var/acks" => "--ack-journal needs --dir";
        "--verify --ack-journal /" => "--ack-journal / is not a file name";
    }
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
        let (_, meta) = meta_plan(|c, m| {
            c.threads = Some(2);
            m.phases = Some(vec![PhaseKind::FileRemove]);
            change(m);
        });
        meta
    };
    let shown = |meta: &MetaPlan| -> Vec<PhaseKind> {
        let shown = meta.phases.iter().filter(|p| p.showing == Showing::Phase);
        shown.map(|phase| phase.kind).collect()
    };
    let phase = |meta: &MetaPlan, kind| {
        let mut phases = meta.phases.iter();
        phases.find(|p| p.kind == kind).cloned().expect("the phase")
    };
    let second = Some(Nanos(1_000_000_000));
    let rated = of(&|m| (m.time, m.rate) = (second, Some(2400.0)));
    assert_eq!(shown(&rated), [PhaseKind::FileRemove]);
    // 100 for each of 24 workers in a second, and one in reserve.
    assert_eq!(rated.items_per_rank, 202);
    let removal = phase(&rated, PhaseKind::FileRemove);
    assert_eq!(removal.deadline, second);
    assert_eq!(removal.open_loop.map(|open| open.rate), Some(2400.0));
    let creation = phase(&rated, PhaseKind::FileCreate);
    assert_eq!((creation.deadline, creation.open_loop), (None, None));
    // The number is unknown: items are created for the same time.
    let closed = of(&|m| m.time = second);
    assert!(closed.open_ended());
    assert_eq!(phase(&closed, PhaseKind::FileCreate).deadline, second);
    // Repeatable phases need no more items than requested.
    let stat = of(&|m| {
        m.phases = Some(vec![PhaseKind::FileStat]);
        (m.time, m.items, m.depth) = (second, Some(7), Some(0));
    });
    assert_eq!(stat.items_per_rank, 7);
}

#[test]
fn impossible_times_and_rates_are_refused() {
    refused! { check_meta:
        "--rate 0" => "--rate 0";
        "--time 0" => "--time must";
        "--arrival poisson" => "--arrival needs";
        "--time 1 --stonewall 1" => "--stonewall";
        "--time 1 --depth 2" => "--depth 2";
        "--time 1 --phases tree-remove" => "tree-remove";
        "--threads 5 --rate 9 --items 4 --depth 0 --phases file-stat" => "at least 5 items";
    }
}

/// Options `--engine` and `--iodepth`.
fn flight(engine: &str, depth: u32) -> spec::InFlight {
    spec::InFlight {
        engine: (!engine.is_empty()).then(|| engine.to_owned()),
        depth: (depth != 1).then_some(depth),
    }
}

#[test]
fn a_run_by_time_names_the_default_phases_that_it_leaves_out() {
    let left_out = |change: &dyn Fn(&mut spec::Meta)| {
        let (plan, _) = meta_plan(|_, m| change(m));
        let row = plan.describe().into_iter();
        row.rev()
            .find(|row| row.name == "left-out")
            .map(|row| row.text)
    };
    let timed = |change: fn(&mut spec::Meta)| {
        left_out(&|m| {
            m.time = Some(Nanos::SECOND);
            change(m);
        })
    };
    let trees = Some("tree-create,tree-remove".to_owned());
    let all = Some("tree-create,dir-list,tree-remove".to_owned());
    assert_eq!(timed(|_| ()), all);
    assert_eq!(left_out(&|m| m.rate = Some(100.0)), all);
    assert_eq!(timed(|m| m.files_only = true), trees);
    assert_eq!(timed(|m| m.in_flight = flight("io_uring", 8)), trees);
    assert_eq!(timed(|m| m.phases = Some(vec![PhaseKind::FileStat])), None);
    assert_eq!(left_out(&|_| ()), None);
}

#[test]
fn names_in_flight_are_a_matter_of_the_ring_and_leave_out_what_it_does_not_perform() {
    let planned = |engine: &str, depth| {
        let (plan, meta) = meta_plan(|_, m| m.in_flight = flight(engine, depth));
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
        let said = (says(&rows, "engine"), says(&rows, "iodepth"));
        assert_eq!(said, (None, None));
    }
    let (plan, _) = meta_plan(|_, m| m.in_flight = flight("io_uring", 8));
    let note = "--engine io_uring does not perform dir-list: it is left out";
    assert_eq!(plan.notes, [note]);
    for depth in [1, 32, 4096] {
        let (plan, rows) = planned("io_uring", depth);
        assert_eq!(plan.in_flight, Some(depth));
        let by_default = plan.runs(PhaseKind::DirList);
        assert!(!by_default, "left out of what is run by default");
        assert!(plan.runs(PhaseKind::FileRename));
        assert_eq!(says(&rows, "engine").as_deref(), Some("io_uring"));
        assert_eq!(says(&rows, "iodepth"), Some(depth.to_string()));
        let phases = says(&rows, "phases");
        assert_eq!(phases, None, "as many as there are by default");
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
    each! { check:
        "io_uring" => 0 => &[] => "--iodepth must be at least 1";
        "io_uring" => 4097 => &[] =>
            "--iodepth 4097 is more than 4096, the most operations that a worker can have in flight";
        "" => 2 => &[] => "--iodepth 2 needs --engine io_uring: system calls are made one at a time";
        "sync" => 2 => &[] =>
            "--iodepth 2 needs --engine io_uring: system calls are made one at a time";
        "psync" => 1 => &[] => "--engine psync is not one of sync, io_uring";
    }
    for (kind, name) in [
        (DirList, "dir-list"),
        (FileChmod, "file-chmod"),
        (FileMknod, "file-mknod"),
        (FileReadlink, "file-readlink"),
        (FileRemovexattr, "file-removexattr"),
        (FileStatfs, "file-statfs"),
    ] {
        let expect = format!("--engine io_uring does not perform {name}: use --engine sync");
        check("io_uring", 4, &[kind], &expect);
    }
}
