//! Explanations of queries, with the warehouse's plan for callers who may see it.
//!
//! In: a query. Out: its explanation. For callers with the scope `admin`, also the warehouse's plan. Other callers do
//! not get the plan, because its estimates are statistics of all rows, to which no policies apply. Not here: formats.

use terrane_compiler::explanation::Explanation;
use terrane_compiler::query::SemanticQuery;

use super::{QueryRunError, QuerySession};
use crate::domain::Scope;

/// An explained query.
#[derive(Debug)]
pub struct Explained {
    pub explanation: Explanation,
    pub plan: PlanOfWarehouse,
}

/// The warehouse's plan of an explained query, if the caller may see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanOfWarehouse {
    /// The plan in the warehouse's words; `None` if the warehouse does not explain statements.
    Shown(Option<String>),
    /// The caller lacks the scope `admin`.
    ForAdmins,
}

impl QuerySession<'_> {
    /// Explains a query. Its statement is not executed.
    ///
    /// # Errors
    /// [`QueryRunError`]
    pub async fn explain(&self, query: &SemanticQuery) -> Result<Explained, QueryRunError> {
        let explanation = self.prepare(query).await?.explain().await?;
        let plan = match self.context.scopes.hold(Scope::Admin) {
            true => PlanOfWarehouse::Shown(self.warehouse_plan(query, &explanation).await?),
            false => PlanOfWarehouse::ForAdmins,
        };
        Ok(Explained { explanation, plan })
    }
}
