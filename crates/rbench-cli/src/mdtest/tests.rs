use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rbench_core::{Bytes, Nanos};
use rbench_plan::meta::{Backend, Packet};
use rbench_plan::spec::OnError;

use super::*;
use crate::letters::tests::{self as letters_tests, Sample, check_all, names_of};
use crate::letters::{Line as _, Takes};
use crate::live::ServeAt;
use crate::tests::{check_refused_by, words};
use crate::{Communicator, Print, Progress, help_texts, parse};

/// Reads a command line the way the program does.
fn run(words: &[OsString]) -> Result<Invocation, Stop> {
    let mut argv = self::words("/usr/bin/rbench mdtest");
    argv.extend_from_slice(words);
    parse(&argv, None)
}

fn check(text: &str, change: impl FnOnce(&mut Line)) {
    letters_tests::check(text, change);
}

fn check_misuse(text: &str, expect: &[&str]) {
    check_refused_by("mdtest", text, run(&words(text)), expect);
}

const SAMPLES: &[Sample<Line>] = samples! {
    "-d /mnt/a@b": spec.dirs = vec!["/mnt/a".into(), "b".into()];
    "-n 7": spec.items = Some(7);
    "-I 8k": spec.items_per_dir = Some(8192);
    "-b 3": spec.branch = Some(3);
    "-z 2": spec.depth = Some(2);
    "-L": spec.leaf_only = true;
    "-u": spec.unique_dir = true;
    "-F": spec.files_only = true;
    "-D": spec.dirs_only = true;
    "-S": spec.shared = true;
    "-c": spec.collective = true;
    "-C": spec.create = true;
    "-T": spec.stat = true;
    "-E": spec.read = true;
    "-r": spec.remove = true;
    "-U": spec.rename = true;
    "-k": spec.mknod = true;
    "-w 1k": spec.write_bytes = Some(Bytes(1024));
    "-e 2M": spec.read_bytes = Some(Bytes(2 << 20));
    "-y": spec.fsync = true;
    "-X": spec.verify_read = true;
    "--verify-read": spec.verify_read = true;
    "--verify-write": spec.verify_write = true;
    "-G 42": spec.data_seed = Some(42);
    "--dataPacketType i": spec.packet = Some(Packet::Incompressible);
    "-i 3": spec.iterations = Some(3);
    "-R": spec.random = true;
    "-R17": spec.random = true, spec.seed = Some(17);
    "--random-seed 18": spec.random = true, spec.seed = Some(18);
    "-W 2": spec.stonewall = Some(Nanos(2_000_000_000));
    "-x status": spec.status_file = Some("status".into());
    "-p 0.5": spec.pause = Some(Nanos(500_000_000));
    "-t";
    "-Y": spec.sync = true;
    "-B": spec.no_barriers = true;
    "--run-cmd-before-phase date": spec.before = Some("date".to_owned());
    "--run-cmd-after-phase true": spec.after = Some("true".to_owned());
    "-N 1": spec.stride = Some(1);
    "-f 2": spec.first = Some(2);
    "-l 12": spec.last = Some(12);
    "-s 5": spec.task_stride = Some(5);
    "-a dummy": spec.backend = Backend::Dummy;
    "--engine io_uring": spec.in_flight.engine = Some("io_uring".into());
    "--iodepth 32": spec.in_flight.depth = Some(32);
    "--posix.odirect": spec.direct = true;
    "-v": view.verbosity = 1;
    "-V 3": view.verbosity = 3;
    "-Z": view.print = Print::Times;
    "-P": view.print = Print::Both;
    "--print-all-procs": view.all_ranks = true;
    "--showRankStatistics": view.rank_statistics = true;
    "--saveRankPerformanceDetails r.csv": spec.save_ranks = Some("r.csv".into());
    "--savePerOpDataCSV ops": spec.save_operations = Some("ops".into());
    "--warningAsErrors": spec.warnings_are_errors = true;
    "--rbench-report": view.report = true;
    "--out r.json": shared.output.out = Some("r.json".into());
    "--label a=b=c": shared.output.labels = vec![("a".to_owned(), "b=c".to_owned())];
    "--progress plain": shared.output.progress = Progress::Plain;
    "--serve 127.0.0.1:9180":
        shared.output.serve.at = Some(ServeAt::Tcp("127.0.0.1:9180".parse().expect("an address")));
    "--serve-remote": shared.output.serve.remote = true;
    "--quiet": shared.output.quiet = true;
    "--no-round-trip": shared.output.no_round_trip = true;
    "--client-cache 2g": shared.output.client_cache = Some(Bytes(2 << 30));
    "--event failover=SIGUSR1":
        shared.output.events = vec!["failover=SIGUSR1".parse().expect("an event")];
    "--watch mfsmount":
        shared.output.watch = Some(rbench_core::client::Watch::Name("mfsmount".to_owned()));
    "--overwrite": shared.output.overwrite = true;
    "--private-dirs": shared.common.leave.private_dirs = true;
    "--overfill": shared.common.leave.overfill = true;
    "--untried": shared.common.leave.untried = true;
    "--drop-caches": shared.common.drop_caches = true;
    "--on-error stop": shared.common.limits.on_error = Some(OnError::Stop);
    "--max-errors 7": shared.common.limits.max_errors = Some(7);
    "--op-timeout 2m": shared.common.limits.op_timeout = Some(Nanos(120_000_000_000));
    "--on-dead-mount continue": shared.common.limits.on_dead_mount = Some(OnError::Continue);
    "--communicator solo": shared.output.start.communicator = Communicator::Solo;
    "--start-timeout 30s": shared.output.start.timeout = Some(Nanos(30_000_000_000));
};

