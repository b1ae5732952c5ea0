//! Reads the entries of `sources:`.
//!
//! In: the YAML nodes of one list. Out: [`SourceDefinition`]s and the printed names of their tables.

use std::collections::HashMap;

use super::definitions::{ColumnDefinition, SourceDefinition, TableDefinition};
use super::fields::{Fields, text_of};
use super::jinja::quote;
use super::keys::{DESCRIPTION, Key, Kind, META, MappingKeys, NAME, TITLE};
use super::yaml::{Node, NodeValue};
use crate::diagnostic::{Code, Diagnostic};

pub(super) static SOURCE: MappingKeys = MappingKeys::new(
    "source",
    "A schema of the warehouse, whose tables models and cubes may name with `source('source', 'table')`.",
    &[
        NAME,
        Key::optional("database", Kind::Text, "warehouse", "The database or catalog, printed before the schema.")
            .also(&["catalog"]),
        Key::optional("schema", Kind::Text, "raw", "The schema, printed before the table.").also(&["dataset"]),
        Key::required(
            "tables",
            Kind::ListOrNames(&TABLE),
            "[orders]",
            "The tables: names alone, or mappings with columns and descriptions.",
        ),
        TITLE,
        DESCRIPTION,
        META,
    ],
);

pub(super) static TABLE: MappingKeys = MappingKeys::new(
    "table",
    "A table of the source.",
    &[
        TABLE_NAME,
        Key::optional(
            "columns",
            Kind::ListOrNames(&COLUMN),
            "[id]",
            "Its columns: names alone, or mappings with types and descriptions.",
        ),
        TITLE,
        DESCRIPTION,
        META,
    ],
);

pub(super) static COLUMN: MappingKeys = MappingKeys::new(
    "column",
    "A column of the table.",
    &[
        TABLE_NAME,
        Key::optional("type", Kind::Text, "integer", "The type, for people.").also(&["data_type"]),
        TITLE,
        DESCRIPTION,
        META,
    ],
);

/// Names of tables and columns belong to the warehouse, so they need not be snake_case.
const TABLE_NAME: Key = Key::required("name", Kind::Text, "orders", "The name in the warehouse.");

pub(super) fn source(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<SourceDefinition> {
    let mut fields = Fields::open(node, &SOURCE, diagnostics)?;
    let (name, is_usable) = fields.name_or_place();
    // The value is not used. It is read so that mistakes in it are reported.
    fields.words("title");
    let description = fields.words("description");
    let (database, schema) = (fields.text("database"), fields.text("schema"));
    let mut tables: Vec<TableDefinition> = Vec::new();
    for item in fields.list("tables") {
        let Some(table) = table(item, fields.diagnostics()) else { continue };
        if let Some(first) = tables.iter().find(|seen| seen.name.value == table.name.value) {
            let message = format!("source `{}` has the table `{}` twice", name.value, table.name.value);
            let hint = format!("Keep one of them. The first is in line {}.", first.name.origin.line);
            fields.report(Diagnostic::error(Code::DuplicateName, message).hint(hint).at(table.name.span()));
            continue;
        }
        tables.push(table);
    }
    is_usable.then_some(SourceDefinition { name, description, database, schema, tables })
}

fn table(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<TableDefinition> {
    if matches!(node.value, NodeValue::Scalar { .. }) {
        let name = text_of(node, &"a table", diagnostics)?;
        return Some(TableDefinition { name, description: None, columns: Vec::new() });
    }
    let mut fields = Fields::open(node, &TABLE, diagnostics)?;
    let name = fields.text("name");
    let label = fields.what();
    // The value is not used. It is read so that mistakes in it are reported.
    fields.words("title");
    let description = fields.words("description");
    let mut columns: Vec<ColumnDefinition> = Vec::new();
    let mut lines: HashMap<std::sync::Arc<str>, u32> = HashMap::new();
    for item in fields.list("columns") {
        let Some(column) = column(item, fields.diagnostics()) else { continue };
        let line = column.name.origin.line;
        if let Some(first) = lines.insert(std::sync::Arc::clone(&column.name.value), line) {
            let message = format!("{label} has the column `{}` twice", column.name.value);
            let hint = format!("Keep one of them. The first is in line {first}.");
            fields.report(Diagnostic::error(Code::DuplicateName, message).hint(hint).at(column.name.span()));
            continue;
        }
        columns.push(column);
    }
    Some(TableDefinition { name: name?, description, columns })
}

fn column(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<ColumnDefinition> {
    if matches!(node.value, NodeValue::Scalar { .. }) {
        let name = text_of(node, &"a column", diagnostics)?;
        return Some(ColumnDefinition { name, ty: None, description: None });
    }
    let mut fields = Fields::open(node, &COLUMN, diagnostics)?;
    let name = fields.text("name");
    // The value is not used. It is read so that mistakes in it are reported.
    fields.words("title");
    let (ty, description) = (fields.words("type"), fields.words("description"));
    Some(ColumnDefinition { name: name?, ty, description })
}

/// Returns `database.schema.table`, with each part quoted if necessary.
pub(super) fn printed_name(
    source: &SourceDefinition,
    table: &TableDefinition,
    dialect: &dyn sqlparser::dialect::Dialect,
) -> String {
    let parts = [source.database.as_ref(), source.schema.as_ref(), Some(&table.name)];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| quote(&part.value, dialect)).collect();
    parts.join(".")
}
