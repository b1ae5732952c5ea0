//! The edge: HTTP in, use cases of the app, HTTP out. Handlers translate and decide nothing.
//!
//! In: an [`App`] (use cases and ports) and a bound socket. Out: [`serve`], and [`Edge`] for tests and
//! for servers of one's own. [`telemetry`] writes the log and keeps metrics. Not here: configuration and wiring (cli),
//! warehouses and stores.

mod admission;
mod app;
mod arrow_stream;
mod call;
mod content_coding;
mod csv;
mod edge;
mod error;
pub mod json;
mod local;
mod openapi;
mod rest;
mod routes;
mod rows;
mod serve;
pub mod telemetry;
pub mod tls;
mod wire;

pub use app::{Anonymous, App, HttpSettings, MetricsRoute, Scope, Scopes, Watchers};
pub use edge::{Connection, Cors, Edge, Hosts, TrustedProxies};
pub use error::Code;
pub use local::{Refused, audit_record, explanation, read_query, refuse};
pub use rest::routes;
pub use routes::{Access, Route};
pub use rows::{BrokenOff, RowEncoder};
pub use serve::{ServeError, ServeSettings, bind, serve, serve_metrics};
