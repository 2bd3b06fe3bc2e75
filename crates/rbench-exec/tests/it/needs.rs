//! Tests that all ranks refuse a run, before any change, if the file system lacks a required operation, and name the
//! hosts. `rbench/tests/program/mounts/needs.rs` tests the command lines.

mod needs_fuse {
    use rbench_exec::ExecError;

    use crate::jobs::job;
    use crate::testfs::mount;

    /// The refusal of jobs that punch holes into files, on these hosts.
    fn refusal(hosts: &[u32]) -> String {
        let target = mount(|config| {
            let fault = "fallocate:EOPNOTSUPP@after=0";
            config.faults = vec![fault.parse().expect("a fault")];
        });
        let line = "--name=j --rw=trimwrite --bs=4k --size=64k --fallocate=none";
        let mut run = job(hosts, target.path(), line);
        run.common.leave.untried = false;
        let Err(ExecError::Usage(said)) = run.go() else {
            panic!("it is not refused");
        };
        let left = std::fs::read_dir(target.path()).expect("readable").count();
        assert_eq!(left, 0, "{said}");
        target.end();
        said
    }

    const SAID: &str = "punching holes (job j): fuse.rbench-testfs (rbench-testfs) refuses it \
                        (fallocate: EOPNOTSUPP)";

    #[test]
    fn ranks_of_one_host_hear_what_it_lacks() {
        assert_eq!(refusal(&[0, 0, 0]), SAID);
    }

    #[test]
    fn of_several_hosts_those_that_lack_it_are_named() {
        let hosts = format!("{SAID} on host0, host1, host2");
        assert_eq!(refusal(&[0, 0, 1, 1, 2, 2]), hosts);
    }
}
