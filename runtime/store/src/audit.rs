//! The audit log: a chain of records in which each record contains the hash of the previous one.
//!
//! In: entries. Out: records in the order of the chain, each with its hash. Only a transaction with the write lock
//! appends records. Not here: the computation of the hash (`app::security::chain`).

use async_trait::async_trait;
use terrane_app::ports::audit::{AuditEntry, AuditFilter, AuditLog, AuditRecord, ChainState, Details};
use terrane_app::ports::store::StoreError;
use terrane_app::security::chain::{self, StoredDetails};
use terrane_json::details;

use crate::database::Transaction;
use crate::row::{audit_record, micros};
use crate::statement::{Bound, INSERTED_ROWS, Statement, storable};
use crate::store::StateStore;

pub(crate) const COLUMNS: [&str; 14] = [
    "sequence",
    "at",
    "event",
    "actor",
    "auth_method",
    "client_ip",
    "correlation_id",
    "resource",
    "reason",
    "was",
    "became",
    "alike",
    "hash",
    "previous",
];
const PAGE: i64 = 1_000;

/// Appends entries to the chain, in a transaction that holds the write lock.
pub(crate) async fn append_in(change: &mut Transaction, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
    let last = Statement::new("SELECT sequence, hash FROM audit_log ORDER BY sequence DESC LIMIT 1");
    let (mut sequence, mut previous) = match change.optional(last).await? {
        Some(row) => (row.integer("sequence")?, row.text("hash")?),
        None => (0, chain::GENESIS.to_owned()),
    };
    let mut rows = Vec::with_capacity(entries.len());
    for entry in entries {
        sequence += 1;
        let entry = storable_entry(entry);
        let hash = chain::hash(&previous, sequence.unsigned_abs(), &entry, stored_details(&entry));
        rows.push(values(sequence, &entry, &hash, &previous));
        previous = hash.to_string();
    }
    while !rows.is_empty() {
        let rest = rows.split_off(rows.len().min(INSERTED_ROWS));
        change.execute(Statement::insert("audit_log", &COLUMNS, std::mem::replace(&mut rows, rest))).await?;
    }
    Ok(())
}

/// Returns the encoded details of an entry. The entry must come from `storable_entry` or from a row of the table,
/// because only then its details are encoded.
pub(crate) fn stored_details(entry: &AuditEntry) -> StoredDetails<'_> {
    StoredDetails {
        before: entry.before.as_ref().and_then(Details::encoded),
        after: entry.after.as_ref().and_then(Details::encoded),
    }
}

/// Returns the entry as the database will return it, because the hash covers the stored form.
fn storable_entry(entry: AuditEntry) -> AuditEntry {
    let clean = |text: std::sync::Arc<str>| if text.contains('\0') { storable(&text).into() } else { text };
    let encoded = |details: Details| Details::Encoded(clean(details::encode(&details)));
    AuditEntry {
        at: jiff::Timestamp::from_microsecond(micros(entry.at)).unwrap_or(entry.at),
        event: clean(entry.event),
        actor: clean(entry.actor),
        auth_method: clean(entry.auth_method),
        client_ip: entry.client_ip.map(clean),
        correlation_id: entry.correlation_id.map(clean),
        resource: clean(entry.resource),
        reason: entry.reason.map(clean),
        before: entry.before.map(encoded),
        after: entry.after.map(encoded),
        count: entry.count.min(i64::MAX.unsigned_abs()),
    }
}

/// Returns the values of a record, in the order of [`COLUMNS`].
fn values(sequence: i64, entry: &AuditEntry, hash: &str, previous: &str) -> Vec<Bound> {
    let StoredDetails { before, after } = stored_details(entry);
    vec![
        sequence.into(),
        micros(entry.at).into(),
        (&*entry.event).into(),
        (&*entry.actor).into(),
        (&*entry.auth_method).into(),
        entry.client_ip.as_deref().into(),
        entry.correlation_id.as_deref().into(),
        (&*entry.resource).into(),
        entry.reason.as_deref().into(),
        before.into(),
        after.into(),
        i64::try_from(entry.count).unwrap_or(i64::MAX).into(),
        hash.into(),
        previous.into(),
    ]
}

/// Verifies the whole chain in the snapshot of a transaction, page by page.
pub(crate) async fn verify_in(transaction: &mut Transaction) -> Result<ChainState, StoreError> {
    let (mut records, mut last) = (0_u64, chain::GENESIS.into());
    loop {
        let page = Statement::new("SELECT * FROM audit_log WHERE sequence > $1 ORDER BY sequence LIMIT $2");
        let page = page.bind(i64::try_from(records).unwrap_or(i64::MAX)).bind(PAGE);
        let rows = transaction.all(page).await?;
        if rows.is_empty() {
            return Ok(ChainState::Whole { records, last_hash: last });
        }
        for row in rows {
            let record = audit_record(&row)?;
            let broken = |why: &str| ChainState::Broken { sequence: records + 1, why: why.into() };
            if record.sequence != records + 1 {
                return Ok(broken("a record is missing"));
            }
            if record.previous != last {
                return Ok(broken("the record does not follow the one before it"));
            }
            if chain::hash(&last, record.sequence, &record.entry, stored_details(&record.entry)) != record.hash {
                return Ok(broken("the record was changed"));
            }
            (records, last) = (record.sequence, record.hash);
        }
    }
}

#[async_trait]
impl AuditLog for StateStore {
    async fn append(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        append_in(&mut change, entries).await?;
        change.commit().await
    }

    async fn records(&self, filter: &AuditFilter) -> Result<Vec<AuditRecord>, StoreError> {
        let mut query = Statement::new("SELECT * FROM audit_log WHERE 1 = 1");
        let texts = [
            (" AND event = ", &filter.event),
            (" AND actor = ", &filter.actor),
            (" AND resource = ", &filter.resource),
        ];
        for (condition, text) in texts {
            if let Some(text) = text {
                query = query.and(condition, &**text);
            }
        }
        if let Some(since) = filter.since {
            query = query.and(" AND at >= ", micros(since));
        }
        if let Some(until) = filter.until {
            query = query.and(" AND at < ", micros(until));
        }
        if let Some(before) = filter.before {
            query = query.and(" AND sequence < ", i64::try_from(before).unwrap_or(i64::MAX));
        }
        let query = query.and(" ORDER BY sequence DESC LIMIT ", i64::from(filter.limit));
        let rows = self.database.all(query).await?;
        rows.iter().map(audit_record).collect()
    }

    async fn verify(&self) -> Result<ChainState, StoreError> {
        verify_in(&mut self.database.read().await?).await
    }
}
