//! The table of I/O engines. What an engine is stands below them
//! (`engine/contract.rs`), each has a file of its own, and nothing below knows
//! the table; the conformance suite loops over it.

mod buffers;
mod contract;
mod faults;
mod fd_table;
mod io_uring;
mod libaio;
mod mmap;
mod null;
mod progress;
mod psync;
mod pvsync;
mod pvsync2;
mod sync;
mod synchronous;
mod vsync;

pub use contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, RetriesByTransfer,
    Transfer,
};

/// Every engine. A new one is a file under `engine/` and a line here.
pub const ENGINES: &[EngineInfo] = &[
    psync::INFO,
    sync::INFO,
    vsync::INFO,
    pvsync::INFO,
    pvsync2::INFO,
    mmap::INFO,
    io_uring::INFO,
    libaio::INFO,
    null::INFO,
];

/// Engines of other tools that are not offered on purpose, and what to do
/// instead.
pub const OTHERS: &[(&str, &str)] = &[("posixaio", "take io_uring")];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static EngineInfo> {
    ENGINES.iter().find(|engine| engine.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_offered_or_refused_with_an_advice() {
        assert!(OTHERS.contains(&("posixaio", "take io_uring")));
        for (name, advice) in OTHERS {
            assert!(find(name).is_none());
            let instead = advice.strip_prefix("take ").expect("that is the form");
            assert!(find(instead).is_some(), "{name}: {instead}");
        }
    }
}
