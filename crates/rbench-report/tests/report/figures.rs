//! Every figure of a phase is declared, and every output shows what its declaration says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use rbench_core::hist::Hist;
use rbench_core::{Nanos, OpKind};
use rbench_report::compare::{COMPARED, FORMATS, Options, Run, compare};
use rbench_report::figures::{
    Better, FIGURES, Figure, NOT_FIGURES, Output, QUANTITIES, Shown, find, listed,
};
use rbench_report::json_schema::FILE_SCHEMAS;
use rbench_report::{Document, RunResult, View, csv, markdown, openmetrics, page, text};
use serde_json::{Value, json};

use crate::fixtures::{DETAILS, Made, meta_spec, run};
use crate::golden;

/// The paths of all fields of a type of the result file that have no fields of their own.
fn leaves(of: &str) -> Vec<String> {
    fn walk(root: &Value, schema: &Value, path: &str, into: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let target = root.pointer(name.trim_start_matches('#'));
            return walk(root, target.expect("a definition"), path, into);
        }
        let mut inner = schema["anyOf"].as_array().into_iter().flatten();
        if let Some(some) = inner.find(|one| one["type"] != "null") {
            return walk(root, some, path, into);
        }
        if schema["items"].is_object() {
            return walk(root, &schema["items"], path, into);
        }
        let Some(fields) = schema["properties"].as_object() else {
            return into.push(path.to_owned());
        };
        for (name, field) in fields {
            let below = match path {
                "" => name.clone(),
                path => format!("{path}.{name}"),
            };
            walk(root, field, &below, into);
        }
    }
    let schema = FILE_SCHEMAS[0].schema();
    let mut all = Vec::new();
    walk(&schema, &schema["$defs"][of], "", &mut all);
    assert!(!all.is_empty(), "{of} has fields");
    all
}

