//! `terrane auth`: API keys, users, sessions and tokens of applications, in the state database of this machine.
//!
//! In: arguments, a password on standard input. Out: the account after the change, as text or as one JSON object. The
//! rules and the audit records are those of `app::accounts`; the actor is the operating system's user.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Subcommand, ValueEnum};
use jiff::{Span, Timestamp};
use serde_json::{Value as Json, json};
use terrane_app::accounts::{
    AccountError, AccountPorts, Accounts, Actor, Change, ChangedUser, FieldProblem, GrantChange, Grants, KeyChange,
    KeyRequest, KeyState, UserChange, UserRequest, parse_lifetime,
};
use terrane_app::ports::clock::Clock;
use terrane_app::ports::credentials::{ApiKey, RevokedTokens, User};
use terrane_app::security::{Scope, Scopes};
use terrane_compiler::Attribute;
use terrane_identity::{Argon2Passwords, OsRandomness};
use terrane_json::accounts::{key_to_json, user_to_json};
use terrane_json::caller::attribute_from_text;

use super::{operator, print, print_error};
use crate::clock::SystemClock;
use crate::failure::Failure;
use crate::project::Project;
use crate::wiring;

/// The largest number of bytes that are read from standard input; passwords are shorter.
const MAX_INPUT_BYTES: u64 = 4_096;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  terrane auth create-key --name dashboards --expires 365d
  terrane auth create-key --name etl --scopes read,write --roles loader my-project
  terrane auth change-key --scopes read --expires 30d 0f3c9a5b1d2e4f60
  terrane auth revoke-key 0f3c9a5b1d2e4f60
  printf %s \"$PASSWORD\" | terrane auth create-user --password-stdin --roles analyst --attribute region=EU ada
  printf %s \"$PASSWORD\" | terrane auth change-password --password-stdin ada
  terrane auth change-user --roles analyst,manager --clear attributes ada
  terrane auth end-sessions corp:248289761001
  terrane auth revoke-tokens --sub customer-17
  terrane auth create-key --name tiers --attribute 'tiers=[1,2]' --attribute 'code=\"007\"'

A running server notices a change within two seconds. A change of a user ends the user's sessions. Callers who sign in
through an identity provider, or send its tokens, need no user here: see `security.oauth` and `security.jwt` in
runtime/docs/reference/settings.md.")]
pub struct AuthArguments {
    #[command(subcommand)]
    pub action: AuthAction,
}

