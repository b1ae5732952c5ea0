//! Metrics for Prometheus (`runtime/docs/reference/operations.md`, "Metrics").
//!
//! In: the events of the observer and the edge, and at each scrape a [`ScrapedValues`] with values that are read only
//! then. Out: the text format. Every label value is bounded: registered routes, cubes of the model, words of this
//! program; never text of a client. A metric without a source is left out, because a constant would look like a
//! measurement. Not here: the right to scrape (`rest::metrics`).

mod families;
mod scraped_values;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Duration;

use prometheus::{Encoder as _, Registry, TextEncoder};
use terrane_app::ports::observer::{BuiltRollup, EndedQuery, QueryOutcome, TaskOutcome};

use families::{Families, Pulled};
pub(crate) use scraped_values::RuntimeValues;
pub use scraped_values::ScrapedValues;

/// The largest number of cubes with a label of their own. All other cubes share one label, so that repeated loads of
/// projects cannot fill the memory.
const MAX_CUBES: usize = 1_000;
const OTHER: &str = "other";

/// The settings of metrics (`SERVICE_METRICS__…`).
#[derive(Debug, Clone)]
pub struct MetricsSettings {
    pub version: String,
    /// The id of this process among all replicas, for the gauge of running tasks.
    pub worker_id: String,
    /// True to report processor time, memory and files of the process.
    pub include_process: bool,
    /// True to report threads and tasks of the runtime.
    pub include_runtime: bool,
    /// True if traces are exported, so that lost spans are counted.
    pub has_traces: bool,
}

/// All metrics of one server.
pub struct Metrics {
    registry: Registry,
    families: Families,
    /// The metrics that scrapes set. The lock allows one scrape at a time, because a scrape sets the metrics before it
    /// writes them.
    pulled: Mutex<Pulled>,
    cubes: RwLock<HashSet<Box<str>>>,
}

/// A completed request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EndedRequest {
    pub(crate) method: &'static str,
    pub(crate) endpoint: &'static str,
    pub(crate) status: u16,
    pub(crate) duration: Duration,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
}

