//! Builds a component from a crate, or from a core module that another compiler made.
//!
//! In: a folder with `plugin.toml`. Out: a validated component that contains the manifest. By default it is written to
//! `components/<id>.wasm` in cargo's target folder. Crates are compiled with the author's own cargo and toolchain.
//! cargo's output goes to standard error.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::manifest::{self, Manifest};
use terrane_plugin_host::test_bench::TestBench;
use wit_component::ComponentEncoder;

use crate::component::open;
use crate::error::KitError;
use crate::files::{create_folder, read, read_text, write};
use crate::toolchain::{StandardLibrary, TARGET};
use crate::{check, contract};

/// The cargo profile of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    /// A profile that builds quickly.
    Dev,
    /// A profile for use, whose component is small and fast.
    Release,
}

impl Profile {
    /// Returns the name of the profile's subfolder in cargo's target folder.
    fn folder(self) -> &'static str {
        match self {
            Profile::Dev => "debug",
            Profile::Release => "release",
        }
    }
}

/// The source of the core module.
#[derive(Debug, Clone)]
pub enum CoreModule {
    /// The crate in the folder.
    Crate(Profile),
    /// A file. `plugin.toml` states its role.
    File(PathBuf),
}

/// A component to build.
#[derive(Debug, Clone)]
pub struct BuildRequest {
    /// The folder that contains `plugin.toml` and, if there is one, the crate.
    pub folder: PathBuf,
    pub module: CoreModule,
    /// The path of the component, or `None` for the default.
    pub out: Option<PathBuf>,
}

/// A component that was built.
#[derive(Debug, Clone)]
pub struct BuiltComponent {
    pub id: String,
    pub path: PathBuf,
    pub bytes: u64,
    /// The SHA-256 of the component, in lower-case hexadecimal digits.
    pub digest: String,
    /// The differences between the component and its manifest.
    pub problems: Vec<String>,
}

/// Builds a component.
///
/// # Errors
/// The manifest is not valid, cargo fails, the module cannot be made a component, or a server would not load it.
pub fn build(request: &BuildRequest) -> Result<BuiltComponent, KitError> {
    let BuildRequest { folder, module, out } = request;
    let (text, manifest) = read_manifest(folder)?;
    let (component, target_folder) = match module {
        CoreModule::File(module) => (component_of_module(module, &manifest)?, folder.join("target")),
        CoreModule::Crate(profile) => component_of_crate(folder, *profile)?,
    };
    let path = match out {
        Some(path) => path.clone(),
        None => default_path(&target_folder, &manifest)?,
    };
    let component = manifest::embed(&component, &text)
        .map_err(|error| KitError::Manifest { path: folder.join("plugin.toml"), error })?;
    write(&path, &component)?;
    let bench = open(&path)?;
    let (bytes, digest) = (bench.facts().bytes, bench.facts().digest.clone());
    Ok(BuiltComponent { id: manifest.id, path, bytes, digest, problems: problems(&bench) })
}

fn read_manifest(folder: &Path) -> Result<(String, Manifest), KitError> {
    let path = folder.join("plugin.toml");
    let text = read_text(&path)?;
    let manifest = Manifest::parse(&text).map_err(|error| KitError::Manifest { path, error })?;
    Ok((text, manifest))
}

/// Builds the component of a crate, and returns it with cargo's target folder.
fn component_of_crate(folder: &Path, profile: Profile) -> Result<(Vec<u8>, PathBuf), KitError> {
    let (package, target_folder) = package(folder)?;
    let module = compile(folder, &package, &target_folder, profile)?;
    let component =
        encode(&read(&module)?).map_err(|message| KitError::Encode { path: module, message, world: None })?;
    Ok((component, target_folder))
}

/// Creates a component from a core module without WIT metadata. The component's type is the world of its role.
fn component_of_module(module: &Path, manifest: &Manifest) -> Result<Vec<u8>, KitError> {
    let world = match manifest.roles.first() {
        Some(PluginRole::Dialect) => "dialect-plugin",
        Some(PluginRole::Detector) => "detector-plugin",
        Some(PluginRole::Check) => "check-plugin",
        Some(PluginRole::Governance) => "policy-plugin",
        None => return Err(KitError::ManifestWithoutRole),
    };
    let mut bytes = read(module)?;
    if !bytes.starts_with(b"\0asm") {
        return Err(KitError::NotAModule { path: module.to_owned() });
    }
    contract::embed_world(&mut bytes, world).and_then(|()| encode(&bytes)).map_err(|message| KitError::Encode {
        path: module.to_owned(),
        message,
        world: Some(world),
    })
}

fn default_path(target_folder: &Path, manifest: &Manifest) -> Result<PathBuf, KitError> {
    let folder = target_folder.join("components");
    create_folder(&folder)?;
    Ok(folder.join(format!("{}.wasm", manifest.id)))
}

/// Returns the differences between the component and its manifest. Unlike `check`, this function checks no
/// configuration.
fn problems(bench: &TestBench) -> Vec<String> {
    let Some(role) = bench.facts().role else { return Vec::new() };
    let mut problems = Vec::new();
    let identity = bench.describe(role).map_err(|fault| problems.push(format!("it {fault}"))).ok();
    problems.extend(check::manifest_problems(bench.facts(), role, identity.as_ref()));
    problems
}

/// Returns the name of the package and cargo's target folder.
fn package(folder: &Path) -> Result<(String, PathBuf), KitError> {
    let mut command = cargo(folder);
    let output = command.args(["metadata", "--no-deps", "--format-version", "1"]).stderr(Stdio::inherit()).output();
    let output = output.map_err(|source| KitError::Cargo { source })?;
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let wanted = folder.join("Cargo.toml").canonicalize().unwrap_or_default();
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_here = |package: &&Value| package["manifest_path"].as_str().is_some_and(|path| Path::new(path) == wanted);
    let package = packages.iter().find(is_here).and_then(|package| package["name"].as_str());
    match (package, metadata["target_directory"].as_str()) {
        (Some(package), Some(folder)) => Ok((package.to_owned(), folder.into())),
        _ => Err(KitError::Package { path: folder.to_owned() }),
    }
}

/// Compiles the package and returns the path of its core module.
fn compile(folder: &Path, package: &str, target_folder: &Path, profile: Profile) -> Result<PathBuf, KitError> {
    let mut command = cargo(folder);
    command.args(["build", "--target", TARGET, "--package", package, "--target-dir"]).arg(target_folder);
    if profile == Profile::Release {
        command.arg("--release");
    }
    let library = StandardLibrary::of(folder);
    library.configure(&mut command);
    let status = command.status().map_err(|source| KitError::Cargo { source })?;
    if !status.success() {
        let is_target_missing = library == StandardLibrary::Missing;
        return Err(KitError::Compile { package: package.to_owned(), is_target_missing });
    }
    let file = format!("{}.wasm", package.replace('-', "_"));
    let path = target_folder.join(TARGET).join(profile.folder()).join(file);
    if path.is_file() { Ok(path) } else { Err(KitError::NoModule { path }) }
}

fn cargo(folder: &Path) -> Command {
    #[allow(clippy::disallowed_methods, reason = "cargo names itself to its children; this is not a setting")]
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.current_dir(folder).stdin(Stdio::null());
    command
}

fn encode(module: &[u8]) -> Result<Vec<u8>, String> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|encoder| encoder.encode());
    encoded.map_err(|error| format!("{error:#}"))
}
