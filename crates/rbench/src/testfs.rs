//! `rbench testfs`: the built-in file system in the foreground.

use std::path::{Path, PathBuf};

use rbench_cli::{PowerCut, Testfs};
use rbench_core::Bytes;
use rbench_testfs::MountError::{Missing, NotAFolder, NotEmpty, Occupied};
use rbench_testfs::{Backing, Config, ServeError, ServeOptions, StatsFile, Survivors};

use crate::console::{complain, fail};
use crate::exit::{FAILED, SUCCESS, USAGE};
use crate::files::{self, Place};

/// Serves until a signal, an unmount, or the end of the parent.
pub fn serve(args: Testfs) -> u8 {
    let checked = config(&args).and_then(|mut config| {
        let (stats, log) = (args.stats.as_deref(), args.fault_log.as_deref());
        config.fault_log = own("--fault-log", log, is_fault_log)?;
        Ok((config, own("--stats", stats, is_stats)?))
    });
    let (config, stats) = match checked {
        Ok(checked) => checked,
        Err(message) => {
            return fail(USAGE, message);
        }
    };
    let options = ServeOptions {
        stats,
        parent_watch: args.watch_parent,
        survivors: match args.power_cut {
            Some(PowerCut::Tear) => Survivors::Seeded(config.seed),
            Some(PowerCut::Drop) | None => Survivors::None,
        },
    };
    let served = rbench_testfs::serve(config, &args.mountpoint, &options);
    if args.remove_mountpoint {
        // The parent process removes it if it is still running.
        let _ = std::fs::remove_dir(&args.mountpoint);
    }
    match served {
        Ok(()) => SUCCESS,
        Err(error) => {
            complain(&error.to_string());
            match error {
                ServeError::Mount(Missing(_) | NotAFolder(_) | Occupied(_) | NotEmpty(_)) => USAGE,
                _ => FAILED,
            }
        }
    }
}

/// Checks that a path is free or holds an output of an earlier run, the only file that may be replaced.
fn own(
    option: &str,
    path: Option<&Path>,
    is_ours: fn(&[u8]) -> bool,
) -> Result<Option<PathBuf>, String> {
    let Some(path) = path else { return Ok(None) };
    match files::find(path, is_ours) {
        Ok(Place::Free(path) | Place::Ours(path, _) | Place::Stream(path)) => Ok(Some(path)),
        Err(why) => Err(format!("{option} {} {why}", path.display())),
    }
}

fn is_stats(start: &[u8]) -> bool {
    let schema = format!("\"{}\"", StatsFile::SCHEMA);
    let start = String::from_utf8_lossy(start);
    start.starts_with('{') && start.contains(&schema)
}

/// Checks the first line only: the last one may be cut off.
fn is_fault_log(start: &[u8]) -> bool {
    start.starts_with(b"{\"sequence\":1,\"fault\":")
}

/// The configuration for the command line.
///
/// # Errors
/// A sentence that names the option that is impossible.
fn config(args: &Testfs) -> Result<Config, String> {
    let backing = match (&args.passthrough, args.memory) {
        (Some(folder), _) => Backing::Passthrough(folder.clone()),
        (None, cap) => Backing::Memory {
            cap: cap.unwrap_or_else(quarter_of_memory),
        },
    };
    let mut config = Config::new(backing);
    if let Some(text) = &args.latency {
        config.latency = text.parse().map_err(|e| format!("--latency: {e}"))?;
    }
    for text in &args.faults {
        config
            .faults
            .push(text.parse().map_err(|e| format!("--fault: {e}"))?);
    }
    for text in &args.broken {
        config
            .broken
            .push(text.parse().map_err(|e| format!("--broken: {e}"))?);
    }
    config.allow_other = args.allow_other;
    config.attr_timeout = args.attr_timeout.unwrap_or(config.attr_timeout);
    config.entry_timeout = args.entry_timeout.unwrap_or(config.entry_timeout);
    if let Some(threads) = args.threads {
        if threads == 0 {
            return Err("--threads must be at least 1".to_owned());
        }
        config.threads = threads as usize;
    }
    if args.servers == Some(0) {
        return Err("--servers must be at least 1".to_owned());
    }
    config.servers = args.servers.map(|servers| servers as usize);
    config.seed = args.seed.unwrap_or(config.seed);
    config.direct_io = args.direct_io;
    config.quota = args.quota;
    config.power_cut = args.power_cut.is_some();
    config.keep_cache = args.keep_cache;
    if let Some(text) = &args.stats_file {
        config.stats_file = text.parse().map_err(|e| format!("--stats-file: {e}"))?;
    }
    Ok(config)
}

/// A quarter of the available memory, or 1 GiB if that is unknown.
fn quarter_of_memory() -> Bytes {
    rbench_sys::limits::available_memory().map_or(Bytes(1 << 30), |all| Bytes(all.0 / 4))
}
