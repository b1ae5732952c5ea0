//! The fields of the root for the costs of queries.
//!
//! In: arguments. Out: answers of the use cases of the routes below `/api/v1/optimization`.

use async_graphql::{Context, Object, Result};

use super::cost::{self, BudgetPeriod, BudgetUsage, Recommendation};
use super::guardrail::{self, EffectiveGuardrails, GuardrailCheck, SubjectGuardrails};
use super::modules::has_cost;
use super::prediction::{self, CostPrediction};
use super::query_history::{self, HistoryArguments, QueryHistory};
use super::question::question_field;

#[derive(Default)]
pub(crate) struct CostFields;

#[Object]
impl CostFields {
    /// The costs of the caller in a period, and the budget.
    #[graphql(visible = "has_cost")]
    async fn budget_usage(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Another user, with `admin` only.")] user_id: Option<String>,
        #[graphql(desc = "Default: `CURRENT_MONTH`.")] period: Option<BudgetPeriod>,
    ) -> Result<BudgetUsage> {
        Ok(cost::budget_usage(context, user_id, period).await?)
    }

    /// Changes that would make the caller's queries cheaper; with `admin` those of all callers.
    #[graphql(visible = "has_cost")]
    async fn recommendations(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Another user, with `admin` only.")] user_id: Option<String>,
        #[graphql(desc = "The number of days up to now, 1 to 366. Default: the value in the settings.")] days: Option<
            i64,
        >,
    ) -> Result<Vec<Recommendation>> {
        Ok(cost::recommendations(context, user_id, days).await?)
    }

    /// The executed queries of the caller, newest first; with `admin` those of all callers.
    #[graphql(visible = "has_cost")]
    #[expect(clippy::too_many_arguments, reason = "the arguments of the field")]
    async fn query_history(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Only queries of this user. Another user needs `admin`.")] user_id: Option<String>,
        #[graphql(desc = "Only queries with this statement.")] query_hash: Option<String>,
        #[graphql(desc = "Only queries at or after this timestamp.")] since: Option<String>,
        #[graphql(desc = "Only queries before this timestamp.")] until: Option<String>,
        #[graphql(desc = "The value of `next` in the previous page.")] before: Option<String>,
        #[graphql(desc = "1 to 1000. Default: 100.")] limit: Option<i64>,
    ) -> Result<QueryHistory> {
        let arguments = HistoryArguments { user_id, query_hash, since, until, before, limit };
        Ok(query_history::history(context, arguments).await?)
    }

    /// The effective guardrails of the caller: the settings, restricted by the guardrails of its groups and its own.
    #[graphql(visible = "has_cost")]
    async fn guardrails(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "Another user, with `admin` only. The groups of that user are not known.")] user_id: Option<
            String,
        >,
    ) -> Result<EffectiveGuardrails> {
        Ok(guardrail::effective(context, user_id).await?)
    }

    /// The guardrails of a user, or of a role or a group. Without `admin`, only the caller's own and those of the
    /// caller's roles and groups.
    #[graphql(visible = "has_cost")]
    async fn subject_guardrails(
        &self,
        context: &Context<'_>,
        #[graphql(desc = "The id of a user.")] user_id: Option<String>,
        #[graphql(desc = "The name of a role or a group of callers.")] role: Option<String>,
    ) -> Result<Option<SubjectGuardrails>> {
        Ok(Some(guardrail::of_subject(context, user_id, role).await?))
    }

    /// The guardrails of all users and groups, by subject. Needs `admin`.
    #[graphql(visible = "has_cost")]
    async fn all_guardrails(&self, context: &Context<'_>) -> Result<Vec<SubjectGuardrails>> {
        Ok(guardrail::all(context).await?)
    }
}

question_field! {
    [async_graphql::Object]
    /// The predicted bytes, time and cost of a query. Nothing is executed.
    #[graphql(visible = "has_cost")]
    PredictCostField.predict_cost(
        #[graphql(desc = "`false`: `preaggMatch` is null.")] include_preagg_analysis: Option<bool>
    ) -> CostPrediction = prediction::predict
}

question_field! {
    [async_graphql::Object]
    /// Checks a query against guardrails. Nothing is executed.
    #[graphql(visible = "has_cost")]
    CheckGuardrailsField.check_guardrails(
        #[graphql(desc = "The user whose guardrails apply. Another user than the caller needs `admin`.")]
        user_id: Option<String>
    ) -> GuardrailCheck = guardrail::check
}
