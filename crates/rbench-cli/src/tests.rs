mod docs;

use super::*;
use rbench_core::{Bytes, Nanos};
use rbench_plan::io::{FsyncRule, Rw};
use rbench_plan::jobs::Distribution;
use rbench_plan::meta::PhaseKind;
use rbench_plan::spec::Workload;

/// Words, separated by blanks.
pub fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn read(line: &str) -> Result<Invocation, Stop> {
    parse(&words(line), None)
}

fn meta(line: &str) -> rbench_plan::spec::Meta {
    match workload(line) {
        Workload::Meta(meta) => meta,
        other => panic!("{other:?}"),
    }
}

fn io(line: &str) -> rbench_plan::spec::Io {
    match workload(line) {
        Workload::Io(io) => *io,
        other => panic!("{other:?}"),
    }
}

fn workload(line: &str) -> Workload {
    match read(line) {
        Ok(Invocation::Run(spec, _)) => spec.workload,
        other => panic!("{other:?}"),
    }
}

/// Checks that a command line was refused as misuse, with a text that has these parts.
pub fn check_refused<T: std::fmt::Debug>(line: &str, got: Result<T, Stop>, parts: &[&str]) -> Stop {
    let stop = got.expect_err(line);
    assert_eq!(stop.code, 2, "{line}");
    for part in parts {
        let text = &stop.text;
        assert!(text.contains(part), "'{text}' does not contain '{part}'");
    }
    stop
}

/// The same of a command whose messages name it.
pub fn check_refused_by<T: std::fmt::Debug>(
    command: &str,
    line: &str,
    got: Result<T, Stop>,
    parts: &[&str],
) {
    let text = check_refused(line, got, parts).text;
    let more = format!("\n\nFor more information, try 'rbench {command} --help'.\n");
    assert!(
        text.starts_with("error: ") && text.ends_with(&more),
        "{text}"
    );
}

fn check_misuse(line: &str, expect: &str) {
    check_refused(line, read(line), &[expect]);
}

#[test]
fn counts_take_thousands_and_millions() {
    assert_eq!(meta("rbench meta --items 1k").items, Some(1000));
    let ranks = meta("rbench meta --items-per-rank 2M");
    assert_eq!(ranks.items_per_rank, Some(2_000_000));
    assert_eq!(meta("rbench meta --items 1.5k").items, Some(1500));
    assert_eq!(meta("rbench meta --rate 2.5k").rate, Some(2500.0));
    assert_eq!(io("rbench io --rate 5k").rate, Some(5000.0));
    let files = io("rbench io --files 10k --file-size 4k").files;
    assert_eq!(files, Some(10_000));
    for wrong in ["1.5", "k", "-1k", "1e3", "0.0001k", "5kk", "5x", ""] {
        let line = format!("rbench meta --items={wrong}");
        check_misuse(
            &line,
            "is not a whole number (k and m are decimal: 20k = 20000)",
        );
    }
    each! { check_misuse:
        "rbench meta --items 99999999999999999999" => "is too large";
        "rbench meta --workers 5g" => "is too large";
        "rbench io --rate 5x" => "is not a number of operations per second";
    }
}

#[test]
fn options_of_fio_and_mdtest_are_told_what_they_are_called_here() {
    let tip = "fio's --numjobs is --threads here";
    check_misuse("rbench io --numjobs=4", tip);
    check_misuse("rbench io --numjobs 4", tip);
    assert_eq!(io("rbench io --iodepth 4"), io("rbench io --depth 4"));
    let tip = "issues one call at a time per thread";
    check_misuse("rbench ops --engine io_uring", tip);
    check_misuse("rbench ops --iodepth 4", tip);
    check_misuse("rbench meta -n 4", "mdtest's -n is --items-per-rank here");
    let other = read("rbench meta --numjobs 4").expect_err("no such option");
    assert!(!other.text.contains(" here;"), "{}", other.text);
}

