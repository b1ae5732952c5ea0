//! The JSON Schema of `tests/*.yml`.
//!
//! In: the keys of cases, and the interface's schema of queries. Out: a [`Schema`] for editors, and the full schema as
//! JSON. Not here: whether names of a query exist (`check_names`).

use serde_json::{Value, json};
use terrane_compiler::AuthMethod;
use terrane_compiler::project::schema::{DIALECT, Literal, Schema};
use terrane_wire::Code;
use terrane_wire::query::json_schema;

use crate::read::KEYS;

/// Returns the schema of test files. It names the keys of queries, but does not describe their values.
pub fn keys() -> Schema {
    let string = || Schema::of_types(&["string", "number", "boolean"]);
    let codes = Code::ALL.iter().map(|code| Literal::Text(code.as_str().into()));
    let error = Schema { required: vec!["code".to_owned()], ..Schema::of_types(&["object"]) }
        .with("code", Schema { values: codes.collect(), ..Schema::default() }.described("The expected error code."))
        .with("contains", string().described("A part of the expected message."))
        .closed();
    let value = |key: &str| match key {
        "name" => string().described("The name of the case, unique in its file."),
        "description" => string().described("An explanation that is shown if the case fails."),
        "as" => caller().described("The caller of the query. Default: the operator, without roles and attributes."),
        "query" => query().described("A query, as in the body of a request."),
        "sql" => string().described("A statement for the warehouse whose rows are the expected result."),
        "rows" => Schema::list(Schema::of_types(&["object"])).described("The expected rows."),
        "error" => error.clone().described("The expected refusal."),
        _ => Schema::of_types(&["boolean"]).described("`false`: rows may have any order. Default: true."),
    };
    let case = KEYS.iter().fold(Schema::of_types(&["object"]), |case, key| case.with(*key, value(key)));
    let required = |key: &str| Schema { required: vec![key.to_owned()], ..Schema::default() };
    let case = Schema {
        required: vec!["name".to_owned(), "query".to_owned()],
        any_of: ["sql", "rows", "error"].map(required).to_vec(),
        ..case.closed()
    };
    let cases = Schema { types: vec!["array", "null"], ..Schema::list(case) };
    let file = Schema::of_types(&["object", "null"]).with("tests", cases.described("The cases."));
    Schema { dialect: Some(DIALECT), title: Some("Terrane: tests".to_owned()), ..file.closed() }
}

/// Returns the keys of a caller.
fn caller() -> Schema {
    let string = || Schema::of_types(&["string", "null"]);
    let strings = || Schema { types: vec!["array", "null"], ..Schema::list(Schema::of_types(&["string"])) };
    let methods = AuthMethod::OF_REQUESTS.iter().map(|method| Literal::Text(method.as_str().into()));
    let method = Schema { values: methods.collect(), ..Schema::default() };
    Schema::of_types(&["object"])
        .with("user_id", string().described("The id of the user."))
        .with("email", string().described("The address of the user."))
        .with("roles", strings().described("The names of its roles."))
        .with("groups", strings().described("The names of its groups."))
        .with("attributes", Schema::of_types(&["object", "null"]).described("Values by name, which policies use."))
        .with(
            "auth_method",
            method.described("The authentication method. Default: the operator, who acts as this user."),
        )
        .closed()
}

/// Returns the keys of a query with their descriptions.
fn query() -> Schema {
    let whole = json_schema();
    let properties = whole["properties"].as_object().into_iter().flatten();
    properties.fold(Schema::of_types(&["object"]), |query, (key, about)| {
        let about = about["description"].as_str().unwrap_or_default();
        query.with(key.clone(), Schema::default().described(about))
    })
}

/// Returns the schema as JSON, with the full schema of queries. The query of a case with `error` may be invalid, so it
/// can be any object.
pub fn schema() -> Value {
    let mut whole = json!(keys());
    let mut query = json_schema();
    let definitions = query.as_object_mut().and_then(|query| query.remove("$defs"));
    if let Some(case) = whole.pointer_mut("/properties/tests/items").and_then(Value::as_object_mut) {
        let about = case["properties"]["query"]["description"].clone();
        case["properties"]["query"] = json!({ "type": "object", "description": about });
        case.insert("if".to_owned(), json!({ "required": ["error"] }));
        case.insert("else".to_owned(), json!({ "properties": { "query": query } }));
    }
    if let (Some(definitions), Some(whole)) = (definitions, whole.as_object_mut()) {
        whole.insert("$defs".to_owned(), definitions);
    }
    whole
}
