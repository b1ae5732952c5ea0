//! Use cases for API keys.

use std::sync::Arc;

use jiff::{Span, Timestamp};

use super::fields::{check_text, end_of};
use super::grants::{Change, GrantChange, Grants};
use super::records::key_details;
use super::{ATTEMPTS, AccountError, Accounts, Actor};
use crate::ports::audit::AuditEntry;
use crate::ports::credentials::{ApiKey, Rights};
use crate::security::api_key::NewKey;
use crate::security::key_user;

/// A key to create.
#[derive(Debug, Clone, Default)]
pub struct KeyRequest {
    pub name: Arc<str>,
    /// The lifetime; `None` for a key that is valid until it is revoked.
    pub lifetime: Option<Span>,
    pub grants: Grants,
}

/// A change of a key. `None` leaves a field unchanged.
#[derive(Debug, Clone, Default)]
pub struct KeyChange {
    pub name: Option<Arc<str>>,
    /// A lifetime that begins now.
    pub lifetime: Change<Span>,
    pub grants: GrantChange,
}

/// A key that was just created, with its secret, which is not stored and cannot be shown later.
#[derive(Clone)]
pub struct IssuedKey {
    pub key: ApiKey,
    pub text: String,
}

impl Accounts {
    /// Creates a key.
    ///
    /// # Errors
    /// [`AccountError::Invalid`], [`AccountError::Store`].
    pub async fn create_key(&self, actor: &Actor, request: KeyRequest) -> Result<IssuedKey, AccountError> {
        let KeyRequest { name, lifetime, grants } = request;
        check_text("name", &name)?;
        let now = self.ports.clock.now();
        let mut random = [0; 40];
        self.ports.randomness.fill(&mut random);
        let new = NewKey::from_random(&random);
        let Rights { scopes, caller, tenant } = grants.into_rights(key_user(&new.id))?;
        let key = ApiKey {
            id: new.id,
            name,
            secret_hash: new.hash,
            scopes,
            caller,
            tenant,
            created_at: now,
            expires_at: lifetime.map(|lifetime| end_of(lifetime, now)).transpose()?,
            revoked_at: None,
        };
        let after = Some(key_details(&key, now));
        let entry = AuditEntry { after, ..actor.entry("key_created", now, resource(&key.id)) };
        self.ports.credentials.add_key(&key, entry).await?;
        Ok(IssuedKey { key, text: new.text })
    }

    /// Returns all keys, newest first.
    ///
    /// # Errors
    /// [`AccountError::Store`].
    pub async fn keys(&self) -> Result<Vec<ApiKey>, AccountError> {
        Ok(self.ports.credentials.keys().await?)
    }

    /// Returns an API key.
    ///
    /// # Errors
    /// [`AccountError::UnknownKey`], [`AccountError::Store`].
    pub async fn key(&self, id: &str) -> Result<ApiKey, AccountError> {
        let found = self.ports.credentials.key(id).await?;
        found.ok_or_else(|| AccountError::UnknownKey { id: shortened(id) })
    }

    /// Changes the name, the expiry or the rights of a key that is not revoked.
    ///
    /// # Errors
    /// [`AccountError`]; nothing is changed.
    pub async fn change_key(&self, actor: &Actor, id: &str, change: KeyChange) -> Result<ApiKey, AccountError> {
        let KeyChange { name, lifetime, grants } = change;
        if name.is_none() && matches!(lifetime, Change::Keep) && grants == GrantChange::default() {
            return Err(AccountError::NothingToChange);
        }
        if let Some(name) = &name {
            check_text("name", name)?;
        }
        let now = self.ports.clock.now();
        let expires_at = match lifetime {
            Change::Keep => Change::Keep,
            Change::Remove => Change::Remove,
            Change::Set(lifetime) => Change::Set(end_of(lifetime, now)?),
        };
        self.replace_key(actor, "key_changed", id, now, |before| {
            let present = Rights { scopes: before.scopes, caller: before.caller, tenant: before.tenant };
            let Rights { scopes, caller, tenant } = grants.clone().apply(present, key_user(&before.id))?;
            let name = name.clone().unwrap_or(before.name);
            let expires_at = expires_at.clone().apply(before.expires_at);
            Ok(ApiKey { name, scopes, caller, tenant, expires_at, ..before })
        })
        .await
    }

    /// Revokes a key at once.
    ///
    /// # Errors
    /// [`AccountError`]; nothing is changed.
    pub async fn revoke_key(&self, actor: &Actor, id: &str) -> Result<ApiKey, AccountError> {
        let now = self.ports.clock.now();
        self.replace_key(actor, "key_revoked", id, now, |before| Ok(ApiKey { revoked_at: Some(now), ..before })).await
    }

    async fn replace_key(
        &self,
        actor: &Actor,
        event: &'static str,
        id: &str,
        now: Timestamp,
        change: impl Fn(ApiKey) -> Result<ApiKey, AccountError>,
    ) -> Result<ApiKey, AccountError> {
        for _ in 0..ATTEMPTS {
            let before = self.key(id).await?;
            if before.revoked_at.is_some() {
                return Err(AccountError::RevokedKey { id: before.id });
            }
            let after = change(before.clone())?;
            if after == before {
                return Ok(after);
            }
            let details = |key: &ApiKey| Some(key_details(key, now));
            let entry = actor.entry(event, now, resource(&before.id));
            let entry = AuditEntry { before: details(&before), after: details(&after), ..entry };
            if self.ports.credentials.replace_key(&before, &after, entry).await? {
                self.cache.keys.forget(&after.id);
                return Ok(after);
            }
        }
        Err(AccountError::Contended)
    }
}

fn resource(id: &str) -> String {
    format!("key:{id}")
}

/// Returns an id from a request, cut to 100 characters for messages.
pub(super) fn shortened(text: &str) -> Arc<str> {
    text.chars().take(100).collect::<String>().into()
}
