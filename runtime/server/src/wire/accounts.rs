//! Requests that create and change API keys and users, and the accounts of answers, as JSON.
//!
//! In: a body. Out: a request for `app::accounts`, or a [`Misfit`]. Absent: the rules for names and passwords, which
//! `app::accounts` checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Span, Timestamp};
use serde_json::{Value as Json, json};
use terrane_app::accounts::{
    Change, GrantChange, Grants, IssuedKey, KeyChange, KeyRequest, UserChange, UserRequest, key_to_json,
    parse_lifetime, user_to_json,
};
use terrane_app::ports::credentials::{ApiKey, User};
use terrane_app::security::caller_json::attribute_from_json;
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::Attribute;

use super::body::parse;
use super::fields::{Fields, Misfit, Path};

pub(super) const KEY: &[&str] =
    &["name", "expires", "scopes", "user_id", "email", "roles", "groups", "attributes", "tenant"];
pub(super) const NEW_USER: &[&str] =
    &["username", "password", "scopes", "user_id", "email", "roles", "groups", "attributes", "tenant"];
pub(super) const USER_CHANGE: &[&str] =
    &["password", "disabled", "scopes", "user_id", "email", "roles", "groups", "attributes", "tenant"];
const TEXT: &str = "a text";
const TEXTS: &str = "a list of texts";
const SCOPES: &str = "a list of `read`, `write` and `admin`";
const ATTRIBUTES: &str = "an object of values and lists of values";
const DURATION: &str = "a duration such as `365d`";

pub(crate) fn new_key_from_wire(body: &[u8]) -> Result<KeyRequest, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", KEY)?;
    let lifetime = match lifetime(&fields)? {
        Change::Set(lifetime) => Some(lifetime),
        Change::Keep | Change::Remove => None,
    };
    Ok(KeyRequest { name: fields.required_text("name", TEXT)?.into(), lifetime, grants: grants(&fields)? })
}

pub(crate) fn key_change_from_wire(body: &[u8]) -> Result<KeyChange, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", KEY)?;
    let name = present(&fields, "name", TEXT)?.and_then(|_| fields.text("name", TEXT).transpose()).transpose()?;
    Ok(KeyChange { name: name.map(Into::into), lifetime: lifetime(&fields)?, grants: grant_change(&fields)? })
}

pub(crate) fn new_user_from_wire(body: &[u8]) -> Result<UserRequest, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", NEW_USER)?;
    Ok(UserRequest {
        username: fields.required_text("username", TEXT)?.into(),
        password: fields.required_text("password", TEXT)?.to_owned(),
        grants: grants(&fields)?,
    })
}

pub(crate) fn user_change_from_wire(body: &[u8]) -> Result<UserChange, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", USER_CHANGE)?;
    present(&fields, "password", TEXT)?;
    present(&fields, "disabled", "true or false")?;
    Ok(UserChange {
        password: fields.text("password", TEXT)?.map(str::to_owned),
        disabled: fields.flag("disabled")?,
        grants: grant_change(&fields)?,
    })
}

pub(crate) fn key_to_wire(key: &ApiKey, now: Timestamp) -> Json {
    key_to_json(key, now)
}

/// A new key with its text, which is shown this once.
pub(crate) fn issued_key_to_wire(issued: &IssuedKey, now: Timestamp) -> Json {
    let mut json = key_to_json(&issued.key, now);
    json["key"] = issued.text.as_str().into();
    json
}

pub(crate) fn keys_to_wire(keys: &[ApiKey], now: Timestamp) -> Json {
    json!({ "keys": keys.iter().map(|key| key_to_json(key, now)).collect::<Vec<_>>() })
}

pub(crate) fn user_to_wire(user: &User) -> Json {
    user_to_json(user)
}

pub(crate) fn users_to_wire(users: &[User]) -> Json {
    json!({ "users": users.iter().map(user_to_json).collect::<Vec<_>>() })
}

