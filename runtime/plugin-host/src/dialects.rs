//! The dialects of this host by their warehouse's type. Each component is called once; then its profile is cached.
//!
//! In: a dialect's name, the operator's list, a search path. Out: a checked profile. If a component failed, the next
//! request loads it again, so that a repaired file needs no restart. A profile is cached as long as the process runs,
//! because it is part of the loaded project.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_app::ports::plugins::{PluginError, PluginFault, PluginLimits, PluginRole, PluginState, PluginStatus};
use terrane_compiler::sql::dialect_profile::DialectProfile;

use crate::bindings::dialect::DialectPlugin;
use crate::dialect;
use crate::factory::PluginFactory;
use crate::loader::SearchPath;
use crate::plugin::PluginSettings;
use crate::plugin_slot::status_of;
use crate::signature::PublicKey;

pub(crate) struct Dialects {
    factory: Arc<PluginFactory>,
    search: SearchPath,
    listed: BTreeMap<String, PluginSettings>,
    /// The trusted keys for dialects that the operator does not list. One of these keys must have signed such a
    /// component, unless it is in a folder of the program. Empty if no signature is required.
    keys: Vec<PublicKey>,
    /// The components by name. The lock is held while a component is loaded, so that concurrent requests load it once.
    components: Mutex<BTreeMap<String, Component>>,
}

struct Component {
    status: PluginStatus,
    profile: Option<Arc<DialectProfile>>,
}

impl Dialects {
    /// Loads the listed dialects.
    pub(crate) fn new(
        factory: Arc<PluginFactory>,
        search: SearchPath,
        keys: Vec<PublicKey>,
        listed: Vec<PluginSettings>,
    ) -> Dialects {
        let listed = listed.into_iter().map(|settings| (settings.id.clone(), settings)).collect();
        let dialects = Dialects { factory, search, listed, keys, components: Mutex::default() };
        for id in dialects.listed.keys() {
            // The dialect's status reports a failure.
            let _ = dialects.profile(id.strip_prefix("dialect-").unwrap_or(id));
        }
        dialects
    }

    /// Returns the checked profile of a dialect.
    ///
    /// # Errors
    /// The component does not exist, or cannot be used.
    pub(crate) fn profile(&self, name: &str) -> Result<Arc<DialectProfile>, PluginError> {
        if !is_dialect_name(name) {
            return Err(PluginError::Name { name: name.to_owned() });
        }
        let component = format!("dialect-{name}");
        let mut components = self.components();
        if let Some(profile) = components.get(&component).and_then(|c| c.profile.clone()) {
            return Ok(profile);
        }
        let (status, profile) = self.load(name, &component);
        let profile = profile.map(Arc::new);
        components.insert(component, Component { status, profile: profile.as_ref().ok().cloned() });
        profile
    }

    pub(crate) fn statuses(&self) -> Vec<PluginStatus> {
        self.components().values().map(|component| component.status.clone()).collect()
    }

    fn components(&self) -> MutexGuard<'_, BTreeMap<String, Component>> {
        // An entry is inserted in one step, so a panic leaves the map consistent.
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads a dialect. Returns its status, which also reports a failure, and its profile.
    fn load(&self, dialect: &str, name: &str) -> (PluginStatus, Result<DialectProfile, PluginError>) {
        let found = match self.listed.get(name) {
            Some(settings) => Ok(settings.clone()),
            None => self.search.find(name).map(|path| {
                let keys = if self.search.is_programs(&path) { Vec::new() } else { self.keys.clone() };
                PluginSettings { keys, is_found: true, ..PluginSettings::new(name, PluginRole::Dialect, path) }
            }),
        };
        let settings = match found {
            Ok(settings) => settings,
            Err(error) => return (refused(PluginStatus::unknown(name, PluginRole::Dialect), &error), Err(error)),
        };
        let mut status = status_of(&settings, PluginRole::Dialect);
        match self.ask(&settings, dialect, &mut status) {
            Ok(profile) => (status, Ok(profile)),
            Err(fault) => {
                let error = PluginError::Faulted { path: settings.source, fault };
                (refused(status, &error), Err(error))
            }
        }
    }

    fn ask(
        &self,
        settings: &PluginSettings,
        dialect: &str,
        status: &mut PluginStatus,
    ) -> Result<DialectProfile, PluginFault> {
        let loaded = match self.factory.load::<DialectPlugin>(settings) {
            Ok(loaded) => loaded,
            Err((digest, fault)) => {
                status.digest = digest;
                return Err(fault);
            }
        };
        status.digest = Some(loaded.digest.to_string());
        let limits = loaded.limits;
        status.limits =
            PluginLimits { time_ms: limits.time_ms, fuel: limits.fuel, memory_bytes: loaded.memory_bytes as u64 };
        let profile = dialect::profile(&loaded.linked, dialect, &settings.config_json, limits)?;
        status.describe_fuel = Some(loaded.linked.fuel());
        status.id = Some(loaded.info.id);
        status.version = Some(loaded.info.version);
        Ok(profile)
    }
}

fn refused(mut status: PluginStatus, error: &PluginError) -> PluginStatus {
    status.state = PluginState::Refused(error.clone());
    status
}

/// Returns whether the name is valid as a part of a file name.
fn is_dialect_name(name: &str) -> bool {
    let is_first = |b: u8| b.is_ascii_lowercase();
    let is_rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    name.len() <= 64 && name.bytes().next().is_some_and(is_first) && name.bytes().all(is_rest)
}
