//! Finds join paths: lists every path without a cycle and takes the best one (see [`Merit`]).
//!
//! In: a world's joins. Out: the best path between two cubes, by name. Finding a path is slow, so paths are cached.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::world::{Join, World};

/// One hop of a path: from a cube along one of its joins.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Hop {
    pub(crate) from: String,
    pub(crate) join: Join,
}

#[derive(Debug, Clone)]
pub(crate) struct Path {
    pub(crate) hops: Vec<Hop>,
    pub(crate) is_to_one: bool,
    /// True if another path differs from this one only by its positions in `joins:`.
    pub(crate) is_tied: bool,
}

/// The best paths of one world.
#[derive(Debug)]
pub struct Paths<'w> {
    world: &'w World,
    known: RefCell<HashMap<(String, String), Option<Path>>>,
}

impl<'w> Paths<'w> {
    pub fn new(world: &'w World) -> Self {
        Paths { world, known: RefCell::default() }
    }

    /// Returns whether the best path to a cube consists of to-one joins.
    pub fn is_to_one(&self, from: &str, to: &str) -> bool {
        self.best(from, to).is_some_and(|path| path.is_to_one)
    }

    /// Returns whether any path leads to a cube.
    pub fn is_reached(&self, from: &str, to: &str) -> bool {
        self.best(from, to).is_some()
    }

    /// Returns the best path; `None` if no path exists. The path from a cube to itself is empty.
    pub(crate) fn best(&self, from: &str, to: &str) -> Option<Path> {
        if from == to {
            return Some(Path { hops: Vec::new(), is_to_one: true, is_tied: false });
        }
        let key = (from.to_owned(), to.to_owned());
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let mut search = Search { world: self.world, to, best: None, visited: vec![from.to_owned()], hops: Vec::new() };
        search.go(from);
        let best = search.best.map(|(_, path)| path);
        self.known.borrow_mut().insert(key, best.clone());
        best
    }
}

/// The rank of a path. Paths of to-one joins come first, then those with the fewest joins, then by the positions in
/// `joins:`.
type Merit = (bool, usize, Vec<usize>);

struct Search<'w, 'a> {
    world: &'w World,
    to: &'a str,
    best: Option<(Merit, Path)>,
    visited: Vec<String>,
    hops: Vec<(usize, Hop)>,
}

impl Search<'_, '_> {
    fn go(&mut self, from: &str) {
        let Some(cube) = self.world.behind(from) else { return };
        for (position, join) in cube.joins.iter().enumerate() {
            if self.visited.contains(&join.name) || self.world.behind(&join.name).is_none() {
                continue;
            }
            self.hops.push((position, Hop { from: from.to_owned(), join: join.clone() }));
            if join.name == self.to {
                self.arrive();
            } else {
                self.visited.push(join.name.clone());
                self.go(&join.name);
                self.visited.pop();
            }
            self.hops.pop();
        }
    }

    fn arrive(&mut self) {
        let is_to_one = self.hops.iter().all(|(_, hop)| hop.join.relationship.is_to_one());
        let merit = (!is_to_one, self.hops.len(), self.hops.iter().map(|(position, _)| *position).collect());
        let is_tied = self.best.as_ref().is_some_and(|(best, _)| (best.0, best.1) == (merit.0, merit.1));
        if self.best.as_ref().is_none_or(|(best, _)| merit < *best) {
            let hops = self.hops.iter().map(|(_, hop)| hop.clone()).collect();
            self.best = Some((merit, Path { hops, is_to_one, is_tied }));
        } else if let (true, Some((_, best))) = (is_tied, &mut self.best) {
            best.is_tied = true;
        }
    }
}