#[derive(Debug, Subcommand)]
pub enum AuthAction {
    /// Create an API key, which is shown once
    CreateKey {
        #[command(flatten)]
        place: PlaceArguments,
        /// The purpose of the key
        #[arg(long)]
        name: String,
        /// The lifetime, such as 365d, 12h or 2w; default: until the key is revoked
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
    /// Change the name, the expiry or the rights of an API key
    ChangeKey {
        /// The 16 digits after `trn_`
        id: String,
        #[command(flatten)]
        place: PlaceArguments,
        /// The new purpose of the key
        #[arg(long)]
        name: Option<String>,
        /// The lifetime, from now, such as 365d, 12h or 2w
        #[arg(long)]
        expires: Option<String>,
        /// Remove the expiry
        #[arg(long, conflicts_with = "expires")]
        never_expires: bool,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Revoke an API key
    RevokeKey {
        /// The 16 digits after `trn_`
        id: String,
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// Create a user who signs in with a password
    CreateUser {
        /// The name to sign in with
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
        /// Read the password from standard input
        #[arg(long, required = true)]
        password_stdin: bool,
        #[command(flatten)]
        caller: CallerArguments,
    },
    /// List users
    ListUsers {
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// Change the rights of a user, and end the user's sessions
    ChangeUser {
        /// The name to sign in with
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
        #[command(flatten)]
        change: ChangeArguments,
    },
    /// Change the password of a user, and end the user's sessions
    ChangePassword {
        /// The name to sign in with
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
        /// Read the password from standard input
        #[arg(long, required = true)]
        password_stdin: bool,
    },
    /// Disable a user, and end the user's sessions
    DisableUser {
        /// The name to sign in with
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
    },
    /// Enable a user who was disabled
    EnableUser {
        /// The name to sign in with
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
    /// End the sessions of a user, who may sign in again
    EndSessions {
        /// A user, or `provider:subject` of a caller who signed in through an identity provider
        username: String,
        #[command(flatten)]
        place: PlaceArguments,
    },
}

#[derive(Debug, clap::Args)]
pub struct PlaceArguments {
    /// The project folder, which contains service_project.yml
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
}

/// The tokens to revoke.
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

/// The rights of a new account.
#[derive(Debug, clap::Args)]
pub struct CallerArguments {
    /// The scopes: read, write, admin
    #[arg(long, value_delimiter = ',', default_value = "read")]
    pub scopes: Vec<String>,
    /// The roles that policies see
    #[arg(long, value_delimiter = ',')]
    pub roles: Vec<String>,
    /// The groups that policies see
    #[arg(long, value_delimiter = ',')]
    pub groups: Vec<String>,
    /// name=value: a word, or JSON such as 1, true, "007" or [1,2]; a repeated name makes a list
    #[arg(long = "attribute")]
    pub attributes: Vec<String>,
    /// The e-mail address that policies see
    #[arg(long)]
    pub email: Option<String>,
    /// The user id that policies see; default: the id of the key or the user
    #[arg(long)]
    pub user_id: Option<String>,
    /// The tenant of the account
    #[arg(long)]
    pub tenant: Option<String>,
}

/// A change of rights. Omitted fields are unchanged.
#[derive(Debug, clap::Args)]
pub struct ChangeArguments {
    /// All scopes after the change: read, write, admin
    #[arg(long, value_delimiter = ',')]
    pub scopes: Option<Vec<String>>,
    /// All roles after the change
    #[arg(long, value_delimiter = ',')]
    pub roles: Option<Vec<String>>,
    /// All groups after the change
    #[arg(long, value_delimiter = ',')]
    pub groups: Option<Vec<String>>,
    /// All attributes after the change, as name=value; repeat it for several attributes
    #[arg(long = "attribute")]
    pub attributes: Option<Vec<String>>,
    /// The e-mail address that policies see
    #[arg(long)]
    pub email: Option<String>,
    /// The user id that policies see
    #[arg(long)]
    pub user_id: Option<String>,
    /// The tenant of the account
    #[arg(long)]
    pub tenant: Option<String>,
    /// Remove these values; `user-id` restores the default
    #[arg(long, value_enum, value_delimiter = ',')]
    pub clear: Vec<Clearable>,
}

/// A field that an account can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Clearable {
    Roles,
    Groups,
    Attributes,
    Email,
    UserId,
    Tenant,
}

impl AuthAction {
    /// Returns the project's folder.
    pub fn dir(&self) -> &PathBuf {
        match self {
            AuthAction::CreateKey { place, .. }
            | AuthAction::ListKeys { place }
            | AuthAction::ChangeKey { place, .. }
            | AuthAction::RevokeKey { place, .. }
            | AuthAction::CreateUser { place, .. }
            | AuthAction::ListUsers { place }
            | AuthAction::ChangeUser { place, .. }
            | AuthAction::ChangePassword { place, .. }
            | AuthAction::DisableUser { place, .. }
            | AuthAction::EnableUser { place, .. }
            | AuthAction::RevokeTokens { place, .. }
            | AuthAction::EndSessions { place, .. } => &place.dir,
        }
    }
}

/// Performs one action on the state database.
///
/// # Errors
/// The database cannot be opened, or an argument is not accepted.
pub async fn run(arguments: &AuthArguments, project: &Project) -> Result<(), Failure> {
    let store = wiring::state(project).await?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let accounts = Accounts::new(AccountPorts {
        credentials: store,
        passwords: Arc::new(Argon2Passwords::default()),
        randomness: Arc::new(OsRandomness),
        clock: clock.clone(),
    });
    let actor = operator();
    match &arguments.action {
        AuthAction::CreateKey { place, name, expires, caller } => {
            let lifetime = expires.as_deref().map(lifetime).transpose()?;
            let request = KeyRequest { name: name.as_str().into(), lifetime, grants: grants(caller)? };
            let issued = accounts.create_key(&actor, request).await.map_err(failed)?;
            print(&issued_text(place, &issued.key, &issued.text, clock.now()));
        }
        AuthAction::ListKeys { place } => {
            print(&keys_text(place, &accounts.keys().await.map_err(failed)?, clock.now()));
        }
        AuthAction::ChangeKey { id, place, name, expires, never_expires, change } => {
            let lifetime = match expires {
                Some(expires) => Change::Set(lifetime(expires)?),
                None if *never_expires => Change::Remove,
                None => Change::Keep,
            };
            let change = KeyChange { name: name.as_deref().map(Into::into), lifetime, grants: grant_change(change)? };
            let key = accounts.change_key(&actor, id, change).await.map_err(failed)?;
            print(&line(place, &key_to_json(&key, clock.now()), &format!("changed key {id}")));
        }
        AuthAction::RevokeKey { id, place } => {
            let key = accounts.revoke_key(&actor, id).await.map_err(failed)?;
            print(&line(place, &key_to_json(&key, clock.now()), &format!("revoked key {id}")));
        }
        AuthAction::CreateUser { username, place, caller, .. } => {
            let username = username.as_str().into();
            let request = UserRequest { username, password: password()?, grants: grants(caller)? };
            let user = accounts.create_user(&actor, request).await.map_err(failed)?;
            print(&line(place, &user_to_json(&user), &format!("created user {}", user.username)));
            if !project.config.security.jwt.is_signing() {
                print_error(&format!(
                    "warning: this server issues no tokens, so {} cannot sign in\n  hint: set security.jwt.secret, at \
                     least 32 bytes, for example SERVICE_SECURITY__JWT_SECRET=$(openssl rand -base64 48)\n",
                    user.username
                ));
            }
        }
        AuthAction::ListUsers { place } => print(&users_text(place, &accounts.users().await.map_err(failed)?)),
        AuthAction::ChangeUser { username, place, change } => {
            let change = UserChange { grants: grant_change(change)?, ..UserChange::default() };
            let changed = accounts.change_user(&actor, username, change).await.map_err(failed)?;
            print(&changed_text(place, &changed, "changed user"));
        }
        AuthAction::ChangePassword { username, place, .. } => {
            let change = UserChange { password: Some(password()?), ..UserChange::default() };
            let changed = accounts.change_user(&actor, username, change).await.map_err(failed)?;
            print(&changed_text(place, &changed, "changed the password of user"));
        }
        AuthAction::DisableUser { username, place } => {
            let changed = accounts.disable_user(&actor, username).await.map_err(failed)?;
            print(&changed_text(place, &changed, "disabled user"));
        }
        AuthAction::EnableUser { username, place } => {
            let change = UserChange { disabled: Some(false), ..UserChange::default() };
            let changed = accounts.change_user(&actor, username, change).await.map_err(failed)?;
            print(&changed_text(place, &changed, "enabled user"));
        }
        AuthAction::RevokeTokens { place, tokens } => revoke_tokens(&accounts, &actor, place, tokens).await?,
        AuthAction::EndSessions { username, place } => {
            let ended = accounts.end_sessions(&actor, username).await.map_err(failed)?;
            let shown = json!({"username": username, "ended": ended});
            print(&line(place, &shown, &format!("ended {} of {username}", sessions(ended))));
        }
    }
    Ok(())
}

async fn revoke_tokens(
    accounts: &Accounts,
    actor: &Actor,
    place: &PlaceArguments,
    arguments: &TokenArguments,
) -> Result<(), Failure> {
    let tokens = match (&arguments.jti, &arguments.subject) {
        (Some(id), _) => RevokedTokens::Token(claim(id, "--jti")?),
        (None, subject) => RevokedTokens::Subject(claim(subject.as_deref().unwrap_or_default(), "--sub")?),
    };
    let revocation = accounts.revoke_tokens(actor, tokens).await.map_err(failed)?;
    let revoked_at = revocation.revoked_at.to_string();
    let shown = json!({"jti": arguments.jti, "sub": arguments.subject, "revoked_at": revoked_at});
    let what = match (&arguments.jti, &arguments.subject) {
        (Some(id), _) => format!("the token with jti {id}"),
        (None, subject) => format!("all tokens of {}", subject.as_deref().unwrap_or_default()),
    };
    print(&line(place, &shown, &format!("revoked {what}")));
    Ok(())
}

/// Returns the JSON or the text on one line.
fn line(place: &PlaceArguments, json: &Json, text: &str) -> String {
    if place.json { format!("{json}\n") } else { format!("{text}\n") }
}

fn issued_text(place: &PlaceArguments, key: &ApiKey, text: &str, now: Timestamp) -> String {
    if place.json {
        let mut shown = key_to_json(key, now);
        shown["key"] = text.into();
        return format!("{shown}\n");
    }
    let (name, scopes) = (&key.name, key.scopes.names().join(", "));
    format!(
        "key:     {text}\nname:    {name}\nexpires: {}\nscopes:  {scopes}\n\nThe key is not shown again.\n",
        expiry_text(key)
    )
}

fn keys_text(place: &PlaceArguments, keys: &[ApiKey], now: Timestamp) -> String {
    if place.json {
        let keys: Vec<Json> = keys.iter().map(|key| key_to_json(key, now)).collect();
        return format!("{}\n", json!({ "keys": keys }));
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["ID", "NAME", "SCOPES", "EXPIRES", "STATE"]);
    for key in keys {
        let (scopes, state) = (key.scopes.names().join(","), KeyState::at(key, now).as_str());
        table.add_row([&*key.id, &*key.name, &scopes, &expiry_text(key), state]);
    }
    format!("{table}\n")
}

fn expiry_text(key: &ApiKey) -> String {
    key.expires_at.map_or_else(|| "never".to_owned(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

fn users_text(place: &PlaceArguments, users: &[User]) -> String {
    if place.json {
        return format!("{}\n", json!({ "users": users.iter().map(user_to_json).collect::<Vec<_>>() }));
    }
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING).set_header(["USER", "SCOPES", "ROLES", "STATE"]);
    for user in users {
        let state = if user.disabled_at.is_some() { "disabled" } else { "active" };
        table.add_row([&*user.username, &user.scopes.names().join(","), &user.caller.roles.join(","), state]);
    }
    format!("{table}\n")
}

fn changed_text(place: &PlaceArguments, changed: &ChangedUser, done: &str) -> String {
    let ChangedUser { user, ended_sessions } = changed;
    let mut shown = user_to_json(user);
    shown["ended_sessions"] = (*ended_sessions).into();
    let ended = if *ended_sessions > 0 { format!("; ended {}", sessions(*ended_sessions)) } else { String::new() };
    line(place, &shown, &format!("{done} {}{ended}", user.username))
}

fn sessions(number: u64) -> String {
    format!("{number} {}", if number == 1 { "session" } else { "sessions" })
}

/// Reads standard input, without the end of the line.
fn password() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .take(MAX_INPUT_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("reading the password: {error}")))?;
    Ok(text.trim_end_matches(['\n', '\r']).to_owned())
}

fn grants(arguments: &CallerArguments) -> Result<Grants, Failure> {
    Ok(Grants {
        scopes: scopes(&arguments.scopes)?,
        user_id: arguments.user_id.as_deref().map(Into::into),
        email: arguments.email.as_deref().map(Into::into),
        roles: texts(&arguments.roles),
        groups: texts(&arguments.groups),
        attributes: attributes(&arguments.attributes)?,
        tenant: arguments.tenant.as_deref().map(Into::into),
    })
}

fn grant_change(arguments: &ChangeArguments) -> Result<GrantChange, Failure> {
    let ChangeArguments { scopes: words, roles, groups, attributes: pairs, email, user_id, tenant, clear } = arguments;
    let contradictions = [
        (Clearable::Roles, roles.is_some()),
        (Clearable::Groups, groups.is_some()),
        (Clearable::Attributes, pairs.is_some()),
        (Clearable::Email, email.is_some()),
        (Clearable::UserId, user_id.is_some()),
        (Clearable::Tenant, tenant.is_some()),
    ];
    if let Some((field, _)) = contradictions.iter().find(|(field, is_set)| *is_set && clear.contains(field)) {
        let name = field.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        return Err(Failure::new(format!("`{name}` is both set and cleared"))
            .hint("Give the new value or `--clear`, not both."));
    }
    let is_cleared = |field| clear.contains(&field);
    let text = |given: &Option<String>, field| match given {
        Some(text) => Change::Set(text.as_str().into()),
        None if is_cleared(field) => Change::Remove,
        None => Change::Keep,
    };
    let list = |given: &Option<Vec<String>>, field| match given {
        Some(given) => Some(texts(given)),
        None => is_cleared(field).then(Vec::new),
    };
    Ok(GrantChange {
        scopes: words.as_deref().map(scopes).transpose()?,
        user_id: text(user_id, Clearable::UserId),
        email: text(email, Clearable::Email),
        roles: list(roles, Clearable::Roles),
        groups: list(groups, Clearable::Groups),
        attributes: match pairs {
            Some(pairs) => Some(attributes(pairs)?),
            None => is_cleared(Clearable::Attributes).then(BTreeMap::new),
        },
        tenant: text(tenant, Clearable::Tenant),
    })
}

fn texts(all: &[String]) -> Vec<Arc<str>> {
    all.iter().map(|text| text.as_str().into()).collect()
}

/// Reads `name=value` pairs. The values of pairs with the same name form a list.
fn attributes(pairs: &[String]) -> Result<BTreeMap<Arc<str>, Attribute>, Failure> {
    let mut attributes: BTreeMap<Arc<str>, Attribute> = BTreeMap::new();
    for text in pairs {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        let (name, value) = pair.ok_or_else(|| {
            Failure::new(format!("invalid attribute `{text}`: expected name=value"))
                .hint("Write --attribute region=EU.")
        })?;
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
    Ok(attributes)
}

fn scopes(words: &[String]) -> Result<Scopes, Failure> {
    let scope = |word: &String| {
        let unknown = || Failure::new(format!("unknown scope `{word}`")).hint("The scopes are read, write and admin.");
        Scope::named(word).ok_or_else(unknown)
    };
    words.iter().map(scope).collect()
}

fn claim(text: &str, argument: &str) -> Result<Arc<str>, Failure> {
    let is_good = (1..=256).contains(&text.len()) && !text.chars().any(char::is_control);
    is_good.then(|| text.into()).ok_or_else(|| Failure::new(format!("invalid `{argument}`: {}", FieldProblem::Text)))
}

fn lifetime(text: &str) -> Result<Span, Failure> {
    parse_lifetime(text).map_err(|problem| Failure::new(format!("invalid `--expires` `{text}`: {problem}")))
}

fn failed(error: AccountError) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        AccountError::UnknownKey { .. } | AccountError::RevokedKey { .. } => failure
            .hint("Name the key by its ID, the 16 digits after `trn_`; `terrane auth list-keys DIR` lists the keys."),
        AccountError::UnknownUser { .. } | AccountError::UserExists { .. } | AccountError::DisabledUser { .. } => {
            failure.hint("`terrane auth list-users DIR` lists the users.")
        }
        AccountError::Invalid { problem: FieldProblem::ShortPassword { .. }, .. } => {
            failure.hint("Use several words, which are easy to remember and hard to guess.")
        }
        AccountError::NothingToChange => failure.hint("Give a new value, or `--clear`."),
        AccountError::Contended => failure.hint("Repeat the command."),
        AccountError::Invalid { .. } => failure,
        AccountError::NotHashed => failure,
        AccountError::Store(_) => failure.hint("Check `state.url`; `terrane doctor` reports details."),
    }
}
