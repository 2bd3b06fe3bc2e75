//! Tests that `--op-timeout` covers every call that a run makes on its target, in phases and between them: whichever
//! request is not answered, the run ends by itself.

use std::path::Path;
use std::sync::Mutex;

use rbench_core::{Bytes, Nanos};
use rbench_exec::ExecError;
use rbench_plan::io::Rw;
use rbench_plan::spec::{Io, Mdtest};

use crate::group::{Outcome, Run};
use crate::jobs::job;

/// Workloads that differ in their calls outside phases; each runs as shortly as possible.
const WORKLOADS: [&str; 3] = ["io", "mdtest", "fio"];

/// Most requests of a kind that are not answered in turn, at even distances.
const MOST: usize = 6;

fn run<'r>(workload: &str, dir: &'r Path) -> Run<'r> {
    let mut run = match workload {
        "io" => Run::io(
            &[0],
            dir,
            Io {
                rw: Some(vec![Rw::RandRead, Rw::RandWrite]),
                block: Some(Bytes(4096)),
                size: Some(Bytes(4096)),
                direct: true,
                ..Io::default()
            },
        ),
        "mdtest" => {
            let options = Mdtest {
                items: Some(1),
                dirs: vec![dir.join("new")],
                ..Mdtest::default()
            };
            Run::mdtest(&[0], dir, options)
        }
        "fio" => {
            let line =
                "--name=a --rw=randread --bs=4k --size=4k --fallocate=none --unlink=1 --direct=1";
            job(&[0], dir, line)
        }
        other => panic!("{other}"),
    };
    run.common.leave.untried = false;
    run
}

/// What a run said of the call that was not answered; `None` if it did not miss the answer.
fn said(ended: Result<Outcome, ExecError>) -> Option<String> {
    match ended {
        Ok(outcome) => {
            let trouble = outcome.trouble.into_iter().chain(outcome.left);
            let mut all = trouble.collect::<Vec<_>>();
            assert!(!all.is_empty() || outcome.complete);
            all.extend(outcome.troubles);
            Some(all.join("; ")).filter(|all| !all.is_empty())
        }
        Err(ExecError::SetUp(why)) => Some(why),
        Err(other) => panic!("{other:?}"),
    }
}

mod needs_fuse {
    use std::sync::PoisonError;

    use rbench_testfs::Kind;

    use super::*;
    use crate::limits::needs_fuse::wait_while_it_may_hang;
    use crate::testfs::mount;

    /// Requests whose sender does not wait for the reply.
    const UNAWAITED: [Kind; 3] = [Kind::Forget, Kind::Release, Kind::Releasedir];

    /// Requests of counters and probes that a run does without after 5 s.
    const DISPENSABLE: [Kind; 4] = [Kind::Lookup, Kind::Getattr, Kind::Statfs, Kind::Getxattr];

    /// Whole runs of this workload: the number of requests of each kind.
    fn requests(workload: &str) -> Vec<(Kind, u64)> {
        let target = mount(|_| ());
        let outcome = run(workload, target.path()).go().expect("it is set up");
        assert!(outcome.complete, "{workload}: {:?}", outcome.trouble);
        let awaited = Kind::ALL.iter().filter(|kind| !UNAWAITED.contains(kind));
        let counts = awaited.map(|kind| (*kind, target.times(*kind).count()));
        let counts = counts.collect();
        target.end();
        counts
    }

    /// The run in which the request `nth` of that kind is not answered.
    fn ends_without_an_answer(workload: &str, kind: Kind, nth: u64) {
        let target = mount(|config| {
            let fault = format!("{kind}:hang@nth={nth}");
            config.faults = vec![fault.parse().expect("a fault")];
        });
        let mut run = run(workload, target.path());
        run.common.limits.op_timeout = Some(Nanos(300_000_000));
        let (ended, hung) = wait_while_it_may_hang(&target.fs, || run.go());
        let said = said(ended);
        let what = format!("{workload}: {kind} {nth}");
        match said {
            Some(said) => assert!(said.contains("--op-timeout"), "{what}: {said}"),
            None => assert!(!hung || DISPENSABLE.contains(&kind), "{what}: not missed"),
        }
        drop(target);
    }

    #[test]
    fn whichever_request_is_not_answered_the_run_ends_and_says_so() {
        let each = |(kind, count): (Kind, u64)| {
            let step = (count as usize).div_ceil(MOST).max(1);
            (1..=count).step_by(step).map(move |nth| (kind, nth))
        };
        let all = WORKLOADS.iter().flat_map(|workload| {
            let all = requests(workload).into_iter().flat_map(each);
            all.map(move |(kind, nth)| (*workload, kind, nth))
        });
        let all = Mutex::new(all.collect::<Vec<_>>().into_iter());
        // Each of them only waits.
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    let next = || all.lock().unwrap_or_else(PoisonError::into_inner).next();
                    while let Some((workload, kind, nth)) = next() {
                        ends_without_an_answer(workload, kind, nth);
                    }
                });
            }
        });
    }
}
