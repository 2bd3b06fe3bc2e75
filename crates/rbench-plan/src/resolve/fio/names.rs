//! Jobs whose engine does one operation on the name of each file: filecreate,
//! filestat, filedelete, dircreate, dirstat, dirdelete.
//!
//! fio times one call for each file and counts the file's size as data and its
//! blocks as I/Os. So the plan has one operation for each file, as long as the
//! file is to be, and the report of fio's form counts it in blocks.

use rbench_core::OpKind;
use rbench_core::operations::NameEngine;

use super::super::PlanError;
use crate::jobs::{Course, Distribution, Each, FileService, JobPlan};

/// Makes `plan` one of operations on names.
pub(super) fn of_names(
    plan: &mut JobPlan,
    names: &NameEngine,
    notes: &mut Vec<String>,
) -> Result<(), PlanError> {
    let engine = plan.engine.clone();
    let unit = super::smallest_block(&plan.pattern);
    refuse_data(plan)?;
    passes(plan, names.op, notes)?;
    refuse_if! {
        plan.files.count > i32::MAX as u64 =>
            "nrfiles={} is more than the limit of ioengine={engine}, {}", plan.files.count, i32::MAX;
        names.makes() && !plan.files.may_create =>
            "allow_file_create=0: ioengine={engine} must create files";
    }
    for (option, on) in [
        ("end_fsync", &mut plan.syncing.end_fsync),
        ("end_syncfs", &mut plan.syncing.end_syncfs),
        ("fsync_on_close", &mut plan.syncing.fsync_on_close),
    ] {
        if std::mem::take(on) {
            notes.push(format!(
                "{option} is ignored: ioengine={engine} writes no data"
            ));
        }
    }
    let pattern = &mut plan.pattern;
    if pattern.directions.read && pattern.directions.write {
        notes.push(format!(
            "ioengine={engine} has only one kind of operation: all count as reads"
        ));
        pattern.directions.write = false;
    }
    pattern.directions.random = false;
    (pattern.distribution, pattern.repeats) = (Distribution::Uniform, false);
    (pattern.course, pattern.random_percent) = (Course::default(), Each::same(100));
    let files = &mut plan.files;
    if files.size.1 == 0 {
        // Existing files: each counts as one block.
        (files.size, files.create_on_open) = ((unit, unit), true);
    }
    // Files that it creates are not created before it.
    files.create_on_open |= names.makes();
    // One after the other: none has more than one operation.
    files.service = match files.service {
        FileService::Random(_) => FileService::Random(1),
        FileService::RoundRobin(_) | FileService::Sequential => FileService::Sequential,
    };
    // fio's rates count blocks.
    let pace = &mut plan.pace;
    for (bytes, ios) in [
        (&mut pace.rate_bytes, &mut pace.rate_iops),
        (&mut pace.rate_min, &mut pace.rate_iops_min),
    ] {
        let in_bytes = |ios: u64| ios.saturating_mul(unit);
        bytes.read = bytes.read.or(ios.read.take().map(in_bytes));
        bytes.write = bytes.write.or(ios.write.take().map(in_bytes));
    }
    if let Some(report) = &mut plan.report {
        report.io_unit = Some(unit);
        // fio has completion latencies alone, and none where `disable_lat` is given.
        let left_out = &mut report.left_out;
        left_out.clat |= left_out.lat;
        (left_out.slat, left_out.lat) = (true, true);
    }
    Ok(())
}

/// Refuses options that need data.
fn refuse_data(plan: &JobPlan) -> Result<(), PlanError> {
    let engine = &plan.engine;
    refuse_if! {
        plan.verify.is_some() => "verify: ioengine={engine} moves no data to verify";
        plan.files.pre_read => "pre_read: ioengine={engine} reads no data";
    }
    for (option, on) in [
        ("file_append", plan.files.shares.append),
        ("fill_device", plan.files.fill),
        ("sync_file_range", plan.syncing.range.is_some()),
    ] {
        refuse_if!(on => "{option}: ioengine={engine} writes no data");
    }
    let syncing = &plan.syncing;
    for (option, every) in [("fsync", syncing.fsync), ("fdatasync", syncing.fdatasync)] {
        refuse_if!(every > 0 => "{option}: ioengine={engine} writes no data to sync");
    }
    Ok(())
}

/// Checks a second pass over the same names.
fn passes(plan: &JobPlan, op: OpKind, notes: &mut Vec<String>) -> Result<(), PlanError> {
    let (engine, loops) = (&plan.engine, plan.pace.loops);
    let again = loops > 1 && !plan.pace.time_based;
    match op {
        OpKind::Unlink | OpKind::Rmdir if again => {
            refuse!("loops={loops}: ioengine={engine} removes everything in the first pass")
        }
        // Created files are removed in between.
        OpKind::Create | OpKind::Mkdir if plan.files.unlink_each_loop => {}
        OpKind::Mkdir if again => {
            refuse!("loops={loops}: ioengine={engine} creates everything in the first pass")
        }
        OpKind::Create if again || plan.pace.time_based => notes.push(format!(
            "ioengine={engine}: from the second pass on the files exist, and are only opened"
        )),
        _ => {}
    }
    Ok(())
}
