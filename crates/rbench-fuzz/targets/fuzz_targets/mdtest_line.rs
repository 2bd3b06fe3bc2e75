//! See `rbench_fuzz::mdtest_line`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rbench_fuzz::mdtest_line(input));
