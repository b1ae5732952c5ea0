//! Compares an answer with the one that a case expects.

use serde_json::Value as Json;

/// Returns one line for each difference. Objects may have more fields than expected; lists may not have more items. The
/// expected string `~part` matches a string that contains `part`, or a list with an item that does. The expected string
/// `*` matches everything except null.
pub fn differences(expected: &Json, found: &Json) -> Vec<String> {
    let mut out = Vec::new();
    compare("body", expected, found, &mut out);
    out
}

fn compare(path: &str, expected: &Json, found: &Json, out: &mut Vec<String>) {
    match (expected, found) {
        (Json::Object(expected), Json::Object(found)) => {
            for (name, expected) in expected {
                let path = format!("{path}.{name}");
                match found.get(name) {
                    Some(found) => compare(&path, expected, found, out),
                    None if expected == "absent" => {}
                    None => out.push(format!("{path} is missing")),
                }
            }
        }
        (Json::Array(expected), Json::Array(found)) if expected.len() == found.len() => {
            for (index, (expected, found)) in expected.iter().zip(found).enumerate() {
                compare(&format!("{path}[{index}]"), expected, found, out);
            }
        }
        (Json::String(expected), found) if expected == "*" && !found.is_null() => {}
        (Json::String(expected), found) if expected.strip_prefix('~').is_some_and(|part| holds(found, part)) => {}
        (expected, found) if same(expected, found) => {}
        (expected, found) => out.push(format!("{path} is {found}, expected {expected}")),
    }
}

fn holds(found: &Json, part: &str) -> bool {
    match found {
        Json::String(text) => text.contains(part),
        Json::Array(items) => items.iter().any(|item| item == part),
        _ => false,
    }
}

/// Compares two values. Numbers are compared by their text, because `f64` would lose digits.
fn same(expected: &Json, found: &Json) -> bool {
    match (expected, found) {
        (Json::Number(expected), Json::Number(found)) => expected.to_string() == found.to_string(),
        (expected, found) => expected == found,
    }
}
