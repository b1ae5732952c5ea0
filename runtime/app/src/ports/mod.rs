//! The ports: what the use cases need from the outside, as traits that adapters implement.

pub mod clock;
pub mod plugins;
pub mod store;
pub mod warehouse;