/// The rights of a new account. A missing field and null are the default.
fn grants(fields: &Fields<'_>) -> Result<Grants, Misfit> {
    let text = |name| Ok::<_, Misfit>(fields.text(name, TEXT)?.map(Arc::from));
    Ok(Grants {
        scopes: scopes(fields)?.unwrap_or(Scopes::READ),
        user_id: text("user_id")?,
        email: text("email")?,
        roles: texts(fields, "roles")?.unwrap_or_default(),
        groups: texts(fields, "groups")?.unwrap_or_default(),
        attributes: attributes(fields)?.unwrap_or_default(),
        tenant: text("tenant")?,
    })
}

/// A change of rights. Null removes a text; a list or an object cannot be null.
fn grant_change(fields: &Fields<'_>) -> Result<GrantChange, Misfit> {
    for (name, fits) in [("scopes", SCOPES), ("roles", TEXTS), ("groups", TEXTS), ("attributes", ATTRIBUTES)] {
        present(fields, name, fits)?;
    }
    let text = |name| match fields.get_or_null(name) {
        None => Ok(Change::Keep),
        Some(Json::Null) => Ok(Change::Remove),
        Some(_) => fields.text(name, TEXT).map(|text| text.map_or(Change::Remove, |text| Change::Set(text.into()))),
    };
    Ok(GrantChange {
        scopes: scopes(fields)?,
        user_id: text("user_id")?,
        email: text("email")?,
        roles: texts(fields, "roles")?,
        groups: texts(fields, "groups")?,
        attributes: attributes(fields)?,
        tenant: text("tenant")?,
    })
}

/// The value of a field that may be missing, but not null.
fn present<'a>(fields: &Fields<'a>, name: &'static str, fits: &'static str) -> Result<Option<&'a Json>, Misfit> {
    match fields.get_or_null(name) {
        Some(null @ Json::Null) => Err(Path::ROOT.field(name).wrong_type(null, fits)),
        found => Ok(found),
    }
}

fn lifetime(fields: &Fields<'_>) -> Result<Change<Span>, Misfit> {
    match fields.get_or_null("expires") {
        None => Ok(Change::Keep),
        Some(Json::Null) => Ok(Change::Remove),
        Some(_) => {
            let text = fields.text("expires", DURATION)?.unwrap_or_default();
            parse_lifetime(text).map(Change::Set).map_err(|_| Path::ROOT.field("expires").wrong_word(text, DURATION))
        }
    }
}

fn scopes(fields: &Fields<'_>) -> Result<Option<Scopes>, Misfit> {
    let read = fields.list("scopes", SCOPES, |item, path| match item {
        Json::String(word) => Scope::named(word).ok_or_else(|| path.wrong_word(word, "`read`, `write` or `admin`")),
        other => Err(path.wrong_type(other, "`read`, `write` or `admin`")),
    })?;
    Ok(fields.get("scopes").map(|_| read.into_iter().collect()))
}

fn texts(fields: &Fields<'_>, name: &'static str) -> Result<Option<Vec<Arc<str>>>, Misfit> {
    let read = fields.list(name, TEXTS, |item, path| match item {
        Json::String(text) => Ok(Arc::from(text.as_str())),
        other => Err(path.wrong_type(other, TEXT)),
    })?;
    Ok(fields.get(name).map(|_| read))
}

fn attributes(fields: &Fields<'_>) -> Result<Option<BTreeMap<Arc<str>, Attribute>>, Misfit> {
    let path = Path::ROOT.field("attributes");
    let Some(value) = fields.get("attributes") else { return Ok(None) };
    let Json::Object(all) = value else { return Err(path.wrong_type(value, ATTRIBUTES)) };
    let attribute = |(name, value): (&String, &Json)| {
        let attribute = attribute_from_json(value);
        let attribute = attribute.ok_or_else(|| path.field(name).wrong_type(value, "a value or a list of values"))?;
        Ok((Arc::from(name.as_str()), attribute))
    };
    all.iter().map(attribute).collect::<Result<_, _>>().map(Some)
}
