//! The page: whatever a result holds, it is HTML, loads nothing, and gives the
//! result back.

use rbench_core::OpKind;
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
    let wild = page::render(&documents(vec![hostile(calm.clone())]));
    calm.run.labels.insert("a".to_owned(), "b".to_owned());
    let calm = page::render(&documents(vec![calm]));
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
    let page = page::render(&documents(results.clone()));
    let mut rest = page.as_str();
    for result in results {
        let (_, from) = rest
            .split_once("<script type=\"application/json\"")
            .expect("data");
        let (_, from) = from.split_once('>').expect("the element");
        let (json, after) = from.split_once("</script>").expect("its end");
        let read: RunResult = serde_json::from_str(json).expect("JSON");
        assert_eq!(read, result);
        rest = after;
    }
}

#[test]
fn nothing_is_loaded() {
    let page = page::render(&documents(vec![run(3, 4, meta_spec(), meta_phases(3, 4))]));
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
    // The name space of SVG is no address that anybody visits.
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
    let page = page::render(&documents(vec![result]));
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
        page::render(&documents(vec![run(2, 2, meta_spec(), vec![phase])]))
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
    let page = page::render(&[Document::Series(Box::new(series.clone()))]);
    assert!(page.contains("Operations per second over threads"));
    assert!(page.contains("p99 over threads"));
    assert!(page.contains("bs 4k</span>") && page.contains("bs &lt;64k&gt;</span>"));
    assert_eq!(page.matches("<svg").count(), 2);
    assert!(!page.contains("<64k"));
    // As an axis, too.
    let mut turned = series;
    turned.keys.reverse();
    let page = page::render(&[Document::Series(Box::new(turned))]);
    assert!(page.contains("over bs") && !page.contains("<64k"));
}

#[test]
fn a_search_is_its_curve_with_the_objective_and_the_steps() {
    let found = crate::knee::found_one();
    let page = page::render(&[Document::Series(Box::new(found.clone()))]);
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
    // A disc for each step that held in each of the two charts, and a cross, of two lines,
    // for each that did not.
    let knee = found.knee.as_ref().expect("a knee");
    let steps = |held| {
        knee.steps
            .iter()
            .filter(|step| step.held == Some(held))
            .count()
    };
    let (_, drawn) = page.split_once("</style>").expect("a style");
    assert_eq!(drawn.matches("<circle").count(), 2 * steps(true));
    assert_eq!(
        drawn.matches("stroke=\"#B42318\"").count(),
        2 * 2 * steps(false)
    );
    // Whatever a damaged file says, there is a page.
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
    page::render(&[Document::Series(Box::new(odd.clone()))]);
    odd.knee.as_mut().expect("a knee").steps.clear();
    let page = page::render(&[Document::Series(Box::new(odd))]);
    assert!(page.contains("No step has finished."));
}
