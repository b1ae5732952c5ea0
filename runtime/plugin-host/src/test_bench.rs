//! The test bench for plugin authors: loads one component, and calls any of its functions with JSON.
//!
//! In: a file. Out: [`Facts`], which are read without running the component, and a [`CallReport`] for each call. Each
//! call has a fresh instance with a server's limits. A report contains the answer, the fuel, the memory, the duration,
//! the log lines, and the fault for which a server would refuse the answer. Not here: the operator's settings.

mod answers;
mod json;
mod signature;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use terrane_app::ports::plugins::{PluginFault, PluginRole};
use wasmtime::component::types::{ComponentFunc, ComponentItem};
use wasmtime::component::{Component, HasSelf, InstancePre, Linker, Type, Val};

use crate::bindings::check::CheckPlugin;
use crate::bindings::detector::DetectorPlugin;
use crate::bindings::dialect::DialectPlugin;
use crate::bindings::{log, memo};
use crate::detector::catalog;
use crate::dialect;
use crate::engine::{Engine, Guest};
use crate::error::{call_fault, shortened};
use crate::governance::guest::PolicyGuest;
use crate::limits::{CallLimits, GuestLimits};
use crate::loader;
use crate::memo::Memo;
use crate::monotonic_clock::MonotonicClock;
use crate::panic_message;
use crate::plugin::Grants;
use crate::role::{Info, LinkedComponent, ROLES, Role};
use crate::sandbox_limits::{MemoGrant, SandboxLimits};

pub use crate::log::{LogLine, LogLines};
pub use json::FieldError;

/// Facts of a component that are known without running it.
#[derive(Debug, Clone)]
pub struct Facts {
    pub bytes: u64,
    /// Lower-case hexadecimal SHA-256 of the file.
    pub digest: String,
    /// The role, by the interface that the component exports; `None` if it exports the interface of no role.
    pub role: Option<PluginRole>,
    pub imports: Vec<String>,
    pub exports: Vec<Export>,
    /// The content of the section `plugin.toml`, if the component has one.
    pub manifest: Option<String>,
}

/// One exported function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The interface, such as `terrane:anomaly/detector@0.1.0`.
    pub interface: String,
    pub name: String,
    /// The signature in the syntax of the contract: `func(kind: string, …) -> …`.
    pub signature: String,
}

/// A component's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub id: String,
    pub version: String,
    pub display_name: String,
    pub api: String,
    pub config_schema_json: String,
}

/// The measurements and the answer of a call that returned.
#[derive(Debug, Clone)]
pub struct CallReport {
    pub answer: Value,
    /// The fault for which a server would refuse the answer; `None` if it would accept it, or if the guest
    /// declined the call.
    pub refused: Option<PluginFault>,
    /// The used fuel, about one unit per WebAssembly instruction. A component uses the same fuel for the same input.
    pub fuel: u64,
    /// The total size of the instance's linear memories in bytes at the end of the call.
    pub memory_bytes: usize,
    /// The duration of the call, including the instantiation.
    pub duration: Duration,
    pub log: LogLines,
}

/// The reason why a call has no answer.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CallError {
    #[error("unknown function `{asked}`")]
    UnknownFunction { asked: String, exports: Vec<String> },
    #[error("the arguments do not fit `{function}`")]
    Arguments { function: String, field_errors: Vec<FieldError> },
    #[error("the component {fault}")]
    Fault {
        fault: PluginFault,
        /// The lines that the component wrote before the fault.
        log: LogLines,
    },
}

/// Converts a fault that ends a call before the component could write log lines.
impl From<PluginFault> for CallError {
    fn from(fault: PluginFault) -> CallError {
        CallError::Fault { fault, log: LogLines::default() }
    }
}

/// A compiled component and its sandbox.
pub struct TestBench {
    engine: Arc<Engine>,
    component: Component,
    facts: Facts,
    name: Arc<str>,
    config_json: String,
}

