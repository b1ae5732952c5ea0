//! Requests that create and change API keys and users, and the keys and users in answers.
//!
//! In: a body; keys and users. Out: a request for `app::accounts`, or a [`FieldError`]; the accounts without secrets.
//! Not here: the rules for names and passwords, which `app::accounts` checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{Span, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;
use serde_json::{Map, Value as Json};
use terrane_app::accounts::{
    Change, GrantChange, Grants, IssuedKey, KeyChange, KeyRequest, KeyState, UserChange, UserRequest, parse_lifetime,
};
use terrane_app::ports::credentials::{ApiKey, User};
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::{Attribute, SecurityContext};
use terrane_json::caller::{attribute_from_json, attribute_to_json};

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};
use crate::schema;

pub(crate) const KEY: &[&str] =
    &["name", "expires", "scopes", "user_id", "email", "roles", "groups", "attributes", "tenant"];
pub(crate) const NEW_USER: &[&str] =
    &["username", "password", "scopes", "user_id", "email", "roles", "groups", "attributes", "tenant"];
pub(crate) const USER_CHANGE: &[&str] =
    &["password", "disabled", "scopes", "user_id", "email", "roles", "groups", "attributes", "tenant"];
const STRING: &str = "a string";
const STRINGS: &str = "a list of strings";
const SCOPE: &str = "`read`, `write` or `admin`";
const SCOPES: &str = "a list of `read`, `write` and `admin`";
const ATTRIBUTES: &str = "an object of values and lists of values";
const DURATION: &str = "a duration such as `365d`";

fn scope_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": schema::words(&["read", "write", "admin"]) })
}

fn attribute_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": true })
}

/// Corrects a derived schema. Removes `scopes` and `attributes` from the required fields: schemars requires each field
/// with `schema_with`, even an `Option`. Removes null from the types of fields for which this module rejects null.
fn optional_fields(schema: &mut Schema) {
    const OPTIONAL: [&str; 2] = ["scopes", "attributes"];
    const NEVER_NULL: [&str; 5] = ["name", "password", "disabled", "roles", "groups"];
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|name| !OPTIONAL.iter().any(|optional| name == optional));
    }
    for name in NEVER_NULL {
        let kind =
            schema.get_mut("properties").and_then(|all| all.get_mut(name)).and_then(|field| field.get_mut("type"));
        if let Some(kind) = kind
            && let Some(kinds) = kind.as_array()
            && let Some(only) = kinds.iter().find(|kind| *kind != "null").cloned()
        {
            *kind = only;
        }
    }
}

fn key_state(_: &mut SchemaGenerator) -> Schema {
    schema::words(&["active", "expired", "revoked"])
}

/// The fields of an account's rights, in a request.
#[derive(Debug, JsonSchema)]
pub struct RightsFields {
    #[schemars(schema_with = "scope_list")]
    pub scopes: Option<Vec<String>>,
    /// The user id that policies see. The default is the account's own.
    pub user_id: Option<String>,
    pub email: Option<String>,
    pub roles: Option<Vec<String>>,
    pub groups: Option<Vec<String>>,
    #[schemars(schema_with = "attribute_map")]
    pub attributes: Option<Json>,
    pub tenant: Option<String>,
}

/// An API key to create.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = optional_fields)]
pub struct NewKey {
    pub name: String,
    /// A lifetime from now, such as `365d`.
    pub expires: Option<String>,
    #[schemars(flatten)]
    pub rights: RightsFields,
}

/// A change of an API key. Omitted fields are unchanged.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "KeyChange", deny_unknown_fields, transform = optional_fields)]
pub struct KeyPatch {
    pub name: Option<String>,
    /// A lifetime from now, such as `365d`; null removes the expiry.
    pub expires: Option<String>,
    #[schemars(flatten)]
    pub rights: RightsFields,
}

/// A user to create.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, transform = optional_fields)]
pub struct NewUser {
    pub username: String,
    /// The password: at least 12 characters and at most 1,024 bytes.
    pub password: String,
    #[schemars(flatten)]
    pub rights: RightsFields,
}

/// A change of a user. Omitted fields are unchanged.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "UserChange", deny_unknown_fields, transform = optional_fields)]
pub struct UserPatch {
    /// The new password: at least 12 characters and at most 1,024 bytes.
    pub password: Option<String>,
    pub disabled: Option<bool>,
    #[schemars(flatten)]
    pub rights: RightsFields,
}

