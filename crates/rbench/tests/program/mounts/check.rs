//! Tests `rbench check` from a user's view: formats, exit codes, expectations, limits, interrupts.
//! `crates/rbench-exec/tests/promises` tests which promises file systems keep.

use std::fs;
use std::process::Output;

use rbench_report::schema::{CheckResult, PromiseResult, PromiseVerdict};

use crate::common::{Place, Server, install, text};
use crate::valid;

/// Other users have access, and the kernel asks for attributes and names each time.
pub const UNCACHED: &str = "--memory 1g --attr-timeout 0 --entry-timeout 0 --allow-other";

fn result(output: &Output) -> CheckResult {
    read(&text(&output.stdout))
}

fn read(json: &str) -> CheckResult {
    valid::check(json);
    serde_json::from_str(json).expect("a check")
}

/// Checks `mnt`, and expects this exit code.
fn check(place: &Place, options: &str, code: i32) -> Output {
    let output = place.run(&format!("check --dir mnt --quiet {options}"));
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{options}: {said}");
    output
}

/// Checks `directory` with the checks in `only`, or with all. A check that does not end is a
/// defect; the duration otherwise depends on the machine.
pub fn checked(place: &Place, directory: &str, only: &str) -> CheckResult {
    let only = match only {
        "" => String::new(),
        only => format!("--only {only}"),
    };
    let output = place.run(&format!(
        "check --dir {directory} {only} --time-limit 600s --format json --quiet"
    ));
    let result = result(&output);
    assert!(result.complete, "{only}: {}", text(&output.stderr));
    let code = Some(i32::from(!result.passed));
    assert_eq!(output.status.code(), code, "{only}");
    result
}

pub fn promises(result: &CheckResult) -> &[PromiseResult] {
    let [host] = &result.hosts[..] else {
        panic!("{} hosts", result.hosts.len());
    };
    &host.promises
}

pub fn with_verdict(result: &CheckResult, verdict: PromiseVerdict) -> Vec<&PromiseResult> {
    let all = promises(result).iter();
    all.filter(|promise| promise.verdict == verdict).collect()
}

