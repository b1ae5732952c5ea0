//! Finds and compiles components.
//!
//! In: a search path, and a component's name. Out: a compiled component that has only granted imports. Precompiled
//! files are never loaded, because they are native code. Not here: the types of exports (`role`), and calls.

use std::collections::BTreeMap;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use terrane_app::ports::plugins::{FileKind, PluginError, PluginFault, PluginRole};
use wasmparser::{Parser, Payload};
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentInstance, ComponentItem};

use crate::cache::Cache;
use crate::engine::Engine;
use crate::error::shortened;
use crate::manifest::Manifest;
use crate::panic_message;
use crate::plugin::Grants;
use crate::regular_file;
use crate::role::{ROLES, VERSION};
use crate::signature::hexadecimal;

pub const MAX_COMPONENT_BYTES: u64 = 8 * 1024 * 1024;
/// The largest number of component files that are read from one folder.
const MAX_FILES: usize = 1_000;

/// An interface that every guest may import, without the patch version.
const LOG: &str = "terrane:host/log@0.1";
/// An interface that needs a grant, without the patch version.
const MEMO: &str = "terrane:host/memo@0.1";

/// The places that are searched for components, in this order: a file for the component's name, the folders (a
/// project's `plugins/` and others that the operator names), and the folders of the program.
#[derive(Debug, Clone, Default)]
pub struct SearchPath {
    /// The file of a component, by a component name such as `dialect-duckdb`. Other files of that name are not used.
    pub files: BTreeMap<String, PathBuf>,
    pub folders: Vec<PathBuf>,
    /// The folders of the components that come with the program. A detector or check in another folder is refused if it
    /// has the name of a file here but different content, unless the operator lists a plugin of that name.
    pub program_folders: Vec<PathBuf>,
}

impl SearchPath {
    /// Returns the file of a component.
    ///
    /// # Errors
    /// [`PluginError::NotFound`] with every place that was searched.
    pub(crate) fn find(&self, name: &str) -> Result<PathBuf, PluginError> {
        let file = format!("{name}.wasm");
        if let Some(path) = self.files.get(name) {
            return if path.is_file() {
                Ok(path.clone())
            } else {
                Err(PluginError::NotFound { file, looked_in: vec![path.clone()] })
            };
        }
        let found = self.all().map(|folder| folder.join(&file)).find(|path| path.is_file());
        found.ok_or_else(|| PluginError::NotFound { file, looked_in: self.all().cloned().collect() })
    }

    /// Returns the file of a component, or `None` if none is found.
    pub fn file(&self, name: &str) -> Option<PathBuf> {
        self.find(name).ok()
    }

    /// Returns whether a file is in a folder of the program, after resolving `..` and links.
    pub fn is_programs(&self, source: &Path) -> bool {
        let Ok(source) = source.canonicalize() else { return false };
        let mut folders = self.program_folders.iter().filter_map(|folder| folder.canonicalize().ok());
        folders.any(|folder| source.starts_with(folder))
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter().chain(&self.program_folders)
    }

    /// Returns the name and path of every component file, those in the program's folders first.
    pub(crate) fn files(&self) -> Vec<(String, PathBuf)> {
        let mut found = Vec::new();
        for folder in self.program_folders.iter().chain(&self.folders) {
            let mut files: Vec<(String, PathBuf)> = component_files(folder);
            files.sort();
            found.extend(files);
        }
        found
    }
}

/// The identity of a file in a component folder, read without running it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComponentFile {
    /// The file's name without its extension.
    pub name: String,
    pub path: PathBuf,
    /// The role, by the interface that the component exports. `None` if the component exports no role's interface, or
    /// if the file is not a component.
    pub role: Option<PluginRole>,
    /// The id in the component's `plugin.toml`, or `None` if it has none.
    pub id: Option<String>,
}

/// Returns the files in the component folders, those in the program's folders first.
pub fn components_in(search: &SearchPath) -> Vec<ComponentFile> {
    let described = |(name, path): (String, PathBuf)| {
        let bytes = read(&path).unwrap_or_default();
        let role = ROLES.into_iter().find(|(_, interface)| exports(&bytes, interface)).map(|(role, _)| role);
        let manifest = role.and_then(|_| Manifest::of_component(&bytes).ok().flatten());
        ComponentFile { name, path, role, id: manifest.map(|manifest| manifest.id) }
    };
    search.files().into_iter().map(described).collect()
}

/// Returns whether a component exports an interface at its top level, in any version.
fn exports(bytes: &[u8], interface: &str) -> bool {
    let is_it = |name: &str| name.split('@').next() == Some(interface);
    let (mut depth, mut found) = (0_usize, false);
    for payload in Parser::new(0).parse_all(bytes) {
        match payload {
            Ok(Payload::ModuleSection { .. } | Payload::ComponentSection { .. }) => depth += 1,
            Ok(Payload::End(_)) => depth = depth.saturating_sub(1),
            Ok(Payload::ComponentExportSection(section)) if depth == 0 => {
                found |= section.into_iter().flatten().any(|export| is_it(export.name.name));
            }
            Ok(_) => {}
            Err(_) => return false,
        }
    }
    found
}

/// Returns the name and path of the component files of a folder. A folder that cannot be read has none.
fn component_files(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let named = |path: PathBuf| {
        let is_component = path.extension().is_some_and(|extension| extension == "wasm") && path.is_file();
        let name = path.file_stem()?.to_str()?.to_owned();
        is_component.then_some((name, path))
    };
    entries.filter_map(named).take(MAX_FILES).collect()
}

