//! The cache that answered the operations of a phase, in the result file.

use std::collections::BTreeMap;

use rbench_core::OpKind;
use rbench_core::outcome::PhaseOutcome;
use rbench_core::residency::{CacheLook, Pages, Requests, Residency, Round, Share};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most caches of a phase that are named.
pub const MOST_CACHES: usize = 256;

/// The cache that answered, with the evidence.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResidencyResult {
    /// `memory`, `perhaps`, `cold`, `cold-then-memory`, `cold-then-perhaps`,
    /// `mixed`, `unknown`.
    pub verdict: String,
    /// Reason: the strongest evidence, in words.
    pub reason: String,
    /// Layers between rbench and the files: `memory`, `kernel`, `client`, `unknown`.
    pub ground: String,
    /// The kernel's caches were dropped on every host just before.
    pub dropped: bool,
    /// Files were opened with O_DIRECT.
    pub direct: bool,
    /// True if the data read was compared with the data written.
    #[serde(default)]
    pub verifies: bool,
    /// Workers that started over with their part, if any.
    pub came_round: Option<CameRoundResult>,
    /// The evidence of all caches together.
    pub total: EvidenceResult,
    /// Each cache that took part, at most 256.
    pub caches: Vec<CacheResult>,
}

/// One cache: the memory of one kernel for the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CacheResult {
    /// The first host that has it.
    pub host: String,
    /// Like that of all together.
    pub verdict: String,
    /// Like that of all together.
    pub reason: String,
    /// Its own evidence.
    pub evidence: EvidenceResult,
}

/// Counts and measurements around a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceResult {
    /// Operations of the row, failed ones included.
    pub operations: u64,
    /// Bytes that they returned.
    pub bytes: u64,
    /// The items by their creators and users; `None`: it is unknown who used them.
    pub own: Option<OwnResult>,
    /// The page cache just before the start; `None`: not checked.
    pub resident_before: Option<PagesResult>,
    /// The page cache just after the end.
    pub resident_after: Option<PagesResult>,
    /// Requests that reached the file system; `None`: nothing counts those of these operations alone.
    pub requests: Option<RequestsResult>,
    /// Bytes that block devices delivered; `None` where that is unknown.
    pub fetched: Option<FetchedResult>,
}

/// The worked-on items by their creators and users, in parts: one part is what one rank makes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OwnResult {
    /// Parts worked on.
    pub parts: u64,
    /// Number of these made by ranks of the same cache.
    pub made: u64,
    /// Number of the others used by ranks of the same cache since.
    pub touched: u64,
    /// (made + touched) / parts.
    pub share: f64,
}

/// Part of some files that was in the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PagesResult {
    /// Checked files; a file counts once for each worker that has it open.
    pub files: u64,
    /// Files that the phase works on, counted the same way.
    pub of: u64,
    /// Pages of the checked files.
    pub pages: u64,
    /// Number of these in memory.
    pub cached: u64,
    /// cached / pages.
    pub share: f64,
}

/// Requests that reached the file system, from any process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RequestsResult {
    /// Name of the counter.
    pub source: String,
    /// By name of the FUSE request; only `total` where kinds are not known.
    pub by_kind: BTreeMap<String, u64>,
    /// Requests that operations of this kind send when no memory answers.
    pub answering: u64,
    /// Operations of this kind in all rows of the phase, which share the
    /// requests.
    pub operations: u64,
    /// answering / operations.
    pub per_operation: f64,
}

/// Bytes that block devices of the hosts delivered.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FetchedResult {
    /// Bytes delivered.
    pub bytes: u64,
    /// Bytes that the operations of this kind returned, in all rows of the
    /// phase.
    pub returned: u64,
    /// bytes / returned.
    pub per_byte: f64,
}

/// Workers that had covered everything once and went over it again.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CameRoundResult {
    /// Time at which the first of them started over, s after the common start.
    pub after_s: f64,
    /// Operations of one pass, of all these workers.
    pub once: u64,
    /// Operations that they did in all.
    pub done: u64,
    /// done / once.
    pub passes: f64,
}

/// a / b; 0 where there is no b.
fn ratio(a: u64, b: u64) -> f64 {
    if b == 0 { 0.0 } else { a as f64 / b as f64 }
}

impl ResidencyResult {
    pub(super) fn of(outcome: &PhaseOutcome) -> Option<ResidencyResult> {
        let residency = outcome.residency.as_ref()?;
        let Residency {
            ground,
            dropped,
            direct,
            verifies,
            round,
            caches,
        } = residency;
        let (verdict, reason) = residency.verdict(outcome.op);
        let cache = |look: &CacheLook| {
            let (verdict, reason) = residency.judge(outcome.op, look);
            CacheResult {
                host: look.host.clone(),
                verdict: verdict.name().to_owned(),
                reason: reason.words().to_owned(),
                evidence: EvidenceResult::of(outcome.op, look),
            }
        };
        Some(ResidencyResult {
            verdict: verdict.name().to_owned(),
            reason: reason.words().to_owned(),
            ground: ground.name().to_owned(),
            dropped: *dropped,
            direct: *direct,
            verifies: *verifies,
            came_round: round.map(CameRoundResult::from),
            total: EvidenceResult::of(outcome.op, &residency.total()),
            caches: caches
                .iter()
                .filter(|look| look.operations > 0)
                .take(MOST_CACHES)
                .map(cache)
                .collect(),
        })
    }
}

impl EvidenceResult {
    fn of(op: OpKind, look: &CacheLook) -> EvidenceResult {
        let CacheLook {
            host: _,
            operations,
            bytes,
            asked,
            returned,
            share,
            before,
            after,
            requests,
            fetched,
        } = look;
        let requests = requests.as_ref().map(|found| {
            let Requests { source, by_kind } = found;
            let answering = found.answering(op, *returned == 0);
            RequestsResult {
                source: source.clone(),
                by_kind: by_kind.clone(),
                answering,
                operations: *asked,
                per_operation: ratio(answering, *asked),
            }
        });
        EvidenceResult {
            operations: *operations,
            bytes: *bytes,
            own: share.map(OwnResult::from),
            resident_before: PagesResult::of(*before),
            resident_after: PagesResult::of(*after),
            requests,
            fetched: fetched
                .filter(|_| *returned > 0)
                .map(|bytes| FetchedResult {
                    bytes,
                    returned: *returned,
                    per_byte: ratio(bytes, *returned),
                }),
        }
    }
}

impl From<Share> for OwnResult {
    fn from(share: Share) -> OwnResult {
        let Share {
            parts,
            made,
            touched,
        } = share;
        OwnResult {
            parts,
            made,
            touched,
            share: ratio(share.known(), parts),
        }
    }
}

impl PagesResult {
    fn of(found: Pages) -> Option<PagesResult> {
        let Pages {
            files,
            of,
            pages,
            cached,
        } = found;
        Some(PagesResult {
            files,
            of,
            pages,
            cached,
            share: found.share()?,
        })
    }
}

impl From<Round> for CameRoundResult {
    fn from(round: Round) -> CameRoundResult {
        let Round { after, once, done } = round;
        CameRoundResult {
            after_s: after.as_secs_f64(),
            once,
            done,
            passes: ratio(done, once),
        }
    }
}
