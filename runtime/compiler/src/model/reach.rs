//! Which cubes a cube reaches, and by which path (semantics, rule 6).
//!
//! In: the joins of a model. Out: a [`Reach`] per starting cube. Among paths to a cube those of
//! to-one hops only win, then the fewest hops, then the position in each cube's `joins:`, hop by hop.

use std::collections::{HashMap, VecDeque};

use super::{CubeId, Model};

/// The last hop of the best path to a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The cube this hop leaves from.
    pub from: CubeId,
    /// Index into that cube's `joins`.
    pub join: u32,
    /// Hops from the start, this one included.
    pub depth: u32,
}

/// The to-one paths from one cube, as a tree of last hops.
#[derive(Debug, Clone)]
pub struct Reach {
    pub start: CubeId,
    /// In the order in which they were found: by depth, then by position.
    pub order: Vec<CubeId>,
    to_one: HashMap<CubeId, Hop>,
}

impl Reach {
    /// Breadth first in the order of `joins:`, so the first path found is the best one.
    pub(super) fn from(model: &Model, start: CubeId) -> Reach {
        let mut reach = Reach { start, order: Vec::new(), to_one: HashMap::new() };
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((from, depth)) = queue.pop_front() {
            for (index, join) in model.cube(from).joins.iter().enumerate() {
                let is_new = join.target != start && !reach.to_one.contains_key(&join.target);
                if join.relationship.is_to_one() && is_new {
                    let hop = Hop { from, join: index as u32, depth: depth + 1 };
                    reach.to_one.insert(join.target, hop);
                    reach.order.push(join.target);
                    queue.push_back((join.target, depth + 1));
                }
            }
        }
        reach
    }

    /// Reached by to-one hops only; the start reaches itself.
    pub fn is_to_one(&self, cube: CubeId) -> bool {
        cube == self.start || self.to_one.contains_key(&cube)
    }

    /// The last hop to a cube; `None` for the start and for what can't be reached.
    pub fn hop(&self, cube: CubeId) -> Option<Hop> {
        self.to_one.get(&cube).copied()
    }
}
