//! Tests the refusal, before any change, of hosts with different file systems at the target, and of
//! targets without enough space.

use std::path::Path;

use rbench_core::{Bytes, Nanos};
use rbench_exec::ExecError;
use rbench_plan::io::{Layout, Rw};
use rbench_plan::spec::{Io, Mdtest, Meta};
use rbench_testfs::{Config, Kind};

use crate::group::{Outcome, Run};
use crate::jobs::job;
use crate::testfs::Mount;

const HOSTS: &[u32] = &[0, 0, 1, 1, 2, 2];

fn tempdir() -> tempfile::TempDir {
    tempfile::tempdir().expect("temporary directory")
}

fn meta<'r>(dir: &'r Path) -> Run<'r> {
    let small = Meta {
        depth: Some(0),
        items: Some(2),
        ..Meta::default()
    };
    Run::meta(HOSTS, dir, small)
}

fn io<'r>(dir: &'r Path) -> Run<'r> {
    let small = Io {
        size: Some(Bytes(1 << 16)),
        block: Some(Bytes(4096)),
        ..Io::default()
    };
    Run::io(HOSTS, dir, small)
}

fn mdtest<'r>(dir: &'r Path) -> Run<'r> {
    let options = Mdtest {
        items: Some(2),
        unique_dir: true,
        ..Mdtest::default()
    };
    Run::mdtest(HOSTS, dir, options)
}

/// mdtest in a directory that it creates.
fn mdtest_below<'r>(dir: &'r Path) -> Run<'r> {
    let options = Mdtest {
        dirs: vec![dir.join("out")],
        items: Some(2),
        unique_dir: true,
        ..Mdtest::default()
    };
    Run::mdtest(HOSTS, dir, options)
}

fn fio<'r>(dir: &'r Path) -> Run<'r> {
    job(
        HOSTS,
        dir,
        "--name=j --rw=write --bs=4k --size=16k --unlink=1",
    )
}

fn fio_by_name<'r>(dir: &'r Path) -> Run<'r> {
    let line = "--name=j --rw=randread --bs=4k --size=16k --filename=x:y --unlink=1";
    job(HOSTS, dir, line)
}

