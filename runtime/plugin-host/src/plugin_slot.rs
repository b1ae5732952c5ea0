//! The slot of one plugin: the serving version, the previous one, and the operator's changes.
//!
//! In: settings, and the factory. Out: a status, and a plugin to call or the reason why it cannot be called. A new
//! version is loaded while the old one serves, and replaces it in one step. If the new version cannot be loaded, the
//! old one continues to serve. Not here: the list of plugins (`registry`).

use std::mem;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use terrane_app::ports::plugins::{
    ChangeError, PluginError, PluginFault, PluginLimits, PluginRole, PluginState, PluginStatus, PreviousPlugin,
};

use crate::factory::PluginFactory;
use crate::limits::CallLimits;
use crate::loader;
use crate::manifest::{Capability, Version};
use crate::plugin::{ConfiguredPlugin, Plugin, PluginSettings};
use crate::role::Role;

/// The functions that no query calls. Their open breakers do not make the server unready.
const NOT_FOR_QUERIES: &[&str] = &["on-certify", "on-metadata-change"];

/// The slot of a plugin that the operator lists, or that was found in a folder.
pub(crate) struct PluginSlot<R: Role> {
    pub(crate) settings: PluginSettings,
    /// The lock that is held during a change, so that changes follow one another even if creating a plugin takes long.
    changing: Mutex<()>,
    state: RwLock<SlotState<R>>,
}

struct SlotState<R: Role> {
    serving: Result<Arc<Plugin<R>>, LoadFailure>,
    previous: Option<Arc<Plugin<R>>>,
    is_disabled: bool,
    reload_refused: Option<PluginError>,
}

/// A plugin that could not be loaded.
struct LoadFailure {
    digest: Option<String>,
    fault: PluginFault,
}

/// A slot of any role.
pub(crate) trait AnyPluginSlot: Send + Sync {
    fn name(&self) -> &str;
    fn status(&self) -> PluginStatus;
    /// Returns whether the plugin is required but not available.
    fn is_missing(&self) -> bool;
    /// Loads the current file and replaces the serving plugin.
    ///
    /// # Errors
    /// [`ChangeError::Refused`]; the old version keeps serving.
    fn reload(&self, factory: &PluginFactory) -> Result<(), ChangeError>;
    /// Rejects calls until the plugin is enabled.
    ///
    /// # Errors
    /// [`ChangeError::Already`].
    fn disable(&self) -> Result<(), ChangeError>;
    /// Permits calls and resets the circuit breakers.
    ///
    /// # Errors
    /// [`ChangeError::Already`], [`ChangeError::NotEnabled`].
    fn enable(&self) -> Result<(), ChangeError>;
}

impl<R: Role> PluginSlot<R> {
    /// Loads the plugin. A failure is logged, and reported in the status.
    pub(crate) fn load(settings: PluginSettings, factory: &PluginFactory) -> Arc<PluginSlot<R>> {
        let serving = factory.create::<R>(&settings).map(Arc::new);
        let serving = serving.map_err(|(digest, fault)| LoadFailure { digest, fault });
        PluginSlot::with(settings, serving)
    }

    /// Returns the slot of a plugin that is not loaded.
    pub(crate) fn refused(settings: PluginSettings, fault: PluginFault) -> Arc<PluginSlot<R>> {
        PluginSlot::with(settings, Err(LoadFailure { digest: None, fault }))
    }

    fn with(settings: PluginSettings, serving: Result<Arc<Plugin<R>>, LoadFailure>) -> Arc<PluginSlot<R>> {
        let (component, is_required) = (&*settings.id, settings.is_required);
        match &serving {
            Ok(plugin) => {
                let ungranted = plugin.ungranted.iter().map(|asked| asked.as_str()).collect::<Vec<_>>().join(", ");
                tracing::info!(event = "plugin_loaded", component, role = %R::ROLE, version = &*plugin.version, digest = &*plugin.digest, ungranted);
            }
            Err(absent) => {
                tracing::warn!(event = "plugin_refused", component, role = %R::ROLE, is_required, path = %settings.source.display(), error_message = %absent.fault);
            }
        }
        let state = SlotState { serving, previous: None, is_disabled: false, reload_refused: None };
        Arc::new(PluginSlot { settings, changing: Mutex::default(), state: RwLock::new(state) })
    }

