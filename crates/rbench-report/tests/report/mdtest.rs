//! Tests mdtest's output: golden files, and lines of mdtest itself, byte for byte.
//! tests/parse_mdtest.py tests it with other parsers.

use rbench_core::failure::{Failure, FailureKind};
use rbench_core::outcome::{PhaseOutcome, RankOutcome, Stonewall};
use rbench_core::{Latency, Nanos, OpKind, Rank};
use rbench_report::mdtest::{Kinds, Print, View, rank_details_csv, render};
use rbench_report::{PhaseResult, RunResult};

use crate::fixtures::{Made, fail, meta_phases, meta_spec, no_space, run, words};
use crate::golden::check;

fn view() -> View {
    View {
        print: Print::Rates,
        kinds: Kinds::Both,
        verbosity: 0,
        all_ranks: false,
        rank_statistics: false,
        items: Some(4800),
        command: "mdtest".to_owned(),
        paths: vec!["/mnt/jfs".to_owned()],
        shift: 0,
        seed: None,
    }
}

/// The phases of mdtest in `iterations` iterations, each slightly slower.
fn mdtest_run(hosts: u32, ranks: u32, iterations: u32) -> RunResult {
    let native_only = |p: &PhaseOutcome| p.name == "dir-list" || p.name == "file-rename";
    let mut phases = Vec::new();
    for iteration in 0..iterations {
        for mut phase in meta_phases(hosts, ranks) {
            phase.iteration = iteration;
            slow_down(&mut phase, 1.0 + f64::from(iteration) / 7.0);
            if !native_only(&phase) {
                phases.push(phase);
            }
        }
    }
    with_command(run(hosts, ranks, meta_spec(), phases))
}

fn slow_down(phase: &mut PhaseOutcome, by: f64) {
    let longer = |ns: &mut Nanos| ns.0 = (ns.0 as f64 * by) as u64;
    longer(&mut phase.elapsed);
    phase.ranks.iter_mut().for_each(|r| longer(&mut r.elapsed));
}

fn with_command(mut result: RunResult) -> RunResult {
    let line = "/usr/bin/rbench mdtest -b 3 -z 1 -I 100 -u -d /mnt/jfs";
    result.run.command = words(line);
    result
}

/// A run of one rank with phases of these names and rates.
fn rated(phases: &[(&str, u32, f64)]) -> RunResult {
    let one = |(name, iteration, rate): &(&str, u32, f64)| {
        let mut phase = Made::solo(10, 0, 1000).phase(name, name, OpKind::Stat);
        phase.iteration = *iteration;
        (phase, *rate)
    };
    let (outcomes, rates): (Vec<PhaseOutcome>, Vec<f64>) = phases.iter().map(one).unzip();
    let mut result = with_command(run(1, 1, meta_spec(), outcomes));
    for (phase, rate) in result.phases.iter_mut().zip(rates) {
        phase.rate = rate;
        phase.elapsed_s = 10.0 / rate;
    }
    result
}

fn line_with<'t>(text: &'t str, start: &str) -> &'t str {
    let first = text.lines().find(|line| line.starts_with(start));
    first.unwrap_or_else(|| panic!("no line '{start}' in\n{text}"))
}

/// The numbers of the row `label` in the table `title`.
fn numbers(text: &str, title: &str, label: &str) -> Vec<f64> {
    let (_, table) = text.split_once(title).expect("the table is there");
    let row = line_with(table, &format!("   {label}"));
    let values = row[25..].split_whitespace();
    values.map(|v| v.parse().expect("a number")).collect()
}

const RATES: &str = "SUMMARY rate (in ops/sec): (of ";
const TIMES: &str = "SUMMARY time (in ms/op): (of ";

#[test]
fn twelve_ranks_on_three_nodes_in_three_iterations() {
    check("mdtest.txt", &render(&mdtest_run(3, 4, 3), &view()));
}

#[test]
fn rates_and_times_of_files_with_a_line_for_each_phase() {
    let mut result = mdtest_run(1, 2, 2);
    result.phases.retain(|p| !p.name.starts_with("dir-"));
    let view = View {
        print: Print::Both,
        kinds: Kinds::Files,
        verbosity: 1,
        items: Some(800),
        paths: vec!["/mnt/a".to_owned(), "/mnt/b".to_owned()],
        ..view()
    };
    check("mdtest_verbose.txt", &render(&result, &view));
}

fn directories_only() -> RunResult {
    let mut result = mdtest_run(2, 2, 1);
    result.phases.retain(|p| !p.name.starts_with("file-"));
    result
}

