//! Guests of any role, as core modules in text form.
//!
//! In: a role, and the bodies of some functions; the other functions trap. Out: the bytes of a component, with a
//! manifest if one is given. An answer is a pointer into the guest's memory, whose initial content is `data`.

use std::path::Path;

use terrane_app::ports::plugins::PluginRole;

use super::{component, wit};

/// The ten core parameters to which the context of a call is flattened.
const CONTEXT: &str = "i64 i32 i32 i32 i32 i32 i32 i32 i32 i32";

/// Grows the memory until it contains the address `$free`.
const GROW: &str = "(if (i32.gt_u (global.get $free) (i32.mul (memory.size) (i32.const 65536)))
      (then (drop (memory.grow (i32.add (i32.const 1) (i32.shr_u
        (i32.sub (global.get $free) (i32.mul (memory.size) (i32.const 65536))) (i32.const 16)))))))";

/// A component of a role, with one body for each function.
#[derive(Clone)]
pub(crate) struct RoleGuest {
    pub(crate) role: PluginRole,
    pub(crate) id: String,
    pub(crate) version: String,
    /// Fields of the module besides the exported functions: imports, globals, a start function.
    pub(crate) fields: String,
    pub(crate) describe: String,
    pub(crate) check_config: String,
    /// True if the allocator grows the memory when needed; otherwise the memory has a fixed size.
    pub(crate) grows: bool,
    /// The bodies of the role's functions, by names of the contract such as `on-query`.
    pub(crate) bodies: Vec<(&'static str, String)>,
}

impl RoleGuest {
    /// Returns a guest that describes itself and accepts any configuration. Its other functions trap, except that a
    /// detector returns one kind.
    pub(crate) fn new(role: PluginRole, id: &str) -> RoleGuest {
        let bodies = match role {
            PluginRole::Detector => vec![("detectors", "(i32.const 2304)".to_owned())],
            _ => Vec::new(),
        };
        RoleGuest {
            role,
            id: id.to_owned(),
            version: "1.0.0".to_owned(),
            fields: String::new(),
            grows: false,
            describe: "(i32.const 2048)".to_owned(),
            check_config: "(i32.const 4096)".to_owned(),
            bodies,
        }
    }

    /// Sets the body of a function, which would trap otherwise.
    pub(crate) fn with(mut self, function: &'static str, body: &str) -> RoleGuest {
        self.bodies.retain(|(name, _)| *name != function);
        self.bodies.push((function, body.to_owned()));
        self
    }

    fn exports(&self) -> (&'static str, &'static str, Vec<(&'static str, String)>) {
        let context = |more: &str| format!("{CONTEXT} {more}");
        let memory = || "i32".to_owned();
        match self.role {
            PluginRole::Detector => (
                "detector-plugin",
                "terrane:anomaly/detector@0.1.0",
                vec![("detectors", String::new()), ("train", memory()), ("detect", memory())],
            ),
            PluginRole::Check => (
                "check-plugin",
                "terrane:profiling/check@0.1.0",
                vec![("make-plan", context("i32 i32")), ("evaluate", context("i32 i32 i32 i32"))],
            ),
            PluginRole::Governance => (
                "policy-plugin",
                "terrane:governance/hook@0.1.0",
                vec![("on-query", memory()), ("on-certify", memory()), ("on-metadata-change", memory())],
            ),
            PluginRole::Dialect => panic!("`Guest` is a dialect"),
        }
    }

    fn text(&self) -> String {
        let RoleGuest { id, version, fields, describe, check_config, .. } = self;
        let grow = if self.grows { GROW } else { "" };
        let (_, interface, functions) = self.exports();
        let function = |(name, parameters): &(&'static str, String)| {
            let body = self.bodies.iter().find(|(known, _)| known == name).map_or("unreachable", |(_, body)| body);
            let parameters = if parameters.is_empty() { String::new() } else { format!("(param {parameters})") };
            format!("(func (export \"{interface}#{name}\") {parameters} (result i32) {body})\n")
        };
        let functions: String = functions.iter().map(function).collect();
        format!(
            r#"(module
  {fields}
  (memory (export "memory") 2)
  (global $free (mut i32) (i32.const 8192))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.get $free)
    (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 15)) (i32.const -16))))
    {grow})
  (data (i32.const 1024) "{id}")
  (data (i32.const 1088) "{version}")
  (data (i32.const 1120) "probe")
  (data (i32.const 2048) "\00\04\00\00{id_length}" "\40\04\00\00{version_length}")
  (data (i32.const 2304) "\60\09\00\00\01\00\00\00")
  (data (i32.const 2400) "\60\04\00\00\05\00\00\00" "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\08\40" "\03\00\00\00")
  (func (export "terrane:types/plugin@0.1.0#describe") (result i32) {describe})
  (func (export "terrane:types/plugin@0.1.0#check-config") (param i32 i32) (result i32) {check_config})
  {functions})"#,
            id_length = little_endian(id.len()),
            version_length = little_endian(version.len()),
        )
    }

    pub(crate) fn component(&self) -> Vec<u8> {
        self.component_of(&wit())
    }

    /// Returns the component for the contract in a folder, which may differ from the host's.
    pub(crate) fn component_of(&self, wit: &Path) -> Vec<u8> {
        component(&self.text(), wit, self.world())
    }

    pub(crate) fn world(&self) -> &'static str {
        self.exports().0
    }
}

fn little_endian(number: usize) -> String {
    (number as u32).to_le_bytes().iter().map(|byte| format!("\\{byte:02x}")).collect()
}
