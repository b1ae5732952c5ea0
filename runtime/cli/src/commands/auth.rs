//! `terrane auth`: keys and users, made and ended on the machine that holds the state database.
//!
//! Every change is in the audit log, with the operating system's user as its actor.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Subcommand;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use serde_json::{Value as Json, json};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::clock::Clock as _;
use terrane_app::ports::credentials::{ApiKey, Credentials as _, Revocation, RevokedTokens, User};
use terrane_app::ports::tokens::{Passwords as _, Randomness as _};
use terrane_app::security::api_key::NewKey;
use terrane_app::security::caller_json::{attribute_from_text, attribute_to_json};
use terrane_app::security::{MAX_PASSWORD_BYTES, Scope, Scopes, key_user};
use terrane_compiler::{Attribute, SecurityContext};
use terrane_identity::{Argon2Passwords, OsRandomness};
use terrane_store::StateStore;

use super::{operator_entry, print};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring;

/// Shorter ones are guessed.
const MIN_PASSWORD_CHARS: usize = 12;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane auth create-key --name dashboards --expires 365d
  terrane auth create-key my-project --name etl --scopes read,write --roles loader
  terrane auth revoke-key 0f3c9a5b1d2e4f60
  terrane auth end-sessions corp:248289761001
  terrane auth revoke-tokens --sub customer-17
  printf %s \"$PASSWORD\" | terrane auth create-user ada --password-stdin --roles analyst --attribute region=EU
  terrane auth create-key --name tiers --attribute 'tiers=[1,2]' --attribute 'code=\"007\"'

A running server sees a change within two seconds. Who signs in through an identity provider, or comes with its
tokens, needs no user here: see `security.oauth` and `security.jwt` in runtime/PROJECT.md.")]
pub struct AuthArguments {
    #[command(subcommand)]
    pub action: AuthAction,
}

