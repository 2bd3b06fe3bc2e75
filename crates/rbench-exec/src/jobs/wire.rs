//! How outcomes of jobs travel to rank 0: histograms as their buckets in use.

use rbench_core::job::{DirectionOutcome, JobOutcome, Series};
use rbench_core::moved::Moved;
use rbench_core::wire::{Reader, Writer};
use rbench_core::{Latency, Nanos};

/// The message that holds `outcomes`.
pub fn encode(outcomes: &[JobOutcome]) -> Vec<u8> {
    let mut w = Writer::default();
    outcomes.iter().for_each(|outcome| write(&mut w, outcome));
    w.finish()
}

/// The outcomes of a message; `None` when it did not arrive whole.
pub fn decode(message: &[u8]) -> Option<Vec<JobOutcome>> {
    let mut r = Reader::new(message);
    let mut all = Vec::new();
    while !r.is_empty() {
        all.push(read(&mut r)?);
    }
    Some(all)
}

fn write(w: &mut Writer, outcome: &JobOutcome) {
    let JobOutcome {
        job,
        worker,
        pid,
        workers,
        read,
        write,
        trim,
        sync,
        error,
        errors,
        first_error,
        start_ms,
        elapsed,
        elapsed_sum,
        cpu_user,
        cpu_system,
        switches,
        faults_major,
        faults_minor,
        depths,
        submits,
        completes,
        latency_depth,
        steady,
        steady_window,
        moved,
    } = outcome;
    w.numbers(&[
        u64::from(*job),
        *worker,
        u64::from(*pid),
        *workers,
        error.unsigned_abs().into(),
        *errors,
        first_error.unsigned_abs().into(),
        *start_ms,
        elapsed.0,
        elapsed_sum.0,
        cpu_user.0,
        cpu_system.0,
        *switches,
        *faults_major,
        *faults_minor,
        u64::from(*latency_depth),
        steady.map_or(0, |reached| 1 + u64::from(reached)),
    ]);
    for counts in [depths, submits, completes] {
        w.numbers(counts);
    }
    write_direction(w, read);
    write_direction(w, write);
    write_direction(w, trim);
    w.numbers(&sync.to_words());
    let seconds: Vec<u64> = steady_window.iter().flat_map(|(i, b)| [*i, *b]).collect();
    w.numbers(&seconds);
    let bytes: Vec<u64> = moved.bytes.iter().flatten().copied().collect();
    w.number(moved.width.0).number(moved.end.0).numbers(&bytes);
}

fn write_direction(w: &mut Writer, direction: &DirectionOutcome) {
    let DirectionOutcome {
        ios,
        bytes,
        short,
        runtime,
        slat,
        clat,
        lat,
        response,
        bw,
        iops,
    } = direction;
    w.numbers(&[*ios, *bytes, *short, runtime.0]);
    for latency in [slat.as_ref(), Some(clat), Some(lat), response.as_ref()] {
        w.numbers(&latency.map_or(Vec::new(), Latency::to_words));
    }
    for series in [bw, iops] {
        let Series {
            samples,
            min,
            max,
            sum,
            squares,
        } = series;
        let bits = [min, max, sum, squares].map(|value| value.to_bits());
        w.number(*samples).numbers(&bits);
    }
}

fn array<const N: usize>(r: &mut Reader<'_>) -> Option<[u64; N]> {
    r.numbers()?.try_into().ok()
}

