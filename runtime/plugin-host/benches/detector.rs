//! The cost of the sandbox for a detector. The benchmark scores 50 series, each with 1,000 points and 100 points of
//! history, by z-score: once through the component and the port, and once with the detector's code as native Rust. The
//! component should take less than three times as long as the native code.

#![allow(clippy::unwrap_used, reason = "a benchmark stops at its first fault")]

#[path = "../tests/host/standard.rs"]
mod standard;

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use detector_standard::Standard;
use standard::{DAY_MS, components, facts, host, native};
use terrane_app::ports::detectors::{DetectorParams, Detectors as _, SeriesBatch};
use terrane_plugin_host::ComponentDetectors;
use terrane_sdk::CallContext;
use terrane_sdk::detector::{Detector as _, Params};

const SERIES: usize = 50;

/// Returns numbers that resemble a measure: a level, a weekly pattern, and pseudo-random noise.
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

fn z_score(criterion: &mut Criterion) {
    let detectors = ComponentDetectors::new(host(components()));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (history, points) = (Arc::new(batch(100, 0)), Arc::new(batch(1_000, 100)));
    let call = facts();
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
