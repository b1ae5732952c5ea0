//! Pre-aggregations: builds, published generations and their tables.
//!
//! In: builds and generations. Out: the stored builds and generations. Each change of a generation is one transaction
//! that checks the builder's lease and increments the version of the target.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use terrane_app::ports::audit::AuditEntry;
use terrane_app::ports::leases::Lease;
use terrane_app::ports::preaggregations::{
    BuildEnding, BuildOrigin, BuildState, ComputedQueries, PreaggregationState, Publication, PublishedTable,
    QueryShape, RollupBuild, RollupName,
};
use terrane_app::ports::store::StoreError;
use terrane_compiler::rollup::BucketRange;

use crate::audit::append_in;
use crate::database::{Row, Transaction};
use crate::leases::is_newest;
use crate::row::{micros, signed, time, unsigned};
use crate::statement::{Bound, INSERTED_ROWS, Statement};
use crate::store::StateStore;

const BUILD_COLUMNS: [&str; 12] = [
    "id",
    "target",
    "cube",
    "name",
    "state",
    "origin",
    "partitions",
    "requested_by",
    "created_at",
    "due_at",
    "attempts",
    "tables_done",
];
const TABLE_COLUMNS: [&str; 10] =
    ["name", "target", "cube", "rollup", "range_start", "range_end", "stored_rows", "bytes", "built_at", "mark"];
/// The largest number of recorded queries that are read. The costliest ones come first.
const MAX_COMPUTED: i64 = 5_000;
/// The largest number of builds that one transaction deletes.
const PRUNED_AT_ONCE: i64 = 1_000;

#[async_trait]
impl PreaggregationState for StateStore {
    async fn version(&self, target: &str) -> Result<u64, StoreError> {
        let row = self.database.optional(version_of(target)).await?;
        row.map_or(Ok(0), |row| unsigned(&row, "version"))
    }

    async fn publications(&self, target: &str) -> Result<(u64, Vec<Publication>), StoreError> {
        let mut read = self.database.read().await?;
        let version = read.optional(version_of(target)).await?.map_or(Ok(0), |row| unsigned(&row, "version"))?;
        let tables = Statement::new(
            "SELECT * FROM preagg_tables WHERE target = $1 AND retired_at IS NULL ORDER BY range_start, name",
        );
        let mut of_rollups: HashMap<RollupName, Vec<PublishedTable>> = HashMap::new();
        for row in &read.all(tables.bind(target)).await? {
            let rollup = RollupName { cube: row.text("cube")?.into(), name: row.text("rollup")?.into() };
            of_rollups.entry(rollup).or_default().push(table(row)?);
        }
        let rollups = Statement::new("SELECT * FROM preagg_rollups WHERE target = $1 ORDER BY cube, name");
        let mut publications = Vec::new();
        for row in &read.all(rollups.bind(target)).await? {
            let rollup = name_of(row)?;
            let tables = of_rollups.remove(&rollup).unwrap_or_default();
            publications.push(publication(row, rollup, tables)?);
        }
        read.rollback().await?;
        Ok((version, publications))
    }

    async fn builds(&self, target: &str, limit: u32) -> Result<Vec<RollupBuild>, StoreError> {
        let newest =
            Statement::new("SELECT * FROM preagg_builds WHERE target = $1 ORDER BY created_at DESC, id LIMIT $2");
        self.database.all(newest.bind(target).bind(i64::from(limit))).await?.iter().map(build).collect()
    }

    async fn build(&self, id: &str) -> Result<Option<RollupBuild>, StoreError> {
        let row = self.database.optional(build_of(id)).await?;
        row.as_ref().map(build).transpose()
    }

    async fn enqueue(&self, new: &RollupBuild, entry: Option<AuditEntry>) -> Result<RollupBuild, StoreError> {
        let mut change = self.database.change().await?;
        let pending = Statement::new(
            "SELECT * FROM preagg_builds WHERE target = $1 AND cube = $2 AND name = $3 AND state = 'pending'",
        );
        let pending = pending.bind(&*new.target).bind(&*new.rollup.cube).bind(&*new.rollup.name);
        let enqueued = match change.optional(pending).await? {
            Some(row) => {
                let merged = merged(build(&row)?, new);
                let update = Statement::new(
                    "UPDATE preagg_builds SET origin = $1, partitions = $2, requested_by = $3, due_at = $4 WHERE id = $5",
                );
                let update = update.bind(merged.origin.as_str()).bind(&*joined(&merged.partitions));
                let update = update.bind(merged.requested_by.as_deref()).bind(micros(merged.due_at));
                change.execute(update.bind(&*merged.id)).await?;
                merged
            }
            None => {
                change.execute(Statement::insert("preagg_builds", &BUILD_COLUMNS, vec![build_values(new)])).await?;
                new.clone()
            }
        };
        if let Some(entry) = entry {
            append_in(&mut change, vec![entry]).await?;
        }
        change.commit().await?;
        Ok(enqueued)
    }

