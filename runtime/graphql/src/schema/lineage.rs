//! Lineage and the impact of changes.
//!
//! In: the lineage of the project, and the parts of it that the caller may see. Out: nodes, and edges. Each edge leads
//! from a node to a node that reads it.

use async_graphql::{Context, Result, SimpleObject};
use terrane_app::lineage::find;
use terrane_lineage::Sight;
use terrane_wire::lineage::{self as wire, Direction};

use super::inputs::{count, malformed};
use super::request::state;
use crate::enums::LineageDirection;
use crate::failure::Failure;

/// Nodes, and the edges among them.
#[derive(SimpleObject)]
pub(crate) struct LineageResult {
    nodes: Vec<LineageNode>,
    edges: Vec<LineageEdge>,
}

/// A column, member, metric, model, cube or policy.
#[derive(SimpleObject)]
pub(crate) struct LineageNode {
    id: String,
    name: String,
    #[graphql(name = "type")]
    ty: String,
    cube: Option<String>,
    /// The text of its definition, for callers who may see everything.
    sql: Option<String>,
    /// The number of edges from the start.
    depth: Option<u32>,
}

/// An edge from what is read to what reads it.
#[derive(SimpleObject)]
pub(crate) struct LineageEdge {
    source: String,
    target: String,
    relationship: String,
}

/// The node from which a walk starts. One of the fields is set.
#[derive(Debug, Default)]
pub(crate) struct Start {
    /// The measure, written as `cube.measure`.
    pub(crate) measure: Option<String>,
    /// The id of a column, such as `source.raw.orders.column.amount`.
    pub(crate) column: Option<String>,
    /// The id of any node.
    pub(crate) node: Option<String>,
}

impl Start {
    fn id(self) -> Result<String, Failure> {
        match (self.measure, self.column, self.node) {
            (Some(measure), None, None) => Ok(format!("measure.{measure}")),
            (None, Some(id), None) | (None, None, Some(id)) => Ok(id),
            _ => Err(malformed("expected one of `measure`, `column` and `node`", "node")),
        }
    }
}

/// Returns the nodes and edges that a walk from a node reaches.
///
/// # Errors
/// The node does not exist or the caller may not see it, or the document resolves too many fields.
pub(crate) async fn walk(
    context: &Context<'_>,
    start: Start,
    direction: LineageDirection,
    depth: Option<i64>,
) -> Result<LineageResult, Failure> {
    let state = state(context);
    state.count_items(0)?;
    let (id, parts) = (start.id()?, &state.parts);
    let depth = count("depth", depth)?.map(|depth| u32::try_from(depth).unwrap_or(u32::MAX));
    let lineage = parts.snapshot.lineage(&*parts.services.warehouse).await;
    let sight = Sight::of(lineage, &parts.access());
    let start = find(lineage, &sight, &id)?;
    let direction = match direction {
        LineageDirection::Upstream => Direction::Upstream,
        LineageDirection::Downstream => Direction::Downstream,
    };
    let (nodes, edges) = wire::walk(lineage, start, direction, depth, &sight);
    state.count(context, 1, &|list| match list {
        "nodes" => Some(nodes.len()),
        "edges" => Some(edges.len()),
        _ => None,
    })?;
    Ok(LineageResult {
        nodes: nodes.into_iter().map(LineageNode::from).collect(),
        edges: edges.into_iter().map(LineageEdge::from).collect(),
    })
}

impl From<wire::Node<'_>> for LineageNode {
    fn from(node: wire::Node<'_>) -> Self {
        LineageNode {
            id: node.id.to_owned(),
            name: node.name.to_owned(),
            ty: node.r#type.to_owned(),
            cube: node.cube.map(str::to_owned),
            sql: node.sql.map(str::to_owned),
            depth: node.depth,
        }
    }
}

impl From<wire::Edge<'_>> for LineageEdge {
    fn from(edge: wire::Edge<'_>) -> Self {
        LineageEdge {
            source: edge.source.to_owned(),
            target: edge.target.to_owned(),
            relationship: edge.relationship.to_owned(),
        }
    }
}
