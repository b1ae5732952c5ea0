//! Applies environment variables to the definitions of the project file (`name`, `version`, `paths`, `models`, `vars`).
//! The compiler reads only the text of the file, not the environment.
//!
//! In: the parsed project file and the environment. Out: the text to compile instead of the file, if they differ. Not
//! here: the meaning of the keys (compiler).

use serde_json::{Map, Value};
use terrane_compiler::project::yaml::{Node, NodeValue, Plain};

use super::environment::Environment;
use super::reader::Collected;

/// The keys with their variables.
const KEYS: [(&str, &str); 5] = [
    ("name", "SERVICE_NAME"),
    ("version", "SERVICE_VERSION"),
    ("paths", "SERVICE_PATHS"),
    ("models", "SERVICE_MODELS"),
    ("vars", "SERVICE_VARS"),
];

/// The keys of `models` that the compiler reads.
const MODEL_KEYS: [&str; 2] = ["models.materialization", "models.schema"];

/// Returns the definitions as JSON, which is valid YAML. Returns `None` if the environment changes nothing.
pub(super) fn effective(file: Option<&Node>, environment: &Environment, collected: &mut Collected) -> Option<String> {
    let entries = match file.map(|node| &node.value) {
        Some(NodeValue::Map(entries)) => entries.as_slice(),
        _ => &[],
    };
    let mut is_changed = false;
    let mut definitions = Map::new();
    for (key, variable) in KEYS {
        let written = entries.iter().find(|(found, _)| &*found.text == key).map(|(_, node)| node);
        let mut value = written.map(|node| json(node, environment, collected, &mut is_changed));
        let below = format!("{variable}__");
        let whole = environment.get(variable).map(|text| (variable, text));
        collected.read_keys.note(key, whole, written);
        for model in MODEL_KEYS.iter().filter(|_| key == "models") {
            collected.read_keys.note(model, None, None);
        }
        if let Some(NodeValue::Map(inner)) = written.map(|node| &node.value) {
            for (name, node) in inner.iter().filter(|_| key != "paths") {
                collected.read_keys.note(&format!("{key}.{}", name.text), None, Some(node));
            }
        }
        for name in environment.settings().filter(|name| *name == variable || name.starts_with(&below)) {
            let Some(set) = collected.value_of(name, environment.get(name).unwrap_or_default()) else { continue };
            let set = json(&set, environment, collected, &mut is_changed);
            let below = name[variable.len()..].to_lowercase().replace("__", ".");
            if !below.is_empty() && key != "paths" {
                collected.read_keys.note(
                    &format!("{key}{below}"),
                    Some((name, environment.get(name).unwrap_or_default())),
                    None,
                );
            }
            let path = name[variable.len()..].split("__").filter(|level| !level.is_empty());
            put(&mut value, path.map(str::to_lowercase).collect(), set);
            is_changed = true;
        }
        if let Some(value) = value {
            definitions.insert(key.to_owned(), value);
        }
    }
    // The compiler ignores the operator's settings, so the text contains definitions only.
    is_changed.then(|| Value::Object(definitions).to_string())
}

/// Sets the value at a path and creates missing levels. Names are compared case-insensitively.
fn put(target: &mut Option<Value>, path: Vec<String>, set: Value) {
    let mut current = target.get_or_insert(Value::Null);
    for level in path {
        if !current.is_object() {
            *current = Value::Object(Map::new());
        }
        let Value::Object(map) = current else { return };
        let key = map.keys().find(|key| key.to_lowercase() == level).cloned().unwrap_or(level);
        current = map.entry(key).or_insert(Value::Null);
    }
    *current = set;
}

fn json(node: &Node, environment: &Environment, collected: &mut Collected, is_changed: &mut bool) -> Value {
    match &node.value {
        NodeValue::Null => Value::Null,
        NodeValue::Scalar { plain: Plain::Boolean(value), .. } => Value::Bool(*value),
        NodeValue::Scalar { text, plain: Plain::Integer | Plain::Fraction } => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(&**text))
        }
        NodeValue::Scalar { text, .. } => match environment.expand(text) {
            Ok(expanded) => {
                *is_changed |= expanded != **text;
                Value::from(expanded)
            }
            Err(error) => {
                collected.diagnostics.push(error.explain("the key").at(node.origin.span()));
                Value::Null
            }
        },
        NodeValue::List(items) => items.iter().map(|item| json(item, environment, collected, is_changed)).collect(),
        NodeValue::Map(entries) => {
            let pairs = entries.iter();
            pairs.map(|(key, item)| (key.text.to_string(), json(item, environment, collected, is_changed))).collect()
        }
    }
}
