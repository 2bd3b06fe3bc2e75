//! The format of a journal of acknowledged writes: a header, followed by records of equal length,
//! each with a checksum.
//!
//! Words are little-endian. The header is [`MAGIC`], the version, the length of its body, the
//! body's XXH3, and the body (see [`Header`]); records begin at the next multiple of
//! [`RECORDS_AT`]. A blank record (zeros) follows the last one, unless the records end exactly with
//! a [`PIECE`]. Journals grow by pieces, so only one that was cut off ends otherwise.

use std::ffi::{CStr, OsStr};
use std::io::{self, Read};
use std::iter::once;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rbench_core::random::key;
use rbench_core::units::counted;
use rbench_plan::io::{Layout, SmallFiles, small_paths};
use rbench_plan::tree::Paths;
use xxhash_rust::xxh3::xxh3_64;

use crate::verify::{BlockHeader, STEP_BITS, WRITE_BITS, file_key};

/// The first bytes of every journal.
pub const MAGIC: [u8; 8] = *b"rbenchAW";
/// The form that is written and read, and that of the blocks it speaks of.
pub const VERSION: u64 = 4;
/// Start of the records, in bytes: at a multiple of it.
pub const RECORDS_AT: u64 = 8192;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;
/// Bytes by which a journal grows; a multiple of every page size.
pub const PIECE: u64 = 1 << 20;
/// Bytes in front of the header's body.
const FIXED: usize = 32;
/// Most bytes of the body.
const BODY_MAX: u64 = 1 << 30;

/// Header of a journal: the data needed to find its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The run, as in the stamps of its blocks.
    pub run: u64,
    /// The run's own directory, absolute.
    pub directory: PathBuf,
    /// The pass over all phases, from 0: also the directory below.
    pub pass: u32,
    /// The worker whose writes these are, among all.
    pub worker: u64,
    /// Number of all workers.
    pub workers: u64,
    /// Bytes that each stamp covers.
    pub block: u64,
    /// Bytes of the worker's part, a multiple of `block`.
    pub size: u64,
    /// Layout of files: the file and part of each worker.
    pub layout: Layout,
    /// `Some`: the small-file form.
    pub small: Option<SmallFiles>,
    /// The files of a job of `rbench fio`; empty with `rbench io`.
    pub named: Vec<NamedFile>,
    /// Mark of the worker in the stamps.
    pub mark: u64,
}

/// A file of a job, and the worker's part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedFile {
    /// Below the directory; absolute where the job says so.
    pub path: PathBuf,
    /// Start of the part, in bytes.
    pub from: u64,
    /// Its length in bytes.
    pub length: u64,
}

const LAYOUTS: [Layout; 3] = [
    Layout::PerWorker,
    Layout::SharedSegmented,
    Layout::SharedInterleaved,
];

/// Appends words after their number.
fn put_words(body: &mut Vec<u8>, words: &[u64]) {
    let count = words.len() as u64;
    body.extend(
        once(&count)
            .chain(words)
            .flat_map(|word| word.to_le_bytes()),
    );
}

/// Appends a path after its length.
fn put_path(body: &mut Vec<u8>, path: &Path) {
    let path = path.as_os_str().as_bytes();
    body.extend((path.len() as u64).to_le_bytes());
    body.extend(path);
}

fn take_word(body: &mut &[u8]) -> Option<u64> {
    let word = body.split_off(..8)?.try_into().ok()?;
    Some(u64::from_le_bytes(word))
}

/// Takes `N` words, after their number.
fn take_words<const N: usize>(body: &mut &[u8]) -> Option<[u64; N]> {
    let mut words = [0; N];
    if take_word(body)? != N as u64 {
        return None;
    }
    for word in &mut words {
        *word = take_word(body)?;
    }
    Some(words)
}

