//! `terrane plugin keygen` and `sign`: detached ed25519 signatures.
//!
//! In: a file, a key. Out: a key file that only its owner reads, a signature beside the component. Which
//! keys a server trusts is in its project (`plugins.keys`).

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::PathBuf;

use serde_json::json;
use terrane_plugin_host::signature::SecretKey;

use super::{open, read, read_text, signature_path, write};
use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct KeygenArguments {
    /// The new file for the secret key; only its owner may read it
    #[arg(long, value_name = "FILE", default_value = "plugin.key")]
    pub out: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct SignArguments {
    /// The component
    pub file: PathBuf,
    /// The file that `terrane plugin keygen` wrote
    #[arg(long, value_name = "FILE")]
    pub key: PathBuf,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn keygen(arguments: &KeygenArguments) -> Result<bool, Failure> {
    let shown = arguments.out.display();
    let key = SecretKey::generate().map_err(|error| Failure::new(format!("no key can be made: {error}")))?;
    // Never over a key that is there: what it signed could be signed no more.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&arguments.out);
    file.and_then(|mut file| writeln!(file, "{}", key.expose())).map_err(|error| {
        let hint = match error.kind() {
            ErrorKind::NotFound => "its folder is not there: make it, or name a file in another one with --out",
            ErrorKind::PermissionDenied => "the folder may not be written to: name a file in another one with --out",
            _ => "name a new file with --out",
        };
        Failure::new(format!("{shown} can't be made: {error}")).hint(hint)
    })?;
    if arguments.json {
        print(&format!("{}\n", json!({"secret_key_path": arguments.out, "public_key": key.public().to_string()})));
    } else {
        print(&format!(
            "wrote the secret key to {shown}; keep it to yourself\n\nservers that trust it, in service_project.yml:\n  \
             plugins: {{keys: [{}]}}\n",
            key.public()
        ));
    }
    Ok(true)
}

pub(super) fn sign(arguments: &SignArguments) -> Result<bool, Failure> {
    // What is signed is what a server could load.
    open(&arguments.file)?;
    let key = secret_key(&arguments.key)?;
    let signature = key.sign(&read(&arguments.file)?);
    let path = signature_path(&arguments.file);
    write(&path, format!("{signature}\n").as_bytes())?;
    if arguments.json {
        print(&format!("{}\n", json!({"path": path, "public_key": key.public().to_string()})));
    } else {
        print(&format!("wrote {}, by the key {}\n", path.display(), key.public()));
    }
    Ok(true)
}

fn secret_key(path: &PathBuf) -> Result<SecretKey, Failure> {
    let shown = path.display();
    let text = read_text(path)?;
    let mode = std::fs::metadata(path).map(|found| found.mode()).unwrap_or_default();
    if mode & 0o077 != 0 {
        return Err(Failure::new(format!("{shown} may be read by others")).hint(format!("chmod 600 {shown}")));
    }
    text.parse().map_err(|error| {
        Failure::new(format!("{shown}: a secret key {error}")).hint("`terrane plugin keygen` makes one")
    })
}
