//! Keys, users and sessions. Each change and its audit record are one transaction.

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::domain::SecretHash;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::credentials::{
    ApiKey, Credentials, RefreshToken, Revocation, RevokedTokens, Rights, Rotation, Session, User,
};
use terrane_app::ports::store::StoreError;

use crate::audit::append_in;
use crate::database::{Row, Transaction};
use crate::row::{self, hex, micros, words};
use crate::statement::Statement;
use crate::store::StateStore;

#[async_trait]
impl Credentials for StateStore {
    async fn add_key(&self, key: &ApiKey, entry: AuditEntry) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        let insert = Statement::new(
            "INSERT INTO api_keys (id, name, secret_hash, scopes, caller, tenant, created_at, expires_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        );
        let insert = insert.bind(&*key.id).bind(&*key.name).bind(&*hex(&key.secret_hash)).bind(&*words(key.scopes));
        let insert = insert.bind(&*row::caller_text(&key.caller)).bind(key.tenant.as_deref());
        let insert = insert.bind(micros(key.created_at)).bind(key.expires_at.map(micros));
        change.execute(insert).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await
    }

    async fn key(&self, id: &str) -> Result<Option<ApiKey>, StoreError> {
        let found = Statement::new("SELECT * FROM api_keys WHERE id = $1").bind(id);
        let found = self.database.optional(found).await?;
        found.as_ref().map(row::api_key).transpose()
    }

