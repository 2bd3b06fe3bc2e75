//! Comparison with fio: rbench accepts and refuses the same command lines.
//!
//! fio's answers are data, a row for each question in `against_fio/fio-3.33.tsv`. `living_fio` asks
//! fio 3.33, and records its answers with `RBENCH_RECORD=1`.

use super::*;

mod living_fio;
mod record;

use record::{Kind, Question, recorded};

/// Command lines after `--name=a --size=1m`. Known differences are on the page of differences and
/// not here. fio reads 1q in part, which we refuse. We accept dsync and expressions in parentheses,
/// like later versions of fio.
const LINES: &[&str] = &[
    "",
    "--rw=randread --bs=4k",
    "-rw randwrite -bs 8k,16k",
    "--rw=foo",
    "--rw=READ",
    "--rw=trim",
    "--rw=randtrimwrite --bs=4k,8k,16k",
    "--rw=readtrim",
    "--rw=rwtrim",
    "--trim_percentage=101",
    "--trim_percentage=50 --trim_backlog=4k --trim_backlog_batch=2",
    "--trim_verify_zero=2",
    "--bssplit=4k/50:8k/50,16k,4k/60:8k/40",
    "--bs=4k,,8k",
    "--bs=,,8k",
    "--ignore_error=EAGAIN,ENOSPC:122",
    "--write_hint=medium",
    "--write_hint=foo",
    "--write_barrier=4",
    "--thinktime_blocks_type=issue",
    "--thinktime_blocks_type=foo",
    "--thinktime=1 --thinktime_iotime=1s",
    "--rate_cycle=500",
    "--rate_iops_min=5,10",
    "--dedupe_mode=working_set",
    "--dedupe_mode=foo",
    "--dedupe_working_set_percentage=101",
    "--create_fsync=0",
    "--allow_file_create=0",
    "--unique_filename=0",
    "--latency_run=1",
    "--rate_ignore_thinktime=1",
    "--rw=read:4k",
    "--rw=write:-8k",
    "--rw=randwrite:8",
    "--rw=randread:2 --rw_sequencer=identical",
    "--rw_sequencer=foo",
    "--random_generator=lfsr",
    "--random_generator=foo",
    "--zonemode=strided --zonesize=64k",
    "--zoneskip=64k",
    "--zonemode=foo",
    "--bs_unaligned --bsrange=4k-9000",
    "--bs_is_seq_rand=1",
    "--softrandommap=1",
    "--allrandrepeat=1",
    "--percentage_sequential=50",
    "--rwmixcycle=500",
    "--random_distribution=zipf:1.2:0.5",
    "--random_distribution=zipf:1.2,random",
    "--random_distribution=zoned_abs:50/16k:50/16k",
    "--buffer_pattern=%o",
    "--buffer_pattern='/nosuch/file'",
    "--direct=2",
    "--direct=",
    "--iodepth=0",
    "--rwmixread=101",
    "--time_based=yes",
    "--time_based --runtime 5",
    "--runtime=1H",
    "--no",
    "--refill",
    "--s=1m",
    "--read",
    "--nosuch=1",
    "--foo",
    "--numjobs",
    "--bs=0",
    "--bs=,",
    "--bs=1k,2k,3k",
    "--bsrange=4k",
    "--bsrange=4k-8k,1k-2k",
    "--bsrange=4k:8k",
    "--bssplit=/50",
    "--bssplit=4k/60:8k/40",
    "--bssplit=4k/60:8k",
    "--random_distribution=zipf:1",
    "--random_distribution=zipf:1.1",
    "--random_distribution=pareto:2",
    "--random_distribution=gauss",
    "--random_distribution=zoned:60/10",
    "--random_distribution=zoned:60/10:30/20:8/30:2/40",
    "--percentile_list=101",
    "--percentile_list=99:99.9",
    "--continue_on_error=foo",
    "--continue_on_error=io",
    "--verify=foo",
    "--verify=crc32c --verify_interval=512",
    "--verify_interval=64",
    "--verify_pattern=abc",
    "--verify_pattern=0xff",
    "--buffer_pattern=4294967296",
    "--buffer_pattern=\"ab\"-12",
    "--dedupe_percentage=101",
    "--ss=iops_slope:0.3%",
    "--ss=foo:1",
    "--ss=iops",
    "--file_service_type=random:4",
    "--file_service_type=foo",
    "--fallocate=keep",
    "--fallocate=foo",
    "--sync=foo",
    "--sync=dsync",
    "--kb_base=512",
    "--kb_base=1000",
    "--rate=,2m",
    "--rate_process=foo",
    "--number_ios=x",
    "--randseed=abc",
    "--randseed=0x89",
    "--fsync=0x10",
    "--filesize=0",
    "--filesize=4k-1k",
    "--size=max",
    "--output-format=xml",
    "--output-format=json+,terse",
    "--status-interval=500ms",
    "--status-interval=foo",
    "--filename=",
    "--group_reporting=yes",
    "--eta=never",
    "--write_bw_log=x",
    "--write_bw_log",
    "--create_on_open",
    "--latency_target=1ms --latency_window=1s --latency_percentile=99.9",
    "--filesize=4k:64k",
    "--bsrange=1k:4k",
    "--bs=4kib",
    "--bs=4KiB,8kb",
    "--runtime=1.5s",
    "--rate_iops=10,20",
    "--offset=4k --offset_increment=1m",
    "--percentage_random=0,50",
    "--wait_for=",
    "--sync=2",
    "--max-jobs=10 --alloc-size=1000",
    "--minimal --append-terse",
    "--terse-version=9",
    "--terse-version=2",
    "--terse-version=4",
    "--eta=None",
    "--size=100%%",
    "--offset_increment=0.5%",
    "--output-for=json",
    "--group",
    "--gro=1",
    "--norandom=1",
    "--time",
    "--ver=crc32c",
    "--rand=1",
    "--numj=2",
    "--direc=/tmp",
    "--dire=1",
    "--name=b --stonewall --size=2m --name=c --new_group",
    "-- --bs=4k",
    "--bs 4k 8k",
    "--ioengine=io_uring --hipri --fixedbufs=1 --registerfiles --nonvectored=0 --force_async=4",
    "--ioengine=io_uring --sqthread_poll --sqthread_poll_cpu=0 --uncached=1 --nowait=1",
    "--ioengine=libaio --userspace_reap --nowait=1",
    "--ioengine=pvsync2 --hipri --hipri_percentage=50 --uncached=1",
    "--ioengine=pvsync2 --hipri_percentage=101",
    "--hip",
    "--ioengine=posixaio --iodepth=8",
    "--ioengine=splice",
    "--ioengine=falloc",
    "--ioengine=ftruncate --rw=write",
];

