//! Tests of ranks that hear each other's notes, or only silence.

use std::pin::Pin;

use rbench_comm::Clocks;
use rbench_comm::threads::{self, ThreadsCommunicator};

use super::*;

/// Shows nothing, is asked for nothing.
struct Quiet;

impl Interrupts for Quiet {
    fn next(&self) -> Pin<Box<dyn Future<Output = i32> + '_>> {
        Box::pin(std::future::pending())
    }
}

impl Show for Quiet {
    fn step(&self, _: &str) {}
    fn phase(&self, _: &str, _: Option<u64>) {}
    fn progress(&self, _: Progress) {}
    fn stopping(&self) {}
    fn trouble(&self, _: &str) {}
}

/// A run on two ranks: the group as each of them has it.
async fn form(world: &[ThreadsCommunicator]) -> (Group<'_>, Group<'_>) {
    let at = |rank: usize| {
        let names = vec!["host".to_owned()];
        Group::form(
            &world[rank],
            names,
            vec![0, 0],
            Clocks::one(2),
            &Quiet,
            &Quiet,
        )
    };
    let (root, other) = tokio::join!(at(0), at(1));
    (root.expect("formed"), other.expect("formed"))
}

/// Attends to what comes until this holds.
async fn attend_until(group: &Group<'_>, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_secs(120), "in vain");
        let moment = tokio::time::sleep(Duration::from_millis(1));
        group.attend(moment, || 0).await.expect("all are there");
    }
}

/// Attends to all that has come until now: notes of one rank come in order, and `other` sends a
/// last one.
async fn attend(group: &Group<'_>, other: &Group<'_>) {
    let rank = other.rank();
    let items = group.progress.items_of(rank) + 1;
    other.tell(items);
    attend_until(group, || group.progress.items_of(rank) == items).await;
}

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
        .block_on(test);
}

#[test]
fn a_late_request_to_stop_is_only_for_the_run_that_it_is_of() {
    run(async {
        let world = threads::world(2);
        let (first, other) = form(&world).await;
        other.ask_to_stop(StopReason::Errors);
        drop((first, other));

        let (second, other) = form(&world).await;
        attend(&second, &other).await;
        assert_eq!(second.stop_reason(), None);
        assert!(!second.stop_flag().is_raised());

        other.ask_to_stop(StopReason::Errors);
        attend(&second, &other).await;
        assert_eq!(second.stop_reason(), Some(StopReason::Errors));
        assert!(second.stop_flag().is_raised());
    });
}

#[test]
fn progress_of_an_earlier_run_counts_for_nothing() {
    run(async {
        let world = threads::world(2);
        let at_the_phase = |group: &Group<'_>| group.begin_phase("phase", Some(100), None);
        let (first, other) = form(&world).await;
        at_the_phase(&first);
        at_the_phase(&other);
        other.tell(70);
        drop((first, other));

        let (second, other) = form(&world).await;
        at_the_phase(&second);
        at_the_phase(&other);
        let items = || [0, 1].map(|rank| second.progress.items_of(Rank(rank)));
        // The 70 would have come before this.
        other.tell(5);
        attend_until(&second, || items() != [0, 0]).await;
        assert_eq!(items(), [0, 5]);
    });
}

#[test]
fn a_rank_that_looks_all_the_time_takes_a_silent_one_for_lost() {
    run(async {
        let world = threads::world(2);
        let (root, _other) = form(&world).await;
        let _guard = root.guard();
        let begun = root.heartbeat.looked.get();
        let lost_after = (0..40).find(|halves| {
            let now = begun + Duration::from_millis(500) * *halves;
            root.live(now).is_err()
        });
        assert_eq!(lost_after, Some(15), "the first half second after 7 s");
        let error = root.live(begun + Duration::from_millis(7500));
        let error = error.expect_err("it is still silent").to_string();
        let expect = "rank 1 on host has not been heard from for 7 s";
        assert!(error.starts_with(expect), "{error}");
    });
}

#[test]
fn a_rank_that_waits_for_one_thing_after_the_other_says_that_it_is_there() {
    run(async {
        let world = threads::world(2);
        let (root, other) = form(&world).await;
        let (_guard, _other) = (root.guard(), other.guard());
        let heard = root.heartbeat.alive.borrow()[1];
        // Each wait is over before it could have looked what time it is.
        let said = other.heartbeat.told_alive.get() - 2 * ALIVE_EVERY;
        other.heartbeat.told_alive.set(said);
        let nothing = std::future::ready(());
        other.attend(nothing, || 0).await.expect("all are there");
        attend_until(&root, || root.heartbeat.alive.borrow()[1] > heard).await;
    });
}

#[test]
fn a_rank_that_was_away_itself_takes_nobody_for_lost() {
    run(async {
        let world = threads::world(2);
        let (root, _other) = form(&world).await;
        let _guard = root.guard();
        let begun = root.heartbeat.looked.get();
        let look_after = |seconds| root.live(begun + Duration::from_secs(seconds));
        look_after(1).expect("nobody is silent for long");
        // Messages that came meanwhile are not heard yet.
        look_after(100).expect("only this rank was away");
        for seconds in 101..=107 {
            look_after(seconds).expect("7 s have not passed since");
        }
        let error = look_after(108).expect_err("7 s of silence");
        assert!(matches!(error, ExecError::Lost(_)), "{error}");
    });
}
