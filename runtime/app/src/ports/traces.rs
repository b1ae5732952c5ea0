//! The port to a collector of traces (OpenTelemetry).
//!
//! A span is recorded as a whole when it ends. Until then, only its [`TraceContext`] is passed along. Not here: the
//! choice of spans (server), and their transport (the adapter).

use std::time::Duration;

pub use crate::domain::{SpanId, TraceContext, TraceId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request that was answered.
    Server,
    /// A request to another server.
    Client,
    Internal,
}

/// A span that has just ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    pub context: TraceContext,
    pub parent: Option<SpanId>,
    pub name: String,
    pub kind: SpanKind,
    pub duration: Duration,
    pub attributes: Vec<(&'static str, SpanValue)>,
    pub is_failure: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub enum SpanValue {
    Text(String),
    Integer(i64),
}

impl From<&str> for SpanValue {
    fn from(text: &str) -> Self {
        SpanValue::Text(text.to_owned())
    }
}

impl From<u64> for SpanValue {
    fn from(number: u64) -> Self {
        SpanValue::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// A collector. Its functions neither wait nor fail. Spans that it cannot take are dropped and counted.
pub trait Traces: Send + Sync {
    /// Returns the position of a new span, in the trace of `parent` or in a new trace.
    fn begin(&self, parent: Option<TraceContext>) -> TraceContext;

    /// Accepts a span. A span that is not sampled is dropped.
    fn record(&self, span: Span);

    /// Returns the number of waiting spans and the number of dropped spans.
    fn backlog(&self) -> Backlog;
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: u64,
    /// The number of spans that were dropped since the start.
    pub dropped: u64,
}
