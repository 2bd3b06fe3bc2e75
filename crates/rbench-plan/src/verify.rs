//! How the blocks of a job are verified: what they carry, and when they are read back.

use crate::meta::Packet;

/// `verify`: what an interval of a job carries, in fio's layout.
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
    /// A header alone; with a pattern, that is checked too.
    Meta,
    /// A header, and the pattern behind it.
    PatternHeader,
    /// The pattern alone.
    Pattern,
    /// Nothing: blocks are read back and not looked at.
    Null,
}

impl Checksum {
    /// Every one, by its name in fio.
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

    /// Whether intervals have a header.
    pub fn has_header(self) -> bool {
        !matches!(self, Checksum::Pattern | Checksum::Null)
    }

    /// Bytes behind the header that belong to the checksum.
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

/// `verify_pattern`
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyPattern {
    /// The bytes; zeros where an offset stands.
    pub bytes: Vec<u8>,
    /// Where an offset stands (`%o`): 8 bytes, little-endian.
    pub offsets: Vec<usize>,
}

/// What a job's blocks carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FioLayout {
    /// `verify`
    pub checksum: Checksum,
    /// `verify_offset`: where in each interval the header stands, bytes.
    pub offset: u64,
    /// `verify_pattern`; `None`: random data.
    pub pattern: Option<VerifyPattern>,
    /// `verify_pattern_interval`: the pattern begins anew every so many bytes; 0: with
    /// each block.
    pub pattern_interval: u64,
    /// `verify_header_seed`: whether the header's seed is checked.
    pub seed: bool,
    /// `verify_write_sequence`: whether the header's write number is checked.
    pub sequence: bool,
}

/// Trims of blocks that a verified job wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TrimBacklog {
    /// `trim_percentage`: so many per cent of the writes, at random.
    pub percent: u32,
    /// `trim_backlog`: after every so many writes …
    pub every: u64,
    /// `trim_backlog_batch`: … so many of them, the earliest first.
    pub batch: u64,
}

/// What the blocks of a job carry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Carries {
    /// The stamps of `rbench io`.
    Stamps,
    /// fio's headers, checksums and patterns.
    Fio(FioLayout),
    /// Data that follows from a seed, whose part of the files it is, and its place.
    Packet {
        /// Its kind.
        packet: Packet,
        /// The seed.
        seed: i32,
    },
}

/// Verification.
#[derive(Debug, Clone, PartialEq)]
pub struct Verify {
    /// What a job's blocks carry.
    pub carries: Carries,
    /// Bytes between headers; the block size at most.
    pub interval: u64,
    /// Read back after the writes of the run.
    pub read_back: bool,
    /// Blocks that were written more than once are read back once, in the order of their
    /// offsets.
    pub once: bool,
    /// Stop at the first wrong block.
    pub fatal: bool,
    /// Read back after so many writes.
    pub backlog: Option<u64>,
    /// So many of them at a time.
    pub backlog_batch: u64,
    /// Nothing is written: what an earlier run wrote is checked.
    pub only: bool,
    /// Threads of each worker that check what it read; 0: it does so itself.
    pub threads: u32,
    /// Processors of those threads; empty: any.
    pub cpus: Vec<usize>,
    /// Wrong blocks, and what they should be, are put into files.
    pub dump: bool,
    /// Which writes completed is put into a file at the end.
    pub save_state: bool,
    /// Such a file says how far to verify.
    pub load_state: bool,
    /// `verify_policy=fsynced`: as far as the last sync went; else as far as writes
    /// completed.
    pub synced_only: bool,
    /// What is trimmed of the blocks that were written; `None`: nothing.
    pub trims: Option<TrimBacklog>,
    /// `trim_verify_zero`: what was trimmed is read back, and must be zeros; else it is not
    /// read back.
    pub trimmed_is_zero: bool,
}

impl Verify {
    /// The stamps of `rbench io` every so many bytes, which are not read back in the run.
    pub fn stamped(interval: u64) -> Verify {
        Verify {
            carries: Carries::Stamps,
            interval,
            read_back: false,
            once: false,
            fatal: false,
            backlog: None,
            backlog_batch: 0,
            only: false,
            threads: 0,
            cpus: Vec::new(),
            dump: false,
            save_state: false,
            load_state: false,
            synced_only: false,
            trims: None,
            trimmed_is_zero: false,
        }
    }
}
