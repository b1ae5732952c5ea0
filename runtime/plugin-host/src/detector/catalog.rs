//! The kinds of all detector components, each checked and unique.
//!
//! In: the configured detectors. Out: their kinds, sorted by name, and a fault for each component whose kinds are
//! invalid. Only Terrane's own component may define the kinds `z_score`, `iqr`, `mad` and `seasonal`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use terrane_app::ports::calls::ComponentFault;
use terrane_app::ports::detectors::DetectorKind;
use terrane_app::ports::plugins::PluginFault;

use crate::bindings::detector::DetectorPlugin;
use crate::bindings::detector::exports::terrane::anomaly::detector as wire;
use crate::error::shortened;
use crate::plugin::{ConfigJson, ConfiguredPlugin, Plugin};
use crate::wire::names::is_code;

pub(crate) const CALL: &str = "detectors";
const MAX_KINDS: usize = 32;
const MAX_SCHEMA_BYTES: usize = 64 * 1024;
const FIRST_PARTY: (&str, [&str; 4]) = ("detector-standard", ["z_score", "iqr", "mad", "seasonal"]);

#[derive(Clone)]
pub(super) struct CatalogEntry {
    pub(super) kind: DetectorKind,
    pub(super) plugin: Arc<Plugin<DetectorPlugin>>,
}

pub(crate) type Answer = Result<Vec<DetectorKind>, PluginFault>;

/// The valid answers of components so far. A component that failed is called again.
#[derive(Clone, Default)]
pub(super) struct DetectorCatalog(Arc<Mutex<HashMap<CacheKey, Vec<DetectorKind>>>>);

/// The digest and the configuration of a component.
type CacheKey = (Arc<str>, ConfigJson);

impl DetectorCatalog {
    pub(super) fn entries(
        &self,
        configured: &[ConfiguredPlugin<DetectorPlugin>],
    ) -> (Vec<CatalogEntry>, Vec<ComponentFault>) {
        let (mut entries, mut faults): (Vec<CatalogEntry>, Vec<ComponentFault>) = (Vec::new(), Vec::new());
        for entry in configured {
            let plugin = match entry {
                ConfiguredPlugin::Active(plugin) => plugin,
                ConfiguredPlugin::Unavailable { id, fault, .. } => {
                    faults.push(ComponentFault { component: Arc::clone(id), fault: fault.clone() });
                    continue;
                }
            };
            let free = self.kinds(plugin).and_then(|kinds| free(kinds, &entries));
            match free {
                Ok(kinds) => {
                    entries.extend(kinds.into_iter().map(|kind| CatalogEntry { kind, plugin: Arc::clone(plugin) }));
                }
                Err(fault) => faults.push(ComponentFault { component: Arc::clone(&plugin.id), fault }),
            }
        }
        entries.sort_by(|a, b| a.kind.kind.cmp(&b.kind.kind));
        (entries, faults)
    }

    fn kinds(&self, plugin: &Plugin<DetectorPlugin>) -> Answer {
        let key = (Arc::clone(&plugin.digest), plugin.config_json.clone());
        // An entry is inserted in one step, so a panic leaves the map consistent.
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&key) {
            return Ok(known.clone());
        }
        let answer = plugin.call(CALL, |guest, store| guest.terrane_anomaly_detector().call_detectors(store));
        let kinds = answer.and_then(|infos| checked(infos, &plugin.id, &plugin.version))?;
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key, kinds.clone());
        Ok(kinds)
    }
}

fn fault(message: String) -> PluginFault {
    PluginFault::Answer { call: CALL, message }
}

/// Checks that no other component has defined one of these kinds.
fn free(kinds: Vec<DetectorKind>, entries: &[CatalogEntry]) -> Answer {
    let taken = |kind: &DetectorKind| entries.iter().find(|entry| entry.kind.kind == kind.kind);
    match kinds.iter().find_map(|kind| Some((&kind.kind, &taken(kind)?.kind.component))) {
        Some((kind, owner)) => Err(fault(format!("its kind `{kind}` already belongs to `{owner}`"))),
        None => Ok(kinds),
    }
}

/// Checks the kinds of one component.
pub(crate) fn checked(infos: Vec<wire::DetectorInfo>, component: &Arc<str>, version: &Arc<str>) -> Answer {
    if !(1..=MAX_KINDS).contains(&infos.len()) {
        return Err(fault(format!("{} kinds, not 1 to {MAX_KINDS}", infos.len())));
    }
    let mut kinds: Vec<DetectorKind> = Vec::with_capacity(infos.len());
    for info in infos {
        check_info(&info, component)?;
        if kinds.iter().any(|kind| *kind.kind == info.kind) {
            return Err(fault(format!("the kind `{}` is a duplicate", info.kind)));
        }
        kinds.push(DetectorKind {
            kind: info.kind.into(),
            display_name: shortened(&info.display_name).into(),
            default_sensitivity: info.default_sensitivity,
            min_points: info.min_points,
            has_model: info.has_model,
            settings_schema_json: info.settings_schema_json.into(),
            component: Arc::clone(component),
            version: Arc::clone(version),
        });
    }
    Ok(kinds)
}

fn check_info(info: &wire::DetectorInfo, component: &str) -> Result<(), PluginFault> {
    let kind = shortened(&info.kind);
    if !is_code(&info.kind) {
        return Err(fault(format!("`{kind}` is not a kind: [a-z][a-z0-9_]*, at most 64 bytes")));
    }
    if component != FIRST_PARTY.0 && FIRST_PARTY.1.contains(&&*info.kind) {
        return Err(fault(format!("the kind `{kind}` belongs to `{}`", FIRST_PARTY.0)));
    }
    if !(info.default_sensitivity.is_finite() && info.default_sensitivity > 0.0) {
        return Err(fault(format!("the default sensitivity of `{kind}` is {}", info.default_sensitivity)));
    }
    let schema = &info.settings_schema_json;
    let is_schema = schema.is_empty() || serde_json::from_str::<serde_json::Map<_, serde_json::Value>>(schema).is_ok();
    if schema.len() > MAX_SCHEMA_BYTES || !is_schema {
        return Err(fault(format!("the settings' schema of `{kind}` is not a JSON object of at most 64 KiB")));
    }
    Ok(())
}