    async fn next_due(&self, target: &str) -> Result<Option<Timestamp>, StoreError> {
        let next =
            Statement::new("SELECT min(due_at) AS due_at FROM preagg_builds WHERE state = 'pending' AND target = $1");
        let row = self.database.optional(next.bind(target)).await?;
        let due = row.map_or(Ok(None), |row| row.maybe_integer("due_at"))?;
        due.map(time).transpose()
    }

    async fn claim(&self, lease: &Lease, target: &str, now: Timestamp) -> Result<Option<RollupBuild>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        let oldest = Statement::new(
            "UPDATE preagg_builds SET state = 'running', started_at = $2, attempts = attempts + 1, tables_done = 0, \
             tables_total = NULL WHERE id = (SELECT id FROM preagg_builds WHERE state = 'pending' AND target = $1 \
             AND due_at <= $2 ORDER BY due_at, id LIMIT 1) RETURNING *",
        );
        let row = change.optional(oldest.bind(target).bind(micros(now))).await?;
        let claimed = row.as_ref().map(build).transpose()?;
        change.commit().await?;
        Ok(claimed)
    }

    async fn requeue(&self, lease: &Lease, target: &str, now: Timestamp) -> Result<u64, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(0);
        }
        // An interrupted build is not repeated if another build of its rollup already waits.
        let superseded = Statement::new(
            "UPDATE preagg_builds SET state = 'failed', ended_at = $2, error_code = 'INTERRUPTED', \
             error = 'the process that ran the build ended' WHERE target = $1 AND state = 'running' AND EXISTS \
             (SELECT 1 FROM preagg_builds AS other WHERE other.target = preagg_builds.target \
             AND other.cube = preagg_builds.cube AND other.name = preagg_builds.name AND other.state = 'pending')",
        );
        change.execute(superseded.bind(target).bind(micros(now))).await?;
        let requeue = Statement::new(
            "UPDATE preagg_builds SET state = 'pending', due_at = $2 WHERE target = $1 AND state = 'running'",
        );
        let requeued = change.execute(requeue.bind(target).bind(micros(now))).await?;
        change.commit().await?;
        Ok(requeued)
    }

    async fn advance(&self, lease: &Lease, id: &str, done: u32, total: u32) -> Result<Option<BuildState>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        let update = Statement::new(
            "UPDATE preagg_builds SET tables_done = $1, tables_total = $2 WHERE id = $3 AND state = 'running'",
        );
        change.execute(update.bind(i64::from(done)).bind(i64::from(total)).bind(id)).await?;
        let row = change.optional(build_of(id)).await?;
        change.commit().await?;
        row.map(|row| state(&row)).transpose()
    }

    async fn publish(
        &self,
        lease: &Lease,
        build: &RollupBuild,
        publication: &Publication,
        entry: AuditEntry,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? || !is_running(&mut change, &build.id).await? {
            return Ok(false);
        }
        let at = micros(publication.published_at);
        retire_others(&mut change, build, publication).await?;
        insert_tables(&mut change, build, &publication.tables).await?;
        let version = next_version(&mut change, &build.target).await?;
        let upsert = Statement::new(
            "INSERT INTO preagg_rollups (target, cube, name, fingerprint, generation, extent_start, extent_end, \
             refresh_digest, checked_at, published_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (target, cube, name) DO UPDATE SET fingerprint = excluded.fingerprint, \
             generation = excluded.generation, extent_start = excluded.extent_start, \
             extent_end = excluded.extent_end, refresh_digest = excluded.refresh_digest, \
             checked_at = excluded.checked_at, published_at = excluded.published_at",
        );
        let upsert = upsert.bind(&*build.target).bind(&*build.rollup.cube).bind(&*build.rollup.name);
        let upsert = upsert.bind(&*publication.fingerprint).bind(version);
        let upsert = upsert.bind(publication.extent.map(|[start, _]| start));
        let upsert = upsert.bind(publication.extent.map(|[_, end]| end));
        let upsert = upsert.bind(publication.refresh_digest.as_deref()).bind(micros(publication.checked_at)).bind(at);
        change.execute(upsert).await?;
        let rows: u64 = publication.tables.iter().map(|table| table.rows).sum();
        let done = Statement::new(
            "UPDATE preagg_builds SET state = 'success', ended_at = $1, stored_rows = $2, generation = $3, \
             tables_done = coalesce(tables_total, tables_done), error_code = NULL, error = NULL WHERE id = $4",
        );
        change.execute(done.bind(at).bind(signed(rows)).bind(version).bind(&*build.id)).await?;
        append_in(&mut change, vec![entry]).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn end(
        &self,
        lease: &Lease,
        build: &RollupBuild,
        ending: &BuildEnding,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? || !is_running(&mut change, &build.id).await? {
            return Ok(false);
        }
        let ended = |state: BuildState, code: Option<&str>, message: Option<&str>| {
            let update = Statement::new(
                "UPDATE preagg_builds SET state = $1, ended_at = $2, error_code = $3, error = $4 WHERE id = $5",
            );
            update.bind(state.as_str()).bind(micros(now)).bind(code).bind(message).bind(&*build.id)
        };
        match ending {
            BuildEnding::Unchanged => {
                change.execute(ended(BuildState::Success, None, None)).await?;
                let checked = Statement::new(
                    "UPDATE preagg_rollups SET checked_at = $1 WHERE target = $2 AND cube = $3 AND name = $4",
                );
                let checked = checked.bind(micros(now)).bind(&*build.target);
                change.execute(checked.bind(&*build.rollup.cube).bind(&*build.rollup.name)).await?;
            }
            BuildEnding::Retry { due_at, code, message } => {
                // A build that was requested in the meantime replaces the retry.
                let other = Statement::new(
                    "SELECT id FROM preagg_builds WHERE target = $1 AND cube = $2 AND name = $3 AND state = 'pending'",
                );
                let other = other.bind(&*build.target).bind(&*build.rollup.cube).bind(&*build.rollup.name);
                if change.optional(other).await?.is_some() {
                    change.execute(ended(BuildState::Failed, Some(code), Some(message))).await?;
                } else {
                    let retry = Statement::new(
                        "UPDATE preagg_builds SET state = 'pending', due_at = $1, error_code = $2, error = $3 WHERE id = $4",
                    );
                    let retry = retry.bind(micros(*due_at)).bind(&**code).bind(&**message).bind(&*build.id);
                    change.execute(retry).await?;
                }
            }
            BuildEnding::Failed { code, message } => {
                change.execute(ended(BuildState::Failed, Some(code), Some(message))).await?;
            }
            BuildEnding::Cancelled => {
                change.execute(ended(BuildState::Cancelled, None, None)).await?;
            }
        }
        change.commit().await?;
        Ok(true)
    }

    async fn cancel(&self, id: &str, now: Timestamp, entry: AuditEntry) -> Result<Option<RollupBuild>, StoreError> {
        let mut change = self.database.change().await?;
        let cancel = Statement::new(
            "UPDATE preagg_builds SET state = 'cancelled', ended_at = $1 WHERE id = $2 \
             AND state IN ('pending', 'running')",
        );
        let cancelled = change.execute(cancel.bind(micros(now)).bind(id)).await?;
        let row = change.optional(build_of(id)).await?;
        if cancelled > 0 {
            append_in(&mut change, vec![entry]).await?;
        }
        change.commit().await?;
        row.as_ref().map(build).transpose()
    }

    async fn withdraw(
        &self,
        lease: &Lease,
        target: &str,
        rollups: &[RollupName],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(false);
        }
        for RollupName { cube, name } in rollups {
            let retire = Statement::new(
                "UPDATE preagg_tables SET retired_at = $1 WHERE target = $2 AND cube = $3 AND rollup = $4 \
                 AND retired_at IS NULL",
            );
            change.execute(retire.bind(micros(now)).bind(target).bind(&**cube).bind(&**name)).await?;
            let delete = Statement::new("DELETE FROM preagg_rollups WHERE target = $1 AND cube = $2 AND name = $3");
            change.execute(delete.bind(target).bind(&**cube).bind(&**name)).await?;
        }
        next_version(&mut change, target).await?;
        change.commit().await?;
        Ok(true)
    }

    async fn tables(&self, target: &str) -> Result<Vec<Arc<str>>, StoreError> {
        let all = Statement::new("SELECT name FROM preagg_tables WHERE target = $1 ORDER BY name").bind(target);
        names(&self.database.all(all).await?)
    }

    async fn retired(&self, target: &str, before: Timestamp) -> Result<Vec<Arc<str>>, StoreError> {
        let retired =
            Statement::new("SELECT name FROM preagg_tables WHERE target = $1 AND retired_at < $2 ORDER BY name");
        names(&self.database.all(retired.bind(target).bind(micros(before))).await?)
    }

    async fn forget(&self, lease: &Lease, tables: &[Arc<str>]) -> Result<bool, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(false);
        }
        for name in tables {
            let delete = Statement::new("DELETE FROM preagg_tables WHERE name = $1 AND retired_at IS NOT NULL");
            change.execute(delete.bind(&**name)).await?;
        }
        change.commit().await?;
        Ok(true)
    }

    async fn record_queries(&self, target: &str, queries: &[ComputedQueries]) -> Result<(), StoreError> {
        let mut change = self.database.change().await?;
        for computed in queries {
            let QueryShape { cube, measures, dimensions, segments, time } = &computed.shape;
            let (time_dimension, granularity) = time.as_ref().map(|(name, step)| (&**name, step.as_str())).unzip();
            let lists = [measures, dimensions, segments].map(|names| names.join(","));
            let text = format!("{target}|{cube}|{}|{time_dimension:?}|{granularity:?}", lists.join("|"));
            let digest = hex::encode(Sha256::digest(text));
            let upsert = Statement::new(
                "INSERT INTO preagg_queries (digest, cube, measures, dimensions, segments, time_dimension, granularity, \
                 queries, warehouse_us, last_at, target) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (digest) \
                 DO UPDATE SET queries = preagg_queries.queries + excluded.queries, \
                 warehouse_us = preagg_queries.warehouse_us + excluded.warehouse_us, last_at = excluded.last_at",
            );
            let upsert = upsert.bind(&*digest).bind(&**cube);
            let [measures, dimensions, segments] = &lists;
            let upsert = upsert.bind(measures.as_str()).bind(dimensions.as_str()).bind(segments.as_str());
            let upsert = upsert.bind(time_dimension).bind(granularity).bind(signed(computed.queries));
            let taken = i64::try_from(computed.warehouse.as_micros()).unwrap_or(i64::MAX);
            change.execute(upsert.bind(taken).bind(micros(computed.last_at)).bind(target)).await?;
        }
        change.commit().await
    }

    async fn computed_queries(&self, target: &str) -> Result<Vec<ComputedQueries>, StoreError> {
        let costliest = Statement::new(
            "SELECT * FROM preagg_queries WHERE target = $1 ORDER BY warehouse_us DESC, digest LIMIT $2",
        );
        self.database.all(costliest.bind(target).bind(MAX_COMPUTED)).await?.iter().map(computed).collect()
    }

    async fn prune_builds(&self, lease: &Lease, target: &str, before: Timestamp) -> Result<u64, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(0);
        }
        let delete = Statement::new(
            "DELETE FROM preagg_builds WHERE id IN (SELECT id FROM preagg_builds WHERE target = $1 \
             AND ended_at < $2 AND state NOT IN ('pending', 'running') ORDER BY id LIMIT $3)",
        );
        let deleted = change.execute(delete.bind(target).bind(micros(before)).bind(PRUNED_AT_ONCE)).await?;
        let queries = Statement::new("DELETE FROM preagg_queries WHERE target = $1 AND last_at < $2");
        change.execute(queries.bind(target).bind(micros(before))).await?;
        change.commit().await?;
        Ok(deleted)
    }
}

