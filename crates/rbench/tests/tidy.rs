//! The rules of ARCHITECTURE.md that a compiler does not check.

#![allow(
    clippy::print_stderr,
    clippy::print_stdout,
    reason = "tests report there"
)]

#[path = "tidy/conventions.rs"]
mod conventions;
#[path = "tidy/floors.rs"]
mod floors;
#[path = "tidy/source.rs"]
mod source;
#[path = "tidy/words.rs"]
mod words;

use std::fs;
use std::path::{Path, PathBuf};

/// Crate, and the crates of this project that it may use.
const ARROWS: &[(&str, &[&str])] = &[
    ("rbench-core", &[]),
    ("rbench-plan", &["rbench-core"]),
    ("rbench-cli", &["rbench-core", "rbench-plan"]),
    ("rbench-sys", &["rbench-core"]),
    ("rbench-comm", &["rbench-core"]),
    (
        "rbench-exec",
        &["rbench-comm", "rbench-core", "rbench-plan", "rbench-sys"],
    ),
    ("rbench-report", &["rbench-core"]),
    ("rbench-testfs", &["rbench-core"]),
    (
        "rbench-fuzz",
        &[
            "rbench-cli",
            "rbench-core",
            "rbench-exec",
            "rbench-plan",
            "rbench-report",
            "rbench-sys",
        ],
    ),
    (
        "rbench",
        &[
            "rbench-cli",
            "rbench-comm",
            "rbench-core",
            "rbench-exec",
            "rbench-plan",
            "rbench-report",
            "rbench-sys",
            "rbench-testfs",
        ],
    ),
];

/// Crates that must not know these libraries. Only the result file's types are a promise to users: a crate
/// that has serde for messages between ranks has nothing that would write a file with it.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("rbench-core", &["tokio", "mpi", "serde_json", "clap"]),
    // clap reads the types of its Specs, which are the options.
    ("rbench-plan", &["tokio", "mpi", "serde", "postcard"]),
    // The job files that rank 0 reads are a message to the others.
    ("rbench-cli", &["tokio", "mpi", "serde_json", "postcard"]),
    ("rbench-comm", &["serde_json", "postcard", "clap"]),
    ("rbench-report", &["tokio", "mpi", "postcard", "clap"]),
    (
        "rbench-sys",
        &["tokio", "mpi", "serde_json", "postcard", "clap"],
    ),
    ("rbench-exec", &["mpi", "serde_json", "postcard", "clap"]),
    ("rbench-testfs", &["mpi", "postcard", "clap"]),
    ("rbench", &["mpi", "postcard", "clap", "fuser", "io-uring"]),
];

