//! The history of executed queries.
//!
//! In: records, and filters. Out: records, newest first, and totals of statements. A record that is appended twice is
//! stored once. Not here: the rules about who may read which records (`app::cost`).

use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use terrane_app::ports::executed_queries::{
    ExecutedQueries, ExecutedQuery, FilterTotals, HistoryFilter, PlanSize, PredictedTime, StatementTotals,
};
use terrane_app::ports::leases::Lease;
use terrane_app::ports::store::StoreError;

use crate::database::Row;
use crate::leases::is_newest;
use crate::row::{maybe_text, micros, signed, text, time, unsigned};
use crate::statement::{Bound, INSERTED_ROWS, Statement};
use crate::store::StateStore;

const COLUMNS: [&str; 27] = [
    "id",
    "queries",
    "at",
    "query_hash",
    "cube",
    "user_id",
    "tenant",
    "kind",
    "surface",
    "duration_us",
    "warehouse_us",
    "returned_rows",
    "scan_bytes",
    "cost",
    "is_cached",
    "pre_aggregation",
    "filters",
    "members",
    "predicted_us",
    "predicted_high_us",
    "table_bytes",
    "table_rows",
    "facts",
    "joins",
    "group_columns",
    "range_seconds",
    "row_bytes",
];
/// The largest number of rows that one transaction deletes.
const PRUNED_AT_ONCE: i64 = 5_000;

#[async_trait]
impl ExecutedQueries for StateStore {
    async fn append_executed(&self, queries: &[ExecutedQuery]) -> Result<(), StoreError> {
        if queries.is_empty() {
            return Ok(());
        }
        let mut change = self.database.begin().await?;
        for part in queries.chunks(INSERTED_ROWS) {
            let rows = part.iter().map(values).collect();
            change
                .execute(Statement::insert("executed_queries", &COLUMNS, rows).then(" ON CONFLICT (id) DO NOTHING"))
                .await?;
        }
        change.commit().await
    }

    async fn executed(&self, filter: &HistoryFilter) -> Result<Vec<ExecutedQuery>, StoreError> {
        let query = selection(filter, Statement::new("SELECT * FROM executed_queries WHERE 1 = 1"));
        let query = query.and(" ORDER BY at DESC, id DESC LIMIT ", i64::from(filter.limit));
        self.database.all(query).await?.iter().map(executed).collect()
    }

    async fn statement_totals(&self, since: Timestamp, limit: u32) -> Result<Vec<StatementTotals>, StoreError> {
        // In PostgreSQL, the sum of integers has a different type, so the sums are cast.
        let totals = Statement::new(
            "SELECT query_hash, min(cube) AS cube, CAST(sum(queries) AS BIGINT) AS queries, \
             CAST(sum(is_cached * queries) AS BIGINT) AS cached, \
             CAST(sum(returned_rows) AS BIGINT) AS total_rows, CAST(sum(warehouse_us) AS BIGINT) AS total_us, \
             max(warehouse_us) AS longest_us, CAST(sum(cost) AS BIGINT) AS total_cost, max(at) AS last_at \
             FROM executed_queries WHERE at >= $1 GROUP BY query_hash ORDER BY total_us DESC, query_hash LIMIT $2",
        );
        let rows = self.database.all(totals.bind(micros(since)).bind(i64::from(limit))).await?;
        rows.iter().map(statement_totals).collect()
    }

    async fn filter_totals(&self, filter: &HistoryFilter) -> Result<Vec<FilterTotals>, StoreError> {
        let totals = Statement::new(
            "SELECT cube, filters, CAST(sum(queries) AS BIGINT) AS queries, \
             CAST(sum(warehouse_us) AS BIGINT) AS total_us, CAST(sum(cost) AS BIGINT) AS total_cost \
             FROM executed_queries WHERE filters IS NOT NULL AND is_cached = 0 AND pre_aggregation IS NULL",
        );
        let totals = selection(filter, totals).then(" GROUP BY cube, filters ORDER BY total_us DESC, cube, filters");
        let rows = self.database.all(totals.and(" LIMIT ", i64::from(filter.limit))).await?;
        rows.iter().map(filter_totals).collect()
    }

    async fn prune_executed(&self, before: Timestamp, lease: &Lease) -> Result<Option<u64>, StoreError> {
        let mut change = self.database.change().await?;
        if !is_newest(&mut change, lease).await? {
            return Ok(None);
        }
        let delete = Statement::new(
            "DELETE FROM executed_queries WHERE id IN (SELECT id FROM executed_queries WHERE at < $1 \
             ORDER BY at LIMIT $2)",
        );
        let deleted = change.execute(delete.bind(micros(before)).bind(PRUNED_AT_ONCE)).await?;
        change.commit().await?;
        Ok(Some(deleted))
    }
}

