//! Runs a Spec on ranks that are threads of this process.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rbench_comm::{Clocks, Communicator as _, threads};
use rbench_core::job::{JobLog, JobOutcome};
use rbench_core::machine::HostUse;
use rbench_core::outcome::{Details, PhaseOutcome};
use rbench_core::{Nanos, Rank, SimulatedClock, random};
use rbench_exec::{ExecError, Group, Interrupts, Listener, Place, Progress, Show, execute};
use rbench_plan::spec::{Common, Fio, Io, Ior, Leave, Mdtest, Meta, Mix, Ops, Workload};
use rbench_plan::{Facts, Plan, PlanError, Spec, resolve};
use rbench_sys::{Fs, TraceFs};

use crate::mounts::Mounts;

/// A signal that is sent once.
pub struct Signal {
    /// The receiving rank.
    pub rank: u32,
    /// Label of the phase, or text of the step, in which it is sent.
    pub during: &'static str,
    /// The moment in that phase or step.
    pub at: At,
}

/// A moment of a phase.
pub enum At {
    /// This long after its start.
    After(Duration),
    /// When this returns true.
    Once(Box<dyn Fn() -> bool + Send + Sync>),
}

impl At {
    fn has_come(&self, begun: Instant) -> bool {
        match self {
            At::After(time) => begun.elapsed() >= *time,
            At::Once(holds) => holds(),
        }
    }
}

/// Sends a run its signal, if any, at the right moment.
struct Disturber {
    signal: Option<Signal>,
    stage: Mutex<Stage>,
    /// Instead of a signal, the rank's main thread sleeps for this time.
    freeze: Option<Duration>,
    troubles: Mutex<Vec<String>>,
    began: Began,
    progressed: Progressed,
}

/// State of the signal.
#[derive(Clone, Copy)]
enum Stage {
    Waits,
    /// Rank 0 has announced the phase or step of the signal.
    Begun(Instant),
    Sent,
}

impl Disturber {
    fn begun(&self, what: &str) {
        let mut stage = self.stage.lock().expect("no panic");
        let meant = self.signal.as_ref().is_some_and(|s| s.during == what);
        if let (true, Stage::Waits) = (meant, *stage) {
            *stage = Stage::Begun(Instant::now());
        }
    }

    /// Returns true, once, if the signal is due at `rank`.
    fn fires(&self, rank: Rank) -> bool {
        let mut stage = self.stage.lock().expect("no panic");
        let (Some(signal), Stage::Begun(begun)) = (&self.signal, *stage) else {
            return false;
        };
        let now = signal.rank == rank.0 && signal.at.has_come(begun);
        if now {
            *stage = Stage::Sent;
        }
        now
    }
}

/// A rank's source of signals; shows nothing.
struct Ear<'d> {
    disturber: &'d Disturber,
    rank: Rank,
}

impl Interrupts for Ear<'_> {
    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        if self.disturber.signal.is_none() {
            return Box::pin(std::future::pending());
        }
        Box::pin(async {
            while !self.disturber.fires(self.rank) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            if let Some(time) = self.disturber.freeze {
                std::thread::sleep(time);
                std::future::pending::<()>().await;
            }
            nix::libc::SIGINT
        })
    }
}

impl Show for Ear<'_> {
    fn step(&self, text: &str) {
        self.disturber.begun(text);
    }

    fn phase(&self, label: &str, _: Option<u64>) {
        if let (Some(began), Rank(0)) = (&self.disturber.began, self.rank) {
            began(label);
        }
        self.disturber.begun(label);
    }

    fn progress(&self, progress: Progress) {
        if let Some(progressed) = &self.disturber.progressed {
            progressed(progress);
        }
    }

    fn stopping(&self) {}
    fn trouble(&self, text: &str) {
        let mut all = self.disturber.troubles.lock().expect("no panic");
        all.push(text.to_owned());
    }
}