impl TestBench {
    /// Reads and compiles a component.
    ///
    /// # Errors
    /// The file cannot be read, is not a component, or imports an interface that no host has.
    pub fn open(path: &Path) -> Result<TestBench, PluginFault> {
        let engine = Engine::new(GuestLimits::default());
        let engine = Arc::new(engine.map_err(|error| PluginFault::Host { message: error.to_string() })?);
        let bytes = loader::read(path)?;
        let digest = loader::digest(&bytes);
        // The bench grants the memo, as an operator could.
        let grants = Grants { memo: true, ..Grants::default() };
        let component = loader::component(&engine, None, &bytes, &digest, grants)?;
        let exports = exports(&engine, &component);
        let has = |interface: &str| {
            exports.iter().any(|export| export.interface.split('@').next().is_some_and(|name| name == interface))
        };
        let imports = component.component_type();
        let imports = imports.imports(&engine.wasmtime).map(|(name, _)| shortened(name)).collect();
        let facts = Facts {
            bytes: bytes.len() as u64,
            digest,
            role: ROLES.iter().find(|(_, interface)| has(interface)).map(|(role, _)| *role),
            imports,
            exports,
            manifest: crate::manifest::text_of_component(&bytes).ok().flatten().map(str::to_owned),
        };
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        Ok(TestBench { engine, component, facts, name: name.into(), config_json: String::new() })
    }

    /// Sets the configuration, a JSON object. It applies to calls whose arguments have no context of their own.
    #[must_use]
    pub fn configured(self, config_json: &str) -> TestBench {
        TestBench { config_json: config_json.to_owned(), ..self }
    }

