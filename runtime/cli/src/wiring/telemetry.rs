//! Wiring of metrics and traces.
//!
//! In: the configuration. Out: the exporters and the route of the metrics.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::traces::Traces;
use terrane_server::MetricsRoute;
use terrane_server::telemetry::Watch;
use terrane_server::telemetry::metrics::{Metrics, MetricsSettings};
use terrane_traces::{Collector, TraceSettings};

use crate::clock::SystemClock;
use crate::config::Config;
use crate::failure::Failure;

/// The time limit for exporting the last spans at shutdown.
const LAST_SPANS: Duration = Duration::from_secs(3);

/// The observer of a server, and the parts that must be closed with it.
#[derive(Clone, Default)]
pub struct Watching {
    pub watch: Watch,
    collector: Option<Arc<Collector>>,
}

impl Watching {
    /// Sends the remaining spans, within a time limit.
    pub async fn close(&self) {
        if let Some(collector) = &self.collector {
            collector.close(LAST_SPANS).await;
        }
    }
}

/// Creates the observer. Needs an async runtime.
///
/// # Errors
/// The address of the trace collector is invalid.
pub fn watching(config: &Config, process_id: &str) -> Result<Watching, Failure> {
    let collector = config.telemetry.otlp_endpoint.as_ref().map(|endpoint| {
        let settings = TraceSettings {
            endpoint: endpoint.expose().to_owned(),
            service_name: config.telemetry.service_name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            sample_ratio: config.telemetry.sample_ratio,
        };
        Collector::start(&settings, Arc::new(SystemClock::default())).map(Arc::new)
    });
    let collector = collector.transpose().map_err(|error| {
        Failure::new(format!("`telemetry.otlp_endpoint`: {error}")).hint("Write a URL such as `http://collector:4318`.")
    })?;
    let traces = collector.clone().map(|collector| collector as Arc<dyn Traces>);
    Ok(Watching { watch: Watch { metrics: metrics(config, process_id)?, traces }, collector })
}

fn metrics(config: &Config, process_id: &str) -> Result<Option<Arc<Metrics>>, Failure> {
    let wanted = &config.metrics;
    let settings = MetricsSettings {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        worker_id: process_id.to_owned(),
        include_process: wanted.include_process,
        include_runtime: wanted.include_runtime,
        has_traces: config.telemetry.otlp_endpoint.is_some(),
    };
    let made = wanted.enabled.then(|| Metrics::new(&settings).map(Arc::new)).transpose();
    made.map_err(|error| Failure::new(format!("the metrics cannot be created: {error}")))
}

/// Returns the route of the metrics on the server's own address.
pub(super) fn metrics_route(config: &Config) -> Option<MetricsRoute> {
    let metrics = &config.metrics;
    metrics.enabled.then(|| MetricsRoute {
        // Routes need a static path. This runs once per process, so it leaks one string.
        path: metrics.path.clone().leak(),
        // If metrics have an address of their own, `is_public` applies to that address.
        is_public: metrics.is_public && metrics.address.is_none(),
    })
}