/// Results of a run at rank 0.
pub struct Outcome {
    pub rows: Vec<PhaseOutcome>,
    pub complete: bool,
    pub trouble: Option<String>,
    pub left: Vec<String>,
    /// Data of rank 0: iteration, phase, details.
    pub details: Vec<(u32, String, Details)>,
    /// Outcomes of the jobs' workers.
    pub jobs: Vec<JobOutcome>,
    /// Resource use of the hosts while groups of jobs ran.
    pub machine: Vec<HostUse>,
    /// Messages of any rank during the run.
    pub troubles: Vec<String>,
    /// Logs of rank 0's workers.
    pub logs: Vec<JobLog>,
    /// Warnings about the target: code, sentence.
    pub warnings: Vec<(&'static str, String)>,
}

impl Outcome {
    pub fn row(&self, name: &str) -> &PhaseOutcome {
        self.rows
            .iter()
            .find(|row| row.name == name)
            .unwrap_or_else(|| panic!("no row {name}"))
    }
}

/// Collects the results of a run on one rank.
struct Taker<'t, 'r> {
    between: &'t Mutex<Between<'r>>,
    needed: u32,
    own: &'t Path,
    rows: Vec<PhaseOutcome>,
    details: Vec<(u32, String, Details)>,
    jobs: Vec<JobOutcome>,
    machine: Vec<HostUse>,
    logs: Vec<JobLog>,
    warnings: Vec<(&'static str, String)>,
}

impl Listener for Taker<'_, '_> {
    fn begun(&mut self, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn row(&mut self, outcome: PhaseOutcome) {
        (self.between.lock().expect("no panic"))(&outcome, self.own);
        self.rows.push(outcome);
    }

    fn warning(&mut self, code: &'static str, message: String) {
        self.warnings.push((code, message));
    }

    fn another(&mut self) -> bool {
        let done = self.rows.last().map_or(0, |row| row.iteration + 1);
        done < self.needed
    }

    fn stopped(&mut self) {}

    fn jobs(&mut self, outcomes: Vec<JobOutcome>) {
        self.jobs.extend(outcomes);
    }

    fn machine(&mut self, hosts: Vec<HostUse>) {
        self.machine.extend(hosts);
    }

    fn job_logs(&mut self, logs: Vec<JobLog>) {
        self.logs.extend(logs);
    }

    fn details(&mut self, iteration: u32, rows: &[&str], details: Details) {
        self.details.push((iteration, rows.join(" "), details));
    }
}

/// A test's action on the target during a run.
type Between<'r> = Box<dyn FnMut(&PhaseOutcome, &Path) + Send + 'r>;

/// Called with the label of each phase as it starts.
pub type Began = Option<Arc<dyn Fn(&str) + Send + Sync>>;

/// Called with the progress of a phase, about twice a second.
pub type Progressed = Option<Box<dyn Fn(Progress) + Send + Sync>>;

/// A run to execute.
pub struct Run<'r> {
    /// The host of each rank.
    pub hosts: &'r [u32],
    /// Its directory.
    pub dir: &'r Path,
    /// Its workload.
    pub workload: Workload,
    /// Its common options.
    pub common: Common,
    /// Called with each row as it arrives, and the run's own directory.
    pub between: Between<'r>,
    /// Number of sufficient iterations, if the plan repeats until its rates are precise.
    pub needed: u32,
    /// Records each rank's calls instead of using the target.
    pub recorders: Vec<TraceFs>,
    /// The result of an earlier run's stonewall.
    pub stonewalled: Option<u64>,
    /// Interrupts the run.
    pub signal: Option<Signal>,
    /// Distinguishes this run from others.
    pub key: u64,
    /// Instead of sending the signal, blocks its rank for this time.
    pub freeze: Option<Duration>,
    /// Called as each phase starts, before it is prepared.
    pub began: Began,
    /// Called during each phase.
    pub progressed: Progressed,
    /// The cache of each rank; empty: one per host.
    pub caches: Vec<u32>,
    /// The mounts of each host; empty: those of this process.
    pub mounts: Vec<Mounts>,
    /// The virtual clock of each rank; empty: the machine's clock.
    pub clocks: Vec<&'static SimulatedClock>,
}

impl<'r> Run<'r> {
    pub fn meta(hosts: &'r [u32], dir: &'r Path, meta: Meta) -> Run<'r> {
        Run {
            hosts,
            dir,
            workload: Workload::Meta(meta),
            common: Common {
                leave: Leave {
                    // Without attempts: tests count requests, and the nth one fails. `needs` tests
                    // the attempts.
                    untried: true,
                    ..Leave::default()
                },
                ..Common::default()
            },
            between: Box::new(|_, _| ()),
            needed: 3,
            recorders: Vec::new(),
            stonewalled: None,
            signal: None,
            key: 1,
            freeze: None,
            began: None,
            progressed: None,
            caches: Vec::new(),
            mounts: Vec::new(),
            clocks: Vec::new(),
        }
    }

