use super::*;
use crate::pattern::{Part, Steps, file_path};
use crate::spec::Workload;
use crate::testing::check_error;
use rbench_core::Bytes;

fn plan(hosts: &[u32], change: impl FnOnce(&mut Ior)) -> Result<JobsPlan, String> {
    let mut options = Ior {
        files: vec!["/mnt/out/file".into()],
        ..Ior::default()
    };
    change(&mut options);
    let facts = Facts {
        stonewalled: options.status_to_read().map(|_| 5),
        ..Facts::on(hosts)
    };
    let common = Common {
        iterations: options.repetitions,
        ..Common::default()
    };
    let (plan, _) = facts.jobs(common, Workload::Ior(Box::new(options)))?;
    Ok(plan)
}

fn jobs(hosts: &[u32], change: impl FnOnce(&mut Ior)) -> Vec<JobPlan> {
    let plan = plan(hosts, change).expect("it can be done");
    plan.rounds.into_iter().flatten().collect()
}

fn sizes(options: &mut Ior, block: u64, transfer: u64, segments: u64) {
    options.block = Some(Bytes(block));
    options.transfer = Some(Bytes(transfer));
    options.segments = Some(Segments::Count(segments));
}

/// Offsets of the transfers of rank `rank` of three, with the file of `owner`.
fn offsets(job: &JobPlan, worker: u64, owner: u64) -> Vec<u64> {
    let part = Part {
        worker,
        owner,
        workers: 3,
    };
    let steps = Steps::of(job, part, |_| job.files.size.0);
    steps.map(|step| step.offset).collect()
}

#[test]
fn transfers_lie_where_ior_has_them() {
    let [block, transfer, segments] = [3000, 1000, 2];
    let shared = jobs(&[0, 0, 0], |o| sizes(o, block, transfer, segments));
    let own = jobs(&[0, 0, 0], |o| {
        sizes(o, block, transfer, segments);
        o.file_per_process = true;
    });
    assert_eq!((shared.len(), own.len()), (2, 2));
    for rank in 0..3 {
        let offsets_of = |first: u64, step: u64| -> Vec<u64> {
            let of = |segment: u64| (0..3).map(move |k| first + segment * step + k * transfer);
            (0..segments).flat_map(of).collect()
        };
        for job in &shared {
            let expect = offsets_of(rank * block, 3 * block);
            assert_eq!(offsets(job, rank, rank), expect);
        }
        assert_eq!(offsets(&own[0], rank, rank), offsets_of(0, block));
    }
    let random = jobs(&[0, 0, 0], |o| {
        sizes(o, block, transfer, segments);
        o.random = 1;
    });
    let mut drawn = offsets(&random[0], 1, 1);
    let expect = offsets(&shared[0], 1, 1);
    assert_ne!(drawn, expect);
    drawn.sort_unstable();
    assert_eq!(drawn, expect);
}

#[test]
fn blocks_at_random_places_are_whole_and_anywhere_in_the_file() {
    let [block, transfer, segments] = [3000, 1000, 40];
    let blocks = |own: bool| {
        jobs(&[0, 0, 0], |o| {
            sizes(o, block, transfer, segments);
            (o.random, o.random_seed, o.file_per_process) = (2, Some(5), own);
        })
    };
    for (own, whole) in [(false, 3 * 40 * block), (true, 40 * block)] {
        let all = blocks(own);
        assert_eq!(all[0].pattern.seed, all[1].pattern.seed);
        let drawn = offsets(&all[0], 1, 1);
        assert_eq!(drawn.len(), 3 * 40, "as many as the rank's part has");
        for run in drawn.chunks(3) {
            assert!(run[0].is_multiple_of(block), "{run:?}");
            assert_eq!(run[1..], [run[0] + transfer, run[0] + 2 * transfer]);
        }
        assert!(drawn.iter().all(|at| *at < whole));
        let beyond_a_third = drawn.iter().filter(|at| **at >= whole / 3).count();
        assert!(beyond_a_third > 40, "{beyond_a_third} of 120");
        let mut places = drawn.clone();
        places.sort_unstable();
        places.dedup();
        assert!(places.len() < drawn.len(), "some come twice");
        let files = &all[0].files;
        assert_eq!(files.fallocate, Fallocate::Truncate);
        assert!(!files.create_on_open && files.size == (whole, whole));
    }
}

