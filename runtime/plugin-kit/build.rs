//! Embeds the SDK and the plugin contract, so that `terrane plugin new` needs no clone of Terrane.
//!
//! In: `sdk/` and `wit/` of the workspace. Out: `sdk_files.rs` in the build folder. It contains the path and the text
//! of each file, and the SDK's dependencies in the form that a crate outside the workspace needs.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files and folders that a copy of the SDK needs. The templates are embedded separately (`create`).
const ROOTS: [&str; 4] = ["sdk/src", "sdk/README.md", "wit", "LICENSE"];

fn main() -> io::Result<()> {
    // The path is read at run time, because clones that share a target folder also share the compiled script.
    let package = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    let workspace = package.join("../..").canonicalize()?;
    let mut files = Vec::new();
    for root in ROOTS {
        println!("cargo:rerun-if-changed=../../{root}");
        collect(&workspace.join(root), &mut files)?;
    }
    files.sort();
    let mut text = "pub(crate) const FILES: &[(&str, &str)] = &[\n".to_owned();
    for file in &files {
        let name = file.strip_prefix(&workspace).map_err(io::Error::other)?;
        // The text is embedded instead of the path, which would be wrong in another clone that shares the target
        // folder.
        text += &format!("    ({:?}, {:?}),\n", name.display().to_string(), fs::read_to_string(file)?);
    }
    text += &format!("];\npub(crate) const DEPENDENCIES: &str = {:?};\n", dependencies(&workspace)?);
    let folder = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    fs::write(folder.join("sdk_files.rs"), text)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// Returns the SDK's dependencies with the versions of the workspace, one per line.
fn dependencies(workspace: &Path) -> io::Result<String> {
    println!("cargo:rerun-if-changed=../../Cargo.toml");
    println!("cargo:rerun-if-changed=../../sdk/Cargo.toml");
    let sdk = fs::read_to_string(workspace.join("sdk/Cargo.toml"))?;
    let versions = fs::read_to_string(workspace.join("Cargo.toml"))?;
    let names = section(&sdk, "[dependencies]").map(|line| line.strip_suffix(".workspace = true").unwrap_or(line));
    let mut lines = String::new();
    for name in names {
        let version =
            section(&versions, "[workspace.dependencies]").find(|line| line.starts_with(&format!("{name} = ")));
        let version =
            version.ok_or_else(|| io::Error::other(format!("sdk/Cargo.toml: unknown dependency `{name}`")))?;
        lines += &format!("{version}\n");
    }
    Ok(lines)
}

/// Returns the lines of one table of a manifest, without comments.
fn section<'a>(manifest: &'a str, header: &str) -> impl Iterator<Item = &'a str> {
    let lines = manifest.lines().map(str::trim).skip_while(move |line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#'))
}
