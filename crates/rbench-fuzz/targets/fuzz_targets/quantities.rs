//! See `rbench_fuzz::quantities`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rbench_fuzz::quantities(input));