/// Returns a pending build that includes the partitions of a new one. An empty list of partitions means all partitions.
fn merged(pending: RollupBuild, new: &RollupBuild) -> RollupBuild {
    let mut partitions = Vec::new();
    if !pending.partitions.is_empty() && !new.partitions.is_empty() {
        partitions = [pending.partitions.clone(), new.partitions.clone()].concat();
        partitions.sort_unstable();
        partitions.dedup();
    }
    let is_request = [pending.origin, new.origin].contains(&BuildOrigin::Request);
    RollupBuild {
        origin: if is_request { BuildOrigin::Request } else { BuildOrigin::Schedule },
        partitions,
        requested_by: new.requested_by.clone().or_else(|| pending.requested_by.clone()),
        due_at: pending.due_at.min(new.due_at),
        ..pending
    }
}

/// Retires the tables of a rollup that its new generation does not use.
async fn retire_others(
    change: &mut Transaction,
    build: &RollupBuild,
    publication: &Publication,
) -> Result<(), StoreError> {
    let current = Statement::new(
        "SELECT name FROM preagg_tables WHERE target = $1 AND cube = $2 AND rollup = $3 AND retired_at IS NULL",
    );
    let current = current.bind(&*build.target).bind(&*build.rollup.cube).bind(&*build.rollup.name);
    for name in names(&change.all(current).await?)? {
        if publication.tables.iter().any(|table| table.name == name) {
            continue;
        }
        let retire = Statement::new("UPDATE preagg_tables SET retired_at = $1 WHERE name = $2");
        change.execute(retire.bind(micros(publication.published_at)).bind(&*name)).await?;
    }
    Ok(())
}

