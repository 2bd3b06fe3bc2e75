//! Properties of all inputs of rbench, from people and from files.
//!
//! Each fuzz target has a function that panics if a property does not hold. The fuzzer (`targets`)
//! and the tests (`tests`) call the same functions.

mod fio;
mod mdtest;
mod plans;
mod quantities;
mod refusal;
mod result_file;
mod seals;
mod seeds;

pub use fio::{fio_line, job_file};
pub use mdtest::mdtest_line;
pub use quantities::quantities;
pub use result_file::result_file;
pub use seals::seals;

use seeds::Form;

/// A check of an input; panics if the property does not hold.
pub type Property = fn(&[u8]);

/// A fuzz target.
#[derive(Debug)]
pub struct Target {
    /// Its name, also used for its files.
    pub name: &'static str,
    /// The property to check.
    pub property: Property,
    form: Form,
    seeds: &'static str,
    dictionary: &'static str,
}

impl Target {
    /// Its initial inputs, with their names.
    pub fn seeds(&self) -> Vec<(String, Vec<u8>)> {
        seeds::read(self.seeds, self.form)
    }

    /// Words that its inputs consist of.
    pub fn words(&self) -> Vec<Vec<u8>> {
        seeds::words(self.dictionary)
    }
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "fio_line",
        property: fio_line,
        form: Form::Lines,
        seeds: include_str!("../seeds/fio_line.txt"),
        dictionary: include_str!("../dictionaries/fio_line.dict"),
    },
    Target {
        name: "job_file",
        property: job_file,
        form: Form::Sections,
        seeds: include_str!("../seeds/job_file.txt"),
        dictionary: include_str!("../dictionaries/job_file.dict"),
    },
    Target {
        name: "mdtest_line",
        property: mdtest_line,
        form: Form::Lines,
        seeds: include_str!("../seeds/mdtest_line.txt"),
        dictionary: include_str!("../dictionaries/mdtest_line.dict"),
    },
    Target {
        name: "quantities",
        property: quantities,
        form: Form::Lines,
        seeds: include_str!("../seeds/quantities.txt"),
        dictionary: include_str!("../dictionaries/quantities.dict"),
    },
    Target {
        name: "result_file",
        property: result_file,
        form: Form::Sections,
        seeds: include_str!("../seeds/result_file.txt"),
        dictionary: include_str!("../dictionaries/result_file.dict"),
    },
    Target {
        name: "seals",
        property: seals,
        form: Form::Lines,
        seeds: include_str!("../seeds/seals.txt"),
        dictionary: "",
    },
];
