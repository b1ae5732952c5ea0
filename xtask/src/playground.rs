//! Prepares GraphiQL, the page at `/graphql`, for the build of the server.
//!
//! In: npm packages with pinned checksums, whose files a browser can load without bundling. Out: compressed files in
//! `.prepared/lib/graphiql/`. The folder is beside the library of DuckDB, because runtime/server/build.rs watches it
//! there. Errors are reported and ignored, because the server works without the page; only `cargo xtask dist` fails
//! without it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::archive::extract_member;
use crate::checksum;
use crate::command::run_quiet;
use crate::context::{Context, shown};
use crate::download::{Download, Origin};

const LIMIT: Duration = Duration::from_secs(60);
const STAMP: &str = "stamp";

struct Package {
    download: Download,
    /// The name of the package's license text among the prepared files.
    license: &'static str,
    /// The files, as (path in the package, name on the page).
    files: &'static [(&'static str, &'static str)],
}

/// GraphiQL 3 is the last version with a build that a browser can load without bundling. It needs React 18.
const PACKAGES: [Package; 3] = [
    Package {
        download: Download {
            origin: Origin::Npm("graphiql@3.9.0"),
            file_name: "graphiql-3.9.0.tgz",
            sha256: "d955c99ae100ed5facb45f4f94d1a8c0a156f81106434f0e35b0dcb0be574f27",
        },
        license: "LICENSE-graphiql",
        files: &[("package/graphiql.min.js", "graphiql.js"), ("package/graphiql.min.css", "graphiql.css")],
    },
    Package {
        download: Download {
            origin: Origin::Npm("react@18.3.1"),
            file_name: "react-18.3.1.tgz",
            sha256: "8d9bed01a672e7eaf387942d781ad47c6a43089a30a0306060f9fd5ac7870347",
        },
        license: "LICENSE-react",
        files: &[("package/umd/react.production.min.js", "react.js")],
    },
    Package {
        download: Download {
            origin: Origin::Npm("react-dom@18.3.1"),
            file_name: "react-dom-18.3.1.tgz",
            sha256: "031d4427a99f2f3f6cac18bbbf308594a67e4f47d10f4896fdec446505b040e0",
        },
        license: "LICENSE-react-dom",
        files: &[("package/umd/react-dom.production.min.js", "react-dom.js")],
    },
];

/// Prepares the files, unless they are already prepared.
pub(crate) fn prepare(context: &Context) {
    let folder = folder(context);
    if is_prepared(&folder) {
        println!("ok    GraphiQL in {}", shown(context, &folder));
        return;
    }
    match install(context, &folder) {
        Ok(()) => println!("ok    GraphiQL in {}", shown(context, &folder)),
        Err(error) => {
            let by_hand = PACKAGES.map(|package| format!("\n  {}", package.download.by_hand(&context.downloads())));
            println!("note  GraphiQL is missing, so `/graphql` shows no page: {error:#}\nby hand:{}", by_hand.concat());
        }
    }
}

/// Fails if the files of GraphiQL are not prepared, so that every release contains its page.
pub(crate) fn require(context: &Context) -> Result<()> {
    if is_prepared(&folder(context)) {
        return Ok(());
    }
    bail!("GraphiQL is not prepared: run `cargo xtask setup` where npm reaches its registry")
}

/// Returns each package with its license text, for the notices of a program; empty if the files are not prepared.
pub(crate) fn licenses(context: &Context) -> Result<Vec<(String, String)>> {
    let folder = folder(context);
    if !is_prepared(&folder) {
        return Ok(Vec::new());
    }
    let license = |package: &Package| {
        let text = fs::read_to_string(folder.join(package.license))?;
        Ok((package.download.file_name.trim_end_matches(".tgz").to_owned(), text))
    };
    PACKAGES.iter().map(license).collect()
}

fn folder(context: &Context) -> PathBuf {
    context.prepared.join("lib").join("graphiql")
}

/// Prepares all files in a temporary folder, and then moves the complete folder to its final path.
fn install(context: &Context, folder: &Path) -> Result<()> {
    let downloads = context.downloads();
    fs::create_dir_all(&downloads)?;
    let made = folder.with_file_name(format!(".graphiql-{}", std::process::id()));
    fs::create_dir_all(&made)?;
    let installed = unpack_all(&downloads, &made).and_then(|()| {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        fs::rename(&made, folder).context("moving the files")
    });
    if installed.is_err() {
        fs::remove_dir_all(&made)?;
    }
    installed
}

fn unpack_all(downloads: &Path, folder: &Path) -> Result<()> {
    for package in &PACKAGES {
        let archive = package.download.obtain(downloads)?;
        fs::rename(extract_member(&archive, "package/LICENSE", folder)?, folder.join(package.license))?;
        for (member, name) in package.files {
            let file = folder.join(name);
            fs::rename(extract_member(&archive, member, folder)?, &file)?;
            // gzip omits the time and the name, so that equal files have equal compressed bytes.
            run_quiet(Command::new("gzip").args(["-9", "-n"]).arg(&file), LIMIT)?;
        }
    }
    fs::remove_dir_all(folder.join("package"))?;
    fs::write(folder.join(STAMP), stamp(folder)?)?;
    Ok(())
}

/// Returns the checksums of the packages, followed by the checksums of the files.
fn stamp(folder: &Path) -> Result<String> {
    let mut lines: Vec<String> = PACKAGES.iter().map(|package| package.download.sha256.to_owned()).collect();
    for (_, name) in PACKAGES.iter().flat_map(|package| package.files) {
        lines.push(checksum::sha256(&folder.join(format!("{name}.gz")))?);
    }
    Ok(lines.join("\n") + "\n")
}

fn is_prepared(folder: &Path) -> bool {
    let found = fs::read_to_string(folder.join(STAMP)).ok();
    found.is_some() && found == stamp(folder).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_file_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!is_prepared(folder.path()));
        for (_, name) in PACKAGES.iter().flat_map(|package| package.files) {
            fs::write(folder.path().join(format!("{name}.gz")), name).unwrap();
        }
        fs::write(folder.path().join(STAMP), stamp(folder.path()).unwrap()).unwrap();
        assert!(is_prepared(folder.path()));
        fs::write(folder.path().join("graphiql.js.gz"), "other").unwrap();
        assert!(!is_prepared(folder.path()));
    }

    #[test]
    fn every_pin_is_a_sha256() {
        for package in &PACKAGES {
            let pin = package.download.sha256;
            assert!(pin.len() == 64 && pin.bytes().all(|byte| byte.is_ascii_hexdigit()), "{pin}");
        }
    }
}
