//! Connections between jobs and between requests of a job, and the memory of its buffers.

use rbench_core::memory::{Memory, MemoryKind};

use super::*;
use crate::jobs::{Exit, ExitWhat, FileLock, Flow, Others, Submission};

#[test]
fn a_job_has_to_do_with_others_only_where_that_is_said() {
    assert_eq!(single(|_| {}).others, Others::default());
    // It says how, and not that.
    let (plan, notes) = noted(|s| {
        s.exit_what = Some(ExitWhat::All);
        s.flow_id = Some(3);
    });
    assert_eq!(plan.others, Others::default());
    assert_eq!(notes.len(), 2, "{notes:?}");
    let plan = single(|s| {
        s.exitall = Some(true);
        s.exitall_on_error = Some(true);
        (s.flow, s.flow_id) = (Some(3), Some(7));
        s.flow_sleep = Some(Nanos(5));
    });
    let expect = Others {
        exit: Some(Exit {
            what: ExitWhat::Group,
            always: true,
        }),
        flow: Some(Flow {
            id: 7,
            weight: 3,
            sleep: Nanos(5),
        }),
    };
    assert_eq!(plan.others, expect);
    let plan = single(|s| {
        s.exitall_on_error = Some(true);
        s.exit_what = Some(ExitWhat::Stonewall);
    });
    let expect = Exit {
        what: ExitWhat::Stonewall,
        always: false,
    };
    assert_eq!(plan.others.exit, Some(expect));
}

#[test]
fn threads_of_its_own_give_a_synchronous_engine_depth() {
    let depth = |change: fn(&mut Settings)| {
        let plan = single(|s| {
            s.plan.depth = 8;
            change(s);
        });
        (plan.depth, plan.submission)
    };
    assert_eq!(depth(|_| {}), (1, Submission::default()));
    let offload = Submission {
        offload: true,
        serialize: false,
    };
    assert_eq!(depth(|s| s.plan.submission.offload = true), (8, offload));
    let many = |s: &mut Settings| (s.plan.submission.offload, s.plan.depth) = (true, 5000);
    check_refused(many, "io_submit_mode=offload");
    let names = |s: &mut Settings| {
        (s.plan.submission.offload, s.ioengine) = (true, Some("filestat".into()));
        s.filesize = Some((4096, 4096));
    };
    check_refused(names, "io_submit_mode=offload");
    let plan = single(|s| s.plan.files.lock = FileLock::ReadWrite);
    assert_eq!(plan.files.lock, FileLock::ReadWrite);
}

#[test]
fn memory_is_ordinary_unless_something_else_is_asked_for() {
    assert_eq!(single(|_| {}).memory, Memory::default());
    let sized = single(|s| s.plan.memory.huge_page = 4 << 20);
    assert!(sized.memory.is_ordinary());
    let plan = single(|s| {
        (s.plan.memory.kind, s.plan.memory.file) = (MemoryKind::MmapHuge, Some("/huge/m".into()));
        (s.plan.memory.align, s.plan.memory.locked) = (Some(512), 4096);
    });
    let expect = Memory {
        kind: MemoryKind::MmapHuge,
        file: Some("/huge/m".into()),
        align: Some(512),
        huge_page: 2 << 20,
        locked: 4096,
    };
    assert_eq!(plan.memory, expect);
    refused! {
        "mem=mmaphuge needs the path": plan.memory.kind = MemoryKind::MmapHuge;
        "hugepage-size": plan.memory.huge_page = 3 << 20;
    }
}

#[test]
fn a_ramp_is_a_time_or_a_size_and_a_steady_state_has_its_interval() {
    let plan = single(|s| s.plan.pace.ramp_bytes = MIB);
    assert_eq!((plan.pace.ramp_bytes, plan.pace.ramp), (MIB, Nanos(0)));
    assert!(plan.pace.ramps());
    let both = |s: &mut Settings| (s.plan.pace.ramp_bytes, s.plan.pace.ramp) = (MIB, SECOND);
    check_refused(both, "ramp_time and ramp_size");
    let every = |every: Option<Nanos>| {
        move |s: &mut Settings| {
            s.steadystate_duration = Some(Nanos(10 * SECOND.0));
            s.steadystate_check_interval = every;
        }
    };
    let of = |given| single(every(given)).pace.steady.map(|steady| steady.every);
    assert_eq!(of(None), Some(SECOND));
    let shortest = Nanos(1_000_000);
    assert_eq!(of(Some(shortest)), Some(shortest));
    for wrong in [Nanos(0), Nanos(999_999), Nanos(11 * SECOND.0)] {
        check_refused(every(Some(wrong)), "steadystate_check_interval");
    }
}
