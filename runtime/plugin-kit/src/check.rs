//! Checks whether a server would load a component.
//!
//! In: a file. Out: its identity, and every problem with its imports, role, version, types, manifest or signature. Not
//! here: the meaning of its answers (`test`).

use std::fmt;
use std::path::{Path, PathBuf};

use terrane_app::ports::plugins::{PluginFault, PluginRole};
use terrane_plugin_host::manifest::{Capability, Manifest};
use terrane_plugin_host::signature::{PublicKey, Signature, SignatureError};
use terrane_plugin_host::test_bench::{Facts, Identity, TestBench};

use crate::component::{open, role_of};
use crate::error::KitError;
use crate::files::{read, read_text, signature_path};

/// The result of a check.
#[derive(Debug, Clone)]
pub struct CheckReport {
    pub facts: Facts,
    pub role: PluginRole,
    /// The identity, or `None` if the component cannot describe itself.
    pub identity: Option<Identity>,
    pub signature: SignatureState,
    pub problems: Vec<String>,
}

/// The state of a component's signature, which is in a file beside the component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignatureState {
    /// The component is not signed, and no signature is required.
    None,
    /// The component is not signed, and a signature by a trusted key is required.
    Missing {
        path: PathBuf,
    },
    /// A signature exists, but no key was given.
    Unverified,
    Verified {
        key: PublicKey,
    },
    /// The file does not contain a signature.
    Malformed {
        path: PathBuf,
        error: SignatureError,
    },
    /// The signature was made by a key that is not trusted, or for other content.
    Invalid {
        path: PathBuf,
        error: SignatureError,
    },
}

impl SignatureState {
    /// Returns the problem for which a server would refuse the component.
    fn problem(&self) -> Option<String> {
        match self {
            SignatureState::Missing { path } => Some(format!("{} is missing", path.display())),
            SignatureState::Malformed { path, error } => Some(format!("{}: a signature {error}", path.display())),
            SignatureState::Invalid { path, error } => Some(format!("{}: it {error}", path.display())),
            SignatureState::None | SignatureState::Unverified | SignatureState::Verified { .. } => None,
        }
    }
}

impl fmt::Display for SignatureState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SignatureState::None => f.write_str("none"),
            SignatureState::Unverified => f.write_str("present, not verified; --trust KEY verifies it"),
            SignatureState::Verified { key } => write!(f, "by {key}"),
            SignatureState::Missing { .. } | SignatureState::Malformed { .. } | SignatureState::Invalid { .. } => {
                f.write_str("not valid")
            }
        }
    }
}

/// Checks a component with a configuration, which is a JSON object. If `trusted` is not empty, one of its keys must
/// have signed the component.
///
/// # Errors
/// The file is not a component, the component has no role, or its signature cannot be read.
pub fn check(file: &Path, config_json: &str, trusted: &[PublicKey]) -> Result<CheckReport, KitError> {
    let bench = open(file)?;
    let role = role_of(&bench, file)?;
    let bench = bench.configured(config_json);
    let (identity, mut problems) = probe(&bench, role);
    problems.extend(manifest_problems(bench.facts(), role, identity.as_ref()));
    let signature = signature_state(file, trusted)?;
    problems.extend(signature.problem());
    Ok(CheckReport { facts: bench.facts().clone(), role, identity, signature, problems })
}

/// Returns the identity of the component, and the fault for which a server would refuse it.
pub(crate) fn probe(bench: &TestBench, role: PluginRole) -> (Option<Identity>, Vec<String>) {
    let fault = match bench.probe(role) {
        Ok(identity) => return (Some(identity), Vec::new()),
        Err(fault) => fault,
    };
    let is_config = matches!(fault, PluginFault::Declined { call: "check-config", .. });
    let hint = if is_config && bench.config_json().is_empty() { "; --config sets one" } else { "" };
    (bench.describe(role).ok(), vec![format!("it {fault}{hint}")])
}

/// Returns the differences between a component and its manifest.
pub(crate) fn manifest_problems(facts: &Facts, role: PluginRole, identity: Option<&Identity>) -> Vec<String> {
    let Some(text) = &facts.manifest else {
        return vec!["it has no section plugin.toml; `terrane plugin build` adds it".to_owned()];
    };
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![format!("plugin.toml: {error}")],
    };
    let mut problems = Vec::new();
    let imports_memo = facts.imports.iter().any(|import| import.starts_with("terrane:host/memo@"));
    if imports_memo && !manifest.capabilities.contains(&Capability::Memo) {
        problems
            .push("it imports terrane:host/memo, and plugin.toml does not ask for the capability `memo`".to_owned());
    }
    if !manifest.roles.contains(&role) {
        problems.push(format!("plugin.toml does not name the role {role}"));
    }
    if let Some(identity) = identity {
        for (key, written, described) in [
            ("id", &manifest.id, &identity.id),
            ("version", &manifest.version, &identity.version),
            ("api", &manifest.api, &identity.api),
        ] {
            if written != described {
                problems.push(format!("plugin.toml has {key} = {written:?}, but `describe` returns {described:?}"));
            }
        }
    }
    problems
}

fn signature_state(file: &Path, trusted: &[PublicKey]) -> Result<SignatureState, KitError> {
    let path = signature_path(file);
    if !path.exists() {
        return Ok(if trusted.is_empty() { SignatureState::None } else { SignatureState::Missing { path } });
    }
    let signature = match read_text(&path)?.parse::<Signature>() {
        Ok(signature) => signature,
        Err(error) => return Ok(SignatureState::Malformed { path, error }),
    };
    if trusted.is_empty() {
        return Ok(SignatureState::Unverified);
    }
    Ok(match signature.verify(&read(file)?, trusted) {
        Ok(key) => SignatureState::Verified { key },
        Err(error) => SignatureState::Invalid { path, error },
    })
}
