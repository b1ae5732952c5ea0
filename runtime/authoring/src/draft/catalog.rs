//! Reads tables, columns, keys and references from the catalog of a database.
//!
//! In: a warehouse and a selection of tables. Out: [`Table`]s sorted by name, with their declared keys and
//! references. Not here: keys and references that are found in the rows (`keys`).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use arrow::array::Array as _;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use terrane_app::ports::warehouse::{Statement, Warehouse};
use terrane_compiler::text::nearest::suggest;
use terrane_terminal::plural;

use super::column_kind::ColumnKind;
use super::statements::{CatalogQueries, DUCKDB, POSTGRES};
use super::table::{Column, Evidence, Reference, Table};
use super::{TableSelection, ViewSelection};
use crate::AuthoringError;

/// The largest number of tables in a project that a person can still review.
const MAX_TABLES: usize = 300;
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn read(
    warehouse: &dyn Warehouse,
    selection: &TableSelection,
    notes: &mut Vec<String>,
) -> Result<Vec<Table>, AuthoringError> {
    let catalog = if warehouse.name() == "postgres" { &POSTGRES } else { &DUCKDB };
    let CatalogQueries { tables, columns, keys } = catalog;
    let listed = rows(warehouse, tables).await.map_err(unreadable)?;
    let mut tables = selected(&listed, selection, notes)?;
    let index: HashMap<(String, String), usize> =
        tables.iter().enumerate().map(|(at, table)| ((table.schema.clone(), table.name.clone()), at)).collect();
    let find = |row: &[Option<String>], at: usize| index.get(&(text(row, at)?, text(row, at + 1)?)).copied();
    for row in rows(warehouse, columns).await.map_err(unreadable)? {
        let (Some(at), Some(name), Some(type_name)) = (find(&row, 0), text(&row, 2), text(&row, 3)) else { continue };
        if is_template(&name) {
            notes
                .push(format!("column `{name}` of {} is left out: its name contains template syntax", tables[at].name));
            continue;
        }
        tables[at].columns.push(Column {
            name,
            kind: ColumnKind::of(&type_name),
            type_name,
            is_nullable: text(&row, 4).as_deref() != Some("false"),
            comment: text(&row, 5).filter(|comment| !comment.trim().is_empty()),
            note: None,
            statistics: None,
        });
    }
    let declared = rows(warehouse, keys).await.map_err(unreadable)?;
    for constraint in constraints(&declared) {
        declare(&mut tables, &index, &constraint);
    }
    Ok(tables)
}

/// Returns all rows of a statement.
///
/// # Errors
/// Returns the first line of the warehouse's message, or the reason why a value cannot be shown as text.
pub(super) async fn rows(warehouse: &dyn Warehouse, statement: &str) -> Result<Vec<Row>, String> {
    let answer = warehouse.execute(Statement::plain(statement), TIMEOUT).await;
    let answer = answer.map_err(|error| error.message.lines().next().unwrap_or_default().to_owned())?;
    let options = FormatOptions::new();
    let mut rows = Vec::new();
    for batch in &answer.batches {
        let columns: Vec<ArrayFormatter<'_>> = batch
            .columns()
            .iter()
            .map(|column| ArrayFormatter::try_new(&**column, &options))
            .collect::<Result<_, _>>()
            .map_err(|error| error.to_string())?;
        for at in 0..batch.num_rows() {
            let cells = batch.columns().iter().zip(&columns);
            rows.push(cells.map(|(column, cell)| column.is_valid(at).then(|| cell.value(at).to_string())).collect());
        }
    }
    Ok(rows)
}

/// The cells of a row as text; `None` is null.
pub(super) type Row = Vec<Option<String>>;

