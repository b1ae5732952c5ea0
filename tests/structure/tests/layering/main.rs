//! Checks the borders between the crates: which crate may use which, and which phrases the sources must not contain.
//!
//! In: the dependency graph that `cargo tree` prints, and the sources of the runtime. Out: one failure that lists every
//! violation. Not here: the reasons for the rules, which `runtime/ARCHITECTURE.md` states. Each checking function has a
//! case with a violation.

mod dependencies;
mod modules;
mod phrases;
