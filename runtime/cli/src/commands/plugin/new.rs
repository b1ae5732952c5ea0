//! `terrane plugin new`: creates the crate of a plugin from the role's template.

use std::path::PathBuf;

use terrane_plugin_kit::create::{NewPlugin, create};

use super::Role;
use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The SDK and the plugin contract come with the program: they are copied to vendor/terrane in the new folder.

Examples:
  terrane plugin new mine --role detector                  creates the plugin detector-mine
  terrane plugin new policy --role governance --name acme-policy
  terrane plugin new mine --role check --sdk ~/terrane/sdk")]
pub struct NewArguments {
    /// The new folder
    pub dir: PathBuf,
    /// The role of the plugin
    #[arg(long, value_enum)]
    pub role: Role,
    /// The plugin's name: a-z, 0-9 and `-`. The role is added as a prefix to the names of dialects, detectors and
    /// checks, as in `dialect-acme`. The default is the folder's name
    #[arg(long)]
    pub name: Option<String>,
    /// Use the SDK of a clone of Terrane instead of a copy: its folder `sdk`
    #[arg(long, value_name = "FOLDER")]
    pub sdk: Option<PathBuf>,
}

pub(super) fn run(arguments: &NewArguments) -> Result<bool, Failure> {
    let NewArguments { dir, role, name, sdk } = arguments;
    let plugin = NewPlugin { folder: dir.clone(), role: (*role).into(), name: name.clone(), sdk: sdk.clone() };
    let created = create(&plugin)?;
    let (id, folder) = (created.id, created.folder.display());
    print(&format!(
        "created {id} in {folder}\n\nnext:\n  cd {folder}\n  cargo test\n  terrane plugin build\n  terrane plugin \
         test\n\nthe code is src/lib.rs; README.md describes the rest\n"
    ));
    Ok(true)
}
