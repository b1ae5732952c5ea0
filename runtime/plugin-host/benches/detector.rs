//! What the sandbox costs a detector: z-scores of 50 series with 1,000 points each and 100 of history, through
//! the component and the whole port, against the same code as native Rust. The target is under three times
//! native.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use detector_standard::Standard;
use terrane_app::ports::calls::CallFacts;
use terrane_app::ports::detectors::{DetectorParams, Detectors as _, SeriesBatch};
use terrane_plugin_host::{ComponentDetectors, PluginHost, SearchPath, Settings};
use terrane_sdk::CallContext;
use terrane_sdk::detector::{Detector as _, Params, SeriesBatch as NativeBatch};

const SERIES: usize = 50;
const DAY_MS: i64 = 86_400_000;

/// Numbers that look like a measure: a level, a week, and noise of a small generator.
fn batch(points: usize, first: usize) -> SeriesBatch {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut batch = SeriesBatch::new(Some(DAY_MS as u64));
    for series in 0..SERIES {
        let value = |at: usize, noise: f64| 100.0 * series as f64 + (at % 7) as f64 + noise;
        let part: Vec<(i64, f64)> =
            (first..first + points).map(|at| (at as i64 * DAY_MS, value(at, noise()))).collect();
        batch.push(part);
    }
    batch
}

fn native(batch: &SeriesBatch) -> NativeBatch {
    NativeBatch {
        offsets: batch.offsets.clone(),
        timestamps_ms: batch.timestamps_ms.clone(),
        values: batch.values.clone(),
        step_ms: batch.step_ms,
    }
}

fn z_score(criterion: &mut Criterion) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.prepared/components");
    let search = SearchPath { folders: vec![folder], ..SearchPath::default() };
    let host = Arc::new(PluginHost::new(Settings::new(search)).unwrap());
    let detectors = ComponentDetectors::new(host);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (history, points) = (Arc::new(batch(100, 0)), Arc::new(batch(1_000, 100)));
    let call = CallFacts { now_unix_ms: 0, time_zone: "UTC".into(), correlation_id: "bench".into(), tenant: None };
    let params = DetectorParams { training_size: 100, ..DetectorParams::default() };
    let (native_history, native_points) = (native(&history), native(&points));
    let native_params = Params { sensitivity: None, training_size: 100, seasonality: None, extra: Vec::new() };
    let context = CallContext::for_tests();

    let mut group = criterion.benchmark_group("z_score 50 x 1000");
    group.bench_function("native", |bencher| {
        bencher.iter(|| {
            let found = Standard::detect(&context, "z_score", &[], &native_history, &native_points, &native_params);
            black_box(found.unwrap())
        });
    });
    group.bench_function("component", |bencher| {
        bencher.iter(|| {
            let (history, points) = (Arc::clone(&history), Arc::clone(&points));
            let found = detectors.detect(&call, "z_score", Vec::new(), history, points, &params);
            black_box(runtime.block_on(found).unwrap())
        });
    });
    group.finish();
}

criterion_group!(benches, z_score);
criterion_main!(benches);
