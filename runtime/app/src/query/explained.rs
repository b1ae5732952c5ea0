//! Explanations of queries, with as much of the warehouse's plan as the caller may see.
//!
//! In: a query. Out: its explanation, and the warehouse's plan for callers with the scope `admin`: its estimates are
//! statistics of all rows, without policies. Absent: formats.

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

/// The warehouse's plan of an explained query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlanOfWarehouse {
    /// The text of the warehouse; `None` if the warehouse does not explain statements.
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