#[test]
fn a_bare_command_asks_for_nothing_but_defaults() {
    assert_eq!(meta("rbench meta"), rbench_plan::spec::Meta::default());
    assert_eq!(io("rbench io"), rbench_plan::spec::Io::default());
}

#[test]
fn options_keep_what_was_typed() {
    let m = meta(
        "rbench meta --branch 2 --depth=0 --write 100k --phases file-create,file-stat --stonewall 30",
    );
    assert_eq!((m.branch, m.depth), (Some(2), Some(0)));
    assert_eq!(m.write, Some(Bytes(102_400)));
    let phases = vec![PhaseKind::FileCreate, PhaseKind::FileStat];
    assert_eq!(m.phases, Some(phases));
    assert_eq!(m.stonewall, Some(Nanos(30_000_000_000)));
    let i = io("rbench io --bs 4M --rw randread,randwrite --fsync every=8 --rate 1000.5 --time 1m");
    assert_eq!((i.block, i.rate), (Some(Bytes(4 << 20)), Some(1000.5)));
    assert_eq!(i.rw, Some(vec![Rw::RandRead, Rw::RandWrite]));
    assert_eq!(i.fsync, Some(FsyncRule::Every(8)));
}

#[test]
fn what_native_options_share_with_fio_is_read_alike_but_for_native_sizes() {
    let i = io(
        "rbench io --bs-split 4k/60:8KiB/ --random-distribution zipf:1.2 --compress 30 --dedupe 20",
    );
    assert_eq!(i.block_split, Some(vec![(4096, Some(60)), (8192, None)]));
    assert_eq!(i.distribution, Some(Distribution::Zipf(1.2)));
    assert_eq!((i.compress, i.dedupe), (Some(30), Some(20)));
    assert!(!i.no_refill && io("rbench io --no-refill").no_refill);
    let i = io("rbench io --bs-range 4ki-64k --random-distribution zoned:60/10:40/90");
    assert_eq!(i.block_range, Some((4096, 65536)));
    let zones = Distribution::Zoned(vec![(60.0, 10.0), (40.0, 90.0)]);
    assert_eq!(i.distribution, Some(zones));
}

#[test]
fn ops_takes_rows_by_their_names_and_a_number_or_a_time() {
    let ops = |line: &str| match workload(line) {
        Workload::Ops(ops) => ops,
        other => panic!("{other:?}"),
    };
    assert_eq!(ops("rbench ops"), rbench_plan::spec::Ops::default());
    let some = ops("rbench ops --only rename,mkdir --ops 20");
    let names: Vec<&str> = some.only.iter().flatten().map(|row| row.name).collect();
    assert_eq!(names, ["rename", "mkdir"]);
    assert_eq!(some.operations, Some(20));
    assert_eq!(ops("rbench ops --time 2").time, Some(Nanos(2_000_000_000)));
}

#[test]
fn verify_takes_journals_and_where_the_data_lies_now() {
    let i = io("rbench io --verify --ack-journal /var/acks");
    assert_eq!((i.verify, i.ack_journal), (true, Some("/var/acks".into())));
    let expect = Verify {
        journals: vec!["a.0.0".into(), "a.0.1".into()],
        dir: Some("/mnt/b".into()),
        format: Format::Json,
    };
    let line = "rbench verify a.0.0 a.0.1 --dir /mnt/b --format json";
    assert_eq!(read(line), Ok(Invocation::Tool(Tool::Verify(expect))));
    check_misuse("rbench verify", "FILE");
}

#[test]
fn rbench_dir_stands_in_for_dir() {
    let read = |line: &str, env: &str| parse(&words(line), Some(env.as_ref()));
    let dir = |line: &str| match read(line, "/mnt/a") {
        Ok(Invocation::Run(spec, _)) => spec.common.dir,
        other => panic!("{other:?}"),
    };
    assert_eq!(dir("rbench io"), Some("/mnt/a".into()));
    let none = "RBENCH_DIR is set but empty";
    check_refused("rbench io", read("rbench io", ""), &[none]);
    assert_eq!(dir("rbench io --dir /b"), Some("/b".into()));
}

