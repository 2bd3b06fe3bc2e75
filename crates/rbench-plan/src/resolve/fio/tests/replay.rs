//! Logs of I/O.

use super::*;
use crate::iolog::Skip;

fn replays(s: &mut Settings) {
    s.replay.logs = vec!["t".into()];
}

#[test]
fn what_is_replayed_takes_the_place_of_the_pattern() {
    let plan = single(|s| {
        replays(s);
        s.rw = Some(Directions::WRITE);
        s.replay.speed = 50;
        s.replay.scale = 0;
        s.replay.align = 4096;
        s.replay.stalls = false;
        s.replay.redirect = Some("f".into());
    });
    let replay = plan.replay.expect("a log is given");
    assert_eq!((replay.speed, replay.scale, replay.align), (50, 1, 4096));
    assert_eq!((replay.stalls, replay.chunked), (false, false));
    assert_eq!(replay.redirect.as_deref(), Some("f"));
    assert_eq!(replay.found, None);
    assert_eq!(plan.files.size, (0, 0));
    assert!(!plan.pattern.directions.write);
    let plan = single(replays).replay.expect("a log is given");
    assert_eq!((plan.speed, plan.scale, plan.align), (100, 1, 1));
    assert!(plan.stalls);
    assert_eq!(single(|_| {}).replay, None);
}

#[test]
fn what_a_replay_leaves_out_is_told_and_what_contradicts_it_is_refused() {
    let (plan, notes) = noted(|s| {
        replays(s);
        s.plan.pace.loops = 3;
        s.plan.iolog = Some("u".into());
    });
    assert_eq!((plan.iolog, plan.pace.loops), (None, 1));
    assert_eq!(notes.len(), 2, "{notes:?}");
    let log = || vec!["t".into()];
    refused! {
        "rates": replay.logs = log(), plan.pace.rate_iops.read = Some(5);
        "verify_backlog":
            replay.logs = log(), verify = Some(Check::With(Checksum::Crc32c)), rw = Some(WRITE),
            checks.backlog = Some(4);
        "create_only": replay.logs = log(), plan.files.create_only = true;
        "unlink_each_loop": replay.logs = log(), plan.files.unlink_each_loop = true;
        "moves data": replay.logs = log(), ioengine = Some("filestat".into());
        "write_iolog": ioengine = Some("filestat".into()), plan.iolog = Some("u".into());
    }
}

#[test]
fn a_log_says_what_is_verified_and_verify_only_writes_nothing_of_it() {
    let verified = |change: fn(&mut Settings)| {
        let plan = single(|s| {
            replays(s);
            s.verify = Some(Check::With(Checksum::Crc32c));
            change(s);
        });
        (plan.verify.expect("verified"), plan.replay.expect("a log"))
    };
    let (verify, replay) = verified(|_| {});
    assert!(verify.read_back && verify.once && !verify.only);
    assert!(replay.stalls && !replay.skip.read);
    let check = |change: fn(&mut Settings)| {
        let (verify, replay) = verified(change);
        assert!(verify.only && !verify.read_back);
        let all_but_writes = Skip {
            read: true,
            write: false,
            trim: true,
            sync: true,
        };
        assert_eq!(replay.skip, all_but_writes);
        assert!(!replay.stalls);
    };
    check(|s| s.verify_only = Some(true));
    check(|s| (s.verify_only, s.rw) = (Some(true), Some(WRITE)));
}

#[test]
fn with_readonly_writes_of_a_log_are_left_out() {
    let fio = Fio {
        jobs: vec![job("a", replays)],
        readonly: true,
        ..Fio::default()
    };
    let (jobs, _) = repeated(fio, 1).expect("it reads what is left");
    let replay = jobs.rounds[0][0].replay.as_ref().expect("a log is given");
    let skip = Skip {
        write: true,
        trim: true,
        ..Skip::default()
    };
    assert_eq!(replay.skip, skip);
}

#[test]
fn logs_of_one_name_are_numbered_over_jobs_and_ranks() {
    let records = |name: &'static str| {
        move |s: &mut Settings| {
            s.plan.iolog = Some(name.into());
            s.plan.numjobs = 2;
        }
    };
    let all = vec![
        job("a", records("t")),
        job("b", |_| {}),
        job("c", records("u")),
        job("d", records("t")),
    ];
    let (plan, _) = jobs(all).expect("sound");
    let of = |job, worker| plan.iolog_of(job, worker, 4);
    assert_eq!(of(0, 0).as_deref(), Some("t"));
    assert_eq!(of(0, 7).as_deref(), Some("t.7"));
    assert_eq!(of(1, 0), None);
    assert_eq!(of(2, 1).as_deref(), Some("u.1"));
    assert_eq!(of(3, 0).as_deref(), Some("t.8"));
    assert_eq!(of(4, 0), None);
}
