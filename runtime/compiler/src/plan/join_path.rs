//! The joins that a fact needs, and no others.
//!
//! In: the cubes that the groups, filters and measures of one fact refer to. Out: a [`JoinTree`] in dependency order,
//! or the cube that cannot be reached. A cube that is reached by two different paths is joined twice under two names.
//! This happens if the fact joins the cube, and a member of another joined cube refers to it along that cube's own
//! joins.

use std::sync::Arc;

use crate::model::{CubeId, DimensionId, Join, Model, Snippet, SqlPart};
use crate::query::{JoinDirection, QueryError};

/// The index of a cube in the tree; 0 is the fact's own cube.
pub type NodeId = usize;

/// A fact's rows with the cubes that are joined to them.
#[derive(Debug, Clone)]
pub struct JoinTree<'m> {
    pub cube: CubeId,
    /// The joins, each after the join of its `from`. The n-th join makes node n + 1.
    pub joins: Vec<PlannedJoin<'m>>,
}

#[derive(Debug, Clone)]
pub struct PlannedJoin<'m> {
    pub from: NodeId,
    pub join: &'m Join,
    /// The name of the joined rows in SQL: the cube's, unless that name is taken.
    pub alias: Arc<str>,
    /// True if one row of the fact can have several rows of this join.
    pub is_to_many: bool,
}

/// The value and the target that need a join, for errors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asker<'a> {
    /// The measure or metric as it was sent, or the cube.
    pub value: &'a str,
    /// The requested dimension, segment or cube.
    pub target: &'a str,
}

impl<'m> JoinTree<'m> {
    pub(super) fn new(cube: CubeId) -> Self {
        JoinTree { cube, joins: Vec::new() }
    }

    /// Returns the cube of every node.
    pub fn cubes(&self) -> impl Iterator<Item = CubeId> {
        (0..=self.joins.len()).map(|node| self.cube_of(node))
    }

    pub fn cube_of(&self, node: NodeId) -> CubeId {
        node.checked_sub(1).map_or(self.cube, |index| self.joins[index].join.target)
    }

    pub fn is_to_many(&self, node: NodeId) -> bool {
        node.checked_sub(1).is_some_and(|index| self.joins[index].is_to_many)
    }

    /// Returns the node to which a member of the cube of `owner` refers by naming `cube`. `None` if a join on the path
    /// to the node is not in the tree.
    pub fn find(&self, model: &Model, owner: NodeId, cube: CubeId) -> Option<NodeId> {
        let mut node = owner;
        for (from, index) in path(model, self.cube_of(owner), cube)? {
            node = self.joined(node, &model.cube(from).joins[index])?;
        }
        Some(node)
    }

    fn joined(&self, from: NodeId, join: &Join) -> Option<NodeId> {
        let same = |planned: &PlannedJoin<'_>| planned.from == from && std::ptr::eq(planned.join, join);
        self.joins.iter().position(same).map(|index| index + 1)
    }

    /// Adds the joins from `owner`'s cube to `cube`, and returns the node of `cube`.
    pub(super) fn reach(
        &mut self,
        model: &'m Model,
        owner: NodeId,
        cube: CubeId,
        asker: Asker<'_>,
    ) -> Result<NodeId, QueryError> {
        let start = self.cube_of(owner);
        let hops = path(model, start, cube).ok_or_else(|| unreachable(model, start, cube, asker))?;
        let mut node = owner;
        for (from, index) in hops {
            let join = &model.cube(from).joins[index];
            node = match self.joined(node, join) {
                Some(joined) => joined,
                None => self.join(model, node, join, asker)?,
            };
        }
        Ok(node)
    }

    fn join(&mut self, model: &'m Model, from: NodeId, join: &'m Join, asker: Asker<'_>) -> Result<NodeId, QueryError> {
        // The condition may refer to its own cube's dimensions, which may need joins of their own.
        self.reach_parts(model, from, &join.on, Some(join.target), asker)?;
        let alias = self.free_alias(model, join.target);
        let is_to_many = self.is_to_many(from) || !join.relationship.is_to_one();
        self.joins.push(PlannedJoin { from, join, alias, is_to_many });
        Ok(self.joins.len())
    }

