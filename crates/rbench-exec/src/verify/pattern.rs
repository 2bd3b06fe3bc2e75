//! The pattern of verified blocks: bytes that repeat from the beginning of each block (or at a
//! fixed interval) on, with the offset in them where the job asks for it.

use rbench_plan::jobs::VerifyPattern;

use crate::data;

/// Fills `block`, which lies at `offset` of its file. The pattern starts again every `every` bytes;
/// 0: it does not.
pub(super) fn fill(pattern: &VerifyPattern, every: usize, offset: u64, block: &mut [u8]) {
    let every = match every {
        0 => block.len().max(1),
        every => every,
    };
    if pattern.offsets.is_empty() {
        for piece in block.chunks_mut(every) {
            data::repeat(&pattern.bytes, piece);
        }
        return;
    }
    let mut bytes = pattern.bytes.clone();
    let mut at = offset;
    for piece in block.chunks_mut(every) {
        for place in &pattern.offsets {
            if let Some(to) = bytes.get_mut(*place..place + 8) {
                to.copy_from_slice(&at.to_le_bytes());
            }
        }
        data::repeat(&bytes, piece);
        // Any offset may be asked for; no file is that long.
        at = at.saturating_add(piece.len() as u64);
    }
}
