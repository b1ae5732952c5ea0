//! The source tables and columns whose readers have a reported problem.
//!
//! In: a snapshot and diagnostics. Out: for each source table and column, whether a cube, member or model that reads
//! it has one of the diagnostics. Decided by places and lineage, never by the text of a message.

use std::collections::HashSet;

use terrane_compiler::diagnostic::{Diagnostic, Severity};
use terrane_lineage::graph::{DependencyGraph, NodeType};
use terrane_lineage::{KnownColumns, Lineage};

use crate::catalog::Snapshot;

/// Finds source tables and columns with a reported reader.
pub(super) struct ReportedReaders {
    lineage: Lineage,
    /// The lineage's ids of cubes, members and models with a problem, such as `dimension.orders.size`.
    reported: HashSet<String>,
}

impl ReportedReaders {
    pub(super) fn new(snapshot: &Snapshot, problems: &[Diagnostic]) -> Self {
        if problems.is_empty() {
            return ReportedReaders { lineage: Lineage::default(), reported: HashSet::new() };
        }
        // The graph assigns errors to nodes by their places.
        let errors: Vec<Diagnostic> =
            problems.iter().map(|problem| Diagnostic { severity: Severity::Error, ..problem.clone() }).collect();
        let graph = DependencyGraph::build(&snapshot.definitions, &snapshot.model, &errors);
        let clean = DependencyGraph::build(&snapshot.definitions, &snapshot.model, &[]);
        let new =
            graph.nodes.iter().zip(&clean.nodes).filter(|(node, clean)| node.error.is_some() && clean.error.is_none());
        let is_reader = |ty: NodeType| !matches!(ty, NodeType::Source | NodeType::SourceTable);
        let reported = new.filter(|(node, _)| is_reader(node.node_type)).filter_map(|(node, _)| {
            // `dimension.project.orders.size`: the lineage's ids have no project.
            let name = node.unique_id.splitn(3, '.').nth(2)?;
            Some(format!("{}.{name}", node.node_type.as_str()))
        });
        let known = KnownColumns::declared(&snapshot.definitions);
        let lineage = Lineage::build(&snapshot.definitions, &snapshot.model, &known);
        ReportedReaders { reported: reported.collect(), lineage }
    }

    /// Returns true if a reader of a source's table, or of one of its columns, has a problem.
    pub(super) fn have(&self, source_table: &str, column: Option<&str>) -> bool {
        let id = match column {
            Some(column) => format!("source.{source_table}.column.{column}"),
            None => format!("source.{source_table}"),
        };
        let Some(start) = self.lineage.find(&id) else { return false };
        let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
        while let Some(node) = open.pop() {
            if self.is_reported(&self.lineage.nodes[node as usize].id) {
                return true;
            }
            open.extend(
                self.lineage.readers_of(node).map(|(_, reader, _)| reader).filter(|reader| seen.insert(*reader)),
            );
        }
        false
    }

    fn is_reported(&self, id: &str) -> bool {
        // A model's problem is a problem of its columns.
        let owner = id.split_once(".column.").map_or(id, |(owner, _)| owner);
        self.reported.contains(owner)
    }
}
