//! The joins that a fact needs, and no others (semantics, rules 2, 5 and 6).
//!
//! In: the cubes that groups, filters and measures of one fact speak of. Out: joins in dependency
//! order, or which cube can't be reached.

use std::sync::Arc;

use super::PlannedJoin;
use crate::model::{CubeId, DimensionId, Model, Snippet, SqlPart};
use crate::query::QueryError;

/// Collects the joins of one fact.
pub(super) struct JoinTree<'m> {
    model: &'m Model,
    fact: CubeId,
    pub joins: Vec<PlannedJoin<'m>>,
}

/// Who needs a cube that can't be reached, for the error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker<'a> {
    /// The measure or metric as sent, or the cube.
    pub value: &'a str,
    /// The dimension, segment or cube that was asked for.
    pub target: &'a str,
}

impl<'m> JoinTree<'m> {
    pub(super) fn new(model: &'m Model, fact: CubeId) -> Self {
        JoinTree { model, fact, joins: Vec::new() }
    }

    /// Adds the path to a cube, shared with the paths that are there already.
    pub(super) fn reach(&mut self, cube: CubeId, asker: Asker<'_>) -> Result<(), QueryError> {
        if cube == self.fact || self.joins.iter().any(|j| j.join.target == cube) {
            return Ok(());
        }
        let hop = self.model.reach(self.fact).hop(cube).ok_or_else(|| self.unreachable(cube, asker))?;
        self.reach(hop.from, asker)?;
        let join = &self.model.cube(hop.from).joins[hop.join as usize];
        self.reach_snippet_except(&join.on, cube, asker)?;
        self.joins.push(PlannedJoin { from: hop.from, join });
        Ok(())
    }

    pub(super) fn reach_dimension(&mut self, id: DimensionId, asker: Asker<'_>) -> Result<(), QueryError> {
        self.reach(id.cube, asker)?;
        self.reach_snippet(&self.model.dimension(id).sql, asker)
    }

    pub(super) fn reach_snippet(&mut self, snippet: &'m Snippet, asker: Asker<'_>) -> Result<(), QueryError> {
        self.reach_parts(snippet, None, asker)
    }

    /// An `on` condition speaks of the cube that it is about to join.
    fn reach_snippet_except(&mut self, on: &'m Snippet, joined: CubeId, asker: Asker<'_>) -> Result<(), QueryError> {
        self.reach_parts(on, Some(joined), asker)
    }

    fn reach_parts(
        &mut self,
        snippet: &'m Snippet,
        except: Option<CubeId>,
        asker: Asker<'_>,
    ) -> Result<(), QueryError> {
        for part in &snippet.parts {
            match part {
                SqlPart::Column { cube, .. } if Some(*cube) != except => self.reach(*cube, asker)?,
                SqlPart::Dimension(id) => {
                    if Some(id.cube) != except {
                        self.reach(id.cube, asker)?;
                    }
                    self.reach_parts(&self.model.dimension(*id).sql, except, asker)?;
                }
                SqlPart::Divide(left, right) => {
                    self.reach_parts(left, except, asker)?;
                    self.reach_parts(right, except, asker)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn unreachable(&self, cube: CubeId, asker: Asker<'_>) -> QueryError {
        if is_joined_at_all(self.model, self.fact, cube) {
            return QueryError::ToManyHop {
                cube: self.model.cube(self.fact).name.clone(),
                member: asker.target.into(),
            };
        }
        // A cube that isn't public stays unnamed.
        let reached = self.model.reach(self.fact).order.iter().map(|id| self.model.cube(*id)).filter(|c| c.public);
        let mut reachable: Vec<Arc<str>> = vec![self.model.cube(self.fact).name.clone()];
        reachable.extend(reached.map(|cube| cube.name.clone()).take(19));
        QueryError::NoJoinPath { what: format!("`{}`", asker.value), target: asker.target.into(), reachable }
    }
}

/// The joins that some snippets of a cube need.
///
/// # Errors
/// A cube that can't be reached by to-one hops.
pub(crate) fn joins_for<'m>(
    model: &'m Model,
    cube: CubeId,
    snippets: impl Iterator<Item = &'m Snippet>,
) -> Result<Vec<PlannedJoin<'m>>, QueryError> {
    let name = &*model.cube(cube).name;
    let mut tree = JoinTree::new(model, cube);
    for snippet in snippets {
        tree.reach_snippet(snippet, Asker { value: name, target: name })?;
    }
    Ok(tree.joins)
}

/// By hops of any kind.
fn is_joined_at_all(model: &Model, from: CubeId, to: CubeId) -> bool {
    let mut seen = vec![from];
    let mut next = 0;
    while let Some(cube) = seen.get(next).copied() {
        next += 1;
        for join in &model.cube(cube).joins {
            if join.target == to {
                return true;
            }
            if !seen.contains(&join.target) {
                seen.push(join.target);
            }
        }
    }
    false
}
