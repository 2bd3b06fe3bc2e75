//! Tests I/O logs: what is recorded, and what is replayed and when. scripts/checks/traces.py
//! compares with fio.

use std::io::Write as _;
use std::sync::mpsc;

use nix::errno::Errno;
use rbench_core::outcome::Lateness;
use rbench_core::{Nanos, SimulatedClock};

use super::pace::{MS, US, run_stepped};
use super::*;
use crate::clock::PATIENCE;

mod needs_fuse;
mod timing;

/// Writes a log of this version into `dir`.
fn log(dir: &Path, name: &str, version: u32, lines: &[String]) {
    let text = format!("fio version {version} iolog\n{}\n", lines.join("\n"));
    fs::write(dir.join(name), text).expect("written");
}

fn lines(text: &str) -> Vec<String> {
    text.split(';').map(|line| line.trim().to_owned()).collect()
}

/// The words of a log's lines, without its header and times.
fn recorded(dir: &Path, name: &str) -> Vec<String> {
    let text = String::from_utf8(data(dir, name)).expect("text");
    let mut all = text.lines();
    assert_eq!(all.next(), Some("fio version 3 iolog"), "{name}");
    let without_time = |line: &str| line.split_once(' ').map(|(_, rest)| rest.to_owned());
    all.map(|line| without_time(line).expect("a time"))
        .collect()
}

fn stamps(dir: &Path, name: &str) -> Vec<u64> {
    let text = String::from_utf8(data(dir, name)).expect("text");
    let first = |line: &str| line.split(' ').next().and_then(|word| word.parse().ok());
    text.lines()
        .skip(1)
        .map(|line| first(line).expect("a time"))
        .collect()
}

/// Reads, writes, trims and syncs of the single entry.
fn done(outcome: &Outcome) -> [u64; 4] {
    let job = only(outcome);
    [job.read.ios, job.write.ios, job.trim.ios, job.sync.count()]
}

fn usage(dir: &Path, line: &str) -> String {
    match job(&[0], dir, line).go() {
        Err(ExecError::Usage(message)) => message,
        Err(other) => panic!("{line}: {other}"),
        Ok(_) => panic!("{line}: it was done"),
    }
}

/// Lateness of a row's operations.
fn late(outcome: &Outcome, row: &str) -> Lateness {
    outcome.row(row).late
}

#[test]
fn what_is_recorded_is_replayed_with_every_engine_and_depth() {
    for engine in [
        "psync",
        "libaio --iodepth=4",
        "io_uring --iodepth=3",
        "posixaio --iodepth=2",
    ] {
        let dir = tempdir();
        let line = format!(
            "--name=a --rw=randrw --size=64k --nrfiles=2 --fsync=4 --ioengine={engine} --write_iolog=t.log"
        );
        let first = run_well(dir.path(), &line);
        let files = listing(dir.path());
        let wanted = recorded(dir.path(), "t.log");
        assert_eq!(wanted[..2], ["a.0.0 add", "a.0.1 add"], "{engine}");
        assert_eq!(
            wanted.len(),
            16 + 6 + done(&first)[3] as usize,
            "{engine}: {wanted:?}"
        );
        assert!(stamps(dir.path(), "t.log").is_sorted(), "{engine}");

        for more in [
            "",
            "--replay_no_stall=1",
            "--read_iolog_chunked=1",
            "--number_ios=16",
        ] {
            let line = format!("--name=b --read_iolog=t.log --ioengine={engine} {more}");
            let again = run_well(dir.path(), &line);
            assert_eq!(done(&again), done(&first), "{line}");
            assert_eq!(listing(dir.path()), files, "{line}");
        }
        let line = format!("--name=b --read_iolog=t.log --ioengine={engine} --number_ios=5");
        assert_eq!(
            done(&run_well(dir.path(), &line))[..3].iter().sum::<u64>(),
            5
        );
    }
}

#[test]
fn offsets_and_lengths_are_those_of_the_log() {
    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let text = "f add; f open; f write 30000 100; f write 10000 50; f sync 0 0; f close";
    log(dir.path(), "t", 2, &lines(text));
    let written = |more: &str| {
        fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
        let line = format!("--name=a --read_iolog=t --zero_buffers {more}");
        run_well(dir.path(), &line);
        let bytes = data(dir.path(), "f");
        let zero: Vec<usize> = (0..bytes.len()).filter(|at| bytes[*at] == 0).collect();
        (zero.first().copied(), zero.last().copied(), zero.len())
    };
    assert_eq!(written(""), (Some(10_000), Some(30_099), 150));
    assert_eq!(
        written("--replay_scale=2"),
        (Some(5_000), Some(15_099), 150)
    );
    assert_eq!(
        written("--replay_align=4k"),
        (Some(8_192), Some(28_771), 150)
    );
    let both = "--replay_scale=2 --replay_align=4k";
    assert_eq!(written(both), (Some(4_096), Some(12_387), 150));
}

