//! The adapter of the port of traces: sends spans to an OpenTelemetry collector, by OTLP over HTTP.
//!
//! In: ended spans. Out: batches of spans as protobuf, which one task sends. A slow or unavailable collector affects no
//! request: the queue is bounded, and spans that do not fit are dropped and counted. The loss is logged at most once a
//! minute. Environment variables (`OTEL_…`) are not read; only the operator's settings count. Not here: the spans and
//! their attributes (server).

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

/// The largest number of spans that wait to be sent. A span takes about a kilobyte.
const MAX_WAITING: usize = 4_096;

/// The operator's settings (`SERVICE_TELEMETRY__…`).
#[derive(Clone)]
pub struct TraceSettings {
    /// The address, such as `http://collector:4318`. If the address has no path, `/v1/traces` is added. The address may
    /// contain a password.
    pub endpoint: String,
    pub service_name: String,
    pub version: String,
    /// The share of the traces begun by this process that are sampled, from 0 to 1. If a request continues a caller's
    /// trace, the caller's decision applies.
    pub sample_ratio: f64,
}

/// The reason why no traces can be sent.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    #[error("the endpoint is not an http or https URL with a host")]
    Endpoint,
    #[error("cannot create an HTTP client: {0}")]
    Client(String),
}

/// Sends spans to a collector. Sending ends when this value is closed or dropped.
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
    /// Starts the task that sends spans. Needs an async runtime. The collector need not be reachable.
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

    /// Sends the waiting spans and ends the task. Aborts the task after the time limit.
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
