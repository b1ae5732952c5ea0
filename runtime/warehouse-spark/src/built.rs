//! The relations that this program built, as the catalog lists them.
//!
//! Each built relation is a view. That of a table reads a table with a random name in the schema [`STORE`], so that
//! replacing the view exchanges the rows: a reader gets those of the old table or those of the new one. The comment of
//! the view is the marker, followed by the table's name. Spark cannot search comments. Therefore a view in [`STORE`]
//! records each schema in which relations were built, and only these schemas are listed.

use terrane_app::ports::builder::{BuiltRelation, Marker};
use terrane_app::ports::warehouse::WarehouseError;

use crate::listing::{Listed, list_tables, listed_tables, literal, quoted, unless_missing};
use crate::pool::{CATALOG_TIMEOUT, Pool};

/// The schema of the tables with the rows of models.
pub(crate) const STORE: &str = "terrane_models";
/// The beginning of the comment of a view that records a schema.
const RECORD: &str = "Terrane built relations in schema ";
/// The part of a view's comment before the name of the table with its rows.
const ROWS_IN: &str = ", rows in ";

/// The comment of a built relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) marker: Marker,
    /// The table in [`STORE`]; `None` for a model that is a view.
    pub(crate) table: Option<String>,
}

impl Published {
    /// Parses the comment of a relation; `None` if it was not built by this program.
    pub(crate) fn parse(comment: &str) -> Option<Published> {
        match comment.rsplit_once(ROWS_IN) {
            Some((marker, table)) => Some(Published { marker: Marker::parse(marker)?, table: Some(table.to_owned()) }),
            None => Some(Published { marker: Marker::parse(comment)?, table: None }),
        }
    }

    pub(crate) fn comment(&self) -> String {
        match &self.table {
            Some(table) => format!("{}{ROWS_IN}{table}", self.marker),
            None => self.marker.to_string(),
        }
    }

    /// Returns the marker of a view; `None` for other relations, which this program does not create as such.
    pub(crate) fn of(listed: &Listed) -> Option<Published> {
        Published::parse(listed.comment.as_deref()?).filter(|_| listed.kind == "VIEW")
    }
}

/// Returns the statement that records a schema.
pub(crate) fn record(schema: &str) -> String {
    let (view, comment) = (quoted(&[STORE, &record_name(schema)]), literal(&format!("{RECORD}{schema}")));
    format!("CREATE VIEW IF NOT EXISTS {view} COMMENT {comment} AS SELECT {} AS schema_name", literal(schema))
}

/// Returns the name of the view that records a schema. Names of tables can only contain letters, digits and `_`.
pub(crate) fn record_name(schema: &str) -> String {
    schema.bytes().fold("schema_".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

/// Returns the built relations of all projects, and the tables with the rows of models.
///
/// # Errors
/// Returns the server's error. A schema that does not exist or may not be listed has no relations.
pub(crate) async fn relations(pool: &Pool) -> Result<Vec<BuiltRelation>, WarehouseError> {
    let store = entries(pool, STORE).await?;
    let mut found: Vec<BuiltRelation> = store.iter().filter_map(stored).collect();
    for schema in store.iter().filter_map(|listed| listed.comment.as_deref()?.strip_prefix(RECORD)) {
        found.extend(entries(pool, schema).await?.iter().filter_map(|listed| published(schema, listed)));
    }
    Ok(found)
}

async fn entries(pool: &Pool, schema: &str) -> Result<Vec<Listed>, WarehouseError> {
    let rows = unless_missing(pool.run(list_tables(&[schema], None), CATALOG_TIMEOUT).await)?;
    let mut listed = rows.map(|rows| listed_tables(&rows)).unwrap_or_default();
    listed.retain(|listed| !listed.is_temporary);
    Ok(listed)
}

/// Returns a table with the rows of a model. It is never current, because models are read through their views. SQL that
/// names it reads a built relation.
fn stored(listed: &Listed) -> Option<BuiltRelation> {
    let marker = Marker::parse(listed.comment.as_deref()?)?;
    Some(BuiltRelation { schema: STORE.into(), name: listed.name.last()?.as_str().into(), is_view: false, marker })
}

/// Returns a built relation in the spelling of its model, because catalogs return names in lower case.
fn published(schema: &str, listed: &Listed) -> Option<BuiltRelation> {
    let Published { marker, table } = Published::of(listed)?;
    let name = if listed.is_called(&marker.model) { marker.model.clone() } else { listed.name.last()?.as_str().into() };
    Some(BuiltRelation { schema: schema.into(), name, is_view: table.is_none(), marker })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_round_trips() {
        let marker = Marker { project: "shop".into(), model: "Clean".into(), fingerprint: "ab12".into() };
        for table in [None, Some("m_01".to_owned())] {
            let published = Published { marker: marker.clone(), table };
            assert_eq!(Published::parse(&published.comment()), Some(published));
        }
        assert_eq!(Published::parse("orders, rows in m_01"), None);
    }

    #[test]
    fn only_views_with_a_marker_are_built_relations() {
        let marker = Marker { project: "shop".into(), model: "Clean".into(), fingerprint: "ab12".into() };
        let listed = |kind: &str, comment: &str| Listed {
            name: vec!["spark_catalog".to_owned(), "analytics".to_owned(), "clean".to_owned()],
            comment: Some(comment.to_owned()),
            kind: kind.to_owned(),
            is_temporary: false,
        };
        let found = published("Analytics", &listed("VIEW", &marker.to_string())).unwrap();
        assert_eq!((&*found.schema, &*found.name, found.is_view), ("Analytics", "Clean", true));
        assert_eq!(published("Analytics", &listed("MANAGED", &marker.to_string())), None);
        assert_eq!(published("Analytics", &listed("VIEW", "orders")), None);
    }
}
