//! Tests the program from a user's view: exit codes, sentences, files, signals.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rbench_report::RunResult;
use rbench_sys::engine::{ENGINES, EngineInfo};

use crate::common::{Place, Server, complete_lines, mounted_below, text, wait_until};

/// Runs in a new directory. Checks the exit code, one line of standard error that contains
/// `expect`, and that standard output and the target are empty.
fn check_refused(arguments: &str, code: i32, expect: &str) {
    let place = Place::new();
    let output = place.run(arguments);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
    assert!(
        said.contains(expect),
        "{arguments}: '{said}' does not say '{expect}'"
    );
    let printed = text(&output.stdout);
    // A report of fio contains the error, like fio's own.
    let is_report = arguments.starts_with("fio ") && printed.contains("err=");
    assert!(printed.is_empty() || is_report, "{arguments}: {printed}");
    assert!(
        place.entries("target").is_empty(),
        "{arguments} left {:?}",
        place.entries("target")
    );
    if code == 1 {
        // On a busy machine rbench also says how long a step has taken.
        let sentences = said.lines().filter(|line| !line.ends_with(" elapsed"));
        assert_eq!(sentences.count(), 1, "{arguments}: {said}");
    }
}

#[test]
fn every_engine_is_in_the_list_of_fio() {
    let listed = text(&Place::new().run("fio --enghelp").stdout);
    let mut listed: Vec<&str> = listed.lines().skip(1).map(str::trim).collect();
    let mut all: Vec<&str> = ENGINES.iter().map(|engine| engine.name).collect();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
}

#[test]
fn every_engine_is_in_the_help_of_io() {
    let help = Place::new().run("io --help").stdout;
    let help = String::from_utf8_lossy(&help);
    let (_, after) = help.split_once("named as in fio:").expect("there");
    let (list, _) = after.split_once('[').expect("its default");
    let mut listed: Vec<&str> = list.split([',', ' ', '\n']).collect();
    listed.retain(|word| !word.is_empty());
    let of_io = |engine: &&EngineInfo| engine.moves_data || !engine.uses_files;
    let mut all: Vec<&str> = ENGINES
        .iter()
        .filter(of_io)
        .map(|engine| engine.name)
        .collect();
    listed.sort_unstable();
    all.sort_unstable();
    assert_eq!(listed, all);
}

#[test]
fn misuse_ends_with_2_and_names_the_flag() {
    check_refused("meta --dir target --brunch 3", 2, "--brunch");
    check_refused(
        "meta --dir target --shift 1",
        2,
        "--shift 1 needs several ranks",
    );
    check_refused(
        "meta --dir target --items 0",
        2,
        "--items must be at least 1",
    );
    check_refused(
        "io --dir target --size 1k --bs 4k",
        2,
        "--size 1KiB is smaller than one block of --bs 4KiB",
    );
    check_refused(
        "io --dir target --engine warp",
        2,
        "--engine warp is not one of psync",
    );
    check_refused("io --dir target --depth 8", 2, "use --engine io_uring");
    check_refused(
        "io --dir target --rw readwrite",
        2,
        "'readwrite' is not one of",
    );
    check_refused("io --dir target --files 5", 2, "--files needs --file-size");
    check_refused("meta --keep --items 1", 2, "--keep needs --dir");
    check_refused(
        "io --dir target --threads 4000000",
        2,
        "--threads 4000000 needs",
    );
    check_refused(
        "io --dir target --files 2 --file-size 4k --fsync every=2",
        2,
        "--fsync every=N and --files",
    );
    check_refused(
        "io --dir target --ack-journal acks",
        2,
        "--ack-journal needs --verify",
    );
    check_refused(
        "io --dir target --rw read --verify --ack-journal acks",
        2,
        "--ack-journal needs a phase that writes",
    );
    check_refused(
        "io --verify --ack-journal acks",
        2,
        "--ack-journal needs --dir",
    );
    check_refused("ops --dir target --ops 0", 2, "--ops must be at least 1");
    // Of several messages, each starts with the program's name.
    check_refused(
        "fio --name=a --bs=1q --rw=back",
        2,
        "\nrbench: invalid value 'back'",
    );
    check_refused("verify", 2, "verify needs FILE");
    // 1 would mean damaged data.
    check_refused("verify /proc/cpuinfo", 2, "not a journal");
    check_refused("testfs tmp --latency crate=2ms", 2, "--latency");
    check_refused("testfs tmp --fault read:explode", 2, "--fault");
    check_refused(
        "testfs .",
        2,
        "is not empty, and what is in it would be hidden",
    );
    check_refused("testfs /proc", 2, "something is mounted at /proc already");
    let sweep = "sweep --over bs=4k -- --dir target";
    check_refused(sweep, 2, "the workload is missing before --dir");
}

