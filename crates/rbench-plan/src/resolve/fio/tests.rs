use proptest::prelude::*;
use rbench_core::{EngineOptions, Nanos};

use super::*;
use crate::jobs::{
    Advised, BlockSizes, Carries, Checksum, Directions, Fallocate, FileService, FioLayout,
    FioReport, Shares, Unified, Verify, VerifyPattern, Whole, WindowValue,
};
use crate::resolve::Plan;
use crate::spec::fio::Check;
use crate::spec::{Common, Workload};
use crate::testing::check_error;

/// Refusals: the sentence, and the settings that lead to it.
macro_rules! refused {
    ($($expect:literal: $($($field:ident).+ = $value:expr),+;)+) => {
        $(check_refused(|s| { $(s.$($field).+ = $value;)+ }, $expect);)+
    };
}

mod journal;
mod names;
mod others;
mod parts;
mod priorities;
mod replay;
mod trims;

const MIB: u64 = 1 << 20;
const SECOND: Nanos = Nanos::SECOND;

const READ: Directions = Directions::READ;
const WRITE: Directions = Directions::WRITE;
const MIX: Directions = Directions::MIX.at_random();

fn facts() -> Facts {
    Facts {
        engines: vec![
            ("psync", 1),
            ("mmap", 1),
            ("pvsync2", 1),
            ("io_uring", 1024),
            ("libaio", 1024),
            ("falloc", 1),
            ("filecreate", 1),
            ("filestat", 1),
            ("dirdelete", 1),
            ("null", 1024),
        ],
        ..Facts::on(&[0, 0, 1, 1])
    }
}

fn job(name: &str, change: impl FnOnce(&mut Settings)) -> Job {
    let mut settings = Settings {
        size: Some(Extent::Bytes(MIB)),
        ..Settings::default()
    };
    change(&mut settings);
    Job {
        name: name.to_owned(),
        files: name.to_owned(),
        settings,
        ..Job::default()
    }
}

fn plan(fio: Fio) -> Result<Plan, String> {
    facts().plan(Common::default(), Workload::Fio(Box::new(fio)))
}

/// The plan of this number of iterations of these jobs.
fn repeated(fio: Fio, iterations: u32) -> Result<(JobsPlan, Vec<String>), String> {
    let common = Common {
        iterations: Some(iterations),
        ..Common::default()
    };
    facts().jobs(common, Workload::Fio(Box::new(fio)))
}

fn jobs(jobs: Vec<Job>) -> Result<(JobsPlan, Vec<String>), String> {
    let fio = Fio {
        jobs,
        ..Fio::default()
    };
    repeated(fio, 1)
}

fn noted(change: impl FnOnce(&mut Settings)) -> (JobPlan, Vec<String>) {
    match jobs(vec![job("a", change)]) {
        Ok((mut plan, notes)) => (plan.rounds.remove(0).remove(0), notes),
        Err(why) => panic!("{why}"),
    }
}

/// The report of the job.
fn report(job: &JobPlan) -> &FioReport {
    job.report.as_ref().expect("a job of fio's")
}

fn single(change: impl FnOnce(&mut Settings)) -> JobPlan {
    noted(change).0
}

fn check_refused(change: impl FnOnce(&mut Settings), expect: &str) {
    let why = jobs(vec![job("a", change)]).expect_err(expect);
    let named = why.starts_with("job 'a': ");
    assert!(named && why.contains(expect), "'{why}' lacks '{expect}'");
}

fn both<T: Copy>(value: T) -> Each<Option<T>> {
    Each::same(Some(value))
}

#[test]
fn a_jobs_name_steers_no_terminal() {
    let many = job("a\u{1b}[2J\n", |s| s.plan.numjobs = 5000);
    let why = jobs(vec![many]).expect_err("too many workers");
    let shown = why.contains("a\\u{1b}[2J\\n");
    assert!(!why.contains(char::is_control) && shown, "{why:?}");
}

#[test]
fn files_that_the_user_names_are_not_removed_between_passes() {
    let named = |s: &mut Settings| {
        s.filename = Some(vec!["f".into()]);
        s.plan.files.unlink_each_loop = true;
    };
    check_refused(named, "unlink_each_loop and filename cannot be combined");
    let plan = single(|s| s.plan.files.unlink_each_loop = true);
    assert!(plan.files.unlink_each_loop);
}

