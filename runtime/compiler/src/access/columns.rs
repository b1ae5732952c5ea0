//! The columns that a snippet reads. A column belongs to the rows of a table and not to a cube, so a policy on one cube
//! covers the column in all cubes over the table.

use crate::ids::CubeId;
use crate::model::{Cube, Model, Relation, Snippet, SqlPart};
use crate::snippet::table_names::column_owners;

/// A column of a table, independent of the cubes that read the table.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Column {
    pub(super) rows: Rows,
    name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Rows {
    /// The name of a table, in lower case.
    Table(String),
    Cube(CubeId),
}

/// Collects the columns that a snippet reads with all its references expanded.
pub(super) fn columns_of(model: &Model, snippet: &Snippet, found: &mut Vec<Column>) {
    for_each_column(model, snippet, &mut |_, column| found.push(column));
}

/// Calls `visit` with each column that a snippet reads, all its references expanded, and with the column's cube.
pub(super) fn for_each_column<'m>(model: &'m Model, snippet: &'m Snippet, visit: &mut dyn FnMut(&'m Cube, Column)) {
    let mut parts = Vec::new();
    snippet.for_each(&mut |part| parts.push(part));
    for part in parts {
        match part {
            SqlPart::Column { cube, name } => {
                let (cube, name) = (model.cube(*cube), name.text.to_lowercase());
                rows_of(cube).into_iter().for_each(|rows| visit(cube, Column { rows, name: name.clone() }));
            }
            SqlPart::Dimension(id) => for_each_column(model, &model.dimension(*id).sql, visit),
            SqlPart::Aggregate(aggregate) => {
                let snippets = aggregate.argument.iter().chain(&aggregate.filters);
                snippets.for_each(|snippet| for_each_column(model, snippet, visit));
            }
            _ => {}
        }
    }
}

pub(super) fn rows_of(cube: &Cube) -> Vec<Rows> {
    match &cube.relation {
        Relation::Table(parts) => {
            let parts: Vec<&str> = parts.iter().map(|part| &*part.text).collect();
            column_owners(&parts).into_iter().map(Rows::Table).collect()
        }
        _ => vec![Rows::Cube(cube.alias_of.unwrap_or(cube.id))],
    }
}

pub(super) fn has_query(model: &Model, snippet: &Snippet) -> bool {
    let mut found = snippet.has_query;
    snippet.for_each(&mut |part| {
        found |= match part {
            SqlPart::Dimension(id) => has_query(model, &model.dimension(*id).sql),
            SqlPart::Aggregate(aggregate) => {
                aggregate.argument.iter().chain(&aggregate.filters).any(|snippet| has_query(model, snippet))
            }
            SqlPart::Divide(left, right) => left.has_query || right.has_query,
            _ => false,
        };
    });
    found
}
