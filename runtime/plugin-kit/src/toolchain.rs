//! The standard library for building a crate for the guests' target.
//!
//! In: the author's own compiler. Out: additional settings for cargo. If the toolchain lacks the target, a sysroot from
//! the cache is used, which `cargo xtask setup` built for the same compiler. Not here: building a sysroot.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The source of the standard library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StandardLibrary {
    OfTheToolchain,
    Sysroot(PathBuf),
    Missing,
}

impl StandardLibrary {
    /// Returns the standard library of the compiler that builds the crate in `dir`.
    pub(crate) fn of(dir: &Path) -> StandardLibrary {
        let output_of = |arguments: &[&str]| {
            let output = Command::new("rustc").args(arguments).current_dir(dir).output().ok()?;
            output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        if output_of(&["--print", "sysroot"]).is_some_and(|sysroot| has_target(Path::new(&sysroot))) {
            return StandardLibrary::OfTheToolchain;
        }
        let version = output_of(&["-vV"]).unwrap_or_default();
        cache().and_then(|cache| prepared(&cache, &version)).map_or(StandardLibrary::Missing, StandardLibrary::Sysroot)
    }

    /// Sets the sysroot. The encoded variable is used because it alone supports paths with spaces. It replaces the
    /// author's `RUSTFLAGS`.
    pub(crate) fn configure(&self, command: &mut Command) {
        if let StandardLibrary::Sysroot(sysroot) = self {
            let flags = format!("--sysroot\u{1f}{}", sysroot.display());
            command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags);
        }
    }
}

/// Returns the cache folder that clones of Terrane share.
fn cache() -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "the place that set-up uses on the author's machine; not a setting")]
    let named = env::var_os("XDG_CACHE_HOME").filter(|value| !value.is_empty());
    let folder = named.map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cache")))?;
    Some(folder.join("terrane"))
}

/// Returns the sysroot for the compiler with this output of `rustc -vV`, if the sysroot is complete.
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
    fn complete_sysroot_is_used_for_its_own_compiler() {
        const VERSION: &str = "rustc 1.95.0\nbinary: rustc\ncommit-hash: abc\nhost: x86_64-unknown-linux-gnu\n";
        let cache = tempfile::tempdir().unwrap();
        let sysroot = cache.path().join("wasm-std/abc");
        let library = sysroot.join("lib/rustlib").join(TARGET).join("lib");
        fs::create_dir_all(&library).unwrap();
        assert_eq!(prepared(cache.path(), VERSION), None);
        fs::write(library.join("libstd-1.rlib"), "").unwrap();
        assert_eq!(prepared(cache.path(), VERSION), None, "the host's part, with its linker, is missing");
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
