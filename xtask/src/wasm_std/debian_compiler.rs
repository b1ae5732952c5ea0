//! Prepares a second compiler for guests only: Debian 12's rustc-web with its own sources.
//!
//! In: the machine's package sources. Out: a compiler in the cache, with the guests' standard library built into it.
//! The two packages always have the same version, so this source works even if the sources of the workspace's compiler
//! are not available. Not here: installing packages, using this compiler for the host, and pinned versions, because apt
//! checks every package against its signed lists.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use super::apt::PrivateApt;
use super::{GuestToolchain, SecondCompiler, build, has_standard_library, libraries};
use crate::archive::extract_debian_package;
use crate::context::{Compiler, Context};

const COMPILER: &str = "rustc-web";
const SOURCES: &str = "rust-web-src";

/// Returns the toolchain; `None` if no earlier run has unpacked it.
pub(super) fn present(context: &Context, compiler: &Compiler) -> Option<GuestToolchain> {
    let root = root(context);
    let linker = linker(compiler);
    (has_standard_library(&root.join("usr")) && linker.is_file()).then(|| toolchain(&root, linker))
}

pub(super) fn prepare(context: &Context, compiler: &Compiler) -> Result<GuestToolchain> {
    let linker = linker(compiler);
    if !linker.is_file() {
        bail!("the toolchain does not contain a linker for WebAssembly ({})", linker.display());
    }
    let root = root(context);
    let partial = root.with_extension(format!("unpacking-{}", std::process::id()));
    let prepared = unpack(&partial).and_then(|library| {
        write_wrapper(&partial)?;
        build::compile(context, &library, Some(&wrapper(&partial)), &libraries(&partial.join("usr")))
    });
    if let Err(error) = prepared {
        let _ = fs::remove_dir_all(&partial);
        return Err(error);
    }
    if root.exists() {
        fs::remove_dir_all(&root)?;
    }
    fs::rename(&partial, &root)?;
    Ok(toolchain(&root, linker))
}

fn root(context: &Context) -> PathBuf {
    context.cache.join(COMPILER)
}

fn toolchain(root: &Path, linker: PathBuf) -> GuestToolchain {
    GuestToolchain { sysroot: None, second_compiler: Some(SecondCompiler { rustc: wrapper(root), linker }) }
}

/// Returns the linker of the workspace's toolchain, because Debian's compiler contains none.
fn linker(compiler: &Compiler) -> PathBuf {
    compiler.sysroot.join("lib/rustlib").join(&compiler.host).join("bin/rust-lld")
}

/// Unpacks the compiler and the sources, and returns the folder of the standard library.
fn unpack(root: &Path) -> Result<PathBuf> {
    println!("      fetching {COMPILER} and {SOURCES} (140 MB) …");
    let apt = PrivateApt::updated(root.join("apt"))?;
    let version = apt.candidate(COMPILER)?;
    if apt.candidate(SOURCES)? != version {
        bail!("{COMPILER} and {SOURCES} have different versions in the package sources of this machine");
    }
    for package in apt.download(&[COMPILER, SOURCES])? {
        let is_sources = package.file_name().is_some_and(|name| name.to_string_lossy().starts_with(SOURCES));
        // Only the library's folder is unpacked, because guests do not need the compiler's own sources (250 MB).
        let members = if is_sources { vec![format!("./{}", library_folder(&version))] } else { vec![] };
        extract_debian_package(&package, &members, root)?;
    }
    fs::remove_dir_all(root.join("apt"))?;
    Ok(root.join(library_folder(&version)))
}

/// Returns the folder of a version's sources: `rustc-1.96.0` for `1.96.0+dfsg1-1~deb12u2`.
fn library_folder(version: &str) -> String {
    let rust = version.split(['+', '-', '~']).next().unwrap_or(version);
    format!("usr/src/rustc-{rust}/library")
}

fn wrapper(root: &Path) -> PathBuf {
    root.join("rustc")
}

/// Writes a script that starts the unpacked compiler with its libraries, independent of the path of the cache.
fn write_wrapper(root: &Path) -> Result<()> {
    let folders = fs::read_dir(root.join("usr/lib"))?.flatten().map(|folder| folder.path());
    let driver = folders
        .filter(|folder| folder.is_dir())
        .find(|folder| has_driver(folder))
        .and_then(|folder| Some(folder.file_name()?.to_string_lossy().into_owned()))
        .context("the unpacked compiler does not contain librustc_driver")?;
    let script = format!(
        "#!/bin/sh\n\
         here=$(cd \"$(dirname \"$0\")\" && pwd)\n\
         export LD_LIBRARY_PATH=\"$here/usr/lib/{driver}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}\"\n\
         exec \"$here/usr/bin/rustc\" \"$@\"\n"
    );
    let path = wrapper(root);
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(())
}

fn has_driver(folder: &Path) -> bool {
    let Ok(files) = fs::read_dir(folder) else { return false };
    files.flatten().any(|file| file.file_name().to_string_lossy().starts_with("librustc_driver-"))
}

#[cfg(test)]
mod tests {
    use super::library_folder;

    #[test]
    fn folder_of_sources_has_the_version_of_rust() {
        assert_eq!(library_folder("1.96.0+dfsg1-1~deb12u2"), "usr/src/rustc-1.96.0/library");
    }
}
