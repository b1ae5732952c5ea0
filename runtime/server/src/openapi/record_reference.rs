//! The reference of the modules' records, `records.md`, compared with the OpenAPI document.
//!
//! In: the routes of all modules. Out: a failure if the page differs; the new page is then written beside the old one.
//! Not here: errors and headers, which the reference of queries describes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Map, Value as Json};

use super::{AnonymousCallers, document};
use crate::app::ServedRoutes;
use crate::protocols::routes_with;

const PAGE: &str = include_str!("../../../docs/reference/records.md");
const INTRODUCTION: &str = "\
# Records of the modules
This page lists the routes of costs, profiles, anomalies and governance with the fields of their bodies and answers. A test writes it from the types of the server; a running server has the same facts in `/openapi.json`.

A field of a body is required if the column says so. A field of an answer that is not required may be absent. [Errors](query.md) have the same form on all routes.
";

/// The modules, as (tag of their routes, heading, guide).
const MODULES: [(&str, &str, &str); 4] = [
    ("optimization", "Costs", "[Know what queries cost](../how-to/cost.md) is a guide."),
    ("profiling", "Profiles", "[Profile data over HTTP](../how-to/profiling.md) is a guide."),
    (
        "anomaly",
        "Anomalies and monitors",
        "[Watch measures and metrics by monitors](../how-to/monitors.md) is a guide.",
    ),
    ("governance", "Governance", "[Govern metrics](../how-to/governance.md) is a guide."),
];

/// The path of schemas in references.
const SCHEMAS: &str = "#/components/schemas/";

#[test]
fn page_lists_the_records_of_all_modules() {
    let document = document(&routes_with(ServedRoutes::ALL), "1", AnonymousCallers::MayRead);
    let page = page(&document);
    if page != PAGE {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/reference/records.md.new");
        std::fs::write(&path, page).unwrap();
        panic!("the page differs from the types: review {} and move it over the page", path.display());
    }
}

