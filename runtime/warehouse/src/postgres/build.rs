//! Builds models, each in a transaction on its own connection, which may write.
//!
//! In: a relation and its query. Out: the relation, which replaces the previous one. A new table is built under a
//! different name, so that readers of the old table continue during the build. Only the exchange locks the old table.
//! The exchange waits for current readers within a time limit, because later readers wait behind it. Views of this
//! project over the exchanged table are recreated in the same transaction, because PostgreSQL binds a view to the table
//! and not to its name. A build that fails, is cancelled or is killed leaves nothing behind.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use terrane_app::ports::builder::{BuildError, CantBuild, Marker, ModelBuilder, NewRelation, NotReady};
use terrane_app::ports::warehouse::WarehouseError;

use super::{FAILED, Server};
use crate::built::{literal, quoted};
use crate::sessions::{PROBE_TIMEOUT, WarehouseSession, Writers};

/// Selects the relations that Terrane built, which have a marker in their comment.
pub(super) const BUILT: &str = "\
    SELECT n.nspname::text, c.relname::text, CASE c.relkind WHEN 'v' THEN 'view' ELSE 'table' END, d.description \
    FROM pg_description d JOIN pg_class c ON c.oid = d.objoid JOIN pg_namespace n ON n.oid = c.relnamespace \
    WHERE d.classoid = 'pg_class'::regclass AND d.objsubid = 0 AND c.relkind IN ('r', 'v') \
    AND starts_with(d.description, 'Built by Terrane')";

/// Selects whether a schema exists, and whether the user may create relations in it, or else may create the schema
/// itself.
const RIGHTS: &str = "\
    SELECT s.oid IS NOT NULL AS is_there, NOT pg_is_in_recovery() AND CASE WHEN s.oid IS NULL \
    THEN has_database_privilege(current_database(), 'CREATE') ELSE has_schema_privilege(s.oid, 'CREATE') END AS may \
    FROM (SELECT 1) one LEFT JOIN pg_namespace s ON s.nspname = $1";

const EXISTING: &str = "\
    SELECT c.oid::int8 AS oid, c.relkind::text AS kind, obj_description(c.oid, 'pg_class') AS comment \
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = $2";

/// Selects the views that read a relation directly or through other views. The most distant ones come first.
const READERS: &str = "\
    WITH RECURSIVE readers (oid, distance) AS (\
    SELECT $1::int8, 0 UNION SELECT r.ev_class::int8, readers.distance + 1 FROM readers \
    JOIN pg_depend d ON d.refclassid = 'pg_class'::regclass AND d.refobjid::int8 = readers.oid \
    AND d.classid = 'pg_rewrite'::regclass \
    JOIN pg_rewrite r ON r.oid = d.objid AND r.ev_class::int8 <> readers.oid) \
    SELECT n.nspname::text AS schema_name, c.relname::text AS name, c.relkind::text AS kind, \
    obj_description(c.oid, 'pg_class') AS comment, pg_get_viewdef(c.oid) AS text \
    FROM (SELECT oid, max(distance) AS distance FROM readers WHERE distance > 0 GROUP BY oid) found \
    JOIN pg_class c ON c.oid::int8 = found.oid JOIN pg_namespace n ON n.oid = c.relnamespace \
    ORDER BY found.distance DESC, c.oid";

/// Builds models with the privileges of the URL's user.
pub(super) struct PostgresBuilder {
    writers: Writers<Server>,
}

impl PostgresBuilder {
    pub(super) fn new(server: Server) -> Self {
        PostgresBuilder { writers: Writers::new(server) }
    }
}

#[async_trait]
impl ModelBuilder for PostgresBuilder {
    async fn prepare(&self, schemas: &[&str]) -> Result<(), NotReady> {
        self.writers
            .run(PROBE_TIMEOUT, async |WarehouseSession { connection, .. }, _| make_schemas(connection, schemas).await)
            .await
    }

    async fn build(&self, relation: &NewRelation<'_>, timeout: Duration) -> Result<Option<u64>, BuildError> {
        self.writers
            .run(timeout, async |WarehouseSession { connection, handle }, _| {
                replace(connection, *handle, relation).await
            })
            .await
    }

    async fn settle(&self) {
        self.writers.settle().await;
    }
}

pub(super) async fn make_schemas(connection: &mut PgConnection, schemas: &[&str]) -> Result<(), NotReady> {
    for schema in schemas {
        let rights = sqlx::query(RIGHTS).persistent(false).bind(*schema).fetch_one(&mut *connection).await;
        let rights = rights.map_err(|error| FAILED.because(&error))?;
        let flag = |name: &str| rights.try_get::<bool, _>(name).map_err(|error| FAILED.because(&error));
        if !flag("may")? {
            return Err(CantBuild::NotAllowed { schema: (*schema).to_owned() }.into());
        }
        if !flag("is_there")? {
            run(connection, format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema))).await?;
        }
    }
    Ok(())
}

