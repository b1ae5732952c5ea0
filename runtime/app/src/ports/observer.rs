//! The port to whoever watches: metrics and traces.
//!
//! The use cases tell of each step when it is over, however it ended, also where its caller went away.
//! Telling takes no time worth speaking of and never fails. Nothing that a client wrote is told: cubes
//! are those of the model. Not here: the log, which is `tracing`'s, and the audit log (`audit`).

use std::time::Duration;

use super::traces::TraceContext;

/// Told of what happens.
pub trait Observer: Send + Sync {
    /// A query became SQL, or was refused.
    fn compiled(&self, step: &Step<'_>);
    /// The warehouse answered a statement, or didn't.
    fn executed(&self, step: &Step<'_>, statement: &Executed<'_>);
    /// A query is over.
    fn query_ended(&self, query: &EndedQuery<'_>);
    /// A turn of a task in the background is over.
    fn task_ended(&self, task: &'static str, is_done: bool, duration: Duration);
}

/// Watches nothing: commands that answer one question.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn compiled(&self, _: &Step<'_>) {}
    fn executed(&self, _: &Step<'_>, _: &Executed<'_>) {}
    fn query_ended(&self, _: &EndedQuery<'_>) {}
    fn task_ended(&self, _: &'static str, _: bool, _: Duration) {}
}

/// A part of a query's way that has just ended.
#[derive(Debug, Clone, Copy)]
pub struct Step<'a> {
    /// Of the request that it belongs to.
    pub trace: Option<TraceContext>,
    /// As of [`EndedQuery`].
    pub cube: &'a str,
    pub duration: Duration,
    pub outcome: Outcome,
}

/// A statement that a warehouse was given.
#[derive(Debug, Clone, Copy)]
pub struct Executed<'a> {
    /// Its type: `duckdb`, `postgres` …
    pub warehouse: &'a str,
    /// Names the statement as the log does.
    pub sql_hash: &'a str,
    /// As far as they were read.
    pub rows: u64,
}

/// A query that is over.
#[derive(Debug, Clone, Copy)]
pub struct EndedQuery<'a> {
    /// The cube of its first member, if the model has it; else [`UNKNOWN_CUBE`].
    pub cube: &'a str,
    pub kind: QueryKind,
    pub outcome: Outcome,
    pub duration: Duration,
    /// `None`: the warehouse was not asked.
    pub warehouse: Option<WarehouseShare<'a>>,
}

/// What of a query was the warehouse's.
#[derive(Debug, Clone, Copy)]
pub struct WarehouseShare<'a> {
    pub name: &'a str,
    pub waited: Duration,
    pub rows: u64,
}

/// The cube of a query whose first member is none of the model's.
pub const UNKNOWN_CUBE: &str = "unknown";

/// What a query was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QueryKind {
    /// A page of rows.
    Rest,
    /// Rows up to the limit of exports.
    Export,
    /// Its statement alone.
    Sql,
    /// Why it becomes that statement.
    Explain,
    /// How the warehouse would go about it.
    Plan,
    /// Statistics of a cube's columns.
    Profile,
}

impl QueryKind {
    pub fn as_str(self) -> &'static str {
        match self {
            QueryKind::Rest => "rest",
            QueryKind::Export => "export",
            QueryKind::Sql => "sql",
            QueryKind::Explain => "explain",
            QueryKind::Plan => "plan",
            QueryKind::Profile => "profile",
        }
    }
}

/// How something ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    Success,
    /// What was asked can't be answered, whoever runs it.
    Refused,
    /// The warehouse refused the statement.
    Error,
    /// The warehouse can't be reached.
    Unavailable,
    Timeout,
    Overloaded,
    /// The caller went away.
    Abandoned,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Success => "success",
            Outcome::Refused => "refused",
            Outcome::Error => "error",
            Outcome::Unavailable => "unavailable",
            Outcome::Timeout => "timeout",
            Outcome::Overloaded => "overloaded",
            Outcome::Abandoned => "abandoned",
        }
    }

    /// It is somebody's fault that can be mended: not the caller's, and no full queue.
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::Error | Outcome::Unavailable | Outcome::Timeout)
    }
}
