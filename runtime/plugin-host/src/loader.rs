//! From a name to a compiled component: find, read, refuse what isn't one, compile or find it compiled.
//!
//! In: a search path made by the caller, a name. Out: a compiled component whose imports are
//! granted. Precompiled artefacts are never loaded: they are native code, whatever their name says.
//! Not here: whether its exports have the right types (`dialect`), and calling it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use terrane_app::ports::plugins::{FileKind, PluginError, PluginFault};
use wasmtime::component::Component;
use wasmtime::component::types::{ComponentInstance, ComponentItem};

use crate::cache::Cache;
use crate::engine::Engine;
use crate::error::shortened;

pub const MAX_COMPONENT_BYTES: u64 = 8 * 1024 * 1024;

/// What a guest may import, without the patch version.
const GRANTED: &[&str] = &["terrane:host/log@0.1"];

/// Where components are looked for: first a file named for the component, then the folders in order
/// (a project's `plugins/`, the folder beside the program, a development folder).
#[derive(Debug, Clone, Default)]
pub struct SearchPath {
    /// Component name, like `dialect-duckdb`, to the one file that may serve it.
    pub files: BTreeMap<String, PathBuf>,
    pub folders: Vec<PathBuf>,
}

impl SearchPath {
    /// The file of a component.
    ///
    /// # Errors
    /// [`PluginError::NotFound`] with every place that was looked at.
    fn find(&self, name: &str) -> Result<PathBuf, PluginError> {
        let file = format!("{name}.wasm");
        if let Some(path) = self.files.get(name) {
            return if path.is_file() {
                Ok(path.clone())
            } else {
                Err(PluginError::NotFound { file, looked_in: vec![path.clone()] })
            };
        }
        let found = self.folders.iter().map(|folder| folder.join(&file)).find(|path| path.is_file());
        found.ok_or_else(|| PluginError::NotFound { file, looked_in: self.folders.clone() })
    }
}

/// A file that was found, and the compiled component if it is one: it imports nothing but what is
/// granted.
pub(crate) struct Found {
    pub(crate) path: PathBuf,
    pub(crate) digest: Option<String>,
    pub(crate) outcome: Result<Component, PluginFault>,
}

/// Finds and compiles the component `name`.
///
/// # Errors
/// When there is no such file.
pub(crate) fn load(
    engine: &Engine,
    cache: Option<&Cache>,
    search: &SearchPath,
    name: &str,
) -> Result<Found, PluginError> {
    let path = search.find(name)?;
    let bytes = match read(&path) {
        Ok(bytes) => bytes,
        Err(fault) => return Ok(Found { path, digest: None, outcome: Err(fault) }),
    };
    let digest = hexadecimal(&Sha256::digest(&bytes));
    if let Some(component) = cache.and_then(|cache| cache.get(&engine.wasmtime, &digest)) {
        let outcome = check_imports(engine, &component).map(|()| component);
        return Ok(Found { path, digest: Some(digest), outcome });
    }
    let outcome = compile(engine, &bytes);
    if let (Some(cache), Ok(component)) = (cache, &outcome) {
        cache.put(&engine.wasmtime, &digest, component);
    }
    Ok(Found { path, digest: Some(digest), outcome })
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read(path: &Path) -> Result<Vec<u8>, PluginFault> {
    let unreadable = |error: std::io::Error| PluginFault::Unreadable { message: error.to_string() };
    let file = File::open(path).map_err(unreadable)?;
    let length = file.metadata().map_err(unreadable)?.len();
    if length > MAX_COMPONENT_BYTES {
        return Err(PluginFault::TooLarge { bytes: length, limit: MAX_COMPONENT_BYTES });
    }
    let mut bytes = Vec::with_capacity(length as usize);
    // The file may grow between the two looks.
    file.take(MAX_COMPONENT_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_COMPONENT_BYTES {
        return Err(PluginFault::TooLarge { bytes: bytes.len() as u64, limit: MAX_COMPONENT_BYTES });
    }
    Ok(bytes)
}

/// Refuses by the first bytes what isn't a component; the engine is never asked to guess.
fn kind(bytes: &[u8]) -> Option<FileKind> {
    if wasmtime::Engine::detect_precompiled(bytes).is_some() {
        return Some(FileKind::Precompiled);
    }
    match bytes {
        // Magic, then version and layer.
        [b'\0', b'a', b's', b'm', 0x01, 0, 0, 0, ..] => Some(FileKind::CoreModule),
        [b'\0', b'a', b's', b'm', _, 0, 0x01, 0, ..] => None,
        // Any other native file: ELF, Mach-O.
        [0x7f, b'E', b'L', b'F', ..] | [0xcf, 0xfa, 0xed, 0xfe, ..] => Some(FileKind::Precompiled),
        _ => Some(FileKind::Unknown),
    }
}

fn compile(engine: &Engine, bytes: &[u8]) -> Result<Component, PluginFault> {
    if let Some(found) = kind(bytes) {
        return Err(PluginFault::NotAComponent { found });
    }
    let compiled = catch_unwind(AssertUnwindSafe(|| Component::from_binary(&engine.wasmtime, bytes)));
    let component = match compiled {
        Ok(Ok(component)) => component,
        Ok(Err(error)) => return Err(PluginFault::Malformed { message: shortened(&format!("{error:#}")) }),
        Err(_) => return Err(PluginFault::Host { message: "the compiler broke off".to_owned() }),
    };
    check_imports(engine, &component)?;
    Ok(component)
}

/// Types alone give nothing away; everything else has to be granted.
fn check_imports(engine: &Engine, component: &Component) -> Result<(), PluginFault> {
    for (name, import) in component.component_type().imports(&engine.wasmtime) {
        let is_harmless = match import.ty {
            ComponentItem::Type(_) => true,
            ComponentItem::ComponentInstance(instance) => is_granted(name) || has_types_only(engine, &instance),
            _ => false,
        };
        if !is_harmless {
            return Err(PluginFault::ForeignImport { import: shortened(name) });
        }
    }
    Ok(())
}

fn is_granted(import: &str) -> bool {
    GRANTED.iter().any(|granted| {
        let patch = import.strip_prefix(granted).and_then(|rest| rest.strip_prefix('.'));
        patch.is_some_and(|patch| !patch.is_empty() && patch.bytes().all(|b| b.is_ascii_digit()))
    })
}

fn has_types_only(engine: &Engine, instance: &ComponentInstance) -> bool {
    instance.exports(&engine.wasmtime).all(|(_, item)| matches!(item.ty, ComponentItem::Type(_)))
}
