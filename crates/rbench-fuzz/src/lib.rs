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

/// Targets as rows: the property, whose name the file of seeds has, the form of the seeds, and the
/// words.
macro_rules! targets {
    ($($name:ident: $form:ident, $dictionary:expr;)*) => {
        &[$(Target {
            name: stringify!($name),
            property: $name,
            form: Form::$form,
            seeds: include_str!(concat!("../seeds/", stringify!($name), ".txt")),
            dictionary: $dictionary,
        }),*]
    };
}

/// All targets.
pub const TARGETS: &[Target] = targets! {
    fio_line: Lines, include_str!("../dictionaries/fio_line.dict");
    job_file: Sections, include_str!("../dictionaries/job_file.dict");
    mdtest_line: Lines, include_str!("../dictionaries/mdtest_line.dict");
    quantities: Lines, include_str!("../dictionaries/quantities.dict");
    result_file: Sections, include_str!("../dictionaries/result_file.dict");
    seals: Lines, "";
};
