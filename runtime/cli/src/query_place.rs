//! Finds the place of a query that a refusal is about.
//!
//! In: a refusal and the text of the query. Out: a path such as `filters[0].dimension`. Not here: refusals of text that
//! is not a query, because they already contain their path (`terrane_wire`).

use serde_json::Value;
use terrane_app::query::QueryRunError;

/// Returns the path of the first name or value that a refusal is about. `None` if the query does not contain one.
pub(crate) fn of(error: &QueryRunError, query: &str) -> Option<String> {
    let QueryRunError::Query(error) = error else { return None };
    let query: Value = serde_json::from_str(query).ok()?;
    error
        .subjects()
        .into_iter()
        .find_map(|subject| path(&query, subject))
        .map(|path| path.trim_start_matches('.').to_owned())
}

/// Returns the path of the first string that equals the subject, with a dot before each key.
fn path(value: &Value, subject: &str) -> Option<String> {
    match value {
        Value::String(text) => (text == subject).then(String::new),
        Value::Array(items) => items.iter().enumerate().find_map(|(at, item)| {
            let below = path(item, subject)?;
            Some(format!("[{at}]{below}"))
        }),
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let below = path(value, subject)?;
            Some(format!(".{key}{below}"))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_have_paths() {
        let query = json!({
            "measures": ["orders.count", "orders.cuont"],
            "filters": [{"or": [{"dimension": "orders.regoin", "values": ["a"]}]}],
        });
        assert_eq!(path(&query, "orders.cuont").as_deref(), Some(".measures[1]"));
        assert_eq!(path(&query, "orders.regoin").as_deref(), Some(".filters[0].or[0].dimension"));
        assert_eq!(path(&query, "orders.other"), None);
    }
}
