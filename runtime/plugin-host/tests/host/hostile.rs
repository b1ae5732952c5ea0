//! Tests that each hostile component ends with a typed fault, and that the host continues.
//!
//! Limits are counted, not measured: a guest that must run out of fuel gets little fuel and much time, and a guest that
//! must run out of time gets much fuel and little time.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::guests::{Guest, component, wit, wit_importing, wit_with};
use tempfile::TempDir;
use terrane_app::ports::plugins::{Blame, FileKind, Limit, PluginError, PluginFault, PluginState, Plugins};
use terrane_plugin_host::{CallLimits, MAX_COMPONENT_BYTES, PluginHost, SearchPath, Settings};

const NO_TIME_LIMIT: CallLimits = CallLimits { fuel: 20_000_000, time_ms: 600_000 };
const NO_FUEL_LIMIT: CallLimits = CallLimits { fuel: u64::MAX >> 1, time_ms: 20 };

/// Returns a host, and the folder in which it finds these bytes as the dialect `test`.
fn host(bytes: &[u8], describe: CallLimits) -> (TempDir, PluginHost) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("dialect-test.wasm"), bytes).unwrap();
    let search = SearchPath { folders: vec![folder.path().to_owned()], ..SearchPath::default() };
    let host = PluginHost::new(Settings { describe, ..Settings::new(search) }).unwrap();
    (folder, host)
}

fn fault_of(host: &PluginHost) -> PluginFault {
    match host.dialect("test").unwrap_err() {
        PluginError::Faulted { fault, .. } => fault,
        other => panic!("{other}"),
    }
}

fn fault(bytes: &[u8], describe: CallLimits) -> PluginFault {
    let (_folder, host) = host(bytes, describe);
    let fault = fault_of(&host);
    assert_eq!(fault.blame(), Blame::Guest, "{fault}");
    assert!(matches!(host.loaded()[0].state, PluginState::Refused(_)));
    fault
}

const ENDLESS: &str = "(loop $again (br $again)) unreachable";

#[test]
fn endless_loop_is_stopped_by_fuel_or_time() {
    let in_describe = Guest { describe: ENDLESS, ..Guest::default() };
    let in_profile = Guest { describe_dialect: ENDLESS, ..Guest::default() };
    let in_start = Guest { fields: "(func $s (loop $again (br $again))) (start $s)", ..Guest::default() };
    for (guest, call) in [(in_describe, "describe"), (in_profile, "describe-dialect"), (in_start, "describe")] {
        let bytes = guest.component();
        assert_eq!(fault(&bytes, NO_TIME_LIMIT), PluginFault::Limit { call, limit: Limit::Fuel });
        assert_eq!(fault(&bytes, NO_FUEL_LIMIT), PluginFault::Limit { call, limit: Limit::Time });
    }
}

#[test]
fn endless_growth_is_stopped_by_the_limit_of_its_kind() {
    for (fields, body, limit) in [
        ("", "(loop $again (drop (memory.grow (i32.const 16))) (br $again)) unreachable", Limit::Memory),
        (
            "(table $t 1 funcref)",
            "(loop $again (drop (table.grow $t (ref.null func) (i32.const 1000))) (br $again)) unreachable",
            Limit::Tables,
        ),
        ("(func $deeper (result i32) (i32.add (i32.const 1) (call $deeper)))", "(call $deeper)", Limit::Stack),
    ] {
        let bytes = Guest { fields, describe: body, ..Guest::default() }.component();
        assert_eq!(fault(&bytes, NO_TIME_LIMIT), PluginFault::Limit { call: "describe", limit });
    }
}

#[test]
fn filling_allowed_memory_does_not_extend_the_time_limit() {
    let body = "(drop (memory.grow (i32.const 900)))
        (loop $again (memory.fill (i32.const 65536) (i32.const 1) (i32.const 58000000)) (br $again)) unreachable";
    let bytes = Guest { describe: body, ..Guest::default() }.component();
    let found = fault(&bytes, NO_FUEL_LIMIT);
    assert_eq!(found, PluginFault::Limit { call: "describe", limit: Limit::Time });
}

#[test]
fn guest_with_excessive_initial_memory_is_not_run() {
    let bytes = Guest { pages: 4096, ..Guest::default() }.component();
    // An engine with a pool refuses the component during the compilation, other engines during the instantiation.
    let found = fault(&bytes, NO_TIME_LIMIT);
    let is_memory = PluginFault::Limit { call: "describe", limit: Limit::Memory };
    assert!(found == is_memory || matches!(found, PluginFault::Malformed { .. }), "{found}");
}

