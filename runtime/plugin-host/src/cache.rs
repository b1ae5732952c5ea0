//! Compiled components on disk, so that a program that starts often compiles them once.
//!
//! In: a folder that only this user can access. Out: a component that this machine has compiled before, or nothing. The
//! files are native code, so three conditions must hold. Only this user can write to the folder. Each file begins with
//! a MAC by a key in the same folder. The MAC also covers the file's name, which contains the component's digest and
//! everything that the compilation depends on. If a condition does not hold, the component is compiled again, and no
//! error is returned. Not here: files in a project's folder, which may come from others.

use std::fs::{self, DirBuilder, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use wasmtime::Engine;
use wasmtime::component::Component;

use crate::regular_file;

/// The block size of SHA-256.
const KEY_BYTES: usize = 64;
const MAC_BYTES: usize = 32;
/// The largest size of an entry. Compiled code is about ten times as large as its component.
const MAX_ENTRY_BYTES: u64 = 128 * 1024 * 1024;
/// The largest number of entries; beyond it, the oldest are removed.
const MAX_ENTRIES: usize = 64;
const EXTENSION: &str = "compiled";

/// A folder of compiled components.
pub(crate) struct Cache {
    folder: PathBuf,
    key: [u8; KEY_BYTES],
}

impl Cache {
    /// Opens the folder, or creates it.
    ///
    /// # Errors
    /// The folder cannot be written, or other users can write to it.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let found = fs::symlink_metadata(folder)?;
        let us = rustix::process::geteuid().as_raw();
        let is_ours = found.is_dir() && found.mode() & 0o077 == 0 && found.uid() == us;
        let key = if is_ours { key(folder, us)? } else { return Err(not_ours()) };
        Ok(Cache { folder: folder.to_owned(), key })
    }

    /// Returns the component with this digest, if an engine with the same configuration has compiled it here.
    pub(crate) fn get(&self, engine: &Engine, digest: &str) -> Option<Component> {
        let name = entry_name(engine, digest);
        let mut bytes = Vec::new();
        let file = regular_file::open(&self.folder.join(&name)).ok()?;
        file.take(MAX_ENTRY_BYTES).read_to_end(&mut bytes).ok()?;
        let (mac, code) = bytes.split_at_checked(MAC_BYTES)?;
        self.mac(&name, code).verify_slice(mac).ok()?;
        deserialize(engine, code)
    }

    /// Stores a component. If that fails, the component is compiled again next time.
    pub(crate) fn put(&self, engine: &Engine, digest: &str, component: &Component) {
        let stored = component.serialize().map_err(|error| error.to_string()).and_then(|code| {
            let name = entry_name(engine, digest);
            let mac = self.mac(&name, &code).finalize().into_bytes();
            self.make_room();
            write(&self.folder, &name, &[mac.as_slice(), &code]).map_err(|error| error.to_string())
        });
        if let Err(reason) = stored {
            tracing::debug!(event = "component_not_cached", reason);
        }
    }

    fn mac(&self, name: &str, code: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new(&self.key.into());
        mac.update(&(name.len() as u64).to_le_bytes());
        mac.update(name.as_bytes());
        mac.update(code);
        mac
    }

    fn make_room(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let compiled =
            entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|e| e == EXTENSION));
        let age =
            |path: &PathBuf| fs::metadata(path).and_then(|found| found.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
        let mut aged: Vec<(SystemTime, PathBuf)> = compiled.map(|path| (age(&path), path)).collect();
        aged.sort();
        for (_, path) in aged.iter().take((aged.len() + 1).saturating_sub(MAX_ENTRIES)) {
            let _ = fs::remove_file(path);
        }
    }
}

fn entry_name(engine: &Engine, digest: &str) -> String {
    let mut hasher = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut hasher);
    format!("{digest}-{:016x}.{EXTENSION}", hasher.finish())
}

/// Returns the folder's key, and creates it if the folder is new. If two programs create it at once, one of them writes
/// the key and the other one reads it.
fn key(folder: &Path, owner: u32) -> io::Result<[u8; KEY_BYTES]> {
    let path = folder.join("key");
    if !path.exists() {
        let mut fresh = [0; KEY_BYTES];
        getrandom::fill(&mut fresh).map_err(io::Error::other)?;
        write(folder, "key", &[&fresh])?;
    }
    let mut file = regular_file::open(&path)?;
    let found = file.metadata()?;
    if found.uid() != owner || found.mode() & 0o077 != 0 {
        return Err(not_ours());
    }
    let mut key = [0; KEY_BYTES];
    file.read_exact(&mut key)?;
    Ok(key)
}

