//! The lineage of a member that a caller may see.
//!
//! In: the lineage of a project and the name of a member, metric, cube, model or node. Out: its nodes and edges, as
//! JSON and as a graph to draw. Not here: walks (`terrane_lineage`).

use std::collections::HashMap;

use serde::Serialize;
use terrane_lineage::{Lineage, NodeType, Sight};
use terrane_pictures::{Edge, Graph, Node, NodeKind};
use terrane_wire::lineage::{self as wire, Direction};

/// The types of nodes that a short name may mean, in the order in which they are tried.
const NAMED: [NodeType; 6] =
    [NodeType::Measure, NodeType::Dimension, NodeType::Segment, NodeType::Metric, NodeType::Cube, NodeType::Model];

/// The nodes and edges of a walk.
#[derive(Debug, Serialize)]
pub(crate) struct MemberLineage<'l> {
    nodes: Vec<wire::Node<'l>>,
    edges: Vec<wire::Edge<'l>>,
}

/// Finds a node by the name of a member, metric, cube or model, by its id, or by the label that pictures show, such as
/// `raw.orders.amount` for a column of a table.
///
/// # Errors
/// The caller may see no such node. Returns the names that exist.
pub(crate) fn find(lineage: &Lineage, sight: &Sight, name: &str) -> Result<u32, Vec<String>> {
    let named = NAMED.iter().map(|ty| format!("{}.{name}", ty.as_str()));
    let mut found = named.chain([name.to_owned()]).filter_map(|id| lineage.find(&id));
    if let Some(at) = found.find(|at| sight.sees(*at)) {
        return Ok(at);
    }
    let seen = || (0..).zip(&lineage.nodes).filter(|(at, _)| sight.sees(*at));
    match seen().find(|(_, node)| label(&node.id) == name) {
        Some((at, _)) => Ok(at),
        None => Err(seen().map(|(_, node)| label(&node.id)).collect()),
    }
}

impl<'l> MemberLineage<'l> {
    /// Walks from a node to the given depth, or without a limit if the depth is `None`.
    pub(crate) fn of(
        lineage: &'l Lineage,
        start: u32,
        direction: Direction,
        depth: Option<u32>,
        sight: &Sight,
    ) -> Self {
        let (mut nodes, edges) = wire::walk(lineage, start, direction, depth, sight);
        // A picture with too many nodes leaves out the last ones, so the farthest nodes come last.
        nodes.sort_by_key(|node| node.depth);
        MemberLineage { nodes, edges }
    }

    /// Returns the graph to draw. The first node is the start.
    pub(crate) fn graph(&self) -> Graph {
        let places: HashMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(place, node)| (node.id, place)).collect();
        let edge = |edge: &wire::Edge<'_>| {
            let (from, to) = (*places.get(edge.source)?, *places.get(edge.target)?);
            let label = if edge.relationship == "value" { "" } else { edge.relationship };
            Some(Edge { from, to, label: label.to_owned() })
        };
        let start = self.nodes.first().map_or(String::new(), |node| label(node.id));
        Graph {
            title: format!("Lineage of {start}"),
            nodes: self.nodes.iter().map(node).collect(),
            edges: self.edges.iter().filter_map(edge).collect(),
        }
    }
}

fn node(node: &wire::Node<'_>) -> Node {
    let kind = match node.r#type {
        "cube" => NodeKind::Cube,
        "metric" => NodeKind::Metric,
        "dimension" | "measure" | "segment" | "join" => NodeKind::Member,
        "source_column" | "table_column" | "model_column" => NodeKind::Column,
        "source_table" | "table" | "model" => NodeKind::Table,
        "policy" | "row_filter" => NodeKind::Policy,
        _ => NodeKind::Unresolved,
    };
    let label = if kind == NodeKind::Unresolved { node.name.to_owned() } else { label(node.id) };
    Node { label, detail: node.r#type.replace('_', " "), kind }
}

/// Returns an id without its type: `raw.orders.amount` for `source.raw.orders.column.amount`.
fn label(id: &str) -> String {
    let name = id.split_once('.').map_or(id, |(_, name)| name);
    name.replacen(".column.", ".", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_have_no_type() {
        for (id, expected) in [
            ("source.raw.orders.column.amount", "raw.orders.amount"),
            ("measure.orders.revenue", "orders.revenue"),
            ("metric.margin", "margin"),
            ("odd", "odd"),
        ] {
            assert_eq!(label(id), expected);
        }
    }
}