/// Job files.
const FILES: &[&str] = &[
    "[a]\nsize=1m\n",
    "[global]\nsize=1m\n[a]\n[b]\nstonewall\n",
    "; c\n# d\n[global]\nsize=1m ; t\nrw=randread # t\n[a]\n",
    "size=1m\n[a]\n",
    "[a]\nsize=1m\ndirectory\n",
    "[a]\nsize=1m\ndirect\n",
    "[a]\nsize=1m\nnosuch=1\n",
    "[a]\nsize=1m\nsiz=1m\n",
    "[a]\nsize=${NOSUCH_VARIABLE}\n",
    "[a]\nsize=8*$pagesize\nnumjobs=$ncpus\n",
    "[a]\nsize=1m\nbs=\n",
    "[a]\nsize=1m\n--bs=8k\n",
    "[a]\nSIZE=1m\n",
    "[a]\nsize=1m\r\nrw=randrw\r\n",
    "[a]\nsize=1m\niodepth=2*3\n",
    "[a]\nsize=1m\nbs=4KB1\nrwmixwrite=12.5\n",
    "[a]\nsize=1m\nwrite_bw_log\n",
    "[a]\nsize=1m\ntime_based=0\nnorandommap=7\nthreads=1\n",
    "[a]\nsize=1m\nrandom_distribution=normal\n",
    "[a]\nsize=1m\nrandom_distribution=normal:100\n",
    "[a]\nsize=1m\nrefill_buffers\nrefill_buffers=1\ngroup_reporting=0\n",
    "include nosuch\n[a]\nsize=1m\n",
    "[a]\nsize=1m\n[a]\nsize=2m\n",
    " [a] \n size=1m\n\tbs=8k\n",
    "[a]\nsize 1m\n",
    "[a]\nsize:1m\n",
    "[a]\nsize=1m\nrw\n",
    "[a]\nsize=1m\nname=b\n",
    "[a]\nsize=1m\nreadonly\n",
    "[a]\nsize=1m\ndescription=\"x y\"\n",
    "[b]\nsize=1m\n[a]\nsize=1m\nwait_for=b\n",
    "[a]\nsize=1m\nnew_group\nstonewall\nthread=1\nthread\n",
    "[global]\nfixedbufs\nioengine=io_uring\nsize=1m\n[a]\n[b]\nioengine=psync\n",
    "]\n",
    "[globals]\nsize=1m\n[Global]\nbs=8k\n[a]\n",
];

