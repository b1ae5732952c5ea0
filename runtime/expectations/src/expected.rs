//! Reads the expected result of a case: its `sql`, `rows` or `error`.
//!
//! In: the mapping of a case. Out: the [`Expected`] result, or diagnostics. Not here: comparing results (`compare`).

use std::sync::Arc;

use serde_json::{Map, Value};
use terrane_compiler::diagnostic::{Code, Diagnostic, Span};
use terrane_compiler::project::yaml::mapping::Mapping;
use terrane_compiler::project::yaml::{Node, NodeValue};
use terrane_compiler::text::nearest::likely;
use terrane_wire::Code as ErrorCode;

use crate::json_of_yaml::json;
use crate::one_query::is_one_query;
use crate::refusal::Refusal;

/// The expected result of a case.
#[derive(Debug, Clone)]
pub enum Expected {
    /// A statement for the project's warehouse. Its columns are named like the keys of the rows.
    Sql(String),
    Rows(Vec<Map<String, Value>>),
    /// A refusal with this code, whose message contains this string if there is one.
    Error {
        code: String,
        contains: Option<String>,
    },
    /// A result that could not be read, which is reported.
    Unread,
}

/// The keys for the expected result. A case has exactly one of them.
const RESULTS: [&str; 3] = ["sql", "rows", "error"];
const ERROR_HINT: &str = "Write `error: {code: INVALID_MEASURE}`, and `contains` for a part of the message.";

pub(crate) fn problem(message: impl Into<String>, hint: &str) -> Diagnostic {
    Diagnostic::error(Code::WrongExpectation, message).hint(hint)
}

/// Reads the expected result. Reports everything that cannot be read.
pub(crate) fn expected(
    mapping: &Mapping<'_>,
    label: &str,
    place: &Span,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Expected> {
    let found: Vec<(&str, &Node)> = RESULTS.iter().filter_map(|key| Some((*key, mapping.get(key)?))).collect();
    let results: Vec<Option<Expected>> = found
        .iter()
        .map(|(key, node)| match *key {
            "sql" => sql(node, label, diagnostics),
            "rows" => rows(node, label, diagnostics),
            _ => error(node, label, diagnostics),
        })
        .collect();
    match <[Option<Expected>; 1]>::try_from(results) {
        Ok([result]) => result,
        Err(_) => {
            let message = format!("{label} needs exactly one of `sql`, `rows` and `error`");
            let hint = match found.is_empty() {
                true => "Write `rows` as a list of mappings, `error` as a mapping with a `code`.".to_owned(),
                false => {
                    let keys: Vec<String> = found.iter().map(|(key, _)| format!("`{key}`")).collect();
                    format!("Remove all but one of {}.", keys.join(", "))
                }
            };
            diagnostics.push(problem(message, &hint).at(place.clone()));
            None
        }
    }
}

fn sql(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Expected> {
    let hint = "Write one SELECT: a test only reads the warehouse.";
    let NodeValue::Scalar { text, .. } = &node.value else {
        let message = format!("`sql` of {label} must be a string");
        diagnostics.push(problem(message, hint).at(node.origin.span()));
        return None;
    };
    if !is_one_query(text) {
        let message = format!("the SQL of {label} is not one query");
        diagnostics.push(problem(message, hint).at(node.origin.span()));
    }
    Some(Expected::Sql(text.to_string()))
}

fn rows(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Expected> {
    let row = |item: &Node| match json(item) {
        Value::Object(row) => Some(row),
        _ => None,
    };
    let rows = match &node.value {
        NodeValue::List(items) => items.iter().map(row).collect::<Option<Vec<_>>>(),
        NodeValue::Null | NodeValue::Scalar { .. } | NodeValue::Map(_) => None,
    };
    if rows.is_none() {
        let message = format!("`rows` of {label} must be a list of mappings");
        let hint = "Write one mapping for each row, as in `rows: [{orders.region: north, orders.count: 3}]`.";
        diagnostics.push(problem(message, hint).at(node.origin.span()));
    }
    rows.map(Expected::Rows)
}

/// Returns the keys of expected rows, each with its first place.
pub(crate) fn row_keys(node: &Node) -> Vec<(Arc<str>, Span)> {
    let NodeValue::List(items) = &node.value else { return Vec::new() };
    let mut keys: Vec<(Arc<str>, Span)> = Vec::new();
    for item in items {
        let NodeValue::Map(row) = &item.value else { continue };
        for (key, _) in row {
            if !keys.iter().any(|(known, _)| *known == key.text) {
                keys.push((Arc::clone(&key.text), key.origin.span()));
            }
        }
    }
    keys
}

fn error(node: &Node, label: &str, diagnostics: &mut Vec<Diagnostic>) -> Option<Expected> {
    let NodeValue::Map(map) = &node.value else {
        let message = format!("`error` of {label} must be a mapping with a `code`");
        diagnostics.push(problem(message, ERROR_HINT).at(node.origin.span()));
        return None;
    };
    let mapping = Mapping::new(map, &"`error`", diagnostics);
    mapping.report_unknown_keys(&["code", "contains"], &"`error`", diagnostics);
    let text = |name: &str| mapping.text(name).map(str::to_owned);
    let Some(code) = text("code") else {
        let message = format!("`error` of {label} has no `code`");
        diagnostics.push(problem(message, ERROR_HINT).at(node.origin.span()));
        return None;
    };
    let known = || ErrorCode::ALL.iter().map(|code| code.as_str());
    if !known().any(|known| known == code) {
        let message = format!("unknown code `{code}` in `error`");
        let hint = match likely(&code, known()) {
            Some(meant) => format!("Write `{meant}`."),
            None => "Write a code of runtime/docs/reference/query.md, such as `INVALID_MEASURE`.".to_owned(),
        };
        let place = mapping.get("code").unwrap_or(node).origin.span();
        diagnostics.push(Diagnostic::error(Code::UnknownValue, message).hint(hint).at(place));
        return None;
    }
    Some(Expected::Error { code, contains: text("contains") })
}

/// Returns the diagnostic for a refused query whose case expects rows.
pub(crate) fn refused(label: &str, refusal: &Refusal) -> Diagnostic {
    let message = format!("the query of {label} is refused: {}", refusal.body.message);
    let subject = refusal.subjects.first().map(|subject| &**subject);
    let meant = subject.and_then(|subject| likely(subject, refusal.nearest.iter().map(|name| &**name)));
    let meant = meant
        .map_or_else(|| "Correct the query".to_owned(), |name| format!("Did you mean `{name}`? Correct the query"));
    problem(message, &format!("{meant}, or expect the refusal: `error: {{code: {}}}`.", refusal.body.code.as_str()))
}
