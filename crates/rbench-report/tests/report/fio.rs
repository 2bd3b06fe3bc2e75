//! Tests the outputs of `rbench fio`.

mod bounds;
mod reading;
mod truth;
