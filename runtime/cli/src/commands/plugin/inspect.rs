//! `terrane plugin inspect`: a component's imports, functions and types.
//!
//! In: a file. Out: a list, JSON, or WIT text. Nothing of the component runs.

use std::path::PathBuf;

use serde_json::json;
use wit_component::{DecodedWasm, OutputToString, WitPrinter};

use super::{open, read};
use crate::commands::print;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct InspectArguments {
    /// The component
    pub file: PathBuf,
    /// The component's whole type, as WIT
    #[arg(long, conflicts_with = "json")]
    pub wit: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &InspectArguments) -> Result<bool, Failure> {
    let bench = open(&arguments.file)?;
    let facts = bench.facts();
    if arguments.wit {
        let text = wit(&read(&arguments.file)?);
        let text = text.map_err(|message| Failure::new(format!("{}: {message}", arguments.file.display())))?;
        print(&text);
        return Ok(true);
    }
    if arguments.json {
        let exports = facts
            .exports
            .iter()
            .map(|export| json!({"interface": export.interface, "name": export.name, "signature": export.signature}));
        let line = json!({
            "role": facts.role.map(|role| role.to_string()), "bytes": facts.bytes, "sha256": facts.digest,
            "imports": facts.imports, "exports": exports.collect::<Vec<_>>(), "manifest": facts.manifest,
        });
        print(&format!("{line}\n"));
        return Ok(true);
    }
    let mut text = format!("{}, {} bytes, sha256 {}\n", arguments.file.display(), facts.bytes, facts.digest);
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
            // A stranger's text must not speak to the terminal.
            let plain: String = line.chars().map(|c| if c.is_control() { '\u{FFFD}' } else { c }).collect();
            text += &format!("  {plain}\n");
        }
    }
    print(&text);
    Ok(true)
}

fn wit(bytes: &[u8]) -> Result<String, String> {
    let decoded = wit_component::decode(bytes).map_err(|error| format!("{error:#}"))?;
    let main = decoded.package();
    let (DecodedWasm::WitPackage(resolve, _) | DecodedWasm::Component(resolve, _)) = &decoded;
    let others: Vec<_> = resolve.packages.iter().map(|(id, _)| id).filter(|id| *id != main).collect();
    let mut printer = WitPrinter::<OutputToString>::default();
    printer.print(resolve, main, &others).map_err(|error| format!("{error:#}"))?;
    Ok(printer.output.to_string())
}