/// The rights of an account, in an answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Rights<'a> {
    #[schemars(schema_with = "scope_list")]
    scopes: Vec<&'static str>,
    user_id: &'a str,
    email: Option<&'a str>,
    roles: Vec<&'a str>,
    groups: Vec<&'a str>,
    #[schemars(schema_with = "attribute_map")]
    attributes: Map<String, Json>,
    tenant: Option<&'a str>,
}

impl<'a> Rights<'a> {
    fn new(scopes: Scopes, caller: &'a SecurityContext, tenant: Option<&'a str>) -> Self {
        let attributes = caller.attributes.iter();
        Rights {
            scopes: scopes.names(),
            user_id: &caller.user_id,
            email: caller.email.as_deref(),
            roles: caller.roles.iter().map(|role| &**role).collect(),
            groups: caller.groups.iter().map(|group| &**group).collect(),
            attributes: attributes.map(|(name, value)| (name.to_string(), attribute_to_json(value))).collect(),
            tenant,
        }
    }
}

/// An API key without its secret.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Key<'a> {
    id: &'a str,
    name: &'a str,
    #[serde(flatten)]
    rights: Rights<'a>,
    #[schemars(schema_with = "schema::timestamp")]
    created_at: String,
    expires_at: Option<String>,
    #[schemars(schema_with = "key_state")]
    state: &'static str,
}

impl<'a> Key<'a> {
    /// Describes a key and its state at the time `now`.
    pub fn new(key: &'a ApiKey, now: Timestamp) -> Self {
        Key {
            id: &key.id,
            name: &key.name,
            rights: Rights::new(key.scopes, &key.caller, key.tenant.as_deref()),
            created_at: key.created_at.to_string(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            state: KeyState::at(key, now).as_str(),
        }
    }
}

/// A new API key. Its full text is returned only here.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "IssuedKey")]
pub struct KeyWithText<'a> {
    #[serde(flatten)]
    described: Key<'a>,
    /// The text of the key, which is shown this once.
    key: &'a str,
}

impl<'a> KeyWithText<'a> {
    /// Describes a key that was just created.
    pub fn new(issued: &'a IssuedKey, now: Timestamp) -> Self {
        KeyWithText { described: Key::new(&issued.key, now), key: &issued.text }
    }
}

/// All API keys, newest first.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Keys<'a> {
    keys: Vec<Key<'a>>,
}

impl<'a> Keys<'a> {
    /// Describes keys and their states at the time `now`.
    pub fn new(keys: &'a [ApiKey], now: Timestamp) -> Self {
        Keys { keys: keys.iter().map(|key| Key::new(key, now)).collect() }
    }
}

/// A user who signs in with a password.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "User")]
pub struct UserAnswer<'a> {
    username: &'a str,
    #[serde(flatten)]
    rights: Rights<'a>,
    #[schemars(schema_with = "schema::timestamp")]
    created_at: String,
    disabled_at: Option<String>,
}

impl<'a> From<&'a User> for UserAnswer<'a> {
    fn from(user: &'a User) -> Self {
        UserAnswer {
            username: &user.username,
            rights: Rights::new(user.scopes, &user.caller, user.tenant.as_deref()),
            created_at: user.created_at.to_string(),
            disabled_at: user.disabled_at.map(|at| at.to_string()),
        }
    }
}

/// All users, by name.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Users<'a> {
    users: Vec<UserAnswer<'a>>,
}

impl<'a> From<&'a [User]> for Users<'a> {
    fn from(users: &'a [User]) -> Self {
        Users { users: users.iter().map(UserAnswer::from).collect() }
    }
}

/// Reads a key to create.
///
/// # Errors
/// Names the field that is invalid.
pub fn new_key_from_wire(body: &[u8]) -> Result<KeyRequest, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", KEY)?;
    let lifetime = match lifetime(&fields)? {
        Change::Set(lifetime) => Some(lifetime),
        Change::Keep | Change::Remove => None,
    };
    Ok(KeyRequest { name: fields.required_string("name", STRING)?.into(), lifetime, grants: grants(&fields)? })
}

/// Reads a change of a key.
///
/// # Errors
/// Names the field that is invalid.
pub fn key_change_from_wire(body: &[u8]) -> Result<KeyChange, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", KEY)?;
    let name = present(&fields, "name", STRING)?.and_then(|_| fields.string("name", STRING).transpose()).transpose()?;
    Ok(KeyChange { name: name.map(Into::into), lifetime: lifetime(&fields)?, grants: grant_change(&fields)? })
}

