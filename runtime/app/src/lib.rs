//! The use cases: async, no wire format, no vendor. They speak to the outside through `ports`.

pub mod catalog;
pub mod data_check;
pub mod limits;
pub mod ports;
pub mod query;
pub mod security;
pub mod upkeep;
