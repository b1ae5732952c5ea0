//! Converts callers to JSON and back: `{user_id, email, roles, groups, attributes}`. `auth_method` is only read.
//!
//! In: a [`SecurityContext`], or a JSON object with its fields. Out: the other form. Numbers keep all their digits.
//! Unknown fields and values of other types are errors. An attribute can be null. Null equals nothing, and policies
//! treat a null attribute as missing. Not here: claims of tokens, which have other names (identity).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, AuthMethod, SecurityContext};

const FIELDS: &[&str] = &["user_id", "email", "roles", "groups", "attributes", "auth_method"];

/// The number of characters of an unknown word that an error message repeats.
const MAX_WORD_CHARS: usize = 40;

/// An error in the JSON form of a caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallerError {
    #[error("expected a JSON object")]
    NotAnObject,
    #[error("unknown field `{field}`; expected one of {}", FIELDS.join(", "))]
    UnknownField { field: String },
    #[error("expected {wanted} at `{field}`")]
    WrongType { field: &'static str, wanted: &'static str },
    #[error("expected a string, a number, a boolean or null, or a list of those, at attribute `{name}`")]
    Attribute { name: String },
    #[error("unknown `auth_method` `{word}`; expected one of {}", AuthMethod::OF_REQUESTS.map(AuthMethod::as_str).join(", "))]
    AuthMethod { word: String },
}

/// An error in an attribute on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttributeTextError {
    #[error("expected JSON after `[`, `{{` or `\"`")]
    Syntax,
    #[error("expected a string, a number or a boolean, or a list of those")]
    Type,
}

/// Returns all fields of a stored caller, including empty ones. `auth_method` belongs to a request and is not stored.
pub fn to_json(caller: &SecurityContext) -> Json {
    let attributes: Map<String, Json> =
        caller.attributes.iter().map(|(name, attribute)| (name.to_string(), attribute_to_json(attribute))).collect();
    let texts = |all: &[Arc<str>]| all.iter().map(|text| Json::from(&**text)).collect::<Json>();
    json!({
        "user_id": &*caller.user_id,
        "email": caller.email.as_deref(),
        "roles": texts(&caller.roles),
        "groups": texts(&caller.groups),
        "attributes": attributes,
    })
}

/// Returns the value of an attribute, or a JSON array of its values.
pub fn attribute_to_json(attribute: &Attribute) -> Json {
    match attribute {
        Attribute::One(value) => value_to_json(value),
        Attribute::Many(values) => values.iter().map(value_to_json).collect(),
    }
}

/// Reads a caller. A missing field is empty.
///
/// # Errors
/// [`CallerError`] names the invalid field.
pub fn from_json(json: &Json) -> Result<SecurityContext, CallerError> {
    let fields = json.as_object().ok_or(CallerError::NotAnObject)?;
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(CallerError::UnknownField { field: unknown.clone() });
    }
    let text = |field: &'static str| match &json[field] {
        Json::Null => Ok(None::<Arc<str>>),
        Json::String(text) => Ok(Some(text.as_str().into())),
        _ => Err(CallerError::WrongType { field, wanted: "a string" }),
    };
    Ok(SecurityContext {
        user_id: text("user_id")?.unwrap_or_default(),
        email: text("email")?,
        roles: texts(json, "roles")?,
        groups: texts(json, "groups")?,
        attributes: attributes(json)?,
        auth_method: match text("auth_method")? {
            None => AuthMethod::default(),
            Some(word) => AuthMethod::of_request(&word).ok_or_else(|| {
                let word = word.chars().take(MAX_WORD_CHARS).collect();
                CallerError::AuthMethod { word }
            })?,
        },
    })
}

fn texts(json: &Json, field: &'static str) -> Result<Vec<Arc<str>>, CallerError> {
    match &json[field] {
        Json::Null => Ok(Vec::new()),
        Json::Array(all) if all.iter().all(Json::is_string) => {
            Ok(all.iter().filter_map(Json::as_str).map(Into::into).collect())
        }
        _ => Err(CallerError::WrongType { field, wanted: "a list of strings" }),
    }
}

fn attributes(json: &Json) -> Result<BTreeMap<Arc<str>, Attribute>, CallerError> {
    match &json["attributes"] {
        Json::Null => Ok(BTreeMap::new()),
        Json::Object(all) => all
            .iter()
            .map(|(name, value)| {
                let attribute =
                    attribute_from_json(value).ok_or_else(|| CallerError::Attribute { name: name.clone() })?;
                Ok((name.as_str().into(), attribute))
            })
            .collect(),
        _ => Err(CallerError::WrongType { field: "attributes", wanted: "an object" }),
    }
}

/// Reads one attribute; `None` for objects and nested lists.
pub fn attribute_from_json(json: &Json) -> Option<Attribute> {
    match json {
        Json::Array(all) => all.iter().map(value_from_json).collect::<Option<_>>().map(Attribute::Many),
        one => value_from_json(one).map(Attribute::One),
    }
}

/// Reads an attribute from a claim. Returns `None` for null and for an object. An object or a list inside a list
/// becomes null. The other values of the list then still count, and a row filter never matches the null.
pub fn attribute_from_claim(json: &Json) -> Option<Attribute> {
    match json {
        Json::Array(all) => {
            Some(Attribute::Many(all.iter().map(|item| value_from_json(item).unwrap_or(Value::Null)).collect()))
        }
        Json::Null => None,
        one => value_from_json(one).map(Attribute::One),
    }
}

