//! The port to metrics and traces.
//!
//! The use cases report each step after it has ended, whether it succeeded, failed, or its caller disconnected.
//! Reporting takes almost no time and never fails. No text that a client wrote is reported; names of cubes come from
//! the model. Not here: the log, which is written with `tracing`, and the audit log (`audit`).

use std::time::Duration;

pub use crate::domain::QueryKind;
use crate::domain::TraceContext;

/// Receives reports.
pub trait Observer: Send + Sync {
    /// Reports that a query was compiled, or was refused.
    fn compiled(&self, step: &Step<'_>);
    /// Reports the result of a statement in the warehouse.
    fn executed(&self, step: &Step<'_>, statement: &Executed<'_>);
    /// Reports that a query has ended.
    fn query_ended(&self, query: &EndedQuery<'_>);
    /// Reports that a credential was accepted, with the authentication method.
    fn authenticated(&self, method: &'static str);
    /// Reports that a request was denied, with the reason.
    fn access_denied(&self, reason: &'static str);
    /// Reports that a run of a background task begins.
    fn task_started(&self, task: &'static str);
    /// Reports that a run of a background task ended.
    fn task_ended(&self, task: &'static str, outcome: TaskOutcome, duration: Duration);
    /// Reports that a build of a pre-aggregation has ended and is not retried.
    fn rollup_built(&self, _: &BuiltRollup<'_>) {}
    /// Reports the number of data tests in a run that had this outcome.
    fn data_tests_ended(&self, _outcome: &'static str, _tests: u64) {}
    /// Reports that a pre-aggregation of a cube answered a query.
    fn rollup_used(&self, _cube: &str, _rollup: &str) {}
}

/// The end of a build of a pre-aggregation.
#[derive(Debug, Clone, Copy)]
pub struct BuiltRollup<'a> {
    pub cube: &'a str,
    pub rollup: &'a str,
    /// The state of the build: `success`, `failed` or `cancelled`.
    pub state: &'static str,
    pub duration: Duration,
}

/// An observer that ignores all events, for short-lived commands.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn compiled(&self, _: &Step<'_>) {}
    fn executed(&self, _: &Step<'_>, _: &Executed<'_>) {}
    fn query_ended(&self, _: &EndedQuery<'_>) {}
    fn authenticated(&self, _: &'static str) {}
    fn access_denied(&self, _: &'static str) {}
    fn task_started(&self, _: &'static str) {}
    fn task_ended(&self, _: &'static str, _: TaskOutcome, _: Duration) {}
}

/// The outcome of a run of a background task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaskOutcome {
    Success,
    Error,
}

impl TaskOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            TaskOutcome::Success => "success",
            TaskOutcome::Error => "error",
        }
    }
}

/// A step of a query that has just ended.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// The trace of the request.
    pub trace: Option<TraceContext>,
    /// The cube, as in [`EndedQuery::cube`].
    pub cube: &'a str,
    pub duration: Duration,
    pub outcome: QueryOutcome,
}

/// A statement that was sent to a warehouse.
#[derive(Debug, Clone, Copy)]
pub struct Executed<'a> {
    /// The type of the warehouse, such as `duckdb` or `postgres`.
    pub warehouse: &'a str,
    /// The hash of the statement, under which the log names it.
    pub sql_hash: &'a str,
    /// The number of rows that were read.
    pub rows: u64,
}

/// A query that has ended.
#[derive(Debug, Clone, Copy)]
pub struct EndedQuery<'a> {
    /// The cube of the query's first member, if the model has it; otherwise [`UNKNOWN_CUBE`].
    pub cube: &'a str,
    pub kind: QueryKind,
    pub outcome: QueryOutcome,
    pub duration: Duration,
    /// The share of the warehouse; `None` if no statement was sent to it.
    pub warehouse: Option<WarehouseShare<'a>>,
}

/// The warehouse's share of a query.
#[derive(Debug, Clone, Copy)]
pub struct WarehouseShare<'a> {
    pub name: &'a str,
    pub waited: Duration,
    pub rows: u64,
}

/// The name of the cube in reports if the model has no cube of the query's first member.
pub const UNKNOWN_CUBE: &str = "unknown";

/// The outcome of a query or step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueryOutcome {
    Success,
    /// The query is invalid or denied.
    Refused,
    /// The warehouse refused the statement.
    Error,
    /// The warehouse cannot be reached.
    Unavailable,
    Timeout,
    Overloaded,
    /// The caller disconnected.
    Abandoned,
}

impl QueryOutcome {
    pub fn as_str(self) -> &'static str {
        match self {
            QueryOutcome::Success => "success",
            QueryOutcome::Refused => "refused",
            QueryOutcome::Error => "error",
            QueryOutcome::Unavailable => "unavailable",
            QueryOutcome::Timeout => "timeout",
            QueryOutcome::Overloaded => "overloaded",
            QueryOutcome::Abandoned => "abandoned",
        }
    }

    /// Returns whether an operator can repair the cause. Mistakes of the caller and full queues do not count.
    pub fn is_failure(self) -> bool {
        matches!(self, QueryOutcome::Error | QueryOutcome::Unavailable | QueryOutcome::Timeout)
    }
}
