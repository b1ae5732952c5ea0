//! Tests the whole HTTP surface with fakes of the ports: no warehouse, no database, no WebAssembly.
//!
//! In: case files (`cases/*.yml`). Out: the differences from the expected answers. The compiler and the DuckDB profile
//! are the real ones.

pub mod builds;
pub mod case;
pub mod compare;
pub mod cost;
pub mod data_tests;
pub mod fakes;
pub mod governance;
pub mod hooks;
pub mod jobs;
pub mod monitors;
pub mod preaggregations;
pub mod profiles;
pub mod project;
pub mod projects;
pub mod provider;
pub mod security;
pub mod socket;
