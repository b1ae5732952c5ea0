//! Writes the lineage that a caller may see, for the routes of lineage.
//!
//! In: the lineage of a project, and the nodes that the caller may see. Out: nodes, and edges from each node to the
//! nodes that read it.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::Serialize;
use terrane_lineage::{Lineage, NodeType, Reached, Sight};

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};

/// The largest number of unresolved nodes that an impact lists.
const MAX_UNRESOLVED: usize = 100;

/// The column whose impact is requested.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LineageImpact {
    /// An id like `source.raw.orders.column.amount`.
    pub column_id: String,
}

pub(crate) const IMPACT: &[&str] = &["column_id"];

/// Reads `{column_id}`.
///
/// # Errors
/// Names the field that is invalid.
pub fn column_from_wire(body: &[u8]) -> Result<String, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", IMPACT)?;
    Ok(fields.required_string("column_id", "an id like `source.raw.orders.column.amount`")?.to_owned())
}

/// All nodes and edges.
#[derive(Debug, Serialize, JsonSchema)]
pub struct LineageGraph<'a> {
    node_count: usize,
    edge_count: usize,
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge<'a>>,
}

/// The nodes that a node depends on.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Lineage")]
pub struct Upstream<'a> {
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge<'a>>,
    /// The ids of the columns among the nodes.
    columns: Vec<&'a str>,
}

/// All that a change of a column affects.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LineageImpactResult")]
pub struct Impact<'a> {
    nodes: Vec<Node<'a>>,
    edges: Vec<Edge<'a>>,
    column_id: &'a str,
    affected_count: usize,
    affected: Affected<'a>,
    /// Nodes whose inputs are unknown, so that they may read the column too.
    unresolved: Vec<Node<'a>>,
}

/// A node of the lineage.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LineageNode")]
pub struct Node<'a> {
    pub id: &'a str,
    pub name: &'a str,
    pub r#type: &'static str,
    pub cube: Option<&'a str>,
    pub sql: Option<&'a str>,
    /// The reason why the node is unresolved.
    reason: Option<String>,
    /// The place in the project's files.
    place: Option<String>,
    /// The number of edges from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// The ids of the nodes that read this one, of an unresolved node.
    #[serde(skip_serializing_if = "Option::is_none")]
    read_by: Option<Vec<&'a str>>,
}

/// An edge from what is read to what reads it.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LineageEdge")]
pub struct Edge<'a> {
    pub source: &'a str,
    pub target: &'a str,
    pub relationship: &'static str,
}

/// The affected nodes by their type, nearest first.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[schemars(rename = "LineageAffected")]
struct Affected<'a> {
    cubes: Vec<AffectedNode<'a>>,
    dimensions: Vec<AffectedNode<'a>>,
    measures: Vec<AffectedNode<'a>>,
    metrics: Vec<AffectedNode<'a>>,
    models: Vec<AffectedNode<'a>>,
    policies: Vec<AffectedNode<'a>>,
    segments: Vec<AffectedNode<'a>>,
}

/// An affected node.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "LineageAffectedNode")]
struct AffectedNode<'a> {
    id: &'a str,
    name: &'a str,
    cube: Option<&'a str>,
    depth: u32,
    relationship: &'static str,
}

impl<'a> Affected<'a> {
    fn of_type(&mut self, ty: NodeType) -> Option<&mut Vec<AffectedNode<'a>>> {
        Some(match ty {
            NodeType::Model => &mut self.models,
            NodeType::Cube => &mut self.cubes,
            NodeType::Dimension => &mut self.dimensions,
            NodeType::Measure => &mut self.measures,
            NodeType::Segment => &mut self.segments,
            NodeType::Metric => &mut self.metrics,
            NodeType::Policy => &mut self.policies,
            _ => return None,
        })
    }

    fn count(&self) -> usize {
        let Affected { cubes, dimensions, measures, metrics, models, policies, segments } = self;
        [cubes, dimensions, measures, metrics, models, policies, segments].map(Vec::len).iter().sum()
    }
}

/// Returns everything that the caller may see.
pub fn graph<'a>(lineage: &'a Lineage, sight: &Sight) -> LineageGraph<'a> {
    let all = 0..lineage.nodes.len() as u32;
    let nodes: Vec<Node<'_>> = all.filter(|at| sight.sees(*at)).map(|at| node(lineage, at, sight)).collect();
    let visible = lineage.edges.iter().filter(|(from, to, _)| sight.sees(*from) && sight.sees(*to));
    let edges: Vec<Edge<'_>> = visible.map(|(from, to, usage)| edge(lineage, *from, *to, usage.as_str())).collect();
    LineageGraph { node_count: nodes.len(), edge_count: edges.len(), nodes, edges }
}

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Towards the nodes that a node depends on.
    Upstream,
    /// Towards the nodes that depend on a node.
    Downstream,
}

/// Returns the nodes that a walk reaches within a number of edges, the start included, and the edges among these nodes.
pub fn walk<'a>(
    lineage: &'a Lineage,
    start: u32,
    direction: Direction,
    depth: Option<u32>,
    sight: &Sight,
) -> (Vec<Node<'a>>, Vec<Edge<'a>>) {
    let mut reached = match direction {
        Direction::Upstream => lineage.upstream(start, sight),
        Direction::Downstream => lineage.downstream(start, sight),
    };
    reached.retain(|reached| depth.is_none_or(|depth| reached.depth <= depth));
    walked(lineage, start, &reached, sight)
}

