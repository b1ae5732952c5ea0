//! Embeds the files of the page at `/graphql` in the program.
//!
//! In: `.prepared/lib/graphiql/`, which `cargo xtask setup` fills. Out: `playground.rs` in the output folder, with all
//! files or with none. The build does not fail if files are missing, since the server works without the page.
#![allow(clippy::disallowed_methods, reason = "a build script is configured by its environment")]

use std::path::{Path, PathBuf};
use std::{env, fs, io};

const FILES: [&str; 4] = ["graphiql.css", "graphiql.js", "react-dom.js", "react.js"];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    let (Some(package), Some(out)) = (env::var_os("CARGO_MANIFEST_DIR"), env::var_os("OUT_DIR")) else {
        return Err(io::Error::other("cargo sets the folders of a package"));
    };
    let (package, out) = (PathBuf::from(package), PathBuf::from(out));
    let prepared = package.join("../../.prepared/lib");
    // The parent folder is watched, because it exists after any set-up. If Cargo watched a missing folder, it would run
    // this script in every build.
    if prepared.is_dir() {
        println!("cargo::rerun-if-changed={}", prepared.display());
    }
    let copied = copy(&prepared.join("graphiql"), &out);
    fs::write(out.join("playground.rs"), list(if copied.is_ok() { &FILES } else { &[] }))
}

/// Copies the files to the output folder. The program includes the copies, because clones of the repository can share a
/// target folder, and each clone has the original files at a different path.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    for name in FILES {
        fs::copy(from.join(format!("{name}.gz")), to.join(format!("{name}.gz")))?;
    }
    Ok(())
}

fn list(files: &[&str]) -> String {
    let mut text = String::from("const PACKAGED: &[Packaged] = &[\n");
    for name in files {
        let bytes = format!("include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{name}.gz\"))");
        text += &format!("    Packaged {{ name: \"{name}\", gzip: {bytes} }},\n");
    }
    text + "];\n"
}
