//! Tests imports of small models of each format. The imported project must compile. It must not give callers access
//! that the model denies. Every difference must have a finding at its place.

#![allow(clippy::unwrap_used, reason = "a test stops at its first fault")]

mod cube;
mod dbt;
mod imported;
mod javascript;
mod lookml;
mod osi;
mod syntax_errors;
