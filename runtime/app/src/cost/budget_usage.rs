//! Shows what a user spent of its budgets.

use std::sync::Arc;

use super::guardrail_service::{GuardrailError, GuardrailService, effective};
use crate::domain::RequestContext;
use crate::ports::budgets::{BudgetAccount, BudgetPeriod, BudgetUse};
use crate::ports::executed_queries::QueryOwner;

/// The costs of a user in a period, and the budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetUsage {
    pub account: BudgetAccount,
    pub used: BudgetUse,
    pub period: BudgetPeriod,
    /// The limit of the cost in millionths; `None` without a budget.
    pub limit_micros: Option<u64>,
    pub alert_at_percent: Option<u8>,
}

impl GuardrailService {
    /// Returns the amounts that a user has spent in the current day and month. The user is the caller, or another user
    /// of the caller's tenant.
    ///
    /// # Errors
    /// The user is not the caller, and the caller lacks `admin`; or the state database is unavailable.
    pub async fn budget_usage(
        &self,
        request: &RequestContext,
        user_id: Option<&Arc<str>>,
        period: BudgetPeriod,
    ) -> Result<BudgetUsage, GuardrailError> {
        let guardrails = effective(&self.sources(request, user_id).await?);
        let user_id = Arc::clone(user_id.unwrap_or(&request.caller.user_id));
        let owner = QueryOwner { user_id, tenant: request.tenant.clone() };
        let (account, used) = self.budgets.usage(owner, period).await?;
        let (limit_micros, alert_at_percent) = (period.limit(&guardrails), guardrails.alert_at_percent);
        Ok(BudgetUsage { account, used, period, limit_micros, alert_at_percent })
    }
}