/// A directory with a file and two logs of it: `t` with times up to 400 ms, `t2` with waits until
/// 250 ms.
fn timed_logs() -> tempfile::TempDir {
    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let mut text = lines("0 f add; 0 f open");
    text.extend((1..=40).map(|n| format!("{} f read {} 512", n * 10_000, n * 512)));
    log(dir.path(), "t", 3, &text);
    let text =
        "f add; f open; f read 0 512; f wait 150 0; f read 512 512; f wait 250 0; f sync 0 0";
    log(dir.path(), "t2", 2, &lines(text));
    dir
}

#[test]
fn times_are_kept_scaled_and_left_out() {
    let dir = timed_logs();
    for (more, expect_ms) in [
        ("", 400),
        ("--replay_time_scale=200", 200),
        ("--replay_time_scale=50", 800),
        ("--read_iolog_chunked=1", 400),
        ("--ioengine=null --iodepth=4", 400),
        ("--replay_no_stall=1", 0),
        ("--runtime=100ms", 100),
    ] {
        let line = format!("--name=a --read_iolog=t {more}");
        let outcome = run_stepped(US, dir.path(), &line);
        let took = only(&outcome).elapsed.0;
        assert!(
            (expect_ms * MS..expect_ms * MS + MS).contains(&took),
            "{more}: {took} ns"
        );
        let late = late(&outcome, "a-read");
        if more.contains("no_stall") {
            assert_eq!(late, Lateness::default());
            continue;
        }
        assert_eq!(late.operations, outcome.row("a-read").items, "{more}");
        assert!(late.max.0 < 20 * US, "{more}: {late:?}");
        assert!(
            late.mean() <= late.max && late.max.0 > 0,
            "{more}: {late:?}"
        );
    }
    for (more, expect_ms) in [("", 250), ("--replay_no_stall=1", 0)] {
        let line = format!("--name=a --read_iolog=t2 {more}");
        let took = only(&run_stepped(US, dir.path(), &line)).elapsed.0;
        assert!(
            (expect_ms * MS..expect_ms * MS + MS).contains(&took),
            "{more}: {took} ns"
        );
    }
}

#[test]
fn each_worker_of_each_rank_takes_its_turn_at_the_logs() {
    let dir = tempdir();
    for (name, reads) in [("t0", 1), ("t1", 2), ("t2", 3)] {
        let file = format!("f.{name}");
        fs::write(dir.path().join(&file), vec![7; 65536]).expect("written");
        let mut text = vec![format!("{file} add"), format!("{file} open")];
        text.extend((0..reads).map(|n| format!("{file} read {} 4096", n * 4096)));
        log(dir.path(), name, 2, &text);
    }
    let line = "--name=a --read_iolog=t0:t1:t2 --numjobs=2";
    let outcome = run_on(&[0, 1], dir.path(), line);
    check_sound(&outcome, line);
    let ios: Vec<u64> = outcome.jobs.iter().map(|job| job.read.ios).collect();
    assert_eq!(ios, [1, 2, 3, 1]);
    // One rank reads and the other writes: every rank has both rows.
    log(
        dir.path(),
        "w",
        2,
        &lines("g add; g open; g write 0 4096; g sync 0 0"),
    );
    let line = "--name=a --read_iolog=t1:w";
    let outcome = run_on(&[0, 1], dir.path(), line);
    check_sound(&outcome, line);
    let items = |row: &str| outcome.row(row).items;
    assert_eq!(
        (items("a-read"), items("a-write"), items("a-sync")),
        (2, 1, 1)
    );
    assert_eq!(listing(dir.path())["g"], 4096);
}

#[test]
fn workers_that_name_one_log_write_one_each() {
    let dir = tempdir();
    let line = "--name=a --rw=write --size=8k --numjobs=2 --write_iolog=t --name=b --rw=write --size=4k \
                --write_iolog=t";
    run_on(&[0, 1], dir.path(), line);
    for (name, file, writes) in [
        ("t", "a.0.0", 2),
        ("t.1", "a.1.0", 2),
        ("t.2", "a.2.0", 2),
        ("t.3", "a.3.0", 2),
        ("t.4", "b.0.0", 1),
        ("t.5", "b.1.0", 1),
    ] {
        let lines = recorded(dir.path(), name);
        let writes_there = lines.iter().filter(|line| line.contains(" write ")).count();
        assert_eq!(
            (lines[0].as_str(), writes_there),
            (format!("{file} add").as_str(), writes)
        );
    }
}

