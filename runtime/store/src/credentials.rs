//! Keys, users and sessions in SQLite. Each change and its audit record are one transaction.

use async_trait::async_trait;
use jiff::Timestamp;
use sqlx::{Sqlite, Transaction};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{ApiKey, Credentials, RefreshToken, Rotation, Session, User};
use terrane_app::ports::store::StoreError;
use terrane_app::security::api_key::SecretHash;

use crate::audit::append_in;
use crate::row::{self, failed, hex, micros, words};
use crate::sqlite::SqliteStore;

impl SqliteStore {
    /// SQLite has one writer: who begins at once never finds that another came between.
    pub(crate) async fn change(&self) -> Result<Transaction<'_, Sqlite>, StoreError> {
        self.pool.begin_with("BEGIN IMMEDIATE").await.map_err(failed)
    }
}

#[async_trait]
impl Credentials for SqliteStore {
    async fn add_key(&self, key: &ApiKey, entry: AuditEntry) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let insert = sqlx::query(
            "INSERT INTO api_keys (id, name, secret_hash, scopes, caller, tenant, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        );
        let insert = insert.bind(&*key.id).bind(&*key.name).bind(hex(&key.secret_hash)).bind(words(key.scopes));
        let insert = insert.bind(row::caller_json(&key.caller).to_string()).bind(key.tenant.as_deref());
        let insert = insert.bind(micros(key.created_at)).bind(key.expires_at.map(micros));
        insert.execute(&mut *change).await.map_err(failed)?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await.map_err(failed)
    }

    async fn key(&self, id: &str) -> Result<Option<ApiKey>, StoreError> {
        let found = sqlx::query("SELECT * FROM api_keys WHERE id = $1").bind(id);
        let found = found.fetch_optional(&self.pool).await.map_err(failed)?;
        found.as_ref().map(row::api_key).transpose()
    }

