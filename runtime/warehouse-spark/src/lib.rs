//! The adapter of Apache Spark, and of other servers that speak Spark Connect.
//!
//! In: the URL of a server, then printed statements and bound values. Out: Arrow batches with the types that the other
//! adapters return. Three invariants: a caller never waits longer than its time limit, also if the server is frozen; a
//! statement whose caller has gone is interrupted, and keeps its permit until then; and a session never outlives its
//! connection, because a server that was restarted would silently open another one, without the settings and the views
//! of `init`. Not here: the meaning of a query (compiler), and the time when it runs (app).
//!
//! The messages are declared in `protocol`, and sent by tonic. The official client crate is not used: its build needs
//! an installed `protoc`, its own retries last for minutes, and its calls cannot be limited in time from outside of it.

mod bind;
mod catalog;
mod columns;
mod connection;
mod failure;
mod pool;
mod protocol;
mod rows;
mod session;
mod settings;
mod url;
mod warehouse;

pub use settings::{ConnectError, SparkSettings};
pub use url::UrlError;
pub use warehouse::{SparkWarehouse, connect};
