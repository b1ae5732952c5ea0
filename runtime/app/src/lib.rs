//! The use cases: async, no wire format, no vendor. They speak to the outside through `ports`.

pub mod accounts;
pub mod anomaly;
pub mod builds;
pub mod catalog;
pub mod data_check;
pub mod data_versions;
pub mod dax;
pub mod domain;
pub mod governance;
mod inspection;
pub mod introspection;
pub mod invalidation;
pub mod jobs;
pub mod limits;
pub mod maintenance;
pub mod plugins;
pub mod ports;
pub mod preaggregations;
pub mod profiling;
pub mod projects;
pub mod query;
pub mod security;
pub mod services;
pub mod source_check;
mod table_lookup;
pub mod worker;
