//! Where the `terrane` binary looks for libduckdb when it starts.
//!
//! In: the target and `DUCKDB_LIB_DIR`. Out: two run-time search paths: `lib/` beside the binary,
//! which is how it is shipped, and the prepared folder of the clone, for development. Absent on
//! purpose: checking that the library is there; the warehouse's build script does.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    let beside =
        if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") { "@executable_path/lib" } else { "$ORIGIN/lib" };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{beside}");
    // A path of the machine that built it has no place in what `cargo xtask dist` ships.
    println!("cargo::rerun-if-env-changed=TERRANE_SHIPPED");
    if env::var_os("TERRANE_SHIPPED").is_none()
        && let Some(folder) = library_folder()
    {
        // Clones may share a target folder; where the one it was built in is gone, this runs again.
        println!("cargo::rerun-if-changed={}", folder.display());
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
}

/// `DUCKDB_LIB_DIR` is absolute, or counts from the workspace's root, two folders up.
fn library_folder() -> Option<PathBuf> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    Some(package.ancestors().nth(2)?.join(env::var_os("DUCKDB_LIB_DIR")?))
}
