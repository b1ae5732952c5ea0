//! Rows to records and back: times as microseconds, sets as words, callers as JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value as Json, json};
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;
use terrane_app::ports::audit::{AuditEntry, AuditRecord};
use terrane_app::ports::credentials::{ApiKey, Guest, Session, User};
use terrane_app::ports::store::StoreError;
use terrane_app::security::api_key::SecretHash;
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, SecurityContext};

pub(crate) fn failed(error: sqlx::Error) -> StoreError {
    StoreError { message: error.to_string() }
}

fn odd(what: &str) -> StoreError {
    StoreError { message: format!("a row holds {what} that cannot be read") }
}

pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

fn time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(|_| odd("a time"))
}

fn maybe_time(micros: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
    micros.map(time).transpose()
}

pub(crate) fn hex(hash: &SecretHash) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of(text: &str) -> Result<SecretHash, StoreError> {
    let byte = |index: usize| u8::from_str_radix(text.get(index * 2..index * 2 + 2)?, 16).ok();
    let mut hash = [0; 32];
    for (index, slot) in hash.iter_mut().enumerate() {
        *slot = byte(index).ok_or_else(|| odd("a hash"))?;
    }
    Ok(hash)
}

pub(crate) fn words(scopes: Scopes) -> String {
    scopes.names().join(" ")
}

fn scopes(text: &str) -> Scopes {
    text.split(' ').filter_map(Scope::named).collect()
}

pub(crate) fn caller_json(caller: &SecurityContext) -> Json {
    let attributes: serde_json::Map<String, Json> = caller
        .attributes
        .iter()
        .map(|(name, attribute)| {
            let value = match attribute {
                Attribute::One(value) => value_json(value),
                Attribute::Many(values) => values.iter().map(value_json).collect(),
            };
            (name.to_string(), value)
        })
        .collect();
    let texts = |all: &[Arc<str>]| all.iter().map(|text| Json::from(&**text)).collect::<Json>();
    json!({
        "user_id": &*caller.user_id,
        "email": caller.email.as_deref(),
        "roles": texts(&caller.roles),
        "groups": texts(&caller.groups),
        "attributes": attributes,
    })
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Boolean(is_true) => (*is_true).into(),
        Value::Integer(number) => (*number).into(),
        Value::Float(number) => (*number).into(),
        Value::Decimal(digits) => digits.parse::<serde_json::Number>().map_or(Json::Null, Json::Number),
        Value::Text(text) => (**text).into(),
        // Claims hold no others.
        Value::Null | Value::Date(_) | Value::Timestamp(_) | Value::TimestampTz(_) => Json::Null,
    }
}

fn caller(text: &str) -> Result<SecurityContext, StoreError> {
    let json: Json = serde_json::from_str(text).map_err(|_| odd("a caller"))?;
    let texts = |key: &str| -> Vec<Arc<str>> {
        json[key].as_array().into_iter().flatten().filter_map(Json::as_str).map(Into::into).collect()
    };
    let attributes = json["attributes"].as_object().into_iter().flatten().filter_map(|(name, value)| {
        let attribute = match value {
            Json::Array(all) => Attribute::Many(all.iter().filter_map(value_of).collect()),
            one => Attribute::One(value_of(one)?),
        };
        Some((name.as_str().into(), attribute))
    });
    Ok(SecurityContext {
        user_id: json["user_id"].as_str().unwrap_or_default().into(),
        email: json["email"].as_str().map(Into::into),
        roles: texts("roles"),
        groups: texts("groups"),
        attributes: attributes.collect::<BTreeMap<_, _>>(),
    })
}

fn value_of(json: &Json) -> Option<Value> {
    Some(match json {
        Json::Bool(is_true) => Value::Boolean(*is_true),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => Value::Integer(integer),
            (None, Some(float)) => Value::Float(float),
            (None, None) => return None,
        },
        Json::Null | Json::Array(_) | Json::Object(_) => return None,
    })
}

fn text(row: &SqliteRow, column: &str) -> Result<Arc<str>, StoreError> {
    row.try_get::<String, _>(column).map(Into::into).map_err(failed)
}

fn maybe_text(row: &SqliteRow, column: &str) -> Result<Option<Arc<str>>, StoreError> {
    row.try_get::<Option<String>, _>(column).map(|text| text.map(Into::into)).map_err(failed)
}

fn integer(row: &SqliteRow, column: &str) -> Result<i64, StoreError> {
    row.try_get(column).map_err(failed)
}

fn maybe_integer(row: &SqliteRow, column: &str) -> Result<Option<i64>, StoreError> {
    row.try_get(column).map_err(failed)
}

pub(crate) fn api_key(row: &SqliteRow) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        id: text(row, "id")?,
        name: text(row, "name")?,
        secret_hash: hash_of(&text(row, "secret_hash")?)?,
        scopes: scopes(&text(row, "scopes")?),
        caller: caller(&text(row, "caller")?)?,
        tenant: maybe_text(row, "tenant")?,
        created_at: time(integer(row, "created_at")?)?,
        expires_at: maybe_time(maybe_integer(row, "expires_at")?)?,
        revoked_at: maybe_time(maybe_integer(row, "revoked_at")?)?,
    })
}

pub(crate) fn user(row: &SqliteRow) -> Result<User, StoreError> {
    Ok(User {
        username: text(row, "username")?,
        password_hash: text(row, "password_hash")?,
        scopes: scopes(&text(row, "scopes")?),
        caller: caller(&text(row, "caller")?)?,
        tenant: maybe_text(row, "tenant")?,
        created_at: time(integer(row, "created_at")?)?,
        disabled_at: maybe_time(maybe_integer(row, "disabled_at")?)?,
    })
}

pub(crate) fn session(row: &SqliteRow) -> Result<Session, StoreError> {
    Ok(Session {
        id: text(row, "id")?,
        username: text(row, "username")?,
        created_at: time(integer(row, "created_at")?)?,
        ended_at: maybe_time(maybe_integer(row, "ended_at")?)?,
        guest: guest(row)?,
    })
}

fn guest(row: &SqliteRow) -> Result<Option<Guest>, StoreError> {
    let Some(json) = maybe_text(row, "caller")? else { return Ok(None) };
    let scopes = scopes(&maybe_text(row, "scopes")?.unwrap_or_default());
    Ok(Some(Guest { scopes, caller: caller(&json)?, tenant: maybe_text(row, "tenant")? }))
}

pub(crate) fn audit_record(row: &SqliteRow) -> Result<AuditRecord, StoreError> {
    let unsigned = |column| integer(row, column).map(|number| u64::try_from(number).unwrap_or(0));
    Ok(AuditRecord {
        sequence: unsigned("sequence")?,
        entry: AuditEntry {
            at: time(integer(row, "at")?)?,
            event: text(row, "event")?,
            actor: text(row, "actor")?,
            auth_method: text(row, "auth_method")?,
            client_ip: maybe_text(row, "client_ip")?,
            correlation_id: maybe_text(row, "correlation_id")?,
            resource: text(row, "resource")?,
            reason: maybe_text(row, "reason")?,
            before: maybe_text(row, "was")?,
            after: maybe_text(row, "became")?,
            count: unsigned("alike")?,
        },
        hash: text(row, "hash")?,
        previous: text(row, "previous")?,
    })
}