/// Returns true if a field is that one or part of it.
fn is_in(field: &str, whole: &str) -> bool {
    let rest = field.strip_prefix(whole);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[test]
fn every_field_of_a_phase_is_a_figure_or_has_a_reason() {
    let fields = leaves("PhaseResult");
    let figures = FIGURES
        .iter()
        .flat_map(|figure| figure.fields.iter().copied());
    let others = NOT_FIGURES.iter().flat_map(|(fields, _)| fields.split(' '));
    let known: Vec<&str> = figures.chain(others).collect();
    let forgotten = fields
        .iter()
        .filter(|field| !known.iter().any(|whole| is_in(field, whole)));
    assert_eq!(
        forgotten.collect::<Vec<_>>(),
        [""; 0],
        "declare them in figures/declared.rs, or say there why they are not figures"
    );
    let gone = known
        .iter()
        .filter(|whole| !fields.iter().any(|field| is_in(field, whole)));
    assert_eq!(
        gone.collect::<Vec<_>>(),
        [&""; 0],
        "there are no such fields"
    );
}

#[test]
fn every_field_of_a_host_a_rank_and_a_slice_is_a_column() {
    let check = |of: &str, table: String, other: &[&str]| {
        let head = table.lines().next().unwrap_or_default().to_owned();
        let columns: Vec<&str> = head.split(',').collect();
        for field in leaves(of)
            .into_iter()
            .filter(|field| !other.contains(&field.as_str()))
        {
            let column = match field.split_once('.') {
                Some(("latency", quantity)) => format!("service_{quantity}"),
                Some(("longest_gap", part)) => {
                    format!("longest_gap_{}", part.trim_start_matches("length_"))
                }
                _ if of == "TimelineRow" && field.ends_with("_ns") && !field.contains('.') => {
                    format!("service_{field}")
                }
                _ => field.replace('.', "_"),
            };
            assert!(
                columns.contains(&column.as_str()),
                "{of}: {column} in {head}"
            );
        }
    };
    let hist = ["above", "hdr"];
    let hist: Vec<String> = ["latency", "response"]
        .iter()
        .flat_map(|of| hist.map(|part| format!("{of}.{part}")))
        .collect();
    let mut other: Vec<&str> = hist.iter().map(String::as_str).collect();
    other.extend(["longest_gap.rank", "longest_gap.host"]);
    check("HostResult", csv::hosts(&[]), &other);
    check("RankResult", csv::ranks(&[]), &[]);
    // Pairs of numbers.
    check("TimelineRow", csv::intervals(&[]), &["heat"]);
}

/// Fields that a usual phase does not have.
const MORE: &str = r#"{
        "errors": {"EIO": 3},
        "unissued": 3, "missed": 5, "unchecked": 7, "interrupted": 9, "continued": 11,
        "cache": "cold", "busy": 0.5, "start_error_s": 0.002,
        "workers": {"count": 4, "active_s": 8.0, "waited_s": 1.0, "in_calls_s": 4.0, "full_s": 3.0},
        "stonewall": {"deadline_s": 0.5, "stopped_s": 0.6, "items": 900, "least": 200, "most": 250},
        "rewritten": {"after_s": 0.7, "once": 100, "done": 200, "passes": 2.0},
        "given_up": {"workers": 1, "of": 4, "at_s": 0.2, "lost": 10, "share": 0.01},
        "access": {"open_s": 0.1, "transfer_s": 0.5, "close_s": 0.2, "total_s": 0.8, "bandwidth": 3000000.0},
        "found": {"files": 100, "directories": 10, "matches": 20, "files_per_s": 50.0},
        "replayed": {
            "wanted": 4000, "unopened": 2,
            "differ": {"failed": 1, "worked": 2, "error": 3, "length": 4}
        },
        "longest_gap": {"length_s": 0.3, "from_s": 0.1, "rank": 1, "host": "client1"},
        "empty_share": 0.25, "measured_from_s": 0.05, "set_aside_s": 0.15,
        "residency": {
            "verdict": "cold", "reason": "requests", "ground": "client",
            "dropped": false, "direct": false, "verifies": false, "came_round": null, "caches": [],
            "total": {
                "operations": 4000, "bytes": 16384000,
                "own": {"parts": 4, "made": 1, "touched": 1, "share": 0.5},
                "resident_before": {"files": 4, "of": 4, "pages": 100, "cached": 20, "share": 0.2},
                "resident_after": {"files": 4, "of": 4, "pages": 100, "cached": 90, "share": 0.9},
                "requests": {
                    "source": "x", "by_kind": {"total": 4000}, "answering": 4000, "operations": 4000,
                    "per_operation": 1.0
                },
                "fetched": {"bytes": 100, "returned": 200, "per_byte": 0.5}
            }
        },
        "client": {
            "watch": null, "operations": 4000, "cpu_s": 2.0, "cpu_us_per_operation": 500.0,
            "hosts": [
                {"host": "client1", "processes": 1, "cpu_s": 1.0, "user_s": 0.5, "system_s": 0.5},
                {"host": "client2", "processes": 1, "cpu_s": 1.0, "user_s": 0.5, "system_s": 0.5}
            ]
        },
        "steady": {
            "criterion": "iops", "limit": 2.0, "percent": true, "window_s": 0.5, "interval_s": 0.1, "ramp_s": 0.0,
            "attained": true, "attained_at_s": 0.7, "window_from_s": 0.2, "value": 1.5, "iops_mean": 900.0,
            "bandwidth_mean": 3000000.0, "iops": [900.0], "bytes_per_s": [3000000.0]
        }
    }"#;

/// A phase that has every figure; no real one has.
fn full() -> RunResult {
    let made = Made::on(2, 2, 1000, 4096, 1_000_000);
    let mut outcome = made.phase("read", "Read", OpKind::Read);
    outcome.response = Some(outcome.service.clone());
    outcome.late.record(Nanos(5_000_000));
    let mut result = run(2, 2, meta_spec(), vec![outcome]);
    let hist = json!(result.phases[0].latency.service);
    let mut phase = json!(result.phases[0]);
    let more: Value = serde_json::from_str(MORE).expect("JSON");
    for (name, value) in more.as_object().expect("an object") {
        phase[name] = value.clone();
    }
    phase["latency"]["stonewalled"] = hist.clone();
    phase["replayed"]["recorded"] = hist;
    result.phases = vec![serde_json::from_value(phase).expect("a phase")];
    let replay = json!({
        "iteration": 0, "traces": [{"path": "a", "format": "rbench"}], "found": 4000, "wanted": 4000, "copies": 1,
        "done": 4000, "left_out": [], "gaps": 0, "processes": 1, "groups": 1, "span_s": 1.0, "prepared": 0,
        "prepared_bytes": 0,
    });
    result.replays = vec![serde_json::from_value(replay).expect("a replay")];
    result
}