fn read(r: &mut Reader<'_>) -> Option<JobOutcome> {
    let [
        job,
        worker,
        pid,
        workers,
        error,
        errors,
        first_error,
        start_ms,
        elapsed,
        elapsed_sum,
        cpu_user,
        cpu_system,
        switches,
        faults_major,
        faults_minor,
        latency_depth,
        steady,
    ] = array(r)?;
    let [depths, submits, completes] = [array(r)?, array(r)?, array(r)?];
    Some(JobOutcome {
        job: u32::try_from(job).ok()?,
        worker,
        pid: u32::try_from(pid).ok()?,
        workers,
        read: read_direction(r)?,
        write: read_direction(r)?,
        trim: read_direction(r)?,
        sync: Latency::from_words(&r.numbers()?)?,
        error: i32::try_from(error).ok()?,
        errors,
        first_error: i32::try_from(first_error).ok()?,
        start_ms,
        elapsed: Nanos(elapsed),
        elapsed_sum: Nanos(elapsed_sum),
        cpu_user: Nanos(cpu_user),
        cpu_system: Nanos(cpu_system),
        switches,
        faults_major,
        faults_minor,
        depths,
        submits,
        completes,
        latency_depth: u32::try_from(latency_depth).ok()?,
        steady: steady.checked_sub(1).map(|reached| reached == 1),
        steady_window: r
            .numbers()?
            .chunks_exact(2)
            .map(|pair| (pair[0], pair[1]))
            .collect(),
        moved: Moved {
            width: Nanos(r.number()?),
            end: Nanos(r.number()?),
            bytes: r.numbers()?.as_chunks().0.to_vec(),
        },
    })
}

fn read_direction(r: &mut Reader<'_>) -> Option<DirectionOutcome> {
    let [ios, bytes, short, runtime] = array(r)?;
    let mut latency = || {
        let words = r.numbers()?;
        if words.is_empty() {
            return Some(None);
        }
        Latency::from_words(&words).map(Some)
    };
    let (slat, clat, lat, response) = (latency()?, latency()??, latency()??, latency()?);
    let mut series = || {
        let samples = r.number()?;
        let [min, max, sum, squares] = array(r)?.map(f64::from_bits);
        Some(Series {
            samples,
            min,
            max,
            sum,
            squares,
        })
    };
    Some(DirectionOutcome {
        ios,
        bytes,
        short,
        runtime: Nanos(runtime),
        slat,
        clat,
        lat,
        response,
        bw: series()?,
        iops: series()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn latency(values: &[u64]) -> Latency {
        let mut latency = Latency::new();
        values.iter().for_each(|v| latency.record(Nanos(*v)));
        latency
    }

    prop_compose! {
        fn direction()(
            numbers: [u64; 4],
            times in prop::collection::vec(0_u64..5_000_000_000_000, 0..20),
            slat: bool, response: bool, rates in prop::collection::vec(0.0_f64..1e9, 0..5),
        ) -> DirectionOutcome {
            let mut bw = Series::default();
            rates.iter().for_each(|rate| bw.add(*rate));
            DirectionOutcome {
                ios: numbers[0], bytes: numbers[1], short: numbers[2], runtime: Nanos(numbers[3]),
                slat: slat.then(|| latency(&times)), clat: latency(&times), lat: latency(&[]),
                response: response.then(|| latency(&[1])), bw, iops: Series::default(),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_sent_arrives(
            read in direction(), write in direction(), trim in direction(), numbers: [u64; 9], depths: [u64; 7],
            small: [u32; 3], error in 0..=i32::MAX, steady: Option<bool>,
        ) {
            let outcome = JobOutcome {
                job: small[0], worker: numbers[0], pid: small[1], workers: numbers[1],
                read, write, trim, sync: latency(&[7, 8]), error, errors: numbers[2], first_error: error / 2, elapsed_sum: Nanos(5),
                start_ms: numbers[3], elapsed: Nanos(numbers[4]), cpu_user: Nanos(numbers[5]),
                cpu_system: Nanos(numbers[6]), switches: numbers[7], faults_major: numbers[8],
                faults_minor: 3, depths, submits: depths, completes: [0; 7],
                latency_depth: small[2], steady, steady_window: vec![(numbers[1], 4); 3],
                moved: Moved { width: Nanos(numbers[2]), end: Nanos(7), bytes: vec![[numbers[3], 7]; 2] },
            };
            let two = vec![outcome.clone(), JobOutcome { worker: 1, ..outcome }];
            prop_assert_eq!(decode(&encode(&two)), Some(two));
        }

        #[test]
        fn a_message_that_is_cut_off_is_refused(cut in 1_usize..300) {
            let whole = encode(&[JobOutcome::default()]);
            prop_assert_eq!(decode(&whole[..whole.len() - cut]), None);
        }
    }
}
