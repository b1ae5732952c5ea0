//! The adapter of the port of traces: sends spans to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! In: ended spans. Out: batches of them as protobuf, sent by one task. If a collector is slow or down, spans are lost
//! and the log has a line each minute, but no request is affected: the queue is bounded, and spans that do not fit are
//! dropped and counted. Environment variables (`OTEL_…`) are not read; only the operator's settings count. Absent: the
//! spans and their attributes (server).

mod client;
mod encode;
mod ids;
mod sending;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use terrane_app::ports::clock::Clock;
use terrane_app::ports::traces::{Backlog, Span, TraceContext, Traces};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use client::Client;
use encode::Resource;
use ids::Ids;
use sending::Sending;

/// The largest number of spans that wait to be sent. A span is about a kilobyte.
const MAX_WAITING: usize = 4_096;

/// The operator's settings (`SERVICE_TELEMETRY__…`).
#[derive(Clone)]
pub struct TraceSettings {
    /// The address, such as `http://collector:4318`. `/v1/traces` is added if it is missing. May contain a password.
    pub endpoint: String,
    pub service_name: String,
    pub version: String,
    /// The share of traces that begin here to sample, 0 to 1. The caller decides about the sampling of its own trace.
    pub sample_ratio: f64,
}

/// The reason why no traces can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("the endpoint is not an http or https URL with a host")]
    Endpoint,
    #[error("no client for HTTP can be made: {0}")]
    Client(String),
}

/// Sends spans for as long as it lives.
pub struct Collector {
    ids: Ids,
    sample_ratio: f64,
    clock: Arc<dyn Clock>,
    spans: mpsc::Sender<(Span, Timestamp)>,
    lost: Arc<AtomicU64>,
    closing: watch::Sender<bool>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Collector {
    /// Starts the task; needs a runtime. The collector itself need not be there.
    ///
    /// # Errors
    /// [`TraceError`]
    pub fn start(settings: &TraceSettings, clock: Arc<dyn Clock>) -> Result<Self, TraceError> {
        let client = Client::new(&settings.endpoint)?;
        let (spans, inbox) = mpsc::channel(MAX_WAITING);
        let (closing, closed) = watch::channel(false);
        let lost = Arc::new(AtomicU64::new(0));
        let resource = Resource { service_name: settings.service_name.clone(), version: settings.version.clone() };
        let sending = Sending { client, resource, inbox, closed, lost: Arc::clone(&lost), clock: Arc::clone(&clock) };
        let task = Mutex::new(Some(tokio::spawn(sending.run())));
        let ids = Ids::random();
        Ok(Collector { ids, sample_ratio: settings.sample_ratio, clock, spans, lost, closing, task })
    }

    /// Sends the waiting spans, within a time limit.
    pub async fn close(&self, within: Duration) {
        let _ = self.closing.send(true);
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            let abort = task.abort_handle();
            if tokio::time::timeout(within, task).await.is_err() {
                abort.abort();
            }
        }
    }
}

impl Traces for Collector {
    fn begin(&self, parent: Option<TraceContext>) -> TraceContext {
        let span_id = self.ids.span();
        match parent {
            Some(parent) => TraceContext { span_id, ..parent },
            None => {
                let trace_id = self.ids.trace();
                TraceContext { trace_id, span_id, is_sampled: ids::is_sampled(trace_id, self.sample_ratio) }
            }
        }
    }

    fn record(&self, span: Span) {
        if span.context.is_sampled && self.spans.try_send((span, self.clock.now())).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn backlog(&self) -> Backlog {
        let waiting = self.spans.max_capacity() - self.spans.capacity();
        Backlog { waiting: waiting as u64, dropped: self.lost.load(Ordering::Relaxed) }
    }
}
