//! What a journal of acknowledged writes looks like: a header, and records of
//! equal length behind it, each with a checksum.
//!
//! Words are little-endian. The header is [`MAGIC`], the version, the length
//! of its body, the body's XXH3, and the body (see [`Header`]); records begin
//! at [`RECORDS_AT`]. What lies behind the last record is zero.

use std::ffi::{CStr, OsStr};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rbench_core::random::key;
use rbench_core::wire;
use rbench_plan::io::{Layout, SmallFiles, small_paths};
use rbench_plan::tree::Paths;
use xxhash_rust::xxh3::xxh3_64;

use crate::verify::{BlockHeader, STEP_BITS, WRITE_BITS};

/// The first bytes of every journal.
pub const MAGIC: [u8; 8] = *b"rbenchAW";
/// The form that is written and read, and that of the blocks it speaks of.
pub const VERSION: u64 = 2;
/// Where the records begin, in bytes.
pub const RECORDS_AT: u64 = 8192;
/// Bytes of a record.
pub const RECORD_BYTES: usize = 32;
/// Bytes in front of the header's body.
const FIXED: usize = 32;

/// What a journal says once: all that is needed to find its blocks.
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
    /// Whose file is whose.
    pub layout: Layout,
    /// `Some`: the small-file form.
    pub small: Option<SmallFiles>,
}

const LAYOUTS: [Layout; 3] = [
    Layout::PerWorker,
    Layout::SharedSegmented,
    Layout::SharedInterleaved,
];

impl Header {
    /// As bytes that fill the journal up to its records.
    ///
    /// # Errors
    /// When the path of the directory is too long.
    pub fn to_bytes(&self) -> Result<Vec<u8>, String> {
        let layout = LAYOUTS.iter().position(|layout| *layout == self.layout);
        let small = self.small.map_or([0, 0], |s| [s.files, s.size.0]);
        let mut body = wire::Writer::default();
        body.numbers(&[
            self.run,
            u64::from(self.pass),
            self.worker,
            self.workers,
            self.block,
            self.size,
            layout.unwrap_or_default() as u64,
            small[0],
            small[1],
        ]);
        body.bytes(self.directory.as_os_str().as_bytes());
        let body = body.finish();
        let mut bytes = MAGIC.to_vec();
        for word in [VERSION, body.len() as u64, xxh3_64(&body)] {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.extend_from_slice(&body);
        if bytes.len() > RECORDS_AT as usize {
            return Err("the path of the directory is too long for a journal".to_owned());
        }
        bytes.resize(RECORDS_AT as usize, 0);
        Ok(bytes)
    }

    /// Reads what [`Header::to_bytes`] made.
    ///
    /// # Errors
    /// What is wrong with it, as a clause.
    pub fn from_bytes(bytes: &[u8]) -> Result<Header, String> {
        let damaged = || "its header is damaged".to_owned();
        if !bytes.starts_with(&MAGIC) {
            return Err("it is no journal of rbench io --ack-journal".to_owned());
        }
        let mut fixed = wire::Reader::new(bytes.get(MAGIC.len()..FIXED).ok_or_else(damaged)?);
        let mut word = || fixed.number().ok_or_else(damaged);
        let (version, length, sum) = (word()?, word()?, word()?);
        if version != VERSION {
            return Err(format!(
                "its version is {version}, and this rbench reads {VERSION}"
            ));
        }
        let body = bytes[FIXED..].get(..length as usize).ok_or_else(damaged)?;
        if xxh3_64(body) != sum {
            return Err(damaged());
        }
        let mut body = wire::Reader::new(body);
        let numbers = body.numbers().ok_or_else(damaged)?;
        let directory = body.bytes().ok_or_else(damaged)?;
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
        ] = numbers[..]
        else {
            return Err(damaged());
        };
        let layout = *LAYOUTS.get(layout as usize).ok_or_else(damaged)?;
        // What no run writes, so that no place of a block is past 2^63.
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
            directory: PathBuf::from(OsStr::from_bytes(directory)),
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
        })
    }

    /// The number of the file that holds the worker's part, for stamps. The
    /// small-file form has a file for each of [`SmallFiles::files`].
    pub fn files(&self) -> Files {
        Files {
            header: self.clone(),
            small: self
                .small
                .map(|small| small_paths("", self.worker, small.files)),
            next: 0,
        }
    }

    /// Bytes of a file when all of it is there.
    pub fn file_length(&self) -> u64 {
        match (self.small, self.layout.shared()) {
            (Some(small), _) => small.size.0,
            (None, true) => self.size.saturating_mul(self.workers),
            (None, false) => self.size,
        }
    }

    /// Where the worker's blocks lie in each of its files, in bytes.
    pub fn offsets(&self) -> impl Iterator<Item = u64> + use<> {
        let (layout, size, block) = (self.layout, self.size, self.block);
        let owner = (self.worker, self.workers);
        (0..size / block).map(move |nth| layout.offset(nth * block, owner, size, block))
    }

    /// The block at `offset` of `file`, with the lowest generation of the
    /// pass.
    pub fn identity(&self, file: u64, offset: u64) -> BlockHeader {
        BlockHeader {
            run: self.run,
            file,
            offset,
            generation: u64::from(self.pass) << (WRITE_BITS + STEP_BITS),
            worker: 0,
        }
    }

    /// What the checksums of the records start from.
    pub(super) fn key(&self) -> u64 {
        key(&[self.run, u64::from(self.pass), self.worker])
    }
}