/// Returns a cell that contains a count.
pub(super) fn count(row: &[Option<String>], at: usize) -> u64 {
    row.get(at).and_then(Option::as_ref).and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn unreadable(reason: String) -> AuthoringError {
    AuthoringError::new(format!("could not read the database's catalog: {reason}"))
        .hint("Grant the user of the connection access to it.")
}

fn text(row: &[Option<String>], at: usize) -> Option<String> {
    row.get(at)?.clone()
}

/// Returns true if a project cannot contain a name literally, even in quotes. Such a name contains Jinja, a variable or
/// a private-use character.
fn is_template(name: &str) -> bool {
    ["{{", "{%", "{#", "${"].iter().any(|tag| name.contains(tag))
        || name.contains(|c| ('\u{E000}'..='\u{F8FF}').contains(&c))
}

/// Returns the selected tables, without columns.
fn selected(listed: &[Row], selection: &TableSelection, notes: &mut Vec<String>) -> Result<Vec<Table>, AuthoringError> {
    let is_in_schema = |schema: &str| selection.schema.as_ref().is_none_or(|wanted| wanted == schema);
    let mut missing: BTreeMap<&str, ()> = selection.tables.iter().map(|name| (name.as_str(), ())).collect();
    let (mut tables, mut known) = (Vec::new(), Vec::new());
    for row in listed {
        let (Some(schema), Some(name)) = (text(row, 0), text(row, 1)) else { continue };
        if !is_in_schema(&schema) {
            continue;
        }
        let full = format!("{schema}.{name}");
        let is_named = selection.tables.iter().any(|wanted| *wanted == name || *wanted == full);
        missing.remove(name.as_str());
        missing.remove(full.as_str());
        known.push(name.clone());
        let is_view = text(row, 2).as_deref() == Some("true");
        let is_selected =
            is_named || (selection.tables.is_empty() && (!is_view || selection.views == ViewSelection::All));
        if is_selected && (is_template(&schema) || is_template(&name)) {
            notes.push(format!("table `{full}` is left out: its name contains template syntax"));
        } else if is_selected {
            tables.push(Table {
                schema,
                name,
                comment: text(row, 3).filter(|comment| !comment.trim().is_empty()),
                columns: Vec::new(),
                key: Vec::new(),
                key_evidence: Evidence::Declared,
                unique: Vec::new(),
                references: Vec::new(),
            });
        }
    }
    if let Some(name) = missing.keys().next() {
        let known = known.iter().map(String::as_str);
        return Err(AuthoringError::new(format!("unknown table `{name}`")).hint(suggest(name, "tables", known)));
    }
    if tables.is_empty() {
        return Err(no_table(listed, selection));
    }
    if tables.len() > MAX_TABLES {
        let message = format!("{} exceed the limit of {MAX_TABLES}", plural(tables.len(), "table"));
        return Err(AuthoringError::new(message).hint("Select some of them: --schema NAME, or --tables a,b,c."));
    }
    Ok(tables)
}

/// Returns the error of a selection without a table.
fn no_table(listed: &[Row], selection: &TableSelection) -> AuthoringError {
    let schemas: BTreeSet<String> = listed.iter().filter_map(|row| text(row, 0)).collect();
    match &selection.schema {
        Some(schema) if !schemas.contains(schema) && !schemas.is_empty() => {
            let hint = suggest(schema, "schemas", schemas.iter().map(String::as_str));
            AuthoringError::new(format!("unknown schema `{schema}`")).hint(hint)
        }
        schema => {
            let place = schema.as_ref().map_or("the database".to_owned(), |schema| format!("schema `{schema}`"));
            AuthoringError::new(format!("{place} contains no readable table"))
                .hint("Check --schema and the privileges of the user. Views are used only if --tables names them.")
        }
    }
}

/// One constraint, with its columns in order.
struct Constraint {
    table: (String, String),
    kind: String,
    columns: Vec<String>,
    target: Option<(String, String)>,
    target_columns: Vec<String>,
}

fn constraints(rows: &[Row]) -> Vec<Constraint> {
    let mut found: Vec<(String, Constraint)> = Vec::new();
    for row in rows {
        let (Some(schema), Some(table), Some(id)) = (text(row, 0), text(row, 1), text(row, 2)) else { continue };
        let (Some(kind), Some(column)) = (text(row, 3), text(row, 4)) else { continue };
        let target = text(row, 5).zip(text(row, 6));
        let owner = (schema, table);
        let known = found.iter().position(|(other, constraint)| *other == id && constraint.table == owner);
        let at = known.unwrap_or(found.len());
        if known.is_none() {
            let new = Constraint { table: owner, kind, columns: Vec::new(), target, target_columns: Vec::new() };
            found.push((id, new));
        }
        let (_, constraint) = &mut found[at];
        constraint.columns.push(column);
        constraint.target_columns.extend(text(row, 7));
    }
    found.into_iter().map(|(_, constraint)| constraint).collect()
}

fn declare(tables: &mut [Table], index: &HashMap<(String, String), usize>, constraint: &Constraint) {
    let Some(&at) = index.get(&constraint.table) else { return };
    let indexes = |table: &Table, names: &[String]| -> Option<Vec<usize>> {
        names.iter().map(|name| table.column_index(name)).collect()
    };
    let Some(columns) = indexes(&tables[at], &constraint.columns) else { return };
    match constraint.kind.as_str() {
        "p" => tables[at].key = columns,
        // A unique constraint allows several nulls, so nullable columns do not identify rows.
        "u" if columns.iter().all(|column| !tables[at].columns[*column].is_nullable) => tables[at].unique.push(columns),
        "f" => {
            let target = constraint.target.as_ref().and_then(|target| index.get(target)).copied();
            let Some(target) = target else { return };
            let Some(target_columns) = indexes(&tables[target], &constraint.target_columns) else { return };
            if target_columns.len() == columns.len() {
                let reference = Reference { columns, target, target_columns, evidence: Evidence::Declared };
                if !tables[at].references.contains(&reference) {
                    tables[at].references.push(reference);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_template_syntax_are_recognized() {
        let templates = ["{{ env_var('X') }}", "{{ z }}", "{% raw %}", "{# a #}", "${HOME}", "a\u{E000}"];
        assert!(templates.iter().all(|name| is_template(name)));
        let plain = ["orders", "a {b}", "100 %", "price $", "Größe", "{CUBE}"];
        assert!(!plain.iter().any(|name| is_template(name)));
    }
}
