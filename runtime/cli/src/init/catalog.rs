//! Tables, columns, keys and references as the database's catalog has them.
//!
//! In: a warehouse and which tables are wanted. Out: [`Table`]s in order of their names, with what is
//! declared. Not here: what is found by looking at rows (`keys`).

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;
use terrane_app::ports::warehouse::{Statement, Warehouse};
use terrane_compiler::model::nearest::suggest;

use super::Choice;
use super::kind::Kind;
use super::statements::{Catalog, DUCKDB, POSTGRES};
use super::table::{Column, Evidence, Reference, Table};
use crate::failure::Failure;
use crate::report::plural;
use crate::rows::Rows;

/// More tables are no project that somebody reads through.
const MAX_TABLES: usize = 300;
const TIMEOUT: Duration = Duration::from_secs(60);

pub(super) async fn read(warehouse: &dyn Warehouse, choice: &Choice) -> Result<Vec<Table>, Failure> {
    let catalog = if warehouse.name() == "postgres" { &POSTGRES } else { &DUCKDB };
    let Catalog { tables, columns, keys } = catalog;
    let listed = rows(warehouse, tables).await.map_err(unreadable)?;
    let mut tables = chosen(&listed, choice)?;
    let index: HashMap<(String, String), usize> =
        tables.iter().enumerate().map(|(at, table)| ((table.schema.clone(), table.name.clone()), at)).collect();
    let find = |row: &[Value], at: usize| index.get(&(text(row, at)?, text(row, at + 1)?)).copied();
    for row in rows(warehouse, columns).await.map_err(unreadable)? {
        let (Some(at), Some(name), Some(type_name)) = (find(&row, 0), text(&row, 2), text(&row, 3)) else { continue };
        tables[at].columns.push(Column {
            name,
            kind: Kind::of(&type_name),
            type_name,
            is_nullable: row.get(4) != Some(&Value::Bool(false)),
            comment: text(&row, 5).filter(|comment| !comment.trim().is_empty()),
            statistics: None,
        });
    }
    let declared = rows(warehouse, keys).await.map_err(unreadable)?;
    for constraint in constraints(&declared) {
        declare(&mut tables, &index, &constraint);
    }
    Ok(tables)
}

/// All rows of a statement.
///
/// # Errors
/// What the warehouse said, in one line.
pub(super) async fn rows(warehouse: &dyn Warehouse, statement: &str) -> Result<Vec<Vec<Value>>, String> {
    let answer = warehouse.execute(Statement::plain(statement), TIMEOUT).await;
    let answer = answer.map_err(|error| error.message.lines().next().unwrap_or_default().to_owned())?;
    let rows = Rows::of_statement(&answer.schema, &answer.batches).map_err(|error| error.to_string())?;
    Ok(rows.rows)
}

fn unreadable(why: String) -> Failure {
    Failure::new(format!("the database's catalog can't be read: {why}")).hint("it must be readable to whoever connects")
}

fn text(row: &[Value], at: usize) -> Option<String> {
    row.get(at)?.as_str().map(str::to_owned)
}

/// The tables that are wanted, without columns. A view is taken where it is named: what it shows is as a
/// rule shown by a table, too.
fn chosen(listed: &[Vec<Value>], choice: &Choice) -> Result<Vec<Table>, Failure> {
    let of_schema = |schema: &str| choice.schema.as_ref().is_none_or(|wanted| wanted == schema);
    let mut missing: BTreeMap<&str, ()> = choice.tables.iter().map(|name| (name.as_str(), ())).collect();
    let (mut tables, mut known) = (Vec::new(), Vec::new());
    for row in listed {
        let (Some(schema), Some(name)) = (text(row, 0), text(row, 1)) else { continue };
        if !of_schema(&schema) {
            continue;
        }
        let full = format!("{schema}.{name}");
        let is_named = choice.tables.iter().any(|wanted| *wanted == name || *wanted == full);
        missing.remove(name.as_str());
        missing.remove(full.as_str());
        known.push(name.clone());
        let is_view = row.get(2) == Some(&Value::Bool(true));
        if is_named || (choice.tables.is_empty() && (!is_view || choice.views)) {
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
        return Err(Failure::new(format!("there is no table `{name}`")).hint(suggest(name, "tables", known)));
    }
    if tables.is_empty() {
        let place = choice.schema.as_ref().map_or("the database".to_owned(), |schema| format!("schema `{schema}`"));
        return Err(Failure::new(format!("{place} has no table that can be read"))
            .hint("check --schema and the user's rights; a view is taken where --tables names it"));
    }
    if tables.len() > MAX_TABLES {
        let message = format!("{} are more than the {MAX_TABLES} of one project", plural(tables.len(), "table"));
        return Err(Failure::new(message).hint("choose: --schema NAME, or --tables a,b,c"));
    }
    Ok(tables)
}

/// Rows of one constraint, its columns in order.
struct Constraint<'r> {
    table: (String, String),
    kind: &'r str,
    columns: Vec<String>,
    target: Option<(String, String)>,
    target_columns: Vec<String>,
}

fn constraints(rows: &[Vec<Value>]) -> Vec<Constraint<'_>> {
    let mut found: Vec<(String, Constraint<'_>)> = Vec::new();
    for row in rows {
        let (Some(schema), Some(table), Some(id)) = (text(row, 0), text(row, 1), text(row, 2)) else { continue };
        let (Some(kind), Some(column)) = (row.get(3).and_then(Value::as_str), text(row, 4)) else { continue };
        let target = text(row, 5).zip(text(row, 6));
        let is_same = |(other, constraint): &&mut (String, Constraint<'_>)| {
            *other == id && constraint.table == (schema.clone(), table.clone())
        };
        let constraint = match found.iter_mut().find(is_same) {
            Some((_, constraint)) => constraint,
            None => {
                let new = Constraint {
                    table: (schema, table),
                    kind,
                    columns: Vec::new(),
                    target,
                    target_columns: Vec::new(),
                };
                found.push((id, new));
                let last = found.len() - 1;
                &mut found[last].1
            }
        };
        constraint.columns.push(column);
        constraint.target_columns.extend(text(row, 7));
    }
    found.into_iter().map(|(_, constraint)| constraint).collect()
}

fn declare(tables: &mut [Table], index: &HashMap<(String, String), usize>, constraint: &Constraint<'_>) {
    let Some(&at) = index.get(&constraint.table) else { return };
    let indexes = |table: &Table, names: &[String]| -> Option<Vec<usize>> {
        names.iter().map(|name| table.column_index(name)).collect()
    };
    let Some(columns) = indexes(&tables[at], &constraint.columns) else { return };
    match constraint.kind {
        "p" => tables[at].key = columns,
        // Null stands beside null in a unique column.
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
