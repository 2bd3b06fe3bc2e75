//! Tests that mount the file system.

use super::*;

tests! {
    sigterm_unmounts_and_leaves_the_statistics,
    the_signals_of_a_terminal_end_it,
    with_a_starter_the_signals_of_a_terminal_are_left_to_him,
    the_end_of_standard_input_ends_it,
    a_killed_starter_leaves_no_mount_and_no_process,
    sigusr1_writes_the_statistics_and_goes_on,
    a_file_in_use_does_not_keep_it_from_ending,
    a_request_that_is_held_does_not_keep_it_from_ending,
    sigusr2_lets_go_what_hangs_and_the_end_ends_it,
    what_is_there_is_not_hidden,
    sigpwr_cuts_the_power,
    a_fault_log_that_cannot_be_written_is_told_at_the_end,
    statistics_that_cannot_be_written_are_told_at_once,
    the_mount_of_a_dead_process_is_recognised,
}

fn sigterm_unmounts_and_leaves_the_statistics() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("stats.json");
    for name in ["serve", "watch"] {
        let mut served = Served::start(name, &[&file, Path::new("mkdir:EIO@nth=9")]);
        for i in 0..7 {
            fs::create_dir(served.point.join(format!("d{i}"))).expect("new");
        }
        served.signal(Signal::SIGTERM);
        served.end_well();
        let stats = stats(&file);
        assert_eq!(stats.requests["mkdir"].count, 7);
        assert_eq!(stats.faults_fired[0].fault, "mkdir:EIO@nth=9");
    }
}

fn the_signals_of_a_terminal_end_it() {
    for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        let mut served = Served::start("serve", &[]);
        served.signal(signal);
        served.end_well();
    }
}

fn with_a_starter_the_signals_of_a_terminal_are_left_to_him() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("stats.json");
    let mut served = Served::start("watch", &[&file]);
    for signal in [Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT] {
        served.signal(signal);
    }
    served.still_listens(&file);
    // The starter's input is ignored; only its end matters.
    let mut stdin = served.child.stdin.take().expect("piped");
    stdin.write_all(b"anything").expect("read");
    served.still_listens(&file);
    fs::create_dir(served.point.join("d")).expect("it still serves");
    drop(stdin);
    served.end_well();
}

fn the_end_of_standard_input_ends_it() {
    let mut served = Served::start("watch", &[]);
    drop(served.child.stdin.take());
    served.end_well();
}

fn a_killed_starter_leaves_no_mount_and_no_process() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().canonicalize().expect("there");
    let mut starter = role("starter", &[&point]).spawn().expect("this program");
    let mut line = String::new();
    let out = starter.stdout.as_mut().expect("piped");
    BufReader::new(out).read_line(&mut line).expect("readable");
    let (pid, ready) = line.split_once(' ').expect("two words");
    assert_eq!(ready, "ready\n");
    assert!(is_mounted(&point));
    let process = Path::new("/proc").join(pid);
    assert!(process.exists());
    starter.kill().expect("it lives");
    starter.wait().expect("a child");
    await_that("the unmount", || !is_mounted(&point));
    // A zombie counts as gone if nobody collects it.
    await_that("the end of the process", || {
        let state = fs::read_to_string(process.join("stat"));
        state.map_or(true, |state| state.contains(") Z "))
    });
}

fn sigusr1_writes_the_statistics_and_goes_on() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("stats.json");
    let mut served = Served::start("serve", &[&file]);
    await_that("the first statistics", || file.exists());
    assert!(!stats(&file).requests.contains_key("mkdir"));
    for i in 1..4 {
        fs::create_dir(served.point.join(format!("d{i}"))).expect("new");
        served.signal(Signal::SIGUSR1);
        await_that("new statistics", || {
            let requests = stats(&file).requests;
            requests.get("mkdir").map(|mkdir| mkdir.count) == Some(i)
        });
    }
    served.signal(Signal::SIGTERM);
    served.end_well();
}

fn a_file_in_use_does_not_keep_it_from_ending() {
    let mut served = Served::start("watch", &[]);
    let mut open = File::create(served.point.join("f")).expect("room");
    open.write_all(b"text").expect("room");
    served.signal(Signal::SIGTERM);
    served.end_well();
    assert!(open.write_all(b"more").is_err(), "nobody is there to serve");
}

