//! The lineage of columns: the columns that each measure is computed from, and the members that a change of a column
//! affects.
//!
//! In: definitions, the model, known columns. Out: a [`Lineage`] with columns, members, metrics and policies as nodes,
//! and their dependencies as edges; or [`columns_of`] for one query. A name that cannot be resolved becomes a node with
//! the reason. Not here: queries to the warehouse for columns, JSON.
//!
//! An edge leads from a node to a node that reads it. The node of a model or a cube represents its rows. Columns that
//! filter, join or order the rows have edges to this node. Edges with the use `Rows` lead from it to the columns of the
//! model or the members of the cube. A policy's row filter has edges to the rows of its cube and to the policy. No edge
//! leads from a policy.

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
    /// The row filter of a policy on one cube.
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
    /// The name of the cube that members, joins and row filters belong to.
    pub cube: Option<Arc<str>>,
    /// The SQL of a model, or of a member that the cube itself declares.
    pub sql: Option<Arc<str>>,
    /// The reason why an unresolved node has no known origin.
    pub reason: Option<Reason>,
    /// The place of the text that could not be resolved.
    pub span: Option<Span>,
    /// True for a column that only the warehouse lists and no text of the project names.
    is_inspected: bool,
    subject: Subject,
}

/// The part of the model that decides whether a caller sees a node.
#[derive(Debug, Clone, Copy)]
enum Subject {
    Cube(CubeId),
    /// A join of a cube to another cube.
    Join {
        cube: CubeId,
        target: CubeId,
    },
    Member(Member),
    Metric(MetricId),
    Policy,
    Other,
}

/// A table whose columns must be requested from the warehouse.
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
    /// Edges from a node to a node that reads it, as indexes of `nodes`. They are sorted and unique.
    pub edges: Vec<(u32, u32, Use)>,
    /// Tables that the project reads and whose columns are not all known.
    pub incomplete: Vec<IncompleteTable>,
    numbers: HashMap<Arc<str>, u32>,
    /// For each node, the start of its outgoing edges in `edges` and of its incoming edges in `backward`.
    forward_from: Vec<u32>,
    backward: Vec<u32>,
    backward_from: Vec<u32>,
}

impl Lineage {
    /// Builds the lineage. `known` contains the declared columns ([`KnownColumns::declared`]) and the inspected ones.
    pub fn build(definitions: &Definitions, model: &Model, known: &KnownColumns) -> Lineage {
        build::build(definitions, model, known)
    }

    /// Returns the node with an id. If none has it, returns the only node whose id is equal apart from case, because
    /// warehouses differ in the case of names.
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

    /// Sorts the edges, so that the edges of a node are adjacent, and indexes them by both ends.
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

/// Returns the position where the entries of each node begin in a sorted list of nodes, and then the list's length.
fn begins(nodes: usize, ordered: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut counts = vec![0u32; nodes + 1];
    ordered.for_each(|node| counts[node as usize + 1] += 1);
    for at in 1..counts.len() {
        counts[at] += counts[at - 1];
    }
    counts
}
