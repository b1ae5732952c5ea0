//! `terrane plugin build`: builds a crate as a component.

use std::path::PathBuf;

use serde_json::json;
use terrane_plugin_kit::build::{BuildRequest, CoreModule, Profile, build};

use super::shown;
use crate::commands::{print, print_error};
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The crate is built for wasm32-unknown-unknown, which needs `rustup target add wasm32-unknown-unknown` once, or the
library that `cargo xtask setup` builds if rustup is not available.
The component is then target/components/<id>.wasm in cargo's target folder.

Examples:
  terrane plugin build detector-mine
  terrane plugin build detector-mine --release       small and fast; for use
  cd detector-mine && terrane plugin build --json | jq -r .sha256

A core module from another language's compiler becomes a component too; it exports the contract's functions
by the component model's canonical ABI (examples/detector-c):
  terrane plugin build detector-c --module detector-c/out.wasm --out detector-c.wasm")]
pub struct BuildArguments {
    /// The crate's folder
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// Build with the optimizations of the profile `release`
    #[arg(long, conflicts_with = "module")]
    pub release: bool,
    /// Use this core module instead of compiling the crate; plugin.toml names the role
    #[arg(long, value_name = "FILE")]
    pub module: Option<PathBuf>,
    /// Write the component here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &BuildArguments) -> Result<bool, Failure> {
    let profile = if arguments.release { Profile::Release } else { Profile::Dev };
    let module = arguments.module.clone().map_or(CoreModule::Crate(profile), CoreModule::File);
    let built = build(&BuildRequest { folder: arguments.dir.clone(), module, out: arguments.out.clone() })?;
    if arguments.json {
        let line = json!({
            "id": built.id, "path": built.path, "bytes": built.bytes, "sha256": built.digest,
            "problems": built.problems,
        });
        print(&format!("{line}\n"));
    } else {
        let size = built.bytes.div_ceil(1024);
        print(&format!("{}\n  {size} KiB, sha256 {}\n", built.path.display(), built.digest));
        built.problems.iter().for_each(|problem| print_error(&format!("problem: {}\n", shown(problem, 9))));
    }
    Ok(true)
}
