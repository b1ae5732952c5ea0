//! The callers of an attack: one person with a key for reading and a key for writing, and people with other tenants or
//! other attributes.
//!
//! In: a folder. Out: a state database that contains all keys. It is created once and copied for each server. The
//! attributes have values of every JSON type, because policies compare an attribute with values of other types.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials as _};
use terrane_app::security::api_key::NewKey;
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::types::Value;
use terrane_compiler::{Attribute, AuthMethod, SecurityContext};
use terrane_oracle_tests::world::{BOOLEAN_ATTRIBUTES, Cell, NUMBER_ATTRIBUTES, TEXT_ATTRIBUTES, attribute, is_list};
use terrane_store::StateStore;

const FILE: &str = "state.db";

/// The key that a request carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caller {
    /// Has the scope `read`.
    Reader,
    /// Has the scopes `read` and `write`.
    Writer,
    /// Has the reader's attributes, in the tenant `acme`.
    Acme,
    /// Has the reader's attributes, in the tenant `globex`.
    Globex,
    /// Has neither a tenant nor the reader's role, and has other values of the attributes.
    Visitor,
}

impl Caller {
    /// Returns the text of the caller's API key.
    pub fn key(self) -> String {
        self.new_key().text
    }

    /// Returns a key that is the same in every run, so that it causes no difference between answers.
    fn new_key(self) -> NewKey {
        let first = match self {
            Caller::Reader => 1,
            Caller::Writer => 2,
            Caller::Acme => 3,
            Caller::Globex => 4,
            Caller::Visitor => 5,
        };
        NewKey::from_random(&[first; 40])
    }

    fn tenant(self) -> Option<&'static str> {
        match self {
            Caller::Acme => Some("acme"),
            Caller::Globex => Some("globex"),
            Caller::Reader | Caller::Writer | Caller::Visitor => None,
        }
    }

    fn context(self) -> SecurityContext {
        match self {
            Caller::Visitor => visitor(),
            _ => context(),
        }
    }

    fn scopes(self) -> Scopes {
        match self {
            Caller::Reader | Caller::Acme | Caller::Globex | Caller::Visitor => Scopes::READ,
            Caller::Writer => Scopes::READ.with(Scope::Write),
        }
    }
}

