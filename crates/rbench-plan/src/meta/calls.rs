//! System calls of a phase's operation: the timed ones, the untimed ones around them, and their data.

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

/// System calls of an operation on one item, and its data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// Flags of the untimed open before the operation; `None` if it needs no open file.
    pub opens: Option<OpenFlags>,
    /// The timed calls.
    pub timed: Vec<Part>,
    /// A second step, timed on its own.
    pub second: Vec<Part>,
    /// Bytes of each read and write.
    pub length: u64,
    /// Bytes of data of an item.
    pub data: u64,
}

impl Calls {
    /// A single call without data.
    pub fn of(call: Call) -> Calls {
        Calls {
            timed: vec![Part::once(call)],
            ..Calls::default()
        }
    }

    /// Opens a file, reads `bytes` in one call, if that is not 0, and closes it.
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

    /// The call of an operation that is a single call on a name, without data and open file.
    pub fn only_name(&self) -> Option<Call> {
        match *self.timed {
            [part] if self.data == 0 && self.opens.is_none() && part.times == Times::Once => {
                Some(part.call).filter(|call| !matches!(call, Call::Open(_)) && !call.needs_open())
            }
            _ => None,
        }
    }

    /// Number of calls of the longest step.
    pub fn longest(&self) -> usize {
        self.timed.len().max(self.second.len()).max(1)
    }

    /// Calls of a phase's operation.
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
                // Longer than any written data, which therefore stays.
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
                // One byte more than the value, so that a longer one is noticed.
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

/// Creates files and writes them, or writes files that another rank created.
fn creating(info: &PhaseInfo, plan: &MetaPlan, who: ItemOwner) -> Calls {
    let of_existing = info.op == OpKind::WriteFile;
    // Files that one rank creates for all are written by their owners later.
    let writes = (of_existing || !matches!(who, ItemOwner::FirstForAll)) && !plan.is_table();
    let length = if writes { plan.write.0 } else { 0 };
    let flags = match plan.making {
        _ if of_existing => OpenFlags::WRITE_EXISTING,
        Making::New => OpenFlags::CREATE_NEW,
        Making::Open => OpenFlags::READ_WRITE,
        Making::Node => return Calls::of(Call::Mknod),
    };
    let call = |call: &Call| match *call {
        Call::Open(_) => Some(Call::Open(flags.directly(plan.direct))),
        Call::Write if length == 0 => None,
        Call::Fsync if !(plan.fsync && writes) => None,
        other => Some(other),
    };
    let mut timed: Vec<Part> = timed(info.op)
        .iter()
        .filter_map(call)
        .map(Part::once)
        .collect();
    if plan.is_table() {
        let second = timed.split_off(timed.len().saturating_sub(1));
        return Calls {
            timed,
            second,
            ..Calls::default()
        };
    }
    Calls {
        timed,
        length,
        data: length,
        ..Calls::default()
    }
}