#[test]
fn without_options_it_is_fios_default_job() {
    let (plan, notes) = noted(|_| {});
    assert_eq!(plan.pattern.directions, READ);
    assert_eq!(plan.pattern.mix_read, 50);
    assert_eq!(plan.pattern.sizes.read, BlockSizes::Fixed(4096));
    assert_eq!(plan.pattern.align.read, 4096);
    assert_eq!(plan.pattern.distribution, Distribution::Uniform);
    assert!(!plan.pattern.repeats);
    assert_eq!((plan.engine.as_str(), plan.depth), ("psync", 1));
    assert_eq!((plan.numjobs, plan.batch_submit), (1, 1));
    assert_eq!(plan.batch_complete_min, 1);
    assert!(!plan.direct && !report(&plan).group_reporting);
    assert_eq!(report(&plan).shown.unified, Unified::Apart);
    let files = &plan.files;
    assert_eq!(files.names, FileNames::Format("a.$jobnum.$filenum".into()));
    assert_eq!((files.count, files.open, files.size), (1, 1, (MIB, MIB)));
    assert_eq!(files.fallocate, Fallocate::Native);
    assert_eq!(files.service, FileService::RoundRobin(1));
    assert!(files.invalidate && files.advice == Advised::Kernel(None));
    assert!(!(files.pre_read || files.overwrite || files.unlink || files.create_only));
    assert!(plan.buffers.scramble && !plan.buffers.refill);
    assert_eq!((plan.pace.loops, plan.pace.think_blocks), (1, 1));
    assert_eq!((plan.pace.runtime, plan.pace.io_size), (None, None));
    assert_eq!(plan.syncing, Syncing::default());
    assert_eq!(report(&plan).shown.percentiles.len(), 17);
    assert!(report(&plan).shown.clat_percentiles && !report(&plan).shown.lat_percentiles);
    assert_eq!((plan.verify, notes), (None, Vec::new()));
}

#[test]
fn rounds_begin_at_stonewalls_and_groups_at_new_groups_too() {
    let fio = vec![
        job("a", |s| s.stonewall = Some(true)),
        job("b", |_| {}),
        job("c", |s| s.stonewall = Some(true)),
        job("d", |s| s.new_group = Some(true)),
        Job {
            apart: true,
            ..job("e", |_| {})
        },
        job("f", |s| {
            s.stonewall = Some(false);
            s.plan.numjobs = 5;
        }),
    ];
    let (plan, _) = jobs(fio).expect("six jobs");
    let shape = plan.rounds.iter().map(|round| {
        let round = round.iter();
        round
            .map(|job| (job.name.as_str(), report(job).group))
            .collect()
    });
    let shape: Vec<Vec<(&str, u32)>> = shape.collect();
    // Group numbers as in fio's JSON for the same jobs.
    let expect = [
        vec![("a", 0), ("b", 0)],
        vec![("c", 1), ("d", 2)],
        vec![("e", 3), ("f", 3)],
    ];
    assert_eq!(shape, expect);
    assert_eq!(plan.workers(), 6);
}

#[test]
fn a_job_that_waits_for_another_begins_a_round_but_no_group() {
    let waiting = |name: &str, other: &'static str| job(name, |s| s.wait_for = Some(other.into()));
    let three = vec![job("a", |_| {}), waiting("b", "a"), waiting("c", "a")];
    let (plan, _) = jobs(three).expect("a, b");
    let sizes: Vec<usize> = plan.rounds.iter().map(Vec::len).collect();
    assert_eq!(sizes, [1, 2]);
    let mut all = plan.rounds.iter().flatten();
    assert!(all.all(|job| report(job).group == 0));
    for list in [
        vec![waiting("a", "a")],
        vec![waiting("a", "b"), job("b", |_| {})],
        vec![job("b", |_| {}), waiting("a", "a")],
    ] {
        check_error(jobs(list), "wait_for=");
    }
}

#[test]
fn seeds_are_those_of_every_run_unless_asked_otherwise() {
    let seed = |change: fn(&mut Settings)| single(change).pattern.seed;
    let usual = seed(|_| {});
    assert_eq!(usual, seed(|s| s.randseed = Some(0x89)));
    assert_eq!(usual, seed(|s| s.plan.numjobs = 64));
    assert_ne!(usual, seed(|s| s.randseed = Some(5)));
    let other = seed(|s| s.randrepeat = Some(false));
    assert_ne!(usual, other);
    assert_eq!(other, seed(|s| s.randseed = Some(7)));
    assert_eq!(other, seed(|s| s.allrandrepeat = Some(false)));
    let both = seed(|s| (s.randrepeat, s.allrandrepeat) = (Some(false), Some(true)));
    assert_eq!(usual, both);
    let (two, _) = jobs(vec![job("a", |_| {}), job("b", |_| {})]).expect("two jobs");
    let seeds: Vec<u64> = two.rounds[0].iter().map(|job| job.pattern.seed).collect();
    assert_ne!(seeds[0], seeds[1]);
}

