//! Collects the licenses of all crates that the release archive contains.
//!
//! In: the dependency graph of cargo and the sources of each crate. Out: one text. It lists crates with their licenses,
//! and each license text once with the crates to which it belongs. Not here: dependencies of tests and of build
//! scripts, which are not shipped, and opinions about licenses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::context::Context;

/// The packages whose dependencies are collected: the program, and the plugins whose components are shipped.
const PROGRAM: &str = "terrane-cli";
const PLUGINS: &str = "plugins";

/// The license of the prebuilt libduckdb, which does not come from a crate.
const DUCKDB_LICENSE: &str = include_str!("../../licenses/duckdb.txt");

/// The first parts of the names of license files, in lower case.
const NAMES: [&str; 6] = ["license", "licence", "copying", "notice", "copyright", "unlicense"];
/// The largest depth of folders in a crate in which licenses of C libraries are searched for.
const MAX_DEPTH: usize = 3;

struct Package {
    title: String,
    license: String,
    folder: PathBuf,
}

/// Returns the notices for the program and the first-party components.
pub(super) fn text(context: &Context) -> Result<String> {
    let metadata = metadata(context)?;
    let packages = shipped(&metadata, &context.root)?;
    let mut texts: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    texts.entry(DUCKDB_LICENSE.to_owned()).or_default().insert(format!("libduckdb {}", crate::duckdb::VERSION));
    let mut list = String::new();
    for (package, license) in crate::playground::licenses(context)? {
        list += &format!("{package}: MIT\n");
        texts.entry(license).or_default().insert(package);
    }
    let mut without_text = Vec::new();
    for package in &packages {
        list += &format!("{}: {}\n", package.title, package.license);
        let found = license_texts(&package.folder, MAX_DEPTH)?;
        if found.is_empty() {
            without_text.push(package.title.as_str());
        }
        for text in found {
            texts.entry(text).or_default().insert(package.title.clone());
        }
    }
    Ok(format(&list, &without_text, &texts))
}

fn format(list: &str, without_text: &[&str], texts: &BTreeMap<String, BTreeSet<String>>) -> String {
    let rule = "=".repeat(80);
    let mut text = format!("Terrane contains the following software, under the licenses named here.\n\n{list}\n");
    if !without_text.is_empty() {
        text += &format!("The sources of these contain no license text of their own: {}.\n\n", without_text.join(", "));
    }
    for (license, owners) in texts {
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        text += &format!("{rule}\n{}\n{rule}\n{}\n\n", owners.join(", "), license.trim_end());
    }
    text
}

fn metadata(context: &Context) -> Result<Value> {
    let host = context.compiler()?.host;
    let mut command = context.cargo();
    command.args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &host]);
    let output = command.stderr(Stdio::inherit()).output().context("starting cargo")?;
    if !output.status.success() {
        bail!("`cargo metadata` ended with {}", output.status);
    }
    serde_json::from_slice(&output.stdout).context("reading the output of `cargo metadata`")
}

/// Returns the third-party packages that are part of the program and the components, ordered by name.
fn shipped(metadata: &Value, root: &Path) -> Result<Vec<Package>> {
    let packages = list(metadata, "packages")?;
    let id = |package: &Value| package["id"].as_str().unwrap_or_default().to_owned();
    let is_root = |package: &&Value| {
        let is_plugin = folder(package).is_some_and(|folder| folder.starts_with(root.join(PLUGINS)));
        package["name"] == PROGRAM || is_plugin
    };
    let mut waiting: Vec<String> = packages.iter().filter(is_root).map(id).collect();
    let nodes = list(&metadata["resolve"], "nodes")?;
    let mut reached = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        if reached.insert(next.clone()) {
            let node = nodes.iter().find(|node| node["id"] == next.as_str());
            waiting.extend(node.map(normal_dependencies).unwrap_or_default());
        }
    }
    let is_foreign = |package: &&Value| !package["source"].is_null() && reached.contains(&id(package));
    packages.iter().filter(is_foreign).map(package).collect()
}

/// Returns the ids of the dependencies that become part of the package. Dependencies of tests and build scripts do not.
fn normal_dependencies(node: &Value) -> Vec<String> {
    let is_normal = |dependency: &&Value| {
        let kinds = dependency["dep_kinds"].as_array();
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"].is_null()))
    };
    let dependencies = node["deps"].as_array().into_iter().flatten();
    dependencies.filter(is_normal).filter_map(|dependency| dependency["pkg"].as_str()).map(str::to_owned).collect()
}

