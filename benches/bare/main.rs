//! Bare loops: the system calls of rbench's workloads on the same paths and offsets. Only start and
//! end are timed. `scripts/bench` compares rbench with them.
//!
//! Each figure is a line of JSON on stdout: `{"name":"file-stat","ops":200000,"seconds":0.21}`.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "its results are read there"
)]

use std::error::Error;
use std::process::ExitCode;
use std::time::{Duration, Instant};

mod block;
mod compute;
mod metadata;
mod peak;
mod ring;

const USAGE: &str = "usage:
  bare meta DIR ITEMS PHASE…           rbench meta --dir DIR --items ITEMS --phases …
  bare mdtest DIR ITEMS PHASE…         rbench mdtest -d DIR -n ITEMS, the same phases of it
  bare files DIR ITEMS meta|io         the same files of 4 KiB as rbench meta --write 4k, or rbench io --files
  bare block read|write|randread|randwrite FILE[:FILE…] SIZE SECONDS
                                       blocks of 4 KiB of files of SIZE bytes in all, with pread or pwrite,
                                       of one file after the other in turns
  bare ring FILE[:FILE…] SIZE SECONDS DEPTH all|one
                                       the same, randread, with DEPTH requests under way in an io_uring, all
                                       that are free or one of them in each system call
  bare compute SECONDS                 what rbench does between system calls
  bare null                            the operations of the null engine only
  bare peak OUT COMMAND…               run a command, and write its peak memory in bytes to OUT.<MPI rank>";

/// An error that ends the program and is printed.
type Failed = Box<dyn Error>;

/// A number of operations and their duration.
struct Figure {
    name: String,
    ops: u64,
    took: Duration,
}

impl Figure {
    fn print(&self) {
        let Figure { name, ops, took } = self;
        let seconds = took.as_secs_f64();
        println!("{{\"name\":\"{name}\",\"ops\":{ops},\"seconds\":{seconds:.9}}}");
    }
}

fn seconds(text: &str) -> Result<Duration, Failed> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

/// Repeats `batch`, which returns its number of operations, until `limit` has passed. Reads the
/// clock once per batch.
fn repeat(
    name: &str,
    limit: Duration,
    mut batch: impl FnMut() -> Result<u64, Failed>,
) -> Result<Figure, Failed> {
    let mut ops = 0;
    let started = Instant::now();
    loop {
        ops += batch()?;
        let took = started.elapsed();
        if took >= limit {
            return Ok(Figure {
                name: name.to_owned(),
                ops,
                took,
            });
        }
    }
}

fn run(words: &[&str]) -> Result<ExitCode, Failed> {
    match words {
        ["meta", dir, items, phases @ ..] => metadata::phases(dir, items.parse()?, phases)?,
        ["mdtest", dir, items, phases @ ..] => metadata::mdtest(dir, items.parse()?, phases)?,
        ["files", dir, items, form] => metadata::files(dir, items.parse()?, form)?.print(),
        ["block", mode, files, size, limit] => {
            block::run(mode, files, size.parse()?, seconds(limit)?)?.print();
        }
        ["ring", files, size, limit, depth, calls] => {
            let each = match *calls {
                "all" => ring::Calls::All,
                "one" => ring::Calls::One,
                _ => return Err(USAGE.into()),
            };
            ring::run(files, size.parse()?, seconds(limit)?, depth.parse()?, each)?.print();
        }
        ["compute", limit] => compute::run(seconds(limit)?)?,
        ["null"] => compute::null()?.print(),
        ["peak", out, command, words @ ..] => return peak::run(out, command, words),
        _ => return Err(USAGE.into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    run(&words).unwrap_or_else(|error| {
        eprintln!("bare: {error}");
        ExitCode::FAILURE
    })
}
