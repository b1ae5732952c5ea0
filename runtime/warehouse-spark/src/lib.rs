//! The adapter of Apache Spark, and of other servers with the Spark Connect protocol.
//!
//! In: the URL of a server, then printed statements and bound values. Out: Arrow batches with the types that the other
//! adapters return. Three invariants hold. A caller never waits longer than its time limit, even if the server is
//! frozen. A statement whose caller has disconnected is interrupted, and holds its permit until then. A session ends
//! with its connection, because a restarted server would silently open another session without the settings and the
//! views of `init`. Not here: the meaning of a query (compiler), and the time when it runs (app).
//!
//! The messages are declared in `protocol`, and sent by tonic. The official client crate is not used: its build needs
//! an installed `protoc`, its own retries last for minutes, and its calls cannot be limited in time from outside.

mod bind;
mod builder;
mod built;
mod catalog;
mod columns;
mod connection;
mod failure;
mod listing;
mod opening;
mod pool;
mod protocol;
mod rollups;
mod rows;
mod running;
mod session;
mod settings;
mod url;
mod warehouse;
mod writers;

pub use settings::{ConnectError, SparkSettings};
pub use url::UrlError;
pub use warehouse::{SparkWarehouse, connect};
