//! With which standard library a crate is built for the guests' target.
//!
//! In: the author's own compiler. Out: what cargo is told beside it. Where the toolchain lacks the target, the
//! sysroot that `cargo xtask setup` built for this very compiler serves, if it lies in the cache. Not here:
//! making one.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) const TARGET: &str = "wasm32-unknown-unknown";

/// Where guests find their standard library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StandardLibrary {
    OfTheToolchain,
    Sysroot(PathBuf),
    Missing,
}

impl StandardLibrary {
    /// What the compiler of a crate's folder has.
    pub(super) fn of(dir: &Path) -> StandardLibrary {
        let said = |arguments: &[&str]| {
            let output = Command::new("rustc").args(arguments).current_dir(dir).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        if said(&["--print", "sysroot"]).is_some_and(|sysroot| has_target(Path::new(&sysroot))) {
            return StandardLibrary::OfTheToolchain;
        }
        let version = said(&["-vV"]).unwrap_or_default();
        cache().and_then(|cache| prepared(&cache, &version)).map_or(StandardLibrary::Missing, StandardLibrary::Sysroot)
    }

    /// Only cargo's encoded form may hold paths with spaces, and it overrules the author's `RUSTFLAGS`.
    pub(super) fn configure(&self, command: &mut Command) {
        if let StandardLibrary::Sysroot(sysroot) = self {
            let flags = format!("--sysroot\u{1f}{}", sysroot.display());
            command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags);
        }
    }
}

/// What clones of Terrane share.
fn cache() -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "where set-up put it, on the author's machine; no setting")]
    let named = env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty());
    let folder = named.map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cache")))?;
    Some(folder.join("terrane"))
}

/// The whole sysroot for the compiler that says this of itself (`rustc -vV`).
fn prepared(cache: &Path, version: &str) -> Option<PathBuf> {
    let field = |name: &str| version.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    let (commit, host) = (field("commit-hash")?, field("host")?);
    let sysroot = cache.join("wasm-std").join(commit);
    (has_target(&sysroot) && sysroot.join("lib/rustlib").join(host).is_dir()).then_some(sysroot)
}

fn has_target(sysroot: &Path) -> bool {
    let files = fs::read_dir(sysroot.join("lib/rustlib").join(TARGET).join("lib")).into_iter().flatten().flatten();
    files.map(|file| file.file_name()).any(|name| name.to_string_lossy().starts_with("libstd-"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use super::*;

    #[test]
    fn a_sysroot_serves_its_own_compiler_once_it_is_whole() {
        const VERSION: &str = "rustc 1.95.0\nbinary: rustc\ncommit-hash: abc\nhost: x86_64-unknown-linux-gnu\n";
        let cache = tempfile::tempdir().unwrap();
        let sysroot = cache.path().join("wasm-std/abc");
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        fs::create_dir_all(&library).unwrap();
        assert_eq!(prepared(cache.path(), VERSION), None);
        fs::write(library.join("libstd-1.rlib"), "").unwrap();
        assert_eq!(prepared(cache.path(), VERSION), None, "the host's part, with its linker, is not there");
        fs::create_dir_all(sysroot.join("lib/rustlib/x86_64-unknown-linux-gnu")).unwrap();
        assert_eq!(prepared(cache.path(), VERSION), Some(sysroot.clone()));
        for other in ["", &VERSION.replace("abc", "abd"), &VERSION.replace("x86_64", "aarch64")] {
            assert_eq!(prepared(cache.path(), other), None);
        }
        let mut command = Command::new("cargo");
        StandardLibrary::Sysroot("/a b/c".into()).configure(&mut command);
        let flags = command.get_envs().find(|(name, _)| *name == "CARGO_ENCODED_RUSTFLAGS");
        assert_eq!(flags.and_then(|(_, value)| value?.to_str()), Some("--sysroot\u{1f}/a b/c"));
    }
}