#[test]
fn statistics_and_lines_of_each_rank() {
    let view = View {
        print: Print::Both,
        kinds: Kinds::Directories,
        all_ranks: true,
        rank_statistics: true,
        items: Some(1600),
        ..view()
    };
    check("mdtest_ranks.txt", &render(&directories_only(), &view));
}

#[test]
fn the_details_of_each_rank_as_csv() {
    check("mdtest_ranks.csv", &rank_details_csv(&directories_only()));
}

#[test]
fn a_stopped_run_has_a_partial_table_and_says_so() {
    let mut phases = meta_phases(2, 2);
    phases.truncate(7);
    phases.retain(|p| p.name != "dir-list");
    let creation = phases.last_mut().expect("file creation");
    creation.complete = false;
    fail(creation, 3, 12, no_space(OpKind::Create, "/mnt/jfs/x\ny"));
    let mut result = with_command(run(2, 2, meta_spec(), phases));
    result.complete = false;
    result.target.space = None;
    check("mdtest_stopped.txt", &render(&result, &view()));
}

#[test]
fn stat_of_an_empty_directory_has_errors_and_no_rate() {
    let mut phase = Made::solo(100, 0, 1000).phase("file-stat", "File stat", OpKind::Stat);
    let gone = Failure::new(OpKind::Stat, "/mnt/jfs/f.0", FailureKind::Errno(2));
    fail(&mut phase, 0, 100, gone);
    phase.service = Latency::new();
    let result = with_command(run(1, 1, meta_spec(), vec![phase]));
    let view = View {
        print: Print::Both,
        verbosity: 1,
        rank_statistics: true,
        ..view()
    };
    let text = render(&result, &view);
    assert_eq!(numbers(&text, RATES, "File stat"), [0.0; 7]);
    assert_eq!(numbers(&text, TIMES, "File stat"), [0.0; 7]);
    assert_eq!(
        line_with(&text, "rbench:"),
        "rbench: File stat: 100 x ENOENT, for example rank 0 on client1: stat /mnt/jfs/f.0: \
         No such file or directory"
    );
}

#[test]
fn a_row_is_what_mdtest_prints() {
    let text = render(&rated(&[("dir-create", 0, 120_648.041)]), &view());
    let printed = "\
SUMMARY rate (in ops/sec): (of 1 iterations)
   Operation                     Max            Min           Mean        Std Dev
   ---------                     ---            ---           ----        -------
   Directory creation         120648.041     120648.041     120648.041          0.000
   Directory stat                  0.000          0.000          0.000          0.000
";
    assert!(text.contains(printed), "{text}");
}

#[test]
fn a_line_of_a_phase_is_what_mdtest_prints() {
    let mut result = rated(&[
        ("file-create", 0, 66_972.804),
        ("file-read", 0, 140_489.418),
        ("tree-remove", 0, 41.003),
    ]);
    for (phase, elapsed_s) in result.phases.iter_mut().zip([4.778, 2.278, 0.024]) {
        phase.elapsed_s = elapsed_s;
    }
    let view = View {
        verbosity: 1,
        ..view()
    };
    let printed = "
V-1:   File creation     :          4.778 sec,      66972.804 ops/sec
V-1:   File read         :          2.278 sec,     140489.418 ops/sec
V-1: main   Tree removal      :          0.024 sec,         41.003 ops/sec

SUMMARY";
    let text = render(&result, &view);
    assert!(text.contains(printed), "{text}");
}

#[test]
fn a_row_with_rank_statistics_is_what_mdtest_prints() {
    let (most, least, mean) = (8_405_418.838, 1_785_570.030, 5_115_828.881);
    let middle = (4.0 * mean - most - least) / 2.0;
    let mut result = rated(&[
        ("dir-create", 0, 16_677_153.082),
        ("dir-create", 1, 3_571_140.060),
    ]);
    for (phase, rates) in result
        .phases
        .iter_mut()
        .zip([[most, middle], [middle, least]])
    {
        let like = phase.ranks[0].clone();
        // Enough that whole nanoseconds tell the digits apart.
        let items = 10_000_000_000;
        let rank = |(rank, rate): (u32, f64)| RankOutcome {
            rank: Rank(rank),
            items,
            elapsed: Nanos((1e9 * items as f64 / rate).round() as u64),
            ..like.clone()
        };
        phase.ranks = (0..).zip(rates).map(rank).collect();
    }
    let view = View {
        rank_statistics: true,
        ..view()
    };
    let printed = "
   Operation         per Rank: Max            Min           Mean       per Iteration: Max            Min           Mean         Std Dev
   ---------                   ---            ---           ----                      ---            ---           ----         -------
   Directory creation        8405418.838    1785570.030    5115828.881       16677153.082    3571140.060   10124146.571    9267350.682
";
    let text = render(&result, &view);
    assert!(text.contains(printed), "{text}");
}

