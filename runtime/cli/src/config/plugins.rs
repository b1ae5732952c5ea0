//! The key `plugins`: the folders of components, and the plugins to load with their settings.
//!
//! In: the reader; the value is a list of plugins, or a mapping with a list. Out: typed entries with unchanged paths.
//! An invalid entry is reported and left out; a project with an error is not served. Not here: reading the component
//! files (`terrane-plugin-host`).

use std::path::PathBuf;

use terrane_app::ports::plugins::PluginRole;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_plugin_host::manifest::{Capability, RequestedLimits};
use terrane_plugin_host::signature::PublicKey;
use terrane_plugin_host::{ConfigJson, Grants};

use super::place::Place;
use super::reader::{Section, WithPlace};

const MAX_ID_CHARS: usize = 64;

/// The settings of plugins.
#[derive(Debug, Clone, Default)]
pub struct PluginsConfig {
    /// The folders of components, relative to the project.
    pub paths: Vec<WithPlace<String>>,
    /// The listed plugins, with unique ids.
    pub listed: Vec<PluginConfig>,
    /// The public keys of accepted signatures.
    pub keys: Vec<PublicKey>,
    /// True if components that are not part of the program must be signed.
    pub must_be_signed: bool,
    pub place: Option<Place>,
    /// The cache folder for compiled components. `None` if the environment names no cache folder.
    pub cache: Option<PathBuf>,
}

/// One entry of the list.
#[derive(Debug, Clone)]
pub struct PluginConfig {
    pub id: String,
    pub role: PluginRole,
    /// The file, relative to the project; `None` for `<id>.wasm` in the folders of components.
    pub source: Option<String>,
    pub sha256: Option<String>,
    pub is_required: bool,
    pub is_monitored: bool,
    pub config_json: ConfigJson,
    pub grants: Grants,
    pub limits: RequestedLimits,
    pub place: Place,
}

pub(super) fn read(top: &mut Section<'_>) -> PluginsConfig {
    let place = top.place("plugins");
    if top.is_list("plugins") {
        let listed = top.sections("plugins", entry).unwrap_or_default();
        let listed = unique(top, listed.into_iter().flatten().collect());
        return PluginsConfig { listed, place, ..PluginsConfig::default() };
    }
    top.section("plugins", |s| {
        let paths = s.texts_with_places("paths").unwrap_or_default();
        let keys = keys(s);
        let must_be_signed = must_be_signed(s, &keys);
        let listed = s.sections("list", entry).unwrap_or_default();
        let listed = unique(s, listed.into_iter().flatten().collect());
        PluginsConfig { paths, listed, keys, must_be_signed, place, cache: None }
    })
}

fn keys(s: &mut Section<'_>) -> Vec<PublicKey> {
    let mut keys = Vec::new();
    for WithPlace { value, place } in s.texts_with_places("keys").unwrap_or_default() {
        match value.parse::<PublicKey>() {
            Ok(key) => keys.push(key),
            Err(error) => {
                let diagnostic = Diagnostic::error(Code::WrongValue, format!("a key of `plugins.keys` {error}"));
                s.report(place.mark(diagnostic.hint("Write a public key as `terrane plugin keygen` prints it.")));
            }
        }
    }
    keys
}

fn must_be_signed(s: &mut Section<'_>, keys: &[PublicKey]) -> bool {
    let place = s.place("require_signatures");
    // An operator who lists keys expects signatures to be required.
    let must_be_signed = s.boolean("require_signatures").unwrap_or(!keys.is_empty());
    if let (true, true, Some(place)) = (must_be_signed, keys.is_empty(), place) {
        let message = "`plugins.require_signatures` is true, and `plugins.keys` is empty";
        let diagnostic = Diagnostic::error(Code::WrongValue, message);
        s.report(place.mark(diagnostic.hint("List the public keys of the authors that you trust.")));
    }
    must_be_signed
}

