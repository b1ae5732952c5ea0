//! Creates the plugin host from the key `plugins`, and reports the plugins that cannot be used.
//!
//! In: a project. Out: a host, and a warning for each plugin that is listed and cannot be used, or that is in a folder
//! without effect. These are not errors: a server starts, and reports that it is not ready while a required plugin is
//! missing.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_app::ports::clock::Clock;
use terrane_app::ports::plugins::{PluginError, PluginFault, PluginRole, PluginState, PluginStatus, Plugins as _};
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_plugin_host::{ComponentFile, PluginHost, PluginSettings, SearchPath, Settings};

use super::WORKSPACE;
use crate::clock::SystemClock;
use crate::config::{PluginConfig, PluginsConfig, WithPlace};
use crate::project::Project;

/// The code for a required plugin that cannot be used. A server starts without it and is not ready; `check` reports an
/// error.
pub const REQUIRED_REFUSED: Code = Code::RequiredPluginRefused;

/// Returns the plugin host. Returns `None` if no component can run on this machine, and adds the reason to the
/// problems.
pub(super) fn host(project: &Project, problems: &mut Vec<Diagnostic>) -> Option<Arc<PluginHost>> {
    let config = &project.config.plugins;
    let root = project.folder.root();
    let search = search_path(root, &config.paths);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::default());
    let settings = Settings {
        cache: config.cache.clone(),
        plugins: config.listed.iter().map(|plugin| settings(root, &search, config, plugin)).collect(),
        keys: keys(config),
        clock: clock.into(),
        ..Settings::new(search.clone())
    };
    match PluginHost::new(settings) {
        Ok(host) => {
            problems.extend(config.listed.iter().filter_map(|plugin| refused(plugin, &host.loaded())));
            problems.extend(idle(root, &search, config));
            Some(Arc::new(host))
        }
        Err(error) => {
            problems.push(Diagnostic::error(Code::NoPlugins, format!("components cannot be run here: {error}")));
            None
        }
    }
}

fn keys(config: &PluginsConfig) -> Vec<terrane_plugin_host::signature::PublicKey> {
    if config.must_be_signed { config.keys.clone() } else { Vec::new() }
}

fn settings(root: &Path, search: &SearchPath, config: &PluginsConfig, plugin: &PluginConfig) -> PluginSettings {
    let file = format!("{}.wasm", plugin.id);
    let source = match &plugin.source {
        Some(source) => root.join(source),
        // If no folder contains the file, messages name its place in the first folder.
        None => search.file(&plugin.id).unwrap_or_else(|| root.join("plugins").join(file)),
    };
    PluginSettings {
        sha256: plugin.sha256.clone(),
        keys: if search.is_programs(&source) { Vec::new() } else { keys(config) },
        config_json: plugin.config_json.clone(),
        is_required: plugin.is_required,
        is_monitored: plugin.is_monitored,
        grants: plugin.grants,
        limits: plugin.limits,
        ..PluginSettings::new(plugin.id.clone(), plugin.role, source)
    }
}

/// Reports a listed plugin that is not in use.
fn refused(plugin: &PluginConfig, statuses: &[PluginStatus]) -> Option<Diagnostic> {
    let status = statuses.iter().find(|status| status.name == plugin.id)?;
    let PluginState::Refused(error) = &status.state else { return None };
    let message = format!("the plugin `{}` is not in use: {error}", plugin.id);
    let consequence = match (plugin.is_required, plugin.role) {
        (true, PluginRole::Governance) => "; it is required, so every query is refused",
        (true, _) => "; it is required, so the server is not ready",
        (false, _) => "",
    };
    if plugin.role != PluginRole::Governance && is_hook(error) {
        let diagnostic =
            Diagnostic::error(Code::WrongRole, format!("{message}; with this role it does not act as a hook"));
        return Some(plugin.place.mark(diagnostic.hint("Write `role: governance`.").about(plugin.id.as_str())));
    }
    let hint = match error {
        PluginError::Faulted { fault: PluginFault::Unreadable { .. }, .. } | PluginError::NotFound { .. } => {
            "Check `source`, a path relative to the project's folder.".to_owned()
        }
        _ => {
            let component = match &status.path {
                Some(path) => path.display().to_string(),
                None => "the component".to_owned(),
            };
            let reload = format!("then `POST /api/v1/plugins/{}/reload`", plugin.id);
            match error.entry_key() {
                Some(key) => format!(
                    "Edit `{key}` of this entry in service_project.yml and restart, because a reload does not read it. \
                     Or replace {component}, {reload}."
                ),
                None => format!("Repair or replace {component}, {reload}."),
            }
        }
    };
    let code = if plugin.is_required { REQUIRED_REFUSED } else { Code::PluginRefused };
    Some(
        plugin
            .place
            .mark(Diagnostic::warning(code, format!("{message}{consequence}")).hint(hint).about(plugin.id.as_str())),
    )
}