#[test]
fn times_are_milliseconds_per_operation_of_all_ranks() {
    let result = rated(&[
        ("file-stat", 0, 500.0),
        ("file-stat", 1, 250.0),
        ("file-stat", 2, 200.0),
    ]);
    let view = View {
        print: Print::Times,
        ..view()
    };
    let text = render(&result, &view);
    assert!(!text.contains(RATES));
    // 2, 4 and 5 ms: mean 11/3, Σ(x−m)² = 14/3, s = √(7/3).
    assert_eq!(numbers(&text, TIMES, "File stat"), [5.0, 2.0, 3.667, 1.528]);
    assert_eq!(numbers(&text, TIMES, "Tree removal"), [0.0; 4]);
}

#[test]
fn an_iteration_that_only_failed_enters_the_rates_and_has_no_time() {
    let mut result = rated(&[("file-stat", 0, 500.0), ("file-stat", 1, 0.0)]);
    let failed = &mut result.phases[1];
    failed.errors.insert("ENOENT".to_owned(), failed.items);
    (failed.items, failed.elapsed_s) = (0, 0.1);
    let view = View {
        print: Print::Both,
        ..view()
    };
    let text = render(&result, &view);
    assert_eq!(
        numbers(&text, RATES, "File stat"),
        [500.0, 0.0, 250.0, 353.553]
    );
    assert_eq!(numbers(&text, TIMES, "File stat"), [2.0, 2.0, 2.0, 0.0]);
}

/// Rank 0 creates `made` files in 1 s, then each of two ranks writes half of them in 3 s; rank 1
/// fails `failed` of them.
fn collective(made: u64, failed: u64) -> RunResult {
    let mut create =
        Made::on(1, 2, made, 0, 1000).phase("file-create", "File creation", OpKind::Create);
    create.items = made;
    create.elapsed = Nanos(1_000_000_000);
    create.ranks[0].elapsed = create.elapsed;
    create.ranks[1].items = 0;
    create.ranks[1].elapsed = Nanos(0);
    let mut write =
        Made::on(1, 2, made / 2, 1024, 1000).phase("file-write", "File write", OpKind::Write);
    write.elapsed = Nanos(3_000_000_000);
    write
        .ranks
        .iter_mut()
        .for_each(|r| r.elapsed = Nanos(3_000_000_000));
    if failed > 0 {
        fail(&mut write, 1, failed, no_space(OpKind::Write, "/mnt/jfs/f"));
    }
    with_command(run(1, 2, meta_spec(), vec![create, write]))
}

#[test]
fn collective_creation_is_making_and_writing() {
    let view = View {
        verbosity: 1,
        all_ranks: true,
        rank_statistics: true,
        ..view()
    };
    let text = render(&collective(400, 0), &view);
    assert_eq!(
        numbers(&text, RATES, "File creation"),
        [100.0, 100.0, 100.0, 100.0, 100.0, 100.0, 0.0]
    );
    assert_eq!(
        line_with(&text, "V-1:   File"),
        "V-1:   File creation     :          4.000 sec,        100.000 ops/sec"
    );
    assert_eq!(text.matches("V-1:   File").count(), 1);
    let (block, _) = text.split_once("\nSUMMARY").expect("a table");
    let (_, block) = block.split_once("Per process result ").expect("a block");
    assert_eq!(
        block,
        "(rate):\niteration: 0\nTest File creation 1.000000e+02,0.000000e+00\n"
    );
}

#[test]
fn a_stonewall_says_how_far_the_ranks_had_come() {
    let mut result = mdtest_run(2, 2, 1);
    let line = |result: &RunResult| {
        let text = render(result, &view());
        let (before, _) = text.split_once("\nSUMMARY").expect("a table");
        let wall = before.lines().find(|l| l.contains("stonewall"));
        wall.map(str::to_owned)
    };
    assert_eq!(line(&result), None);
    let created = result.phases.iter_mut().find(|p| p.name == "file-create");
    created.expect("a phase").stonewall = Some(Stonewall {
        deadline: Nanos(1_000_000_000),
        stopped: Nanos(1_250_000_000),
        items: 450,
        least: 200,
        most: 250,
    });
    let ranks = f64::from(result.world.ranks);
    let expect = format!(
        "Continue stonewall hit min: 200 max: 250 avg: {:.1} ",
        450.0 / ranks
    );
    assert_eq!(line(&result), Some(expect));
}

