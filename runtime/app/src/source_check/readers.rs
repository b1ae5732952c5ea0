//! The source tables and columns whose readers have a reported problem.
//!
//! In: a project and diagnostics. Out: for each source table and column, whether a cube, member or model that reads it
//! has one of the diagnostics. This is decided by places and lineage, and never by the wording of a message.

use std::collections::HashSet;

use terrane_compiler::diagnostic::{Diagnostic, Severity};
use terrane_compiler::model::Model;
use terrane_compiler::project::Definitions;
use terrane_lineage::graph::{DependencyGraph, NodeType};
use terrane_lineage::{KnownColumns, Lineage};

/// Finds source tables and columns whose readers have a reported problem.
pub(super) struct ReportedReaders {
    lineage: Lineage,
    /// The ids of cubes, members and models with a problem, in the form of the lineage, such as
    /// `dimension.orders.size`.
    reported: HashSet<String>,
}

impl ReportedReaders {
    pub(super) fn new(definitions: &Definitions, model: &Model, problems: &[Diagnostic]) -> Self {
        if problems.is_empty() {
            return ReportedReaders { lineage: Lineage::default(), reported: HashSet::new() };
        }
        // The graph assigns errors, but not warnings, to nodes by their places. So all problems are passed as errors.
        let errors: Vec<Diagnostic> =
            problems.iter().map(|problem| Diagnostic { severity: Severity::Error, ..problem.clone() }).collect();
        let graph = DependencyGraph::build(definitions, model, &errors);
        let clean = DependencyGraph::build(definitions, model, &[]);
        let new =
            graph.nodes.iter().zip(&clean.nodes).filter(|(node, clean)| node.error.is_some() && clean.error.is_none());
        let is_reader = |ty: NodeType| !matches!(ty, NodeType::Source | NodeType::SourceTable);
        let reported = new.filter(|(node, _)| is_reader(node.node_type)).filter_map(|(node, _)| {
            // The graph has the id `dimension.project.orders.size`. The project is removed, because ids of the lineage
            // have none.
            let name = node.unique_id.splitn(3, '.').nth(2)?;
            Some(format!("{}.{name}", node.node_type.as_str()))
        });
        let known = KnownColumns::declared(definitions);
        let lineage = Lineage::build(definitions, model, &known);
        ReportedReaders { reported: reported.collect(), lineage }
    }

    /// Returns whether a reader of a source table, or of one of its columns, has a problem.
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
        // A problem of a model counts as a problem of each of its columns.
        let owner = id.split_once(".column.").map_or(id, |(owner, _)| owner);
        self.reported.contains(owner)
    }
}

#[cfg(test)]
mod tests {
    use terrane_compiler::diagnostic::{Code, Span};
    use terrane_compiler::model;
    use terrane_compiler::project::{Inputs, SourceTree, read};

    use super::*;

    const SOURCES: &str = "
sources:
  - name: raw
    tables:
      - {name: orders, columns: [{name: id}, {name: amount}]}
      - {name: returns, columns: [{name: id}]}
";
    const CUBES: &str = "
cubes:
  - name: orders
    sql_table: \"{{ source('raw', 'orders') }}\"
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
    measures:
      - {name: revenue, type: sum, sql: amount}
  - name: returns
    sql: SELECT id FROM {{ ref('clean_returns') }}
    measures: [{name: count, type: count}]
";

    fn project() -> (Definitions, Model) {
        let mut tree = SourceTree::default();
        let files = [
            ("service_project.yml", "name: shop\n"),
            ("sources/raw.yml", SOURCES),
            ("cubes/all.yml", CUBES),
            ("models/clean_returns.sql", "SELECT id FROM {{ source('raw', 'returns') }}"),
        ];
        tree.files.extend(files.map(|(path, text)| (path.into(), text.into())));
        let (definitions, mut diagnostics) = read(&tree, &Inputs { warehouse: "duckdb".into(), ..Inputs::default() });
        let (model, more) = model::build(&definitions);
        diagnostics.extend(more);
        assert!(diagnostics.is_empty(), "{diagnostics:?}");
        (definitions, model)
    }

    /// Returns a problem inside a line of a file.
    fn problem(file: &str, line: u32) -> Diagnostic {
        let span = Span { file: file.into(), line, column: 30, length: 1 };
        Diagnostic::warning(Code::MemberNotReadable, "the warehouse cannot read it").at(span)
    }

    fn reported(problems: &[Diagnostic]) -> Vec<&'static str> {
        let (definitions, model) = project();
        let readers = ReportedReaders::new(&definitions, &model, problems);
        let places = [
            ("raw.orders", "raw.orders", None),
            ("raw.orders.id", "raw.orders", Some("id")),
            ("raw.orders.amount", "raw.orders", Some("amount")),
            ("raw.returns", "raw.returns", None),
        ];
        let found = places.into_iter().filter(|(_, table, column)| readers.have(table, *column));
        found.map(|(name, ..)| name).collect()
    }

    #[test]
    fn project_without_problems_has_no_reported_reader() {
        assert_eq!(reported(&[]), Vec::<&str>::new());
    }

    #[test]
    fn problem_of_a_measure_reports_its_column_and_table_only() {
        assert_eq!(reported(&[problem("cubes/all.yml", 8)]), ["raw.orders", "raw.orders.amount"]);
    }

    #[test]
    fn problem_of_a_model_reports_the_tables_that_it_reads() {
        assert_eq!(reported(&[problem("models/clean_returns.sql", 1)]), ["raw.returns"]);
    }

    #[test]
    fn unknown_table_has_no_reader() {
        let (definitions, model) = project();
        let readers = ReportedReaders::new(&definitions, &model, &[problem("cubes/all.yml", 8)]);
        assert!(!readers.have("raw.nothing", None) && !readers.have("raw.orders", Some("nothing")));
    }
}