fn a_request_that_is_held_does_not_keep_it_from_ending() {
    let nothing = tempfile::tempdir().expect("a temporary folder");
    let file = nothing.path().join("stats.json");
    let stall = Path::new("mkdir:stall=1h@nth=1");
    let log = nothing.path().join("log");
    let mut served = Served::start("watch", &[&file, stall, &log]);
    let path = served.point.join("d");
    let stuck = std::thread::spawn(move || fs::create_dir(path).is_err());
    await_that("the stall", || !fault_log(&log).is_empty());
    assert!(!stuck.is_finished());
    drop(served.child.stdin.take());
    served.end_well();
    assert!(stuck.join().expect("no panic"), "the caller gets an error");
}

/// The lines of a fault log.
fn fault_log(path: &Path) -> Vec<FaultRecord> {
    let text = fs::read_to_string(path).expect("written");
    let read = |line| serde_json::from_str(line).expect("a record");
    text.lines().map(read).collect()
}

fn sigusr2_lets_go_what_hangs_and_the_end_ends_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    let hang = Path::new("mkdir:hang@after=0");
    let mut served = Served::start("serve", &[&file("stats"), hang, &file("log")]);
    let hung = || {
        let path = served.point.join("d");
        let before = fault_log(&file("log")).len();
        let mkdir = std::thread::spawn(move || fs::create_dir(path));
        await_that("the hang", || fault_log(&file("log")).len() > before);
        fs::metadata(&served.point).expect("others are served");
        assert!(!mkdir.is_finished());
        mkdir
    };
    let first = hung();
    // The log has a fault a moment before its request is held. A second signal is sent only if the
    // first came too early: it must not release the second request.
    let mut sent: Option<Instant> = None;
    await_that("the release", || {
        if sent.is_none_or(|sent| sent.elapsed() > Duration::from_secs(1)) {
            served.signal(Signal::SIGUSR2);
            sent = Some(Instant::now());
        }
        first.is_finished()
    });
    assert!(first.join().expect("no panic").is_ok());
    fs::remove_dir(served.point.join("d")).expect("there");
    let second = hung();
    served.signal(Signal::SIGTERM);
    served.end_well();
    let error = second.join().expect("no panic").expect_err("it has ended");
    assert_eq!(error.raw_os_error(), Some(libc::ECONNABORTED));
    assert_eq!(stats(&file("stats")).faults_fired[0].count, 2);
}

fn what_is_there_is_not_hidden() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().canonicalize().expect("there");
    let refused = |expect: &str| {
        let out = role("serve", &[&point]).output().expect("this program");
        let message = String::from_utf8_lossy(&out.stderr);
        assert!(
            !out.status.success() && message.contains(expect),
            "{message}"
        );
    };
    fs::write(point.join("mine"), "").expect("room");
    refused("is not empty, and what is in it would be hidden");
    assert!(!is_mounted(&point));
    fs::remove_file(point.join("mine")).expect("mine");
    let below = mount(Config::memory(PLENTY), &point).expect("/dev/fuse is there");
    refused("something is mounted at");
    below.unmount().expect("not in use");
    assert!(!is_mounted(&point));
}

fn sigpwr_cuts_the_power() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |name: &str| folder.path().join(name);
    let fault = Path::new("statfs:EIO@nth=1000");
    let mut served = Served::start("serve", &[&file("stats"), fault, &file("log")]);
    let synced = File::create(served.point.join("synced")).expect("room");
    synced.sync_all().expect("in order");
    for round in 1..3 {
        fs::write(served.point.join("lost"), "text").expect("room");
        served.signal(Signal::SIGPWR);
        let done = || {
            let log = fault_log(&file("log"));
            let done = log.iter().filter(|r| r.action == "done");
            done.count() == round
        };
        await_that("the cut", done);
        assert!(!served.point.join("lost").exists());
        assert!(served.point.join("synced").exists());
    }
    drop(synced);
    served.signal(Signal::SIGTERM);
    served.end_well();
    let fired = &stats(&file("stats")).faults_fired[1];
    assert_eq!((fired.fault.as_str(), fired.count), ("power-cut", 2));
    let log = fault_log(&file("log"));
    let lost = log
        .iter()
        .filter(|r| r.path == "lost" && r.action == "vanished");
    assert_eq!(lost.count(), 2);
    // Without power cuts, the signal has no effect.
    let mut served = Served::start("serve", &[&file("stats")]);
    served.signal(Signal::SIGPWR);
    await_that("the signal", || !served.is_pending(Signal::SIGPWR));
    served.still_listens(&file("stats"));
    fs::create_dir(served.point.join("d")).expect("it still serves");
    served.signal(Signal::SIGTERM);
    served.end_well();
}

