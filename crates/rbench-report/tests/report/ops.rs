//! Tests the per-operation table.

use rbench_core::effort::Effort;
use rbench_core::outcome::Cache;
use rbench_core::{Nanos, OpKind};
use rbench_report::View;
use rbench_report::{ops, text};
use serde_json::json;

use crate::fixtures::DETAILS;
use crate::fixtures::{Made, meta_phases, meta_spec, run};

#[test]
fn rows_stand_in_the_order_of_the_table_and_what_no_call_reaches_says_why() {
    let template = Made::solo(1000, 0, 100_000);
    let mut lookup = template.phase("lookup", "lookup", OpKind::Lookup);
    lookup.cache = Some(Cache::Warm);
    // In order of execution.
    let phases = vec![
        template.phase("unlink", "unlink", OpKind::Unlink),
        lookup,
        template.phase("mkdir", "mkdir", OpKind::Mkdir),
        // In the same phase, but not requested.
        template.phase("close", "close", OpKind::Close),
    ];
    let spec = json!({"rows": "mkdir,unlink,lookup,newchunk", "ops": "1000", "iterations": "1"});
    let mut result = run(1, 1, spec, phases);
    let mkdir = &mut result.phases[2];
    let elapsed = Nanos((1e9 * mkdir.elapsed_s) as u64);
    mkdir.workers = Some(Effort {
        workers: 2,
        active: elapsed,
        // One worker finished long before the other.
        waited: Nanos(elapsed.0 / 10),
        in_calls: elapsed,
        full: elapsed,
        ..Effort::default()
    });
    assert!(ops::is_table(&result));
    let text = ops::render(&result, View::default());
    let mut words = text
        .lines()
        .filter_map(|line| line.split_whitespace().next());
    assert!(words.any(|word| word == "Operation"), "{text}");
    let rows: Vec<&str> = words.skip(1).take(4).collect();
    assert_eq!(rows, ["mkdir", "unlink", "lookup", "newchunk"], "{text}");
    for told in [
        "newchunk: n/a, chunks are allocated inside the client",
        "lookup and resolve: the client may have cached the names",
        "mkdirat",
        "unlinkat",
        "statx",
    ] {
        assert!(text.contains(told), "{told}: {text}");
    }
    // The mean in microseconds, and the rate without untimed parts.
    let mean = result.phases[2].latency.service.mean_ns;
    let row = text.lines().find(|line| line.starts_with("mkdir "));
    let cells: Vec<&str> = row.expect("a row").split_whitespace().collect();
    assert_eq!(
        cells[2..4],
        ["1,000".to_owned(), format!("{:.1}", mean / 1000.0)]
    );
    let rate: f64 = cells[7].replace(',', "").parse().expect("a number");
    // Half of the two workers' time was spent in operations.
    let expected = 2.0 * result.phases[2].rate;
    assert!(
        (rate - expected).abs() <= 0.01 * expected,
        "{rate} {expected}"
    );
}

#[test]
fn a_file_that_asks_for_endless_iterations_has_those_that_it_has() {
    let phase = Made::solo(10, 0, 100_000).phase("mkdir", "mkdir", OpKind::Mkdir);
    let spec = json!({"rows": "mkdir,newchunk", "iterations": "4000000000"});
    let text = ops::render(&run(1, 1, spec, vec![phase]), View::default());
    assert!(text.contains("Iteration 1 of 4000000000"), "{text}");
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn other_results_are_no_table_and_render_all_the_same() {
    let result = run(1, 1, meta_spec(), meta_phases(1, 1));
    assert!(!ops::is_table(&result));
    assert!(ops::render(&result, View::default()).contains("No row has finished."));
    assert!(text::render(&result, DETAILS).contains("File creation"));
}
