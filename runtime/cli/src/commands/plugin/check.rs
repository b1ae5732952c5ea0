//! `terrane plugin check`: checks whether a server would load a component.

use std::path::PathBuf;

use serde_json::{Value, json};
use terrane_plugin_host::signature::PublicKey;
use terrane_plugin_host::test_bench::Identity;
use terrane_plugin_kit::check::{CheckReport, check};

use super::shown;
use crate::commands::print;
use crate::failure::Failure;
use crate::report::plural;

#[derive(Debug, clap::Args)]
pub struct CheckArguments {
    /// The component
    pub file: PathBuf,
    /// The configuration for the check, a JSON object
    #[arg(long, default_value = "", hide_default_value = true)]
    pub config: String,
    /// A public key whose signature is accepted; can be repeated
    #[arg(long, value_name = "KEY")]
    pub trust: Vec<PublicKey>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<bool, Failure> {
    let report = check(&arguments.file, &arguments.config, &arguments.trust).inspect_err(|error| {
        if arguments.json {
            print(&format!("{}\n", json!({"ok": false, "problems": [error.to_string()]})));
        }
    })?;
    if arguments.json {
        print(&format!("{}\n", to_json(&report)));
    } else {
        let problems = &report.problems;
        let lines = problems.iter().map(|problem| format!("problem: {}\n", shown(problem, 9)));
        let verdict = if problems.is_empty() { "ok".to_owned() } else { plural(problems.len(), "problem") };
        print(&format!("{}{}{verdict}\n", to_text(&report), lines.collect::<String>()));
    }
    Ok(report.problems.is_empty())
}

fn to_json(report: &CheckReport) -> Value {
    let CheckReport { facts, role, identity, signature, problems } = report;
    let identity = identity.as_ref();
    json!({
        "ok": problems.is_empty(), "problems": problems, "role": role.to_string(),
        "id": identity.map(|i| &i.id), "version": identity.map(|i| &i.version),
        "display_name": identity.map(|i| &i.display_name), "api": identity.map(|i| &i.api),
        "bytes": facts.bytes, "sha256": facts.digest, "imports": facts.imports,
        "exports": facts.exports.iter().map(|e| format!("{}#{}", e.interface, e.name)).collect::<Vec<_>>(),
        "manifest": facts.manifest, "signature": signature.to_string(),
    })
}

fn to_text(report: &CheckReport) -> String {
    let CheckReport { facts, role, identity, signature, .. } = report;
    let mut lines = vec![("role", role.to_string())];
    if let Some(Identity { id, version, display_name, api, .. }) = identity {
        lines.extend([("plugin", format!("{id} {version} ({display_name})")), ("api", api.clone())]);
    }
    lines.push(("size", format!("{} KiB", facts.bytes.div_ceil(1024))));
    lines.push(("sha256", facts.digest.clone()));
    lines.push(("imports", if facts.imports.is_empty() { "nothing".to_owned() } else { facts.imports.join(", ") }));
    let exports: Vec<&str> = facts.exports.iter().map(|export| export.name.as_str()).collect();
    lines.push(("exports", exports.join(", ")));
    lines.push(("signature", signature.to_string()));
    lines.into_iter().map(|(name, value)| format!("{name:<10} {value}\n")).collect()
}