fn file(s: &mut Settings, least: u64, most: u64, size: Option<Extent>) {
    s.filesize = Some((least, most));
    s.nrfiles = Some(3);
    s.size = size;
}

#[test]
fn size_is_divided_and_filesize_is_not() {
    let check = |change: fn(&mut Settings), size: (u64, u64), io_size: Option<u64>| {
        let plan = single(change);
        assert_eq!((plan.files.size, plan.pace.io_size), (size, io_size));
    };
    // The sums that fio 3.33 moved for the same options.
    each! { check:
        |s| s.nrfiles = Some(3) => (349_525, 349_525) => None;
        |s| file(s, MIB, MIB, None) => (MIB, MIB) => None;
        |s| file(s, MIB, MIB, Some(Extent::Bytes(MIB))) => (MIB, MIB) => Some(MIB);
        |s| file(s, 65_536, 65_536, Some(Extent::Bytes(MIB))) => (65_536, 65_536) => None;
        |s| file(s, 65_536, 131_072, Some(Extent::Bytes(MIB))) => (65_536, 131_072) => None;
        |s| s.io_size = Some(Extent::Percent(50)) => (MIB, MIB) => Some(MIB / 2);
        |s| s.io_size = Some(Extent::Bytes(5 * MIB)) => (MIB, MIB) => Some(5 * MIB);
        |s| s.size = None => (0, 0) => None;
        |s| s.size = Some(Extent::Percent(100)) => (0, 0) => None;
    }
    let less = |s: &mut Settings| file(s, 65_536, 131_072, Some(Extent::Bytes(300_000)));
    check_refused(less, "give io_size");
}

#[test]
fn a_block_that_is_larger_than_its_file_is_refused() {
    check_refused(|s| s.bs = both(2 * MIB), "size is 1048576 bytes");
    let (plan, notes) = noted(|s| s.nrfiles = Some(1000));
    assert_eq!((plan.files.count, plan.files.size), (1000, (4096, 4096)));
    let said = notes[0].contains("1048 bytes to each of 1000 files");
    assert!(said, "{notes:?}");
    check_refused(|s| s.filesize = Some((1024, MIB)), "filesize is 1024");
    let plan = single(|s| {
        s.rw = Some(READ);
        s.bs.write = Some(2 * MIB);
    });
    assert_eq!(plan.pattern.sizes.write, BlockSizes::Fixed(2 * MIB));
}

#[test]
fn what_lies_behind_the_end_that_a_file_can_have_is_refused() {
    check_refused(|s| s.size = Some(Extent::Bytes(u64::MAX)), "2^63");
    check_refused(|s| s.offset = Some(Extent::Bytes(u64::MAX)), "2^63");
    // Four ranks: the last worker is the eighth.
    let ahead = |increment| {
        move |s: &mut Settings| {
            s.plan.numjobs = 2;
            s.offset_increment = Some(Extent::Bytes(increment));
        }
    };
    check_refused(ahead(i64::MAX as u64 / 7), "2^63");
    assert_eq!(single(ahead(i64::MAX as u64 / 8)).numjobs, 2);
}

#[test]
fn given_names_say_how_many_files_there_are() {
    let check = |names: &[&str], nrfiles, expect: &[&str]| {
        let owned = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
        let plan = single(|s| {
            s.filename = Some(owned(names));
            s.nrfiles = nrfiles;
        });
        let count = expect.len() as u64;
        assert_eq!(plan.files.names, FileNames::Given(owned(expect)));
        assert_eq!(plan.files.count, count);
        assert_eq!(plan.files.size.0, MIB / count);
    };
    check(&["x", "y"], None, &["x", "y"]);
    check(&["x", "y"], Some(3), &["x", "y"]);
    check(&["x", "y"], Some(1), &["x"]);
    check(&["x", "y", "z"], Some(2), &["x", "y"]);
    refused! {
        "nrfiles": nrfiles = Some(0);
        "$clientuid": filename_format = Some("$clientuid.x".into());
    }
}

