//! Finds the sources of the standard library for exactly the compiler's version.
//!
//! In: the compiler. Out: a `library` folder with the lock file that cargo needs. The toolchain's own `rust-src` comes
//! first, then Debian's package of the same version, unpacked without installing it. Not here: sources of other
//! versions, which would not compile, and git.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};

use super::apt;
use crate::archive::extract_debian_package;
use crate::checksum;
use crate::context::{Compiler, Context};

/// A package of the Debian archive with the sources of one version of Rust.
struct Package {
    rust: &'static str,
    /// The path in the archive. It is the same for every machine, because the package is `Architecture: all`.
    path: &'static str,
    sha256: &'static str,
}

/// The packages of the trixie-backports suite.
const PACKAGES: &[Package] = &[Package {
    rust: "1.95.0",
    path: "pool/main/r/rustc/rust-src_1.95.0+dfsg1-2~bpo13+1_all.deb",
    sha256: "7b76db5b880a77f9e52975d2baa6209d2f76d2c9c2789515c3088cb960e2c83b",
}];

pub(super) fn find(context: &Context, compiler: &Compiler) -> Result<PathBuf> {
    let own = compiler.sysroot.join("lib/rustlib/src/rust/library");
    if own.join("Cargo.lock").is_file() {
        return Ok(own);
    }
    let Some(package) = PACKAGES.iter().find(|package| package.rust == compiler.version) else {
        bail!(
            "the toolchain does not contain rust-src, and xtask/src/wasm_std/rust_src.rs pins no package of rust {}",
            compiler.version
        );
    };
    from_debian(context, package)
}

fn from_debian(context: &Context, package: &Package) -> Result<PathBuf> {
    let unpacked = context.cache.join("rust-src").join(package.rust);
    let inside = format!("usr/src/rustc-{}/library", package.rust);
    let library = unpacked.join(&inside);
    if library.join("Cargo.lock").is_file() {
        return Ok(library);
    }
    let deb = download(context, package)?;
    let partial = unpacked.with_extension(format!("unpacking-{}", std::process::id()));
    extract_debian_package(&deb, &[format!("./{inside}")], &partial)?;
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::rename(&partial, &unpacked)?;
    Ok(library)
}

fn download(context: &Context, package: &Package) -> Result<PathBuf> {
    let file_name = package.path.rsplit('/').next().context("a package path without a file name")?;
    let downloads = context.downloads();
    let deb = downloads.join(file_name);
    if checksum::is(&deb, package.sha256) {
        return Ok(deb);
    }
    fs::create_dir_all(&downloads)?;
    let partial = downloads.join(format!(".partial-{}.deb", std::process::id()));
    println!("      fetching {file_name} …");
    apt::download(&format!("{}{}", apt::archive()?, package.path), &partial)?;
    checksum::admit(&partial, package.sha256, &deb)?;
    Ok(deb)
}
