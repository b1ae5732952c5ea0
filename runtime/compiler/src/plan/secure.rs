//! The only door to SQL: a plan becomes a [`SecuredPlan`] here and nowhere else.
//!
//! In: a [`LogicalPlan`] and who asks. Out: the plan with that caller's policies applied. A reviewer
//! reads this one function instead of every path.

use super::LogicalPlan;
use crate::query::QueryError;
use crate::security::SecurityContext;

/// A plan that may be run for the caller it was secured for. It has no other constructor than
/// [`secure`], and `sql::lower` takes nothing else.
#[derive(Debug)]
pub struct SecuredPlan<'m> {
    plan: LogicalPlan<'m>,
}

impl<'m> SecuredPlan<'m> {
    pub fn plan(&self) -> &LogicalPlan<'m> {
        &self.plan
    }
}

/// Applies the caller's policies. Callers can't be told apart yet, so a cube that a policy speaks of is
/// closed to everyone.
///
/// # Errors
/// [`QueryError::Guarded`] when the plan reads such a cube.
pub fn secure<'m>(plan: LogicalPlan<'m>, _caller: &SecurityContext) -> Result<SecuredPlan<'m>, QueryError> {
    let read = plan
        .facts
        .iter()
        .flat_map(|fact| (0..=fact.tree.joins.len()).map(|node| fact.tree.cube_of(node)));
    match read.map(|id| plan.model.cube(id)).find(|cube| cube.is_guarded) {
        Some(cube) => Err(QueryError::Guarded { cube: cube.name.clone() }),
        None => Ok(SecuredPlan { plan }),
    }
}
