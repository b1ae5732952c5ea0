//! One configured plugin: its settings, and its calls.
//!
//! In: the operator's settings and a linked component. Out: a [`Plugin`], which counts and limits its calls, and
//! rejects calls while they fail repeatedly. Not here: the list of plugins (`registry`), loading (`factory`), and the
//! meaning of answers (each role's module).

use std::fmt;
use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use terrane_app::ports::plugins::{Limit, PluginFault, PluginRole};
use wasmtime::Store;

use crate::engine::Guest;
use crate::health::Health;
use crate::limits::CallLimits;
use crate::manifest::{Capability, RequestedLimits};
use crate::monotonic_clock::MonotonicClock;
use crate::role::{LinkedComponent, Role};
use crate::signature::PublicKey;

/// One entry of the operator's `plugins:` list.
#[derive(Debug, Clone)]
pub struct PluginSettings {
    /// The id that the component must have.
    pub id: String,
    pub role: PluginRole,
    /// True if the operator does not list the plugin. Its id is then the name of its file.
    pub is_found: bool,
    pub source: PathBuf,
    /// The lower-case hexadecimal SHA-256 of the only file that is accepted; `None` to accept any file.
    pub sha256: Option<String>,
    /// The trusted keys, one of which must have signed the file. Empty if no signature is required.
    pub keys: Vec<PublicKey>,
    pub config_json: ConfigJson,
    /// True if the requests about which the plugin decides are refused while the plugin is unavailable.
    pub is_required: bool,
    /// True if the plugin's answers are logged but not enforced.
    pub is_monitored: bool,
    pub grants: Grants,
    /// The limits that replace the defaults of the role.
    pub limits: RequestedLimits,
}

impl PluginSettings {
    /// Returns the settings of an optional, enforced plugin without a pin, a configuration or grants.
    pub fn new(id: impl Into<String>, role: PluginRole, source: impl Into<PathBuf>) -> PluginSettings {
        PluginSettings {
            id: id.into(),
            role,
            is_found: false,
            source: source.into(),
            sha256: None,
            keys: Vec::new(),
            config_json: ConfigJson::default(),
            is_required: false,
            is_monitored: false,
            grants: Grants::default(),
            limits: RequestedLimits::default(),
        }
    }
}

/// A plugin's configuration: a JSON object, or empty. It may contain secrets, so its `Debug` output hides it.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct ConfigJson(Arc<str>);

impl From<String> for ConfigJson {
    fn from(json: String) -> ConfigJson {
        ConfigJson(json.into())
    }
}

impl From<&str> for ConfigJson {
    fn from(json: &str) -> ConfigJson {
        ConfigJson(json.into())
    }
}

impl Deref for ConfigJson {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ConfigJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// The caller on whose behalf a plugin is called.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The tenant, which selects the memo that the guest reads.
    pub(crate) tenant: Arc<str>,
    /// The identity under which faults are counted (`callers`).
    pub(crate) id: Arc<str>,
}

impl Caller {
    pub(crate) fn of_tenant(tenant: Option<&Arc<str>>) -> Caller {
        let tenant = tenant.cloned().unwrap_or_default();
        Caller { id: Arc::clone(&tenant), tenant }
    }
}

/// The capabilities that the operator grants in addition to the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grants {
    pub memo: bool,
    /// True to disclose the values in a query's filters to hooks.
    pub query_values: bool,
    /// True to disclose values of rows to checks.
    pub sample_rows: bool,
}

impl Grants {
    pub fn has(self, capability: Capability) -> bool {
        match capability {
            Capability::Memo => self.memo,
            Capability::QueryValues => self.query_values,
            Capability::SampleRows => self.sample_rows,
        }
    }

    pub fn add(&mut self, capability: Capability) {
        match capability {
            Capability::Memo => self.memo = true,
            Capability::QueryValues => self.query_values = true,
            Capability::SampleRows => self.sample_rows = true,
        }
    }
}

/// A loaded plugin.
pub(crate) struct Plugin<R: Role> {
    pub(crate) id: Arc<str>,
    pub(crate) version: Arc<str>,
    /// Lower-case hexadecimal SHA-256 of the component.
    pub(crate) digest: Arc<str>,
    pub(crate) config_json: ConfigJson,
    pub(crate) is_required: bool,
    pub(crate) is_monitored: bool,
    pub(crate) grants: Grants,
    pub(crate) limits: CallLimits,
    pub(crate) memory_bytes: usize,
    /// The capabilities that the manifest requests and the operator did not grant.
    pub(crate) ungranted: Vec<Capability>,
    /// The fuel that loading the plugin used.
    pub(crate) describe_fuel: u64,
    pub(crate) linked: LinkedComponent<R>,
    pub(crate) health: Health,
}

