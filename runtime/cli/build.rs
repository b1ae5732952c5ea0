//! Sets the linker arguments of the `terrane` binary.
//!
//! In: the target and `DUCKDB_LIB_DIR`. Out: two search paths for libduckdb: `lib/` next to the binary, where it is
//! shipped, and the prepared folder of the clone, for development; and compressed line tables, which make the debug
//! binary smaller by a third. Deliberately absent: checking that the library exists; the warehouse's build script does.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // Backtraces read zlib, and both common linkers write it.
        println!("cargo::rustc-link-arg=-Wl,--compress-debug-sections=zlib");
    }
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
