//! The `Plugins` port: components by name, each loaded once and then only remembered.
//!
//! In: settings. Out: checked profiles. A component that failed is tried again the next time it is
//! asked for, so that a repaired file needs no restart. Not here: signatures, breakers, reload.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use terrane_app::ports::plugins::{PluginError, PluginRole, PluginState, PluginStatus, Plugins};
use terrane_compiler::sql::profile::DialectProfile;

use crate::cache::Cache;
use crate::dialect;
use crate::engine::{Engine, EngineError};
use crate::limits::{CallLimits, GuestLimits};
use crate::loader::{self, SearchPath};

/// Where components come from and what they may use.
#[derive(Debug, Clone)]
pub struct Settings {
    pub search: SearchPath,
    pub guest: GuestLimits,
    /// For the calls that describe a component, once per load.
    pub describe: CallLimits,
    /// Where compiled components are kept: a folder of this user's, which no project brings. `None`: each
    /// start compiles.
    pub cache: Option<PathBuf>,
}

impl Settings {
    /// The default limits.
    pub fn new(search: SearchPath) -> Settings {
        Settings { search, guest: GuestLimits::default(), describe: CallLimits::DESCRIBE, cache: None }
    }
}

/// Runs components. One for the whole process; dropping it ends its thread.
pub struct PluginHost {
    engine: Engine,
    settings: Settings,
    cache: Option<Cache>,
    guest_calls: AtomicU64,
    /// By component name. The lock is held while a component is loaded, so that two callers that ask
    /// at once load it once.
    components: Mutex<BTreeMap<String, Component>>,
}

struct Component {
    status: PluginStatus,
    profile: Option<Arc<DialectProfile>>,
}

impl PluginHost {
    /// Sets up the sandbox; no component is looked for yet.
    ///
    /// # Errors
    /// When this machine can't run WebAssembly.
    pub fn new(settings: Settings) -> Result<PluginHost, EngineError> {
        let engine = Engine::new(settings.guest)?;
        let cache = settings.cache.as_deref().and_then(|folder| match Cache::open(folder) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::debug!(event = "component_cache_off", error_message = %error);
                None
            }
        });
        Ok(PluginHost { engine, settings, cache, guest_calls: AtomicU64::new(0), components: Mutex::default() })
    }

    fn components(&self) -> MutexGuard<'_, BTreeMap<String, Component>> {
        // Entries are inserted whole.
        self.components.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Loads the dialect's component; what became of it is in the status as well.
    fn load_dialect(&self, dialect: &str, name: &str) -> (PluginStatus, Result<DialectProfile, PluginError>) {
        let mut status = PluginStatus {
            name: name.to_owned(),
            role: PluginRole::Dialect,
            path: None,
            digest: None,
            id: None,
            version: None,
            describe_fuel: None,
            state: PluginState::Active,
        };
        let found = match loader::load(&self.engine, self.cache.as_ref(), &self.settings.search, name) {
            Ok(found) => found,
            Err(error) => return (refused(status, &error), Err(error)),
        };
        status.path = Some(found.path.clone());
        status.digest = found.digest;
        let described = found.outcome.and_then(|component| {
            dialect::describe(&self.engine, &component, dialect, self.settings.describe, &self.guest_calls)
        });
        match described {
            Ok(description) => {
                status.id = Some(description.id);
                status.version = Some(description.version);
                status.describe_fuel = Some(description.fuel);
                (status, Ok(description.profile))
            }
            Err(fault) => {
                let error = PluginError::Faulted { path: found.path, fault };
                (refused(status, &error), Err(error))
            }
        }
    }
}

fn refused(mut status: PluginStatus, error: &PluginError) -> PluginStatus {
    status.state = PluginState::Refused(error.clone());
    status
}

impl Plugins for PluginHost {
    fn dialect(&self, name: &str) -> Result<Arc<DialectProfile>, PluginError> {
        if !is_dialect_name(name) {
            return Err(PluginError::Name { name: name.to_owned() });
        }
        let component = format!("dialect-{name}");
        let mut components = self.components();
        if let Some(profile) = components.get(&component).and_then(|c| c.profile.clone()) {
            return Ok(profile);
        }
        let (status, profile) = self.load_dialect(name, &component);
        let profile = profile.map(Arc::new);
        components.insert(component, Component { status, profile: profile.as_ref().ok().cloned() });
        profile
    }

    fn loaded(&self) -> Vec<PluginStatus> {
        self.components().values().map(|component| component.status.clone()).collect()
    }

    fn guest_calls(&self) -> u64 {
        self.guest_calls.load(Ordering::Relaxed)
    }
}

/// It becomes part of a file's name, so it may name nothing else.
fn is_dialect_name(name: &str) -> bool {
    let is_first = |b: u8| b.is_ascii_lowercase();
    let is_rest = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-';
    name.len() <= 64 && name.bytes().next().is_some_and(is_first) && name.bytes().all(is_rest)
}