/// Removes line breaks, which depend on the terminal's width.
fn on_one_line(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_check_that_cannot_be_meant_ends_with_2_and_names_the_option() {
    let place = Place::new();
    fs::write(place.path("known"), "title = 'x'\nx = 1\n").expect("written");
    let unknown =
        "title = 'x'\n[[deviation]]\npromise = \"nothing\"\nwhy = \"known\"\nsource = \"us\"\n";
    fs::write(place.path("unknown"), unknown).expect("written");
    for (options, word) in [
        ("--dir target --only nothing", "--only"),
        ("--dir target --expect none", "--expect"),
        ("--dir target --time-limit 0", "--time-limit"),
        ("--dir target --expect known", "--expect: known: line 2"),
        ("--dir target --expect unknown", "--expect: unknown: line 3"),
        ("", "--dir"),
    ] {
        let output = place.run(&format!("check {options} --quiet"));
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{options}: {said}");
        assert!(said.contains(word), "{options}: {said}");
        assert_eq!(said.lines().count(), 1, "{options}: {said}");
    }
    assert_eq!(place.entries("target"), [""; 0]);
}

#[test]
fn the_list_ends_with_the_number_of_promises_in_it() {
    let listed = text(&Place::new().run("check --list").stdout);
    let promises = listed.lines().filter(|line| line.starts_with("  "));
    let count = promises.count();
    assert!(count > 300, "{count}");
    assert_eq!(listed.lines().last(), Some(&*format!("{count} promises")));
}

mod needs_root {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    use super::super::Mounted;
    use super::*;

    const NOBODY: u32 = 65_534;

    fn memory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").expect("a temporary directory")
    }

    #[test]
    fn an_ordinary_user_leaves_out_what_only_root_can_find_out() {
        let place = Place::new();
        let (own, copy) = (memory(), place.path("rbench"));
        for path in [place.path(""), own.path().to_owned()] {
            std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).expect("root");
        }
        // The program's directory may be inaccessible to other users.
        let program = fs::read(env!("CARGO_BIN_EXE_rbench")).expect("it can be read");
        install(&copy, &program);
        let output = Command::new(copy)
            .args(["check", "--format", "json", "--quiet"])
            .args(["--time-limit", "600s", "--dir"])
            .arg(own.path())
            .current_dir(place.path(""))
            .uid(NOBODY)
            .gid(NOBODY)
            .output()
            .expect("starts");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
        let result = result(&output);
        assert!(!result.hosts[0].root);
        let mut left_out = with_verdict(&result, PromiseVerdict::LeftOut);
        left_out.retain(|promise| !promise.name.starts_with("full."));
        assert!(!left_out.is_empty());
        for promise in left_out {
            let why = promise.seen.as_deref();
            assert_eq!(
                why,
                Some("it can be tested only as root"),
                "{}",
                promise.name
            );
        }
    }

    #[test]
    fn a_large_file_system_that_is_nearly_full_is_not_filled() {
        let place = Place::new();
        let memory = memory();
        let image = memory.path().join("image");
        let file = fs::File::create(&image).expect("made");
        file.set_len(600 << 20).expect("sparse");
        let mkfs = Command::new("mkfs.ext4").arg("-q").arg(&image).output();
        let mkfs = mkfs.expect("mkfs.ext4 starts");
        assert!(mkfs.status.success(), "{}", text(&mkfs.stderr));
        let mnt = place.path("mnt");
        fs::create_dir(&mnt).expect("made");
        let mounted = Mounted::new(&["-o", "loop", image.to_str().expect("text")], mnt.clone());
        let filler = fs::File::create(mnt.join("users")).expect("made");
        nix::fcntl::posix_fallocate(&filler, 0, 450 << 20).expect("there is room");
        let room = nix::sys::statvfs::statvfs(&mnt).expect("mounted");
        let free = room.blocks_available() * room.fragment_size();
        assert!(free < 256 << 20, "{free}");
        let result = result(&check(&place, "--only full --format json", 1));
        let left_out = with_verdict(&result, PromiseVerdict::LeftOut);
        assert_eq!(left_out.len(), 5, "{:?}", result.hosts);
        assert!(result.complete && !result.passed, "nothing was tried");
        let said = on_one_line(&check(&place, "--only full", 1).stdout);
        assert!(said.contains("No promise was shown to hold"), "{said}");
        assert!(said.contains("larger than 512 MiB"), "{said}");
        drop((filler, mounted));
    }
}

mod needs_fuse {
    use std::fs::File;
    use std::process::{Command, Stdio};

    use nix::sys::signal::{Signal, kill};
    use nix::unistd::Pid;

    use super::*;
    use crate::common::wait_until;

    const ONLY: &str = "--only times.rename,times.chmod,space.insert";

    /// Status and name of each TAP line, and true if it is skipped.
    fn lines_of_tap(tap: &str) -> Vec<(String, bool)> {
        let results = tap.lines().filter(|line| line.contains("ok "));
        let line = |line: &str| {
            let (line, directive) = line.split_once(" # ").unwrap_or((line, ""));
            (line.to_owned(), directive.starts_with("SKIP"))
        };
        results.map(line).collect()
    }

    #[test]
    fn each_form_says_what_is_broken() {
        let place = Place::new();
        let server = Server::start(
            &place,
            &format!("{UNCACHED} --broken rename-touches --broken chmod-touches"),
        );
        let tap = text(&check(&place, &format!("{ONLY} --format tap"), 1).stdout);
        assert!(tap.starts_with("TAP version 14\n1..4\n"), "{tap}");
        assert_eq!(
            lines_of_tap(&tap),
            [
                ("ok 1 - times.chmod.ctime".to_owned(), false),
                ("not ok 2 - times.chmod.keeps-mtime".to_owned(), false),
                ("not ok 3 - times.rename.keeps-mtime".to_owned(), false),
                ("ok 4 - space.insert".to_owned(), true),
            ],
            "{tap}"
        );
        let junit = text(&check(&place, &format!("{ONLY} --format junit"), 1).stdout);
        let counts = "tests=\"4\" failures=\"2\" errors=\"0\" skipped=\"1\"";
        assert!(junit.contains(counts), "{junit}");
        let printed = on_one_line(&check(&place, ONLY, 1).stdout);
        let sum = "2 promises are broken.";
        assert!(printed.contains(sum), "{printed}");
        assert!(printed.contains("times.rename.keeps-mtime"), "{printed}");
        assert_eq!(place.entries("mnt"), [""; 0]);
        server.end();
    }