#[test]
fn an_earlier_log_is_replaced_and_nothing_else() {
    let dir = tempdir();
    let line = "--name=a --rw=write --size=8k --write_iolog=t";
    run_well(dir.path(), &format!("{line} --io_size=64k"));
    run_well(dir.path(), line);
    assert_eq!(recorded(dir.path(), "t").len(), 2 + 3);
    fs::write(dir.path().join("t"), "of the user's").expect("written");
    let message = refusal(dir.path(), line);
    assert!(
        message.contains("not an I/O log, so it is not overwritten"),
        "{message}"
    );
    assert_eq!(data(dir.path(), "t"), b"of the user's");
    fs::remove_file(dir.path().join("t")).expect("removed");
    fs::write(dir.path().join("other"), "fio version 3 iolog\n").expect("written");
    std::os::unix::fs::symlink("other", dir.path().join("t")).expect("linked");
    let message = refusal(dir.path(), line);
    assert!(message.contains("write_iolog"), "{message}");
    assert_eq!(data(dir.path(), "other"), b"fio version 3 iolog\n");
}

#[test]
fn a_log_that_is_wrong_is_told_with_its_line_before_anything_is_done() {
    let dir = tempdir();
    let line = "--name=a --read_iolog=t";
    let lost = usage(dir.path(), line);
    assert!(lost.contains("t cannot be read"), "{lost}");
    log(
        dir.path(),
        "t",
        2,
        &lines("f add; f open; f write 0 4096; f look 0 1"),
    );
    let wrong = usage(dir.path(), line);
    assert!(
        wrong.contains("t, line 5: 'look' is not an action"),
        "{wrong}"
    );
    log(dir.path(), "t", 2, &lines("f add; f open; f close"));
    let empty = usage(dir.path(), line);
    assert!(empty.contains("nothing to replay"), "{empty}");
    let mut magic = 0x6561_7407_u32.to_le_bytes().to_vec();
    magic.resize(64, 0);
    fs::write(dir.path().join("t"), magic).expect("written");
    let binary = usage(dir.path(), line);
    assert!(binary.contains("blktrace"), "{binary}");
    fs::write(
        dir.path().join("t"),
        format!("fio version 2 iolog\n{}", "x".repeat(9000)),
    )
    .expect("written");
    let long = usage(dir.path(), line);
    assert!(long.contains("line 2: it is longer"), "{long}");
    assert_eq!(listing(dir.path()).len(), 1, "nothing was made");
}

#[test]
fn what_a_log_wrote_is_verified_and_damage_is_found() {
    let write = "--name=w --filename=f --rw=randwrite --bs=4k --size=64k --io_size=32k --do_verify=0 \
                 --write_iolog=t";
    for verify in ["--verify=crc32c", "--verify=pattern --verify_pattern=0xbb"] {
        let dir = tempdir();
        run_well(dir.path(), &format!("{write} {verify}"));
        let before = data(dir.path(), "f");
        for rw in ["", "--rw=randwrite"] {
            let line =
                format!("--name=v --read_iolog=t --bs=4k --size=64k {verify} --verify_only {rw}");
            let outcome = run_well(dir.path(), &line);
            // Writes that were left out count, like in fio.
            assert_eq!(done(&outcome), [8, 8, 0, 0], "{line}");
            assert!(only(&outcome).read.runtime.0 > 0, "{line}");
            assert_eq!(data(dir.path(), "f"), before, "{line}");
        }
        // A byte of a written block.
        let at = before.iter().position(|byte| *byte != 0).expect("data") + 2000;
        let mut damaged = before.clone();
        damaged[at] ^= 1;
        fs::write(dir.path().join("f"), damaged).expect("written");
        let line = format!("--name=v --read_iolog=t --bs=4k {verify} --verify_only");
        let outcome = run(dir.path(), &line);
        let job = only(&outcome);
        assert_eq!(
            (job.read.ios, job.error),
            (7, Errno::EILSEQ as i32),
            "{line}"
        );
    }
}

