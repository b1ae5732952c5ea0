//! Values of the compiler as JSON values.

use serde_json::Value as Json;
use terrane_compiler::types::Value;

use crate::json::write_value;

/// Returns the value as answers have it: numbers with all their digits, times as ISO 8601.
pub(crate) fn to_json(value: &Value) -> Json {
    let mut text = Vec::new();
    write_value(value, &mut text);
    // The writer's output is JSON.
    serde_json::from_slice(&text).unwrap_or_default()
}