    /// A run with mdtest's options; a missing `-d` means `dir`.
    pub fn mdtest(hosts: &'r [u32], dir: &'r Path, mut options: Mdtest) -> Run<'r> {
        if options.dirs.is_empty() {
            options.dirs = vec![dir.to_owned()];
        }
        let mut run = Run::meta(hosts, dir, Meta::default());
        run.common.iterations = options.iterations;
        run.workload = Workload::Mdtest(Box::new(options));
        run
    }

    /// A run of fio's jobs; relative paths are below `dir`.
    pub fn fio(hosts: &'r [u32], dir: &'r Path, fio: Fio) -> Run<'r> {
        Run {
            workload: Workload::Fio(Box::new(fio)),
            ..Run::meta(hosts, dir, Meta::default())
        }
    }

    /// A run with IOR's options; files are below `dir`.
    pub fn ior(hosts: &'r [u32], dir: &'r Path, mut options: Ior) -> Run<'r> {
        options.files = options.files().iter().map(|file| dir.join(file)).collect();
        let mut run = Run::meta(hosts, dir, Meta::default());
        run.common.iterations = options.repetitions;
        run.workload = Workload::Ior(Box::new(options));
        run
    }

    pub fn ops(hosts: &'r [u32], dir: &'r Path, ops: Ops) -> Run<'r> {
        Run {
            workload: Workload::Ops(ops),
            ..Run::meta(hosts, dir, Meta::default())
        }
    }

    pub fn mix(hosts: &'r [u32], dir: &'r Path, mix: Mix) -> Run<'r> {
        Run {
            workload: Workload::Mix(Box::new(mix)),
            ..Run::meta(hosts, dir, Meta::default())
        }
    }

    pub fn io(hosts: &'r [u32], dir: &'r Path, io: Io) -> Run<'r> {
        Run {
            workload: Workload::Io(Box::new(io)),
            ..Run::meta(hosts, dir, Meta::default())
        }
    }

    /// Runs it in virtual time: each rank has a clock that advances by `step` ns per reading. An
    /// operation takes one reading, and so does the time between two operations.
    pub fn stepped(mut self, step: u64) -> Run<'r> {
        let clock = |_: &u32| SimulatedClock::new(Nanos(step));
        self.clocks = self.hosts.iter().map(clock).collect();
        self
    }

    /// The plan of the run.
    ///
    /// # Errors
    /// The reason why it is impossible.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        let mut common = self.common.clone();
        let named =
            |w: &Workload| matches!(w, Workload::Mdtest(_) | Workload::Fio(_) | Workload::Ior(_));
        if !named(&self.workload) {
            common.dir = Some(self.dir.to_owned());
        }
        common.seed = Some(common.seed.unwrap_or(42));
        let spec = Spec {
            common,
            workload: self.workload.clone(),
        };
        let engines = rbench_sys::engine::ENGINES
            .iter()
            .map(|e| (e.name, e.depth_max as u32))
            .collect();
        let facts = Facts {
            host_of: self.hosts.to_vec(),
            seed: 0,
            engines,
            stonewalled: self.stonewalled,
        };
        resolve(&spec, &facts)
    }

    pub fn go(self) -> Result<Outcome, ExecError> {
        let plan = self.plan().expect("the spec can be done");
        let Run {
            hosts,
            dir,
            between,
            needed,
            recorders,
            signal,
            key,
            freeze,
            began,
            progressed,
            caches,
            mounts,
            clocks: simulated,
            ..
        } = self;
        let disturber = Disturber {
            signal,
            stage: Mutex::new(Stage::Waits),
            freeze,
            troubles: Mutex::default(),
            began,
            progressed,
        };
        let between = Mutex::new(between);
        let own: PathBuf = dir.join("rbench.test");
        let clocks = Clocks::one(hosts.len() as u32);
        let one = |comm: &dyn rbench_comm::Communicator| {
            let ear = Ear {
                disturber: &disturber,
                rank: comm.rank(),
            };
            crate::runtime().block_on(async {
                let names = (0..=*hosts.iter().max().expect("a rank"))
                    .map(|h| format!("host{h}"))
                    .collect();
                let group = Group::form(comm, names, hosts.to_vec(), clocks.clone(), &ear, &ear)
                    .await?
                    .with_interval(plan.interval);
                let mut group = match caches.is_empty() {
                    true => group,
                    false => group.with_caches(caches.clone()),
                };
                group.limits = plan.limits;
                if let Some(clock) = simulated.get(comm.rank().0 as usize) {
                    group.time.clock = Rc::new(*clock);
                    group.time.counter = clock.counter();
                }
                let place = Place {
                    live: None,
                    parent: dir,
                    name: "rbench.test",
                    marker: b"test",
                    needs_shared: plan.needs_shared(),
                    recorder: recorders
                        .get(comm.rank().0 as usize)
                        .map(|recorder| Arc::new(recorder.clone()) as Arc<dyn Fs>),
                };
                let mut taker = Taker {
                    between: &between,
                    needed,
                    own: &own,
                    rows: Vec::new(),
                    details: Vec::new(),
                    jobs: Vec::new(),
                    machine: Vec::new(),
                    logs: Vec::new(),
                    warnings: Vec::new(),
                };
                let key = random::key(&[key]);
                let ending = execute(&group, &plan, &place, key, &mut taker).await?;
                Ok(Outcome {
                    rows: taker.rows,
                    complete: ending.complete,
                    trouble: ending.trouble,
                    left: ending.left,
                    details: taker.details,
                    troubles: disturber.troubles.lock().expect("no panic").clone(),
                    jobs: taker.jobs,
                    machine: taker.machine,
                    logs: taker.logs,
                    warnings: taker.warnings,
                })
            })
        };
        let world = threads::world(hosts.len() as u32);
        std::thread::scope(|scope| {
            let handles: Vec<_> = world
                .into_iter()
                .map(|comm| {
                    let mounts = mounts.get(hosts[comm.rank().0 as usize] as usize);
                    scope.spawn(move || {
                        mounts.into_iter().for_each(Mounts::enter);
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
                freeze.is_some() || errors.windows(2).all(|w| w[0] == w[1]),
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

/// Checks that the sums over ranks and over hosts and the histogram agree.
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
    let Some(first) = row.first_done.as_ref() else {
        assert!(
            row.set_aside.0 > 0 || row.one_each || row.first_failed.is_some(),
            "{name}: someone was busy with {} items",
            row.items
        );
        return;
    };
    assert!(
        first.elapsed <= row.elapsed && first.items <= row.items,
        "{name}: first done"
    );
}
