//! Budgets: leases through which servers share a budget, and the alerts that were recorded.
//!
//! In: claims. Out: grants. Within one transaction that holds the write lock, a claim subtracts the recorded cost and
//! the leases of other servers from the limit. Therefore no two servers get the same part of a budget. Leases expire by
//! the database's clock. Not here: estimates of queries (`app::cost`).

use async_trait::async_trait;
use terrane_app::ports::budgets::{BudgetAccount, BudgetClaim, BudgetGrant, BudgetUse, Budgets};
use terrane_app::ports::executed_queries::QueryOwner;
use terrane_app::ports::store::StoreError;

use crate::database::{Row, Transaction};
use crate::row::{micros, signed};
use crate::statement::Statement;
use crate::store::StateStore;

/// The time for which alerts are stored after the start of their period.
const RETENTION_US: i64 = 100 * 86_400 * 1_000_000;

#[async_trait]
impl Budgets for StateStore {
    async fn claim_budget(&self, claim: &BudgetClaim) -> Result<BudgetGrant, StoreError> {
        let mut change = self.database.change().await?;
        let now = self.database.now();
        let account = &claim.account;
        let spent = spent_in(&mut change, account).await?.spent_micros;
        let others = Statement::new(
            "SELECT CAST(sum(amount) AS BIGINT) AS held FROM budget_leases WHERE account = $1 AND holder <> $2 \
             AND expires_at > ",
        );
        let others = change.optional(others.then(now).bind(&*account.key).bind(&*claim.holder)).await?;
        let others = others.map_or(Ok(None), |row| row.maybe_integer("held"))?.map_or(0, i64::unsigned_abs);
        let left = claim.limit_micros.saturating_sub(spent).saturating_sub(others).saturating_sub(claim.used_micros);
        let granted = left.min(claim.wanted_micros);
        let write = Statement::new(
            "INSERT INTO budget_leases (id, account, holder, amount, expires_at) VALUES ($1, $2, $3, $4, $5 + ",
        );
        let write = write
            .then(now)
            .then(") ON CONFLICT (id) DO UPDATE SET amount = excluded.amount, expires_at = excluded.expires_at");
        let write = write
            .bind(&*format!("{} {}", claim.holder, account.key))
            .bind(&*account.key)
            .bind(&*claim.holder)
            .bind(signed(claim.used_micros.saturating_add(granted)))
            .bind(i64::try_from(claim.ttl.as_micros()).unwrap_or(i64::MAX));
        change.execute(write).await?;
        let expired = Statement::new("DELETE FROM budget_leases WHERE expires_at < ").then(now);
        change.execute(expired).await?;
        change.commit().await?;
        Ok(BudgetGrant { granted_micros: granted, spent_micros: spent })
    }

    async fn budget_use(&self, account: &BudgetAccount) -> Result<BudgetUse, StoreError> {
        use_of(self.database.optional(sum_of(account)).await?)
    }

    async fn record_budget_alert(&self, account: &BudgetAccount, percent: u8) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        let at = micros(account.starts_at);
        let old = Statement::new("DELETE FROM budget_alerts WHERE period_start < ").and("", at - RETENTION_US);
        change.execute(old).await?;
        let alert =
            Statement::new("INSERT INTO budget_alerts (id, period_start) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING");
        let added = change.execute(alert.bind(&*format!("{percent} {}", account.key)).bind(at)).await?;
        change.commit().await?;
        Ok(added > 0)
    }
}

async fn spent_in(change: &mut Transaction, account: &BudgetAccount) -> Result<BudgetUse, StoreError> {
    use_of(change.optional(sum_of(account)).await?)
}

fn sum_of(account: &BudgetAccount) -> Statement {
    let QueryOwner { user_id, tenant } = &account.owner;
    let sum = Statement::new(
        "SELECT CAST(sum(cost) AS BIGINT) AS spent, CAST(sum(queries) AS BIGINT) AS queries FROM executed_queries \
         WHERE user_id = ",
    );
    let sum = sum.and("", &**user_id);
    let sum = match tenant {
        Some(tenant) => sum.and(" AND tenant = ", &**tenant),
        None => sum.then(" AND tenant IS NULL"),
    };
    sum.and(" AND at >= ", micros(account.starts_at)).and(" AND at < ", micros(account.ends_at))
}

fn use_of(row: Option<Row>) -> Result<BudgetUse, StoreError> {
    let Some(row) = row else { return Ok(BudgetUse::default()) };
    let number = |column| row.maybe_integer(column).map(|number| number.map_or(0, i64::unsigned_abs));
    Ok(BudgetUse { spent_micros: number("spent")?, queries: number("queries")? })
}
