//! Tests limits that end a run: too many failed operations, an operation that does not return, a silent rank.

use std::ffi::OsStr;
use std::fs::File;
use std::future::Future;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rbench_comm::{Clocks, threads};
use rbench_core::{Bytes, Nanos, OpKind};
use rbench_exec::meter::Meter;
use rbench_exec::pace::Gate;
use rbench_exec::phase::{OpRow, Phase};
use rbench_exec::round;
use rbench_exec::worker::{MakeRunner, Runner};
use rbench_exec::{ExecError, Group, Interrupts, Progress, Show};
use rbench_plan::io::Rw;
use rbench_plan::meta::PhaseKind;
use rbench_plan::spec::{Common, Io, LimitOptions, Meta, OnError};
use rbench_sys::engine::ENGINES;
use rbench_testfs::{Config, Kind, Mounted};
use tempfile::TempDir;

use crate::children::{self, NoChildren};
use crate::clock::{PATIENCE, wait_until};
use crate::crowd::Quiet;
use crate::group::{At, Outcome, Run, Signal};
use crate::jobs::job;

/// Time that a call may take: longer than an answered one takes on a busy machine, shorter than the jobs run.
const LIMIT: Nanos = Nanos(10_000_000_000);

/// Runs jobs with this limit.
fn limited(dir: &TempDir, line: &str, limit: Nanos) -> Outcome {
    let mut run = job(&[0], dir.path(), line);
    run.common.limits.op_timeout = Some(limit);
    run.go().expect("what was measured is told")
}

/// Receives messages about problems; shows nothing and sends no signals.
struct Silence(Mutex<mpsc::Sender<()>>);

impl Interrupts for Silence {
    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        Box::pin(std::future::pending())
    }
}

impl Show for Silence {
    fn step(&self, _: &str) {}
    fn phase(&self, _: &str, _: Option<u64>) {}
    fn progress(&self, _: Progress) {}
    fn stopping(&self) {}
    fn trouble(&self, _: &str) {
        self.0.lock().expect("no panic").send(()).expect("heard");
    }
}

/// A runner that reads a byte from a named pipe, or waits for the one that does.
struct Slow {
    reads: Option<PathBuf>,
    finished: Arc<AtomicUsize>,
}

impl Runner for Slow {
    fn run(&mut self, _: &Gate, _: &mut Meter, _: Option<u64>) {
        if let Some(path) = &self.reads {
            let mut pipe = File::open(path).expect("opened");
            pipe.read_exact(&mut [0]).expect("read");
        }
    }

    fn issued(&self, _: &Meter) -> u64 {
        1
    }

    fn planned(&self) -> u64 {
        1
    }

    fn finish(&mut self, _: &mut Meter) {
        self.finished.fetch_add(1, Ordering::SeqCst);
        // A thread in a futex may be waiting for a thread of the C library in a call, perhaps of
        // another test. Sleeping, it waits for nobody.
        wait_until("both finish", || self.finished.load(Ordering::SeqCst) == 2);
    }
}

#[test]
fn a_worker_that_comes_back_after_it_was_given_up_takes_nothing_with_it() {
    let dir = tempfile::tempdir().expect("temporary directory");
    let pipe = dir.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("made");
    let (path, writer) = (pipe.clone(), pipe);
    let finished = Arc::new(AtomicUsize::new(0));
    let lane = |name: &str| OpRow::new(OpKind::Read, name, name);
    let make: MakeRunner = Arc::new(move |worker| {
        Ok(Box::new(Slow {
            reads: (worker == 1).then(|| path.clone()),
            finished: Arc::clone(&finished),
        }))
    });
    let phase = Phase {
        lanes_of: vec![0..1, 1..2],
        ..Phase::new("Slow", vec![lane("sound"), lane("stuck")], 2, make)
    };
    // Releases it after it was given up; the other one ends at the same time.
    let (trouble, given_up) = mpsc::channel();
    let silence = Silence(Mutex::new(trouble));
    let lets_go = std::thread::spawn(move || {
        given_up.recv().expect("told");
        let mut pipe = File::options().write(true).open(writer).expect("opened");
        pipe.write_all(b"x").expect("written");
    });
    let end = crate::runtime().block_on(async {
        let world = rbench_comm::threads::solo();
        let mut group = Group::form(
            &world,
            vec!["here".to_owned()],
            vec![0],
            rbench_comm::Clocks::one(1),
            &silence,
            &silence,
        )
        .await
        .expect("formed");
        group.limits.operation = Some(Nanos(400_000_000));
        round::run(&group, &phase).await
    });
    let end = end.expect("there is a result");
    assert!(end.stopped && end.failed);
    let failures: Vec<u64> = end.rows.iter().map(|row| row.failures.total()).collect();
    assert_eq!(failures, [0, 1]);
    lets_go.join().expect("ended");
}

