//! Every metric with its name, its labels and its buckets: the list that dashboards are made from.

use prometheus::{
    Gauge, GaugeVec, HistogramOpts, HistogramVec, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use terrane_app::ports::plugins::PluginStatus;

use super::{MetricsSettings, ScrapedValues};

/// Buckets of seconds for requests and queries, from an answer from memory to an export.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];
/// Buckets of seconds for work that does not need an engine.
const SHORT_SECONDS: &[f64] = &[0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0];
/// Buckets of bytes, from a probe's answer to an export, each four times the previous one.
const BYTES: &[f64] = &[
    256.0,
    1_024.0,
    4_096.0,
    16_384.0,
    65_536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
    268_435_456.0,
    1_073_741_824.0,
];
const ROWS: &[f64] = &[0.0, 1.0, 10.0, 100.0, 1_000.0, 10_000.0, 100_000.0, 1_000_000.0, 10_000_000.0];

/// The families that events update.
pub(super) struct Families {
    pub(super) http_requests: IntCounterVec,
    pub(super) http_duration: HistogramVec,
    pub(super) http_received: HistogramVec,
    pub(super) http_sent: HistogramVec,
    pub(super) http_in_progress: IntGaugeVec,
    pub(super) graphql_operations: IntCounterVec,
    pub(super) graphql_in_progress: IntGaugeVec,
    pub(super) graphql_sockets: IntGauge,
    pub(super) queries: IntCounterVec,
    pub(super) query_duration: HistogramVec,
    pub(super) rows: HistogramVec,
    pub(super) compile_duration: HistogramVec,
    pub(super) warehouse_duration: HistogramVec,
    pub(super) warehouse_errors: IntCounterVec,
    pub(super) active_tasks: IntGauge,
    pub(super) tasks: IntCounterVec,
    pub(super) task_duration: HistogramVec,
    pub(super) authentications: IntCounterVec,
    pub(super) denials: IntCounterVec,
    pub(super) data_tests: IntCounterVec,
    pub(super) preagg_builds: IntCounterVec,
    pub(super) preagg_build_duration: HistogramVec,
    pub(super) preagg_hits: IntCounterVec,
}

impl Families {
    #[rustfmt::skip]
    pub(super) fn register(to: &Registry, settings: &MetricsSettings) -> Result<Self, prometheus::Error> {
        Ok(Families {
            http_requests: counters(to, "service_http_requests_total", "Completed HTTP requests.", &["method", "endpoint", "status"])?,
            http_duration: histograms(to, "service_http_request_duration_seconds", "Seconds from the head of a request to the last byte of its response.", &["method", "endpoint"], SECONDS)?,
            http_received: histograms(to, "service_http_request_size_bytes", "Bytes of request bodies that were read.", &["method", "endpoint"], BYTES)?,
            http_sent: histograms(to, "service_http_response_size_bytes", "Bytes of response bodies that were sent.", &["method", "endpoint"], BYTES)?,
            http_in_progress: gauges(to, "service_http_requests_in_progress", "HTTP requests in progress, until the last byte of the response.", &["method", "endpoint"])?,
            graphql_operations: counters(to, "service_graphql_operations_total", "Completed GraphQL operations.", &["operation_type", "transport", "status"])?,
            graphql_in_progress: gauges(to, "service_graphql_operations_in_progress", "GraphQL operations in progress, including subscriptions.", &["operation_type", "transport"])?,
            graphql_sockets: gauge(to, "service_graphql_sockets", "Open WebSockets of GraphQL.")?,
            queries: counters(to, "service_query_total", "Completed queries.", &["cube", "type", "status"])?,
            query_duration: histograms(to, "service_query_duration_seconds", "Seconds from the arrival of a query to its last row.", &["cube", "type"], SECONDS)?,
            rows: histograms(to, "service_query_rows_returned", "Rows returned by successful queries.", &["cube"], ROWS)?,
            compile_duration: histograms(to, "service_query_compile_duration_seconds", "Seconds of compiling a query to SQL.", &["cube"], SHORT_SECONDS)?,
            warehouse_duration: histograms(to, "service_query_warehouse_duration_seconds", "Seconds that queries waited for the warehouse.", &["warehouse", "cube"], SECONDS)?,
            warehouse_errors: counters(to, "service_warehouse_query_errors_total", "Queries that failed in the warehouse.", &["warehouse", "error_type"])?,
            active_tasks: gauges(to, "service_worker_active_tasks", "Background tasks that are running.", &["worker_id"])?.with_label_values(&[&settings.worker_id]),
            tasks: counters(to, "service_worker_tasks_total", "Completed runs of background tasks.", &["task_name", "status"])?,
            task_duration: histograms(to, "service_worker_task_duration_seconds", "Seconds of a run of a background task.", &["task_name"], SECONDS)?,
            authentications: counters(to, "service_authentications_total", "Successful authentications.", &["auth_method"])?,
            denials: counters(to, "service_access_denied_total", "Denied requests.", &["reason"])?,
            data_tests: counters(to, "service_data_tests_total", "Executed data tests.", &["outcome"])?,
            preagg_builds: counters(to, "service_preagg_builds_total", "Completed builds of pre-aggregations.", &["cube", "preagg", "status"])?,
            preagg_build_duration: histograms(to, "service_preagg_build_duration_seconds", "Seconds of the last attempt of a build.", &["cube", "preagg"], SECONDS)?,
            preagg_hits: counters(to, "service_preagg_hits_total", "Parts of queries that were answered from a pre-aggregation.", &["cube", "preagg"])?,
        })
    }
}

/// The families that each scrape updates.
pub(super) struct Pulled {
    uptime: Gauge,
    connections_active: IntGaugeVec,
    connections_idle: IntGaugeVec,
    connection_errors: IntCounterVec,
    queue_size: IntGaugeVec,
    queries_running: IntGauge,
    queries_queued: IntGauge,
    subscriptions: IntGauge,
    cache_hits: IntCounterVec,
    cache_misses: IntCounterVec,
    cache_evictions: IntCounterVec,
    cache_failures: IntCounterVec,
    cache_size: IntGaugeVec,
    preagg_rows: IntGaugeVec,
    preagg_size: IntGaugeVec,
    plugin_state: IntGaugeVec,
    plugin_calls: IntCounterVec,
    plugin_fuel: IntCounterVec,
    plugin_duration: GaugeVec,
    dropped_lines: IntCounter,
    dropped_spans: Option<IntCounter>,
    runtime: Option<RuntimeGauges>,
}

struct RuntimeGauges {
    workers: IntGauge,
    alive_tasks: IntGauge,
    queue_depth: IntGauge,
}

impl Pulled {
    #[rustfmt::skip]
    pub(super) fn register(to: &Registry, settings: &MetricsSettings) -> Result<Self, prometheus::Error> {
        gauges(to, "service_info", "The version of the server; the value is 1.", &["version"])?.with_label_values(&[&settings.version]).set(1);
        if settings.include_process {
            register_process(to)?;
        }
        let runtime = settings.include_runtime.then(|| {
            Ok::<_, prometheus::Error>(RuntimeGauges {
                workers: gauge(to, "service_runtime_workers", "Worker threads of the asynchronous runtime.")?,
                alive_tasks: gauge(to, "service_runtime_alive_tasks", "Tasks of the asynchronous runtime that have not ended.")?,
                queue_depth: gauge(to, "service_runtime_queue_depth", "Tasks of the asynchronous runtime that wait for a worker thread.")?,
            })
        });
        Ok(Pulled {
            uptime: {
                let uptime = Gauge::new("service_uptime_seconds", "Seconds since the start of the server.")?;
                to.register(Box::new(uptime.clone()))?;
                uptime
            },
            connections_active: gauges(to, "service_warehouse_connections_active", "Warehouse connections that are running a statement.", &["warehouse"])?,
            connections_idle: gauges(to, "service_warehouse_connections_idle", "Idle warehouse connections.", &["warehouse"])?,
            connection_errors: counters(to, "service_warehouse_connection_errors_total", "Warehouse connections that could not be opened (connect) or were lost (lost).", &["warehouse", "error_type"])?,
            queue_size: gauges(to, "service_worker_queue_size", "Entries in the queues of background tasks.", &["queue_name"])?,
            queries_running: gauge(to, "service_queries_running", "Queries that are running.")?,
            subscriptions: gauge(to, "service_graphql_subscriptions", "Open GraphQL subscriptions.")?,
            queries_queued: gauge(to, "service_queries_queued", "Queries that wait in the queue for a permit to run.")?,
            cache_hits: counters(to, "service_cache_hits_total", "Cache hits by tier, including outdated results.", &["cache_type"])?,
            cache_misses: counters(to, "service_cache_misses_total", "Cache misses by tier.", &["cache_type"])?,
            cache_evictions: counters(to, "service_cache_evictions_total", "Results evicted from the cache.", &["cache_type"])?,
            cache_failures: counters(to, "service_cache_failures_total", "Cache values that could not be read, written or verified.", &["cache_type"])?,
            cache_size: gauges(to, "service_cache_size_bytes", "Bytes of the results in the cache.", &["cache_type"])?,
            preagg_rows: gauges(to, "service_preagg_rows", "Rows in the published tables of a pre-aggregation.", &["cube", "preagg"])?,
            preagg_size: gauges(to, "service_preagg_size_bytes", "Bytes of the published tables of a pre-aggregation, if the warehouse reports them.", &["cube", "preagg"])?,
            plugin_state: gauges(to, "service_plugin_state", "1 for the current state of a plugin.", &["plugin", "role", "state"])?,
            plugin_calls: counters(to, "service_plugin_calls_total", "Calls of plugins since they were loaded, including refused calls.", &["plugin", "call", "status"])?,
            plugin_fuel: counters(to, "service_plugin_fuel_total", "Fuel that plugins used since they were loaded, about one unit for each instruction.", &["plugin", "call"])?,
            plugin_duration: {
                let opts = Opts::new("service_plugin_call_duration_seconds", "Quantiles of the duration in seconds of plugin calls since the plugin was loaded.");
                let made = GaugeVec::new(opts, &["plugin", "call", "quantile"])?;
                to.register(Box::new(made.clone()))?;
                made
            },
            dropped_lines: counter(to, "service_log_lines_dropped_total", "Log lines that were dropped because the buffer was full or the log could not be written.")?,
            dropped_spans: settings.has_traces.then(|| counter(to, "service_trace_spans_dropped_total", "Trace spans that were dropped because the queue was full or the collector did not accept them.")).transpose()?,
            runtime: runtime.transpose()?,
        })
    }

    pub(super) fn set(&mut self, reading: &ScrapedValues) {
        self.uptime.set(reading.uptime.as_secs_f64());
        if let Some((warehouse, connections)) = &reading.connections {
            let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
            self.connections_active.with_label_values(&[warehouse]).set(count(connections.active));
            self.connections_idle.with_label_values(&[warehouse]).set(count(connections.idle));
            raise(&self.connection_errors.with_label_values(&[warehouse.as_str(), "connect"]), connections.failed);
            raise(&self.connection_errors.with_label_values(&[warehouse.as_str(), "lost"]), connections.lost);
        }
        self.queries_running.set(reading.queries_running as i64);
        self.queries_queued.set(reading.queries_queued as i64);
        self.subscriptions.set(reading.subscriptions as i64);
        self.queue_size.with_label_values(&["audit"]).set(reading.audit_pending as i64);
        let jobs = i64::try_from(reading.jobs_pending).unwrap_or(i64::MAX);
        self.queue_size.with_label_values(&["jobs"]).set(jobs);
        if let Some(backlog) = reading.spans {
            self.queue_size.with_label_values(&["spans"]).set(i64::try_from(backlog.waiting).unwrap_or(i64::MAX));
            if let Some(dropped) = &self.dropped_spans {
                raise(dropped, backlog.dropped);
            }
        }
        self.preagg_rows.reset();
        self.preagg_size.reset();
        for publication in reading.preaggregations.iter() {
            let labels = [&*publication.rollup.cube, &*publication.rollup.name];
            let rows: u64 = publication.tables.iter().map(|table| table.rows).sum();
            self.preagg_rows.with_label_values(&labels).set(i64::try_from(rows).unwrap_or(i64::MAX));
            let size: Option<u64> = publication.tables.iter().map(|table| table.bytes).sum();
            if let Some(size) = size {
                self.preagg_size.with_label_values(&labels).set(i64::try_from(size).unwrap_or(i64::MAX));
            }
        }
        for (tier, statistics) in &reading.caches {
            raise(&self.cache_hits.with_label_values(&[*tier]), statistics.hits);
            raise(&self.cache_misses.with_label_values(&[*tier]), statistics.misses);
            raise(&self.cache_evictions.with_label_values(&[*tier]), statistics.evictions);
            raise(&self.cache_failures.with_label_values(&[*tier]), statistics.failures);
            if let Some(size) = statistics.size_bytes {
                self.cache_size.with_label_values(&[*tier]).set(i64::try_from(size).unwrap_or(i64::MAX));
            }
        }
        self.set_plugins(&reading.plugins);
        raise(&self.dropped_lines, reading.dropped_lines.unwrap_or(0));
        if let (Some(gauges), Some(runtime)) = (&self.runtime, &reading.runtime) {
            gauges.workers.set(runtime.workers as i64);
            gauges.alive_tasks.set(runtime.alive_tasks as i64);
            gauges.queue_depth.set(runtime.queue_depth as i64);
        }
    }
}

impl Pulled {
    /// Sets the metrics of plugins. The counters of a reloaded plugin start again at 0.
    fn set_plugins(&mut self, plugins: &[PluginStatus]) {
        self.plugin_state.reset();
        self.plugin_calls.reset();
        self.plugin_fuel.reset();
        self.plugin_duration.reset();
        for plugin in plugins {
            let name = plugin.name.as_str();
            self.plugin_state.with_label_values(&[name, plugin.role.as_str(), plugin.state.as_str()]).set(1);
            for export in &plugin.exports {
                let well = export.calls.saturating_sub(export.faults);
                for (status, count) in [("success", well), ("fault", export.faults), ("refused", export.refused)] {
                    self.plugin_calls.with_label_values(&[name, export.name, status]).inc_by(count);
                }
                self.plugin_fuel.with_label_values(&[name, export.name]).inc_by(export.fuel);
                for (quantile, took) in [("0.5", export.p50), ("0.99", export.p99)] {
                    let seconds = took.map_or(0.0, |took| took.as_secs_f64());
                    self.plugin_duration.with_label_values(&[name, export.name, quantile]).set(seconds);
                }
            }
        }
    }
}

/// Raises a counter to a value that is counted elsewhere.
fn raise(counter: &IntCounter, to: u64) {
    counter.inc_by(to.saturating_sub(counter.get()));
}

#[cfg(target_os = "linux")]
fn register_process(to: &Registry) -> Result<(), prometheus::Error> {
    to.register(Box::new(prometheus::process_collector::ProcessCollector::for_self()))
}

/// Registers nothing, because metrics of the process are known on Linux only.
#[cfg(not(target_os = "linux"))]
fn register_process(_: &Registry) -> Result<(), prometheus::Error> {
    Ok(())
}

fn counter(to: &Registry, name: &str, help: &str) -> Result<IntCounter, prometheus::Error> {
    let made = IntCounter::new(name, help)?;
    to.register(Box::new(made.clone()))?;
    Ok(made)
}

fn gauge(to: &Registry, name: &str, help: &str) -> Result<IntGauge, prometheus::Error> {
    let made = IntGauge::new(name, help)?;
    to.register(Box::new(made.clone()))?;
    Ok(made)
}

fn counters(to: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    let made = IntCounterVec::new(Opts::new(name, help), labels)?;
    to.register(Box::new(made.clone()))?;
    Ok(made)
}

fn gauges(to: &Registry, name: &str, help: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
    let made = IntGaugeVec::new(Opts::new(name, help), labels)?;
    to.register(Box::new(made.clone()))?;
    Ok(made)
}

fn histograms(
    to: &Registry,
    name: &str,
    help: &str,
    labels: &[&str],
    buckets: &[f64],
) -> Result<HistogramVec, prometheus::Error> {
    let made = HistogramVec::new(HistogramOpts::new(name, help).buckets(buckets.to_vec()), labels)?;
    to.register(Box::new(made.clone()))?;
    Ok(made)
}
