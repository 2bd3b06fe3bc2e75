use ratatui::Terminal;
use ratatui::backend::TestBackend;
use rbench_report::schema::LIVE_SCHEMA;

use super::*;

fn figures(rate: f64) -> LiveFigures {
    LiveFigures {
        items: 10,
        errors: 0,
        rate,
        bandwidth: rate * 4096.0,
        p50_ns: 1_230_000,
        p99_ns: 45_600_000,
        p999_ns: 789_000_000,
        max_ns: 999_000_000,
    }
}

fn row(label: &str) -> LiveRow {
    LiveRow {
        name: "read".to_owned(),
        label: label.to_owned(),
        response: false,
        last: figures(12_345.0),
        all: figures(1_234_567.0),
        longest_gap_s: Some(3.2),
        rates: vec![0.0, 100.0, 50.0],
        p99s_ns: vec![0, 5, 10],
    }
}

fn known(rows: usize, hosts: usize, finished: usize) -> LiveResult {
    LiveResult {
        schema: LIVE_SCHEMA.to_owned(),
        run: "20261124-050000-abcd".to_owned(),
        command: ["/usr/bin/rbench", "io", "--dir", "/mnt/fs"]
            .map(str::to_owned)
            .to_vec(),
        target: "/mnt/fs".to_owned(),
        fs_type: Some("fuse.rbench".to_owned()),
        ranks: 12,
        hosts_total: hosts as u64,
        state: LiveState::Running,
        label: "Random read".to_owned(),
        phase: true,
        progress: Some(LiveProgress {
            elapsed_s: 25.0,
            left_s: Some(75.0),
            items: 1000,
            total: None,
            failed: 3,
            bytes: 4_096_000,
            rate: 40.0,
            bandwidth: 163_840.0,
            backlog: Some(17),
        }),
        interval_s: 1.0,
        rows: (0..rows)
            .map(|n| row(&format!("Random read {n}")))
            .collect(),
        hosts: (0..hosts)
            .map(|n| LiveHost {
                host: format!("client{n}"),
                last: figures(10.0),
                all: figures(20.0),
                silent_s: n as f64,
                tool_cpus: Some(0.5),
                client_cpus: None,
            })
            .collect(),
        finished: (0..finished)
            .map(|n| LiveFinished {
                name: format!("phase{n}"),
                label: format!("Phase {n}"),
                complete: true,
                all: figures(5.0),
                cache: Some("memory".to_owned()),
                ..LiveFinished::default()
            })
            .collect(),
        tool_cpus: Some(0.5),
        client_cpus: Some(1.25),
        ..LiveResult::default()
    }
}

/// The lines of a screen of this size.
fn screen(known: &LiveResult, (width, height): (u16, u16), question: Question) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let drawn = terminal.draw(|frame| draw(frame, known, question));
    drawn.expect("no trouble");
    let buffer = terminal.backend().buffer();
    let cells: Vec<&str> = buffer.content.iter().map(|cell| cell.symbol()).collect();
    let line = |cells: &[&str]| cells.concat().trim_end().to_owned();
    cells.chunks(usize::from(width)).map(line).collect()
}

#[test]
fn all_parts_have_their_place_on_a_small_screen_and_on_a_large_one() {
    for size in [(80, 24), (160, 50), (100, 30)] {
        let lines = screen(&known(2, 3, 4), size, Question::None);
        let text = lines.join("\n");
        for part in [
            "rbench io --dir /mnt/fs",
            "12 ranks on 3 hosts, CPUs: rbench 0.50, client 1.25, /mnt/fs (fuse.rbench)",
            "Random read 25 %, 25 s elapsed, 1:15 left",
            "1,000 done, 3 failed, 40.0/s, 160 KiB/s, backlog 17",
            " 1,234,567 ",
            "operation",
            "12,345 1.23 ms 45.6 ms  789 ms  999 ms",
            "3.20 s",
            "rate, max 100/s",
            "client0",
            "Phase 3",
        ] {
            assert!(text.contains(part), "{size:?}: {part} is not in\n{text}");
        }
        let last = lines.last().map(String::as_str);
        assert_eq!(last, Some("q leave   s stop the run"));
    }
}

#[test]
fn verdicts_on_caches_have_the_words_of_reports() {
    let text = screen(&known(1, 1, 1), (160, 50), Question::None).join("\n");
    assert!(text.contains(" warm") && !text.contains("memory"), "{text}");
}

#[test]
fn what_has_no_room_is_left_out_and_nothing_panics() {
    for height in 1..60 {
        for width in [1, 10, 79, 155, 156, 300] {
            let lines = screen(&known(9, 70, 70), (width, height), Question::Stop);
            assert_eq!(lines.len(), usize::from(height));
        }
    }
    screen(&known(0, 0, 0), (80, 24), Question::Silent(7));
}

#[test]
fn what_is_wrong_comes_first_and_what_is_asked_in_place_of_the_keys() {
    let mut known = known(1, 1, 1);
    known.first_error = Some("the first failed operation: rank 3 on b: read x: EIO".to_owned());
    known.notes = ["one", "two", "three"].map(str::to_owned).to_vec();
    let lines = screen(&known, (80, 24), Question::Stop);
    let first = "the first failed operation: rank 3 on b: read x: EIO";
    assert_eq!(lines[4], first);
    assert_eq!(lines[5..7], ["two", "three"]);
    assert!(lines[23].contains("stop the run?"));
    known.state = LiveState::Stopping;
    let lines = screen(&known, (80, 24), Question::None);
    assert_eq!(lines[23], "q leave   the run stops");
}

#[test]
fn nothing_in_a_name_steers_the_terminal() {
    let mut known = known(1, 1, 1);
    let name = "a\u{1b}[2J\u{7}\u{9b}x\u{202e}\n\tb";
    let named = || name.to_owned();
    (known.target, known.label, known.fs_type) = (named(), named(), Some(named()));
    known.command = vec![named()];
    known.rows[0].label = named();
    known.hosts[0].host = named();
    known.finished[0].label = named();
    known.finished[0].cache = Some(named());
    (known.first_error, known.notes) = (Some(named()), vec![named()]);
    for size in [(80, 24), (160, 50)] {
        let text = screen(&known, size, Question::None).join("\n");
        let shown = "a\\u{1b}[2J\\u{7}\\u{9b}x\\u{202e}\\n\\tb";
        assert!(text.contains(shown), "{text}");
        let steers = |c: char| c.is_control() && c != '\n' || turns(c);
        assert!(!text.contains(steers), "{text}");
    }
}
