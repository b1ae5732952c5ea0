//! Converts values of YAML files to JSON.
//!
//! In: a node of a file. Out: the JSON that a client would send. Not here: the meaning of the values.

use serde_json::{Number, Value};
use terrane_compiler::project::yaml::{Node, NodeValue, Plain};

/// Converts YAML to the JSON that a client would send. Unquoted numbers become numbers.
pub(crate) fn json(node: &Node) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Scalar { text, plain } => match plain {
            Plain::Boolean(value) => Value::Bool(*value),
            Plain::Integer | Plain::Fraction => number(text).map_or_else(|| Value::from(&**text), Value::Number),
            Plain::Text => Value::from(&**text),
        },
        NodeValue::List(items) => items.iter().map(json).collect(),
        NodeValue::Map(map) => {
            Value::Object(map.iter().map(|(key, node)| (key.text.to_string(), json(node))).collect())
        }
    }
}

/// Reads a number with all its digits. Returns `None` if the text is not a number in JSON.
fn number(text: &str) -> Option<Number> {
    serde_json::from_str(text.trim().trim_start_matches('+')).ok()
}
