//! Job files.

use rbench_core::EngineOptions;

use super::*;

/// Reads job files; the first one is named on the command line.
fn read_files(line: &str, files: &[(&str, &str)]) -> Result<(Fio, FioView), Stop> {
    let files = files.iter();
    let files = files.map(|(name, text)| (PathBuf::from(name), text.as_bytes().to_vec()));
    let files = files.collect();
    let around = Surroundings {
        variables: [("SIZE".to_owned(), "2m".to_owned())].into(),
        ..bare(&files)
    };
    let (fio, output) = fio_of(read(&words(&format!("rbench fio {line}")), &around))?;
    Ok((fio, output.fio.expect("a view of fio")))
}

fn one(text: &str) -> Fio {
    match read_files("f", &[("f", text)]) {
        Ok((fio, _)) => fio,
        Err(stop) => panic!("{text}: {}", stop.text),
    }
}

fn check_wrong(text: &str, expect: &[&str]) {
    check_refused(text, read_files("f", &[("f", text)]), expect);
}

fn names(fio: &Fio) -> Vec<&str> {
    fio.jobs.iter().map(|job| job.name.as_str()).collect()
}

fn size(job: &Job) -> Option<u64> {
    match job.settings.size {
        Some(Extent::Bytes(bytes)) => Some(bytes),
        _ => None,
    }
}

#[test]
fn sections_are_jobs_below_the_global_options_before_them() {
    let fio =
        one("[global]\nsize=1m\nrw=randread\n[a]\n[b]\nstonewall\nsize=2m\n[global]\nbs=8k\n[c]\n");
    assert_eq!(names(&fio), ["a", "b", "c"]);
    let sizes: Vec<Option<u64>> = fio.jobs.iter().map(size).collect();
    assert_eq!(sizes, [Some(1 << 20), Some(2 << 20), Some(1 << 20)]);
    let bs: Vec<Option<u64>> = fio.jobs.iter().map(|job| job.settings.bs.read).collect();
    assert_eq!(bs, [None, None, Some(8192)]);
    assert_eq!(fio.jobs[1].settings.stonewall, Some(true));
    assert!(fio.jobs.iter().all(|job| !job.apart));
    let globals: Vec<&str> = fio.globals.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(globals, ["size", "rw", "bs"]);
    assert_eq!(fio.jobs[1].options, [("size".to_owned(), "2m".to_owned())]);
}

#[test]
fn any_name_that_begins_with_global_is_global() {
    let fio = one("[globalfoo]\nsize=1m\n[GLOBAL]\nbs=1k\n[a]\n");
    assert_eq!(names(&fio), ["a"]);
    assert_eq!(size(&fio.jobs[0]), Some(1 << 20));
    assert_eq!(fio.jobs[0].settings.bs.read, Some(1024));
}

#[test]
fn options_of_an_engine_go_with_it() {
    let fio = one(
        "[global]\nfixedbufs=1\nioengine=io_uring\nsize=1m\n[a]\nhipri\n[b]\nioengine=libaio\n\
                   [c]\nnowait=1\nioengine=pvsync2\n[d]\nioengine=io_uring\n",
    );
    let of = |name: &str| {
        let job = fio.jobs.iter().find(|job| job.name == name);
        job.expect("it is there").settings.engine_options
    };
    let inherited = EngineOptions {
        fixedbufs: Some(true),
        ..EngineOptions::default()
    };
    let hipri = true;
    assert_eq!(of("a"), EngineOptions { hipri, ..inherited });
    assert_eq!(of("b"), EngineOptions::default());
    let nowait = true;
    assert_eq!(of("c"), EngineOptions { nowait, ..of("b") });
    assert_eq!(of("d"), inherited);
    let given = |job: &Job| {
        let given = job.settings.of_engines.iter();
        given
            .map(|(option, _)| *option)
            .collect::<Vec<_>>()
            .join(" ")
    };
    let jobs: Vec<String> = fio.jobs.iter().map(given).collect();
    assert_eq!(jobs, ["fixedbufs hipri", "", "nowait", "fixedbufs"]);
}

