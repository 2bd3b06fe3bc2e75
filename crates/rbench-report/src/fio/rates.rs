//! The logs of the bandwidth of all workers together (`--bandwidth-log`): `ms, KiB/s, direction, 0,
//! 0`, from the start of the first worker.

use rbench_core::Nanos;
use rbench_core::job::JobOutcome;
use rbench_core::moved::Moved;

/// Names of the logs of reads, of writes, and of trims, whose bandwidth is always 0.
pub const NAMES: [&str; 3] = ["agg-read_bw.log", "agg-write_bw.log", "agg-trim_bw.log"];

/// The lines of each log. The last interval ends with the last data moved.
pub fn lines(jobs: &[JobOutcome]) -> [Vec<String>; 3] {
    let asked = || jobs.iter().filter(|job| job.moved.width.0 > 0);
    let first_ms = asked().map(|job| job.start_ms).min().unwrap_or(0);
    let mut all = Moved::default();
    let mut end = Nanos(0);
    for job in asked() {
        let Moved {
            width,
            bytes,
            end: moved_until,
        } = &job.moved;
        let begun = (job.start_ms - first_ms) * 1_000_000;
        all.width = *width;
        let job_end = begun + moved_until.0;
        end = end.max(Nanos(job_end));
        for (stretch, amounts) in (0..).zip(bytes) {
            let from = begun + stretch * width.0;
            // A worker's last interval ends with the worker.
            let to = (from + width.0).min(job_end.max(from + 1));
            all.add(Nanos(from), Nanos(to), *amounts);
        }
    }
    let mut lines = [Vec::new(), Vec::new(), Vec::new()];
    for (stretch, [read, write]) in (0..).zip(&all.bytes) {
        let from = stretch * all.width.0;
        let to = (from + all.width.0).min(end.0.max(from + 1));
        for (direction, amount) in [*read, *write, 0].into_iter().enumerate() {
            let ns = u128::from(to - from);
            let rate = u128::from(amount) * 1_000_000_000 / ns / 1024;
            let ms = to.div_ceil(1_000_000);
            lines[direction].push(format!("{ms}, {rate}, {direction}, 0, 0\n"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn job(start_ms: u64, seconds: f64, bytes: Vec<[u64; 2]>) -> JobOutcome {
        JobOutcome {
            start_ms,
            moved: Moved {
                width: Nanos(SECOND),
                bytes,
                end: Nanos((seconds * 1e9) as u64),
            },
            ..JobOutcome::default()
        }
    }

    #[test]
    fn rates_of_all_workers_add_up_at_the_time_they_had_them() {
        let all = [
            job(10_000, 2.0, vec![[1 << 20, 0], [2 << 20, 512]]),
            // Half a second later.
            job(10_500, 1.0, vec![[1 << 20, 1024]]),
        ];
        let [reads, writes, trims] = lines(&all);
        assert_eq!(reads, ["1000, 1536, 0, 0, 0\n", "2000, 2560, 0, 0, 0\n"]);
        assert_eq!(writes, ["1000, 0, 1, 0, 0\n", "2000, 1, 1, 0, 0\n"]);
        assert_eq!(trims, ["1000, 0, 2, 0, 0\n", "2000, 0, 2, 0, 0\n"]);
    }

    #[test]
    fn the_last_stretch_is_as_long_as_there_was_work() {
        let [reads, ..] = lines(&[job(7, 1.25, vec![[1 << 20, 0], [1 << 18, 0]])]);
        assert_eq!(reads, ["1000, 1024, 0, 0, 0\n", "1250, 1024, 0, 0, 0\n"]);
        assert_eq!(lines(&[JobOutcome::default()])[0], Vec::<String>::new());
    }
}