    async fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        let rows = Statement::new("SELECT * FROM api_keys ORDER BY created_at DESC, id");
        let rows = self.database.all(rows).await?;
        rows.iter().map(row::api_key).collect()
    }

    async fn replace_key(&self, before: &ApiKey, after: &ApiKey, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let found = Statement::new("SELECT * FROM api_keys WHERE id = $1").bind(&*before.id);
        let found = change.optional(found).await?.as_ref().map(row::api_key).transpose()?;
        if found.as_ref() != Some(before) {
            return Ok(false);
        }
        let update = Statement::new(
            "UPDATE api_keys SET name = $1, scopes = $2, caller = $3, tenant = $4, expires_at = $5, revoked_at = $6 \
             WHERE id = $7",
        );
        let update = update.bind(&*after.name).bind(&*words(after.scopes)).bind(&*row::caller_text(&after.caller));
        let update = update.bind(after.tenant.as_deref()).bind(after.expires_at.map(micros));
        let updated = change.execute(update.bind(after.revoked_at.map(micros)).bind(&*before.id)).await?;
        finish(change, updated > 0, entry).await
    }

    async fn add_user(&self, user: &User, entry: AuditEntry) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let insert = Statement::new(
            "INSERT INTO users (username, password_hash, scopes, caller, tenant, created_at) \
             VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
        );
        let insert = insert.bind(&*user.username).bind(&*user.password_hash).bind(&*words(user.scopes));
        let insert = insert.bind(&*row::caller_text(&user.caller)).bind(user.tenant.as_deref());
        let inserted = change.execute(insert.bind(micros(user.created_at))).await?;
        finish(change, inserted > 0, entry).await
    }

    async fn user(&self, username: &str) -> Result<Option<User>, StoreError> {
        let found = Statement::new("SELECT * FROM users WHERE username = $1").bind(username);
        let found = self.database.optional(found).await?;
        found.as_ref().map(row::user).transpose()
    }

    async fn users(&self) -> Result<Vec<User>, StoreError> {
        let rows = self.database.all(Statement::new("SELECT * FROM users ORDER BY username")).await?;
        rows.iter().map(row::user).collect()
    }

    async fn replace_user(&self, before: &User, after: &User, entry: AuditEntry) -> Result<Option<u64>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_current(&mut change, before).await? {
            return Ok(None);
        }
        let update = Statement::new(
            "UPDATE users SET password_hash = $1, scopes = $2, caller = $3, tenant = $4, disabled_at = $5 \
             WHERE username = $6",
        );
        let update = update.bind(&*after.password_hash).bind(&*words(after.scopes));
        let update = update.bind(&*row::caller_text(&after.caller)).bind(after.tenant.as_deref());
        change.execute(update.bind(after.disabled_at.map(micros)).bind(&*before.username)).await?;
        let ended = end_all(&mut change, &before.username, entry.at).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(Some(ended))
    }

    async fn begin_session(
        &self,
        session: &Session,
        token: &RefreshToken,
        holder: Option<&User>,
        entry: AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if let Some(user) = holder
            && !is_current(&mut change, user).await?
        {
            return Ok(false);
        }
        let insert = Statement::new(
            "INSERT INTO sessions (id, username, created_at, is_guest, caller, scopes, tenant) \
             VALUES ($1, $2, $3, $4, $5, $6, $7)",
        );
        let insert = insert.bind(&*session.id).bind(&*session.username).bind(micros(session.created_at));
        let insert = insert.bind(i64::from(session.is_guest));
        let rights = session.rights.as_ref();
        let insert = insert.bind(rights.map(|rights| row::caller_text(&rights.caller)).as_deref());
        let insert = insert.bind(rights.map(|rights| words(rights.scopes)).as_deref());
        change.execute(insert.bind(rights.and_then(|rights| rights.tenant.as_deref()))).await?;
        insert_token(&mut change, token, &session.id).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn session(&self, id: &str) -> Result<Option<Session>, StoreError> {
        let found = Statement::new("SELECT * FROM sessions WHERE id = $1").bind(id);
        let found = self.database.optional(found).await?;
        found.as_ref().map(row::session).transpose()
    }

    async fn rotate(
        &self,
        used: &SecretHash,
        next: &RefreshToken,
        rights: &Rights,
        now: Timestamp,
        entry: AuditEntry,
    ) -> Result<Rotation, StoreError> {
        let mut change = self.database.change().await?;
        let found = Statement::new(
            "SELECT s.*, t.expires_at, t.used_at FROM refresh_tokens AS t JOIN sessions AS s ON s.id = t.session_id \
             WHERE t.hash = $1",
        );
        let found = change.optional(found.bind(&*hex(used))).await?;
        let Some(found) = found else { return Ok(Rotation::Refused) };
        let mut session = row::session(&found)?;
        let was_used = found.maybe_integer("used_at")?.is_some();
        let expires_at = found.integer("expires_at")?;
        if session.ended_at.is_some() {
            return Ok(Rotation::Refused);
        }
        // An expired token counts as well: its second use proves that a copy exists.
        if was_used {
            end(&mut change, &session.id, now).await?;
            let reason = Some("a refresh token was used twice".into());
            append_in(&mut change, vec![AuditEntry { event: "session_ended".into(), reason, ..entry }]).await?;
            change.commit().await?;
            return Ok(Rotation::Reused(session));
        }
        if expires_at <= micros(now) {
            return Ok(Rotation::Refused);
        }
        let update = Statement::new("UPDATE refresh_tokens SET used_at = $1 WHERE hash = $2");
        change.execute(update.bind(micros(now)).bind(&*hex(used))).await?;
        insert_token(&mut change, next, &session.id).await?;
        let update =
            Statement::new("UPDATE sessions SET is_guest = $1, caller = $2, scopes = $3, tenant = $4 WHERE id = $5");
        let update = update.bind(i64::from(session.is_guest)).bind(&*row::caller_text(&rights.caller));
        let update = update.bind(&*words(rights.scopes)).bind(rights.tenant.as_deref());
        change.execute(update.bind(&*session.id)).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        session.rights = Some(rights.clone());
        Ok(Rotation::Rotated(session))
    }

    async fn session_of(&self, token: &SecretHash) -> Result<Option<Session>, StoreError> {
        let found = Statement::new(
            "SELECT s.* FROM refresh_tokens AS t JOIN sessions AS s ON s.id = t.session_id WHERE t.hash = $1",
        );
        let found = self.database.optional(found.bind(&*hex(token))).await?;
        found.as_ref().map(row::session).transpose()
    }

    async fn end_session(&self, id: &str, at: Timestamp, entry: AuditEntry) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        end(&mut change, id, at).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await
    }

    async fn end_sessions(&self, username: &str, at: Timestamp, entry: AuditEntry) -> Result<u64, StoreError> {
        let mut change = self.database.change().await?;
        let ended = end_all(&mut change, username, at).await?;
        finish(change, ended > 0, entry).await?;
        Ok(ended)
    }

    async fn revoke_tokens(&self, revocation: &Revocation, entry: AuditEntry) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        let insert = Statement::new(
            "INSERT INTO revoked_tokens (id, revoked_at) VALUES ($1, $2) \
             ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at",
        );
        let (kind, claim) = match &revocation.tokens {
            RevokedTokens::Token(id) => (TOKEN, id),
            RevokedTokens::Subject(subject) => (SUBJECT, subject),
        };
        let insert = insert.bind(&*format!("{kind}{claim}")).bind(micros(revocation.revoked_at));
        change.execute(insert).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await
    }

    async fn revocations(&self) -> Result<Vec<Revocation>, StoreError> {
        let rows = self.database.all(Statement::new("SELECT * FROM revoked_tokens")).await?;
        rows.iter().map(revocation).collect()
    }
}

