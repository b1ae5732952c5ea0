//! Tests guests that report a panic before they trap. In every role the fault contains the place and the cause.

use wasmparser::{Parser, Payload};

use super::*;
use crate::guests::{Guest, component, wit_with};

const TEXT: &str = "panicked at src/lib.rs:7:5: on purpose";
const IMPORT: &str = "(import \"terrane:diagnostics/panic@0.1.0\" \"write\" (func $write (param i64)))";
const LOG: &str = "(import \"terrane:host/log@0.1.0\" \"log\" (func $log (param i32 i32 i32 i32 i32)))";

/// Returns a body that writes the text and traps.
fn panicking() -> String {
    let calls = TEXT.as_bytes().chunks(8).map(|chunk| {
        let mut bytes = [0; 8];
        bytes[..chunk.len()].copy_from_slice(chunk);
        format!("(call $write (i64.const {})) ", i64::from_le_bytes(bytes))
    });
    calls.collect::<String>() + "unreachable"
}

/// Returns a copy of the contract in which the world imports the interface of panic messages.
fn contract(folder: &TempDir, world: &str) -> PathBuf {
    let import = format!("world {world} {{ import terrane:diagnostics/panic@0.1.0;");
    wit_with(folder.path(), &format!("world {world} {{"), &import)
}

fn guest(role: PluginRole, id: &str) -> RoleGuest {
    RoleGuest { fields: IMPORT.to_owned(), ..RoleGuest::new(role, id).with(function_of(role), &panicking()) }
}

#[tokio::test]
async fn panic_is_the_reason_of_the_fault() {
    for (role, id) in ROLES {
        let folder = tempfile::tempdir().unwrap();
        let guest = guest(role, id);
        let bytes = guest.component_of(&contract(&folder, guest.world()));
        let stage = Stage::of_bytes(&guest, &bytes, |_| {});
        let fault = stage.call(INPUT).await.unwrap_err();
        assert!(fault.ends_with(&format!("trapped in `{}`: {TEXT}", function_of(role))), "{role}: {fault}");
    }
}

#[test]
fn panic_of_a_dialect_is_the_reason_of_the_fault() {
    let body = panicking();
    let guest = Guest { fields: IMPORT, describe_dialect: &body, ..Guest::default() };
    let folder = tempfile::tempdir().unwrap();
    let bytes = component(&guest.text(), &contract(&folder, "dialect-plugin"), "dialect-plugin");
    let components = folder.path().join("components");
    fs::create_dir(&components).unwrap();
    fs::write(components.join("dialect-test.wasm"), bytes).unwrap();
    let search = SearchPath { folders: vec![components], ..SearchPath::default() };
    let host = PluginHost::new(Settings::new(search)).unwrap();
    let PluginError::Faulted { fault, .. } = host.dialect("test").unwrap_err() else { panic!("a fault") };
    assert_eq!(fault, PluginFault::Trapped { call: "describe-dialect", message: TEXT.to_owned() });
}

/// Counts the core modules of a component. Each instance of the component instantiates all of them.
fn core_modules(component: &[u8]) -> usize {
    let payloads = Parser::new(0).parse_all(component).map(Result::unwrap);
    payloads.filter(|payload| matches!(payload, Payload::ModuleSection { .. })).count()
}

#[test]
fn panic_import_adds_no_core_module() {
    let (role, id) = (PluginRole::Governance, "policy-test");
    let folder = tempfile::tempdir().unwrap();
    let with_panic = guest(role, id);
    let with_panic = with_panic.component_of(&contract(&folder, with_panic.world()));
    let with_log = RoleGuest { fields: LOG.to_owned(), ..RoleGuest::new(role, id) };
    let without = RoleGuest::new(role, id);
    assert_eq!(core_modules(&with_panic), core_modules(&without.component()));
    assert!(core_modules(&with_log.component()) > core_modules(&without.component()));
}
