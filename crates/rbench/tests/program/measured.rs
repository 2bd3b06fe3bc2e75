//! Tests statements about the target that precede the measurement: the round trip, data against
//! memory, and unwritten parts of files.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use rbench_report::RunResult;
use tempfile::TempDir;

use crate::valid;

/// A directory on the disk of the build, if that is on a disk.
struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        fs::create_dir(dir.path().join("t")).expect("new");
        Place(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, arguments: &str) -> Output {
        let run = Command::new(env!("CARGO_BIN_EXE_rbench"))
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("RBENCH_DIR")
            .output()
            .expect("the program starts");
        assert!(run.status.success(), "{arguments}: {}", text(&run.stderr));
        run
    }

    /// The result of a run; its output is discarded.
    fn result(&self, arguments: &str) -> RunResult {
        self.report_and_result(arguments).1
    }

    fn report_and_result(&self, arguments: &str) -> (String, RunResult) {
        let out = self.path("out.json");
        drop(fs::remove_file(&out));
        let run = self.run(&format!("{arguments} --out out.json"));
        let file = fs::read_to_string(out).expect("a result file");
        valid::check(&file);
        let result = serde_json::from_str(&file).expect("a valid result");
        (text(&run.stdout), result)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn message(result: &RunResult, code: &str) -> Option<String> {
    let warning = result.warnings.iter().find(|w| w.code == code);
    warning.map(|w| w.message.clone())
}

/// The built-in file system on `t`; ends when its standard input closes.
fn serve(place: &Place, options: &str) -> std::process::Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_rbench"))
        .args(format!("testfs t --watch-parent {options}").split_whitespace())
        .current_dir(place.0.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line).expect("a line");
    assert_eq!(line.trim(), "ready");
    child
}

fn end(mut child: std::process::Child) {
    drop(child.stdin.take());
    assert!(child.wait().expect("ends").success());
}

#[test]
fn without_a_file_system_or_a_report_there_is_no_round_trip() {
    let place = Place::new();
    let none = |arguments: &str| {
        let result = place.result(arguments);
        assert_eq!(result.target.round_trip, [], "{arguments}");
    };
    none("io --dir t --engine null --size 1m");
    none("fio --name=x --ioengine=null --size=1m --rw=read");
    none("io --dir t --size 1m --rw write --no-round-trip");
    let one = place.result("fio --name=x --directory=t --size=1m --rw=write");
    assert_eq!(one.target.round_trip.len(), 1);
    assert!(!one.target.round_trip[0].seen, "nobody counts on a disk");

    let strace = |out: &str| {
        let run = Command::new("strace")
            .args(["-f", "-qq", "-e", "trace=statx", "-o"])
            .arg(place.path("trace"))
            .arg(env!("CARGO_BIN_EXE_rbench"))
            .args([
                "fio",
                "--name=x",
                "--directory=t",
                "--size=1m",
                "--rw=write",
            ])
            .args(out.split_whitespace())
            .current_dir(place.0.path())
            .output();
        run.is_ok_and(|run| run.status.success())
            .then(|| fs::read_to_string(place.path("trace")).expect("a trace"))
            .map(|trace| trace.matches("AT_STATX_FORCE_SYNC").count())
    };
    if let Some(plain) = strace("") {
        assert_eq!(plain, 0, "fio's own report has no place for it");
        assert!(strace("--rbench-report") > Some(0));
    }
}

