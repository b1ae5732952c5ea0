//! The audit log in SQLite: one chain, written by whoever holds the write lock.

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::{QueryBuilder, Row as _, Sqlite, Transaction};
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog, AuditRecord, ChainState};
use terrane_app::ports::store::StoreError;
use terrane_app::security::chain;

use crate::row::{audit_record, failed, micros};
use crate::sqlite::SqliteStore;

/// Appends to the chain inside a transaction that holds the write lock.
pub(crate) async fn append_in(
    change: &mut Transaction<'_, Sqlite>,
    entries: Vec<AuditEntry>,
) -> Result<(), StoreError> {
    let last = sqlx::query("SELECT sequence, hash FROM audit_log ORDER BY sequence DESC LIMIT 1");
    let last = last.fetch_optional(&mut **change).await.map_err(failed)?;
    let (mut sequence, mut previous) = match &last {
        Some(row) => (row.try_get::<i64, _>(0).map_err(failed)?, row.try_get::<String, _>(1).map_err(failed)?),
        None => (0, chain::GENESIS.to_owned()),
    };
    for entry in entries {
        sequence += 1;
        // As it will be read back.
        let at = jiff::Timestamp::from_microsecond(micros(entry.at)).unwrap_or(entry.at);
        let entry = AuditEntry { at, ..entry };
        let hash = chain::hash(&previous, sequence.unsigned_abs(), &entry);
        let insert = sqlx::query(
            "INSERT INTO audit_log (sequence, at, event, actor, auth_method, client_ip, correlation_id, resource, \
             reason, was, became, alike, hash, previous) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        );
        let insert = insert.bind(sequence).bind(micros(entry.at)).bind(&*entry.event).bind(&*entry.actor);
        let insert = insert.bind(&*entry.auth_method).bind(entry.client_ip.as_deref());
        let insert = insert.bind(entry.correlation_id.as_deref()).bind(&*entry.resource).bind(entry.reason.as_deref());
        let insert = insert.bind(entry.before.as_deref()).bind(entry.after.as_deref());
        let insert = insert.bind(i64::try_from(entry.count).unwrap_or(i64::MAX)).bind(&*hash).bind(&previous);
        insert.execute(&mut **change).await.map_err(failed)?;
        previous = hash.to_string();
    }
    Ok(())
}

#[async_trait]
impl AuditLog for SqliteStore {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        append_in(&mut change, entries).await?;
        change.commit().await.map_err(failed)
    }

    async fn records(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        let mut query = QueryBuilder::<Sqlite>::new("SELECT * FROM audit_log WHERE 1 = 1");
        let texts = [
            (" AND event = ", &filter.event),
            (" AND actor = ", &filter.actor),
            (" AND resource = ", &filter.resource),
        ];
        for (condition, text) in texts {
            if let Some(text) = text {
                query.push(condition).push_bind(text.to_string());
            }
        }
        if let Some(since) = filter.since {
            query.push(" AND at >= ").push_bind(micros(since));
        }
        if let Some(until) = filter.until {
            query.push(" AND at < ").push_bind(micros(until));
        }
        if let Some(before) = filter.before {
            query.push(" AND sequence < ").push_bind(i64::try_from(before).unwrap_or(i64::MAX));
        }
        query.push(" ORDER BY sequence DESC LIMIT ").push_bind(i64::from(filter.limit));
        let rows = query.build().fetch_all(&self.pool).await.map_err(failed)?;
        rows.iter().map(audit_record).collect()
    }

    async fn verify(&self) -> Result<ChainState, StoreError> {
        let mut rows = sqlx::query("SELECT * FROM audit_log ORDER BY sequence").fetch(&self.pool);
        let (mut records, mut last) = (0, chain::GENESIS.into());
        while let Some(row) = rows.try_next().await.map_err(failed)? {
            let record = audit_record(&row)?;
            let broken = |why: &str| ChainState::Broken { sequence: records + 1, why: why.into() };
            if record.sequence != records + 1 {
                return Ok(broken("a record is missing"));
            }
            if record.previous != last {
                return Ok(broken("the record does not follow the one before it"));
            }
            if chain::hash(&last, record.sequence, &record.entry) != record.hash {
                return Ok(broken("the record was changed"));
            }
            (records, last) = (record.sequence, record.hash);
        }
        Ok(ChainState::Whole { records, last_hash: last })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    fn entry(actor: &str) -> AuditEntry {
        AuditEntry { event: "key_created".into(), actor: actor.into(), count: 1, ..AuditEntry::default() }
    }

    async fn store(folder: &std::path::Path) -> SqliteStore {
        SqliteStore::open("sqlite://state.db", folder).await.unwrap()
    }

    #[tokio::test]
    async fn records_can_be_appended_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let store = store(folder.path()).await;
        store.append(vec![entry("a"), entry("b")]).await.unwrap();
        store.append(vec![entry("c")]).await.unwrap();
        assert!(matches!(store.verify().await.unwrap(), ChainState::Whole { records: 3, .. }));
        for statement in ["UPDATE audit_log SET actor = 'x'", "DELETE FROM audit_log"] {
            let error = sqlx::query(statement).execute(&store.pool).await.unwrap_err();
            assert!(error.to_string().contains("append-only"), "{error}");
        }
    }

    #[tokio::test]
    async fn what_was_changed_behind_its_back_shows() {
        for (statement, at) in [
            ("UPDATE audit_log SET actor = 'x' WHERE sequence = 2", 2),
            ("UPDATE audit_log SET reason = '' WHERE sequence = 3", 3),
            ("DELETE FROM audit_log WHERE sequence = 1", 1),
            ("DELETE FROM audit_log WHERE sequence = 2", 2),
            ("UPDATE audit_log SET sequence = 9 WHERE sequence = 3", 3),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let store = store(folder.path()).await;
            store.append(["a", "b", "c"].map(entry).to_vec()).await.unwrap();
            for trigger in ["audit_log_is_not_changed", "audit_log_is_not_shortened"] {
                sqlx::query(sqlx::AssertSqlSafe(format!("DROP TRIGGER {trigger}"))).execute(&store.pool).await.unwrap();
            }
            sqlx::query(statement).execute(&store.pool).await.unwrap();
            let state = store.verify().await.unwrap();
            assert!(matches!(state, ChainState::Broken { sequence, .. } if sequence == at), "{statement}: {state:?}");
        }
    }
}
