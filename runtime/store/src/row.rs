//! Converts rows to records and back: times are microseconds, sets are words, callers are JSON.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value as Json;
use terrane_app::domain::SecretHash;
use terrane_app::ports::audit::{AuditEntry, AuditRecord, Details};
use terrane_app::ports::credentials::{ApiKey, Rights, Session, User};
use terrane_app::ports::store::StoreError;
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::{AuthMethod, SecurityContext};
use terrane_json::caller as caller_json;

use crate::database::Row;

const AUTH_METHODS: [AuthMethod; 5] =
    [AuthMethod::Anonymous, AuthMethod::ApiKey, AuthMethod::Jwt, AuthMethod::OAuth, AuthMethod::Operator];

pub(crate) fn odd(what: &str) -> StoreError {
    StoreError { message: format!("a row contains {what} that cannot be read") }
}

pub(crate) fn micros(at: Timestamp) -> i64 {
    at.as_microsecond()
}

/// Returns a number as the database stores it. Numbers above the largest integer become the largest integer.
pub(crate) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the number in a column that contains no negative numbers.
pub(crate) fn unsigned(row: &Row, column: &str) -> Result<u64, StoreError> {
    Ok(row.integer(column)?.unsigned_abs())
}

pub(crate) fn time(micros: i64) -> Result<Timestamp, StoreError> {
    Timestamp::from_microsecond(micros).map_err(|_| odd("a time"))
}

pub(crate) fn maybe_time(micros: Option<i64>) -> Result<Option<Timestamp>, StoreError> {
    micros.map(time).transpose()
}

pub(crate) fn hex(hash: &SecretHash) -> String {
    hex::encode(hash)
}

pub(crate) fn hash_of(text: &str) -> Result<SecretHash, StoreError> {
    let mut hash = [0; 32];
    hex::decode_to_slice(text, &mut hash).map_err(|_| odd("a hash"))?;
    Ok(hash)
}

pub(crate) fn words(scopes: Scopes) -> String {
    scopes.names().join(" ")
}

pub(crate) fn scopes(text: &str) -> Scopes {
    text.split(' ').filter_map(Scope::named).collect()
}

pub(crate) fn caller_text(caller: &SecurityContext) -> String {
    caller_json::to_json(caller).to_string()
}

pub(crate) fn caller(text: &str) -> Result<SecurityContext, StoreError> {
    let json: Json = serde_json::from_str(text).map_err(|_| odd("a caller"))?;
    caller_json::from_json(&json).map_err(|_| odd("a caller"))
}

/// Reads the word of an authentication method.
pub(crate) fn auth_method(word: &str) -> Result<AuthMethod, StoreError> {
    let method = AUTH_METHODS.into_iter().find(|known| known.as_str() == word);
    method.ok_or_else(|| odd("an authentication method"))
}

pub(crate) fn text(row: &Row, column: &str) -> Result<Arc<str>, StoreError> {
    row.text(column).map(Into::into)
}

pub(crate) fn maybe_text(row: &Row, column: &str) -> Result<Option<Arc<str>>, StoreError> {
    row.maybe_text(column).map(|text| text.map(Into::into))
}

pub(crate) fn api_key(row: &Row) -> Result<ApiKey, StoreError> {
    Ok(ApiKey {
        id: text(row, "id")?,
        name: text(row, "name")?,
        secret_hash: hash_of(&text(row, "secret_hash")?)?,
        scopes: scopes(&text(row, "scopes")?),
        caller: caller(&text(row, "caller")?)?,
        tenant: maybe_text(row, "tenant")?,
        created_at: time(row.integer("created_at")?)?,
        expires_at: maybe_time(row.maybe_integer("expires_at")?)?,
        revoked_at: maybe_time(row.maybe_integer("revoked_at")?)?,
    })
}

pub(crate) fn user(row: &Row) -> Result<User, StoreError> {
    Ok(User {
        username: text(row, "username")?,
        password_hash: text(row, "password_hash")?,
        scopes: scopes(&text(row, "scopes")?),
        caller: caller(&text(row, "caller")?)?,
        tenant: maybe_text(row, "tenant")?,
        created_at: time(row.integer("created_at")?)?,
        disabled_at: maybe_time(row.maybe_integer("disabled_at")?)?,
    })
}

pub(crate) fn session(row: &Row) -> Result<Session, StoreError> {
    let rights = rights(row)?;
    Ok(Session {
        id: text(row, "id")?,
        username: text(row, "username")?,
        created_at: time(row.integer("created_at")?)?,
        ended_at: maybe_time(row.maybe_integer("ended_at")?)?,
        // Older versions did not write the column `is_guest`. They stored rights for guests only.
        is_guest: row.maybe_integer("is_guest")?.map_or(rights.is_some(), |is_guest| is_guest != 0),
        rights,
    })
}

fn rights(row: &Row) -> Result<Option<Rights>, StoreError> {
    let Some(json) = maybe_text(row, "caller")? else { return Ok(None) };
    let scopes = scopes(&maybe_text(row, "scopes")?.unwrap_or_default());
    Ok(Some(Rights { scopes, caller: caller(&json)?, tenant: maybe_text(row, "tenant")? }))
}

pub(crate) fn audit_record(row: &Row) -> Result<AuditRecord, StoreError> {
    let unsigned = |column| row.integer(column).map(|number| u64::try_from(number).unwrap_or(0));
    Ok(AuditRecord {
        sequence: unsigned("sequence")?,
        entry: AuditEntry {
            at: time(row.integer("at")?)?,
            event: text(row, "event")?,
            actor: text(row, "actor")?,
            auth_method: text(row, "auth_method")?,
            client_ip: maybe_text(row, "client_ip")?,
            correlation_id: maybe_text(row, "correlation_id")?,
            resource: text(row, "resource")?,
            reason: maybe_text(row, "reason")?,
            before: maybe_text(row, "was")?.map(Details::Encoded),
            after: maybe_text(row, "became")?.map(Details::Encoded),
            count: unsigned("alike")?,
        },
        hash: text(row, "hash")?,
        previous: text(row, "previous")?,
    })
}
