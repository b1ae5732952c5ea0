//! Dependencies between the parts of a project.
//!
//! In: definitions, the model that was built from them, and the diagnostics of both. Out: a [`DependencyGraph`]: nodes,
//! edges, and the order in which the nodes can be built. Not here: columns (`lineage`), JSON.
//!
//! An edge leads from an item to the items that need it: source → table → model → cube → member → metric. An edge means
//! that its first item must exist before the second. Joins make no edges, because two cubes may join each other. An
//! alias needs its cube, and a derived cube needs the cube that it extends.

mod collect;
mod diagnostics;

use std::collections::HashSet;
use std::sync::Arc;

use terrane_compiler::Access;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::model::{CubeId, Member, MetricId, Model};
use terrane_compiler::project::Definitions;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
    Source,
    SourceTable,
    Model,
    Cube,
    Measure,
    Dimension,
    Metric,
}

impl NodeType {
    pub fn as_str(self) -> &'static str {
        match self {
            NodeType::Source => "source",
            NodeType::SourceTable => "source_table",
            NodeType::Model => "model",
            NodeType::Cube => "cube",
            NodeType::Measure => "measure",
            NodeType::Dimension => "dimension",
            NodeType::Metric => "metric",
        }
    }
}

#[derive(Debug, Clone)]
pub struct Node {
    /// The id, such as `cube.shop.orders`, `measure.shop.orders.revenue` or `source.shop.raw.orders`.
    pub unique_id: Arc<str>,
    pub node_type: NodeType,
    pub name: Arc<str>,
    /// True if the item is part of the model that queries use.
    pub compiled: bool,
    pub error: Option<Arc<str>>,
    subject: Subject,
}

/// The part of the model that a node represents.
#[derive(Debug, Clone, Copy)]
enum Subject {
    /// An item that no policy can name, such as a source or a model.
    Plain,
    Cube(CubeId),
    Member(Member),
    Metric(MetricId),
    /// The item could not be read, so its access is unknown.
    Broken,
}

#[derive(Debug, Clone, Default)]
pub struct DependencyGraph {
    pub nodes: Vec<Node>,
    /// Edges from an item to an item that needs it, as indexes of `nodes`.
    pub edges: Vec<(u32, u32)>,
    /// Batches of nodes. The first batch has the nodes without dependencies. The nodes of a later batch need only nodes
    /// of earlier batches, so they can be built in parallel. The last batch contains the nodes that are in a cycle or
    /// depend on one. They cannot be built.
    pub parallel_batches: Vec<Vec<u32>>,
}

impl DependencyGraph {
    /// Builds the graph. `diagnostics` are those of the definitions and of the model.
    pub fn build(definitions: &Definitions, model: &Model, diagnostics: &[Diagnostic]) -> DependencyGraph {
        let collected = collect::collect(definitions, model);
        let mut graph =
            DependencyGraph { nodes: collected.nodes, edges: collected.edges, parallel_batches: Vec::new() };
        let circular = diagnostics::add(&mut graph, &collected.places, diagnostics);
        graph.edges.sort_unstable();
        graph.edges.dedup();
        graph.parallel_batches = graph.batches(&circular);
        graph
    }

    /// Returns all nodes, each after the nodes that it needs.
    pub fn execution_order(&self) -> impl Iterator<Item = &Node> {
        self.parallel_batches.iter().flatten().map(|at| &self.nodes[*at as usize])
    }

    /// Returns the part of the graph that a caller may see: without denied members, without cubes that are closed to
    /// the caller, and without items that depend on these. Callers with policies see no unreadable items and no error
    /// texts.
    #[must_use]
    pub fn seen_by(&self, access: &Access<'_>) -> DependencyGraph {
        if access.sees_everything() {
            return self.clone();
        }
        let mut needs: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (from, to) in &self.edges {
            needs[*to as usize].push(*from);
        }
        let mut is_seen = vec![false; self.nodes.len()];
        for at in self.parallel_batches.iter().flatten().map(|at| *at as usize) {
            let model = access.model();
            let stands_on_seen = needs[at].iter().all(|from| is_seen[*from as usize]);
            is_seen[at] = stands_on_seen
                && match self.nodes[at].subject {
                    Subject::Plain => true,
                    Subject::Cube(id) => !access.is_closed(model.cube(id)),
                    Subject::Member(member) => access.offers(member),
                    Subject::Metric(id) => access.offers_metric(id),
                    Subject::Broken => false,
                };
        }
        let mut renumbered: Vec<Option<u32>> = Vec::with_capacity(self.nodes.len());
        let mut nodes = Vec::new();
        for (node, is_seen) in self.nodes.iter().zip(is_seen) {
            renumbered.push(is_seen.then_some(nodes.len() as u32));
            if is_seen {
                nodes.push(Node { error: None, ..node.clone() });
            }
        }
        let number = |at: &u32| renumbered[*at as usize];
        let edges = self.edges.iter().filter_map(|(from, to)| Some((number(from)?, number(to)?))).collect();
        let batches = self.parallel_batches.iter().map(|batch| batch.iter().filter_map(number).collect::<Vec<u32>>());
        let parallel_batches = batches.filter(|batch| !batch.is_empty()).collect();
        DependencyGraph { nodes, edges, parallel_batches }
    }

    /// Returns the nodes in batches. The batch of a node is the length of the longest path that leads to it.
    fn batches(&self, circular: &HashSet<u32>) -> Vec<Vec<u32>> {
        let mut dependents: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        let mut waits_for = vec![0usize; self.nodes.len()];
        for (from, to) in &self.edges {
            dependents[*from as usize].push(*to);
            waits_for[*to as usize] += 1;
        }
        let all = 0..self.nodes.len() as u32;
        let is_free = |at: &u32| waits_for[*at as usize] == 0 && !circular.contains(at);
        let mut batch: Vec<u32> = all.clone().filter(is_free).collect();
        let mut is_placed = vec![false; self.nodes.len()];
        let mut batches = Vec::new();
        while !batch.is_empty() {
            let mut next = Vec::new();
            for at in &batch {
                is_placed[*at as usize] = true;
                for dependent in &dependents[*at as usize] {
                    waits_for[*dependent as usize] -= 1;
                    if waits_for[*dependent as usize] == 0 && !circular.contains(dependent) {
                        next.push(*dependent);
                    }
                }
            }
            next.sort_unstable();
            batches.push(std::mem::replace(&mut batch, next));
        }
        let left: Vec<u32> = all.filter(|at| !is_placed[*at as usize]).collect();
        if !left.is_empty() {
            batches.push(left);
        }
        batches
    }
}
