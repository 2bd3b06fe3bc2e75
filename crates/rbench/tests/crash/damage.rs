//! Damage that no crash can cause: inserted deliberately, and then searched for.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;

use rbench_core::random::Stream;
use rbench_exec::ack::{Class, audit};
use rbench_exec::verify::{BlockHeader, Headers};

use super::bed::Bed;
use super::oracle::Known;

/// Number of blocks per scenario that are damaged, one after the other.
const BLOCKS: usize = 3;

/// The damage that was done, and the findings.
#[derive(Debug, Default)]
pub struct Tally {
    done: BTreeMap<&'static str, u64>,
    /// Number of legitimate contents after a crash that were inserted deliberately.
    allowed: u64,
    pub missed: Vec<String>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        let Tally {
            done,
            allowed,
            missed,
        } = other;
        self.allowed += allowed;
        for (name, count) in done {
            *self.done.entry(name).or_default() += count;
        }
        self.missed.extend(missed);
    }

    pub fn count(&mut self, name: &'static str, done: u64) {
        *self.done.entry(name).or_default() += done;
    }

    pub fn done(&self) -> u64 {
        self.done.values().sum()
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (done, missed) = (self.done(), self.missed.len());
        write!(
            f,
            "{done} done, {missed} missed or blamed wrongly: {:?}; {} times what is allowed",
            self.done, self.allowed
        )
    }
}

fn open(block: &Known) -> File {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    options.open(&block.path).expect("what is damaged is there")
}

/// Writes, retrying failures that the scenario injects.
fn put(file: &File, bytes: &[u8], offset: u64) {
    let tries = (0..100).find(|_| file.write_all_at(bytes, offset).is_ok());
    assert!(tries.is_some(), "cannot be written");
}

/// The block's content as written.
fn written(block: &Known, generation: u64) -> Vec<u8> {
    let mut bytes = vec![0; block.length];
    let header = BlockHeader {
        run: block.run,
        file: block.file,
        offset: block.offset,
        generation,
        worker: 0,
    };
    Headers::every(u64::MAX).stamp(&mut bytes, &header);
    bytes
}

/// The block's current content and the length of its file; `None` if the block is beyond the end.
fn content(block: &Known) -> Option<(Vec<u8>, u64)> {
    let file = File::open(&block.path).ok()?;
    let mut bytes = vec![0; block.length];
    file.read_exact_at(&mut bytes, block.offset).ok()?;
    Some((bytes, file.metadata().expect("open").len()))
}

/// Tries each kind of damage that these blocks can have, one after the other, and repairs it.
pub fn try_all(bed: &Bed, seed: u64, blocks: &[Known], chance: &mut Stream) -> Tally {
    let mut tally = Tally::default();
    let existing: Vec<&Known> = blocks.iter().filter(|b| content(b).is_some()).collect();
    let (durable, others): (Vec<&Known>, Vec<&Known>) = existing.iter().partition(|b| b.durable);
    let pick = |chance: &mut Stream, from: &[&Known]| {
        let nth = chance.below(from.len().max(1) as u64) as usize;
        from.get(nth).copied().cloned()
    };
    let mut trial = Trial {
        bed,
        seed,
        tally: &mut tally,
    };
    for _ in 0..BLOCKS {
        if let Some(block) = pick(chance, &others) {
            trial.flip(&block, chance);
        }
        if let Some(block) = pick(chance, &existing) {
            trial.leave(&block, chance);
        }
        let Some(block) = pick(chance, &durable) else {
            continue;
        };
        trial.flip(&block, chance);
        trial.roll_back(&block, chance);
        trial.empty(&block, chance);
        trial.cut_off(&block, chance);
        trial.take_away(&block);
        if let Some(other) = pick(chance, &durable) {
            trial.swap(&block, &other);
        }
    }
    let clean = bed.audit().is_clean();
    assert!(clean, "seed {seed}: the damage was not mended");
    tally
}

struct Trial<'a> {
    bed: &'a Bed,
    seed: u64,
    tally: &'a mut Tally,
}