/// "About 600" lines, plus a quarter for files with a trait of many methods.
const LINES_MAX: usize = 750;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Names in `[dependencies]` of a crate.
fn dependencies(name: &str) -> Vec<String> {
    let path = root().join("crates").join(name).join("Cargo.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines()
        .skip_while(|line| line.trim() != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['))
        .filter_map(|line| line.split(['.', ' ', '=']).next())
        .filter(|word| !word.is_empty() && !word.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the project") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|e| e == "rs") {
            into.push(path);
        }
    }
}

fn all_sources() -> Vec<PathBuf> {
    let mut all = Vec::new();
    for folder in ["crates", "benches"] {
        sources(&root().join(folder), &mut all);
    }
    assert!(all.len() > 50, "the sources were found");
    all
}

fn is_test(path: &Path) -> bool {
    path.components()
        .any(|c| c.as_os_str() == "tests" || c.as_os_str() == "examples")
        || path.file_name().is_some_and(|n| n == "tests.rs")
}

#[test]
fn arrows_point_only_where_the_architecture_says() {
    let crates = fs::read_dir(root().join("crates"))
        .expect("crates")
        .filter(|e| e.as_ref().is_ok_and(|e| e.path().is_dir()));
    assert_eq!(
        crates.count(),
        ARROWS.len(),
        "a crate is missing from the table of arrows"
    );
    for (name, allowed) in ARROWS {
        for used in dependencies(name)
            .iter()
            .filter(|d| d.starts_with("rbench"))
        {
            assert!(
                allowed.contains(&used.as_str()),
                "{name} must not use {used}"
            );
        }
    }
}

#[test]
fn libraries_stay_where_they_belong() {
    for (name, forbidden) in FORBIDDEN {
        for used in dependencies(name) {
            assert!(
                !forbidden.contains(&used.as_str()),
                "{name} must not use {used}"
            );
        }
    }
}

#[test]
fn every_dependency_has_its_reason_in_the_architecture() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for (name, _) in ARROWS {
        for used in dependencies(name)
            .iter()
            .filter(|d| !d.starts_with("rbench"))
        {
            assert!(
                text.contains(&format!("| `{used}` |")),
                "ARCHITECTURE.md says nothing of {used} ({name})"
            );
        }
    }
}

#[test]
fn every_module_says_what_it_owns_and_fits_in_about_600_lines() {
    for path in all_sources().iter().filter(|p| !is_test(p)) {
        let text = fs::read_to_string(path).expect("a source file");
        assert!(
            text.starts_with("//!"),
            "{} does not open with //!",
            path.display()
        );
        let code = text
            .split("#[cfg(test)]")
            .next()
            .unwrap_or("")
            .lines()
            .count();
        assert!(code <= LINES_MAX, "{} has {code} lines", path.display());
    }
}

#[test]
fn no_test_is_ignored_and_nothing_is_left_for_later() {
    for path in all_sources()
        .iter()
        .filter(|p| !p.ends_with("tests/tidy.rs"))
    {
        let text = fs::read_to_string(path).expect("a source file");
        for word in [
            "#[ignore",
            "TODO",
            "FIXME",
            "XXX",
            "todo!",
            "unimplemented!",
        ] {
            assert!(!text.contains(word), "{} holds {word}", path.display());
        }
        // With `doctest = false` in each crate, nothing would test it.
        for comment in ["//! ```", "/// ```"] {
            assert!(
                !text.contains(comment),
                "{} holds an example",
                path.display()
            );
        }
    }
}

#[test]
fn every_test_dependency_is_a_workspace_dependency() {
    for (name, _) in ARROWS {
        let text = fs::read_to_string(root().join("crates").join(name).join("Cargo.toml"))
            .expect("Cargo.toml");
        let own = text
            .lines()
            .find(|l| l.contains("version = \"") && !l.starts_with("version"));
        assert_eq!(own, None, "{name} names a version of its own");
    }
}

/// The text between two marks.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let (_, rest) = text.split_once(begin).expect("the begin");
    rest.split_once(end).expect("the end").0
}

#[test]
fn continuous_integration_runs_every_stage() {
    let read = |path: &str| fs::read_to_string(root().join(path)).expect("a file of the project");
    let (script, workflow) = (read("scripts/test"), read(".github/workflows/ci.yml"));
    let run: Vec<&str> = workflow
        .lines()
        .filter_map(|line| line.split_once("stages: "))
        .flat_map(|(_, stages)| stages.split([' ', '}']))
        .collect();
    let lists = ["FIRST=(", "BESIDE_UNIT=(", "LANES=("];
    let lists =
        lists.map(|list| between(&script, &format!("readonly {list}"), ")").replace('"', " "));
    let all = lists.join(" ") + " unit";
    assert!(all.split_whitespace().count() > 10, "the stages were found");
    for stage in all.split_whitespace() {
        assert!(run.contains(&stage), "the workflow leaves out {stage}");
        assert!(
            script.contains(&format!("\nstage_{stage}() {{")),
            "scripts/test has no stage {stage}"
        );
    }
    for line in script.lines() {
        if let Some((stage, _)) = line
            .strip_prefix("stage_")
            .and_then(|line| line.split_once("()"))
        {
            let known = stage == "unit_quick" || all.split_whitespace().any(|name| name == stage);
            assert!(known, "scripts/test never runs the stage {stage}");
        }
    }
}
