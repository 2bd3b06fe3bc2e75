//! The output of `darshan-dxt-parser` as a trace: data only. Each rank opens a file before its
//! first operation on it, and closes it after the last. The output is sorted by file instead of
//! time, so all of it is kept in memory. DXT itself keeps only some MiB per rank.

use std::collections::BTreeMap;

use rbench_core::{Call, Nanos, linux};

use super::names::Unmapped;
use super::{Name, Op, Out, Outcome, Reader, Reading, why};

/// Reader of the output.
#[derive(Default)]
pub struct Dxt {
    reading: Reading,
    /// The file of the following lines, by number; `None` if there is none yet, or it is left out.
    file: Option<usize>,
    left_out: Option<&'static str>,
    files: Vec<Name>,
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    line: u64,
    rank: u64,
    file: usize,
    writes: bool,
    offset: u64,
    length: u64,
    at: Nanos,
    end: Nanos,
}

impl Dxt {
    /// Creates a reader before its first line.
    pub fn new(reading: &Reading) -> Dxt {
        Dxt {
            reading: reading.clone(),
            left_out: Some(why::OTHER),
            ..Dxt::default()
        }
    }

    fn section(&mut self, name: &str) -> Result<(), String> {
        (self.file, self.left_out) = (None, None);
        match self.reading.names.map(b"/", name.as_bytes()) {
            Ok(path) => {
                let known = self.files.iter().position(|file| *file == path);
                self.file = Some(known.unwrap_or_else(|| {
                    self.files.push(path);
                    self.files.len() - 1
                }));
                Ok(())
            }
            Err(Unmapped::LeftOut(why)) => {
                self.left_out = Some(why);
                Ok(())
            }
            Err(Unmapped::Wrong(why)) => Err(why),
        }
    }
}

impl Reader for Dxt {
    fn line(&mut self, number: u64, line: &[u8], out: &mut Out) -> Result<(), String> {
        let text = std::str::from_utf8(line)
            .map_err(|_| "it is not valid UTF-8 text")?
            .trim();
        if let Some(comment) = text.strip_prefix('#') {
            if let Some((_, name)) = comment.split_once("file_name:") {
                return self.section(name.trim());
            }
            return Ok(());
        }
        if text.is_empty() {
            return Ok(());
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            ["X_POSIX", ..] => {}
            // Old versions print no offsets for it.
            ["X_MPIIO", ..] => {
                out.left_out.add(why::MPI_IO);
                return Ok(());
            }
            [other, ..] => return Err(format!("'{other}' is neither X_POSIX nor X_MPIIO")),
            [] => return Ok(()),
        }
        let [_module, rank, how, _segment, offset, length, start, end, ..] = words[..] else {
            return Err("the line has fewer than 8 columns or is cut off".to_owned());
        };
        let writes = match how {
            "write" => true,
            "read" => false,
            other => return Err(format!("'{other}' is neither read nor write")),
        };
        let number_of = |word: &str| {
            let read = word.parse::<u64>();
            read.map_err(|_| format!("'{word}' is not a number"))
        };
        let time =
            |word: &str| super::seconds(word).ok_or_else(|| format!("'{word}' is not a time"));
        let (at, end) = (time(start)?, time(end)?);
        if end < at {
            return Err("the operation ends before it starts".to_owned());
        }
        let segment = Segment {
            line: number,
            rank: number_of(rank)?,
            file: 0,
            writes,
            offset: number_of(offset)?,
            length: number_of(length)?,
            at,
            end,
        };
        match (self.file, self.left_out) {
            (Some(file), _) => self.segments.push(Segment { file, ..segment }),
            (None, Some(why)) => out.left_out.add(why),
            (None, None) => return Err("no file is named before this line".to_owned()),
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Out) -> Result<(), String> {
        self.segments.sort_by_key(|segment| segment.at);
        // For each rank and file, the number of the open file, and the last segment about it.
        let mut open: BTreeMap<(u64, usize), (u64, usize)> = BTreeMap::new();
        for (place, segment) in self.segments.iter().enumerate() {
            let next = open.len() as u64;
            let entry = open.entry((segment.rank, segment.file));
            entry.or_insert((next, place)).1 = place;
        }
        let writers: std::collections::BTreeSet<(u64, usize)> = self
            .segments
            .iter()
            .filter(|segment| segment.writes)
            .map(|segment| (segment.rank, segment.file))
            .collect();
        let mut opened = vec![false; open.len()];
        for (place, segment) in self.segments.iter().enumerate() {
            let key = (segment.rank, segment.file);
            let Some((file, last)) = open.get(&key).copied() else {
                continue;
            };
            let implied = |at: Nanos, op: Op| op.implied(segment.line, segment.rank, at);
            if !std::mem::replace(&mut opened[file as usize], true) {
                let flags = match writers.contains(&key) {
                    true => linux::RDWR | linux::CREAT,
                    false => linux::RDONLY,
                };
                let path = self.files[segment.file].clone();
                let open = Op::opening(path, (flags, 0o644), file);
                out.push(implied(segment.at, open));
            }
            let call = match segment.writes {
                true => Call::WriteAt(segment.offset),
                false => Call::ReadAt(segment.offset),
            };
            let moved = Op::on_file(file, call).moving(segment.length);
            out.push(Op {
                took: Some(segment.end.since(segment.at)),
                result: Outcome::Done(segment.length),
                implied: false,
                ..implied(segment.at, moved)
            });
            if place == last {
                out.push(implied(segment.end, Op::on_file(file, Call::Close)));
            }
        }
        // An operation of a rank may have ended after the start of its next one.
        out.ops.sort_by_key(|op| op.at);
        self.segments.clear();
        Ok(())
    }
}
