//! `terrane plugin check`: whether a server would take a component.
//!
//! In: a file. Out: what it is, and every problem: imports, role, version, types, what it says of itself
//! against its manifest, its signature. Not here: whether its answers make sense (`test`).

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use terrane_app::ports::plugins::{PluginFault, PluginRole};
use terrane_plugin_host::manifest::{Capability, Manifest};
use terrane_plugin_host::signature::{PublicKey, Signature};
use terrane_plugin_host::test_bench::{Identity, TestBench};

use super::{open, read, role_of, shown, signature_path};
use crate::commands::print;
use crate::failure::Failure;
use crate::report::plural;

#[derive(Debug, clap::Args)]
pub struct CheckArguments {
    /// The component
    pub file: PathBuf,
    /// The configuration to ask it about, a JSON object
    #[arg(long, default_value = "", hide_default_value = true)]
    pub config: String,
    /// A public key that the signature must be by; may be given several times
    #[arg(long, value_name = "KEY")]
    pub trust: Vec<PublicKey>,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

pub(super) fn run(arguments: &CheckArguments) -> Result<bool, Failure> {
    let opened = open(&arguments.file).and_then(|bench| {
        let role = role_of(&bench, &arguments.file)?;
        Ok((bench.configured(&arguments.config), role))
    });
    let (bench, role) = opened.inspect_err(|failure| {
        if let (true, Failure::Plain { message, .. }) = (arguments.json, failure) {
            print(&format!("{}\n", json!({"ok": false, "problems": [message]})));
        }
    })?;
    let mut problems = Vec::new();
    let identity = probed(&bench, role, &mut problems);
    problems.extend(manifest_problems(&bench, role, identity.as_ref()));
    let signature = signature_state(&arguments.file, &arguments.trust)?;
    if let Err(problem) = &signature {
        problems.push(problem.clone());
    }
    let signature = signature.unwrap_or_else(|_| "not valid".to_owned());
    if arguments.json {
        print(&format!("{}\n", to_json(&bench, role, identity.as_ref(), &signature, &problems)));
    } else {
        print(&to_text(&bench, role, identity.as_ref(), &signature));
        let lines = problems.iter().map(|problem| format!("problem: {}\n", shown(problem, 9)));
        let verdict = if problems.is_empty() { "ok".to_owned() } else { plural(problems.len(), "problem") };
        print(&format!("{}{verdict}\n", lines.collect::<String>()));
    }
    Ok(problems.is_empty())
}

/// Who it is, and what a server would refuse it for.
pub(super) fn probed(bench: &TestBench, role: PluginRole, problems: &mut Vec<String>) -> Option<Identity> {
    let fault = match bench.probe(role) {
        Ok(identity) => return Some(identity),
        Err(fault) => fault,
    };
    let is_config = matches!(fault, PluginFault::Declined { call: "check-config", .. });
    let hint = if is_config && bench.config_json().is_empty() { "; --config gives it one" } else { "" };
    problems.push(format!("it {fault}{hint}"));
    bench.describe(role).ok()
}

/// What the manifest says otherwise than the component.
pub(super) fn manifest_problems(bench: &TestBench, role: PluginRole, identity: Option<&Identity>) -> Vec<String> {
    let Some(text) = &bench.facts().manifest else {
        return vec!["it has no section plugin.toml; `terrane plugin build` puts it in".to_owned()];
    };
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("plugin.toml: {error}")],
    };
    let mut problems = Vec::new();
    let imports_memo = bench.facts().imports.iter().any(|import| import.starts_with("terrane:host/memo@"));
    if imports_memo && !manifest.capabilities.contains(&Capability::Memo) {
        problems
            .push("it imports terrane:host/memo, and plugin.toml does not ask for the capability `memo`".to_owned());
    }
    if !manifest.roles.contains(&role) {
        problems.push(format!("plugin.toml does not name the role {role}"));
    }
    if let Some(identity) = identity {
        for (key, said, described) in [
            ("id", &manifest.id, &identity.id),
            ("version", &manifest.version, &identity.version),
            ("api", &manifest.api, &identity.api),
        ] {
            if said != described {
                problems.push(format!("plugin.toml says {key} = {said:?}, and `describe` says {described:?}"));
            }
        }
    }
    problems
}

/// What is known of the signature; a problem where it is wrong, or missing and asked for.
fn signature_state(file: &Path, trusted: &[PublicKey]) -> Result<Result<String, String>, Failure> {
    let path = signature_path(file);
    if !path.exists() {
        let missing = Ok("none".to_owned());
        return Ok(if trusted.is_empty() { missing } else { Err(format!("{} is missing", path.display())) });
    }
    let (text, bytes) = (super::read_text(&path)?, read(file)?);
    let signature = match text.parse::<Signature>() {
        Ok(signature) => signature,
        Err(error) => return Ok(Err(format!("{}: a signature {error}", path.display()))),
    };
    if trusted.is_empty() {
        return Ok(Ok("there, not compared with a key; --trust KEY does".to_owned()));
    }
    let verified = signature.verify(&bytes, trusted);
    Ok(verified.map(|key| format!("by {key}")).map_err(|error| format!("{}: it {error}", path.display())))
}

fn to_json(
    bench: &TestBench,
    role: PluginRole,
    identity: Option<&Identity>,
    signature: &str,
    problems: &[String],
) -> Value {
    let facts = bench.facts();
    json!({
        "ok": problems.is_empty(), "problems": problems, "role": role.to_string(),
        "id": identity.map(|i| &i.id), "version": identity.map(|i| &i.version),
        "display_name": identity.map(|i| &i.display_name), "api": identity.map(|i| &i.api),
        "bytes": facts.bytes, "sha256": facts.digest, "imports": facts.imports,
        "exports": facts.exports.iter().map(|e| format!("{}#{}", e.interface, e.name)).collect::<Vec<_>>(),
        "manifest": facts.manifest, "signature": signature,
    })
}

fn to_text(bench: &TestBench, role: PluginRole, identity: Option<&Identity>, signature: &str) -> String {
    let facts = bench.facts();
    let mut lines = vec![("role", role.to_string())];
    if let Some(Identity { id, version, display_name, api, .. }) = identity {
        lines.extend([("plugin", format!("{id} {version} ({display_name})")), ("api", api.clone())]);
    }
    lines.push(("size", format!("{} KiB", facts.bytes.div_ceil(1024))));
    lines.push(("sha256", facts.digest.clone()));
    lines.push(("imports", if facts.imports.is_empty() { "nothing".to_owned() } else { facts.imports.join(", ") }));
    let exports: Vec<&str> = facts.exports.iter().map(|export| export.name.as_str()).collect();
    lines.push(("exports", exports.join(", ")));
    lines.push(("signature", signature.to_owned()));
    lines.into_iter().map(|(name, value)| format!("{name:<10} {value}\n")).collect()
}
