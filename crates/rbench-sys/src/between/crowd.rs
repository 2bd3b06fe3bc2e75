//! Many clients at one file and in one directory: all append records, and they list names
//! while another client adds and removes some.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rbench_core::units::counted;
use rbench_core::{Clock as _, MonotonicClock, Nanos};
use serde::{Deserialize, Serialize};

use super::{Step, closed, done, place};

/// Number of records that each client appends.
pub const RECORDS: u64 = 200;
/// Bytes of a record.
const RECORD: usize = 32;
/// Number of names that stay.
const STAY: usize = 400;
/// Number of names that exist for a while, at a time.
const COMING: usize = 50;

/// Counts of the records of all clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Records {
    /// Number of missing records.
    pub lost: u64,
    /// Number of records that occur more than once.
    pub twice: u64,
    /// Places of a record's length in the file without a record.
    pub torn: u64,
}

fn record(client: usize, number: u64) -> String {
    // All records are different, and have the same length.
    format!("{client:08} {number:012} end.....\n.")
}

/// Appends a client's records, each with its own call, from the instant `from` on.
///
/// # Errors
/// The call that failed.
pub fn append(path: &Path, client: usize, from: Nanos, stop: &dyn Fn() -> bool) -> Step<()> {
    let file = OpenOptions::new().append(true).open(path);
    let mut file = done("open", path, file)?;
    super::wait_until(from, stop);
    for number in 0..RECORDS {
        if stop() {
            break;
        }
        let text = record(client, number);
        done("write", path, file.write_all(text.as_bytes()))?;
    }
    done("fsync", path, file.sync_all())?;
    closed(path, file)
}

/// Reads the records of `clients` clients. Repeats it, for at most `within`, while some are
/// missing.
///
/// # Errors
/// The call that failed.
pub fn records(
    path: &Path,
    clients: usize,
    within: Duration,
    stop: &dyn Fn() -> bool,
) -> Step<Records> {
    let start = MonotonicClock.now();
    loop {
        let records = count(&done("read", path, std::fs::read(path))?, clients);
        let waited: Duration = MonotonicClock.now().since(start).into();
        if records == Records::default() || waited > within || stop() {
            return Ok(records);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn count(bytes: &[u8], clients: usize) -> Records {
    let mut wanted = BTreeMap::new();
    for client in 0..clients {
        for number in 0..RECORDS {
            wanted.insert(record(client, number).into_bytes(), 0_u64);
        }
    }
    let mut records = Records::default();
    for piece in bytes.chunks(RECORD) {
        match wanted.get_mut(piece) {
            Some(times) => *times += 1,
            None => records.torn += 1,
        }
    }
    for times in wanted.values() {
        records.lost += u64::from(*times == 0);
        records.twice += u64::from(*times > 1);
    }
    records
}

/// Counts of wrong listings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Stays {
    /// Number of listings.
    pub listings: u64,
    /// Listings that lack a name that stays, or have one twice.
    pub wrong: u64,
    /// The error of one of them.
    pub example: String,
}

/// The names that stay.
pub fn staying(directory: &Path) -> Vec<PathBuf> {
    let stay = |number: usize| directory.join(format!("stay-{number}"));
    (0..STAY).map(stay).collect()
}

/// Creates the names that stay.
///
/// # Errors
/// The call that failed.
pub fn stays(directory: &Path) -> Step<()> {
    staying(directory).iter().try_for_each(|path| place(path))
}

/// Creates and removes other names from the instant `from` on, for `during`.
///
/// # Errors
/// The call that failed.
pub fn churn(
    directory: &Path,
    (from, during): (Nanos, Nanos),
    stop: &dyn Fn() -> bool,
) -> Step<()> {
    super::wait_until(from, stop);
    let mut number = 0;
    let name = |number: usize| directory.join(format!("come-{number}"));
    while MonotonicClock.now().since(from) < during && !stop() {
        let path = name(number);
        place(&path)?;
        if let Some(old) = number.checked_sub(COMING) {
            let path = name(old);
            done("unlink", &path, std::fs::remove_file(&path))?;
        }
        number += 1;
    }
    Ok(())
}

/// Lists the directory from the instant `from` on, for `during`, at least once.
///
/// # Errors
/// The call that failed.
pub fn listings(
    directory: &Path,
    (from, during): (Nanos, Nanos),
    stop: &dyn Fn() -> bool,
) -> Step<Stays> {
    let mut stays = Stays::default();
    super::wait_until(from, stop);
    loop {
        let mut times = [0_u32; STAY];
        for entry in done("opendir", directory, std::fs::read_dir(directory))? {
            let name = done("getdents", directory, entry)?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("stay-"));
            let number = number.and_then(|number| number.parse::<usize>().ok());
            if let Some(times) = number.and_then(|number| times.get_mut(number)) {
                *times += 1;
            }
        }
        stays.listings += 1;
        if let Some((number, times)) = times.iter().enumerate().find(|(_, times)| **times != 1) {
            stays.wrong += 1;
            stays.example = format!("stay-{number} {}", counted(*times as u64, "time"));
        }
        if MonotonicClock.now().since(from) >= during || stop() {
            return Ok(stays);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_torn_and_doubled_records_are_counted() {
        let all: Vec<u8> = (0..2)
            .flat_map(|client| (0..RECORDS).map(move |number| record(client, number)))
            .flat_map(String::into_bytes)
            .collect();
        assert_eq!(count(&all, 2), Records::default());
        let mut spoilt = all.clone();
        spoilt[RECORD * 3] ^= 1;
        spoilt.copy_within(0..RECORD, RECORD * 5);
        spoilt.truncate(spoilt.len() - RECORD);
        let expect = Records {
            lost: 3,
            twice: 1,
            torn: 1,
        };
        assert_eq!(count(&spoilt, 2), expect);
    }
}
