//! Conversion between fio's outputs and [`FioForm`], their part of the result file.

use super::{FioRun, Machine, add, json, normal, terse};
use crate::schema::{FioForm, RunResult};

/// Renders a run in one of fio's formats, by its name in the result file; `None` for an unknown
/// name.
pub fn render(run: &FioRun, format: &str) -> Option<String> {
    match format {
        "normal" => Some(normal(run)),
        "terse" => Some(terse(run)),
        "json" => Some(json(run, false)),
        "json+" => Some(json(run, true)),
        _ => None,
    }
}

impl FioRun {
    /// Restores the run from a result; `None` if fio's command line was not used.
    pub fn of(result: &RunResult) -> Option<FioRun> {
        let form = result.forms.fio.as_ref()?;
        let mut entries = Vec::new();
        for entry in &form.entries {
            add(&mut entries, entry.clone());
        }
        let ms = |time: &str| {
            time.parse()
                .ok()
                .and_then(|t: jiff::Timestamp| u64::try_from(t.as_millisecond()).ok())
        };
        let started_ms = ms(&result.run.started).unwrap_or(0);
        // A run that died ended with its last job.
        let ends = entries.iter().map(|e| e.outcome.elapsed.0 / 1_000_000);
        let ended_ms = result.run.finished.as_deref().and_then(ms);
        Some(FioRun {
            version: form.version.clone(),
            terse_version: super::TERSE_VERSION,
            started_ms,
            ended_ms: ended_ms.unwrap_or_else(|| started_ms + ends.max().unwrap_or(0)),
            utc_offset_s: result.run.utc_offset_s,
            global_options: form.global_options.clone(),
            entries,
            machine: Machine {
                names: result.world.hosts.iter().map(|h| h.name.clone()).collect(),
                hosts: form.hosts.clone(),
                each_cpu: form.each_cpu,
            },
        })
    }

    /// The part that the result file stores, if the run was printed in these formats.
    pub fn form(&self, formats: &[&str]) -> FioForm {
        FioForm {
            formats: formats.iter().map(|&name| name.to_owned()).collect(),
            version: self.version.clone(),
            global_options: self.global_options.clone(),
            entries: self.entries.clone(),
            hosts: self.machine.hosts.clone(),
            each_cpu: self.machine.each_cpu,
        }
    }
}
