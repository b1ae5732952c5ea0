//! Admits queries to the budgets of their callers.
//!
//! In: a caller, its limits, and the estimate of a query. Out: a [`Reservation`], or the budget that is spent. A server
//! claims a twentieth of a budget at a time from the state database, under a lease, and admits queries from this part.
//! So most queries need not wait for the state database. When a query is in the log of executed queries, its cost
//! replaces its reservation; a query that fails returns its reservation. A query of unknown cost reserves a whole part.
//! If running queries cost more than they reserved, the costs of a period exceed the budget by at most the difference.
//! Not here: the history, from which the port computes the amount spent (`ports::budgets`).

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::tz::TimeZone;

use super::execution_log::ExecutionLog;
use super::guardrails::GuardrailExceeded;
use crate::ports::budgets::{BudgetAccount, BudgetClaim, BudgetGrant, BudgetPeriod, BudgetUse, Budgets};
use crate::ports::clock::Clock;
use crate::ports::executed_queries::QueryOwner;
use crate::ports::guardrails::Guardrails;
use crate::ports::store::StoreError;

/// The number of parts into which a budget is divided.
const PARTS: u64 = 20;
/// The time without renewal after which the part of a budget that a server holds returns to the budget, because the
/// server may have died.
const LEASE: Duration = Duration::from_secs(120);
/// The time between two renewals of the leases.
const RENEWAL: Duration = Duration::from_secs(30);
/// The time for which an account refuses an amount and all larger ones without another claim in the state database,
/// after a claim left too little for it.
const REFUSAL: Duration = Duration::from_secs(1);

