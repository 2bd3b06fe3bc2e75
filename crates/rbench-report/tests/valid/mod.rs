//! Validates files against their JSON Schemas, without allowing additional fields. Also used by the
//! tests of the program.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use rbench_report::json_schema::FILE_SCHEMAS;
use serde_json::Value;

/// Validation errors of a file, as sentences.
pub fn wrong(file: &Value) -> Vec<String> {
    static VALIDATORS: OnceLock<BTreeMap<&str, Validator>> = OnceLock::new();
    let validators = VALIDATORS.get_or_init(|| {
        let each = FILE_SCHEMAS.iter().map(|one| {
            let mut schema = one.schema();
            close(&mut schema);
            let validator = jsonschema::validator_for(&schema);
            (one.name, validator.expect("a schema of the draft"))
        });
        each.collect()
    });
    let name = file["schema"].as_str().unwrap_or_default();
    let Some(validator) = validators.get(name) else {
        return vec![format!("there is no schema '{name}'")];
    };
    let errors = validator.iter_errors(file);
    errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// Fails unless a file matches its schema.
#[track_caller]
pub fn check(text: &str) {
    let file = serde_json::from_str(text).expect("JSON");
    let wrong = wrong(&file);
    assert!(
        wrong.is_empty(),
        "the file is not what its schema says:\n{}",
        wrong.join("\n")
    );
}

/// Forbids additional fields in each object with fields of its own.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("properties").is_some_and(Value::is_object) && map.contains_key("type") {
                map.entry("additionalProperties")
                    .or_insert(Value::Bool(false));
            }
            map.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}