const EACH: &[fn(&Path) -> Run<'_>] = &[meta, io, mdtest, mdtest_below, fio, fio_by_name];

fn refusal(run: Run<'_>) -> String {
    match run.go() {
        Err(ExecError::SetUp(text)) => text,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it ran"),
    }
}

fn listing(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("listing");
    let names = entries.map(|e| e.expect("entry").file_name());
    names.map(|n| n.to_string_lossy().into_owned()).collect()
}

/// Number of requests that change the file system.
fn changes(mount: &Mount) -> u64 {
    let snapshot = mount.fs.stats().snapshot();
    let kinds = [
        Kind::Mkdir,
        Kind::Create,
        Kind::Write,
        Kind::Setattr,
        Kind::Unlink,
        Kind::Rmdir,
    ];
    let requests = |kind| snapshot.kind(kind).map_or(0, |k| k.counts.requests);
    kinds.into_iter().map(requests).sum()
}

fn well(run: Run<'_>) -> Outcome {
    let outcome = run.go().unwrap_or_else(|e| panic!("{e}"));
    assert!(outcome.complete, "{:?}", outcome.trouble);
    outcome
}

const MIB: u64 = 1 << 20;

mod needs_root {
    use super::*;
    use crate::mounts::Mounts;

    /// An in-memory file system for each host.
    fn own_disks(dir: &Path) -> Vec<Mounts> {
        let own = |_| Mounts::with_memory_over(dir, "size=4m");
        (0..3).map(own).collect()
    }

    #[test]
    fn file_systems_of_the_same_type_that_hosts_have_for_themselves_are_refused_too() {
        for of in EACH {
            let dir = tempdir();
            let disks = own_disks(dir.path());
            let mut run = of(dir.path());
            run.mounts.clone_from(&disks);
            let said = refusal(run);
            let expect = "host1 and host2 do not see host0's ";
            assert!(said.starts_with(expect), "{said}");
            assert!(
                said.contains("they have tmpfs (own) there, host0 tmpfs (own)"),
                "{said}"
            );
            for host in &disks {
                assert_eq!(host.look(|| listing(dir.path())), [""; 0], "{said}");
            }
        }
    }

    #[test]
    fn private_directories_that_are_meant_are_worked_in() {
        let work_in = |of: &fn(&Path) -> Run<'_>| {
            let dir = tempdir();
            let mut run = of(dir.path());
            run.mounts = own_disks(dir.path());
            run.common.leave.private_dirs = true;
            let what = format!("{:?}", run.workload);
            for row in well(run).rows {
                assert!(row.failures.is_empty(), "{what}: {:?}", row.failures);
            }
        };
        // In parallel: each waits some seconds for files of other hosts.
        std::thread::scope(|scope| {
            for of in EACH {
                scope.spawn(|| work_in(of));
            }
        });
    }

    #[test]
    fn hosts_that_see_one_directory_by_other_sources_are_not_refused() {
        for of in EACH {
            let dir = tempdir();
            let shared = Mounts::unchanged();
            let bound = Mounts::with(|| {
                use nix::mount::MsFlags;
                let none: Option<&str> = None;
                nix::mount::mount(Some(dir.path()), dir.path(), none, MsFlags::MS_BIND, none)
                    .expect("root");
            });
            let mut run = of(dir.path());
            run.mounts = vec![shared, bound, Mounts::unchanged()];
            well(run);
            assert!(!listing(dir.path()).iter().any(|name| name.starts_with('.')));
        }
    }

    #[test]
    fn inodes_that_are_not_there_are_known_before() {
        let dir = tempdir();
        let mut run = meta(dir.path());
        let items = |n: u64| Meta {
            depth: Some(0),
            items: Some(n),
            ..Meta::default()
        };
        let mounts = || vec![Mounts::with_memory_over(dir.path(), "nr_inodes=100")];
        run.hosts = &[0, 0];
        run.mounts = mounts();
        run.workload = rbench_plan::spec::Workload::Meta(items(60));
        let said = refusal(run);
        assert!(said.contains("creates 122 files and directories"), "{said}");
        assert!(said.contains("where only 99 inodes are free"), "{said}");
        let mut run = meta(dir.path());
        (run.hosts, run.mounts) = (&[0, 0], mounts());
        run.workload = rbench_plan::spec::Workload::Meta(items(40));
        assert_eq!(well(run).warnings, []);
    }

    #[test]
    fn hosts_with_file_systems_of_their_own_need_room_for_their_own_ranks() {
        let dir = tempdir();
        let of = |size: u64| {
            let io = Io {
                size: Some(Bytes(size)),
                block: Some(Bytes(64 << 10)),
                ..Io::default()
            };
            let mut run = Run::io(HOSTS, dir.path(), io);
            run.mounts = own_disks(dir.path());
            run.common.leave.private_dirs = true;
            run
        };
        // 9 MiB in total, 3 MiB on each of three hosts with 4 MiB.
        well(of(3 * MIB / 2));
        let said = refusal(of(5 * MIB / 2));
        assert!(
            said.starts_with("on host0: the run writes 5.00 MiB at "),
            "{said}"
        );
    }

    mod needs_fuse {
        use super::*;
        use crate::testfs::mount;

        #[test]
        fn a_host_whose_mount_failed_is_named_with_what_it_has_and_nothing_is_made() {
            for of in EACH {
                let target = mount(|_| ());
                let disk =
                    rbench_sys::mountinfo::of(std::env::temp_dir().as_path()).expect("mounted");
                let mut run = of(target.path());
                run.mounts = vec![
                    Mounts::unchanged(),
                    Mounts::unchanged(),
                    Mounts::without(target.path()),
                ];
                let said = refusal(run);
                let (path, below) = (target.path().display().to_string(), disk.fs_type);
                let expect = format!("host2 has {below} ({}) at {path}", disk.source);
                assert!(said.starts_with(&expect), "{said}");
                assert!(said.contains(", the others fuse.rbench"), "{said}");
                assert!(
                    said.ends_with("mount it there, or use --private-dirs"),
                    "{said}"
                );
                assert_eq!(changes(&target), 0, "{said}");
                assert_eq!(listing(target.path()), [""; 0]);
                let bare = Mounts::without(target.path());
                assert_eq!(bare.look(|| listing(target.path())), [""; 0]);
                drop(bare);
                target.end();
            }
        }

        #[test]
        fn jobs_that_only_read_make_nothing_to_find_out_what_hosts_see() {
            let target = mount(|_| ());
            std::fs::write(target.path().join("f"), [7; 16384]).expect("written");
            let before = changes(&target);
            let line = "--name=j --rw=read --bs=4k --size=16k --filename=f";
            well(job(HOSTS, target.path(), line));
            assert_eq!(changes(&target), before);
            let mut run = job(HOSTS, target.path(), line);
            let other = |_| Mounts::without(target.path());
            run.mounts = (0..1)
                .map(|_| Mounts::unchanged())
                .chain((1..3).map(other))
                .collect();
            assert!(refusal(run).contains("host1 and host2 have"));
            target.end();
        }
    }
}

mod needs_fuse {
    use super::*;
    use crate::clock::wait_until;
    use crate::testfs::mount;

    /// A file system with this much space.
    fn room(bytes: u64) -> Mount {
        mount(|config: &mut Config| config.quota = Some(Bytes(bytes)))
    }

