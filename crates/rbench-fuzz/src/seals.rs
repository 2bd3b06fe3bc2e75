//! Properties of data with checksums: journals of acknowledged writes, and headers of verified
//! blocks.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use arbitrary::{Result, Unstructured};
use rbench_core::Bytes;
use rbench_exec::ack::format::{NamedFile, RECORD_BYTES, RECORDS_AT, Records};
use rbench_exec::ack::history::History;
use rbench_exec::ack::judge::{Judge, expected};
use rbench_exec::ack::{Header, Kind, Record};
use rbench_exec::verify::{BlockHeader, Damage, Expected, Generations, Headers, Marks, file_key};
use rbench_plan::io::{Layout, SmallFiles, VERIFY_BLOCK_MIN};
use rbench_plan::jobs::JobPlan;
use rbench_plan::resolve::Work;

use crate::{plans, refusal};

/// The first byte of `input` selects the kind of data. Every changed bit under a checksum must be
/// found, and data without a checksum must be refused.
pub fn seals(input: &[u8]) {
    let Some((form, rest)) = input.split_first() else {
        return;
    };
    let mut u = Unstructured::new(rest);
    // An input that ends early is ignored.
    let _ = match form % 5 {
        0 => {
            read_journal(rest);
            Ok(())
        }
        1 => header(&mut u),
        2 => journal(&mut u),
        3 => stamps(&mut u),
        _ => headers(&mut u),
    };
}

/// Reads arbitrary bytes as a journal: records, or a clause with the reason.
fn read_journal(bytes: &[u8]) {
    let Some(opened) = refusal::of(Records::open(bytes)) else {
        return;
    };
    let Some(records) = opened else {
        return assert!(bytes.iter().take(RECORDS_AT as usize).all(|b| *b == 0));
    };
    let header = records.header().clone();
    for file in header.files().take(3) {
        header.offsets(&file).take(3).for_each(drop);
    }
    for record in records {
        refusal::of(record);
    }
}

fn any_header(u: &mut Unstructured<'_>) -> Result<Header> {
    let directory = OsStr::from_bytes(u.arbitrary()?);
    Ok(Header {
        run: u.arbitrary()?,
        directory: PathBuf::from(directory),
        pass: u.arbitrary()?,
        worker: u.arbitrary()?,
        workers: u.arbitrary()?,
        block: u.arbitrary()?,
        size: u.arbitrary()?,
        layout: *u.choose(&[
            Layout::PerWorker,
            Layout::SharedSegmented,
            Layout::SharedInterleaved,
        ])?,
        small: match u.ratio(1, 3)? {
            true => Some(SmallFiles {
                files: u.arbitrary::<u64>()?.max(1),
                size: Bytes(u.arbitrary()?),
            }),
            false => None,
        },
        named: (0..u.int_in_range(0..=3_u8)?)
            .map(|_| {
                Ok(NamedFile {
                    path: PathBuf::from(OsStr::from_bytes(u.arbitrary()?)),
                    from: u.arbitrary()?,
                    length: u.arbitrary()?,
                })
            })
            .collect::<Result<_>>()?,
        mark: u.arbitrary()?,
    })
}

