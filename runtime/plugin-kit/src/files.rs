//! Reads and writes an author's files.
//!
//! In: a path. Out: bytes or text, or a [`KitError`] that names the path.

use std::fs;
use std::path::{Path, PathBuf};

use terrane_plugin_host::signature;

use crate::error::KitError;

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, KitError> {
    fs::read(path).map_err(|source| KitError::Read { path: path.to_owned(), source })
}

pub(crate) fn read_text(path: &Path) -> Result<String, KitError> {
    String::from_utf8(read(path)?).map_err(|_| KitError::NotUtf8 { path: path.to_owned() })
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), KitError> {
    fs::write(path, bytes).map_err(|source| KitError::Write { path: path.to_owned(), source })
}

pub(crate) fn create_folder(folder: &Path) -> Result<(), KitError> {
    fs::create_dir_all(folder).map_err(|source| KitError::CreateFolder { path: folder.to_owned(), source })
}

/// Returns the path of a component's signature: the component's own path with `.sig` appended.
pub(crate) fn signature_path(file: &Path) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(".");
    path.push(signature::EXTENSION);
    path.into()
}
