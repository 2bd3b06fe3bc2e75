//! The page: whatever a result holds, it is HTML, loads nothing, and gives the
//! result back.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use rbench_core::{Nanos, OpKind};
use rbench_report::schema::{
    CellResult, CellValue, SERIES_SCHEMA, SeriesKey, SeriesResult, Warning,
};
use rbench_report::{Document, RunResult, page};

use crate::fixtures::{Made, meta_phases, meta_spec, run};

fn documents(results: Vec<RunResult>) -> Vec<Document> {
    let boxed = results.into_iter().map(Box::new);
    boxed.map(Document::Run).collect()
}

/// Names that would end an element, an attribute or a script.
const HOSTILE: [&str; 4] = [
    "</script><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "<!--<img src=x onerror=alert(1)>",
    "]]>&lt;'`\u{2028}\u{1b}[2J",
];

fn hostile(mut result: RunResult) -> RunResult {
    result.run.id = HOSTILE[0].to_owned();
    result.run.command = HOSTILE.map(str::to_owned).to_vec();
    result
        .run
        .labels
        .insert(HOSTILE[1].into(), HOSTILE[2].into());
    result.target.path = HOSTILE[2].to_owned();
    for (host, name) in result.world.hosts.iter_mut().zip(HOSTILE) {
        host.name = name.to_owned();
        host.kernel = name.to_owned();
    }
    for (phase, name) in result.phases.iter_mut().zip(HOSTILE.into_iter().cycle()) {
        phase.label = name.to_owned();
        phase.name.push_str(name);
        for (host, name) in phase.hosts.iter_mut().zip(HOSTILE) {
            host.host = name.to_owned();
        }
    }
    result
}

/// The elements of a page, by their names, outside of scripts and styles.
fn elements(page: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '!' && c != '/');
        let name = &rest[..end.unwrap_or(rest.len())];
        names.push(name.to_owned());
        for raw in ["script", "style"] {
            if name == raw {
                let close = rest.find(&format!("</{raw}>")).expect("it is closed");
                rest = &rest[close..];
            }
        }
    }
    names
}

#[test]
fn names_hostile_to_html_stay_text() {
    let mut calm = run(2, 2, meta_spec(), meta_phases(2, 2));
    let wild = page::render(&documents(vec![hostile(calm.clone())]), &[]);
    calm.run.labels.insert("a".to_owned(), "b".to_owned());
    let calm = page::render(&documents(vec![calm]), &[]);
    let (wild_elements, calm_elements) = (elements(&wild), elements(&calm));
    let differ = wild_elements
        .iter()
        .zip(&calm_elements)
        .position(|(a, b)| a != b);
    assert_eq!(differ, None);
    assert_eq!(wild_elements.len(), calm_elements.len());
    for name in ["<img", "\" onmouseover=\"alert", "</script><script>alert"] {
        assert!(!wild.contains(name), "{name}");
    }
    assert!(!wild.contains('\u{1b}'));
}

#[test]
fn the_results_are_in_the_page_as_they_were() {
    let results = vec![
        hostile(run(1, 1, meta_spec(), meta_phases(1, 1))),
        run(2, 2, meta_spec(), meta_phases(2, 2)),
    ];
    // Each as it is, both compressed.
    for some in [&results[..1], &results] {
        let page = page::render(&documents(some.to_vec()), &[]);
        for (n, result) in some.iter().enumerate() {
            assert_eq!(read(&page, n + 1), *result);
        }
    }
}

/// The n-th result in a page.
fn read(page: &str, n: usize) -> RunResult {
    let (before, from) = page
        .split_once(&format!("id=\"result-{n}\">"))
        .expect("data");
    let (text, _) = from.split_once("</script>").expect("its end");
    if before.ends_with("<script type=\"application/json\" ") {
        return serde_json::from_str(text).expect("JSON");
    }
    assert!(before.ends_with("<script type=\"application/gzip\" "));
    let bytes = STANDARD.decode(text).expect("base64");
    serde_json::from_reader(GzDecoder::new(bytes.as_slice())).expect("JSON")
}