#[test]
fn a_path_in_place_of_a_command_asks_for_the_overview() {
    let overview = |line: &str| match read(line) {
        Ok(Invocation::Series(series)) => series.overview.map(|o| (o.dir, o.html)),
        other => panic!("{other:?}"),
    };
    for (line, dir) in [
        ("rbench /mnt/fs", "/mnt/fs"),
        ("rbench .", "."),
        ("rbench ../fs --quiet", "../fs"),
        ("rbench overview fs", "fs"),
    ] {
        assert_eq!(overview(line), Some((dir.into(), None)), "{line}");
    }
    let html = overview("rbench /mnt/fs --html a.html").and_then(|(_, html)| html);
    assert_eq!(html, Some("a.html".into()));
    check_misuse("rbench fs", "fs");
}

#[test]
fn an_empty_name_of_a_directory_is_refused() {
    let check = |command: &str| {
        let mut argv = words(&format!("rbench {command}"));
        argv.push(OsString::new());
        check_refused(command, parse(&argv, None), &["the name is empty"]);
    };
    for command in ["io", "meta", "ops", "nn", "suite smoke", "check"] {
        check(&format!("{command} --dir"));
    }
    for command in ["quick", "probe", "clean", "overview", "find"] {
        check(command);
    }
}

#[test]
fn mistakes_of_form_have_a_tip() {
    each! { check_misuse:
        "rbench io --bs -4k" => "'-4k' is not a size";
        "rbench io --threads -1" => "'-1' for '--threads <N>': -1 is not a number from 0 to";
        "rbench io --threads four" => "not a whole number";
        "rbench io --time -5" => "'-5' is not a time";
        "rbench io --bs --direct" => "'--direct' is not a size";
        "rbench io /mnt/fs" => "--dir /mnt/fs";
        "rbench check /mnt/fs" => "--dir /mnt/fs";
        "rbench probe --dir /mnt/fs" => "rbench probe DIR";
        "rbench quick --dir /mnt/fs" => "rbench quick DIR";
        "rbench clean --dir /mnt/fs" => "rbench clean DIR";
        "rbench io --json" => "use --format json";
        "rbench sweep --over bs=4k io" => "-- io";
        "rbench knee --slo p99=1s meta" => "-- meta";
    }
}

#[test]
fn misuse_names_the_flag_and_ends_with_2() {
    each! { check_misuse:
        "rbench meta --brunch 3" => "--brunch";
        "rbench meta --write 4x" => "--write";
        "rbench meta --phases dance" => "'dance' is not one of tree-create";
        "rbench meta --phases file-stats" => "'file-stats' is not a phase (nearest: file-stat)\n";
        "rbench ops --only dance" => "'dance' is not one of mkdir, mvdir, rmdir,";
        "rbench ops --only mkdr" => "'mkdr' is not a row (nearest: mkdir)\n";
        "rbench io --rw readwrite" => "'readwrite' is not one of write, read";
        "rbench io --fsync sometimes" => "end, never, close, every=N";
        "rbench io --bs-split 4x/60" =>
            "'4x' is not a whole number with k, m, g, t or p (binary: 4k = 4096)";
        "rbench io --bs-range 4k" => "'4k' is not a range";
        "rbench io --compress 101" => "101 is more than 100";
        "rbench io --random-distribution zipf:x" => "'x' is not a number above 0";
        "rbench io --label nonsense" => "key=value";
        "rbench" => "Usage";
        "rbench dance" => "dance";
    }
}

/// A line that wraps could not be copied.
#[test]
fn examples_of_help_fit_their_lines() {
    let starts = ["rbench ", "mpirun ", "strace ", "mkdir ", "("];
    for (name, text) in help_texts() {
        let examples = text.lines().skip_while(|line| !line.starts_with("Example"));
        let mut goes_on = false;
        for line in examples.skip(1).filter(|line| !line.is_empty()) {
            let starts = starts.iter().any(|start| line.trim().starts_with(start));
            assert!(goes_on || starts, "{name}: {line}");
            goes_on = line.ends_with('\\');
        }
    }
}

