//! The FUSE side of a back end: takes requests, has them done, and replies
//! when it is time to, counting and timing each one.
//!
//! An operation is done when its request arrives; injected latency holds the
//! reply. Every request is recorded just before its reply is sent.

mod requests;

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileAttr, FileHandle, FopenFlags, Generation, INodeNo, InitFlags, ReplyAttr, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyXattr, Request,
};
use nix::errno::Errno;
use rbench_core::{Clock, MonotonicClock, Nanos};

use crate::config::{Config, Latencies};
use crate::delay::DelayQueue;
use crate::kind::Kind;
use crate::stats::{Record, Stats};
use crate::store::{Answer, Caller, Place, Store};

/// The largest write (and, with it, read) that is asked for in one request.
const MAX_WRITE: u32 = 1 << 20;

/// Requests that the kernel may have under way without a caller waiting:
/// readahead, asynchronous direct I/O, releases.
const MAX_BACKGROUND: u16 = 512;

/// Inode numbers are never used twice, so one generation is enough.
const GENERATION: Generation = Generation(0);

/// A back end at the service of the kernel.
pub(crate) struct Service<S> {
    store: S,
    latency: Latencies,
    stats: Arc<Stats>,
    delays: DelayQueue,
    attr_ttl: Duration,
    entry_ttl: Duration,
}

/// A request that is being served.
struct Ticket {
    kind: Kind,
    arrival: Nanos,
    /// How long after the arrival the reply is due.
    hold: Nanos,
    /// The injected error.
    error: Option<Errno>,
}

fn caller(request: &Request) -> Caller {
    Caller {
        uid: request.uid(),
        gid: request.gid(),
    }
}

fn place(parent: INodeNo, name: &OsStr) -> Place<'_> {
    Place {
        parent: parent.0,
        name,
    }
}

fn code(error: Errno) -> fuser::Errno {
    fuser::Errno::from_i32(error as i32)
}

/// How a file is opened: around the page cache where the caller wants that,
/// and then with writes side by side.
fn open_how(flags: i32) -> FopenFlags {
    if flags & libc::O_DIRECT != 0 {
        FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
    } else {
        FopenFlags::empty()
    }
}

fn send_empty(reply: ReplyEmpty) -> impl FnOnce(Answer<()>) {
    move |outcome| match outcome {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(code(error)),
    }
}

fn send_open(reply: ReplyOpen, how: FopenFlags) -> impl FnOnce(Answer<u64>) {
    move |outcome| match outcome {
        Ok(handle) => reply.opened(FileHandle(handle), how),
        Err(error) => reply.error(code(error)),
    }
}

/// Checks that the caller has room for `value`; with a `size` of 0 it only
/// asks for the length.
fn fitting(value: Vec<u8>, size: u32) -> Answer<Vec<u8>> {
    if size != 0 && value.len() > size as usize {
        return Err(Errno::ERANGE);
    }
    Ok(value)
}

fn send_xattr(reply: ReplyXattr, size: u32) -> impl FnOnce(Answer<Vec<u8>>) {
    move |outcome| match outcome {
        Ok(value) if size == 0 => reply.size(value.len() as u32),
        Ok(value) => reply.data(&value),
        Err(error) => reply.error(code(error)),
    }
}

impl<S: Store> Service<S> {
    pub(crate) fn new(store: S, config: &Config, stats: Arc<Stats>, delays: DelayQueue) -> Self {
        Service {
            store,
            latency: config.latency.clone(),
            stats,
            delays,
            attr_ttl: config.attr_timeout.into(),
            entry_ttl: config.entry_timeout.into(),
        }
    }

    /// Notes the arrival of a request and what the faults have in store.
    #[inline]
    fn admit(&self, kind: Kind) -> Ticket {
        let arrival = MonotonicClock.now();
        let verdict = self.stats.faults().judge(kind);
        Ticket {
            kind,
            arrival,
            hold: Nanos(self.latency.get(kind).0.saturating_add(verdict.stall.0)),
            error: verdict.error,
        }
    }

    fn record(stats: &Stats, ticket: &Ticket, bytes: u64, failed: bool) {
        stats.record(Record {
            kind: ticket.kind,
            failed,
            bytes,
            took: MonotonicClock.now().since(ticket.arrival),
        });
    }

    /// Records and replies, at once or when it is due.
    #[inline]
    fn finish<T: Send + 'static>(
        &self,
        ticket: Ticket,
        bytes: u64,
        outcome: Answer<T>,
        send: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let failed = outcome.is_err();
        if ticket.hold == Nanos(0) {
            Self::record(&self.stats, &ticket, bytes, failed);
            return send(outcome);
        }
        let stats = Arc::clone(&self.stats);
        let due = Nanos(ticket.arrival.0.saturating_add(ticket.hold.0));
        self.delays.push(due, move || {
            Self::record(&stats, &ticket, bytes, failed);
            send(outcome);
        });
    }

    /// Serves a request that `operation` does, unless a fault forbids it.
    #[inline]
    fn serve<T: Send + 'static>(
        &self,
        kind: Kind,
        operation: impl FnOnce(&S) -> Answer<T>,
        send: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let ticket = self.admit(kind);
        let outcome = match ticket.error {
            Some(error) => Err(error),
            None => operation(&self.store),
        };
        self.finish(ticket, 0, outcome, send);
    }

    /// Serves the end of the use of a handle, which an injected error must
    /// not keep from happening: the kernel does not ask again.
    fn serve_release(
        &self,
        kind: Kind,
        operation: impl FnOnce(&S) -> Answer<()>,
        reply: ReplyEmpty,
    ) {
        let ticket = self.admit(kind);
        let outcome = operation(&self.store);
        let outcome = ticket.error.map_or(outcome, Err);
        self.finish(ticket, 0, outcome, send_empty(reply));
    }

    fn send_entry(&self, reply: ReplyEntry) -> impl FnOnce(Answer<FileAttr>) + use<S> {
        let (attr_ttl, entry_ttl) = (self.attr_ttl, self.entry_ttl);
        move |outcome| match outcome {
            Ok(attr) => reply.entry_with_ttls(&attr_ttl, &entry_ttl, &attr, GENERATION),
            Err(error) => reply.error(code(error)),
        }
    }

    fn send_attr(&self, reply: ReplyAttr) -> impl FnOnce(Answer<FileAttr>) + use<S> {
        let ttl = self.attr_ttl;
        move |outcome| match outcome {
            Ok(attr) => reply.attr(&ttl, &attr),
            Err(error) => reply.error(code(error)),
        }
    }

    /// The time for which a reply counts that has one for name and attributes.
    fn common_ttl(&self) -> Duration {
        self.attr_ttl.min(self.entry_ttl)
    }
}

/// What the kernel is asked to do, where it can.
fn capabilities(cached: bool) -> InitFlags {
    let always = InitFlags::FUSE_PARALLEL_DIROPS
        | InitFlags::FUSE_ASYNC_DIO
        | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
        | InitFlags::FUSE_ATOMIC_O_TRUNC
        // Without it, every write asks for the attribute security.capability.
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    // Attributes that come with a listing are of use only if they may be kept.
    let listing = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO;
    if cached { always | listing } else { always }
}
