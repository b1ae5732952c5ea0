//! Adds the search path of libduckdb to the programs of a test crate, so that they run without cargo. Several crates
//! use this build script.
//!
//! In: `DUCKDB_LIB_DIR`. Out: one run-time search path. Not here: the layout of the release, because tests run in a
//! clone.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=../build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if let Some(folder) = library_folder() {
        // Clones may share a target folder. If the clone that built this program is deleted, the script runs again.
        println!("cargo::rerun-if-changed={}", folder.display());
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
}

/// Returns the absolute path of `DUCKDB_LIB_DIR`. A relative path starts at the workspace's root, two folders up.
fn library_folder() -> Option<PathBuf> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    Some(package.ancestors().nth(2)?.join(env::var_os("DUCKDB_LIB_DIR")?))
}
