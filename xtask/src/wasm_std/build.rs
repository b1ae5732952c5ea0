//! Builds the guests' standard library from its sources, into a private sysroot.
//!
//! In: the `library` folder of the compiler's exact version. Out: a sysroot in the cache, keyed by the compiler's
//! commit and shared by all clones. Not here: changes to a toolchain. The variable `__CARGO_TESTS_ONLY_SRC_ROOT` sets
//! the folder of the sources for cargo.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::{TARGET, has_standard_library, libraries};
use crate::command::run_shown;
use crate::context::{Compiler, Context};

const EMPTY_MANIFEST: &str = "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[workspace]\n\n[profile.release]\npanic = \"abort\"\ndebug = false\n";

pub(super) fn private_sysroot(context: &Context, key: &str) -> PathBuf {
    context.cache.join("wasm-std").join(key)
}

/// Returns whether the sysroot is complete: it has the library, and a link to the folder of the host with the linker.
pub(super) fn is_usable(sysroot: &Path, host: &str) -> bool {
    has_standard_library(sysroot) && sysroot.join("lib/rustlib").join(host).is_dir()
}

/// Builds the library with the workspace's compiler into a new sysroot.
pub(super) fn build_sysroot(context: &Context, compiler: &Compiler, library: &Path) -> Result<PathBuf> {
    let sysroot = private_sysroot(context, &compiler.commit_hash);
    let laid_out = sysroot.with_extension(format!("building-{}", std::process::id()));
    compile(context, library, None, &libraries(&laid_out))?;
    let host = Path::new("lib/rustlib").join(&compiler.host);
    std::os::unix::fs::symlink(compiler.sysroot.join(&host), laid_out.join(&host))?;
    if sysroot.exists() {
        fs::remove_dir_all(&sysroot)?;
    }
    fs::rename(&laid_out, &sysroot)?;
    Ok(sysroot)
}

/// Compiles the library and copies its crates to `destination`. Uses the compiler `rustc` if it is given.
pub(super) fn compile(context: &Context, library: &Path, rustc: Option<&Path>, destination: &Path) -> Result<()> {
    let scratch = context.cache.join(format!("build-std-{}", std::process::id()));
    fs::create_dir_all(scratch.join("src"))?;
    fs::write(scratch.join("Cargo.toml"), EMPTY_MANIFEST)?;
    fs::write(scratch.join("src/lib.rs"), "#![no_std]\n")?;

    let target = scratch.join("target");
    let mut command = context.cargo();
    command
        .current_dir(&scratch)
        .args(["build", "--quiet", "--release", "-Zbuild-std=std,panic_abort", "--target", TARGET, "--target-dir"])
        .arg(&target)
        .env("RUSTC_BOOTSTRAP", "1")
        .env("__CARGO_TESTS_ONLY_SRC_ROOT", library)
        .env_remove("RUSTFLAGS")
        // A component must not contain the path of the sources on this machine.
        .env("CARGO_ENCODED_RUSTFLAGS", format!("--remap-path-prefix={}=library", library.display()));
    if let Some(rustc) = rustc {
        command.env("RUSTC", rustc);
    }
    println!("      compiling it once (under a minute) …");
    let built = run_shown(&mut command)
        .context("building the standard library")
        .and_then(|()| collect(&target.join(TARGET).join("release/deps"), destination));
    fs::remove_dir_all(&scratch)?;
    built
}

/// Copies the library's crates, without the empty crate that the build compiles in addition.
fn collect(built: &Path, libraries: &Path) -> Result<()> {
    fs::create_dir_all(libraries)?;
    let mut copied = 0;
    for file in fs::read_dir(built)? {
        let file = file?;
        let name = file.file_name().to_string_lossy().into_owned();
        if name.ends_with(".rlib") && !name.starts_with("libempty-") {
            fs::copy(file.path(), libraries.join(&name))?;
            copied += 1;
        }
    }
    if copied == 0 {
        bail!("the build left no .rlib in {}", built.display());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_crates_of_the_library_are_collected() {
        let folder = tempfile::tempdir().unwrap();
        let (built, libraries) = (folder.path().join("deps"), folder.path().join("lib"));
        fs::create_dir_all(&built).unwrap();
        for name in ["libstd-1.rlib", "libstd-1.rmeta", "libempty-1.rlib"] {
            fs::write(built.join(name), "").unwrap();
        }
        collect(&built, &libraries).unwrap();
        let names: Vec<_> = fs::read_dir(&libraries).unwrap().map(|file| file.unwrap().file_name()).collect();
        assert_eq!(names, ["libstd-1.rlib"]);
    }

    #[test]
    fn sysroot_without_its_toolchain_is_not_usable() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(libraries(folder.path())).unwrap();
        fs::write(libraries(folder.path()).join("libstd-1.rlib"), "").unwrap();
        let host = folder.path().join("lib/rustlib/some-host");
        std::os::unix::fs::symlink(folder.path().join("gone"), &host).unwrap();
        assert!(!is_usable(folder.path(), "some-host"));
    }
}
