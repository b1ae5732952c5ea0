//! A history of executed queries, guardrails and budgets in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::budgets::{BudgetAccount, BudgetClaim, BudgetGrant, BudgetUse, Budgets};
use terrane_app::ports::executed_queries::{
    ExecutedQueries, ExecutedQuery, FilterTotals, HistoryFilter, StatementTotals,
};
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
                && (!filter.has_members || query.members.is_some())
        };
        Ok(queries.iter().rev().filter(is_selected).take(filter.limit as usize).cloned().collect())
    }

    async fn statement_totals(&self, _: Timestamp, _: u32) -> Result<Vec<StatementTotals>, StoreError> {
        Ok(Vec::new())
    }

    async fn filter_totals(&self, filter: &HistoryFilter) -> Result<Vec<FilterTotals>, StoreError> {
        let queries = self.executed(&HistoryFilter { limit: u32::MAX, is_computed: true, ..filter.clone() }).await?;
        let mut totals: BTreeMap<[Arc<str>; 2], FilterTotals> = BTreeMap::new();
        for query in queries.into_iter().filter(|query| query.pre_aggregation.is_none()) {
            let Some(filters) = query.filters else { continue };
            let new = || FilterTotals {
                cube: Arc::clone(&query.cube),
                filters: Arc::clone(&filters),
                queries: 0,
                warehouse: Duration::ZERO,
                cost_micros: None,
            };
            let group = totals.entry([Arc::clone(&query.cube), Arc::clone(&filters)]).or_insert_with(new);
            group.queries += query.queries;
            group.warehouse += query.warehouse;
            group.cost_micros = group.cost_micros.into_iter().chain(query.cost_micros).reduce(|one, other| one + other);
        }
        Ok(totals.into_values().collect())
    }

    async fn prune_executed(&self, _: Timestamp, _: &Lease) -> Result<Option<u64>, StoreError> {
        Ok(Some(0))
    }
}

/// Guardrails with audit records of their changes. They report the same conflicts as those of a state database.
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

/// Budgets over a history in memory. Leases do not expire.
#[derive(Debug)]
pub struct MemoryBudgets {
    history: Arc<MemoryHistory>,
    /// The claimed amounts, by account and holder.
    leases: Mutex<BTreeMap<[Arc<str>; 2], u64>>,
    alerts: Mutex<BTreeSet<(Arc<str>, u8)>>,
}

impl MemoryBudgets {
    pub fn new(history: Arc<MemoryHistory>) -> Self {
        MemoryBudgets { history, leases: Mutex::default(), alerts: Mutex::default() }
    }

    fn used(&self, account: &BudgetAccount) -> BudgetUse {
        let queries = self.history.queries.lock().expect("no test panics here");
        let of_account = queries.iter().filter(|query| {
            query.user_id == account.owner.user_id
                && query.tenant == account.owner.tenant
                && (account.starts_at..account.ends_at).contains(&query.at)
        });
        of_account.fold(BudgetUse::default(), |used, query| BudgetUse {
            spent_micros: used.spent_micros + query.cost_micros.unwrap_or(0),
            queries: used.queries + query.queries,
        })
    }
}

#[async_trait]
impl Budgets for MemoryBudgets {
    async fn claim_budget(&self, claim: &BudgetClaim) -> Result<BudgetGrant, StoreError> {
        let spent_micros = self.used(&claim.account).spent_micros;
        let mut leases = self.leases.lock().expect("no test panics here");
        let is_other = |[account, holder]: &[Arc<str>; 2]| *account == claim.account.key && *holder != claim.holder;
        let others: u64 = leases.iter().filter(|(key, _)| is_other(key)).map(|(_, amount)| *amount).sum();
        let left = claim.limit_micros.saturating_sub(spent_micros + others + claim.used_micros);
        let granted_micros = left.min(claim.wanted_micros);
        let key = [Arc::clone(&claim.account.key), Arc::clone(&claim.holder)];
        leases.insert(key, claim.used_micros + granted_micros);
        Ok(BudgetGrant { granted_micros, spent_micros })
    }

    async fn budget_use(&self, account: &BudgetAccount) -> Result<BudgetUse, StoreError> {
        Ok(self.used(account))
    }

    async fn record_budget_alert(&self, account: &BudgetAccount, percent: u8) -> Result<bool, StoreError> {
        Ok(self.alerts.lock().expect("no test panics here").insert((Arc::clone(&account.key), percent)))
    }
}