#[derive(Debug, Subcommand)]
pub enum AuthAction {
    /// Make an API key; it is shown once
    CreateKey {
        #[command(flatten)]
        place: PlaceArguments,
        /// What it is for
        #[arg(long)]
        name: String,
        /// How long it is good, like 365d, 12h or 2w; without it, until it is revoked
        #[arg(long)]
        expires: Option<String>,
        #[command(flatten)]
        caller: CallerArguments,
    },
    /// List API keys, without their secrets
    ListKeys {
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// End an API key
    RevokeKey {
        /// The 16 digits behind `trn_`
        id: String,
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// Make somebody who signs in with a password
    CreateUser {
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
        /// Read the password from standard input
        #[arg(long, required = true)]
        password_stdin: bool,
        #[arg(long)]
        email: Option<String>,
        #[command(flatten)]
        caller: CallerArguments,
    },
    /// List users
    ListUsers {
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// Let somebody sign in no more, and end their sessions
    DisableUser {
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// Revoke tokens that applications signed (`security.jwt.application_tokens`)
    RevokeTokens {
        #[command(flatten)]
        place: PlaceArguments,
        #[command(flatten)]
        tokens: TokenArguments,
    },
    /// End somebody's sessions; they may sign in again
    EndSessions {
        /// A user, or `provider:subject` of who signed in through an identity provider
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
    },
}

#[derive(Debug, clap::Args)]
pub struct PlaceArguments {
    /// The project: the folder that holds service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// Which tokens to revoke.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct TokenArguments {
    /// The claim `jti` of one token
    #[arg(long)]
    pub jti: Option<String>,
    /// The claim `sub`, or the user id, of all tokens that were issued until now
    #[arg(long = "sub")]
    pub subject: Option<String>,
}

/// What policies and routes see of the caller.
#[derive(Debug, clap::Args)]
pub struct CallerArguments {
    /// What the caller may do: read, write, admin
    #[arg(long, value_delimiter = ',', default_value = "read")]
    pub scopes: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    pub roles: Vec<String>,
    #[arg(long, value_delimiter = ',')]
    pub groups: Vec<String>,
    /// name=value: a word, or JSON such as 1, true, "007" or [1,2]; the same name again makes a list
    #[arg(long = "attribute")]
    pub attributes: Vec<String>,
    /// The user id that policies see; else the key's or the user's own
    #[arg(long)]
    pub user_id: Option<String>,
    #[arg(long)]
    pub tenant: Option<String>,
}

impl AuthAction {
    /// Where the project is.
    pub fn dir(&self) -> &PathBuf {
        match self {
            AuthAction::CreateKey { place, .. }
            | AuthAction::ListKeys { place }
            | AuthAction::RevokeKey { place, .. }
            | AuthAction::CreateUser { place, .. }
            | AuthAction::ListUsers { place }
            | AuthAction::DisableUser { place, .. }
            | AuthAction::RevokeTokens { place, .. }
            | AuthAction::EndSessions { place, .. } => &place.dir,
        }
    }
}

/// Does one thing to the state database.
///
/// # Errors
/// It can't be opened, or what was asked for doesn't fit.
pub async fn run(arguments: &AuthArguments, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let now = SystemClock::default().now();
    match &arguments.action {
        AuthAction::CreateKey { place, name, expires, caller } => {
            create_key(&store, place, name, expires.as_deref(), caller, now).await
        }
        AuthAction::ListKeys { place } => list_keys(&store, place, now).await,
        AuthAction::RevokeKey { id, .. } => {
            let entry = entry("key_revoked", now, format!("key:{id}"), None);
            let is_revoked = store.revoke_key(id, now, entry).await.map_err(failed)?;
            let missing = || Failure::new(format!("no key `{id}` is good now")).hint("terrane auth list-keys");
            is_revoked.then(|| print(&format!("revoked key {id}\n"))).ok_or_else(missing)
        }
        AuthAction::CreateUser { username, place, email, caller, .. } => {
            create_user(&store, place, username, email.as_deref(), caller, now).await
        }
        AuthAction::ListUsers { place } => list_users(&store, place).await,
        AuthAction::DisableUser { username, .. } => {
            let entry = entry("user_disabled", now, format!("user:{username}"), None);
            let is_disabled = store.disable_user(username, now, entry).await.map_err(failed)?;
            let missing = || Failure::new(format!("no user `{username}` may sign in")).hint("terrane auth list-users");
            is_disabled.then(|| print(&format!("disabled {username}\n"))).ok_or_else(missing)
        }
        AuthAction::RevokeTokens { place, tokens } => revoke_tokens(&store, place, tokens, now).await,
        AuthAction::EndSessions { username, place } => {
            let entry = entry("sessions_ended", now, format!("user:{username}"), None);
            let ended = store.end_sessions(username, now, entry).await.map_err(failed)?;
            let shown = json!({"username": username, "ended": ended});
            let sessions = if ended == 1 { "session" } else { "sessions" };
            print(&if place.json { format!("{shown}\n") } else { format!("ended {ended} {sessions} of {username}\n") });
            Ok(())
        }
    }
}

async fn create_key(
    store: &StateStore,
    place: &PlaceArguments,
    name: &str,
    expires: Option<&str>,
    caller: &CallerArguments,
    now: Timestamp,
) -> Result<(), Failure> {
    let mut random = [0; 40];
    OsRandomness.fill(&mut random);
    let new = NewKey::from_random(&random);
    let key = ApiKey {
        id: new.id.clone(),
        name: short(name, "--name")?,
        secret_hash: new.hash,
        scopes: scopes(&caller.scopes)?,
        caller: context(caller, key_user(&new.id), None)?,
        tenant: caller.tenant.as_deref().map(Into::into),
        created_at: now,
        expires_at: expires.map(|text| expiry(text, now)).transpose()?,
        revoked_at: None,
    };
    let shown = key_json(&key, now);
    store.add_key(&key, entry("key_created", now, format!("key:{}", key.id), Some(&shown))).await.map_err(failed)?;
    if place.json {
        let mut shown = shown;
        shown["key"] = new.text.into();
        print(&format!("{shown}\n"));
        return Ok(());
    }
    let expires = key.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
    print(&format!(
        "key:     {}\nname:    {}\nexpires: {expires}\nscopes:  {}\n\nThe key is not shown again.\n",
        new.text,
        key.name,
        key.scopes.names().join(", ")
    ));
    Ok(())
}

async fn list_keys(store: &StateStore, place: &PlaceArguments, now: Timestamp) -> Result<(), Failure> {
    let keys = store.keys().await.map_err(failed)?;
    if place.json {
        print(&format!("{}\n", json!({"keys": keys.iter().map(|key| key_json(key, now)).collect::<Vec<_>>()})));
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["ID", "NAME", "SCOPES", "EXPIRES", "STATE"]);
    for key in &keys {
        let expires = key.expires_at.map_or_else(|| "never".to_owned(), |at| at.to_string());
        table.add_row([&*key.id, &*key.name, &key.scopes.names().join(","), &expires, state_of(key, now)]);
    }
    print(&format!("{table}\n"));
    Ok(())
}

async fn create_user(
    store: &StateStore,
    place: &PlaceArguments,
    username: &str,
    email: Option<&str>,
    caller: &CallerArguments,
    now: Timestamp,
) -> Result<(), Failure> {
    let password = password()?;
    let username = short(username, "the user name")?;
    if username.contains(':') {
        let message = format!("`{username}` has a colon, which names of keys and of providers' users have");
        return Err(Failure::new(message).hint("choose a name without one"));
    }
    let user = User {
        username: username.clone(),
        password_hash: Argon2Passwords::default().hash(&password).await,
        scopes: scopes(&caller.scopes)?,
        caller: context(caller, username.clone(), email)?,
        tenant: caller.tenant.as_deref().map(Into::into),
        created_at: now,
        disabled_at: None,
    };
    let shown = user_json(&user);
    let entry = entry("user_created", now, format!("user:{username}"), Some(&shown));
    if !store.add_user(&user, entry).await.map_err(failed)? {
        return Err(Failure::new(format!("there is a user `{username}` already")).hint("terrane auth list-users"));
    }
    print(&if place.json { format!("{shown}\n") } else { format!("created user {username}\n") });
    Ok(())
}

async fn list_users(store: &StateStore, place: &PlaceArguments) -> Result<(), Failure> {
    let users = store.users().await.map_err(failed)?;
    if place.json {
        print(&format!("{}\n", json!({"users": users.iter().map(user_json).collect::<Vec<_>>()})));
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["USER", "SCOPES", "ROLES", "STATE"]);
    for user in &users {
        let state = if user.disabled_at.is_some() { "disabled" } else { "good" };
        table.add_row([&*user.username, &user.scopes.names().join(","), &user.caller.roles.join(","), state]);
    }
    print(&format!("{table}\n"));
    Ok(())
}

async fn revoke_tokens(
    store: &StateStore,
    place: &PlaceArguments,
    arguments: &TokenArguments,
    now: Timestamp,
) -> Result<(), Failure> {
    let tokens = match (&arguments.jti, &arguments.subject) {
        (Some(id), _) => RevokedTokens::Token(short(id, "--jti")?),
        (None, subject) => RevokedTokens::Subject(short(subject.as_deref().unwrap_or_default(), "--sub")?),
    };
    let shown = json!({"jti": arguments.jti, "sub": arguments.subject, "revoked_at": now.to_string()});
    let entry = entry("tokens_revoked", now, tokens.resource(), Some(&shown));
    let revocation = Revocation { tokens, revoked_at: now };
    store.revoke_tokens(&revocation, entry).await.map_err(failed)?;
    let resource = revocation.tokens.resource();
    print(&if place.json { format!("{shown}\n") } else { format!("revoked tokens of {resource}\n") });
    Ok(())
}

/// From standard input, without the line's end.
fn password() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(4_096)
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("reading the password: {error}")))?;
    let password = text.trim_end_matches(['\n', '\r']).to_owned();
    if password.len() > MAX_PASSWORD_BYTES {
        let message = format!("the password has {} bytes; at most {MAX_PASSWORD_BYTES} are taken", password.len());
        return Err(Failure::new(message).hint("shorten it"));
    }
    if password.chars().count() < MIN_PASSWORD_CHARS {
        let message = format!("the password has fewer than {MIN_PASSWORD_CHARS} characters");
        return Err(Failure::new(message).hint("several words are easy to keep and hard to guess"));
    }
    Ok(password)
}

fn context(arguments: &CallerArguments, own_id: Arc<str>, email: Option<&str>) -> Result<SecurityContext, Failure> {
    let texts = |all: &[String]| all.iter().map(|text| text.as_str().into()).collect::<Vec<Arc<str>>>();
    let mut attributes: BTreeMap<Arc<str>, Attribute> = BTreeMap::new();
    for text in &arguments.attributes {
        let (name, value) = text
            .split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .ok_or_else(|| Failure::new(format!("`{text}` is no attribute")).hint("write --attribute region=EU"))?;
        let attribute = attribute_from_text(value).map_err(|error| {
            let hint = "Write a word, or JSON: --attribute tier=1, 'tiers=[1,2]', 'code=\"[x]\"'.";
            Failure::new(format!("invalid attribute `{text}`: {error}")).hint(hint)
        })?;
        match attributes.get_mut(name) {
            None => {
                attributes.insert(name.into(), attribute);
            }
            Some(present) => {
                let values = present.values().iter().chain(attribute.values());
                *present = Attribute::Many(values.cloned().collect());
            }
        }
    }
    Ok(SecurityContext {
        user_id: arguments.user_id.as_deref().map_or(own_id, Into::into),
        email: email.map(Into::into),
        roles: texts(&arguments.roles),
        groups: texts(&arguments.groups),
        attributes,
        ..SecurityContext::default()
    })
}

fn scopes(words: &[String]) -> Result<Scopes, Failure> {
    let scope = |word: &String| {
        Scope::named(word)
            .ok_or_else(|| Failure::new(format!("`{word}` is no scope")).hint("the scopes are read, write and admin"))
    };
    words.iter().map(scope).collect()
}

fn short(text: &str, what: &str) -> Result<Arc<str>, Failure> {
    let is_good = (1..=256).contains(&text.len()) && !text.chars().any(char::is_control);
    is_good.then(|| text.into()).ok_or_else(|| Failure::new(format!("{what} has 1 to 256 bytes, on one line")))
}

fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, Failure> {
    let wrong = || Failure::new(format!("`{text}` is no length of time")).hint("write 365d, 12h, 2w or 1y");
    let span: Span = text.parse().map_err(|_| wrong())?;
    let end = now.to_zoned(TimeZone::UTC).checked_add(span).map_err(|_| wrong())?.timestamp();
    if end <= now {
        return Err(Failure::new(format!("`{text}` is over already")).hint("write 365d, 12h, 2w or 1y"));
    }
    Ok(end)
}

fn state_of(key: &ApiKey, now: Timestamp) -> &'static str {
    match key {
        ApiKey { revoked_at: Some(_), .. } => "revoked",
        ApiKey { expires_at: Some(at), .. } if *at <= now => "expired",
        _ => "good",
    }
}

