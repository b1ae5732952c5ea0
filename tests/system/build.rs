//! Where the system tests look for libduckdb when they run without cargo.
//!
//! In: `DUCKDB_LIB_DIR`. Out: one run-time search path. Absent on purpose: the shipped layout;
//! tests run in a clone.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if let Some(folder) = env::var_os("DUCKDB_LIB_DIR") {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", Path::new(&folder).display());
    }
}
