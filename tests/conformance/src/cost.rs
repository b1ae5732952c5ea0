//! A history of executed queries in memory.

use std::sync::Mutex;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::executed_queries::{ExecutedQueries, ExecutedQuery, HistoryFilter, StatementTotals};
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
