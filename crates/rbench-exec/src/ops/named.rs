//! Calls that take a name and nothing else: finding it, changing its permissions or
//! times, asking whether it may be read.

use std::ffi::CStr;
use std::marker::PhantomData;

use nix::errno::Errno;
use rbench_core::{FailureKind, OpKind};
use rbench_plan::meta::PhaseKind;
use rbench_sys::Fs;
use rbench_sys::engine::{NameRequest, NamesInFlight};

use super::in_flight::{RingOp, Script};
use super::{ItemOp, OpContext, OpEntry, Places};
use crate::worker::Prepared;

/// `statx`
pub const LOOKUP_ROW: OpEntry = OpEntry {
    op: OpKind::Lookup,
    make: |scene, thread| scene.ring_runner(named::<Lookup>(scene), thread),
};
/// `fchmodat`
pub const CHMOD_ROW: OpEntry = entry::<Chmod>();
/// `utimensat`
pub const UTIMES_ROW: OpEntry = entry::<Utimes>();
/// `faccessat`
pub const ACCESS_ROW: OpEntry = entry::<Access>();

const fn entry<C: NameCall + 'static>() -> OpEntry {
    OpEntry {
        op: C::OP,
        make: make::<C>,
    }
}

fn make<C: NameCall + 'static>(scene: &OpContext, thread: u32) -> Prepared {
    scene.runner(named::<C>(scene), thread)
}

fn named<C>(scene: &OpContext) -> Named<C> {
    Named {
        places: match (scene.info.kind, scene.renamed) {
            // The way down that `fill` has made.
            (PhaseKind::DirResolve, false) => scene.suffixed("/a/b/c/d"),
            (PhaseKind::DirResolve, true) => scene.suffixed(".r/a/b/c/d"),
            (_, renamed) => scene.places(renamed),
        },
        call: PhantomData,
    }
}

/// A call on a name.
trait NameCall {
    const OP: OpKind;

    fn call(fs: &dyn Fs, path: &CStr) -> Result<(), Errno>;
}

struct Lookup;

impl NameCall for Lookup {
    const OP: OpKind = OpKind::Lookup;

    fn call(fs: &dyn Fs, path: &CStr) -> Result<(), Errno> {
        fs.lookup(path).map(drop)
    }
}

/// Permissions that no file is made with.
const MODE: u32 = 0o600;

struct Chmod;

impl NameCall for Chmod {
    const OP: OpKind = OpKind::Chmod;

    fn call(fs: &dyn Fs, path: &CStr) -> Result<(), Errno> {
        fs.chmod(path, MODE)
    }
}

/// A time long before any run, in s since 1970.
const TIME: i64 = 1_000_000_000;

struct Utimes;

impl NameCall for Utimes {
    const OP: OpKind = OpKind::Utimes;

    fn call(fs: &dyn Fs, path: &CStr) -> Result<(), Errno> {
        fs.utimes(path, TIME)
    }
}

struct Access;

impl NameCall for Access {
    const OP: OpKind = OpKind::Access;

    fn call(fs: &dyn Fs, path: &CStr) -> Result<(), Errno> {
        fs.access(path)
    }
}

struct Named<C> {
    places: Places,
    call: PhantomData<C>,
}

impl<C: NameCall> ItemOp for Named<C> {
    fn prepare(&mut self, index: u64) {
        self.places.item(index);
    }

    fn act(&mut self, fs: &dyn Fs) -> Result<u64, FailureKind> {
        C::call(fs, self.places.current())?;
        Ok(0)
    }

    fn path(&mut self) -> String {
        self.places.to_text()
    }

    fn op(&self) -> OpKind {
        C::OP
    }
}

impl RingOp for Named<Lookup> {
    fn script(&self) -> Script {
        Script::of(&[NameRequest::Stat], 0)
    }

    fn load(&mut self, index: u64, slot: usize, ring: &mut NamesInFlight) {
        self.prepare(index);
        ring.set_path(slot, self.places.current());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_way_down_is_the_one_that_the_plan_makes() {
        let lowest = rbench_plan::meta::STEPS_DOWN.last();
        assert_eq!(lowest, Some(&"/a/b/c/d"));
        assert_eq!(format!("{}/a/b/c/d", super::super::RENAMED), ".r/a/b/c/d");
    }
}
