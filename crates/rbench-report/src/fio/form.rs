//! Conversion between fio's outputs and [`FioForm`], their part of the result file.

use rbench_core::steady::Criterion;
use rbench_core::{Nanos, Unified};

use super::{FioEntry, FioRun, Form, Machine, Steadiness, Target, add, json, normal, terse};
use crate::hist::HistError;
use crate::schema::{
    FioEntryResult, FioForm, FioOutcomeResult, FioShownResult, FioSteadyResult, FioTargetResult,
    RunResult,
};

/// The names of [`Unified`] in the result file.
const UNIFIED: [(Unified, &str); 3] = [
    (Unified::Apart, "apart"),
    (Unified::Mixed, "mixed"),
    (Unified::Both, "both"),
];

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
    ///
    /// # Errors If a distribution cannot be read.
    pub fn of(result: &RunResult) -> Result<Option<FioRun>, HistError> {
        let Some(form) = &result.forms.fio else {
            return Ok(None);
        };
        let mut entries = Vec::new();
        for entry in &form.entries {
            add(&mut entries, FioEntry::of(entry)?);
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
        Ok(Some(FioRun {
            version: form.version.clone(),
            terse_version: super::TERSE_VERSION,
            started_ms,
            ended_ms: ended_ms.unwrap_or_else(|| started_ms + ends.max().unwrap_or(0)),
            utc_offset_s: result.run.utc_offset_s,
            global_options: form.global_options.clone(),
            entries,
            machine: Machine {
                names: result.world.hosts.iter().map(|h| h.name.clone()).collect(),
                hosts: form.hosts.iter().map(Into::into).collect(),
                each_cpu: form.each_cpu,
            },
        }))
    }

    /// The part that the result file stores, if the run was printed in these formats.
    pub fn form(&self, formats: &[&str]) -> FioForm {
        FioForm {
            formats: formats.iter().map(|&name| name.to_owned()).collect(),
            version: self.version.clone(),
            global_options: self.global_options.clone(),
            entries: self.entries.iter().map(FioEntryResult::from).collect(),
            hosts: self.machine.hosts.iter().map(Into::into).collect(),
            each_cpu: self.machine.each_cpu,
        }
    }
}

impl FioEntry {
    fn of(entry: &FioEntryResult) -> Result<FioEntry, HistError> {
        let shown = &entry.shown;
        let unified = UNIFIED.iter().find(|(_, name)| *name == shown.unified);
        Ok(FioEntry {
            name: entry.name.clone(),
            group: entry.group,
            group_reporting: entry.group_reporting,
            options: entry.options.clone(),
            outcome: entry.outcome.outcome()?,
            percentiles: shown.percentiles.clone(),
            clat_percentiles: shown.clat_percentiles,
            lat_percentiles: shown.lat_percentiles,
            slat_percentiles: shown.slat_percentiles,
            form: Form {
                figures: shown.significant_figures.clamp(1, 10) as usize,
                bits: shown.bits,
            },
            unified: unified.map_or(Unified::Apart, |(unified, _)| *unified),
            depth: entry.depth,
            continue_on_error: shown.continue_on_error,
            target: entry.target.map(|target| Target {
                latency: Nanos(target.latency_ns),
                window: Nanos(target.window_ns),
                percentile: target.percentile,
            }),
            steady: entry.steady.as_ref().map(|steady| Steadiness {
                criterion: Criterion {
                    bandwidth: steady.bandwidth,
                    slope: steady.slope,
                    limit: steady.limit,
                    percent: steady.percent,
                },
                duration: Nanos(steady.duration_ns),
                attained: steady.attained,
                iops: steady.iops.clone(),
                bytes_per_s: steady.bytes_per_s.clone(),
            }),
            host: entry.host.clone(),
        })
    }
}

impl From<&FioEntry> for FioEntryResult {
    fn from(entry: &FioEntry) -> FioEntryResult {
        let FioEntry {
            name,
            group,
            group_reporting,
            options,
            outcome,
            percentiles,
            clat_percentiles,
            lat_percentiles,
            slat_percentiles,
            form,
            unified,
            depth,
            continue_on_error,
            target,
            steady,
            host,
        } = entry;
        let name_of = UNIFIED.iter().find(|(known, _)| known == unified);
        FioEntryResult {
            name: name.clone(),
            group: *group,
            group_reporting: *group_reporting,
            host: host.clone(),
            options: options.clone(),
            depth: *depth,
            shown: FioShownResult {
                percentiles: percentiles.clone(),
                clat_percentiles: *clat_percentiles,
                lat_percentiles: *lat_percentiles,
                slat_percentiles: *slat_percentiles,
                significant_figures: form.figures as u32,
                bits: form.bits,
                unified: name_of.map_or("", |(_, name)| name).to_owned(),
                continue_on_error: *continue_on_error,
            },
            target: target.map(|target| FioTargetResult {
                latency_ns: target.latency.0,
                window_ns: target.window.0,
                percentile: target.percentile,
            }),
            steady: steady.as_ref().map(|steady| FioSteadyResult {
                bandwidth: steady.criterion.bandwidth,
                slope: steady.criterion.slope,
                limit: steady.criterion.limit,
                percent: steady.criterion.percent,
                duration_ns: steady.duration.0,
                attained: steady.attained,
                iops: steady.iops.clone(),
                bytes_per_s: steady.bytes_per_s.clone(),
            }),
            outcome: FioOutcomeResult::from(outcome),
        }
    }
}