#[test]
fn workers_take_turns_with_directories_and_given_names_lie_where_they_were_given() {
    let made = single(|s| {
        s.plan.files.directory = "a".into();
        s.plan.files.more_directories = vec!["b".into()];
        s.plan.numjobs = 3;
    });
    // The places of fio 3.33 for directory=a:b, numjobs=3.
    let path = |jobnum| crate::pattern::file_path(&made, jobnum, 0);
    let expect = ["a/a.0.0", "b/a.1.0", "a/a.2.0"].map(std::path::PathBuf::from);
    assert_eq!([path(0), path(1), path(2)], expect);
    let given = |directories: &[&str], names: &[&str]| {
        let plan = single(|s| {
            s.plan.files.directory = "z".into();
            s.plan.files.more_directories = vec!["y".into()];
            s.filename = Some(names.iter().map(|&n| n.to_owned()).collect());
            s.filename_directories = directories.iter().map(Into::into).collect();
        });
        let path = |file| crate::pattern::file_path(&plan, 1, file);
        (path(0).display().to_string(), path(1).display().to_string())
    };
    let both = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(given(&["", "b"], &["f", "/g"]), both("f", "b/g"));
    assert_eq!(given(&["b", "b"], &["f", "g"]), both("b/f", "b/g"));
    assert_eq!(given(&[], &["f", "g"]), both("z/f", "z/g"));
    refused! {
        "../g is outside of the directory b":
            filename = Some(vec!["f".into(), "../g".into()]),
            filename_directories = vec!["".into(), "b".into()];
    }
}

#[test]
fn what_is_wrong_with_any_job_is_told_at_once() {
    let wrong = |name: &str, engine: &str| job(name, |s| s.ioengine = Some(engine.to_owned()));
    let all = vec![
        wrong("a\nb", "rbd"),
        job("fine", |_| {}),
        wrong("c", "nosuch"),
        job("d", |s| s.wait_for = Some("x".to_owned())),
    ];
    let told = jobs(all).expect_err("three of them");
    let lines: Vec<&str> = told.lines().collect();
    let expect = [
        "job 'a\\nb': ioengine=rbd",
        "job 'c': ioengine=nosuch",
        "job 'd': wait_for=x",
    ];
    assert_eq!(lines.len(), 3, "{told}");
    for (line, expect) in lines.iter().zip(expect) {
        assert!(line.starts_with(expect), "{line}");
    }
}

#[test]
fn block_sizes_go_by_split_then_range_then_bs() {
    let sizes = |change: fn(&mut Settings)| single(change).pattern.sizes;
    let some = |size| BlockSizes::Fixed(size);
    let each = sizes(|s| s.bs.write = Some(8192));
    assert_eq!((each.read, each.write), (some(4096), some(8192)));
    let each = sizes(|s| {
        s.bs = both(1024);
        s.bsrange.read = Some((65_536, 4096));
    });
    let (min, max) = (4096, 65_536);
    let range = BlockSizes::Range { min, max };
    assert_eq!((each.read, each.write), (range, some(1024)));
    let check = |list: &[(u64, Option<u32>)], expect| {
        let plan = single(|s| {
            s.bsrange = both((4096, 8192));
            s.bssplit.read = Some(list.to_vec());
        });
        assert_eq!(plan.pattern.sizes.read, expect);
    };
    each! { check:
        &[(4096, Some(50)), (8192, None), (1024, None)] =>
            BlockSizes::Split(vec![(4096, 50), (8192, 25), (1024, 25)]);
        &[(4096, None), (8192, None), (1024, None)] =>
            BlockSizes::Split(vec![(4096, 34), (8192, 33), (1024, 33)]);
        &[(4096, Some(100)), (8192, None)] => some(4096);
    }
    for list in [
        &[(4096, Some(50))][..],
        &[(4096, Some(50)), (8192, Some(60))],
        &[(4096, Some(99)), (8192, Some(2)), (1, None)],
    ] {
        check_refused(|s| s.bssplit.read = Some(list.to_vec()), "bssplit");
    }
}

