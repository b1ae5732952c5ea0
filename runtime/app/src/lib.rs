//! The use cases: async, no wire format, no vendor. They speak to the outside through `ports`.

pub mod catalog;
pub mod ports;
pub mod query;
