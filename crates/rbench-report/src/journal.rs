//! The journal, which holds the results of a run as lines of JSON; reads journals and finished
//! results.
//!
//! The first line describes the run. Each further line is a finished phase, an interval of the
//! running phase, or a mark. A crash tears at most the last line, which is ignored.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rbench_core::machine::HostUse;
use rbench_core::plain;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::finish::finish;
use crate::intervals::{IntervalLine, Unfinished};
use crate::schema::{
    Calibration, FioEntry, Forms, MarkResult, PhaseResult, RepetitionResult, Run, RunResult,
    SCHEMA, SettingResult, Target, Warning, World, reads_schema, same_major,
};

/// The name of the journal's schema.
pub const JOURNAL_SCHEMA: &str = "rbench.journal/1";

/// The reason why a result or a journal could not be read: one sentence that follows the name of
/// the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// An empty file.
    #[error("the file is empty")]
    Empty,
    /// Not JSON, or JSON that does not match the schema.
    #[error("line {line}: {what}")]
    Malformed {
        /// The line, from 1.
        line: usize,
        /// The error.
        what: String,
    },
    /// Not a result file.
    #[error("not a result file of rbench: it holds no JSON object")]
    NoObject,
    /// JSON, but not from rbench.
    #[error("not a result file of rbench: there is no field \"schema\"")]
    Foreign,
    /// A result of another version or program.
    #[error("the schema is '{0}', but this version of rbench reads {SCHEMA} and {JOURNAL_SCHEMA}")]
    Schema(String),
    /// The first line is incomplete.
    #[error("line 1: the journal ends within its first line, so there is nothing to show")]
    TornHeader,
}

#[derive(Serialize, Deserialize)]
struct Header<'a> {
    schema: Cow<'a, str>,
    run: Cow<'a, Run>,
    world: Cow<'a, World>,
    target: Cow<'a, Target>,
    calibration: Cow<'a, Calibration>,
    spec: Cow<'a, Map<String, Value>>,
    #[serde(default)]
    settings: Cow<'a, BTreeMap<String, SettingResult>>,
    #[serde(default)]
    warnings: Cow<'a, [Warning]>,
    #[serde(default, skip_serializing_if = "no_forms")]
    forms: Cow<'a, Forms>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    repetition: Option<Cow<'a, RepetitionResult>>,
}

fn no_forms(forms: &Forms) -> bool {
    forms.is_empty()
}

/// A line with a finished phase; a line of a later version may hold something else.
#[derive(Default, Serialize, Deserialize)]
struct PhaseLine<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    phase: Option<Cow<'a, PhaseResult>>,
    /// The results of fio's jobs in the finished group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fio: Option<Cow<'a, [FioEntry]>>,
    /// The hosts' use of devices and processors since the start of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fio_hosts: Option<Cow<'a, [HostUse]>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval: Option<Cow<'a, IntervalLine>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mark: Option<Cow<'a, MarkResult>>,
}

/// The name of a file's schema.
#[derive(Deserialize)]
pub(crate) struct Probe {
    pub schema: Option<String>,
}

/// The first line of a run's journal, with its newline: all of `result` but phases and summary.
pub fn header_line(result: &RunResult) -> String {
    line(&Header {
        schema: JOURNAL_SCHEMA.into(),
        run: Cow::Borrowed(&result.run),
        world: Cow::Borrowed(&result.world),
        target: Cow::Borrowed(&result.target),
        calibration: Cow::Borrowed(&result.calibration),
        spec: Cow::Borrowed(&result.spec),
        settings: Cow::Borrowed(&result.settings),
        warnings: Cow::Borrowed(&result.warnings),
        forms: Cow::Borrowed(&result.forms),
        repetition: result.repetition.as_ref().map(Cow::Borrowed),
    })
}

/// The line of one finished phase, with its newline.
pub fn phase_line(phase: &PhaseResult) -> String {
    line(&PhaseLine {
        phase: Some(Cow::Borrowed(phase)),
        ..PhaseLine::default()
    })
}

/// The line of the results of fio's jobs in a finished group, and of the hosts' use of devices and
/// processors since the start, with its newline.
pub fn fio_line(entries: &[FioEntry], hosts: &[HostUse]) -> String {
    line(&PhaseLine {
        fio: Some(Cow::Borrowed(entries)),
        fio_hosts: Some(Cow::Borrowed(hosts)),
        ..PhaseLine::default()
    })
}

/// The line of an interval of the running phase, with its newline.
pub fn interval_line(interval: &IntervalLine) -> String {
    line(&PhaseLine {
        interval: Some(Cow::Borrowed(interval)),
        ..PhaseLine::default()
    })
}

/// The line of a mark, with its newline. It is written when the mark is set, and again when its
/// command has ended: the later line counts.
pub fn mark_line(mark: &MarkResult) -> String {
    line(&PhaseLine {
        mark: Some(Cow::Borrowed(mark)),
        ..PhaseLine::default()
    })
}

