//! Tests our files in other programs, and files of other programs as our inputs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::Value;

use crate::common::{Place, text};

fn run_well(place: &Place, line: &str) -> Output {
    let output = place.run(line);
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{line}: {said}");
    output
}

fn json(place: &Place, name: &str) -> Value {
    let text = fs::read_to_string(place.path(name)).expect(name);
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn the_report_of_a_run_that_cannot_be_set_up_takes_the_place_of_an_earlier_one() {
    let place = Place::new();
    let rest = "--rw=read --size=4k --output-format=json --output=report.json";
    run_well(&place, &format!("fio --name=x --directory=target {rest}"));
    assert_eq!(json(&place, "report.json")["jobs"][0]["error"], 0);
    let output = place.run(&format!("fio --name=x --filename=/proc/self/none {rest}"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let job = &json(&place, "report.json")["jobs"][0];
    assert_ne!(job["error"], 0);
    assert_eq!(job["jobname"], "x");
    assert_eq!(job["read"]["total_ios"], 0);
}

#[test]
fn a_description_of_all_jobs_stands_with_each() {
    let place = Place::new();
    let jobs =
        "[global]\ndescription=some words\nsize=16k\nrw=write\n[a]\n[b]\ndescription=others\n";
    fs::write(place.path("jobs"), jobs).expect("written");
    run_well(
        &place,
        "fio jobs --directory=target --output-format=json --output=r",
    );
    let report = json(&place, "r");
    assert_eq!(report["jobs"][0]["desc"], "some words");
    assert_eq!(report["jobs"][1]["desc"], "others");
}

#[test]
fn every_file_of_a_job_stands_among_its_options() {
    let place = Place::new();
    let line = "fio --name=x --directory=target --rw=write --size=32k --filename=a --filename=b";
    run_well(&place, &format!("{line} --output-format=json --output=r"));
    let options = &json(&place, "r")["jobs"][0]["job options"];
    assert_eq!(options["filename"], "a:b");
    assert_eq!(place.entries("target"), ["a", "b"]);
}

#[test]
fn what_is_told_of_the_work_of_a_run_stands_before_its_report() {
    let place = Place::new();
    let line = "fio --debug=parse --name=x --directory=target --rw=write --size=16k";
    let output = run_well(&place, line);
    let printed = text(&output.stdout);
    let report = printed.find("groupid=").expect("a report");
    assert!(printed[..report].contains("parse "), "{printed}");
    assert!(!text(&output.stderr).contains("parse "));

    run_well(&place, &format!("{line} --output=r"));
    let printed = fs::read_to_string(place.path("r")).expect("a report");
    assert!(
        printed.starts_with("parse ") && printed.contains("groupid="),
        "{printed}"
    );

    // As fio's own scripts look for seeds.
    let seeds = |more: &str| -> Vec<u64> {
        let line = line.replace("parse", "random");
        let output = run_well(&place, &format!("{line} {more}"));
        let printed = text(&output.stdout);
        let lines = printed.lines().filter(|line| line.starts_with("random "));
        let seeds = lines.filter_map(|line| line.split_once("rand_seeds[0]="));
        seeds
            .map(|(_, seed)| seed.parse().expect("a number"))
            .collect()
    };
    assert_eq!(seeds("--randseed=7"), seeds("--randseed=7 --randrepeat=0"));
    assert_eq!(seeds("").len(), 1);
    assert_ne!(seeds("--randrepeat=0"), seeds("--randrepeat=0"));
}

#[test]
fn a_script_of_ior_and_its_summaries() {
    let place = Place::new();
    let script =
        "IOR START\n\ttransferSize=64k\n\tblockSize=256k\n\ttestFile=target/x\nRUN\nIOR STOP\n";
    fs::write(place.path("script"), script).expect("written");
    let more =
        "-k -O summaryFile=s.json -O summaryFormat=JSON -O saveRankPerformanceDetailsCSV=ranks.csv";
    let output = run_well(&place, &format!("ior -w -f script {more}"));
    assert!(text(&output.stdout).contains("Max Write:"));
    let written = fs::metadata(place.path("target/x")).expect("kept");
    assert_eq!(written.len(), 256 * 1024);
    let summary = json(&place, "s.json");
    let write = &summary["summary"][0];
    assert_eq!(write["operation"], "write", "{summary}");
    assert_eq!(write["blockSize"], 256 * 1024);
    assert_eq!(write["transferSize"], 64 * 1024);
    let ranks = fs::read_to_string(place.path("ranks.csv")).expect("ranks");
    let rows: Vec<&str> = ranks.lines().collect();
    assert_eq!(rows.len(), 2, "{ranks}");
    assert_eq!(rows[0].split(',').count(), rows[1].split(',').count());

    fs::write(place.path("other"), script.replace("/x", "/y")).expect("written");
    let output = run_well(&place, "ior -w -f other -O summaryFormat=CSV");
    let table = text(&output.stdout);
    let mut lines = table.lines();
    let head = lines.next().expect("a head").split(',').count();
    let row = lines.next().expect("a row").split(',').count();
    assert_eq!(head, row, "{table}");
    // Neither file is overwritten.
    let output = place.run(&format!("ior -w -f script {more}"));
    assert_ne!(output.status.code(), Some(0));
    assert_eq!(json(&place, "s.json"), summary);
}

#[test]
fn a_table_of_zeros_of_mdtest_is_explained() {
    let place = Place::new();
    let nothing = "nothing was created: give -n or -I";
    for (options, explained) in [("-b 3", true), ("-b 3 -I 1", false), ("-T", false)] {
        let output = place.run(&format!("mdtest {options} -d target"));
        let said = text(&output.stderr);
        assert_eq!(said.contains(nothing), explained, "{options}: {said}");
    }
}

/// Also where others may put something else in the place of the missing directories.
#[test]
fn operations_of_mdtest_fail_where_nothing_was_created() {
    for mode in [0o700, 0o777] {
        let place = Place::new();
        let public = fs::Permissions::from_mode(mode);
        fs::set_permissions(place.path("target"), public).expect("its mode is set");
        let output = place.run("mdtest -T -F -n 10 -d target --out result.json");
        assert_eq!(output.status.code(), Some(1), "{mode:o}");
        let result = place.result("result.json");
        let [row] = &result.phases[..] else {
            panic!("{} rows", result.phases.len());
        };
        assert_eq!((row.name.as_str(), row.items), ("file-stat", 0), "{mode:o}");
        let errors: Vec<_> = row.errors.iter().collect();
        assert_eq!(errors, [(&"ENOENT".to_owned(), &10)], "{mode:o}");
    }
}

#[test]
fn directories_that_mdtest_finds_are_no_failures_and_not_counted() {
    let place = Place::new();
    let line = "mdtest -C -n 4 -b 2 -z 1 -d target/tree";
    run_well(&place, line);
    let output = run_well(&place, &format!("{line} --out result.json"));
    let result = place.result("result.json");
    let codes: Vec<&str> = result.warnings.iter().map(|w| w.code.as_str()).collect();
    assert!(codes.contains(&"already-there"), "{codes:?}");
    assert!(!codes.contains(&"errors"), "{codes:?}");
    let items = |name: &str| {
        let row = result.phases.iter().find(|p| p.name == name);
        row.expect(name).items
    };
    assert_eq!(items("tree-create"), 0);
    assert_eq!(items("dir-create"), 0);
    assert_eq!(items("file-create"), 3);
    assert!(text(&output.stderr).contains("already existed"));

    let output = place.run(&format!("{line} --warningAsErrors"));
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
}

#[test]
fn a_folder_for_the_results_of_io500_is_made() {
    let place = Place::new();
    let mut ini = "[global]\ndatadir = ./target\nresultdir = ./results\n\
        [debug]\nstonewall-time = 60\n[ior-easy]\nblockSize = 4m\n[mdtest-easy]\nn = 5\n\
        [ior-hard]\nsegmentCount = 5\n[mdtest-hard]\nn = 5\n"
        .to_owned();
    for phase in ["ior-rnd4K", "ior-rnd1MB", "mdworkbench", "find-easy"] {
        ini += &format!("[{phase}]\nrun = FALSE\n");
    }
    fs::write(place.path("small.ini"), ini).expect("written");
    run_well(&place, "suite io500 --ini small.ini");
    let metadata = fs::metadata(place.path("results")).expect("made");
    assert!(metadata.is_dir());
    assert_eq!(place.entries("results").len(), 1);
}

#[test]
fn a_replay_of_nothing_says_where_most_paths_are() {
    let place = Place::new();
    let line = |name: &str| {
        format!("10 1000.000000 open(\"{name}\", O_RDONLY) = 3\n10 1000.000100 close(3) = 0\n")
    };
    let names = ["/srv/data/a", "/srv/data/b/c", "/srv/data/d", "/home/me"];
    let trace: String = names.iter().map(|name| line(name)).collect();
    fs::write(place.path("trace"), trace).expect("written");
    let output = place.run("replay trace --dir target --below /wrong");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("outside of --below; most are below /srv/data"),
        "{said}"
    );
}

#[test]
fn a_line_that_cannot_be_read_is_left_out_of_a_replay_and_counted() {
    let place = Place::new();
    let line = |second: u32, call: &str| {
        format!("2024.05.23 16:11:1{second}.700000 [uid:0,gid:0,pid:1] {call} <0.000050>\n")
    };
    let log = [
        line(
            1,
            "create (1,a,-rw-r--r--:0100644): (2,[-rw-r--r--:0100644,1,0,0,1,1,1,0]) [fh:1] - OK",
        ),
        line(2, "write (2,4096,0,1) - OK"),
        line(3, "write (2,4096,4096,1) - a word of tomorrow"),
        line(4, "release (2,1) - OK"),
    ];
    fs::write(place.path("log"), log.concat()).expect("written");
    let replay = "replay --dir target --as-fast-as-possible";
    run_well(&place, &format!("{replay} --out result.json log"));
    let result = place.result("result.json");
    let warning = result
        .warnings
        .iter()
        .find(|w| w.code == "unreadable-lines");
    let message = &warning.expect("a warning").message;
    for part in ["left out: 1.", "log, line 3:", "a word of tomorrow"] {
        assert!(message.contains(part), "{message}");
    }
    let wrote = result.phases.iter().find(|phase| phase.op == "write");
    assert_eq!(wrote.expect("a row of writes").items, 1);

    let output = place.run(&format!("{replay} --strict log"));
    let said = text(&output.stderr);
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("line 3:"), "{said}");
}