#[test]
fn files_that_were_made_but_not_written_are_not_created() {
    let result = collective(400, 40);
    let text = render(&result, &view());
    assert_eq!(numbers(&text, RATES, "File creation")[2], 90.0);
    assert!(line_with(&text, "rbench: ").starts_with("rbench: File write: 40 x ENOSPC"));
    let csv = rank_details_csv(&result);
    let errors: Vec<&str> = csv.lines().filter_map(|l| l.rsplit(',').next()).collect();
    assert_eq!(errors, ["errors", "40", "0", "40"]);
}

#[test]
fn the_csv_has_the_columns_of_mdtest_and_then_ours() {
    let csv = rank_details_csv(&mdtest_run(2, 1, 2));
    let lines: Vec<Vec<&str>> = csv.lines().map(|l| l.split(',').collect()).collect();
    assert_eq!(
        lines[0].join(","),
        "rank,items,rate-Directory creation,time-Directory creation,rate-Directory stat,\
         time-Directory stat,rate-Directory read,time-Directory read,rate-Directory rename,\
         time-Directory rename,rate-Directory removal,time-Directory removal,rate-File creation,\
         time-File creation,rate-File stat,time-File stat,rate-File read,time-File read,\
         rate-File removal,time-File removal,rate-Tree creation,time-Tree creation,\
         rate-Tree removal,time-Tree removal,iteration,host,errors"
    );
    assert!(lines.iter().all(|l| l.len() == lines[0].len()), "{csv}");
    let keys: Vec<(&str, &str, &str, &str)> = lines[1..]
        .iter()
        .map(|l| (l[0], l[1], l[24], l[25]))
        .collect();
    assert_eq!(
        keys,
        [
            ("all", "800", "0", ""),
            ("0", "400", "0", "client1"),
            ("1", "400", "0", "client2"),
            ("all", "800", "1", ""),
            ("0", "400", "1", "client1"),
            ("1", "400", "1", "client2"),
        ]
    );
    // Items equal rate times time.
    for line in &lines[1..] {
        let number = |i: usize| line[i].parse::<f64>().expect("a number");
        assert!((number(2) * number(3) - number(1)).abs() < 1e-5, "{line:?}");
        // Directories are not read.
        assert_eq!((line[6], line[7]), ("", ""));
    }
}

#[test]
fn a_run_that_ended_between_two_phases_says_so() {
    let mut result = rated(&[("tree-create", 0, 10.0)]);
    result.complete = false;
    result.run.finished = None;
    let text = render(&result, &view());
    assert!(
        text.ends_with("0.000\n\nrbench: ended before all phases were done\n"),
        "{text}"
    );
    result.phases.clear();
    let text = render(&result, &view());
    assert!(text.contains("(of 0 iterations)"), "{text}");
}

#[test]
fn no_word_from_outside_breaks_a_line() {
    let mut result = mdtest_run(1, 1, 1);
    result.run.command.push("a\nb\u{1b}[1m".to_owned());
    for phase in &mut result.phases {
        phase.ranks[0].host = "h\n".to_owned();
    }
    let view = View {
        all_ranks: true,
        paths: vec!["/mnt\r".to_owned()],
        ..view()
    };
    let text = render(&result, &view);
    assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{text}");
    assert!(line_with(&text, "Command").ends_with(r"'a\nb\u{1b}[1m'"));
}

#[test]
fn every_phase_of_the_table_has_a_row_of_its_own() {
    let result = mdtest_run(1, 1, 1);
    let text = render(&result, &view());
    let shown = |phase: &&PhaseResult| numbers(&text, RATES, &phase.label)[0] > 0.0;
    assert_eq!(result.phases.iter().filter(shown).count(), 10);
}

#[test]
fn the_shift_and_the_random_seed_stand_where_mdtest_has_them() {
    let result = mdtest_run(2, 4, 1);
    let head = |view: &View| -> Vec<String> {
        let text = render(&result, view);
        let behind = text.lines().skip_while(|line| !line.starts_with("Path"));
        let head = behind.skip(1).take_while(|line| !line.contains(" tasks, "));
        head.filter(|line| !line.starts_with("FS "))
            .map(str::to_owned)
            .collect()
    };
    assert!(head(&view()).is_empty());
    let both = View {
        shift: 4,
        seed: Some(7),
        ..view()
    };
    let lines = head(&both);
    let [shift, seed] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(shift.starts_with("V-0: Rank   0 Line "), "{shift}");
    assert!(
        shift.ends_with(" Shifting ranks by 4 for each phase."),
        "{shift}"
    );
    assert_eq!(seed, "random seed: 7");
}
