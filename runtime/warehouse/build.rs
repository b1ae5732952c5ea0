//! Checks that libduckdb exists before the crate is linked.
//!
//! In: `DUCKDB_LIB_DIR`, set by `.cargo/config.toml`: an absolute path, or a path relative to the workspace's root.
//! Out: the search paths for linking this crate and its dependents, and for the programs that cargo runs. If the
//! library is missing, an error message with the command to run. Not here: downloading libduckdb, which `cargo xtask
//! setup` does.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

fn main() -> ExitCode {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return ExitCode::SUCCESS;
    }
    let name =
        if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") { "libduckdb.dylib" } else { "libduckdb.so" };
    let folder = library_folder();
    println!("cargo::rerun-if-changed={}", folder.join(name).display());
    if !folder.join(name).is_file() {
        println!(
            "cargo::error={name} not found in {}: run `cargo xtask setup`, or build with `--features bundled`",
            folder.display()
        );
        return ExitCode::FAILURE;
    }
    // This link argument applies only to binaries of this package, such as its tests.
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
    match offer_to_cargo(&folder, name) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("cargo::error=linking {name} into the build folder failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the folder of the library. The variable is read when the script runs and not when it is compiled, because
/// several clones of the repository may share a target folder.
fn library_folder() -> PathBuf {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let workspace = package.ancestors().nth(2).unwrap_or(&package);
    workspace.join(env::var_os("DUCKDB_LIB_DIR").unwrap_or_default())
}

/// Makes the library available to the linker, `cargo test` and `cargo run` in every package that depends on this one,
/// including documentation tests. Cargo adds a search path to the path of the loader only if it is inside the target
/// folder.
fn offer_to_cargo(folder: &Path, name: &str) -> io::Result<()> {
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let link = out.join(name);
    match fs::remove_file(&link) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::os::unix::fs::symlink(folder.join(name), &link)?;
    println!("cargo::rustc-link-search=native={}", out.display());
    Ok(())
}
