//! `terrane plugin keygen` and `sign`: detached ed25519 signatures.

use std::path::PathBuf;

use serde_json::json;
use terrane_plugin_kit::sign::{create_key, sign as sign_component};

use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct KeygenArguments {
    /// The file to create for the secret key; only its owner can read it
    #[arg(long, value_name = "FILE", default_value = "plugin.key")]
    pub out: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, clap::Args)]
pub struct SignArguments {
    /// The component
    #[arg(value_name = "COMPONENT")]
    pub file: PathBuf,
    /// The file that `terrane plugin keygen` wrote
    #[arg(long, value_name = "KEY")]
    pub key: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn keygen(arguments: &KeygenArguments) -> Result<bool, Failure> {
    let key = create_key(&arguments.out)?;
    if arguments.json {
        print(&format!("{}\n", json!({"secret_key_path": arguments.out, "public_key": key.to_string()})));
    } else {
        print(&format!(
            "wrote the secret key to {}; keep it secret\n\nto trust the key, write in service_project.yml:\n  \
             plugins: {{keys: [{key}]}}\n",
            arguments.out.display(),
        ));
    }
    Ok(true)
}

pub(super) fn sign(arguments: &SignArguments) -> Result<bool, Failure> {
    let signed = sign_component(&arguments.file, &arguments.key)?;
    if arguments.json {
        print(&format!("{}\n", json!({"path": signed.path, "public_key": signed.key.to_string()})));
    } else {
        print(&format!("wrote {}, signed with the key {}\n", signed.path.display(), signed.key));
    }
    Ok(true)
}
