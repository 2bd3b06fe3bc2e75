//! Tests that the published JSON Schemas match the types, and reject invalid results.

use std::path::Path;

use rbench_report::compare::COMPARE_SCHEMA;
use rbench_report::json;
use rbench_report::json_schema::FILE_SCHEMAS;
use rbench_report::schema::{
    CHECK_SCHEMA, LIVE_SCHEMA, PROBE_SCHEMA, SCHEMA, SERIES_SCHEMA, TIMELINE_ROWS,
};
use serde_json::{Value, json};

use crate::fixtures::{meta_phases, meta_spec, run};
use crate::{golden, valid};

/// Compares the published schema of this name with the types.
fn check_published(name: &str) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let schema = FILE_SCHEMAS.iter().find(|schema| schema.name == name);
    let schema = schema.expect("a schema with that name");
    golden::check_at(&docs.join(schema.file_name()), &schema.render());
}

#[test]
fn the_published_schema_of_results_is_that_of_their_types() {
    check_published(SCHEMA);
}

#[test]
fn the_published_schema_of_series_is_that_of_their_types() {
    check_published(SERIES_SCHEMA);
}

#[test]
fn the_published_schema_of_comparisons_is_that_of_their_types() {
    check_published(COMPARE_SCHEMA);
}

#[test]
fn the_published_schema_of_probes_is_that_of_their_types() {
    check_published(PROBE_SCHEMA);
}

#[test]
fn the_published_schema_of_runs_that_go_on_is_that_of_their_types() {
    check_published(LIVE_SCHEMA);
}

#[test]
fn the_published_schema_of_checks_is_that_of_their_types() {
    check_published(CHECK_SCHEMA);
}

#[test]
fn what_is_no_result_does_not_pass() {
    let sound = json::render(&run(2, 2, meta_spec(), meta_phases(2, 2)));
    let check = |pointer: &str, change: &dyn Fn(&mut Value), expect: &str| {
        let mut file: Value = serde_json::from_str(&sound).expect("JSON");
        let place = file.pointer_mut(pointer).expect("a place in the file");
        change(place);
        let wrong = valid::wrong(&file);
        assert!(
            wrong.iter().any(|text| text.contains(expect)),
            "{pointer}: {wrong:?}"
        );
    };
    assert_eq!(
        valid::wrong(&serde_json::from_str(&sound).expect("JSON")),
        [""; 0]
    );
    let remove = |name: &'static str| {
        move |place: &mut Value| {
            place
                .as_object_mut()
                .expect("an object")
                .remove(name)
                .expect("a field");
        }
    };
    let set = |value: Value| move |place: &mut Value| *place = value.clone();
    let add = |place: &mut Value| place["surprise"] = json!(1);
    check("", &remove("world"), "\"world\" is a required property");
    check(
        "/phases/1",
        &remove("items"),
        "\"items\" is a required property",
    );
    check("/phases/1", &add, "'surprise' was unexpected");
    check(
        "/phases/1/latency/service",
        &add,
        "'surprise' was unexpected",
    );
    check(
        "/phases/1/rate",
        &set(json!(null)),
        "null is not of type \"number\"",
    );
    check(
        "/phases/1/items",
        &set(json!(-1)),
        "-1 is less than the minimum of 0",
    );
    check(
        "/phases/1/items",
        &set(json!(1.5)),
        "1.5 is not of type \"integer\"",
    );
    check(
        "/phases/1/complete",
        &set(json!("yes")),
        "\"yes\" is not of type",
    );
    check(
        "/world/hosts/0/name",
        &set(json!(3)),
        "3 is not of type \"string\"",
    );
    let rows = |place: &mut Value| {
        let row = place[0].clone();
        *place = Value::from(vec![row; TIMELINE_ROWS + 1]);
    };
    check("/phases/1/timeline", &rows, "items");
    check(
        "/schema",
        &set(json!("rbench.result/2")),
        "no schema 'rbench.result/2'",
    );
}
