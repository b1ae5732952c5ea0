//! Tests real warehouses. Each has the same rows, and reports failures as documented.
//!
//! Tests of a missing engine report themselves as skipped, and fail in CI.

mod adbc;
mod answers;
mod builds;
mod catalog;
mod configuration;
mod dax;
mod faults;
mod foreign_keys;
mod lookups;
mod preaggregations;
mod scan_sizes;
mod snowflake;
mod spark_builds;
mod tls;
mod types;

use terrane_system_tests::engines::{Engine, Kind, Missing};

const PROJECT: &str = "tests/system/projects/engines";

/// Starts the engine, or reports it as missing and returns `None`.
pub(crate) fn start(kind: Kind) -> Option<Engine> {
    if let Some(missing) = kind.missing() {
        skip(kind, &missing);
        return None;
    }
    Some(Engine::start(kind).unwrap_or_else(|error| panic!("{}: {error:#}", kind.label())))
}

pub(crate) fn skip(kind: Kind, Missing(why): &Missing) {
    crate::skip(&format!("cases of {}", kind.label()), why);
}
