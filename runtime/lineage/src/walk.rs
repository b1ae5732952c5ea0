//! Walks from a node along its inputs or its readers, within the part of the graph that a caller may see.
//!
//! In: a [`Lineage`], a start, a [`Sight`]. Out: every reached node once, with its distance and the edge by which it
//! was reached. Not here: the graph itself.

use std::collections::VecDeque;

use super::{Lineage, Node, Subject, Use};
use terrane_compiler::Access;

/// The nodes that a caller may see.
#[derive(Debug)]
pub struct Sight {
    /// For each node, true if the caller may see it; `None` if the caller may see all nodes.
    seen: Option<Vec<bool>>,
}

/// A node that a walk came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reached {
    pub node: u32,
    /// The number of edges from the start.
    pub depth: u32,
    /// The previous node on the shortest path. For the start, this is the start itself.
    pub by: u32,
    /// The use on the edge from the previous node.
    pub usage: Use,
}

impl Sight {
    pub fn of_everything() -> Sight {
        Sight { seen: None }
    }

    /// Returns the nodes that a caller with policies may see: the members that exist for the caller, and the columns,
    /// tables and models that these members depend on. A column that a hidden member reads is not visible, nor are the
    /// columns that it is computed from, under any name. A column that only the warehouse lists and no SQL names is not
    /// visible either. Policies are visible only to callers without policies.
    pub fn of(lineage: &Lineage, access: &Access<'_>) -> Sight {
        if access.sees_everything() {
            return Sight::of_everything();
        }
        let model = access.model();
        let is_visible = |node: &Node| match node.subject {
            Subject::Cube(id) => !access.is_closed(model.cube(id)),
            Subject::Join { cube, target } => [cube, target].iter().all(|id| !access.is_closed(model.cube(*id))),
            Subject::Member(member) => {
                let cube = match member {
                    terrane_compiler::model::Member::Dimension(id) => id.cube,
                    terrane_compiler::model::Member::Measure(id) => id.cube,
                    terrane_compiler::model::Member::Segment(id) => id.cube,
                };
                access.offers(member) && !access.is_closed(model.cube(cube))
            }
            Subject::Metric(id) => access.offers_metric(id),
            Subject::Policy => false,
            Subject::Other => true,
        };
        let mut visible: Vec<bool> = lineage.nodes.iter().map(|node| is_visible(node) && !node.is_inspected).collect();
        let is_hidden = |at: &u32| {
            matches!(lineage.nodes[*at as usize].subject, Subject::Member(_))
                && !is_visible(&lineage.nodes[*at as usize])
        };
        let mut hidden: Vec<u32> = (0..lineage.nodes.len() as u32).filter(is_hidden).collect();
        while let Some(at) = hidden.pop() {
            let is_member = !lineage.nodes[at as usize].ty.is_column();
            for (from, _, usage) in lineage.inputs_of(at) {
                let is_column = lineage.nodes[from as usize].ty.is_column();
                if is_column
                    && (is_member || usage == Use::Value)
                    && std::mem::replace(&mut visible[from as usize], false)
                {
                    hidden.push(from);
                }
            }
        }
        let mut seen = vec![false; visible.len()];
        let is_start =
            |at: &u32| visible[*at as usize] && !matches!(lineage.nodes[*at as usize].subject, Subject::Other);
        let mut open: Vec<u32> = (0..lineage.nodes.len() as u32).filter(is_start).collect();
        open.iter().for_each(|at| seen[*at as usize] = true);
        while let Some(at) = open.pop() {
            for (from, ..) in lineage.inputs_of(at) {
                if visible[from as usize] && !seen[from as usize] {
                    seen[from as usize] = true;
                    open.push(from);
                }
            }
        }
        Sight { seen: Some(seen) }
    }

    /// Returns true if the SQL of models may be shown. A caller with policies must not see this SQL, because it may
    /// name hidden columns.
    pub fn shows_sql(&self) -> bool {
        self.seen.is_none()
    }

    pub fn sees(&self, node: u32) -> bool {
        self.seen.as_ref().is_none_or(|seen| seen[node as usize])
    }
}

impl Lineage {
    /// Returns the nodes that a node reads.
    pub fn inputs_of(&self, node: u32) -> impl Iterator<Item = (u32, u32, Use)> + '_ {
        let (from, to) = (self.backward_from[node as usize], self.backward_from[node as usize + 1]);
        self.backward[from as usize..to as usize].iter().map(|at| self.edges[*at as usize])
    }

    /// Returns the nodes that read a node.
    pub fn readers_of(&self, node: u32) -> impl Iterator<Item = (u32, u32, Use)> + '_ {
        let (from, to) = (self.forward_from[node as usize], self.forward_from[node as usize + 1]);
        self.edges[from as usize..to as usize].iter().copied()
    }

    /// Returns all nodes that a node depends on, nearest first, beginning with the node itself.
    pub fn upstream(&self, start: u32, sight: &Sight) -> Vec<Reached> {
        self.walk(start, sight, |lineage, at, next| {
            lineage.inputs_of(at).for_each(|(from, _, usage)| next(from, usage))
        })
    }

    /// Returns the node itself and all nodes that depend on it, nearest first. A change of the node affects these
    /// nodes.
    pub fn downstream(&self, start: u32, sight: &Sight) -> Vec<Reached> {
        self.walk(start, sight, |lineage, at, next| lineage.readers_of(at).for_each(|(_, to, usage)| next(to, usage)))
    }

    fn walk(
        &self,
        start: u32,
        sight: &Sight,
        neighbours: impl Fn(&Lineage, u32, &mut dyn FnMut(u32, Use)),
    ) -> Vec<Reached> {
        if !sight.sees(start) {
            return Vec::new();
        }
        let mut is_met = vec![false; self.nodes.len()];
        is_met[start as usize] = true;
        let mut queue = VecDeque::from([Reached { node: start, depth: 0, by: start, usage: Use::Value }]);
        let mut reached = Vec::new();
        while let Some(at) = queue.pop_front() {
            reached.push(at);
            neighbours(self, at.node, &mut |node, usage| {
                if sight.sees(node) && !std::mem::replace(&mut is_met[node as usize], true) {
                    queue.push_back(Reached { node, depth: at.depth + 1, by: at.node, usage });
                }
            });
        }
        reached
    }
}
