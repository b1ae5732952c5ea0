//! The cost of a plugin before its first call: the start of a host with 20 plugins whose compiled components are
//! cached, and a call that does nothing in a fresh instance.
//!
//! Budget: 50 ms for the start. The call has no budget: most of its cost is the switch to a blocking thread and back,
//! not the instance.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

#[path = "../tests/host/guests.rs"]
mod guests;

use std::fs;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use guests::role::RoleGuest;
use tempfile::TempDir;
use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::checks::{CheckCall, Checks as _};
use terrane_app::ports::plugins::{PluginRole, PluginState, Plugins as _};
use terrane_plugin_host::{ComponentChecks, PluginHost, PluginSettings, SearchPath, Settings};

const PLUGINS: usize = 20;

/// Returns twenty different detectors, and a folder for their compiled components.
fn twenty() -> (TempDir, Settings) {
    let folder = tempfile::tempdir().unwrap();
    let plugins = (0..PLUGINS).map(|number| {
        let id = format!("detector-{number}");
        let path = folder.path().join(format!("{id}.wasm"));
        fs::write(&path, RoleGuest::new(PluginRole::Detector, &id).component()).unwrap();
        PluginSettings::new(id, PluginRole::Detector, path)
    });
    let plugins: Vec<PluginSettings> = plugins.collect();
    let cache = Some(folder.path().join("cache"));
    (folder, Settings { plugins, cache, ..Settings::new(SearchPath::default()) })
}

fn start(criterion: &mut Criterion) {
    let (_folder, settings) = twenty();
    let host = PluginHost::new(settings.clone()).unwrap();
    assert!(host.loaded().iter().all(|plugin| plugin.state == PluginState::Active));
    criterion.bench_function("start with 20 compiled plugins", |bencher| {
        bencher.iter(|| black_box(PluginHost::new(settings.clone()).unwrap()));
    });
}

/// Measures a call of `make-plan` whose guest returns `ok` with a plan without requests.
fn call(criterion: &mut Criterion) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("check.wasm");
    let guest = RoleGuest::new(PluginRole::Check, "check-idle").with("make-plan", "(i32.const 4096)");
    fs::write(&path, guest.component()).unwrap();
    let plugins = vec![PluginSettings::new("check-idle", PluginRole::Check, path)];
    let host = Arc::new(PluginHost::new(Settings { plugins, ..Settings::new(SearchPath::default()) }).unwrap());
    let checks = ComponentChecks::new(host);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let facts = CallFacts { now_unix_ms: 0, time_zone: "UTC".into(), correlation_id: "b".into(), tenant: None };
    let asked = CheckCall { facts, profile_config_json: "{}".into() };
    criterion.bench_function("a call that does nothing, through the port and its threads", |bencher| {
        bencher.iter(|| {
            let plans = runtime.block_on(checks.plans(&asked, Vec::new().into()));
            assert!(black_box(&plans)[0].is_ok());
        });
    });
}

criterion_group!(benches, start, call);
criterion_main!(benches);