/// Job files that both read into the same jobs; options of the command line come first.
const JOBS: &[(&str, &str)] = &[
    (
        "",
        "[global]\nsize=1m\nbs=8k\n[a]\n[b]\nrw=randwrite\nbs=4k,16k\n[global]\nbs=32k\n[c]\n",
    ),
    (
        "--bs=64k",
        "[a]\nsize=1m\n[b]\nsize=1m\nbs=4k\nstonewall\n[c]\nsize=1m\nnew_group\n",
    ),
    (
        "--rw=write --size=2m --name=z --bs=512",
        "[global]\nrw=randrw\n[a]\nbsrange=1k-4k\n[b]\nbsrange=4k:8k,16k-32k\n",
    ),
    (
        "",
        "; x\n[a]\nsize=1m # y\nrw=read ; z\nbs=4k\nbs=16k\n[a]\nsize=1m\nname=other\nbssplit=4k/50:64k/50\n",
    ),
    (
        "--section=b",
        "[global]\nsize=1m\n[a]\n[b]\nrw=rw\nbs=$pagesize\n[c]\nrw=write\n",
    ),
];

/// A job file for `--showcmd`.
const SHOWN: &str = "[global]\nsize=1m\ngroup_reporting\ntime_based\n[a]\nrw=write\n; none\n[b]\nnew_group\n\
                     numjobs=2\n[c]\nstonewall\ngroup_reporting=0\nrw=randrw\nbs=4k,8k\n";

/// Asks whether fio accepts one of `LINES`.
fn accepts_line(text: &str) -> Question {
    Question::new(Kind::Accepts, format!("--name=a --size=1m {text}"), "")
}

/// Asks whether fio accepts one of `FILES`.
fn accepts_file(text: &'static str) -> Question {
    Question::new(Kind::Accepts, "-", text)
}