#[test]
fn traps_name_the_call_and_do_not_affect_the_host() {
    let bytes = Guest { describe: "unreachable", ..Guest::default() }.component();
    let (_folder, host) = host(&bytes, NO_TIME_LIMIT);
    for _ in 0..3 {
        assert!(matches!(fault_of(&host), PluginFault::Trapped { call: "describe", .. }));
    }
    assert_eq!(host.guest_calls(), 3);
    let bytes = Guest::default().component();
    assert!(matches!(fault(&bytes, NO_TIME_LIMIT), PluginFault::Trapped { call: "describe-dialect", .. }));
    let divided = Guest { describe: "(i32.div_u (i32.const 1) (i32.const 0))", ..Guest::default() };
    assert!(matches!(fault(&divided.component(), NO_TIME_LIMIT), PluginFault::Trapped { call: "describe", .. }));
}

/// Returns a guest whose `info` has another string or list at the address `at`, with this pointer and this length.
fn info_with(at: u32, pointer: u32, length: u32) -> Guest<'static> {
    let body = format!(
        "(i32.store (i32.const {at}) (i32.const {pointer})) (i32.store (i32.const {}) (i32.const {length})) (i32.const 2048)",
        at + 4
    );
    Guest { describe: body.leak(), ..Guest::default() }
}

#[test]
fn responses_that_violate_the_contract_are_rejected() {
    let broken = [
        ("the identity is not UTF-8", info_with(2048, 1056, 2)),
        ("a string out of bounds", info_with(2048, 1024, 0x8000_0000)),
        ("a string beyond all addresses", info_with(2048, 0xffff_fff0, 64)),
        ("a list out of bounds", info_with(2048 + 40, 1024, 0x7fff_ffff)),
        ("an empty identity", info_with(2048, 1024, 0)),
        ("a version of 100 bytes", info_with(2048 + 8, 1024, 100)),
        ("an answer at an odd place", Guest { describe: "(i32.const 2049)", ..Guest::default() }),
        ("an answer out of bounds", Guest { describe: "(i32.const -4)", ..Guest::default() }),
    ];
    for (what, guest) in broken {
        let found = fault(&guest.component(), NO_TIME_LIMIT);
        assert!(matches!(found, PluginFault::Answer { call: "describe", .. }), "{what}: {found}");
    }
}

#[test]
fn strings_over_shared_bytes_do_not_exhaust_host_memory() {
    // The list `extra` has 1,000 pairs, and each string of a pair is the same 60,000 bytes.
    let body = "(local $i i32)
        (loop $again
          (i32.store (i32.add (i32.const 70000) (i32.mul (local.get $i) (i32.const 16))) (i32.const 4096))
          (i32.store offset=4 (i32.add (i32.const 70000) (i32.mul (local.get $i) (i32.const 16))) (i32.const 60000))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 1000))))
        (memory.fill (i32.const 4096) (i32.const 0x61) (i32.const 60000))
        (i32.store (i32.const 2088) (i32.const 70000))
        (i32.store (i32.const 2092) (i32.const 1000))
        (i32.const 2048)";
    let bytes = Guest { describe: body, ..Guest::default() }.component();
    let found = fault(&bytes, NO_TIME_LIMIT);
    assert_eq!(found, PluginFault::Limit { call: "describe", limit: Limit::Transfer });
}

#[test]
fn guest_can_decline() {
    // The body returns `err` with an empty list of issues.
    let bytes =
        Guest { check_config: "(i32.store8 (i32.const 4096) (i32.const 1)) (i32.const 4096)", ..Guest::default() };
    assert!(matches!(fault(&bytes.component(), NO_TIME_LIMIT), PluginFault::Declined { call: "check-config", .. }));
}

#[test]
fn other_files_than_components_are_never_run() {
    let good = Guest::default().component();
    let precompiled = wasmtime::Engine::default().precompile_component(&good).unwrap();
    for (bytes, found) in [
        (wat::parse_str("(module)").unwrap(), FileKind::CoreModule),
        (precompiled, FileKind::Precompiled),
        (b"\x7fELF and so on".to_vec(), FileKind::Native),
        (Vec::new(), FileKind::Unknown),
        (b"\0asm".to_vec(), FileKind::Unknown),
        (b"(component)".to_vec(), FileKind::Unknown),
        (b"#!/bin/sh\n".to_vec(), FileKind::Unknown),
    ] {
        assert_eq!(fault(&bytes, NO_TIME_LIMIT), PluginFault::NotAComponent { found });
    }
}

#[test]
fn truncated_or_changed_component_is_malformed() {
    let good = Guest::default().component();
    for length in [9, 100, good.len() / 2, good.len() - 1] {
        let found = fault(&good[..length], NO_TIME_LIMIT);
        assert!(matches!(found, PluginFault::Malformed { .. }), "{length}: {found}");
    }
    let mut changed = good.clone();
    changed[8] = 0x7e;
    assert!(matches!(fault(&changed, NO_TIME_LIMIT), PluginFault::Malformed { .. }));
}

