//! The cache that answered, with the evidence.

use rbench_core::units::human_count;

use super::{for_phases, label, seconds};
use crate::figures::caches::{UNKNOWN, per_operation, percent, word};
use crate::schema::{CacheResult, EvidenceResult, ResidencyResult, RunResult};
use crate::table::{NONE, Table, left, or_none, right, sentence};
use crate::view::View;

/// Maximum number of caches of a phase that are all shown.
const MOST_CACHES: usize = 16;

/// A line for each phase that reads, stats or lists, and for each cache where
/// they differ.
pub fn render(result: &RunResult, view: View) -> String {
    let asked = || result.phases.iter().filter_map(|p| p.residency.as_ref());
    if asked().next().is_none() {
        return String::new();
    }
    let mut table = Table::new([
        left("CACHES"),
        left("Verdict"),
        right("Own"),
        right("Requests").optional(),
        right("Each").optional(),
        right("In memory").optional(),
        right("Fetched").optional(),
        left("Done").optional(),
        left("Because"),
    ]);
    for_phases(result, &mut table, |phase, table| {
        if let Some(residency) = &phase.residency {
            rows(label(phase), residency, table);
        }
    });
    let sources = asked().filter_map(|r| r.total.requests.as_ref());
    // The built-in file system counts in JuiceFS's form.
    let own = result.target.fs_type.as_deref() == Some("fuse.rbench-testfs");
    let named = |source| match own {
        true => "the .stats of the built-in file system",
        false => source,
    };
    let mut sources: Vec<&str> = sources.map(|r| named(r.source.as_str())).collect();
    sources.sort_unstable();
    sources.dedup();
    let mut out = table.render(view);
    if !sources.is_empty() {
        let text = format!("Requests as counted by {}.", sources.join(", "));
        out.push_str(&sentence(view, "", &text));
    }
    let unknown = asked()
        .filter(|residency| residency.verdict.ends_with("perhaps") || residency.verdict == UNKNOWN);
    let uncounted = unknown.map(|residency| residency.total.requests.is_none());
    // If it is so in any phase, the first text applies.
    let would_tell = uncounted.reduce(|one, other| one || other);
    let would_tell = would_tell.map(|uncounted| match uncounted {
        true => {
            "unknown: this host had used the items before, and no measurement shows what answered. Request counters \
             of the client would show it (JuiceFS has them in .stats); --drop-caches empties the kernel's caches; \
             --shift lets another host's ranks use the items."
        }
        false => {
            "unknown: requests reached the client, which may have answered from its own cache. Items of another host \
             (--shift), or more data than that cache holds, would show it."
        }
    });
    out.extend(would_tell.map(|text| sentence(view, "", text)));
    out
}

fn rows(name: String, residency: &ResidencyResult, table: &mut Table) {
    let then = residency.verdict.starts_with("cold-then");
    let because = match &residency.came_round {
        Some(round) if then => format!("{} until {}", residency.reason, seconds(round.after_s)),
        _ => residency.reason.clone(),
    };
    let done = match (residency.dropped, residency.direct) {
        (true, true) => "dropped, direct",
        (true, false) => "dropped",
        (false, true) => "direct",
        (false, false) => NONE,
    };
    let cells = |name: String, verdict: &str, evidence: &EvidenceResult, because: String| {
        let mut cells = vec![name, word(verdict).to_owned()];
        cells.extend(measures(evidence));
        cells.extend([done.to_owned(), because]);
        cells
    };
    table.row(cells(name, &residency.verdict, &residency.total, because));
    let differ = |cache: &CacheResult| {
        let CacheResult {
            verdict, reason, ..
        } = cache;
        (verdict, reason) != (&residency.verdict, &residency.reason)
    };
    if residency.caches.iter().any(differ) {
        for cache in residency.caches.iter().take(MOST_CACHES) {
            table.row(cells(
                format!("  {}", cache.host),
                &cache.verdict,
                &cache.evidence,
                cache.reason.clone(),
            ));
        }
    }
}

/// Own items, requests, requests per operation, pages, fetched bytes.
fn measures(evidence: &EvidenceResult) -> [String; 5] {
    let EvidenceResult {
        operations: _,
        bytes: _,
        own,
        resident_before,
        resident_after: _,
        requests,
        fetched,
    } = evidence;
    let own = own.filter(|own| own.parts > 0);
    let pages = resident_before.as_ref().map(|found| {
        let sampled = match found.files < found.of {
            true => format!(" ({}/{})", human_count(found.files), human_count(found.of)),
            false => String::new(),
        };
        percent(found.share) + &sampled
    });
    [
        own.map(|own| percent(own.share)),
        requests.as_ref().map(|r| human_count(r.answering)),
        requests.as_ref().map(|r| per_operation(r.per_operation)),
        pages,
        fetched.map(|f| percent(f.per_byte)),
    ]
    .map(or_none)
}