fn take_path(body: &mut &[u8]) -> Option<PathBuf> {
    let length = usize::try_from(take_word(body)?).ok()?;
    let path = body.split_off(..length)?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

impl Header {
    /// Encodes it as bytes that fill the journal up to its records.
    ///
    /// # Errors
    /// When the names of its files are too long, as a clause.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let layout = LAYOUTS.iter().position(|layout| *layout == self.layout);
        let small = self.small.map_or([0, 0], |s| [s.files, s.size.0]);
        let mut body = Vec::new();
        put_words(
            &mut body,
            &[
                self.run,
                u64::from(self.pass),
                self.worker,
                self.workers,
                self.block,
                self.size,
                layout.unwrap_or_default() as u64,
                small[0],
                small[1],
                self.mark,
            ],
        );
        put_path(&mut body, &self.directory);
        body.extend((self.named.len() as u64).to_le_bytes());
        for file in &self.named {
            put_path(&mut body, &file.path);
            put_words(&mut body, &[file.from, file.length]);
        }
        let mut bytes = MAGIC.to_vec();
        for word in [VERSION, body.len() as u64, xxh3_64(&body)] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        if bytes.len() as u64 > BODY_MAX {
            return Err("has too many files".to_owned());
        }
        bytes.resize(records_at(bytes.len()), 0);
        Ok(bytes)
    }

    /// Reads what [`Header::to_bytes`] made.
    ///
    /// # Errors
    /// What is wrong with it, as a clause.
    pub fn from_bytes(bytes: &[u8]) -> Result<Header, String> {
        let damaged = || "its header is damaged".to_owned();
        if !bytes.starts_with(&MAGIC) {
            return Err("not a journal of --ack-journal".to_owned());
        }
        let mut fixed = bytes.get(MAGIC.len()..FIXED).ok_or_else(damaged)?;
        let mut word = || take_word(&mut fixed).ok_or_else(damaged);
        let (version, length, sum) = (word()?, word()?, word()?);
        if version != VERSION {
            return Err(format!(
                "its version is {version}, but this rbench reads version {VERSION}"
            ));
        }
        let mut body = bytes[FIXED..].get(..length as usize).ok_or_else(damaged)?;
        if xxh3_64(body) != sum {
            return Err(damaged());
        }
        let [
            run,
            pass,
            worker,
            workers,
            block,
            size,
            layout,
            files,
            file_size,
            mark,
        ] = take_words(&mut body).ok_or_else(damaged)?;
        let directory = take_path(&mut body).ok_or_else(damaged)?;
        let layout = *LAYOUTS.get(layout as usize).ok_or_else(damaged)?;
        let count = take_word(&mut body).ok_or_else(damaged)?;
        let named = (0..count)
            .map(|_| {
                let path = take_path(&mut body)?;
                let [from, length] = take_words(&mut body)?;
                i64::try_from(from.checked_add(length)?).ok()?;
                Some(NamedFile { path, from, length })
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(damaged)?;
        // No run writes such a journal: all offsets of blocks are below 2^63.
        let in_file = size.checked_mul(if layout.shared() { workers } else { 1 });
        let possible = worker < workers
            && workers <= 1 << 32
            && files <= 1 << 32
            && in_file.is_some_and(|end| i64::try_from(end).is_ok());
        if block < 512 || !size.is_multiple_of(block) || !possible {
            return Err(damaged());
        }
        Ok(Header {
            run,
            directory,
            pass: u32::try_from(pass).map_err(|_| damaged())?,
            worker,
            workers,
            block,
            size,
            layout,
            small: (files > 0).then_some(SmallFiles {
                files,
                size: rbench_core::Bytes(file_size),
            }),
            named,
            mark,
        })
    }

    /// The files that hold the worker's part.
    pub fn files(&self) -> Files<'_> {
        Files {
            header: self,
            small: self
                .small
                .map(|small| small_paths("", self.worker, small.files)),
            next: 0,
        }
    }

    /// Bytes of a file of `rbench io` when all of it is there.
    fn file_length(&self) -> u64 {
        match (self.small, self.layout.shared()) {
            (Some(small), _) => small.size.0,
            (None, true) => self.size.saturating_mul(self.workers),
            (None, false) => self.size,
        }
    }

    /// Offsets of the worker's blocks in one of its files, in bytes.
    pub fn offsets(&self, file: &Journaled) -> impl Iterator<Item = u64> + use<> {
        let (layout, size, block) = (self.layout, self.size, self.block);
        let owner = (self.worker, self.workers);
        let part = file.part;
        let blocks = part.map_or(size, |(_, length)| length) / block;
        (0..blocks).map(move |nth| match part {
            Some((from, _)) => from + nth * block,
            None => layout.offset(nth * block, owner, size, block),
        })
    }

    /// The block at `offset` of `file`, with the lowest generation of the
    /// pass.
    pub fn identity(&self, file: u64, offset: u64) -> BlockHeader {
        BlockHeader {
            run: self.run,
            file,
            offset,
            generation: u64::from(self.pass) << (WRITE_BITS + STEP_BITS),
            worker: self.mark,
        }
    }

    /// Start value of the checksums of the records.
    pub(super) fn key(&self) -> u64 {
        key(&[self.run, u64::from(self.pass), self.worker])
    }
}

/// Start of the records after a header of this many bytes.
fn records_at(header: usize) -> usize {
    header.next_multiple_of(RECORDS_AT as usize)
}

/// A file of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Journaled {
    /// Key of its name in stamps.
    pub number: u64,
    /// Its path below the directory.
    pub path: PathBuf,
    /// Bytes that it has at most.
    pub length: u64,
    /// The first byte and the length of the worker's part, where the file is a job's.
    part: Option<(u64, u64)>,
}