/// Asks for the headings of one of `JOBS`.
fn headings((line, text): (&str, &'static str)) -> Question {
    let line = format!("--ioengine=null --number_ios=1 {line} -");
    Question::new(Kind::Headings, line, text)
}

fn shown() -> Question {
    Question::new(Kind::Prints, "--showcmd -", SHOWN)
}

/// Asks for the options that this help of fio lists.
fn listed_by(help: &str) -> Question {
    Question::new(Kind::Options, help, "")
}

/// Every question of these tests.
fn questions() -> Vec<Question> {
    let lines = LINES.iter().map(|text| accepts_line(text));
    let files = FILES.iter().map(|text| accepts_file(text));
    let jobs = JOBS.iter().map(|job| headings(*job));
    let helps = ["--help", "--cmdhelp=all"].map(listed_by);
    lines
        .chain(files)
        .chain(jobs)
        .chain([shown()])
        .chain(helps)
        .collect()
}

#[test]
fn command_lines_that_fio_accepts_or_refuses_so_do_we() {
    let mut accepted = 0;
    for text in LINES {
        let ours = read_line(&words(&format!("--name=a --size=1m {text}")));
        let ours = ours.and_then(Line::invocation);
        let fios = recorded(&accepts_line(text));
        assert_eq!(ours.is_ok(), fios == "yes", "{text}: {:?}", ours.err());
        accepted += usize::from(fios == "yes");
    }
    assert!(accepted > 10 && accepted < LINES.len() - 10, "{accepted}");
}

#[test]
fn job_files_that_fio_accepts_or_refuses_so_do_we() {
    for text in FILES {
        let files = BTreeMap::from([("-".into(), text.as_bytes().to_vec())]);
        let ours = line(&words("-"), &bare(&files)).and_then(Line::invocation);
        let fios = recorded(&accepts_file(text));
        assert_eq!(ours.is_ok(), fios == "yes", "{text}: {:?}", ours.err());
    }
}

/// The line about a job that fio prints before it runs.
#[derive(Debug, PartialEq)]
struct Head {
    name: String,
    rw: String,
    /// Smallest and largest block of reads, then of writes, then of trims.
    blocks: [f64; 6],
}

/// `a: (g=0): rw=read, bs=(R) 4096B-4096B, (W) 64.0KiB-64.0KiB, …`
fn heads_of_fio(text: &str) -> Vec<Head> {
    let between = |line: &str, from: &str, to: &str| -> Option<String> {
        let (_, rest) = line.split_once(from)?;
        Some(rest.split_once(to)?.0.to_owned())
    };
    let bytes = |text: &str| {
        let end = text.find(char::is_alphabetic).expect("a unit");
        let scale = match &text[end..] {
            "B" => 1.0,
            "KiB" => 1024.0,
            "kB" => 1000.0,
            "MiB" => 1024.0 * 1024.0,
            unit => panic!("{unit}"),
        };
        text[..end].parse::<f64>().expect("a number") * scale
    };
    let head = |line: &str| {
        let sizes = ["(R) ", "(W) ", "(T) "].map(|way| between(line, way, ",").expect("sizes"));
        let sizes: Vec<f64> = sizes.iter().flat_map(|s| s.split('-')).map(bytes).collect();
        Head {
            name: line.split_once(": (g=").expect("a name").0.to_owned(),
            rw: between(line, "rw=", ",").expect("a direction"),
            blocks: sizes.try_into().expect("six sizes"),
        }
    };
    let lines = text.lines().filter(|line| line.contains(": (g="));
    lines.map(head).collect()
}

fn our_head(job: &Job) -> Head {
    let settings = &job.settings;
    let rw = settings.rw.unwrap_or(Directions::READ);
    let rw = match (rw.read, rw.write, rw.random) {
        _ if rw.trim => match (rw.write, rw.random) {
            (false, false) => "trim",
            (false, true) => "randtrim",
            (true, false) => "trimwrite",
            (true, true) => "randtrimwrite",
        },
        (true, true, false) => "rw",
        (true, true, true) => "randrw",
        (true, _, false) => "read",
        (true, _, true) => "randread",
        (_, _, false) => "write",
        (_, _, true) => "randwrite",
    };
    let of = |size: Option<u64>, range: Option<(u64, u64)>, split: &Option<Vec<_>>| {
        let parts = split.iter().flatten();
        let parts: Vec<u64> = parts.map(|(size, _): &(u64, Option<u32>)| *size).collect();
        let size = size.unwrap_or(4096);
        let one = range.unwrap_or((size, size));
        let least = parts.iter().min().copied().unwrap_or(one.0);
        [least, parts.iter().max().copied().unwrap_or(one.1)]
    };
    let s = settings;
    let [read, write, trim] = [
        of(s.bs.read, s.bsrange.read, &s.bssplit.read),
        of(s.bs.write, s.bsrange.write, &s.bssplit.write),
        of(s.bs.trim, s.bsrange.trim, &s.bssplit.trim),
    ];
    Head {
        name: job.name.clone(),
        rw: rw.to_owned(),
        blocks: [read[0], read[1], write[0], write[1], trim[0], trim[1]].map(|bytes| bytes as f64),
    }
}

#[test]
fn jobs_of_files_are_those_that_fio_makes_of_them() {
    for (line, text) in JOBS {
        let question = headings((line, text));
        let files = BTreeMap::from([("-".into(), text.as_bytes().to_vec())]);
        let read = super::line(&words(&question.line), &bare(&files));
        let read = read.unwrap_or_else(|stop| panic!("{}", stop.text));
        let ours: Vec<Head> = read.jobs.into_iter().map(|j| our_head(&job(j))).collect();
        let fios = heads_of_fio(&recorded(&question));
        assert!(!fios.is_empty(), "fio runs {text}");
        assert_eq!(ours, fios, "{text}");
    }
}

#[test]
fn a_job_file_is_shown_as_fio_shows_it() {
    let files = BTreeMap::from([("-".into(), SHOWN.as_bytes().to_vec())]);
    let read = super::line(&words("--showcmd -"), &bare(&files)).and_then(Line::invocation);
    let Ok(Invocation::Run(_, output)) = read else {
        panic!("{read:?}")
    };
    let ours = output.fio.and_then(|view| view.show).expect("a line");
    assert_eq!(ours.trim(), recorded(&shown()));
}

/// Checks that each option in this help of fio is known, or refused with a reason.
fn known_or_refused(help: &str, at_least: usize) {
    let listed = recorded(&listed_by(help));
    let names: Vec<&str> = listed.split_whitespace().collect();
    assert!(names.len() > at_least, "{names:?}");
    for name in names {
        let known = table::exact(name).is_some() || table::refusal(name).is_some();
        assert!(known, "{name}");
    }
}

#[test]
fn every_option_of_fios_command_line_is_known_or_refused() {
    known_or_refused("--help", 25);
}

#[test]
fn every_option_of_fio_is_known_or_refused() {
    known_or_refused("--cmdhelp=all", 200);
}

#[test]
fn the_record_has_an_answer_to_every_question_and_no_other() {
    let asked: Vec<String> = questions().iter().map(Question::to_string).collect();
    assert_eq!(
        record::asked(),
        asked,
        "run living_fio:: with RBENCH_RECORD=1"
    );
}
