use proptest::prelude::*;

use super::*;
use crate::testing::check_error;

fn at_once() -> Replay {
    Replay {
        stalls: false,
        ..Replay::WHOLE
    }
}

/// The operations: start (µs), action, range.
fn follow(replay: &Replay, version: Version, text: &str) -> Vec<(Option<u64>, String)> {
    let mut follower = Follower::new(replay, version);
    let mut all = Vec::new();
    for line in text.lines() {
        if let Some(entry) = follower.line(line.trim()).expect("a sound line") {
            let (file, word) = (entry.file, entry.action.word());
            let text = match entry.action.is_of_file() {
                true => format!("{file} {word}"),
                false => format!("{file} {word} {} {}", entry.offset, entry.length),
            };
            all.push((entry.at().map(|at| at.0 / 1000), text));
        }
    }
    all
}

fn check_wrong(version: Version, text: &str, why: &str) {
    let replay = Replay::WHOLE;
    let mut follower = Follower::new(&replay, version);
    let mut lines = text.lines().map(|line| follower.line(line));
    let message = lines.find_map(Result::err).expect("a line is wrong");
    assert!(message.contains(why), "{text}: {message}");
}

#[test]
fn with_a_directory_no_name_leads_out_of_it() {
    let below = |below: &str| Replay {
        below: below.into(),
        ..Replay::WHOLE
    };
    let line = |replay: &Replay, text: &str| {
        let result = Follower::new(replay, Version::Two).line(text);
        result.map(|_| ()).err()
    };
    let out = "'../a' is outside of the directory b".to_owned();
    assert_eq!(line(&below("b"), "../a add"), Some(out));
    assert_eq!(line(&below("b"), "/x/../../a add").map(|_| ()), Some(()));
    assert_eq!(line(&below("b"), "/x/../a add"), None);
    assert_eq!(line(&below(""), "../a add"), None);
}

const THREE: &str =
    "7 a add\n7 a open\n1007 a read 8192 4096\n500 a write 0 512\n4007 a sync 0 0\n5007 a close";

#[test]
fn stamps_count_from_that_of_the_first_line_and_never_go_back() {
    let done = follow(&Replay::WHOLE, Version::Three, THREE);
    let expect = [
        (0, "0 open"),
        (1000, "0 read 8192 4096"),
        (1000, "0 write 0 512"),
        (4000, "0 sync 0 0"),
        (5000, "0 close"),
    ];
    assert_eq!(done, expect.map(|(at, text)| (Some(at), text.to_owned())));
}

#[test]
fn speed_is_per_cent_of_the_recorded_one_and_may_be_unlimited() {
    let times = |replay: &Replay| -> Vec<Option<u64>> {
        let done = follow(replay, Version::Three, THREE);
        done.into_iter().map(|(at, _)| at).collect()
    };
    let at = |speed| Replay {
        speed,
        ..Replay::WHOLE
    };
    let some = |all: [u64; 5]| all.map(Some).to_vec();
    assert_eq!(times(&at(50)), some([0, 2000, 2000, 8000, 10_000]));
    assert_eq!(times(&at(200)), some([0, 500, 500, 2000, 2500]));
    assert_eq!(times(&at_once()), vec![None; 5]);
}

#[test]
fn a_wait_of_version_2_holds_up_what_follows_it() {
    let text = "a add\na open\na read 0 512\na wait 20 0\na read 512 512\na read 1024 512\na wait 10 0\na close";
    let done = follow(&Replay::WHOLE, Version::Two, text);
    let times: Vec<_> = done.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, [None, None, Some(20_000), None, Some(20_000)]);
    let done = follow(&at_once(), Version::Two, text);
    assert!(done.iter().all(|(at, _)| at.is_none()), "{done:?}");
}

#[test]
fn offsets_are_divided_and_then_rounded_down() {
    let scaled = Replay {
        scale: 3,
        align: 4096,
        ..Replay::WHOLE
    };
    let done = follow(&scaled, Version::Two, "a add\na open\na read 30000 100");
    assert_eq!(done[1].1, "0 read 8192 100");
}

#[test]
fn what_is_skipped_is_left_out_and_all_names_may_lead_to_one_file() {
    let text = "a add\nb add\na open\nb open\na read 0 1\nb write 1 1\na trim 2 1\nb sync 0 0\nb datasync 0 0\na close\n\
                b read 3 1\nb close";
    let skip = Skip {
        read: false,
        write: true,
        trim: true,
        sync: true,
    };
    let some = Replay {
        skip,
        redirect: Some("c".to_owned()),
        ..Replay::WHOLE
    };
    let done = follow(&some, Version::Two, text);
    let done: Vec<_> = done.into_iter().map(|(_, text)| text).collect();
    let expected = "0 open, 0 read 0 1, 0 datasync 0 0, 0 read 3 1, 0 close";
    assert_eq!(done.join(", "), expected);
}