    fn read(&self) -> RwLockReadGuard<'_, SlotState<R>> {
        // Fields are set in steps that cannot fail, so a panic leaves them consistent.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, SlotState<R>> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_listed(&self) -> bool {
        !self.settings.is_found
    }

    /// Returns whether a file has the same content as the file of this plugin.
    pub(crate) fn is_copy(&self, file: &Path) -> bool {
        let own = match &self.read().serving {
            Ok(plugin) => Some(plugin.digest.to_string()),
            Err(absent) => absent.digest.clone(),
        };
        own.is_some() && loader::read(file).ok().map(|bytes| loader::digest(&bytes)) == own
    }

    /// Returns the plugin for the adapter of its role, after reverting a failed reload.
    pub(crate) fn configured(&self) -> ConfiguredPlugin<R> {
        self.roll_back();
        let state = self.read();
        let down = |fault: PluginFault| ConfiguredPlugin::Unavailable {
            id: self.settings.id.as_str().into(),
            is_required: self.settings.is_required,
            is_monitored: self.settings.is_monitored,
            fault,
        };
        match &state.serving {
            _ if state.is_disabled => down(PluginFault::Disabled),
            Ok(plugin) => ConfiguredPlugin::Active(Arc::clone(plugin)),
            Err(absent) => down(absent.fault.clone()),
        }
    }

    /// Reverts a reload if the breaker of a function opened for all callers within the first calls of the new version,
    /// or if the new version was quarantined. A reload of a hook is never reverted, because the old version may permit
    /// what the new one was written to deny.
    fn roll_back(&self) {
        if R::ROLE == PluginRole::Governance || !self.read().may_roll_back() {
            return;
        }
        let mut state = self.write();
        // Another thread may have reverted between the two locks.
        if !state.may_roll_back() {
            return;
        }
        if let Some(previous) = state.previous.take() {
            let (component, version) = (&*self.settings.id, &*previous.version);
            let fault = state.serving.as_ref().ok().and_then(|failing| failing.health.early_fault());
            let error_message = fault.as_ref().map(tracing::field::display);
            tracing::warn!(event = "plugin_rolled_back", component, version, error_message);
            state.reload_refused = fault.map(|fault| plugin_error(&self.settings, &fault));
            previous.health.reset();
            state.serving = Ok(previous);
        }
    }

    fn load_new_version(&self, factory: &PluginFactory) -> Result<Arc<Plugin<R>>, PluginFault> {
        let loaded = factory.create::<R>(&self.settings).map_err(|(_, fault)| fault)?;
        if let Ok(serving) = &self.read().serving
            && is_older(&loaded.version, &serving.version)
        {
            let (serving, found) = (serving.version.to_string(), loaded.version.to_string());
            return Err(PluginFault::Downgrade { serving, found });
        }
        Ok(Arc::new(loaded))
    }
}

impl<R: Role> SlotState<R> {
    fn may_roll_back(&self) -> bool {
        let has_failed = |plugin: &Arc<Plugin<R>>| {
            plugin.health.early_fault().is_some() || plugin.health.state() == PluginState::Quarantined
        };
        self.previous.is_some() && self.serving.as_ref().is_ok_and(has_failed)
    }

    fn state(&self, settings: &PluginSettings) -> PluginState {
        match &self.serving {
            _ if self.is_disabled => PluginState::Disabled,
            Ok(plugin) => plugin.health.state(),
            Err(absent) => PluginState::Refused(plugin_error(settings, &absent.fault)),
        }
    }
}

/// Returns whether a version precedes the serving one. A string that is not a version precedes every version.
fn is_older(found: &str, serving: &str) -> bool {
    match (Version::parse(found), Version::parse(serving)) {
        (Some(found), Some(serving)) => found.is_below(&serving),
        (None, Some(_)) => true,
        _ => false,
    }
}

fn plugin_error(settings: &PluginSettings, fault: &PluginFault) -> PluginError {
    PluginError::Faulted { path: settings.source.clone(), fault: fault.clone() }
}

impl<R: Role> AnyPluginSlot for PluginSlot<R> {
    fn name(&self) -> &str {
        &self.settings.id
    }

