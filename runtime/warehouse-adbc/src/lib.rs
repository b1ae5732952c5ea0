//! The adapter of databases with an ADBC driver: a shared library that the operator names.
//!
//! In: the path of a driver and its options, then printed statements without bound values. Out: Arrow batches with the
//! types that the other adapters return. Not here: the meaning of a query (compiler), the time when it runs (app), and
//! parameters, because drivers differ in what they can bind. The compiler prints values as literals for this adapter.
//!
//! The flow of one statement:
//!
//! 1. [`pool`] waits for a permit, takes an idle [`connection`] or none, and starts a thread.
//! 2. The [`task`] on this thread opens the connection if necessary, executes the statement, and sends events: the
//!    connection is open, the columns, each batch, the end or an error. Calls of drivers block, so they are made on
//!    such threads only.
//! 3. [`crossing`] converts each batch from the driver manager's version of Arrow to the workspace's, and [`columns`]
//!    converts it to the types of the other adapters.
//! 4. If the caller leaves, the pool cancels the statement through the driver. The thread then drops the statement and
//!    the connection. If the driver does not return, the permit is released after a minute, and the thread remains. The
//!    number of such threads is limited.
//!
//! Three invariants hold. A caller never waits longer than its time limit, even if the driver never returns. A
//! connection runs one statement at a time, and is used again only if the statement ended. A fault of a driver that
//! Rust can observe is an error: a missing file, another platform, a missing symbol, an invalid answer, a panic in the
//! conversion. A driver is native code in this process, so a fault inside the driver can end the process.

mod catalog;
mod columns;
mod connection;
mod crossing;
mod decimals;
mod failure;
mod library;
mod pool;
mod progress;
mod settings;
mod task;
mod warehouse;

pub use library::{LoadedDriver, load};
pub use settings::{AdbcSettings, ConnectError, DriverPath, TableCatalog};
pub use warehouse::{AdbcWarehouse, connect};
