//! The common part of the four roles: linking a component for its role, and calling it.
//!
//! In: a compiled component. Out: a [`LinkedComponent`]. Each call runs in a fresh instance with limits, and ends with
//! an answer or a typed fault. Answers are untrusted; the module of each role checks them. Not here: the list of
//! components, and whether a component may be called now (`registry`).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_app::ports::plugins::{PluginFault, PluginRole};
use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, InstancePre, Linker};

use crate::bindings::common::{Issue, PluginError};
use crate::bindings::{check, detector, dialect, log, memo};
use crate::engine::{Engine, Guest};
use crate::error::{call_fault, shortened};
use crate::governance::guest::{PolicyGuest, PolicyPre};
use crate::limits::CallLimits;
use crate::sandbox_limits::SandboxLimits;
use crate::wire::names::is_id;
use crate::{panic_message, probe};

/// The version of the contract that this host supports.
pub(crate) const VERSION: &str = "0.1.0";
const PLUGIN: &str = "terrane:types/plugin";

/// An instance of a component with a role. `bindgen!` generates the types, and the macro below implements this trait.
pub(crate) trait Role: Sized + Send + Sync + 'static {
    type Pre: Send + Sync;
    const ROLE: PluginRole;
    /// The role's own interface, without its version.
    const INTERFACE: &'static str;

    fn prepare(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Pre>;
    fn instantiate(pre: &Self::Pre, store: &mut Store<Guest>) -> wasmtime::Result<Self>;
    /// Compares the types of all functions with the contract's. Does nothing if the instantiation compares them.
    fn compare_types(&self, _: &mut Store<Guest>) -> wasmtime::Result<()> {
        Ok(())
    }
    fn call_describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Info>;
    fn call_check_config(&self, store: &mut Store<Guest>, json: &str) -> wasmtime::Result<Result<(), Vec<Issue>>>;
    /// Calls the functions that a plugin of the role must answer before it is used.
    fn probe(linked: &LinkedComponent<Self>, limits: CallLimits) -> Result<(), PluginFault>;
}

/// A component's unchecked description of itself.
#[derive(Debug, Clone)]
pub(crate) struct Info {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) display_name: String,
    pub(crate) api: String,
    pub(crate) config_schema_json: String,
}

