//! XML for Analysis: the protocol of spreadsheet and BI clients, without HTTP.
//!
//! `bytes → Element → Request`; `Discover → Table → rows`; rows of DAX → bytes. In: envelopes, a caller's view of the
//! project, and the rows of queries. Out: typed requests, and the bytes of responses and faults, in parts. Not here:
//! HTTP and credentials (server), sessions and queries (app), MDX.

pub mod element;
pub mod envelope;
pub mod fault;
pub mod names;
pub mod parameters;
pub mod request;
pub mod rows;
pub mod rowset;
pub mod rowsets;
pub mod schema;
pub mod scope;
pub mod statement;
mod xml;

pub use fault::{Fault, FaultCode};
pub use request::Request;
