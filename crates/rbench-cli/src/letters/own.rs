//! The options that rbench adds to every command line of letters.

use std::marker::PhantomData;

use rbench_plan::spec;
use rbench_plan::values;

use super::Line;
use super::table::Opt;
use super::table::Takes::Nothing;
use crate::live;

/// See [`Own::OPTIONS`].
pub struct Own<L>(PhantomData<L>);

impl<L: Line> Own<L> {
    /// The options, in the help's order.
    pub const OPTIONS: &'static [Opt<L>] = rows! { (shared().)
    "rbench-report": takes(Nothing(|l| *l.report() = true)),
        "Print rbench's own report after the tool's, with latency percentiles";
    "out" => output.out: path("FILE"), "Write the result (JSON) to FILE, which may be a directory";
    "overwrite" => output.overwrite: on, "Replace the file of --out if rbench wrote it";
    "label" => output.labels: more("K=V", values::label),
        "Add the label key=value to the result; may be repeated";
    "on-error" => common.limits.on_error: word("WHAT", spec::on_error),
        "What to do after a failed operation: continue, stop [default: continue]";
    "max-errors" => common.limits.max_errors: word("N", values::count),
        "End the run after more than N failed operations [default: no limit]";
    "op-timeout" => common.limits.op_timeout: word("TIME", values::time),
        "Give up on an operation that takes longer (s) [default: never]";
    "on-dead-mount" => common.limits.on_dead_mount: word("WHAT", spec::on_error),
        "When a mount no longer answers: stop, continue [default: stop]";
    "drop-caches" => common.drop_caches: on,
        "Drop the kernel's caches before phases that read or stat (needs root)";
    "no-round-trip" => output.no_round_trip: on,
        "Do not measure the round trip to the file system at the start";
    "client-cache" => output.client_cache: word("SIZE", values::bytes),
        "Size of the file system client's own cache on each host (bytes)";
    "watch" => output.watch: word("PID|NAME", values::watch),
        "Report CPU time and memory of the client, by PID or process name";
    "event" => output.events: more("NAME[@TIME]=CMD", values::event),
        "Run CMD and set mark NAME at TIME in the first phase; may be repeated";
    "private-dirs" => common.leave.private_dirs: on,
        "Allow each host its own file system at the target";
    "overfill" => common.leave.overfill: on,
        "Start even if there is less free space than the run writes";
    "untried" => common.leave.untried: on,
        "Skip the initial test of the file system features that the run needs";
    "progress" => output.progress: word("HOW", values::choice),
        "Progress of rank 0 on stderr: auto, plain, live, off [default: auto]";
    "serve" => output.serve.at: word("ADDR", live::serve_at),
        "Serve the run's state to rbench watch at HOST:PORT or unix:PATH";
    "serve-remote" => output.serve.remote: on,
        "Allow --serve at an address that other hosts can reach";
    "quiet" => output.quiet: on, "Print only tables and errors: no progress, no notes";
    "communicator" => output.start.communicator: word("WHICH", values::choice),
        "How ranks communicate: auto, solo (no MPI), mpi [default: auto]";
    "start-timeout" => output.start.timeout: word("TIME", values::time),
        "Give up if ranks are missing after this time; 0: never [default: 120s]";
    };
}
