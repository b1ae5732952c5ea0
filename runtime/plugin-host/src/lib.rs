//! The adapter of the `Plugins` port on wasmtime: finds components, runs them inside limits, and turns their answers
//! into checked compiler types.
//!
//! - Sandbox: `engine`, `limits`, `budget`, `sandbox_limits`, `watchdog`, `call_limiter`.
//! - Imports of guests: `log`, `memo`, `panic_message`.
//! - Loading: `loader` finds and compiles a file; `factory` verifies, links and probes it. `signature` and `manifest`
//!   read what belongs to the file, and `cache` stores compiled components.
//! - Serving: `plugin_slot` and `registry` hold the plugins; `health` with `callers`, `breaker` and `call_statistics`
//!   records their faults.
//! - Calls: one module per WIT interface (`dialect`, `detector`, `check`, `governance`); `wire` has the types that all
//!   of them share.
//! - Authors: `test_bench` calls any function of one component with JSON.
//!
//! Not here: decisions about SQL, and access of guests to the outside. Guests have no WASI, files, sockets, clock,
//! randomness or environment.

mod bindings;
mod breaker;
mod budget;
mod cache;
mod call_limiter;
mod call_statistics;
mod callers;
mod check;
mod detector;
mod dialect;
mod dialects;
mod engine;
mod error;
mod factory;
mod governance;
mod health;
mod host;
mod limits;
mod loader;
mod log;
pub mod manifest;
mod memo;
mod monotonic_clock;
mod panic_message;
mod plugin;
mod plugin_slot;
mod probe;
mod registry;
mod regular_file;
mod role;
mod sandbox_limits;
pub mod signature;
pub mod test_bench;
mod watchdog;
mod wire;

pub use budget::HostLimits;
pub use check::ComponentChecks;
pub use detector::ComponentDetectors;
pub use engine::EngineError;
pub use governance::Hooks;
pub use host::{PluginHost, Settings};
pub use limits::{CallLimits, GuestLimits};
pub use loader::{ComponentFile, MAX_COMPONENT_BYTES, SearchPath, components_in};
pub use log::plain;
pub use monotonic_clock::MonotonicClock;
pub use plugin::{ConfigJson, Grants, PluginSettings};
