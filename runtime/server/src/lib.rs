//! The edge: HTTP in, use cases of the app, HTTP out. Handlers translate and decide nothing.
//!
//! In: an [`App`] (use cases and ports) and a bound socket. Out: [`serve`], and [`Edge`] for tests and
//! for servers of one's own. [`telemetry`] writes the log and keeps metrics. Not here: configuration and wiring (cli),
//! warehouses and stores.

mod admission;
mod app;
mod call;
mod content_coding;
mod edge;
mod error;
mod openapi;
mod rest;
mod routes;
mod serve;
pub mod telemetry;
pub mod tls;

pub use app::{Anonymous, App, HttpSettings, MetricsRoute, Ports, Scope, Scopes, Watchers};
pub use edge::{Connection, Cors, Edge, Hosts, TrustedProxies};
pub use rest::routes;
pub use routes::{Access, Route};
pub use serve::{ServeError, ServeSettings, bind, serve, serve_metrics};