    async fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let rows = sqlx::query("SELECT * FROM api_keys ORDER BY created_at DESC, id");
        let rows = rows.fetch_all(&self.pool).await.map_err(failed)?;
        rows.iter().map(row::api_key).collect()
    }

    async fn revoke_key(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let update = sqlx::query("UPDATE api_keys SET revoked_at = $1 WHERE id = $2 AND revoked_at IS NULL");
        let update = update.bind(micros(at)).bind(id).execute(&mut *change).await.map_err(failed)?;
        finish(change, update.rows_affected() > 0, entry).await
    }

    async fn add_user(&self, user: &User, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let insert = sqlx::query(
            "INSERT INTO users (username, password_hash, scopes, caller, tenant, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(&*user.username).bind(&*user.password_hash).bind(words(user.scopes));
        let insert = insert.bind(row::caller_json(&user.caller).to_string()).bind(user.tenant.as_deref());
        let insert = insert.bind(micros(user.created_at)).execute(&mut *change).await.map_err(failed)?;
        finish(change, insert.rows_affected() > 0, entry).await
    }

    async fn user(&self, username: &str) -> Result<Option<User>, StoreError> {
        let found = sqlx::query("SELECT * FROM users WHERE username = $1").bind(username);
        let found = found.fetch_optional(&self.pool).await.map_err(failed)?;
        found.as_ref().map(row::user).transpose()
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        let rows = sqlx::query("SELECT * FROM users ORDER BY username").fetch_all(&self.pool).await.map_err(failed)?;
        rows.iter().map(row::user).collect()
    }

    async fn disable_user(&self, username: &str, at: Timestamp, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let update = sqlx::query("UPDATE users SET disabled_at = $1 WHERE username = $2 AND disabled_at IS NULL");
        let update = update.bind(micros(at)).bind(username).execute(&mut *change).await.map_err(failed)?;
        let end = sqlx::query("UPDATE sessions SET ended_at = $1 WHERE username = $2 AND ended_at IS NULL");
        end.bind(micros(at)).bind(username).execute(&mut *change).await.map_err(failed)?;
        finish(change, update.rows_affected() > 0, entry).await
    }

    async fn begin_session(
        &self,
        session: &Session,
        token: &RefreshToken,
        entry: AuditEntry,
    ) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let insert = sqlx::query(
            "INSERT INTO sessions (id, username, created_at, caller, scopes, tenant) VALUES ($1, $2, $3, $4, $5, $6)",
        );
        let guest = session.guest.as_ref();
        let insert = insert.bind(&*session.id).bind(&*session.username).bind(micros(session.created_at));
        let insert = insert.bind(guest.map(|guest| row::caller_json(&guest.caller).to_string()));
        let insert = insert.bind(guest.map(|guest| words(guest.scopes)));
        let insert = insert.bind(guest.and_then(|guest| guest.tenant.as_deref()));
        insert.execute(&mut *change).await.map_err(failed)?;
        insert_token(&mut change, token, &session.id).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await.map_err(failed)
    }

    async fn session(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let found = sqlx::query("SELECT * FROM sessions WHERE id = $1").bind(id);
        let found = found.fetch_optional(&self.pool).await.map_err(failed)?;
        found.as_ref().map(row::session).transpose()
    }

    async fn rotate(
        &self,
        used: &SecretHash,
        next: &RefreshToken,
        now: Timestamp,
        entry: AuditEntry,
    ) -> Result<Rotation, StoreError> {
        let mut change = self.change().await?;
        let found = sqlx::query(
            "SELECT s.*, t.expires_at, t.used_at FROM refresh_tokens AS t JOIN sessions AS s ON s.id = t.session_id \
             WHERE t.hash = $1",
        );
        let found = found.bind(hex(used)).fetch_optional(&mut *change).await.map_err(failed)?;
        let Some(found) = found else { return Ok(Rotation::Refused) };
        let session = row::session(&found)?;
        let was_used = sqlx::Row::try_get::<Option<i64>, _>(&found, "used_at").map_err(failed)?.is_some();
        let expires_at: i64 = sqlx::Row::try_get(&found, "expires_at").map_err(failed)?;
        if session.ended_at.is_some() {
            return Ok(Rotation::Refused);
        }
        let entry =
            AuditEntry { actor: session.username.clone(), resource: format!("session:{}", session.id).into(), ..entry };
        // Also an expired one: it was used, so somebody kept a copy.
        if was_used {
            end(&mut change, &session.id, now).await?;
            let reason = Some("a refresh token was used twice".into());
            append_in(&mut change, vec![AuditEntry { event: "session_ended".into(), reason, ..entry }]).await?;
            change.commit().await.map_err(failed)?;
            return Ok(Rotation::Reused(session));
        }
        if expires_at <= micros(now) {
            return Ok(Rotation::Refused);
        }
        let update = sqlx::query("UPDATE refresh_tokens SET used_at = $1 WHERE hash = $2");
        update.bind(micros(now)).bind(hex(used)).execute(&mut *change).await.map_err(failed)?;
        insert_token(&mut change, next, &session.id).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await.map_err(failed)?;
        Ok(Rotation::Rotated(session))
    }

    async fn session_of(&self, token: &SecretHash) -> Result<Option<Session>, StoreError> {
        let found = sqlx::query(
            "SELECT s.* FROM refresh_tokens AS t JOIN sessions AS s ON s.id = t.session_id WHERE t.hash = $1",
        );
        let found = found.bind(hex(token)).fetch_optional(&self.pool).await.map_err(failed)?;
        found.as_ref().map(row::session).transpose()
    }

    async fn end_session(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        end(&mut change, id, at).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await.map_err(failed)
    }

    async fn end_sessions(&self, username: &str, at: Timestamp, entry: AuditEntry) -> Result<u64, StoreError> {
        let mut change = self.change().await?;
        let end = sqlx::query("UPDATE sessions SET ended_at = $1 WHERE username = $2 AND ended_at IS NULL");
        let ended = end.bind(micros(at)).bind(username).execute(&mut *change).await.map_err(failed)?.rows_affected();
        finish(change, ended > 0, entry).await?;
        Ok(ended)
    }
}

async fn insert_token(
    change: &mut Transaction<'_, Sqlite>,
    token: &RefreshToken,
    session_id: &str,
) -> Result<(), StoreError> {
    let insert = sqlx::query("INSERT INTO refresh_tokens (hash, session_id, expires_at) VALUES ($1, $2, $3)");
    let insert = insert.bind(hex(&token.hash)).bind(session_id).bind(micros(token.expires_at));
    insert.execute(&mut **change).await.map(|_| ()).map_err(failed)
}

async fn end(change: &mut Transaction<'_, Sqlite>, id: &str, at: Timestamp) -> Result<(), StoreError> {
    let update = sqlx::query("UPDATE sessions SET ended_at = $1 WHERE id = $2 AND ended_at IS NULL");
    update.bind(micros(at)).bind(id).execute(&mut **change).await.map(|_| ()).map_err(failed)
}

/// What changed nothing leaves no record.
async fn finish(mut change: Transaction<'_, Sqlite>, has_changed: bool, entry: AuditEntry) -> Result<bool, StoreError> {
    if has_changed {
        append_in(&mut change, vec![entry]).await?;
        change.commit().await.map_err(failed)?;
    }
    Ok(has_changed)
}