impl Metrics {
    /// Registers all metrics.
    ///
    /// # Errors
    /// Two metrics have the same name. A test rules this out.
    pub fn new(settings: &MetricsSettings) -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let families = Families::register(&registry, settings)?;
        let pulled = Pulled::register(&registry, settings)?;
        Ok(Metrics { registry, families, pulled: Mutex::new(pulled), cubes: RwLock::default() })
    }

    pub(crate) fn content_type(&self) -> &'static str {
        prometheus::TEXT_FORMAT
    }

    /// Returns the metrics in Prometheus's text format.
    pub(crate) fn expose(&self, reading: &ScrapedValues) -> Result<Vec<u8>, prometheus::Error> {
        // A panic leaves counters and gauges consistent, so a poisoned lock can be used.
        let mut pulled = self.pulled.lock().unwrap_or_else(PoisonError::into_inner);
        pulled.set(reading);
        let mut out = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut out)?;
        Ok(out)
    }

    pub(crate) fn request_began(&self, method: &'static str, endpoint: &'static str) {
        self.families.http_in_progress.with_label_values(&[method, endpoint]).inc();
    }

    pub(crate) fn request_left(&self, method: &'static str, endpoint: &'static str) {
        self.families.http_in_progress.with_label_values(&[method, endpoint]).dec();
    }

    pub(crate) fn request_ended(&self, ended: &EndedRequest) {
        let families = &self.families;
        let labels = [ended.method, ended.endpoint];
        let mut status = itoa::Buffer::new();
        let status = status.format(ended.status);
        families.http_requests.with_label_values(&[ended.method, ended.endpoint, status]).inc();
        families.http_duration.with_label_values(&labels).observe(ended.duration.as_secs_f64());
        families.http_received.with_label_values(&labels).observe(ended.received_bytes as f64);
        families.http_sent.with_label_values(&labels).observe(ended.sent_bytes as f64);
    }

    pub(crate) fn operation_began(&self, kind: &'static str, transport: &'static str) {
        self.families.graphql_in_progress.with_label_values(&[kind, transport]).inc();
    }

    pub(crate) fn operation_ended(&self, kind: &'static str, transport: &'static str, has_errors: bool) {
        let status = if has_errors { "error" } else { "success" };
        self.families.graphql_in_progress.with_label_values(&[kind, transport]).dec();
        self.families.graphql_operations.with_label_values(&[kind, transport, status]).inc();
    }

    pub(crate) fn socket_opened(&self) {
        self.families.graphql_sockets.inc();
    }

    pub(crate) fn socket_closed(&self) {
        self.families.graphql_sockets.dec();
    }

    pub(crate) fn compiled(&self, cube: &str, duration: Duration) {
        self.with_cube(cube, |cube| {
            self.families.compile_duration.with_label_values(&[cube]).observe(duration.as_secs_f64());
        });
    }

    pub(crate) fn query_ended(&self, query: &EndedQuery<'_>) {
        self.with_cube(query.cube, |cube| self.count(query, cube));
    }

    fn count(&self, query: &EndedQuery<'_>, cube: &str) {
        let families = &self.families;
        let kind = query.kind.as_str();
        families.queries.with_label_values(&[cube, kind, query.outcome.as_str()]).inc();
        families.query_duration.with_label_values(&[cube, kind]).observe(query.duration.as_secs_f64());
        let Some(share) = query.warehouse else { return };
        families.warehouse_duration.with_label_values(&[share.name, cube]).observe(share.waited.as_secs_f64());
        if query.outcome == QueryOutcome::Success {
            families.rows.with_label_values(&[cube]).observe(share.rows as f64);
        }
        if query.outcome.is_failure() {
            families.warehouse_errors.with_label_values(&[share.name, query.outcome.as_str()]).inc();
        }
    }

    pub(crate) fn task_started(&self) {
        self.families.active_tasks.inc();
    }

    pub(crate) fn task_ended(&self, task: &'static str, outcome: TaskOutcome, duration: Duration) {
        self.families.active_tasks.dec();
        self.families.tasks.with_label_values(&[task, outcome.as_str()]).inc();
        self.families.task_duration.with_label_values(&[task]).observe(duration.as_secs_f64());
    }

    pub(crate) fn rollup_built(&self, built: &BuiltRollup<'_>) {
        self.with_cube(built.cube, |cube| {
            let (families, rollup) = (&self.families, rollup_label(cube, built.rollup));
            families.preagg_builds.with_label_values(&[cube, rollup, built.state]).inc();
            let seconds = built.duration.as_secs_f64();
            families.preagg_build_duration.with_label_values(&[cube, rollup]).observe(seconds);
        });
    }

    pub(crate) fn data_tests_ended(&self, outcome: &'static str, tests: u64) {
        self.families.data_tests.with_label_values(&[outcome]).inc_by(tests);
    }

    pub(crate) fn rollup_used(&self, cube: &str, rollup: &str) {
        self.with_cube(cube, |cube| {
            self.families.preagg_hits.with_label_values(&[cube, rollup_label(cube, rollup)]).inc();
        });
    }

    pub(crate) fn authenticated(&self, method: &'static str) {
        self.families.authentications.with_label_values(&[method]).inc();
    }

    pub(crate) fn denied(&self, reason: &'static str) {
        self.families.denials.with_label_values(&[reason]).inc();
    }

    fn with_cube(&self, cube: &str, record: impl FnOnce(&str)) {
        // A panic leaves the set consistent, so a poisoned lock can be used.
        if self.cubes.read().unwrap_or_else(PoisonError::into_inner).contains(cube) {
            return record(cube);
        }
        let mut cubes = self.cubes.write().unwrap_or_else(PoisonError::into_inner);
        if cubes.len() >= MAX_CUBES && !cubes.contains(cube) {
            return record(OTHER);
        }
        cubes.insert(cube.into());
        drop(cubes);
        record(cube);
    }
}

