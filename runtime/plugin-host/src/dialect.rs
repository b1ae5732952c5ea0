//! The interface `terrane:dialect/dialect`: asks a component for its profile, once, and checks it.
//!
//! In: a loaded component. Out: who it is, and a [`DialectProfile`]. Every call gets a fresh instance
//! and its own fuel and time. What comes back is untrusted until `DialectProfile::check` has passed.
//! Not here: `render`, `parse-explain`, `classify-error` and `map-types`, which nothing asks for yet.

mod to_raw;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use terrane_app::ports::plugins::PluginFault;
use terrane_compiler::sql::profile::DialectProfile;
use wasmtime::Store;
use wasmtime::component::{Component, HasSelf, Linker};

use self::bindings::terrane::types::common::{CallContext, Issue, PluginError};
use self::bindings::{DialectPlugin, DialectPluginPre};
use crate::engine::{Engine, Guest};
use crate::error::{call_fault, shortened};
use crate::limits::CallLimits;

/// What `wasmtime` writes from `wit/`.
pub(crate) mod bindings {
    #![allow(unreachable_pub, clippy::all, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        world: "terrane:plugins/dialect-plugin",
    });
}

/// The exports of the role, and the version that this host speaks.
const EXPORTS: [&str; 2] = ["terrane:types/plugin", "terrane:dialect/dialect"];
const VERSION: &str = "0.1.0";

/// What a dialect component said when it was loaded.
pub(crate) struct Description {
    pub(crate) id: String,
    pub(crate) version: String,
    /// Of all calls together.
    pub(crate) fuel: u64,
    pub(crate) profile: DialectProfile,
}

/// Asks the component of the dialect `asked` who it is and what its profile is.
///
/// # Errors
/// Whatever it did wrong.
pub(crate) fn describe(
    engine: &Engine,
    component: &Component,
    asked: &str,
    limits: CallLimits,
    calls: &AtomicU64,
) -> Result<Description, PluginFault> {
    let guest = Dialect {
        engine,
        plugin: link(engine, component)?,
        name: asked.into(),
        limits,
        calls,
        fuel: AtomicU64::new(0),
    };
    // The engine runs foreign code here: its own panics must not take the server down.
    catch_unwind(AssertUnwindSafe(|| guest.describe(asked)))
        .unwrap_or_else(|_| Err(PluginFault::Host { message: "the engine broke off".to_owned() }))
}

/// Sees that the exports are those of the role, in this host's version and with its types.
fn link(engine: &Engine, component: &Component) -> Result<DialectPluginPre<Guest>, PluginFault> {
    let host = |error: wasmtime::Error| PluginFault::Host { message: shortened(&format!("{error:#}")) };
    let mut linker = Linker::new(&engine.wasmtime);
    bindings::terrane::host::log::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest).map_err(host)?;
    check_exports(engine, component)?;
    let malformed = |error: wasmtime::Error| PluginFault::Malformed { message: shortened(&format!("{error:#}")) };
    let instance = linker.instantiate_pre(component).map_err(malformed)?;
    DialectPluginPre::new(instance).map_err(malformed)
}

