//! The journal of acknowledged writes, and what it says of the data after a
//! crash.
//!
//! Each worker takes down in a file of its own, outside the target, when a
//! write or a sync begins and how it ended ([`journal`], [`mod@format`]). After a
//! crash the records tell which contents each block may have ([`history`]);
//! every block is read and judged by them ([`judge`], [`mod@audit`]).
//!
//! A record is in the kernel's page cache before the next step is taken, so
//! the journal survives the end of the process at any moment, but not that of
//! its own host.

pub mod audit;
pub mod format;
pub mod history;
pub mod journal;
pub mod judge;

pub use audit::{Audit, Class, Finding, audit};
pub use format::{Header, Kind, Record};
pub use journal::{Journal, Log, check_journals, check_place};
