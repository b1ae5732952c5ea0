//! The inputs of the compiler that are neither the project nor the query.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// The current time, time zones and the server's limits.
#[derive(Debug, Clone)]
pub struct Environment {
    pub now: Timestamp,
    pub zones: TimeZoneDatabase,
    /// The timezone of queries that name none.
    pub default_timezone: TimeZone,
    pub default_limit: u64,
    pub max_limit: u64,
}
