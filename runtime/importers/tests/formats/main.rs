//! Tests imports of small models of each format. The imported project must compile, a model that is closed to some
//! callers must not be open to them in the project, and every difference has a finding at its place.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

mod cube;
mod dbt;
mod imported;
mod javascript;
mod lookml;
mod osi;
mod syntax_errors;
