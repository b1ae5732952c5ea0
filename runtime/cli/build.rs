//! Sets the linker arguments of the `terrane` binary.
//!
//! In: the target and `DUCKDB_LIB_DIR`. Out: two search paths for libduckdb: `lib/` next to the binary, for shipped
//! programs, and the prepared folder of the clone, for development. On Linux the linker also compresses line tables and
//! relocations and merges functions with the same code, which makes the debug binary 40 % smaller. Not here: a check
//! that the library exists, which is in the build script of the warehouse crate.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=DUCKDB_LIB_DIR");
    if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        // All common linkers can compress sections with zlib, and backtraces can read such sections.
        // `--icf=all` merges functions with the same code, as linkers of other platforms do by default.
        let compression = if links_with_lld() {
            "--icf=all,--compress-sections=.debug_[ailrs]*=zlib:6"
        } else {
            "--compress-debug-sections=zlib"
        };
        println!("cargo::rustc-link-arg=-Wl,-O2,{compression}");
        if has_packed_relocations() {
            println!("cargo::rustc-link-arg=-Wl,-z,pack-relative-relocs");
        }
    }
    if env::var_os("CARGO_FEATURE_BUNDLED").is_some() {
        return;
    }
    let beside =
        if env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("macos") { "@executable_path/lib" } else { "$ORIGIN/lib" };
    println!("cargo::rustc-link-arg=-Wl,-rpath,{beside}");
    // A program that `cargo xtask dist` ships must not contain a path of the machine that built it.
    println!("cargo::rerun-if-env-changed=TERRANE_SHIPPED");
    if env::var_os("TERRANE_SHIPPED").is_none()
        && let Some(folder) = library_folder()
    {
        // Clones may share a target folder. If the clone whose folder is linked was removed, this script runs again.
        println!("cargo::rerun-if-changed={}", folder.display());
        println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
    }
}

/// Returns whether the build uses the linker that comes with the compiler, which supports levels of compression. It is
/// the default linker of the target `x86_64-unknown-linux-gnu` only.
fn links_with_lld() -> bool {
    let is_default = env::var("TARGET").as_deref() == Ok("x86_64-unknown-linux-gnu");
    let flags = env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    is_default && env::var_os("RUSTC_LINKER").is_none() && !flags.contains("link")
}

/// Returns whether the program may contain packed relocations. Dynamic loaders support them since glibc 2.36, and
/// shipped programs must also run with older loaders. So the build must be a debug build for this machine, and this
/// machine must have glibc 2.36 or later.
fn has_packed_relocations() -> bool {
    let is_local = env::var("PROFILE").as_deref() == Ok("debug") && env::var("HOST") == env::var("TARGET");
    if !is_local || !links_with_lld() {
        return false;
    }
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let version = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let numbers = version.trim().strip_prefix("glibc ").and_then(|version| version.split_once('.'));
    let parsed = numbers.and_then(|(major, minor)| Some((major.parse::<u32>().ok()?, minor.parse::<u32>().ok()?)));
    parsed.is_some_and(|version| version >= (2, 36))
}

/// Returns `DUCKDB_LIB_DIR`, which is absolute or relative to the root of the workspace, two folders up.
fn library_folder() -> Option<PathBuf> {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?);
    Some(package.ancestors().nth(2)?.join(env::var_os("DUCKDB_LIB_DIR")?))
}
