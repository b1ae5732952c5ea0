//! The kit for plugin authors: everything that `terrane plugin` does, from an empty folder to a signed component.
//!
//! In: folders and files, as paths. Out: typed results, and [`KitError`] with a hint. Components run in the sandbox of
//! a server (`terrane_plugin_host::test_bench`). Not here: command-line arguments, printing and JSON of results (cli),
//! and the plugins that a server uses, which its project lists.

pub mod bench;
pub mod build;
pub mod case;
pub mod check;
mod component;
pub mod conformance;
mod contract;
pub mod create;
mod error;
mod files;
pub mod inspect;
pub mod run;
mod sdk;
pub mod sign;
pub mod test;
mod toolchain;

pub use error::{KitError, call_text};
