//! Governed records and their history.
//!
//! In: changes that were decided with knowledge of all records up to a sequence number. Out: records in the order of
//! their last changes. A transaction with the write lock compares the sequence number, so decisions on outdated records
//! are refused. Records, history and audit records are written in one transaction. Not here: the JSON of records
//! (`body`), and the rules of changes (`app::governance`).

mod body;

use async_trait::async_trait;
use terrane_app::ports::audit::Details;
use terrane_app::ports::governance_records::{
    ArtifactRef, ArtifactType, GovernanceRecords, GovernedRecord, HistoryEntry, HistoryFilter, LinkTarget,
    RecordChange, RecordKind, TERM_TYPE,
};
use terrane_app::ports::store::StoreError;
use terrane_json::details;

use crate::audit::append_in;
use crate::database::{Row, Transaction};
use crate::row::{maybe_text, micros, odd, text, time};
use crate::statement::{Bound, Statement};
use crate::store::StateStore;

pub(crate) const HISTORY: [&str; 11] =
    ["sequence", "at", "actor", "action", "key", "kind", "artifact", "version", "notes", "was", "became"];
/// The largest number of records that one statement reads.
const PAGE: i64 = 5_000;

const WRITE: &str = "\
    INSERT INTO governance_records (key, kind, artifact, unique_name, version, sequence, body) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (key) DO UPDATE SET unique_name = excluded.unique_name, \
    version = excluded.version, sequence = excluded.sequence, body = excluded.body";

#[async_trait]
impl GovernanceRecords for StateStore {
    async fn changed_since(&self, sequence: u64) -> Result<Vec<(u64, GovernedRecord)>, StoreError> {
        let (mut found, mut last) = (Vec::new(), stored(sequence));
        loop {
            let page =
                Statement::new("SELECT * FROM governance_records WHERE sequence > $1 ORDER BY sequence LIMIT $2");
            let rows = self.database.all(page.bind(last).bind(PAGE)).await?;
            for row in &rows {
                last = row.integer("sequence")?;
                found.push((last.unsigned_abs(), record(row)?));
            }
            if rows.len() < PAGE as usize {
                return Ok(found);
            }
        }
    }

    async fn write(&self, sequence: u64, changes: Vec<RecordChange>) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let newest = Statement::new("SELECT max(sequence) AS newest FROM governance_history");
        let newest = change.optional(newest).await?;
        let newest = newest.map_or(Ok(None), |row| row.maybe_integer("newest"))?.unwrap_or(0);
        if newest != stored(sequence) {
            return Ok(false);
        }
        release_names(&mut change, &changes).await?;
        let mut entries = Vec::with_capacity(changes.len());
        for (RecordChange { record, entry }, number) in changes.into_iter().zip(newest + 1..) {
            write_record(&mut change, &record, number).await?;
            write_history(&mut change, &record, &entry, number).await?;
            entries.push(entry);
        }
        append_in(&mut change, entries).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, StoreError> {
        let mut query = Statement::new("SELECT * FROM governance_history WHERE 1 = 1");
        if let Some(artifact) = &filter.artifact {
            query = query.and(" AND artifact = ", &*artifact.to_string());
        }
        if let Some(term) = &filter.term_id {
            query = query.and(" AND key = ", &*format!("{}:{term}", RecordKind::Term.as_str()));
        }
        if let Some(change) = &filter.change {
            query = query.and(" AND key = ", &*change.key).and(" AND version = ", stored(change.version));
        }
        if let Some(before) = filter.before {
            query = query.and(" AND sequence < ", stored(before));
        }
        let query = query.and(" ORDER BY sequence DESC LIMIT ", i64::from(filter.limit));
        self.database.all(query).await?.iter().map(history_entry).collect()
    }
}

fn stored(sequence: u64) -> i64 {
    i64::try_from(sequence).unwrap_or(i64::MAX)
}

/// Clears the unique names of terms that are written together, because one may take over the name of another.
async fn release_names(change: &mut Transaction, changes: &[RecordChange]) -> Result<(), StoreError> {
    let terms = || changes.iter().filter(|change| change.record.kind() == RecordKind::Term);
    if terms().count() < 2 {
        return Ok(());
    }
    for RecordChange { record, .. } in terms() {
        let release = Statement::new("UPDATE governance_records SET unique_name = NULL WHERE key = $1");
        change.execute(release.bind(&*record.key())).await?;
    }
    Ok(())
}

