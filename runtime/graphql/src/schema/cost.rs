//! The costs of a user, and recommendations that lower them.
//!
//! In: records of the use cases. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, Enum, SimpleObject};
use terrane_app::cost::{BudgetPeriod as Period, CostService, GuardrailService};
use terrane_wire::cost::{self as wire, MAX_RECOMMENDATION_DAYS};
use terrane_wire::{Code, ErrorBody};

use super::inputs::malformed;
use super::request::{RequestParts, state};
use crate::failure::Failure;

/// The period of a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub(crate) enum BudgetPeriod {
    CurrentDay,
    CurrentMonth,
}

/// The costs of a user in a period, in the currency of `optimization.prices`.
#[derive(SimpleObject)]
pub(crate) struct BudgetUsage {
    /// The caller's user id; empty for an anonymous caller.
    user_id: String,
    starts_at: String,
    /// The exclusive end of the period.
    ends_at: String,
    amount_spent: f64,
    /// Null without a budget.
    budget_limit: Option<f64>,
    /// The rest of the budget, at least 0; null without a budget.
    remaining: Option<f64>,
    percent_used: Option<f64>,
    query_count: u64,
    alert_at_percent: Option<u32>,
}

/// A change that would make queries cheaper.
#[derive(SimpleObject)]
pub(crate) struct Recommendation {
    /// `pre_aggregation`, `filter` or `index`.
    kind: String,
    cube: String,
    /// The dimensions to filter by, or the one to index.
    members: Vec<String>,
    message: String,
    /// The definition of a pre-aggregation, as YAML.
    definition: Option<String>,
    /// The queries that it is made from.
    queries: u64,
    /// The time that these queries took in the warehouse.
    warehouse_seconds: f64,
    /// Null without prices.
    cost: Option<f64>,
    /// The seconds on the warehouse that the change would have saved; null if it is unknown.
    expected_saving_seconds: Option<f64>,
}

/// Returns the costs of a user in a period, and the user's budget.
///
/// # Errors
/// Costs are switched off, or the caller asks for another user without the scope `admin`.
pub(crate) async fn budget_usage(
    context: &Context<'_>,
    user_id: Option<String>,
    period: Option<BudgetPeriod>,
) -> Result<BudgetUsage, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let period = match period {
        Some(BudgetPeriod::CurrentDay) => Period::Day,
        Some(BudgetPeriod::CurrentMonth) | None => Period::Month,
    };
    let user_id = user_id.map(Into::into);
    let service = guardrails(&state.parts)?;
    let usage = service.budget_usage(&state.parts.context.request, user_id.as_ref(), period).await;
    let usage = usage.map_err(|error| Failure::from(&error))?;
    Ok(BudgetUsage::from(wire::BudgetUsage::from(&usage)))
}

/// Returns recommendations that would make queries cheaper.
///
/// # Errors
/// Costs are switched off, `days` is out of range, or the caller asks for another user without the scope `admin`.
pub(crate) async fn recommendations(
    context: &Context<'_>,
    user_id: Option<String>,
    days: Option<i64>,
) -> Result<Vec<Recommendation>, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let service = cost(context)?;
    let days = match days.map(u16::try_from) {
        None => service.recommendation_days(),
        Some(Ok(days)) if (1..=MAX_RECOMMENDATION_DAYS).contains(&days) => days,
        Some(_) => return Err(malformed("expected an integer from 1 to 366 at `days`", "days")),
    };
    let found = service.recommendations(&state.parts.context.request, user_id.map(Into::into), days).await?;
    let found: Vec<Recommendation> =
        wire::Recommendations::new(days, &found).recommendations.into_iter().map(Recommendation::from).collect();
    let members = found.iter().map(|one| one.members.len()).sum();
    state.count(context, found.len(), &|list| (list == "members").then_some(members))?;
    Ok(found)
}

pub(super) fn cost<'c>(context: &Context<'c>) -> Result<&'c CostService, Failure> {
    state(context).parts.server()?.cost.as_deref().ok_or_else(switched_off)
}

pub(super) fn guardrails(parts: &RequestParts) -> Result<&GuardrailService, Failure> {
    parts.server()?.guardrails.as_deref().ok_or_else(switched_off)
}

pub(super) fn switched_off() -> Failure {
    ErrorBody::new(Code::NotFound, "costs are switched off on this server").into()
}

impl From<wire::BudgetUsage<'_>> for BudgetUsage {
    fn from(usage: wire::BudgetUsage<'_>) -> Self {
        BudgetUsage {
            user_id: usage.user_id.to_owned(),
            starts_at: usage.starts_at,
            ends_at: usage.ends_at,
            amount_spent: usage.amount_spent,
            budget_limit: usage.budget_limit,
            remaining: usage.remaining,
            percent_used: usage.percent_used,
            query_count: usage.query_count,
            alert_at_percent: usage.alert_at_percent.map(u32::from),
        }
    }
}

impl From<wire::Recommendation<'_>> for Recommendation {
    fn from(found: wire::Recommendation<'_>) -> Self {
        Recommendation {
            kind: found.kind.to_owned(),
            cube: found.cube.to_owned(),
            members: found.members.iter().map(|member| member.to_string()).collect(),
            message: found.message,
            definition: found.definition,
            queries: found.evidence.queries,
            warehouse_seconds: found.evidence.warehouse_seconds,
            cost: found.evidence.cost,
            expected_saving_seconds: found.expected_saving.map(|saving| saving.warehouse_seconds),
        }
    }
}