/// Returns the label of a pre-aggregation, which is [`OTHER`] if the cube's label is.
fn rollup_label<'a>(cube: &str, rollup: &'a str) -> &'a str {
    if cube == OTHER { OTHER } else { rollup }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        let settings = MetricsSettings {
            version: "1".to_owned(),
            worker_id: "w1".to_owned(),
            include_process: true,
            include_runtime: true,
            has_traces: true,
        };
        Metrics::new(&settings).unwrap()
    }

    #[test]
    fn cubes_beyond_the_bound_share_a_label() {
        let metrics = metrics();
        for number in 0..2 * MAX_CUBES {
            metrics.compiled(&format!("cube_{number}"), Duration::from_millis(1));
        }
        let text = String::from_utf8(metrics.expose(&ScrapedValues::default()).unwrap()).unwrap();
        let series = text.lines().filter(|line| line.starts_with("service_query_compile_duration_seconds_count"));
        assert_eq!(series.count(), MAX_CUBES + 1);
        assert!(text.contains("service_query_compile_duration_seconds_count{cube=\"other\"} 1000"));
    }

    #[test]
    fn deployment_files_name_existing_metrics() {
        let families = include_str!("metrics/families.rs");
        let files = [
            include_str!("../../../deploy/grafana.json"),
            include_str!("../../../deploy/grafana-alerts.yml"),
            include_str!("../../../deploy/RUNBOOK.md"),
            include_str!("../../../deploy/alerts.yml"),
        ];
        for file in files {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let words: Vec<&str> = file.split(|c| !is_name(c)).filter(|word| word.starts_with("service_")).collect();
            assert!(!words.is_empty());
            for word in words {
                let parts = ["_bucket", "_sum", "_count"];
                let name = parts.iter().find_map(|part| word.strip_suffix(part)).unwrap_or(word);
                assert!(families.contains(&format!("\"{name}\"")), "`{word}` is not a metric");
            }
        }
    }

    #[test]
    fn reference_lists_every_metric() {
        let reference = include_str!("../../../docs/reference/operations.md");
        let metrics = metrics();
        metrics.request_began("GET", "/");
        metrics.request_ended(&EndedRequest {
            method: "GET",
            endpoint: "/",
            status: 200,
            duration: Duration::ZERO,
            received_bytes: 0,
            sent_bytes: 0,
        });
        metrics.denied("no credentials");
        metrics.operation_began("query", "http");
        metrics.operation_ended("query", "http", false);
        let duration = Duration::from_secs(1);
        metrics.rollup_built(&BuiltRollup { cube: "orders", rollup: "daily", state: "failed", duration });
        metrics.rollup_used("orders", "daily");
        metrics.authenticated("api_key");
        let text = String::from_utf8(metrics.expose(&ScrapedValues::default()).unwrap()).unwrap();
        let names = text.lines().filter_map(|line| line.strip_prefix("# TYPE service_")?.split(' ').next());
        let missing: Vec<&str> = names.filter(|name| !reference.contains(&format!("`service_{name}`"))).collect();
        assert!(missing.is_empty(), "operations.md does not name {missing:?}");
        for word in reference.split('`').filter(|word| word.starts_with("service_")) {
            assert!(
                include_str!("metrics/families.rs").contains(&format!("\"{word}\"")),
                "operations.md names `{word}`"
            );
        }
    }

    #[test]
    fn scraped_counters_never_decrease() {
        let metrics = metrics();
        let expose = |dropped_lines| {
            let reading = ScrapedValues { dropped_lines: Some(dropped_lines), ..ScrapedValues::default() };
            String::from_utf8(metrics.expose(&reading).unwrap()).unwrap()
        };
        for (dropped, shown) in [(3, 3), (3, 3), (7, 7), (2, 7)] {
            assert!(expose(dropped).contains(&format!("service_log_lines_dropped_total {shown}\n")), "{dropped}");
        }
    }
}