#[test]
fn what_is_malformed_is_told() {
    use Version::{Three, Two};
    each! { check_wrong:
        Two => "a" => "the action is missing";
        Two => "a look" => "'look' is not an action (expected one of add, open";
        Two => "a add\na open\na read 0" => "the length is missing";
        Two => "a add\na open\na read x 1" => "'x' is not a valid offset";
        Two => "a add\na open\na read +1 1" => "'+1' is not a valid offset";
        Two => "a add\na open\na read 0 1 2" => "unexpected '2' at end of line";
        Two => "a add\na open\na read 0 4294967296" => "is too large";
        Two => "a add\na open\na read 9223372036854775807 1" => "exceeds the largest file size";
        Two => "a open" => "'a' was not added earlier";
        Two => "a add\na read 0 1" => "'a' is not open at that point";
        Two => "a add\na open\na close\na read 0 1" => "'a' is not open at that point";
        Two => "fio version 2 iolog" => "another log starts there";
        Three => "a add" => "'a' is not a valid time";
        Three => "1 a wait 1 1" => "'wait' is not an action of version 3";
    }
}

#[test]
fn the_first_line_tells_the_version_and_blktrace_is_recognised() {
    assert_eq!(Version::of(b"fio version 2 iolog\n"), Ok(Version::Two));
    assert_eq!(Version::of(b"fio version 3 iolog"), Ok(Version::Three));
    for magic in [0x6561_7407_u32.to_le_bytes(), 0x6561_7407_u32.to_be_bytes()] {
        check_error(Version::of(&[&magic[..], &[0; 44]].concat()), "blktrace");
    }
    check_error(Version::of(b"read,4096"), "not an I/O log");
}

#[test]
fn a_line_that_was_written_is_read_as_it_was() {
    let mut log = Vec::new();
    put_file(&mut log, Nanos(1_999), "d/a", Action::Open);
    put_place(&mut log, Nanos(5_000), "d/a", Action::Trim, (1 << 40, 77));
    let text = String::from_utf8(log).expect("text");
    let read = |line| Line::read(Version::Three, line).expect("sound");
    let lines: Vec<Line<'_>> = text.lines().map(read).collect();
    assert_eq!((lines[0].stamp, lines[0].action), (Some(1), Action::Open));
    let expect = Line {
        stamp: Some(5),
        file: "d/a",
        action: Action::Trim,
        offset: 1 << 40,
        length: 77,
    };
    assert_eq!(lines[1], expect);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]
    #[test]
    fn whatever_a_log_holds_is_read_or_told(
        junk in prop::collection::vec("[a-c0-9+x ]{0,12}|a (read|write) 18446744073709551615 1", 0..20),
        places in prop::collection::vec((0_u64..5_000_000, 0_u64..1 << 50, 0_u32..9000), 0..40),
        three: bool, speed in 1_u32..300, shift in 0_u32..40, scale in 1_u64..9,
    ) {
        let replay = Replay { speed, scale, align: 1 << shift, ..Replay::WHOLE };
        let version = if three { Version::Three } else { Version::Two };
        let stamp = |at: u64| if three { format!("{at} ") } else { String::new() };
        let begin = ["a add", "a open"].map(|line| format!("{}{line}", stamp(0)));
        let reads = places.iter().map(|(at, offset, length)| {
            format!("{}a read {offset} {length}", stamp(*at))
        });
        let lines: Vec<String> = begin.into_iter().chain(reads).collect();
        let mut follower = Follower::new(&replay, version);
        let (mut last, mut given) = (Nanos(0), 0);
        for (line, junk) in lines.iter().zip(junk.iter().map(Some).chain(std::iter::repeat(None))) {
            if let Some(junk) = junk {
                let _ = follower.line(junk);
            }
            let Some(entry) = follower.line(line).expect("a sound line") else {
                continue;
            };
            given += 1;
            prop_assert!((entry.file as usize) < follower.names().len());
            prop_assert_eq!(entry.offset % (1 << shift), 0);
            prop_assert!(entry.at().is_none_or(|at| at >= last), "times go back");
            last = entry.at().unwrap_or(last);
        }
        prop_assert_eq!(given, places.len() + 1);
    }
}