#[test]
fn data_is_held_against_the_memory_of_the_host_and_the_clients_cache() {
    let place = Place::new();
    let result = place.result("io --dir t --size 2m --threads 2 --rw write,read --client-cache 4m");
    let [size] = &result.target.data_sizes[..] else {
        panic!("{:?}", result.target);
    };
    let meminfo = fs::read_to_string("/proc/meminfo").expect("there");
    let total = meminfo.lines().find_map(|l| l.strip_prefix("MemTotal:"));
    let total = total.and_then(|l| l.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    assert!(size.memory_bytes <= total.map(|kib| kib * 1024), "{size:?}");
    assert_eq!(size.read_bytes, 4 << 20);
    assert_eq!(size.client_cache_bytes, Some(4 << 20));
    let memory = message(&result, "fits-in-memory").expect("a warning");
    assert!(
        memory.contains("4.0 MiB, less than 2 times its"),
        "{memory}"
    );
    assert!(message(&result, "fits-in-client-cache").is_some());

    let quiet = |arguments: &str, of: usize| {
        let result = place.result(arguments);
        assert_eq!(result.target.data_sizes.len(), of, "{arguments}");
        assert_eq!(message(&result, "fits-in-memory"), None, "{arguments}");
        assert_eq!(
            message(&result, "fits-in-client-cache"),
            None,
            "{arguments}"
        );
    };
    quiet("io --dir t --size 1m --rw write --client-cache 1g", 0);
    quiet(
        "io --dir t --size 1m --rw write,read --direct --client-cache 512k",
        1,
    );
    quiet("io --dir t --size 1m --rw write,read --engine null", 0);
    quiet("meta --dir t --items 2 --depth 0", 0);
}

#[test]
fn data_counts_as_far_as_it_was_read_and_each_byte_once() {
    let place = Place::new();
    let row = |result: &RunResult, name: &str| {
        let row = result.phases.iter().find(|row| row.name == name);
        row.map_or(0, |row| row.items)
    };
    let read = |arguments: &str| {
        let result = place.result(arguments);
        // A worker that has no processor in the time of a phase reads nothing.
        let bytes = match &result.target.data_sizes[..] {
            [] => 0,
            [size] => size.read_bytes,
            _ => panic!("{arguments}: {:?}", result.target),
        };
        let is_said = message(&result, "fits-in-memory").is_some();
        assert_eq!(is_said, bytes > 0, "{arguments}");
        (bytes, result)
    };
    // Files are made as long as time is left, and then read again and again.
    let (bytes, result) =
        read("meta --dir t --phases file-create,file-read --time 200ms --write 4k --threads 1");
    let files = row(&result, "file-create").min(row(&result, "file-read"));
    assert_eq!(bytes, files * 4096);
    // Few of many files are read.
    let (bytes, result) = read(
        "meta --dir t --files-only --depth 0 --items 1000000000 --write 4k \
         --stonewall 100ms --overfill --threads 1",
    );
    assert_eq!(bytes, row(&result, "file-read") * 4096);
    let (bytes, result) = read("io --dir t --size 8m --rw randread --rate 50 --time 200ms");
    assert_eq!(bytes, result.phases[0].bytes);
    assert!(bytes <= 10 * (128 << 10), "{bytes}");
    let (bytes, result) = read("io --dir t --size 64k --rw read --bs 4k --time 50ms");
    assert_eq!(bytes, result.phases[0].bytes.min(64 << 10));
    let twice = "io --dir t --size 1m --rw write,read --iterations 2";
    assert_eq!(read(twice).0, 1 << 20);
}

#[test]
fn reads_of_what_was_never_written_are_said_with_their_share() {
    let place = Place::new();
    let job = "fio --name=x --filename=t/f --rw=read";
    let file = fs::File::create_new(place.path("t/f")).expect("new");
    std::os::unix::fs::FileExt::write_all_at(&file, &vec![7; 1 << 20], 0).expect("room");
    file.sync_all().expect("the disk takes it");
    assert_eq!(message(&place.result(job), "never-written"), None);

    file.set_len(4 << 20).expect("a hole");
    let said = message(&place.result(job), "never-written").expect("a warning");
    assert!(said.contains("75% (0% reserved, 75% holes)"), "{said}");
    // The part that is read counts.
    let written = format!("{job} --size=1m");
    assert_eq!(message(&place.result(&written), "never-written"), None);

    let reserved = Command::new("fallocate")
        .args(["-o", "1MiB", "-l", "3MiB"])
        .arg(place.path("t/f"))
        .status();
    if reserved.is_ok_and(|status| status.success()) {
        // Repeated, when the page cache holds zeros.
        for _ in 0..2 {
            let said = message(&place.result(job), "never-written").expect("a warning");
            assert!(said.contains(" 75% ("), "{said}");
        }
    }
    // Data that our own phases read is written beforehand.
    let result = place.result("io --dir t --size 1m --rw write,read,randread");
    assert_eq!(message(&result, "never-written"), None);
}

mod needs_fuse {
    use super::*;

    #[test]
    fn a_round_trip_is_that_of_the_file_system_and_in_head_and_result() {
        let place = Place::new();
        let child = serve(&place, "--latency getattr=2ms --stats account.json");
        let meta = "meta --dir t --items 3 --depth 0 --phases file-create";
        let (head, result) = place.report_and_result(meta);
        let [round_trip] = &result.target.round_trip[..] else {
            panic!("{:?}", result.target);
        };
        assert_eq!((round_trip.call.as_str(), round_trip.seen), ("statx", true));
        assert!(round_trip.median_ns >= 2_000_000, "{round_trip:?}");
        assert_eq!(round_trip.host, result.world.hosts[0].name);
        let line = head.lines().find(|line| line.starts_with("Round trip "));
        assert!(line.is_some_and(|line| line.contains("statx ")), "{head}");
        end(child);
        let account = fs::read(place.path("account.json")).expect("an account");
        let account: serde_json::Value = serde_json::from_slice(&account).expect("JSON");
        let getattr = account["requests"]["getattr"]["count"].as_u64();
        assert!(
            getattr > Some(round_trip.calls),
            "{getattr:?}, {round_trip:?}"
        );
    }
}