#[test]
fn synchronous_engines_keep_one_operation_under_way_and_say_so() {
    let (plan, notes) = noted(|s| s.plan.depth = 8);
    assert_eq!(plan.depth, 1);
    let note = "job 'a': ioengine=psync is synchronous: iodepth is capped at 1";
    assert_eq!(notes, [note]);
    let (plan, notes) = noted(|s| {
        s.ioengine = Some("io_uring".into());
        s.plan.depth = 32;
        s.plan.batch_submit = 0;
        s.plan.batch_complete_min = 64;
    });
    let depths = (plan.depth, plan.batch_submit, plan.batch_complete_min);
    assert_eq!(depths, (32, 32, 32));
    assert!(notes.is_empty(), "{notes:?}");
    refused! {
        "iodepth=2000": ioengine = Some("io_uring".into()), plan.depth = 2000;
    }
}

#[test]
fn other_engines_of_fio_are_refused_by_name() {
    refused! {
        "not supported: use one of psync, mmap": ioengine = Some("rbd".into());
        "ioengine=nosuch is unknown: use one of psync": ioengine = Some("nosuch".into());
    }
}

#[test]
fn options_of_engines_are_taken_by_their_engines_only() {
    let asked = EngineOptions {
        nowait: true,
        uncached: true,
        ..EngineOptions::default()
    };
    let with = |engine: &str, direct| {
        let engine = engine.to_owned();
        move |s: &mut Settings| {
            s.ioengine = Some(engine);
            s.plan.direct = direct;
            s.engine_options = asked;
            s.of_engines = vec![
                ("nowait", &["libaio", "io_uring"]),
                ("atomic", &["io_uring"]),
            ];
        }
    };
    assert_eq!(single(with("io_uring", false)).engine_options, asked);
    let uncached = single(with("io_uring", true)).engine_options.uncached;
    assert!(!uncached, "as in fio");
    each! { check_refused:
        with("psync", false) =>
            "nowait belongs to ioengine libaio, io_uring, but the job uses psync";
        with("libaio", false) => "atomic belongs to ioengine io_uring, but the job uses libaio";
    }
}

#[test]
fn direct_needs_whole_sectors() {
    let direct = |s: &mut Settings| s.plan.direct = true;
    assert!(single(direct).direct);
    let check = |change: fn(&mut Settings), expect: &str| {
        let both = |s: &mut Settings| {
            direct(s);
            change(s);
        };
        check_refused(both, expect);
    };
    check(|s| s.bs = both(100), "bs is 100");
    check(|s| s.offset = Some(Extent::Bytes(100)), "offset is 100");
    check(|s| s.blockalign = both(100), "blockalign is 100");
    check(|s| s.bsrange = both((512, 1000)), "bsrange is 1000");
    let fine = single(|s| {
        direct(s);
        s.bs = Each {
            read: Some(512),
            write: Some(100),
            trim: Some(100),
        };
    });
    assert!(fine.direct, "writes that never happen do not matter");
    let mapped = single(|s| {
        direct(s);
        s.bs = both(100);
        s.ioengine = Some("mmap".into());
    });
    assert!(mapped.direct);
}