#[test]
fn what_a_replay_writes_is_verified_at_its_end() {
    for more in ["", "--ioengine=io_uring --iodepth=4"] {
        let dir = tempdir();
        let text = "f add; f open; f write 0 8192; f write 16384 8192; f read 0 4096; f write 8192 8192; f close";
        log(dir.path(), "t", 2, &lines(text));
        // The read need not wait for the write before it.
        fs::write(dir.path().join("f"), vec![0; 24_576]).expect("written");
        let line = format!("--name=v --read_iolog=t --verify=crc32c {more}");
        let outcome = run_well(dir.path(), &line);
        assert_eq!(done(&outcome), [4, 3, 0, 0], "{line}");
        let only_checks = "--name=w --read_iolog=t --verify=crc32c --verify_only";
        assert_eq!(done(&run_well(dir.path(), only_checks)), [3, 3, 0, 0]);
    }
    let dir = tempdir();
    let text = "f add; f open; f write 0 8192; f write 8192 4096; f close";
    log(dir.path(), "t", 2, &lines(text));
    let line = "--name=v --read_iolog=t --verify=crc32c";
    let why = usage(dir.path(), line);
    assert!(why.contains("4096 to 8192 bytes"), "{why}");
    let outcome = run_well(dir.path(), &format!("{line} --verify_interval=4096"));
    assert_eq!(done(&outcome), [2, 2, 0, 0]);
}

#[test]
fn a_pipe_is_replayed_as_it_is_written_and_ends_where_it_is_wrong() {
    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let pipe = dir.path().join("p");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    for (more, end, error) in [
        ("", "", 0),
        ("--read_iolog_chunked=1", "", 0),
        ("--read_iolog_chunked=1", "f bogus\n", Errno::EINVAL as i32),
        (
            "--read_iolog_chunked=1",
            "f read 0 1048577\n",
            Errno::EINVAL as i32,
        ),
    ] {
        let place = pipe.clone();
        let text = "fio version 2 iolog\nf add\nf open\nf read 0 4096\nf read 4096 4096\n";
        let text = format!("{text}{end}");
        let writer = std::thread::spawn(move || fs::write(place, text));
        let line = format!("--name=a --read_iolog=p {more}");
        let outcome = run(dir.path(), &line);
        writer.join().expect("ends").expect("written");
        assert_eq!(
            (done(&outcome)[0], only(&outcome).error),
            (2, error),
            "{line} {end}"
        );
    }
}

/// Runs a job that reads the pipe `p`. After `operations` operations, the pipe pauses for a time on
/// the workers' clock.
fn run_of_slow_pipe(line: &str, (first, operations): (&str, u64), last: &str) -> Outcome {
    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let pipe = dir.path().join("p");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let clock = SimulatedClock::new(Nanos(US));
    let (done, all_done) = mpsc::channel();
    let mut run = job(&[0], dir.path(), line);
    run.clocks = vec![clock];
    run.progressed = Some(Box::new(move |progress| {
        if progress.items == operations {
            // The first message is enough.
            let _ = done.send(());
        }
    }));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut pipe = fs::File::create(pipe).expect("a reader");
            pipe.write_all(first.as_bytes()).expect("written");
            all_done.recv_timeout(PATIENCE).expect("they are done");
            clock.advance(0, Nanos(600 * MS));
            // A reader that has read enough is gone.
            let _ = pipe.write_all(last.as_bytes());
        });
        finish(run, line)
    })
}

const START: &str = "fio version 3 iolog\n0 f add\n0 f open\n";

#[test]
fn a_log_that_pauses_makes_no_latencies_longer() {
    for engine in ["io_uring", "libaio", "posixaio"] {
        let line = format!(
            "--name=a --read_iolog=p --read_iolog_chunked=1 --ioengine={engine} --iodepth=4"
        );
        let reads = format!("{START}0 f read 0 4096\n0 f read 4096 4096\n");
        let outcome = run_of_slow_pipe(&line, (&reads, 2), "0 f read 8192 4096\n");
        assert_eq!(done(&outcome)[0], 3, "{engine}");
        let elapsed = only(&outcome).elapsed.0;
        assert!(elapsed >= 600 * MS, "{engine}: {elapsed} ns");
        let slowest = outcome.row("a-read").service.extremes().1;
        assert!(slowest < 600 * MS, "{engine}: {slowest} ns");
    }
}

