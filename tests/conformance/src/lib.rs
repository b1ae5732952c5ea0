//! The whole HTTP surface over fakes of the ports: no warehouse, no database, no WebAssembly.
//!
//! In: case files (`cases/*.yml`). Out: what differs from what they expect. The compiler and the
//! DuckDB profile are the real ones.

pub mod builds;
pub mod case;
pub mod compare;
pub mod fakes;
pub mod hooks;
pub mod jobs;
pub mod project;
pub mod projects;
pub mod provider;
pub mod security;
pub mod socket;
