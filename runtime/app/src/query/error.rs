//! The reasons why a query has no answer.

use std::time::Duration;

use terrane_compiler::query::{ErrorCode, QueryError};

use super::{Denied, Overloaded};
use crate::cost::{BudgetError, GuardrailExceeded};
use crate::ports::store::StoreError;
use crate::ports::warehouse::{WarehouseError, WarehouseErrorKind};

/// The reason why a query has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum QueryRunError {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Warehouse(#[from] WarehouseError),
    #[error("the query ran longer than {} seconds", timeout.as_secs_f64())]
    Timeout { timeout: Duration },
    #[error(transparent)]
    Overloaded(#[from] Overloaded),
    /// The query exceeds a guardrail of the caller.
    #[error(transparent)]
    Guardrail(#[from] GuardrailExceeded),
    /// The state database did not answer, so the caller's budget cannot be checked.
    #[error("the budget is unavailable: {0}")]
    BudgetUnavailable(StoreError),
    /// A governance hook denied the query.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// A required governance hook gave no usable response.
    #[error("a required policy plugin is unavailable")]
    PolicyUnavailable,
    /// The query was denied, but the denial could not be written to the audit log.
    #[error("the denial could not be recorded: {0}")]
    Unrecorded(StoreError),
}

impl From<BudgetError> for QueryRunError {
    fn from(error: BudgetError) -> Self {
        match error {
            BudgetError::Spent(exceeded) => QueryRunError::Guardrail(exceeded),
            BudgetError::Store(error) => QueryRunError::BudgetUnavailable(error),
        }
    }
}

impl QueryRunError {
    pub(super) fn from_warehouse(error: WarehouseError, timeout: Duration) -> Self {
        match error.kind {
            WarehouseErrorKind::Timeout => QueryRunError::Timeout { timeout },
            _ => QueryRunError::Warehouse(error),
        }
    }

    /// Returns whether a policy or a hook denied the query or a part of it.
    pub fn is_denial(&self) -> bool {
        match self {
            QueryRunError::Denied(_) | QueryRunError::PolicyUnavailable => true,
            QueryRunError::Query(error) => error.code() == ErrorCode::Forbidden,
            _ => false,
        }
    }
}
