//! Budgets of users.

use schemars::JsonSchema;
use serde::Serialize;
use terrane_app::cost::{BudgetPeriod, BudgetUsage as Usage};

use crate::fields::{FieldError, Path};
use crate::schema;

const KNOWN: &[&str] = &["user_id", "period"];
const PERIODS: &str = "`current_day` or `current_month`";

/// The costs of a user in a period. Amounts are in the currency of `optimization.prices`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BudgetUsage<'a> {
    /// The caller's user id; empty for an anonymous caller.
    pub user_id: &'a str,
    /// `current_day` or `current_month`.
    pub period: &'static str,
    #[schemars(schema_with = "schema::timestamp")]
    pub starts_at: String,
    /// The exclusive end of the period.
    #[schemars(schema_with = "schema::timestamp")]
    pub ends_at: String,
    pub amount_spent: f64,
    /// Null without a budget.
    pub budget_limit: Option<f64>,
    /// The rest of the budget, at least 0; null without a budget.
    pub remaining: Option<f64>,
    pub percent_used: Option<f64>,
    pub query_count: u64,
    pub alert_at_percent: Option<u8>,
}

/// Reads `user_id` and `period`.
///
/// # Errors
/// Names the parameter that is invalid.
pub fn usage_from_parameters(query: &str) -> Result<(Option<std::sync::Arc<str>>, BudgetPeriod), FieldError> {
    let (mut user_id, mut period) = (None, BudgetPeriod::Month);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*name {
            "user_id" => user_id = Some(value.into()),
            "period" => {
                let known = [BudgetPeriod::Day, BudgetPeriod::Month].into_iter().find(|known| known.as_str() == value);
                period = known.ok_or_else(|| Path::ROOT.field("period").invalid_value(&value, PERIODS))?;
            }
            // The caller's credential, which every route accepts.
            "api_key" => {}
            other => return Err(Path::ROOT.unknown_field(other, KNOWN)),
        }
    }
    Ok((user_id, period))
}

impl<'a> From<&'a Usage> for BudgetUsage<'a> {
    fn from(usage: &'a Usage) -> Self {
        let Usage { account, used, period, limit_micros, alert_at_percent } = usage;
        let (spent, limit) = (used.spent_micros, *limit_micros);
        let percent = |limit: u64| (limit > 0).then(|| 100.0 * spent as f64 / limit as f64);
        BudgetUsage {
            user_id: &account.owner.user_id,
            period: period.as_str(),
            starts_at: account.starts_at.to_string(),
            ends_at: account.ends_at.to_string(),
            amount_spent: super::currency(spent),
            budget_limit: limit.map(super::currency),
            remaining: limit.map(|limit| super::currency(limit.saturating_sub(spent))),
            percent_used: limit.and_then(percent),
            query_count: used.queries,
            alert_at_percent: *alert_at_percent,
        }
    }
}
