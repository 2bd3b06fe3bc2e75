//! Engines of names.

use rbench_core::Direction;
use rbench_core::operations::NameEngine;

use super::*;
use crate::pattern::{Steps, file_size};

#[test]
fn a_job_of_names_has_one_operation_for_each_file_and_pass() {
    let named = |change: fn(&mut Settings)| {
        single(move |s| {
            s.ioengine = Some("filestat".into());
            s.nrfiles = Some(3);
            s.filesize = Some((16_384, 16_384));
            change(s);
        })
    };
    let steps = |plan: &JobPlan| -> Vec<(u64, u64, u64, bool)> {
        let all = Steps::new(plan, 0, |file| file_size(plan, 0, file));
        all.map(|s| (s.file, s.offset, s.length, s.direction == Direction::Write))
            .collect()
    };
    let pass = [0, 1, 2].map(|file| (file, 0, 16_384, false));
    assert_eq!(steps(&named(|_| {})), pass);
    let random = |s: &mut Settings| {
        s.rw = Some(Directions::MIX.at_random());
        s.bs = both(512);
    };
    let mixed = steps(&named(random));
    assert_eq!(mixed, pass, "mixes and offsets mean nothing");
    assert_eq!(
        steps(&named(|s| s.plan.pace.loops = 2)),
        [pass, pass].concat()
    );
    assert_eq!(
        steps(&named(|s| s.plan.pace.number_ios = Some(2))),
        pass[..2]
    );
    let part = named(|s| s.io_size = Some(Extent::Bytes(32_768)));
    assert_eq!(steps(&part), pass[..2]);
    let random = named(|s| s.plan.files.service = FileService::Random(7));
    let mut any = steps(&random);
    any.sort_unstable();
    assert_eq!(any, pass);
    let numbers = |plan: &JobPlan| {
        let all = Steps::new(plan, 0, |file| file_size(plan, 0, file));
        (all.expected(), all.once())
    };
    assert_eq!(numbers(&named(|_| {})), (Some(3), None));
    let loops = named(|s| s.plan.pace.loops = 4);
    assert_eq!(numbers(&loops), (Some(12), Some(3)));
}

#[test]
fn what_fio_reports_of_names_is_counted_in_blocks() {
    let plan = single(|s| {
        s.ioengine = Some("filecreate".into());
        s.filesize = Some((16_384, 16_384));
        s.plan.pace.rate_iops.read = Some(100);
        s.report.left_out.lat = true;
    });
    assert_eq!(plan.names, NameEngine::named("filecreate"));
    assert!(plan.files.create_on_open, "what it makes is not laid out");
    assert_eq!(plan.pace.rate_bytes.read, Some(100 * 4096));
    assert_eq!(plan.pace.rate_iops.read, None);
    let report = plan.report.expect("jobs of fio have one");
    assert_eq!(report.io_unit, Some(4096));
    let left_out = report.left_out;
    assert!(left_out.slat && left_out.lat && left_out.clat);
    let plain = single(|s| s.size = Some(Extent::Bytes(16_384)));
    assert_eq!(plain.report.and_then(|report| report.io_unit), None);
    // Without a size files are taken as they are.
    let there = single(|s| {
        (s.ioengine, s.size) = (Some("dirdelete".into()), None);
    });
    assert_eq!(there.files.size, (4096, 4096));
    assert!(there.files.create_on_open);
}
