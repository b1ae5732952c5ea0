//! The values that are read at each scrape: pools, queues, uptime.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::plugins::PluginStatus;
use terrane_app::ports::preaggregations::Publication;
use terrane_app::ports::result_cache::CacheStatistics;
use terrane_app::ports::traces::Backlog;
use terrane_app::ports::warehouse::Connections;

use crate::app::App;

/// The state of a server at one moment.
#[derive(Debug, Clone, Default)]
pub struct ScrapedValues {
    pub(super) uptime: Duration,
    /// The type of the warehouse, and its connections.
    pub(super) connections: Option<(String, Connections)>,
    pub(super) queries_running: usize,
    pub(super) queries_queued: usize,
    pub(super) subscriptions: usize,
    pub(super) audit_pending: usize,
    pub(super) jobs_pending: u64,
    /// The statistics of caches, with the names of their tiers.
    pub(super) caches: Vec<(&'static str, CacheStatistics)>,
    /// The published generations of pre-aggregations.
    pub(super) preaggregations: Arc<[Publication]>,
    pub(super) spans: Option<Backlog>,
    pub(super) plugins: Vec<PluginStatus>,
    pub(super) dropped_lines: Option<u64>,
    pub(super) runtime: Option<RuntimeValues>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct RuntimeValues {
    pub(super) workers: usize,
    pub(super) alive_tasks: usize,
    pub(super) queue_depth: usize,
}

impl ScrapedValues {
    /// Reads the values of a server. Does not wait.
    pub(crate) fn of(app: &App) -> Self {
        let ports = &app.services;
        let (queries_running, queries_queued) = ports.queries.load();
        let runtime = tokio::runtime::Handle::try_current().ok().map(|handle| {
            let metrics = handle.metrics();
            RuntimeValues {
                workers: metrics.num_workers(),
                alive_tasks: metrics.num_alive_tasks(),
                queue_depth: metrics.global_queue_depth(),
            }
        });
        ScrapedValues {
            uptime: app.uptime(),
            connections: ports.warehouse.connections().map(|found| (ports.warehouse.name().to_owned(), found)),
            queries_running,
            queries_queued,
            subscriptions: ports.live.open(),
            caches: ports.queries.cache_statistics(),
            preaggregations: ports.preaggregations.published(),
            audit_pending: ports.audit_buffer.pending(),
            jobs_pending: ports.jobs.pending(),
            spans: app.watchers.watch.backlog(),
            plugins: ports.plugins.loaded(),
            dropped_lines: app.watchers.dropped_lines.as_ref().map(crate::telemetry::DroppedLines::count),
            runtime,
        }
    }
}
