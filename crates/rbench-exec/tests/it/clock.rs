//! Waits for what comes about, and tests by the clock of a machine that has other things to do.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// Whatever takes longer hangs, however busy the machine is.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until this holds.
pub fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what}: waited for in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// How often a test of times may be tried.
const TRIES: u32 = 5;

/// Plays a test whose upper bounds are times again when it fails: a busy machine
/// spoils it now and then, and a defect always. What keeps the machine busy lasts some seconds,
/// so that each try waits longer for the next.
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
