//! Commands of fio that run no jobs: inflating logs, testing checksums and clocks.

use std::path::Path;

use rbench_cli::FioTool;
use rbench_exec::verify::bytes_per_s;
use rbench_report::fio::{calibration, compressed};
use rbench_sys::speed::{CountersSeen, compare_counters, unit_of_each_cpu};

use crate::console::{fail, print};
use crate::exit::{FAILED, SUCCESS, USAGE};

/// Runs a tool and returns the exit code.
pub fn tool(tool: &FioTool) -> u8 {
    match tool {
        FioTool::Print(text) => print(text),
        FioTool::Inflate(file) => inflate(file),
        FioTool::Checksums(all) => {
            let mut codes = all.iter().map(|(name, sum)| {
                let rate = bytes_per_s(*sum) / 1_048_576.0;
                print(&speed_line(name, rate))
            });
            codes.find(|code| *code != SUCCESS).unwrap_or(SUCCESS)
        }
        FioTool::ClockTest => clock_test(),
        FioTool::Calibrate => print(&calibration(&unit_of_each_cpu())),
    }
}

fn inflate(file: &Path) -> u8 {
    let refused =
        |code, why: String| fail(code, format!("--inflate-log {}: {why}", file.display()));
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return refused(USAGE, error.to_string()),
    };
    let mut code = SUCCESS;
    let put = &mut |text: &str| {
        code = print(text);
        code == SUCCESS
    };
    match compressed::inflate(&bytes, put) {
        Ok(_) => code,
        Err(why) => refused(FAILED, why),
    }
}

/// Formats a speed with fio's alignment.
fn speed_line(name: &str, mebibytes_per_s: f64) -> String {
    let tabs = if name.len() < 7 { "\t\t" } else { "\t" };
    format!("{name}:{tabs}{mebibytes_per_s:8.2} MiB/sec\n")
}

fn clock_test() -> u8 {
    let reliable = rbench_sys::limits::counter_is_kept();
    let Some(seen) = compare_counters() else {
        return fail(
            FAILED,
            "--cpuclock-test: this processor has no counter that can be read",
        );
    };
    let printed = print(&clock_report(reliable, &seen));
    match seen.behind {
        None => printed,
        Some(_) => FAILED,
    }
}

fn clock_report(reliable: bool, seen: &CountersSeen) -> String {
    let mut out = format!(
        "cs: reliable_tsc: {}\n",
        if reliable { "yes" } else { "no" }
    );
    out += &format!("cs: Testing {} CPUs\n", seen.cpus.len());
    for cpu in &seen.cpus {
        let (number, readings, first) = (cpu.cpu, cpu.readings, cpu.first);
        out += &format!("cs: cpu {number:2}: {readings} clocks seen, first {first}\n");
    }
    out += &match seen.behind {
        None => "cs: Pass!\n".to_owned(),
        Some((cpu, ticks, other, before)) => format!(
            "cs: CPU clock mismatch (diff={}):\n\t CPU {other:3}: TSC={before}\n\t CPU {cpu:3}: \
             TSC={ticks}\ncs: Failed: 1\n",
            before - ticks
        ),
    };
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rbench_sys::speed::CounterSeen;

    #[test]
    fn speeds_stand_below_one_another() {
        assert_eq!(speed_line("md5", 297.1), "md5:\t\t  297.10 MiB/sec\n");
        assert_eq!(
            speed_line("sha3-512", 8.471),
            "sha3-512:\t    8.47 MiB/sec\n"
        );
    }

    #[test]
    fn a_clock_test_has_fios_lines() {
        let seen = |behind| CountersSeen {
            cpus: vec![CounterSeen {
                cpu: 0,
                readings: 42_284_828,
                first: 43_252_461_180_601,
            }],
            behind,
        };
        assert_eq!(
            clock_report(true, &seen(None)),
            "cs: reliable_tsc: yes\ncs: Testing 1 CPUs\ncs: cpu  0: 42284828 clocks seen, first \
             43252461180601\ncs: Pass!\n"
        );
        let failed = clock_report(false, &seen(Some((1, 15, 0, 20))));
        assert!(failed.starts_with("cs: reliable_tsc: no\n"), "{failed}");
        assert!(
            failed.contains("mismatch (diff=5)") && failed.ends_with("cs: Failed: 1\n"),
            "{failed}"
        );
    }
}
