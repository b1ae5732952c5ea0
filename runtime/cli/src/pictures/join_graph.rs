//! The join graph that a caller may see.
//!
//! In: the access of a caller. Out: cubes and joins, as JSON and as a graph to draw. Private and closed cubes are left
//! out. Not here: paths of joins, which a query chooses (compiler).

use std::collections::{BTreeSet, HashMap};

use serde::Serialize;
use terrane_app::metadata;
use terrane_compiler::Access;
use terrane_compiler::model::Relationship;
use terrane_pictures::{Edge, Graph, Node, NodeKind};

use crate::report::plural;

/// The cubes and their joins.
#[derive(Debug, Serialize)]
pub(crate) struct JoinGraph<'m> {
    pub(crate) cubes: Vec<JoinedCube<'m>>,
    pub(crate) joins: Vec<CubeJoin<'m>>,
}

/// A cube, or the alias of a cube.
#[derive(Debug, Serialize)]
pub(crate) struct JoinedCube<'m> {
    pub(crate) name: &'m str,
    title: &'m str,
    /// The cube that this one is an alias of.
    alias_of: Option<&'m str>,
    measures: usize,
    dimensions: usize,
}

/// A join in the direction in which it is declared.
#[derive(Debug, Serialize)]
pub(crate) struct CubeJoin<'m> {
    from: &'m str,
    to: &'m str,
    relationship: &'static str,
    /// True if every row of `from` has a matching row of `to`.
    always: bool,
}

impl<'m> JoinGraph<'m> {
    /// Returns the graph in the order of the model.
    pub(crate) fn of(access: &Access<'m>) -> Self {
        let (mut cubes, mut joins) = (Vec::new(), Vec::new());
        for cube in metadata::cubes(access) {
            cubes.push(JoinedCube {
                name: &cube.name,
                title: &cube.title,
                alias_of: cube.alias_of.map(|of| &*access.model().cube(of).name),
                measures: metadata::measures(access, cube).count(),
                dimensions: metadata::dimensions(access, cube).count(),
            });
            joins.extend(metadata::joins(access, cube).map(|(join, target)| CubeJoin {
                from: &cube.name,
                to: &target.name,
                relationship: word(join.relationship),
                always: join.never_misses(),
            }));
        }
        JoinGraph { cubes, joins }
    }

    /// Removes all cubes except the given one and the cubes that it reaches.
    pub(crate) fn retain_below(&mut self, cube: &'m str) {
        let mut reached: BTreeSet<&str> = [cube].into();
        let mut open = vec![cube];
        while let Some(from) = open.pop() {
            let targets = self.joins.iter().filter(|join| join.from == from).map(|join| join.to);
            open.extend(targets.filter(|target| reached.insert(target)));
        }
        self.cubes.retain(|cube| reached.contains(cube.name));
        self.joins.retain(|join| reached.contains(join.from));
    }

    /// Returns the graph to draw. Its nodes are the cubes in their order.
    pub(crate) fn graph(&self, title: &str) -> Graph {
        let places: HashMap<&str, usize> =
            self.cubes.iter().enumerate().map(|(place, cube)| (cube.name, place)).collect();
        let edge = |join: &CubeJoin<'_>| {
            let (from, to) = (*places.get(join.from)?, *places.get(join.to)?);
            Some(Edge { from, to, label: join.relationship.to_owned() })
        };
        Graph {
            title: title.to_owned(),
            nodes: self.cubes.iter().map(node).collect(),
            edges: self.joins.iter().filter_map(edge).collect(),
        }
    }
}

fn node(cube: &JoinedCube<'_>) -> Node {
    let alias = cube.alias_of.map(|of| format!("alias of {of}, ")).unwrap_or_default();
    let (measures, dimensions) = (plural(cube.measures, "measure"), plural(cube.dimensions, "dimension"));
    Node { label: cube.name.to_owned(), detail: format!("{alias}{measures}, {dimensions}"), kind: NodeKind::Cube }
}

fn word(relationship: Relationship) -> &'static str {
    match relationship {
        Relationship::ManyToOne => "many_to_one",
        Relationship::OneToMany => "one_to_many",
        Relationship::OneToOne => "one_to_one",
    }
}
