//! Tests outputs from finished results: other formats from the file alone, journals of killed runs,
//! completions and man pages.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::common::{complete_lines, wait_until};

struct Place(TempDir);

impl Place {
    fn new() -> Place {
        let dir = tempfile::tempdir().expect("a directory");
        fs::create_dir(dir.path().join("target")).expect("made");
        Place(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).expect(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rbench"));
        command
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env_remove("RBENCH_DIR");
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("starts")
    }

    /// The output of a command that succeeds.
    fn printed(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(0), "{line}: {}", said(&output));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Checks that `line` ends with `code` and prints each of `parts` in one line.
    fn check(&self, line: &str, code: i32, parts: &[&str]) {
        let output = self.run(line);
        let said = said(&output);
        assert_eq!(output.status.code(), Some(code), "{line}: {said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        for part in parts {
            assert!(said.contains(part), "{line}: {said}");
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn mdtests_tables_come_from_the_file_as_they_were_printed() {
    let place = Place::new();
    for (name, options) in [
        ("a", "-n 20 -i 2 -v -R=7 -N 1"),
        ("b", "-F -C -n 2000 -W 1 -Z --showRankStatistics"),
        ("c", "-D -n 10 -P --print-all-procs"),
    ] {
        let line = format!("mdtest -d target/{name} {options} --out {name}.json");
        let printed = place.printed(&line);
        let shown = place.printed(&format!("show --format mdtest {name}.json"));
        assert_eq!(shown, printed, "{options}");
    }
    place.check(
        "show --format fio a.json",
        2,
        &["a.json: the run was not made by rbench fio"],
    );
}

#[test]
fn fios_reports_come_from_the_file_as_they_were_printed() {
    let place = Place::new();
    for (name, options) in [
        ("a", "--rw=randrw --numjobs=2 --output-format=normal,json"),
        (
            "b",
            "--rw=write --numjobs=3 --group_reporting --rate_iops=2000 --percentile_list=10:50:99.99 \
             --unified_rw_reporting=both --output-format=normal,json+",
        ),
        (
            "c",
            "--rw=randread --ioengine=io_uring --iodepth=4 --name=more --stonewall --rw=write --directory=target \
             --size=256k --fsync=8 --output-format=normal,json",
        ),
    ] {
        let line = format!(
            "fio --name={name} --directory=target --size=1m --bs=4k {options} --out={name}.json"
        );
        let printed = place.printed(&line);
        let forms = ["fio", "fio-json"]
            .map(|form| place.printed(&format!("show --format {form} {name}.json")));
        assert_eq!(forms.concat(), printed, "{options}");
    }
}

#[test]
fn several_files_are_one_table() {
    let place = Place::new();
    for name in ["a", "b"] {
        place.printed(&format!(
            "meta --dir target --items 4 --seed 7 --out {name}.json -q"
        ));
    }
    let rows = |form: &str| {
        let text = place.printed(&format!("show --format {form} a.json b.json"));
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let width = reader.headers().expect("a head").len();
        let rows: Vec<_> = reader.records().map(|row| row.expect("a row")).collect();
        assert!(rows.iter().all(|row| row.len() == width));
        rows
    };
    let phases: serde_json::Value = serde_json::from_str(&place.text("a.json")).expect("JSON");
    let count = phases["phases"].as_array().map_or(0, Vec::len);
    for form in ["csv", "csv-hosts", "csv-ranks"] {
        assert_eq!(rows(form).len(), 2 * count, "{form}");
    }
    assert!(rows("csv-intervals").len() >= 2 * count);
    let only = place.printed("show --format csv --only file-stat,file-read a.json");
    assert_eq!(only.lines().count(), 3, "{only}");
    let labelled = place
        .command("show --format csv a.json --only")
        .arg("File stat")
        .output();
    let labelled = labelled.expect("starts");
    assert_eq!(labelled.status.code(), Some(0), "{}", said(&labelled));
    let named = place.printed("show --format csv --only file-stat a.json");
    assert_eq!(String::from_utf8_lossy(&labelled.stdout), named);
    place.check(
        "show --only nothing a.json",
        2,
        &[
            "--only nothing",
            "no file has a row of that name; there are ",
            "file-stat, ",
        ],
    );
    place.check("show a.json gone.json", 2, &["gone.json cannot be read"]);
}

#[test]
fn several_runs_of_each_side_are_named_by_base_and_new() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.printed(&format!("{META} --out {name}.json"));
    }
    let text = place.printed("compare --base a.json b.json --new c.json");
    let sides = |side: &str| text.lines().filter(|line| line.starts_with(side)).count();
    assert_eq!((sides("BASE  "), sides("NEW   ")), (2, 1), "{text}");
    for line in [
        "--base a.json b.json c.json",
        "a.json b.json --base c.json",
        "--new a.json",
    ] {
        let write = "rbench compare --base old-*.json --new new-*.json";
        place.check(&format!("compare {line}"), 2, &[write]);
    }
}

/// Waits until the journal contains a line with this start.
fn wait_for(journal: &Path, start: &str) {
    wait_until(start, || {
        let lines = complete_lines(journal);
        lines.iter().any(|line| line.starts_with(start))
    });
}

#[test]
fn the_journal_of_a_killed_run_shows_what_had_ended_in_every_form() {
    let place = Place::new();
    let line = "fio --name=first --directory=target --size=64k --bs=4k --rw=write --name=second --stonewall \
                --directory=target --size=64k --rw=read --time_based --runtime=600 --out=run.json";
    let mut run = place
        .command(line)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("starts");
    wait_for(&place.path("run.json.journal"), "{\"fio\":");
    run.kill().expect("killed");
    run.wait().expect("ended");
    let normal = place.printed("show --format fio run.json.journal");
    assert!(normal.contains("first: (groupid=0, jobs=1)"), "{normal}");
    assert!(!normal.contains("second: (groupid"), "{normal}");
    let text = place.printed("show run.json.journal");
    assert!(text.contains("INCOMPLETE"), "{text}");
    for form in [
        "json",
        "csv",
        "csv-hosts",
        "md",
        "hgrm",
        "openmetrics",
        "fio-json",
    ] {
        let text = place.printed(&format!("show --format {form} run.json.journal"));
        assert!(text.contains("first"), "{form}: {text}");
    }
}

/// Returns true if a program is installed; with `RBENCH_TEST_NO_SKIP` it must be.
fn available(program: &str) -> bool {
    let started = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .and_then(|mut child| child.wait());
    if started.is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: there is no {program}");
    }
    started.is_ok()
}

#[test]
fn shells_read_their_completions() {
    let place = Place::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = place.printed(&format!("completions {shell}"));
        fs::write(place.path(shell), &script).expect("written");
        if available(shell) {
            let read = Command::new(shell)
                .arg("-n")
                .arg(place.path(shell))
                .output()
                .expect("runs");
            assert!(read.status.success(), "{shell}: {}", said(&read));
            assert!(read.stderr.is_empty(), "{shell}: {}", said(&read));
        }
    }
    assert_eq!(place.run("completions tcsh").status.code(), Some(2));
}