#[test]
fn nothing_is_loaded() {
    let page = page::render(
        &documents(vec![run(3, 4, meta_spec(), meta_phases(3, 4))]),
        &[],
    );
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
    for word in [
        "src=",
        "@import",
        "url(",
        "<link",
        "http-equiv=\"refresh\"",
        "fetch(",
    ] {
        assert!(!page.contains(word), "{word}");
    }
    // The name space of SVG is not an address that anybody visits.
    let addresses = page.replace("http://www.w3.org/2000/svg", "");
    assert!(!addresses.contains("http://") && !addresses.contains("https://"));
}

#[test]
fn warnings_and_an_early_end_come_before_any_number() {
    let mut result = run(1, 1, meta_spec(), meta_phases(1, 1));
    result.complete = false;
    result.target.embedded = true;
    result.warnings.push(Warning {
        code: "short-phase".to_owned(),
        message: "Too short.".to_owned(),
    });
    let page = page::render(&documents(vec![result]), &[]);
    let place = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    for words in ["incomplete: ", "demonstration: ", "short-phase"] {
        assert!(place(words) < place("File creation</td>"), "{words}");
    }
}

#[test]
fn a_rank_far_behind_is_marked() {
    let of = |slow: u64| {
        let mut phase = Made::on(2, 2, 500, 0, 1_000_000).phase("p", "Phase", OpKind::Create);
        phase.ranks[3].elapsed.0 = phase.ranks[0].elapsed.0 * slow / 10;
        page::render(&documents(vec![run(2, 2, meta_spec(), vec![phase])]), &[])
    };
    assert!(of(20).contains("1 far slower than the median"));
    assert!(!of(13).contains("far slower than the median"));
}

#[test]
fn a_sweep_is_curves_with_a_line_for_each_combination_of_the_other_keys() {
    let cell = |index: u32, bs: &str, threads: &str, ns: u64| CellResult {
        dir: None,
        index,
        name: format!("bs={bs} threads={threads}"),
        values: [("bs", bs), ("threads", threads)]
            .map(|(key, value)| CellValue {
                key: key.to_owned(),
                value: value.to_owned(),
            })
            .to_vec(),
        wall_s: 1.0,
        error: None,
        result: Some(run(
            1,
            1,
            meta_spec(),
            vec![Made::solo(100, 4096, ns).phase("read", "Read", OpKind::Read)],
        )),
    };
    let key = |name: &str, values: [&str; 2]| SeriesKey {
        name: name.to_owned(),
        values: values.map(str::to_owned).to_vec(),
    };
    let series = SeriesResult {
        schema: SERIES_SCHEMA.to_owned(),
        kind: "sweep".to_owned(),
        suite: None,
        scale: 1.0,
        run: run(1, 1, meta_spec(), Vec::new()).run,
        ranks: 1,
        hosts: vec!["client1".to_owned()],
        keys: vec![key("bs", ["4k", "<64k>"]), key("threads", ["1", "2"])],
        planned: Some(4),
        dir: None,
        embedded: false,
        launched: None,
        steps: Vec::new(),
        left_out: Vec::new(),
        cells: vec![
            cell(0, "4k", "1", 1_000_000),
            cell(1, "4k", "2", 2_000_000),
            cell(2, "<64k>", "1", 3_000_000),
            cell(3, "<64k>", "2", 4_000_000),
        ],
        complete: true,
        check: None,
        knee: None,
        io500: None,
    };
    let page = page::render(&[Document::Series(Box::new(series.clone()))], &[]);
    assert!(page.contains("Operations per second over threads"));
    assert!(page.contains("p99 over threads"));
    assert!(page.contains("bs 4k</span>") && page.contains("bs &lt;64k&gt;</span>"));
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("<64k"));
    // Also as an axis.
    let mut turned = series;
    turned.keys.reverse();
    let page = page::render(&[Document::Series(Box::new(turned))], &[]);
    assert!(page.contains("over bs") && !page.contains("<64k"));
}

