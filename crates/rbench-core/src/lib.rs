//! Vocabulary of all other crates of rbench: units, operation kinds, the clock,
//! seeded random streams, the latency recorder, failures, outcomes, lines of the
//! mount table and similar names.
//!
//! Nothing here touches a file system, MPI, the terminal or the environment.

/// Calls a check of a test once for each row; `=>` stands between its arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! each {
    ($check:ident: $($first:expr $(=> $more:expr)*;)+) => {
        $($check($first $(, $more)*);)+
    };
}

#[macro_use]
mod merge;

pub mod amounts;
pub mod client;
pub mod clock;
pub mod coarse;
pub mod direction;
pub mod dirents;
pub mod effort;
pub mod engine;
pub mod event;
pub mod failure;
pub mod hist;
pub mod job;
pub mod latency;
pub mod linux;
pub mod machine;
pub mod memory;
pub mod message;
pub mod mountinfo;
pub mod moved;
pub mod near;
pub mod open;
pub mod operations;
pub mod outcome;
mod parts;
pub mod permutation;
pub mod plain;
pub mod priority;
pub mod random;
pub mod request;
pub mod residency;
pub mod script;
pub mod spread;
pub mod steady;
pub mod surroundings;
pub mod timeline;
pub mod units;

pub use clock::{Clock, Counter, CpuClock, MonotonicClock, SimulatedClock};
pub use direction::{Direction, Each, Unified};
pub use engine::EngineOptions;
pub use failure::{Failure, FailureKind, Failures, errno_of, or_eio};
pub use latency::Latency;
pub use open::OpenFlags;
pub use operations::{By, Call, OpKind};
pub use plain::{plain, plain_lines};
pub use priority::IoPriority;
pub use script::{Part, Progress, Script, Times};
pub use timeline::Timeline;
pub use units::{Bytes, Nanos, Rank};
