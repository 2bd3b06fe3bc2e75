//! System calls of a phase's operation: the timed calls, the untimed ones around them, and
//! their data.

use rbench_core::{Call, OpKind, OpenFlags, Part, Times};

use super::{ItemOwner, Making, MetaPlan, PhaseInfo};

/// System calls of an operation on one item, and its data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Calls {
    /// Flags of the untimed open before the operation; `None` if it needs no open file.
    pub opens: Option<OpenFlags>,
    /// The timed calls.
    pub timed: Vec<Part>,
    /// A second step, timed separately.
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

    /// Opens a file, reads `bytes` in one call unless that is 0, and closes it.
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

    /// The call of an operation that consists of a single call on a name, without data and
    /// open file.
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
        match info.op {
            OpKind::Create | OpKind::WriteFile => return creating(info, plan, who),
            OpKind::ReadFile => {
                return Calls::reading(OpenFlags::READ.directly(plan.direct), plan.read.0);
            }
            _ => {}
        }
        let part = |call: &Call| match *call {
            call @ Call::ReadAt(_) => Part {
                call,
                times: Times::Whole,
            },
            call => Part::once(call.beyond(plan.write.0)),
        };
        Calls {
            opens: info.opens,
            timed: info.timed.iter().map(part).collect(),
            second: Vec::new(),
            length: info.length,
            data: info.length.max(info.builds),
        }
    }
}

/// Creates files and writes them, or writes files that another rank created.
fn creating(info: &PhaseInfo, plan: &MetaPlan, who: ItemOwner) -> Calls {
    let of_existing = info.op == OpKind::WriteFile;
    // Files that one rank creates for all are written later by their owners.
    let writes = (of_existing || !matches!(who, ItemOwner::FirstForAll)) && !plan.is_table();
    let length = if writes { plan.write.0 } else { 0 };
    let flags = match plan.making {
        _ if of_existing => OpenFlags::WRITE_EXISTING,
        Making::New => OpenFlags::CREATE_NEW,
        Making::Open => OpenFlags::READ_WRITE,
        Making::Node => return Calls::of(Call::MKNOD),
    };
    let call = |call: &Call| match *call {
        Call::Open(_) => Some(Call::Open(flags.directly(plan.direct))),
        Call::Write if length == 0 => None,
        Call::Fsync if !(plan.fsync && writes) => None,
        other => Some(other),
    };
    let mut timed: Vec<Part> = info.timed.iter().filter_map(call).map(Part::once).collect();
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