#[test]
fn a_search_is_its_curve_with_the_objective_and_the_steps() {
    let found = crate::knee::found_one();
    let page = page::render(&[Document::Series(Box::new(found.clone()))], &[]);
    for words in [
        "Response time over offered load",
        "Operations done per second over offered load",
        "p99 at most 10.0 ms",
        "held at 1,187/s, confirmed",
        "The objective held at 1,187 operations a second for 3.0 s (confirmed)",
        ">failed: behind, p99</td>",
    ] {
        assert!(page.contains(words), "{words}");
    }
    // A disc for each step that held in each of the two charts, and a cross for each that did
    // not.
    let knee = found.knee.as_ref().expect("a knee");
    let steps = |held| {
        knee.steps
            .iter()
            .filter(|step| step.held == Some(held))
            .count()
    };
    let (_, drawn) = page.split_once("</style>").expect("a style");
    assert_eq!(
        drawn.matches("<circle class=\"held\"").count(),
        2 * steps(true)
    );
    assert_eq!(
        drawn.matches("<path class=\"failed\"").count(),
        2 * steps(false)
    );
    // There is a page, whatever a damaged file says.
    let mut odd = found;
    let knee = odd.knee.as_mut().expect("a knee");
    (knee.held, knee.failed) = (Some(f64::INFINITY), Some(f64::NAN));
    knee.objective.limits[0].most_ns = 0;
    for (step, rate) in knee
        .steps
        .iter_mut()
        .zip([0.0, -1.0, f64::NAN, f64::INFINITY, 1e-300])
    {
        step.rate = Some(rate);
        for row in &mut step.rows {
            row.rate = rate;
            row.figures.iter_mut().for_each(|figure| figure.ns = rate);
        }
    }
    page::render(&[Document::Series(Box::new(odd.clone()))], &[]);
    odd.knee.as_mut().expect("a knee").steps.clear();
    let page = page::render(&[Document::Series(Box::new(odd))], &[]);
    assert!(page.contains("No step has finished."));
}

#[test]
fn ranks_with_few_operations_have_no_percentile() {
    let of = |items: u64| {
        let mut phase = Made::on(1, 2, items, 0, 1_000_000).phase("p", "Phase", OpKind::Create);
        phase.ranks[1].p99 = Nanos(77_000_000);
        page::render(&documents(vec![run(1, 2, meta_spec(), vec![phase])]), &[])
    };
    assert!(shown(&of(100)).contains("77.0 ms"));
    assert!(!shown(&of(99)).contains("77.0 ms"));
}

/// Some iterations of the phases of a metadata run, `permille` of the usual time.
fn iterated(count: u32, permille: u64) -> RunResult {
    iterated_with(400, count, permille)
}

/// The same with that many operations in each phase of an iteration.
fn iterated_with(items: u64, count: u32, permille: u64) -> RunResult {
    let mut phases = Vec::new();
    for iteration in 0..count {
        let mut pass = meta_phases(1, 4);
        for (phase, ns) in pass.iter_mut().zip(1_u64..) {
            let slower = permille + 7 * (u64::from(iteration) * 3 % 5);
            let made = Made::on(1, 4, items, 0, 300_000 * ns * slower / 1000);
            let (name, label, op) = (phase.name.clone(), phase.label.clone(), phase.op);
            *phase = made.phase(&name, &label, op);
            phase.iteration = iteration;
        }
        phases.extend(pass);
    }
    let mut spec = meta_spec();
    spec["iterations"] = count.to_string().into();
    let mut result = run(1, 4, spec, phases);
    result.run.id = format!("run-{permille}");
    result
}

