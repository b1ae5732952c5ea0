//! `terrane plugin build`: a crate to a component.
//!
//! In: a folder with `Cargo.toml` and `plugin.toml`. Out: `target/components/<id>.wasm`, validated, with the
//! manifest in it. Compiles with the author's own cargo and toolchain; cargo's words go to standard error.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::manifest::{self, Manifest};
use terrane_plugin_host::test_bench::TestBench;
use wit_component::ComponentEncoder;

use super::toolchain::{StandardLibrary, TARGET};
use super::{check, contract, open, read, read_text, shown, write};
use crate::commands::{print, tell};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The crate is built for wasm32-unknown-unknown, which takes `rustup target add wasm32-unknown-unknown` once, or the
library that `cargo xtask setup` built where rustup could not.
The component is then target/components/<id>.wasm in cargo's target folder.

Examples:
  terrane plugin build detector-mine
  terrane plugin build detector-mine --release       small and fast; for use
  cd detector-mine && terrane plugin build --json | jq -r .sha256

A core module from another language's compiler becomes a component too; it exports the contract's functions
by the component model's canonical ABI (examples/detector-c):
  terrane plugin build detector-c --module detector-c/out.wasm --out detector-c.wasm")]
pub struct BuildArguments {
    /// The crate's folder
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// With the optimisations of the profile `release`
    #[arg(long, conflicts_with = "module")]
    pub release: bool,
    /// Compile nothing: take this core module, for the role that plugin.toml names
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Write the component here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// A component that was built.
struct Built {
    path: PathBuf,
    bytes: u64,
    digest: String,
    id: String,
}

pub(super) fn run(arguments: &BuildArguments) -> Result<bool, Failure> {
    let BuildArguments { dir, release, module, out, .. } = arguments;
    let (text, manifest) = read_manifest(dir)?;
    let (component, place) = match module {
        Some(module) => (of_foreign_module(module, &manifest)?, dir.join("target")),
        None => of_crate(dir, *release)?,
    };
    let place = out.clone().map_or_else(|| in_folder(&place, &manifest), Ok)?;
    let (built, bench) = finish(&component, &text, manifest, place)?;
    let problems = problems(&bench);
    if arguments.json {
        let Built { path, bytes, digest, id } = &built;
        let line = json!({"id": id, "path": path, "bytes": bytes, "sha256": digest, "problems": problems});
        print(&format!("{line}\n"));
    } else {
        let size = built.bytes.div_ceil(1024);
        print(&format!("{}\n  {size} KiB, sha256 {}\n", built.path.display(), built.digest));
        problems.iter().for_each(|problem| tell(&format!("problem: {}\n", shown(problem, 9))));
    }
    Ok(true)
}

/// Builds the crate in `dir`, quickly.
pub(super) fn build(dir: &Path) -> Result<PathBuf, Failure> {
    let (text, manifest) = read_manifest(dir)?;
    let (component, target_folder) = of_crate(dir, false)?;
    let place = in_folder(&target_folder, &manifest)?;
    Ok(finish(&component, &text, manifest, place)?.0.path)
}

fn read_manifest(dir: &Path) -> Result<(String, Manifest), Failure> {
    let file = dir.join("plugin.toml");
    let text = read_text(&file)?;
    let manifest = Manifest::parse(&text).map_err(|error| {
        Failure::new(format!("{}: {error}", file.display())).hint("the keys of plugin.toml stand in wit/README.md")
    })?;
    Ok((text, manifest))
}

/// The component of a crate, and cargo's target folder.
fn of_crate(dir: &Path, release: bool) -> Result<(Vec<u8>, PathBuf), Failure> {
    let (package, target_folder) = package(dir)?;
    let module = compile(dir, &package, &target_folder, release)?;
    let component = encode(&read(&module)?).map_err(|message| {
        Failure::new(format!("{} can't be made a component: {message}", module.display()))
            .hint("does the crate export a role (`terrane_sdk::export_…!`)?")
    })?;
    Ok((component, target_folder))
}

/// The component of a core module that knows nothing of WIT: its type is the role's world.
fn of_foreign_module(module: &Path, manifest: &Manifest) -> Result<Vec<u8>, Failure> {
    let world = match manifest.roles.first() {
        Some(PluginRole::Dialect) => "dialect-plugin",
        Some(PluginRole::Detector) => "detector-plugin",
        Some(PluginRole::Check) => "check-plugin",
        Some(PluginRole::Governance) => "policy-plugin",
        None => return Err(Failure::new("plugin.toml names no role")),
    };
    let mut bytes = read(module)?;
    if !bytes.starts_with(b"\0asm") {
        return Err(Failure::new(format!("{} is no WebAssembly module", module.display()))
            .hint("--module takes what a compiler made for wasm32, not its source; see examples/detector-c/build.sh"));
    }
    contract::put_world(&mut bytes, world).and_then(|()| encode(&bytes)).map_err(|message| {
        Failure::new(format!("{} can't be made a component: {message}", module.display()))
            .hint(format!("it exports the functions of `{world}` in wit/worlds.wit, cabi_realloc and its memory"))
    })
}

/// `components/<id>.wasm` in cargo's target folder.
fn in_folder(target_folder: &Path, manifest: &Manifest) -> Result<PathBuf, Failure> {
    let folder = target_folder.join("components");
    fs::create_dir_all(&folder)
        .map_err(|error| Failure::new(format!("{} can't be made: {error}", folder.display())))?;
    Ok(folder.join(format!("{}.wasm", manifest.id)))
}

/// Puts the manifest in, writes the component, and sees that a server could load it.
fn finish(component: &[u8], text: &str, manifest: Manifest, path: PathBuf) -> Result<(Built, TestBench), Failure> {
    let component =
        manifest::embed(component, text).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    write(&path, &component)?;
    let bench = open(&path)?;
    let (bytes, digest) = (bench.facts().bytes, bench.facts().digest.clone());
    Ok((Built { path, bytes, digest, id: manifest.id }, bench))
}

/// What the component says otherwise than its manifest. Whether it takes a configuration is for `terrane plugin check`.
fn problems(bench: &TestBench) -> Vec<String> {
    let Some(role) = bench.facts().role else { return Vec::new() };
    let mut problems = Vec::new();
    let identity = bench.describe(role).map_err(|fault| problems.push(format!("it {fault}"))).ok();
    problems.extend(check::manifest_problems(bench, role, identity.as_ref()));
    problems
}

/// The package's name and cargo's target folder.
fn package(dir: &Path) -> Result<(String, PathBuf), Failure> {
    let mut command = cargo(dir);
    let output = command.args(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(no_cargo)?;
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let wanted = dir.join("Cargo.toml").canonicalize().unwrap_or_default();
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_here = |package: &&Value| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == wanted);
    let package = packages.iter().find(is_here).and_then(|package| package["name"].as_str());
    match (package, metadata["target_directory"].as_str()) {
        (Some(package), Some(folder)) => Ok((package.to_owned(), folder.into())),
        _ => Err(Failure::new(format!("{} is no package that cargo can build", dir.display()))
            .hint("cargo's words stand above; `terrane plugin new` makes a crate that works")),
    }
}

/// Compiles the package and tells where its core module is.
fn compile(dir: &Path, package: &str, target_folder: &Path, release: bool) -> Result<PathBuf, Failure> {
    let mut command = cargo(dir);
    command.args(["build", "--target", TARGET, "--package", package, "--target-dir"]).arg(target_folder);
    if release {
        command.arg("--release");
    }
    let library = StandardLibrary::of(dir);
    library.configure(&mut command);
    let status = command.status().map_err(no_cargo)?;
    if !status.success() {
        let failure = Failure::new(format!("cargo did not build {package}; its words stand above"));
        return Err(match library {
            StandardLibrary::Missing => {
                failure.hint(format!("the toolchain has no standard library for {TARGET}: rustup target add {TARGET}"))
            }
            StandardLibrary::OfTheToolchain | StandardLibrary::Sysroot(_) => failure,
        });
    }
    let profile = if release { "release" } else { "debug" };
    let module = target_folder.join(TARGET).join(profile).join(format!("{}.wasm", package.replace('-', "_")));
    if module.is_file() {
        return Ok(module);
    }
    Err(Failure::new(format!("cargo built no {}", module.display()))
        .hint("a plugin is a library with crate-type = [\"cdylib\", \"rlib\"]"))
}

fn cargo(dir: &Path) -> Command {
    #[allow(clippy::disallowed_methods, reason = "cargo names itself to what it runs; this is no setting")]
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(dir).stdin(Stdio::null());
    command
}

fn no_cargo(error: std::io::Error) -> Failure {
    Failure::new(format!("cargo can't be started: {error}"))
        .hint("install Rust (rustup), and see that cargo is on the PATH")
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|encoder| encoder.encode());
    encoded.map_err(|error| format!("{error:#}"))
}
