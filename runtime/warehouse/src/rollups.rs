//! Code that all adapters of this crate share when they build tables of pre-aggregations: names and indexes.
//!
//! Not here: the comparison of totals, which is the port's (`rollup_totals`), and the statements that create a table.

use std::sync::Arc;

use sqlx::{ColumnIndex, Decode, Row, Type};
use terrane_app::ports::rollup_tables::{NewRollupTable, RollupPlace};

use crate::built::quoted;

/// Returns the tables of a target among the rows of a catalog. The column `name` contains the tables' names.
pub(crate) fn owned<R>(place: &RollupPlace, rows: &[R]) -> Result<Vec<Arc<str>>, sqlx::Error>
where
    R: Row,
    for<'c> &'c str: ColumnIndex<R>,
    for<'r> String: Decode<'r, R::Database> + Type<R::Database>,
{
    let mut names: Vec<Arc<str>> = Vec::new();
    for row in rows {
        let name: String = row.try_get("name")?;
        names.extend(place.owns(&name).then(|| name.into()));
    }
    Ok(names)
}

/// Returns the statements that create the indexes of a table, with names that are unique in the schema.
pub(crate) fn indexes(table: &NewRollupTable, relation: &str, quote: fn(&str) -> String) -> Vec<String> {
    let indexed = table.columns.iter().filter(|column| column.is_indexed);
    let statement = |name: &str| {
        let index = quote(&format!("{}_{name}", table.name));
        format!("CREATE INDEX {index} ON {relation} ({})", quote(name))
    };
    indexed.map(|column| statement(&column.name)).collect()
}

/// Returns the full name of a table, quoted as in standard SQL.
pub(crate) fn standard_relation(place: &RollupPlace, table: &str) -> String {
    [quoted(&place.schema), quoted(table)].join(".")
}
