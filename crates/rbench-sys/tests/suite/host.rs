//! Caches, mounts, space and commands, compared with other programs of the system.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::SigSet;
use nix::unistd::{Uid, setuid};
use rbench_sys::caches::drop_caches;
use rbench_sys::limits::{locks_memory_freely, raise_open_files};
use rbench_sys::{Space, command, mountinfo, space};

use crate::support::{
    Mounted, child, disk, in_child, in_own_mounts, is_child, place, runs, skip, text, this_test,
    traced, wait_until,
};

/// A file of 64 clean pages, on the disk and in the page cache.
fn cached_file(directory: &Path) -> File {
    let path = directory.join("cached");
    fs::write(&path, [7; 64 * 4096]).expect("there is space");
    let file = File::open(path).expect("it was made");
    file.sync_all().expect("the disk takes it");
    file
}

/// Number of pages of the file in the page cache, by `fincore`.
fn cached_pages(directory: &Path) -> Option<u64> {
    let path = directory.join("cached");
    let run = Command::new("fincore")
        .args(["--noheadings", "--output", "PAGES", text(&path)])
        .output()
        .ok()?;
    String::from_utf8_lossy(&run.stdout).trim().parse().ok()
}

#[test]
fn who_is_not_root_is_told_that_dropping_the_caches_needs_root() {
    if !in_child(this_test!(), &["env"]) {
        return;
    }
    if Uid::effective().is_root() {
        setuid(Uid::from_raw(65534)).expect("root may become nobody");
    }
    let message = drop_caches().expect_err("nobody may not").to_string();
    assert_eq!(
        message,
        "dropping the caches needs root: /proc/sys/vm/drop_caches cannot be written (EACCES)"
    );
}

#[test]
fn the_limit_on_open_files_is_raised_to_the_hard_one() {
    if !in_child(this_test!(), &["prlimit", "--nofile=64:512"]) {
        return;
    }
    assert_eq!(raise_open_files(), Ok(512));
    let shell = Command::new("sh").args(["-c", "ulimit -Sn"]).output();
    let inherited = shell.expect("there is a shell").stdout;
    assert_eq!(String::from_utf8_lossy(&inherited).trim(), "512");
    assert_eq!(raise_open_files(), Ok(512), "it is so already");
}

#[test]
fn who_may_lock_any_amount_of_memory_is_known() {
    let test = this_test!();
    if is_child(test) {
        println!("freely: {}", locks_memory_freely());
        return;
    }
    let check = |wrapper: &[&str], expect: bool| {
        let printed = child(test, wrapper);
        let expect = format!("freely: {expect}");
        assert!(printed.contains(&expect), "{wrapper:?}: {printed}");
    };
    check(&["prlimit", "--memlock=65536:"], Uid::effective().is_root());
    let in_namespace = ["unshare", "--user", "--map-root-user"];
    if runs(&[&in_namespace[..], &["true"]].concat()) {
        let limited = ["prlimit", "--memlock=65536:"];
        check(&[&in_namespace[..], &limited].concat(), false);
    } else {
        skip("unshare may not make a user namespace");
    }
    if Uid::effective().is_root() {
        let nobody = ["setpriv", "--reuid=65534", "--clear-groups"];
        let at_most = |limit| [&["prlimit", limit][..], &nobody].concat();
        check(&at_most("--memlock=65536:"), false);
        let unlimited = "--memlock=unlimited:unlimited";
        if runs(&["prlimit", unlimited, "true"]) {
            check(&at_most(unlimited), true);
        }
    }
}

/// Type, source and mount point of `path` by `findmnt`, which reads the same table
/// independently.
fn findmnt(path: &Path) -> Option<String> {
    let run = Command::new("findmnt")
        .args(["--raw", "--noheadings", "--first-only", "--nofsroot"])
        .args(["--output", "FSTYPE,SOURCE,TARGET", "--target", text(path)])
        .output()
        .ok()?;
    // Blanks are escaped in raw output.
    let line = String::from_utf8_lossy(&run.stdout).replace("\\x20", "_");
    run.status.success().then(|| line.trim().to_owned())
}

#[test]
fn space_is_what_stat_reports() {
    let path = env!("CARGO_TARGET_TMPDIR");
    let mut stat = Command::new("stat");
    stat.args(["-f", "-c", "%S %b %f %c %d", path]);
    // Some file systems create inodes on demand, and other processes may write in between, but not
    // as much each time.
    let near = |found: u64, theirs: u64, by: u64| found.abs_diff(theirs) <= by;
    let same = |_| {
        let output = stat.output().expect("there is stat");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let numbers: Vec<u64> = output.split_whitespace().flat_map(str::parse).collect();
        let [block, total, free, inodes, inodes_free] = numbers[..] else {
            panic!("five numbers, not {output}")
        };
        let ours = space(Path::new(path)).expect("it is there");
        assert_eq!(ours.bytes_total, block * total);
        near(ours.bytes_free, block * free, 1 << 30)
            && near(ours.inodes_total, inodes, 1 << 20)
            && near(ours.inodes_free, inodes_free, 1 << 20)
    };
    assert!((0..20).any(same), "{:?}", space(Path::new(path)));
}

