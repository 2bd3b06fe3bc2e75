//! Tests the kernel's view of the workers' threads, and the commands around them.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;
use crate::children;

/// A worker's command that prints properties of its thread.
const WHO: &str = "grep -E '^(Cpus_allowed_list|Uid):' /proc/self/status; nice";

/// A job that writes, and the output of its workers' commands.
fn told(options: &str, ranks: &[u32]) -> (Outcome, String) {
    let _children = children::some();
    let dir = tempdir();
    let line = format!("--name=a --rw=write --size=16k {options}");
    let (mut jobs, _) = fio(&line);
    jobs.jobs[0].settings.plan.process.before = Some(WHO.to_owned());
    jobs.jobs[0].settings.plan.process.after = Some("echo after; wc -c < a.0.0; false".to_owned());
    let mut run = Run::fio(ranks, dir.path(), jobs);
    // Other users may write there.
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("opened");
    run.common.leave.private_dirs = true;
    let outcome = finish(run, &line);
    let text = fs::read_to_string(dir.path().join("a.prerun.txt")).expect("what it printed");
    let after = fs::read_to_string(dir.path().join("a.postrun.txt")).expect("what it printed");
    assert!(
        after.contains("after\n") && after.contains("16384\n"),
        "{after}"
    );
    (outcome, text)
}

#[test]
fn what_cannot_be_had_is_named_and_nothing_is_done() {
    let _children = children::some();
    let dir = tempdir();
    for (options, name, why) in [
        ("--cpus_allowed=4095", "cpus_allowed", "4095"),
        ("--numa_cpu_nodes=1000", "numa_cpu_nodes", "1000"),
        ("--exec_prerun=false", "exec_prerun", "exit status 1"),
    ] {
        let line = format!("--name=a --rw=write --size=16k {options}");
        let said = refusal(dir.path(), &line);
        assert!(said.contains(name) && said.contains(why), "{said}");
        assert!(said.contains("job 'a'"), "{said}");
    }
}

mod needs_root {
    use super::*;

    #[test]
    fn another_user_makes_files_of_its_own() {
        let dir = tempdir();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o777)).expect("opened");
        let line = "--name=a --rw=write --size=16k --uid=1234 --gid=1235 --create_on_open=1";
        let outcome = run(dir.path(), line);
        check_sound(&outcome, line);
        let metadata = fs::metadata(dir.path().join("a.0.0")).expect("made");
        assert_eq!((metadata.uid(), metadata.gid()), (1234, 1235));
        // The process itself is unchanged.
        assert_eq!(fs::metadata("/proc/self").expect("there").uid(), 0);
    }

    #[test]
    fn workers_have_the_processors_user_and_priority_that_were_asked_for() {
        let cpus = rbench_sys::limits::allowed_cpus().expect("processors");
        let (first, last) = (cpus[0], cpus[cpus.len() - 1]);
        let options = format!("--cpus_allowed={last} --nice=3 --prioclass=3 --comm=load");
        let (outcome, text) = told(&options, &[0]);
        check_sound(&outcome, &options);
        assert!(
            text.contains(&format!("Cpus_allowed_list:\t{last}\n")),
            "{text}"
        );
        assert!(text.contains("Uid:\t0\t"), "{text}");
        // SAFETY: it only returns the priority of this process.
        let own = unsafe { nix::libc::getpriority(nix::libc::PRIO_PROCESS, 0) };
        let nice: i32 = text
            .lines()
            .last()
            .and_then(|line| line.parse().ok())
            .expect(&text);
        assert_eq!(nice, (own + 3).min(19), "{text}");

        // One CPU for each, in turn, over all ranks of the host.
        let options = format!("--cpus_allowed={first},{last} --cpus_allowed_policy=split");
        let (outcome, text) = told(&options, &[0, 0]);
        check_sound(&outcome, &options);
        for cpu in [first, last] {
            assert!(
                text.contains(&format!("Cpus_allowed_list:\t{cpu}\n")),
                "{text}"
            );
        }

        let (_, text) = told("--numa_cpu_nodes=0 --numa_mem_policy=bind:0", &[0]);
        assert!(text.contains("Cpus_allowed_list"), "{text}");
    }
}