#[test]
fn man_pages_are_written_once() {
    let place = Place::new();
    fs::create_dir(place.path("man1")).expect("made");
    place.printed("man --out man1");
    assert_eq!(place.text("man1/rbench.1"), place.printed("man"));
    place.check(
        "man --out man1",
        2,
        &["man1/rbench.1 already exists and is not overwritten"],
    );
    place.check("man --out gone", 2, &["--out gone is not a directory"]);
    if available("mandoc") {
        for name in [
            "rbench.1",
            "rbench-fio.1",
            "rbench-mdtest.1",
            "rbench-show.1",
        ] {
            let lint = Command::new("mandoc")
                .args(["-T", "lint", "-W", "error"])
                .arg(place.path("man1").join(name))
                .output()
                .expect("runs");
            let complaints = String::from_utf8_lossy(&lint.stdout);
            assert!(lint.status.success(), "{name}: {complaints}");
        }
    }
}

const META: &str = "meta --dir target --items 2 -q";

#[test]
fn in_a_directory_the_result_is_named_after_its_run() {
    let place = Place::new();
    fs::create_dir(place.path("results")).expect("made");
    for line in [
        META,
        "mdtest -d target/md -n 2",
        "fio --name=a --directory=target --size=16k --rw=write",
    ] {
        place.printed(&format!("{line} --out results"));
    }
    let names = fs::read_dir(place.path("results")).expect("listing");
    let mut count = 0;
    for name in names.map(|entry| entry.expect("entry").path()) {
        let text = fs::read_to_string(&name).expect("a result");
        let result: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let id = result["run"]["id"].as_str().map(str::to_owned);
        assert_eq!(
            name.file_stem().map(|s| s.to_string_lossy().into_owned()),
            id
        );
        count += 1;
    }
    assert_eq!(count, 3, "no journal is left");
}