/// Error of `command`, as a sentence.
fn failure(command: &str) -> String {
    command::run(command, &|| false).result.expect_err(command)
}

#[test]
fn a_command_that_does_not_end_well_is_named_with_how_it_ended() {
    assert_eq!(command::run("exit 0", &|| false).result, Ok(()));
    let check = |command: &str, how: &str| {
        assert_eq!(failure(command), format!("the command '{command}' {how}"));
    };
    check("true; exit 7", "failed with exit status 7");
    check("kill -KILL $$", "was ended by SIGKILL");
    check("kill -40 $$", "was ended by signal 40");
    let message = failure("a\0b");
    assert!(message.contains("cannot be run"), "{message}");
}

#[test]
fn a_command_is_waited_for() {
    let directory = disk();
    let path = directory.path().join("f");
    let late = format!("sleep 0.2; echo done > {}", text(&path));
    assert_eq!(command::run(&late, &|| false).result, Ok(()));
    assert_eq!(fs::read(path).expect("it was written"), b"done\n");
}

#[test]
fn a_command_ends_when_it_is_to_and_what_it_leaves_goes_on() {
    let failed = command::run("sleep 1000", &|| true)
        .result
        .expect_err("it is ended");
    assert_eq!(failed, "the command 'sleep 1000' was ended by SIGTERM");
    let directory = disk();
    let file = |name: &str| directory.path().join(name);
    // rbench does not wait for processes in the background and does not end them.
    let (go, done) = (file("go"), file("g"));
    let background = format!(
        "(while ! [ -e {} ]; do sleep 0.05; done; echo done >{}) & exit 0",
        text(&go),
        text(&done)
    );
    assert_eq!(command::run(&background, &|| false).result, Ok(()));
    assert!(!done.exists());
    fs::write(&go, "").expect("a new name");
    wait_until("what is in the background ends", || done.exists());
}

#[test]
fn a_command_that_stands_still_is_nobodys_to_wake_and_is_ended() {
    let failed = command::run("kill -STOP $$", &|| false).result;
    assert!(failed.is_err_and(|why| why.contains("it was stopped")));
}

#[test]
fn a_command_without_a_shell_to_run_it_cannot_be_run() {
    if !in_child(this_test!(), &["env", "PATH={place}"]) {
        return;
    }
    assert_eq!(
        failure("true"),
        "the command 'true' cannot be run: No such file or directory (os error 2)"
    );
}

#[test]
fn a_command_starts_without_a_copy_of_this_process_and_with_no_signal_blocked() {
    // Only words of the shell itself: it starts no process.
    const COMMAND: &str = "pwd; while read -r line; do case $line in SigBlk*) echo \"$line\"; esac; \
        done </proc/self/status";
    let work = || {
        SigSet::all()
            .thread_block()
            .expect("signals can be blocked");
        let (directory, output) = (place().join("it's $here"), place().join("output"));
        fs::create_dir(&directory).expect("a new name");
        command::run_in(&directory, COMMAND, &output, &|| false).expect("it runs");
        let printed = fs::read_to_string(output).expect("it was written");
        let expect = format!("{}\nSigBlk:\t{:016x}\n", text(&directory), 0);
        assert_eq!(printed, expect);
    };
    let options = ["-e", "trace=clone,clone3,fork,vfork"];
    let Some(run) = traced(this_test!(), &options, work) else {
        return;
    };
    let started = |line: &&str| line.contains("clone") || line.contains("fork(");
    let started: Vec<&str> = run.log.lines().filter(started).collect();
    let shells = started.iter().filter(|line| line.contains("CLONE_VFORK"));
    // The guard of its group, and the command.
    assert_eq!(shells.count(), 2, "{}", run.log);
    let is_copy = |line: &&&str| line.contains("flags=") && !line.contains("CLONE_VM");
    assert_eq!(started.iter().find(is_copy), None, "{}", run.log);
}

#[test]
fn what_a_command_prints_does_not_get_among_the_results_and_it_reads_nothing() {
    let test = this_test!();
    if is_child(test) {
        println!("a result");
        assert_eq!(
            command::run("echo to $((0 + 1)); echo to $((1 + 1)) >&2; cat", &|| false).result,
            Ok(())
        );
        return;
    }
    let directory = disk();
    let (stdin, stderr) = (directory.path().join("in"), directory.path().join("err"));
    fs::write(&stdin, "from our stdin").expect("a new name");
    let redirected = format!("exec \"$0\" \"$@\" <{} 2>{}", text(&stdin), text(&stderr));
    let stdout = child(test, &["sh", "-c", &redirected]);
    let stderr = fs::read_to_string(stderr).expect("the shell made it");
    assert!(stdout.contains("a result"), "{stdout}");
    for printed in ["to 1", "to 2"] {
        assert!(!stdout.contains(printed), "{stdout}");
        assert!(stderr.contains(printed), "{stderr}");
    }
    for output in [stdout, stderr] {
        assert!(!output.contains("from our stdin"), "{output}");
    }
}