#[test]
fn verification_takes_its_intervals_from_the_blocks() {
    let of = |change: fn(&mut Settings)| {
        noted(move |s| {
            s.rw = Some(WRITE);
            s.verify = Some(Check::With(Checksum::Crc32c));
            change(s);
        })
    };
    let (plan, notes) = of(|_| {});
    let expect = Verify {
        carries: Carries::Fio(FioLayout {
            checksum: Checksum::Crc32c,
            offset: 0,
            pattern: None,
            pattern_interval: 0,
            seed: true,
            sequence: true,
        }),
        read_back: true,
        save_state: true,
        trimmed_is_zero: true,
        ..Verify::stamped(4096)
    };
    assert_eq!((plan.verify, notes), (Some(expect.clone()), Vec::new()));
    let (plan, notes) = of(|s| s.verify_interval = Some(8192));
    assert_eq!(plan.verify, Some(expect.clone()));
    assert!(notes[0].contains("verify_interval"), "{notes:?}");
    let (plan, notes) = of(|s| {
        s.plan.pace.time_based = true;
        s.plan.pace.runtime = Some(SECOND);
    });
    assert!(plan.verify.is_some_and(|verify| !verify.read_back));
    assert!(notes[0].contains("nothing is read back"), "{notes:?}");
    let (plan, notes) = of(|s| {
        s.plan.pace.time_based = true;
        s.plan.pace.runtime = Some(SECOND);
        s.checks.backlog = Some(8);
    });
    assert!(plan.verify.is_some_and(|verify| verify.read_back) && notes.is_empty());
    // Like in fio, without reading back there is no backlog.
    let (plan, _) = of(|s| (s.do_verify, s.checks.backlog) = (Some(false), Some(8)));
    let verify = plan.verify.expect("still stamped");
    assert!(!verify.read_back && verify.backlog.is_none());
    let (plan, _) = of(|s| s.verify_only = Some(true));
    let only = |verify: Verify| verify.only && !verify.read_back;
    assert!(plan.verify.is_some_and(only));
    // A job that only reads checks its reads, requested or not.
    let (plan, _) = of(|s| (s.verify_only, s.rw) = (Some(true), Some(READ)));
    assert!(plan.verify.is_some_and(|verify| !verify.only));
    let (plan, _) = of(|s| {
        s.verify = Some(Check::With(Checksum::Pattern));
        s.layout.pattern = Some(VerifyPattern {
            bytes: vec![0xab],
            offsets: Vec::new(),
        });
        s.bs = both(8);
    });
    let verify = plan.verify.expect("a pattern");
    assert_eq!(verify.interval, 8);
    let Carries::Fio(layout) = verify.carries else {
        panic!("not of fio");
    };
    assert_eq!(layout.checksum, Checksum::Pattern);
    let bytes = layout.pattern.map(|pattern| pattern.bytes);
    assert_eq!(bytes, Some(vec![0xab]));
    // Like in fio: an interval that does not divide the blocks is replaced by one that does.
    let (plan, notes) = of(|s| s.verify_interval = Some(3000));
    assert_eq!(plan.verify, Some(expect.clone()));
    assert!(notes[0].contains("verify_interval=3000"), "{notes:?}");
    let (plan, _) = of(|s| (s.rw, s.norandommap) = (Some(MIX), Some(true)));
    let verify = plan.verify.expect("a mix is verified");
    assert!(verify.read_back && verify.once);
    assert_eq!(of(|s| s.verify = Some(Check::Off)).0.verify, None);
}

#[test]
fn verification_that_cannot_be_is_refused() {
    let check = |change: fn(&mut Settings), expect: &str| {
        let verified = |s: &mut Settings| {
            s.rw = Some(WRITE);
            s.verify = Some(Check::With(Checksum::Md5));
            change(s);
        };
        check_refused(verified, expect);
    };
    each! { check:
        |s| s.bs = both(48) => "needs 56 bytes for each header";
        |s| s.layout.offset = 4080 => "verify_offset=4080";
        |s| s.layout.offset = 50 => "verify_offset=50";
        |s| s.checks.threads = 65 => "verify_async=65";
        |s| s.verify = Some(Check::With(Checksum::Pattern)) => "needs verify_pattern";
        |s| (s.verify, s.verify_only) = (None, Some(true)) => "verify_only needs verify";
    }
}

#[test]
fn rates_limits_and_searches_are_checked_together() {
    let plan = single(|s| {
        s.plan.pace.rate_bytes = Each {
            read: Some(MIB),
            write: Some(0),
            trim: None,
        };
        s.plan.pace.rate_min = both(1024);
        s.plan.pace.poisson = true;
    });
    let rates = plan.pace.rate_bytes;
    assert_eq!((rates.read, rates.write), (Some(MIB), None));
    assert!(plan.pace.poisson);
    refused! {
        "rate and rate_iops cannot be combined":
            plan.pace.rate_bytes = both(MIB), plan.pace.rate_iops = both(100);
        "rate_min": plan.pace.rate_bytes = both(MIB), plan.pace.rate_min = both(2 * MIB);
        "rate_process": plan.pace.poisson = true;
        "thinktime_spin": plan.pace.think_spin = SECOND;
        "latency_window": latency_target = Some(SECOND);
        "numjobs": plan.numjobs = 0;
        "4097 workers (numjobs): the limit is 4096": plan.numjobs = 4097;
    }
    assert_eq!(single(|s| s.plan.numjobs = 4096).numjobs, 4096);
    check_refused(
        |s| s.report.logs.histogram = Some("h".into()),
        "log_hist_msec",
    );
    let criterion = Criterion {
        bandwidth: true,
        slope: false,
        limit: 10.0,
        percent: true,
    };
    check_refused(|s| s.steadystate = Some(criterion), "steadystate_duration");
    let steady = |given| {
        let plan = single(|s| {
            s.steadystate = given;
            s.steadystate_duration = Some(SECOND);
        });
        plan.pace.steady.expect("a window").criterion
    };
    let default = steady(None);
    assert!(default.slope && !default.bandwidth);
    let limits = (steady(Some(criterion)).limit, default.limit);
    assert_eq!(limits, (10.0, 0.01));
}