#[test]
fn each_option_changes_what_it_stands_for_and_nothing_else() {
    check_all::<Line>(SAMPLES);
}

#[test]
fn no_option_is_without_a_sample_and_no_field_without_an_option() {
    let first = |text: &&str| text.split(' ').next().unwrap_or("").to_owned();
    let sampled: Vec<String> = SAMPLES.iter().map(|(text, _)| first(text)).collect();
    for option in Line::TABLE
        .options()
        .filter(|o| !matches!(o.takes, Takes::Text(_)))
    {
        for name in names_of(option) {
            assert!(sampled.contains(&name), "{name} has no sample");
        }
    }
    let everything: Vec<&str> = SAMPLES.iter().map(|(text, _)| *text).collect();
    let all = letters::read::<Line>(&words(&everything.join(" "))).expect("all options together");
    let shown = format!("{:?} {:?}", all.spec, all.view);
    for untouched in ["None", "false", "[]", "Posix", "Rates"] {
        assert!(!shown.contains(untouched), "{untouched} in {shown}");
    }
}

#[test]
fn every_option_is_in_the_help_and_once_in_the_table() {
    let texts = help_texts();
    let (_, help) = texts
        .iter()
        .find(|(name, _)| name == "mdtest")
        .expect("the help of mdtest");
    let mut seen = Vec::new();
    for option in Line::TABLE.options() {
        let letter = option.letter.map(|letter| format!("  -{letter}"));
        let long = option.long.map(|long| format!("--{long}"));
        for name in letter.into_iter().chain(long) {
            let there = help.lines().any(|line| {
                let rest = line.split_once(&name).map(|(_, rest)| rest);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', ',', '[']))
            });
            assert!(there, "{name} is not in the help");
            assert!(!seen.contains(&name), "{name} is twice in the table");
            seen.push(name);
        }
        assert!(help.contains(option.help), "{}", option.help);
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn help_is_the_same_however_it_is_asked_for() {
    let asked = |text: &str| parse(&words(text), None).expect_err(text);
    let stop = asked("rbench mdtest --help");
    assert_eq!(stop.text, letters::help::<Line>());
    assert_eq!(stop.code, 0);
    assert_eq!(asked("rbench mdtest -uFh"), stop);
    assert_eq!(asked("rbench mdtest -n 5 -h --nonsense"), stop);
    assert_eq!(asked("rbench help mdtest"), stop);
    assert_eq!(asked("rbench mdtest --version"), asked("rbench --version"));
    let listed = asked("rbench --help").text;
    let mut lines = listed.lines();
    let line = lines.find(|l| l.trim_start().starts_with("mdtest "));
    let about = line.is_some_and(|l| l.contains("mdtest's command line"));
    assert!(about, "{listed}");
}

#[test]
fn published_command_lines_are_read_as_their_authors_meant_them() {
    check_all::<Line>(samples! {
        "-b 3 -z 1 -I 100 -u":
            spec.branch = Some(3), spec.depth = Some(1), spec.items_per_dir = Some(100),
            spec.unique_dir = true;
        "-F -w 102400 -I 1000 -z 0 -u":
            spec.files_only = true, spec.write_bytes = Some(Bytes(102_400)),
            spec.items_per_dir = Some(1000), spec.depth = Some(0), spec.unique_dir = true;
        "-n 5000 -u -z 2 -i 3":
            spec.items = Some(5000), spec.unique_dir = true, spec.depth = Some(2),
            spec.iterations = Some(3);
        "-n 1000 -w 1024 -e 1024 -y -u -i 3 -N 1 -F -R -d /mnt/cfs":
            spec.items = Some(1000), spec.write_bytes = Some(Bytes(1024)),
            spec.read_bytes = Some(Bytes(1024)), spec.fsync = true, spec.unique_dir = true,
            spec.iterations = Some(3), spec.stride = Some(1), spec.files_only = true,
            spec.random = true, spec.dirs = vec!["/mnt/cfs".into()];
    });
}

#[test]
fn values_attached_to_a_letter_set_that_letter_alone() {
    check_all::<Line>(samples! {
        "-w1k": spec.write_bytes = Some(Bytes(1024));
        "-Fun100": spec.files_only = true, spec.unique_dir = true, spec.items = Some(100);
        "-FuRn=2k":
            spec.files_only = true, spec.unique_dir = true, spec.random = true,
            spec.items = Some(2048);
        "-FR5 -vvv -vV0": spec.files_only = true, spec.random = true, spec.seed = Some(5);
        "-dFun -x=-F -d=-u@":
            spec.status_file = Some("-F".into()), spec.dirs = vec!["-u".into(), "".into()];
    });
}

#[test]
fn the_last_of_an_option_counts_but_labels_add_up() {
    check_all::<Line>(samples! {
        "-n 1 -n2 -d a -d b -a DUMMY -aposix": spec.items = Some(2), spec.dirs = vec!["b".into()];
        "-P -Z": view.print = Print::Both;
    });
    check("--label a=1 --label=a=2 --label b=", |l| {
        let label = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        l.shared.output.labels = vec![label("a", "1"), label("a", "2"), label("b", "")];
    });
}

#[test]
fn packet_types_go_by_letter_or_word() {
    let types = [
        ("t", "timestamp", Packet::Timestamp),
        ("o", "offset", Packet::Offset),
        ("i", "Incompressible", Packet::Incompressible),
        ("r", "random", Packet::Random),
    ];
    for (letter, word, packet) in types {
        for text in [letter, word] {
            check(&format!("--dataPacketType={text}"), |l| {
                l.spec.packet = Some(packet);
            });
        }
    }
}

#[test]
fn misuse_names_the_option_and_the_word() {
    check_misuse("-n", &["'-n <N>'", "none was supplied"]);
    check_misuse("-Fun", &["'-n <N>'"]);
    check_misuse("-x -F -u", &["'-x <FILE>'", "tip: ", "'-x=-F'"]);
    check_misuse("--out", &["'--out <FILE>'"]);
    check_misuse("--out=", &["'--out <FILE>'", "must not be empty"]);
    check_misuse("-n many", &["'many' for '-n <N>'", "not a whole number"]);
    check_misuse("-n -5", &["'-5' for '-n <N>'"]);
    check_misuse("-n=", &["'' for '-n <N>'"]);
    check_misuse("-N-1", &["'-1' for '-N <N>'"]);
    check_misuse("-i 5g", &["'5g' for '-i <N>'", "too large"]);
    check_misuse("-w 1.5k", &["'1.5k' for '-w <SIZE>'", "write 1536"]);
    check_misuse("-W soon", &["'soon' for '-W <TIME>'", "not a time"]);
    check_misuse("-R7x", &["'7x' for '-R <N>'"]);
    check_misuse("--dataPacketType x", &["'x'", "t, o, i, r"]);
    check_misuse("--progress loud", &["'loud'", "auto, plain, live, off"]);
    check_misuse("--communicator tcp", &["'tcp'", "auto, solo, mpi"]);
    check_misuse("--label nonsense", &["key=value"]);
    check_misuse("-u=1", &["'1' for '-u'", "takes none"]);
    check_misuse("--quiet=yes", &["'yes' for '--quiet'"]);
    check_misuse("-R 17", &["unexpected word '17'"]);
    check_misuse("out -u", &["unexpected word 'out'"]);
    check_misuse("-- -u", &["unexpected word '--'"]);
    check_misuse("-u --", &["unexpected word '--'"]);
    check_misuse("-u -", &["unexpected word '-'"]);
}

#[test]
fn unknown_options_are_named_with_what_was_probably_meant() {
    each! { check_misuse:
        "--posix.odirct" =>
            &["'--posix.odirct'", "tip: a similar option exists: '--posix.odirect'"];
        "--saveRankPerformanceDetail=f" => &["Details'"];
        "-q" => &["unexpected option '-q' found\n\nFor"];
        "-K" => &["'-K'", "'-k'"];
        "-Fjn5" => &["unexpected option '-j' found in '-Fjn5'"];
        "-out" => &["'-o'", "'--out'"];
        "-é" => &["unexpected option '-é' found\n"];
        "-Fé5" => &["'-é' found in '-Fé5'"];
    }
}

#[test]
fn what_this_build_cannot_do_is_refused_by_name() {
    for option in ["--allocateBufferOnGPU=1", "--gpuMemoryFlags", "--gpuDirect"] {
        check_misuse(option, &["is not supported", "no GPU buffers"]);
    }
    for option in ["-g", "-Fg"] {
        check_misuse(option, &["'-g' is not supported", "Lustre's layout"]);
    }
    check_misuse(
        "--posix.lustre.stripecount=4",
        &["'--posix.lustre.stripecount'", "Lustre"],
    );
    check_misuse("--posix.gpfs.releasetoken", &["releasetoken'", "GPFS"]);
    check_misuse("--posix.beegfs.NumTargets 4", &["NumTargets'", "BeeGFS"]);
    check_misuse("-a HDFS", &["'HDFS' for '-a <BACKEND>'", "through POSIX"]);
}

#[test]
fn iterations_and_seed_are_common_to_all_workloads_and_rbench_dir_stands_in_for_d() {
    let read = |text: &str, env: &str| {
        let argv = words(text);
        match parse(&argv, Some(OsStr::new(env))) {
            Ok(Invocation::Run(spec, output)) => match spec.workload {
                Workload::Mdtest(mdtest) => (spec.common, *mdtest, output),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    };
    let (common, mdtest, output) = read("rbench mdtest -R9 -i4 --quiet --progress plain", "/m@t");
    let expect = spec::Common {
        seed: Some(9),
        iterations: Some(4),
        ..spec::Common::default()
    };
    assert_eq!(common, expect);
    assert_eq!(mdtest.dirs, ["/m@t"].map(PathBuf::from));
    let view = Some(MdtestView::default());
    assert_eq!((output.progress, output.mdtest), (Progress::Off, view));
    let (common, mdtest, _) = read("rbench mdtest -d /a", "/mnt");
    assert_eq!(common, spec::Common::default());
    assert_eq!(mdtest.dirs, ["/a"].map(PathBuf::from));
    let empty = parse(&words("rbench mdtest"), Some(OsStr::new(""))).expect_err("no directory");
    assert_eq!(empty.code, 2, "{empty:?}");
    assert!(read("rbench mdtest -d /a", "").1.dirs == ["/a"].map(PathBuf::from));
}

#[test]
fn the_communicator_is_known_before_the_rest() {
    let check = |text: &str, expect| {
        let communicator = crate::start(&words(&format!("rbench mdtest {text}"))).communicator;
        assert_eq!(communicator, expect, "{text}");
    };
    check("-u", Communicator::Auto);
    check("-Fn5 --communicator=mpi", Communicator::Mpi);
    check("--communicator solo -j", Communicator::Auto);
}

#[test]
fn names_of_files_may_be_any_bytes() {
    let odd = OsString::from_vec(b"/mnt/\xff@b\xfe".to_vec());
    let read = letters::read::<Line>(&["-d".into(), odd.clone()]).expect("any bytes");
    let expect = [&b"/mnt/\xff"[..], b"b\xfe"].map(|name| PathBuf::from(OsStr::from_bytes(name)));
    assert_eq!(read.spec.dirs, expect);
    let stop = letters::read::<Line>(&["-n".into(), odd]).expect_err("no number");
    assert!(stop.text.contains("not UTF-8"), "{}", stop.text);
}

/// Words that look like options, and words that do not.
fn any_word() -> impl Strategy<Value = OsString> {
    let names: Vec<String> = Line::TABLE.options().flat_map(names_of).collect();
    prop_oneof![
        vec(any::<u8>(), 0..12).prop_map(OsString::from_vec),
        (select(names), "[=a-zA-Z0-9é@.-]{0,6}").prop_map(|(name, tail)| (name + &tail).into()),
        "-{0,3}[a-zA-Z0-9=@.-]{0,8}".prop_map(OsString::from),
        "[0-9]{0,22}[kmgtpKMGTP]?".prop_map(OsString::from),
    ]
}

/// Letters without a value, except -R, whose value could be mistaken for letters.
fn flags() -> Vec<char> {
    Line::TABLE
        .options()
        .filter(|o| matches!(o.takes, Takes::Nothing(_) | Takes::Digits(..)))
        .filter_map(|option| option.letter)
        .collect()
}

fn letters_with_values() -> Vec<char> {
    Line::TABLE
        .options()
        .filter(|option| option.takes.needs_value())
        .filter_map(|option| option.letter)
        .collect()
}

proptest! {
    #[test]
    fn no_words_make_the_reader_panic_and_each_one_reaches_it(words in vec(any_word(), 0..6)) {
        let read = run(&words);
        if let Err(stop) = &read {
            prop_assert!(!stop.text.is_empty());
        }
        prop_assert_eq!(read, super::read(&words, None));
    }

    #[test]
    fn every_spelling_of_an_option_says_the_same(
        flags in vec(select(flags()), 0..6),
        letter in select(letters_with_values()),
        value in prop_oneof!["[0-9]{1,4}[kmgtpKMGTP]?", "[a-zA-Z0-9@./,]{1,12}"],
    ) {
        let mut apart: Vec<String> = flags.iter().map(|flag| format!("-{flag}")).collect();
        apart.extend([format!("-{letter}"), value.clone()]);
        let bundle: String = flags.iter().collect();
        let apart = run(&words(&apart.join(" ")));
        for spelling in [
            format!("-{bundle}{letter}{value}"),
            format!("-{bundle}{letter}={value}"),
            format!("-{bundle}{letter} {value}"),
        ] {
            prop_assert_eq!(&run(&words(&spelling)), &apart, "{}", spelling);
        }
    }

    #[test]
    fn a_long_option_takes_its_value_attached_or_behind(
        option in select(
            Line::TABLE.options()
                .filter(|option| option.takes.needs_value())
                .filter_map(|option| option.long)
                .collect::<Vec<_>>()
        ),
        value in "[a-z0-9][a-z0-9=]{0,8}",
    ) {
        prop_assert_eq!(
            run(&words(&format!("--{option}={value}"))),
            run(&words(&format!("--{option} {value}")))
        );
    }

    #[test]
    fn numbers_mean_what_their_suffix_says(n in 0_u64..1 << 14, power in 0_u32..6) {
        let text = format!("{n}{}", ["", "k", "M", "g", "T", "p"][power as usize]);
        let expect = n << (10 * power);
        for (letter, field) in [
            ('n', (|l| l.spec.items) as fn(&Line) -> Option<u64>),
            ('I', |l| l.spec.items_per_dir),
            ('w', |l| l.spec.write_bytes.map(|b| b.0)),
            ('e', |l| l.spec.read_bytes.map(|b| b.0)),
        ] {
            let read = letters::read::<Line>(&words(&format!("-{letter}{text}")));
            prop_assert_eq!(read.map(|l| field(&l)), Ok(Some(expect)));
        }
    }
}
