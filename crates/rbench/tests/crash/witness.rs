//! Knowledge that does not depend on the journal: the content before and after a cut, and the file
//! system's fault log.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use rbench_exec::ack::{Audit, Class};

use super::bed::{Bed, contents};
use super::oracle::Known;
use super::scenario::Scenario;

type Contents = Vec<(PathBuf, Vec<u8>)>;

/// The data of a run, without its marker.
pub fn data(bed: &Bed) -> Contents {
    let mut all = Vec::new();
    contents(&bed.target(), &mut all);
    all.retain(|(path, _)| !path.ends_with(".rbench-run"));
    all
}

/// Returns true if the block contains data.
fn is_there(block: &Known) -> bool {
    let mut bytes = vec![0; block.length];
    let read = File::open(&block.path).and_then(|file| file.read_at(&mut bytes, block.offset));
    read.is_ok() && bytes.iter().any(|b| *b != 0)
}

/// Number of blocks whose fate is known without the journal, and contradictions of the journal.
///
/// - A run that finished and synced everything: all data from before the cut must exist after it.
/// - After a cut that keeps only synced data: all remaining data was synced. The journal must agree,
///   or the sync was never answered.
pub fn check(
    scenario: &Scenario,
    bed: &Bed,
    before: &Contents,
    blocks: &[Known],
    audit: &Audit,
) -> (u64, Vec<String>) {
    let mut wrong = Vec::new();
    let mut witnessed = 0;
    if scenario.settles() {
        witnessed += blocks.len() as u64;
        if *before != data(bed) {
            wrong.push("what was synced is not there any more".to_owned());
        }
        let current = audit.count(Class::Acknowledged);
        if current != blocks.len() as u64 || audit.count(Class::Allowed) > 0 {
            wrong.push(format!("only {current} of {} are current", blocks.len()));
        }
        let ordered = scenario.writes_in_order();
        let open = |block: &&Known| !block.durable || (ordered && block.permitted.len() > 1);
        wrong.extend(blocks.iter().find(open).map(|b| format!("open: {b:?}")));
    }
    if scenario.only_synced_stays() {
        let existing: Vec<&Known> = blocks.iter().filter(|block| is_there(block)).collect();
        witnessed += existing.len() as u64;
        let denied = existing.iter().find(|b| !b.durable && !b.unanswered);
        wrong.extend(denied.map(|block| format!("synced, but not by the journal: {block:?}")));
    }
    (witnessed, wrong)
}

/// For a run that wrote each block once and synced it, on a file system that damaged data: the
/// number of damaged blocks, and blocks that the audit missed or reported wrongly.
pub fn harm(bed: &Bed, blocks: &[Known], audit: &Audit) -> (u64, Vec<String>) {
    let mut damaged = BTreeSet::new();
    // Blocks hit by misdirected writes; a later write there repairs them.
    let mut perhaps = BTreeSet::new();
    let hit = |path: &str, offset: u64, length: u64, into: &mut BTreeSet<_>| {
        let path = bed.target().join(path);
        let end = offset + length;
        let within =
            |b: &&Known| b.path == path && b.offset < end && offset < b.offset + b.length as u64;
        into.extend(
            blocks
                .iter()
                .filter(within)
                .map(|b| (b.path.clone(), b.offset)),
        );
    };
    let faults = bed.faults();
    // Data lost in a cut was never synced, so only misdirected writes count here.
    for fault in faults.iter().filter(|fault| fault["fault"] != "power-cut") {
        for damage in fault["damage"].as_array().into_iter().flatten() {
            let length = damage["length"].as_u64().unwrap_or(0);
            let path = fault["path"].as_str().unwrap_or_default();
            let offset = damage["offset"].as_u64().unwrap_or(0);
            hit(path, offset, length, &mut damaged);
            if let Some(path) = damage["other"]["path"].as_str() {
                let offset = damage["other"]["offset"].as_u64().unwrap_or(0);
                hit(path, offset, length, &mut perhaps);
            }
        }
    }
    let bad = audit.count(Class::Lost) + audit.count(Class::Corrupt);
    let mut wrong = Vec::new();
    let (least, most) = (damaged.len(), damaged.union(&perhaps).count());
    if !(least as u64..=most as u64).contains(&bad) || audit.count(Class::Allowed) > 0 {
        wrong.push(format!("{bad} of {least} to {most} damaged blocks found"));
    }
    for finding in &audit.findings {
        let place = (finding.path.clone(), finding.offset);
        if !damaged.contains(&place) && !perhaps.contains(&place) {
            wrong.push(format!("blamed: {finding:?}"));
        }
    }
    (bad, wrong)
}