#[test]
fn a_missing_input_ends_with_2_in_every_command() {
    for command in ["meta", "io", "ops", "check", "mix --ops stat=1"] {
        check_refused(
            &format!("{command} --dir nowhere"),
            2,
            "nowhere does not exist",
        );
    }
    for command in ["probe", "clean", "find", "quick", "testfs"] {
        check_refused(&format!("{command} nowhere"), 2, "nowhere");
    }
    check_refused("meta --dir /", 2, "/ is the root directory");
    check_refused("meta --dir /dev/null", 2, "/dev/null is not a directory");
    for command in ["show", "report --html x.html", "compare nothing.json"] {
        let line = format!("{command} nothing.json");
        check_refused(&line, 2, "nothing.json cannot be read");
    }
    check_refused("show /proc/cpuinfo", 2, "not a result file of rbench");
    check_refused("fio --inflate-log=nothing.fz", 2, "nothing.fz");
    check_refused("replay nothing --dir target", 2, "nothing");
    check_refused("verify nothing", 2, "the journal nothing: cannot be read");
}

#[test]
fn a_run_that_cannot_be_done_ends_with_1_and_one_sentence() {
    // Like in fio.
    check_refused("fio --name=j --directory=nowhere --size=1m", 1, "nowhere");
    check_refused("ior -o nowhere/f -b 1m", 1, "nowhere");
    let none = "cannot create a directory in /proc";
    check_refused("meta --dir /proc", 1, none);
    check_refused("mdtest -d /proc/x -n 1", 1, none);
    let full = "the run writes 1024 TiB at";
    check_refused("io --dir target --size 1024t", 1, full);
    let jobs = "fio --name=j --directory=target --rw=write --size=1024t";
    check_refused(jobs, 1, full);
    check_refused("meta --dir /sys", 1, "/sys");
    check_refused("meta --dir target --out no/such/folder/x.json", 2, "--out ");
    check_refused("io --size 4000g", 1, "give a directory with --dir");
    // The target is on the same file system as all files of these tests.
    check_refused(
        "io --dir target --verify --ack-journal acks",
        2,
        "the journal would be lost with the data",
    );
    check_refused(
        "io --dir target --verify --ack-journal no/acks",
        2,
        "no/acks: ",
    );
}

#[test]
fn a_result_is_written_whole_and_never_over_another() {
    let place = Place::new();
    let output =
        place.run("meta --dir target --items 5 --out run.json --label engine=redis --seed 7");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let result = place.result("run.json");
    assert!(result.complete && result.phases.len() == 12);
    assert_eq!(
        (result.run.seed, result.run.labels["engine"].as_str()),
        (7, "redis")
    );
    assert!(!place.path("run.json.journal").exists());
    let mode = fs::metadata(place.path("run.json"))
        .expect("metadata")
        .permissions()
        .mode()
        & 0o777;
    assert_eq!(mode & !0o644, 0, "{mode:o}");
    assert!(place.entries("target").is_empty());

    let before = fs::read(place.path("run.json")).expect("read");
    let output = place.run("meta --dir target --items 5 --out run.json");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text(&output.stderr).contains("run.json already exists"),
        "{}",
        text(&output.stderr)
    );
    assert_eq!(fs::read(place.path("run.json")).expect("read"), before);
    assert!(place.entries("target").is_empty());
}

#[test]
fn the_report_on_stdout_is_what_show_makes_of_the_file() {
    let place = Place::new();
    let output = place.run("io --dir target --size 1m --bs 64k --out run.json");
    let shown = place.run("show run.json");
    assert_eq!(text(&output.stdout), text(&shown.stdout));
    assert!(text(&shown.stdout).contains("Sequential write"));
    let json = place.run("show run.json --format json");
    assert_eq!(json.stdout, fs::read(place.path("run.json")).expect("read"));
    let direct = place.run("io --dir target --size 1m --bs 64k --format json --quiet");
    assert!(
        serde_json::from_slice::<RunResult>(&direct.stdout).is_ok(),
        "stdout holds only JSON"
    );
    assert_eq!(text(&direct.stderr), "");
}

