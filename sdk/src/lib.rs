//! The building blocks of Terrane plugins.
//!
//! A plugin is a WebAssembly component with one role. Its code is plain Rust: implement the role's
//! trait, name the type in the export macro, and build for `wasm32-unknown-unknown`. On the host the
//! same crate is an ordinary library, so `cargo test` needs no WebAssembly target.
//!
//! ```
//! use terrane_sdk::dialect::{Dialect, Op, PlaceholderStyle, Profile, ProfileBuilder};
//! use terrane_sdk::{CallContext, PluginError, PluginInfo};
//!
//! struct Quack;
//!
//! impl Dialect for Quack {
//!     const INFO: PluginInfo = PluginInfo::new("dialect-quack", "1.0.0", "Quack");
//!
//!     fn profile(_: &CallContext) -> Result<Profile, PluginError> {
//!         // Start from the SQL standard, and override what differs.
//!         Ok(ProfileBuilder::ansi("quack")
//!             .placeholders(PlaceholderStyle::DollarN, 32_767)
//!             .op(Op::Contains, "contains({0}, {1})")
//!             .build())
//!     }
//! }
//!
//! terrane_sdk::export_dialect!(Quack);
//!
//! let profile = Quack::profile(&CallContext::for_tests()).unwrap();
//! assert_eq!(profile.name, "quack");
//! ```
//!
//! In: the contract in `wit/`. Not here: parts of the runtime.

pub mod bindings;
pub mod check;
pub mod conformance;
pub mod detector;
pub mod dialect;
pub mod filter;
pub mod governance;
pub mod json;
pub mod log;
pub mod manifest;
pub mod memo;
pub mod panic;
mod plugin;

pub use bindings::exports::terrane::types::plugin::Info;
pub use bindings::terrane::types::common::{CallContext, Granularity, Issue, LogicalType, PluginError};
pub use plugin::{API, PluginInfo};