#[test]
fn comments_blanks_and_line_ends_do_not_matter() {
    let fio = one(
        "; one\r\n# two\r\n\r\n  [a b] ; three\r\n  size = 1m # four\r\nrw=randrw;x\r\n\trefill_buffers\r\n",
    );
    assert_eq!(names(&fio), ["a b"]);
    let settings = &fio.jobs[0].settings;
    assert_eq!(size(&fio.jobs[0]), Some(1 << 20));
    assert!(settings.plan.buffers.refill);
    let rw = settings.rw.expect("directions");
    assert!(rw.read && rw.write && rw.random);
}

#[test]
fn variables_and_keywords_are_put_in_and_sums_worked_out() {
    let fio = one(
        "[a]\nsize=${SIZE}\ndirectory=/t/${SIZE}x${SIZE}\nbs=$pagesize\nnumjobs=$ncpus\n\
         filename_format=n$ncpus\n[b]\nsize=8*$pagesize\nbs=$pagesize / 4\n[c]\nsize=(1 + $ncpus) * 1024\n",
    );
    let [a, b, c] = fio.jobs.as_slice() else {
        panic!("{fio:?}")
    };
    assert_eq!((size(a), a.settings.plan.numjobs), (Some(2 << 20), 2));
    assert_eq!(a.settings.plan.files.directory, PathBuf::from("/t/2mx2m"));
    assert_eq!(a.settings.filename_format.as_deref(), Some("n2"));
    assert_eq!((size(b), b.settings.bs.read), (Some(32_768), Some(1024)));
    assert_eq!(size(c), Some(3072));
    assert!(b.options.contains(&("size".to_owned(), "32768".to_owned())));
    let text = "[a]\nsize=(4k*2)\nruntime=60*2\niodepth=128*1\nramp_time=(1m + 30)\nnumjobs=2*$ncpus-1\n\
                size=4k*$mb_memory\n";
    let settings = one(text).jobs[0].settings.clone();
    assert_eq!((settings.plan.depth, settings.plan.numjobs), (128, 3));
    assert_eq!(settings.plan.pace.runtime, Some(Nanos(120_000_000_000)));
    assert_eq!(settings.size, Some(Extent::Bytes(4 << 20)));
    each! { check_wrong:
        "[a]\nsize=(4*)\n" => &["'(4*)' is not a number or an expression"];
        "[a]\nsize=4q*2\n" => &["'4q*2' is not a number"];
        "[a]\nsize=${NOSUCH}\n" => &["f, line 2", "NOSUCH is not set"];
        "[a]\nsize=${SIZE\n" => &["not closed"];
    }
}

#[test]
fn a_log_without_a_prefix_is_asked_for_in_a_file_only() {
    let fio = one("[a]\nwrite_bw_log\nwrite_lat_log=x\n");
    let logs = &fio.jobs[0].settings.report.logs;
    assert_eq!(logs.bandwidth.as_deref(), Some(""));
    assert_eq!(logs.latency.as_deref(), Some("x"));
    check_misuse("--name=a --write_bw_log", &["none was supplied"]);
    check_misuse("--name=a --write_bw_log=", &["none was supplied"]);
}