/// Returns whether a component that was refused in another role exports a governance hook.
fn is_hook(error: &PluginError) -> bool {
    let PluginError::Faulted { fault: PluginFault::WrongWorld { exports, .. }, .. } = error else { return false };
    exports.iter().any(|export| export.starts_with("terrane:governance/hook"))
}

/// Reports unused files in the operator's component folders, because the operator may expect them to enforce policies.
/// Files that came with the program are not reported.
fn idle(root: &Path, search: &SearchPath, config: &PluginsConfig) -> Vec<Diagnostic> {
    let sources = config.listed.iter().filter_map(|plugin| plugin.source.as_ref());
    let sources: Vec<PathBuf> = sources.filter_map(|source| root.join(source).canonicalize().ok()).collect();
    let is_listed = |file: &ComponentFile| {
        let is_source = || file.path.canonicalize().is_ok_and(|path| sources.contains(&path));
        config.listed.iter().any(|plugin| plugin.id == file.name) || is_source()
    };
    let own = SearchPath { program_folders: Vec::new(), ..search.clone() };
    let files = terrane_plugin_host::components_in(&own).into_iter().filter(|file| !is_listed(file));
    files.filter_map(|file| idle_file(root, &file)).collect()
}

/// Returns the warning for a component file that is not listed. Returns `None` if the host uses the file without a list
/// entry, because of the file's name.
fn idle_file(root: &Path, file: &ComponentFile) -> Option<Diagnostic> {
    let ComponentFile { name, path, role, id } = file;
    let (id, shown) = (id.as_ref().unwrap_or(name), path.display());
    let Some(role) = *role else {
        let message = format!("{shown} is not a plugin of any role; nothing uses it");
        let hint =
            format!("Run `terrane plugin check {shown}` to see the problem, or remove the file from the folder.");
        return Some(Diagnostic::warning(Code::PluginIdle, message).hint(hint));
    };
    let listed = |more: &str| {
        let source = path.strip_prefix(root).unwrap_or(path).display();
        let source = if id == name { String::new() } else { format!(", source: {source}") };
        format!("List it: `plugins: [{{id: {id}, role: {role}{source}{more}}}]`")
    };
    if role == PluginRole::Governance {
        let message = format!("{shown} is a governance hook that is not listed; it does nothing");
        return Some(Diagnostic::warning(Code::PluginIdle, message).hint(listed(", enforcement: required")));
    }
    let prefix = format!("{role}-");
    let (message, hint) = if !name.starts_with(&prefix) {
        let message =
            format!("{shown}, a {role}, is not used: only files named `{prefix}*.wasm` are found without being listed");
        let hint = match role {
            PluginRole::Dialect => {
                "Set the id and the name of the file to `dialect-` followed by the warehouse's type.".to_owned()
            }
            _ => format!("{}. Or choose an id and a file name that begin with `{prefix}`.", listed("")),
        };
        (message, hint)
    } else if id != name {
        let message = format!("{shown} is not used: its id is `{id}`, but the name of its file is `{name}`");
        let hint = match id.starts_with(&prefix) {
            true => format!("Rename the file to {id}.wasm."),
            false => format!("Set the id `{name}` in the component's plugin.toml and code, and build it again."),
        };
        (message, hint)
    } else {
        return None;
    };
    Some(Diagnostic::warning(Code::PluginIdle, message).hint(hint))
}

/// Returns the folders of components in the order of the search: the project's own, those beside the program, and in a
/// development tree those that set-up prepared.
fn search_path(root: &Path, configured: &[WithPlace<String>]) -> SearchPath {
    let mut folders = vec![root.join("plugins")];
    folders.extend(configured.iter().map(|path| root.join(&path.value)));
    let mut program_folders = Vec::new();
    let program = std::env::current_exe().and_then(|path| path.canonicalize()).ok();
    if let Some(beside) = program.as_deref().and_then(Path::parent) {
        program_folders.push(beside.join("plugins"));
        program_folders.push(beside.join("components"));
    }
    let prepared = WORKSPACE.map(|root| Path::new(root).join(".prepared/components"));
    program_folders.extend(prepared.and_then(|folder| folder.canonicalize().ok()));
    SearchPath { folders, program_folders, ..SearchPath::default() }
}