/// The number of a job's file in stamps; `path` is absolute.
pub fn number_of(path: &Path) -> u64 {
    file_key(&path.to_string_lossy())
}

/// The files of a journal.
pub struct Files<'h> {
    header: &'h Header,
    small: Option<Paths>,
    next: u64,
}

fn below(pass: u32, name: &CStr) -> PathBuf {
    let name = name.to_bytes();
    let name = name.strip_prefix(b"/").unwrap_or(name);
    Path::new(&pass.to_string()).join(OsStr::from_bytes(name))
}

impl Iterator for Files<'_> {
    type Item = Journaled;

    fn next(&mut self) -> Option<Journaled> {
        let header = self.header;
        let nth = self.next;
        self.next += 1;
        if !header.named.is_empty() {
            let file = header.named.get(nth as usize)?;
            return Some(Journaled {
                number: number_of(&header.directory.join(&file.path)),
                path: file.path.clone(),
                length: file.from + file.length,
                part: Some((file.from, file.length)),
            });
        }
        let own = |number, path| Journaled {
            number,
            path,
            length: header.file_length(),
            part: None,
        };
        if let (Some(small), Some(paths)) = (header.small, &mut self.small) {
            return (nth < small.files).then(|| {
                paths.item(nth);
                own(
                    (header.worker << 32) | nth,
                    below(header.pass, paths.current()),
                )
            });
        }
        let file = if header.layout.shared() {
            0
        } else {
            header.worker
        };
        let path = Path::new(&header.pass.to_string()).join(header.layout.file_name(header.worker));
        (nth == 0).then(|| own(file, path))
    }
}

/// Kinds of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The file was opened for writing: what is synced from here on is what is
    /// written from here on.
    Opened = 1,
    /// A write is about to begin.
    WriteStarted,
    /// It was acknowledged.
    WriteAcknowledged,
    /// It failed, or only part of it was written.
    WriteFailed,
    /// A sync of the file is about to begin; no write of it is under way.
    SyncStarted,
    /// It was acknowledged.
    SyncAcknowledged,
    /// It failed, or closing the file did.
    SyncFailed,
}

const KINDS: [Kind; 7] = [
    Kind::Opened,
    Kind::WriteStarted,
    Kind::WriteAcknowledged,
    Kind::WriteFailed,
    Kind::SyncStarted,
    Kind::SyncAcknowledged,
    Kind::SyncFailed,
];