#[test]
fn a_replay_that_is_cut_off_tells_what_was_due() {
    let line = "--name=a --read_iolog=p --read_iolog_chunked=1 --runtime=100ms";
    let reads = format!("{START}0 f read 0 4096\n");
    let outcome = run_of_slow_pipe(line, (&reads, 1), "0 f read 0 4096\n");
    assert_eq!(done(&outcome)[0], 1);

    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let mut text = lines("0 f add; 0 f open");
    text.extend((0..10).map(|n| format!("{} f read {} 512", n * 15_000, n * 4096)));
    text.push("500000 f read 0 512".to_owned());
    text.push("500000 f write 0 512".to_owned());
    log(dir.path(), "t", 3, &text);
    for more in ["", "--iodepth=2 --ioengine=null", "--read_iolog_chunked=1"] {
        let line = format!("--name=a --read_iolog=t --runtime=200ms {more}");
        // Operations of 20 ms, one every 15 ms.
        let outcome = run_stepped(20 * MS, dir.path(), &line);
        let row = outcome.row("a-read");
        assert_eq!(row.items + row.unissued, 10, "{line}: {} done", row.items);
        assert!(row.items > 0 && row.unissued > 0, "{line}: {}", row.items);
        assert_eq!(outcome.row("a-write").unissued, 0, "{line}");
    }
}

#[test]
fn what_can_be_read_but_once_has_one_reader() {
    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let pipe = dir.path().join("p");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let chunked = "--name=a --read_iolog_chunked=1 --read_iolog=p";
    for (ranks, line) in [
        (1, format!("{chunked} --numjobs=2")),
        (1, format!("{chunked} --name=b --read_iolog=./p")),
        (1, format!("{chunked} --name=b --stonewall --read_iolog=p")),
        (2, "--name=a --read_iolog=p".to_owned()),
        (2, "--name=a --read_iolog=-".to_owned()),
        (
            1,
            "--name=a --read_iolog=p --name=b --read_iolog=p --replay_no_stall=1".to_owned(),
        ),
    ] {
        match job(&[0, 0][..ranks], dir.path(), &line).go() {
            Err(ExecError::Usage(told)) => {
                assert!(
                    told.contains("only once, but 2 workers would read it"),
                    "{told}"
                );
            }
            other => panic!("{line}: {:?}", other.map(drop)),
        }
    }
    let place = pipe.clone();
    let text = "fio version 2 iolog\nf add\nf open\nf read 0 4096\n";
    let writer = std::thread::spawn(move || fs::write(place, text));
    let outcome = run(dir.path(), "--name=a --read_iolog=p --numjobs=2");
    writer.join().expect("ends").expect("written");
    assert_eq!(outcome.row("a-read").items, 2);
}

#[test]
fn a_log_that_is_written_is_nothing_else() {
    let dir = tempdir();
    let text = lines("f add; f open; f write 0 4096");
    for name in ["old", "old2"] {
        log(dir.path(), name, 2, &text);
    }
    fs::hard_link(dir.path().join("old2"), dir.path().join("same")).expect("linked");
    let before = listing(dir.path());
    let one = "--rw=write --size=4k";
    for (line, why) in [
        (
            format!("--name=a {one} --numjobs=2 --write_iolog=t --name=b {one} --write_iolog=t.1"),
            "two workers",
        ),
        (
            format!("--name=a {one} --write_iolog=t --name=b {one} --write_iolog=./t"),
            "two workers",
        ),
        (
            format!("--name=a {one} --write_iolog=same --name=b {one} --write_iolog=old2"),
            "two workers",
        ),
        (
            format!("--name=a {one} --write_iolog=old --name=b --read_iolog=./old"),
            "replayed",
        ),
        (
            format!("--name=a {one} --write_iolog=a.0.0"),
            "a data file of a job",
        ),
        (
            format!("--name=a {one} --write_iolog=same --name=b {one} --filename=old2"),
            "a data file of a job",
        ),
    ] {
        let message = usage(dir.path(), &line);
        assert!(
            message.contains("write_iolog") && message.contains(why),
            "{line}: {message}"
        );
        assert_eq!(listing(dir.path()), before, "{line}");
    }
}

#[test]
fn each_rank_removes_what_its_own_log_made() {
    let dir = tempdir();
    for (name, file) in [("t0", "f"), ("t1", "g")] {
        let text = format!("{file} add; {file} open; {file} write 0 4096; {file} close");
        log(dir.path(), name, 2, &lines(&text));
    }
    let before = listing(dir.path());
    run_on(
        &[0, 1],
        dir.path(),
        "--name=a --read_iolog=t0:t1 --unlink=1",
    );
    assert_eq!(listing(dir.path()), before);
}

#[test]
fn files_that_a_pipe_names_are_locked_as_others_are() {
    for mode in ["exclusive", "readwrite"] {
        let line = format!("--name=a --read_iolog=p --read_iolog_chunked=1 --lockfile={mode}");
        let write = format!("{START}0 f write 0 4096\n");
        let outcome = run_of_slow_pipe(&line, (&write, 1), "0 f read 0 4096\n");
        assert_eq!(done(&outcome)[..2], [1, 1], "{mode}");
    }
}
