//! The ports: what the use cases need from the outside, as traits that adapters implement.

pub mod plugins;
pub mod warehouse;