#[test]
fn each_operation_is_logged_where_that_is_asked_for() {
    let place = Place::new();
    for (number, run) in [
        "io --size 64k --bs 16k --rw write,randrw --threads 2 --iterations 2",
        "meta --items 3 --depth 0 --iterations 2",
        "ops --ops 3",
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.json");
        let output = place.run(&format!(
            "{run} --dir target --out {name} --log ops{number} --quiet"
        ));
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        let logged = fs::read_to_string(place.path(&format!("ops{number}-00000.csv")));
        let logged = logged.expect("a log");
        let mut lines = logged.lines();
        assert_eq!(
            lines.next(),
            Some("iteration,operation,start_s,seconds,bytes")
        );
        let mut rows: BTreeMap<(u32, String), (u64, u64)> = BTreeMap::new();
        for line in lines {
            let fields: Vec<&str> = line.split(',').collect();
            let [iteration, row, start, seconds, bytes] = fields[..] else {
                panic!("{line}");
            };
            let number = |text: &str| text.parse::<f64>().expect(line);
            assert!(number(start) >= 0.0 && number(seconds) > 0.0, "{line}");
            let key = (iteration.parse().expect(line), row.to_owned());
            let sum = rows.entry(key).or_default();
            sum.0 += 1;
            sum.1 += bytes.parse::<u64>().expect(line);
        }
        let phases = place.result(&name).phases;
        // The draw may leave a direction of the mix without operations.
        let expect: BTreeMap<(u32, String), (u64, u64)> = phases
            .iter()
            .filter(|p| p.items > 0 || !p.name.starts_with("randrw-"))
            .map(|p| ((p.iteration, p.name.clone()), (p.items, p.bytes)))
            .collect();
        assert_eq!(rows, expect, "{run}");
        let again = place.run(&format!("{run} --dir target --log ops{number}"));
        assert_eq!(again.status.code(), Some(2));
        assert!(
            text(&again.stderr).contains("--log ")
                && text(&again.stderr).contains("already exists"),
            "{}",
            text(&again.stderr)
        );
    }
}

/// 240 phases.
const MANY_PHASES: &str =
    "meta --dir target --items 2 --depth 0 --threads 3 --iterations 20 --pin --quiet";

