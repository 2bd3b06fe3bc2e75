//! Verification of a job's blocks: their content, and the time of reading them back.

use crate::meta::Packet;

/// `verify`: the checksum in an interval of a job, in fio's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checksum {
    /// MD5.
    Md5,
    /// CRC-64 with the polynomial 0xad93d23594c935a9.
    Crc64,
    /// CRC-32 of POSIX cksum, without inversion.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
    /// CRC-16/ARC.
    Crc16,
    /// CRC-7 of MMC cards.
    Crc7,
    /// SHA-1.
    Sha1,
    /// SHA-256, as fio stores it.
    Sha256,
    /// SHA-512, as fio stores it.
    Sha512,
    /// SHA3-224.
    Sha3_224,
    /// SHA3-256.
    Sha3_256,
    /// SHA3-384.
    Sha3_384,
    /// SHA3-512.
    Sha3_512,
    /// XXH32 with the seed 1.
    Xxhash,
    /// A header alone; a pattern, if given, is checked, too.
    Meta,
    /// A header, followed by the pattern.
    PatternHeader,
    /// The pattern alone.
    Pattern,
    /// No checksum: blocks are read back without a check.
    Null,
}

impl Checksum {
    /// Every checksum, by its name in fio.
    pub const ALL: [(&str, Checksum); 19] = [
        ("md5", Checksum::Md5),
        ("crc64", Checksum::Crc64),
        ("crc32", Checksum::Crc32),
        ("crc32c", Checksum::Crc32c),
        ("crc32c-intel", Checksum::Crc32c),
        ("crc16", Checksum::Crc16),
        ("crc7", Checksum::Crc7),
        ("sha1", Checksum::Sha1),
        ("sha256", Checksum::Sha256),
        ("sha512", Checksum::Sha512),
        ("sha3-224", Checksum::Sha3_224),
        ("sha3-256", Checksum::Sha3_256),
        ("sha3-384", Checksum::Sha3_384),
        ("sha3-512", Checksum::Sha3_512),
        ("xxhash", Checksum::Xxhash),
        ("meta", Checksum::Meta),
        ("pattern_hdr", Checksum::PatternHeader),
        ("pattern", Checksum::Pattern),
        ("null", Checksum::Null),
    ];

    /// Its name in fio.
    pub fn name(self) -> &'static str {
        let mut all = Self::ALL.iter();
        all.find(|(_, sum)| *sum == self)
            .map_or("", |(name, _)| name)
    }

    /// True if intervals have a header.
    pub fn has_header(self) -> bool {
        !matches!(self, Checksum::Pattern | Checksum::Null)
    }

    /// Bytes of the checksum after the header.
    pub fn length(self) -> u64 {
        match self {
            Checksum::Md5 => 16,
            Checksum::Crc64 => 8,
            Checksum::Crc32 | Checksum::Crc32c | Checksum::Xxhash => 4,
            Checksum::Crc16 => 2,
            Checksum::Crc7 => 1,
            Checksum::Sha1 => 20,
            Checksum::Sha256 | Checksum::Sha3_512 => 64,
            Checksum::Sha512 => 128,
            Checksum::Sha3_224 => 28,
            Checksum::Sha3_256 => 32,
            Checksum::Sha3_384 => 48,
            Checksum::Meta | Checksum::PatternHeader | Checksum::Pattern | Checksum::Null => 0,
        }
    }
}

/// Bytes of a header of fio 3.33, without its checksum of the data.
pub const HEADER: u64 = 40;

/// `verify_pattern`: bytes, in which the offset of the block may stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyPattern {
    /// The bytes, with zeros in place of offsets.
    pub bytes: Vec<u8>,
    /// Positions of the offsets (`%o`), ascending: 8 bytes each, little-endian.
    pub offsets: Vec<usize>,
}

/// Content of a job's blocks in fio's layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioLayout {
    /// `verify`
    pub checksum: Checksum,
    /// `verify_offset`: position of the header in each interval, bytes.
    pub offset: u64,
    /// `verify_pattern`; `None`: random data.
    pub pattern: Option<VerifyPattern>,
    /// `verify_pattern_interval`: bytes after which the pattern starts again; 0: at each
    /// block.
    pub pattern_interval: u64,
    /// `verify_header_seed`: true if the header's seed is checked.
    pub seed: bool,
    /// `verify_write_sequence`: true if the header's write number is checked.
    pub sequence: bool,
}

/// Trims of blocks that a verified job has written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimBacklog {
    /// `trim_percentage`: percentage of the writes, chosen at random.
    pub percent: u32,
    /// `trim_backlog`: number of writes between two batches.
    pub every: u64,
    /// `trim_backlog_batch`: number of trims in a batch, the earliest writes first.
    pub batch: u64,
}

/// Content of a job's blocks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Carries {
    /// The stamps of `rbench io`.
    #[default]
    Stamps,
    /// fio's headers, checksums and patterns.
    Fio(FioLayout),
    /// Data that depends on a seed, the owner of the part of the files, and the offset.
    Packet {
        /// Its kind.
        packet: Packet,
        /// The seed.
        seed: i32,
    },
}

/// Verification of a job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Verify {
    /// Content of its blocks.
    pub carries: Carries,
    /// Bytes between headers, at most the block size.
    pub interval: u64,
    /// True if blocks are read back after the writes of the run.
    pub read_back: bool,
    /// True if blocks that were written more than once are read back once, in the order of
    /// their offsets.
    pub once: bool,
    /// True if the job stops at the first wrong block.
    pub fatal: bool,
    /// Number of writes after which they are read back.
    pub backlog: Option<u64>,
    /// Number of blocks that are read back at a time.
    pub backlog_batch: u64,
    /// True if nothing is written: the writes of an earlier run are checked.
    pub only: bool,
    /// Threads of each worker that check the data that it read; 0: it checks itself.
    pub threads: u32,
    /// Processors of those threads; empty: any.
    pub cpus: Vec<usize>,
    /// True if wrong blocks, and their expected content, are written to files.
    pub dump: bool,
    /// True if the completed writes are written to a file at the end.
    pub save_state: bool,
    /// True if such a file limits the verification.
    pub load_state: bool,
    /// `verify_policy=fsynced`: true to verify up to the last sync, false for all completed
    /// writes.
    pub synced_only: bool,
    /// Trims of written blocks; `None`: none.
    pub trims: Option<TrimBacklog>,
    /// `trim_verify_zero`: true if trimmed blocks are read back and must be zeros;
    /// otherwise they are not read back.
    pub trimmed_is_zero: bool,
}

impl Verify {
    /// The stamps of `rbench io` with this interval, which are not read back in the run.
    pub fn stamped(interval: u64) -> Verify {
        Verify {
            interval,
            ..Verify::default()
        }
    }
}