/// Checks that a header reads back unchanged or not at all, and that a flipped bit is found.
fn header(u: &mut Unstructured<'_>) -> Result<()> {
    let header = any_header(u)?;
    let Some(mut bytes) = refusal::of(header.to_bytes()) else {
        return Ok(());
    };
    if let Some(read) = refusal::of(Header::from_bytes(&bytes)) {
        assert_eq!(read, header);
        read_journal(&bytes);
    }
    let used = bytes.iter().rposition(|b| *b != 0).map_or(0, |at| at + 1);
    let bit = u.choose_index(used * 8)?;
    bytes[bit / 8] ^= 1 << (bit % 8);
    let why = Header::from_bytes(&bytes).expect_err("a bit is flipped");
    refusal::is_plain(&why);
    Ok(())
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

fn any_record(u: &mut Unstructured<'_>) -> Result<Record> {
    Ok(Record {
        kind: *u.choose(&KINDS)?,
        file: u64::from(u.int_in_range(0..=2_u8)?),
        offset: 512 * u64::from(u.int_in_range(0..=8_u8)?) + u64::from(u.ratio(1, 50)?),
        generation: u64::from(u.int_in_range(0..=9_u8)?),
        length: 512 * u32::from(u.int_in_range(0..=4_u8)?),
    })
}

/// Checks that the records of a journal read back unchanged. A flipped bit must be found, except in
/// the last record, which then counts as unfinished. Blocks are judged by the contents that the
/// records allow.
fn journal(u: &mut Unstructured<'_>) -> Result<()> {
    let header = Header {
        run: 7,
        directory: PathBuf::from("/mnt/x/rbench.1"),
        pass: 0,
        worker: 1,
        workers: 2,
        block: 512,
        size: 1 << 16,
        layout: Layout::PerWorker,
        small: None,
        named: Vec::new(),
        mark: 0,
    };
    let count = u.int_in_range(0..=40_usize)?;
    let records: Vec<Record> = (0..count).map(|_| any_record(u)).collect::<Result<_>>()?;
    let mut bytes = header.to_bytes().expect("the path is short");
    for (position, record) in (0..).zip(&records) {
        bytes.extend_from_slice(&record.to_bytes(position, &header));
    }
    let sealed = bytes.len();
    // A blank record shows the end.
    bytes.resize(sealed + RECORD_BYTES + u.int_in_range(0..=100_usize)?, 0);
    assert_eq!(all(&bytes), (records.clone(), None));
    judged(u, &header, &records)?;
    if sealed > RECORDS_AT as usize {
        let bit = u.choose_index((sealed - RECORDS_AT as usize) * 8)?;
        let at = RECORDS_AT as usize + bit / 8;
        bytes[at] ^= 1 << (bit % 8);
        let (read, why) = all(&bytes);
        let damaged = bit / 8 / RECORD_BYTES;
        assert_eq!(read, records[..damaged]);
        assert_eq!(why.is_some(), damaged + 1 < records.len(), "{why:?}");
    }
    Ok(())
}

/// The records of a journal up to its end or to the first mistake.
fn all(bytes: &[u8]) -> (Vec<Record>, Option<String>) {
    let records = Records::open(bytes).expect("its header is right");
    let mut read = Vec::new();
    for record in records.expect("it is not empty") {
        match record {
            Ok(record) => read.push(record),
            Err(why) => {
                refusal::is_plain(&why);
                return (read, Some(why));
            }
        }
    }
    (read, None)
}

/// Checks that any content gets a verdict from any journal.
fn judged(u: &mut Unstructured<'_>, header: &Header, records: &[Record]) -> Result<()> {
    let mut history = History::new(header.block);
    for record in records {
        refusal::of(history.take(*record));
    }
    let place = header.identity(0, 512 * u64::from(u.int_in_range(0..=8_u8)?));
    let mut content = vec![0; 512];
    Headers::every(u64::MAX).stamp(
        &mut content,
        &BlockHeader {
            generation: u.int_in_range(0..=9)?,
            ..place
        },
    );
    for _ in 0..u.int_in_range(0..=3_u8)? {
        let from = u.choose_index(content.len())?;
        content[from..].fill(u.arbitrary()?);
    }
    let block = history.block(place.file, place.offset);
    let _ = Judge::default().judge(&content, place, block);
    refusal::is_plain(&expected(block));
    Ok(())
}

/// Length of a block: at least `least`, and not always a round number.
fn length(u: &mut Unstructured<'_>, least: usize) -> Result<usize> {
    Ok(least + u.int_in_range(0..=4096_usize)?)
}

/// Flips different bits of `block`. Returns their number.
fn damage(u: &mut Unstructured<'_>, block: &mut [u8]) -> Result<usize> {
    let original = block.to_vec();
    for _ in 0..u.int_in_range(1..=3_u8)? {
        let bit = u.choose_index(block.len() * 8)?;
        block[bit / 8] ^= 1 << (bit % 8);
    }
    let differ = original.iter().zip(block.iter());
    Ok(differ.map(|(a, b)| (a ^ b).count_ones() as usize).sum())
}

/// Properties of the headers of `rbench io --verify`.
fn stamps(u: &mut Unstructured<'_>) -> Result<()> {
    let headers = Headers::every(u64::MAX);
    let header = BlockHeader {
        run: u.arbitrary()?,
        file: u.arbitrary()?,
        offset: u.arbitrary()?,
        generation: u.arbitrary()?,
        worker: 0,
    };
    let range = u.arbitrary()?..=u.arbitrary()?;
    let right = range.contains(&header.generation);
    let expected = Expected {
        run: Some(header.run),
        file: header.file,
        offset: header.offset,
        generations: Some(Generations {
            worker: 0,
            mask: 0,
            likely: *range.end(),
            range,
        }),
    };
    let mut block = vec![0; length(u, VERIFY_BLOCK_MIN as usize)?];
    headers.stamp(&mut block, &header);
    assert_eq!(headers.check(&block, &expected).is_ok(), right);
    let flipped = damage(u, &mut block)?;
    let checked = headers.check(&block, &expected);
    assert_eq!(checked.is_err(), flipped > 0 || !right);
    if let (Err(wrong), true) = (&checked, right)
        && let Damage::Flipped { bits, .. } = wrong.damage
    {
        assert_eq!(bits as usize, flipped);
    }
    refusal::of(checked);
    // Arbitrary bytes.
    block.fill(0);
    let foreign: &[u8] = u.arbitrary()?;
    block.iter_mut().zip(foreign).for_each(|(b, f)| *b = *f);
    headers
        .check(&block, &expected)
        .expect_err("it holds no header of its length");
    Ok(())
}

/// A verifying job of fio, and true if its checksum finds every changed bit.
fn verifying_job(u: &mut Unstructured<'_>) -> Result<Option<(JobPlan, bool)>> {
    const SUMS: [&str; 9] = [
        "crc32c", "crc64", "xxhash", "md5", "sha1", "sha256", "sha512", "pattern", "null",
    ];
    let sum = *u.choose(&SUMS)?;
    let interval = u.int_in_range(60..=4096_u16)?;
    let pattern = match u.ratio(1, 2)? || sum == "pattern" {
        true => format!("\n--verify_pattern=0x{:x}", u.arbitrary::<u64>()?),
        false => String::new(),
    };
    let compress = u.int_in_range(0..=100_u8)?;
    let line = format!(
        "--name=a\n--rw=write\n--size=1m\n--bs=4k\n--verify={sum}\n--verify_interval={interval}\n\
         --buffer_compress_percentage={compress}{pattern}"
    );
    let argv = plans::words(&["rbench", "fio"], line.as_bytes());
    let invocation = match rbench_cli::parse(&argv, None) {
        Ok(invocation) => invocation,
        Err(stop) => {
            refusal::of_line(&stop);
            return Ok(None);
        }
    };
    let (spec, _) = plans::workload(invocation);
    let [facts, ..] = plans::worlds();
    let plan = plans::plan(&spec, &facts, line.len());
    let Some(Work::Jobs(jobs)) = plan.map(|plan| plan.work) else {
        return Ok(None);
    };
    let job = jobs.rounds.into_iter().flatten().next();
    // fio's sha512 covers only the ends of a block.
    let sealed = !matches!(sum, "null" | "sha512");
    Ok(job.map(|job| (job, sealed)))
}

/// Properties of the headers of fio's verification.
fn headers(u: &mut Unstructured<'_>) -> Result<()> {
    let Some((job, sealed)) = verifying_job(u)? else {
        return Ok(());
    };
    let headers = Marks::new(&job, 0).expect("the job verifies");
    let origin = BlockHeader {
        run: u.arbitrary()?,
        file: file_key(u.arbitrary()?),
        offset: u64::from(u.arbitrary::<u32>()?),
        // The maximum size in fio's header.
        generation: u64::from(u.arbitrary::<u16>()?),
        worker: u.arbitrary()?,
    };
    let expected = Expected {
        run: u.ratio(1, 2)?.then_some(origin.run),
        file: origin.file,
        offset: origin.offset,
        generations: u.ratio(1, 2)?.then_some(Generations {
            worker: origin.worker,
            mask: u64::MAX,
            range: origin.generation..=origin.generation,
            likely: origin.generation,
        }),
    };
    // A whole number of intervals: a shorter rest at the end has no header.
    let interval = job.verify.as_ref().map_or(1, |v| v.interval) as usize;
    let mut block = vec![0; interval * u.int_in_range(1..=4_usize)?];
    headers.stamp(&mut block, &origin);
    headers
        .check(&block, &expected)
        .expect("it is as it was written");
    let flipped = damage(u, &mut block)?;
    let checked = headers.check(&block, &expected);
    if sealed {
        assert_eq!(checked.is_err(), flipped > 0, "{flipped} flipped");
    }
    refusal::of(checked);
    let foreign: &[u8] = u.arbitrary()?;
    block.iter_mut().zip(foreign).for_each(|(b, f)| *b = *f);
    refusal::of(headers.check(&block, &expected));
    Ok(())
}
