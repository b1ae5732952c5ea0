//! The list of the tables of a database, as the server's catalog returns it.
//!
//! In: the parts of a name. Out: the plan of a catalog call, and the entries in its rows.

use arrow::array::{Array as _, AsArray as _, RecordBatch, StringArray};
use arrow::datatypes::Int64Type;
use terrane_app::ports::warehouse::{ResultSet, WarehouseError, WarehouseErrorKind};

use crate::failure::refused;
use crate::protocol::{Catalog, CatalogCall, ListTables, OpType, Plan, RelType, Relation};
use crate::session::plan;

/// The indexes of columns in three kinds of results: the list of tables, the list of columns, and the description.
/// Columns are found by index, because their names differ between servers.
pub(crate) const NAME: usize = 0;
const CATALOG: usize = 1;
const NAMESPACE: usize = 2;
const COMMENT: usize = 3;
const KIND: usize = 4;
const IS_TEMPORARY: usize = 5;
const DESCRIBED: usize = 1;

/// An entry of the list of tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    /// The full name, beginning with the catalog. The name alone for an entry without a catalog.
    pub(crate) name: Vec<String>,
    pub(crate) comment: Option<String>,
    pub(crate) kind: String,
    pub(crate) is_temporary: bool,
}

impl Listed {
    /// Returns whether the entry has this name, ignoring case.
    pub(crate) fn is_called(&self, name: &str) -> bool {
        self.name.last().is_some_and(|own| own.to_lowercase() == name.to_lowercase())
    }
}

/// Returns the plan that lists the tables and views of a database, or of the current database. Entries may have names
/// other than `name`, because not every server can restrict the list to one name.
pub(crate) fn list_tables(database: &[&str], name: Option<&str>) -> Plan {
    let db_name = (!database.is_empty()).then(|| quoted(database));
    let pattern = name.filter(|name| is_plain(name)).map(str::to_owned);
    catalog(CatalogCall::ListTables(ListTables { db_name, pattern }))
}

/// Returns the plan of a call of the catalog.
pub(crate) fn catalog(call: CatalogCall) -> Plan {
    let catalog = RelType::Catalog(Catalog { cat_type: Some(call) });
    plan(OpType::Root(Relation { rel_type: Some(catalog) }))
}

/// Converts a refusal to `None`. A refusal means that a part of the name does not exist or may not be read.
pub(crate) fn unless_missing<T>(outcome: Result<T, WarehouseError>) -> Result<Option<T>, WarehouseError> {
    match outcome {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind == WarehouseErrorKind::Refused => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the entries of the list of tables.
pub(crate) fn listed_tables(rows: &ResultSet) -> Vec<Listed> {
    let mut listed = Vec::new();
    for batch in &rows.batches {
        for row in 0..batch.num_rows() {
            let temporary = batch.columns().get(IS_TEMPORARY).and_then(|column| column.as_boolean_opt());
            listed.push(Listed {
                name: full_name(batch, row),
                comment: cell(batch, COMMENT, row),
                kind: cell(batch, KIND, row).unwrap_or_default().to_uppercase(),
                is_temporary: temporary.is_none_or(|column| column.value(row)),
            });
        }
    }
    listed
}

/// Returns the catalog, namespace and name of a listed table. Without a catalog, returns only the name.
fn full_name(batch: &RecordBatch, row: usize) -> Vec<String> {
    let mut name: Vec<String> = cell(batch, CATALOG, row).into_iter().collect();
    let namespaces = batch.columns().get(NAMESPACE).and_then(|column| column.as_list_opt::<i32>());
    if let Some(namespaces) = namespaces.filter(|lists| !name.is_empty() && lists.is_valid(row)) {
        let parts = namespaces.value(row);
        let parts = parts.as_string_opt::<i32>().map(|parts| parts.iter().flatten().map(str::to_owned).collect());
        name.extend(parts.unwrap_or_else(Vec::new));
    }
    name.extend(cell(batch, NAME, row));
    name
}

fn cell(batch: &RecordBatch, column: usize, row: usize) -> Option<String> {
    let column: &StringArray = batch.columns().get(column)?.as_string_opt()?;
    column.is_valid(row).then(|| column.value(row).to_owned())
}

/// Returns a fact from the description of a table, such as its `Provider`. The description lists the columns first.
pub(crate) fn described(rows: &ResultSet, fact: &str) -> Option<String> {
    let (keys, values) = (strings(rows, NAME), strings(rows, DESCRIBED));
    let begin = keys.iter().position(|key| key.as_deref().is_some_and(|key| key.starts_with("# Detailed")))?;
    let at = keys.iter().skip(begin).position(|key| key.as_deref() == Some(fact))?;
    values.get(begin + at)?.clone()
}

/// Returns the number in the first row of a result, such as a number of rows.
///
/// # Errors
/// The server returned no number.
pub(crate) fn first_number(rows: &ResultSet) -> Result<u64, WarehouseError> {
    let batch = rows.batches.iter().find(|batch| batch.num_rows() > 0);
    let column = batch.and_then(|batch| batch.columns().first()?.as_primitive_opt::<Int64Type>());
    let number = column.and_then(|column| u64::try_from(column.value(0)).ok());
    number.ok_or_else(|| refused("the server returned no number of rows".to_owned()))
}

/// Returns the strings of a column, of all batches.
pub(crate) fn strings(rows: &ResultSet, column: usize) -> Vec<Option<String>> {
    let cells = |batch: &RecordBatch| (0..batch.num_rows()).map(|row| cell(batch, column, row)).collect::<Vec<_>>();
    rows.batches.iter().flat_map(cells).collect()
}

/// Quotes the parts of a name for an argument that the server parses as a name.
pub(crate) fn quoted<S: AsRef<str>>(parts: &[S]) -> String {
    let quote = |part: &S| format!("`{}`", part.as_ref().replace('`', "``"));
    parts.iter().map(quote).collect::<Vec<_>>().join(".")
}

/// Quotes a string literal. The escape of a quote has the same meaning in all versions and settings of sessions.
pub(crate) fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\u0027"))
}

/// Returns true if a name has no characters with a special meaning in a pattern.
fn is_plain(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_in_names_are_doubled() {
        assert_eq!(quoted(&["a", "b`.c"]), "`a`.`b``.c`");
    }

    #[test]
    fn quotes_and_backslashes_in_literals_are_escaped() {
        assert_eq!(literal(r"it's \ here"), r"'it\u0027s \\ here'");
    }

    #[test]
    fn special_characters_never_reach_a_pattern() {
        assert!(is_plain("orders_2024"));
        for name in ["a*", "a|b", "a.b", "größe", "a b"] {
            assert!(!is_plain(name), "{name}");
        }
    }
}
