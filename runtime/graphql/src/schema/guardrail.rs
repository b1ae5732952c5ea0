//! Guardrails of callers, users and groups, and checks of queries.
//!
//! In: records of the use case. Out: the fields that REST sends, under names in GraphQL's convention.

use async_graphql::{Context, SimpleObject};
use terrane_app::ports::guardrails::GuardrailSubject;
use terrane_wire::cost as wire;
use terrane_wire::{ErrorBody, QueryForm};

use super::cost::guardrails;
use super::inputs::{Question, malformed};
use super::request::{RequestState, state};
use crate::failure::Failure;

/// Limits of the queries of a caller. Null is none.
#[derive(SimpleObject)]
pub(crate) struct Guardrails {
    /// The largest number of seconds until the last row of a query.
    max_execution_seconds: Option<f64>,
    /// The largest number of rows of an answer.
    max_rows_returned: Option<f64>,
    /// True if every cube whose rows are read needs a lower bound on one of its time dimensions.
    require_time_filter: bool,
    /// True if every partitioned cube whose rows are read needs a filter on a dimension with `partition: true`.
    require_partition_filter: bool,
    /// The highest predicted cost of a query, in the currency of `optimization.prices`.
    max_cost_per_query: Option<f64>,
    /// The largest stored size of the columns that a query may scan, like `10GB`. A query whose bytes are unknown is
    /// allowed.
    max_bytes_scanned: Option<String>,
    /// The costs of a user in a day.
    daily_budget: Option<f64>,
    /// The costs of a user in a month.
    monthly_budget: Option<f64>,
    /// The share of a budget at which the server logs an alert, 1–100.
    alert_at_percent: Option<u32>,
}

/// The limits that hold for the queries of a caller.
#[derive(SimpleObject)]
pub(crate) struct EffectiveGuardrails {
    /// The narrowest limits of all sources.
    guardrails: Guardrails,
    sources: Vec<GuardrailSource>,
}

/// The limits of one source.
#[derive(SimpleObject)]
pub(crate) struct GuardrailSource {
    /// `project` (the settings), `group` or `user`.
    source: String,
    /// The group or the user; null for the project.
    name: Option<String>,
    guardrails: Guardrails,
}

/// The guardrails of a user or a group.
#[derive(SimpleObject)]
pub(crate) struct SubjectGuardrails {
    /// Null for a group.
    user_id: Option<String>,
    /// The name of a role or a group of callers; null for a user.
    role: Option<String>,
    guardrails: Guardrails,
    /// Limits that do not apply to all queries, each with the reason.
    warnings: Vec<String>,
    version: u64,
    updated_by: String,
    updated_at: String,
}

/// The result of a check.
#[derive(SimpleObject)]
pub(crate) struct GuardrailCheck {
    /// False if a guardrail refuses the query by its plan.
    allowed: bool,
    /// The first limit that the query exceeds; null if it is allowed.
    reason: Option<String>,
    /// Changes that make the query pass.
    suggestions: Vec<String>,
    warnings: Vec<String>,
    /// The names of the guardrails that refuse the query.
    exceeded: Vec<String>,
    guardrails: Guardrails,
}

/// Returns the limits of the caller's queries, or of another user's, with their sources.
///
/// # Errors
/// Costs are switched off, or the caller asks for another user without the scope `admin`.
pub(crate) async fn effective(context: &Context<'_>, user_id: Option<String>) -> Result<EffectiveGuardrails, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let user_id = user_id.map(Into::into);
    let sources = guardrails(&state.parts)?.sources(&state.parts.context.request, user_id.as_ref()).await;
    let sources = sources.map_err(|error| Failure::from(&error))?;
    state.count(context, 1, &|list| (list == "sources").then_some(sources.len()))?;
    Ok(EffectiveGuardrails::from(wire::EffectiveGuardrails::from(sources.as_slice())))
}

