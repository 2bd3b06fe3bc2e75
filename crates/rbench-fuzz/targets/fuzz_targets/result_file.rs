//! See `rbench_fuzz::result_file`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rbench_fuzz::result_file(input));
