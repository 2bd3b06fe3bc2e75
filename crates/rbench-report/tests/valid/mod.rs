//! Holds the files that tests make against their JSON Schemas, here without room for fields
//! that the schemas do not have. The tests of the program use it as well.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use jsonschema::Validator;
use rbench_report::json_schema::FILE_SCHEMAS;
use serde_json::Value;

/// What is wrong with a file, in sentences; nothing, if it is what its schema says.
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

/// Fails unless a file is what its schema says.
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

/// Takes the room for further fields from each object that has fields of its own.
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
