//! A history of executed queries and guardrails in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::executed_queries::{ExecutedQueries, ExecutedQuery, HistoryFilter, StatementTotals};
use terrane_app::ports::guardrails::{GuardrailRecord, GuardrailRecords};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::store::StoreError;

/// The history of one server.
#[derive(Debug, Default)]
pub struct MemoryHistory {
    pub queries: Mutex<Vec<ExecutedQuery>>,
}

#[async_trait]
impl ExecutedQueries for MemoryHistory {
    async fn append_executed(&self, queries: &[ExecutedQuery]) -> Result<(), StoreError> {
        self.queries.lock().expect("no test panics here").extend_from_slice(queries);
        Ok(())
    }

    async fn executed(&self, filter: &HistoryFilter) -> Result<Vec<ExecutedQuery>, StoreError> {
        let queries = self.queries.lock().expect("no test panics here");
        let is_selected = |query: &&ExecutedQuery| {
            filter.owner.as_ref().is_none_or(|owner| owner.user_id == query.user_id && owner.tenant == query.tenant)
                && filter.user_id.as_ref().is_none_or(|user_id| *user_id == query.user_id)
                && filter.query_hash.as_ref().is_none_or(|hash| *hash == query.query_hash)
                && filter.cube.as_ref().is_none_or(|cube| *cube == query.cube)
                && filter.tenant.as_ref().is_none_or(|tenant| *tenant == query.tenant)
                && (!filter.is_computed || !query.is_cached)
        };
        Ok(queries.iter().rev().filter(is_selected).take(filter.limit as usize).cloned().collect())
    }

    async fn statement_totals(&self, _: Timestamp, _: u32) -> Result<Vec<StatementTotals>, StoreError> {
        Ok(Vec::new())
    }

    async fn prune_executed(&self, _: Timestamp, _: &Lease) -> Result<Option<u64>, StoreError> {
        Ok(Some(0))
    }
}

/// Guardrails with the audit records of their changes, and with the same conflicts as those of a state database.
#[derive(Debug, Default)]
pub struct MemoryGuardrails {
    pub records: Mutex<Vec<(u64, GuardrailRecord)>>,
    pub audit: Mutex<Vec<AuditEntry>>,
}

#[async_trait]
impl GuardrailRecords for MemoryGuardrails {
    async fn guardrails_since(&self, sequence: u64) -> Result<Vec<(u64, GuardrailRecord)>, StoreError> {
        let records = self.records.lock().expect("no test panics here");
        Ok(records.iter().filter(|(at, _)| *at > sequence).cloned().collect())
    }

    async fn write_guardrails(
        &self,
        sequence: u64,
        record: GuardrailRecord,
        entry: AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut records = self.records.lock().expect("no test panics here");
        let newest = records.last().map_or(0, |(at, _)| *at);
        if newest != sequence {
            return Ok(false);
        }
        records.retain(|(_, known)| known.subject != record.subject);
        records.push((newest + 1, record));
        self.audit.lock().expect("no test panics here").push(entry);
        Ok(true)
    }
}
