//! See `rbench_fuzz::seals`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rbench_fuzz::seals(input));