/// Puts another value into a field, in each element of a list.
fn change(value: &mut Value, path: &str, times: &Value) {
    if let Value::Array(elements) = value {
        return elements
            .iter_mut()
            .for_each(|element| change(element, path, times));
    }
    if let Some((field, rest)) = path.split_once('.') {
        return change(&mut value[field], rest, times);
    }
    let field = &mut value[path];
    *field = match field {
        Value::Number(n) if n.is_u64() => json!(n.as_u64().expect("an integer") * 2 + 1),
        Value::Number(n) => json!(n.as_f64().expect("a number") * 1.5 + 0.1),
        Value::String(word) if word == "cold" && path == "verdict" => json!("memory"),
        Value::String(_) => json!("warm"),
        Value::Object(map) if map.contains_key("hdr") => times.clone(),
        Value::Object(_) => json!({"EIO": 3, "ENOSPC": 2}),
        other => panic!("{path} is {other}"),
    };
}

fn shown(output: Output, result: &RunResult, base: &RunResult) -> String {
    match output {
        Output::Text => text::render(result, DETAILS),
        Output::Markdown => markdown::render(result),
        Output::Csv => csv::operations(std::slice::from_ref(result)),
        Output::OpenMetrics => openmetrics::render(std::slice::from_ref(result)),
        Output::Page => {
            let page = page::render(&[Document::Run(Box::new(result.clone()))], &[]);
            // The whole result file follows the charts.
            page.split("<script").next().expect("a page").to_owned()
        }
        Output::Compare => {
            let [base, new] =
                [(base, "a"), (result, "b")].map(|(result, name)| Run { name, result });
            let comparison = compare(&[base], &[new], &Options::default()).expect("the same thing");
            (FORMATS[0].render)(&comparison, View::default())
        }
    }
}

/// Returns a copy with a changed figure.
fn changed(base: &RunResult, figure: &Figure, times: &Value) -> RunResult {
    let mut phase = json!(base.phases[0]);
    for field in figure.fields {
        change(&mut phase, field, times);
    }
    let mut other = base.clone();
    other.phases = vec![serde_json::from_value(phase).expect(figure.name)];
    other
}

#[test]
fn every_output_shows_the_figures_that_are_declared_for_it_and_no_others() {
    let slower = Made::on(2, 2, 1000, 4096, 3_000_000).phase("read", "Read", OpKind::Read);
    let times = json!(Hist::from(&slower.service));
    // Some are shown where others are missing.
    let mut uncounted = full();
    let residency = uncounted.phases[0].residency.as_mut().expect("a verdict");
    residency.total.requests = None;
    let bases = [full(), uncounted].map(|base| {
        let before = Output::ALL.map(|output| shown(output, &base, &base));
        (base, before)
    });
    for figure in FIGURES {
        // Others may be read from the same fields.
        let related = |output| {
            FIGURES.iter().any(|other| {
                let mut fields = other.fields.iter();
                let shares = fields.any(|field| figure.fields.contains(field));
                shares && !matches!(other.shown(output), Shown::Not(_))
            })
        };
        let known = |(base, _): &&(RunResult, _)| figure.of(&base.phases[0]).is_some();
        let bases = bases.iter().filter(known);
        let bases: Vec<_> = bases
            .map(|(base, before)| (base, before, changed(base, figure, &times)))
            .collect();
        for (i, output) in Output::ALL.into_iter().enumerate() {
            let differs = bases
                .iter()
                .any(|(base, before, other)| shown(output, other, base) != before[i]);
            match figure.shown(output) {
                Shown::Not(_) => {
                    assert!(
                        !differs || related(output),
                        "{output:?} shows {}",
                        figure.name
                    );
                }
                _ => assert!(differs, "{output:?} does not show {}", figure.name),
            }
        }
    }
}