/// Inserts the tables of a generation that are not stored yet.
async fn insert_tables(
    change: &mut Transaction,
    build: &RollupBuild,
    tables: &[PublishedTable],
) -> Result<(), StoreError> {
    let known = Statement::new("SELECT name FROM preagg_tables WHERE target = $1 AND cube = $2 AND rollup = $3");
    let known = known.bind(&*build.target).bind(&*build.rollup.cube).bind(&*build.rollup.name);
    let known = names(&change.all(known).await?)?;
    let new: Vec<Vec<Bound>> =
        tables.iter().filter(|table| !known.contains(&table.name)).map(|table| table_values(build, table)).collect();
    for rows in new.chunks(INSERTED_ROWS) {
        change.execute(Statement::insert("preagg_tables", &TABLE_COLUMNS, rows.to_vec())).await?;
    }
    Ok(())
}

async fn next_version(change: &mut Transaction, target: &str) -> Result<i64, StoreError> {
    let next = Statement::new(
        "INSERT INTO preagg_versions (target, version) VALUES ($1, 1) ON CONFLICT (target) \
         DO UPDATE SET version = preagg_versions.version + 1 RETURNING version",
    );
    change.optional(next.bind(target)).await?.map_or(Ok(0), |row| row.integer("version"))
}

async fn is_running(change: &mut Transaction, id: &str) -> Result<bool, StoreError> {
    let row = change.optional(build_of(id)).await?;
    Ok(row.map(|row| state(&row)).transpose()? == Some(BuildState::Running))
}

