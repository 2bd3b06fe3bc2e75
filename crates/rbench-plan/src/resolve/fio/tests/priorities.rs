use rbench_core::{Direction, IoPriority};

use super::*;
use crate::jobs::{ByPriority, Directions, Priorities, PriorityShare};
use crate::spec::fio::PrioritySplit;

const LIBAIO: &str = "libaio";

fn share(block: Option<u64>, percent: u32, priority: IoPriority) -> PriorityShare {
    PriorityShare {
        block,
        percent,
        priority,
    }
}

fn split(block: u64, percent: u32, priority: Option<IoPriority>) -> PrioritySplit {
    PrioritySplit {
        block,
        percent,
        priority,
    }
}

fn each<T>(read: T, write: T) -> Each<Option<T>> {
    Each {
        read: Some(read),
        write: Some(write),
        trim: None,
    }
}

/// The shares of reads and of writes.
fn shares(change: impl FnOnce(&mut Settings)) -> [Vec<PriorityShare>; 2] {
    let plan = single(|s| {
        s.ioengine = Some(LIBAIO.to_owned());
        s.rw = Some(Directions::MIX);
        change(s);
    });
    let Priorities { shares } = plan.priorities.expect("requests draw priorities");
    assert_eq!(shares.trim, [], "trims have none");
    [shares.read, shares.write]
}

#[test]
fn requests_without_a_percentage_have_the_priority_of_the_job() {
    let (plan, notes) = noted(|s| s.ioengine = Some(LIBAIO.to_owned()));
    assert_eq!((plan.priorities, plan.process.io_priority), (None, None));
    assert_eq!(notes, Vec::<String>::new());
    let (plan, notes) = noted(|s| {
        s.ioengine = Some(LIBAIO.to_owned());
        s.cmdprio.percentage = both(0);
        s.cmdprio.level = both(3);
    });
    assert_eq!(plan.priorities, None);
    let all = notes.join("\n");
    assert!(
        all.contains("no effect without cmdprio_percentage"),
        "{all}"
    );
}

#[test]
fn a_percentage_has_the_highest_priority_unless_another_is_given() {
    let highest = IoPriority::new(1, 0, 0);
    let given = shares(|s| s.cmdprio.percentage = both(30));
    let expect = vec![share(None, 30, highest)];
    assert_eq!(given, [expect.clone(), expect]);
    let given = shares(|s| {
        s.cmdprio.percentage = each(20, 80);
        s.cmdprio.class = each(2, 3);
        s.cmdprio.level = both(5);
        s.cmdprio.hint.write = Some(9);
    });
    let expect = [
        vec![share(None, 20, IoPriority::new(2, 5, 0))],
        vec![share(None, 80, IoPriority::new(3, 5, 9))],
    ];
    assert_eq!(given, expect);
    let given = shares(|s| s.cmdprio.percentage.write = Some(40));
    assert_eq!(given, [vec![], vec![share(None, 40, highest)]]);
}

#[test]
fn a_split_has_a_share_for_each_size_and_priority() {
    let idle = IoPriority::new(3, 7, 0);
    let given = shares(|s| {
        s.cmdprio.percentage = both(0);
        s.cmdprio.level = both(2);
        s.cmdprio.split.read = Some(vec![
            split(4096, 10, None),
            split(8192, 0, None),
            split(16384, 5, None),
            split(4096, 90, Some(idle)),
        ]);
    });
    let usual = IoPriority::new(1, 2, 0);
    let expect = vec![
        share(Some(4096), 10, usual),
        share(Some(4096), 90, idle),
        share(Some(16384), 5, usual),
    ];
    assert_eq!(given, [expect, vec![]]);
}

#[test]
fn a_direction_that_the_job_does_not_have_has_no_shares() {
    let given = shares(|s| {
        s.rw = Some(Directions::WRITE);
        s.cmdprio.percentage = both(30);
    });
    let expect = vec![share(None, 30, IoPriority::new(1, 0, 0))];
    assert_eq!(given, [vec![], expect]);
}

#[test]
fn what_cannot_be_is_refused() {
    refused! {
        "cmdprio_percentage and cmdprio_bssplit cannot be combined":
            cmdprio.percentage = both(1), cmdprio.split.write = Some(vec![split(4096, 1, None)]);
        "the percentages of blocks of 4096 bytes add up to 140, more than 100":
            cmdprio.split.read = Some(vec![split(4096, 70, None), split(8192, 50, None), split(4096, 70, None)]);
    }
}

#[test]
fn a_directions_priorities_are_listed_once_after_that_of_the_job() {
    let [a, b, own] =
        [(1, 0), (3, 1), (2, 4)].map(|(class, level)| IoPriority::new(class, level, 0));
    let all = Priorities {
        shares: Each {
            read: [a, b, a, own]
                .map(|priority| share(Some(4096), 10, priority))
                .into(),
            ..Each::default()
        },
    };
    assert_eq!(all.of(Direction::Read, own), [own, a, b]);
    assert_eq!(all.of(Direction::Write, own), [own]);
}

#[test]
fn a_level_without_a_class_is_one_of_best_effort() {
    let own = |class, level| {
        let plan = single(|s| (s.prioclass, s.prio) = (class, level));
        plan.own_priority()
    };
    assert_eq!(own(None, None), IoPriority::default());
    assert_eq!(own(None, Some(3)), IoPriority::new(2, 3, 0));
    // As in fio; the kernel refuses a level without a class.
    assert_eq!(own(Some(0), Some(3)), IoPriority::new(2, 3, 0));
    assert_eq!(own(Some(0), None), IoPriority::new(2, 0, 0));
}

#[test]
fn the_latency_by_priority_is_the_one_that_fio_shows() {
    let check = |lat, without_lat, without_clat, expect| {
        let plan = single(|s| {
            s.report.shown.lat_percentiles = lat;
            s.report.left_out.lat = without_lat;
            s.report.left_out.clat = without_clat;
        });
        let text = format!("{lat} {without_lat} {without_clat}");
        assert_eq!(report(&plan).by_priority(), expect, "{text}");
    };
    check(false, false, false, Some(ByPriority::Clat));
    check(true, false, false, Some(ByPriority::Lat));
    check(true, false, true, Some(ByPriority::Lat));
    check(true, true, false, Some(ByPriority::Clat));
    check(false, false, true, None);
}
