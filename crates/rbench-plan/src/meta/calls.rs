//! The system calls of a phase's operation: what is timed, with what, and what surrounds it.

use rbench_core::{Call, OpKind, OpenFlags, Part, Times};

use super::timed::{ATTRIBUTES, LONGER, timed};
use super::{ItemOwner, Making, MetaPlan, PhaseInfo, PhaseKind};

/// Bytes of one synced write.
const SYNCED_WRITE: u64 = 1 << 10;
/// Room for the entries of one `getdents64`, in bytes: what libc takes.
const ENTRIES: u64 = 32 << 10;
/// Room for the target of a link, which is the name of an item.
const TARGET: u64 = 256;
/// Room for a list of names of attributes, others' included.
const LIST: u64 = 4096;

/// Bytes of the value of an attribute.
pub const VALUE: usize = 16;

/// The calls of an operation on one item, and its data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// What opens the item before it, untimed; `None`: it is no call on an open file.
    pub opens: Option<OpenFlags>,
    /// The operation.
    pub timed: Vec<Part>,
    /// A second step, which is timed on its own.
    pub second: Vec<Part>,
    /// Bytes that each read and write moves.
    pub length: u64,
    /// Bytes of data of an item.
    pub data: u64,
}

impl Calls {
    /// One call that moves no data.
    pub fn of(call: Call) -> Calls {
        Calls {
            timed: vec![Part::once(call)],
            ..Calls::default()
        }
    }

    /// Opening a file, reading so many bytes in one call, if any, and closing it.
    pub fn reading(flags: OpenFlags, bytes: u64) -> Calls {
        let read = (bytes > 0).then_some(Part {
            call: Call::Read,
            times: Times::Whole,
        });
        let (open, close) = (Part::once(Call::Open(flags)), Part::once(Call::Close));
        let parts = [Some(open), read, Some(close)];
        Calls {
            timed: parts.into_iter().flatten().collect(),
            length: bytes,
            data: bytes,
            ..Calls::default()
        }
    }

    /// The most calls that follow each other.
    pub fn longest(&self) -> usize {
        self.timed.len().max(self.second.len()).max(1)
    }

    /// What an operation of a phase does.
    pub fn of_phase(info: &PhaseInfo, plan: &MetaPlan, who: ItemOwner) -> Calls {
        let once = || {
            let parts = timed(info.op).iter();
            parts.map(|call| Part::once(*call)).collect()
        };
        let opened = |flags, parts, length: u64, data: u64| Calls {
            opens: Some(flags),
            timed: parts,
            second: Vec::new(),
            length,
            data,
        };
        let into = |data| Calls {
            timed: once(),
            length: data,
            data,
            ..Calls::default()
        };
        match info.op {
            OpKind::Create | OpKind::WriteFile => creating(info, plan, who),
            OpKind::ReadFile => Calls::reading(OpenFlags::READ.directly(plan.direct), plan.read.0),
            OpKind::List => into(ENTRIES),
            OpKind::Readlink => into(TARGET),
            OpKind::Getattr | OpKind::Statfs | OpKind::Removexattr => {
                opened(OpenFlags::READ, once(), 0, 0)
            }
            OpKind::Truncate => {
                // What was written stays.
                let length = plan.write.0.saturating_add(LONGER);
                let parts = vec![Part::once(Call::Truncate(length))];
                opened(OpenFlags::WRITE_EXISTING, parts, 0, 0)
            }
            OpKind::Setxattr => {
                let names = match info.kind {
                    PhaseKind::FileSetxattr9 => &ATTRIBUTES[1..],
                    _ => &ATTRIBUTES[..1],
                };
                let set = |name: &&'static std::ffi::CStr| Part::once(Call::Setxattr(name));
                let bytes = VALUE as u64;
                opened(
                    OpenFlags::READ,
                    names.iter().map(set).collect(),
                    bytes,
                    bytes,
                )
            }
            OpKind::Getxattr => {
                // A longer value is seen to be another.
                let room = VALUE as u64 + 1;
                opened(OpenFlags::READ, once(), room, room)
            }
            OpKind::Listxattr => opened(OpenFlags::READ, once(), LIST, LIST),
            OpKind::WriteSync => {
                let bytes = info.kind.builds();
                let offsets = (0..bytes).step_by(SYNCED_WRITE as usize);
                let parts = offsets.flat_map(|at| [Call::WriteAt(at), Call::Fsync].map(Part::once));
                opened(
                    OpenFlags::WRITE_EXISTING,
                    parts.collect(),
                    SYNCED_WRITE,
                    bytes,
                )
            }
            OpKind::Read => {
                let (bytes, call) = (info.kind.builds(), Call::ReadAt(0));
                let all = Part {
                    call,
                    times: Times::Whole,
                };
                opened(OpenFlags::READ, vec![all], bytes, bytes)
            }
            _ => Calls {
                timed: once(),
                ..Calls::default()
            },
        }
    }
}

/// Making files and writing them, or writing those that another rank has made.
fn creating(info: &PhaseInfo, plan: &MetaPlan, who: ItemOwner) -> Calls {
    let of_existing = info.op == OpKind::WriteFile;
    // What one rank makes for all is written by its owners afterwards.
    let writes = of_existing || !matches!(who, ItemOwner::FirstForAll);
    let length = if writes { plan.write.0 } else { 0 };
    let flags = match plan.making {
        _ if of_existing => OpenFlags::WRITE_EXISTING,
        Making::New => OpenFlags::CREATE_NEW,
        Making::Open => OpenFlags::READ_WRITE,
        Making::Node => return Calls::of(Call::Mknod),
    };
    let open = Part::once(Call::Open(flags.directly(plan.direct)));
    let close = Part::once(Call::Close);
    if plan.is_table() {
        return Calls {
            timed: vec![open],
            second: vec![close],
            ..Calls::default()
        };
    }
    let write = (length > 0).then_some(Part::once(Call::Write));
    let sync = (plan.fsync && writes).then_some(Part::once(Call::Fsync));
    let parts = [Some(open), write, sync, Some(close)];
    Calls {
        timed: parts.into_iter().flatten().collect(),
        length,
        data: length,
        ..Calls::default()
    }
}