/// These tests drop caches, become other users or mount, in their own namespace.
mod needs_root {
    use super::*;

    #[test]
    fn all_caches_are_dropped_when_all_is_written_back() {
        // The call is only simulated: a real one would slow down the whole host.
        let options = [
            "--trace=sync,write",
            "--inject=write:retval=2:when=1",
            "--trace-path=/proc/sys/vm/drop_caches",
            "--quiet=all",
        ];
        let work = || drop_caches().expect("root");
        let Some(run) = traced(this_test!(), &options, work) else {
            return;
        };
        let calls = run
            .log
            .lines()
            .map(|l| l.split_once(' ').map_or(l, |l| l.1.trim()));
        let calls: Vec<&str> = calls.filter(|call| !call.starts_with("sync")).collect();
        let [write] = calls[..] else {
            panic!("{}", run.log)
        };
        assert!(
            write.contains("\"3\\n\", 2") && write.contains("(INJECTED)"),
            "{}",
            run.log
        );
    }

    #[test]
    fn mounts_are_found_as_findmnt_finds_them() {
        let Some(top) = in_own_mounts(this_test!()) else {
            return;
        };
        let blank = top.join("with blank");
        let hidden = blank.join("hidden");
        fs::create_dir_all(&hidden).expect("new names");
        let _lower = Mounted::tmpfs(&hidden, "");
        let _upper = Mounted::tmpfs(&blank, "size=1m");
        fs::create_dir(&hidden).expect("the upper mount is empty");
        let mount = mountinfo::of(&hidden).expect("it is a plain directory now");
        assert_eq!(
            mount.mount_point, blank,
            "not the hidden mount of that name"
        );
        let _stacked = Mounted::tmpfs(&blank, "size=2m");

        for path in ["/", "/proc/self", "/dev/null", text(&top), text(&blank)] {
            let path = Path::new(path);
            let Some(expect) = findmnt(path) else {
                return skip("there is no findmnt");
            };
            let mount = mountinfo::of(path).expect("everything lies on a mount");
            let (fs_type, source) = (mount.fs_type, mount.source);
            let line = format!("{fs_type} {source} {}", text(&mount.mount_point));
            assert_eq!(line.replace(' ', "_"), expect.replace(' ', "_"));
        }
        let mount = mountinfo::of(&blank).expect("it is mounted");
        assert_eq!(mount.mount_point, blank);
        assert!(
            mount.options.contains(&"size=2048k".to_owned()),
            "the one on top: {:?}",
            mount.options
        );
        assert!(
            mountinfo::of(&hidden).is_err(),
            "it is not in the one on top"
        );
    }

    #[test]
    fn space_is_counted_as_the_mount_was_made() {
        let Some(directory) = in_own_mounts(this_test!()) else {
            return;
        };
        let _mounted = Mounted::tmpfs(&directory, "size=1m,nr_inodes=100");
        let page = 4096;
        let total = Space {
            bytes_total: 1 << 20,
            bytes_free: 1 << 20,
            inodes_total: 100,
            inodes_free: 99,
            bytes_available: 1 << 20,
            inodes_available: 99,
        };
        assert_eq!(
            space(&directory),
            Ok(total),
            "the root directory is an inode"
        );
        for i in 0..5 {
            fs::write(directory.join(i.to_string()), [1; 3 * 4096]).expect("there is space");
        }
        let rest = Space {
            bytes_free: total.bytes_free - 15 * page,
            inodes_free: 94,
            bytes_available: total.bytes_available - 15 * page,
            inodes_available: 94,
            ..total
        };
        assert_eq!(space(&directory.join("0")), Ok(rest));
        assert_eq!(space(&directory.join("missing")), Err(Errno::ENOENT));
    }

    mod timing {
        use super::*;

        #[test]
        fn a_file_leaves_the_page_cache_when_all_caches_are_dropped() {
            let directory = disk();
            // Another process may drop the caches in between.
            let pages = |_| {
                cached_file(directory.path());
                cached_pages(directory.path())
            };
            if !(0..5).map(pages).any(|pages| pages == Some(64)) {
                return skip("fincore never counts the 64 pages that were written");
            }
            drop_caches().expect("root");
            assert_eq!(cached_pages(directory.path()), Some(0));
        }
    }
}

mod timing {
    use super::*;

    #[test]
    fn what_a_command_has_started_has_time_to_put_things_in_order() {
        let directory = disk();
        let file = |name: &str| directory.path().join(name);
        let (ready, done) = (file("ready"), file("done"));
        let tidy = format!(
            "(trap 'sleep 0.5; echo done >{}; exit' TERM; echo >{}; while :; do sleep 0.1; done) & wait",
            text(&done),
            text(&ready)
        );
        command::run(&tidy, &|| ready.exists())
            .result
            .expect_err("it is ended");
        assert_eq!(fs::read(&done).expect("it was written"), b"done\n");
    }
}
