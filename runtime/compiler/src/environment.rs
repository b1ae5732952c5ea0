//! The inputs of the compiler that are neither the project nor the query.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use crate::ready_rollups::ReadyRollups;

/// The current time, time zones and the server's limits.
#[derive(Debug, Clone)]
pub struct Environment {
    pub now: Timestamp,
    pub zones: TimeZoneDatabase,
    /// The time zone of queries without one.
    pub default_timezone: TimeZone,
    pub default_limit: u64,
    pub max_limit: u64,
    /// The end of the message about a limit above `max_limit`, such as a way to get larger results. It may be empty.
    pub limit_advice: &'static str,
    /// The pre-aggregations that may be read instead of rows.
    pub rollups: Arc<ReadyRollups>,
}