#[test]
fn only_a_result_of_ours_is_overwritten_and_only_when_asked() {
    let place = Place::new();
    let run = |options: &str| format!("{META} --out run.json {options}");
    place.printed(&run("--label n=1"));
    place.check(
        &run(""),
        2,
        &["--out", "run.json already exists and is not overwritten (--overwrite replaces a file of rbench)"],
    );
    place.printed(&run("--overwrite --label n=2"));
    assert!(place.text("run.json").contains("\"n\": \"2\""));
    assert!(!place.path("run.json.journal").exists());

    for other in ["my thesis", "{\"schema\": \"other/1\"}", "{}", ""] {
        fs::write(place.path("run.json"), other).expect("written");
        place.check(&run("--overwrite"), 2, &["run.json holds other data"]);
        assert_eq!(place.text("run.json"), other);
    }
    fs::remove_file(place.path("run.json")).expect("removed");
    place.printed(&format!("{META} --out real.json"));
    let real = place.text("real.json");
    std::os::unix::fs::symlink("real.json", place.path("run.json")).expect("linked");
    place.check(&run("--overwrite"), 2, &["run.json is a symbolic link"]);
    assert_eq!(place.text("real.json"), real);
    // The journal of a run that died contains results.
    fs::write(place.path("new.json.journal"), "{}").expect("written");
    place.check(
        &format!("{META} --out new.json --overwrite"),
        2,
        &["new.json.journal exists: it holds the finished phases"],
    );
    for (out, missing) in [("gone/run.json", "gone"), ("new/", "new/")] {
        let missing = place.path(missing);
        place.check(
            &format!("{META} --out {out}"),
            2,
            &[&format!(
                "the directory {} does not exist",
                missing.display()
            )],
        );
    }
}

#[test]
fn a_page_of_a_directory_has_its_results() {
    let place = Place::new();
    fs::create_dir(place.path("results")).expect("made");
    place.check(
        "report results --html all.html",
        2,
        &["results has no result files"],
    );
    for name in ["a", "b"] {
        place.printed(&format!("{META} --out results/{name}.json"));
    }
    fs::write(place.path("results/other.txt"), "other").expect("written");
    place.printed("report results --html all.html");
    let page = place.text("all.html");
    assert!(page.contains("rbench: 2 results") && page.contains("b.json"));
}

#[test]
fn a_page_is_written_beside_nothing_else() {
    let place = Place::new();
    place.printed(&format!("{META} --out run.json"));
    place.printed("report run.json --html run.html");
    let page = place.text("run.html");
    assert!(
        page.starts_with(rbench_report::page::BEGINNING),
        "{}",
        &page[..200]
    );
    place.check(
        "report run.json --html run.html",
        2,
        &["--html run.html already exists and is not overwritten (--overwrite replaces a file of rbench)"],
    );
    place.printed("report run.json run.json --html run.html --overwrite");
    assert!(place.text("run.html").len() > page.len());
    place.check(
        "report run.json --html run.json --overwrite",
        2,
        &["--html run.json holds other data"],
    );
    place.check(
        "report gone.json --html new.html",
        2,
        &["gone.json cannot be read"],
    );
    assert!(!place.path("new.html").exists());
    std::os::unix::fs::symlink("run.html", place.path("link.html")).expect("linked");
    place.check(
        "report run.json --html link.html --overwrite",
        2,
        &["link.html is a symbolic link"],
    );
    place.check(
        "report run.json --html gone/x.html",
        2,
        &["the directory gone does not exist"],
    );
}