#[test]
fn time_based_without_a_runtime_is_left_out_with_a_note() {
    let (plan, notes) = noted(|s| s.plan.pace.time_based = true);
    assert!(!plan.pace.time_based);
    assert!(notes[0].contains("time_based needs runtime"), "{notes:?}");
    let (plan, notes) = noted(|s| {
        s.plan.pace.time_based = true;
        s.plan.pace.runtime = Some(SECOND);
        s.plan.pace.loops = 0;
    });
    assert!(plan.pace.time_based && notes.is_empty());
    assert_eq!(plan.pace.loops, 1);
}

#[test]
fn a_distribution_or_an_alignment_lets_blocks_come_twice() {
    let random = READ.at_random();
    let (plan, notes) = noted(|s| {
        s.rw = Some(random);
        s.blockalign = both(65_536);
    });
    assert!(plan.pattern.repeats && plan.pattern.align.read == 65_536);
    assert!(notes[0].contains("norandommap"), "{notes:?}");
    let plan = single(|s| s.plan.pattern.distribution = Distribution::Zipf(1.1));
    assert!(plan.pattern.repeats);
    assert!(!single(|s| s.rw = Some(random)).pattern.repeats);
}

#[test]
fn buffers_that_compress_or_dedupe_are_new_for_every_write() {
    let plan = single(|s| s.buffer_compress_percentage = Some(50)).buffers;
    assert!(plan.refill && !plan.scramble);
    let expect = BufferContent::Random {
        percent: 50,
        chunk: 512,
        pattern: Vec::new(),
    };
    assert_eq!(plan.content, expect);
    assert!(
        single(|s| s.plan.buffers.dedupe_percent = 10)
            .buffers
            .refill
    );
    let plan = single(|s| s.buffer_pattern = Some(vec![1])).buffers;
    assert_eq!(plan.content, BufferContent::Pattern(vec![1]));
    assert!(!plan.scramble);
    let plan = single(|s| s.zero_buffers = Some(true)).buffers;
    assert_eq!((plan.content, plan.scramble), (BufferContent::Zero, false));
    refused! {
        "cannot be combined": zero_buffers = Some(true), buffer_pattern = Some(vec![1]);
    }
}

#[test]
fn an_iteration_is_like_the_one_before_in_groups_of_its_own() {
    let again = |randrepeat| {
        let job = |name, apart| {
            job(name, |s| {
                s.stonewall = Some(apart);
                s.randrepeat = Some(randrepeat);
            })
        };
        let fio = Fio {
            jobs: vec![job("a", false), job("b", true)],
            ..Fio::default()
        };
        repeated(fio, 2).expect("two jobs").0
    };
    let jobs = again(true);
    assert_eq!((jobs.rounds.len(), jobs.once().len()), (4, 2));
    assert_eq!([0, 1, 2, 3].map(|n| jobs.iteration(n)), [0, 0, 1, 1]);
    assert_eq!(jobs.data_bytes(1), rbench_core::Bytes(2 * MIB));
    let all: Vec<&JobPlan> = jobs.rounds.iter().flatten().collect();
    let groups: Vec<u32> = all.iter().map(|job| report(job).group).collect();
    assert_eq!(groups, [0, 1, 2, 3]);
    let seeds = |jobs: &JobsPlan| -> Vec<u64> {
        let all = jobs.rounds.iter().flatten();
        all.map(|job| job.pattern.seed).collect()
    };
    let same = seeds(&jobs);
    assert_eq!(same[..2], same[2..]);
    let mut others = seeds(&again(false));
    others.sort_unstable();
    others.dedup();
    assert_eq!(others.len(), 4);
}

#[test]
fn readonly_forbids_every_job_that_writes() {
    let read_only = |directions| {
        plan(Fio {
            jobs: vec![job("a", |s| s.rw = Some(directions))],
            readonly: true,
            ..Fio::default()
        })
    };
    assert!(read_only(READ).is_ok());
    for directions in [WRITE, MIX] {
        check_error(read_only(directions), "--readonly");
    }
}

