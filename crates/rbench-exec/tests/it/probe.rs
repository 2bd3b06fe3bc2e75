//! Tests how hosts see each other's files, and a file system that does not answer.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use rbench_comm::{Clocks, Communicator as _, threads};
use rbench_exec::probe::{PATIENCE, probe};
use rbench_exec::{Group, Place};

use crate::crowd::Quiet;

/// The results of all ranks, in order.
fn on_hosts<T: Send>(hosts: &[u32], work: impl AsyncFn(&Group<'_>) -> T + Sync) -> Vec<T> {
    let ranks = hosts.len() as u32;
    let names: Vec<String> = hosts.iter().map(|host| format!("host{host}")).collect();
    let names: BTreeSet<String> = names.into_iter().collect();
    let one = |comm: &dyn rbench_comm::Communicator| {
        crate::runtime().block_on(async {
            let (names, clocks) = (names.iter().cloned().collect(), Clocks::one(ranks));
            let group = Group::form(comm, names, hosts.to_vec(), clocks, &Quiet, &Quiet);
            work(&group.await.expect("the ranks talk")).await
        })
    };
    std::thread::scope(|scope| {
        let world = threads::world(ranks).into_iter();
        let threads: Vec<_> = world
            .map(|comm| {
                let one = &one;
                scope.spawn(move || (comm.rank(), one(&comm)))
            })
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join());
        let mut all: Vec<_> = ends.map(|end| end.expect("no panic")).collect();
        all.sort_by_key(|(rank, _)| *rank);
        all.into_iter().map(|(_, found)| found).collect()
    })
}

fn place(parent: &Path) -> Place<'_> {
    Place {
        live: None,
        parent,
        name: "rbench.test",
        marker: b"test",
        needs_shared: None,
        recorder: None,
    }
}

#[test]
fn every_host_sees_the_files_of_every_other_host_whole() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let probed = on_hosts(&[0, 0, 1, 1, 2, 2], async |group| {
        probe(group, &place(dir.path()), PATIENCE).await
    });
    let [at_root, ..] = &probed[..] else {
        panic!("no rank");
    };
    let at_root = at_root.as_ref().expect("it is probed");
    assert_eq!(at_root.hosts.len(), 3);
    assert!(at_root.shared);
    let pairs: BTreeSet<_> = at_root.sights.iter().map(|s| (s.maker, s.looker)).collect();
    let all = [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)];
    assert_eq!(pairs, BTreeSet::from(all));
    for sight in &at_root.sights {
        assert!(sight.after.is_some() && sight.whole, "{sight:?}");
    }
    assert_eq!(at_root.left, [""; 0]);
    let left = std::fs::read_dir(dir.path()).expect("readable").count();
    assert_eq!(left, 0);
}

mod needs_fuse {
    use rbench_exec::probe::answers;

    use super::*;
    use crate::limits::needs_fuse::wait_while_it_hangs;
    use crate::testfs::{Mount, mount};

    /// Nobody waits longer than necessary to detect the hang.
    const SHORT: Duration = Duration::from_secs(1);

    fn hanging(fault: &str) -> Mount {
        mount(|config| config.faults = vec![fault.parse().expect("a fault")])
    }

    #[test]
    fn a_file_system_that_does_not_answer_is_told_to_every_rank() {
        let target = hanging("lookup:hang@nth=1");
        let path = target.path().join("x");
        let asks = async |group: &Group<'_>| answers(group, &path, group.is_leader(), SHORT).await;
        let said = wait_while_it_hangs(&target.fs, || on_hosts(&[0, 0], asks));
        let said = said
            .into_iter()
            .map(|end| end.expect_err("it hangs").to_string());
        let expect = format!("{} did not answer within 1 s", path.display());
        assert_eq!(said.collect::<Vec<_>>(), [expect.clone(), expect]);
        target.end();
    }

    /// Later attempts are not reached: they map files, and a process must not map files of a file
    /// system that it serves itself (both sides may need its page table).
    #[test]
    fn where_a_call_does_not_return_nothing_more_is_tried_and_what_is_left_is_told() {
        // The run's own directory is created before the host's.
        let target = hanging("mkdir:hang@nth=2");
        let tries = async |group: &Group<'_>| probe(group, &place(target.path()), SHORT).await;
        let mut probed = wait_while_it_hangs(&target.fs, || on_hosts(&[0], tries));
        let at_root = probed.remove(0).expect("it is probed");
        let [host] = &at_root.hosts[..] else {
            panic!("{:?}", at_root.hosts);
        };
        assert_eq!(host.silent_at.as_deref(), Some("mkdir"));
        assert_eq!(host.found, []);
        let [left] = &at_root.left[..] else {
            panic!("{:?}", at_root.left);
        };
        assert!(left.contains("is left behind"), "{left}");
        target.end();
    }
}