macro_rules! role {
    ($bindings:ident, $instance:ident, $pre:ident, $role:ident, $interface:literal, $probe:path) => {
        impl Role for $bindings::$instance {
            type Pre = $bindings::$pre<Guest>;
            const ROLE: PluginRole = PluginRole::$role;
            const INTERFACE: &'static str = $interface;

            fn prepare(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Pre> {
                $bindings::$pre::new(instance)
            }

            fn instantiate(pre: &Self::Pre, store: &mut Store<Guest>) -> wasmtime::Result<Self> {
                pre.instantiate(store)
            }

            fn call_describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Info> {
                let info = self.terrane_types_plugin().call_describe(store)?;
                Ok(Info {
                    id: info.id,
                    version: info.version,
                    display_name: info.display_name,
                    api: info.api,
                    config_schema_json: info.config_schema_json,
                })
            }

            fn call_check_config(
                &self,
                store: &mut Store<Guest>,
                json: &str,
            ) -> wasmtime::Result<Result<(), Vec<Issue>>> {
                self.terrane_types_plugin().call_check_config(store, json)
            }

            fn probe(linked: &LinkedComponent<Self>, limits: CallLimits) -> Result<(), PluginFault> {
                $probe(linked, limits)
            }
        }
    };
}

role!(dialect, DialectPlugin, DialectPluginPre, Dialect, "terrane:dialect/dialect", probe::nothing);
role!(detector, DetectorPlugin, DetectorPluginPre, Detector, "terrane:anomaly/detector", probe::detectors);
role!(check, CheckPlugin, CheckPluginPre, Check, "terrane:profiling/check", probe::nothing);

impl Role for PolicyGuest {
    type Pre = PolicyPre;
    const ROLE: PluginRole = PluginRole::Governance;
    const INTERFACE: &'static str = "terrane:governance/hook";

    fn prepare(instance: InstancePre<Guest>) -> wasmtime::Result<Self::Pre> {
        PolicyPre::new(instance)
    }

    fn instantiate(pre: &Self::Pre, store: &mut Store<Guest>) -> wasmtime::Result<Self> {
        pre.instantiate(store)
    }

    fn compare_types(&self, store: &mut Store<Guest>) -> wasmtime::Result<()> {
        self.load_all(store)
    }

    fn call_describe(&self, store: &mut Store<Guest>) -> wasmtime::Result<Info> {
        self.describe(store)
    }

    fn call_check_config(&self, store: &mut Store<Guest>, json: &str) -> wasmtime::Result<Result<(), Vec<Issue>>> {
        self.check_config(store, json)
    }

    fn probe(linked: &LinkedComponent<Self>, limits: CallLimits) -> Result<(), PluginFault> {
        probe::nothing(linked, limits)
    }
}

/// The interface of each role, without its version.
pub(crate) const ROLES: [(PluginRole, &str); 4] = [
    (PluginRole::Dialect, dialect::DialectPlugin::INTERFACE),
    (PluginRole::Detector, detector::DetectorPlugin::INTERFACE),
    (PluginRole::Check, check::CheckPlugin::INTERFACE),
    (PluginRole::Governance, PolicyGuest::INTERFACE),
];

/// A component that is linked for its role.
pub(crate) struct LinkedComponent<R: Role> {
    engine: Arc<Engine>,
    sandbox: SandboxLimits,
    pre: R::Pre,
    /// The number of calls of all guests of the host.
    calls: Arc<AtomicU64>,
    /// The fuel that all calls of this component have used.
    fuel: AtomicU64,
}

impl<R: Role> LinkedComponent<R> {
    /// Checks that the exports are the role's, in the version and with the types of this host. Then links the granted
    /// imports.
    ///
    /// # Errors
    /// The component has a different role or a different version, or it has an unknown import.
    pub(crate) fn on(
        sandbox: SandboxLimits,
        engine: &Arc<Engine>,
        component: &Component,
        calls: &Arc<AtomicU64>,
    ) -> Result<Self, PluginFault> {
        let host = |error: wasmtime::Error| PluginFault::Host { message: shortened(&format!("{error:#}")) };
        let malformed = |error: wasmtime::Error| PluginFault::Malformed { message: shortened(&format!("{error:#}")) };
        let mut linker = Linker::new(&engine.wasmtime);
        log::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest).map_err(host)?;
        panic_message::add_to_linker(&mut linker).map_err(host)?;
        if sandbox.memo.is_some() {
            memo::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest).map_err(host)?;
        }
        check_exports::<R>(engine, component)?;
        let instance = linker.instantiate_pre(component).map_err(malformed)?;
        let pre = R::prepare(instance).map_err(malformed)?;
        Ok(LinkedComponent {
            engine: Arc::clone(engine),
            sandbox,
            pre,
            calls: Arc::clone(calls),
            fuel: AtomicU64::new(0),
        })
    }

    /// Makes one call that describes the component, in a fresh instance.
    ///
    /// # Errors
    /// Returns the guest's fault.
    pub(crate) fn call<T>(
        &self,
        export: &'static str,
        limits: CallLimits,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFault> {
        let permit = self.sandbox.budget.as_ref().map(|budget| budget.permit());
        if let Some(None) = permit {
            return Err(PluginFault::Busy { call: export });
        }
        let ask = |guest: &R, store: &mut Store<Guest>| {
            guest.compare_types(store).map_err(|error| instantiation_fault::<R>(export, &error))?;
            ask(guest, store).map_err(|error| call_fault(export, &error))
        };
        self.call_with_permit("", export, limits, ask).0
    }

    /// Makes one call of a function of the role on behalf of a tenant, and returns the answer and the used fuel. The
    /// caller of a function that may take seconds must have a permit already (`call_limiter`).
    pub(crate) fn call_for<T>(
        &self,
        tenant: &str,
        export: &'static str,
        limits: CallLimits,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> (Result<T, PluginFault>, u64) {
        let permit = match R::ROLE {
            PluginRole::Dialect | PluginRole::Governance => self.sandbox.budget.as_ref().map(|budget| budget.permit()),
            PluginRole::Detector | PluginRole::Check => None,
        };
        if let Some(None) = permit {
            return (Err(PluginFault::Busy { call: export }), 0);
        }
        let ask = |guest: &R, store: &mut Store<Guest>| ask(guest, store).map_err(|error| call_fault(export, &error));
        self.call_with_permit(tenant, export, limits, ask)
    }

    fn call_with_permit<T>(
        &self,
        tenant: &str,
        export: &'static str,
        limits: CallLimits,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> Result<T, PluginFault>,
    ) -> (Result<T, PluginFault>, u64) {
        let mut fuel = 0;
        // The engine runs foreign code here. If the engine itself panics, the server must continue.
        let answer = catch_unwind(AssertUnwindSafe(|| self.call_once(tenant, export, limits, &mut fuel, ask)))
            .unwrap_or_else(|_| Err(PluginFault::Host { message: "the engine panicked".to_owned() }));
        (answer, fuel)
    }

    fn call_once<T>(
        &self,
        tenant: &str,
        export: &'static str,
        limits: CallLimits,
        fuel: &mut u64,
        ask: impl FnOnce(&R, &mut Store<Guest>) -> Result<T, PluginFault>,
    ) -> Result<T, PluginFault> {
        let (mut store, _running) = self.engine.new_store(&self.sandbox, tenant, limits);
        self.calls.fetch_add(1, Ordering::Relaxed);
        let instance = R::instantiate(&self.pre, &mut store).map_err(|error| instantiation_fault::<R>(export, &error));
        let answer = instance.and_then(|guest| ask(&guest, &mut store));
        let answer = answer.map_err(|fault| store.data().panic.explain(fault));
        *fuel = limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default());
        self.fuel.fetch_add(*fuel, Ordering::Relaxed);
        tracing::debug!(component = %self.sandbox.name, call = export, fuel, "guest call");
        answer
    }

    /// Returns the fuel that all calls have used so far.
    pub(crate) fn fuel(&self) -> u64 {
        self.fuel.load(Ordering::Relaxed)
    }

    /// Returns the component's description of itself.
    ///
    /// # Errors
    /// Returns the fault of the call, or of an invalid id or version.
    pub(crate) fn describe(&self, limits: CallLimits) -> Result<Info, PluginFault> {
        let mut info = self.call("describe", limits, |guest, store| guest.call_describe(store))?;
        if !is_id(&info.id) || info.version.is_empty() || info.version.len() > 64 {
            let message = format!("id `{}`, version `{}`", shortened(&info.id), shortened(&info.version));
            return Err(PluginFault::Answer { call: "describe", message });
        }
        info.version = shortened(&info.version);
        Ok(info)
    }

    /// Lets the component check its configuration.
    ///
    /// # Errors
    /// Returns the fault of the call, or [`PluginFault::Declined`] with the problems of the configuration.
    pub(crate) fn check_config(&self, json: &str, limits: CallLimits) -> Result<(), PluginFault> {
        self.call("check-config", limits, |guest, store| guest.call_check_config(store, json))?
            .map_err(|issues| PluginFault::Declined { call: "check-config", message: issues_text(&issues) })
    }
}