/// Writes a file completely or not at all.
fn write(folder: &Path, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    let unfinished = folder.join(format!("{name}.{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    let written = parts.iter().try_for_each(|part| file.write_all(part));
    let renamed = written.and_then(|()| fs::rename(&unfinished, folder.join(name)));
    if renamed.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    renamed
}

fn not_ours() -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, "other users can write to the folder")
}

#[allow(unsafe_code, reason = "native code cannot be validated; a MAC proves that this user wrote it")]
fn deserialize(engine: &Engine, code: &[u8]) -> Option<Component> {
    // SAFETY: `put` wrote the bytes as this version of wasmtime compiled them with this configuration: the MAC over the
    // bytes and their name is valid, and only this user can read its key. wasmtime itself refuses code of another
    // version or configuration.
    unsafe { Component::deserialize(engine, code) }.ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn engine() -> Engine {
        Engine::default()
    }

    fn component(engine: &Engine) -> Component {
        // Magic, version 13, layer 1: an empty component.
        Component::new(engine, b"\0asm\x0d\0\x01\0").unwrap()
    }

    fn only_entry(folder: &Path) -> PathBuf {
        let mut entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.find(|path| path.extension().is_some_and(|e| e == EXTENSION)).unwrap()
    }

    #[test]
    fn only_stored_components_are_returned() {
        let (folder, engine) = (tempfile::tempdir().unwrap(), engine());
        let folder = folder.path().join("a/b");
        let cache = Cache::open(&folder).unwrap();
        cache.put(&engine, "aa", &component(&engine));
        assert!(Cache::open(&folder).unwrap().get(&engine, "aa").is_some());
        assert!(cache.get(&engine, "ab").is_none());
    }

    #[test]
    fn changed_file_is_a_miss() {
        let (folder, engine) = (tempfile::tempdir().unwrap(), engine());
        let folder = folder.path().join("cache");
        let cache = Cache::open(&folder).unwrap();
        cache.put(&engine, "aa", &component(&engine));
        let entry = only_entry(&folder);
        let whole = fs::read(&entry).unwrap();
        for at in [0, MAC_BYTES, whole.len() / 2, whole.len() - 1] {
            let mut spoiled = whole.clone();
            spoiled[at] ^= 1;
            fs::write(&entry, &spoiled).unwrap();
            assert!(cache.get(&engine, "aa").is_none(), "byte {at}");
        }
        for length in [0, 5, MAC_BYTES, whole.len() - 1] {
            fs::write(&entry, &whole[..length]).unwrap();
            assert!(cache.get(&engine, "aa").is_none(), "{length} bytes");
        }
        // The entry of `bb` has the content of the entry of `aa`, so it is refused.
        fs::write(&entry, &whole).unwrap();
        let other = entry.to_str().unwrap().replace("/aa-", "/bb-");
        fs::copy(&entry, other).unwrap();
        assert!(cache.get(&engine, "aa").is_some());
        assert!(cache.get(&engine, "bb").is_none());
    }

    #[test]
    fn another_engine_is_a_miss() {
        let (folder, engine) = (tempfile::tempdir().unwrap(), engine());
        let cache = Cache::open(&folder.path().join("cache")).unwrap();
        cache.put(&engine, "aa", &component(&engine));
        let other = Engine::new(wasmtime::Config::new().consume_fuel(true)).unwrap();
        assert!(cache.get(&other, "aa").is_none());
    }

    #[test]
    fn folder_or_key_with_access_for_others_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("cache");
        drop(Cache::open(&folder).unwrap());
        fs::set_permissions(folder.join("key"), Permissions::from_mode(0o644)).unwrap();
        assert!(Cache::open(&folder).is_err());
        fs::set_permissions(folder.join("key"), Permissions::from_mode(0o600)).unwrap();
        assert!(Cache::open(&folder).is_ok());
        fs::set_permissions(&folder, Permissions::from_mode(0o770)).unwrap();
        assert!(Cache::open(&folder).is_err());
    }

    #[test]
    fn oldest_entries_are_removed() {
        let (folder, engine) = (tempfile::tempdir().unwrap(), engine());
        let folder = folder.path().join("cache");
        let (cache, component) = (Cache::open(&folder).unwrap(), component(&engine));
        for number in 0..MAX_ENTRIES + 5 {
            cache.put(&engine, &format!("{number:04}"), &component);
        }
        let entries = fs::read_dir(&folder).unwrap().count();
        // The folder contains the key too.
        assert_eq!(entries, MAX_ENTRIES + 1);
        assert!(cache.get(&engine, &format!("{:04}", MAX_ENTRIES + 4)).is_some());
    }
}