#[test]
fn help_and_version_are_no_misuse() {
    for line in ["rbench --help", "rbench meta --help", "rbench --version"] {
        assert_eq!(read(line).map_err(|stop| stop.code), Err(0), "{line}");
    }
    for (name, text) in help_texts() {
        let narrow = text.lines().all(|l| l.chars().count() <= 100);
        assert!(narrow, "help of {name} is wider than 100 columns");
    }
}

#[test]
fn quiet_turns_progress_off() {
    let Ok(Invocation::Run(_, output)) = read("rbench meta --quiet --progress plain") else {
        panic!()
    };
    assert_eq!((output.quiet, output.progress), (true, Progress::Off));
}

#[test]
fn testfs_keeps_what_its_faults_are_to_be() {
    let testfs = |line: &str| match read(line) {
        Ok(Invocation::Tool(Tool::Testfs(args))) => args,
        other => panic!("{other:?}"),
    };
    let bare = Testfs {
        mountpoint: "/mnt/t".into(),
        ..Testfs::default()
    };
    assert_eq!(testfs("rbench testfs /mnt/t"), bare);
    let full = testfs(
        "rbench testfs /mnt/t --fault read:flip@p=0.1 --fault write:die@nth=3 --fault-log log \
         --quota 1m --direct-io --power-cut tear --seed 7 --keep-cache --stats-file counted",
    );
    let expect = Testfs {
        faults: vec!["read:flip@p=0.1".to_owned(), "write:die@nth=3".to_owned()],
        fault_log: Some("log".into()),
        quota: Some(Bytes(1 << 20)),
        direct_io: true,
        power_cut: Some(PowerCut::Tear),
        seed: Some(7),
        keep_cache: true,
        stats_file: Some("counted".to_owned()),
        ..bare
    };
    assert_eq!(full, expect);
    let drop = testfs("rbench testfs /mnt/t --power-cut drop");
    assert_eq!(drop.power_cut, Some(PowerCut::Drop));
    check_misuse("rbench testfs /mnt/t --power-cut maybe", "--power-cut");
    for option in ["--quota 1m", "--power-cut drop"] {
        let line = format!("rbench testfs /mnt/t --passthrough /tmp {option}");
        check_misuse(&line, "--passthrough");
    }
}

fn compare(line: &str) -> Compare {
    match read(line) {
        Ok(Invocation::Tool(Tool::Compare(compare))) => compare,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_comparison_keeps_what_was_typed() {
    let bare = compare("rbench compare a.json b.json c.json");
    assert_eq!(bare.files.len(), 3);
    assert_eq!((bare.min_effect, bare.confidence), (None, None));
    let all = compare(
        "rbench compare --base a b --new c d --min-effect 2.5% --confidence 95 --fail-if rate<-5% --fail-if p99>+10% \
         --even-if-different --format md",
    );
    assert_eq!((all.min_effect, all.confidence), (Some(0.025), Some(0.95)));
    assert_eq!(all.fail_if, ["rate<-5%", "p99>+10%"]);
    assert_eq!(all.base, ["a", "b"].map(PathBuf::from));
    assert_eq!(all.new, ["c", "d"].map(PathBuf::from));
    assert!(all.even_if_different);
    assert_eq!(all.format, CompareFormat::Md);
    let published = compare("rbench compare run.json --published juicefs-1.1/tikv");
    assert_eq!(published.published.as_deref(), Some("juicefs-1.1/tikv"));
}

#[test]
fn impossible_comparisons_are_misuse() {
    each! { check_misuse:
        "rbench compare a b --min-effect=-5%" => "--min-effect";
        "rbench compare a b --min-effect 100%" => "below 100%";
        "rbench compare a b --confidence 100%" => "at most 99.9999%";
        "rbench compare a b --confidence x" => "'x' is not a percentage";
        "rbench compare a --base b --published x/y" => "--published";
        "rbench compare --new a --published x/y" => "--published";
        "rbench compare a b --format html" => "html";
    }
}
