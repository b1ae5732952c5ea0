//! Reads the foreign keys in an engine's catalog.
//!
//! In: rows of strings, one for each pair of columns, sorted by key. A row has the key, then the database, schema,
//! table, shortest name and column of the referencing side, and then the same five values of the referenced side. The
//! shortest name is `database`, `schema` or `table`: the outermost part of the name that a statement needs. Out: the
//! keys. Not here: the selection of keys that hold for all rows, which the statement of each engine makes.

use std::sync::Arc;

use arrow::array::{AsArray as _, StringArray};
use terrane_app::ports::warehouse::ResultSet;
use terrane_compiler::model::{CatalogNames, ForeignKey};

/// The number of columns of each side.
const SIDE: usize = 5;

/// Returns the keys that the rows describe, or none if the columns have a different form.
pub(crate) fn foreign_keys(rows: &ResultSet) -> Vec<ForeignKey> {
    let mut found: Vec<(String, ForeignKey)> = Vec::new();
    for batch in &rows.batches {
        let texts: Option<Vec<&StringArray>> = batch.columns().iter().map(|column| column.as_string_opt()).collect();
        let Some([key, sides @ ..]) = texts.as_deref() else { return Vec::new() };
        let (Some(from), Some(to)) = (sides.get(..SIDE), sides.get(SIDE..2 * SIDE)) else { return Vec::new() };
        for at in 0..batch.num_rows() {
            let columns = [from, to].map(|side| Arc::from(side[SIDE - 1].value(at)));
            match found.last_mut().filter(|(last, _)| last == key.value(at)) {
                Some((_, known)) => known.columns.push(columns),
                None => {
                    let [from, to] = [from, to].map(|side| names(side, at));
                    found.push((key.value(at).to_owned(), ForeignKey { from, to, columns: vec![columns] }));
                }
            }
        }
    }
    found.into_iter().map(|(_, key)| key).collect()
}

fn names(side: &[&StringArray], at: usize) -> CatalogNames {
    let full: Vec<Arc<str>> = side[..3].iter().map(|part| part.value(at).into()).collect();
    let outermost = match side[3].value(at) {
        "table" => 2,
        "schema" => 1,
        _ => 0,
    };
    CatalogNames((0..=outermost).map(|first| full[first..].to_vec()).collect())
}
