//! The adapter of the observer's port: metrics, and spans of traces.
//!
//! In: reports of the use cases about queries, and of the edge about requests. Out: numbers and spans. If neither
//! metrics nor traces are enabled, every function returns at once.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::observer::{BuiltRollup, EndedQuery, Executed, Observer, Step, TaskOutcome};
use terrane_app::ports::traces::{Backlog, Span, SpanKind, SpanValue, Traces};

use super::metrics::Metrics;

/// The metrics and traces of a server.
#[derive(Clone, Default)]
pub struct Watch {
    pub metrics: Option<Arc<Metrics>>,
    pub traces: Option<Arc<dyn Traces>>,
}

impl Watch {
    pub(crate) fn is_on(&self) -> bool {
        self.metrics.is_some() || self.traces.is_some()
    }

    pub(crate) fn backlog(&self) -> Option<Backlog> {
        self.traces.as_ref().map(|traces| traces.backlog())
    }

    /// Records a span below that of the request.
    fn span(&self, step: &Step<'_>, name: &str, kind: SpanKind, attributes: Vec<(&'static str, SpanValue)>) {
        let (Some(traces), Some(parent)) = (&self.traces, step.trace.filter(|trace| trace.is_sampled)) else { return };
        let mut attributes = attributes;
        attributes.push(("terrane.cube", step.cube.into()));
        attributes.push(("terrane.outcome", step.outcome.as_str().into()));
        if step.outcome.is_failure() {
            attributes.push(("error.type", step.outcome.as_str().into()));
        }
        traces.record(Span {
            context: traces.begin(Some(parent)),
            parent: Some(parent.span_id),
            name: name.to_owned(),
            kind,
            duration: step.duration,
            attributes,
            is_failure: step.outcome.is_failure(),
        });
    }
}

impl Observer for Watch {
    fn compiled(&self, step: &Step<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.compiled(step.cube, step.duration);
        }
        self.span(step, "query.compile", SpanKind::Internal, Vec::new());
    }

    fn executed(&self, step: &Step<'_>, statement: &Executed<'_>) {
        let attributes = || {
            vec![
                ("db.system.name", system_name(statement.warehouse).into()),
                ("db.response.returned_rows", statement.rows.into()),
                ("terrane.sql_hash", statement.sql_hash.into()),
            ]
        };
        if step.trace.is_some() {
            self.span(step, "warehouse.execute", SpanKind::Client, attributes());
        }
    }

    fn query_ended(&self, query: &EndedQuery<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.query_ended(query);
        }
    }

    fn authenticated(&self, method: &'static str) {
        if let Some(metrics) = &self.metrics {
            metrics.authenticated(method);
        }
    }

    fn access_denied(&self, reason: &'static str) {
        if let Some(metrics) = &self.metrics {
            metrics.denied(reason);
        }
    }

    fn task_started(&self, _: &'static str) {
        if let Some(metrics) = &self.metrics {
            metrics.task_started();
        }
    }

    fn task_ended(&self, task: &'static str, outcome: TaskOutcome, duration: Duration) {
        if let Some(metrics) = &self.metrics {
            metrics.task_ended(task, outcome, duration);
        }
    }

    fn rollup_built(&self, built: &BuiltRollup<'_>) {
        if let Some(metrics) = &self.metrics {
            metrics.rollup_built(built);
        }
    }

    fn data_tests_ended(&self, outcome: &'static str, tests: u64) {
        if let Some(metrics) = &self.metrics {
            metrics.data_tests_ended(outcome, tests);
        }
    }

    fn rollup_used(&self, cube: &str, rollup: &str) {
        if let Some(metrics) = &self.metrics {
            metrics.rollup_used(cube, rollup);
        }
    }
}

/// Returns the name of a warehouse in OpenTelemetry's conventions.
fn system_name(warehouse: &str) -> &str {
    match warehouse {
        "postgres" => "postgresql",
        other => other,
    }
}
