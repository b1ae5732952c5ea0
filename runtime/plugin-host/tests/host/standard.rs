//! Code that the tests of Terrane's own components share. `cargo xtask components` builds the components. The detectors
//! are compared with the same code that runs natively.

#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::detectors::SeriesBatch;
use terrane_plugin_host::{PluginHost, SearchPath, Settings};
use terrane_sdk::detector::SeriesBatch as NativeBatch;

pub(crate) const DAY_MS: i64 = 86_400_000;

pub(crate) fn components() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.prepared/components");
    assert!(folder.join("detector-standard.wasm").is_file(), "run `cargo xtask components` first");
    folder
}

/// Returns a host that uses only the components in a folder.
pub(crate) fn host(folder: PathBuf) -> Arc<PluginHost> {
    let search = SearchPath { folders: vec![folder], ..SearchPath::default() };
    Arc::new(PluginHost::new(Settings::new(search)).unwrap())
}

pub(crate) fn facts() -> CallFacts {
    CallFacts { now_unix_ms: 1_704_067_200_000, time_zone: "UTC".into(), correlation_id: "test".into(), tenant: None }
}

/// Converts a batch to the type that the detector's native code uses.
pub(crate) fn native(batch: &SeriesBatch) -> NativeBatch {
    NativeBatch {
        offsets: batch.offsets.clone(),
        timestamps_ms: batch.timestamps_ms.clone(),
        values: batch.values.clone(),
        step_ms: batch.step_ms,
    }
}
