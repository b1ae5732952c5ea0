//! The paths of the clone, of the prepared files and of the cache, and the compiler and members of the workspace.
//!
//! In: the environment that cargo gives to a program. Out: absolute paths. Not here: creating folders. Each step
//! creates the folders to which it writes.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// The paths and commands that all steps share.
pub(crate) struct Context {
    /// The root of the clone.
    pub(crate) root: PathBuf,
    /// The cache, outside the clone and shared by all clones: `$XDG_CACHE_HOME/terrane`.
    pub(crate) cache: PathBuf,
    /// `.prepared/` in the clone, which contains the files that `cargo build` needs.
    pub(crate) prepared: PathBuf,
}

/// A workspace member as `cargo metadata` describes it.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    pub(crate) is_cdylib: bool,
}

/// The compiler that builds the host side of the workspace.
pub(crate) struct Compiler {
    pub(crate) version: String,
    pub(crate) commit_hash: String,
    pub(crate) host: String,
    pub(crate) sysroot: PathBuf,
}

impl Context {
    pub(crate) fn discover() -> Result<Self> {
        let manifest =
            env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
        let root = manifest.parent().context("xtask/ has no parent folder")?.to_path_buf();
        let cache = match env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty()) {
            Some(folder) => PathBuf::from(folder),
            None => env::home_dir().context("neither XDG_CACHE_HOME nor HOME is set")?.join(".cache"),
        }
        .join("terrane");
        let prepared = root.join(".prepared");
        Ok(Self { root, cache, prepared })
    }

    /// Returns the folder of downloaded archives. Each archive is verified before it gets its final name.
    pub(crate) fn downloads(&self) -> PathBuf {
        self.cache.join("downloads")
    }

    /// Returns a command for the cargo that runs this program, in the clone. The command lacks the variables that
    /// `cargo run` sets, because they would make build scripts run again.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        for (name, _) in env::vars_os() {
            if is_set_by_cargo_run(&name.to_string_lossy()) {
                command.env_remove(name);
            }
        }
        command
    }

    /// Returns the target folder of the host: `CARGO_TARGET_DIR` or `target/` in the clone.
    pub(crate) fn target(&self) -> Result<PathBuf> {
        let metadata = self.metadata()?;
        Ok(PathBuf::from(
            metadata["target_directory"].as_str().context("`cargo metadata` does not report a target folder")?,
        ))
    }

    pub(crate) fn members(&self) -> Result<Vec<Member>> {
        let metadata = self.metadata()?;
        let packages = metadata["packages"].as_array().context("`cargo metadata` does not list packages")?;
        packages.iter().map(member).collect()
    }

    pub(crate) fn compiler(&self) -> Result<Compiler> {
        let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let verbose = output(Command::new(&rustc).arg("-vV").current_dir(&self.root))?;
        let sysroot = output(Command::new(&rustc).args(["--print", "sysroot"]).current_dir(&self.root))?;
        let field = |name: &str| {
            verbose
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .map(str::to_owned)
                .with_context(|| format!("`rustc -vV` does not print {name}"))
        };
        Ok(Compiler {
            version: field("release")?,
            commit_hash: field("commit-hash")?,
            host: field("host")?,
            sysroot: PathBuf::from(sysroot.trim()),
        })
    }

    fn metadata(&self) -> Result<Value> {
        let text = output(self.cargo().args(["metadata", "--no-deps", "--format-version", "1"]))?;
        serde_json::from_str(&text).context("reading what `cargo metadata` printed")
    }
}

/// Returns a path relative to the clone if it is inside, for messages.
pub(crate) fn shown<'a>(context: &Context, path: &'a Path) -> std::path::Display<'a> {
    path.strip_prefix(&context.root).unwrap_or(path).display()
}

fn is_set_by_cargo_run(name: &str) -> bool {
    const PREFIXES: [&str; 4] = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_"];
    PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || name == "CARGO_PRIMARY_PACKAGE"
}

fn member(package: &Value) -> Result<Member> {
    let text = |name: &str| package[name].as_str().with_context(|| format!("a package without {name}"));
    let manifest = PathBuf::from(text("manifest_path")?);
    let targets = package["targets"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_cdylib = targets
        .iter()
        .filter_map(|target| target["crate_types"].as_array())
        .flatten()
        .any(|crate_type| crate_type == "cdylib");
    Ok(Member {
        name: text("name")?.to_owned(),
        folder: manifest.parent().context("a manifest without a folder")?.to_path_buf(),
        is_cdylib,
    })
}

fn output(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::is_set_by_cargo_run;

    #[test]
    fn only_variables_of_cargo_run_are_removed() {
        assert!(is_set_by_cargo_run("CARGO_PKG_NAME"));
        assert!(is_set_by_cargo_run("CARGO_MANIFEST_DIR"));
        assert!(!is_set_by_cargo_run("CARGO_TARGET_DIR"));
        assert!(!is_set_by_cargo_run("CARGO_HOME"));
    }
}