#[test]
fn files_include_others_that_lie_beside_them() {
    let files = [
        ("d/f", "[global]\ninclude g\n[a]\ninclude h\n"),
        ("d/g", "size=1m\ninclude sub/i\n"),
        ("d/sub/i", "bs=1k\n"),
        ("d/h", "rw=write\n"),
    ];
    let (fio, _) = read_files("d/f", &files).unwrap_or_else(|stop| panic!("{}", stop.text));
    let settings = &fio.jobs[0].settings;
    assert_eq!(size(&fio.jobs[0]), Some(1 << 20));
    assert_eq!(settings.bs.read, Some(1024));
    assert!(settings.rw.is_some_and(|rw| rw.write));
    let wrong = |files: &[(&str, &str)], expect: &str| {
        let stop = read_files("f", files).expect_err(expect);
        assert!(stop.text.contains(expect), "{}", stop.text);
    };
    wrong(&[("f", "[a]\ninclude g\n")], "job file g was not read");
    let looped = [("f", "[a]\ninclude g\n"), ("g", "include g\n")];
    wrong(&looped, "include each other");
    // Without the limit it would be 8^14 times the last one.
    let names: Vec<String> = (0..15).map(|n| format!("{n}")).collect();
    let next = |n: usize| format!("include {}\n", n + 1).repeat(8);
    let chain: Vec<String> = (0..14).map(next).chain(["size=1m\n".to_owned()]).collect();
    let chained = names.iter().zip(&chain);
    let mut files: Vec<(&str, &str)> = chained.map(|(n, t)| (&**n, &**t)).collect();
    files.push(("f", "[a]\ninclude 0\n"));
    wrong(&files, "more than 1000 inclusions");
    let many = "[a]\n".repeat(4097);
    let why = "f, line 4097: a file may have at most 4096 jobs";
    wrong(&[("f", &many)], why);
    wrong(&[("f", "[a]\ninclude g\n"), ("g", "[b]\n")], "g, line 1");
    wrong(&[("f", "include g\n"), ("g", "")], "before the first");
}

#[test]
fn the_caller_is_told_what_to_read_until_all_is_there() {
    let argv = words("rbench fio --bs 4k a.fio --name=x d/b.fio -- --size");
    let mut files = BTreeMap::new();
    let first = files_named(&argv, &files);
    assert_eq!(first, ["--size", "a.fio", "d/b.fio"].map(PathBuf::from));
    let text = b"[a]\ninclude c\nbs=${ONE}\nsize=${TWO}x${ONE}\n";
    files.extend(first.into_iter().map(|file| (file, text.to_vec())));
    let second = files_named(&argv, &files);
    assert_eq!(second, ["c", "d/c"].map(PathBuf::from));
    files.extend(second.into_iter().map(|file| (file, b"rw=read".to_vec())));
    assert!(files_named(&argv, &files).is_empty());
    assert_eq!(variables_named(&files), ["ONE", "TWO"]);
    assert!(files_named(&words("rbench mdtest a.fio"), &files).is_empty());
    let stdin = files_named(&words("rbench fio -"), &BTreeMap::new());
    assert_eq!(stdin, [PathBuf::from("-")]);
}

#[test]
fn files_that_patterns_name_are_read_too_and_include_nothing() {
    let argv = words("rbench fio --buffer_pat='p' a.fio");
    let mut files = BTreeMap::new();
    let named = files_named(&argv, &files);
    assert_eq!(named, ["a.fio", "p"].map(PathBuf::from));
    files.insert("p".into(), b"include q\n".to_vec());
    let text = b"[x]\nverify_pattern=0x01'd/r'\nbuffer_pattern='s'\n";
    files.insert("a.fio".into(), text.to_vec());
    assert_eq!(files_named(&argv, &files), ["d/r", "s"].map(PathBuf::from));
    files.insert("d/r".into(), b"r".to_vec());
    files.insert("s".into(), b"content".to_vec());
    assert!(files_named(&argv, &files).is_empty());
    let (fio, _) = fio_of(read(&argv, &bare(&files))).expect("it is a run");
    let settings = &fio.jobs[0].settings;
    assert_eq!(settings.buffer_pattern.as_deref(), Some(&b"content"[..]));
    let pattern = settings.layout.pattern.as_ref().map(|p| &p.bytes[..]);
    assert_eq!(pattern, Some(&b"\x01r"[..]));
}