pub mod needs_fuse {
    use super::*;

    /// Mounts a file system with this fault.
    fn faulty(fault: &str) -> (NoChildren, Mounted, TempDir) {
        let alone = children::none();
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut config = Config::memory(Bytes(1 << 26)).uncached();
        config.faults = vec![fault.parse().expect("valid")];
        let fs = rbench_testfs::mount(config, dir.path())
            .expect("the machine can mount FUSE")
            .waiting_for_users();
        (alone, fs, dir)
    }

    /// Runs `work`, which must not wait for the hanging calls. Then releases these: their threads end before the
    /// unmount.
    pub fn wait_while_it_hangs<T>(fs: &Mounted, work: impl FnOnce() -> T) -> T {
        let (outcome, hung) = wait_while_it_may_hang(fs, work);
        assert!(hung, "a call hangs");
        outcome
    }

    /// The same, if a call hangs; returns whether one did.
    pub fn wait_while_it_may_hang<T>(fs: &Mounted, work: impl FnOnce() -> T) -> (T, bool) {
        let (done, ended) = mpsc::channel::<()>();
        let outcome = std::thread::scope(|scope| {
            let guard = scope.spawn(move || {
                let waits = ended.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout);
                if waits {
                    fs.release_hangs();
                }
                waits
            });
            let outcome = work();
            drop(done);
            assert!(!guard.join().expect("no panic"), "it has waited");
            outcome
        });
        let hung = fs.hanging() > 0;
        let started = std::time::Instant::now();
        loop {
            // A call that hangs may hold a lock that looking needs.
            fs.release_hangs();
            let open = open_below(fs.mountpoint());
            if open.is_empty() && fs.hanging() == 0 {
                return (outcome, hung);
            }
            assert!(started.elapsed() < PATIENCE, "still open: {open:?}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Files below `dir` that this process has open; its threads share one file table. A run that ends early keeps only
    /// directories open.
    fn open_below(dir: &Path) -> Vec<PathBuf> {
        let descriptors = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
        let open = descriptors.filter_map(|fd| {
            let fd = fd.ok()?;
            let path = std::fs::read_link(fd.path()).ok()?;
            (path.starts_with(dir) && is_of_a_file(&fd.file_name())).then_some(path)
        });
        open.collect()
    }

    /// Returns true for a descriptor of an open file, by the flags that it was opened with: a question to the file system
    /// may be the one that hangs.
    fn is_of_a_file(descriptor: &OsStr) -> bool {
        let info = std::fs::read_to_string(Path::new("/proc/self/fdinfo").join(descriptor));
        let info = info.unwrap_or_default();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| i32::from_str_radix(flags.trim(), 8).ok());
        let others = nix::libc::O_DIRECTORY | nix::libc::O_PATH;
        flags.is_some_and(|flags| flags & others == 0)
    }

    fn files(items: u64) -> Meta {
        Meta {
            depth: Some(0),
            items: Some(items),
            files_only: true,
            ..Meta::default()
        }
    }

    fn run(dir: &TempDir, meta: Meta, common: Common) -> Outcome {
        let mut run = Run::meta(&[0, 0, 1], dir.path(), meta);
        run.common = common;
        // The limit ends it before the file system is full.
        run.common.leave.overfill = true;
        run.go().expect("what was measured is told")
    }

    #[test]
    fn without_limits_failed_operations_are_counted_and_the_run_goes_on() {
        let (_alone, fs, dir) = faulty("create:EIO@p=0.2");
        let outcome = run(&dir, files(200), Common::default());
        assert!(outcome.complete && outcome.trouble.is_none());
        let row = outcome.row("file-create");
        assert!(row.failures.total() > 50 && row.items + row.failures.total() == 600);
        drop(fs);
    }

    #[test]
    fn more_errors_than_may_be_end_the_run_with_what_was_measured() {
        for (common, most, words) in [
            (
                Common {
                    limits: LimitOptions {
                        on_error: Some(OnError::Stop),
                        ..LimitOptions::default()
                    },
                    ..Common::default()
                },
                0,
                "--on-error stop",
            ),
            (
                Common {
                    limits: LimitOptions {
                        max_errors: Some(30),
                        ..LimitOptions::default()
                    },
                    ..Common::default()
                },
                30,
                "--max-errors 30",
            ),
        ] {
            let (_alone, fs, dir) = faulty("create:ENOSPC@after=300");
            let outcome = run(&dir, files(200_000), common);
            assert!(!outcome.complete);
            let trouble = outcome.trouble.as_ref().expect("a reason");
            assert!(trouble.contains(words), "{trouble}");
            let row = outcome.row("file-create");
            // One of the first 300 is the marker of the run.
            assert!(row.items == 299 && row.failures.total() > most);
            assert!(row.items + row.failures.total() < 600_000);
            assert_eq!(outcome.left, [""; 0]);
            drop(fs);
        }
    }

    #[test]
    fn errors_below_the_limit_do_not_end_the_run() {
        let (_alone, fs, dir) = faulty("create:EIO@nth=5");
        let common = Common {
            limits: LimitOptions {
                max_errors: Some(1),
                ..LimitOptions::default()
            },
            ..Common::default()
        };
        let outcome = run(&dir, files(100), common);
        // A later phase misses the file that was not created; nothing removes it.
        let failed: u64 = outcome.rows.iter().map(|row| row.failures.total()).sum();
        assert!(failed > 1, "{failed}");
        assert_eq!(outcome.row("file-create").items, 299);
        assert!(outcome.trouble.is_some());
        drop(fs);
    }

    #[test]
    fn an_operation_that_does_not_return_is_named_and_given_up() {
        let (_alone, fs, dir) = faulty("create:hang@nth=100");
        let common = Common {
            limits: LimitOptions {
                op_timeout: Some(Nanos(10_000_000_000)),
                ..LimitOptions::default()
            },
            ..Common::default()
        };
        // The other workers finish long before.
        let outcome = wait_while_it_hangs(&fs, || run(&dir, files(200), common));
        assert!(!outcome.complete);
        assert!(
            outcome
                .trouble
                .is_some_and(|why| why.contains("--op-timeout"))
        );
        let messages: Vec<&String> = outcome
            .troubles
            .iter()
            .filter(|t| t.contains("openat"))
            .collect();
        assert_eq!(messages.len(), 1, "{:?}", outcome.troubles);
        let row = outcome
            .rows
            .iter()
            .find(|row| row.name == "file-create")
            .expect("a row");
        assert!(!row.complete && row.items > 0);
        let (_, count, example) = row.failures.iter().next().expect("a failure");
        assert_eq!(count, 1);
        let path = dir.path().join("rbench.test").display().to_string();
        assert!(
            example.failure.path.starts_with(&path),
            "{}",
            example.failure.path
        );
        assert!(
            example
                .failure
                .detail
                .contains("openat has not returned for ")
        );
        // The lost results of a given-up worker are reported.
        let effort = row.effort;
        assert_eq!((effort.workers, effort.given_up), (3, 1));
        assert!(
            example
                .failure
                .detail
                .contains(&format!("; {} earlier operations", effort.lost))
        );
        // The 99 operations before it belong to all three workers, and one was the run's marker.
        assert!(effort.lost <= 98 && effort.lost + row.items >= 98);
        let at = row.given_up_at.expect("when that was");
        assert!(at >= Nanos(500_000_000), "{at}");
        assert!(outcome.left.iter().any(|left| left.contains("rbench.test")));
        drop(fs);
    }

    #[test]
    fn reads_in_a_ring_that_do_not_return_are_given_up_too() {
        let (_alone, fs, dir) = faulty("read:hang@after=50");
        let mut run = Run::io(
            &[0, 0],
            dir.path(),
            Io {
                rw: Some(vec![Rw::RandRead]),
                block: Some(Bytes(4096)),
                size: Some(Bytes(1 << 20)),
                engine: Some("io_uring".into()),
                depth: Some(8),
                direct: true,
                time: Some(Nanos(20_000_000_000)),
                ..Io::default()
            },
        );
        run.common.limits.op_timeout = Some(LIMIT);
        let outcome = wait_while_it_hangs(&fs, || run.go().expect("what was measured is told"));
        assert!(
            outcome
                .trouble
                .is_some_and(|why| why.contains("--op-timeout"))
        );
        drop(fs);
    }

    /// Each engine with its requests in a reading and a writing job. Excluded: engines that map files, since this
    /// process serves them, and engines that only stat, like layouts do.
    #[test]
    fn a_request_of_any_engine_that_does_not_return_is_given_up() {
        let asks = |engine: &str| -> &[(&str, &str)] {
            match engine {
                "filestat" | "dirstat" => &[],
                "falloc" => &[("fallocate", "write")],
                "ftruncate" => &[("setattr", "write")],
                "filecreate" => &[("create", "write")],
                "filedelete" => &[("unlink", "write")],
                "dircreate" => &[("mkdir", "write")],
                "dirdelete" => &[("rmdir", "write")],
                _ => &[("read", "read"), ("write", "write")],
            }
        };
        let given_up = |engine: &str, kind: &str, rw: &str| {
            let (_alone, fs, dir) = faulty(&format!("{kind}:hang@p=1"));
            let line = format!(
                "--name=a --ioengine={engine} --rw={rw} --bs=4k --filesize=64k --nrfiles=4 \
                 --fallocate=none --runtime=20 --time_based"
            );
            let outcome = wait_while_it_hangs(&fs, || limited(&dir, &line, LIMIT));
            let trouble = outcome.trouble.unwrap_or_default();
            assert!(trouble.contains("--op-timeout"), "{engine} {rw}: {trouble}");
            drop(fs);
        };
        // Each of them only waits, so all run at once.
        std::thread::scope(|scope| {
            for engine in ENGINES.iter().filter(|e| e.uses_files && !e.mapped) {
                for (kind, rw) in asks(engine.name) {
                    scope.spawn(move || given_up(engine.name, kind, rw));
                }
            }
        });
    }

    #[test]
    fn files_with_unlink_stay_and_are_named_when_a_call_does_not_return() {
        let (_alone, fs, dir) = faulty("write:hang@nth=60");
        let line = "--rw=write --bs=4k --size=64k --fallocate=none --unlink=1 --nrfiles=2 \
                --thinktime=1000 --time_based --runtime=20 --name=a --name=b";
        let outcome = wait_while_it_hangs(&fs, || limited(&dir, line, LIMIT));
        let left = outcome.left.join("; ");
        assert!(left.contains("a.0.0 is left behind"), "{left}");
        assert!(left.contains("3 other files"), "{left}");
        assert!(dir.path().join("a.0.0").exists());
        drop(fs);
    }

    #[test]
    fn a_call_that_does_not_return_counts_for_the_job_that_made_it() {
        let (_alone, fs, dir) = faulty("read:hang@nth=3");
        let line = "--name=idle --ioengine=null --rw=read --size=1m --runtime=20 --time_based \
                --thinktime=1000 \
                --name=stuck --rw=randread --bs=4k --size=1m --filename=f";
        let outcome = wait_while_it_hangs(&fs, || limited(&dir, line, LIMIT));
        let idle = outcome.row("idle-read");
        assert!(idle.failures.is_empty(), "{:?}", idle.failures);
        let first = idle.first_done.as_ref().expect("one has ended");
        assert!(first.elapsed > Nanos(0) && first.items == idle.items);
        let stuck = outcome.row("stuck-read");
        let (_, count, example) = stuck.failures.iter().next().expect("a failure");
        assert_eq!(count, 1);
        let detail = &example.failure.detail;
        assert!(detail.starts_with("pread64 has not"), "{detail}");
        drop(fs);
    }

    #[test]
    fn what_is_said_to_be_left_behind_is_left_behind() {
        let (mut said, mut runs) = (0, 0);
        for fault in ["opendir:EIO@nth=", "readdir:EIO@nth=", "unlink:EIO@nth="] {
            for nth in 1..8 {
                let (_alone, fs, dir) = faulty(&format!("{fault}{nth}"));
                let mut meta = files(3);
                // Removal is left to the end of the pass.
                meta.phases = Some(vec![PhaseKind::TreeCreate, PhaseKind::FileCreate]);
                let result = Run::meta(&[0, 1], dir.path(), meta).go();
                // The fault may have been waiting for this call: it occurs once.
                let list = || std::fs::read_dir(dir.path())?.collect::<Result<Vec<_>, _>>();
                let entries = list().or_else(|_| list()).expect("listing").len();
                if let Ok(outcome) = result {
                    runs += 1;
                    said += u32::from(!outcome.left.is_empty());
                    let reported = !outcome.left.is_empty();
                    assert_eq!(reported, entries > 0, "{fault}{nth}: {:?}", outcome.left);
                }
                drop(fs);
            }
        }
        assert!(runs > 10 && said > 0, "{said} of {runs}");
    }
}

mod timing {
    use super::*;
    use crate::clock::tried_again;

