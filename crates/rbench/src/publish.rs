//! Output of a run that has ended or was stopped: the result file, the report, and messages.

use std::io::IsTerminal as _;

use rbench_cli::Output;
use rbench_core::plain::plain;
use rbench_exec::{ExecError, Group};
use rbench_report::schema::Warning;
use rbench_report::{RunResult, json, text};

use crate::console::{complain, to_stderr};
use crate::exit::{FAILED, exit_code, stop_code};
use crate::front::{Done, Scope};
use crate::refusal::Refusal;
use crate::report::Report;
use crate::trouble::{note_trouble, tell};

/// Code of the warning about a run that could not go on.
pub const ENDED_EARLY: &str = "ended-early";

/// Code of the warning about files that could not be removed.
pub const LEFT_BEHIND: &str = "left-behind";

/// Codes of warnings about failures; the other warnings explain numbers.
const WRONG: [&str; 6] = [
    "errors",
    "already-there",
    "dead-mount",
    "stalled",
    "unchecked-blocks",
    LEFT_BEHIND,
];

/// Writes the result and the report. Returns the exit code on every rank.
pub fn finish(
    group: &Group<'_>,
    mut report: Report,
    scope: Scope<'_>,
    output: &Output,
) -> Result<u8, Refusal> {
    if !group.is_root() {
        let local = tell(report.trouble.as_deref());
        if report.broken.is_some() {
            report.front.discard();
        }
        // Only rank 0 knows the failed operations; the launcher takes its exit code.
        return match (stop_code(group), report.broken) {
            // A command that the same signal ended is not a separate failure.
            (Some(code), None | Some(ExecError::SetUp(_))) => Ok(code),
            (_, Some(error)) => Err(error.into()),
            (None, None) => Ok(local),
        };
    }
    if stop_code(group).is_some() && matches!(report.broken, Some(ExecError::SetUp(_))) {
        report.broken = None;
    }
    let mut warnings = report.result.warnings.iter();
    let failed = rbench_report::warnings::has_failures(&report.result)
        || report.jobs.iter().any(|job| job.error != 0)
        || warnings.any(|warning| warning.code == LEFT_BEHIND);
    let broken = report.broken.clone();
    // A mount that died is a result, too.
    let died = report.begun && !report.result.dead_mounts.is_empty();
    let nothing = report.result.phases.is_empty() && !died;
    if let Some(error) = broken.as_ref().filter(|_| nothing) {
        let why = error.to_string();
        report.front.without_result(scope, &report.result, &why);
        report.discard();
    } else {
        if let Some(error) = broken.as_ref().filter(|_| report.jobs.is_empty()) {
            report.jobs = report.front.failed_jobs(scope, &error.to_string());
        }
        let published = match report.published {
            Some(code) => code,
            None => publish(&mut report, scope, output),
        };
        if broken.is_none() {
            return Ok(exit_code(group, !failed, published));
        }
    }
    broken.map_or(Ok(FAILED), |error| Err(error.into()))
}

/// Completes the result and writes the files that hold it. Returns a sentence about write errors.
pub fn conclude(report: &mut Report) -> Option<String> {
    let mut trouble = report.take_trouble();
    let result = &mut report.result;
    if let Some(
        error @ (ExecError::SetUp(_)
        | ExecError::Comm(_)
        | ExecError::Lost(_)
        | ExecError::NoAnswer),
    ) = &report.broken
    {
        let warning = Warning::new(ENDED_EARLY, error.to_string());
        result.warnings.push(warning);
    }
    result.run.finished = Some(format!("{:.3}", jiff::Timestamp::now()));
    rbench_report::finish(result);
    let file = report.file.borrow_mut().take();
    if let Some(file) = file {
        note_trouble(&mut trouble, file.finish(&json::render(result)));
    }
    note_trouble(&mut trouble, report.front.finish(result));
    trouble
}

/// Writes the result file, prints the report and the paths of both, and returns the exit code.
pub fn publish(report: &mut Report, scope: Scope<'_>, output: &Output) -> u8 {
    if report.file.borrow().is_some() || report.cell.is_some() {
        let (result, jobs) = (&report.result, report.jobs.as_slice());
        report.result.forms = report.front.forms(scope, Done { result, jobs });
    }
    if let Some(cell) = report.cell.clone() {
        return cell(report);
    }
    let mut trouble = conclude(report);
    let result = &mut report.result;
    let done = Done {
        result,
        jobs: &report.jobs,
    };
    let printed = match report.front.report(scope, output, done) {
        Ok(code) => code,
        Err(message) => {
            note_trouble(&mut trouble, Err(message));
            FAILED
        }
    };
    let has_ours = output.has_report();
    if !has_ours && !report.front.tells_failures() {
        text::failures(result)
            .iter()
            .for_each(|failure| complain(failure));
    }
    if !has_ours && !result.complete && report.broken.is_none() {
        complain("the run was interrupted; the report covers what it did until then");
    }
    // Other tools print on standard error only if something is wrong.
    let people = std::io::stderr().is_terminal();
    if !has_ours && !output.quiet {
        tell_trouble(result, people);
    }
    if !output.quiet && (has_ours || people) {
        if let Some(out) = output.out.as_ref().filter(|_| trouble.is_none()) {
            to_stderr(&format!("result: {}\n", plain(&out.to_string_lossy())));
        }
        if let Some(path) = &report.kept {
            to_stderr(&format!("kept: {}\n", plain(&path.to_string_lossy())));
        }
    }
    let code = printed.max(tell(trouble.as_deref()));
    report.published = Some(code);
    code
}

/// Prints warnings that another tool's tables do not include. Without a terminal, prints only those
/// about failures.
fn tell_trouble(result: &RunResult, people: bool) {
    // The reason for an early end is printed elsewhere.
    let is_printed = |code: &str| code != ENDED_EARLY && (people || WRONG.contains(&code));
    for warning in result.warnings.iter().filter(|w| is_printed(&w.code)) {
        complain(&warning.message);
    }
}
