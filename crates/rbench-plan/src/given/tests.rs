use crate::jobs::Distribution;

use super::*;

fn given(text: &str) -> Given<'_> {
    Given::alone(text)
}

#[test]
fn sizes_without_ib_are_binary_and_with_ib_decimal() {
    let check = |text: &str, expect: u64| assert_eq!(given(text).number(), Ok(expect), "{text}");
    check("0", 0);
    check("65536", 65_536);
    check("65536b", 65_536);
    check("1k", 1024);
    check("1K", 1024);
    check("1kb", 1024);
    // Read like in fio 3.33: an i without its b changes nothing.
    check("1ki", 1024);
    check("1KiB", 1000);
    check("2m", 2 << 20);
    check("2mi", 2 << 20);
    check("2mib", 2_000_000);
    check("3g", 3 << 30);
    check("3GiB", 3_000_000_000);
    check("1t", 1 << 40);
    check("1p", 1 << 50);
    check("0x10000", 65_536);
    check("0x10k", 16_384);
    check(" 64k ", 65_536);
}

#[test]
fn with_kb_base_1000_it_is_the_other_way_round() {
    let check = |text: &str, expect: u64| {
        let decimal = Given {
            base: Base::Decimal,
            ..given(text)
        };
        assert_eq!(decimal.number(), Ok(expect), "{text}");
    };
    check("1k", 1000);
    check("1ki", 1000);
    check("1kib", 1024);
    check("1MB", 1_000_000);
    check("1MiB", 1 << 20);
}

#[test]
fn numbers_that_would_be_read_in_part_are_refused() {
    let words = "k 1q 1.5m 1kx -1 1ib 1i max 0x 0xg 17000000t 99999999999999999999";
    for text in words.split(' ').chain(["", "1 k"]) {
        assert!(given(text).number().is_err(), "{text}");
    }
}

#[test]
fn expressions_stand_for_numbers_and_times() {
    let check = |text: &str, expect: u64| assert_eq!(given(text).number(), Ok(expect), "{text}");
    check("4k*2", 8192);
    check("128*1", 128);
    check("(1m+64k)/2", (1 << 19) + (1 << 15));
    check("(8k-4k)", 4096);
    for text in ["4k-1k", "4k+1k", "1q*2", "(1", "2*", "1/0", "(1-2)"] {
        assert!(given(text).number().is_err(), "{text}");
    }
    let time = |text: &str| given(text).time(Nanos::SECOND);
    assert_eq!(time("100*1"), Ok(Nanos(100_000_000_000)));
    assert_eq!(time("(1/2)"), Ok(Nanos(500_000_000)));
    assert_eq!(time("(1m+30s)"), Ok(Nanos(90_000_000_000)));
    assert!(time("2*x").is_err());
    assert_eq!(given("(4k-1k)-8k*2").range(), Ok((3072, 16_384)));
    assert_eq!(given("4*2").integer::<i32>(-20, 19), Ok(8));
    // The native commands have none.
    let native = Given {
        base: Base::Native,
        ..given("4k*2")
    };
    assert!(native.number().is_err());
}

#[test]
fn times_have_the_unit_of_their_option_or_their_own() {
    let check = |text: &str, unit: Nanos, expect: u64| {
        assert_eq!(given(text).time(unit), Ok(Nanos(expect)), "{text}");
    };
    check("5", Nanos::SECOND, 5_000_000_000);
    check("5", Nanos::MICROSECOND, 5_000);
    check("5s", Nanos::MICROSECOND, 5_000_000_000);
    check("0.5", Nanos::SECOND, 500_000_000);
    check("100ms", Nanos::SECOND, 100_000_000);
    check("300msec", Nanos::SECOND, 300_000_000);
    check("7us", Nanos::SECOND, 7_000);
    check("7usec", Nanos::SECOND, 7_000);
    check("2m", Nanos::SECOND, 120_000_000_000);
    check("1H", Nanos::SECOND, 3_600_000_000_000);
    check("1d", Nanos::SECOND, 86_400_000_000_000);
    for text in "1q 1sec2 -1 1:0 soon 99999999999d 1e9d ."
        .split(' ')
        .chain([""])
    {
        assert!(given(text).time(Nanos::SECOND).is_err(), "{text}");
    }
}

#[test]
fn values_of_reads_writes_and_trims_are_told_apart_by_commas() {
    let check = |text: &str, [read, write, trim]: [Option<u64>; 3]| {
        let each = given(text).each(|g| g.count(1));
        assert_eq!(each, Ok(Each { read, write, trim }), "{text}");
    };
    let k = |n: u64| Some(n * 1024);
    check("4k", [k(4), k(4), k(4)]);
    // Like in fio's manual: a value without a comma after it holds for the rest.
    check("4k,8k", [k(4), k(8), k(8)]);
    check("4k,8k,", [k(4), k(8), None]);
    check(",8k", [None, k(8), k(8)]);
    check(",8k,", [None, k(8), None]);
    check("8k,", [k(8), None, None]);
    check("4k,8k,16k", [k(4), k(8), k(16)]);
    check("4k,,16k", [k(4), None, k(16)]);
    check(",,16k", [None, None, k(16)]);
    for text in ["", ",", ",,", "1,2,3,4", "x,1", "1,1,x"] {
        assert!(given(text).each(|g| g.count::<u64>(1)).is_err(), "{text}");
    }
}