async fn replace(
    connection: &mut PgConnection,
    process: i32,
    new: &NewRelation<'_>,
) -> Result<Option<u64>, BuildError> {
    let relation = [quoted(new.schema), quoted(new.name)].join(".");
    run(connection, "BEGIN".to_owned()).await?;
    // This is also checked before the build, so that no caller waits for a build that will be refused.
    existing(connection, new).await?;
    let mut rows = None;
    // The name is unused: no other process has the id of this server process, and the earlier builds of this process
    // have been committed or rolled back.
    let beside = format!("terrane_new_{process}");
    let beside_whole = [quoted(new.schema), quoted(&beside)].join(".");
    if !new.is_view {
        rows = Some(run(connection, format!("CREATE TABLE {beside_whole} AS\n{}", new.query)).await?);
        run(connection, format!("ANALYZE {beside_whole}")).await?;
    }
    let old = existing(connection, new).await?;
    let mut readers = Vec::new();
    if let Some((oid, kind)) = old {
        readers = readers_of(connection, oid, new).await?;
        for Reader { relation, .. } in &readers {
            run(connection, format!("DROP VIEW {relation}")).await?;
        }
        run(connection, format!("DROP {kind} {relation}")).await?;
    }
    let kind = if new.is_view {
        run(connection, format!("CREATE VIEW {relation} AS\n{}", new.query)).await?;
        "VIEW"
    } else {
        run(connection, format!("ALTER TABLE {beside_whole} RENAME TO {}", quoted(new.name))).await?;
        "TABLE"
    };
    run(connection, format!("COMMENT ON {kind} {relation} IS {}", literal(&new.marker.to_string()))).await?;
    for reader in readers.iter().rev() {
        make_again(connection, reader).await?;
    }
    run(connection, "COMMIT".to_owned()).await?;
    Ok(rows)
}

/// Returns the id and kind of the existing relation with this name. Fails if the relation may not be replaced.
async fn existing(
    connection: &mut PgConnection,
    new: &NewRelation<'_>,
) -> Result<Option<(i64, &'static str)>, BuildError> {
    let found = sqlx::query(EXISTING).persistent(false).bind(new.schema).bind(new.name);
    let found = found.fetch_optional(connection).await.map_err(|error| FAILED.because(&error))?;
    let Some(row) = found else { return Ok(None) };
    let kind = match text(&row, "kind")?.as_deref() {
        Some("r") => "TABLE",
        Some("v") => "VIEW",
        _ => return Err(BuildError::Foreign { relation: new.to_string() }),
    };
    new.may_replace(text(&row, "comment")?.as_deref())?;
    let oid = row.try_get("oid").map_err(|error| FAILED.because(&error))?;
    Ok(Some((oid, kind)))
}

/// A view that this project built over the exchanged relation.
struct Reader {
    relation: String,
    text: String,
    comment: String,
}

/// Returns the views that depend on a relation, the most distant first.
async fn readers_of(connection: &mut PgConnection, oid: i64, new: &NewRelation<'_>) -> Result<Vec<Reader>, BuildError> {
    let rows = sqlx::query(READERS).persistent(false).bind(oid).fetch_all(connection).await;
    let mut readers = Vec::new();
    for row in &rows.map_err(|error| FAILED.because(&error))? {
        let part = |column| text(row, column).map(Option::unwrap_or_default);
        let (schema, name, comment) = (part("schema_name")?, part("name")?, part("comment")?);
        let is_ours = Marker::parse(&comment).is_some_and(|marker| marker.project == new.marker.project);
        if !is_ours || part("kind")? != "v" {
            return Err(BuildError::Needed { relation: new.to_string(), by: format!("{schema}.{name}") });
        }
        readers.push(Reader { relation: [quoted(&schema), quoted(&name)].join("."), text: part("text")?, comment });
    }
    Ok(readers)
}

/// Recreates a view. If the view no longer fits its inputs, it is omitted, and its model is inlined until it is
/// rebuilt.
async fn make_again(connection: &mut PgConnection, reader: &Reader) -> Result<(), BuildError> {
    let Reader { relation, text, comment } = reader;
    run(connection, "SAVEPOINT reader".to_owned()).await?;
    let made = run(connection, format!("CREATE VIEW {relation} AS\n{text}")).await;
    match made {
        Ok(_) => run(connection, format!("COMMENT ON VIEW {relation} IS {}", literal(comment))).await.map(drop)?,
        Err(error) => {
            tracing::warn!(event = "built_view_dropped", relation = %relation, error_message = %error);
            run(connection, "ROLLBACK TO SAVEPOINT reader".to_owned()).await?;
        }
    }
    Ok(run(connection, "RELEASE SAVEPOINT reader".to_owned()).await.map(drop)?)
}

pub(super) async fn run(connection: &mut PgConnection, text: String) -> Result<u64, WarehouseError> {
    let done = connection.execute(sqlx::raw_sql(AssertSqlSafe(text))).await;
    done.map(|done| done.rows_affected()).map_err(|error| FAILED.because(&error))
}

fn text(row: &PgRow, column: &str) -> Result<Option<String>, WarehouseError> {
    row.try_get(column).map_err(|error| FAILED.because(&error))
}
