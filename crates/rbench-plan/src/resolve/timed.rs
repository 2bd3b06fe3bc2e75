//! `rbench meta --time` and `--rate`: the measured phases, their duration and their
//! number of items. Their prerequisites are prepared untimed.

use rbench_core::{Nanos, OpKind};

use super::{PlanError, nonzero_time, open_loop};
use crate::arrival::{Arrival, OpenLoop};
use crate::meta::{
    Layout, MetaPlan, PHASES, Part, PhaseKind, PhasePlan, Showing, UNTIL_THE_DEADLINE, with_needed,
};
use crate::spec;

/// Effect of `--time` and `--rate` on the phases.
pub(super) struct Timed {
    /// Duration of each measured phase; `None`: until its items are done.
    pub time: Option<Nanos>,
    /// Intended starts of operations; `None`: one after the other.
    open_loop: Option<OpenLoop>,
    /// The measured phases.
    asked: Vec<PhaseKind>,
    /// True if the number of items was given.
    counted: bool,
}

impl Timed {
    /// Creates the rules; `None` if neither option was given.
    pub fn of(meta: &spec::Meta) -> Result<Option<Timed>, PlanError> {
        let open_loop = open_loop(meta.rate, meta.arrival)?;
        let time = nonzero_time("--time", meta.time)?;
        let Some(flag) = (match (time, open_loop) {
            (Some(_), _) => Some("--time"),
            (None, Some(_)) => Some("--rate"),
            (None, None) => None,
        }) else {
            return Ok(None);
        };
        refuse_if!(meta.stonewall.is_some() => "{flag} and --stonewall cannot be combined");
        let excluded = meta.excluded();
        let by_default = PHASES
            .iter()
            .filter(|info| info.by_default && info.items.is_some() && info.items != excluded)
            // The duration of a listing would then depend on the time limit instead of
            // the target.
            .filter(|info| info.kind != PhaseKind::DirList)
            .map(|info| info.kind);
        let asked = meta.phases.clone().unwrap_or_else(|| by_default.collect());
        if let Some(tree) = asked.iter().find(|kind| kind.info().items.is_none()) {
            refuse!(
                "{flag} and --phases {} cannot be combined: the number of tree directories is fixed",
                tree.info().name
            );
        }
        Ok(Some(Timed {
            time,
            open_loop,
            asked,
            counted: meta.items.is_some() || meta.items_per_rank.is_some(),
        }))
    }

    /// True if a measured phase uses up items, and only the time decides how many.
    fn uses_up(&self) -> bool {
        let repeats = |kind: &PhaseKind| kind.info().repeats();
        self.time.is_some() && !self.counted && !self.asked.iter().all(repeats)
    }

    /// Default levels of the tree; `None`: the usual default.
    pub fn depth(&self) -> Option<u32> {
        self.uses_up().then_some(0)
    }

    /// Items that each rank needs; `None`: the given or usual number.
    pub fn items_per_rank(&self, threads: u32, ranks: u32) -> Option<u64> {
        let time = self.time.filter(|_| self.uses_up())?;
        let Some(open) = self.open_loop else {
            return Some(UNTIL_THE_DEADLINE);
        };
        let workers = f64::from(threads) * f64::from(ranks);
        let due = open.rate * time.as_secs_f64() / workers;
        let room = match open.arrival {
            Arrival::Uniform => 1.0,
            // Eight standard deviations: no worker ever has more.
            Arrival::Poisson => 8.0 * due.sqrt() + 16.0,
        };
        Some(((due + room).ceil() as u64).saturating_mul(u64::from(threads)))
    }

    /// The measured phases and their prerequisites, in order.
    pub fn phases(&self) -> Vec<PhaseKind> {
        let all = with_needed(&self.asked);
        all.iter().map(|info| info.kind).collect()
    }

    /// The phase with its time or rate.
    pub fn phase(&self, plain: PhasePlan) -> PhasePlan {
        let info = plain.kind.info();
        if !self.asked.contains(&plain.kind) {
            // Without a rate the number of items is unknown: they are created for the
            // same time.
            let as_long = self.uses_up() && self.open_loop.is_none() && info.creates();
            return PhasePlan {
                showing: Showing::Untimed,
                deadline: self.time.filter(|_| as_long),
                ..plain
            };
        }
        PhasePlan {
            deadline: self.time,
            open_loop: self.open_loop,
            part: (self.time.is_some() && info.repeats()).then_some(Part {
                items: u64::MAX,
                again: Some(UNTIL_THE_DEADLINE),
            }),
            ..plain
        }
    }

    /// Checks that every worker has enough items: the operations of an idle worker
    /// would be missing from the rate.
    pub fn check(&self, plan: &MetaPlan, threads: u32, ranks: u32) -> Result<(), PlanError> {
        refuse_if! {
            self.uses_up() && plan.open_ended() && plan.nodes > 1 =>
                "--depth {} with --time needs --items or --rate: otherwise items are created in a single \
                 directory until the time is over", plan.shape.depth;
        }
        let (threads, ranks) = (u64::from(threads), u64::from(ranks));
        for kind in &self.asked {
            let info = kind.info();
            let (things, there, needed) = match info.op {
                OpKind::List if info.kind == PhaseKind::DirList => {
                    if self.open_loop.is_none() {
                        continue;
                    }
                    let workers = match plan.layout {
                        Layout::Unique => threads,
                        Layout::Shared => threads * ranks,
                    };
                    ("tree directories", plan.shape.places(), workers)
                }
                // One item moves from name to name, so each worker needs a second name.
                OpKind::Rename if self.time.is_some() => {
                    ("items of each rank", plan.items_per_rank, 2 * threads)
                }
                _ => ("items of each rank", plan.items_per_rank, threads),
            };
            refuse_if! {
                there < needed =>
                    "{} with {} needs at least {needed} {things}, but there {} {there}", info.name, if self.time.is_some() { "--time" } else { "--rate" }, if there == 1 { "is" } else { "are" };
            }
        }
        Ok(())
    }
}
