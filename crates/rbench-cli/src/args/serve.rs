//! Watching a run: the options of commands that measure, and `rbench watch`.

use clap::Args;

use crate::Invocation;
use crate::live::{Serve, ServeAt, WatchAt, serve_at, watch_at};

#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Serve the state of the run at ADDRESS:PORT (port 0: any free port) or unix:PATH
    ///
    /// rbench watch shows it, and Prometheus can scrape it at /metrics
    /// (docs/reference/watch.md).
    #[arg(long, value_name = "ADDR", value_parser = serve_at, help_heading = "Output")]
    serve: Option<ServeAt>,
    /// Allow --serve at an address that other hosts can reach
    ///
    /// Everybody there can watch the run, and nobody can stop it.
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
    after_help = "Shows a row for each operation and each host of the current phase, the hosts that wait \
    longest first, and curves of the rate and the 99th percentile.\n\nKeys: q quits, and the run continues; s \
    and then y stops the run, which then reports what it has measured.\n\nExample:\n  mpirun -np 12 --hostfile \
    myhost rbench meta --dir /mnt/fs --serve 127.0.0.1:9180\n  rbench watch 127.0.0.1:9180"
)]
pub struct WatchArgs {
    /// Address given to --serve of the run, as HOST:PORT or unix:PATH
    #[arg(value_name = "ADDR", value_parser = watch_at)]
    at: WatchAt,
}

impl WatchArgs {
    pub fn invocation(self) -> Invocation {
        Invocation::Watch(self.at)
    }
}