/// One record. Offset, generation and length are 0 where it is not about a
/// write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Record {
    /// The event.
    pub kind: Kind,
    /// Number of the file, as in stamps.
    pub file: u64,
    /// Offset in the file, in bytes.
    pub offset: u64,
    /// The generation that was written.
    pub generation: u64,
    /// Bytes.
    pub length: u32,
}

impl Record {
    /// A record that is not about a write.
    pub fn of_file(kind: Kind, file: u64) -> Record {
        Record {
            kind,
            file,
            offset: 0,
            generation: 0,
            length: 0,
        }
    }

    /// Encodes it for `position` (from 0) of the journal with this key.
    #[inline]
    pub(super) fn to_words(self, position: u64, journal: u64) -> [u64; 4] {
        // Every field is in the sum.
        let Record {
            kind,
            file,
            offset,
            generation,
            length,
        } = self;
        let low = u64::from(length) | (kind as u64) << 32;
        let sum = key(&[journal, position, file, offset, generation, low]);
        [file, offset, generation, low | (sum >> 40) << 40]
    }

    /// Encodes it for `position` (from 0) of the journal with this header.
    pub fn to_bytes(self, position: u64, header: &Header) -> [u8; RECORD_BYTES] {
        let mut bytes = [0; RECORD_BYTES];
        let words = self.to_words(position, header.key());
        for (place, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
        bytes
    }

    fn from_bytes(bytes: &[u8; RECORD_BYTES], position: u64, journal: u64) -> Option<Record> {
        let mut words = [0; 4];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let [file, offset, generation, last] = words;
        let kind = ((last >> 32) & 0xff) as usize;
        let record = Record {
            kind: *KINDS.get(kind.checked_sub(1)?)?,
            file,
            offset,
            generation,
            length: last as u32,
        };
        (record.to_words(position, journal) == words).then_some(record)
    }
}

/// Reads a journal; a record that was not finished ends it. A journal that was cut off is refused:
/// the writes that it no longer has would look like damage.
pub struct Records<R> {
    input: R,
    header: Header,
    position: u64,
    ended: bool,
}

impl<R: Read> Records<R> {
    /// Reads the header of `input`; `None` for an empty journal: the worker ended before it
    /// started.
    ///
    /// # Errors The reason why it is not a journal, as a clause.
    pub fn open(mut input: R) -> Result<Option<Records<R>>, String> {
        let mut head = Vec::new();
        let mut read = |head: &mut Vec<u8>, upto: u64| {
            let more = upto.saturating_sub(head.len() as u64);
            let read = input.by_ref().take(more).read_to_end(head);
            read.map_err(|e| format!("cannot be read: {e}"))
        };
        read(&mut head, RECORDS_AT)?;
        if head.iter().all(|b| *b == 0) {
            return Ok(None);
        }
        // A length that is damaged is found out by the checksum of what it says.
        let body = head.get(16..24).and_then(|word| word.first_chunk::<8>());
        let body = body.map_or(0, |word| u64::from_le_bytes(*word).min(BODY_MAX));
        if head.starts_with(&MAGIC) && (head.len() as u64) < RECORDS_AT {
            return Err("it is cut off within its header".to_owned());
        }
        read(&mut head, records_at(FIXED + body as usize) as u64)?;
        Ok(Some(Records {
            header: Header::from_bytes(&head)?,
            input,
            position: 0,
            ended: false,
        }))
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn step(&mut self) -> Result<Option<Record>, String> {
        let mut bytes = [0; RECORD_BYTES];
        let unread = |e: io::Error| format!("cannot be read: {e}");
        let is_blank = |bytes: &[u8]| bytes.iter().all(|b| *b == 0);
        let got = fill(&mut self.input, &mut bytes).map_err(unread)?;
        let record = Record::from_bytes(&bytes, self.position, self.header.key());
        if got == RECORD_BYTES
            && let Some(record) = record
        {
            self.position += 1;
            return Ok(Some(record));
        }
        self.ended = true;
        let mut ends_blank = got == RECORD_BYTES && is_blank(&bytes);
        let unfinished = u64::from(got == RECORD_BYTES && !ends_blank);
        // Only the last record can be unfinished.
        loop {
            match fill(&mut self.input, &mut bytes).map_err(unread)? {
                0 => break,
                got if is_blank(&bytes[..got]) => ends_blank = true,
                _ => {
                    let position = self.position;
                    return Err(format!("its record {position} is damaged"));
                }
            }
        }
        let records = self.position + unfinished;
        // Bytes of another record show that another piece followed.
        let is_whole = got == 0 || got == RECORD_BYTES;
        let is_whole_piece =
            is_whole && records > 0 && (records * RECORD_BYTES as u64).is_multiple_of(PIECE);
        match is_whole_piece || ends_blank {
            true => Ok(None),
            false => Err(format!(
                "it is cut off after {}: what follows is unknown",
                counted(self.position, "record")
            )),
        }
    }
}

impl<R: Read> Iterator for Records<R> {
    type Item = Result<Record, String>;

