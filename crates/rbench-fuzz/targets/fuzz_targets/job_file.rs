//! See `rbench_fuzz::job_file`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rbench_fuzz::job_file(input));