#[test]
fn many_workers_of_many_phases_come_and_go_without_a_word() {
    let place = Place::new();
    let output = place.run(MANY_PHASES);
    assert_eq!(text(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn rbench_dir_names_the_target() {
    let place = Place::new();
    let output = place
        .command("meta --items 2 --out run.json")
        .env("RBENCH_DIR", place.target())
        .output();
    assert_eq!(output.expect("runs").status.code(), Some(0));
    let target = place.result("run.json").target;
    assert_eq!(
        (PathBuf::from(target.path), target.embedded),
        (place.target(), false)
    );
}

#[test]
fn keep_leaves_the_files_and_says_where() {
    let place = Place::new();
    let output = place.run("io --dir target --size 1m --bs 64k --rw write --keep");
    assert!(
        text(&output.stderr).contains("kept: "),
        "{}",
        text(&output.stderr)
    );
    let [own] = place.entries("target").try_into().expect("one directory");
    let data = place.target().join(own).join("0/data.0");
    assert_eq!(fs::metadata(data).expect("the file").len(), 1 << 20);
}

#[test]
fn the_same_seed_writes_the_same_bytes() {
    let written = |seed: u32| {
        let place = Place::new();
        place.run(&format!(
            "io --dir target --size 64k --bs 4k --rw write --keep --seed {seed}"
        ));
        let [own] = place.entries("target").try_into().expect("one directory");
        fs::read(place.target().join(own).join("0/data.0")).expect("the file")
    };
    assert_eq!(written(1), written(1));
    assert_ne!(written(1), written(2));
}

/// Waits until a file below `target` has more than one block of data, i.e. something was measured.
fn wait_for_data(target: &Path) {
    fn has_data(dir: &Path) -> bool {
        let mut entries = fs::read_dir(dir).into_iter().flatten().flatten();
        entries.any(|entry| match entry.metadata() {
            Ok(found) if found.is_dir() => has_data(&entry.path()),
            Ok(found) => found.blocks() > 8,
            Err(_) => false,
        })
    }
    wait_until("there is data", || has_data(target));
}

#[test]
fn a_signal_ends_the_run_with_what_was_measured() {
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let place = Place::new();
        let mut child = place
            .command("io --dir target --size 1m --bs 4k --rw write,randread --time 3600 --out run.json --progress off")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("starts");
        wait_for_data(&place.target());
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("signal");
        let mut status = None;
        wait_until("it ends", || {
            status = child.try_wait().expect("a child");
            status.is_some()
        });
        let code = status.and_then(|status| status.code());
        assert_eq!(code, Some(128 + signal as i32));
        let result = place.result("run.json");
        assert!(!result.complete);
        assert!(result.phases[0].items > 0 && !result.phases[0].complete);
        assert!(place.entries("target").is_empty());
        let warning = result
            .warnings
            .iter()
            .find(|w| w.code == "stopped-by-signal");
        let warning = &warning.expect("it says what ended the run").message;
        let from = format!("{signal} from process {} (", std::process::id());
        assert!(warning.starts_with(&from), "{warning}");
        assert!(warning.contains(" to rank 0 on "), "{warning}");
    }
}

#[test]
fn links_in_the_target_are_not_followed() {
    let place = Place::new();
    fs::create_dir(place.path("precious")).expect("made");
    fs::write(place.path("precious/file"), "x").expect("written");
    symlink(place.path("precious"), place.target().join("link")).expect("linked");
    let output = place.run("meta --dir target --items 3");
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(place.entries("target"), ["link"]);
    assert_eq!(place.entries("precious"), ["file"]);
}

#[test]
fn help_goes_to_stdout_and_every_flag_of_the_readme_exists() {
    let place = Place::new();
    let mut known = String::new();
    let commands = "meta io mdtest fio ior ops find mix replay record check probe clean watch testfs show verify sweep \
                    knee nn quick suite report compare";
    for command in commands.split(' ') {
        let output = place.run(&format!("{command} --help"));
        assert_eq!(
            (output.status.code(), text(&output.stderr).as_str()),
            (Some(0), "")
        );
        known.push_str(&text(&output.stdout));
    }
    let readme = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let readme = fs::read_to_string(readme).expect("README.md");
    for line in readme
        .lines()
        .filter(|l| l.starts_with("    ") && l.contains("rbench "))
    {
        let ours = line.split("rbench ").last().unwrap_or("");
        for flag in ours.split_whitespace().filter(|w| w.starts_with("--")) {
            let flag = flag.split('=').next().unwrap_or(flag);
            assert!(
                known.contains(flag),
                "README.md uses {flag}, which does not exist: {line}"
            );
        }
    }
}

#[test]
fn clean_removes_what_a_killed_run_left_and_nothing_else() {
    let place = Place::new();
    // A directory without a marker, one with a foreign marker, and a link.
    fs::create_dir(place.target().join("rbench.mine")).expect("made");
    fs::write(place.target().join("rbench.mine/precious"), "x").expect("written");
    fs::create_dir(place.target().join("rbench.other")).expect("made");
    fs::write(place.target().join("rbench.other/.rbench-run"), "?").expect("written");
    fs::create_dir(place.path("elsewhere")).expect("made");
    fs::write(
        place.path("elsewhere/.rbench-run"),
        "rbench run x\nhost h\nprocess 1 1\n",
    )
    .expect("written");
    symlink(place.path("elsewhere"), place.target().join("rbench.link")).expect("linked");
    let mut child = place
        .command("meta --dir target --items 100000 --quiet")
        .spawn()
        .expect("starts");
    let others = ["rbench.link", "rbench.mine", "rbench.other"];
    wait_until("the run has begun", || {
        let all = place.entries("target");
        let mut runs = all.iter().filter(|name| !others.contains(&name.as_str()));
        runs.any(|name| {
            let marker = place.target().join(name).join(".rbench-run");
            fs::read_to_string(marker).is_ok_and(|text| text.contains("process "))
        })
    });
    let busy = place.run("clean target");
    assert_eq!(busy.status.code(), Some(1));
    let process = format!("process {} is still running", child.id());
    assert!(
        text(&busy.stderr).contains(&process),
        "{}",
        text(&busy.stderr)
    );
    kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).expect("signal");
    child.wait().expect("ends");
    let dry = place.run("clean --dry-run target");
    assert_eq!(dry.status.code(), Some(0));
    assert!(text(&dry.stdout).starts_with("would remove target/rbench."));
    assert_eq!(place.entries("target").len(), others.len() + 1);
    let done = place.run("clean target");
    assert_eq!(done.status.code(), Some(0), "{}", text(&done.stderr));
    assert!(text(&done.stdout).starts_with("removed target/rbench."));
    assert_eq!(place.entries("target"), others);
    assert_eq!(place.entries("elsewhere").len(), 1);
    let nothing = place.run("clean target");
    let said = "target: nothing to clean: it has no directory rbench.… that is to be removed\n";
    assert_eq!(text(&nothing.stdout), said);
}

#[test]
fn clean_goes_deeper_than_files_may_be_open_and_names_what_has_no_marker() {
    let place = Place::new();
    let kept = place.run("meta --dir target --items 3 --keep");
    assert_eq!(kept.status.code(), Some(0), "{}", text(&kept.stderr));
    let run = place.target().join(&place.entries("target")[0]);
    let script = "mkdir $0 && cd $0 || exit 1
        i=0; while [ $i -lt 300 ]; do mkdir d && cd d || exit 1; i=$((i+1)); done; echo x >f";
    // As many as threads, which then have all files open that may be.
    for tree in ["one", "two", "three", "four"] {
        let mut shell = Command::new("sh");
        let shell = shell.args(["-c", script, tree]).current_dir(&run);
        assert!(shell.status().expect("sh").success());
    }
    fs::create_dir(place.target().join("rbench.unmarked")).expect("made");
    let line = format!(
        "ulimit -n 64; exec {} clean target --kept --threads 4",
        env!("CARGO_BIN_EXE_rbench")
    );
    let mut shell = Command::new("sh");
    let shell = shell.args(["-c", &line]).current_dir(place.path(""));
    let output = shell.output().expect("sh");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("rbench.unmarked stays: "), "{said}");
    assert_eq!(place.entries("target"), ["rbench.unmarked"]);
}