#[test]
fn types_are_written_in_words() {
    let written = |json: &str| type_of(&serde_json::from_str(json).unwrap());
    assert_eq!(written(r##"{"$ref": "#/components/schemas/Alert"}"##), "[Alert](#alert)");
    assert_eq!(
        written(r##"{"anyOf": [{"$ref": "#/components/schemas/Alert"}, {"type": "null"}]}"##),
        "[Alert](#alert) or null"
    );
    assert_eq!(written(r#"{"type": ["string", "null"], "format": "date-time"}"#), "string (date-time) or null");
    assert_eq!(written(r#"{"type": "array", "items": {"type": "integer", "minimum": 0}}"#), "list of integer");
    assert_eq!(written(r#"{"enum": ["low", "high"], "type": "string"}"#), "`low`, `high`");
    assert_eq!(written(r#"{"type": "object", "additionalProperties": {"type": "number"}}"#), "object of number");
    assert_eq!(written("{}"), "any");
}

/// Writes the page.
fn page(document: &Json) -> String {
    let mut page = INTRODUCTION.to_owned();
    let mut listed = BTreeSet::new();
    for (tag, heading, guide) in MODULES {
        let _ = write!(page, "\n## {heading}\n{guide}\n\n| route | purpose | body | answer |\n|---|---|---|---|\n");
        let mut names = BTreeSet::new();
        for (route, operation) in operations(document, tag) {
            let body = bodies(&operation["requestBody"]);
            let answers = answers(operation);
            [&body, &answers].into_iter().flatten().for_each(|schema| collect(document, schema, &mut names));
            let shown = |schemas: &[&Json]| {
                let types: BTreeSet<String> = schemas.iter().map(|schema| type_of(schema)).collect();
                if types.is_empty() { "–".to_owned() } else { types.into_iter().collect::<Vec<_>>().join(", ") }
            };
            let summary = operation["summary"].as_str().unwrap();
            let _ = writeln!(page, "| `{route}` | {summary} | {} | {} |", shown(&body), shown(&answers));
        }
        assert!(!names.is_empty(), "module {tag} has no records");
        for name in names.into_iter().filter(|name| listed.insert(name.clone())) {
            write_record(&name, schema(document, &name), &mut page);
        }
    }
    page
}

/// Returns the operations with a tag, each with its method and path, ordered by path.
fn operations<'d>(document: &'d Json, tag: &str) -> BTreeMap<String, &'d Json> {
    let mut found = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            if operation["tags"][0] == tag {
                found.insert(format!("{} {path}", method.to_ascii_uppercase()), operation);
            }
        }
    }
    found
}

/// Returns the schemas of a body in JSON.
fn bodies(body: &Json) -> Vec<&Json> {
    body["content"]["application/json"].get("schema").into_iter().collect()
}

/// Returns the schemas of successful answers in JSON.
fn answers(operation: &Json) -> Vec<&Json> {
    let responses = operation["responses"].as_object().unwrap();
    responses.iter().filter(|(status, _)| status.starts_with('2')).flat_map(|(_, answer)| bodies(answer)).collect()
}

fn schema<'d>(document: &'d Json, name: &str) -> &'d Json {
    &document["components"]["schemas"][name]
}

/// Adds the names of all schemas to which a schema refers, at any depth.
fn collect(document: &Json, json: &Json, names: &mut BTreeSet<String>) {
    match json {
        Json::Object(fields) => {
            let target = fields.get("$ref").and_then(Json::as_str).and_then(|target| target.strip_prefix(SCHEMAS));
            if let Some(name) = target
                && names.insert(name.to_owned())
            {
                collect(document, schema(document, name), names);
            }
            fields.values().for_each(|value| collect(document, value, names));
        }
        Json::Array(items) => items.iter().for_each(|item| collect(document, item, names)),
        _ => {}
    }
}

fn write_record(name: &str, schema: &Json, page: &mut String) {
    let _ = write!(page, "\n### {name}\n");
    if let Some(description) = schema["description"].as_str() {
        let _ = writeln!(page, "{}", line(description));
    }
    let Some(fields) = schema["properties"].as_object() else {
        let _ = writeln!(page, "\n{}", type_of(schema));
        return;
    };
    page.push_str("\n| field | type | required | meaning |\n|---|---|---|---|\n");
    let required = schema["required"].as_array();
    for (field, schema) in fields {
        let is_required = required.is_some_and(|required| required.iter().any(|name| name == field));
        let required = if is_required { "yes" } else { "" };
        let meaning = schema["description"].as_str().map(line).unwrap_or_default();
        let _ = writeln!(page, "| `{field}` | {} | {required} | {meaning} |", type_of(schema));
    }
}

/// Returns a string in one line of a table.
fn line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

/// Returns the type of a schema in words.
fn type_of(schema: &Json) -> String {
    let Some(fields) = schema.as_object() else { return "any".to_owned() };
    if let Some(target) = fields.get("$ref").and_then(Json::as_str) {
        let name = target.trim_start_matches(SCHEMAS);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    for key in ["anyOf", "oneOf", "allOf"] {
        if let Some(parts) = fields.get(key).and_then(Json::as_array) {
            return alternatives(parts.iter().map(type_of));
        }
    }
    if let Some(words) = fields.get("enum").and_then(Json::as_array) {
        return words.iter().map(word).collect::<Vec<_>>().join(", ");
    }
    if let Some(constant) = fields.get("const") {
        return word(constant);
    }
    match fields.get("type") {
        Some(Json::Array(types)) => alternatives(types.iter().filter_map(Json::as_str).map(|ty| plain(ty, fields))),
        Some(Json::String(ty)) => plain(ty, fields),
        _ => "any".to_owned(),
    }
}

fn word(value: &Json) -> String {
    match value {
        Json::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Joins types. `null` is the last one.
fn alternatives(types: impl Iterator<Item = String>) -> String {
    let (nulls, others): (Vec<_>, Vec<_>) = types.partition(|ty| ty == "null" || ty == "`null`");
    others.into_iter().chain(nulls.into_iter().take(1)).collect::<Vec<_>>().join(" or ")
}

/// Returns a type that is named by JSON Schema, with its format, items and values.
fn plain(ty: &str, fields: &Map<String, Json>) -> String {
    let format = fields.get("format").and_then(Json::as_str).filter(|format| format.starts_with("date"));
    match (ty, format) {
        ("string", Some(format)) => format!("string ({format})"),
        ("array", _) => format!("list of {}", fields.get("items").map_or_else(|| "any".to_owned(), type_of)),
        ("object", _) => match fields.get("additionalProperties").filter(|values| values.is_object()) {
            Some(values) => format!("object of {}", type_of(values)),
            None => "object".to_owned(),
        },
        _ => ty.to_owned(),
    }
}