    #[test]
    fn what_cannot_fit_is_refused_before_anything_is_made() {
        let target = room(8 * MIB);
        let io = |size: u64, change: fn(&mut Io)| {
            let mut io = Io {
                size: Some(Bytes(size)),
                block: Some(Bytes(64 << 10)),
                ..Io::default()
            };
            change(&mut io);
            Run::io(HOSTS, target.path(), io)
        };
        // Six ranks.
        let refused = [
            io(2 * MIB, |_| ()),
            io(2 * MIB, |io| io.layout = Some(Layout::SharedSegmented)),
            io(2 * MIB, |io| {
                (io.rw, io.time) = (Some(vec![Rw::RandRead]), Some(Nanos(1_000_000)));
            }),
            io(0, |io| {
                (io.size, io.block) = (None, None);
                (io.files, io.file_size) = (Some(32), Some(Bytes(64 << 10)));
            }),
            job(
                HOSTS,
                target.path(),
                "--name=j --rw=write --bs=64k --size=2m",
            ),
            job(
                HOSTS,
                target.path(),
                "--name=j --rw=read --bs=64k --size=12m --filename=f",
            ),
            Run::meta(
                HOSTS,
                target.path(),
                Meta {
                    files_only: true,
                    depth: Some(0),
                    items: Some(32),
                    write: Some(Bytes(64 << 10)),
                    ..Meta::default()
                },
            ),
        ];
        for run in refused {
            let what = format!("{:?}", run.workload);
            let said = refusal(run);
            assert!(
                said.contains("the run writes 12.0 MiB at "),
                "{what}: {said}"
            );
            assert!(
                said.contains("where only 8.00 MiB is free: write less"),
                "{said}"
            );
            assert_eq!(listing(target.path()), [""; 0]);
        }
        assert_eq!(changes(&target), 2 * 7, "one mark each");
        target.end();
    }

    #[test]
    fn what_fits_or_may_fit_is_begun_and_what_comes_near_is_warned_of() {
        let target = room(8 * MIB);
        let of = |size: u64, change: fn(&mut Io)| {
            let mut io = Io {
                size: Some(Bytes(size)),
                block: Some(Bytes(64 << 10)),
                rw: Some(vec![Rw::Write]),
                ..Io::default()
            };
            change(&mut io);
            Run::io(&[0, 0], target.path(), io)
        };
        let free = || {
            let totals = nix::sys::statvfs::statvfs(target.path()).expect("mounted");
            totals.blocks_free() * totals.fragment_size()
        };
        let before = free();
        assert_eq!(well(of(3 * MIB, |_| ())).warnings, []);
        // The kernel tells the file system later that nobody has the removed files.
        wait_until("their space is free", || free() == before);
        let near = well(of(15 * MIB / 4, |_| ()));
        let [(code, said)] = near.warnings.as_slice() else {
            panic!("{:?}", near.warnings);
        };
        assert_eq!(*code, "nearly-full");
        assert!(
            said.contains("writes up to 7.50 MiB") && said.contains("8.00 MiB was free"),
            "{said}"
        );
        // A time limit may end it before it is full; data may shrink.
        let timed = of(64 * MIB, |io| io.time = Some(Nanos(1_000_000)));
        assert_eq!(well(timed).warnings.len(), 1);
        let over = |change: fn(&mut Io)| {
            let outcome = of(8 * MIB, change).go().expect("it begins");
            assert!(outcome.row("write").failures.total() > 0, "it is full");
        };
        over(|io| io.compress = Some(50));
        over(|io| io.no_refill = true);
        let mut overfull = of(8 * MIB, |_| ());
        overfull.common.leave.overfill = true;
        let outcome = overfull.go().expect("it begins");
        assert!(outcome.row("write").failures.total() > 0, "it is full");
        target.end();
    }

    #[test]
    fn files_of_jobs_that_are_there_already_are_written_over() {
        let target = room(8 * MIB);
        std::fs::write(target.path().join("f"), vec![1; 6 << 20]).expect("there is room");
        let run = |line: &str| job(&[0], target.path(), line).go();
        let line = "--name=j --rw=write --bs=64k --filename=f --fallocate=none --size=";
        assert!(run(&format!("{line}6m")).is_ok());
        let Err(ExecError::SetUp(said)) = run(&format!("{line}9m")) else {
            panic!("it ran");
        };
        assert!(
            said.contains("writes 3.00 MiB at") && said.contains("where only 2.00 MiB is free"),
            "{said}"
        );
        // The files of each group are removed before the next one starts.
        let rounds = "--rw=write --bs=64k --size=1536k --unlink=1 --fallocate=none --name=a --name=b --stonewall";
        assert!(run(rounds).is_ok());
        let stays = rounds.replace("--unlink=1 ", "");
        assert!(run(&stays).is_err());
        target.end();
    }
}