    pub fn config_json(&self) -> &str {
        &self.config_json
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Checks that a component exports `role` with this host's version and types of the contract, and returns its
    /// description.
    ///
    /// # Errors
    /// Returns the fault for which a server would refuse the component.
    pub fn describe(&self, role: PluginRole) -> Result<Identity, PluginFault> {
        match role {
            PluginRole::Dialect => self.describe_as::<DialectPlugin>(),
            PluginRole::Detector => self.describe_as::<DetectorPlugin>(),
            PluginRole::Check => self.describe_as::<CheckPlugin>(),
            PluginRole::Governance => self.describe_as::<PolicyGuest>(),
        }
    }

    fn describe_as<R: Role>(&self) -> Result<Identity, PluginFault> {
        Ok(identity(self.linked::<R>()?.describe(CallLimits::DESCRIBE)?))
    }

    /// Returns the description of a component of `role`, after every check that a server makes before it uses the
    /// component: its configuration, and a dialect's profile or a detector's kinds.
    ///
    /// # Errors
    /// Returns the fault for which a server would refuse the component.
    pub fn probe(&self, role: PluginRole) -> Result<Identity, PluginFault> {
        let config_json = &self.config_json;
        match role {
            PluginRole::Dialect => {
                let linked = self.linked::<DialectPlugin>()?;
                let identity = identity(linked.describe(CallLimits::DESCRIBE)?);
                let name = identity.id.strip_prefix("dialect-").unwrap_or(&identity.id);
                linked.check_config(config_json, CallLimits::DESCRIBE)?;
                dialect::profile(&linked, name, config_json, CallLimits::DESCRIBE)?;
                Ok(identity)
            }
            PluginRole::Detector => {
                let identity = self.probe_as::<DetectorPlugin>(config_json)?;
                let ask = |guest: &DetectorPlugin, store: &mut wasmtime::Store<Guest>| {
                    guest.terrane_anomaly_detector().call_detectors(store)
                };
                let kinds = self.linked::<DetectorPlugin>()?.call(catalog::CALL, CallLimits::DESCRIBE, ask)?;
                catalog::checked(kinds, &identity.id.as_str().into(), &identity.version.as_str().into())?;
                Ok(identity)
            }
            PluginRole::Check => self.probe_as::<CheckPlugin>(config_json),
            PluginRole::Governance => self.probe_as::<PolicyGuest>(config_json),
        }
    }

    fn probe_as<R: Role>(&self, config_json: &str) -> Result<Identity, PluginFault> {
        let linked = self.linked::<R>()?;
        let info = linked.describe(CallLimits::DESCRIBE)?;
        linked.check_config(config_json, CallLimits::DESCRIBE)?;
        Ok(identity(info))
    }

    fn linked<R: Role>(&self) -> Result<LinkedComponent<R>, PluginFault> {
        LinkedComponent::on(self.sandbox(), &self.engine, &self.component, &Arc::default())
    }

    /// Returns the sandbox of a call. Each call has a new memo, so that equal calls have equal answers.
    fn sandbox(&self) -> SandboxLimits {
        let memo = MemoGrant {
            memo: Memo::new(MonotonicClock::default()),
            digest: self.facts.digest.as_str().into(),
            config_json: "".into(),
        };
        SandboxLimits { memo: Some(memo), ..SandboxLimits::alone(Arc::clone(&self.name), self.engine.guest) }
    }

    /// Calls an exported function. The function is given by its name alone (`detect`) or with its interface
    /// (`terrane:anomaly/detector@0.1.0#detect`), and `arguments` by the names of the parameters. Optional fields of
    /// records may be omitted.
    ///
    /// # Errors
    /// The function is unknown, the arguments have wrong types, or the guest has a fault.
    pub fn call(&self, function: &str, arguments: &Map<String, Value>) -> Result<CallReport, CallError> {
        let export = self.export(function)?;
        let ty = function_type(&self.engine, &self.component, export).ok_or_else(|| self.unknown(function))?;
        let values = values(&ty, arguments, function)?;
        let limits = self.limits(&export.name);
        let called =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.call_with(export, limits, (&ty, &values))));
        called.unwrap_or_else(|_| Err(PluginFault::Host { message: "the engine panicked".to_owned() }.into()))
    }

    /// Returns the default limits of a call of this function.
    pub fn limits(&self, function: &str) -> CallLimits {
        const DESCRIBING: [&str; 4] = ["describe", "check-config", "describe-dialect", "detectors"];
        match self.facts.role {
            Some(role) if !DESCRIBING.contains(&function) => CallLimits::of(role),
            _ => CallLimits::DESCRIBE,
        }
    }

    fn export(&self, function: &str) -> Result<&Export, CallError> {
        let (interface, name) = match function.split_once('#') {
            Some((interface, name)) => (Some(interface), name),
            None => (None, function),
        };
        let is_it = |export: &&Export| export.name == name && interface.is_none_or(|wanted| export.interface == wanted);
        self.facts.exports.iter().find(is_it).ok_or_else(|| self.unknown(function))
    }

    fn unknown(&self, asked: &str) -> CallError {
        let exports = self.facts.exports.iter().map(|export| export.name.clone()).collect();
        CallError::UnknownFunction { asked: asked.to_owned(), exports }
    }

    fn call_with(
        &self,
        export: &Export,
        limits: CallLimits,
        (ty, values): (&ComponentFunc, &[Val]),
    ) -> Result<CallReport, CallError> {
        let name = static_name(&export.name);
        let pre = self.instance_pre()?;
        #[allow(clippy::disallowed_methods, reason = "it measures a call for its author; nothing is decided by it")]
        let started = Instant::now();
        let (mut store, _running) = self.engine.new_store(&self.sandbox(), "", limits);
        store.data_mut().log.capture();
        let fault = |error: wasmtime::Error| call_fault(name, &error);
        let instance = pre.instantiate(&mut store).map_err(fault)?;
        let interface = instance.get_export_index(&mut store, None, &export.interface);
        let index = interface.and_then(|index| instance.get_export_index(&mut store, Some(&index), &export.name));
        let function = index.and_then(|index| instance.get_func(&mut store, index));
        let function = function
            .ok_or(PluginFault::Host { message: format!("`{}` does not exist in the instance", export.name) })?;
        let mut answers = vec![Val::Bool(false); ty.results().len()];
        let returned = function.call(&mut store, values, &mut answers).map_err(fault);
        let (duration, log) = (started.elapsed(), store.data_mut().log.take());
        if let Err(fault) = returned {
            return Err(CallError::Fault { fault: store.data().panic.explain(fault), log });
        }
        let fuel = limits.fuel.saturating_sub(store.get_fuel().unwrap_or_default());
        let arguments = ty.params().map(|(name, _)| name).zip(values).collect();
        let refused = answers::AnsweredCall { call: name, arguments }.refusal(answers.first());
        let answer = answers.first().map_or(Value::Null, json::from_val);
        Ok(CallReport { answer, refused, fuel, memory_bytes: store.data().memory_bytes(), duration, log })
    }

    fn instance_pre(&self) -> Result<InstancePre<Guest>, PluginFault> {
        let host = |error: wasmtime::Error| PluginFault::Host { message: shortened(&format!("{error:#}")) };
        let mut linker = Linker::new(&self.engine.wasmtime);
        log::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest).map_err(host)?;
        memo::add_to_linker::<_, HasSelf<Guest>>(&mut linker, |guest| guest).map_err(host)?;
        panic_message::add_to_linker(&mut linker).map_err(host)?;
        let malformed = |error: wasmtime::Error| PluginFault::Malformed { message: shortened(&format!("{error:#}")) };
        linker.instantiate_pre(&self.component).map_err(malformed)
    }
}