/// Returns the SHA-256 digest in lower-case hexadecimal, as pins and statuses show it.
pub(crate) fn digest(bytes: &[u8]) -> String {
    hexadecimal(&Sha256::digest(bytes))
}

/// Returns the compiled component of a file's content, after checking its imports.
pub(crate) fn component(
    engine: &Engine,
    cache: Option<&Cache>,
    bytes: &[u8],
    digest: &str,
    grants: Grants,
) -> Result<Component, PluginFault> {
    if let Some(component) = cache.and_then(|cache| cache.get(&engine.wasmtime, digest)) {
        check_imports(engine, &component, grants)?;
        return Ok(component);
    }
    let component = compile(engine, bytes)?;
    check_imports(engine, &component, grants)?;
    if let Some(cache) = cache {
        cache.put(&engine.wasmtime, digest, &component);
    }
    Ok(component)
}

/// Reads a file of bounded size.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, PluginFault> {
    let unreadable = |error: std::io::Error| PluginFault::Unreadable { message: error.to_string() };
    let file = regular_file::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    if length > MAX_COMPONENT_BYTES {
        return Err(PluginFault::TooLarge { bytes: length, limit: MAX_COMPONENT_BYTES });
    }
    let mut bytes = Vec::with_capacity(length as usize);
    // The file may grow after its size was read.
    file.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_COMPONENT_BYTES {
        return Err(PluginFault::TooLarge { bytes: bytes.len() as u64, limit: MAX_COMPONENT_BYTES });
    }
    Ok(bytes)
}

/// Returns the kind of a file by its first bytes, or `None` for a component. Only components reach the engine.
fn kind(bytes: &[u8]) -> Option<FileKind> {
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Some(FileKind::Precompiled);
    }
    match bytes {
        // The magic bytes, then the version and the layer: first of a core module, then of a component.
        [b'\0', b'a', b's', b'm', 0x01, 0, 0, 0, ..] => Some(FileKind::CoreModule),
        [b'\0', b'a', b's', b'm', _, 0, 0x01, 0, ..] => None,
        // The magic bytes of ELF and Mach-O.
        [0x7f, b'E', b'L', b'F', ..] | [0xcf, 0xfa, 0xed, 0xfe, ..] => Some(FileKind::Native),
        _ => Some(FileKind::Unknown),
    }
}

fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, PluginFault> {
    if let Some(found) = kind(bytes) {
        return Err(PluginFault::NotAComponent { found });
    }
    let compiled = catch_unwind(AssertUnwindSafe(|| Component::from_binary(&engine.wasmtime, bytes)));
    match compiled {
        Ok(Ok(component)) => Ok(component),
        Ok(Err(error)) => Err(PluginFault::Malformed { message: shortened(&format!("{error:#}")) }),
        Err(_) => Err(PluginFault::Host { message: "the compiler panicked".to_owned() }),
    }
}

/// Checks that every import is granted. An import that is only a type needs no grant.
fn check_imports(engine: &Engine, component: &Component, grants: Grants) -> Result<(), PluginFault> {
    for (name, import) in component.component_type().imports(&engine.wasmtime) {
        let is_harmless = match import.ty {
            ComponentItem::Type(_) => true,
            ComponentItem::ComponentInstance(instance) => is_granted(name, grants) || has_types_only(engine, &instance),
            _ => false,
        };
        if !is_harmless {
            let foreign = || PluginFault::ForeignImport { import: shortened(name) };
            return Err(other_version(name).unwrap_or_else(foreign));
        }
    }
    Ok(())
}

/// Returns a fault if the import is an interface of this host in an unsupported version.
fn other_version(import: &str) -> Option<PluginFault> {
    let (interface, version) = import.split_once('@')?;
    let ours = [LOG, MEMO, panic_message::INTERFACE]
        .iter()
        .filter_map(|known| known.split_once('@'))
        .find(|(known, _)| *known == interface);
    let (_, minor) = ours?;
    let is_spoken = version.strip_prefix(minor).is_some_and(|patch| patch.starts_with('.'));
    let supported = format!("{interface}@{VERSION}");
    (!is_spoken).then(|| PluginFault::WrongVersion { found: shortened(import), supported })
}

fn is_granted(import: &str, grants: Grants) -> bool {
    [Some(LOG), Some(panic_message::INTERFACE), grants.memo.then_some(MEMO)].into_iter().flatten().any(|granted| {
        let patch = import.strip_prefix(granted).and_then(|rest| rest.strip_prefix('.'));
        patch.is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()))
    })
}

fn has_types_only(engine: &Engine, instance: &ComponentInstance) -> bool {
    instance.exports(&engine.wasmtime).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn bundled_files_are_recognized_by_resolved_path() {
        let folder = tempfile::tempdir().unwrap();
        let [program, project] = ["program", "project"].map(|name| folder.path().join(name));
        for folder in [&program, &project] {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join("a.wasm"), b"").unwrap();
        }
        std::os::unix::fs::symlink(project.join("a.wasm"), program.join("link.wasm")).unwrap();
        let search = SearchPath { program_folders: vec![program.clone()], ..SearchPath::default() };
        assert!(search.is_programs(&program.join("a.wasm")));
        assert!(search.is_programs(&project.join("../program/a.wasm")));
        for other in ["../project/a.wasm", "link.wasm", "none.wasm"] {
            assert!(!search.is_programs(&program.join(other)), "{other}");
        }
    }
}
