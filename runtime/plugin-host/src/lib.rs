//! The adapter of the `Plugins` port on wasmtime: finds components, runs them inside limits, and
//! turns what they say into checked compiler types.
//!
//! `engine`, `limits`, `budget` and `terms` are the sandbox; `log` and `memo` what guests may import;
//! `wire` what crosses the border in every role;
//! `loader` and `making` the way of a file to a plugin, `signature` and `manifest` what is looked at on it,
//! `cache` what was compiled before. `slot` and `registry` keep the plugins, `health` (`callers`, `breaker`, `tally`)
//! how they are doing, and one file per WIT interface (`dialect`) has the calls. Not here: any decision
//! about SQL, and anything a guest could use to reach the outside: no WASI, files, sockets, clock,
//! randomness or environment.

mod bindings;
mod breaker;
mod budget;
mod cache;
mod call_limiter;
mod callers;
mod check;
mod detector;
mod dialect;
mod dialects;
mod elapsed;
mod engine;
mod error;
mod governance;
mod health;
mod host;
mod limits;
mod loader;
mod log;
mod making;
pub mod manifest;
mod memo;
mod panic_message;
mod plugin;
mod probe;
mod registry;
mod regular;
mod role;
pub mod signature;
mod slot;
mod tally;
mod terms;
mod ticker;
mod wire;
pub mod workbench;

pub use budget::HostLimits;
pub use check::ComponentChecks;
pub use detector::ComponentDetectors;
pub use elapsed::Elapsed;
pub use engine::EngineError;
pub use governance::Hooks;
pub use host::{PluginHost, Settings};
pub use limits::{CallLimits, GuestLimits};
pub use loader::{ComponentFile, MAX_COMPONENT_BYTES, SearchPath, components_in};
pub use log::plain;
pub use plugin::{ConfigJson, Grants, PluginSettings};