#[test]
fn what_another_host_left_stays_unless_it_is_forced() {
    let place = Place::new();
    let left = place.target().join("rbench.20261121-120000-abcd");
    fs::create_dir_all(left.join("0/dir")).expect("made");
    let marker = "rbench run 20261121-120000-abcd\nhost no-such-host\nprocess 5 6\n";
    fs::write(left.join(".rbench-run"), marker).expect("written");
    let kept = place.run("clean target");
    assert_eq!(kept.status.code(), Some(1));
    assert!(text(&kept.stderr).contains("no-such-host"));
    assert!(left.exists());
    assert_eq!(place.run("clean target --force").status.code(), Some(0));
    assert!(!left.exists());
}

mod timing {
    use super::*;

    #[test]
    fn nobody_waits_for_a_tick_of_a_second_between_phases() {
        let started = Instant::now();
        let output = Place::new().run(MANY_PHASES);
        assert_eq!(output.status.code(), Some(0));
        // Each phase has a common start some ms ahead.
        assert!(started.elapsed() < Duration::from_secs(200));
    }
}

mod needs_fuse {
    use super::*;

    #[test]
    fn after_sigkill_the_journal_holds_the_finished_phases_and_no_mount_is_left() {
        let place = Place::new();
        let mut child = place
            .command(
                "io --size 4m --bs 4k --rw write,randread --time 300ms --iterations 100 --out run.json --quiet",
            )
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        let journal = place.path("run.json.journal");
        wait_until("a phase is journalled", || {
            complete_lines(&journal).len() >= 3
        });
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL).expect("signal");
        child.wait().expect("ends");
        let shown = place.run("show run.json.journal");
        assert_eq!(shown.status.code(), Some(0));
        assert!(
            text(&shown.stdout).contains("Sequential write"),
            "{}",
            text(&shown.stdout)
        );
        wait_until("the built-in file system goes", || {
            !mounted_below(&place.path("tmp")) && place.entries("tmp").is_empty()
        });
        let again = place.run("io --dir target --size 1m --bs 4k --out run.json");
        assert_eq!(
            again.status.code(),
            Some(2),
            "the journal is not overwritten"
        );
        assert!(
            text(&again.stderr).contains("interrupted run"),
            "{}",
            text(&again.stderr)
        );
    }

    #[test]
    fn failed_operations_are_reported_and_end_with_1() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m --fault create:EIO@nth=10");
        let output = place.run("meta --dir mnt --files-only --items 50 --out run.json");
        assert_eq!(output.status.code(), Some(1));
        let report = text(&output.stdout);
        assert!(report.contains("EIO"), "{report}");
        let result = place.result("run.json");
        let create = result
            .phases
            .iter()
            .find(|p| p.name == "file-create")
            .expect("the phase");
        assert_eq!((create.items, create.errors["EIO"]), (199, 1));
        // A full file system: the data does not fit into 64 MiB.
        let output =
            place.run("io --dir mnt --rw write --bs 1m --size 100m --overfill --out full.json");
        assert_eq!(output.status.code(), Some(1));
        let full = place.result("full.json");
        assert!(
            full.phases[0].errors.contains_key("ENOSPC"),
            "{:?}",
            full.phases[0].errors
        );
        server.end();
    }

    #[test]
    fn what_was_measured_before_trouble_is_reported() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 32m");
        // The write fails half-way, and so does the layout for the read.
        let output =
            place.run("io --dir mnt --rw write,read --bs 1m --size 64m --overfill --out run.json");
        assert_eq!(output.status.code(), Some(1));
        let said = text(&output.stderr);
        assert!(said.contains("the files could not be laid out"), "{said}");
        assert!(
            text(&output.stdout).contains("Sequential write"),
            "{}",
            text(&output.stdout)
        );
        let result = place.result("run.json");
        assert!(!result.complete && result.phases[0].items > 0);
        assert!(result.warnings.iter().any(|w| w.code == "ended-early"));
        server.end();
    }

    #[test]
    fn a_clean_up_that_takes_long_does_not_cost_the_report() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m --latency unlink=60ms");
        let mut child = place
            .command("meta --dir mnt --files-only --depth 0 --items 400 --out run.json --quiet")
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        let journal = place.path("run.json.journal");
        wait_until("all but the removal is journalled", || {
            complete_lines(&journal).len() >= 6
        });
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("signal");
        let started = Instant::now();
        assert_eq!(child.wait().expect("ends").code(), Some(130));
        assert!(
            started.elapsed() > Duration::from_secs(10),
            "the removal took {:?}",
            started.elapsed()
        );
        assert!(!place.result("run.json").complete);
        assert!(place.entries("mnt").is_empty());
        server.end();
    }

    #[test]
    fn a_full_disk_under_out_does_not_cost_the_report() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 1m --quota 12k");
        let output = place.run("meta --dir target --items 50 --out mnt/run.json");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("mnt/run.json"), "{said}");
        assert!(
            said.contains("cannot be written: No space left on device"),
            "{said}"
        );
        let report = text(&output.stdout);
        assert!(
            report.contains("File removal") && report.contains("The run is complete"),
            "{report}"
        );
        assert!(place.entries("target").is_empty());
        // The part that fitted can be read.
        let journal = place.run("show mnt/run.json.journal");
        assert_eq!(journal.status.code(), Some(0), "{}", text(&journal.stderr));
        server.end();
    }

    #[test]
    fn a_journal_of_acknowledged_writes_is_never_written_over() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m");
        fs::write(place.path("acks.1.1"), "mine").expect("written");
        let output = place.run(
            "io --dir mnt --size 64k --bs 4k --threads 2 --iterations 2 --verify --ack-journal acks",
        );
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.trim_end().ends_with("acks.1.1 already exists"),
            "{said}"
        );
        // On a busy machine rbench also says how long a step has taken.
        let sentences = said.lines().filter(|line| !line.ends_with(" elapsed"));
        assert_eq!((sentences.count(), text(&output.stdout).as_str()), (1, ""));
        // Nothing was created on either file system.
        assert!(place.entries("mnt").is_empty());
        assert_eq!(fs::read(place.path("acks.1.1")).expect("there"), b"mine");
        assert!(!place.path("acks.0.0").exists());
        server.end();
    }

    #[test]
    fn a_full_disk_under_the_journal_ends_a_run_with_many_requests_under_way() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m");
        let disk = Server::start_on(&place, "disk", "--memory 8m --quota 1600k");
        let options = "io --dir mnt --rw write --bs 512 --size 9m --verify --fsync never";
        let output = place.run(&format!(
            "{options} --engine io_uring --depth 8 --ack-journal disk/acks --out run.json"
        ));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("disk/acks.0.0 cannot be written: "), "{said}");
        assert!(!place.result("run.json").phases[0].complete);
        let audit = place.run("verify disk/acks.0.0");
        assert_eq!(audit.status.code(), Some(0), "{}", text(&audit.stdout));
        disk.end();
        server.end();
    }

    #[test]
    fn a_full_disk_under_the_journal_ends_the_run_and_spoils_nothing() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 64m");
        // Space for the first MiB, but not for the second.
        let room = "--memory 8m --quota 1600k";
        let disk = Server::start_on(&place, "disk", room);
        let other = Server::start_on(&place, "other", room);
        let options = "io --dir mnt --rw write --bs 512 --size 9m --verify --fsync never";
        let output = place.run(&format!("{options} --ack-journal disk/acks --out run.json"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(
            said.contains("disk/acks.0.0 cannot be written: No space left on device"),
            "{said}"
        );
        let written = &place.result("run.json").phases[0];
        assert!(!written.complete && written.items > 0, "{written:?}");
        // Every write has a record.
        let audit = place.run("verify disk/acks.0.0 --format json");
        assert_eq!(audit.status.code(), Some(0), "{}", text(&audit.stdout));
        let audit: serde_json::Value = serde_json::from_slice(&audit.stdout).expect("JSON");
        let blocks = |class: &str| audit["blocks"][class].as_u64().expect("a number");
        // There was no space for the last acknowledgement.
        let known = blocks("as-acknowledged") + blocks("allowed");
        assert!(known == written.items && blocks("allowed") <= 1, "{audit}");
        // Small files: the target must not be reported as the cause.
        let small = "io --dir mnt --rw write --files 500 --file-size 512 --verify --ack-journal other/small";
        let output = place.run(&format!(
            "{small} --fsync never --time 3600 --out small.json"
        ));
        let said = text(&output.stderr);
        assert!(
            said.contains("other/small.0.0 cannot be written: "),
            "{said}"
        );
        let written = &place.result("small.json").phases[0];
        assert!(
            !written.complete && written.errors.is_empty(),
            "{written:?}"
        );
        // No space at all: no empty journal is left.
        let output = place.run(&format!("{options} --threads 2 --ack-journal disk/more"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("disk/more.0.0 cannot be written: "), "{said}");
        assert_eq!(place.entries("disk"), ["acks.0.0"]);
        disk.end();
        other.end();
        server.end();
    }

    #[test]
    fn the_mount_of_a_built_in_file_system_that_was_killed_goes_too() {
        let place = Place::new();
        let line = "io --size 1m --rw write,randread --time 600s --quiet";
        let mut run = place
            .command(line)
            .stdout(Stdio::null())
            .spawn()
            .expect("starts");
        let tmp = place.path("tmp");
        wait_until("it is mounted", || mounted_below(&tmp));
        let servers = || {
            let all = fs::read_dir("/proc").expect("/proc").flatten();
            let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
            let serves = |number: &i32| {
                let words = fs::read(format!("/proc/{number}/cmdline")).unwrap_or_default();
                let words = String::from_utf8_lossy(&words).into_owned();
                words.contains("testfs") && words.contains(&*tmp.to_string_lossy())
            };
            numbers.filter(serves).collect::<Vec<i32>>()
        };
        let [server] = servers()[..] else {
            panic!("one serves the mount");
        };
        kill(Pid::from_raw(server), Signal::SIGKILL).expect("it runs");
        let ended = run.wait().expect("ended");
        assert_eq!(ended.code(), Some(1));
        assert!(!mounted_below(&tmp));
        assert!(
            place.entries("tmp").is_empty(),
            "{:?}",
            place.entries("tmp")
        );
    }

    #[test]
    fn without_a_directory_the_built_in_file_system_is_used_and_goes_again() {
        let place = Place::new();
        let output = place.run("meta --items 5");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(
            text(&output.stdout).starts_with("DEMONSTRATION"),
            "{}",
            text(&output.stdout)
        );
        assert!(
            place.entries("tmp").is_empty(),
            "{:?}",
            place.entries("tmp")
        );
        assert!(!mounted_below(&place.path("tmp")));
    }
}