fn a_fault_log_that_cannot_be_written_is_told_at_the_end() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("stats.json");
    let fault = Path::new("mkdir:EIO@nth=1");
    let log = Path::new("/dev/full");
    let mut served = Served::start("serve", &[&file, fault, log]);
    fs::create_dir(served.point.join("d")).expect_err("the fault");
    served.signal(Signal::SIGTERM);
    let (success, said) = served.end();
    let expect = "the fault log cannot be written to /dev/full: No space left";
    assert!(!success && said.contains(expect), "{said}");
    assert!(!is_mounted(&served.point));
}

fn statistics_that_cannot_be_written_are_told_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let point = folder.path().canonicalize().expect("there");
    let output = role("serve", &[&point, Path::new("/nowhere/stats.json")]).output();
    let output = output.expect("this program");
    let message = String::from_utf8_lossy(&output.stderr);
    let expect = "the statistics cannot be written to /nowhere/stats.json: \
                  No such file or directory (os error 2)\n";
    assert!(message.starts_with(expect), "{message}");
    assert!(!output.status.success());
    assert!(!is_mounted(&point));
}

fn the_mount_of_a_dead_process_is_recognised() {
    let mut served = Served::start("serve", &[]);
    served.child.kill().expect("it lives");
    served.child.wait().expect("a child");
    let error = mount(Config::memory(PLENTY), &served.point).expect_err("dead");
    let error = error.to_string();
    assert!(error.contains("whose file system has ended"), "{error}");
    let advice = format!("fusermount3 -u -z {}", served.point.display());
    assert!(error.contains(&advice), "{error}");
}

/// Unmounting by system call, ending the kernel connection and changing users need root.
pub mod needs_root {
    use super::*;

    tests! {
        dying_needs_root_or_the_list_of_connections,
        an_ordinary_user_mounts_through_the_helper,
        other_users_are_let_in_when_asked_with_no_more_than_their_rights,
        what_is_missing_for_a_mount_is_named,
        an_unmount_from_outside_ends_it,
        an_unmount_from_outside_ends_one_that_died,
        a_file_system_that_died_stays_as_a_dead_mount_until_it_is_ended,
        a_dead_mount_goes_though_its_attributes_are_cached,
    }

    fn an_unmount_from_outside_ends_it() {
        let mut served = Served::start("serve", &[]);
        // It is mounted before the handshake is complete; once it answers, it is.
        fs::read_dir(&served.point).expect("it answers");
        nix::mount::umount(&served.point).expect("not in use");
        served.end_well();
    }

