//! Watching a run: the options of commands that measure, and `rbench watch`.

use clap::Args;

use crate::Invocation;
use crate::live::{Serve, ServeAt, WatchAt, serve_at, watch_at};

#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Let the run be watched while it goes on, at ADDRESS:PORT (port 0: any) or
    /// unix:PATH: by rbench watch, and by Prometheus at /metrics. docs/reference/watch.md
    #[arg(long, value_name = "ADDR", value_parser = serve_at, help_heading = "Output")]
    serve: Option<ServeAt>,
    /// Allow an address of --serve that other hosts can reach: everybody there may look,
    /// and nobody may stop the run
    #[arg(long, requires = "serve", help_heading = "Output")]
    serve_remote: bool,
}

impl From<ServeArgs> for Serve {
    fn from(args: ServeArgs) -> Serve {
        Serve {
            at: args.serve,
            remote: args.serve_remote,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "A row for each operation and each host of the phase that runs, those hosts first that wait longest; curves \
    of rate and 99th percentile.\n\nKeys: q leaves, and the run goes on; s and then y stops the run, which keeps and reports \
    what it has.\n\nExample:\n  mpirun -np 12 --hostfile myhost rbench meta --dir /mnt/fs --serve 127.0.0.1:9180\n  rbench \
    watch 127.0.0.1:9180"
)]
pub struct WatchArgs {
    /// What --serve of the run was given, as HOST:PORT or unix:PATH
    #[arg(value_name = "ADDR", value_parser = watch_at)]
    at: WatchAt,
}

impl WatchArgs {
    pub fn invocation(self) -> Invocation {
        Invocation::Watch(self.at)
    }
}