/// Returns the function's name in the contract as a static string, which a fault needs.
fn static_name(name: &str) -> &'static str {
    const NAMES: [&str; 15] = [
        "describe",
        "check-config",
        "describe-dialect",
        "render",
        "parse-explain",
        "classify-error",
        "map-types",
        "detectors",
        "train",
        "detect",
        "make-plan",
        "evaluate",
        "on-query",
        "on-certify",
        "on-metadata-change",
    ];
    NAMES.into_iter().find(|known| *known == name).unwrap_or("a function of its own")
}

fn identity(info: Info) -> Identity {
    let Info { id, version, display_name, api, config_schema_json, .. } = info;
    // The id and the version were checked already; the other fields are untrusted text.
    let (display_name, api) = (shortened(&display_name), shortened(&api));
    Identity { id, version, display_name, api, config_schema_json }
}

fn exports(engine: &Engine, component: &Component) -> Vec<Export> {
    let mut found = Vec::new();
    for (interface, item) in component.component_type().exports(&engine.wasmtime) {
        let ComponentItem::ComponentInstance(instance) = item.ty else { continue };
        for (name, item) in instance.exports(&engine.wasmtime) {
            if let ComponentItem::ComponentFunc(function) = item.ty {
                let signature = signature::text(&function);
                found.push(Export { interface: interface.to_owned(), name: name.to_owned(), signature });
            }
        }
    }
    found
}

fn function_type(engine: &Engine, component: &Component, export: &Export) -> Option<ComponentFunc> {
    let ty = component.component_type();
    let ComponentItem::ComponentInstance(instance) = ty.get_export(&engine.wasmtime, &export.interface)?.ty else {
        return None;
    };
    match instance.get_export(&engine.wasmtime, &export.name)?.ty {
        ComponentItem::ComponentFunc(function) => Some(function),
        _ => None,
    }
}

fn values(ty: &ComponentFunc, arguments: &Map<String, Value>, function: &str) -> Result<Vec<Val>, CallError> {
    let mut field_errors = Vec::new();
    let parameters: Vec<(&str, Type)> = ty.params().collect();
    for name in arguments.keys().filter(|name| !parameters.iter().any(|(known, _)| known == name)) {
        let names: Vec<&str> = parameters.iter().map(|(name, _)| *name).collect();
        let message = format!("unknown parameter; the parameters are {}", names.join(", "));
        field_errors.push(FieldError { path: format!("/{name}"), message });
    }
    let mut values = Vec::new();
    for (name, ty) in &parameters {
        let path = format!("/{name}");
        values.push(match arguments.get(*name) {
            Some(value) => json::to_val(ty, value, &path, &mut field_errors),
            None => json::empty(ty).or_else(|| {
                field_errors.push(FieldError { path, message: format!("{} is missing", json::described(ty)) });
                None
            }),
        });
    }
    match values.into_iter().collect::<Option<Vec<_>>>() {
        Some(values) if field_errors.is_empty() => Ok(values),
        _ => Err(CallError::Arguments { function: function.to_owned(), field_errors }),
    }
}
