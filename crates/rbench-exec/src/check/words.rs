//! Verdicts and what they rest on, as ranks tell them to each other.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use nix::errno::Errno;
use rbench_core::wire::{Reader, Writer};
use rbench_sys::WorkDir;
use rbench_sys::promises::{Evidence, Verdict};

/// Appends a verdict to a message.
pub(crate) fn write(w: &mut Writer, verdict: &Verdict) {
    let (kind, evidence) = match verdict {
        Verdict::Holds(note) => {
            w.number(0).text(note);
            return;
        }
        Verdict::LeftOut(why) => {
            w.number(1).text(why);
            return;
        }
        Verdict::Broken(evidence) => (2, evidence),
        Verdict::Unsupported(evidence) => (3, evidence),
        Verdict::Undecided(evidence) => (4, evidence),
    };
    w.number(kind);
    write_evidence(w, evidence);
}

/// The next verdict of a message; `None` when it did not arrive whole.
pub(crate) fn read(r: &mut Reader<'_>) -> Option<Verdict> {
    Some(match r.number()? {
        0 => Verdict::Holds(r.text()?),
        1 => Verdict::LeftOut(r.text()?),
        2 => Verdict::Broken(read_evidence(r)?),
        3 => Verdict::Unsupported(read_evidence(r)?),
        _ => Verdict::Undecided(read_evidence(r)?),
    })
}

/// Appends evidence to a message.
pub(super) fn write_evidence(w: &mut Writer, evidence: &Evidence) {
    let Evidence {
        expected,
        seen,
        call,
        errno,
        path,
    } = evidence;
    w.text(expected).text(seen).text(call);
    w.number(errno.map_or(0, |errno| errno as i32) as u64);
    w.bytes(WorkDir::named(path).as_os_str().as_bytes());
}

/// The next evidence of a message; `None` when it did not arrive whole.
pub(super) fn read_evidence(r: &mut Reader<'_>) -> Option<Evidence> {
    let (expected, seen, call) = (r.text()?, r.text()?, r.text()?);
    let errno = Some(r.number()?).filter(|errno| *errno != 0);
    Some(Evidence {
        expected,
        seen,
        call,
        errno: errno.map(|errno| Errno::from_raw(errno as i32)),
        path: PathBuf::from(OsString::from_vec(r.bytes()?.to_vec())),
    })
}