/// The prefixes of `revoked_tokens.id` for the two kinds of revocations.
const TOKEN: &str = "jti:";
const SUBJECT: &str = "sub:";

fn revocation(row: &Row) -> Result<Revocation, StoreError> {
    let id = row.text("id")?;
    let tokens = match (id.strip_prefix(TOKEN), id.strip_prefix(SUBJECT)) {
        (Some(id), _) => RevokedTokens::Token(id.into()),
        (None, Some(subject)) => RevokedTokens::Subject(subject.into()),
        (None, None) => return Err(StoreError { message: "a revocation cannot be read".to_owned() }),
    };
    Ok(Revocation { tokens, revoked_at: row::time(row.integer("revoked_at")?)? })
}

async fn insert_token(change: &mut Transaction, token: &RefreshToken, session_id: &str) -> Result<(), StoreError> {
    let insert = Statement::new("INSERT INTO refresh_tokens (hash, session_id, expires_at) VALUES ($1, $2, $3)");
    let insert = insert.bind(&*hex(&token.hash)).bind(session_id).bind(micros(token.expires_at));
    change.execute(insert).await.map(|_| ())
}

async fn end(change: &mut Transaction, id: &str, at: Timestamp) -> Result<(), StoreError> {
    let update = Statement::new("UPDATE sessions SET ended_at = $1 WHERE id = $2 AND ended_at IS NULL");
    change.execute(update.bind(micros(at)).bind(id)).await.map(|_| ())
}

/// Ends all sessions of a username. Returns the number of ended sessions.
async fn end_all(change: &mut Transaction, username: &str, at: Timestamp) -> Result<u64, StoreError> {
    let update = Statement::new("UPDATE sessions SET ended_at = $1 WHERE username = $2 AND ended_at IS NULL");
    change.execute(update.bind(micros(at)).bind(username)).await
}

/// Returns whether the stored user still equals `user`. The write lock prevents changes until the transaction ends.
async fn is_current(change: &mut Transaction, user: &User) -> Result<bool, StoreError> {
    let found = Statement::new("SELECT * FROM users WHERE username = $1").bind(&*user.username);
    let found = change.optional(found).await?.as_ref().map(row::user).transpose()?;
    Ok(found.as_ref() == Some(user))
}

/// Commits a change with its audit record if it changed anything. A change without effect leaves no record.
pub(crate) async fn finish(mut change: Transaction, has_changed: bool, entry: AuditEntry) -> Result<bool, StoreError> {
    if has_changed {
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
    }
    Ok(has_changed)
}