fn key_json(key: &ApiKey, now: Timestamp) -> Json {
    json!({
        "id": &*key.id,
        "name": &*key.name,
        "scopes": key.scopes.names(),
        "user_id": &*key.caller.user_id,
        "roles": key.caller.roles.iter().map(|role| &**role).collect::<Vec<_>>(),
        "groups": key.caller.groups.iter().map(|group| &**group).collect::<Vec<_>>(),
        "attributes": attributes_json(&key.caller),
        "tenant": key.tenant.as_deref(),
        "created_at": key.created_at.to_string(),
        "expires_at": key.expires_at.map(|at| at.to_string()),
        "state": state_of(key, now),
    })
}

fn attributes_json(caller: &SecurityContext) -> Json {
    let attributes = caller.attributes.iter();
    Json::Object(attributes.map(|(name, attribute)| (name.to_string(), attribute_to_json(attribute))).collect())
}

fn user_json(user: &User) -> Json {
    json!({
        "username": &*user.username,
        "user_id": &*user.caller.user_id,
        "email": user.caller.email.as_deref(),
        "scopes": user.scopes.names(),
        "roles": user.caller.roles.iter().map(|role| &**role).collect::<Vec<_>>(),
        "groups": user.caller.groups.iter().map(|group| &**group).collect::<Vec<_>>(),
        "attributes": attributes_json(&user.caller),
        "tenant": user.tenant.as_deref(),
        "created_at": user.created_at.to_string(),
        "disabled_at": user.disabled_at.map(|at| at.to_string()),
    })
}

fn entry(event: &'static str, at: Timestamp, resource: String, after: Option<&Json>) -> AuditEntry {
    AuditEntry { after: after.map(|json| json.to_string().into()), ..operator_entry(event, at, resource) }
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::new(error.to_string()).hint("check `state.url`; `terrane doctor` says more")
}
