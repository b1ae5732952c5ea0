//! Governed records in memory. They report the same conflicts as those of a state database.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use terrane_app::ports::governance_records::{
    GovernanceRecords, GovernedRecord, HistoryEntry, HistoryFilter, LinkTarget, RecordChange, TermLink,
};
use terrane_app::ports::store::StoreError;

/// Governed records in memory, without audit records.
#[derive(Default)]
pub struct MemoryGovernance(Mutex<Records>);

#[derive(Default)]
struct Records {
    records: Vec<(u64, GovernedRecord)>,
    history: Vec<HistoryEntry>,
}

impl MemoryGovernance {
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl GovernanceRecords for MemoryGovernance {
    async fn changed_since(&self, sequence: u64) -> Result<Vec<(u64, GovernedRecord)>, StoreError> {
        let mut found: Vec<_> = self.lock().records.iter().filter(|(at, _)| *at > sequence).cloned().collect();
        found.sort_by_key(|(at, _)| *at);
        Ok(found)
    }

    async fn write(&self, sequence: u64, changes: Vec<RecordChange>) -> Result<bool, StoreError> {
        let mut held = self.lock();
        if held.history.len() as u64 != sequence {
            return Ok(false);
        }
        for RecordChange { record, entry } in changes {
            let sequence = held.history.len() as u64 + 1;
            let before = held.records.iter().find(|(_, known)| known.key() == record.key());
            let linked = changed_links(before.map(|(_, known)| known), &record);
            held.history.push(HistoryEntry {
                sequence,
                at: entry.at,
                actor: entry.actor,
                action: entry.event,
                kind: record.kind(),
                artifact: record.artifact().cloned(),
                term_id: match &record {
                    GovernedRecord::Term(term) => Some(term.id.clone()),
                    _ => None,
                },
                linked,
                version: record.version(),
                notes: entry.reason,
                before: entry.before,
                after: entry.after,
            });
            held.records.retain(|(_, known)| known.key() != record.key());
            held.records.push((sequence, record));
        }
        Ok(true)
    }

    async fn history(&self, filter: &HistoryFilter) -> Result<Vec<HistoryEntry>, StoreError> {
        let held = self.lock();
        let is_selected = |entry: &&HistoryEntry| {
            filter.before.is_none_or(|before| entry.sequence < before)
                && filter.change.as_ref().is_none_or(|change| entry.id() == *change)
                && (filter.artifact.is_none() || entry.artifact == filter.artifact)
                && (filter.term_id.is_none() || entry.term_id == filter.term_id)
        };
        Ok(held.history.iter().rev().filter(is_selected).take(filter.limit as usize).cloned().collect())
    }
}

/// Returns the targets of the links that a change of a term added or removed.
fn changed_links(before: Option<&GovernedRecord>, after: &GovernedRecord) -> Vec<LinkTarget> {
    let links = |record: Option<&GovernedRecord>| -> Vec<TermLink> {
        match record {
            Some(GovernedRecord::Term(term)) => term.links.clone(),
            _ => Vec::new(),
        }
    };
    let (before, after) = (links(before), links(Some(after)));
    let removed = before.iter().filter(|link| !after.contains(link));
    let added = after.iter().filter(|link| !before.contains(link));
    removed.chain(added).map(|link| link.target.clone()).collect()
}