impl<R: Role> Plugin<R> {
    /// Makes one call in a fresh instance, within the plugin's limits.
    ///
    /// # Errors
    /// Returns the guest's fault; [`PluginFault::Unavailable`] or [`PluginFault::Busy`] if the guest was not called.
    pub(crate) fn call<T>(
        &self,
        export: &'static str,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFault> {
        self.call_checked(&Caller::of_tenant(None), export, ask, Ok)
    }

    /// Makes one call on behalf of a caller, with the memo of its tenant. An error of `check` counts as a fault of the
    /// call.
    ///
    /// # Errors
    /// Returns the errors of [`Plugin::call`] and of `check`.
    pub(crate) fn call_checked<T, U>(
        &self,
        caller: &Caller,
        export: &'static str,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> wasmtime::Result<T>,
        check: impl FnOnce(T) -> Result<U, PluginFault>,
    ) -> Result<U, PluginFault> {
        let entry = self.health.enter(export, &caller.id)?;
        let (answer, fuel) = self.linked.call_for(&caller.tenant, export, self.limits, ask);
        let answer = answer.and_then(check);
        self.health.leave(entry, answer.as_ref().err(), fuel);
        answer
    }

    /// Makes several calls on behalf of a caller. Together they have the limits of one call, and count as one call.
    ///
    /// # Errors
    /// Returns the errors of `work`.
    pub(crate) fn call_in_sequence<U>(
        &self,
        caller: &Caller,
        export: &'static str,
        work: impl FnOnce(&mut CallSequence<'_, R>) -> Result<U, PluginFault>,
    ) -> Result<U, PluginFault> {
        let entry = self.health.enter(export, &caller.id)?;
        let mut parts = CallSequence::new(self, &caller.tenant, export);
        let answer = work(&mut parts);
        self.health.leave(entry, answer.as_ref().err(), parts.fuel);
        answer
    }
}

/// The sequence of calls that [`Plugin::call_in_sequence`] makes.
pub(crate) struct CallSequence<'a, R: Role> {
    plugin: &'a Plugin<R>,
    tenant: &'a str,
    export: &'static str,
    /// The fuel that all calls of the sequence have used so far.
    fuel: u64,
    time_left: Duration,
    worked: MonotonicClock,
}

impl<'a, R: Role> CallSequence<'a, R> {
    fn new(plugin: &'a Plugin<R>, tenant: &'a str, export: &'static str) -> Self {
        let time_left = Duration::from_millis(plugin.limits.time_ms);
        CallSequence { plugin, tenant, export, fuel: 0, time_left, worked: MonotonicClock::of_the_thread() }
    }

    /// Returns the limits of the next call: the fuel and the time that the earlier calls left.
    pub(crate) fn left(&self) -> CallLimits {
        let time_ms = u64::try_from(self.time_left.as_millis()).unwrap_or(u64::MAX);
        CallLimits { fuel: self.plugin.limits.fuel.saturating_sub(self.fuel), time_ms }
    }

    /// Makes one more call, in a fresh instance.
    ///
    /// # Errors
    /// Returns the errors of [`Plugin::call`]; [`Limit::Time`] if the earlier calls used up the time.
    pub(crate) fn call<T>(
        &mut self,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFault> {
        let mut left = self.left();
        if left.time_ms == 0 {
            return Err(PluginFault::Limit { call: self.export, limit: Limit::Time });
        }
        // The watchdog wakes once per shortest limit of any call, so the remaining time must not become too short.
        left.time_ms = left.time_ms.max(CallLimits::of(PluginRole::Governance).time_ms.min(self.plugin.limits.time_ms));
        let began = self.worked.now();
        let (answer, fuel) = self.plugin.linked.call_for(self.tenant, self.export, left, ask);
        self.fuel = self.fuel.saturating_add(fuel);
        self.time_left = self.time_left.saturating_sub(self.worked.now().saturating_sub(began));
        answer
    }
}

/// A plugin that the operator configured, available or not.
pub(crate) enum ConfiguredPlugin<R: Role> {
    Active(Arc<Plugin<R>>),
    /// The plugin is not available, so its answer is unknown. If it is a required hook, the query is denied.
    Unavailable {
        id: Arc<str>,
        is_required: bool,
        is_monitored: bool,
        fault: PluginFault,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configuration_is_never_shown() {
        let settings = PluginSettings {
            config_json: r#"{"salt": "hush"}"#.into(),
            ..PluginSettings::new("policy-test", PluginRole::Governance, "policy.wasm")
        };
        assert!(!format!("{settings:?}").contains("hush"));
        assert_eq!(&*settings.config_json, r#"{"salt": "hush"}"#);
    }
}
