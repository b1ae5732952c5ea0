//! The caller that `--as` names, to rehearse policies as somebody else.
//!
//! In: a JSON file like a token's claims. Out: the context of a request. Without a file the caller is
//! nobody: no roles, no groups, no attributes.

use std::path::Path;

use serde_json::Value as Json;
use terrane_app::query::RequestContext;
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};

use crate::failure::Failure;

const FIELDS: &[&str] = &["user_id", "email", "roles", "groups", "attributes"];

/// Reads the file.
///
/// # Errors
/// It can't be read, or something in it isn't what a caller is made of.
pub fn read(path: Option<&Path>) -> Result<RequestContext, Failure> {
    let Some(path) = path else { return Ok(RequestContext::default()) };
    let name = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(format!("{name} can't be read: {error}")).hint("check the path after --as"))?;
    let json: Json = serde_json::from_str(&text).map_err(|error| Failure::new(format!("{name}: {error}")))?;
    let caller = caller(&json).map_err(|message| {
        let hint = "write {\"user_id\": \"u1\", \"roles\": [\"manager\"], \"attributes\": {\"regions\": [\"EU\"]}}";
        Failure::new(format!("{name}: {message}")).hint(hint)
    })?;
    Ok(RequestContext { caller, ..RequestContext::default() })
}

fn caller(json: &Json) -> Result<SecurityContext, String> {
    let fields = json.as_object().ok_or("a caller is a JSON object")?;
    if let Some(unknown) = fields.keys().find(|key| !FIELDS.contains(&key.as_str())) {
        return Err(format!("`{unknown}` is no field of a caller; those are {}", FIELDS.join(", ")));
    }
    let text = |key: &str| match &json[key] {
        Json::Null => Ok(None),
        Json::String(text) => Ok(Some(text.as_str().into())),
        _ => Err(format!("`{key}` is a text")),
    };
    let texts = |key: &str| match &json[key] {
        Json::Null => Ok(Vec::new()),
        Json::Array(all) if all.iter().all(Json::is_string) => {
            Ok(all.iter().filter_map(Json::as_str).map(Into::into).collect())
        }
        _ => Err(format!("`{key}` is a list of texts")),
    };
    let attributes = match &json["attributes"] {
        Json::Null => Ok(Default::default()),
        Json::Object(all) => {
            all.iter().map(|(name, value)| Ok((name.as_str().into(), attribute(name, value)?))).collect()
        }
        _ => Err("`attributes` is an object".to_owned()),
    }?;
    Ok(SecurityContext {
        user_id: text("user_id")?.unwrap_or_default(),
        email: text("email")?,
        roles: texts("roles")?,
        groups: texts("groups")?,
        attributes,
    })
}

fn attribute(name: &str, value: &Json) -> Result<Attribute, String> {
    match value {
        Json::Array(all) => Ok(Attribute::Many(all.iter().map(|one| scalar(name, one)).collect::<Result<_, _>>()?)),
        one => Ok(Attribute::One(scalar(name, one)?)),
    }
}

fn scalar(name: &str, value: &Json) -> Result<Value, String> {
    match value {
        Json::Bool(value) => Ok(Value::Boolean(*value)),
        Json::String(text) => Ok(Value::Text(text.as_str().into())),
        Json::Number(number) => Ok(match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Decimal(number.to_string().into()),
        }),
        _ => Err(format!("attribute `{name}` is a text, a number, true or false, or a list of those")),
    }
}