/// Reads an entry. Returns `None` if a required key is missing or invalid, which is reported.
fn entry(s: &mut Section<'_>) -> Option<PluginConfig> {
    let roles = PluginRole::ALL.map(|role| (role.as_str(), role));
    let place = s.place("id").or_else(|| s.place("role")).or_else(|| s.place("source"));
    let id = s.checked("id", "a plugin's id: at most 64 of a-z, 0-9, `-` and `_`, beginning with a letter", id);
    let role = s.choice("role", &roles);
    let source = s.text("source");
    let sha256 = s.checked("sha256", "a SHA-256: 64 hexadecimal digits", digest);
    let enforcement_place = s.place("enforcement");
    let enforcement = s.choice("enforcement", &[("required", true), ("optional", false)]);
    let mode_place = s.place("mode");
    let is_monitored = s.choice("mode", &[("protect", false), ("monitor", true)]).unwrap_or(false);
    // A governance hook is required by default, because an operator who lists a hook relies on its protection even when
    // the hook fails. A hook in the mode `monitor` only observes, so it is optional.
    let is_required = enforcement.unwrap_or(role == Some(PluginRole::Governance) && !is_monitored);
    if let (true, Some(true), Some(place)) = (is_monitored, enforcement, enforcement_place) {
        let message = "a plugin in the mode `monitor` cannot be `required`, because its decisions are ignored";
        let hint = "Remove `enforcement`, or remove `mode: monitor` to apply the plugin's decisions.";
        s.report(place.mark(Diagnostic::error(Code::WrongValue, message).hint(hint)));
    }
    if let (true, Some(role), Some(place)) =
        (is_monitored, role.filter(|role| *role != PluginRole::Governance), mode_place)
    {
        let message = format!("`mode: monitor` has no effect on a {role}");
        let hint = "Remove the key: it is for governance hooks.";
        s.report(place.mark(Diagnostic::warning(Code::UnusedField, message).hint(hint)));
    }
    let config_json = s.json("config").map(|json| json.to_string()).unwrap_or_default().into();
    let grants = grants(s);
    let limits = s.section("limits", |s| RequestedLimits {
        time_ms: s.integer("time_ms", 1..=600_000),
        fuel: s.integer("fuel", 1..=1_000_000_000_000),
        memory_mb: s.integer("memory_mb", 1..=64),
    });
    for (key, is_there) in [("id", s.place("id").is_some()), ("role", s.place("role").is_some())] {
        if !is_there {
            let diagnostic = Diagnostic::error(Code::MissingField, format!("a plugin of the list has no `{key}`"));
            let diagnostic = diagnostic.hint("Add an `id` and a `role`: dialect, detector, check or governance.");
            s.report(place.as_ref().map_or(diagnostic.clone(), |place| place.mark(diagnostic)));
        }
    }
    let (id, role, place) = (id?, role?, place?);
    if role == PluginRole::Dialect && !id.starts_with("dialect-") {
        let diagnostic = Diagnostic::error(Code::WrongValue, format!("`{id}` is not the id of a dialect"));
        s.report(place.mark(diagnostic.hint("Name it `dialect-` and the warehouse's type.")));
        return None;
    }
    Some(PluginConfig { id, role, source, sha256, is_required, is_monitored, config_json, grants, limits, place })
}

fn grants(s: &mut Section<'_>) -> Grants {
    let mut grants = Grants::default();
    for WithPlace { value, place } in s.texts_with_places("grants").unwrap_or_default() {
        match Capability::by_name(&value) {
            Some(capability) => grants.add(capability),
            None => {
                let names = Capability::ALL.map(Capability::as_str).join(", ");
                let found: String = value.chars().take(60).collect();
                let diagnostic = Diagnostic::error(Code::WrongValue, format!("`{found}` is not a grant"));
                s.report(place.mark(diagnostic.hint(format!("Expected grants: {names}."))));
            }
        }
    }
    grants
}

/// Returns the first entry of each id, and reports the others.
fn unique(s: &mut Section<'_>, listed: Vec<PluginConfig>) -> Vec<PluginConfig> {
    let mut unique: Vec<PluginConfig> = Vec::with_capacity(listed.len());
    for plugin in listed {
        if unique.iter().any(|other| other.id == plugin.id) {
            let diagnostic = Diagnostic::error(Code::DuplicateName, format!("duplicate plugin id `{}`", plugin.id));
            s.report(plugin.place.mark(diagnostic.hint("List each plugin once, with its own id.")));
        } else {
            unique.push(plugin);
        }
    }
    unique
}

fn id(text: &str) -> Option<String> {
    let is_rest = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    let is_id =
        text.len() <= MAX_ID_CHARS && text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_rest);
    is_id.then(|| text.to_owned())
}

fn digest(text: &str) -> Option<String> {
    let text = text.trim();
    let is_digest = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_digest.then(|| text.to_ascii_lowercase())
}
