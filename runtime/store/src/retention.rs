//! Removes expired records.
//!
//! In: a time and a lease. Out: the number of removed records. Each call removes a limited number in one transaction.

use async_trait::async_trait;
use terrane_app::ports::leases::Lease;
use terrane_app::ports::retention::{Horizon, Pruned, Retention};
use terrane_app::ports::store::StoreError;
use terrane_app::security::MAX_APPLICATION_TOKEN_AGE;

use crate::leases::is_newest;
use crate::row::micros;
use crate::statement::Statement;
use crate::store::StateStore;

/// The largest number of rows of each kind that one transaction deletes.
const AT_ONCE: i64 = 1_000;

/// Selects expired sessions: those that ended before `$1`, and those that were created before `$2` and whose refresh
/// tokens expired before `$2`.
const SESSIONS: &str = "\
    SELECT s.id FROM sessions AS s WHERE s.ended_at < $1 OR (s.ended_at IS NULL AND s.created_at < $2 AND NOT EXISTS \
    (SELECT 1 FROM refresh_tokens AS t WHERE t.session_id = s.id AND t.expires_at >= $2)) ORDER BY s.id LIMIT $3";

#[async_trait]
impl Retention for StateStore {
    async fn prune(&self, horizon: &Horizon, lease: &Lease) -> Result<Option<Pruned>, StoreError> {
        let (ended, abandoned) = (micros(horizon.ended), micros(horizon.abandoned));
        let over = |sql: &'static str| Statement::new(sql).then(SESSIONS).then(")").bind(ended).bind(abandoned);
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        // Refresh tokens reference sessions, so they are deleted first.
        let tokens = over("DELETE FROM refresh_tokens WHERE session_id IN (").bind(AT_ONCE);
        let of_sessions = change.execute(tokens).await?;
        let sessions = change.execute(over("DELETE FROM sessions WHERE id IN (").bind(AT_ONCE)).await?;
        // A used token is only deleted after its expiry, because its second use before then must end the session.
        let used = Statement::new(
            "DELETE FROM refresh_tokens WHERE hash IN (SELECT hash FROM refresh_tokens \
             WHERE used_at < $1 AND expires_at < $1 ORDER BY hash LIMIT $2)",
        );
        let used = change.execute(used.bind(ended).bind(AT_ONCE)).await?;
        let keys = Statement::new(
            "DELETE FROM api_keys WHERE id IN (SELECT id FROM api_keys \
             WHERE revoked_at < $1 OR expires_at < $1 ORDER BY id LIMIT $2)",
        );
        let api_keys = change.execute(keys.bind(ended).bind(AT_ONCE)).await?;
        // A revocation is deleted after all tokens that it refuses have expired, even those with the longest lifetime.
        let revoked_before =
            ended.saturating_sub(i64::try_from(MAX_APPLICATION_TOKEN_AGE.as_micros()).unwrap_or(i64::MAX));
        let revocations = Statement::new(
            "DELETE FROM revoked_tokens WHERE id IN (SELECT id FROM revoked_tokens WHERE revoked_at < $1 \
             ORDER BY id LIMIT $2)",
        );
        let revocations = change.execute(revocations.bind(revoked_before).bind(AT_ONCE)).await?;
        change.commit().await?;
        Ok(Some(Pruned { sessions, refresh_tokens: of_sessions + used, api_keys, revocations }))
    }
}