/// Returns the nodes that one node depends on.
pub fn upstream<'a>(lineage: &'a Lineage, start: u32, sight: &Sight) -> Upstream<'a> {
    let reached = lineage.upstream(start, sight);
    let columns = reached.iter().map(|reached| reached.node).filter(|at| lineage.nodes[*at as usize].ty.is_column());
    let columns = columns.map(|at| &*lineage.nodes[at as usize].id).collect();
    let (nodes, edges) = walked(lineage, start, &reached, sight);
    Upstream { nodes, edges, columns }
}

/// Returns the nodes that a change of one node affects.
pub fn impact<'a>(lineage: &'a Lineage, start: u32, sight: &Sight) -> Impact<'a> {
    let reached = lineage.downstream(start, sight);
    let affected = affected(lineage, start, &reached, sight);
    let (nodes, edges) = walked(lineage, start, &reached, sight);
    Impact {
        nodes,
        edges,
        column_id: &lineage.nodes[start as usize].id,
        affected_count: affected.count(),
        affected,
        unresolved: unresolved(lineage, sight),
    }
}

/// Groups the nodes that a walk reached. A column counts as its model, and a join as the cube that declares it.
fn affected<'a>(lineage: &'a Lineage, start: u32, reached: &[Reached], sight: &Sight) -> Affected<'a> {
    let mut affected = Affected::default();
    let mut listed: BTreeSet<u32> = [start].into();
    let owners = reached.iter().filter(|step| step.node != start).filter_map(|step| {
        let node = owner(lineage, step.node).filter(|owner| sight.sees(*owner))?;
        Some(Reached { node, ..*step })
    });
    for step in owners.filter(|step| listed.insert(step.node)) {
        let node = &lineage.nodes[step.node as usize];
        let Some(nodes) = affected.of_type(node.ty) else { continue };
        nodes.push(AffectedNode {
            id: &node.id,
            name: &node.name,
            cube: node.cube.as_deref(),
            depth: step.depth,
            relationship: step.usage.as_str(),
        });
    }
    affected
}

fn unresolved<'a>(lineage: &'a Lineage, sight: &Sight) -> Vec<Node<'a>> {
    let all = (0..lineage.nodes.len() as u32).filter(|at| sight.sees(*at));
    let unresolved = all.filter(|at| lineage.nodes[*at as usize].ty == NodeType::Unresolved);
    let with_readers = unresolved.take(MAX_UNRESOLVED).map(|at| {
        let readers = lineage.readers_of(at).map(|(_, to, _)| to).filter(|to| sight.sees(*to));
        let read_by = Some(readers.map(|to| &*lineage.nodes[to as usize].id).collect());
        Node { read_by, ..node(lineage, at, sight) }
    });
    with_readers.collect()
}

/// Returns the node that an impact lists for this node: the model of a column, the cube of a join, or the node itself.
fn owner(lineage: &Lineage, at: u32) -> Option<u32> {
    let node = &lineage.nodes[at as usize];
    match node.ty {
        NodeType::ModelColumn => {
            let mut inputs = lineage.inputs_of(at).map(|(from, ..)| from);
            inputs.find(|from| {
                let model = &lineage.nodes[*from as usize];
                let is_own = || node.id.strip_prefix(&*model.id).is_some_and(|rest| rest.starts_with('.'));
                model.ty == NodeType::Model && is_own()
            })
        }
        NodeType::Join => lineage.find(&format!("cube.{}", node.cube.as_ref()?)),
        _ => Some(at),
    }
}

/// Returns the nodes that a walk reached, and the edges among them.
fn walked<'a>(lineage: &'a Lineage, start: u32, reached: &[Reached], sight: &Sight) -> (Vec<Node<'a>>, Vec<Edge<'a>>) {
    let mut depths: BTreeMap<u32, u32> = reached.iter().map(|step| (step.node, step.depth)).collect();
    depths.entry(start).or_insert(0);
    let nodes = depths.iter().map(|(at, depth)| Node { depth: Some(*depth), ..node(lineage, *at, sight) }).collect();
    let edges = depths.keys().flat_map(|at| lineage.readers_of(*at));
    let among = edges.filter(|(_, to, _)| depths.contains_key(to));
    let edges = among.map(|(from, to, usage)| edge(lineage, from, to, usage.as_str())).collect();
    (nodes, edges)
}

fn node<'a>(lineage: &'a Lineage, at: u32, sight: &Sight) -> Node<'a> {
    let node = &lineage.nodes[at as usize];
    // Only operators see places in files.
    let place = node.span.as_ref().filter(|_| sight.shows_sql());
    Node {
        id: &node.id,
        name: &node.name,
        r#type: node.ty.as_str(),
        cube: node.cube.as_deref(),
        // A model's text may name columns that a policy denies.
        sql: node.sql.as_deref().filter(|_| sight.shows_sql()),
        reason: node.reason.as_ref().map(ToString::to_string),
        place: place.map(ToString::to_string),
        depth: None,
        read_by: None,
    }
}

fn edge<'a>(lineage: &'a Lineage, from: u32, to: u32, relationship: &'static str) -> Edge<'a> {
    let id = |at: u32| &*lineage.nodes[at as usize].id;
    Edge { source: id(from), target: id(to), relationship }
}
