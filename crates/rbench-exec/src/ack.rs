//! The journal of acknowledged writes, and the judgement of the data by it after a crash.
//!
//! Each worker records in a file of its own, outside the target, when a write or a sync starts and
//! how it ended ([`journal`], [`mod@format`]). After a crash the records determine which contents
//! each block may have ([`history`]). Every block is read and judged by them ([`judge`],
//! [`mod@audit`]).
//!
//! A record is in the kernel's page cache before the next step. The journal therefore survives the
//! end of the process at any moment, but not a crash of its own host.

pub mod audit;
pub mod format;
pub mod history;
pub mod journal;
pub mod judge;

pub use audit::{Audit, Finding, audit};
pub use format::{Header, Kind, Record};
pub use journal::{Journal, Log, check_journals, check_place};
pub use judge::Class;
