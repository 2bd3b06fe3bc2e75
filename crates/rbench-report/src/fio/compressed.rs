//! Compressed logs (`log_store_compressed`): fio 3.33's records in one or several zlib streams.
//!
//! A record is the time (ms, 8 bytes), the value (8), direction and flags (4), the priority (2, and
//! 2 unused), the block size (8), and with a flag the offset (8); little-endian.

use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};

use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rbench_core::job::LogSample;

use super::logs::{Form, Kind, Line};

/// Flag: the record has an offset.
const OFFSET: u32 = 1 << 31;
/// Flag: the last column is a priority.
const PRIORITY: u32 = 1 << 30;
/// Flag of later versions of fio: the value is the largest of an averaging interval, not the mean.
const LARGEST: u32 = 1 << 29;

/// Bytes of a record without an offset.
const RECORD: usize = 32;

/// The name of the compressed form of a log.
pub fn file_name(of_text: &str) -> String {
    format!("{of_text}.fz")
}

/// Compresses a log of these operations or intervals.
///
/// # Errors Only if memory is exhausted.
pub fn store<'s>(
    kind: Kind,
    samples: impl Iterator<Item = &'s LogSample>,
    form: Form,
) -> io::Result<Vec<u8>> {
    let mut out = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    for sample in samples {
        out.write_all(&record(&Line::of(kind, sample, form), form))?;
    }
    out.finish()
}

fn record(line: &Line, form: Form) -> Vec<u8> {
    let flags = [(form.offsets, OFFSET), (form.priority, PRIORITY)];
    let set = flags.iter().filter(|(set, _)| *set);
    let direction = set.fold(u32::from(line.direction.number()), |all, (_, flag)| {
        all | flag
    });
    let mut bytes = Vec::with_capacity(RECORD + 8);
    bytes.extend_from_slice(&line.ms.to_le_bytes());
    bytes.extend_from_slice(&line.value.to_le_bytes());
    bytes.extend_from_slice(&direction.to_le_bytes());
    bytes.extend_from_slice(&line.priority.0.to_le_bytes());
    bytes.extend_from_slice(&[0; 2]);
    bytes.extend_from_slice(&line.block.to_le_bytes());
    if form.offsets {
        bytes.extend_from_slice(&line.offset.to_le_bytes());
    }
    bytes
}

/// Returns true if a file that starts like this may be such a log: a zlib stream without records,
/// or with a valid direction in the first.
pub fn is_stored(start: &[u8]) -> bool {
    let mut first = Vec::new();
    let mut stream = ZlibDecoder::new(start).take(RECORD as u64);
    let read = stream.read_to_end(&mut first);
    match first.first_chunk::<RECORD>() {
        None => read.is_ok() && first.is_empty() && !start.is_empty(),
        Some(record) => {
            let flags = record[16..]
                .first_chunk()
                .map_or(0, |b| u32::from_le_bytes(*b));
            flags & !(OFFSET | PRIORITY | LARGEST) <= 2 && record[22..24] == [0; 2]
        }
    }
}

/// Bytes of records inflated at a time: a small log may hold very many.
const PIECE: usize = 1 << 20;

/// Passes the lines of a compressed log of rbench or fio 3.33 to `put`, piece by piece. Returns
/// true if `put` took all of them.
///
/// # Errors A clause that describes the error.
pub fn inflate(mut stored: &[u8], put: &mut dyn FnMut(&str) -> bool) -> Result<bool, String> {
    let unsound = |error: io::Error| format!("not a valid log of log_store_compressed: {error}");
    let (mut text, mut records) = (String::new(), Vec::new());
    while !stored.is_empty() {
        let mut stream = ZlibDecoder::new(stored);
        loop {
            let room = (PIECE - records.len()) as u64;
            let read = stream.by_ref().take(room).read_to_end(&mut records);
            let over = read.map_err(unsound)? == 0;
            let left = push_lines(&mut text, &records)?.len();
            if !put(&text) {
                return Ok(false);
            }
            text.clear();
            records.drain(..records.len() - left);
            if over && left > 0 {
                return Err("it ends inside a record".to_owned());
            }
            if over {
                break;
            }
        }
        stored = stream.into_inner();
    }
    Ok(true)
}