/// Returns the guardrails of a user, or of a role or a group.
///
/// # Errors
/// Costs are switched off, not exactly one subject is named, the subject has no guardrails, or it is neither the caller
/// nor one of the caller's roles and groups, and the caller lacks `admin`.
pub(crate) async fn of_subject(
    context: &Context<'_>,
    user_id: Option<String>,
    role: Option<String>,
) -> Result<SubjectGuardrails, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let subject = match (user_id, role) {
        (Some(user_id), None) => GuardrailSubject::User(user_id.into()),
        (None, Some(role)) => GuardrailSubject::Group(role.into()),
        _ => return Err(malformed("expected either `userId` or `role`", "userId")),
    };
    let record = guardrails(&state.parts)?.guardrails(&state.parts.context.request, &subject).await;
    let record = record.map_err(|error| Failure::from(&error))?;
    Ok(SubjectGuardrails::from(wire::SubjectGuardrails::from(&*record)))
}

/// Returns the guardrails of all users and groups.
///
/// # Errors
/// Costs are switched off, or the caller lacks `admin`.
pub(crate) async fn all(context: &Context<'_>) -> Result<Vec<SubjectGuardrails>, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let records = guardrails(&state.parts)?.all(&state.parts.context.request).await;
    let records = records.map_err(|error| Failure::from(&error))?;
    let records: Vec<SubjectGuardrails> =
        records.iter().map(|record| wire::SubjectGuardrails::from(&**record).into()).collect();
    let warnings = records.iter().map(|record| record.warnings.len()).sum();
    state.count(context, records.len(), &|list| (list == "warnings").then_some(warnings))?;
    Ok(records)
}

/// Checks a query against the guardrails of the caller, or of another user. Nothing is executed.
///
/// # Errors
/// Costs are switched off, the query does not compile for the caller, or the caller asks for another user without the
/// scope `admin`.
pub(crate) async fn check(
    state: &RequestState,
    question: Question,
    user_id: Option<String>,
) -> Result<GuardrailCheck, Failure> {
    let (service, request) = (guardrails(&state.parts)?, &state.parts.context.request);
    let (query, user_id) = (question.into_query()?, user_id.map(Into::into));
    let checked = service.check(request, &query, user_id.as_ref()).await;
    let checked = checked.map_err(|error| ErrorBody::from_guardrail_check(error, request.scopes))?;
    Ok(GuardrailCheck::from(wire::GuardrailAnswer::new(&checked, QueryForm::Graphql)))
}

impl From<wire::GuardrailLimits> for Guardrails {
    fn from(limits: wire::GuardrailLimits) -> Self {
        Guardrails {
            max_execution_seconds: limits.max_execution_seconds,
            max_rows_returned: limits.max_rows_returned.map(|rows| rows as f64),
            require_time_filter: limits.require_time_filter,
            require_partition_filter: limits.require_partition_filter,
            max_cost_per_query: limits.max_cost_per_query,
            max_bytes_scanned: limits.max_bytes_scanned,
            daily_budget: limits.daily_budget,
            monthly_budget: limits.monthly_budget,
            alert_at_percent: limits.alert_at_percent.map(u32::from),
        }
    }
}

impl From<wire::EffectiveGuardrails<'_>> for EffectiveGuardrails {
    fn from(effective: wire::EffectiveGuardrails<'_>) -> Self {
        let source = |source: wire::SourceOfGuardrails<'_>| GuardrailSource {
            source: source.source.to_owned(),
            name: source.name.map(str::to_owned),
            guardrails: source.guardrails.into(),
        };
        EffectiveGuardrails {
            guardrails: effective.guardrails.into(),
            sources: effective.sources.into_iter().map(source).collect(),
        }
    }
}

impl From<wire::SubjectGuardrails<'_>> for SubjectGuardrails {
    fn from(record: wire::SubjectGuardrails<'_>) -> Self {
        SubjectGuardrails {
            user_id: record.user_id.map(str::to_owned),
            role: record.role.map(str::to_owned),
            guardrails: record.guardrails.into(),
            warnings: record.warnings.into_iter().map(str::to_owned).collect(),
            version: record.version,
            updated_by: record.updated_by.to_owned(),
            updated_at: record.updated_at,
        }
    }
}

impl From<wire::GuardrailAnswer> for GuardrailCheck {
    fn from(answer: wire::GuardrailAnswer) -> Self {
        GuardrailCheck {
            allowed: answer.allowed,
            reason: answer.reason,
            suggestions: answer.suggestions,
            warnings: answer.warnings,
            exceeded: answer.exceeded.into_iter().map(str::to_owned).collect(),
            guardrails: answer.guardrails.into(),
        }
    }
}
