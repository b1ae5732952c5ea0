//! The values that are read at each scrape: pools, queues, uptime.

use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::plugins::PluginStatus;
use terrane_app::ports::preaggregations::Publication;
use terrane_app::ports::result_cache::CacheStatistics;
use terrane_app::ports::traces::Backlog;
use terrane_app::ports::warehouse::Connections;

/// The state of a server at one moment.
#[derive(Debug, Clone, Default)]
pub struct ScrapedValues {
    pub(crate) uptime: Duration,
    /// The type of the warehouse, and its connections.
    pub(crate) connections: Option<(String, Connections)>,
    pub(crate) queries_running: usize,
    pub(crate) queries_queued: usize,
    pub(crate) subscriptions: usize,
    pub(crate) audit_pending: usize,
    pub(crate) jobs_pending: u64,
    /// The statistics of caches, with the names of their tiers.
    pub(crate) caches: Vec<(&'static str, CacheStatistics)>,
    /// The published generations of pre-aggregations.
    pub(crate) preaggregations: Arc<[Publication]>,
    pub(crate) spans: Option<Backlog>,
    pub(crate) plugins: Vec<PluginStatus>,
    pub(crate) dropped_lines: Option<u64>,
    pub(crate) runtime: Option<RuntimeValues>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct RuntimeValues {
    pub(crate) workers: usize,
    pub(crate) alive_tasks: usize,
    pub(crate) queue_depth: usize,
}

impl RuntimeValues {
    /// Reads the values of the runtime that executes the caller; `None` outside a runtime.
    pub(crate) fn current() -> Option<Self> {
        let handle = tokio::runtime::Handle::try_current().ok()?;
        let metrics = handle.metrics();
        Some(RuntimeValues {
            workers: metrics.num_workers(),
            alive_tasks: metrics.num_alive_tasks(),
            queue_depth: metrics.global_queue_depth(),
        })
    }
}
