//! The JSON Schemas of rbench's files and of its printed data, generated from the written types.
//! `docs/schema` has them as files.

use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::Value;

use crate::compare::{COMPARE_SCHEMA, ComparisonResult};
use crate::json::pretty;
use crate::schema::{
    CHECK_SCHEMA, CheckResult, LIVE_SCHEMA, LiveResult, PROBE_SCHEMA, ProbeResult, RunResult,
    SCHEMA, SERIES_SCHEMA, SeriesResult,
};

/// The schema of one kind of file.
#[derive(Debug, Clone, Copy)]
pub struct FileSchema {
    /// Start of the field `schema` in such files: `rbench.result/1`.
    pub name: &'static str,
    make: fn(SchemaGenerator) -> Schema,
}

/// The schemas of all kinds of files.
pub const FILE_SCHEMAS: &[FileSchema] = &[
    file::<RunResult>(SCHEMA),
    file::<SeriesResult>(SERIES_SCHEMA),
    file::<ComparisonResult>(COMPARE_SCHEMA),
    file::<ProbeResult>(PROBE_SCHEMA),
    file::<LiveResult>(LIVE_SCHEMA),
    file::<CheckResult>(CHECK_SCHEMA),
];

const fn file<T: JsonSchema>(name: &'static str) -> FileSchema {
    FileSchema {
        name,
        make: SchemaGenerator::into_root_schema_for::<T>,
    }
}

impl FileSchema {
    /// The name of its file: `rbench.result-1.json`.
    pub fn file_name(&self) -> String {
        format!("{}.json", self.name.replace('/', "-"))
    }

    /// The content of its file.
    pub fn render(&self) -> String {
        pretty(&self.schema())
    }

    /// The schema, in draft 2020-12. It requires every field that this version always writes, and
    /// allows further fields, which other versions may add.
    pub fn schema(&self) -> Value {
        let settings = SchemaSettings::draft2020_12().for_serialize();
        let mut schema = Value::from((self.make)(settings.into_generator()));
        schema["$id"] = Value::from(format!("urn:rbench:{}", self.name));
        schema["title"] = Value::from(self.name);
        tidy(&mut schema);
        schema
    }
}

/// Rewrites descriptions, which are Rust comments, in terms of JSON.
fn tidy(value: &mut Value) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = words(text);
            }
            map.values_mut().for_each(tidy);
        }
        Value::Array(list) => list.iter_mut().for_each(tidy),
        _ => {}
    }
}

fn words(comment: &str) -> String {
    let paragraphs = comment.split("\n\n").map(|text| text.replace('\n', " "));
    let text = paragraphs.collect::<Vec<String>>().join("\n\n");
    text.replace("`None`", "`null`")
        .replace("[`", "`")
        .replace("`]", "`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_become_words_of_json() {
        let comment = "As [`A::b`], of\nthese; `None`: nobody\nknows.\n\nSee `x`.";
        let expect = "As `A::b`, of these; `null`: nobody knows.\n\nSee `x`.";
        assert_eq!(words(comment), expect);
    }

    #[test]
    fn a_file_is_named_after_its_schema() {
        let names: Vec<String> = FILE_SCHEMAS.iter().map(FileSchema::file_name).collect();
        assert_eq!(
            names,
            [
                "rbench.result-1.json",
                "rbench.series-1.json",
                "rbench.compare-1.json",
                "rbench.probe-1.json",
                "rbench.live-1.json",
                "rbench.check-1.json"
            ]
        );
    }
}
