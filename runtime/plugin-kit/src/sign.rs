//! Creates keys and detached ed25519 signatures.
//!
//! In: a file, a key. Out: a key file that only its owner can read, and a signature beside the component. Not here: the
//! keys that a server trusts, which its project lists (`plugins.keys`).

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use terrane_plugin_host::signature::{PublicKey, SecretKey};

use crate::component::open;
use crate::error::KitError;
use crate::files::{read, read_text, signature_path, write};

/// A signature that was written.
#[derive(Debug, Clone)]
pub struct SignedComponent {
    /// The path of the signature.
    pub path: PathBuf,
    pub key: PublicKey,
}

/// Writes a new secret key to `out` and returns its public key. An existing file is never overwritten, because the key
/// in it would be lost.
///
/// # Errors
/// The file exists already, or it cannot be created.
pub fn create_key(out: &Path) -> Result<PublicKey, KitError> {
    let key = SecretKey::generate().map_err(KitError::CreateKey)?;
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out);
    file.and_then(|mut file| writeln!(file, "{}", key.expose()))
        .map_err(|source| KitError::KeyFile { path: out.to_owned(), source })?;
    Ok(key.public())
}

/// Writes the signature of a component to a file beside the component.
///
/// # Errors
/// A server would not load the component, the key cannot be read, or other users can read it.
pub fn sign(file: &Path, key: &Path) -> Result<SignedComponent, KitError> {
    open(file)?;
    let key = secret_key(key)?;
    let signature = key.sign(&read(file)?);
    let path = signature_path(file);
    write(&path, format!("{signature}\n").as_bytes())?;
    Ok(SignedComponent { path, key: key.public() })
}

fn secret_key(path: &Path) -> Result<SecretKey, KitError> {
    let text = read_text(path)?;
    let mode = fs::metadata(path).map(|found| found.mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        return Err(KitError::KeyIsReadable { path: path.to_owned() });
    }
    text.parse().map_err(|error| KitError::Key { path: path.to_owned(), error })
}