    /// The next record, or why there is none, as a clause.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step().transpose();
        self.ended |= matches!(step, Some(Err(_)));
        step
    }
}

/// Reads until `bytes` is full or the input ends.
fn fill(input: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < bytes.len() {
        match input.read(&mut bytes[got..]) {
            Ok(0) => break,
            Ok(more) => got += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use rbench_core::Bytes;

    pub(crate) fn header() -> Header {
        Header {
            run: 0xfeed,
            directory: PathBuf::from(OsStr::from_bytes(b"/mnt/f s/\xff/rbench.x")),
            pass: 1,
            worker: 2,
            workers: 4,
            block: 4096,
            size: 65_536,
            layout: Layout::SharedInterleaved,
            small: None,
            named: Vec::new(),
            mark: 0,
        }
    }

    fn journal(records: &[Record]) -> Vec<u8> {
        let mut bytes = header().to_bytes().expect("short");
        for (position, record) in (0..).zip(records) {
            bytes.extend_from_slice(&record.to_bytes(position, &header()));
        }
        bytes.extend([0; RECORD_BYTES]);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Vec<Record>, String> {
        Records::open(bytes)?.expect("a header").collect()
    }

    fn some(count: u64) -> Vec<Record> {
        let record = |n: u64| Record {
            kind: KINDS[n as usize % KINDS.len()],
            file: n,
            offset: n << 12,
            generation: 7 * n,
            length: 4096,
        };
        (0..count).map(record).collect()
    }

    #[test]
    fn a_header_says_what_was_put_in() {
        let small = Header {
            small: Some(SmallFiles {
                files: 10,
                size: Bytes(8192),
            }),
            layout: Layout::PerWorker,
            ..header()
        };
        let of_a_job = Header {
            named: named(300),
            mark: 7 << 40,
            ..header()
        };
        for (header, pages) in [(header(), 1), (small, 1), (of_a_job, 2)] {
            let bytes = header.to_bytes().expect("short");
            assert_eq!(bytes.len() as u64, pages * RECORDS_AT);
            assert_eq!(Header::from_bytes(&bytes), Ok(header.clone()));
            let record = some(1)[0];
            let journal = [bytes, record.to_bytes(0, &header).to_vec(), vec![0; 32]].concat();
            assert_eq!(read(&journal), Ok(vec![record]));
        }
    }

    fn named(count: u64) -> Vec<NamedFile> {
        let file = |n| NamedFile {
            path: PathBuf::from(format!("job.0.{n}")),
            from: n * 512,
            length: 9000,
        };
        (0..count).map(file).collect()
    }

    #[test]
    fn files_of_jobs_have_whole_blocks_from_their_part_on() {
        let header = Header {
            named: named(3),
            ..header()
        };
        let files: Vec<Journaled> = header.files().collect();
        assert_eq!(files.len(), 3);
        let offsets: Vec<u64> = header.offsets(&files[2]).collect();
        assert_eq!(offsets, [1024, 5120], "9000 bytes are two blocks of 4096");
        assert_eq!(files[2].length, 1024 + 9000);
        let whole = header.directory.join("job.0.2");
        assert_eq!(files[2].number, number_of(&whole));
    }

    #[test]
    fn a_header_of_a_run_that_cannot_be_is_refused() {
        let check = |change: fn(&mut Header)| {
            let mut header = header();
            change(&mut header);
            let bytes = header.to_bytes().expect("short");
            let refused = Err("its header is damaged".to_owned());
            assert_eq!(Header::from_bytes(&bytes), refused, "{header:?}");
        };
        check(|h| h.worker = h.workers);
        check(|h| h.size = 1 << 62);
        check(|h| h.size += 1);
        check(|h| h.block = 256);
        check(|h| {
            h.small = Some(SmallFiles {
                files: u64::MAX,
                size: Bytes(512),
            });
        });
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_found() {
        let good = header().to_bytes().expect("short");
        let used = good.iter().rposition(|b| *b != 0).expect("not empty");
        for bit in 0..(used + 1) * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::from_bytes(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn records_are_read_as_they_were_written_and_zeros_end_them() {
        let mut bytes = journal(&some(20));
        assert_eq!(read(&bytes), Ok(some(20)));
        bytes.resize(bytes.len() + 1000, 0);
        assert_eq!(read(&bytes), Ok(some(20)));
        assert!(Records::open(&[0_u8; 100][..]).is_ok_and(|none| none.is_none()));
        assert!(read(b"something else").is_err());
    }

    #[test]
    fn an_unfinished_last_record_is_left_out_and_one_before_it_is_damage() {
        let whole = journal(&some(20));
        let end = whole.len() - RECORD_BYTES;
        for cut in 1..RECORD_BYTES {
            let mut torn = whole.clone();
            // All words but for one.
            torn[end - cut..].fill(0);
            assert_eq!(read(&torn), Ok(some(19)), "{cut} bytes zero");
        }
        let mut bad = whole;
        bad[end - RECORD_BYTES - 1] ^= 1;
        assert_eq!(read(&bad), Err("its record 18 is damaged".to_owned()));
    }

    #[test]
    fn a_journal_that_is_cut_off_anywhere_is_refused() {
        let whole = journal(&some(20));
        let cut_off = |bytes: &[u8]| match Records::open(bytes) {
            Err(why) => why.contains("cut off"),
            Ok(records) => {
                let read: Result<Vec<Record>, String> = records.expect("a header").collect();
                read.is_err_and(|why| why.contains("cut off"))
            }
        };
        for length in MAGIC.len()..whole.len() {
            assert!(cut_off(&whole[..length]), "{length} of {}", whole.len());
        }
        assert!(!cut_off(&whole));
    }

    #[test]
    fn records_that_fill_a_piece_need_no_end() {
        let all = some(PIECE / RECORD_BYTES as u64);
        let mut bytes = journal(&all);
        bytes.truncate(bytes.len() - RECORD_BYTES);
        assert_eq!(read(&bytes), Ok(all.clone()));
        // The last record was not finished.
        let last = bytes.len() - 8;
        bytes[last..].fill(0);
        assert_eq!(read(&bytes), Ok(all[..all.len() - 1].to_vec()));
        // A part of a record of the next piece.
        let longer = journal(&some(PIECE / RECORD_BYTES as u64 + 1));
        let whole = RECORDS_AT as usize + PIECE as usize;
        for part in [1, 16, 31] {
            assert!(read(&longer[..whole + part]).is_err(), "{part}");
        }
    }

    proptest! {
        #[test]
        fn malformed_journals_are_refused_without_a_panic(
            mut tail: Vec<u8>, at in 0_usize..9000, change: u8,
        ) {
            let mut bytes = journal(&some(10));
            bytes.append(&mut tail);
            let at = at % bytes.len();
            bytes[at] = change;
            if let Ok(Some(records)) = Records::open(&bytes[..]) {
                records.for_each(drop);
            }
        }
    }
}