    #[test]
    fn known_deviations_pass_and_others_do_not() {
        let place = Place::new();
        let server = Server::start(
            &place,
            &format!("{UNCACHED} --broken rename-touches --broken chmod-touches"),
        );
        let options = "--only times.rename,times.chmod --expect expect.toml --format json";
        let one = |promise: &str| {
            format!("[[deviation]]\npromise = \"{promise}\"\nwhy = \"known\"\nsource = \"us\"\n")
        };
        let expect = |deviations: String| {
            let text = format!("title = \"ours\"\n{deviations}");
            fs::write(place.path("expect.toml"), text).expect("written");
        };
        expect(one("times.rename"));
        let result_file = result(&check(&place, options, 1));
        let broken = with_verdict(&result_file, PromiseVerdict::Broken).into_iter();
        let allowed = broken.map(|promise| (&*promise.name, promise.allowed.as_deref()));
        assert_eq!(
            allowed.collect::<Vec<_>>(),
            [
                ("times.chmod.keeps-mtime", None),
                ("times.rename.keeps-mtime", Some("known (us)")),
            ]
        );
        expect(one("times.rename") + &one("times.chmod.*"));
        assert!(result(&check(&place, options, 0)).passed);
        assert_eq!(place.entries("mnt"), [""; 0]);
        server.end();
    }

    #[test]
    fn what_a_limit_of_file_sizes_cuts_off_is_undecided() {
        let place = Place::new();
        let server = Server::start(&place, "--memory 1g --allow-other");
        let line = "check --dir mnt --only size,content,model.file,model.files,model.shared-file,full --format json --quiet";
        let output = Command::new("prlimit")
            .arg("--fsize=65536")
            .arg(env!("CARGO_BIN_EXE_rbench"))
            .args(line.split_whitespace())
            .current_dir(place.path(""))
            .output()
            .expect("prlimit starts");
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        let result = result(&output);
        assert!(result.complete, "it goes on");
        let broken = with_verdict(&result, PromiseVerdict::Broken);
        assert!(broken.is_empty(), "{broken:#?}");
        let undecided = with_verdict(&result, PromiseVerdict::Undecided);
        assert!(!undecided.is_empty());
        server.end();
    }

    /// Runs a check whose call hangs beyond the time limit. Returns its messages.
    fn check_that_hangs(limit_s: u32) -> String {
        let place = Place::new();
        let server = Server::start(&place, &format!("{UNCACHED} --fault fallocate:hang@nth=1"));
        let (out, err) = (place.path("out"), place.path("err"));
        let line = format!(
            "check --dir mnt --only space.reserve.size --time-limit {limit_s}s --format json --quiet"
        );
        let mut child = place
            .command(&line)
            .stdout(File::create(&out).expect("made"))
            .stderr(File::create(&err).expect("made"))
            .spawn()
            .expect("starts");
        // The kernel ends a process only after the file system has answered.
        let size = || fs::metadata(&out).map_or(0, |found| found.len());
        wait_until("the report is there although a call hangs", || size() > 0);
        let server_pid = Pid::from_raw(server.child.id().cast_signed());
        kill(server_pid, Signal::SIGUSR2).expect("it is ours");
        assert_eq!(child.wait().expect("ends").code(), Some(1));
        let result = read(&fs::read_to_string(&out).expect("there"));
        let undecided = with_verdict(&result, PromiseVerdict::Undecided).into_iter();
        let undecided = undecided.map(|promise| (&*promise.name, promise.seen.as_deref()));
        let seen = format!("did not finish within {limit_s} s");
        assert_eq!(
            undecided.collect::<Vec<_>>(),
            [("space.reserve.size", Some(&*seen))]
        );
        assert_eq!(place.run("clean mnt").status.code(), Some(0));
        assert_eq!(place.entries("mnt"), [""; 0]);
        server.end();
        fs::read_to_string(&err).expect("there")
    }

