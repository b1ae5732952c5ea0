//! Reachability between cubes: the cubes that a cube can join, and the path to each.
//!
//! In: the joins of a model. Out: a [`JoinPaths`] per starting cube. A path of to-one joins is preferred, then the path
//! with the fewest joins, then the position of each join in its cube's `joins:`.

use std::collections::{HashMap, VecDeque};

use super::{CubeId, Model};
use crate::diagnostic::{Code, Diagnostic};

/// The last hop of the best path to a cube.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The cube this hop leaves from.
    pub from: CubeId,
    /// The index of the join in that cube's `joins`.
    pub join: u32,
    /// The number of joins from the start, including this one.
    pub depth: u32,
}

/// The best paths from one cube, as a tree of last hops.
#[derive(Debug, Clone)]
pub struct JoinPaths {
    pub start: CubeId,
    /// The cubes that to-one hops reach, in the order in which they were found: by depth, then by position.
    pub order: Vec<CubeId>,
    to_one: HashMap<CubeId, Hop>,
    /// The last joins to cubes that are reached only through a to-many join.
    to_many: HashMap<CubeId, Hop>,
    to_many_order: Vec<CubeId>,
}

impl JoinPaths {
    /// Finds the paths of to-one joins, breadth first in the order of `joins:`, so that the first path found is the
    /// best one.
    pub(super) fn from(model: &Model, start: CubeId) -> JoinPaths {
        let mut paths = JoinPaths {
            start,
            order: Vec::new(),
            to_one: HashMap::new(),
            to_many: HashMap::new(),
            to_many_order: Vec::new(),
        };
        let mut queue = VecDeque::from([(start, 0)]);
        while let Some((from, depth)) = queue.pop_front() {
            for (index, join) in model.cube(from).joins.iter().enumerate() {
                let is_new = join.target != start && !paths.to_one.contains_key(&join.target);
                if join.relationship.is_to_one() && is_new {
                    let hop = Hop { from, join: index as u32, depth: depth + 1 };
                    paths.to_one.insert(join.target, hop);
                    paths.order.push(join.target);
                    queue.push_back((join.target, depth + 1));
                }
            }
        }
        paths.follow_to_many(model);
        paths
    }

    /// Adds the cubes that are reached through a to-many join, nearest first. Among cubes of one depth, the positions
    /// in `joins:` along their paths decide.
    fn follow_to_many(&mut self, model: &Model) {
        let mut levels: Vec<Vec<(Vec<u32>, CubeId)>> = vec![vec![(Vec::new(), self.start)]];
        let place = |levels: &mut Vec<Vec<(Vec<u32>, CubeId)>>, depth: u32, path: Vec<u32>, cube: CubeId| {
            levels.resize(levels.len().max(depth as usize + 1), Vec::new());
            levels[depth as usize].push((path, cube));
        };
        let mut paths: HashMap<CubeId, Vec<u32>> = HashMap::from([(self.start, Vec::new())]);
        for cube in &self.order {
            let hop = self.to_one[cube];
            let path: Vec<u32> = paths.get(&hop.from).into_iter().flatten().copied().chain([hop.join]).collect();
            paths.insert(*cube, path.clone());
            place(&mut levels, hop.depth, path, *cube);
        }
        let mut depth = 0;
        while depth < levels.len() {
            let mut level = std::mem::take(&mut levels[depth]);
            level.sort();
            for (path, from) in level {
                for (index, join) in (0u32..).zip(&model.cube(from).joins) {
                    if !self.reaches(join.target) {
                        let hop = Hop { from, join: index, depth: depth as u32 + 1 };
                        self.to_many.insert(join.target, hop);
                        self.to_many_order.push(join.target);
                        let path = path.iter().copied().chain([index]).collect();
                        place(&mut levels, hop.depth, path, join.target);
                    }
                }
            }
            depth += 1;
        }
    }

    /// Returns every cube except the start, those of to-one paths first.
    pub fn all(&self) -> impl Iterator<Item = CubeId> {
        self.order.iter().chain(&self.to_many_order).copied()
    }

