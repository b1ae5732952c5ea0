//! A caller as JSON and back: `{user_id, email, roles, groups, attributes}`.
//!
//! In: a [`SecurityContext`], or JSON of the same fields. Out: the other. Numbers keep all their digits.
//! Reading refuses what a caller is not made of, and says what it is. Not here: claims of tokens, which
//! have names of their own (identity).

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};

const FIELDS: &[&str] = &["user_id", "email", "roles", "groups", "attributes"];

/// Why JSON is no caller.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCaller {
    #[error("a caller is a JSON object")]
    NoObject,
    #[error("`{field}` is no field of a caller; those are {}", FIELDS.join(", "))]
    UnknownField { field: String },
    #[error("`{field}` is {wanted}")]
    WrongType { field: &'static str, wanted: &'static str },
    #[error("attribute `{name}` is a text, a number, true or false, or a list of those")]
    Attribute { name: String },
}

/// All fields, also those that are empty.
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

/// One attribute.
pub fn attribute_to_json(attribute: &Attribute) -> Json {
    match attribute {
        Attribute::One(value) => value_to_json(value),
        Attribute::Many(values) => values.iter().map(value_to_json).collect(),
    }
}

/// A missing field is an empty one.
///
/// # Errors
/// [`NoCaller`] says which field is wrong.
pub fn from_json(json: &Json) -> Result<SecurityContext, NoCaller> {
    let fields = json.as_object().ok_or(NoCaller::NoObject)?;
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(NoCaller::UnknownField { field: unknown.clone() });
    }
    let text = |field: &'static str| match &json[field] {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.as_str().into())),
        _ => Err(NoCaller::WrongType { field, wanted: "a text" }),
    };
    Ok(SecurityContext {
        user_id: text("user_id")?.unwrap_or_default(),
        email: text("email")?,
        roles: texts(json, "roles")?,
        groups: texts(json, "groups")?,
        attributes: attributes(json)?,
    })
}

fn texts(json: &Json, field: &'static str) -> Result<Vec<Arc<str>>, NoCaller> {
    match &json[field] {
        Json::Null => Ok(Vec::new()),
        Json::Array(all) if all.iter().all(Json::is_string) => {
            Ok(all.iter().filter_map(Json::as_str).map(Into::into).collect())
        }
        _ => Err(NoCaller::WrongType { field, wanted: "a list of texts" }),
    }
}

fn attributes(json: &Json) -> Result<BTreeMap<Arc<str>, Attribute>, NoCaller> {
    match &json["attributes"] {
        Json::Null => Ok(BTreeMap::new()),
        Json::Object(all) => all
            .iter()
            .map(|(name, value)| {
                let attribute = attribute_from_json(value).ok_or_else(|| NoCaller::Attribute { name: name.clone() })?;
                Ok((name.as_str().into(), attribute))
            })
            .collect(),
        _ => Err(NoCaller::WrongType { field: "attributes", wanted: "an object" }),
    }
}

/// `None` for what no attribute holds.
pub fn attribute_from_json(json: &Json) -> Option<Attribute> {
    match json {
        Json::Array(all) => all.iter().map(value_from_json).collect::<Option<_>>().map(Attribute::Many),
        one => value_from_json(one).map(Attribute::One),
    }
}

fn value_to_json(value: &Value) -> Json {
    match value {
        Value::Boolean(is_true) => (*is_true).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Decimal(digits) => digits.parse::<serde_json::Number>().map_or(Json::Null, Json::Number),
        Value::Text(text) => (**text).into(),
        // Attributes hold no others.
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
        Json::Null | Json::Array(_) | Json::Object(_) => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_is_read_back() {
        let text = r#"{"user_id":"u","email":null,"roles":["a"],"groups":[],"attributes":{"a":0.10,"b":true,"n":-7,"t":["x","y"],"v":123456789012345678901234567890}}"#;
        let json: Json = serde_json::from_str(text).expect("JSON");
        assert_eq!(to_json(&from_json(&json).expect("a caller")).to_string(), text);
        assert_eq!(from_json(&json!({})), Ok(SecurityContext::default()));
    }

    #[test]
    fn what_is_no_caller_is_told() {
        for (json, words) in [
            (json!([]), "JSON object"),
            (json!({"rols": []}), "`rols` is no field"),
            (json!({"user_id": 1}), "`user_id` is a text"),
            (json!({"roles": "a"}), "`roles` is a list of texts"),
            (json!({"roles": [1]}), "`roles` is a list of texts"),
            (json!({"attributes": []}), "`attributes` is an object"),
            (json!({"attributes": {"a": {}}}), "attribute `a`"),
            (json!({"attributes": {"a": [null]}}), "attribute `a`"),
        ] {
            let error = from_json(&json).expect_err("no caller").to_string();
            assert!(error.contains(words), "{json}: {error}");
        }
    }
}