#[test]
fn patterns_are_the_bytes_that_fio_writes() {
    // Content of a file that fio 3.33 wrote with buffer_pattern=….
    let check = |text: &str, expect: &[u8]| {
        assert_eq!(given(text).pattern().as_deref(), Ok(expect), "{text}");
    };
    check("0xdeadface", &[0xde, 0xad, 0xfa, 0xce]);
    check("\"ab\"-12", &[0x61, 0x62, 0xf4, 0xff, 0xff, 0xff]);
    check("0xf", &[0x0f]);
    check("-1", &[0xff; 4]);
    check("512", &[0, 2]);
    check("0x1ff", &[1, 0xff]);
    check("1000000", &[0x40, 0x42, 0x0f]);
    check("255", &[0xff]);
    check("0x0102030405", &[1, 2, 3, 4, 5]);
    check("0xff\"x\"", &[0xff, 0x78]);
    check("0xff0xee", &[0xff, 0xee]);
    check("\"a\"5\"b\"", &[0x61, 5, 0x62]);
    check("1 2", &[1, 2]);
    check("0", &[0]);
    for text in [
        "",
        "\"\"",
        "abc",
        "0x",
        "\"a\\\"b\"",
        "4294967296",
        "99999999999999999999",
        "-2147483649",
        "'f'",
        "%o",
        "-",
        "\"a",
    ] {
        assert!(given(text).pattern().is_err(), "{text}");
    }
    let long = format!("0x{}", "ab".repeat((128 << 10) + 1));
    assert!(given(&long).pattern().is_err());
}

#[test]
fn distributions_carry_their_numbers() {
    let check = |text: &str, expect| assert_eq!(given(text).distribution(), Ok(expect), "{text}");
    check("random", Distribution::Uniform);
    check("zipf", Distribution::Zipf(1.1));
    check("zipf:0.9", Distribution::Zipf(0.9));
    check("pareto", Distribution::Pareto(0.2));
    check("pareto:0.5", Distribution::Pareto(0.5));
    check("normal:25", Distribution::Normal(25.0));
    check("normal", Distribution::Normal(100.0 / 12.0));
    check("normal:0", Distribution::Normal(100.0 / 12.0));
    let centred = |of, at| Distribution::Centred(Box::new(of), at);
    each! { check:
        "zipf:1.2:0.25" => centred(Distribution::Zipf(1.2), 0.25);
        "normal:25:1" => centred(Distribution::Normal(25.0), 1.0);
        "zoned_abs:60/4k:40/1m" => Distribution::ZonedBytes([(60.0, 4096), (40.0, 1 << 20)].into());
        "sequence:2,0,1" => Distribution::Sequence([2, 0, 1].into());
        "zoned:60/10:30/20:8/30:2/40" =>
            Distribution::Zoned(vec![(60.0, 10.0), (30.0, 20.0), (8.0, 30.0), (2.0, 40.0)]);
        "zoned:50/50:50/" => Distribution::Zoned(vec![(50.0, 50.0), (50.0, 50.0)]);
    }
    let words = "zipf:1 zipf:0 zipf:-1 zipf:1.1:2 zipf:1.1:x zipf:inf zoned_abs:50/1m zoned_abs:50:50 sequence \
                 sequence:1,,2 random:0:0.5 random:1 pareto:2 normal:100 normal:150 normal:-1 zoned zoned:60/10 \
                 zoned:60/60:40/60 gauss:1";
    for text in words.split(' ').chain([""]) {
        assert!(given(text).distribution().is_err(), "{text}");
    }
}

#[test]
fn names_end_at_colons_but_not_at_escaped_ones() {
    assert_eq!(given("a:b").names(), ["a", "b"]);
    assert_eq!(given("a\\:b:c").names(), ["a:b", "c"]);
    assert_eq!(given("a\\b").names(), ["a\\b"]);
    assert_eq!(given("").names(), [""]);
}

#[test]
fn criteria_have_a_kind_and_a_limit() {
    let check = |text: &str, bandwidth, slope, limit, percent| {
        let expect = Criterion {
            bandwidth,
            slope,
            limit,
            percent,
        };
        assert_eq!(given(text).criterion(), Ok(expect), "{text}");
    };
    check("iops:10%", false, false, 10.0, true);
    check("iops_slope:0.3%", false, true, 0.3, true);
    check("bw:1m", true, false, 1_048_576.0, false);
    check("bw_slope:5", true, true, 5.0, false);
    for text in ["iops", "foo:1", "iops:", "iops:x%", "bw:inf"] {
        assert!(given(text).criterion().is_err(), "{text}");
    }
}