#[test]
fn files_of_ranks_are_numbered_and_those_of_repetitions_told_apart() {
    let own = jobs(&[0, 0], |o| {
        o.file_per_process = true;
        o.repetitions = Some(2);
        o.multi_file = true;
        o.files = vec!["/a/x".into(), "/b/y".into()];
    });
    assert_eq!(file_path(&own[0], 0, 0), Path::new("/a/x.00000000.0"));
    assert_eq!(file_path(&own[3], 1, 0), Path::new("/b/y.00000001.1"));
    let shared = jobs(&[0, 0], |_| {});
    assert_eq!(file_path(&shared[0], 1, 0), Path::new("/mnt/out/file"));
}

#[test]
fn readers_take_what_another_node_wrote() {
    let check = |hosts: &[u32], offset: Option<u32>, expect: [u32; 3]| {
        let all = jobs(hosts, |o| {
            (o.write, o.check_write, o.read) = (true, true, true);
            (o.reorder, o.task_offset) = (true, offset);
        });
        let ahead = [0, 1, 2].map(|n: usize| all[n].files.ahead);
        assert_eq!(ahead, expect, "{hosts:?}");
    };
    check(&[0, 0, 1, 1, 2, 2], None, [0, 4, 2]);
    check(&[0, 0, 1, 1, 2, 2], Some(2), [0, 4, 4]);
    // There are no more nodes than that.
    check(&[0, 0, 1, 1], Some(9), [0, 0, 2]);
    check(&[0, 1, 2, 0, 1, 2], Some(1), [0, 2, 1]);
    check(&[0, 0, 0], Some(1), [0, 0, 0]);
}

#[test]
fn what_was_not_there_is_removed_unless_it_is_kept() {
    let standing = |change: fn(&mut Ior)| -> Vec<(bool, bool, bool)> {
        let all = jobs(&[0], change);
        let of = |job: &JobPlan| {
            let standing = job.files.standing;
            (standing.must_be_new, standing.temporary, job.files.unlink)
        };
        all.iter().map(of).collect()
    };
    assert_eq!(standing(|_| {}), [(true, true, false), (false, true, true)]);
    let kept = standing(|o| o.keep = true);
    assert_eq!(kept, [(true, false, false), (false, false, false)]);
    assert_eq!(standing(|o| o.read = true), [(false, false, false)]);
    // The second repetition overwrites the files that the first has kept.
    let again = standing(|o| {
        (o.write, o.keep, o.repetitions) = (true, true, Some(2));
    });
    assert_eq!(again, [(true, true, true), (true, false, false)]);
    let over = standing(|o| (o.write, o.use_existing, o.keep) = (true, true, true));
    assert_eq!(over, [(false, false, false)]);
}

#[test]
fn a_status_file_bounds_what_is_read_and_nothing_else() {
    let read = jobs(&[0], |o| {
        (o.read, o.status_file) = (true, Some("/status".into()));
    });
    assert_eq!(read[0].pace.number_ios, Some(5));
    let both = jobs(&[0], |o| {
        (o.deadline, o.wear_out) = (Some(Nanos::SECOND), true);
        o.status_file = Some("/status".into());
    });
    let numbers = [0, 1].map(|n: usize| both[n].pace.number_ios);
    assert_eq!(numbers, [None, None]);
    assert!(both[0].pace.wear_out && both[1].pace.as_many_as_written);
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence_that_names_the_option() {
    let check = |expect: &str, change: fn(&mut Ior)| check_error(plan(&[0, 0], change), expect);
    each! { check:
        "-b 1000 is not a multiple of -t 300" => |o| sizes(o, 1000, 300, 1);
        "-t must be at least 1" => |o| sizes(o, 1000, 0, 1);
        "-s must be at least 1" => |o| sizes(o, 1000, 1000, 0);
        "over 2^62" => |o| sizes(o, 1 << 40, 1 << 20, 1 << 40);
        "more than the 1GiB" => |o| sizes(o, 2 << 30, 2 << 30, 1);
        "-o with several files needs -F" => |o| o.files.push("b".into());
        "needs -D" => |o| o.wear_out = true;
        "makes ranks write different amounts" => |o| o.deadline = Some(Nanos(1));
        "need its -G" => |o| o.check_read = true;
        "-s -1" => |o| o.segments = Some(Segments::AsInFiles);
        "needs -t to be a multiple of 512" => |o| {
            o.direct = true;
            sizes(o, 1000, 1000, 1);
        };
        "minTimeDuration" => |o| o.time_min = Some(Nanos(1));
        "-Y" => |o| (o.read, o.fsync_each) = (true, true);
        "-W and -R" => |o| (o.random, o.check_write, o.write) = (2, true, true);
        "needs -z" => |o| o.random_seed = Some(1);
    }
    let too_many = Ior {
        tasks: Some(3),
        ..Ior::default()
    };
    let expect = "-N 3 is more than the number of ranks that were started, 2";
    check_error(tasks(&too_many, 2), expect);
}