#[test]
fn concurrency_is_that_of_workers_that_are_always_busy() {
    let phase = Made::on(1, 4, 1000, 0, 1_000_000).phase("a", "A", OpKind::Stat);
    let result = run(1, 4, meta_spec(), vec![phase]);
    let concurrency = find("concurrency").and_then(|figure| figure.of(&result.phases[0]));
    let number = concurrency.and_then(|value| value.number(None));
    // Between two operations there are 0.9 us.
    assert!(
        number.is_some_and(|n| (3.9..4.0).contains(&n)),
        "{number:?}"
    );
}

#[test]
fn what_is_better_is_compared_or_has_a_reason_of_its_own() {
    let neither = FIGURES
        .iter()
        .filter(|figure| figure.better == Better::Neither);
    for figure in neither {
        let place = figure.shown(Output::Compare);
        assert!(
            matches!(place, Shown::Not(_) | Shown::In(_)),
            "{}",
            figure.name
        );
    }
}

#[test]
fn columns_of_earlier_versions_keep_their_places() {
    let head = |table: String| table.lines().next().unwrap_or_default().to_owned();
    let times = |of: &str| {
        let names = QUANTITIES
            .iter()
            .map(|quantity| format!(",{of}_{}", quantity.column));
        names.collect::<String>()
    };
    let first = "run,started,labels,target,ranks,hosts,iteration,name,label,op,complete,items,bytes,errors,unissued,\
                 missed,elapsed_s,rate,bandwidth,first_done_rate,start_skew_s,busy,cache,client_cpu_s,\
                 client_cpu_us_per_operation";
    let expect = format!("{first}{}{},", times("service"), times("response"));
    let operations = head(csv::operations(&[]));
    assert!(operations.starts_with(&expect), "{operations}");
    assert_eq!(
        times("x"),
        ",x_count,x_min_ns,x_mean_ns,x_stddev_ns,x_p50_ns,x_p90_ns,x_p95_ns,x_p99_ns,x_p999_ns,x_p9999_ns,x_max_ns"
    );
    let names: Vec<&str> = operations.split(',').collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    let text = openmetrics::render(&[full()]);
    let families = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let families: Vec<&str> = families.collect();
    let old = "rbench_run rbench_run_complete rbench_operations rbench_errors rbench_moved_bytes rbench_elapsed_seconds \
               rbench_operations_per_second rbench_bytes_per_second rbench_latency_seconds rbench_client_cpu_seconds \
               rbench_host_operations rbench_host_latency_seconds";
    let old: Vec<&str> = old.split_whitespace().collect();
    assert_eq!(families[..old.len()], old);
    assert_eq!(
        families.iter().collect::<BTreeSet<_>>().len(),
        families.len()
    );
}

/// The page of the documentation that is made from the declarations.
#[test]
fn the_table_of_figures_is_that_of_their_declarations() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/figures.md");
    golden::check_at(&docs, &table());
}

fn table() -> String {
    let mut out = String::from(
        "# Figures\n\n\
         What rbench reports of a phase, and where. This page is generated: `RBENCH_ACCEPT_GOLDEN=1 cargo test figures` \
         writes it.\n\n\
         \x20   rbench show --format csv run.json        # a column for each figure\n\n\
         The name of a figure is its column in `--format csv`. Counts are added up over iterations, words must be the same \
         in all (else `mixed`), times are merged, and other numbers are means, or the largest where the table says so.\n\n\
         | figure | unit | meaning | field of `phases[]` |\n|---|---|---|---|\n",
    );
    for figure in FIGURES {
        let fields: Vec<String> = figure
            .fields
            .iter()
            .map(|field| format!("`{field}`"))
            .collect();
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            figure.name,
            figure.unit.name(),
            meaning(figure),
            fields.join(", ")
        );
    }
    out.push_str(
        "\n## Where they are shown\n\n\
         Numbers in parentheses are reasons, listed below. MORE FIGURES is part of the report with `--details`; *other* is \
         the table *All other figures* of the page.\n\n\
         | figure | text | `md` | `csv` | `openmetrics` | page | compare |\n|---|---|---|---|---|---|---|\n",
    );
    let mut reasons: Vec<&str> = Vec::new();
    for figure in FIGURES {
        let cells = Output::ALL.map(|output| place(figure, output, &mut reasons));
        let _ = writeln!(out, "| `{}` | {} |", figure.name, cells.join(" | "));
    }
    out.push('\n');
    for (i, reason) in reasons.iter().enumerate() {
        let _ = writeln!(out, "{}. {reason}", i + 1);
    }
    out.push_str(
        "\n## Quantities of times\n\n\
         | quantity | meaning | with at least | `csv` | `openmetrics` | compare |\n|---|---|---|---|---|---|\n",
    );
    for quantity in QUANTITIES {
        let _ = writeln!(
            out,
            "| {} | {} | {} | `…_{}` | {} | {} |",
            quantity.title,
            quantity.about,
            quantity.least,
            quantity.column,
            openmetrics_of(quantity.name),
            match COMPARED.contains(&quantity.name) {
                true => format!("`{}`", quantity.name),
                false => match quantity.name {
                    "count" => "the number of operations is given".to_owned(),
                    "min" => "a single operation decides it".to_owned(),
                    "stddev" => "percentiles say more".to_owned(),
                    _ => "its neighbours move with it".to_owned(),
                },
            }
        );
    }
    out.push_str(
        "\nWith fewer times than the table says, reports for people show a dash.\n\n\
         ## Fields that are not figures\n\n| field of `phases[]` | reason |\n|---|---|\n",
    );
    for (fields, reason) in NOT_FIGURES {
        for field in fields.split(' ') {
            let _ = writeln!(out, "| `{field}` | {reason} |");
        }
    }
    out
}

