//! `terrane plugin inspect`: shows a component's imports, functions and types, without running it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::Facts;
use terrane_plugin_kit::inspect::{inspect, wit};
use terrane_terminal::TerminalText;

use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct InspectArguments {
    /// The component
    pub file: PathBuf,
    /// Print the component's whole type, as WIT
    #[arg(long, conflicts_with = "json")]
    pub wit: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &InspectArguments) -> Result<bool, Failure> {
    let InspectArguments { file, wit: is_wit, json: is_json } = arguments;
    if *is_wit {
        print(&wit(file)?);
        return Ok(true);
    }
    let facts = inspect(file)?;
    print(&if *is_json { format!("{}\n", to_json(&facts)) } else { to_text(file, &facts) });
    Ok(true)
}

fn to_json(facts: &Facts) -> Value {
    let exports = facts.exports.iter();
    let exports = exports
        .map(|export| json!({"interface": export.interface, "name": export.name, "signature": export.signature}));
    json!({
        "role": facts.role.map(|role| role.to_string()), "bytes": facts.bytes, "sha256": facts.digest,
        "imports": facts.imports, "exports": exports.collect::<Vec<_>>(), "manifest": facts.manifest,
    })
}

fn to_text(file: &Path, facts: &Facts) -> String {
    let mut text = format!("{}, {} bytes, sha256 {}\n", file.display(), facts.bytes, facts.digest);
    for import in &facts.imports {
        text += &format!("import {import}\n");
    }
    let mut interface = "";
    for export in &facts.exports {
        if export.interface != interface {
            interface = &export.interface;
            text += &format!("export {interface}\n");
        }
        text += &format!("  {}: {}\n", export.name, export.signature);
    }
    if let Some(manifest) = &facts.manifest {
        text.push_str("plugin.toml\n");
        for line in manifest.trim_end().lines() {
            // The text comes from an untrusted component, so control characters must not reach the terminal.
            text += &format!("  {}\n", TerminalText::line(line));
        }
    }
    text
}