    fn status(&self) -> PluginStatus {
        let settings = &self.settings;
        let state = self.read();
        let mut status = status_of(settings, R::ROLE);
        status.state = state.state(settings);
        status.reload_refused = state.reload_refused.clone();
        match &state.serving {
            Ok(plugin) => describe(&mut status, plugin),
            Err(absent) => status.digest = absent.digest.clone(),
        }
        status.previous = state.previous.as_ref().map(|previous| PreviousPlugin {
            version: previous.version.to_string(),
            digest: previous.digest.to_string(),
            is_draining: Arc::strong_count(previous) > 1,
        });
        status
    }

    fn is_missing(&self) -> bool {
        if !self.settings.is_required {
            return false;
        }
        let state = self.read();
        match (state.state(&self.settings), &state.serving) {
            (PluginState::Active, _) => false,
            (PluginState::Degraded, Ok(plugin)) => plugin.health.is_open_except(NOT_FOR_QUERIES),
            _ => true,
        }
    }

    fn reload(&self, factory: &PluginFactory) -> Result<(), ChangeError> {
        let _one = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let (loaded, component) = (self.load_new_version(factory), &*self.settings.id);
        let mut state = self.write();
        match loaded {
            Ok(plugin) => {
                tracing::info!(
                    event = "plugin_reloaded",
                    component,
                    version = &*plugin.version,
                    digest = &*plugin.digest
                );
                state.previous = mem::replace(&mut state.serving, Ok(plugin)).ok();
                state.reload_refused = None;
                Ok(())
            }
            Err(fault) => {
                tracing::warn!(event = "plugin_reload_refused", component, error_message = %fault);
                let error = plugin_error(&self.settings, &fault);
                state.reload_refused = Some(error.clone());
                Err(ChangeError::Refused { name: component.to_owned(), error: Box::new(error) })
            }
        }
    }

    fn disable(&self) -> Result<(), ChangeError> {
        let mut state = self.write();
        if state.is_disabled {
            return Err(ChangeError::Already { name: self.settings.id.clone(), state: "disabled" });
        }
        state.is_disabled = true;
        tracing::info!(event = "plugin_disabled", component = &*self.settings.id);
        Ok(())
    }

    fn enable(&self) -> Result<(), ChangeError> {
        let mut state = self.write();
        let name = || self.settings.id.clone();
        let plugin = match &state.serving {
            Ok(plugin) => Arc::clone(plugin),
            Err(absent) => {
                let error = Box::new(plugin_error(&self.settings, &absent.fault));
                return Err(ChangeError::NotEnabled { name: name(), error, is_disabled: state.is_disabled });
            }
        };
        if !state.is_disabled && plugin.health.state() == PluginState::Active {
            return Err(ChangeError::Already { name: name(), state: "enabled" });
        }
        state.is_disabled = false;
        plugin.health.reset();
        tracing::info!(event = "plugin_enabled", component = &*self.settings.id);
        Ok(())
    }
}

/// Returns a status that contains only what follows from the settings.
pub(crate) fn status_of(settings: &PluginSettings, role: PluginRole) -> PluginStatus {
    let granted = Capability::ALL.into_iter().filter(|capability| settings.grants.has(*capability));
    let limits = CallLimits::of(role);
    PluginStatus {
        path: Some(settings.source.clone()),
        is_required: settings.is_required,
        is_monitored: settings.is_monitored,
        is_listed: !settings.is_found,
        grants: granted.map(Capability::as_str).collect(),
        limits: PluginLimits {
            time_ms: settings.limits.time_ms.unwrap_or(limits.time_ms),
            fuel: settings.limits.fuel.unwrap_or(limits.fuel),
            memory_bytes: settings.limits.memory_mb.map_or(0, |megabytes| megabytes.saturating_mul(1024 * 1024)),
        },
        ..PluginStatus::unknown(settings.id.clone(), role)
    }
}

fn describe<R: Role>(status: &mut PluginStatus, plugin: &Plugin<R>) {
    status.digest = Some(plugin.digest.to_string());
    status.id = Some(plugin.id.to_string());
    status.version = Some(plugin.version.to_string());
    status.describe_fuel = Some(plugin.describe_fuel);
    status.ungranted = plugin.ungranted.iter().map(|asked| asked.as_str()).collect();
    status.limits = PluginLimits {
        time_ms: plugin.limits.time_ms,
        fuel: plugin.limits.fuel,
        memory_bytes: plugin.memory_bytes as u64,
    };
    status.exports = plugin.health.exports();
}
