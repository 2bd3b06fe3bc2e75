//! The checksums of fio's layout, as fio 3.33 stores them.

use crc_fast::CrcAlgorithm;
use md5::Md5;
use rbench_plan::jobs::Checksum;
use sha1::{Digest, Sha1};
use sha2::block_api::compress256;
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512};
use xxhash_rust::xxh32::xxh32;

/// The longest checksum, bytes.
pub(super) const LONGEST: usize = 128;

/// Blocks of SHA-256 and SHA-512, bytes.
const SHORT: usize = 64;
const LONG: usize = 128;

/// SHA-256 of nothing yet.
const SHA256_START: [u32; 8] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f372,
    0xa54f_f53a,
    0x510e_527f,
    0x9b05_688c,
    0x1f83_d9ab,
    0x5be0_cd19,
];

/// Puts the checksum of `data` into `out`, which has its length.
pub(super) fn fill(checksum: Checksum, data: &[u8], out: &mut [u8]) {
    match checksum {
        Checksum::Md5 => put(out, &Md5::digest(data)),
        Checksum::Crc64 => put(
            out,
            &crc_fast::checksum(CrcAlgorithm::Crc64Redis, data).to_le_bytes(),
        ),
        // cksum inverts the result at its end; this undoes it.
        Checksum::Crc32 => put(
            out,
            &(!crc_fast::checksum(CrcAlgorithm::Crc32Cksum, data)).to_le_bytes(),
        ),
        Checksum::Crc32c => put(out, &crc32c(data).to_le_bytes()),
        Checksum::Crc16 => put(
            out,
            &crc_fast::checksum(CrcAlgorithm::Crc16Arc, data).to_le_bytes(),
        ),
        Checksum::Crc7 => put(out, &[crc7(data)]),
        // Its words, in the byte order of the machine.
        Checksum::Sha1 => {
            let digest = Sha1::digest(data);
            for (to, word) in out.chunks_exact_mut(4).zip(digest.chunks_exact(4)) {
                to.copy_from_slice(word);
                to.reverse();
            }
        }
        Checksum::Sha256 => sha256(data, out),
        Checksum::Sha512 => sha512(data, out),
        Checksum::Sha3_224 => put(out, &Sha3_224::digest(data)),
        Checksum::Sha3_256 => put(out, &Sha3_256::digest(data)),
        Checksum::Sha3_384 => put(out, &Sha3_384::digest(data)),
        Checksum::Sha3_512 => put(out, &Sha3_512::digest(data)),
        Checksum::Xxhash => put(out, &xxh32(data, 1).to_le_bytes()),
        Checksum::Meta | Checksum::PatternHeader | Checksum::Pattern | Checksum::Null => {}
    }
}

/// Copies as many bytes as there is room for.
fn put(out: &mut [u8], bytes: &[u8]) {
    let length = out.len().min(bytes.len());
    out[..length].copy_from_slice(&bytes[..length]);
}

/// CRC-32C as fio has it: not inverted at the end.
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    !(crc_fast::checksum(CrcAlgorithm::Crc32Iscsi, bytes) as u32)
}

/// CRC-7 of each byte.
const CRC7: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < table.len() {
        let mut crc = byte as u8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x80 != 0 {
                (crc << 1) ^ (0x09 << 1)
            } else {
                crc << 1
            };
            bit += 1;
        }
        table[byte] = crc >> 1;
        byte += 1;
    }
    table
};

fn crc7(data: &[u8]) -> u8 {
    data.iter()
        .fold(0, |crc, byte| CRC7[usize::from((crc << 1) ^ byte)])
}

/// fio stores its work area when all is hashed: the last block with its padding, whose length is
/// little-endian, and the lowest bytes of the state over the first eight.
fn sha256(data: &[u8], out: &mut [u8]) {
    let (blocks, tail) = data.as_chunks::<SHORT>();
    let mut state = SHA256_START;
    compress256(&mut state, blocks);
    let mut last = [0; SHORT];
    last[..tail.len()].copy_from_slice(tail);
    last[tail.len()] = 0x80;
    if tail.len() >= SHORT - 8 {
        compress256(&mut state, &[last]);
        // Bytes that are not overwritten stay.
        last[..SHORT - 8].fill(0);
    }
    last[SHORT - 8..].copy_from_slice(&(data.len() as u64 * 8).to_le_bytes());
    compress256(&mut state, &[last]);
    for (to, word) in last.iter_mut().zip(state) {
        *to = word as u8;
    }
    put(out, &last);
}

/// Here too, fio stores its work area, which holds no hash: the first block, overwritten by the
/// rest after the last whole one.
fn sha512(data: &[u8], out: &mut [u8]) {
    let mut area = [0; LONG];
    put(&mut area, data);
    let (_, tail) = data.as_chunks::<LONG>();
    put(&mut area, tail);
    put(out, &area);
}