    #[test]
    fn healthy_jobs_are_not_given_up_however_long_they_sleep_sync_open_and_ramp() {
        // A machine that stalls for the time of the limit makes a healthy job too slow.
        tried_again(|| {
            let _alone = children::none();
            let dir = tempfile::tempdir().expect("temporary directory");
            let mut config = Config::memory(Bytes(1 << 26)).uncached();
            for kind in [
                Kind::Open,
                Kind::Read,
                Kind::Write,
                Kind::Fsync,
                Kind::Flush,
            ] {
                config.latency.set(kind, Nanos(150_000_000));
            }
            let fs = rbench_testfs::mount(config, dir.path())
                .expect("the machine can mount FUSE")
                .waiting_for_users();
            let block = " --bs=4k --size=4k --filename=f";
            std::thread::scope(|scope| {
                for line in [
                    // One call from time to time.
                    format!(
                        "--name=a --rw=read --time_based --runtime=6 --thinktime=2600000{block}a"
                    ),
                    // Nothing is counted in the ramp, but calls continue.
                    format!("--name=b --rw=read --time_based --runtime=1 --ramp_time=4{block}b"),
                    // Many files are opened, synced and closed; none of this is counted.
                    "--name=c --rw=write --bs=4k --nrfiles=10 --filesize=4k --end_fsync=1"
                        .to_owned(),
                ] {
                    let dir = &dir;
                    scope.spawn(move || {
                        let outcome = limited(dir, &line, Nanos(1_200_000_000));
                        assert_eq!(outcome.trouble, None, "{line}: {:?}", outcome.troubles);
                        assert!(outcome.complete, "{line}");
                    });
                }
            });
            drop(fs);
        });
    }

