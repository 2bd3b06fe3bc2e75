//! Waiting for events, and repeating tests that depend on the clock of a busy machine.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Anything that takes longer hangs, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `holds` returns true.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < PATIENCE, "{what}: waited for in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Maximum number of attempts of a timing test.
const TRIES: u32 = 5;

/// Repeats a test with upper time limits if it fails: a busy machine breaks it now and then, a
/// defect always. Load lasts for some seconds, so the pauses between attempts grow.
pub fn tried_again(test: impl Fn()) {
    for number in 1..TRIES {
        if catch_unwind(AssertUnwindSafe(&test)).is_ok() {
            return;
        }
        eprintln!("try {number} of {TRIES} has failed");
        std::thread::sleep(Duration::from_secs(2 * u64::from(number)));
    }
    test();
}
