//! See `rbench_fuzz::fio_line`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| rbench_fuzz::fio_line(input));
