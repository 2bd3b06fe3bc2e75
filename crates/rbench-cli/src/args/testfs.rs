//! `rbench testfs`

use std::path::PathBuf;

use clap::Args as ClapArgs;
use rbench_core::{Bytes, Nanos};

use crate::{PowerCut, Testfs, values};

#[derive(Debug, ClapArgs)]
#[command(
    after_help = "A fault is KIND:ACTION@TRIGGER. KIND is a FUSE request (read, write, create, fsync …).\n\
    ACTION is an error (EIO, ENOSPC, EINTR, ESTALE …), stall=TIME, hang (until SIGUSR2), die (the mount\n\
    then answers ENOTCONN); for read and write also short, flip, zero, misdirect; for read stale; for\n\
    write lost. TRIGGER is nth=N, after=N or p=PROBABILITY.\n\nSIGINT, SIGTERM and SIGHUP unmount it; \
    SIGUSR1 writes the statistics, SIGUSR2 releases requests\nthat hang, SIGPWR cuts the power \
    (--power-cut).\n\nExamples:\n  rbench testfs /mnt/test --memory 1g --latency create=2ms,read=100us \
    --attr-timeout 0 --entry-timeout 0 --stats stats.json\n  rbench testfs /mnt/test --direct-io --fault \
    read:flip@p=0.001 --fault write:ENOSPC@nth=100 --fault-log faults.jsonl"
)]
pub(super) struct TestfsArgs {
    /// Empty directory to mount on, or the directory of --passthrough itself
    mountpoint: PathBuf,
    /// Keep data in memory, at most this much [default: a quarter of the
    /// available memory]
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, conflicts_with = "passthrough")]
    memory: Option<Bytes>,
    /// Serve this directory instead of memory
    #[arg(long, value_name = "DIR")]
    passthrough: Option<PathBuf>,
    /// Minimum time from a request's arrival to its reply, by kind of request [default:
    /// none]
    ///
    /// Example: create=2ms,read=100us. Kinds: lookup, getattr, setattr, mknod, create,
    /// symlink, readlink, access, setxattr, statfs …; all=TIME applies to every kind.
    #[arg(long, value_name = "LIST")]
    latency: Option<String>,
    /// Inject a fault, such as read:stall=500ms@nth=100 or write:EIO@p=0.01
    /// (see below); may be repeated
    #[arg(long, value_name = "FAULT")]
    fault: Vec<String>,
    /// Write a line of JSON to this file for each fault that fires
    #[arg(long, value_name = "FILE")]
    fault_log: Option<PathBuf>,
    /// Break a promise that rbench check tests, such as rename-loses-target; may be
    /// repeated
    ///
    /// An unknown name prints the list.
    #[arg(long, value_name = "PROMISE", conflicts_with = "passthrough")]
    broken: Vec<String>,
    /// Let other users access the mount; the kernel then checks permissions
    #[arg(long)]
    allow_other: bool,
    /// Size of the in-memory file system, counted in blocks of 4 KiB; writes beyond it fail
    /// with ENOSPC
    #[arg(long, value_name = "SIZE", value_parser = values::bytes, conflicts_with = "passthrough")]
    quota: Option<Bytes>,
    /// Bypass the page cache, so that each read and write reaches the file
    /// system; read:short implies it
    #[arg(long)]
    direct_io: bool,
    /// Track which data is synced, so that SIGPWR can drop the rest
    #[arg(long, value_enum, value_name = "HOW", conflicts_with = "passthrough")]
    power_cut: Option<PowerCut>,
    /// How long the kernel may cache attributes; 0: not at all [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    attr_timeout: Option<Nanos>,
    /// How long the kernel may cache names; 0: not at all [default: 1s]
    #[arg(long, value_name = "TIME", value_parser = values::time)]
    entry_timeout: Option<Nanos>,
    /// Threads that serve requests [default: number of CPUs, at least 4]
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// Serve at most N requests with a --latency at a time [default: no limit]
    ///
    /// Further requests wait, so that at most N / latency requests complete per second.
    #[arg(long, value_name = "N")]
    servers: Option<u32>,
    /// Write counts and times of requests to this file at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    stats: Option<PathBuf>,
    /// Let the kernel keep a file's pages when the file is opened again
    #[arg(long)]
    keep_cache: bool,
    /// Provide a file .stats with request counts in the root directory, like JuiceFS: off,
    /// silent, counted [default: silent]
    ///
    /// With silent, reading that file is not counted.
    #[arg(long, value_name = "HOW")]
    stats_file: Option<String>,
    /// Seed of the faults: affected requests, affected bytes, surviving data
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// End when standard input ends; print "ready" on standard output
    #[arg(long, hide = true)]
    watch_parent: bool,
    /// Remove the mount point after unmounting
    #[arg(long, hide = true)]
    remove_mountpoint: bool,
}

impl From<TestfsArgs> for Testfs {
    fn from(args: TestfsArgs) -> Testfs {
        Testfs {
            mountpoint: args.mountpoint,
            memory: args.memory,
            passthrough: args.passthrough,
            latency: args.latency,
            faults: args.fault,
            broken: args.broken,
            allow_other: args.allow_other,
            attr_timeout: args.attr_timeout,
            entry_timeout: args.entry_timeout,
            threads: args.threads,
            servers: args.servers,
            stats: args.stats,
            seed: args.seed,
            direct_io: args.direct_io,
            quota: args.quota,
            fault_log: args.fault_log,
            power_cut: args.power_cut,
            watch_parent: args.watch_parent,
            remove_mountpoint: args.remove_mountpoint,
            keep_cache: args.keep_cache,
            stats_file: args.stats_file,
        }
    }
}
