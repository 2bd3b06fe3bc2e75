//! Runs a Spec on ranks that are threads of this process.

use std::cell::RefCell;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Mutex;

use rbench_comm::threads;
use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Rank, random};
use rbench_exec::{ExecError, Group, Interrupts, Place, Progress, Show, execute};
use rbench_plan::spec::{Common, Io, Meta, Workload};
use rbench_plan::{Facts, Spec, resolve};

/// No signal ever comes.
struct Undisturbed;

impl Interrupts for Undisturbed {
    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        Box::pin(std::future::pending())
    }
}

/// Shows nothing.
struct Silent;

impl Show for Silent {
    fn step(&self, _: &str) {}
    fn phase(&self, _: &str, _: Option<u64>) {}
    fn progress(&self, _: Progress) {}
}

/// What a run gave at rank 0.
pub struct Outcome {
    pub rows: Vec<PhaseOutcome>,
    pub complete: bool,
    pub left: Vec<String>,
}

impl Outcome {
    pub fn row(&self, name: &str) -> &PhaseOutcome {
        self.rows
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("no row {name}"))
    }
}

/// What a test does to the target while a run goes on.
type Between<'r> = Box<dyn FnMut(&PhaseOutcome, &Path) + Send + 'r>;

/// A run to do.
pub struct Run<'r> {
    /// The host of each rank.
    pub hosts: &'r [u32],
    /// Where.
    pub dir: &'r Path,
    /// What.
    pub workload: Workload,
    /// With what.
    pub common: Common,
    /// Called with each row as it comes and the run's own directory.
    pub between: Between<'r>,
}

impl<'r> Run<'r> {
    pub fn meta(hosts: &'r [u32], dir: &'r Path, meta: Meta) -> Run<'r> {
        Run {
            hosts,
            dir,
            workload: Workload::Meta(meta),
            common: Common::default(),
            between: Box::new(|_, _| ()),
        }
    }

    pub fn io(hosts: &'r [u32], dir: &'r Path, io: Io) -> Run<'r> {
        Run {
            workload: Workload::Io(io),
            ..Run::meta(hosts, dir, Meta::default())
        }
    }

    pub fn go(self) -> Result<Outcome, ExecError> {
        let Run {
            hosts,
            dir,
            workload,
            mut common,
            between,
        } = self;
        common.dir = Some(dir.to_owned());
        common.seed = Some(common.seed.unwrap_or(42));
        let spec = Spec { common, workload };
        let engines = rbench_sys::engine::ENGINES
            .iter()
            .map(|e| (e.name, e.depth_max as u32))
            .collect();
        let facts = Facts {
            host_of: hosts.to_vec(),
            seed: 0,
            engines,
        };
        let plan = resolve(&spec, &facts).expect("the spec can be done");
        let between = Mutex::new(between);
        let own: PathBuf = dir.join("rbench.test");
        let one = |comm: &dyn rbench_comm::Communicator| {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("runtime");
            runtime.block_on(async {
                let names = (0..=*hosts.iter().max().expect("a rank"))
                    .map(|h| format!("host{h}"))
                    .collect();
                let group =
                    Group::form(comm, names, hosts.to_vec(), 0, &Undisturbed, &Silent).await?;
                let place = Place {
                    parent: dir,
                    name: "rbench.test",
                    marker: b"test",
                    needs_shared: plan.needs_shared(),
                };
                let rows = RefCell::new(Vec::new());
                let mut row = |outcome: PhaseOutcome| {
                    (between.lock().expect("no panic"))(&outcome, &own);
                    rows.borrow_mut().push(outcome);
                };
                let key = random::key(&[1]);
                let ending = execute(&group, &plan, &place, key, &mut |_| Ok(()), &mut row).await?;
                Ok(Outcome {
                    rows: rows.into_inner(),
                    complete: ending.complete,
                    left: ending.left,
                })
            })
        };
        let world = threads::world(hosts.len() as u32);
        std::thread::scope(|scope| {
            let handles: Vec<_> = world
                .into_iter()
                .map(|comm| {
                    scope.spawn(move || {
                        use rbench_comm::Communicator as _;
                        (comm.rank(), one(&comm))
                    })
                })
                .collect();
            let mut results: Vec<_> = handles
                .into_iter()
                .map(|h| h.join().expect("a rank panicked"))
                .collect();
            results.sort_by_key(|(rank, _)| *rank);
            let errors: Vec<String> = results
                .iter()
                .filter_map(|(_, r)| r.as_ref().err().map(ToString::to_string))
                .collect();
            assert!(
                errors.windows(2).all(|w| w[0] == w[1]),
                "ranks disagree: {errors:?}"
            );
            assert!(
                errors.is_empty() || errors.len() == hosts.len(),
                "only some ranks failed: {errors:?}"
            );
            let (rank, first) = results.swap_remove(0);
            assert_eq!(rank, Rank(0));
            first
        })
    }
}

/// The sums over ranks and hosts and the histogram must all say the same.
pub fn check_adds_up(row: &PhaseOutcome) {
    let name = &row.name;
    assert_eq!(row.service.count(), row.items, "{name}: histogram");
    assert_eq!(
        row.ranks.iter().map(|r| r.items).sum::<u64>(),
        row.items,
        "{name}: ranks"
    );
    assert_eq!(
        row.hosts.iter().map(|h| h.items).sum::<u64>(),
        row.items,
        "{name}: hosts"
    );
    assert_eq!(
        row.hosts.iter().map(|h| h.service.count()).sum::<u64>(),
        row.items,
        "{name}: host histograms"
    );
    assert_eq!(
        row.timeline.bins().iter().map(|b| b.items).sum::<u64>(),
        row.items,
        "{name}: timeline"
    );
    assert_eq!(
        row.timeline.bins().iter().map(|b| b.bytes).sum::<u64>(),
        row.bytes,
        "{name}: bytes"
    );
    assert_eq!(
        row.ranks.iter().map(|r| r.errors).sum::<u64>(),
        row.failures.total(),
        "{name}: errors"
    );
    assert_eq!(
        row.ranks.iter().map(|r| r.max).max(),
        Some(row.service.max()),
        "{name}: maximum"
    );
    if let Some(response) = &row.response {
        assert_eq!(response.count(), row.items, "{name}: response times");
    }
    let first = row.first_done.expect("someone was busy");
    assert!(
        first.elapsed <= row.elapsed && first.items <= row.items,
        "{name}: first done"
    );
}