fn named(files: [&str; 2], results: [RunResult; 2]) -> String {
    let files = files.map(str::to_owned);
    page::render(&documents(results.into()), &files)
}

/// The page before its data.
fn shown(page: &str) -> &str {
    page.split("<script").next().unwrap_or_default()
}

#[test]
fn iterations_are_one_row_with_an_interval_and_each_is_folded() {
    let page = page::render(&documents(vec![iterated(5, 1000)]), &[]);
    let rows = |text: &str| text.matches("<td>File creation</td>").count();
    let (open, folds) = shown(&page)
        .split_once("<summary>Iteration 1</summary>")
        .expect("folds");
    // The bars of the overview, and the table.
    assert_eq!(rows(open), 2, "{open}");
    let (_, line) = open.rsplit_once("<td>File creation</td>").expect("a row");
    let cells: Vec<&str> = line.split("</td>").take(2).collect();
    assert!(cells[1].contains(" ±"), "{cells:?}");
    for n in 2..=5 {
        assert!(
            folds.contains(&format!("<summary>Iteration {n}</summary>")),
            "{n}"
        );
    }
    assert!(page.contains("<summary>Each iteration</summary>"));
    let single = page::render(&documents(vec![iterated(1, 1000)]), &[]);
    assert!(!single.contains("teration</summary>") && !shown(&single).contains(" ±"));
}

#[test]
fn bars_of_rates_that_are_far_apart_are_all_long_enough_to_compare() {
    let bars = |factor: f64| {
        let mut result = iterated(1, 1000);
        for phase in result.phases.iter_mut().filter(|p| p.name == "file-stat") {
            phase.rate *= factor;
        }
        let page = page::render(&documents(vec![result]), &[]);
        let overview = shown(&page).split("<section").nth(3).unwrap_or_default();
        let rows = overview.split("<tr>").skip(1);
        let rates = rows.filter_map(|row| row.split("width:").nth(1));
        let lengths = rates.filter_map(|text| text.split('%').next()?.parse::<f64>().ok());
        let log = overview.contains("Items per second, logarithmic");
        (log, lengths.fold(100.0, f64::min))
    };
    let (log, shortest) = bars(1.0);
    assert!(!log && shortest < 10.0, "{shortest}");
    let (log, shortest) = bars(1000.0);
    assert!(log && shortest > 5.0, "{shortest}");
}

#[test]
fn the_overview_of_an_open_loop_says_which_times_it_shows() {
    let shown_times = |open_loop: bool| {
        let made = Made::solo(100, 0, 300_000);
        let mut stat = made.phase("file-stat", "File stat", OpKind::Stat);
        stat.response = open_loop.then(|| stat.service.clone());
        let close = made.phase("close", "Close", OpKind::Close);
        let result = run(1, 1, meta_spec(), vec![stat, close]);
        let page = page::render(&documents(vec![result]), &[]);
        let times = |which: &str| shown(&page).matches(&format!(" ({which} time)")).count();
        (times("response"), times("service"))
    };
    assert_eq!(shown_times(true), (1, 1));
    assert_eq!(shown_times(false), (0, 0));
}

#[test]
fn two_runs_have_the_verdict_of_compare_and_their_curves_in_one_chart() {
    let page = named(
        ["a/base.json", "b/new.json"],
        [iterated(5, 1000), iterated(5, 1200)],
    );
    let page = shown(&page);
    for words in [
        "<b>new.json (NEW) against base.json (BASE): </b>new is slower in 12 of 12 operations",
        "<td class=\"left failed\">slower</td>",
        "new.json / base.json",
    ] {
        assert!(page.contains(words), "{words}");
    }
    let (_, chart) = page
        .split_once("<figcaption>Latency by percentile")
        .expect("a chart");
    let (chart, after) = chart.split_once("</figure>").expect("its end");
    assert_eq!(chart.matches("<polyline").count(), 2, "{chart}");
    assert!(chart.contains(">base.json</span>") && chart.contains(">new.json</span>"));
    let (rate, _) = after.split_once("</figure>").expect("the next one");
    assert!(rate.contains(">base.json: iteration ") && rate.contains(">new.json: iteration "));
}

