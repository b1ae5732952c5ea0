//! The cost of queries: the history of executed queries, and limits of single queries.
//!
//! In: the measurements of each query (`execution_log`). Out: records of the history that the caller may read. Not
//! here: formats, and the path of a query, which adds its measurements to a queue and does not wait.
//!
//! # Rights
//! A caller reads its own records; a caller with `admin` reads the records of all callers. An anonymous caller has no
//! records. Names of cubes are left out of a response if a policy hides the cube from the reader, or if the project no
//! longer has it.

mod accuracy;
mod budget_ledger;
mod budget_usage;
mod cost_model;
mod estimate;
mod execution_log;
mod guardrail_check;
mod guardrail_service;
mod guardrail_table;
mod guardrails;
mod member_use;
mod observations;
mod prediction;
mod prices;
mod range_scaling;
mod recommendations;
mod retention;
mod scan_sizes;
mod time_model;

use std::sync::Arc;

use terrane_compiler::Access;

pub use accuracy::PredictionAccuracy;
pub use budget_ledger::{BudgetError, BudgetLedger, Reservation};
pub use budget_usage::BudgetUsage;
pub use cost_model::CostModel;
pub use estimate::{Estimate, PredictionBasis, Range};
pub use execution_log::{ExecutedPlan, Execution, ExecutionLog};
pub use guardrail_check::{GuardrailCheck, GuardrailCheckError};
pub use guardrail_service::{GuardrailError, GuardrailPorts, GuardrailService, effective};
pub use guardrail_table::{GuardrailSource, GuardrailTable};
pub use guardrails::{GuardrailClass, GuardrailExceeded};
pub use member_use::MemberUse;
pub use prediction::{CostPrediction, CostPredictor, PredictionError, StatementPrediction};
pub use prices::{CostParts, Prices, Usage, micros};
pub use recommendations::{CostRecommendation, RecommendationKind, Saving};
pub use retention::HistoryRetention;
pub use scan_sizes::ScanSizes;
pub use time_model::{MIN_QUERIES, TimeModel};

pub use crate::ports::budgets::BudgetPeriod;
pub use crate::ports::guardrails::Guardrails;

use crate::catalog::Catalog;
use crate::domain::{RequestContext, Scope};
use crate::ports::clock::Clock;
use crate::ports::executed_queries::{ExecutedQueries, ExecutedQuery, HistoryFilter, QueryOwner};
use crate::ports::store::StoreError;
use crate::preaggregations::Preaggregations;
use crate::security::{AccessRecorder, ScopeError};

/// The reason why no history is returned.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// The filter names another user, and the caller lacks `admin`.
    #[error(transparent)]
    OtherUser(#[from] ScopeError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A record without the details that its reader may not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VisibleQuery {
    pub query: ExecutedQuery,
    /// False if the reader may not know the cube.
    pub is_cube_visible: bool,
}

/// The ports and use cases that reading the history needs.
pub struct CostPorts {
    pub log: Arc<ExecutionLog>,
    pub history: Arc<dyn ExecutedQueries>,
    pub catalog: Arc<Catalog>,
    pub access: Arc<AccessRecorder>,
    pub clock: Arc<dyn Clock>,
    /// The pre-aggregations; `None` if none are recommended.
    pub preaggregations: Option<Arc<Preaggregations>>,
}

/// Reads the history of executed queries.
pub struct CostService {
    log: Arc<ExecutionLog>,
    history: Arc<dyn ExecutedQueries>,
    catalog: Arc<Catalog>,
    access: Arc<AccessRecorder>,
    clock: Arc<dyn Clock>,
    preaggregations: Option<Arc<Preaggregations>>,
    /// The number of days of history that recommendations are based on.
    recommendation_days: u16,
}

impl CostService {
    pub fn new(ports: CostPorts, recommendation_days: u16) -> Self {
        let CostPorts { log, history, catalog, access, clock, preaggregations } = ports;
        CostService { log, history, catalog, access, clock, preaggregations, recommendation_days }
    }

    /// Returns the number of days of history that recommendations are based on by default.
    pub fn recommendation_days(&self) -> u16 {
        self.recommendation_days
    }

    /// Returns the log, whose queries wait to be written to the history.
    pub fn log(&self) -> &Arc<ExecutionLog> {
        &self.log
    }

    /// Returns records, newest first, including the queries of this process that ended before the call.
    ///
    /// # Errors
    /// The filter names another user, or the state database is unavailable.
    pub async fn history(
        &self,
        request: &RequestContext,
        mut filter: HistoryFilter,
    ) -> Result<Vec<VisibleQuery>, HistoryError> {
        if !request.scopes.hold(Scope::Admin) {
            let own = &request.caller.user_id;
            if filter.user_id.as_ref().is_some_and(|user_id| user_id != own) {
                self.access.require(request, Scope::Admin).await?;
            }
            if own.is_empty() {
                return Ok(Vec::new());
            }
            filter.owner = Some(QueryOwner { user_id: Arc::clone(own), tenant: request.tenant.clone() });
        }
        self.log.flush().await?;
        let queries = self.history.executed(&filter).await?;
        let snapshot = self.catalog.snapshot();
        let access = Access::of(&snapshot.model, &request.caller);
        let is_cube_visible = |query: &ExecutedQuery| {
            let cube = snapshot.model.cube_named(&query.cube);
            cube.is_some_and(|cube| cube.public && !access.is_closed(cube))
        };
        let visible = |query: ExecutedQuery| VisibleQuery { is_cube_visible: is_cube_visible(&query), query };
        Ok(queries.into_iter().map(visible).collect())
    }
}

#[cfg(test)]
mod tests;
