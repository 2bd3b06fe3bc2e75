//! The FUSE side of a back end: receives requests, passes them to the back end, and replies
//! when it is due. It counts and times each request.
//!
//! An operation is done when its request arrives; injected latency delays the reply. Every
//! request is recorded just before its reply is sent, and the faults that fired for it before
//! that.

mod data;
mod requests;
mod stats_file;

use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use fuser::{
    FileAttr, FileHandle, FopenFlags, Generation, INodeNo, InitFlags, ReplyAttr, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyXattr, Request,
};
use nix::errno::Errno;
use rbench_core::request::What;
use rbench_core::{Clock, MonotonicClock, Nanos};

use self::stats_file::OwnFile;
use crate::broken::BrokenPromise;
use crate::config::Config;
use crate::control::Control;
use crate::delay::DelayQueue;
use crate::fault::Action;
use crate::fault::log::{Damage, FaultRecord};
use crate::fault::table::{Hit, QUOTA};
use crate::hang::Release;
use crate::kind::Kind;
use crate::observed::Reported;
use crate::paths::Paths;
use crate::servers::Servers;
use crate::stats::Stats;
use crate::store::{Answer, Caller, Place, Store};

/// The largest write, and so the largest read, of one request.
const MAX_WRITE: u32 = 1 << 20;

/// Most requests that the kernel may have in flight without a waiting caller: read-ahead,
/// asynchronous direct I/O, releases.
const MAX_BACKGROUND: u16 = 512;

/// Inode numbers are never used twice, so one generation is enough.
const GENERATION: Generation = Generation(0);

/// A back end that serves the kernel.
pub(crate) struct Service<S> {
    store: Arc<S>,
    config: Config,
    control: Arc<Control>,
    delays: DelayQueue,
    servers: Option<Servers>,
    /// Paths of inodes, if the fault log needs them.
    paths: Option<Paths>,
    /// The file with the statistics.
    own_file: Option<OwnFile>,
}

/// A request that is being served.
struct Ticket {
    kind: Kind,
    arrival: Nanos,
    /// Time from the arrival to the reply.
    hold: Nanos,
    /// The injected error.
    error: Option<Errno>,
    /// True if the reply waits to be released.
    hangs: bool,
    /// Faults that damage data. `short`, if present, comes first; of the others, the first
    /// one that finds data to damage is applied.
    harm: Vec<Hit>,
}

impl Ticket {
    /// Creates the ticket of a request that has just arrived, without faults.
    #[inline]
    fn new(kind: Kind, hold: Nanos) -> Ticket {
        Ticket {
            kind,
            arrival: MonotonicClock.now(),
            hold,
            error: None,
            hangs: false,
            harm: Vec::new(),
        }
    }

    /// The outcome of `act`, unless an injected error replaces it.
    #[inline]
    fn run<T>(&self, act: impl FnOnce() -> Answer<T>) -> Answer<T> {
        match self.error {
            Some(error) => Err(error),
            None => act(),
        }
    }
}

/// Subject of a request, for the fault log.
#[derive(Clone, Copy)]
enum Subject<'a> {
    Inode(u64),
    Name(Place<'a>),
    /// Of an inode, with offset and length in bytes.
    Range(u64, u64, u64),
}

impl From<INodeNo> for Subject<'_> {
    fn from(ino: INodeNo) -> Self {
        Subject::Inode(ino.0)
    }
}

impl<'a> From<Place<'a>> for Subject<'a> {
    fn from(place: Place<'a>) -> Self {
        Subject::Name(place)
    }
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

/// A reply that can be an error.
trait Refuse {
    fn refuse(self, error: Errno);
}

macro_rules! refuse {
    ($($reply:ident)*) => {
        $(impl Refuse for fuser::$reply {
            fn refuse(self, error: Errno) {
                self.error(fuser::Errno::from_i32(error as i32));
            }
        })*
    };
}

refuse! {
    ReplyAttr ReplyCreate ReplyData ReplyDirectory ReplyDirectoryPlus ReplyEmpty ReplyEntry ReplyIoctl
    ReplyLseek ReplyOpen ReplyPoll ReplyStatfs ReplyWrite ReplyXattr
}