/// The files of a journal: number, for stamps, and path below the run's
/// directory.
pub struct Files {
    header: Header,
    small: Option<Paths>,
    next: u64,
}

fn below(pass: u32, name: &CStr) -> PathBuf {
    let name = name.to_bytes();
    let name = name.strip_prefix(b"/").unwrap_or(name);
    Path::new(&pass.to_string()).join(OsStr::from_bytes(name))
}

impl Iterator for Files {
    type Item = (u64, PathBuf);

    fn next(&mut self) -> Option<(u64, PathBuf)> {
        let Header {
            pass,
            worker,
            layout,
            small,
            ..
        } = self.header;
        let nth = self.next;
        self.next += 1;
        if let (Some(small), Some(paths)) = (small, &mut self.small) {
            return (nth < small.files).then(|| {
                paths.item(nth);
                ((worker << 32) | nth, below(pass, paths.current()))
            });
        }
        let file = if layout.shared() { 0 } else { worker };
        let path = Path::new(&pass.to_string()).join(layout.file_name(worker));
        (nth == 0).then_some((file, path))
    }
}

/// What happened.
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
    /// What happened.
    pub kind: Kind,
    /// To which file, as in stamps.
    pub file: u64,
    /// Where in it, in bytes.
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

    /// As it stands at `position` (from 0) of the journal with this key.
    #[inline]
    pub(super) fn to_words(self, position: u64, journal: u64) -> [u64; 4] {
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

    /// As it stands at `position` (from 0) of the journal with this header.
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

/// Reads a journal; a record that was not finished ends it.
pub struct Records<R> {
    input: R,
    header: Header,
    position: u64,
    ended: bool,
}

impl<R: Read> Records<R> {
    /// Reads the header of `input`; `None` where nothing was written at all:
    /// the worker was ended before it had begun.
    ///
    /// # Errors
    /// Why it is no journal, as a clause.
    pub fn open(mut input: R) -> Result<Option<Records<R>>, String> {
        let mut head = Vec::new();
        input
            .by_ref()
            .take(RECORDS_AT)
            .read_to_end(&mut head)
            .map_err(|e| format!("it cannot be read: {e}"))?;
        if head.iter().all(|b| *b == 0) {
            return Ok(None);
        }
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
        let got = fill(&mut self.input, &mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
        let record = Record::from_bytes(&bytes, self.position, self.header.key());
        if got == RECORD_BYTES
            && let Some(record) = record
        {
            self.position += 1;
            return Ok(Some(record));
        }
        self.ended = true;
        // Only the last record can be unfinished.
        loop {
            let got =
                fill(&mut self.input, &mut bytes).map_err(|e| format!("cannot be read: {e}"))?;
            match got {
                0 => return Ok(None),
                got if bytes[..got].iter().all(|b| *b == 0) => {}
                _ => {
                    let position = self.position;
                    return Err(format!("its record {position} is damaged"));
                }
            }
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
        }
    }

    fn journal(records: &[Record]) -> Vec<u8> {
        let mut bytes = header().to_bytes().expect("short");
        for (position, record) in (0..).zip(records) {
            bytes.extend_from_slice(&record.to_bytes(position, &header()));
        }
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
        for header in [header(), small] {
            let bytes = header.to_bytes().expect("short");
            assert_eq!(bytes.len() as u64, RECORDS_AT);
            assert_eq!(Header::from_bytes(&bytes), Ok(header));
        }
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
        for cut in 1..RECORD_BYTES {
            let short = &whole[..whole.len() - cut];
            assert_eq!(read(short), Ok(some(19)), "{cut} bytes short");
            let mut torn = whole.clone();
            let end = torn.len();
            // All words but for one.
            torn[end - cut..].fill(0);
            torn.resize(end + 64, 0);
            assert_eq!(read(&torn), Ok(some(19)), "{cut} bytes zero");
        }
        let mut bad = whole;
        let at = bad.len() - RECORD_BYTES - 1;
        bad[at] ^= 1;
        assert_eq!(read(&bad), Err("its record 18 is damaged".to_owned()));
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
