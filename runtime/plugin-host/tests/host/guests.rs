//! Guests for tests: core modules in text form, which become components without a compiler for WebAssembly.
//!
//! In: the bodies of some functions. Out: the bytes of a component of the world `dialect-plugin`, or of a component
//! that differs from that world in one respect.

#![allow(dead_code, reason = "each test uses its part")]

// The paths are explicit because a benchmark includes this file too.
#[path = "guests/image.rs"]
pub(crate) mod image;
#[path = "guests/role.rs"]
pub(crate) mod role;

use std::fs;
use std::path::{Path, PathBuf};

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

/// A component of the dialect world in text form, with one body for each function.
#[derive(Clone)]
pub(crate) struct Guest<'a> {
    /// Fields of the module besides the exported functions: imports, globals, a start function.
    pub(crate) fields: &'a str,
    pub(crate) pages: u32,
    pub(crate) describe: &'a str,
    pub(crate) check_config: &'a str,
    pub(crate) describe_dialect: &'a str,
}

/// The address of the record `info` in a guest's memory. The strings of the record start at 1024.
const INFO: &str = "(i32.const 2048)";
/// A result `ok` without a value, which is all zeros.
const OK: &str = "(i32.const 4096)";

impl Default for Guest<'_> {
    /// Returns a guest that describes itself, accepts any configuration, and traps when its profile is requested.
    fn default() -> Self {
        Guest { fields: "", pages: 2, describe: INFO, check_config: OK, describe_dialect: "unreachable" }
    }
}

impl Guest<'_> {
    pub(crate) fn text(&self) -> String {
        let Guest { fields, pages, describe, check_config, describe_dialect } = self;
        format!(
            r#"(module
  {fields}
  (memory (export "memory") {pages})
  (global $free (mut i32) (i32.const 8192))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (global.get $free)
    (global.set $free (i32.add (global.get $free) (i32.and (i32.add (local.get 3) (i32.const 15)) (i32.const -16)))))
  (data (i32.const 1024) "dialect-test")
  (data (i32.const 1040) "1.0.0")
  (data (i32.const 1056) "\ff\fe")
  (data (i32.const 2048) "\00\04\00\00\0c\00\00\00" "\10\04\00\00\05\00\00\00")
  (func (export "terrane:types/plugin@0.1.0#describe") (result i32) {describe})
  (func (export "terrane:types/plugin@0.1.0#check-config") (param i32 i32) (result i32) {check_config})
  (func (export "terrane:dialect/dialect@0.1.0#describe-dialect")
    (param i64 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) {describe_dialect})
  (func (export "terrane:dialect/dialect@0.1.0#render") (param i32) (result i32) unreachable)
  (func (export "terrane:dialect/dialect@0.1.0#parse-explain")
    (param i64 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32) unreachable)
  (func (export "terrane:dialect/dialect@0.1.0#classify-error") (param i32 i32 i32 i32) (result i32) unreachable)
  (func (export "terrane:dialect/dialect@0.1.0#map-types") (param i32 i32) (result i32) unreachable))"#
        )
    }

    pub(crate) fn component(&self) -> Vec<u8> {
        component(&self.text(), &wit(), "dialect-plugin")
    }
}

/// Returns the contract's folder.
pub(crate) fn wit() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../wit")
}

/// Copies the contract into a folder, replacing `from` with `to` in every file, and returns the copy.
pub(crate) fn wit_with(folder: &Path, from: &str, to: &str) -> PathBuf {
    let copy = folder.join("wit");
    for sub in ["", "deps"] {
        fs::create_dir_all(copy.join(sub)).unwrap();
        for entry in fs::read_dir(wit().join(sub)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "wit") {
                let text = fs::read_to_string(&path).unwrap().replace(from, to);
                fs::write(copy.join(sub).join(path.file_name().unwrap()), text).unwrap();
            }
        }
    }
    copy
}

/// Returns a copy of the contract in which one world imports one more interface with one function. If the interface is
/// the memo, its file exists already.
pub(crate) fn wit_importing(folder: &Path, world: &str, interface: &str, function: &str) -> PathBuf {
    let (package, name) = interface.split_once('/').unwrap();
    let (name, version) = name.split_once('@').unwrap();
    if name == "memo" {
        return wit();
    }
    let import = format!("world {world} {{ import {interface};");
    let wit = wit_with(folder, &format!("world {world} {{"), &import);
    if package == "terrane:host" {
        let host = wit.join("deps/host.wit");
        let text = fs::read_to_string(&host).unwrap();
        fs::write(&host, format!("{text}\ninterface {name} {{ {function} }}\n")).unwrap();
    } else {
        let text = format!("package {package}@{version};\ninterface {name} {{ {function} }}\n");
        fs::write(wit.join("deps/evil.wit"), text).unwrap();
    }
    wit
}

/// Returns a component that contains a module in text form, for a world of the contract in the folder `wit`.
pub(crate) fn component(text: &str, wit: &Path, world: &str) -> Vec<u8> {
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_dir(wit).unwrap();
    let world = resolve.select_world(&[package], Some(world)).unwrap();
    let mut module = wat::parse_str(text).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
}
