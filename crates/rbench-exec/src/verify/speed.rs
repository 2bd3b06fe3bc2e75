//! Speed of the checksums of fio's verification, like fio's `--crctest`.

use std::time::{Duration, Instant};

use rbench_core::random::Stream;
use rbench_plan::jobs::Checksum;

use super::sums;

/// Bytes that are summed at a time, as in fio.
const CHUNK: usize = 128 << 10;
/// Duration of the measurement; a first tenth of it is not counted.
const SPAN: Duration = Duration::from_millis(500);

/// Bytes that one processor sums in a second.
pub fn bytes_per_s(checksum: Checksum) -> f64 {
    let mut random = Stream::new(&[0x89]);
    let words = (0..CHUNK / 8).flat_map(|_| random.next_u64().to_le_bytes());
    let data: Vec<u8> = words.collect();
    let mut out = [0; sums::LONGEST];
    let mut run = |span: Duration| {
        let (begun, mut chunks) = (Instant::now(), 0_u64);
        loop {
            sums::fill(checksum, std::hint::black_box(&data), &mut out);
            std::hint::black_box(&mut out);
            chunks += 1;
            let took = begun.elapsed();
            if took >= span {
                return (chunks * CHUNK as u64) as f64 / took.as_secs_f64();
            }
        }
    };
    run(SPAN / 10);
    run(SPAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_takes_its_time() {
        let slow = bytes_per_s(Checksum::Sha512);
        assert!(slow > 0.0 && slow.is_finite(), "{slow}");
    }

    mod timing {
        use super::*;

        #[test]
        fn a_checksum_is_not_slower_than_any_machine() {
            let slow = bytes_per_s(Checksum::Sha512);
            assert!(slow > 1e5, "{slow}");
        }
    }
}
