//! `--ack-journal`: which jobs have one, and what they write then.

use super::*;
use crate::spec::fio::Split;

fn journaled(jobs: Vec<Job>, iterations: u32) -> Result<JobsPlan, String> {
    let fio = Fio {
        jobs,
        ack_journal: Some("/var/acks".into()),
        ..Fio::default()
    };
    Ok(repeated(fio, iterations)?.0)
}

fn writer(change: impl FnOnce(&mut Settings)) -> Job {
    job("w", |s| {
        (s.rw, s.size) = (Some(WRITE), Some(Extent::Bytes(MIB)));
        change(s);
    })
}

#[test]
fn jobs_that_write_have_stamps_at_their_smallest_block_and_others_none() {
    let split: Vec<Split> = vec![(4096, Some(50)), (12_288, Some(50))];
    let mixed = writer(|s| s.bssplit.write = Some(split));
    let plan = journaled(vec![mixed, job("r", |_| {})], 1).expect("a plan");
    assert_eq!(plan.ack_journal, Some("/var/acks".into()));
    let verify = plan.rounds[0][0].verify.as_ref().expect("stamps");
    assert_eq!((&verify.carries, verify.interval), (&Carries::Stamps, 4096));
    assert!(!verify.read_back && !verify.only);
    assert_eq!(plan.rounds[0][1].verify, None);
}

#[test]
fn a_job_of_whose_blocks_nothing_could_be_said_is_refused() {
    let check = |change: fn(&mut Settings), expect: &str| {
        let why = journaled(vec![writer(change)], 1).expect_err(expect);
        assert!(why.starts_with("job 'w': --ack-journal "), "{why}");
        assert!(why.contains(expect), "'{why}' lacks '{expect}'");
    };
    each! { check:
        |s| s.rw = Some(Directions::MIX) => "needs jobs that only write";
        |s| s.verify = Some(Check::With(Checksum::Crc32c)) => "verify cannot be combined";
        |s| s.size = None => "needs size";
        |s| s.filename = Some(vec!["f".into()]) => "separate files for each worker";
        |s| s.overwrite = Some(true) => "overwrite";
        |s| s.plan.files.unlink = true => "unlink";
        |s| s.plan.files.unlink_each_loop = true => "unlink_each_loop";
        |s| s.plan.files.fill = true => "fill_device";
        |s| s.offset = Some(Extent::Bytes(512)) => "multiples of the block";
        |s| s.bs.write = Some(256) => "multiples of 512 bytes";
        |s| s.bssplit.write = Some(vec![(4096, None), (6144, None)]) => "multiples of the smallest";
    }
}

#[test]
fn a_journal_needs_a_writer_and_one_iteration() {
    let only_reads = journaled(vec![job("r", |_| {})], 1);
    check_error(only_reads, "needs a job that writes");
    let twice = journaled(vec![writer(|_| ())], 2);
    check_error(twice, "--iterations cannot be combined");
}
