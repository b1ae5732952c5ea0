//! Builds every plugin of the workspace as a WebAssembly component in `.prepared/components/`.
//!
//! In: the packages of the type `cdylib` under `plugins/`, `examples/`, `sdk/templates/` and `tests/guests/`, each with
//! its `plugin.toml`. Out: `<package>.wasm`, validated, with its manifest as a section. The components of examples,
//! templates and test guests are in a folder that servers do not search. Not here: a list of plugins, because a new
//! folder is enough, and tracking of changes, which cargo does for modules. For components, a stamp records the module
//! and the manifest.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use wit_component::ComponentEncoder;

use crate::checksum;
use crate::command::run_shown;
use crate::context::{Context, Member, shown};
use crate::wasm_std::{GuestToolchain, TARGET};

const PROFILE: &str = "guest";
/// The folders of packages that are guests.
const FOLDERS: [&str; 4] = ["plugins", "examples", "sdk/templates", "tests/guests"];
/// The folder of components that are not first-party.
const EXAMPLES: &str = "examples";

pub(crate) fn build(context: &Context, toolchain: &GuestToolchain) -> Result<()> {
    let guests = guests(context)?;
    if guests.is_empty() {
        println!("ok    no plugins");
        return Ok(());
    }
    let target = context.target()?.join(toolchain.target_folder());
    println!("      building {} plugins …", guests.len());
    let mut command = context.cargo();
    command.args(["build", "--profile", PROFILE, "--target", TARGET, "--target-dir"]).arg(&target);
    for guest in &guests {
        command.args(["--package", &guest.name]);
    }
    toolchain.configure(&mut command, &path_remapping(context));
    run_shown(&mut command).context("building the plugins")?;

    let folder = context.prepared.join("components");
    fs::create_dir_all(folder.join(EXAMPLES))?;
    for guest in &guests {
        let module = target.join(TARGET).join(PROFILE).join(format!("{}.wasm", guest.name.replace('-', "_")));
        let is_first_party = guest.folder.starts_with(context.root.join("plugins"));
        let folder = if is_first_party { folder.clone() } else { folder.join(EXAMPLES) };
        let component = folder.join(format!("{}.wasm", guest.name));
        let manifest = fs::read_to_string(guest.folder.join("plugin.toml"));
        let manifest = manifest.with_context(|| format!("reading plugin.toml of {}", guest.name))?;
        componentize(&module, &manifest, &component)
            .with_context(|| format!("making a component of {}", guest.name))?;
        let size = fs::metadata(&component)?.len();
        println!("ok    {} ({} KiB)", shown(context, &component), size.div_ceil(1024));
    }
    Ok(())
}

/// Returns compiler flags that keep the paths of this machine out of the components, so that their digests are the
/// same on every machine.
fn path_remapping(context: &Context) -> Vec<String> {
    let remap = |from: &Path, to: &str| format!("--remap-path-prefix={}={to}", from.display());
    let cargo_home = env::var_os("CARGO_HOME").map(PathBuf::from).or_else(|| Some(env::home_dir()?.join(".cargo")));
    let mut flags = vec![remap(&context.root, "terrane")];
    flags.extend(cargo_home.map(|folder| remap(&folder, "cargo")));
    flags
}

fn guests(context: &Context) -> Result<Vec<Member>> {
    let folders = FOLDERS.map(|folder| context.root.join(folder));
    let is_guest = |member: &Member| member.is_cdylib && folders.iter().any(|folder| member.folder.starts_with(folder));
    Ok(context.members()?.into_iter().filter(is_guest).collect())
}

/// Writes the component, unless the existing one was built from the same module and manifest.
fn componentize(module: &Path, manifest: &str, component: &Path) -> Result<()> {
    let bytes = fs::read(module).with_context(|| format!("reading {}", module.display()))?;
    let stamp = stamp_of(component);
    let origin = format!("{} {}", checksum::sha256_of(&bytes), checksum::sha256_of(manifest.as_bytes()));
    if let Ok(found) = fs::read_to_string(&stamp)
        && let Ok(present) = checksum::sha256(component)
        && found == format!("{origin}\n{present}\n")
    {
        return Ok(());
    }
    let encoded = with_manifest(encode(&bytes)?, manifest);
    let partial = component.with_extension(format!("partial-{}", std::process::id()));
    fs::write(&partial, &encoded)?;
    fs::rename(&partial, component)?;
    fs::write(stamp, format!("{origin}\n{}\n", checksum::sha256_of(&encoded)))?;
    Ok(())
}

fn encode(module: &[u8]) -> Result<Vec<u8>> {
    let encoded = ComponentEncoder::default().validate(true).module(module).and_then(|encoder| encoder.encode());
    match encoded {
        Ok(component) => Ok(component),
        // Only this form of the error shows its causes.
        Err(error) => bail!("{error:#}"),
    }
}

/// Appends the custom section `plugin.toml` to a component (component model, Binary.md: id 0, size, name).
fn with_manifest(mut component: Vec<u8>, manifest: &str) -> Vec<u8> {
    const NAME: &str = "plugin.toml";
    let mut section = leb128(NAME.len());
    section.extend(NAME.bytes().chain(manifest.bytes()));
    component.push(0);
    component.extend(leb128(section.len()));
    component.extend(section);
    component
}

/// Encodes an unsigned integer with seven bits per byte, lowest first.
fn leb128(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn stamp_of(component: &Path) -> PathBuf {
    component.with_extension("stamp")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_above_127_take_two_bytes() {
        assert_eq!(
            (leb128(0), leb128(127), leb128(128), leb128(300)),
            (vec![0], vec![127], vec![128, 1], vec![172, 2])
        );
    }

    #[test]
    fn other_bytes_than_a_module_are_rejected() {
        assert!(encode(b"not wasm").is_err());
    }

    #[test]
    fn module_without_imports_becomes_a_component_once() {
        // The preamble of an empty core module: magic and version 1.
        const EMPTY_MODULE: &[u8] = b"\0asm\x01\0\0\0";
        const MANIFEST: &str = "id = \"empty\"\n";
        let folder = tempfile::tempdir().unwrap();
        let (module, component) = (folder.path().join("empty.wasm"), folder.path().join("component.wasm"));
        fs::write(&module, EMPTY_MODULE).unwrap();
        componentize(&module, MANIFEST, &component).unwrap();
        let written = fs::metadata(&component).unwrap().modified().unwrap();
        componentize(&module, MANIFEST, &component).unwrap();
        assert_eq!(
            fs::metadata(&component).unwrap().modified().unwrap(),
            written,
            "an unchanged component is not written"
        );
        componentize(&module, "id = \"other\"\n", &component).unwrap();
        assert!(
            fs::read(&component).unwrap().ends_with(b"plugin.tomlid = \"other\"\n"),
            "another manifest replaces the first"
        );
        fs::write(&component, "damaged").unwrap();
        componentize(&module, MANIFEST, &component).unwrap();
        assert!(fs::read(&component).unwrap().starts_with(b"\0asm"), "a damaged component is rebuilt");
    }
}
