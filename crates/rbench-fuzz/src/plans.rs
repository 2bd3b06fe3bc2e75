//! Plans of command lines: the program's steps before its first action.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;

use rbench_cli::{Invocation, Output};
use rbench_plan::resolve::{Facts, Plan, Work, resolve, task_counts};
use rbench_plan::spec::Spec;
use rbench_sys::engine::ENGINES;

use crate::refusal;

/// The words of a command line: `head`, and a word for each line of `input`.
pub fn words(head: &[&str], input: &[u8]) -> Vec<OsString> {
    let lines = input.split(|b| *b == b'\n').filter(|l| !l.is_empty());
    head.iter()
        .map(OsString::from)
        // Arguments of a process cannot contain a zero byte.
        .chain(lines.map(|l| OsString::from_vec(l.iter().map(|b| (*b).max(1)).collect())))
        .collect()
}

/// The facts about a world of `ranks` ranks on `hosts` hosts.
fn facts(ranks: u32, hosts: u32, stonewalled: Option<u64>) -> Facts {
    Facts {
        host_of: (0..ranks).map(|rank| rank * hosts / ranks).collect(),
        seed: 42,
        engines: ENGINES
            .iter()
            .map(|engine| (engine.name, engine.depth_max as u32))
            .collect(),
        stonewalled,
    }
}

/// Worlds in which a command line may be run.
pub fn worlds() -> [Facts; 3] {
    [
        facts(1, 1, None),
        facts(12, 3, Some(7)),
        facts(4, 1, Some(0)),
    ]
}

/// The workload of an invocation; every input here gives one.
pub fn workload(invocation: Invocation) -> (Box<Spec>, Output) {
    match invocation {
        Invocation::Run(spec, output) => (spec, output),
        other => panic!("a workload became {other:?}"),
    }
}

/// Maximum length of a printed iteration of a plan, for an input of `input` bytes.
fn words_max(input: usize) -> usize {
    (64 << 10) + 64 * input
}

/// Resolves `spec` and checks properties of every plan; `None` if it is refused with a valid
/// message.
pub fn plan(spec: &Spec, facts: &Facts, input: usize) -> Option<Plan> {
    let plan = resolve(spec, facts);
    assert_eq!(plan, resolve(spec, facts), "the ranks agree");
    if let Some(counts) = refusal::of(task_counts(spec, facts.ranks())) {
        assert!(counts.iter().all(|n| (1..=facts.ranks()).contains(n)));
    }
    let plan = refusal::of(plan)?;
    let size = format!("{plan:?}").len();
    // The plan contains the jobs of each iteration.
    let rounds = match &plan.work {
        Work::Jobs(jobs) => jobs.iterations as usize,
        _ => 1,
    };
    assert!(size <= rounds * words_max(input), "{size} bytes of plan");
    assert!(plan.threads >= 1 && plan.iterations >= 1);
    let _ = (plan.digest(), plan.describe(), plan.data_bytes());
    let _ = (plan.needs_shared(), plan.places(), plan.workers());
    plan.notes.iter().for_each(|note| refusal::is_plain(note));
    Some(plan)
}