impl Trial<'_> {
    /// Counts a damage to `block`, and checks that the audit reports it as one of `classes`.
    fn look(&mut self, name: &'static str, block: &Known, classes: &[Class]) {
        self.tally.count(name, 1);
        let report = audit(&self.bed.journals(), None).expect("journals");
        let here = |class: &Class| {
            // The audit lists only the first of many findings.
            let listed = report
                .findings
                .iter()
                .any(|f| f.class == *class && f.path == block.path && f.offset == block.offset);
            listed || report.count(*class) > 10
        };
        if !classes.iter().any(here) {
            let why = format!(
                "seed {}: {name}: {block:?}: {:?}",
                self.seed, report.findings
            );
            self.tally.missed.push(why);
        }
    }

    /// Replaces the block by `bytes` during an audit.
    fn replace(&mut self, name: &'static str, block: &Known, bytes: &[u8], classes: &[Class]) {
        let Some((before, _)) = content(block) else {
            return;
        };
        if before == bytes {
            return;
        }
        let file = open(block);
        put(&file, bytes, block.offset);
        self.look(name, block, classes);
        put(&file, &before, block.offset);
    }

    /// Inserts content that a crash may leave: each sector from any permitted content, or from two
    /// that change within the sector. The audit must not report it.
    fn leave(&mut self, block: &Known, chance: &mut Stream) {
        let Some((before, _)) = content(block) else {
            return;
        };
        let mut contents: Vec<Vec<u8>> = Vec::new();
        contents.extend(block.permitted.iter().map(|g| written(block, *g)));
        if !block.durable {
            contents.push(vec![0; block.length]);
        }
        let mut one = || chance.below(contents.len() as u64) as usize;
        let mut bytes = contents[one()].clone();
        let mut at = 0;
        while at < bytes.len() {
            let first = block.offset as usize + at;
            let end = ((first / 512 + 1) * 512 - block.offset as usize).min(bytes.len());
            // The change is between two cache lines, and not within the stamp.
            let within = (first.next_multiple_of(64) + 128 - block.offset as usize).min(end);
            bytes[at..within].copy_from_slice(&contents[one()][at..within]);
            bytes[within..end].copy_from_slice(&contents[one()][within..end]);
            at = end;
        }
        let file = open(block);
        put(&file, &bytes, block.offset);
        self.tally.allowed += 1;
        let report = audit(&self.bed.journals(), None).expect("journals");
        if !report.is_clean() {
            let why = format!(
                "seed {}: blamed {block:?}: {:?}",
                self.seed, report.findings
            );
            self.tally.missed.push(why);
        }
        put(&file, &before, block.offset);
    }

    /// Removes the file during an audit.
    fn take_away(&mut self, block: &Known) {
        let away = block.path.with_extension("away");
        fs::rename(&block.path, &away).expect("renamed");
        self.look("file missing", block, &[Class::Lost]);
        fs::rename(&away, &block.path).expect("renamed back");
    }

    /// Flips one bit. Spares the stamp if it may belong to another write that was only partly
    /// written.
    fn flip(&mut self, block: &Known, chance: &mut Stream) {
        let Some((mut bytes, _)) = content(block) else {
            return;
        };
        let first = if block.permitted.len() > 1 { 64 } else { 0 };
        let at = (first + chance.below(bytes.len() as u64 - first)) as usize;
        bytes[at] ^= 1 << chance.below(8);
        let name = if block.durable {
            "flip in a durable block"
        } else {
            "flip in another"
        };
        self.replace(name, block, &bytes, &[Class::Corrupt]);
    }

    fn roll_back(&mut self, block: &Known, chance: &mut Stream) {
        if block.superseded.is_empty() {
            return;
        }
        let nth = chance.below(block.superseded.len() as u64) as usize;
        let bytes = written(block, block.superseded[nth]);
        self.replace("rolled back", block, &bytes, &[Class::Lost]);
        // Only a part of the block.
        let Some((mut mixed, _)) = content(block) else {
            return;
        };
        let half = block.length / 2;
        mixed[half..].copy_from_slice(&bytes[half..]);
        let classes = [Class::Lost, Class::Corrupt];
        self.replace("half rolled back", block, &mixed, &classes);
    }

    fn empty(&mut self, block: &Known, chance: &mut Stream) {
        self.replace("zeroed", block, &vec![0; block.length], &[Class::Lost]);
        let Some((mut bytes, _)) = content(block) else {
            return;
        };
        // Zeros within one sector only.
        let first = (block.offset.next_multiple_of(64) - block.offset) as usize;
        let places = (bytes.len() - first) / 64;
        let at = first + 64 * chance.below(places as u64) as usize;
        bytes[at..at + 64].fill(0);
        let classes = [Class::Lost, Class::Corrupt];
        self.replace("partly zeroed", block, &bytes, &classes);
    }

    fn cut_off(&mut self, block: &Known, chance: &mut Stream) {
        let Some((_, length)) = content(block) else {
            return;
        };
        let file = open(block);
        let end = block.offset + chance.below(block.length as u64 - 8);
        let mut rest = vec![0; (length - end) as usize];
        file.read_exact_at(&mut rest, end).expect("reads");
        file.set_len(end).expect("cut off");
        self.look("cut off", block, &[Class::Lost, Class::Corrupt]);
        put(&file, &rest, end);
    }

    fn swap(&mut self, one: &Known, other: &Known) {
        let place = |block: &Known| (block.path.clone(), block.offset);
        let (Some((a, _)), Some((b, _))) = (content(one), content(other)) else {
            return;
        };
        if place(one) == place(other) || a.len() != b.len() {
            return;
        }
        put(&open(other), &a, other.offset);
        let classes = [Class::Corrupt];
        self.replace("misdirected", one, &b, &classes);
        put(&open(one), &b, one.offset);
        self.look("swapped", other, &classes);
        put(&open(one), &a, one.offset);
        put(&open(other), &b, other.offset);
    }
}
