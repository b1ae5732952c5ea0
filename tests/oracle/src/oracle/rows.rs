//! Joins the rows of one cube: every row with every combination of joined rows.
//!
//! In: a cube and the other cubes that are needed. Out: the tuples of each row. If no row of a cube joins, the cube has
//! no row in the tuple. In the SQL of a member, a cube's name means the cube that the member's own cube reaches. A cube
//! may therefore be in the tree several times, by different paths.

use super::paths::Hop;
use super::{Code, Construct, Evaluation};
use crate::value::Value;
use crate::world::{Cell, Cube, Expr, Rows};

/// The joined cubes. Parents come before their children, and the first one is the fact itself.
pub(crate) struct Tree<'r, 'w> {
    evaluation: &'r Evaluation<'w>,
    nodes: Vec<Node<'w>>,
}

struct Node<'w> {
    name: String,
    cube: &'w Cube,
    /// The index of the parent, and the join from it.
    hop: Option<(usize, Hop)>,
}

/// One row of each cube of a tree.
pub(crate) type Tuple = Vec<Option<usize>>;

impl<'r, 'w> Tree<'r, 'w> {
    pub(crate) fn new(evaluation: &'r Evaluation<'w>, fact: &str) -> Option<Self> {
        let cube = evaluation.world.behind(fact)?;
        Some(Tree { evaluation, nodes: vec![Node { name: fact.to_owned(), cube, hop: None }] })
    }

    /// Returns the node of the cube that the node `owner` reaches under this name.
    fn find(&self, owner: usize, cube: &str) -> Option<usize> {
        let path = self.evaluation.paths.best(&self.nodes[owner].name, cube)?;
        path.hops.iter().try_fold(owner, |parent, hop| self.child(parent, hop))
    }

    fn child(&self, parent: usize, hop: &Hop) -> Option<usize> {
        self.nodes.iter().position(|node| node.hop.as_ref().is_some_and(|(from, by)| *from == parent && by == hop))
    }

    /// Adds the path from a node to a cube. Reports a problem if no path exists.
    fn reach_from(&mut self, owner: usize, cube: &str) -> Option<usize> {
        let Some(path) = self.evaluation.paths.best(&self.nodes[owner].name, cube) else {
            self.evaluation.refuse(Code::NoJoinPath);
            return None;
        };
        if !path.is_to_one {
            self.evaluation.uses(Construct::ToMany);
            if path.is_tied {
                self.evaluation.uses(Construct::ToManyTie);
            }
        }
        // The best path to a cube may differ from the best paths to the cubes on it, because it has the fewest hops.
        for (count, hop) in path.hops.iter().enumerate().skip(1) {
            let before = self.evaluation.paths.best(&self.nodes[owner].name, &hop.from);
            if before.is_none_or(|before| before.hops != path.hops[..count]) {
                self.evaluation.leave_open("a best path that doesn't hold the best paths to its cubes");
            }
        }
        let mut at = owner;
        for hop in path.hops {
            at = match self.child(at, &hop) {
                Some(child) => child,
                None => {
                    let cube = self.evaluation.world.behind(&hop.join.name)?;
                    self.nodes.push(Node { name: hop.join.name.clone(), cube, hop: Some((at, hop)) });
                    self.nodes.len() - 1
                }
            };
        }
        Some(at)
    }

    /// Adds a dimension's cube and the cubes that its SQL reads.
    pub(crate) fn reach_dimension(&mut self, cube: &str, name: &str) {
        if let (Some(node), Some(dimension)) = (self.reach_from(0, cube), self.evaluation.dimension(cube, name)) {
            self.reach_expression(node, &dimension.sql);
        }
    }

    /// Adds the cubes that a segment reads.
    pub(crate) fn reach_segment(&mut self, cube: &str, sql: &Expr) {
        if let Some(node) = self.reach_from(0, cube) {
            self.reach_expression(node, sql);
        }
    }

    /// Adds the cubes that an expression of a node's cube reads.
    pub(crate) fn reach_expression(&mut self, owner: usize, sql: &Expr) {
        match sql {
            Expr::Column { cube: Some(cube), .. } => {
                self.reach_from(owner, cube);
            }
            Expr::Member { cube, name } => {
                let node = cube.as_ref().map_or(Some(owner), |cube| self.reach_from(owner, cube));
                let dimension = node.and_then(|node| Some((node, self.nodes[node].cube.dimension(name)?)));
                if let Some((node, dimension)) = dimension {
                    self.reach_expression(node, &dimension.sql);
                }
            }
            other => other.parts().into_iter().for_each(|part| self.reach_expression(owner, part)),
        }
    }

    /// Returns whether the path from the fact to a cube contains a to-many hop. `name` is the cube's name as seen from
    /// the fact.
    pub(crate) fn is_behind_to_many(&self, name: &str) -> bool {
        let mut at = self.find(0, name);
        while let Some((parent, hop)) = at.and_then(|position| self.nodes[position].hop.as_ref()) {
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

    /// Returns all tuples of one row of the fact.
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

    /// Returns the tuple as the members of the fact see it.
    pub(crate) fn view<'t>(&'t self, tuple: &'t Tuple) -> View<'t, 'r, 'w> {
        View { tree: self, tuple, own: Some(0) }
    }
}

/// A tuple as the members of one of its cubes see it.
pub(crate) struct View<'t, 'r, 'w> {
    tree: &'t Tree<'r, 'w>,
    tuple: &'t Tuple,
    /// The node of the member's own cube; `None` if no node has joined it.
    own: Option<usize>,
}

impl View<'_, '_, '_> {
    fn node(&self, cube: Option<&str>) -> Option<usize> {
        cube.map_or(self.own, |cube| self.tree.find(self.own?, cube))
    }
}

impl Rows for View<'_, '_, '_> {
    fn row(&self, cube: Option<&str>) -> Option<(&Cube, &[Cell])> {
        let node = self.node(cube)?;
        let cube = self.tree.nodes[node].cube;
        self.tuple[node].map(|row| (cube, cube.rows[row].as_slice()))
    }

    fn of(&self, cube: Option<&str>) -> Box<dyn Rows + '_> {
        Box::new(View { tree: self.tree, tuple: self.tuple, own: self.node(cube) })
    }
}
