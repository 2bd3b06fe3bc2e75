//! Plans of command lines: the way that the program goes up to where it would
//! begin to work.

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
        // No argument of a process holds a zero byte.
        .chain(lines.map(|l| OsString::from_vec(l.iter().map(|b| (*b).max(1)).collect())))
        .collect()
}

/// What is known of a world with so many ranks on as many hosts.
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

/// Worlds in which a command line may be meant.
pub fn worlds() -> [Facts; 3] {
    [
        facts(1, 1, None),
        facts(12, 3, Some(7)),
        facts(4, 1, Some(0)),
    ]
}

/// The workload of an invocation, which is one for every input here.
pub fn workload(invocation: Invocation) -> (Box<Spec>, Output) {
    match invocation {
        Invocation::Run(spec, output) => (spec, output),
        other => panic!("a workload became {other:?}"),
    }
}

/// The most bytes of one iteration of a plan, printed, for an input of `input` bytes.
fn words_max(input: usize) -> usize {
    (64 << 10) + 64 * input
}

/// Resolves `spec` and asserts what holds for every plan; `None` when it is
/// refused, and refused well.
pub fn plan(spec: &Spec, facts: &Facts, input: usize) -> Option<Plan> {
    let plan = resolve(spec, facts);
    assert_eq!(plan, resolve(spec, facts), "the ranks agree");
    match task_counts(spec, facts.ranks()) {
        Ok(counts) => assert!(counts.iter().all(|n| (1..=facts.ranks()).contains(n))),
        Err(why) => refusal::is_plain(&why.to_string()),
    }
    let plan = match plan {
        Ok(plan) => plan,
        Err(why) => {
            refusal::is_plain(&why.to_string());
            return None;
        }
    };
    let size = format!("{plan:?}").len();
    // The plan holds the jobs of each iteration.
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
