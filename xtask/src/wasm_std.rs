//! Prepares the standard library of wasm32-unknown-unknown, from the first source that this machine can use.
//!
//! In: the pinned compiler. Out: a [`GuestToolchain`], the compiler and sysroot of guests. The sources in order: an
//! existing library, `rustup target add`, a build from the sources of the same version, and a second compiler from
//! Debian for guests only. Not here: changes to a toolchain, except by rustup itself. Everything else is in the cache.

mod apt;
mod build;
mod debian_compiler;
mod rust_src;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::command::{is_installed, run_quiet};
use crate::context::{Compiler, Context};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// The time limit of rustup. It is enough for a slow download of 20 MB, and not long if the network does not respond.
const RUSTUP_LIMIT: Duration = Duration::from_secs(180);

/// The sources of the standard library, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Source {
    /// The command `rustup target add`.
    Rustup,
    /// A build from the sources of the standard library.
    RustSrc,
    /// Debian's packages rustc-web and rust-web-src.
    DebianCompiler,
}

/// The compiler and sysroot of guests.
#[derive(Debug, Default)]
pub(crate) struct GuestToolchain {
    /// The sysroot; `None` if it is the compiler's own.
    sysroot: Option<PathBuf>,
    second_compiler: Option<SecondCompiler>,
}

#[derive(Debug)]
struct SecondCompiler {
    rustc: PathBuf,
    linker: PathBuf,
}

impl GuestToolchain {
    /// Makes a `cargo build --target wasm32-unknown-unknown` use this toolchain.
    pub(crate) fn configure(&self, command: &mut Command, more_flags: &[String]) {
        let mut flags = more_flags.to_vec();
        if let Some(sysroot) = &self.sysroot {
            flags.extend(["--sysroot".to_owned(), sysroot.display().to_string()]);
        }
        if let Some(second) = &self.second_compiler {
            command.env("RUSTC", &second.rustc).env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", &second.linker);
        }
        // Only the encoded form of the flags can contain paths with spaces. It also overrides the user's RUSTFLAGS.
        // Because of `--target`, cargo applies these flags to guests only, and not to their procedural macros.
        command.env_remove("RUSTFLAGS").env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    }

    /// Sets the environment in which a plugin author's `cargo` finds the standard library. If guests need a second
    /// compiler, nothing is set, because cargo would use that compiler for the host's crates too.
    pub(crate) fn configure_authors(&self, command: &mut Command) {
        if let Some(sysroot) = &self.sysroot {
            command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_RUSTFLAGS", format!("--sysroot={}", sysroot.display()));
        }
    }

    /// Returns the name of the target folder. Each compiler has its own, because their results must not be mixed.
    pub(crate) fn target_folder(&self) -> &'static str {
        if self.second_compiler.is_some() { "guests-second-compiler" } else { "guests" }
    }
}

/// Finds or builds the guests' standard library. With `only`, uses this source and ignores an existing library.
pub(crate) fn prepare(context: &Context, only: Option<Source>) -> Result<GuestToolchain> {
    let compiler = context.compiler()?;
    if only.is_none()
        && let Some((toolchain, place)) = present(context, &compiler)
    {
        println!("ok    {TARGET} standard library in {place}");
        return Ok(toolchain);
    }
    let sources =
        only.map_or_else(|| vec![Source::Rustup, Source::RustSrc, Source::DebianCompiler], |source| vec![source]);
    let mut failures = String::new();
    for source in sources {
        println!("      {TARGET} standard library by {} …", name(source));
        match obtain(context, &compiler, source) {
            Ok(toolchain) => {
                println!("ok    {TARGET} standard library by {}", name(source));
                return Ok(toolchain);
            }
            Err(error) => {
                println!("      not by {}: {error:#}", name(source));
                failures += &format!("\n  {}: {error:#}", name(source));
            }
        }
    }
    bail!(
        "the standard library of {TARGET} for rustc {} could not be prepared:{failures}\n\
         by hand, one of:\n  \
         rustup target add {TARGET}\n  \
         rustup component add rust-src, then `cargo xtask setup` again\n  \
         unpack the sources of rust {} so that {}/lib/rustlib/src/rust/library exists, then `cargo xtask setup` again",
        compiler.version,
        compiler.version,
        compiler.sysroot.display()
    );
}

fn name(source: Source) -> &'static str {
    match source {
        Source::Rustup => "`rustup target add`",
        Source::RustSrc => "building it from rust-src",
        Source::DebianCompiler => "Debian's rustc-web",
    }
}

fn present(context: &Context, compiler: &Compiler) -> Option<(GuestToolchain, String)> {
    if has_standard_library(&compiler.sysroot) {
        return Some((GuestToolchain::default(), "the toolchain".to_owned()));
    }
    let private = build::private_sysroot(context, &compiler.commit_hash);
    if build::is_usable(&private, &compiler.host) {
        let place = private.display().to_string();
        return Some((GuestToolchain { sysroot: Some(private), second_compiler: None }, place));
    }
    let toolchain = debian_compiler::present(context, compiler)?;
    Some((toolchain, "Debian's rustc-web, unpacked in the cache".to_owned()))
}

fn obtain(context: &Context, compiler: &Compiler, source: Source) -> Result<GuestToolchain> {
    match source {
        Source::Rustup => by_rustup(context, compiler),
        Source::RustSrc => {
            let library = rust_src::find(context, compiler)?;
            let sysroot = build::build_sysroot(context, compiler, &library)?;
            Ok(GuestToolchain { sysroot: Some(sysroot), second_compiler: None })
        }
        Source::DebianCompiler => debian_compiler::prepare(context, compiler),
    }
}

fn by_rustup(context: &Context, compiler: &Compiler) -> Result<GuestToolchain> {
    if !is_installed("rustup") {
        bail!("rustup is not installed");
    }
    run_quiet(Command::new("rustup").args(["target", "add", TARGET]).current_dir(&context.root), RUSTUP_LIMIT)?;
    if !has_standard_library(&compiler.sysroot) {
        bail!("rustup added the target to another toolchain than {}", compiler.sysroot.display());
    }
    Ok(GuestToolchain::default())
}

/// Returns whether a sysroot contains `libstd` for the guests' target.
fn has_standard_library(sysroot: &Path) -> bool {
    let Ok(files) = fs::read_dir(libraries(sysroot)) else { return false };
    files.flatten().any(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libstd-") && name.ends_with(".rlib")
    })
}

/// Returns the folder of the guests' `.rlib` files in a sysroot.
fn libraries(sysroot: &Path) -> PathBuf {
    sysroot.join("lib/rustlib").join(TARGET).join("lib")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_sysroot_has_no_standard_library() {
        let folder = tempfile::tempdir().unwrap();
        assert!(!has_standard_library(folder.path()));
        fs::create_dir_all(libraries(folder.path())).unwrap();
        assert!(!has_standard_library(folder.path()));
        fs::write(libraries(folder.path()).join("libstd-0123.rlib"), "").unwrap();
        assert!(has_standard_library(folder.path()));
    }

    #[test]
    fn private_sysroot_reaches_rustc_as_one_flag_even_with_a_space() {
        let mut command = Command::new("cargo");
        let toolchain = GuestToolchain { sysroot: Some("/a b/sysroot".into()), second_compiler: None };
        toolchain.configure(&mut command, &[]);
        let flags =
            command.get_envs().find(|(name, _)| *name == "CARGO_ENCODED_RUSTFLAGS").and_then(|(_, value)| value);
        assert_eq!(flags.and_then(|flags| flags.to_str()), Some("--sysroot\u{1f}/a b/sysroot"));
    }
}