#[test]
fn few_operations_of_many_iterations_are_drawn_where_they_lie() {
    let page = named(
        ["base", "new"],
        [iterated_with(1, 5, 1000), iterated_with(1, 5, 1200)],
    );
    let (_, chart) = shown(&page)
        .split_once("<figcaption>Latency by percentile")
        .expect("20 operations of a side are enough for a chart");
    let (chart, _) = chart.split_once("</figure>").expect("its end");
    assert!(!chart.contains(">1 ns<"), "{chart}");
    let (_, line) = chart.split_once("points=\"").expect("a line");
    let (line, _) = line.split_once('"').expect("its end");
    let heights: BTreeSet<&str> = line
        .split(' ')
        .filter_map(|point| Some(point.split_once(',')?.1))
        .collect();
    assert!(heights.len() > 1, "{line}");
}

#[test]
fn runs_are_called_by_their_label_or_their_file() {
    let names = |files: [&str; 2], label: &str| {
        let mut results = [1000, 1000].map(|permille| iterated(1, permille));
        if !label.is_empty() {
            results[0]
                .run
                .labels
                .insert("name".to_owned(), label.to_owned());
        }
        let page = named(files, results);
        let (_, heads) = page.split_once("<section id=\"run\">").expect("a section");
        let names = heads.split("<h4>").skip(1).take(2);
        names
            .map(|rest| rest.split('<').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(["x/a.json", "x/b.json"], ""), ["a.json", "b.json"]);
    assert_eq!(
        names(["x/a.json", "y/a.json"], ""),
        ["x/a.json", "y/a.json"]
    );
    assert_eq!(
        names(["x/a.json", "y/a.json"], "before"),
        ["before", "y/a.json"]
    );
    assert_eq!(names(["", ""], ""), ["run-1000", "run-1000"]);
}

#[test]
fn two_runs_of_five_iterations_weigh_less_than_a_megabyte() {
    let results = [1000, 1100].map(|permille| iterated(5, permille));
    let page = named(["a.json", "b.json"], results.clone());
    let (size, without_data) = (page.len(), shown(&page).len());
    assert!(
        size < 1_000_000,
        "{size} bytes, {without_data} without data"
    );
    // And they are still in it.
    let mut read = read(&page, 2);
    let mut result = results[1].clone();
    if page.contains("The timelines are left out") {
        result
            .phases
            .iter_mut()
            .for_each(|phase| phase.timeline.clear());
    }
    assert_eq!(read.phases.pop(), result.phases.pop());
    assert_eq!(read.summary, result.summary);
}

#[test]
fn what_moves_bytes_has_a_chart_of_them_and_a_heat_map_its_legend() {
    let of = |bytes: u64| {
        let phase = Made::solo(2000, bytes, 1_000_000).phase("write", "Write", OpKind::Write);
        page::render(&documents(vec![run(1, 1, meta_spec(), vec![phase])]), &[])
    };
    assert!(of(4096).contains("MiB per second over time") && !of(0).contains("MiB per second"));
    assert!(of(0).contains("% of a slice"));
}

#[test]
fn titles_explain_themselves() {
    let page = page::render(&documents(vec![iterated(1, 1000)]), &[]);
    let heads = shown(&page)
        .split("<th")
        .skip(1)
        .map(|rest| rest.split("</th>").next().unwrap_or_default());
    let mute = heads.filter(|head| {
        ["p99", "last done", "Errors"]
            .iter()
            .any(|title| head.ends_with(&format!(">{title}")))
            && !head.contains("title=")
    });
    assert_eq!(mute.collect::<Vec<_>>(), [""; 0]);
    assert!(page.contains("title=\"from the actual start of an operation to its end: 99 % of the operations took at most this long\""));
}