    fn a_file_system_that_died_stays_as_a_dead_mount_until_it_is_ended() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("stats.json");
        for name in ["serve", "watch"] {
            let mut served = Served::start(name, &[&file, Path::new("mkdir:die@nth=2")]);
            fs::create_dir(served.point.join("a")).expect("new");
            let fatal = fs::create_dir(served.point.join("b")).expect_err("the end");
            assert_eq!(fatal.raw_os_error(), Some(libc::ECONNABORTED));
            let dead = || fs::metadata(&served.point).map_err(|e| e.raw_os_error());
            assert_eq!(dead().err(), Some(Some(libc::ENOTCONN)));
            served.still_listens(&file);
            assert_eq!(dead().err(), Some(Some(libc::ENOTCONN)));
            assert_eq!(served.child.try_wait().expect("a child"), None);
            served.signal(Signal::SIGTERM);
            served.end_well();
            assert_eq!(stats(&file).faults_fired[0].count, 1);
        }
    }

    fn a_dead_mount_goes_though_its_attributes_are_cached() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("stats.json");
        let fault = Path::new("unlink:die@nth=1");
        let mut served = Served::start("serve-cached", &[&file, fault]);
        let inner = served.point.join("d");
        fs::create_dir(&inner).expect("new");
        File::create(inner.join("f")).expect("new");
        fs::metadata(&served.point).expect("alive");
        fs::remove_file(inner.join("f")).expect_err("the end");
        // The kernel answers for the root from its cache.
        fs::metadata(&served.point).expect("cached");
        served.signal(Signal::SIGTERM);
        served.end_well();
        assert!(!is_mounted(&served.point));
    }

    fn an_unmount_from_outside_ends_one_that_died() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("stats.json");
        let mut served = Served::start("watch", &[&file, Path::new("mkdir:die@nth=1")]);
        fs::create_dir(served.point.join("a")).expect_err("the end");
        // The process that cut its connection may hold it for a moment.
        await_that("the unmount", || nix::mount::umount(&served.point).is_ok());
        // It notices the unmount by itself.
        await_that("the end", || {
            served.child.try_wait().expect("a child").is_some()
        });
        assert!(!is_mounted(&served.point));
    }

    fn dying_needs_root_or_the_list_of_connections() {
        let path = std::env::var("PATH").expect("set");
        let with_list = run_as_nobody("mortal-nobody-with-list", &path);
        assert_eq!(with_list, (true, String::new()));
        let (success, said) = run_as_nobody("mortal-nobody", &path);
        // If the system has mounted the list, every user can.
        if !success {
            assert!(said.starts_with("the fault 'die' needs root, or"), "{said}");
        }
    }

    /// Plays `role`, which becomes the user nobody. Returns true for success, and the messages.
    fn run_as_nobody(role: &str, path: &str) -> (bool, String) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The program itself may lie where the user nobody has no access.
        let program = folder.path().join("program");
        fs::copy(std::env::current_exe().expect("known"), &program).expect("room");
        let point = folder.path().join("point");
        fs::create_dir(&point).expect("new");
        std::os::unix::fs::chown(&point, Some(NOBODY), Some(NOBODY)).expect("root");
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("own");
        let output = Command::new(program)
            .arg(point.canonicalize().expect("there"))
            .env(ROLE, role)
            .env("PATH", path)
            .output()
            .expect("this program");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.success(), message)
    }

    fn an_ordinary_user_mounts_through_the_helper() {
        let path = std::env::var("PATH").expect("set");
        assert_eq!(run_as_nobody("nobody", &path), (true, String::new()));
    }

    fn other_users_are_let_in_when_asked_with_no_more_than_their_rights() {
        let check = |config: Config, expect: &str| {
            let folder = tempfile::tempdir().expect("a temporary folder");
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("own");
            let point = folder.path().join("point");
            fs::create_dir(&point).expect("new");
            let mounted = mount(config, &point).expect("/dev/fuse is there");
            let file = |name: &str, mode| {
                fs::write(point.join(name), format!("{name}\n")).expect("room");
                let mode = fs::Permissions::from_mode(mode);
                fs::set_permissions(point.join(name), mode).expect("own");
            };
            file("secret", 0o600);
            file("public", 0o644);
            file("program", 0o6777);
            fs::create_dir(point.join("shared")).expect("new");
            let all = fs::Permissions::from_mode(0o777);
            fs::set_permissions(point.join("shared"), all).expect("own");
            let script = "cat secret; cat public; echo x > new; echo x > shared/new; mkdir shared/d; echo x >> program";
            let output = Command::new("/bin/sh")
                .args(["-c", &format!("cd {} && ({script}) 2>&1", point.display())])
                .current_dir("/")
                .uid(NOBODY)
                .gid(NOBODY)
                .output()
                .expect("a shell");
            let message = String::from_utf8_lossy(&output.stdout);
            let words: Vec<&str> = message
                .lines()
                .map(|line| line.rsplit(": ").next().unwrap_or(line))
                .collect();
            assert_eq!(words.join(", "), expect);
            for name in ["shared/new", "shared/d"] {
                let owner = fs::metadata(point.join(name)).map(|m| (m.uid(), m.gid()));
                assert!(expect.is_empty() || owner.is_ok_and(|owner| owner == (NOBODY, NOBODY)));
            }
            let mode = fs::metadata(point.join("program")).expect("there").mode();
            let written = if expect.is_empty() { 0o6777 } else { 0o777 };
            assert_eq!(mode & 0o7777, written, "writing takes the rights away");
            mounted.unmount().expect("not in use");
        };
        let backing = tempfile::tempdir().expect("a temporary folder");
        let open_to_all = |config: Config| Config {
            allow_other: true,
            ..config
        };
        check(Config::memory(PLENTY), "");
        check(
            open_to_all(Config::memory(PLENTY)),
            "Permission denied, public, Permission denied",
        );
        fs::set_permissions(backing.path(), fs::Permissions::from_mode(0o755)).expect("own");
        check(
            open_to_all(Config::passthrough(backing.path())),
            "Permission denied, public, Permission denied",
        );
    }

    fn what_is_missing_for_a_mount_is_named() {
        let (_, message) = run_as_nobody("nobody", "/nowhere");
        assert!(
            message.contains("needs the program fusermount3"),
            "{message}"
        );
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = role("no-device", &[folder.path()]).output();
        let message = output.expect("this program").stderr;
        let message = String::from_utf8_lossy(&message);
        assert!(message.starts_with("/dev/fuse does not exist"), "{message}");
    }
}