#[test]
fn logs_have_room_for_what_is_asked_of_them() {
    refused! {
        "write_lat_log and log_offset": report.logs.issue_time = true;
        "log_offset=1": report.logs.issue_time = true, report.logs.latency = Some("l".into());
        "log_store_compressed": report.logs.compressed = true, report.logs.values = WindowValue::Both;
    }
    let timed = |s: &mut Settings| {
        (s.report.logs.issue_time, s.report.logs.offsets) = (true, true);
        s.report.logs.latency = Some("l".into());
    };
    assert!(single(timed).logs().expect("logs").issue_time);
    let both = |s: &mut Settings| {
        timed(s);
        s.report.logs.compressed = true;
    };
    assert!(jobs(vec![job("a", both)]).is_err());
}

#[test]
fn what_all_workers_move_is_told_in_the_shortest_stretches_of_any_job() {
    let of = |rates: bool| {
        let jobs = vec![
            job("a", |s| s.bwavgtime = Some(Nanos(200_000_000))),
            job("b", |_| {}),
        ];
        let whole = Whole {
            rates,
            ..Whole::default()
        };
        let fio = Fio {
            jobs,
            whole,
            ..Fio::default()
        };
        repeated(fio, 1).expect("two jobs").0.rounds
    };
    let widths = |rounds: Vec<Vec<JobPlan>>| -> Vec<u64> {
        let all = rounds.iter().flatten();
        all.map(|job| report(job).moved_every.0).collect()
    };
    assert_eq!(widths(of(false)), [0, 0]);
    assert_eq!(widths(of(true)), [200_000_000, 200_000_000]);
}

#[test]
fn percentiles_are_reported_in_their_order() {
    let plan = single(|s| s.report.shown.percentiles = vec![99.0, 50.0, 99.0]);
    assert_eq!(report(&plan).shown.percentiles, [50.0, 99.0]);
}

#[test]
fn a_plan_of_jobs_brings_its_own_directories_and_workers() {
    let mut fio = Fio {
        jobs: vec![
            job("a", |s| {
                s.plan.files.directory = "/mnt/x".into();
                s.plan.numjobs = 3;
            }),
            job("b", |_| {}),
        ],
        globals: vec![("size".to_owned(), "1m".to_owned())],
        ..Fio::default()
    };
    let made = plan(fio.clone()).expect("two jobs");
    assert_eq!((made.threads, made.workers()), (4, 16));
    assert!(!made.embedded() && made.needs_shared().is_none());
    assert_eq!(made.first_dir(), Some(&"/mnt/x".into()));
    assert_eq!(made.places(), ["", "/mnt/x"].map(std::path::PathBuf::from));
    assert_eq!(made.data_bytes(), 16 * MIB);
    let rows = made.describe();
    let told = |name: &str, text: &str| rows.iter().any(|s| s.name == name && s.text == text);
    let both = told("jobs", "a, b") && told("options", "size=1m");
    assert!(both, "{rows:?}");
    fio.jobs[0].options = vec![("rw".to_owned(), "read".to_owned())];
    let rows = plan(fio.clone()).expect("two jobs").describe();
    let own = rows.iter().find(|row| row.name == "job-options");
    assert_eq!(own.map(|row| row.text.as_str()), Some("[a], rw=read"));
    fio.jobs.clear();
    check_error(plan(fio), "--name");
}

proptest! {
    #[test]
    fn no_numbers_make_the_plan_panic(
        size: Option<u64>,
        filesize: Option<(u64, u64)>,
        bs: Option<u64>,
        range: Option<(u64, u64)>,
        split in proptest::option::of(proptest::collection::vec(
            (any::<u64>(), proptest::option::of(0_u32..101)), 0..5)),
        nrfiles: Option<u64>,
        percent in proptest::option::of(0_u32..101),
        names in 0_u64..3,
        interval: Option<u64>,
        write: bool,
    ) {
        let change = |s: &mut Settings| {
            s.size = size.map(Extent::Bytes);
            s.filesize = filesize;
            s.bs = Each::same(bs);
            s.bsrange = Each::same(range);
            s.bssplit = Each::same(split);
            s.nrfiles = nrfiles;
            s.io_size = percent.map(Extent::Percent);
            s.filename = (names > 0).then(|| (0..names).map(|n| n.to_string()).collect());
            s.verify_interval = interval;
            s.verify = Some(Check::With(Checksum::Crc64));
            s.rw = Some(if write { WRITE } else { READ });
            s.plan.direct = true;
        };
        if let Ok((plan, _)) = jobs(vec![job("a", change)]) {
            let each = &plan.rounds[0][0].files;
            prop_assert!(each.count > 0 && each.open > 0 && each.open <= each.count);
            prop_assert!(each.size.0 <= each.size.1);
        }
    }
}
