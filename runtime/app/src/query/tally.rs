//! How a query went, told to the observer once, however it ends.
//!
//! In: what happens to a query. Out: one [`EndedQuery`] when the tally is dropped, and a [`Step`] for
//! each part. A query whose caller went away ends as abandoned. Not here: the log.

use std::sync::Arc;
use std::time::Duration;

use terrane_compiler::model::{CubeId, MetricId, Model, Snippet, SqlPart};
use terrane_compiler::query::SemanticQuery;

use super::RunError;
use crate::ports::clock::Clock;
use crate::ports::observer::{EndedQuery, Executed, Observer, Outcome, QueryKind, Step, UNKNOWN_CUBE, WarehouseShare};
use crate::ports::traces::TraceContext;
use crate::ports::warehouse::WarehouseErrorKind;

/// One query, from its arrival to its last row.
pub(super) struct Tally {
    pub(super) observer: Arc<dyn Observer>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) trace: Option<TraceContext>,
    pub(super) cube: Arc<str>,
    pub(super) warehouse: Arc<str>,
    pub(super) kind: QueryKind,
    /// As the clock's `elapsed` said then.
    pub(super) started: Duration,
    /// When the warehouse was asked first.
    pub(super) asked: Option<Duration>,
    /// Spent waiting for it, where that is less than the time since.
    pub(super) waited: Option<Duration>,
    pub(super) rows: u64,
    pub(super) outcome: Outcome,
}

impl Tally {
    /// The warehouse is asked now. The moment, for whoever wants to know how long it took.
    pub(super) fn ask(&mut self) -> Duration {
        let now = self.clock.elapsed();
        let _ = self.asked.get_or_insert(now);
        now
    }

    /// What became of the query, unless something is still to come.
    pub(super) fn end<T>(&mut self, outcome: &Result<T, RunError>) {
        self.outcome = match outcome {
            Ok(_) => Outcome::Success,
            Err(error) => Outcome::from(error),
        };
    }

    pub(super) fn compiled(&self, duration: Duration, outcome: Outcome) {
        self.observer.compiled(&Step { trace: self.trace, cube: &self.cube, duration, outcome });
    }

    /// A statement that begins now.
    pub(super) fn execution(&self, sql_hash: String, limit: Duration) -> Execution {
        Execution {
            observer: Arc::clone(&self.observer),
            clock: Arc::clone(&self.clock),
            trace: self.trace,
            cube: Arc::clone(&self.cube),
            warehouse: Arc::clone(&self.warehouse),
            sql_hash,
            started: self.clock.elapsed(),
            limit,
            rows: 0,
            outcome: None,
        }
    }
}

impl Drop for Tally {
    fn drop(&mut self) {
        let now = self.clock.elapsed();
        let share = self.asked.map(|asked| WarehouseShare {
            name: &self.warehouse,
            waited: self.waited.unwrap_or(now.saturating_sub(asked)),
            rows: self.rows,
        });
        self.observer.query_ended(&EndedQuery {
            cube: &self.cube,
            kind: self.kind,
            outcome: self.outcome,
            duration: now.saturating_sub(self.started),
            warehouse: share,
        });
    }
}

/// A statement that the warehouse works on. Dropped without an outcome, nobody waited for its end.
pub(super) struct Execution {
    observer: Arc<dyn Observer>,
    clock: Arc<dyn Clock>,
    trace: Option<TraceContext>,
    cube: Arc<str>,
    warehouse: Arc<str>,
    sql_hash: String,
    started: Duration,
    limit: Duration,
    pub(super) rows: u64,
    pub(super) outcome: Option<Outcome>,
}

impl Drop for Execution {
    fn drop(&mut self) {
        let duration = self.clock.elapsed().saturating_sub(self.started);
        let left = if duration >= self.limit { Outcome::Timeout } else { Outcome::Abandoned };
        let outcome = self.outcome.unwrap_or(left);
        let step = Step { trace: self.trace, cube: &self.cube, duration, outcome };
        let statement = Executed { warehouse: &self.warehouse, sql_hash: &self.sql_hash, rows: self.rows };
        self.observer.executed(&step, &statement);
    }
}

impl From<&RunError> for Outcome {
    fn from(error: &RunError) -> Self {
        match error {
            RunError::Query(_) | RunError::Denied(_) | RunError::PolicyUnavailable => Outcome::Refused,
            RunError::Timeout { .. } => Outcome::Timeout,
            RunError::Overloaded(_) => Outcome::Overloaded,
            RunError::Warehouse(error) => Outcome::from(error.kind),
        }
    }
}

impl From<WarehouseErrorKind> for Outcome {
    fn from(kind: WarehouseErrorKind) -> Self {
        match kind {
            WarehouseErrorKind::Refused => Outcome::Error,
            WarehouseErrorKind::Timeout => Outcome::Timeout,
            WarehouseErrorKind::Unavailable => Outcome::Unavailable,
        }
    }
}

/// The cube of the first member, or of the measures below a metric; never a name that the model lacks.
pub(super) fn cube_of(model: &Model, query: &SemanticQuery) -> Arc<str> {
    let first = query.values.first().or(query.dimensions.first());
    let time = query.time_dimensions.first().map(|dimension| &dimension.member);
    let named = first.or(time).and_then(|member| member.cube()).or(query.cube.as_deref());
    let cube = match (named, first) {
        (Some(name), _) => model.cube_named(name),
        (None, Some(member)) => model
            .metric_named(&member.text)
            .and_then(|metric| first_cube(model, metric, &mut Vec::new()))
            .map(|id| model.cube(id)),
        (None, None) => None,
    };
    cube.map_or_else(|| UNKNOWN_CUBE.into(), |cube| Arc::clone(&cube.name))
}

/// Each metric is looked into once.
fn first_cube(model: &Model, metric: MetricId, seen: &mut Vec<MetricId>) -> Option<CubeId> {
    if seen.contains(&metric) {
        return None;
    }
    seen.push(metric);
    let mut parts = Vec::new();
    let body: &Snippet = &model.metric(metric).body;
    body.for_each(&mut |part| parts.push(part));
    parts.into_iter().find_map(|part| match part {
        SqlPart::Measure(id) => Some(id.cube),
        SqlPart::Metric(id) => first_cube(model, *id, seen),
        _ => None,
    })
}
