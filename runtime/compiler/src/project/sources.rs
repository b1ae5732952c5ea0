//! `sources:` entries to definitions.
//!
//! In: the YAML nodes of one list. Out: [`SourceDefinition`]s and the printed names of their tables.

use super::definitions::{ColumnDefinition, SourceDefinition, TableDefinition};
use super::fields::{Fields, text_of};
use super::jinja::quote;
use super::yaml::{Node, NodeValue};
use crate::diagnostic::Diagnostic;

pub(super) const SOURCE: &[&str] = &["name", "database", "schema", "tables", "title", "description", "meta"];
pub(super) const TABLE: &[&str] = &["name", "columns", "title", "description", "meta"];
pub(super) const COLUMN: &[&str] = &["name", "type", "title", "description", "meta"];

pub(super) fn source(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<SourceDefinition> {
    let mut fields = Fields::open(node, "source", SOURCE, diagnostics)?;
    let name = fields.name()?;
    let description = fields.words("description");
    let (database, schema) = (fields.text("database"), fields.text("schema"));
    if !fields.has("tables") {
        fields.missing("tables", "[{name: orders}]");
    }
    let mut tables: Vec<TableDefinition> = Vec::new();
    for item in fields.list("tables") {
        let Some(table) = table(item, fields.diagnostics()) else { continue };
        if let Some(first) = tables.iter().find(|seen| seen.name.value == table.name.value) {
            let message = format!("source `{}` has the table `{}` twice", name.value, table.name.value);
            let hint = format!("keep one; the first is in line {}", first.name.origin.line);
            fields.report(Diagnostic::error("duplicate-name", message).hint(hint).at(table.name.span()));
            continue;
        }
        tables.push(table);
    }
    Some(SourceDefinition { name, description, database, schema, tables })
}

/// A table's name belongs to the warehouse, so it needs not be snake_case.
fn table(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<TableDefinition> {
    if matches!(node.value, NodeValue::Scalar { .. }) {
        let name = text_of(node, &"a table", diagnostics)?;
        return Some(TableDefinition { name, description: None, columns: Vec::new() });
    }
    let mut fields = Fields::open(node, "table", TABLE, diagnostics)?;
    let name = fields.required("name", "orders")?;
    let description = fields.words("description");
    let mut columns = Vec::new();
    for item in fields.list("columns") {
        columns.extend(column(item, fields.diagnostics()));
    }
    Some(TableDefinition { name, description, columns })
}

fn column(node: &Node, diagnostics: &mut Vec<Diagnostic>) -> Option<ColumnDefinition> {
    if matches!(node.value, NodeValue::Scalar { .. }) {
        let name = text_of(node, &"a column", diagnostics)?;
        return Some(ColumnDefinition { name, ty: None, description: None });
    }
    let mut fields = Fields::open(node, "column", COLUMN, diagnostics)?;
    let name = fields.required("name", "id")?;
    Some(ColumnDefinition { name, ty: fields.words("type"), description: fields.words("description") })
}

/// `database.schema.table`, each part quoted when it must be.
pub(super) fn printed_name(
    source: &SourceDefinition,
    table: &TableDefinition,
    dialect: &dyn sqlparser::dialect::Dialect,
) -> String {
    let parts = [source.database.as_ref(), source.schema.as_ref(), Some(&table.name)];
    let parts: Vec<String> = parts.into_iter().flatten().map(|part| quote(&part.value, dialect)).collect();
    parts.join(".")
}