#[test]
fn file_of_endless_size_is_not_read() {
    let (folder, host) = host(b"", NO_TIME_LIMIT);
    let file = fs::File::create(folder.path().join("dialect-test.wasm")).unwrap();
    file.set_len(100 * 1024 * 1024).unwrap();
    let found = fault_of(&host);
    assert_eq!(found, PluginFault::TooLarge { bytes: 100 * 1024 * 1024, limit: MAX_COMPONENT_BYTES });
}

#[test]
fn component_of_another_world_or_version_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let other = folder.path().join("other.wit");
    fs::write(&other, "package acme:other@1.0.0;\nworld tool { export run: func(); }\n").unwrap();
    let bytes = component("(module (func (export \"run\")))", folder.path(), "tool");
    let PluginFault::WrongWorld { missing, exports } = fault(&bytes, NO_TIME_LIMIT) else { panic!("another fault") };
    assert_eq!((missing.as_str(), exports), ("terrane:types/plugin@0.1.0", vec!["run".to_owned()]));

    let newer = wit_with(folder.path(), "@0.1.0", "@0.2.0");
    let bytes = component(&Guest::default().text().replace("@0.1.0", "@0.2.0"), &newer, "dialect-plugin");
    let found = fault(&bytes, NO_TIME_LIMIT);
    let expected = PluginFault::WrongVersion {
        found: "terrane:types/plugin@0.2.0".to_owned(),
        supported: "terrane:types/plugin@0.1.0".to_owned(),
    };
    assert_eq!(found, expected);

    let logging = Guest {
        fields: "(import \"terrane:host/log@0.1.0\" \"log\" (func $log (param i32 i32 i32 i32 i32)))",
        ..Guest::default()
    };
    let bytes = component(&logging.text().replace("@0.1.0", "@0.2.0"), &newer, "dialect-plugin");
    let expected = PluginFault::WrongVersion {
        found: "terrane:host/log@0.2.0".to_owned(),
        supported: "terrane:host/log@0.1.0".to_owned(),
    };
    assert_eq!(fault(&bytes, NO_TIME_LIMIT), expected, "imports are looked at first, and need no grant");
}