/// Sends an outcome: `done` replies with its value.
fn send<R: Refuse, T>(reply: R, done: impl FnOnce(R, T)) -> impl FnOnce(Answer<T>) {
    move |outcome| match outcome {
        Ok(value) => done(reply, value),
        Err(error) => reply.refuse(error),
    }
}

fn send_empty(reply: ReplyEmpty) -> impl FnOnce(Answer<()>) {
    send(reply, |reply, ()| reply.ok())
}

fn send_open(reply: ReplyOpen, how: FopenFlags) -> impl FnOnce(Answer<u64>) {
    send(reply, move |reply, handle| {
        reply.opened(FileHandle(handle), how)
    })
}

/// Checks that the caller has room for `value`; with a `size` of 0 it only wants the length.
fn fitting(value: Vec<u8>, size: u32) -> Answer<Vec<u8>> {
    if size != 0 && value.len() > size as usize {
        return Err(Errno::ERANGE);
    }
    Ok(value)
}

fn send_xattr(reply: ReplyXattr, size: u32) -> impl FnOnce(Answer<Vec<u8>>) {
    send(reply, move |reply, value: Vec<u8>| match size {
        0 => reply.size(value.len() as u32),
        _ => reply.data(&value),
    })
}

impl<S: Store> Service<S> {
    pub(crate) fn new(
        store: Arc<S>,
        config: Config,
        control: Arc<Control>,
        delays: DelayQueue,
    ) -> Self {
        let accounts = !config.faults.is_empty() || config.quota.is_some();
        Service {
            store,
            control,
            delays,
            servers: config.servers.map(Servers::new),
            paths: accounts.then(Paths::default),
            own_file: OwnFile::new(config.stats_file),
            config,
        }
    }

    fn stats(&self) -> &Stats {
        &self.control.stats
    }