fn check_exports<R: Role>(engine: &Engine, component: &Component) -> Result<(), PluginFault> {
    let ty = component.component_type();
    let exports: Vec<&str> = ty.exports(&engine.wasmtime).map(|(name, _)| name).collect();
    for interface in [PLUGIN, R::INTERFACE] {
        let of_interface = |name: &&&str| name.strip_prefix(interface).is_some_and(|rest| rest.starts_with('@'));
        match exports.iter().find(of_interface) {
            Some(found) if is_spoken(found) => {}
            Some(found) => {
                let supported = format!("{interface}@{VERSION}");
                return Err(PluginFault::WrongVersion { found: shortened(found), supported });
            }
            None => {
                let exports = exports.iter().take(8).map(|name| shortened(name)).collect();
                return Err(PluginFault::WrongWorld { missing: format!("{interface}@{VERSION}"), exports });
            }
        }
    }
    Ok(())
}

/// Returns whether the export has the same minor version as this host. Before 1.0, each minor version is a contract of
/// its own.
fn is_spoken(export: &str) -> bool {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    export.rsplit_once('@').and_then(|(_, version)| minor(version)) == minor(VERSION)
}

/// Returns the fault of a failed instantiation. An instantiation also fails if the types of functions differ from the
/// contract's.
fn instantiation_fault<R: Role>(call: &'static str, error: &wasmtime::Error) -> PluginFault {
    match call_fault(call, error) {
        PluginFault::Answer { message, .. } => {
            let contract = [PLUGIN, R::INTERFACE].map(|interface| format!("{interface}@{VERSION}")).to_vec();
            PluginFault::WrongTypes { contract, message }
        }
        fault => fault,
    }
}

pub(crate) fn issues_text(issues: &[Issue]) -> String {
    let issues = issues.iter().take(5).map(|issue| match issue.path.as_str() {
        "" => issue.message.clone(),
        path => format!("{path}: {}", issue.message),
    });
    shortened(issues.collect::<Vec<_>>().join("; ").trim())
}

/// Returns the guest's reason for declining a call.
pub(crate) fn error_text(error: &PluginError) -> String {
    match error {
        PluginError::Unsupported(message) | PluginError::InvalidInput(message) | PluginError::Internal(message) => {
            shortened(message)
        }
        PluginError::InvalidConfig(issues) => issues_text(issues),
    }
}