/// Adds the conditions of a filter.
fn selection(filter: &HistoryFilter, mut query: Statement) -> Statement {
    if let Some(owner) = &filter.owner {
        query = query.and(" AND user_id = ", &*owner.user_id);
        query = match &owner.tenant {
            Some(tenant) => query.and(" AND tenant = ", &**tenant),
            None => query.then(" AND tenant IS NULL"),
        };
    }
    let texts = [
        (" AND user_id = ", &filter.user_id),
        (" AND query_hash = ", &filter.query_hash),
        (" AND cube = ", &filter.cube),
    ];
    for (condition, value) in texts {
        if let Some(value) = value {
            query = query.and(condition, &**value);
        }
    }
    if let Some(tenant) = &filter.tenant {
        query = match tenant {
            Some(tenant) => query.and(" AND tenant = ", &**tenant),
            None => query.then(" AND tenant IS NULL"),
        };
    }
    if filter.is_computed {
        query = query.then(" AND is_cached = 0");
    }
    if filter.has_members {
        query = query.then(" AND members IS NOT NULL");
    }
    if let Some(since) = filter.since {
        query = query.and(" AND at >= ", micros(since));
    }
    if let Some(until) = filter.until {
        query = query.and(" AND at < ", micros(until));
    }
    if let Some(position) = &filter.before {
        let at = micros(position.at);
        query = query.and(" AND at <= ", at).and(" AND (at < ", at).and(" OR id < ", &*position.id).then(")");
    }
    query
}

/// Returns the values of a query, in the order of [`COLUMNS`].
fn values(query: &ExecutedQuery) -> Vec<Bound> {
    vec![
        (&*query.id).into(),
        signed(query.queries).into(),
        micros(query.at).into(),
        (&*query.query_hash).into(),
        (&*query.cube).into(),
        (&*query.user_id).into(),
        query.tenant.as_deref().into(),
        (&*query.kind).into(),
        (&*query.surface).into(),
        microseconds(query.duration).into(),
        microseconds(query.warehouse).into(),
        signed(query.rows).into(),
        query.scan_bytes.map(signed).into(),
        query.cost_micros.map(signed).into(),
        i64::from(query.is_cached).into(),
        query.pre_aggregation.as_deref().into(),
        query.filters.as_deref().into(),
        query.members.as_deref().into(),
        query.predicted.map(|predicted| microseconds(predicted.median)).into(),
        query.predicted.map(|predicted| microseconds(predicted.high)).into(),
        query.size.and_then(|size| size.table_bytes).map(signed).into(),
        query.size.and_then(|size| size.table_rows).map(signed).into(),
        query.size.map(|size| i64::from(size.facts)).into(),
        query.size.map(|size| i64::from(size.joins)).into(),
        query.size.map(|size| i64::from(size.groups)).into(),
        query.size.and_then(|size| size.range_seconds).map(signed).into(),
        query.size.map(|size| signed(size.row_bytes)).into(),
    ]
}

fn executed(row: &Row) -> Result<ExecutedQuery, StoreError> {
    let duration = |column| row.maybe_integer(column).map(|us| us.map(|us| Duration::from_micros(us.unsigned_abs())));
    let predicted = duration("predicted_us")?.zip(duration("predicted_high_us")?);
    Ok(ExecutedQuery {
        id: text(row, "id")?,
        queries: unsigned(row, "queries")?,
        at: time(row.integer("at")?)?,
        query_hash: text(row, "query_hash")?,
        cube: text(row, "cube")?,
        user_id: text(row, "user_id")?,
        tenant: maybe_text(row, "tenant")?,
        kind: text(row, "kind")?,
        surface: text(row, "surface")?,
        duration: Duration::from_micros(unsigned(row, "duration_us")?),
        warehouse: Duration::from_micros(unsigned(row, "warehouse_us")?),
        rows: unsigned(row, "returned_rows")?,
        scan_bytes: row.maybe_integer("scan_bytes")?.map(i64::unsigned_abs),
        cost_micros: row.maybe_integer("cost")?.map(i64::unsigned_abs),
        is_cached: row.integer("is_cached")? != 0,
        pre_aggregation: maybe_text(row, "pre_aggregation")?,
        filters: maybe_text(row, "filters")?,
        members: maybe_text(row, "members")?,
        predicted: predicted.map(|(median, high)| PredictedTime { median, high }),
        size: plan_size(row)?,
    })
}

/// Returns the size of a statement; `None` for cached answers, and for records of earlier versions.
fn plan_size(row: &Row) -> Result<Option<PlanSize>, StoreError> {
    let number = |column| row.maybe_integer(column).map(|number| number.map(i64::unsigned_abs));
    let small = |column| number(column).map(|number| number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)));
    let Some(facts) = small("facts")? else { return Ok(None) };
    Ok(Some(PlanSize {
        table_bytes: number("table_bytes")?,
        table_rows: number("table_rows")?,
        facts,
        joins: small("joins")?.unwrap_or(0),
        groups: small("group_columns")?.unwrap_or(0),
        range_seconds: number("range_seconds")?,
        row_bytes: number("row_bytes")?.unwrap_or(0),
    }))
}

fn statement_totals(row: &Row) -> Result<StatementTotals, StoreError> {
    Ok(StatementTotals {
        query_hash: text(row, "query_hash")?,
        cube: text(row, "cube")?,
        queries: unsigned(row, "queries")?,
        cached: unsigned(row, "cached")?,
        rows: unsigned(row, "total_rows")?,
        warehouse: Duration::from_micros(unsigned(row, "total_us")?),
        longest: Duration::from_micros(unsigned(row, "longest_us")?),
        cost_micros: row.maybe_integer("total_cost")?.map(i64::unsigned_abs),
        last_at: time(row.integer("last_at")?)?,
    })
}

fn filter_totals(row: &Row) -> Result<FilterTotals, StoreError> {
    Ok(FilterTotals {
        cube: text(row, "cube")?,
        filters: text(row, "filters")?,
        queries: unsigned(row, "queries")?,
        warehouse: Duration::from_micros(unsigned(row, "total_us")?),
        cost_micros: row.maybe_integer("total_cost")?.map(i64::unsigned_abs),
    })
}

fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}