/// Reads a user to create.
///
/// # Errors
/// Names the field that is invalid.
pub fn new_user_from_wire(body: &[u8]) -> Result<UserRequest, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", NEW_USER)?;
    Ok(UserRequest {
        username: fields.required_string("username", STRING)?.into(),
        password: fields.required_string("password", STRING)?.to_owned(),
        grants: grants(&fields)?,
    })
}

/// Reads a change of a user.
///
/// # Errors
/// Names the field that is invalid.
pub fn user_change_from_wire(body: &[u8]) -> Result<UserChange, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", USER_CHANGE)?;
    present(&fields, "password", STRING)?;
    present(&fields, "disabled", "true or false")?;
    Ok(UserChange {
        password: fields.string("password", STRING)?.map(str::to_owned),
        disabled: fields.boolean("disabled")?,
        grants: grant_change(&fields)?,
    })
}

/// Returns the rights of a new account. A field that is missing or null has its default.
fn grants(fields: &Fields<'_>) -> Result<Grants, FieldError> {
    let text = |name| Ok::<_, FieldError>(fields.string(name, STRING)?.map(Arc::from));
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

/// Returns a change of rights. Null removes a string; a list or an object cannot be null.
fn grant_change(fields: &Fields<'_>) -> Result<GrantChange, FieldError> {
    for (name, fits) in [("scopes", SCOPES), ("roles", STRINGS), ("groups", STRINGS), ("attributes", ATTRIBUTES)] {
        present(fields, name, fits)?;
    }
    let text = |name| match fields.get_or_null(name) {
        None => Ok(Change::Keep),
        Some(Json::Null) => Ok(Change::Remove),
        Some(_) => fields.string(name, STRING).map(|text| text.map_or(Change::Remove, |text| Change::Set(text.into()))),
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

/// Returns the value of a field that may be missing, but not null.
pub(crate) fn present<'a>(
    fields: &Fields<'a>,
    name: &'static str,
    fits: &'static str,
) -> Result<Option<&'a Json>, FieldError> {
    match fields.get_or_null(name) {
        Some(null @ Json::Null) => Err(Path::ROOT.field(name).invalid_type(null, fits)),
        found => Ok(found),
    }
}

fn lifetime(fields: &Fields<'_>) -> Result<Change<Span>, FieldError> {
    match fields.get_or_null("expires") {
        None => Ok(Change::Keep),
        Some(Json::Null) => Ok(Change::Remove),
        Some(_) => {
            let text = fields.string("expires", DURATION)?.unwrap_or_default();
            parse_lifetime(text).map(Change::Set).map_err(|_| Path::ROOT.field("expires").invalid_value(text, DURATION))
        }
    }
}

fn scopes(fields: &Fields<'_>) -> Result<Option<Scopes>, FieldError> {
    let read = fields.list("scopes", SCOPES, |item, path| match item {
        Json::String(word) => Scope::named(word).ok_or_else(|| path.invalid_value(word, SCOPE)),
        other => Err(path.invalid_type(other, SCOPE)),
    })?;
    Ok(fields.get("scopes").map(|_| read.into_iter().collect()))
}

fn texts(fields: &Fields<'_>, name: &'static str) -> Result<Option<Vec<Arc<str>>>, FieldError> {
    let read = fields.list(name, STRINGS, |item, path| match item {
        Json::String(text) => Ok(Arc::from(text.as_str())),
        other => Err(path.invalid_type(other, STRING)),
    })?;
    Ok(fields.get(name).map(|_| read))
}

fn attributes(fields: &Fields<'_>) -> Result<Option<BTreeMap<Arc<str>, Attribute>>, FieldError> {
    let path = Path::ROOT.field("attributes");
    let Some(value) = fields.get("attributes") else { return Ok(None) };
    let Json::Object(all) = value else { return Err(path.invalid_type(value, ATTRIBUTES)) };
    let attribute = |(name, value): (&String, &Json)| {
        let attribute = attribute_from_json(value);
        let attribute = attribute.ok_or_else(|| path.field(name).invalid_type(value, "a value or a list of values"))?;
        Ok((Arc::from(name.as_str()), attribute))
    };
    all.iter().map(attribute).collect::<Result<_, _>>().map(Some)
}