fn check_exports(engine: &Engine, component: &Component) -> Result<(), PluginFault> {
    let ty = component.component_type();
    let exports: Vec<&str> = ty.exports(&engine.wasmtime).map(|(name, _)| name).collect();
    for interface in EXPORTS {
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

/// The same minor version: before 1.0 each minor version is a contract of its own.
fn is_spoken(export: &str) -> bool {
    let minor = |version: &str| version.rsplit_once('.').map(|(minor, _)| minor.to_owned());
    export.rsplit_once('@').and_then(|(_, version)| minor(version)) == minor(VERSION)
}

/// A linked component and what its calls may cost.
struct Dialect<'a> {
    engine: &'a Engine,
    plugin: DialectPluginPre<Guest>,
    name: Arc<str>,
    limits: CallLimits,
    calls: &'a AtomicU64,
    fuel: AtomicU64,
}

impl Dialect<'_> {
    fn describe(&self, asked: &str) -> Result<Description, PluginFault> {
        let info = self.call("describe", |plugin, store| plugin.terrane_types_plugin().call_describe(store))?;
        if !is_id(&info.id) || info.version.is_empty() || info.version.len() > 64 {
            let message = format!("id `{}`, version `{}`", shortened(&info.id), shortened(&info.version));
            return Err(PluginFault::Answer { call: "describe", message });
        }
        self.call("check-config", |plugin, store| plugin.terrane_types_plugin().call_check_config(store, ""))?
            .map_err(|issues| PluginFault::Declined { call: "check-config", message: issues_text(&issues) })?;
        let context = context(self.limits);
        let profile = self
            .call("describe-dialect", |plugin, store| {
                plugin.terrane_dialect_dialect().call_describe_dialect(store, &context)
            })?
            .map_err(|error| PluginFault::Declined { call: "describe-dialect", message: error_text(&error) })?;
        let profile = DialectProfile::check(to_raw::raw_profile(profile)).map_err(PluginFault::Profile)?;
        if profile.name != asked {
            return Err(PluginFault::WrongDialect { asked: asked.to_owned(), found: profile.name });
        }
        Ok(Description {
            id: info.id,
            version: shortened(&info.version),
            fuel: self.fuel.load(Ordering::Relaxed),
            profile,
        })
    }

    /// One call in a fresh instance, which is gone afterwards, whatever happened.
    fn call<T>(
        &self,
        name: &'static str,
        ask: impl FnOnce(&DialectPlugin, &mut Store<Guest>) -> wasmtime::Result<T>,
    ) -> Result<T, PluginFault> {
        let (mut store, _running) = self.engine.store(Arc::clone(&self.name), self.limits);
        self.calls.fetch_add(1, Ordering::Relaxed);
        let answer = self.plugin.instantiate(&mut store).map_err(|error| instantiation_fault(name, &error));
        let answer = answer.and_then(|plugin| ask(&plugin, &mut store).map_err(|error| call_fault(name, &error)));
        let fuel = self.limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default());
        self.fuel.fetch_add(fuel, Ordering::Relaxed);
        tracing::debug!(component = %self.name, call = name, fuel, "guest call");
        answer
    }
}

/// The types of functions are compared when an instance is made, before the guest has answered anything.
fn instantiation_fault(call: &'static str, error: &wasmtime::Error) -> PluginFault {
    match call_fault(call, error) {
        PluginFault::Answer { message, .. } => {
            let contract = EXPORTS.map(|interface| format!("{interface}@{VERSION}")).to_vec();
            PluginFault::WrongTypes { contract, message }
        }
        fault => fault,
    }
}

/// A profile depends on nothing but the component, so its call is told no real time or request.
fn context(limits: CallLimits) -> CallContext {
    CallContext {
        now_unix_ms: 0,
        time_zone: "UTC".to_owned(),
        correlation_id: String::new(),
        budget_ms: u32::try_from(limits.time_ms).unwrap_or(u32::MAX),
        config_json: String::new(),
        extra: Vec::new(),
    }
}

fn is_id(id: &str) -> bool {
    let mut bytes = id.bytes();
    id.len() <= 64
        && bytes.next().is_some_and(|b| b.is_ascii_lowercase())
        && bytes.all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

fn issues_text(issues: &[Issue]) -> String {
    let issues = issues.iter().take(5).map(|issue| format!("{} {}", issue.path, issue.message));
    shortened(issues.collect::<Vec<_>>().join("; ").trim())
}

fn error_text(error: &PluginError) -> String {
    match error {
        PluginError::Unsupported(message) | PluginError::InvalidInput(message) | PluginError::Internal(message) => {
            shortened(message)
        }
        PluginError::InvalidConfig(issues) => issues_text(issues),
    }
}
