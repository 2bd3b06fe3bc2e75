//! Tests the program's files outside the target: no file of the user is replaced or lost, symbolic
//! links stay, and standard error is empty if nothing is wrong.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rbench_report::RunResult;
use rbench_report::repetition::PRECISION_MISSED;
use rbench_report::schema::Enough;
use serde_json::Value;
use tempfile::TempDir;

use crate::common::install;
use crate::valid;

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("target")).expect("made");
        Place(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("written");
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    fn result(&self, name: &str) -> RunResult {
        let text = self.text(name);
        valid::check(&text);
        serde_json::from_str(&text).expect("a result")
    }

    fn is_link(&self, name: &str) -> bool {
        let metadata = self.path(name).symlink_metadata();
        metadata.expect(name).file_type().is_symlink()
    }

    /// Names in the directory, except the target.
    fn names(&self) -> Vec<String> {
        let all = fs::read_dir(self.0.path()).expect("listing");
        let mut names: Vec<String> = all
            .map(|e| e.expect("entry").file_name().to_string_lossy().into_owned())
            .filter(|name| name != "target")
            .collect();
        names.sort();
        names
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbench"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("RBENCH_DIR");
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("starts")
    }

    fn run_well(&self, line: &str) -> Output {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        output
    }

    /// Checks that `line` ends with `code` and prints each of `parts`.
    fn check(&self, line: &str, code: i32, parts: &[&str]) {
        let output = self.run(line);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        for part in parts {
            assert!(said.contains(part), "{line}: {said}");
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Standard error without what only says that the machine is busy.
fn said_of_the_run(output: &Output) -> String {
    let busy = "rbench: No worker of a host finished anything for more than a second: ";
    let all = said(output);
    let lines = all.lines().filter(|line| !line.starts_with(busy));
    lines.collect::<Vec<_>>().join("\n")
}

const META: &str = "meta --dir target --items 4 --threads 1 --iterations 1";
const FIO: &str = "fio --name=a --directory=target --rw=write --bs=4k --size=16k";
/// The status file that `-x` writes for [`MDTEST`].
const STATUS: &str = "3\n# items of each rank, written by rbench\n";
const MDTEST: &str = "mdtest -d target/md -F -C -n 3 -W 60";

/// A command that rbench runs before a phase, when its journal is open.
fn between(script: &str, place: &Place) -> String {
    let path = place.path("between");
    install(&path, format!("#!/bin/sh\n{script}\n").as_bytes());
    format!("--run-cmd-before-phase={}", path.display())
}

#[test]
fn a_result_whose_name_was_taken_during_the_run_lies_beside_it() {
    let place = Place::new();
    place.write("run.json.1", "also precious");
    let option = between("echo precious >run.json", &place);
    let line = format!("mdtest -d target/md -F -n 3 --out run.json {option}");
    place.check(
        &line,
        1,
        &[
            "run.json appeared during the run and is not overwritten",
            "run.json.2",
        ],
    );
    assert_eq!(place.text("run.json"), "precious\n");
    assert_eq!(place.text("run.json.1"), "also precious");
    assert!(place.result("run.json.2").complete);
    let names = ["between", "run.json", "run.json.1", "run.json.2"];
    assert_eq!(place.names(), names, "no journal and no part is left");
}

#[test]
fn of_several_outputs_that_fail_each_is_told() {
    let place = Place::new();
    let script = "echo precious >run.json; echo precious >status";
    let option = between(script, &place);
    let line = format!("{MDTEST} -x status --out run.json {option}");
    place.check(
        &line,
        1,
        &["run.json appeared during the run", "rbench: -x", "status.1"],
    );
    for name in ["run.json", "status"] {
        assert_eq!(place.text(name), "precious\n");
    }
}

#[test]
fn files_beyond_the_limit_of_the_user_fail_and_the_run_goes_on() {
    let place = Place::new();
    let line = format!(
        "ulimit -f 2048; exec {} io --dir target --size 8m --bs 64k --rw write --out run.json",
        env!("CARGO_BIN_EXE_rbench")
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &line]).current_dir(place.0.path());
    let output = shell.output().expect("sh");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let result = place.result("run.json");
    let errors = result.phases.iter().flat_map(|phase| phase.errors.keys());
    let errors: Vec<&String> = errors.collect();
    assert_eq!(errors, ["EFBIG"]);
}

#[test]
fn a_result_does_not_take_the_place_of_a_link_that_appeared() {
    let place = Place::new();
    place.write("victim", "precious");
    let option = between("ln -sf victim run.json", &place);
    let line = format!("mdtest -d target/md -F -n 3 --out run.json {option}");
    place.check(&line, 1, &["run.json.1"]);
    assert!(place.is_link("run.json"));
    assert_eq!(place.text("victim"), "precious");
    assert!(place.result("run.json.1").complete);
}

#[test]
fn a_file_called_partial_is_nobodys_business() {
    let place = Place::new();
    for name in ["run.json.partial", "status.partial"] {
        place.write(name, "precious");
    }
    place.run_well(&format!("{META} --out run.json"));
    place.run_well(&format!("{MDTEST} -x status"));
    for name in ["run.json.partial", "status.partial"] {
        assert_eq!(place.text(name), "precious");
    }
    assert!(place.result("run.json").complete);
    assert_eq!(place.text("status"), STATUS);
}

#[test]
fn a_status_file_only_replaces_its_like_and_no_link_is_followed() {
    let place = Place::new();
    place.write("thesis", "precious");
    place.write("number", "17\n");
    for name in ["thesis", "number"] {
        let why = format!("{name} holds other data and is not overwritten");
        place.check(&format!("{MDTEST} -x {name}"), 1, &["-x", &why]);
    }
    assert_eq!(place.text("thesis"), "precious");
    assert_eq!(place.text("number"), "17\n");
    assert!(!place.path("target/md").exists(), "nothing was made");
    place.run_well(&format!("{MDTEST} -x ours"));
    assert_eq!(place.text("ours"), STATUS);
    symlink("ours", place.path("link")).expect("made");
    let again = MDTEST.replace("/md", "/again");
    place.check(&format!("{again} -x link"), 1, &["is a symbolic link"]);
    assert_eq!(place.text("ours"), STATUS);
    place.run_well(&format!("{again} -x ours"));
    place.run_well("mdtest -d target/again -F -T -x ours");
    place.run_well(&format!("{} -x /dev/null", MDTEST.replace("/md", "/other")));
    let null = fs::metadata("/dev/null").expect("there");
    assert!(null.file_type().is_char_device());
    // A file that appeared during the run stays, and the number is not lost.
    let option = between("echo precious >late", &place);
    let line = MDTEST.replace("/md", "/third");
    place.check(&format!("{line} -x late {option}"), 1, &["late.1"]);
    assert_eq!(place.text("late"), "precious\n");
    assert_eq!(place.text("late.1"), STATUS);
}

#[test]
fn an_output_of_fio_only_replaces_a_report() {
    let place = Place::new();
    place.write("thesis", "precious");
    place.check(
        &format!("{FIO} --output=thesis"),
        1,
        &["--output", "thesis holds other data and is not overwritten"],
    );
    assert_eq!(place.text("thesis"), "precious");
    symlink("nowhere", place.path("dangling")).expect("made");
    place.check(
        &format!("{FIO} --output=dangling"),
        1,
        &["dangling symbolic link"],
    );
    assert!(!place.path("nowhere").exists());
    for quotes in [
        "Why does fio print (groupid=0, jobs=1) here?\n",
        "a: (g=0): rw=write is what I saw\n",
        "int f(int a) { return a ;fio-1; }\n",
        "{\n  \"title\": \"a talk on the key \\\"fio version\\\"\"\n}\n",
    ] {
        place.write("note", quotes);
        place.check(
            &format!("{FIO} --output=note"),
            1,
            &["note holds other data and is not overwritten"],
        );
        assert_eq!(place.text("note"), quotes);
    }
    place.write("empty", "");
    symlink("empty", place.path("link-to-empty")).expect("made");
    place.check(
        &format!("{FIO} --output=link-to-empty"),
        1,
        &["is a symbolic link, which is not followed"],
    );
    assert!(!place.path("target/a.0.0").exists(), "nothing was made");
    // Reports in all formats are overwritten, like in fio.
    for format in ["normal", "json", "terse", "json+,normal", "normal"] {
        place.run_well(&format!("{FIO} --output=report --output-format={format}"));
        let length = place.text("report").len();
        place.run_well(&format!("{FIO} --output=report --output-format={format}"));
        assert!(
            place.text("report").len() < length * 3 / 2,
            "{format}: not appended"
        );
    }
    place.run_well(&format!("{FIO} --output=/dev/null"));
    let output = place.run_well(&format!("{FIO} --output=/dev/stdout"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("(groupid=0"));
    // A file that replaces an earlier report during the run stays.
    between("cp thesis new\nmv new report", &place);
    let line = format!("{FIO} --exec_prerun=./between --output=report");
    place.check(&line, 1, &["report.1"]);
    assert_eq!(place.text("report"), "precious");
    fs::rename(place.path("report.1"), place.path("report")).expect("moved");
    // The report of a refused run replaces it, like fio's.
    nix::unistd::mkfifo(&place.path("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    place.check(
        "fio --name=p --filename=pipe --rw=write --size=1m --output=report",
        1,
        &["pipe", "a pipe or a socket has no offsets"],
    );
    let refused = "p: (groupid=0, jobs=1): err=29 ";
    let report = place.text("report");
    assert!(
        report.contains(refused) && !report.contains("a: "),
        "{report}"
    );
    place.check(
        "fio --name=p --filename=pipe --rw=write --size=1m --output=none",
        1,
        &["pipe"],
    );
    assert!(place.text("none").contains(refused));
}

#[test]
fn the_files_of_the_built_in_file_system_only_replace_their_like() {
    let place = Place::new();
    place.write("thesis", "precious");
    symlink("nowhere", place.path("dangling")).expect("made");
    for (option, name, why) in [
        ("--stats", "thesis", "holds other data"),
        ("--fault-log", "thesis", "holds other data"),
        ("--stats", "dangling", "is a dangling symbolic link"),
        ("--fault-log", "dangling", "is a dangling symbolic link"),
    ] {
        let line = format!("testfs target {option} {name}");
        place.check(&line, 2, &[&format!("{option} {name} {why}")]);
    }
    assert_eq!(place.text("thesis"), "precious");
    assert!(!place.path("nowhere").exists());
}

#[test]
fn a_series_goes_on_where_it_was_begun() {
    let place = Place::new();
    let words = "sweep --over bs=4k,8k --out s.json -- io --size 64k --rw read --quiet";
    let launch = |line: &str, env: Option<&str>| {
        let mut command = place.command(line);
        if let Some(dir) = env {
            command.env("RBENCH_DIR", place.path(dir));
        }
        command.stdin(Stdio::null()).output().expect("it runs")
    };
    fs::create_dir(place.path("other")).expect("made");
    let first = launch(words, Some("target"));
    assert_eq!(first.status.code(), Some(0), "{}", said(&first));
    let again = words.replace("--out", "--resume --out");
    for (env, why) in [
        (Some("other"), "it was started with RBENCH_DIR="),
        (None, "it was started with RBENCH_DIR="),
    ] {
        let refused = launch(&again, env);
        assert_ne!(refused.status.code(), Some(0));
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
    let other = launch(&again.replace("8k", "16k"), Some("target"));
    let why = "it holds a series with different values: bs=4k,8k, not bs=4k,16k";
    assert!(said(&other).contains(why), "{}", said(&other));
    // The file alone says what the series is, and where.
    let of = |file: &str| format!("--resume {}", place.path(file).display());
    for line in [&again, &of("s.json"), &format!("sweep {}", of("s.json"))] {
        let same = launch(line, Some("target"));
        assert_eq!(same.status.code(), Some(0), "{}", said(&same));
        let kept = "resumed: 2 cells were complete before";
        assert!(said(&same).contains(kept), "{}", said(&same));
    }
    let elsewhere = (place.command(&of("s.json")).current_dir("/"))
        .env("RBENCH_DIR", place.path("target"))
        .output()
        .expect("it runs");
    assert_eq!(elsewhere.status.code(), Some(0), "{}", said(&elsewhere));
    for (line, why) in [
        (of("none.json"), "none.json cannot be read"),
        (format!("nn {}", of("s.json")), "it holds a series of sweep"),
    ] {
        let refused = launch(&line, Some("target"));
        assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
        assert!(said(&refused).contains(why), "{}", said(&refused));
    }
}

#[test]
fn logs_of_fio_only_replace_logs() {
    let place = Place::new();
    let line = format!("{FIO} --write_lat_log=log --write_bw_log=log");
    place.run_well(&line);
    let first = place.text("log_lat.1.log");
    assert_eq!(first.lines().count(), 4);
    place.run_well(&line);
    assert_eq!(place.text("log_lat.1.log").lines().count(), 4);
    place.write("log_clat.1.log", "precious");
    place.check(
        &line,
        1,
        &["log_clat.1.log holds other data and is not overwritten"],
    );
    assert_eq!(place.text("log_clat.1.log"), "precious");
    // A file with comma-separated numbers may belong to anyone.
    let numbers = "1, 2\n3, 4\n";
    place.write("log_clat.1.log", numbers);
    place.check(&line, 1, &["log_clat.1.log holds other data"]);
    assert_eq!(place.text("log_clat.1.log"), numbers);
    fs::rename(place.path("log_clat.1.log"), place.path("mine")).expect("moved");
    symlink("log_lat.1.log", place.path("log_clat.1.log")).expect("made");
    place.check(&line, 1, &["log_clat.1.log is a symbolic link"]);
}

/// On a full disk, the report or log of an earlier run stays.
#[cfg(test)]
mod needs_root {
    use super::*;

    #[test]
    fn what_cannot_be_removed_makes_the_exit_code() {
        let place = Place::new();
        let script =
            "#!/bin/sh\nmkdir -p $RBENCH_DIRECTORY/m && mount -t tmpfs none $RBENCH_DIRECTORY/m\n";
        install(&place.path("mounts"), script.as_bytes());
        let line = "meta --dir target --items 3 --phases file-create --after-phase ./mounts";
        // The mount ends with its namespace, even if the test is killed.
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "private"]);
        command.arg(env!("CARGO_BIN_EXE_rbench"));
        command.args(line.split_whitespace());
        command.current_dir(place.0.path()).env_remove("RBENCH_DIR");
        let output = command.output().expect("unshare starts");
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let report = String::from_utf8_lossy(&output.stdout);
        // A long path of the temporary directory wraps the line.
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        let reason = "/m could not be removed: another file system is mounted there";
        assert!(report.contains(reason), "{report}");
    }

    #[test]
    fn what_an_earlier_run_has_written_stays_until_the_new_one_is_whole() {
        let place = Place::new();
        let small = place.path("small");
        fs::create_dir(&small).expect("made");
        let mount = |words: &[&str]| {
            let ended = Command::new(words[0])
                .args(&words[1..])
                .arg(&small)
                .status();
            assert!(ended.expect("starts").success(), "{words:?}");
        };
        mount(&["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs"]);
        let line = format!("{FIO} --output=small/report --write_lat_log=small/log");
        place.run_well(&line);
        let names = ["small/report", "small/log_lat.1.log"];
        let before = names.map(|name| place.text(name));
        let _ = fs::write(place.path("small/full"), vec![1; 64 << 10]);
        let output = place.run(&line);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let after = names.map(|name| place.text(name));
        // A process that another test starts has copies of descriptors for a moment.
        mount(&["umount", "--lazy"]);
        assert_eq!(before, after);
        // The report is not lost.
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(printed.contains("(groupid=0"), "{printed}");
    }
}

#[test]
fn standard_error_is_empty_when_nothing_is_wrong() {
    let place = Place::new();
    for (line, result) in [
        (format!("{FIO} --iodepth=4 --out=fio.json"), "fio.json"),
        (
            "mdtest -d target/md -b 2 -z 1 -n 4 --out mdtest.json".to_owned(),
            "mdtest.json",
        ),
    ] {
        let output = place.run_well(&line);
        assert_eq!(said_of_the_run(&output), "", "{line}");
        // The plan has a note about the options.
        let warnings = place.result(result).warnings;
        assert!(warnings.iter().any(|w| w.code == "plan"), "{warnings:?}");
    }
    let output = place.run_well(&format!("{FIO} --iodepth=4 --rbench-report"));
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("iodepth is capped at 1"), "{report}");
}

#[test]
fn a_standard_error_that_cannot_be_written_costs_no_run_and_no_result() {
    let place = Place::new();
    let full = || {
        Stdio::from(
            fs::File::options()
                .write(true)
                .open("/dev/full")
                .expect("it is there"),
        )
    };
    let unread = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    let check = |line: &str, code: i32| {
        for (kind, stderr) in [("full", full()), ("unread", unread())] {
            let mut command = place.command(&line.replace("NAME", kind));
            let ended = command.stdout(Stdio::null()).stderr(stderr).status();
            assert_eq!(ended.expect("starts").code(), Some(code), "{kind}: {line}");
        }
    };
    check("meta --dir target --items 4 --out meta-NAME.json", 0);
    check("meta --dir target --items 4 --keep", 0);
    // Long enough for a line of progress.
    check(
        "io --dir target --size 1m --rw write --time 1500ms --progress plain --out io-NAME.json",
        0,
    );
    let sweep = "--out sweep-NAME.json -- io --dir target --size 64k --rw read";
    check(&format!("sweep --over bs=4k,8k {sweep}"), 0);
    check(&format!("sweep --over bs=4k,8k --resume {sweep}"), 0);
    let mdtest = MDTEST.replace("/md", "/md-NAME");
    check(
        &format!("{mdtest} --progress plain --out mdtest-NAME.json"),
        0,
    );
    check(
        &format!("{FIO} --debug=io --output=fio-NAME.out --out=fio-NAME.json"),
        0,
    );
    check("meta --no-such-option", 2);
    for name in ["meta", "io", "mdtest", "fio"] {
        for kind in ["full", "unread"] {
            place.result(&format!("{name}-{kind}.json"));
        }
    }
}

#[test]
fn lines_of_progress_come_every_5_s_where_they_are_asked_for() {
    let place = Place::new();
    let job = format!("{FIO} --ioengine=null --time_based --rate_iops=100");
    std::thread::scope(|scope| {
        let silent = scope.spawn(|| place.run_well(&format!("{job} --runtime=6")));
        let mut child = place
            .command(&format!("{job} --runtime=600 --progress=plain"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        let lines = BufReader::new(child.stderr.take().expect("piped")).lines();
        let mut lines = lines.map(|line| line.expect("text"));
        assert!(lines.any(|line| line.contains("/s")), "it ends without one");
        child.kill().expect("it runs");
        child.wait().expect("ended");
        let silent = silent.join().expect("it ran");
        assert_eq!(said_of_the_run(&silent), "");
    });
}

#[test]
fn people_are_told_on_a_terminal_and_errors_are_told_anywhere() {
    let place = Place::new();
    let line = format!("{} {FIO} --iodepth=4", env!("CARGO_BIN_EXE_rbench"));
    let typescript = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .current_dir(place.0.path())
        .stdin(Stdio::null())
        .output()
        .expect("script of util-linux");
    let shown = String::from_utf8_lossy(&typescript.stdout);
    assert!(shown.contains("iodepth is capped at 1"), "{shown}");
    fs::create_dir(place.path("target/a.1.0")).expect("made");
    let output = place.run(&format!("{FIO} --numjobs=2"));
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("EISDIR"), "{}", said(&output));
    assert!(Path::new(&place.path("target/a.0.0")).exists());
}

#[test]
fn iterations_end_where_rates_are_not_known_after_the_most() {
    let place = Place::new();
    let line = "meta --dir target --items 20 --depth 0 --warmup 1 --iterations auto --precision 0.1% \
                --max-iterations 3 --out b.json";
    place.run_well(line);
    let result = place.result("b.json");
    let rule = result.repetition.expect("a rule");
    assert_eq!(rule.enough, Some(Enough::MaxIterations), "{rule:?}");
    let missed = result.warnings.iter().any(|w| w.code == PRECISION_MISSED);
    assert!(missed && !rule.missed.is_empty(), "{rule:?}");
    assert!(result.summary.iter().all(|row| row.iterations == 3));
}

#[test]
fn reports_are_as_wide_as_columns_says_and_details_show_everything() {
    let place = Place::new();
    place.run_well(&format!("{META} --out a.json"));
    let shown = |line: &str, columns: &str| {
        let mut command = place.command(line);
        let output = command.env("COLUMNS", columns).output().expect("starts");
        String::from_utf8(output.stdout).expect("text")
    };
    let widest = |text: &str| text.lines().map(|l| l.chars().count()).max();
    for line in ["show a.json", "show --details a.json"] {
        let narrow = shown(line, "80");
        assert!(widest(&narrow).is_some_and(|width| width <= 80), "{narrow}");
        // Values below the minimum and invalid numbers count as unset.
        assert_eq!(shown(line, "20"), narrow);
        assert_eq!(shown(line, "wide"), shown(line, ""));
        assert_eq!(shown(line, "120"), shown(line, ""));
        assert_eq!(narrow.contains("PERCENTILES"), line.contains("--details"));
    }
}

mod timing {
    use super::*;

    /// The rate under a rate limit hardly varies.
    #[test]
    fn iterations_go_on_until_rates_are_known() {
        let place = Place::new();
        let line = "io --dir target --engine null --rw read --bs 4k --time 0.2 --rate 1000 --iterations auto";
        place.run_well(&format!(
            "{line} --precision 50% --max-time 60 --out a.json"
        ));
        let result = place.result("a.json");
        let rule = result.repetition.expect("a rule");
        assert_eq!(rule.enough, Some(Enough::Precision), "{rule:?}");
        assert_eq!((rule.precision, rule.max_iterations), (0.5, 30));
        let row = &result.summary[0];
        assert!(row.iterations >= 3 && row.precision.is_some_and(|known| known <= 0.5));
    }
}

#[test]
fn a_directory_alone_gets_sentences_tables_and_a_page_and_keeps_nothing() {
    let place = Place::new();
    fs::create_dir_all(place.path("target")).expect("a directory");
    let output = place.run("./target --scale 0.02 --quiet --html page.html --out all.json");
    let (report, notes) = (words(&output.stdout), words(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{notes}");
    for part in [
        "promises of POSIX and Linux",
        "With one thread per rank: ",
        "File creation s",
        "The threads of a rank share a directory",
        "- Next: ",
        "STEP operations",
        "STEP threads",
    ] {
        assert_eq!(report.matches(part).count(), 1, "'{part}' in {report}");
    }
    assert!(report.contains("/target is "), "{report}");
    // On a busy machine a phase may end before it has moved anything.
    let said: Vec<&str> = report.split_whitespace().collect();
    let said = said.join(" ");
    let rates = said.split("With one thread per rank: ").nth(1);
    let rates = rates.and_then(|rest| rest.split("(sequential: ").next());
    let series: Value = serde_json::from_str(&place.text("all.json")).expect("JSON");
    for cell in series["cells"].as_array().expect("cells") {
        if cell["name"] != "sequential" && cell["name"] != "random" {
            continue;
        }
        for phase in cell["result"]["phases"].as_array().expect("phases") {
            let label = phase["label"].as_str().expect("a label");
            let moved = phase["bandwidth"].as_f64().is_some_and(|rate| rate > 0.0);
            let shown = rates.is_some_and(|rates| rates.contains(&format!("{label} ")));
            assert_eq!(shown, moved, "{label} in {report}");
        }
    }
    let threads = report.split("STEP threads").nth(1).unwrap_or_default();
    assert!(threads.contains("threads=1"), "no table: {threads}");
    let left = fs::read_dir(place.path("target")).expect("it stays");
    assert_eq!(left.count(), 0);
    let page = place.text("page.html");
    for part in [
        "<title>What /",
        "Sequential write",
        "threads: File stat",
        "<svg",
    ] {
        assert!(page.contains(part), "no {part} in a page of {}", page.len());
    }
    // An existing file is not replaced, and is detected before anything runs.
    let again = place.run("./target --scale 0.02 --quiet --html page.html");
    assert_eq!(again.status.code(), Some(2), "{}", words(&again.stderr));
    assert!(again.stdout.is_empty() && words(&again.stderr).contains("--html"));
}

fn words(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn show_lists_the_results_of_a_directory() {
    let place = Place::new();
    place.write("notes.txt", "no result");
    let empty = place.run("show .");
    assert_eq!(empty.status.code(), Some(2));
    let said = String::from_utf8_lossy(&empty.stderr).into_owned();
    assert!(said.contains(". has no result files"), "{said}");
    let run = place
        .run("meta --dir target --items 3 --phases file-create,file-remove --out b.json --quiet");
    assert!(run.status.success(), "{run:?}");
    let list = place.run("show .");
    let lines = String::from_utf8_lossy(&list.stdout).into_owned();
    let line = lines.lines().find(|line| line.starts_with("b.json"));
    let line = line.unwrap_or_else(|| panic!("b.json is missing: {lines}"));
    for word in ["meta", "target", "complete"] {
        assert!(line.contains(word), "{word}: {lines}");
    }
    assert!(!lines.contains("notes"), "{lines}");
    assert_eq!(place.run("show . --format csv").status.code(), Some(2));
}