#[test]
fn later_job_files_wait_for_earlier_ones_and_keep_their_globals_to_themselves() {
    let files = [
        ("f", "[global]\nsize=1m\n[a]\n"),
        ("g", "[b]\nsize=2m\n[c]\nsize=3m\n"),
    ];
    let (fio, _) = read_files("--bs=1k --name=z --size=9k f g", &files).expect("three sources");
    assert_eq!(names(&fio), ["z", "a", "b", "c"]);
    let apart: Vec<bool> = fio.jobs.iter().map(|job| job.apart).collect();
    assert_eq!(apart, [false, false, true, false]);
    let mut jobs = fio.jobs.iter();
    assert!(jobs.all(|job| job.settings.bs.read == Some(1024)));
    assert_eq!(size(&fio.jobs[2]), Some(2 << 20));
    let globals: Vec<&str> = fio.globals.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(globals, ["bs", "size"]);
}

#[test]
fn only_the_sections_that_were_asked_for_are_jobs() {
    let text = "[global]\nsize=1m\n[a]\n[b]\n[c]\n";
    let (fio, _) = read_files("--section=a --section c f", &[("f", text)]).expect("two sections");
    assert_eq!(names(&fio), ["a", "c"]);
    let stop = read_files("--section=x f", &[("f", text)]).expect_err("none");
    assert!(stop.text.contains("no job is given"), "{}", stop.text);
}

#[test]
fn a_job_file_is_shown_as_a_command_line() {
    let check = |line: &str, text: &str, expect: &str| {
        let (_, view) = read_files(line, &[("f", text)]).expect("jobs");
        assert_eq!(view.show.as_deref(), Some(expect));
    };
    each! { check:
        "--showcmd f" =>
            "[global]\nsize=4k\nstonewall\n[a b]\nbs=1k\n[c]\nstonewall=0\ndescription=it's\n" =>
            "fio --size=4k --stonewall --name='a b' --bs=1k --name=c --stonewall=0 --description='it'\\''s'\n";
        "--showcmd f f" => "[a]\n[global]\nbs=1k\n[c]\n" =>
            "fio --name=a --name=c --bs=1k --name=a --stonewall --name=c --bs=1k\n";
    }
}

#[test]
fn what_is_wrong_is_told_with_file_and_line() {
    each! { check_wrong:
        "size=1m\n[a]\n" => &["f, line 1", "before the first [section]"];
        "[a]\nsize=1x\n" => &["'1x' for 'f, line 2: size'"];
        "[a]\nnosuch=1\n" => &["f, line 2: unknown option 'nosuch'"];
        "[a]\nsiz=1m\n" => &["unknown option 'siz'", "'size'"];
        "[a]\nSIZE=1m\n" => &["unknown option 'SIZE'"];
        "[a]\n--bs=8k\n" => &["unknown option '--bs'"];
        "[a]\n\ncgroup=x\n" => &["f, line 3: option 'cgroup'", "not supported"];
        "[a]\noutput=x\n" => &["'output' is for the command line only"];
        "[a]\ndirect\n" => &["'direct' needs a value"];
        "[a]\nbs=\n" => &["'bs' needs a value"];
        "[a\nsize=4k\n" => &["f, line 1", "]"];
        "[]\nsize=4k\n" => &["a section needs a name"];
        "[global]\nsize=4k\n" => &["no job is given"];
        "" => &["no job is given"];
    }
    let stop = read_files("f", &[]).expect_err("no file");
    let text = stop.text;
    assert!(text.contains("job file f was not read"), "{text}");
}

fn errors(stop: &Stop) -> Vec<&str> {
    let lines = stop.text.lines();
    lines.filter(|line| line.starts_with("error: ")).collect()
}

