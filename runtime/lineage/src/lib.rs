//! The lineage of columns: the columns that each measure is computed from, and the members that a change of a column
//! affects.
//!
//! In: definitions, the model, known columns. Out: a [`Lineage`] with columns, members, metrics and policies as nodes,
//! and their origins as edges; or [`columns_of`] for one query. A name that cannot be resolved is a node with the
//! reason. Not here: asking a warehouse for columns, JSON.
//!
//! An edge leads from what is read to what reads it. The node of a model or a cube stands for its rows: columns that
//! filter, join or order the rows lead to it, and edges of the kind `rows` lead from it to its columns or members. A
//! policy's row filter leads to the rows of its cube and to the policy; no edge leads from a policy.

mod build;
pub mod graph;
mod known;
mod query;
mod spelling;
mod walk;

use std::collections::HashMap;
use std::sync::Arc;

pub use known::KnownColumns;
pub use query::{Output, OutputName, QueryColumns, Reason, TableColumn, Unresolved, Use, columns_of};
pub use walk::{Reached, Sight};

use terrane_compiler::diagnostic::Span;
use terrane_compiler::model::{ColumnName, CubeId, Member, MetricId, Model};
use terrane_compiler::project::Definitions;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NodeType {
    SourceTable,
    SourceColumn,
    /// A table that no source declares.
    Table,
    TableColumn,
    Model,
    ModelColumn,
    Cube,
    Join,
    Dimension,
    Measure,
    Segment,
    Metric,
    /// A policy's, on one cube.
    RowFilter,
    Policy,
    Unresolved,
}

impl NodeType {
    pub fn as_str(self) -> &'static str {
        match self {
            NodeType::SourceTable => "source_table",
            NodeType::SourceColumn => "source_column",
            NodeType::Table => "table",
            NodeType::TableColumn => "table_column",
            NodeType::Model => "model",
            NodeType::ModelColumn => "model_column",
            NodeType::Cube => "cube",
            NodeType::Join => "join",
            NodeType::Dimension => "dimension",
            NodeType::Measure => "measure",
            NodeType::Segment => "segment",
            NodeType::Metric => "metric",
            NodeType::RowFilter => "row_filter",
            NodeType::Policy => "policy",
            NodeType::Unresolved => "unresolved",
        }
    }

    pub fn is_column(self) -> bool {
        matches!(self, NodeType::SourceColumn | NodeType::TableColumn | NodeType::ModelColumn)
    }
}

#[derive(Debug, Clone)]
pub struct Node {
    /// The id, such as `source.raw.orders.column.amount`, `model.paid.column.total` or `measure.orders.revenue`.
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub ty: NodeType,
    /// The SQL of members, joins and row filters.
    pub cube: Option<Arc<str>>,
    /// The text of models, and of members that are not taken over.
    pub sql: Option<Arc<str>>,
    /// The reason why it is unresolved.
    pub reason: Option<Reason>,
    /// The place of the unresolved text.
    pub span: Option<Span>,
    /// True for a column that only the warehouse names, and no text of the project.
    is_inspected: bool,
    subject: Subject,
}

/// The part of the model that decides whether a caller sees a node.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Cube(CubeId),
    /// A join of a cube to another one.
    Join {
        cube: CubeId,
        target: CubeId,
    },
    Member(Member),
    Metric(MetricId),
    Policy,
    Other,
}

/// A table to ask the warehouse about.
#[derive(Debug, Clone)]
pub struct IncompleteTable {
    /// The name, to be passed to [`KnownColumns::inspected`].
    pub name: Arc<str>,
    /// The parts of the name in its first occurrence.
    pub written: Vec<ColumnName>,
}

#[derive(Debug, Default)]
pub struct Lineage {
    pub nodes: Vec<Node>,
    /// Edges from what is read to what reads it, as indexes of `nodes`; sorted, each once.
    pub edges: Vec<(u32, u32, Use)>,
    /// Tables that are read and whose columns are not all known.
    pub incomplete: Vec<IncompleteTable>,
    numbers: HashMap<Arc<str>, u32>,
    /// The start of each node's edges in `edges`, and of the edges to each node in `backward`.
    forward_from: Vec<u32>,
    backward: Vec<u32>,
    backward_from: Vec<u32>,
}

impl Lineage {
    /// Builds the lineage. `known` contains the declared columns ([`KnownColumns::declared`]) and the inspected ones.
    pub fn build(definitions: &Definitions, model: &Model, known: &KnownColumns) -> Lineage {
        build::build(definitions, model, known)
    }

    /// Returns the node of an id, or else the only node whose id differs from it in case, because warehouses differ in
    /// the case of names.
    pub fn find(&self, id: &str) -> Option<u32> {
        if let Some(at) = self.numbers.get(id) {
            return Some(*at);
        }
        let mut alike = (0u32..).zip(&self.nodes).filter(|(_, node)| node.id.eq_ignore_ascii_case(id));
        alike.next().filter(|_| alike.next().is_none()).map(|(at, _)| at)
    }

    fn node(&mut self, node: Node) -> u32 {
        if let Some(at) = self.numbers.get(&node.id) {
            return *at;
        }
        let at = self.nodes.len() as u32;
        self.numbers.insert(Arc::clone(&node.id), at);
        self.nodes.push(node);
        at
    }

    /// Sorts the edges, so that those of a node are adjacent.
    fn finish(&mut self) {
        self.edges.sort_unstable();
        self.edges.dedup();
        self.forward_from = begins(self.nodes.len(), self.edges.iter().map(|edge| edge.0));
        let mut backward: Vec<u32> = (0..self.edges.len() as u32).collect();
        backward.sort_by_key(|at| self.edges[*at as usize].1);
        self.backward_from = begins(self.nodes.len(), backward.iter().map(|at| self.edges[*at as usize].1));
        self.backward = backward;
    }
}

/// Returns the start of each node's run in an ordered list of nodes; one more for the end.
fn begins(nodes: usize, ordered: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts = vec![0u32; nodes + 1];
    ordered.for_each(|node| counts[node as usize + 1] += 1);
    for at in 1..counts.len() {
        counts[at] += counts[at - 1];
    }
    counts
}