async fn write_record(change: &mut Transaction, record: &GovernedRecord, number: i64) -> Result<(), StoreError> {
    let unique_name = match record {
        GovernedRecord::Term(term) => term.unique_name(),
        _ => None,
    };
    let write = Statement::new(WRITE).bind(&*record.key()).bind(record.kind().as_str());
    let write = write.bind(artifact_text(record).as_deref()).bind(unique_name.as_deref());
    let write = write.bind(stored(record.version())).bind(number).bind(&*body::encode(record)?);
    change.execute(write).await.map(|_| ())
}

async fn write_history(
    change: &mut Transaction,
    record: &GovernedRecord,
    entry: &terrane_app::ports::audit::AuditEntry,
    number: i64,
) -> Result<(), StoreError> {
    let encoded = |details: &Option<Details>| details.as_ref().map(details::encode);
    let row: Vec<Bound> = vec![
        number.into(),
        micros(entry.at).into(),
        (&*entry.actor).into(),
        (&*entry.event).into(),
        (&*record.key()).into(),
        record.kind().as_str().into(),
        artifact_text(record).as_deref().into(),
        stored(record.version()).into(),
        entry.reason.as_deref().into(),
        encoded(&entry.before).as_deref().into(),
        encoded(&entry.after).as_deref().into(),
    ];
    change.execute(Statement::insert("governance_history", &HISTORY, vec![row])).await.map(|_| ())
}

fn artifact_text(record: &GovernedRecord) -> Option<String> {
    record.artifact().map(ToString::to_string)
}

fn record(row: &Row) -> Result<GovernedRecord, StoreError> {
    let kind = kind(row)?;
    let version = row.integer("version")?.unsigned_abs();
    body::decode(kind, version, &row.text("body")?).ok_or_else(|| odd("a governed record"))
}

fn kind(row: &Row) -> Result<RecordKind, StoreError> {
    RecordKind::named(&row.text("kind")?).ok_or_else(|| odd("a kind of governed records"))
}

/// Returns the targets of the links that were added or removed between two versions of a term.
fn changed_links(before: Option<&str>, after: Option<&str>) -> Vec<LinkTarget> {
    #[derive(serde::Deserialize, PartialEq)]
    struct Link {
        artifact_type: String,
        artifact_id: String,
        relationship: String,
    }
    #[derive(serde::Deserialize)]
    struct Links {
        #[serde(default)]
        links: Vec<Link>,
    }
    let links = |text: Option<&str>| -> Vec<Link> {
        text.and_then(|text| serde_json::from_str(text).ok()).map_or_else(Vec::new, |Links { links }| links)
    };
    let (before, after) = (links(before), links(after));
    let removed = before.iter().filter(|link| !after.contains(link));
    let added = after.iter().filter(|link| !before.contains(link));
    let target = |link: &Link| match &*link.artifact_type {
        TERM_TYPE => Some(LinkTarget::Term((&*link.artifact_id).into())),
        word => Some(LinkTarget::Artifact(ArtifactRef::new(ArtifactType::named(word)?, &*link.artifact_id))),
    };
    removed.chain(added).filter_map(target).collect()
}

fn history_entry(row: &Row) -> Result<HistoryEntry, StoreError> {
    let kind = kind(row)?;
    let key = text(row, "key")?;
    let term_id = key.strip_prefix("term:").filter(|_| kind == RecordKind::Term).map(Into::into);
    let (before, after) = (maybe_text(row, "was")?, maybe_text(row, "became")?);
    let linked = match kind {
        RecordKind::Term => changed_links(before.as_deref(), after.as_deref()),
        _ => Vec::new(),
    };
    let artifact = match maybe_text(row, "artifact")? {
        Some(text) => Some(ArtifactRef::parse(&text).ok_or_else(|| odd("a governed artifact"))?),
        None => None,
    };
    Ok(HistoryEntry {
        sequence: row.integer("sequence")?.unsigned_abs(),
        at: time(row.integer("at")?)?,
        actor: text(row, "actor")?,
        action: text(row, "action")?,
        kind,
        artifact,
        term_id,
        linked,
        version: row.integer("version")?.unsigned_abs(),
        notes: maybe_text(row, "notes")?,
        before: before.map(Details::Encoded),
        after: after.map(Details::Encoded),
    })
}
