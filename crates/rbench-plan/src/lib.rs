//! Resolves typed options ([`spec`]) to a complete plan ([`Plan`]), with the
//! arithmetic of both: trees, paths, offsets, arrivals, shifts.
//!
//! Pure: the same Spec and [`Facts`] give the same Plan on every rank. Nothing here
//! reads the machine, the file system or the clock.

#[cfg(test)]
#[macro_use(each)]
extern crate rbench_core;

#[macro_use]
mod refusal;

pub mod arrival;
pub mod cache;
pub mod demand;
mod describe;
pub mod document;
pub mod estimate;
pub mod expect;
pub mod find;
pub mod given;
pub mod io;
pub mod io500;
pub mod iolog;
pub mod jobs;
pub mod knee;
pub mod meta;
pub mod mix;
pub mod nn;
pub mod paths;
pub mod pattern;
pub mod permutation;
pub mod process;
pub mod quick;
pub mod replay;
pub mod resolve;
pub mod series;
pub mod shift;
pub mod spec;
pub mod suite;
pub mod trace;
pub mod tree;
pub mod values;
pub mod verify;

pub use describe::{Setting, SettingValue};
pub use io::IoPlan;
pub use meta::MetaPlan;
pub use mix::MixPlan;
pub use refusal::PlanError;
pub use replay::ReplayPlan;
pub use resolve::{Facts, Limits, Plan, Until, Work, resolve, task_counts};
pub use spec::Spec;

#[cfg(test)]
mod testing {
    use std::ffi::OsString;
    use std::fmt::{Debug, Display};

    use crate::document::DocumentError;
    use crate::series::Words;

    /// The words of a command line in one text.
    pub fn line(words: &[OsString]) -> String {
        let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    /// The words of a command line that blanks separate.
    pub fn words(text: &str) -> Vec<OsString> {
        Words::default().and(text).0
    }

    /// Checks that these offsets and lengths cover `from..to` without an overlap or a gap.
    #[track_caller]
    pub fn check_covers(places: impl IntoIterator<Item = (u64, u64)>, from: u64, to: u64) {
        let mut places: Vec<(u64, u64)> = places.into_iter().collect();
        places.sort_unstable();
        let mut end = from;
        for (offset, length) in places {
            assert_eq!(offset, end, "a gap or an overlap");
            assert!(length > 0);
            end += length;
        }
        assert_eq!(end, to);
    }

    /// Checks that a result is an error whose message contains `part`.
    #[track_caller]
    pub fn check_error<T: Debug, E: Display + Debug>(result: Result<T, E>, part: &str) {
        let message = result.expect_err(part).to_string();
        assert!(message.contains(part), "'{message}' lacks '{part}'");
    }

    /// Checks that reading a document fails at this line with a message of one line that contains
    /// `part`.
    #[track_caller]
    pub fn check_document<T: Debug>(result: Result<T, DocumentError>, line: usize, part: &str) {
        let error = result.expect_err(part);
        assert_eq!(error.line, line, "{error}");
        let message = error.message;
        assert!(message.contains(part), "'{message}' lacks '{part}'");
        assert!(!message.contains('\n'), "{message}");
    }
}
