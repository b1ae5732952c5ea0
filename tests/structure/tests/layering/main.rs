//! The borders between the crates: which crate may use which, and which phrases the sources of the product avoid.
//!
//! In: the dependency graph as `cargo tree` prints it, and the sources of the runtime. Out: one failure that lists
//! every violation. Deliberately absent: opinions; `runtime/ARCHITECTURE.md` states each rule, and each checking
//! function has a case with a violation.

mod dependencies;
mod modules;
mod phrases;