    #[test]
    fn a_call_that_does_not_return_costs_its_promise_and_not_the_report() {
        // On a busy machine a short limit may pass before the call, and then nothing is left behind.
        let limits_s = [1, 5, 25, 125];
        let left = |limit_s| check_that_hangs(limit_s).contains("is left behind");
        assert!(limits_s.into_iter().any(left));
    }

    #[test]
    fn an_interrupt_ends_with_130_and_leaves_nothing() {
        let place = Place::new();
        let server = Server::start(&place, &format!("{UNCACHED} --latency all=2ms"));
        let child = place
            .command("check --dir mnt --format json --quiet")
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        super::wait_for_a_promise(&place);
        kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it is ours");
        let output = child.wait_with_output().expect("ends");
        assert_eq!(output.status.code(), Some(130));
        let result = result(&output);
        assert!(!result.complete, "it was stopped");
        assert!(!result.passed, "what is not whole does not pass");
        assert_eq!(place.entries("mnt"), [""; 0]);
        server.end();
    }

    mod needs_root {
        use super::*;

        #[test]
        fn a_mount_that_lets_no_other_users_in_is_told() {
            let place = Place::new();
            let server = Server::start(&place, "--memory 64m");
            let said = on_one_line(&check(&place, "--only owners", 1).stdout);
            let result = result(&check(&place, "--only owners --format json", 1));
            let shut_out = |promise: &&PromiseResult| {
                let seen = promise.seen.as_deref().unwrap_or_default();
                seen.ends_with("cannot reach this directory")
            };
            let number = promises(&result).iter().filter(shut_out).count();
            assert!(number > 0, "what other users would try is undecided");
            let note = format!(
                "NOTE: {number} are undecided because other users cannot reach the directory: mount \
                 FUSE with allow_other"
            );
            assert!(said.contains(&note), "{said}");
            server.end();
        }
    }
}

/// Waits until a promise is being tested in `mnt`.
fn wait_for_a_promise(place: &Place) {
    let below = |path: &std::path::Path| {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let is_tried = || {
        let runs = below(&place.path("mnt"));
        let hosts = runs.iter().flat_map(|run| below(run));
        let mut hosts = hosts.filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("host-")
        });
        hosts.any(|host| !below(&host).is_empty())
    };
    crate::common::wait_until("a promise is tried", is_tried);
}

mod needs_mpi {
    mod needs_fuse {
        use std::process::{Command, Stdio};

        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;

        use super::super::*;
        use crate::common::wait_until;

        /// Four ranks on this host.
        fn ranks(place: &Place, line: &str) -> Command {
            let mut command = Command::new("mpirun");
            command
                .args(["-np", "4", "--allow-run-as-root", "--oversubscribe"])
                .arg(env!("CARGO_BIN_EXE_rbench"))
                .args(line.split_whitespace())
                .current_dir(place.path(""))
                .env_remove("RBENCH_DIR");
            command
        }

        #[test]
        fn the_first_rank_of_a_host_tries_for_it() {
            let place = Place::new();
            let server = Server::start(&place, UNCACHED);
            let line = "check --dir mnt --only rename,locks --format json --quiet";
            let output = ranks(&place, line).output().expect("mpirun starts");
            assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
            let result = result(&output);
            assert_eq!(result.hosts.len(), 1);
            assert!(result.passed);
            assert_eq!(place.entries("mnt"), [""; 0]);
            server.end();
        }

