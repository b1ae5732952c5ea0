//! The server: HTTP in, use cases of the app, HTTP out. Handlers translate and decide nothing.
//!
//! In: an [`App`] (use cases and ports) and a bound socket. Out: [`serve`], and [`Edge`] for tests and for custom
//! servers. [`telemetry`] writes the log and records metrics. Not here: configuration and wiring (cli), warehouses and
//! stores, and the data of the interface (wire).

mod app;
mod dax;
mod edge;
mod graphql;
mod openapi;
mod protocols;
mod rest;
mod serve;
pub mod telemetry;
pub mod tls;
mod xmla;

pub use app::{Anonymous, App, HttpSettings, MetricsRoute, Scope, Scopes, Watchers};
pub use edge::{Connection, Cors, Edge, Hosts, Route, RouteAccess, TrustedProxies};
pub use graphql::GraphQlHttpSettings;
pub use protocols::routes;
pub use serve::{ServeError, ServeSettings, bind, serve, serve_metrics};