fn version_of(target: &str) -> Statement {
    Statement::new("SELECT version FROM preagg_versions WHERE target = $1").bind(target)
}

fn build_of(id: &str) -> Statement {
    Statement::new("SELECT * FROM preagg_builds WHERE id = $1").bind(id)
}

fn names(rows: &[Row]) -> Result<Vec<Arc<str>>, StoreError> {
    rows.iter().map(|row| Ok(row.text("name")?.into())).collect()
}

fn name_of(row: &Row) -> Result<RollupName, StoreError> {
    Ok(RollupName { cube: row.text("cube")?.into(), name: row.text("name")?.into() })
}

fn invalid(column: &str) -> StoreError {
    StoreError { message: format!("a row has an invalid `{column}`") }
}

fn state(row: &Row) -> Result<BuildState, StoreError> {
    BuildState::named(&row.text("state")?).ok_or_else(|| invalid("state"))
}

fn joined(partitions: &[i64]) -> String {
    partitions.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

fn build_values(build: &RollupBuild) -> Vec<Bound> {
    vec![
        (&*build.id).into(),
        (&*build.target).into(),
        (&*build.rollup.cube).into(),
        (&*build.rollup.name).into(),
        build.state.as_str().into(),
        build.origin.as_str().into(),
        joined(&build.partitions).as_str().into(),
        build.requested_by.as_deref().into(),
        micros(build.created_at).into(),
        micros(build.due_at).into(),
        i64::from(build.attempts).into(),
        i64::from(build.tables_done).into(),
    ]
}

fn build(row: &Row) -> Result<RollupBuild, StoreError> {
    let small = |column: &str| u32::try_from(row.integer(column)?).map_err(|_| invalid(column));
    let maybe_time = |column: &str| row.maybe_integer(column)?.map(time).transpose();
    let maybe_text = |column: &str| Ok::<_, StoreError>(row.maybe_text(column)?.map(Arc::from));
    let partitions = row.text("partitions")?;
    let partitions = partitions.split(',').filter(|moment| !moment.is_empty()).map(str::parse);
    Ok(RollupBuild {
        id: row.text("id")?.into(),
        target: row.text("target")?.into(),
        rollup: name_of(row)?,
        state: state(row)?,
        origin: BuildOrigin::named(&row.text("origin")?).ok_or_else(|| invalid("origin"))?,
        partitions: partitions.collect::<Result<_, _>>().map_err(|_| invalid("partitions"))?,
        requested_by: maybe_text("requested_by")?,
        created_at: time(row.integer("created_at")?)?,
        due_at: time(row.integer("due_at")?)?,
        started_at: maybe_time("started_at")?,
        ended_at: maybe_time("ended_at")?,
        attempts: small("attempts")?,
        tables_done: small("tables_done")?,
        tables_total: row.maybe_integer("tables_total")?.and_then(|total| u32::try_from(total).ok()),
        rows: row.maybe_integer("stored_rows")?.map(i64::unsigned_abs),
        generation: row.maybe_integer("generation")?.map(i64::unsigned_abs),
        error_code: maybe_text("error_code")?,
        error: maybe_text("error")?,
    })
}

fn computed(row: &Row) -> Result<ComputedQueries, StoreError> {
    let names = |column: &str| {
        let text = row.text(column)?;
        Ok::<Vec<Arc<str>>, StoreError>(text.split(',').filter(|name| !name.is_empty()).map(Arc::from).collect())
    };
    let granularity = row.maybe_text("granularity")?.map(|word| word.parse()).transpose();
    let granularity = granularity.map_err(|_| invalid("granularity"))?;
    let shape = QueryShape {
        cube: row.text("cube")?.into(),
        measures: names("measures")?,
        dimensions: names("dimensions")?,
        segments: names("segments")?,
        time: row.maybe_text("time_dimension")?.map(Arc::from).zip(granularity),
    };
    Ok(ComputedQueries {
        shape,
        queries: unsigned(row, "queries")?,
        warehouse: Duration::from_micros(unsigned(row, "warehouse_us")?),
        last_at: time(row.integer("last_at")?)?,
    })
}

fn publication(row: &Row, rollup: RollupName, tables: Vec<PublishedTable>) -> Result<Publication, StoreError> {
    let extent = row.maybe_integer("extent_start")?.zip(row.maybe_integer("extent_end")?);
    Ok(Publication {
        rollup,
        fingerprint: row.text("fingerprint")?.into(),
        generation: unsigned(row, "generation")?,
        extent: extent.map(|(start, end)| [start, end]),
        refresh_digest: row.maybe_text("refresh_digest")?.map(Into::into),
        checked_at: time(row.integer("checked_at")?)?,
        published_at: time(row.integer("published_at")?)?,
        tables,
    })
}

fn table_values(build: &RollupBuild, table: &PublishedTable) -> Vec<Bound> {
    vec![
        (&*table.name).into(),
        (&*build.target).into(),
        (&*build.rollup.cube).into(),
        (&*build.rollup.name).into(),
        table.range.map(|range| range.start).into(),
        table.range.map(|range| range.end).into(),
        signed(table.rows).into(),
        table.bytes.map(signed).into(),
        micros(table.built_at).into(),
        (&*table.mark).into(),
    ]
}

fn table(row: &Row) -> Result<PublishedTable, StoreError> {
    let range = row.maybe_integer("range_start")?.zip(row.maybe_integer("range_end")?);
    Ok(PublishedTable {
        name: row.text("name")?.into(),
        range: range.map(|(start, end)| BucketRange { start, end }),
        rows: unsigned(row, "stored_rows")?,
        bytes: row.maybe_integer("bytes")?.map(i64::unsigned_abs),
        built_at: time(row.integer("built_at")?)?,
        mark: row.text("mark")?.into(),
    })
}
