//! Tests replays on the built-in file system.

use super::*;
use crate::testfs::mount;

#[test]
fn a_target_that_is_too_slow_makes_the_replay_late() {
    let target = mount(|config| config.latency = "read=20ms".parse().expect("valid"));
    fs::write(target.path().join("f"), vec![7; 65536]).expect("written");
    let mut text = lines("0 f add; 0 f open");
    text.extend((0..10).map(|n| format!("{} f read {} 512", n * 1000, n * 4096)));
    log(target.path(), "t", 3, &text);
    let line = "--name=a --read_iolog=t --direct=1 --invalidate=1";
    let outcome = run_well(target.path(), line);
    // The last one was due after 9 ms, after nine operations of 20 ms.
    let late = late(&outcome, "a-read");
    assert!(late.max.0 >= 9 * 20_000_000 - 9_000_000, "{late:?}");
    let response = outcome
        .row("a-read")
        .response
        .as_ref()
        .expect("times are kept");
    assert!(response.extremes().1 >= late.max.0 + 20_000_000);
    target.end();
}

#[test]
fn files_that_the_log_closes_are_synced_at_the_end() {
    let target = mount(|_| {});
    let text = "f add; g add; h add; f open; f write 0 4096; f close; g open; g write 0 4096; \
                g write 4096 4096; g close; h open; h write 0 4096; h sync 0 0; h close";
    log(target.path(), "t", 2, &lines(text));
    for (more, syncs) in [("", 1), ("--end_fsync=1", 3), ("--fsync_on_close=1", 3)] {
        let synced = || {
            let counts = target.fs.stats().snapshot();
            counts
                .kind(rbench_testfs::Kind::Fsync)
                .map_or(0, |kind| kind.latency.count())
        };
        let before = synced();
        run_well(target.path(), &format!("--name=a --read_iolog=t {more}"));
        assert_eq!(synced() - before, syncs, "{more}");
    }
    target.end();
}
