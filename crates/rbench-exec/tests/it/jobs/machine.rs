//! Tests the machine's figures, early ends of runs, and the files of verification states.

use std::path::PathBuf;

use rbench_core::Nanos;
use rbench_core::moved::Moved;

use super::*;
use crate::children;

#[test]
fn devices_and_processors_are_watched_while_jobs_run() {
    let dir = tempdir();
    let line = "--name=a --rw=write --size=64k --end_fsync=1 --idle-prof=percpu";
    let outcome = run_on(
        &[0, 0, 1],
        dir.path(),
        &format!("{line} --name=b --stonewall --size=64k"),
    );
    // Each host appears once per group of jobs, with its number of processors.
    let hosts: Vec<u32> = outcome.machine.iter().map(|one| one.host).collect();
    assert_eq!(hosts, [0, 1, 0, 1]);
    let cpus = rbench_sys::limits::host_facts()
        .expect("they are known")
        .cpus as usize;
    for one in &outcome.machine {
        assert_eq!(one.cpus.len(), cpus, "{one:?}");
        let names: Vec<&str> = one.disks.iter().map(|disk| disk.name.as_str()).collect();
        let mut once = names.clone();
        once.dedup();
        assert_eq!(names, once, "each device once");
    }
    let speeds: Vec<bool> = outcome
        .machine
        .iter()
        .map(|one| one.unit_us.is_empty())
        .collect();
    assert_eq!(speeds, [false, false, true, true], "measured once");
}

#[test]
fn nothing_is_watched_where_nobody_asks_or_no_file_is() {
    let dir = tempdir();
    for line in [
        "--name=a --rw=write --size=64k --disk_util=0",
        "--name=a --rw=write --size=64k --ioengine=null",
    ] {
        assert_eq!(run_well(dir.path(), line).machine, [], "{line}");
    }
    // An in-memory file system has no device.
    let shm = tempfile::tempdir_in("/dev/shm").expect("a temporary directory");
    let outcome = run_well(shm.path(), "--name=a --rw=write --size=64k");
    assert_eq!(outcome.machine.len(), 1);
    assert_eq!(outcome.machine[0].disks, []);
}

#[test]
fn what_is_moved_over_time_is_all_that_is_moved() {
    let dir = tempdir();
    let line = "--name=a --rw=randrw --size=256k --rate_iops=200 --bwavgtime=100 --numjobs=2 \
                --bandwidth-log --verify=crc32c --do_verify=0 --verify_state_save=0";
    let outcome = run_well(dir.path(), line);
    for job in &outcome.jobs {
        let Moved { width, bytes, .. } = &job.moved;
        assert_eq!(*width, Nanos(100_000_000));
        let sum = bytes
            .iter()
            .fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        assert_eq!(sum, [job.read.bytes, job.write.bytes]);
        assert!(
            bytes.len() as u64 <= job.elapsed.0 / width.0 + 2,
            "{bytes:?}"
        );
    }
    let outcome = run_well(dir.path(), "--name=a --rw=read --size=64k");
    assert_eq!(outcome.jobs[0].moved, Moved::default());
}

/// A job of an hour that a trigger ends, and the file that the trigger's command creates.
fn triggered(dir: &Path, by: &str) -> (String, PathBuf) {
    let fired = dir.join("fired");
    let line = format!(
        "--name=a --ioengine=null --rw=write --size=1g --rate_iops=100 --time_based --runtime=1h \
         --trigger-{by} --trigger=:>{}",
        fired.display()
    );
    (line, fired)
}

#[test]
fn a_trigger_ends_the_jobs_and_runs_its_command() {
    let _children = children::some();
    let dir = tempdir();
    let path = dir.path();
    let (line, fired) = triggered(path, "timeout=300ms");
    run(path, &line);
    assert!(fired.exists());
    // A trigger file has the same effect, and is removed.
    fs::remove_file(&fired).expect("it is there");
    let (line, _) = triggered(path, "file=go");
    let (mut run, go) = (job(&[0], path, &line), path.join("go"));
    run.progressed = Some(Box::new(move |progress| {
        if progress.items > 0 {
            // It may be seen and removed before the last call of this.
            let _ = fs::write(&go, "");
        }
    }));
    let outcome = finish(run, &line);
    assert!(fired.exists() && outcome.jobs[0].write.ios > 0);
}

#[test]
fn the_other_hosts_run_a_command_of_their_own() {
    let _children = children::some();
    let dir = tempdir();
    let path = dir.path().display().to_string();
    let line = format!(
        "--name=a --ioengine=null --rw=write --size=1g --rate_iops=100 --time_based --runtime=1h \
         --trigger-timeout=200ms --trigger=echo>>{path}/here --trigger-remote=echo>>{path}/there"
    );
    run_on(&[0, 0, 1, 1, 2], dir.path(), &line);
    let lines = |name: &str| {
        let text = fs::read_to_string(dir.path().join(name)).expect("it has run");
        text.lines().count()
    };
    assert_eq!((lines("here"), lines("there")), (1, 2), "once on each host");
}

#[test]
fn states_of_verified_jobs_go_where_they_are_to_go() {
    let dir = tempdir();
    fs::create_dir(dir.path().join("aux")).expect("made");
    let line = "--name=a --rw=write --size=64k --verify=crc32c --do_verify=0 --aux-path=aux";
    run_well(dir.path(), line);
    let state = "local-a-0-verify.state";
    assert!(dir.path().join("aux").join(state).exists());
    assert!(!dir.path().join(state).exists());
    run_well(
        dir.path(),
        "--name=a --rw=write --size=64k --verify=crc32c --verify_only --verify_state_load=1 \
         --aux-path=aux",
    );
}

mod timing {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_trigger_ends_the_jobs_and_runs_its_command() {
        let _children = children::some();
        let dir = tempdir();
        let path = dir.path();
        let (line, fired) = triggered(path, "timeout=300ms");
        let started = Instant::now();
        let outcome = run(path, &line);
        assert!(
            started.elapsed() < Duration::from_secs(1800),
            "{:?}",
            started.elapsed()
        );
        assert!(fired.exists() && outcome.jobs[0].write.ios > 0);
        // A trigger file has the same effect, and is removed.
        fs::remove_file(&fired).expect("it is there");
        fs::write(path.join("go"), "").expect("written");
        let (line, _) = triggered(path, "file=go");
        run(path, &line);
        assert!(fired.exists() && !path.join("go").exists());
    }
}
