//! `rbench meta --time` and `--rate`: which phases are measured, for how long, and over
//! how many items. What the measured phases need is prepared untimed.

use rbench_core::{Nanos, OpKind};

use super::{PlanError, nonzero_time, open_loop};
use crate::arrival::{Arrival, OpenLoop};
use crate::meta::{
    Layout, MetaPlan, PHASES, Part, PhaseKind, PhasePlan, Showing, UNTIL_THE_DEADLINE, with_needed,
};
use crate::spec;
use crate::tree::ItemKind;

/// What `--time` and `--rate` make of the phases.
pub(super) struct Timed {
    /// Of each measured phase; `None`: until its items are done.
    pub time: Option<Nanos>,
    /// When operations are meant to start; `None`: one follows the other.
    open_loop: Option<OpenLoop>,
    /// The phases that are measured.
    asked: Vec<PhaseKind>,
    /// Whether the number of items was given.
    counted: bool,
}

impl Timed {
    /// `None` if neither option was given.
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
        if meta.stonewall.is_some() {
            refuse!("{flag} and --stonewall cannot be combined");
        }
        let excluded = match (meta.files_only, meta.dirs_only) {
            (true, _) => Some(ItemKind::Dir),
            (_, true) => Some(ItemKind::File),
            _ => None,
        };
        let by_default = PHASES
            .iter()
            .filter(|info| info.by_default && info.items.is_some() && info.items != excluded)
            // How long a listing takes depends on the time then, and not on the target.
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

    /// Whether a measured phase goes on from item to item and the time alone says how
    /// many it needs.
    fn uses_up(&self) -> bool {
        let repeats = |kind: &PhaseKind| kind.info().repeats();
        self.time.is_some() && !self.counted && !self.asked.iter().all(repeats)
    }

    /// Levels of the tree where nothing is said; `None`: as always.
    pub fn depth(&self) -> Option<u32> {
        self.uses_up().then_some(0)
    }

    /// Items that each rank needs; `None`: as many as were given, or as always.
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

    /// The phases that are measured and those that they need, in order.
    pub fn phases(&self) -> Vec<PhaseKind> {
        let all = with_needed(&self.asked);
        all.iter().map(|info| info.kind).collect()
    }

    /// The phase as it is with a time or a rate.
    pub fn phase(&self, plain: PhasePlan) -> PhasePlan {
        let info = plain.kind.info();
        if !self.asked.contains(&plain.kind) {
            // Without a rate nobody knows how many the measured ones need: as long
            // as they take.
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

    /// Looks whether every worker has what it needs: the operations of one that has
    /// nothing to do would be missing from the rate.
    pub fn check(&self, plan: &MetaPlan, threads: u32, ranks: u32) -> Result<(), PlanError> {
        if self.uses_up() && plan.open_ended() && plan.nodes > 1 {
            refuse!(
                "--depth {} with --time needs --items or --rate: otherwise items are created in a single directory until the \
                 time is over",
                plan.shape.depth
            );
        }
        let (threads, ranks) = (u64::from(threads), u64::from(ranks));
        let places = plan.shape.item_nodes();
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
                    ("tree directories", places.end - places.start, workers)
                }
                // One item goes from name to name, and back is no other name.
                OpKind::Rename if self.time.is_some() => {
                    ("items of each rank", plan.items_per_rank, 2 * threads)
                }
                _ => ("items of each rank", plan.items_per_rank, threads),
            };
            if there < needed {
                refuse!(
                    "{} with {} needs at least {needed} {things}, but there {} {there}",
                    info.name,
                    if self.time.is_some() {
                        "--time"
                    } else {
                        "--rate"
                    },
                    if there == 1 { "is" } else { "are" }
                );
            }
        }
        Ok(())
    }
}