/// The reason why a query is not admitted.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BudgetError {
    #[error(transparent)]
    Spent(#[from] GuardrailExceeded),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The parts of budgets that this server holds.
pub struct BudgetLedger {
    budgets: Arc<dyn Budgets>,
    log: Arc<ExecutionLog>,
    clock: Arc<dyn Clock>,
    timezone: TimeZone,
    holder: Arc<str>,
    accounts: Mutex<HashMap<Arc<str>, Arc<LocalAccount>>>,
}

struct LocalAccount {
    account: BudgetAccount,
    /// The lock that is held during a claim in the state database.
    claiming: tokio::sync::Mutex<()>,
    state: Mutex<AccountState>,
}

/// The state of an account on this server. Amounts are in millionths of the currency.
#[derive(Debug, Default)]
struct AccountState {
    /// The amount of the lease that no query has reserved. Negative if queries cost more than their reservations.
    available: i64,
    reserved: u64,
    /// The sum of the costs of this server's queries since the account was opened.
    recorded: u64,
    limit: u64,
    /// The time until which the lease holds, as the clock's `elapsed`.
    valid_until: Duration,
    /// The last refused amount, and the clock's `elapsed` until which that amount and larger ones are refused without a
    /// new claim.
    refused: Option<(u64, Duration)>,
}

/// The amount that one query has reserved in a budget. Dropping it without a cost returns the amount.
pub struct Reservation {
    account: Arc<LocalAccount>,
    amount: u64,
    is_settled: bool,
}

impl BudgetLedger {
    pub fn new(
        budgets: Arc<dyn Budgets>,
        log: Arc<ExecutionLog>,
        clock: Arc<dyn Clock>,
        timezone: TimeZone,
        holder: Arc<str>,
    ) -> Self {
        BudgetLedger { budgets, log, clock, timezone, holder, accounts: Mutex::default() }
    }

    /// Returns whether costs are known.
    pub(super) fn has_price(&self) -> bool {
        self.log.has_price()
    }

    /// Returns the highest known cost of a statement in the owner's tenant, in millionths; `None` if it never ran.
    pub(super) fn estimate(&self, query_hash: &str, owner: &QueryOwner) -> Option<u64> {
        self.log.model().highest_micros(query_hash, owner)
    }

    /// Reserves a query's cost in all budgets of its caller. `estimate` is in millionths; `None` if the cost is
    /// unknown.
    ///
    /// # Errors
    /// A budget has too little left, or the state database is unavailable.
    pub async fn reserve(
        &self,
        owner: &QueryOwner,
        guardrails: &Guardrails,
        estimate: Option<u64>,
    ) -> Result<Vec<Reservation>, BudgetError> {
        let mut reservations = Vec::new();
        for period in [BudgetPeriod::Day, BudgetPeriod::Month] {
            let Some(limit) = period.limit(guardrails) else { continue };
            let account = self.account(period.account(owner.clone(), self.clock.now(), &self.timezone));
            let taken = self.take(&account, limit, estimate, guardrails.alert_at_percent).await?;
            let amount = taken.map_err(|remaining_micros| GuardrailExceeded::Budget {
                period,
                limit_micros: limit,
                remaining_micros,
                predicted_micros: estimate,
            })?;
            reservations.push(Reservation { account, amount, is_settled: false });
        }
        Ok(reservations)
    }

    /// Returns the budgets that have too little left for a query. Reserves nothing. `estimate` is in millionths. If
    /// it is `None`, a budget suffices if any amount is left.
    ///
    /// # Errors
    /// The state database is unavailable.
    pub async fn exceeded(
        &self,
        owner: &QueryOwner,
        guardrails: &Guardrails,
        estimate: Option<u64>,
    ) -> Result<Vec<GuardrailExceeded>, StoreError> {
        let mut exceeded = Vec::new();
        for period in [BudgetPeriod::Day, BudgetPeriod::Month] {
            let Some(limit_micros) = period.limit(guardrails).filter(|_| self.has_price()) else { continue };
            let (_, used) = self.usage(owner.clone(), period).await?;
            let remaining_micros = limit_micros.saturating_sub(used.spent_micros);
            if estimate.unwrap_or_default().max(1) > remaining_micros {
                let predicted_micros = estimate;
                exceeded.push(GuardrailExceeded::Budget { period, limit_micros, remaining_micros, predicted_micros });
            }
        }
        Ok(exceeded)
    }

    /// Returns a user's account for the current period, and the amount that the user spent in this period.
    ///
    /// # Errors
    /// The state database is unavailable.
    pub async fn usage(
        &self,
        owner: QueryOwner,
        period: BudgetPeriod,
    ) -> Result<(BudgetAccount, BudgetUse), StoreError> {
        self.log.flush().await?;
        let account = period.account(owner, self.clock.now(), &self.timezone);
        let used = self.budgets.budget_use(&account).await?;
        Ok((account, used))
    }

    /// Renews the leases of all accounts periodically, with only the amounts that queries use. The rest of a lease goes
    /// back to the budget, and an account without reservations is removed. Never returns.
    pub async fn keep_renewing(&self) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let accounts: Vec<_> = self.accounts().values().cloned().collect();
            for account in accounts {
                let limit = account.state().limit;
                let _claiming = account.claiming.lock().await;
                match self.claim(&account, limit, 0, None).await {
                    Ok(_) => self.forget_if_idle(&account),
                    Err(error) => tracing::error!(event = "state_unavailable", error_message = %error),
                }
            }
        }
    }

    fn forget_if_idle(&self, account: &LocalAccount) {
        let mut accounts = self.accounts();
        let is_idle = accounts.get(&account.account.key).is_some_and(|known| Arc::strong_count(known) <= 2);
        if is_idle && account.state().reserved == 0 {
            accounts.remove(&account.account.key);
        }
    }

    fn account(&self, account: BudgetAccount) -> Arc<LocalAccount> {
        let mut accounts = self.accounts();
        let new = || {
            let (claiming, state) = (tokio::sync::Mutex::default(), Mutex::default());
            Arc::new(LocalAccount { account: account.clone(), claiming, state })
        };
        Arc::clone(accounts.entry(Arc::clone(&account.key)).or_insert_with(new))
    }

    /// Reserves an amount from the lease; if the lease is too small, claims a larger one. If the budget has too little
    /// left, returns the remaining amount as the inner error.
    async fn take(
        &self,
        account: &Arc<LocalAccount>,
        limit: u64,
        estimate: Option<u64>,
        alert_at_percent: Option<u8>,
    ) -> Result<Result<u64, u64>, StoreError> {
        let part = (limit / PARTS).max(1);
        let amount = estimate.unwrap_or(part).max(1);
        if account.state().take(amount, limit, self.clock.elapsed()) {
            return Ok(Ok(amount));
        }
        let _claiming = account.claiming.lock().await;
        {
            // Another query may have claimed while this one waited for the lock.
            let (mut state, now) = (account.state(), self.clock.elapsed());
            if state.take(amount, limit, now) {
                return Ok(Ok(amount));
            }
            if state.refused.is_some_and(|(refused, until)| amount >= refused && now < until && state.limit == limit) {
                return Ok(Err(state.remaining()));
            }
        }
        let grant = self.claim(account, limit, amount.max(part), alert_at_percent).await?;
        let (mut state, now) = (account.state(), self.clock.elapsed());
        // A query of unknown cost may run with less than a part if that is the rest of the budget.
        let amount = if estimate.is_none() { amount.min(grant.granted_micros).max(1) } else { amount };
        if state.take(amount, limit, now) {
            return Ok(Ok(amount));
        }
        state.refused = Some((amount, now + REFUSAL));
        Ok(Err(state.remaining()))
    }

    /// Replaces the lease of an account. The caller holds the account's lock `claiming`.
    async fn claim(
        &self,
        local: &LocalAccount,
        limit_micros: u64,
        wanted_micros: u64,
        alert_at_percent: Option<u8>,
    ) -> Result<BudgetGrant, StoreError> {
        let recorded = local.state().recorded;
        // The flush writes all costs recorded so far to the history, which the claim reads.
        self.log.flush().await?;
        let asked_at = self.clock.elapsed();
        let used_micros = {
            let mut state = local.state();
            state.available = 0;
            state.reserved + (state.recorded - recorded)
        };
        let account = local.account.clone();
        let (holder, ttl) = (Arc::clone(&self.holder), LEASE);
        let claim = BudgetClaim { account, holder, limit_micros, used_micros, wanted_micros, ttl };
        let grant = self.budgets.claim_budget(&claim).await?;
        {
            let mut state = local.state();
            state.available += i64::try_from(grant.granted_micros).unwrap_or(i64::MAX);
            state.limit = limit_micros;
            state.valid_until = asked_at + LEASE / 2;
        }
        if let Some(percent) = alert_at_percent {
            self.alert(&local.account, grant.spent_micros, limit_micros, percent).await?;
        }
        Ok(grant)
    }

    /// Logs that the spent share of a budget has reached `percent`, once per period.
    async fn alert(&self, account: &BudgetAccount, spent: u64, limit: u64, percent: u8) -> Result<(), StoreError> {
        let threshold = u128::from(limit) * u128::from(percent) / 100;
        if u128::from(spent) < threshold || !self.budgets.record_budget_alert(account, percent).await? {
            return Ok(());
        }
        let amount = |micros: u64| micros as f64 / 1_000_000.0;
        tracing::warn!(
            event = "budget_alert",
            user_id = &*account.owner.user_id,
            period_start = %account.starts_at,
            percent,
            amount_spent = amount(spent),
            budget_limit = amount(limit),
        );
        Ok(())
    }

    fn accounts(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<LocalAccount>>> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LocalAccount {
    fn state(&self) -> MutexGuard<'_, AccountState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AccountState {
    /// Returns the amount that no query has reserved. After a claim was refused, this is the rest of the budget.
    fn remaining(&self) -> u64 {
        u64::try_from(self.available).unwrap_or_default()
    }

    fn take(&mut self, amount: u64, limit: u64, now: Duration) -> bool {
        let wanted = i64::try_from(amount).unwrap_or(i64::MAX);
        // The lease was computed for the old limit, so a changed limit needs another claim.
        if now >= self.valid_until || self.limit != limit || self.available < wanted {
            return false;
        }
        self.available -= wanted;
        self.reserved += amount;
        true
    }

    fn release(&mut self, reserved: u64, cost: u64) {
        let signed = |amount: u64| i64::try_from(amount).unwrap_or(i64::MAX);
        self.reserved = self.reserved.saturating_sub(reserved);
        self.available = self.available.saturating_add(signed(reserved)).saturating_sub(signed(cost));
        self.recorded = self.recorded.saturating_add(cost);
    }
}

impl Reservation {
    /// Replaces the reservation with the cost of the query. The query must be in the log of executed queries already.
    pub fn settle(&mut self, cost_micros: u64) {
        if !std::mem::replace(&mut self.is_settled, true) {
            self.account.state().release(self.amount, cost_micros);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.settle(0);
    }
}