/// Reads an attribute on the command line: a JSON number, boolean, string in quotes, or list. Any other text is a
/// string.
///
/// # Errors
/// The text begins with `[`, `{` or a quote but is not JSON; or it is an object, a nested list or null.
pub fn attribute_from_text(text: &str) -> Result<Attribute, AttributeTextError> {
    let json = match serde_json::from_str::<Json>(text) {
        Ok(json) => json,
        Err(_) if text.trim_start().starts_with(['[', '{', '"']) => return Err(AttributeTextError::Syntax),
        Err(_) => return Ok(Attribute::One(Value::Text(text.into()))),
    };
    let attribute = attribute_from_json(&json).ok_or(AttributeTextError::Type)?;
    if attribute.values().contains(&Value::Null) { Err(AttributeTextError::Type) } else { Ok(attribute) }
}

/// Returns one value as JSON. Values that attributes cannot have become null.
pub(crate) fn value_to_json(value: &Value) -> Json {
    match value {
        Value::Boolean(is_true) => (*is_true).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Decimal(digits) => digits.parse::<serde_json::Number>().map_or(Json::Null, Json::Number),
        Value::Text(text) => (**text).into(),
        // Attributes have none of these types.
        Value::Null | Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) => Json::Null,
    }
}

fn value_from_json(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Bool(is_true) => Value::Boolean(*is_true),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Decimal(number.to_string().into()),
        },
        Json::Null => Value::Null,
        Json::Array(_) | Json::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caller_round_trips() {
        let text = r#"{"user_id":"u","email":null,"roles":["a"],"groups":[],"attributes":{"a":0.10,"b":true,"n":-7,"o":null,"p":["x",null],"t":["x","y"],"v":123456789012345678901234567890}}"#;
        let json: Json = serde_json::from_str(text).expect("JSON");
        assert_eq!(to_json(&from_json(&json).expect("a caller")).to_string(), text);
        assert_eq!(from_json(&json!({})), Ok(SecurityContext::default()));
        let by_key = SecurityContext { auth_method: AuthMethod::ApiKey, ..SecurityContext::default() };
        assert_eq!(from_json(&json!({"auth_method": "api_key"})), Ok(by_key));
    }

    #[test]
    fn invalid_field_is_named() {
        for (json, words) in [
            (json!([]), "JSON object"),
            (json!({"rols": []}), "unknown field `rols`"),
            (json!({"user_id": 1}), "expected a string at `user_id`"),
            (json!({"roles": "a"}), "expected a list of strings at `roles`"),
            (json!({"roles": [1]}), "expected a list of strings at `roles`"),
            (json!({"attributes": []}), "expected an object at `attributes`"),
            (json!({"auth_method": 1}), "expected a string at `auth_method`"),
            (json!({"auth_method": "oauth"}), "unknown `auth_method` `oauth`; expected one of anonymous, api_key"),
            (json!({"attributes": {"a": {}}}), "attribute `a`"),
            (json!({"attributes": {"a": [[1]]}}), "attribute `a`"),
            (json!({"attributes": {"a": [{}]}}), "attribute `a`"),
        ] {
            let error = from_json(&json).expect_err("no caller").to_string();
            assert!(error.contains(words), "{json}: {error}");
        }
    }

    #[test]
    fn unreadable_values_of_a_claim_list_become_null() {
        let word = |text: &str| Value::Text(text.into());
        for (claim, expected) in [
            (json!(null), None),
            (json!({}), None),
            (json!("1"), Some(Attribute::One(word("1")))),
            (json!([]), Some(Attribute::Many(Vec::new()))),
            (json!([1, null, "x"]), Some(Attribute::Many(vec![Value::Integer(1), Value::Null, word("x")]))),
            (json!([[1], {"a": 1}, true]), Some(Attribute::Many(vec![Value::Null, Value::Null, Value::Boolean(true)]))),
        ] {
            assert_eq!(attribute_from_claim(&claim), expected, "{claim}");
        }
    }

    #[test]
    fn command_line_attributes_are_json_or_strings() {
        let word = |text: &str| Value::Text(text.into());
        for (text, expected) in [
            ("EU", Ok(Attribute::One(word("EU")))),
            ("", Ok(Attribute::One(word("")))),
            ("north west", Ok(Attribute::One(word("north west")))),
            ("1", Ok(Attribute::One(Value::Integer(1)))),
            ("1.50", Ok(Attribute::One(Value::Decimal("1.50".into())))),
            ("007", Ok(Attribute::One(word("007")))),
            ("1_000", Ok(Attribute::One(word("1_000")))),
            ("true", Ok(Attribute::One(Value::Boolean(true)))),
            ("True", Ok(Attribute::One(word("True")))),
            ("\"1\"", Ok(Attribute::One(word("1")))),
            ("[1,\"x\",false]", Ok(Attribute::Many(vec![Value::Integer(1), word("x"), Value::Boolean(false)]))),
            ("[]", Ok(Attribute::Many(Vec::new()))),
            ("null", Err(AttributeTextError::Type)),
            ("[null]", Err(AttributeTextError::Type)),
            ("[[1]]", Err(AttributeTextError::Type)),
            ("{\"a\": 1}", Err(AttributeTextError::Type)),
            ("[1", Err(AttributeTextError::Syntax)),
            ("\"EU", Err(AttributeTextError::Syntax)),
            ("{a}", Err(AttributeTextError::Syntax)),
        ] {
            assert_eq!(attribute_from_text(text), expected, "{text}");
        }
    }
}
