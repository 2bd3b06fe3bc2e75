//! `--debug`: the plan in fio's kinds of messages, and the activity of the devices. Printed before
//! the report, like in fio.

use std::fmt::Write as _;

use rbench_core::plain;
use rbench_plan::jobs::JobPlan;
use rbench_plan::resolve::Work;
use rbench_report::fio::Machine;

use crate::front::Scope;

/// Messages, each after its kind.
macro_rules! lines {
    ($debug:ident: $($kind:literal: $what:literal $(, $value:expr)*;)+) => {
        $($debug.line($kind, format_args!($what $(, $value)*));)+
    };
}

/// Messages about the plan, of the requested kinds.
pub fn of_plan(scope: Scope<'_>, kinds: &[&str]) -> String {
    let Work::Jobs(jobs) = &scope.plan.work else {
        return String::new();
    };
    if kinds.is_empty() {
        return String::new();
    }
    let mut messages = Messages::new(kinds);
    let ranks = scope.plan.ranks;
    let (rounds, kept) = (jobs.rounds.len(), rbench_sys::limits::counter_is_kept());
    lines! { messages:
        "process": "rank 0 of {ranks} runs {rounds} rounds of jobs";
        "time": "the kernel keeps time by the processor's counter: {kept}";
    }
    for (name, value) in &jobs.global_options {
        messages.line("parse", format_args!("global: {name}={value}"));
    }
    for (number, round) in jobs.rounds.iter().enumerate() {
        for job in round {
            job_lines(&mut messages, number, job);
        }
    }
    messages.text
}

fn job_lines(messages: &mut Messages<'_>, round: usize, job: &JobPlan) {
    let JobPlan {
        name,
        numjobs,
        pattern,
        files,
        engine,
        engine_options,
        memory,
        depth,
        buffers,
        verify,
        pace,
        process,
        report,
        replay,
        iolog,
        ..
    } = job;
    let options = report.iter().flat_map(|report| &report.options);
    for (option, value) in options {
        messages.line("parse", format_args!("{name}: {option}={value}"));
    }
    let (seed, distribution) = (pattern.seed, &pattern.distribution);
    let compressed = report.as_ref().is_some_and(|report| report.logs.compressed);
    lines! { messages:
        "job": "{name}: round {round}, {numjobs} workers of each rank, {pattern:?}";
        "process": "{name}: {process:?}";
        "file": "{name}: {files:?}";
        "io": "{name}: engine {engine}, {depth} requests in flight, {engine_options:?}, replays {replay:?}, writes \
            the log {iolog:?}";
        "mem": "{name}: {memory:?}, {buffers:?}";
        "random": "{name}: {distribution:?}, rand_seeds[0]={seed}";
        "verify": "{name}: {verify:?}";
        "rate": "{name}: {pace:?}";
        "steadystate": "{name}: {:?}", pace.steady;
        "compress": "{name}: logs are stored compressed: {compressed}";
    }
}

/// Messages about the monitored devices, of the requested kinds.
pub fn of_machine(machine: &Machine, kinds: &[&str]) -> String {
    let mut messages = Messages::new(kinds);
    for host in &machine.hosts {
        for disk in &host.disks {
            messages.line("diskutil", format_args!("host {}: {disk:?}", host.host));
        }
    }
    messages.text
}

/// Messages of the requested kinds, in fio's format.
struct Messages<'k> {
    kinds: &'k [&'k str],
    text: String,
}

impl<'k> Messages<'k> {
    fn new(kinds: &'k [&'k str]) -> Messages<'k> {
        let text = String::new();
        Messages { kinds, text }
    }

    fn line(&mut self, kind: &str, what: std::fmt::Arguments<'_>) {
        if self.kinds.contains(&kind) {
            let (process, what) = (std::process::id(), what.to_string());
            let _ = writeln!(self.text, "{kind:8} {process:<5} {}", plain(&what));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_asked_for_is_told() {
        let mut messages = Messages::new(&["io", "diskutil"]);
        messages.line("file", format_args!("x"));
        messages.line("io", format_args!("two\nlines"));
        let process = std::process::id();
        let (text, expect) = (&messages.text, format!("io       {process:<5} two"));
        assert!(text.starts_with(&expect), "{text}");
        assert_eq!(messages.text.lines().count(), 1);
    }
}
