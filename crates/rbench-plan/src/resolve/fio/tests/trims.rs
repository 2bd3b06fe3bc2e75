use super::*;
use crate::jobs::TrimBacklog;

const TRIM: Directions = Directions::TRIM;
const TRIM_WRITE: Directions = Directions::TRIM_WRITE;

#[test]
fn the_third_values_are_those_of_trims() {
    let plan = single(|s| {
        s.rw = Some(TRIM);
        s.bs.trim = Some(16_384);
        s.plan.pace.rate_iops.trim = Some(100);
        s.percentage_random.trim = Some(30);
    });
    let mut sizes = Each::same(BlockSizes::Fixed(4096));
    sizes.trim = BlockSizes::Fixed(16_384);
    assert_eq!(plan.pattern.sizes, sizes);
    assert_eq!(plan.pattern.align.trim, 16_384);
    let limits = Each {
        trim: Some(100),
        ..Each::default()
    };
    assert_eq!(plan.pace.rate_iops, limits);
    assert_eq!(plan.pattern.random_percent.trim, 30);
    refused! {
        "the smallest block (bs), 2097152": rw = Some(TRIM), bs.trim = Some(2 * MIB);
    }
    // Values of other directions do not matter.
    let fine = single(|s| s.bs.trim = Some(2 * MIB));
    assert_eq!(fine.pattern.directions, READ);
}

#[test]
fn what_is_only_trimmed_is_laid_out_with_data() {
    let filled = |rw, engine: Option<&str>, overwrite| {
        let plan = single(|s| {
            s.rw = Some(rw);
            s.ioengine = engine.map(str::to_owned);
            s.overwrite = overwrite;
        });
        plan.files.overwrite
    };
    assert!(filled(TRIM, None, None));
    assert!(!filled(TRIM, None, Some(false)));
    // Like in fio.
    assert!(!filled(TRIM, Some("falloc"), None));
    assert!(filled(TRIM, Some("falloc"), Some(true)));
    assert!(!filled(TRIM_WRITE, None, None));
    assert!(!filled(WRITE, None, None));
}

#[test]
fn engines_that_cannot_trim_and_readonly_forbid_it() {
    let mut facts = facts();
    facts.engines.push(("ftruncate", 1));
    let of = |engine: &str, rw, readonly| {
        let fio = Fio {
            jobs: vec![job("a", |s| {
                s.rw = Some(rw);
                s.ioengine = Some(engine.to_owned());
            })],
            readonly,
            ..Fio::default()
        };
        let workload = Workload::Fio(Box::new(fio));
        facts.plan(Common::default(), workload).map(drop)
    };
    let refused = |engine, rw, readonly, expect: &str| {
        assert_eq!(of(engine, rw, readonly), Err(format!("job 'a': {expect}")));
    };
    for rw in [TRIM, TRIM_WRITE] {
        let text = "ioengine=ftruncate cannot trim: use another engine";
        refused("ftruncate", rw, false, text);
        assert_eq!(of("psync", rw, false), Ok(()));
    }
    let text = "it trims, which --readonly forbids";
    refused("psync", TRIM, true, text);
    let text = "it writes, which --readonly forbids";
    refused("psync", TRIM_WRITE, true, text);
}

#[test]
fn trims_among_the_writes_of_a_verified_job_need_a_backlog() {
    let of = |change: fn(&mut Settings)| {
        noted(move |s| {
            s.rw = Some(WRITE);
            s.verify = Some(Check::With(Checksum::Crc32c));
            (s.trim_percentage, s.trim_backlog) = (Some(50), Some(8));
            change(s);
        })
    };
    let trims = |plan: &JobPlan| plan.verify.as_ref().and_then(|verify| verify.trims);
    let (plan, notes) = of(|_| {});
    let expect = TrimBacklog {
        percent: 50,
        every: 8,
        batch: 8,
    };
    assert_eq!(trims(&plan), Some(expect));
    let is_told = matches!(&notes[..], [note] if note.contains("a trim punches a hole"));
    assert!(is_told, "{notes:?}");
    let verify = plan.verify.expect("it was asked for");
    assert!(verify.once && verify.trimmed_is_zero);
    let (plan, _) = of(|s| {
        s.trim_backlog_batch = Some(3);
        s.checks.trimmed_is_zero = false;
    });
    assert_eq!(trims(&plan).map(|trims| trims.batch), Some(3));
    assert!(plan.verify.is_some_and(|verify| !verify.trimmed_is_zero));
    // Like in fio 3.33, where they do nothing.
    for change in [
        (|s: &mut Settings| s.trim_backlog = None) as fn(&mut Settings),
        |s| s.verify = None,
        |s| s.do_verify = Some(false),
        |s| s.experimental_verify = Some(true),
    ] {
        let (plan, notes) = of(change);
        assert_eq!(trims(&plan), None);
        let told = notes[0].contains("trim_percentage has an effect only");
        assert!(told, "{notes:?}");
    }
    let (plan, notes) = of(|s| s.trim_percentage = Some(0));
    assert!(trims(&plan).is_none() && notes.is_empty());
    refused! {
        "the blocks that the earlier run trimmed":
            rw = Some(WRITE), verify = Some(Check::With(Checksum::Crc32c)),
            verify_only = Some(true), trim_percentage = Some(50), trim_backlog = Some(8);
    }
}

#[test]
fn of_blocks_that_may_be_trimmed_again_the_last_state_counts() {
    let once = |rw, repeats, experimental| {
        let plan = single(|s| {
            s.rw = Some(rw);
            s.verify = Some(Check::With(Checksum::Crc32c));
            s.norandommap = Some(repeats);
            s.experimental_verify = Some(experimental);
        });
        plan.verify.is_some_and(|verify| verify.once)
    };
    let random = Directions::at_random;
    assert!(!once(TRIM_WRITE, false, false));
    assert!(!once(random(TRIM_WRITE), false, false));
    assert!(once(random(TRIM_WRITE), true, false));
    assert!(once(random(TRIM_WRITE), true, true));
    assert!(!once(random(WRITE), true, true));
    let (plan, notes) = noted(|s| {
        s.rw = Some(TRIM);
        s.verify = Some(Check::With(Checksum::Crc32c));
    });
    assert_eq!(plan.verify, None);
    for what in ["punches a hole", "neither writes nor reads"] {
        let told = notes.iter().any(|note| note.contains(what));
        assert!(told, "{notes:?}");
    }
}
