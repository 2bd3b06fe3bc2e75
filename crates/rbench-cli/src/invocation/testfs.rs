//! The built-in file system, and recording through a mount.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use rbench_core::{Bytes, Nanos};

/// `rbench testfs`
#[derive(Debug, Clone, PartialEq, Default, Args)]
#[command(
    after_help = "A fault is KIND:ACTION@TRIGGER. KIND is a FUSE request (read, write, create, fsync …).\n\
    ACTION is an error (EIO, ENOSPC, EINTR, ESTALE …), stall=TIME, hang (until SIGUSR2), die (the mount\n\
    then answers ENOTCONN); for read and write also short, flip, zero, misdirect; for read stale; for\n\
    write lost. TRIGGER is nth=N, after=N or p=PROBABILITY.\n\nSIGINT, SIGTERM and SIGHUP unmount it; \
    SIGUSR1 writes the statistics, SIGUSR2 releases requests\nthat hang, SIGPWR cuts the power \
    (--power-cut).\n\nExamples:\n  rbench testfs /mnt/test --memory 1g --latency create=2ms,read=100us \\\n    \
    --attr-timeout 0 --entry-timeout 0 --stats stats.json\n  rbench testfs /mnt/test --direct-io --fault \
    read:flip@p=0.001 --fault write:ENOSPC@nth=100 \\\n    --fault-log faults.jsonl"
)]
pub struct Testfs {
    /// Empty directory to mount on, or the directory of --passthrough itself
    pub mountpoint: PathBuf,
    /// Keep data in memory, at most this much [default: a quarter of the
    /// available memory]
    #[arg(long, value_name = "SIZE", conflicts_with = "passthrough")]
    pub memory: Option<Bytes>,
    /// Serve this directory instead of memory
    #[arg(long, value_name = "DIR")]
    pub passthrough: Option<PathBuf>,
    /// Minimum time from a request's arrival to its reply, by kind of request [default:
    /// none]
    ///
    /// Example: create=2ms,read=100us. Kinds: lookup, getattr, setattr, mknod, create,
    /// symlink, readlink, access, setxattr, statfs …; all=TIME applies to every other kind.
    #[arg(long, value_name = "LIST")]
    pub latency: Option<String>,
    /// Inject a fault, such as read:stall=500ms@nth=100 or write:EIO@p=0.01
    /// (see below); may be repeated
    #[arg(id = "fault", long = "fault", value_name = "FAULT")]
    pub faults: Vec<String>,
    /// Write a line of JSON to this file for each fault that fires
    #[arg(long, value_name = "FILE")]
    pub fault_log: Option<PathBuf>,
    /// Break a promise that rbench check tests, such as rename-loses-target; may be
    /// repeated
    ///
    /// An unknown name prints the list.
    #[arg(long, value_name = "PROMISE", conflicts_with = "passthrough")]
    pub broken: Vec<String>,
    /// Let other users access the mount; the kernel then checks permissions
    #[arg(long)]
    pub allow_other: bool,
    /// Size of the in-memory file system, counted in blocks of 4 KiB; writes beyond it fail
    /// with ENOSPC
    #[arg(long, value_name = "SIZE", conflicts_with = "passthrough")]
    pub quota: Option<Bytes>,
    /// Bypass the page cache, so that each read and write reaches the file
    /// system; read:short implies it
    #[arg(long)]
    pub direct_io: bool,
    /// Track which data is synced, so that SIGPWR can drop the rest
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "passthrough")]
    pub power_cut: Option<PowerCut>,
    /// How long the kernel may cache attributes; 0: not at all [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub attr_timeout: Option<Nanos>,
    /// How long the kernel may cache names; 0: not at all [default: 1s]
    #[arg(long, value_name = "TIME")]
    pub entry_timeout: Option<Nanos>,
    /// Threads that serve requests [default: number of CPUs, at least 4]
    #[arg(long, value_name = "N")]
    pub threads: Option<u32>,
    /// Serve at most N requests with a --latency at a time [default: no limit]
    ///
    /// Further requests wait, so that at most N / latency requests complete per second.
    #[arg(long, value_name = "N")]
    pub servers: Option<u32>,
    /// Write counts and times of requests to this file at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    pub stats: Option<PathBuf>,
    /// Let the kernel keep a file's pages when the file is opened again
    #[arg(long)]
    pub keep_cache: bool,
    /// Provide a file .stats with request counts in the root directory, like JuiceFS: off,
    /// silent, counted [default: silent]
    ///
    /// With silent, reading that file is not counted.
    #[arg(long, value_name = "HOW")]
    pub stats_file: Option<String>,
    /// Seed of the faults: affected requests, affected bytes, surviving data
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// End when standard input ends; print "ready" on standard output
    #[arg(long, hide = true)]
    pub watch_parent: bool,
    /// Remove the mount point after unmounting
    #[arg(long, hide = true)]
    pub remove_mountpoint: bool,
}

/// The fate of unsynced data when the power of the built-in file system is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PowerCut {
    /// None of it survives
    Drop,
    /// Each change survives, is lost or is torn, at random by --seed
    Tear,
}

/// `rbench record`
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(
    after_help = "DIR is mounted at MOUNTPOINT. Every request is passed on to it and recorded, including the \
    data written. The program has the same standard streams and working directory as rbench; the trace has its \
    operations below MOUNTPOINT. When the program ends, MOUNTPOINT is unmounted, and rbench exits with the \
    program's exit code. docs/reference/replay.md describes the format of the trace.\n\nExample:\n  mkdir \
    data mnt\n  rbench record data mnt --trace clone.trace -- git clone /srv/repo mnt/repo\n  rbench replay clone.trace --dir \
    /mnt/fs"
)]
pub struct Record {
    /// Directory with the files
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Empty directory to mount it on
    pub mountpoint: PathBuf,
    /// Trace file to write, which must not exist [default: rbench.trace]
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Program and its arguments, after --
    #[arg(value_name = "CMD", required = true, last = true)]
    pub command: Vec<OsString>,
}