/// Adds a mark, or updates it.
fn put_mark(marks: &mut Vec<MarkResult>, mark: MarkResult) {
    let same = |one: &&mut MarkResult| (&one.name, &one.at) == (&mark.name, &mark.at);
    match marks.iter_mut().find(same) {
        Some(known) => *known = mark,
        None => marks.push(mark),
    }
}

/// A line of a journal, with its newline.
pub(crate) fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).expect("the schema's types always serialise");
    text.push('\n');
    text
}

/// Reads a journal. The result has `complete` false, summary and warnings of the finished phases,
/// and the intervals of an unfinished phase. A torn last line is left out.
pub fn read(bytes: &[u8]) -> Result<RunResult, ReadError> {
    if bytes.is_empty() {
        return Err(ReadError::Empty);
    }
    let mut lines: Vec<&[u8]> = bytes.split(|b| *b == b'\n').collect();
    if lines.last().is_some_and(|l| l.is_empty()) {
        lines.pop();
    }
    // Without its newline a line is complete only if it is a phase.
    let ended = bytes.ends_with(b"\n") || lines.len() == 1;
    let whole = |l: &[u8]| match ended {
        true => serde_json::from_slice::<IgnoredAny>(l).is_ok(),
        false => serde_json::from_slice::<PhaseLine>(l).is_ok(),
    };
    if lines.last().is_some_and(|l| !whole(l)) {
        lines.pop();
    }
    let Some((first, rest)) = lines.split_first() else {
        return Err(ReadError::TornHeader);
    };
    check_schema(parse(first, 1)?, |name| same_major(name, JOURNAL_SCHEMA))?;
    let mut header: Header = parse(first, 1)?;
    let (mut phases, mut unfinished) = (Vec::new(), Unfinished::default());
    let mut marks = Vec::new();
    for (i, text) in rest.iter().enumerate() {
        let PhaseLine {
            phase,
            fio,
            fio_hosts,
            interval,
            mark,
        } = parse(text, i + 2)?;
        if let Some(mark) = mark {
            put_mark(&mut marks, mark.into_owned());
        }
        if let Some(phase) = phase {
            unfinished.ended(phase.iteration, &phase.name);
            phases.push(phase.into_owned());
        }
        if let Some(interval) = interval {
            unfinished.add(interval.into_owned());
        }
        if let Some(form) = header.forms.to_mut().fio.as_mut() {
            form.entries
                .extend(fio.map(Cow::into_owned).unwrap_or_default());
            form.hosts = fio_hosts.map_or_else(|| std::mem::take(&mut form.hosts), Cow::into_owned);
        }
    }
    let (begun, warning) = unfinished.phases(&marks);
    phases.extend(begun);
    let mut result = RunResult {
        schema: SCHEMA.to_owned(),
        run: header.run.into_owned(),
        world: header.world.into_owned(),
        target: header.target.into_owned(),
        calibration: header.calibration.into_owned(),
        spec: header.spec.into_owned(),
        client_counters: Vec::new(),
        settings: header.settings.into_owned(),
        repetition: header.repetition.map(Cow::into_owned),
        marks,
        dead_mounts: Vec::new(),
        replays: Vec::new(),
        phases,
        summary: Vec::new(),
        warnings: header.warnings.into_owned(),
        complete: false,
        forms: header.forms.into_owned(),
    };
    result.warnings.extend(warning);
    finish(&mut result);
    Ok(result)
}

/// Reads a finished result or a journal.
pub fn read_any(bytes: &[u8]) -> Result<RunResult, ReadError> {
    if bytes.trim_ascii().is_empty() {
        return Err(ReadError::Empty);
    }
    if is_journal(bytes) {
        return read(bytes);
    }
    if bytes.trim_ascii_start().first() != Some(&b'{') {
        return Err(ReadError::NoObject);
    }
    check_schema(parse(bytes, 1)?, reads_schema)?;
    parse(bytes, 1)
}

/// Returns true for a journal, whose first bytes name its schema, even in a torn line.
fn is_journal(bytes: &[u8]) -> bool {
    let (name, _) = JOURNAL_SCHEMA.split_at(JOURNAL_SCHEMA.len() - 1);
    let start = &bytes[..bytes.len().min(64)];
    start.windows(name.len()).any(|w| w == name.as_bytes())
}

fn check_schema(probe: Probe, reads: impl Fn(&str) -> bool) -> Result<(), ReadError> {
    match probe.schema {
        None => Err(ReadError::Foreign),
        Some(name) if reads(&name) => Ok(()),
        Some(found) => Err(ReadError::Schema(plain(&found).into_owned())),
    }
}

/// Parses text that starts in line `first` of the file.
pub(crate) fn parse<'de, T: Deserialize<'de>>(
    text: &'de [u8],
    first: usize,
) -> Result<T, ReadError> {
    serde_json::from_slice(text).map_err(|e| {
        let full = e.to_string();
        let what = match e.is_eof() {
            true => "the file ends here, in the middle of a value: it was cut",
            false => full.rfind(" at line ").map_or(&*full, |end| &full[..end]),
        };
        ReadError::Malformed {
            line: first + e.line().saturating_sub(1),
            what: plain(what).into_owned(),
        }
    })
}