    /// Records the arrival of a request, and selects its faults.
    #[inline]
    fn admit<'a>(&self, kind: Kind, subject: impl Into<Subject<'a>>) -> Ticket {
        let mut ticket = Ticket::new(kind, self.config.latency.get(kind));
        let hits = self.stats().faults().judge(kind);
        if !hits.is_empty() {
            self.sentence(&mut ticket, subject.into(), hits);
        }
        ticket
    }

    /// Sets the effects of `hits` on `ticket`.
    fn sentence(&self, ticket: &mut Ticket, subject: Subject<'_>, hits: Vec<Hit>) {
        if let Some(hit) = hits.iter().find(|hit| hit.action == Action::Die) {
            self.fire(*hit, subject, Vec::new());
            // If the kernel refuses, this request alone gets an error.
            let died = self.control.die();
            let refused = |error: std::io::Error| error.raw_os_error().unwrap_or(libc::EIO);
            ticket.error = Some(match died {
                Ok(()) => Errno::ECONNABORTED,
                Err(error) => Errno::from_raw(refused(error)),
            });
            return;
        }
        for hit in hits {
            match hit.action {
                Action::Stall(time) => ticket.hold.0 = ticket.hold.0.saturating_add(time.0),
                Action::Hang => ticket.hangs = true,
                Action::Fail(errno) if ticket.error.is_none() => ticket.error = Some(errno),
                // One error is enough.
                Action::Fail(_) => continue,
                _ => {
                    ticket.harm.push(hit);
                    continue;
                }
            }
            self.fire(hit, subject, Vec::new());
        }
        ticket.harm.sort_by_key(|hit| hit.action != Action::Short);
    }

    /// Records that `hit` fired.
    fn fire(&self, hit: Hit, subject: Subject<'_>, damage: Vec<Damage>) {
        let record = self.record_of(subject, damage);
        self.stats().faults().fire(hit, record);
    }

    /// Records that the quota refused to write `rest`.
    fn refuse(&self, kind: Kind, action: &str, subject: Subject<'_>, rest: Damage) {
        let record = FaultRecord {
            kind: kind.name().to_owned(),
            action: action.to_owned(),
            ..self.record_of(subject, vec![rest])
        };
        self.stats().faults().happened(QUOTA, record);
    }

    fn record_of(&self, subject: Subject<'_>, damage: Vec<Damage>) -> FaultRecord {
        let (path, range) = match (subject, &self.paths) {
            (Subject::Name(place), Some(paths)) => {
                (paths.path_of(place).display().to_string(), None)
            }
            (Subject::Name(place), None) => (place.name.display().to_string(), None),
            (Subject::Inode(ino), _) => (self.path(ino), None),
            (Subject::Range(ino, offset, length), _) => (self.path(ino), Some((offset, length))),
        };
        let (offset, length) = range.unzip();
        FaultRecord {
            path,
            offset,
            length,
            damage,
            ..FaultRecord::default()
        }
    }

    fn path(&self, ino: u64) -> String {
        let paths = self.paths.as_ref();
        let path = paths.map(|paths| paths.path(ino));
        path.map_or("?".to_owned(), |path| path.display().to_string())
    }

    /// Records that the new inode is at `place`.
    fn named(&self, place: Place<'_>, made: Answer<FileAttr>) -> Answer<FileAttr> {
        if let (Some(paths), Ok(attr)) = (&self.paths, &made) {
            paths.note(place, attr.ino.0, attr.kind);
        }
        made
    }

    /// Records that `place` no longer exists, if it was `removed`.
    fn unnamed(&self, place: Place<'_>, removed: Answer<()>) -> Answer<()> {
        if let (Some(paths), Ok(())) = (&self.paths, removed) {
            paths.removed(place);
        }
        removed
    }

    fn record(stats: &Stats, ticket: &Ticket, bytes: u64, failed: bool) {
        let took = MonotonicClock.now().since(ticket.arrival);
        stats.record(ticket.kind, failed, bytes, took);
    }

    /// Records and replies: at once, when it is due, or when it is released.
    #[inline]
    fn finish<T: Send + 'static>(
        &self,
        ticket: Ticket,
        bytes: u64,
        outcome: Answer<T>,
        send: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let failed = outcome.is_err();
        if ticket.hold == Nanos(0) && !ticket.hangs {
            Self::record(self.stats(), &ticket, bytes, failed);
            return send(outcome);
        }
        let stats = Arc::clone(&self.control.stats);
        if ticket.hangs {
            return self.control.hangs.hold(move |release| {
                let (bytes, outcome) = match release {
                    Release::Reply => (bytes, outcome),
                    Release::Ended => (0, Err(Errno::ECONNABORTED)),
                };
                Self::record(&stats, &ticket, bytes, outcome.is_err());
                send(outcome);
            });
        }
        let due = match &self.servers {
            Some(servers) => servers.answered(ticket.arrival, ticket.hold),
            None => Nanos(ticket.arrival.0.saturating_add(ticket.hold.0)),
        };
        self.delays.push(due, move || {
            Self::record(&stats, &ticket, bytes, failed);
            send(outcome);
        });
    }

    /// Serves a request about `subject` with `operation`, unless an injected error replaces
    /// it.
    #[inline]
    fn serve<'a, T: Send + 'static>(
        &self,
        kind: Kind,
        subject: impl Into<Subject<'a>>,
        operation: impl FnOnce(&S) -> Answer<T>,
        send: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let ticket = self.admit(kind, subject);
        let outcome = ticket.run(|| operation(&self.store));
        self.finish(ticket, 0, outcome, send);
    }

    /// Runs `act` of the back end, and reports the request if somebody observes.
    fn report<T: Reported>(
        &self,
        request: &Request,
        act: impl FnOnce() -> Answer<T>,
        what: impl FnOnce(Option<&T>) -> What,
    ) -> Answer<T> {
        match &self.config.observer {
            Some(observer) => observer.report(request, act, what),
            None => act(),
        }
    }

    /// Like [`Service::serve`], and reports the request.
    #[inline]
    fn serve_reported<'a, T: Reported + Send + 'static>(
        &self,
        request: &Request,
        (kind, subject): (Kind, impl Into<Subject<'a>>),
        operation: impl FnOnce(&S) -> Answer<T>,
        what: impl FnOnce(Option<&T>) -> What,
        send: impl FnOnce(Answer<T>) + Send + 'static,
    ) {
        let reported = |s: &S| self.report(request, || operation(s), what);
        self.serve(kind, subject, reported, send);
    }

    /// Serves the release of a handle. An injected error must not prevent it, as the kernel
    /// does not repeat it.
    fn serve_release(
        &self,
        request: &Request,
        (kind, ino, handle): (Kind, INodeNo, FileHandle),
        operation: impl FnOnce(&S) -> Answer<()>,
        reply: ReplyEmpty,
    ) {
        let ticket = self.admit(kind, ino);
        let what = |_: Option<&()>| What::Release(ino.0, Some(handle.0));
        let outcome = self.report(request, || operation(&self.store), what);
        let outcome = ticket.error.map_or(outcome, Err);
        self.finish(ticket, 0, outcome, send_empty(reply));
    }

    /// Open flags of the reply: bypass the page cache if requested, and then allow parallel
    /// writes.
    fn open_how(&self, flags: i32) -> FopenFlags {
        if self.config.bypasses_page_cache() || flags & libc::O_DIRECT != 0 {
            FopenFlags::FOPEN_DIRECT_IO | FopenFlags::FOPEN_PARALLEL_DIRECT_WRITES
        } else if self.config.keep_cache {
            FopenFlags::FOPEN_KEEP_CACHE
        } else {
            FopenFlags::empty()
        }
    }

    /// The file with the statistics, if `ino` is it.
    #[inline]
    fn own_file(&self, ino: INodeNo) -> Option<&OwnFile> {
        self.own_file.as_ref().filter(|file| file.is(ino.0))
    }

    /// Serves a request about the file with the statistics, at once and without faults.
    fn serve_own<T: Send + 'static>(
        &self,
        file: &OwnFile,
        kind: Kind,
        outcome: Answer<T>,
        send: impl FnOnce(Answer<T>),
    ) {
        if file.counted {
            let ticket = Ticket::new(kind, Nanos(0));
            Self::record(self.stats(), &ticket, 0, outcome.is_err());
        }
        send(outcome);
    }

    fn send_entry(&self, reply: ReplyEntry) -> impl FnOnce(Answer<FileAttr>) + use<S> {
        let [attr_ttl, entry_ttl] = self.ttls();
        send(reply, move |reply, attr| {
            reply.entry_with_ttls(&attr_ttl, &entry_ttl, &attr, GENERATION);
        })
    }

    fn send_attr(&self, reply: ReplyAttr) -> impl FnOnce(Answer<FileAttr>) + use<S> {
        let [ttl, _] = self.ttls();
        send(reply, move |reply, attr| reply.attr(&ttl, &attr))
    }

    /// The lifetimes of attributes and of names in a reply.
    fn ttls(&self) -> [Duration; 2] {
        [self.config.attr_timeout, self.config.entry_timeout].map(Duration::from)
    }

    /// The lifetime in a reply with a single one for name and attributes.
    fn common_ttl(&self) -> Duration {
        let [attr_ttl, entry_ttl] = self.ttls();
        attr_ttl.min(entry_ttl)
    }
}

/// The features that the kernel is asked to use if it can. It handles locks itself, unless
/// these promises are broken: then every lock is granted.
fn capabilities(cached: bool, broken: &[BrokenPromise]) -> InitFlags {
    let mut always = InitFlags::FUSE_PARALLEL_DIROPS
        | InitFlags::FUSE_ASYNC_DIO
        | InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP
        | InitFlags::FUSE_ATOMIC_O_TRUNC
        // Without it, every write requests the attribute security.capability.
        | InitFlags::FUSE_HANDLE_KILLPRIV_V2;
    let breaks = |promise| broken.contains(&promise);
    always.set(
        InitFlags::FUSE_FLOCK_LOCKS,
        breaks(BrokenPromise::FlockTwice),
    );
    always.set(
        InitFlags::FUSE_POSIX_LOCKS,
        breaks(BrokenPromise::LockTwice),
    );
    // Attributes in a listing are only useful if they may be kept. They are left out of a wrong
    // listing, which would not be noticed with them.
    let listing = InitFlags::FUSE_DO_READDIRPLUS | InitFlags::FUSE_READDIRPLUS_AUTO;
    match cached && !broken.iter().any(|promise| promise.is_of_listings()) {
        true => always | listing,
        false => always,
    }
}