fn openmetrics_of(quantity: &str) -> &'static str {
    match quantity {
        "count" => "`_count`",
        "mean" => "`_sum` / `_count`",
        "min" | "stddev" => "a summary has quantiles, sum and count alone",
        _ => "a `quantile`",
    }
}

fn meaning(figure: &Figure) -> String {
    let largest = match figure.read {
        rbench_report::figures::Read::Largest(_) => "; of several iterations the largest",
        _ => "",
    };
    format!("{}{largest}", figure.about)
}

/// A cell of the table.
fn place(figure: &Figure, output: Output, reasons: &mut Vec<&'static str>) -> String {
    let name = match figure.shown(output) {
        Shown::In(part) => return part.to_owned(),
        Shown::Not(reason) => {
            let number = reasons.iter().position(|known| *known == reason);
            let number = number.unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            return format!("({})", number + 1);
        }
        Shown::Named(name) => name,
        Shown::Listed => figure.name,
    };
    match output {
        Output::Text | Output::Markdown => "MORE FIGURES".to_owned(),
        Output::Page => "other".to_owned(),
        Output::OpenMetrics => format!("`{}`", openmetrics::family_name(figure, name)),
        Output::Csv if figure.is_times() => format!("`{name}_…`"),
        Output::Compare if figure.is_times() => format!("`{name}mean`, `{name}p50` …"),
        Output::Csv | Output::Compare => format!("`{name}`"),
    }
}

#[test]
fn few_operations_have_no_percentile_beside_their_trace() {
    let dashes = |items: u64| {
        let mut result = full();
        let phase = Made::solo(items, 0, 1_000_000).phase("read", "Read", OpKind::Read);
        let times = Hist::from(&phase.service);
        let replayed = result.phases[0].replayed.as_mut().expect("a replay");
        replayed.recorded = Some(times.clone());
        result.phases[0].latency.service = times;
        let text = text::render(&result, DETAILS.wide(200));
        let (_, table) = text.split_once("BESIDE THE TRACE").expect("a table");
        let row = table.lines().nth(2).expect("a row");
        row.split_whitespace().filter(|cell| *cell == "-").count()
    };
    // The two 99th percentiles; with one operation the two medians and their ratio as well.
    assert_eq!((dashes(100), dashes(99), dashes(1)), (0, 2, 5));
}

#[test]
fn every_figure_is_listed_under_a_name_of_its_own() {
    for output in [Output::Csv, Output::Compare] {
        let names: Vec<&str> = listed(output).map(|(_, name)| name).collect();
        let unique: BTreeSet<&&str> = names.iter().collect();
        assert_eq!(unique.len(), names.len(), "{names:?}");
    }
    let titles = listed(Output::Text).chain(listed(Output::Page));
    let titles: BTreeSet<&str> = titles.map(|(figure, _)| figure.title).collect();
    assert!(titles.iter().all(|title| title.len() <= 20), "{titles:?}");
}
