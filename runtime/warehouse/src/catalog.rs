//! Looks up tables in an engine's catalog: builds the statement of each engine, and reads its result.
//!
//! The statements are constants, and names are bound. A lookup returns a row for each column of the table: the parts of
//! the full name, outermost first, then the column's name.

use arrow::array::{Array as _, AsArray as _, StringArray};
use terrane_app::ports::warehouse::{CatalogTable, ResultSet, Statement};
use terrane_compiler::types::Value;

/// A statement that looks a table up.
#[derive(Debug)]
pub(crate) struct Lookup {
    text: &'static str,
    params: Vec<Value>,
}

impl Lookup {
    pub(crate) fn new(text: &'static str, names: &[&str]) -> Self {
        Lookup { text, params: names.iter().map(|name| Value::Text((*name).into())).collect() }
    }

    pub(crate) fn statement(&self) -> Statement<'_> {
        Statement { text: self.text, params: &self.params, columns: &[] }
    }
}

/// Returns the table that the rows describe. Returns `None` if they describe no table or several.
pub(crate) fn table(rows: &ResultSet) -> Option<CatalogTable> {
    let mut found: Option<CatalogTable> = None;
    for batch in &rows.batches {
        let texts: Option<Vec<&StringArray>> = batch.columns().iter().map(|column| column.as_string_opt()).collect();
        let texts = texts?;
        let (columns, parts) = texts.split_last()?;
        for at in 0..batch.num_rows() {
            if texts.iter().any(|text| text.is_null(at)) {
                return None;
            }
            let name: Vec<String> = parts.iter().map(|part| part.value(at).to_owned()).collect();
            let table = found.get_or_insert_with(|| CatalogTable { name: name.clone(), columns: Vec::new() });
            if table.name != name {
                return None;
            }
            table.columns.push(columns.value(at).to_owned());
        }
    }
    found
}