    /// Returns whether a cube is reached by any joins. The start reaches itself.
    pub fn reaches(&self, cube: CubeId) -> bool {
        self.is_to_one(cube) || self.to_many.contains_key(&cube)
    }

    /// Returns whether a cube is reached by to-one joins only. The start reaches itself.
    pub fn is_to_one(&self, cube: CubeId) -> bool {
        cube == self.start || self.to_one.contains_key(&cube)
    }

    /// Returns the last join of the path of to-one joins; `None` for the start and for cubes without such a path.
    pub fn hop(&self, cube: CubeId) -> Option<Hop> {
        self.to_one.get(&cube).copied()
    }

    /// Returns the last join of the best path of any kind.
    pub fn any_hop(&self, cube: CubeId) -> Option<Hop> {
        self.hop(cube).or_else(|| self.to_many.get(&cube).copied())
    }
}

/// A cube that is reached by two equally good paths, so that the order of `joins:` decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tie {
    pub start: CubeId,
    pub to: CubeId,
    /// The cubes of the path that is used, without `start` and with `to`.
    pub taken: Vec<CubeId>,
    pub other: Vec<CubeId>,
}

impl Tie {
    /// Describes both paths, the used one first.
    pub fn text(&self, model: &Model) -> String {
        let start = &*model.cube(self.start).name;
        let names = |path: &[CubeId]| {
            let names = path.iter().map(|id| &*model.cube(*id).name);
            std::iter::once(start).chain(names).collect::<Vec<_>>().join(" → ")
        };
        let to = &model.cube(self.to).name;
        let (taken, other) = (names(&self.taken), names(&self.other));
        format!("two paths from `{start}` to `{to}` are equally short: {taken} and {other}")
    }
}

/// Returns the pairs of equally short to-one paths from a cube that differ in their first step. Pairs that differ later
/// are ties of the cube at which they part.
pub(super) fn ties(model: &Model, start: CubeId) -> Vec<Tie> {
    let paths = model.join_paths(start);
    let path = |to: CubeId| {
        let mut cubes = vec![to];
        while let Some(hop) = paths.hop(cubes[cubes.len() - 1]).filter(|hop| hop.from != start) {
            cubes.push(hop.from);
        }
        cubes.reverse();
        cubes
    };
    let depth = |cube: CubeId| paths.hop(cube).map_or(0, |hop| hop.depth);
    let mut ties: Vec<Tie> = Vec::new();
    for from in std::iter::once(start).chain(paths.order.iter().copied()) {
        for (index, join) in model.cube(from).joins.iter().enumerate() {
            let Some(best) = paths.hop(join.target).filter(|_| join.relationship.is_to_one()) else { continue };
            let is_best = best.from == from && best.join == index as u32;
            let is_reported = ties.iter().any(|tie| tie.to == join.target);
            if is_best || is_reported || depth(from) + 1 != best.depth || from == best.from {
                continue;
            }
            let taken = path(join.target);
            let mut other = if from == start { Vec::new() } else { path(from) };
            other.push(join.target);
            // If two paths have the same first joins, the tie belongs to the cube at which they diverge.
            if taken.first() != other.first() {
                ties.push(Tie { start, to: join.target, taken, other });
            }
        }
    }
    ties
}

/// Warns of ties that only the order of `joins:` decides.
pub(super) fn warn_of_ties(model: &Model, diagnostics: &mut Vec<Diagnostic>) {
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none() && cube.joins.len() > 1) {
        for tie in model.ties(cube.id) {
            let message = tie.text(model);
            let hint = "Queries use the first path, whose join comes first in `joins:`. To use both, join one of the cubes under another name with `cube:`.";
            let diagnostic = Diagnostic::warning(Code::JoinPathTie, message).hint(hint);
            diagnostics.push(match &cube.span {
                Some(span) => diagnostic.at(span.clone()),
                None => diagnostic,
            });
        }
    }
}
