//! A simple model of the audit's rule. For each write it reads all records of a journal again, to
//! determine which writes are durable and which contents are superseded.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use rbench_exec::ack::format::Records;
use rbench_exec::ack::{Header, Kind, Record};

/// A block for which a write was started.
#[derive(Debug, Clone)]
pub struct Known {
    pub run: u64,
    pub path: PathBuf,
    pub file: u64,
    pub offset: u64,
    pub length: usize,
    /// True if any write of it is durable.
    pub durable: bool,
    /// Generations that are superseded by a durable write.
    pub superseded: Vec<u64>,
    /// Generations that the block may have.
    pub permitted: Vec<u64>,
    /// True if the journal ends before a sync of the file was answered.
    pub unanswered: bool,
}

/// All blocks that were written according to these journals.
pub fn read(journals: &[PathBuf]) -> Vec<Known> {
    journals.iter().flat_map(of_one).collect()
}

fn of_one(path: &PathBuf) -> Vec<Known> {
    let file = BufReader::new(File::open(path).expect("a journal"));
    let Some(records) = Records::open(file).expect("a journal") else {
        return Vec::new();
    };
    let header = records.header().clone();
    let records: Vec<Record> = records.map(|record| record.expect("whole")).collect();
    let paths: BTreeMap<u64, PathBuf> = header
        .files()
        .map(|file| (file.number, header.directory.join(file.path)))
        .collect();
    // The writes of each block.
    let mut blocks: BTreeMap<(u64, u64), Vec<Life>> = BTreeMap::new();
    for (start, record) in records.iter().enumerate() {
        if record.kind == Kind::WriteStarted {
            let life = life(&records, start);
            let end = record.offset + u64::from(record.length);
            for offset in (record.offset..end).step_by(header.block as usize) {
                blocks.entry((record.file, offset)).or_default().push(life);
            }
        }
    }
    let unanswered = |file: u64| {
        let last = records.iter().rfind(|record| record.file == file);
        // A small file counts as one write, from its open to its sync.
        let small = header.small.is_some();
        last.is_some_and(|last| {
            last.kind == Kind::SyncStarted || (small && last.kind == Kind::WriteStarted)
        })
    };
    blocks
        .into_iter()
        .map(|((file, offset), lives)| Known {
            unanswered: unanswered(file),
            ..known(&header, &paths[&file], file, offset, &lives)
        })
        .collect()
}

/// A write, and its position among the records.
#[derive(Debug, Clone, Copy)]
struct Life {
    generation: u64,
    start: usize,
    end: Option<usize>,
    durable: bool,
}

fn life(records: &[Record], start: usize) -> Life {
    let write = records[start];
    let ends = |record: &Record| {
        let same = Record {
            kind: write.kind,
            ..*record
        } == write;
        same && matches!(record.kind, Kind::WriteAcknowledged | Kind::WriteFailed)
    };
    let end = (start..records.len()).find(|at| ends(&records[*at]));
    let mut durable = false;
    if let Some(end) = end.filter(|end| records[*end].kind == Kind::WriteAcknowledged) {
        let mut syncing = false;
        for (at, record) in records.iter().enumerate().skip(start) {
            match record.kind {
                _ if record.file != write.file => {}
                Kind::Opened | Kind::SyncFailed => break,
                Kind::SyncStarted => syncing = at > end,
                Kind::SyncAcknowledged if syncing => {
                    durable = true;
                    break;
                }
                _ => {}
            }
        }
    }
    Life {
        generation: write.generation,
        start,
        end,
        durable,
    }
}

fn known(header: &Header, path: &Path, file: u64, offset: u64, lives: &[Life]) -> Known {
    let is_superseded = |old: &&Life| {
        let behind = |new: &Life| new.durable && old.end.is_some_and(|end| end < new.start);
        lives.iter().any(behind)
    };
    let (superseded, permitted): (Vec<&Life>, Vec<&Life>) = lives.iter().partition(is_superseded);
    let generations = |lives: Vec<&Life>| lives.iter().map(|life| life.generation).collect();
    Known {
        run: header.run,
        path: path.to_owned(),
        file,
        offset,
        length: header.block as usize,
        durable: lives.iter().any(|life| life.durable),
        superseded: generations(superseded),
        permitted: generations(permitted),
        unanswered: false,
    }
}
