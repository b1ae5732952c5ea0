//! Use cases for users who sign in with a password.

use std::sync::Arc;

use jiff::Timestamp;

use super::fields::{check_password, check_username};
use super::grants::{GrantChange, Grants};
use super::keys::shortened;
use super::records::{user_details, user_with_password};
use super::{ATTEMPTS, AccountError, Accounts, Actor};
use crate::ports::audit::AuditEntry;
use crate::ports::credentials::{Rights, User};

/// A user to create.
#[derive(Clone, Default)]
pub struct UserRequest {
    pub username: Arc<str>,
    pub password: String,
    pub grants: Grants,
}

/// A change of a user. `None` leaves a field unchanged.
#[derive(Clone, Default)]
pub struct UserChange {
    pub password: Option<String>,
    pub disabled: Option<bool>,
    pub grants: GrantChange,
}

/// A user after a change.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedUser {
    pub user: User,
    /// The number of the user's sessions that the change ended.
    pub ended_sessions: u64,
}

impl Accounts {
    /// Creates a user.
    ///
    /// # Errors
    /// [`AccountError::Invalid`], [`AccountError::UserExists`], [`AccountError::Store`].
    pub async fn create_user(&self, actor: &Actor, request: UserRequest) -> Result<User, AccountError> {
        let UserRequest { username, password, grants } = request;
        check_username(&username)?;
        check_password(&password)?;
        let Rights { scopes, caller, tenant } = grants.into_rights(username.clone())?;
        let now = self.ports.clock.now();
        let password_hash = self.hash(&password).await?;
        let user = User { username, password_hash, scopes, caller, tenant, created_at: now, disabled_at: None };
        let after = Some(user_details(&user));
        let entry = AuditEntry { after, ..actor.entry("user_created", now, resource(&user.username)) };
        if self.ports.credentials.add_user(&user, entry).await? {
            Ok(user)
        } else {
            Err(AccountError::UserExists { username: user.username })
        }
    }

    /// Returns all users, by name.
    ///
    /// # Errors
    /// [`AccountError::Store`].
    pub async fn users(&self) -> Result<Vec<User>, AccountError> {
        Ok(self.ports.credentials.users().await?)
    }

    /// Returns a user.
    ///
    /// # Errors
    /// [`AccountError::UnknownUser`], [`AccountError::Store`].
    pub async fn user(&self, username: &str) -> Result<User, AccountError> {
        let found = self.ports.credentials.user(username).await?;
        found.ok_or_else(|| AccountError::UnknownUser { username: shortened(username) })
    }

    /// Changes the password or the rights of a user, or disables or enables the user. Each change ends the user's
    /// sessions.
    ///
    /// # Errors
    /// [`AccountError`]; nothing is changed.
    pub async fn change_user(
        &self,
        actor: &Actor,
        username: &str,
        change: UserChange,
    ) -> Result<ChangedUser, AccountError> {
        let UserChange { password, disabled, grants } = change;
        if password.is_none() && disabled.is_none() && grants == GrantChange::default() {
            return Err(AccountError::NothingToChange);
        }
        let now = self.ports.clock.now();
        let password_hash = match &password {
            Some(password) => {
                check_password(password)?;
                // Checks the name before the password is hashed, because hashing is slow on purpose.
                self.user(username).await?;
                Some(self.hash(password).await?)
            }
            None => None,
        };
        self.replace_user(actor, username, now, |before| {
            let present = Rights { scopes: before.scopes, caller: before.caller, tenant: before.tenant };
            let Rights { scopes, caller, tenant } = grants.clone().apply(present, before.username.clone())?;
            let password_hash = password_hash.clone().unwrap_or(before.password_hash);
            let disabled_at = match disabled {
                None => before.disabled_at,
                Some(true) => before.disabled_at.or(Some(now)),
                Some(false) => None,
            };
            Ok(User { password_hash, scopes, caller, tenant, disabled_at, ..before })
        })
        .await
    }

    /// Disables a user. The name stays taken, because policies and audit records refer to it.
    ///
    /// # Errors
    /// [`AccountError`]; nothing is changed.
    pub async fn disable_user(&self, actor: &Actor, username: &str) -> Result<ChangedUser, AccountError> {
        let now = self.ports.clock.now();
        self.replace_user(actor, username, now, |before| match before.disabled_at {
            Some(_) => Err(AccountError::DisabledUser { username: before.username }),
            None => Ok(User { disabled_at: Some(now), ..before }),
        })
        .await
    }

    async fn replace_user(
        &self,
        actor: &Actor,
        username: &str,
        now: Timestamp,
        change: impl Fn(User) -> Result<User, AccountError>,
    ) -> Result<ChangedUser, AccountError> {
        for _ in 0..ATTEMPTS {
            let before = self.user(username).await?;
            let after = change(before.clone())?;
            if after == before {
                return Ok(ChangedUser { user: after, ended_sessions: 0 });
            }
            let event = match (before.disabled_at, after.disabled_at) {
                (None, Some(_)) => "user_disabled",
                (Some(_), None) => "user_enabled",
                _ => "user_changed",
            };
            let details = if after.password_hash == before.password_hash { user_details } else { user_with_password };
            let entry = actor.entry(event, now, resource(&before.username));
            let entry = AuditEntry { before: Some(user_details(&before)), after: Some(details(&after)), ..entry };
            if let Some(ended_sessions) = self.ports.credentials.replace_user(&before, &after, entry).await? {
                self.cache.sessions.forget_all();
                return Ok(ChangedUser { user: after, ended_sessions });
            }
        }
        Err(AccountError::Contended)
    }

    async fn hash(&self, password: &str) -> Result<Arc<str>, AccountError> {
        let hash = self.ports.passwords.hash(password).await;
        // The hasher returns an empty hash if it fails; no password matches an empty hash.
        if hash.is_empty() { Err(AccountError::NotHashed) } else { Ok(hash) }
    }
}

fn resource(username: &str) -> String {
    format!("user:{username}")
}