#[test]
fn everything_that_cannot_be_is_told_at_once() {
    let first = "bs=1x\n[a]\nzonemode=zbd\nsize=1x\nnosuch=1\ninclude g\n[b\ncgroup=x\n";
    let files = [
        ("f", first),
        ("g", "rw=sideways\n"),
        ("h", "[c]\nbs=4k\nioscheduler=x\n"),
    ];
    let line = "--parse-only --bs=0 --client --iodepht=1 --rw=x --name=z --size f h missing";
    let stop = read_files(line, &files).expect_err("all is wrong");
    assert_eq!(stop.code, 2);
    let told = errors(&stop);
    let expect = [
        "option '--client'",
        "unexpected option '--iodepht'",
        "invalid value '0' for '--bs'",
        "invalid value 'x' for '--rw'",
        "invalid value 'f' for '--size'",
        "h, line 3: option 'ioscheduler'",
        "job file missing was not read",
    ];
    assert_eq!(told.len(), expect.len(), "{}", stop.text);
    for (told, expect) in told.iter().zip(expect) {
        assert!(told.contains(expect), "{told} is not {expect}");
    }
    assert!(stop.text.contains("'--iodepth'"), "{}", stop.text);
    let stop = read_files("f", &files).expect_err("much is wrong");
    let told = errors(&stop);
    let expect = [
        "f, line 1: an option stands before the first [section]",
        "'1x' for 'f, line 1: bs'",
        "'zbd' for 'f, line 3: zonemode'",
        "f, line 5: unknown option 'nosuch'",
        "f, line 7: '[b' does not end with ]",
        "'1x' for 'f, line 4: size'",
        "'sideways' for 'g, line 1: rw'",
        "f, line 8: option 'cgroup'",
    ];
    assert_eq!(told.len(), expect.len(), "{}", stop.text);
    for expect in expect {
        assert!(stop.text.contains(expect), "{} lacks {expect}", stop.text);
    }
}

#[test]
fn the_value_of_an_option_that_is_wrong_is_no_job_file() {
    let stop = read_files("--name=a --client host --nosuch 5 f", &[("f", "[b]\n")]);
    let stop = stop.expect_err("two options");
    let told = stop.text.matches("error: ").count();
    assert_eq!(told, 2, "{}", stop.text);
}

#[test]
fn in_a_file_a_directory_counts_for_the_names_before_it_in_its_section() {
    let placed = |text: &str| {
        let settings = one(text).jobs[0].settings.clone();
        let names = settings.filename.unwrap_or_default().into_iter();
        let directories = settings.filename_directories.into_iter();
        let pairs = directories
            .zip(names)
            .map(|(d, n)| d.join(n).display().to_string());
        pairs.collect::<Vec<_>>()
    };
    // Results of fio 3.33 for each.
    assert_eq!(placed("[j]\nfilename=f\ndirectory=a\n"), ["a/f"]);
    assert_eq!(placed("[global]\nfilename=f\n[j]\ndirectory=a\n"), ["f"]);
    let globals = "[global]\nfilename=f\ndirectory=a\n[j]\ndirectory=b\n";
    assert_eq!(placed(globals), ["a/f"]);
    assert_eq!(placed(&format!("{globals}filename=g\n")), ["a/f", "b/g"]);
    assert_eq!(placed("[j]\nfilename=f\nfilename=g:f\n"), ["f", "g"]);
}

#[test]
fn a_name_in_a_section_is_the_name_of_its_job_and_not_of_its_files() {
    let fio = one("[a]\nname=b\nsize=1m\n");
    assert_eq!((names(&fio), fio.jobs[0].files.as_str()), (vec!["b"], "a"));
    // A section is selected by its own name.
    let text = "[a]\nname=b\n[c]\n";
    let (fio, _) = read_files("--section=a f", &[("f", text)]).expect("one section");
    assert_eq!(names(&fio), ["b"]);
    // fio 3.33 uses the names of the sections.
    assert_eq!(names(&one("[global]\nname=x\n[a]\n[b]\n")), ["a", "b"]);
}
