//! The joined rows of one cube (rules 2, 3 and 11): every row with every combination of what joins.
//!
//! In: a cube and the other cubes that are needed. Out: per row its tuples, with nothing where
//! nothing joins.

use super::paths::{Hop, Path};
use super::{Code, Construct, Reading};
use crate::value::Value;
use crate::world::{Cell, Cube, Rows, World};

/// The cubes joined, parents first; the first is the cube itself.
pub(crate) struct Tree<'w> {
    world: &'w World,
    nodes: Vec<Node<'w>>,
}

struct Node<'w> {
    name: String,
    cube: &'w Cube,
    /// Index of the parent, and the join.
    hop: Option<(usize, Hop)>,
}

/// One row of each cube of a tree.
pub(crate) type Tuple = Vec<Option<usize>>;

impl<'w> Tree<'w> {
    pub(crate) fn new(world: &'w World, fact: &str) -> Option<Self> {
        let cube = world.behind(fact)?;
        Some(Tree { world, nodes: vec![Node { name: fact.to_owned(), cube, hop: None }] })
    }

    fn position(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Adds the path to a cube; a problem is noted.
    pub(crate) fn reach(&mut self, reading: &Reading<'w>, cube: &str) {
        if self.position(cube).is_some() {
            return;
        }
        let fact = self.nodes[0].name.clone();
        let Some(path) = reading.paths.best(&fact, cube) else {
            reading.refuse(Code::NoJoinPath);
            return;
        };
        if !path.is_to_one {
            reading.uses(Construct::ToMany);
        }
        self.add(reading, path);
    }

    fn add(&mut self, reading: &Reading<'w>, path: Path) {
        for hop in path.hops {
            let Some(parent) = self.position(&hop.from) else { return };
            match self.position(&hop.join.name) {
                // The best path to each cube must be part of the best path through it: else there is no one tree.
                Some(known) => {
                    let same =
                        self.nodes[known].hop.as_ref().is_some_and(|(from, known)| *from == parent && *known == hop);
                    if !same {
                        reading.leave_open("two best paths that are no one tree");
                    }
                }
                None => {
                    let Some(cube) = self.world.behind(&hop.join.name) else { return };
                    self.nodes.push(Node { name: hop.join.name.clone(), cube, hop: Some((parent, hop)) });
                }
            }
        }
    }

    /// Whether a to-many hop leads to the cube.
    pub(crate) fn is_behind_to_many(&self, name: &str) -> bool {
        let mut at = self.position(name);
        while let Some(position) = at {
            let Some((parent, hop)) = &self.nodes[position].hop else { return false };
            if !hop.join.relationship.is_to_one() {
                return true;
            }
            at = Some(*parent);
        }
        false
    }

    pub(crate) fn fact(&self) -> &'w Cube {
        self.nodes[0].cube
    }

    /// All tuples of one row of the cube.
    pub(crate) fn tuples(&self, row: usize) -> Vec<Tuple> {
        let mut tuples: Vec<Tuple> = vec![vec![Some(row)]];
        for node in &self.nodes[1..] {
            let Some((parent, hop)) = &node.hop else { continue };
            let mut longer = Vec::new();
            for tuple in tuples {
                let found = tuple[*parent].map_or(Vec::new(), |row| self.matches(*parent, row, node, hop));
                let rows: Vec<Option<usize>> =
                    if found.is_empty() { vec![None] } else { found.into_iter().map(Some).collect() };
                for row in rows {
                    let mut next = tuple.clone();
                    next.push(row);
                    longer.push(next);
                }
            }
            tuples = longer;
        }
        tuples
    }

    fn matches(&self, parent: usize, row: usize, node: &Node<'w>, hop: &Hop) -> Vec<usize> {
        let value =
            |cube: &Cube, row: usize, column: usize| cube.rows[row][column].value(cube.columns[column].ty, false);
        let key = value(self.nodes[parent].cube, row, hop.join.left);
        let equals = |other: &usize| key == value(node.cube, *other, hop.join.right);
        if key == Value::Null { Vec::new() } else { (0..node.cube.rows.len()).filter(equals).collect() }
    }

    pub(crate) fn view<'t>(&'t self, tuple: &'t Tuple, own: &str) -> View<'t, 'w> {
        View { tree: self, tuple, own: own.to_owned() }
    }
}

/// A tuple as one of its cubes sees it.
pub(crate) struct View<'t, 'w> {
    tree: &'t Tree<'w>,
    tuple: &'t Tuple,
    own: String,
}

impl Rows for View<'_, '_> {
    fn row(&self, cube: Option<&str>) -> Option<(&Cube, &[Cell])> {
        let position = self.tree.position(cube.unwrap_or(&self.own))?;
        let cube = self.tree.nodes[position].cube;
        self.tuple[position].map(|row| (cube, cube.rows[row].as_slice()))
    }

    fn of(&self, cube: Option<&str>) -> Box<dyn Rows + '_> {
        Box::new(View { tree: self.tree, tuple: self.tuple, own: cube.unwrap_or(&self.own).to_owned() })
    }
}
