//! The table of I/O engines. `engine/contract.rs` defines an engine, and each has its
//! own file. The engines do not use the table; the conformance suite loops over it.

mod buffers;
mod contract;
mod falloc;
mod faults;
mod fd_table;
mod ftruncate;
mod in_flight;
mod io_uring;
mod libaio;
mod mmap;
mod names;
mod null;
mod offload;
mod posixaio;
mod progress;
mod psync;
mod pvsync;
mod pvsync2;
mod splice;
mod sync;
mod synchronous;
mod vsync;

pub use contract::{
    Completion, Engine, EngineConfig, EngineCounts, EngineInfo, Request, RetriesByTransfer,
    Transfer,
};

pub use in_flight::{Lack, NamesInFlight, lacking};
pub use offload::make as offload;

/// Every engine. A new one needs a file under `engine/`, and a line here.
pub const ENGINES: &[EngineInfo] = &[
    psync::INFO,
    sync::INFO,
    vsync::INFO,
    pvsync::INFO,
    pvsync2::INFO,
    splice::INFO,
    mmap::INFO,
    io_uring::INFO,
    libaio::INFO,
    posixaio::INFO,
    falloc::INFO,
    ftruncate::INFO,
    names::info::<0>(),
    names::info::<1>(),
    names::info::<2>(),
    names::info::<3>(),
    names::info::<4>(),
    names::info::<5>(),
    null::INFO,
];

/// The engine of that name.
pub fn find(name: &str) -> Option<&'static EngineInfo> {
    ENGINES.iter().find(|engine| engine.name == name)
}
