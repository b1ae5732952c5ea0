//! The adapter of the `Plugins` port on wasmtime: finds components, runs them inside limits, and
//! turns what they say into checked compiler types.
//!
//! `engine` and `limits` are the sandbox, `loader` the way of a file to a compiled component, `cache` what
//! was compiled before, `log`
//! what guests may import, and one file per WIT interface (`dialect`) the calls. A component is asked
//! when it is loaded, in a fresh instance, and never while a query is answered. Not here: any
//! decision about SQL, and anything a guest could use to reach the outside: no WASI, files, sockets,
//! clock, randomness or environment.

mod cache;
mod dialect;
mod engine;
mod error;
mod host;
mod limits;
mod loader;
mod log;

pub use engine::EngineError;
pub use host::{PluginHost, Settings};
pub use limits::{CallLimits, GuestLimits};
pub use loader::{MAX_COMPONENT_BYTES, SearchPath};