    #[test]
    fn a_rank_that_is_silent_is_noticed_and_named() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let mut run = Run::io(
            &[0, 0, 1],
            dir.path(),
            Io {
                rw: Some(vec![Rw::Read]),
                size: Some(Bytes(1 << 20)),
                time: Some(Nanos(60_000_000_000)),
                ..Io::default()
            },
        );
        run.signal = Some(Signal {
            rank: 2,
            during: "Sequential read",
            at: At::After(Duration::from_millis(100)),
        });
        run.freeze = Some(Duration::from_secs(12));
        let error = run.go().err().expect("a rank is lost");
        let ExecError::Lost(text) = error else {
            panic!("{error}");
        };
        assert!(
            text.starts_with("rank 2 on host1 has not been heard from for 7 s"),
            "{text}"
        );
    }

    /// Rank 0 may be reducing a phase on a busy machine while the others have finished.
    #[test]
    fn a_rank_that_waits_for_one_thing_after_the_other_is_not_silent() {
        let world = threads::world(2);
        let runtime = crate::runtime();
        let rank = |number: usize| {
            let comm = &world[number];
            async move {
                let names = vec!["one".to_owned()];
                let group = Group::form(comm, names, vec![0, 0], Clocks::one(2), &Quiet, &Quiet);
                let group = group.await.expect("formed");
                let _guard = group.guard();
                if number == 0 {
                    for _ in 0..90 {
                        let nap = tokio::time::sleep(Duration::from_millis(100));
                        group.attend(nap, || 0).await?;
                    }
                }
                group.agree(Ok(())).await
            }
        };
        let both = runtime.block_on(async { tokio::join!(rank(0), rank(1)) });
        assert!(matches!(both, (Ok(()), Ok(()))), "{both:?}");
    }
}