fn package(package: &Value) -> Result<Package> {
    let text = |name: &str| package[name].as_str();
    let name = text("name").context("a package without a name")?;
    let license = text("license").or(text("license_file")).unwrap_or("see its license text");
    Ok(Package {
        title: format!("{name} {}", text("version").unwrap_or_default()),
        license: license.to_owned(),
        folder: folder(package).with_context(|| format!("{name} has no folder"))?,
    })
}

fn folder(package: &Value) -> Option<PathBuf> {
    Some(Path::new(package["manifest_path"].as_str()?).parent()?.to_path_buf())
}

fn list<'v>(value: &'v Value, name: &str) -> Result<&'v Vec<Value>> {
    value[name].as_array().with_context(|| format!("`cargo metadata` does not report {name}"))
}

/// Returns the license texts in a folder. For libraries in the folder, also returns those in the folders below.
fn license_texts(folder: &Path, depth: usize) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        if path.is_dir() {
            if depth > 0 && name != "target" {
                texts.extend(license_texts(&path, depth - 1)?);
            }
        } else if NAMES.iter().any(|known| name.starts_with(known)) && !name.ends_with(".rs") {
            // A license text in a different encoding is included as well.
            texts.push(String::from_utf8_lossy(&fs::read(&path)?).replace("\r\n", "\n"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_shipped_packages_of_others_are_listed() {
        let named = |name: &str, source: Value, manifest: &str| json!({"id": name, "name": name, "version": "1.0.0", "license": "MIT", "source": source, "manifest_path": manifest});
        let registry = json!("registry");
        let kind = |package: &str, kind: Value| json!({"pkg": package, "dep_kinds": [{"kind": kind}]});
        let metadata = json!({
            "packages": [
                named(PROGRAM, Value::Null, "/w/runtime/cli/Cargo.toml"),
                named("dialect-x", Value::Null, "/w/plugins/dialect-x/Cargo.toml"),
                named("used", registry.clone(), "/r/used/Cargo.toml"),
                named("indirect", registry.clone(), "/r/indirect/Cargo.toml"),
                named("guest", registry.clone(), "/r/guest/Cargo.toml"),
                named("tests", registry.clone(), "/r/tests/Cargo.toml"),
                named("builds", registry, "/r/builds/Cargo.toml"),
            ],
            "resolve": {"nodes": [
                {"id": PROGRAM, "deps": [kind("used", Value::Null), kind("tests", json!("dev")), kind("builds", json!("build"))]},
                {"id": "used", "deps": [kind("indirect", Value::Null)]},
                {"id": "dialect-x", "deps": [kind("guest", Value::Null)]},
            ]},
        });
        let packages = shipped(&metadata, Path::new("/w")).unwrap();
        let titles: Vec<_> = packages.iter().map(|package| package.title.as_str()).collect();
        assert_eq!(titles, ["used 1.0.0", "indirect 1.0.0", "guest 1.0.0"]);
        assert!(shipped(&json!({}), Path::new("/w")).is_err());
    }

    #[test]
    fn notices_of_this_workspace_contain_crates_and_libraries() {
        let text = text(&Context::discover().unwrap()).unwrap();
        for expected in
            ["libduckdb 1.", "\naxum 0.", "\nwasmtime 48.", "\nwit-bindgen 0.", "Apache License", "Stichting DuckDB"]
        {
            assert!(text.contains(expected), "{expected}");
        }
        // criterion is a tool of the tests, which is not shipped.
        assert!(!text.contains("\ncriterion 0."));
    }

    #[test]
    fn license_texts_of_libraries_inside_are_found() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("src/lib")).unwrap();
        for (name, text) in [("LICENSE-MIT", "one\r\n"), ("src/lib/COPYING", "two"), ("src/license.rs", "code")] {
            fs::write(folder.path().join(name), text).unwrap();
        }
        let mut texts = license_texts(folder.path(), MAX_DEPTH).unwrap();
        texts.sort();
        assert_eq!(texts, ["one\n", "two"]);
    }

    #[test]
    fn equal_text_is_written_once() {
        let owners = BTreeSet::from(["a 1".to_owned(), "b 2".to_owned()]);
        let text = format("a 1: MIT\nb 2: MIT\n", &["c 3"], &BTreeMap::from([("The license".to_owned(), owners)]));
        assert_eq!(text.matches("The license").count(), 1);
        assert!(text.contains("a 1, b 2\n") && text.contains("no license text of their own: c 3."));
    }
}