/// Appends the lines of complete records; returns the start of an incomplete one.
fn push_lines<'r>(text: &mut String, mut records: &'r [u8]) -> Result<&'r [u8], String> {
    while let Some((head, rest)) = records.split_first_chunk::<RECORD>() {
        let word = |at: usize| {
            let bytes = head[at..].first_chunk::<8>();
            bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
        };
        let (flags, priority) = (word(16) as u32, (word(16) >> 32) as u16);
        let (ms, value, block) = (word(0), word(8), word(24));
        let direction = flags & !(OFFSET | PRIORITY | LARGEST);
        let (offset, rest) = match (flags & OFFSET != 0, rest.split_first_chunk::<8>()) {
            (false, _) => (None, rest),
            (true, Some((offset, rest))) => (Some(u64::from_le_bytes(*offset)), rest),
            (true, None) => break,
        };
        let _ = write!(text, "{ms}, {value}, {direction}, {block}, ");
        if let Some(offset) = offset {
            let _ = write!(text, "{offset}, ");
        }
        // Otherwise the column is 1 for a real-time priority.
        let _ = match flags & PRIORITY != 0 {
            true => writeln!(text, "0x{priority:04x}"),
            false => writeln!(text, "{}", u8::from(priority >> 13 == 1)),
        };
        records = rest;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::super::logs::line;
    use super::*;
    use proptest::prelude::*;
    use rbench_core::{Direction, IoPriority, Nanos};

    /// All lines of a log.
    fn inflate(stored: &[u8]) -> Result<String, String> {
        let mut all = String::new();
        let put = &mut |text: &str| {
            all.push_str(text);
            true
        };
        super::inflate(stored, put).map(|_| all)
    }

    fn sample(direction: Direction, at: u64, lat: u64, offset: u64) -> LogSample {
        LogSample {
            at: Nanos(at),
            direction,
            ios: 1,
            bytes: 4096,
            block: 4096,
            offset,
            span: Nanos(lat),
            lat: Nanos(lat),
            ..LogSample::default()
        }
    }

    #[test]
    fn a_record_has_fios_bytes() {
        // The first two of a log that fio 3.33 wrote with log_offset=1 and log_prio=1.
        let fios = [
            "2600000000000000 2c54430200000000 000000c000000000 0010000000000000 0000000000000000",
            "2600000000000000 7dd4020000000000 000000c000000000 0010000000000000 0050000000000000",
        ];
        let form = Form {
            offsets: true,
            priority: true,
            ..Form::default()
        };
        let ours = [(37_966_892, 0), (185_469, 20_480)].map(|(lat, offset)| {
            let bytes = record(
                &Line::of(
                    Kind::Lat,
                    &sample(Direction::Read, 38_000_000, lat, offset),
                    form,
                ),
                form,
            );
            let words = bytes.chunks(8).map(|word| {
                word.iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>()
            });
            words.collect::<Vec<_>>().join(" ")
        });
        assert_eq!(ours, fios);
    }

    proptest! {
        #[test]
        fn what_is_stored_is_inflated_to_the_lines_of_the_log(
            all in prop::collection::vec((any::<bool>(), 0..1_u64 << 50, 1..1_u64 << 40, any::<u64>(), any::<u16>()), 0..50),
            offsets: bool,
            priority: bool,
        ) {
            let form = Form { offsets, priority, ..Form::default() };
            let all: Vec<LogSample> = all.into_iter().map(|(w, at, lat, to, priority)| LogSample { priority: IoPriority(priority), ..sample(if w { Direction::Write } else { Direction::Read }, at, lat, to) }).collect();
            for kind in [Kind::Lat, Kind::Iops, Kind::Bandwidth] {
                let stored = store(kind, all.iter(), form).expect("memory");
                let text: String = all.iter().map(|one| line(kind, one, form)).collect();
                prop_assert_eq!(inflate(&stored), Ok(text.clone()));
                // Several streams form one log.
                let twice = [stored.clone(), stored].concat();
                prop_assert_eq!(inflate(&twice), Ok(text.repeat(2)));
            }
        }

        #[test]
        fn nothing_makes_it_panic(stored: Vec<u8>) {
            let _ = inflate(&stored);
        }
    }

    #[test]
    fn a_log_is_known_by_its_first_record() {
        let of = |samples: &[LogSample]| {
            store(Kind::Lat, samples.iter(), Form::default()).expect("memory")
        };
        assert!(is_stored(&of(&[])));
        let long = of(&[sample(Direction::Write, 1, 2, 3); 5000]);
        assert!(is_stored(&long) && is_stored(&long[..long.len() / 2]));
        let mut text = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        text.write_all(b"a thesis of the user's that is not written over")
            .expect("memory");
        assert!(!is_stored(&text.finish().expect("memory")));
        for other in [&b"0, 1, 1, 4096, 0\n"[..], b"", b"\x78\x9c"] {
            assert!(!is_stored(other), "{other:?}");
        }
    }

    #[test]
    fn a_small_log_of_very_many_records_takes_little_memory() {
        let mut many = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        let zeros = vec![0; RECORD * 1000];
        for _ in 0..200 {
            many.write_all(&zeros).expect("memory");
        }
        let many = many.finish().expect("memory");
        let (mut lines, mut longest) = (0, 0);
        let put = &mut |text: &str| {
            lines += text.lines().count();
            longest = longest.max(text.len());
            true
        };
        assert_eq!(super::inflate(&many, put), Ok(true));
        assert_eq!(lines, 200_000);
        assert!(longest <= 2 * PIECE, "{longest}");
        assert_eq!(super::inflate(&many, &mut |_| false), Ok(false));
    }

    #[test]
    fn a_log_that_is_cut_off_or_damaged_is_told() {
        let all = [
            sample(Direction::Write, 1, 2, 3),
            sample(Direction::Read, 4, 5, 6),
        ];
        let stored = store(Kind::Lat, all.iter(), Form::default()).expect("memory");
        for length in 1..stored.len() {
            assert!(inflate(&stored[..length]).is_err(), "{length}");
        }
        let mut half = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        half.write_all(&[0; RECORD - 1]).expect("memory");
        let half = half.finish().expect("memory");
        assert!(
            inflate(&half)
                .expect_err("half a record")
                .contains("inside a record")
        );
        assert!(inflate(b"0, 1, 1, 4096, 0\n").is_err());
    }
}
