//! The adapter of the `Plugins` port.
//!
//! In: settings. Out: profiles of dialects, the statuses of all plugins, and the operator's changes of plugins. Not
//! here: calls of detectors, checks and hooks, whose adapters use the `registry`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use terrane_app::ports::plugins::{ChangeError, PluginError, PluginRole, PluginState, PluginStatus, Plugins};
use terrane_compiler::sql::dialect_profile::DialectProfile;

use crate::bindings::check::CheckPlugin;
use crate::bindings::detector::DetectorPlugin;
use crate::budget::{Budget, HostLimits, MAX_LONG_CALLS};
use crate::cache::Cache;
use crate::call_limiter::{CallCapacity, CallLimiter};
use crate::dialects::Dialects;
use crate::engine::{Engine, EngineError};
use crate::factory::PluginFactory;
use crate::governance::guest::PolicyGuest;
use crate::limits::{CallLimits, GuestLimits};
use crate::loader::SearchPath;
use crate::memo::Memo;
use crate::monotonic_clock::MonotonicClock;
use crate::plugin::PluginSettings;
use crate::plugin_slot::AnyPluginSlot;
use crate::registry::{Inventory, Registry};
use crate::signature::PublicKey;

/// The configuration of a host: the places of its components, and their limits.
#[derive(Debug, Clone)]
pub struct Settings {
    pub search: SearchPath,
    pub guest: GuestLimits,
    /// The limits of calls that describe a component, once per load.
    pub describe: CallLimits,
    /// The limits of all guests together.
    pub host: HostLimits,
    /// The folder for compiled components, which belongs to the user and not to a project. If it is `None`, the host
    /// compiles every component at each start.
    pub cache: Option<PathBuf>,
    /// The operator's `plugins:` list. Ids are unique.
    pub plugins: Vec<PluginSettings>,
    /// The trusted keys for dialects, detectors and checks that the operator does not list. One of these keys must have
    /// signed such a component, unless it is in a folder of the program. Empty if no signature is required. Listed
    /// plugins have keys of their own.
    pub keys: Vec<PublicKey>,
    pub clock: MonotonicClock,
}

impl Settings {
    /// Returns settings with the default limits, the machine's clock and no listed plugins.
    pub fn new(search: SearchPath) -> Settings {
        Settings {
            search,
            guest: GuestLimits::default(),
            describe: CallLimits::DESCRIBE,
            host: HostLimits::default(),
            cache: None,
            plugins: Vec::new(),
            keys: Vec::new(),
            clock: MonotonicClock::default(),
        }
    }
}

/// Runs components. A process has one host. Dropping the host ends its watchdog thread.
pub struct PluginHost {
    factory: Arc<PluginFactory>,
    dialects: Dialects,
    pub(crate) registry: Registry,
    /// Runs calls that may take seconds.
    pub(crate) long_calls: CallLimiter,
}

impl PluginHost {
    /// Creates the sandbox and loads the listed plugins. If a plugin cannot be loaded, its status contains the reason.
    ///
    /// # Errors
    /// This machine cannot run WebAssembly.
    pub fn new(settings: Settings) -> Result<PluginHost, EngineError> {
        let engine = Arc::new(Engine::new(settings.guest)?);
        let cache = settings.cache.as_deref().and_then(|folder| match Cache::open(folder) {
            Ok(cache) => Some(cache),
            Err(error) => {
                tracing::debug!(event = "component_cache_off", error_message = %error);
                None
            }
        });
        let long_calls = CallLimiter::new(CallCapacity {
            running: settings.host.long_calls.min(MAX_LONG_CALLS),
            waiting: settings.host.waiting,
            wait: settings.host.long_wait,
        });
        let factory = Arc::new(PluginFactory {
            engine,
            cache,
            guest: settings.guest,
            describe: settings.describe,
            guest_calls: Arc::default(),
            budget: Budget::new(settings.host),
            memo: Memo::new(settings.clock.clone()),
            clock: settings.clock,
        });
        let (dialects, others): (Vec<_>, Vec<_>) =
            settings.plugins.into_iter().partition(|plugin| plugin.role == PluginRole::Dialect);
        let (search, keys) = (settings.search.clone(), settings.keys.clone());
        let dialects = Dialects::new(Arc::clone(&factory), search, keys, dialects);
        let registry = Registry::new(Arc::clone(&factory), settings.search, settings.keys);
        for plugin in others {
            match plugin.role {
                PluginRole::Dialect | PluginRole::Governance => registry.load_listed::<PolicyGuest>(plugin),
                PluginRole::Detector => registry.load_listed::<DetectorPlugin>(plugin),
                PluginRole::Check => registry.load_listed::<CheckPlugin>(plugin),
            }
        }
        Ok(PluginHost { factory, dialects, registry, long_calls })
    }

    fn statuses(&self, inventory: Inventory) -> Vec<PluginStatus> {
        let mut statuses = self.dialects.statuses();
        statuses.extend(self.registry.slots_of_all_roles(inventory).iter().map(|slot| slot.status()));
        statuses.sort_by(|one, other| one.name.cmp(&other.name));
        statuses
    }

    fn slot(&self, name: &str) -> Result<Arc<dyn AnyPluginSlot>, ChangeError> {
        let slots = self.registry.slots_of_all_roles(Inventory::WithFolders);
        // If two files have the same name, the first one is used.
        if let Some(slot) = slots.iter().find(|slot| slot.name() == name) {
            return Ok(Arc::clone(slot));
        }
        let dialects = self.dialects.statuses();
        if dialects.iter().any(|dialect| dialect.name == name) {
            return Err(ChangeError::Dialect { name: name.to_owned() });
        }
        let known = slots.iter().map(|slot| slot.name().to_owned()).chain(dialects.into_iter().map(|d| d.name));
        let mut known: Vec<String> = known.collect();
        known.sort();
        Err(ChangeError::Unknown { name: name.to_owned(), known })
    }
}

impl Plugins for PluginHost {
    fn dialect(&self, name: &str) -> Result<Arc<DialectProfile>, PluginError> {
        self.dialects.profile(name)
    }

    fn loaded(&self) -> Vec<PluginStatus> {
        self.statuses(Inventory::Loaded)
    }

    fn inventory(&self) -> Vec<PluginStatus> {
        self.statuses(Inventory::WithFolders)
    }

    fn missing(&self) -> Vec<String> {
        let is_missing = |status: &PluginStatus| status.is_required && status.state != PluginState::Active;
        let mut missing: Vec<String> =
            self.dialects.statuses().into_iter().filter(is_missing).map(|status| status.name).collect();
        let slots = self.registry.slots_of_all_roles(Inventory::Loaded);
        missing.extend(slots.iter().filter(|slot| slot.is_missing()).map(|slot| slot.name().to_owned()));
        missing
    }

    fn reload(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        let slot = self.slot(name)?;
        slot.reload(&self.factory)?;
        Ok(slot.status())
    }

    fn disable(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        let slot = self.slot(name)?;
        slot.disable()?;
        Ok(slot.status())
    }

    fn enable(&self, name: &str) -> Result<PluginStatus, ChangeError> {
        let slot = self.slot(name)?;
        slot.enable()?;
        Ok(slot.status())
    }

    fn guest_calls(&self) -> u64 {
        self.factory.guest_calls.load(Ordering::Relaxed)
    }
}
