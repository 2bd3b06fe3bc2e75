//! The options that rbench adds to every command line of letters.

use std::marker::PhantomData;

use super::Line;
use super::table::Takes::{Nothing, Value};
use super::table::{Opt, named, put, put_path, text};
use crate::{live, values};

/// See [`Own::OPTIONS`].
pub struct Own<L>(PhantomData<L>);

impl<L: Line> Own<L> {
    /// These options, in the help's order.
    pub const OPTIONS: &'static [Opt<L>] = &[
        named(
            "rbench-report",
            Nothing(|l| *l.report() = true),
            "Print rbench's own report after the tool's, with latency percentiles",
        ),
        named(
            "out",
            Value("FILE", |l, v| put_path(&mut l.shared().output.out, v)),
            "Write the result (JSON) to FILE, which may be a directory",
        ),
        named(
            "overwrite",
            Nothing(|l| l.shared().output.overwrite = true),
            "Replace the file of --out if rbench wrote it",
        ),
        named(
            "label",
            Value("K=V", |l, v| {
                l.shared().output.labels.push(values::label(text(v)?)?);
                Ok(())
            }),
            "Add the label key=value to the result; may be repeated",
        ),
        named(
            "on-error",
            Value("WHAT", |l, v| {
                put(&mut l.shared().limits.on_error, v, values::on_error)
            }),
            "What to do after a failed operation: continue, stop [default: continue]",
        ),
        named(
            "max-errors",
            Value("N", |l, v| {
                put(&mut l.shared().limits.max_errors, v, values::count)
            }),
            "End the run after more than N failed operations [default: no limit]",
        ),
        named(
            "op-timeout",
            Value("TIME", |l, v| {
                put(&mut l.shared().limits.op_timeout, v, values::time)
            }),
            "Give up on an operation that takes longer (s) [default: never]",
        ),
        named(
            "on-dead-mount",
            Value("WHAT", |l, v| {
                put(&mut l.shared().limits.on_dead_mount, v, values::on_error)
            }),
            "When a mount no longer answers: stop, continue [default: stop]",
        ),
        named(
            "drop-caches",
            Nothing(|l| l.shared().drop_caches = true),
            "Drop the kernel's caches before phases that read or stat (needs root)",
        ),
        named(
            "no-round-trip",
            Nothing(|l| l.shared().output.no_round_trip = true),
            "Do not measure the round trip to the file system at the start",
        ),
        named(
            "client-cache",
            Value("SIZE", |l, v| {
                put(&mut l.shared().output.client_cache, v, values::bytes)
            }),
            "Size of the file system client's own cache on each host (bytes)",
        ),
        named(
            "watch",
            Value("PID|NAME", |l, v| {
                put(&mut l.shared().output.watch, v, values::watch)
            }),
            "Report CPU time and memory of the client, by PID or process name",
        ),
        named(
            "event",
            Value("NAME[@TIME]=CMD", |l, v| {
                l.shared().output.events.push(values::event(text(v)?)?);
                Ok(())
            }),
            "Run CMD and set mark NAME at TIME in the first phase; may be repeated",
        ),
        named(
            "private-dirs",
            Nothing(|l| l.shared().leave.private_dirs = true),
            "Allow each host its own file system at the target",
        ),
        named(
            "overfill",
            Nothing(|l| l.shared().leave.overfill = true),
            "Start even if there is less free space than the run writes",
        ),
        named(
            "untried",
            Nothing(|l| l.shared().leave.untried = true),
            "Skip the initial test of the file system features that the run needs",
        ),
        named(
            "progress",
            Value("HOW", |l, v| {
                l.shared().output.progress = values::choice(text(v)?)?;
                Ok(())
            }),
            "Progress of rank 0 on stderr: auto, plain, live, off [default: auto]",
        ),
        named(
            "serve",
            Value("ADDR", |l, v| {
                l.shared().output.serve.at = Some(live::serve_at(text(v)?)?);
                Ok(())
            }),
            "Serve the run's state to rbench watch at HOST:PORT or unix:PATH",
        ),
        named(
            "serve-remote",
            Nothing(|l| l.shared().output.serve.remote = true),
            "Allow --serve at an address that other hosts can reach",
        ),
        named(
            "quiet",
            Nothing(|l| l.shared().output.quiet = true),
            "Print only tables and errors: no progress, no notes",
        ),
        named(
            "communicator",
            Value("WHICH", |l, v| {
                l.shared().output.start.communicator = values::choice(text(v)?)?;
                Ok(())
            }),
            "How ranks communicate: auto, solo (no MPI), mpi [default: auto]",
        ),
        named(
            "start-timeout",
            Value("TIME", |l, v| {
                l.shared().output.start.timeout = Some(values::time(text(v)?)?);
                Ok(())
            }),
            "Give up if ranks are missing after this time; 0: never [default: 120s]",
        ),
    ];
}
