//! The borders between the rooms, checked: which crate may use which, and what the compiler's
//! sources may not reach for.
//!
//! In: the dependency graph as `cargo tree` prints it, and the sources of the runtime. Out: one
//! failure that lists every crossing. Absent on purpose: opinions; each rule stands in
//! `runtime/ARCHITECTURE.md`, and each checking function has a case in which it must object.

mod dependencies;
mod modules;
mod sources;

use std::path::PathBuf;

/// The root of the workspace.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("tests/golden lies two folders below the root").to_path_buf()
}

fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "{} crossed borders:\n  {}", violations.len(), violations.join("\n  "));
}
