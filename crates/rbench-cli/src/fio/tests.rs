use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use rbench_core::Nanos;
use rbench_plan::jobs::{
    Checksum, ContinueOn, Directions, Distribution, Each, Fallocate, FileService, SyncMode,
    VerifyPattern,
};
use rbench_plan::spec::fio::{Check, Extent, Settings};

use super::*;
use crate::tests::{check_refused, check_refused_by, words};
use crate::{Communicator, Progress, parse};

mod against_fio;
mod files;
mod samples;

/// The directory d has one file.
fn listed() -> BTreeMap<PathBuf, Vec<u8>> {
    BTreeMap::from([(listing::question("d"), listing::answer(&["d/a".into()]))])
}

/// Surroundings without files or variables.
fn bare(files: &BTreeMap<PathBuf, Vec<u8>>) -> Surroundings {
    Surroundings {
        files: files.clone(),
        page_size: 4096,
        cpus: 2,
        memory_mib: 1024,
        ..Surroundings::default()
    }
}

fn read_line(words: &[OsString]) -> Result<Line, Stop> {
    line(words, &bare(&BTreeMap::new()))
}

/// The jobs and the output of a command line that was read.
fn fio_of(read: Result<Invocation, Stop>) -> Result<(Fio, Output), Stop> {
    match read? {
        Invocation::Run(spec, output) => match spec.workload {
            Workload::Fio(fio) => Ok((*fio, output)),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// Reads a command line the way the program does.
fn run(text: &str) -> Result<(Fio, Output), Stop> {
    fio_of(read(
        &words(&format!("rbench fio {text}")),
        &bare(&listed()),
    ))
}

/// The jobs of a correct command line.
fn jobs(text: &str) -> Vec<Job> {
    match run(text) {
        Ok((fio, _)) => fio.jobs,
        Err(stop) => panic!("{text}: {}", stop.text),
    }
}

fn two(text: &str) -> (Fio, [Job; 2]) {
    let (fio, _) = run(text).expect("two jobs");
    let both: [Job; 2] = fio.jobs.clone().try_into().expect("two jobs");
    (fio, both)
}

fn view(text: &str) -> FioView {
    match run(text) {
        Ok((_, output)) => output.fio.expect("a view of fio"),
        Err(stop) => panic!("{text}: {}", stop.text),
    }
}

fn check_misuse(text: &str, expect: &[&str]) {
    check_refused_by("fio", text, run(text), expect);
}

#[test]
fn one_dash_or_two_and_a_value_behind_or_attached() {
    let expect = jobs("--name=a --rw=randread --bs=8k --time_based --group_reporting=1");
    for same in [
        "-name=a -rw=randread -bs=8k -time_based -group_reporting=1",
        "--name a --rw randread --bs 8k --time_based --group_reporting=1",
        "-name a -readwrite randread -blocksize 8k -time_based=1 -group_reporting",
    ] {
        let got = jobs(same);
        assert_eq!(got[0].settings, expect[0].settings, "{same}");
    }
}

#[test]
fn the_beginning_of_a_name_is_enough_where_no_other_begins_so() {
    let of = |text: &str| jobs(text)[0].settings.clone();
    assert_eq!(of("--name=a --no").norandommap, Some(true));
    assert!(of("--name=a --refill").plan.buffers.refill);
    assert_eq!(of("--name=a --randrep=0").randrepeat, Some(false));
    let files = of("--name=a --directo=/x").plan.files;
    assert_eq!(files.directory, PathBuf::from("/x"));
    each! { check_misuse:
        "--name=a --s=1m" => &["'--s' is ambiguous", "--size", "--startdelay"];
        "--name=a --read" => &["--readonly", "--readwrite", "--read_iolog"];
    }
}

#[test]
fn a_switch_takes_no_word_behind_it_but_a_value_takes_any() {
    let (fio, _) = run("--name=a --time_based --runtime 5").expect("two options");
    assert_eq!(
        fio.jobs[0].settings.plan.pace.runtime,
        Some(Nanos(5_000_000_000))
    );
    each! { check_misuse:
        "--direct --name=a" => &["'--name=a' for '--direct'", "0, 1"];
        "--name=a --size" => &["'--size=<SIZE|PERCENT%>'", "none was supplied"];
        "--name=a --size=" => &["'--size=<SIZE|PERCENT%>'"];
        "--name" => &["'--name=<NAME>'"];
        "--name=a --readonly=1" => &["it takes none"];
        "--name=a --time_based=yes" => &["'yes'", "0, 1"];
    }
}

#[test]
fn options_before_the_first_name_hold_for_all_jobs() {
    let (fio, [a, b]) = two("--bs=8k --size=1m --name=a --bs=16k --name=b --rw=write");
    let both = |n| Each::same(Some(n));
    assert_eq!((a.settings.bs, b.settings.bs), (both(16_384), both(8192)));
    assert_eq!(a.settings.size, b.settings.size);
    assert_eq!(a.settings.rw, None);
    let typed = |list: &[(&str, &str)]| -> Vec<(String, String)> {
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        list.iter().map(pair).collect()
    };
    assert_eq!(fio.globals, typed(&[("bs", "8k"), ("size", "1m")]));
    assert_eq!(a.options, typed(&[("name", "a"), ("bs", "16k")]));
    assert_eq!(b.options, typed(&[("name", "b"), ("rw", "write")]));
}

#[test]
fn a_name_that_begins_with_global_opens_the_options_of_the_jobs_behind_it() {
    let line = "--name=global --rw=randread --name=a --bs=8k --name=global2 --size=1m --name=b";
    let (_, [a, b]) = two(line);
    assert_eq!((a.name.as_str(), b.name.as_str()), ("a", "b"));
    assert!(a.settings.rw.is_some_and(|rw| rw.random) && a.settings.rw == b.settings.rw);
    assert_eq!((a.settings.size, b.settings.bs.read), (None, None));
    assert_eq!(b.settings.size, Some(Extent::Bytes(1 << 20)));
}

#[test]
fn every_name_that_adds_to_a_job_s_files_is_told() {
    let job = &jobs("--name=a --filename=x --filename=y:z --bs=1k --bs=2k")[0];
    let told = |name: &str| {
        let mut all = job.options.iter();
        let (_, value) = all.find(|(known, _)| known == name)?;
        Some(value.as_str())
    };
    assert_eq!((told("filename"), told("bs")), (Some("x:y:z"), Some("2k")));
}

#[test]
fn numbers_that_fio_reads_in_part_are_taken_with_a_note() {
    let of = |text: &str| {
        let settings = jobs(&format!("--name=a {text}"))[0].settings.clone();
        (settings.notes.clone(), settings)
    };
    let (notes, settings) = of("--rate=500000.5k,1m --rwmixwrite=12.5 --offset_increment=0.5%");
    assert_eq!(settings.plan.pace.rate_bytes.read, Some(512_000_512));
    assert_eq!(settings.plan.pace.rate_bytes.write, Some(1 << 20));
    assert_eq!(settings.plan.pattern.mix_read, 88);
    assert_eq!(settings.offset_increment, Some(Extent::Percent(0)));
    let expect = [
        "rate: '500000.5k' is read as 512000512; fio reads 500000",
        "rwmixwrite: '12.5' is read as 12; fio reads 12",
        "offset_increment: '0.5' is read as 0; fio reads 0",
    ];
    assert_eq!(notes, expect);
    let (notes, settings) = of("--bs=4KB1 --size=100%%");
    assert_eq!(settings.bs.read, Some(4096));
    assert_eq!(settings.size, Some(Extent::Percent(100)));
    let note = "bs: '4KB1' is read as 4096: '1' is ignored, as in fio";
    assert_eq!(notes, [note]);
    let (notes, settings) = of("--filesize=64k)");
    assert_eq!(settings.filesize, Some((65536, 65536)));
    let note = "filesize: '64k)' is read as 65536: ')' is ignored, as in fio";
    assert_eq!(notes, [note]);
    let list: Vec<String> = (1..=25).map(|n| n.to_string()).collect();
    let (notes, settings) = of(&format!("--percentile_list={}", list.join(":")));
    assert_eq!(settings.report.shown.percentiles.len(), 20);
    let first = notes[0].contains("of 25 percentiles only the first 20");
    assert!(first, "{notes:?}");
    check_misuse("--name=a --bs=1q", &["'1q' is not a whole number"]);
    check_misuse("--name=a --size=50%5", &["unexpected '5' after %"]);
}

#[test]
fn switches_take_any_number_and_threads_are_accepted() {
    let line = "--name=a --time_based=10 --norandommap=-1 --threads=4 --stonewall=0";
    let settings = &jobs(line)[0].settings;
    assert!(settings.plan.pace.time_based);
    assert_eq!(settings.norandommap, Some(true));
    assert_eq!(settings.stonewall, Some(false));
    check_misuse("--name=a --direct=2", &["'2' is not one of 0, 1"]);
}

#[test]
fn a_report_that_is_not_known_is_refused_and_progress_that_is_not_known_is_left_to_us() {
    assert_eq!(view("--name=a --terse-version=4").terse_version, Some(4));
    assert_eq!(view("--name=a").terse_version, None);
    let progress = |text: &str| run(text).expect("a run").1.progress;
    assert_eq!(progress("--name=a --eta=None"), Progress::Auto);
    assert_eq!(progress("--name=a --eta=always"), Progress::Plain);
}

#[test]
fn typed_options_have_their_proper_names_once_and_switches_alone_are_left_out() {
    let job = &jobs("--name=a --blocksize=1k --size=4k --group_reporting --bs=2k --thread=1")[0];
    let names = job.options.iter().map(|(n, v)| format!("{n}={v}"));
    let names: Vec<String> = names.collect();
    assert_eq!(names, ["name=a", "bs=2k", "size=4k", "thread=1"]);
}

#[test]
fn kb_base_counts_for_the_options_before_it_too() {
    let check = |text: &str, bytes| {
        let size = jobs(text)[0].settings.size;
        assert_eq!(size, Some(Extent::Bytes(bytes)), "{text}");
    };
    check("--name=a --size=1k --kb_base=1000", 1000);
    check("--kb_base=1000 --name=a --size=1k", 1000);
    check("--name=a --size=1kib --kb_base=1000", 1024);
}

#[test]
fn a_directory_counts_for_the_names_behind_it() {
    let check = |text: &str, directories: &[&str], names: &[&str]| {
        let settings = jobs(text)[0].settings.clone();
        let got = settings.filename_directories.iter();
        let got: Vec<String> = got.map(|d| d.display().to_string()).collect();
        assert_eq!(got, directories, "{text}");
        assert_eq!(settings.filename.unwrap_or_default(), names, "{text}");
    };
    // Results of fio 3.33 for each.
    each! { check:
        "--name=j --filename=f --directory=a" => &[""] => &["f"];
        "--filename=f --name=j --directory=a" => &[""] => &["f"];
        "--name=j --directory=a:b --filename=f" => &["a"] => &["f"];
        "--directory=a --filename=f --name=j --directory=b --filename=g" => &["a", "b"] => &["f", "g"];
    }
    let settings = &jobs("--name=a --directory=x::y:z\\:z")[0].settings;
    assert_eq!(settings.plan.files.directory, PathBuf::from("x"));
    let more = [PathBuf::from("y"), "z:z".into()];
    assert_eq!(settings.plan.files.more_directories, more);
    check_misuse("--name=a --directory=:", &["it must not be empty"]);
}

#[test]
fn nothing_to_run_is_misuse() {
    check_misuse("", &["no job is given"]);
    check_misuse("--direct=1", &["no job is given"]);
}

#[test]
fn what_this_program_lacks_is_refused_by_name() {
    let check = |option: &str, expect: &str| check_misuse(&format!("--name=a {option}"), &[expect]);
    each! { check:
        "--cgroup=x" =>
            "option '--cgroup' is not supported: rbench does not manage control groups; use 'systemd-run --scope'";
        "--zonemode=zbd" => "'--zonemode'";
        "--client=host" => "mpirun";
        "--thp=1" => "the system chooses";
        "--dir=/x" => "profiles";
        "--rw=readtrim" => "is not one of";
        "--verify=crc33" => "is not one of";
        "--verify_policy=written" => "is not one of completed";
        "--mem=cudamalloc" => "no GPU buffers";
        "--mem=mmap:" => "a path must follow";
        "--mem=shm:/x" => "takes no file";
        "--opendir=none" => "not a readable directory";
        "--terse-version=6" => "is not one of 2, 3, 4, 5";
        "--random_distribution=normal:150" => "is not at least 0 and below 100";
        "--file_service_type=zipf:1.1" => "use roundrobin";
        "--rw=randread:4k" => "not a number of operations";
        "--percentage_sequential=5" => "percentage_random";
    }
}

#[test]
fn unknown_options_are_named_with_what_was_probably_meant() {
    each! { check_misuse:
        "--name=a --nosuch=1" => &["unexpected option '--nosuch' found\n\nFor"];
        "--name=a --iodepht=1" => &["'--iodepht'", "tip: a similar option exists: '--iodepth'"];
        "--name=a --é" => &["'--é'"];
    }
}

#[test]
fn formats_of_the_report_add_up_as_asked() {
    let formats = |text: &str| view(&format!("--name=a {text}")).formats;
    assert_eq!(formats(""), ["normal"]);
    assert_eq!(formats("--output-format=json,normal"), ["json", "normal"]);
    assert_eq!(formats("--output-format=json+"), ["json+"]);
    assert_eq!(formats("--minimal"), ["terse"]);
    assert_eq!(formats("--append-terse"), ["normal", "terse"]);
    assert_eq!(formats("--output-format=terse --append-terse"), ["terse"]);
    check_misuse("--name=a --output-format=xml", &["'xml'", "json+"]);
}

#[test]
fn a_command_line_is_shown_that_says_the_same() {
    let shown = |text: &str| view(text).show.expect("a command line");
    let text = "--size=1m --name=a --bs=8k --name=b --stonewall";
    assert_eq!(shown(&format!("--showcmd {text}")), format!("fio {text}\n"));
    let text = "--bs=4k --norandommap --name=x --rw=randrw --name=y --wait_for=x --size=2g";
    let again = shown(&format!("--showcmd {text}"));
    let rest = again.strip_prefix("fio ").expect("the command");
    assert_eq!(jobs(rest), jobs(text));
    // The later option does not mention reads.
    let text = "--name=x --ba=8k --blockalign=,16k --bs=4k --bs=,8k";
    let expect = "fio --name=x --ba=8k --ba=,16k --bs=4k --bs=,8k\n";
    assert_eq!(shown(&format!("--showcmd {text}")), expect);
    assert_eq!(shell_word("it's"), "'it'\\''s'");
    assert_eq!(shell_word(""), "''");
}

#[test]
fn a_complaint_does_not_steer_the_terminal() {
    let argv = ["rbench", "fio", "--name=a", "--bs=\x1b[2J\n4k"].map(OsString::from);
    let text = parse(&argv, None).expect_err("it is no size").text;
    let start = "error: invalid value '\\u{1b}[2J\\n4k' for '--bs': ";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn help_is_the_same_however_it_is_asked_for() {
    let asked = |text: &str| parse(&words(text), None).expect_err(text);
    let stop = asked("rbench fio --help");
    assert_eq!((stop.text.as_str(), stop.code), (help().as_str(), 0));
    assert_eq!(asked("rbench fio -h"), stop);
    assert_eq!(asked("rbench fio --name=a --help --nonsense"), stop);
    assert_eq!(asked("rbench help fio"), stop);
    let version = asked("rbench fio -v");
    assert_eq!(version, asked("rbench fio --version"));
    let text = &version.text;
    assert!(text.starts_with("fio-3.33-rbench-"), "{text}");
    let listed = asked("rbench --help").text;
    let line = listed.lines().find(|l| l.trim_start().starts_with("fio "));
    let found = line.is_some_and(|l| l.contains("fio's command line"));
    assert!(found, "{listed}");
}

#[test]
fn every_option_is_in_the_help_and_once_in_the_table() {
    let help = help();
    let mut seen = Vec::new();
    for option in table::options() {
        let name = format!("--{}", option.name);
        assert!(help.contains(&name), "{name}");
        assert!(help.contains(option.help), "{}", option.help);
        for name in option.names() {
            assert!(!seen.contains(&name), "{name} is twice in the table");
            assert!(table::refusal(name).is_none(), "{name} is refused too");
            seen.push(name);
        }
        let text = super::help::command(option.name).expect("help of a command");
        assert!(text.contains(option.help), "{text}");
    }
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    let all = super::help::command("all").expect("help of all commands");
    assert!(all.contains("iodepth_batch_complete_min: Reap"), "{all}");
    check_misuse("--cmdhelp=nosuch", &["unknown option"]);
    check_misuse("--cmdhelp=cgroup", &["not supported"]);
}

#[test]
fn the_help_shows_a_letter_before_its_option_and_nothing_before_others() {
    for start in ["\n  -h, --help  ", "\n  --bs=SIZE[,...]  "] {
        assert!(help().contains(start), "{}", help());
    }
}

/// The text that these words print.
fn printed(text: &str) -> String {
    match run(text) {
        Err(stop) if stop.code == 0 => stop.text,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn help_on_an_option_has_what_fios_has() {
    let check = |option: &str, expect: &[&str]| {
        let text = printed(&format!("--cmdhelp={option}"));
        for row in expect {
            let found = text.lines().any(|line| line.trim_start() == *row);
            assert!(found, "'{row}' is not in\n{text}");
        }
    };
    // Types, ranges and words as fio 3.33 prints them.
    each! { check:
        "group_reporting" => &["type: empty or boolean value ([0|1])", "default: no default"];
        "direct" => &["type: boolean value (opt=1)", "default: 0", "range: min=0, max=1"];
        "rwmixread" => &["type: integer value (opt=100)", "default: 50", "range: min=0, max=100"];
        "significant_figures" => &["range: min=1, max=10", "default: 4"];
        "log_entries" => &["range: min=1024, max=1048576"];
        "iodepth" => &["range: min=1, max=4294967295"];
        "runtime" => &["alias: timeout", "type: string with time postfix (opt=10s)"];
        "readwrite" => &["alias: readwrite", "valid values: read", ": randrw"];
        "clocksource" => &["valid values: gettimeofday", ": cpu"];
        "ioengine" => &["valid values: sync", ": null", "default: psync"];
        "percentile_list" =>
            &["type: list of floating point values separated by ':' (opt=5.9:7.8)"];
    }
    assert_eq!(printed("--cmdhelp"), printed("--cmdhelp=all"));
    for option in table::options() {
        let text = super::help::command(option.name).expect("help of an option");
        assert!(text.contains("\n                type: "), "{text}");
    }
}

#[test]
fn help_on_engines_has_their_options() {
    assert!(printed("--enghelp").starts_with("Available IO engines:\n\tsync\n"));
    let own = printed("--enghelp=io_uring");
    assert!(own.contains("registerfiles             : "), "{own}");
    let same = printed("--cmdhelp=fixedbufs");
    assert_eq!(printed("--enghelp=io_uring,fixedbufs"), same);
    let none = "IO engine psync has no options\n";
    assert_eq!(printed("--enghelp=psync"), none);
    check_misuse("--enghelp=nosuch", &["unknown engine", "io_uring"]);
    check_misuse("--enghelp=psync,hipri", &["psync has no option hipri"]);
}

#[test]
fn what_to_use_instead_of_a_refused_option_exists() {
    /// Words in backticks that are neither options nor commands of rbench.
    const OTHERS: &str = "/sys/block/*/queue/scheduler gzip ionice iostat job_start mpirun mpstat nice numactl \
        setpriv sudo systemd-run taskset";
    let helps = crate::help_texts();
    let helps_of = |command: &str| {
        let found = helps.iter().find(|(name, _)| name == command);
        found.map(|(_, text)| text.as_str())
    };
    let mut seen = Vec::new();
    for refused in table::refused_options() {
        for name in refused.each() {
            assert!(!seen.contains(&name), "{name} is refused twice");
            seen.push(name);
        }
        assert!(!refused.why.is_empty(), "{}", refused.names);
        // Every other part is in backticks.
        for code in refused.instead.split('`').skip(1).step_by(2) {
            let words: Vec<&str> = code.split([' ', '=']).collect();
            let exists = match words.as_slice() {
                ["rbench", command, option, ..] => {
                    helps_of(command).is_some_and(|help| help.contains(&format!("{option} ")))
                }
                [name, ..] if OTHERS.split_whitespace().any(|other| other == *name) => true,
                [name, ..] => table::exact(name.trim_start_matches('-')).is_some(),
                [] => false,
            };
            assert!(exists, "instead of {}: '{code}' is unknown", refused.names);
        }
    }
    assert!(seen.len() > 50, "{}", seen.len());
}

#[test]
fn every_option_of_fio_3_42_is_taken_or_refused_with_a_reason() {
    let list = include_str!("tests/fio-3.42-options.txt");
    let words = list.lines().skip(1).flat_map(str::split_whitespace);
    let names: Vec<&str> = words.filter(|word| !word.ends_with(':')).collect();
    assert!(names.len() > 350, "{}", names.len());
    for name in names {
        let taken = table::exact(name).is_some();
        match table::refusal(name) {
            Some(refused) => {
                let why = format!("option '--{name}' is not supported: ");
                check_misuse(&format!("--name=a --{name}=1"), &[&why, refused.why]);
            }
            None => assert!(taken, "{name}: neither an option nor refused"),
        }
    }
}

#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the page of options is a file of the project"
)]
fn the_page_of_options_is_made_from_the_table() {
    let page = include_str!("../../../../docs/reference/fio.md");
    let (before, rest) = page
        .split_once("<!-- options -->\n")
        .expect("the beginning of the tables");
    let (tables, after) = rest
        .split_once("<!-- end of options -->")
        .expect("the end of the tables");
    let expect = super::tables();
    if std::env::var_os("RBENCH_ACCEPT_GOLDEN").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fio.md");
        let page = format!("{before}<!-- options -->\n{expect}<!-- end of options -->{after}");
        std::fs::write(path, page).expect("docs/reference/fio.md is written");
    } else {
        assert!(
            tables == expect,
            "docs/reference/fio.md differs from the table of options: write it with \
             RBENCH_ACCEPT_GOLDEN=1"
        );
    }
}

#[test]
fn the_communicator_is_known_before_the_rest() {
    let check = |text: &str, expect| {
        let communicator = crate::start(&words(&format!("rbench fio {text}"))).communicator;
        assert_eq!(communicator, expect, "{text}");
    };
    check("--name=a", Communicator::Auto);
    check("--name=a --communicator=mpi x.fio", Communicator::Mpi);
    check("--communicator=solo --nosuch", Communicator::Solo);
    check("--terse-version=9 --communicator=solo", Communicator::Auto);
}

/// Words that look like options, and words that do not.
fn any_word() -> impl Strategy<Value = OsString> {
    let names: Vec<&str> = table::options().flat_map(|option| option.names()).collect();
    prop_oneof![
        vec(any::<u8>(), 0..12).prop_map(std::os::unix::ffi::OsStringExt::from_vec),
        (select(names.clone()), "[=:/,%a-zA-Z0-9é@.\"x-]{0,9}")
            .prop_map(|(name, tail)| format!("--{name}={tail}").into()),
        (select(names), 0_usize..9)
            .prop_map(|(name, end)| { format!("-{}", name.get(..end).unwrap_or(name)).into() }),
        "-{0,3}[a-zA-Z0-9=@.-]{0,8}".prop_map(OsString::from),
        "[0-9]{0,22}[kmgtpKMGTPi%]{0,2}".prop_map(OsString::from),
    ]
}

/// Bytes that look like a job file, and bytes that do not.
fn any_file() -> impl Strategy<Value = Vec<u8>> {
    let names: Vec<&str> = table::options().flat_map(|option| option.names()).collect();
    let line = prop_oneof![
        (
            select(names.clone()),
            "[=:/,%a-zA-Z0-9é@.\"$(){}*+ -]{0,12}"
        )
            .prop_map(|(name, tail)| format!("{name}={tail}")),
        select(names).prop_map(str::to_owned),
        "[\\[\\]a-z;#= ]{0,9}",
        "(\\[global\\]|\\[a\\]|include me|include other|size=2\\*\\$pagesize|bs=\\$\\{X\\})",
    ];
    prop_oneof![
        vec(any::<u8>(), 0..60),
        vec(line, 0..8).prop_map(|lines| format!("[a]\n{}", lines.join("\n")).into_bytes()),
    ]
}

proptest! {
    #[test]
    fn no_words_make_the_reader_panic(words in vec(any_word(), 0..6)) {
        if let Err(stop) = read_line(&words).and_then(Line::invocation) {
            prop_assert!(!stop.text.is_empty());
        }
    }

    #[test]
    fn no_job_files_make_the_reader_panic(me in any_file(), other in any_file()) {
        let files = BTreeMap::from([("me".into(), me), ("other".into(), other)]);
        let argv = words("rbench fio me other");
        let _ = files_named(&argv, &files);
        let variables = variables_named(&files).into_iter().map(|name| (name, "4k".to_owned()));
        let around = Surroundings { variables: variables.collect(), ..bare(&files) };
        if let Err(stop) = read(&argv, &around) {
            prop_assert!(!stop.text.is_empty());
        }
    }

    #[test]
    fn a_file_says_the_same_as_the_command_line(
        options in vec(select(samples::JOB_OPTIONS), 1..6),
    ) {
        let typed = |(text, _): &samples::JobSample| (*text).to_owned();
        let mut texts: Vec<String> = options.iter().map(typed).collect();
        // In a file it also applies to names before it.
        texts.sort_by_key(|text| !text.starts_with("directory="));
        let line = format!("rbench fio --name=a --{}", texts.join(" --"));
        let file = format!("[a]\n{}\n", texts.join("\n"));
        let mut files = listed();
        files.insert("f".into(), file.into_bytes());
        let settings = |read: Result<Invocation, Stop>| {
            fio_of(read).map(|(fio, _)| fio.jobs[0].settings.clone()).ok()
        };
        let of_line = settings(read(&words(&line), &bare(&listed())));
        prop_assert!(of_line.is_some(), "{}", line);
        prop_assert_eq!(of_line, settings(read(&words("rbench fio f"), &bare(&files))));
    }
}