#[test]
fn component_with_other_types_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    let changed = wit_with(folder.path(), "display-name: string,", "display-name: string, maker: string,");
    let bytes = component(&Guest::default().text(), &changed, "dialect-plugin");
    let found = fault(&bytes, NO_TIME_LIMIT);
    assert!(matches!(found, PluginFault::WrongTypes { .. }), "{found}");
    let text = found.to_string();
    for words in ["terrane:types/plugin@0.1.0", "terrane:dialect/dialect@0.1.0", "expected record of 6 fields, found 7"]
    {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

#[test]
fn later_patch_of_the_contract_is_compatible() {
    let folder = tempfile::tempdir().unwrap();
    let later = wit_with(folder.path(), "@0.1.0", "@0.1.7");
    let bytes = component(&Guest::default().text().replace("@0.1.0", "@0.1.7"), &later, "dialect-plugin");
    // The component was accepted: the default guest itself traps in `describe-dialect`.
    assert!(matches!(fault(&bytes, NO_TIME_LIMIT), PluginFault::Trapped { call: "describe-dialect", .. }));
}

#[test]
fn import_that_is_not_granted_is_named() {
    for (interface, function, signature) in [
        ("wasi:cli/environment@0.2.0", "get-environment: func() -> list<string>;", "(param i32)"),
        ("wasi:filesystem/preopens@0.2.0", "get-directories: func() -> list<string>;", "(param i32)"),
        ("wasi:sockets/instance-network@0.2.0", "instance-network: func() -> u32;", "(result i32)"),
        ("wasi:clocks/wall-clock@0.2.0", "now: func() -> u64;", "(result i64)"),
        ("wasi:random/random@0.2.0", "get-random-u64: func() -> u64;", "(result i64)"),
        ("terrane:host/memo@0.1.0", "get: func(key: string) -> option<list<u8>>;", "(param i32 i32 i32)"),
        ("terrane:host/log-and-more@0.1.0", "log: func();", ""),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let wit = wit_importing(folder.path(), "dialect-plugin", interface, function);
        let (function, _) = function.split_once(':').unwrap();
        let fields = format!("(import \"{interface}\" \"{function}\" (func {signature}))");
        let guest = Guest { fields: fields.leak(), ..Guest::default() };
        let bytes = component(&guest.text(), &wit, "dialect-plugin");
        assert_eq!(fault(&bytes, NO_TIME_LIMIT), PluginFault::ForeignImport { import: interface.to_owned() });
    }
}

#[test]
fn missing_component_is_reported_with_the_searched_folders() {
    let folder = tempfile::tempdir().unwrap();
    let folders = vec![folder.path().join("plugins"), folder.path().join("components")];
    let mut search = SearchPath { folders: folders.clone(), ..SearchPath::default() };
    let host = PluginHost::new(Settings::new(search.clone())).unwrap();
    let expected = PluginError::NotFound { file: "dialect-duckdb.wasm".to_owned(), looked_in: folders };
    assert_eq!(host.dialect("duckdb").unwrap_err(), expected);
    assert!(expected.to_string().contains("dialect-duckdb.wasm") && expected.to_string().contains("components"));

    let named = folder.path().join("my.wasm");
    search.files.insert("dialect-duckdb".to_owned(), named.clone());
    let host = PluginHost::new(Settings::new(search)).unwrap();
    let expected = PluginError::NotFound { file: "dialect-duckdb.wasm".to_owned(), looked_in: vec![named] };
    assert_eq!(host.dialect("duckdb").unwrap_err(), expected);

    for name in ["", "../duckdb", "Duck", "a/b", "a b", "duckdb\0"] {
        assert_eq!(host.dialect(name).unwrap_err(), PluginError::Name { name: name.to_owned() });
    }
}

#[test]
fn earlier_folder_takes_precedence_and_repaired_file_is_retried() {
    let folder = tempfile::tempdir().unwrap();
    let folders: Vec<PathBuf> = ["first", "second"].iter().map(|name| folder.path().join(name)).collect();
    for folder in &folders {
        fs::create_dir(folder).unwrap();
        fs::write(folder.join("dialect-test.wasm"), b"rubbish").unwrap();
    }
    let search = SearchPath { folders: folders.clone(), ..SearchPath::default() };
    let host = PluginHost::new(Settings::new(search)).unwrap();
    let Err(PluginError::Faulted { path, .. }) = host.dialect("test") else { panic!("no fault") };
    assert!(path.starts_with(&folders[0]));
    fs::write(folders[0].join("dialect-test.wasm"), Guest::default().component()).unwrap();
    assert!(matches!(fault_of(&host), PluginFault::Trapped { .. }));
}

/// Counts the log lines of plugins.
struct Lines(Arc<AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.target() == "terrane::plugin"
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[test]
fn flood_of_log_lines_is_cut_off_and_reported_once() {
    let guest = Guest {
        fields: "(import \"terrane:host/log@0.1.0\" \"log\" (func $log (param i32 i32 i32 i32 i32)))",
        describe: "(local $i i32)
            (loop $again
              (call $log (i32.const 2) (i32.const 1024) (i32.const 12) (i32.const 0) (i32.const 0))
              (local.set $i (i32.add (local.get $i) (i32.const 1)))
              (br_if $again (i32.lt_u (local.get $i) (i32.const 5000))))
            (i32.const 2048)",
        describe_dialect: "unreachable",
        ..Guest::default()
    };
    let (_folder, host) = host(&guest.component(), NO_TIME_LIMIT);
    let lines = Arc::new(AtomicUsize::new(0));
    let fault = tracing::subscriber::with_default(Lines(Arc::clone(&lines)), || fault_of(&host));
    assert!(matches!(fault, PluginFault::Trapped { call: "describe-dialect", .. }), "{fault}");
    assert_eq!(lines.load(Ordering::Relaxed), 20 + 1);
}

#[test]
fn calls_share_no_state() {
    // The second call would trap if it saw the global that the first call set.
    let guest = Guest {
        fields: "(global $used (mut i32) (i32.const 0))
            (func $once (if (global.get $used) (then unreachable)) (global.set $used (i32.const 1)))",
        describe: "(call $once) (i32.const 2048)",
        check_config: "(call $once) (i32.const 4096)",
        describe_dialect: "(call $once) unreachable",
        ..Guest::default()
    };
    let found = fault(&guest.component(), NO_TIME_LIMIT);
    assert!(matches!(found, PluginFault::Trapped { call: "describe-dialect", .. }), "{found}");
}

#[test]
fn concurrent_callers_each_get_the_fault() {
    let bytes = Guest { describe: ENDLESS, ..Guest::default() }.component();
    let (_folder, host) = host(&bytes, CallLimits { fuel: 100_000, time_ms: 600_000 });
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..32).map(|_| scope.spawn(|| fault_of(&host))).collect();
        for caller in callers {
            let expected = PluginFault::Limit { call: "describe", limit: Limit::Fuel };
            assert_eq!(caller.join().unwrap(), expected);
        }
    });
    assert_eq!(host.guest_calls(), 32);
    // All these guests were built from the contract in this folder.
    assert!(wit().join("worlds.wit").is_file());
}
