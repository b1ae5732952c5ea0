//! Checks a query against guardrails without running it.

use std::sync::Arc;

use terrane_compiler::query::SemanticQuery;

use super::guardrail_service::{GuardrailError, GuardrailService, effective};
use super::guardrails::GuardrailExceeded;
use crate::domain::RequestContext;
use crate::ports::executed_queries::QueryOwner;
use crate::ports::guardrails::Guardrails;
use crate::query::{QueryKind, QueryRunError};

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuardrailCheck {
    /// The limits that refuse the query.
    pub exceeded: Vec<GuardrailExceeded>,
    pub guardrails: Guardrails,
    /// True if the guardrails belong to another user. The groups of this user are unknown, so their limits are absent.
    pub is_of_other_user: bool,
    /// True if a guardrail limits the scanned bytes, and they are unknown.
    pub has_unknown_bytes: bool,
}

/// The reason why a query is not checked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GuardrailCheckError {
    #[error(transparent)]
    Guardrails(#[from] GuardrailError),
    /// The query does not compile for the caller.
    #[error(transparent)]
    Query(#[from] QueryRunError),
}

impl GuardrailService {
    /// Checks the caller's query against the guardrails of the caller, or of another user. In both cases, the query is
    /// compiled with the caller's policies.
    ///
    /// # Errors
    /// [`GuardrailCheckError`]
    pub async fn check(
        &self,
        request: &RequestContext,
        query: &SemanticQuery,
        user_id: Option<&Arc<str>>,
    ) -> Result<GuardrailCheck, GuardrailCheckError> {
        let sources = self.sources(request, user_id).await?;
        let guardrails = effective(&sources);
        let context = request.with_kind(QueryKind::Explain);
        let session = self.queries.session_within(&context, guardrails);
        let planned = session.prepare(query).await?.planned().await?;
        let user_id = user_id.unwrap_or(&request.caller.user_id);
        let owner = QueryOwner { user_id: Arc::clone(user_id), tenant: request.tenant.clone() };
        let estimate = self.budgets.estimate(&planned.query_hash, &owner);
        let budgets = self.budgets.exceeded(&owner, &guardrails, estimate).await;
        let mut exceeded = planned.exceeded;
        exceeded.extend(budgets.map_err(GuardrailError::from)?);
        let is_of_other_user = *user_id != request.caller.user_id;
        let has_unknown_bytes = planned.has_unknown_bytes;
        Ok(GuardrailCheck { exceeded, guardrails, is_of_other_user, has_unknown_bytes })
    }
}
