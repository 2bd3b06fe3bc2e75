//! Tests the cost of the file system's client in reports.

use rbench_core::client::{ClientCost, ClientGap, ClientUse, HostClient, Watch};
use rbench_core::outcome::PhaseOutcome;
use rbench_core::{Bytes, Nanos, OpKind};
use rbench_report::schema::HostClientResult;
use rbench_report::{RunResult, View, csv, text};
use serde_json::json;

use crate::fixtures::{DETAILS, Made, run};

fn used(cpu_ms: u64) -> Result<ClientUse, ClientGap> {
    Ok(ClientUse {
        processes: 1,
        cpu: Nanos(cpu_ms * 1_000_000),
        user: Nanos(cpu_ms * 250_000),
        system: Nanos(cpu_ms * 750_000),
        resident: Bytes(64 << 20),
        peak: Bytes(65 << 20),
    })
}

fn with(
    mut phase: PhaseOutcome,
    operations: u64,
    hosts: &[Result<ClientUse, ClientGap>],
) -> PhaseOutcome {
    let host = |(used, number): (&Result<ClientUse, ClientGap>, u32)| HostClient {
        host: format!("client{number}"),
        used: *used,
    };
    phase.client = Some(ClientCost {
        watch: Some(Watch::Name("mfsmount".to_owned())),
        operations: Some(operations),
        hosts: hosts.iter().zip(1..).map(host).collect(),
    });
    phase
}

fn on(hosts: u32, costs: &[&[Result<ClientUse, ClientGap>]]) -> RunResult {
    let template = Made::on(hosts, 1, 500, 4096, 100_000);
    let rows = costs.iter().map(|cost| {
        let read = template.phase("rw-read", "Mixed read", OpKind::Read);
        let write = template.phase("rw-write", "Mixed write", OpKind::Write);
        let operations = 2 * read.items;
        [with(read, operations, cost), with(write, operations, cost)]
    });
    run(
        hosts,
        1,
        json!({"iterations": "1"}),
        rows.flatten().collect(),
    )
}

fn section(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.starts_with("CLIENT "));
    lines.take_while(|line| !line.is_empty()).collect()
}

#[test]
fn rows_that_ran_together_share_a_line() {
    let text = text::render(&on(1, &[&[used(200)], &[used(30)]]), DETAILS);
    let lines = section(&text);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(
        words(lines[0]),
        "CLIENT CPU/op CPU time User System Resident Processes"
    );
    // 200 ms for 500 reads and 500 writes.
    assert_eq!(
        words(lines[2]),
        "Mixed read + Mixed write 200 us 200 ms 50.0 ms 150 ms 64.0 MiB 1"
    );
    // 30 ms are three ticks, too few to split.
    assert_eq!(
        words(lines[3]),
        "Mixed read + Mixed write 30.0 us 30.0 ms - - 64.0 MiB 1"
    );
    assert_eq!(lines.len(), 4, "{text}");
}

#[test]
fn with_several_hosts_each_has_a_line_and_one_that_is_unknown_takes_the_sum() {
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let known = text::render(&on(2, &[&[used(200), used(600)]]), DETAILS);
    let lines = section(&known);
    assert_eq!(
        words(lines[2]),
        "Mixed read + Mixed write 400 us 800 ms 200 ms 600 ms - 2"
    );
    assert_eq!(words(lines[4]), "client2 - 600 ms 150 ms 450 ms 64.0 MiB 1");
    let result = on(2, &[&[used(200), Err(ClientGap::Replaced)]]);
    let text = text::render(&result, DETAILS);
    let lines = section(&text);
    assert_eq!(
        words(lines[2]),
        "Mixed read + Mixed write - - - - - - not known for every host"
    );
    assert_eq!(
        words(lines[3]),
        "client1 - 200 ms 50.0 ms 150 ms 64.0 MiB 1"
    );
    assert_eq!(
        words(lines[4]),
        "client2 - - - - - - ended or replaced during the phase"
    );
    let table = csv::hosts(&[result]);
    let columns: Vec<&str> = table.lines().next().expect("titles").split(',').collect();
    let at = columns.iter().position(|name| *name == "client_cpu_s");
    let at = at.expect("a column");
    let cells: Vec<&str> = table
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(at).expect("a cell"))
        .collect();
    assert_eq!(cells, ["0.2", "", "0.2", ""]);
}

#[test]
fn of_several_iterations_only_details_show_each() {
    let mut result = on(1, &[&[used(200)], &[used(400)]]);
    let rows = result.phases.iter_mut().enumerate();
    rows.for_each(|(place, phase)| phase.iteration = place as u32 / 2);
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let short = text::render(&result, View::default());
    let lines = section(&short);
    assert_eq!(words(lines[2]), "Mean of the iterations", "{short}");
    assert_eq!(
        words(lines[3]),
        "Mixed read + Mixed write 300 us 300 ms 75.0 ms 225 ms 64.0 MiB 1"
    );
    assert_eq!(lines.len(), 4, "{short}");
    let all = text::render(&result, DETAILS);
    for heading in ["Iteration 1 of 2\n", "Iteration 2 of 2\n"] {
        assert!(
            all.contains(&format!("{heading}Mixed read + Mixed write ")),
            "{all}"
        );
    }
    // What one iteration lacks is unknown.
    if let Some(cost) = &mut result.phases[2].client {
        cost.cpu_s = None;
        cost.cpu_us_per_operation = None;
        cost.hosts[0].cpu_s = None;
        cost.hosts[0].unknown = Some("replaced".to_owned());
    }
    result.phases[3].client = result.phases[2].client.clone();
    let text = text::render(&result, View::default());
    let line = words(section(&text)[3]);
    assert!(line.starts_with("Mixed read + Mixed write - - "), "{text}");
    assert!(
        line.ends_with("ended or replaced during the phase"),
        "{text}"
    );
}

#[test]
fn what_is_unknown_is_no_number_in_the_file() {
    let result = on(1, &[&[Err(ClientGap::Absent)]]);
    let file = serde_json::to_value(&result.phases[0].client).expect("serialises");
    let expect = json!({
        "watch": "mfsmount",
        "operations": 1000,
        "cpu_s": null,
        "cpu_us_per_operation": null,
        "hosts": [{"host": "client1", "unknown": "absent"}],
    });
    assert_eq!(file, expect);
    let host: HostClientResult =
        serde_json::from_value(file["hosts"][0].clone()).expect("reads back");
    assert_eq!(host.cpu_s, None);
}
