//! Tests replays on the machine's own clock.

use super::*;
use crate::clock::tried_again;
use crate::testfs::mount;

#[test]
fn times_are_kept_scaled_and_left_out() {
    let dir = timed_logs();
    for (more, least, most) in [
        ("", 0.4, 0.6),
        ("--replay_time_scale=200", 0.2, 0.35),
        ("--replay_time_scale=50", 0.8, 1.1),
        ("--read_iolog_chunked=1", 0.4, 0.6),
        ("--ioengine=io_uring --iodepth=4", 0.4, 0.6),
        ("--replay_no_stall=1", 0.0, 0.1),
        ("--runtime=100ms", 0.05, 0.2),
    ] {
        let line = format!("--name=a --read_iolog=t {more}");
        tried_again(|| {
            let outcome = run_well(dir.path(), &line);
            let took = only(&outcome).elapsed.as_secs_f64();
            assert!((least..most).contains(&took), "{more}: {took}");
            let late = late(&outcome, "a-read");
            if more.contains("no_stall") {
                assert_eq!(late, Lateness::default());
                return;
            }
            assert_eq!(late.operations, outcome.row("a-read").items, "{more}");
            // Far below all times, but rarely exceeded on a busy machine.
            assert!(late.max.0 < 100_000_000, "{more}: {late:?}");
            assert!(
                late.mean() <= late.max && late.max.0 > 0,
                "{more}: {late:?}"
            );
        });
    }
    for (more, least, most) in [("", 0.25, 0.4), ("--replay_no_stall=1", 0.0, 0.1)] {
        let line = format!("--name=a --read_iolog=t2 {more}");
        tried_again(|| {
            let took = only(&run_well(dir.path(), &line)).elapsed.as_secs_f64();
            assert!((least..most).contains(&took), "{more}: {took}");
        });
    }
}

/// Runs a job that reads the pipe `p`, into which `text` is written with a pause before its last
/// line.
fn run_of_slow_pipe(line: &str, text: &[&str]) -> Outcome {
    let dir = tempdir();
    fs::write(dir.path().join("f"), vec![7; 65536]).expect("written");
    let pipe = dir.path().join("p");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let (first, last) = text.split_at(text.len() - 1);
    let (first, last) = (first.concat(), last.concat());
    let writer = std::thread::spawn(move || {
        use std::io::Write as _;
        let mut pipe = fs::File::create(pipe).expect("a reader");
        pipe.write_all(first.as_bytes()).expect("written");
        std::thread::sleep(std::time::Duration::from_millis(600));
        // A reader that has read enough is gone.
        let _ = pipe.write_all(last.as_bytes());
    });
    let outcome = run(dir.path(), line);
    writer.join().expect("ends");
    outcome
}

const START: &str = "fio version 3 iolog\n0 f add\n0 f open\n";

#[test]
fn a_log_that_pauses_makes_no_latencies_longer() {
    // A busy disk may take this long.
    tried_again(|| {
        for engine in ["io_uring", "libaio", "posixaio"] {
            let line = format!(
                "--name=a --read_iolog=p --read_iolog_chunked=1 --ioengine={engine} --iodepth=4"
            );
            let reads = "0 f read 0 4096\n0 f read 4096 4096\n";
            let outcome = run_of_slow_pipe(&line, &[START, reads, "0 f read 8192 4096\n"]);
            assert_eq!(done(&outcome)[0], 3, "{engine}");
            let slowest = outcome.row("a-read").service.extremes().1;
            assert!(slowest < 300_000_000, "{engine}: {slowest}");
        }
    });
}

#[test]
fn a_replay_that_is_cut_off_tells_what_was_due() {
    // A busy machine or disk may do too little in this short time.
    tried_again(|| {
        let line = "--name=a --read_iolog=p --read_iolog_chunked=1 --runtime=100ms";
        let outcome = run_of_slow_pipe(line, &[START, "0 f read 0 4096\n", "0 f read 0 4096\n"]);
        assert_eq!(done(&outcome)[0], 1);

        let target = mount(|config| config.latency = "read=40ms".parse().expect("valid"));
        fs::write(target.path().join("f"), vec![7; 65536]).expect("written");
        let mut text = lines("0 f add; 0 f open");
        text.extend((0..10).map(|n| format!("{} f read {} 512", n * 15_000, n * 4096)));
        text.push("500000 f read 0 512".to_owned());
        text.push("500000 f write 0 512".to_owned());
        log(target.path(), "t", 3, &text);
        for more in [
            "",
            "--iodepth=2 --ioengine=posixaio",
            "--read_iolog_chunked=1",
        ] {
            let line =
                format!("--name=a --read_iolog=t --direct=1 --invalidate=1 --runtime=200ms {more}");
            let outcome = run(target.path(), &line);
            let row = outcome.row("a-read");
            assert_eq!(row.items + row.unissued, 10, "{line}: {} done", row.items);
            assert_eq!(outcome.row("a-write").unissued, 0, "{line}");
        }
        target.end();
    });
}
