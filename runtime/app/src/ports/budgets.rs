//! The port to budgets: the costs of a user in a day or a month, and the parts of a budget that servers hold.
//!
//! The spent amount is the sum of the history. A server leases a part of the remaining amount, and admits queries from
//! this part without another request. The lease of a server that died expires by the database's clock.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};

use super::executed_queries::QueryOwner;
use super::guardrails::Guardrails;
use super::store::StoreError;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetPeriod {
    Day,
    Month,
}

/// A user's budget of one period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetAccount {
    /// The key, unique among users and periods, such as `day:2026-11-26:` followed by the user.
    pub key: Arc<str>,
    pub owner: QueryOwner,
    pub starts_at: Timestamp,
    /// The exclusive end of the period.
    pub ends_at: Timestamp,
}

/// A request for a part of a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetClaim {
    pub account: BudgetAccount,
    /// The id of the server.
    pub holder: Arc<str>,
    pub limit_micros: u64,
    /// The amount that queries of this server use: admitted queries, and queries that are not in the history yet.
    pub used_micros: u64,
    /// The additional amount that the server requests.
    pub wanted_micros: u64,
    pub ttl: Duration,
}

/// The result of a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BudgetGrant {
    /// The granted amount in millionths, at most the requested one.
    pub granted_micros: u64,
    /// The sum of the costs in the history, in millionths.
    pub spent_micros: u64,
}

/// The costs of an account.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BudgetUse {
    pub spent_micros: u64,
    pub queries: u64,
}

impl BudgetPeriod {
    pub fn as_str(self) -> &'static str {
        match self {
            BudgetPeriod::Day => "current_day",
            BudgetPeriod::Month => "current_month",
        }
    }

    /// Returns the budget of this period in millionths.
    pub fn limit(self, guardrails: &Guardrails) -> Option<u64> {
        match self {
            BudgetPeriod::Day => guardrails.daily_budget_micros,
            BudgetPeriod::Month => guardrails.monthly_budget_micros,
        }
    }

    /// Returns the account of a user in the period that contains a time.
    pub fn account(self, owner: QueryOwner, now: Timestamp, timezone: &TimeZone) -> BudgetAccount {
        let today = now.to_zoned(timezone.clone()).date();
        let (first, after) = match self {
            BudgetPeriod::Day => (today, today.checked_add(1.day())),
            BudgetPeriod::Month => (today.first_of_month(), today.first_of_month().checked_add(1.month())),
        };
        let start = |date: jiff::civil::Date| date.to_zoned(timezone.clone()).map(|start| start.timestamp());
        let starts_at = start(first).unwrap_or(now);
        let ends_at = after.and_then(start).unwrap_or(Timestamp::MAX);
        let tenant = owner.tenant.as_deref().unwrap_or_default();
        let has_tenant = if owner.tenant.is_some() { "t" } else { "" };
        let length = owner.user_id.len();
        let key = format!("{}:{first}:{length}:{}:{has_tenant}{tenant}", self.as_str(), owner.user_id);
        BudgetAccount { key: key.into(), owner, starts_at, ends_at }
    }
}

/// The budgets of users.
#[async_trait]
pub trait Budgets: Send + Sync {
    /// Replaces the server's lease. The new lease covers what the server uses, and as much of the wanted amount as the
    /// limit leaves after the history and the leases of other servers.
    async fn claim_budget(&self, claim: &BudgetClaim) -> Result<BudgetGrant, StoreError>;
    async fn budget_use(&self, account: &BudgetAccount) -> Result<BudgetUse, StoreError>;
    /// Records that an account has spent a share of its budget. Returns false if that was recorded before.
    async fn record_budget_alert(&self, account: &BudgetAccount, percent: u8) -> Result<bool, StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_begin_at_midnight_of_their_zone() {
        let zone = jiff::tz::TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap();
        let owner = QueryOwner { user_id: "ada".into(), tenant: None };
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        // This day has 23 hours.
        let day = BudgetPeriod::Day.account(owner.clone(), at("2026-03-29T12:00:00Z"), &zone);
        assert_eq!((day.starts_at, day.ends_at), (at("2026-03-28T23:00:00Z"), at("2026-03-29T22:00:00Z")));
        let month = BudgetPeriod::Month.account(owner.clone(), at("2026-02-28T23:30:00Z"), &zone);
        assert_eq!((month.starts_at, month.ends_at), (at("2026-02-28T23:00:00Z"), at("2026-03-31T22:00:00Z")));
        let other = QueryOwner { user_id: "ada".into(), tenant: Some("".into()) };
        assert_ne!(BudgetPeriod::Day.account(other, at("2026-03-29T12:00:00Z"), &zone).key, day.key);
    }
}