        /// Process number of a rank below a process.
        fn rank_below(pid: u32) -> Option<u32> {
            let children = format!("/proc/{pid}/task/{pid}/children");
            let children = fs::read_to_string(children).unwrap_or_default();
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            if name.trim() == "rbench" {
                return Some(pid);
            }
            let mut children = children.split_whitespace().filter_map(|c| c.parse().ok());
            children.find_map(rank_below)
        }

        #[test]
        fn an_interrupt_of_one_rank_ends_all_and_leaves_nothing() {
            let place = Place::new();
            let server = Server::start(&place, &format!("{UNCACHED} --latency all=2ms"));
            let line = "check --dir mnt --format json --quiet";
            let mut child = ranks(&place, line)
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("mpirun starts");
            wait_for_a_promise(&place);
            // When interrupted, Open MPI gives its ranks only a second, too short for a removal on
            // a busy machine. So one rank gets the signal.
            let rank = rank_below(child.id()).expect("ranks run");
            kill(Pid::from_raw(rank.cast_signed()), Signal::SIGINT).expect("it is ours");
            assert_eq!(child.wait().expect("ends").code(), Some(130));
            wait_until("what was made is removed", || {
                place.entries("mnt").is_empty()
            });
            server.end();
        }
    }
}

/// Each promise, and the operation it was in, has to end within its time limit.
mod timing {
    mod needs_fuse {
        use nix::sys::signal::{Signal, kill};
        use nix::unistd::Pid;

        use super::super::*;
        use crate::common::wait_until;

        #[test]
        fn behind_a_call_that_does_not_return_the_other_promises_are_tried() {
            let place = Place::new();
            let server = Server::start(&place, &format!("{UNCACHED} --fault fallocate:hang@nth=1"));
            let out = place.path("out");
            let mut child = place
                .command("check --dir mnt --only space --time-limit 3s --format json --quiet")
                .stdout(fs::File::create(&out).expect("made"))
                .spawn()
                .expect("starts");
            let size = || fs::metadata(&out).map_or(0, |found| found.len());
            wait_until("the report is there although a call hangs", || size() > 0);
            let server_pid = Pid::from_raw(server.child.id().cast_signed());
            kill(server_pid, Signal::SIGUSR2).expect("it is ours");
            assert_eq!(child.wait().expect("ends").code(), Some(1));
            let result = read(&fs::read_to_string(&out).expect("there"));
            let undecided = with_verdict(&result, PromiseVerdict::Undecided).into_iter();
            let undecided = undecided.map(|promise| (&*promise.name, promise.seen.as_deref()));
            assert_eq!(
                undecided.collect::<Vec<_>>(),
                [("space.reserve.size", Some("did not finish within 3 s"))]
            );
            let held = with_verdict(&result, PromiseVerdict::Holds).len();
            assert!(held > 10, "{held}");
            server.end();
        }

        #[test]
        fn what_is_slow_does_not_hang_and_is_removed() {
            let place = Place::new();
            let server = Server::start(&place, &format!("{UNCACHED} --latency all=20ms"));
            let options = "--only listing.each-once --time-limit 1s --format json";
            let output = check(&place, options, 1);
            let result = result(&output);
            let seen: Vec<_> = promises(&result)
                .iter()
                .map(|p| p.seen.as_deref())
                .collect();
            assert_eq!(seen, [Some("did not finish within 1 s")]);
            let said = text(&output.stderr);
            assert!(!said.contains("left behind"), "{said}");
            assert_eq!(place.entries("mnt"), [""; 0]);
            server.end();
        }

        #[test]
        fn what_is_found_is_told_when_no_time_is_left_to_shrink_it() {
            let place = Place::new();
            let server = Server::start(
                &place,
                &format!("{UNCACHED} --latency all=10ms --broken punch-rounds"),
            );
            // Minimising it completely takes longer.
            let options = "--only model.file --time-limit 10s --seed 3 --format json";
            let result = result(&check(&place, options, 1));
            let [promise] = promises(&result) else {
                panic!("{:?}", result.hosts);
            };
            assert_eq!(promise.verdict, PromiseVerdict::Broken, "{promise:?}");
            server.end();
        }
    }
}
