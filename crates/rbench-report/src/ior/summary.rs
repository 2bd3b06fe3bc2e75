//! IOR's summary files (`summaryFormat`, `summaryFile`) and its table of ranks
//! (`saveRankPerformanceDetailsCSV`), with IOR's keys and columns.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::{Line, MIB, OPERATIONS, VERSION, View, lines, mean, option_lines, per_node, spreads};
use crate::mdtest::head::command_line;
use crate::schema::RunResult;
use crate::table::printable;
use crate::times::{CTIME, local_time};

/// Rounds to four decimals, like IOR in these files.
fn rounded(value: f64) -> Value {
    json!((value * 1e4).round() / 1e4)
}

/// `segmentCount`; -1: until the end of the files.
fn segments(view: &View) -> i64 {
    view.segments
        .map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX))
}

/// The document of `summaryFormat=JSON`.
pub fn json_summary(result: &RunResult, view: &View) -> String {
    let run = &result.run;
    let time = |utc: &str| json!(local_time(utc, run.utc_offset_s, CTIME));
    let host = result.world.hosts.first();
    let host = host.map_or("", |host| host.name.as_str());
    let all = lines(result);
    let results: Vec<Value> = all.iter().map(|line| of_line(line, view, result)).collect();
    let summaries = OPERATIONS.iter().filter_map(|(name, _)| {
        let of: Vec<&Line<'_>> = all.iter().filter(|line| line.phase.name == *name).collect();
        (!of.is_empty()).then(|| of_operation(name, &of, view, result))
    });
    let document = json!({
        "Version": format!("{VERSION}+rbench-{}", run.version),
        "Began": time(&run.started),
        "Command line": command_line("ior", &run.command),
        "Machine": format!("Linux {}", printable(host)),
        "tests": [{
            "TestID": 0,
            "StartTime": time(&run.started),
            "Path": result.target.path,
            "Parameters": parameters(result, view),
            "Options": options(result, view),
            "Results": results,
        }],
        "summary": summaries.collect::<Vec<Value>>(),
        "Finished": run.finished.as_deref().map(time),
    });
    format!("{document:#}\n")
}

fn of_line(line: &Line<'_>, view: &View, result: &RunResult) -> Value {
    let figures = line.figures(view, result.world.ranks).into_iter();
    let figures = figures.map(|(key, value)| (key.to_owned(), rounded(value)));
    let access = ("access".to_owned(), json!(line.phase.name));
    Value::Object(figures.chain([access]).collect())
}

fn parameters(result: &RunResult, view: &View) -> Value {
    let has = |name: &str| u8::from(result.phases.iter().any(|phase| phase.name == name));
    json!({
        "testID": 0,
        "refnum": 0,
        "api": "POSIX",
        "testFileName": view.files.join("@"),
        "deadlineForStonewall": view.deadline_s,
        "stoneWallingWearOut": u8::from(view.wear_out),
        "nodes": result.world.hosts.len(),
        "tasksPerNode": per_node(result),
        "repetitions": view.repetitions,
        "readFile": has("read"),
        "writeFile": has("write"),
        "filePerProc": u8::from(view.file_per_process),
        "reorderTasks": u8::from(view.task_offset.is_some()),
        "reorderTasksRandom": u8::from(view.random_reorder.is_some()),
        "reorderTasksRandomSeed": view.random_reorder.unwrap_or(0),
        "randomOffset": view.random,
        "segmentCount": segments(view),
        "transferSize": view.transfer,
        "blockSize": view.block,
    })
}

fn options(result: &RunResult, view: &View) -> Value {
    let all = option_lines(result, view).into_iter();
    let all = all.map(|(name, value)| {
        let number = value.parse::<i64>();
        (name.to_owned(), number.map_or(json!(value), |n| json!(n)))
    });
    Value::Object(all.collect::<Map<String, Value>>())
}

fn of_operation(name: &str, all: &[&Line<'_>], view: &View, result: &RunResult) -> Value {
    let [bandwidth, operations] = spreads(all, view);
    let moved = all.first().map_or(0, |line| line.phase.bytes);
    json!({
        "operation": name,
        "API": "POSIX",
        "TestID": 0,
        "ReferenceNumber": 0,
        "segmentCount": segments(view),
        "blockSize": view.block,
        "transferSize": view.transfer,
        "numTasks": result.world.ranks,
        "tasksPerNode": per_node(result),
        "repetitions": view.repetitions,
        "filePerProc": u8::from(view.file_per_process),
        "reorderTasks": u8::from(view.task_offset.is_some()),
        "taskPerNodeOffset": view.task_offset.unwrap_or(1),
        "reorderTasksRandom": u8::from(view.random_reorder.is_some()),
        "reorderTasksRandomSeed": view.random_reorder.unwrap_or(0),
        "bwMaxMIB": rounded(bandwidth.max),
        "bwMinMIB": rounded(bandwidth.min),
        "bwMeanMIB": rounded(bandwidth.mean),
        "bwStdMIB": rounded(bandwidth.stddev),
        "OPsMax": rounded(operations.max),
        "OPsMin": rounded(operations.min),
        "OPsMean": rounded(operations.mean),
        "OPsSD": rounded(operations.stddev),
        "MeanTime": rounded(mean(all.iter().map(|line| line.access.total_s))),
        "xsizeMiB": rounded(moved as f64 / MIB as f64),
    })
}

/// The table of `summaryFormat=CSV`.
pub fn csv_summary(result: &RunResult, view: &View) -> String {
    let mut out = "access,bw(MiB/s),IOPS,Latency,block(KiB),xfer(KiB),open(s),wr/rd(s),close(s),\
                   total(s),numTasks,iter\n"
        .to_owned();
    let ranks = result.world.ranks;
    for line in &lines(result) {
        out.push_str(&line.phase.name);
        for (_, number) in line.figures(view, ranks) {
            let _ = write!(out, ",{number:.4}");
        }
        let _ = writeln!(out, ",{ranks},{}", line.phase.iteration);
    }
    out
}

/// The table of `saveRankPerformanceDetailsCSV`: times in seconds, throughputs in bytes per second.
/// The time with opens and closes is that of all ranks together.
pub fn csv_ranks(result: &RunResult, view: &View) -> String {
    let mut out =
        "access,rank,runtime-with-openclose,runtime,throughput-withopenclose,throughput\n"
            .to_owned();
    for line in &lines(result) {
        for rank in &line.phase.ranks {
            let bytes = rank.items as f64 * view.transfer as f64;
            let over = |seconds: f64| if seconds > 0.0 { bytes / seconds } else { 0.0 };
            let (all, own) = (line.access.total_s, rank.elapsed.as_secs_f64());
            let (slow, fast) = (over(all), over(own));
            let (name, rank) = (&line.phase.name, rank.rank);
            let _ = writeln!(out, "{name},{rank},{all:.10},{own:.10},{slow:.4},{fast:.4}");
        }
    }
    out
}