/// Conditions (`when`) that apply to the caller: by roles, by groups, and by attributes. Some of these compare a number
/// or a boolean with the same value as a string. `None` is a policy for all callers.
pub const APPLICABLE: &[Option<&str>] = &[
    None,
    Some(r#"{"roles": ["analyst"]}"#),
    Some(r#"{"roles": ["auditor", "analyst"]}"#),
    Some(r#"{"groups": ["emea"]}"#),
    Some(r#"{"unless_roles": ["admin"]}"#),
    Some(r#"{"unless_groups": ["staff"]}"#),
    Some(r#"{"unless_attributes": {"tier": ["7"]}}"#),
    Some(r#"{"unless_attributes": {"absent": ["x"]}}"#),
    Some(r#"{"attributes": {"tier": ["1"]}}"#),
    Some(r#"{"attributes": {"rank": [1, 2]}}"#),
    Some(r#"{"attributes": {"vip": ["true"]}}"#),
    Some(r#"{"attributes": {"trusted": [false]}}"#),
    Some(r#"{"roles": ["analyst"], "groups": ["emea"], "attributes": {"city": ["Köln"], "rank": [1]}}"#),
    Some(r#"{"attributes": {"tier": [1, 2]}}"#),
    Some(r#"{"attributes": {"rank": ["1"]}}"#),
    Some(r#"{"attributes": {"vip": [true]}}"#),
    Some(r#"{"attributes": {"trusted": ["false"]}}"#),
    Some(r#"{"attributes": {"tiers": [2]}}"#),
    Some(r#"{"attributes": {"ranks": ["2", "9"]}}"#),
];

/// The number of leading entries of [`APPLICABLE`] that compare values of the same type.
pub(crate) const UNTYPED: usize = 13;

fn context() -> SecurityContext {
    let names = TEXT_ATTRIBUTES.iter().chain(NUMBER_ATTRIBUTES).chain(BOOLEAN_ATTRIBUTES);
    let of_rows = names.filter_map(|name| Some((Arc::from(*name), compared_with_rows(name)?)));
    let text = |text: &str| Value::Text(text.into());
    let of_conditions = [
        ("tier", Attribute::One(text("1"))),
        ("rank", Attribute::One(Value::Integer(1))),
        ("vip", Attribute::One(text("true"))),
        ("trusted", Attribute::One(Value::Boolean(false))),
        ("tiers", Attribute::Many(vec![text("1"), text("2")])),
        ("ranks", Attribute::Many(vec![Value::Integer(1), Value::Integer(2)])),
        ("city", Attribute::One(text("Köln"))),
    ];
    let of_conditions = of_conditions.into_iter().map(|(name, value)| (Arc::from(name), value));
    SecurityContext {
        user_id: "ada".into(),
        email: Some("ada@example.org".into()),
        roles: vec!["analyst".into(), "reader".into()],
        groups: vec!["emea".into()],
        attributes: of_rows.chain(of_conditions).collect(),
        auth_method: AuthMethod::ApiKey,
    }
}

/// Returns the context of a visitor, to whom fewer conditions (`when`) apply. The visitor sees other rows, because only
/// the last value of each list of attribute values remains.
fn visitor() -> SecurityContext {
    let names = TEXT_ATTRIBUTES.iter().chain(NUMBER_ATTRIBUTES).chain(BOOLEAN_ATTRIBUTES);
    let last = |name: &&str| match compared_with_rows(name)? {
        Attribute::Many(values) => {
            Some((Arc::from(*name), Attribute::Many(values.into_iter().rev().take(1).collect())))
        }
        Attribute::One(Value::Integer(value)) => Some((Arc::from(*name), Attribute::One(Value::Integer(-value)))),
        other => Some((Arc::from(*name), other)),
    };
    SecurityContext {
        user_id: "eve".into(),
        email: None,
        roles: vec!["visitor".into()],
        groups: Vec::new(),
        attributes: names.filter_map(last).collect(),
        auth_method: AuthMethod::ApiKey,
    }
}

/// Returns the value of an attribute that row filters of the oracle's worlds compare with columns.
fn compared_with_rows(name: &str) -> Option<Attribute> {
    let value = |cell: &Cell| match cell {
        Cell::Int(value) => Value::Integer(*value),
        Cell::Bool(value) => Value::Boolean(*value),
        Cell::Text(text) => Value::Text(text.as_str().into()),
        _ => Value::Null,
    };
    let values: Vec<Value> = attribute(name)?.iter().map(value).collect();
    match (is_list(name), values.first()) {
        (false, Some(one)) => Some(Attribute::One(one.clone())),
        _ => Some(Attribute::Many(values)),
    }
}

/// The state database of every server of a run.
#[derive(Debug)]
pub struct StateTemplate {
    folder: PathBuf,
}

impl StateTemplate {
    /// Creates the state database in a folder.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let url = state_url(folder);
        runtime.block_on(async {
            let store = StateStore::open(&url, folder).await?;
            for caller in [Caller::Reader, Caller::Writer, Caller::Acme, Caller::Globex, Caller::Visitor] {
                let key = key_of(caller);
                let entry = AuditEntry {
                    at: key.created_at,
                    event: "key_created".into(),
                    actor: "attack".into(),
                    resource: format!("key:{}", key.id).into(),
                    count: 1,
                    ..AuditEntry::default()
                };
                store.add_key(&key, entry).await.context("adding a key")?;
            }
            anyhow::Ok(())
        })?;
        Ok(StateTemplate { folder: folder.to_owned() })
    }

    /// Copies the state database for a server and returns the server's `state.url`.
    ///
    /// # Errors
    /// The files cannot be copied.
    pub fn copy_to(&self, folder: &Path) -> Result<String> {
        fs::create_dir_all(folder)?;
        // The write-ahead log is copied too, because the database file may lack its last writes.
        for name in [FILE.to_owned(), format!("{FILE}-wal")] {
            let from = self.folder.join(&name);
            if from.exists() {
                fs::copy(&from, folder.join(&name))?;
            }
        }
        Ok(state_url(folder))
    }
}

fn state_url(folder: &Path) -> String {
    format!("sqlite://{}", folder.join(FILE).display())
}

fn key_of(caller: Caller) -> ApiKey {
    let key = caller.new_key();
    ApiKey {
        id: key.id,
        name: "attack".into(),
        secret_hash: key.hash,
        scopes: caller.scopes(),
        caller: caller.context(),
        tenant: caller.tenant().map(Into::into),
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: None,
        revoked_at: None,
    }
}