    fn free_alias(&self, model: &Model, cube: CubeId) -> Arc<str> {
        let name = &model.cube(cube).name;
        let is_taken =
            |alias: &str| alias == &*model.cube(self.cube).name || self.joins.iter().any(|j| &*j.alias == alias);
        if !is_taken(name) {
            return name.clone();
        }
        let is_free = |alias: &String| !is_taken(alias) && model.cube_named(alias).is_none();
        (2..).map(|number| format!("{name}_{number}")).find(is_free).map_or_else(|| name.clone(), Into::into)
    }

    pub(super) fn reach_dimension(
        &mut self,
        model: &'m Model,
        owner: NodeId,
        id: DimensionId,
        asker: Asker<'_>,
    ) -> Result<NodeId, QueryError> {
        let node = self.reach(model, owner, id.cube, asker)?;
        self.reach_snippet(model, node, &model.dimension(id).sql, asker)?;
        Ok(node)
    }

    pub(super) fn reach_snippet(
        &mut self,
        model: &'m Model,
        owner: NodeId,
        snippet: &'m Snippet,
        asker: Asker<'_>,
    ) -> Result<(), QueryError> {
        self.reach_parts(model, owner, snippet, None, asker)
    }

    /// Adds the joins that parts of a snippet need. `joined` is the cube that an `on` condition is about to join.
    fn reach_parts(
        &mut self,
        model: &'m Model,
        owner: NodeId,
        snippet: &'m Snippet,
        joined: Option<CubeId>,
        asker: Asker<'_>,
    ) -> Result<(), QueryError> {
        for part in &snippet.parts {
            match part {
                SqlPart::Column { cube, .. } if Some(*cube) != joined => {
                    self.reach(model, owner, *cube, asker)?;
                }
                SqlPart::Dimension(id) if Some(id.cube) != joined => {
                    self.reach_dimension(model, owner, *id, asker)?;
                }
                SqlPart::Divide(left, right) => {
                    self.reach_parts(model, owner, left, joined, asker)?;
                    self.reach_parts(model, owner, right, joined, asker)?;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// Returns the joins of the best path, first to last.
pub(crate) fn path(model: &Model, start: CubeId, cube: CubeId) -> Option<Vec<(CubeId, usize)>> {
    let mut hops = Vec::new();
    let mut at = cube;
    let paths = if at == start { return Some(hops) } else { model.join_paths(start) };
    while at != start {
        let hop = paths.any_hop(at)?;
        hops.push((hop.from, hop.join as usize));
        at = hop.from;
    }
    hops.reverse();
    Some(hops)
}

fn unreachable(model: &Model, from: CubeId, to: CubeId, asker: Asker<'_>) -> QueryError {
    // A cube that is not public stays unnamed.
    let reached = std::iter::once(from).chain(model.join_paths(from).all()).map(|id| model.cube(id));
    let reachable = reached.filter(|cube| cube.public).map(|cube| cube.name.clone()).take(20).collect();
    let (from, to) = (model.cube(from), model.cube(to));
    let is_reversed = from.public && to.public && model.join_paths(to.id).reaches(from.id);
    let reversed = is_reversed.then(|| JoinDirection { from: to.name.clone(), to: from.name.clone() });
    QueryError::NoJoinPath { what: asker.value.into(), target: asker.target.into(), reachable, reversed }
}

/// Returns a tree that ends with one join of a cube, after the joins that its condition needs.
///
/// # Errors
/// A cube of the condition cannot be reached.
pub(crate) fn joins_over<'m>(model: &'m Model, cube: CubeId, join: &'m Join) -> Result<JoinTree<'m>, QueryError> {
    let name = &*model.cube(cube).name;
    let mut tree = JoinTree::new(cube);
    tree.join(model, 0, join, Asker { value: name, target: name })?;
    Ok(tree)
}

/// Returns the joins that some snippets of a cube need.
///
/// # Errors
/// A cube cannot be reached.
pub(crate) fn joins_for<'m>(
    model: &'m Model,
    cube: CubeId,
    snippets: impl Iterator<Item = &'m Snippet>,
) -> Result<JoinTree<'m>, QueryError> {
    let name = &*model.cube(cube).name;
    let mut tree = JoinTree::new(cube);
    for snippet in snippets {
        tree.reach_snippet(model, 0, snippet, Asker { value: name, target: name })?;
    }
    Ok(tree)
}
