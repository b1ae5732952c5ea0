//! Tests the rules with numbers that were computed by hand, and with those of NumPy and SciPy (`cases/numpy.json`, made
//! by `cases/make.py`).

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use serde_json::Value as Json;

use super::*;

const NAN: f64 = f64::NAN;

fn batch(series: &[&[f64]]) -> SeriesBatch {
    let mut offsets = vec![0];
    let values: Vec<f64> = series.concat();
    offsets.extend(series.iter().scan(0, |end, values| {
        *end += values.len() as u32;
        Some(*end)
    }));
    SeriesBatch { offsets, timestamps_ms: (0..values.len() as i64).collect(), values, step_ms: Some(1_440 * MINUTE_MS) }
}

fn params(sensitivity: Option<f64>, seasonality: Option<u32>) -> Params {
    Params { sensitivity, training_size: 100, seasonality, extra: Vec::new() }
}

fn ask(kind: &str, history: &[&[f64]], points: &[&[f64]], params: &Params) -> Result<Detection, PluginError> {
    Standard::detect(&CallContext::for_tests(), kind, &[], &batch(history), &batch(points), params)
}

fn detect(kind: &str, history: &[f64], points: &[f64]) -> Detection {
    ask(kind, &[history], &[points], &params(None, None)).unwrap()
}

/// Compares numbers to nine digits. NaN equals NaN.
fn assert_close(found: &[f64], expected: &[f64], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let is_same = (found.is_nan() && expected.is_nan())
            || (found - expected).abs() <= 1e-9 * expected.abs().max(found.abs()).max(1.0);
        assert!(is_same, "{what} {index}: {found}, expected {expected}");
    }
}

#[test]
fn z_score_equals_manual_result() {
    // Mean 5, squares 9+1+1+1+0+0+4+16 = 32, so the deviation is 2.
    let found = detect("z_score", &[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], &[5.0, 10.0, 10.5, 0.0, -6.0]);
    assert_close(&found.raw, &[0.0, 2.5, 2.75, -2.5, -5.5], "raw");
    assert_close(&found.scores, &[0.0, 0.5, 0.55, 0.5, 1.0], "score");
    // The values 10 and 0 equal the bounds, so they are ordinary: only values beyond a bound are anomalous.
    assert_eq!(found.anomalous, [false, false, true, false, true]);
    assert_close(&found.expected, &[5.0; 5], "expected");
    assert_close(&found.lower_bound, &[0.0; 5], "low");
    assert_close(&found.upper_bound, &[10.0; 5], "high");
}

#[test]
fn iqr_equals_manual_result() {
    // Type 7: Q1 = 2, median 3, Q3 = 4, so IQR 2 and bounds -1 and 7.
    let found = detect("iqr", &[5.0, 1.0, 4.0, 2.0, 3.0], &[3.0, 2.0, 7.0, 8.0, -1.5, 100.0]);
    assert_close(&found.raw, &[0.0, 0.0, 1.5, 2.0, -1.75, 48.0], "raw");
    assert_close(&found.scores, &[0.0, 0.0, 0.5, 2.0 / 3.0, 1.75 / 3.0, 1.0], "score");
    assert_eq!(found.anomalous, [false, false, false, true, true, true]);
    assert_close(&found.lower_bound, &[-1.0; 6], "low");
    assert_close(&found.upper_bound, &[7.0; 6], "high");
}

#[test]
fn modified_z_score_equals_manual_result() {
    // Median 3; distances 2 1 0 1 97, so MAD 1.
    let found = detect("mad", &[1.0, 2.0, 3.0, 4.0, 100.0], &[3.0, 8.0, -2.0, 7.0]);
    assert_close(&found.raw, &[0.0, 3.3725, -3.3725, 2.698], "raw");
    assert_close(&found.scores, &[0.0, 3.3725 / 6.0, 3.3725 / 6.0, 2.698 / 6.0], "score");
    assert_eq!(found.anomalous, [false, true, true, false]);
    assert_close(&found.upper_bound, &[3.0 + 3.0 / 0.6745; 4], "high");
}

#[test]
fn seasonal_median_equals_manual_result() {
    // Seasons of two: the even positions have the center 10, the odd ones 20, and one outlier moves neither. The
    // residuals are 0 1 -1 0 and 0 80 0 -2, so the median distance is (0 + 1) / 2 = 0.5.
    let history = [10.0, 20.0, 11.0, 100.0, 9.0, 20.0, 10.0, 18.0];
    let found = ask("seasonal", &[&history], &[&[10.0, 20.0, 20.0]], &params(None, Some(2))).unwrap();
    assert_close(&found.expected, &[10.0, 20.0, 10.0], "expected");
    assert_close(&found.raw, &[0.0, 0.0, 0.6745 * 10.0 / 0.5], "raw");
    assert_eq!(found.anomalous, [false, false, true]);
    assert_close(&found.upper_bound[..1], &[10.0 + 3.0 * 0.5 / 0.6745], "high");
    // If the history begins inside a season, each position still has the same values.
    let found = ask("seasonal", &[&history[1..]], &[&[10.0, 20.0]], &params(None, Some(2))).unwrap();
    assert_close(&found.expected, &[10.0, 20.0], "expected");
}

#[test]
fn daily_season_is_a_week_and_needs_two_seasons() {
    let weekend = |day: i32| if day % 7 < 5 { 100.0 } else { 10.0 };
    let history: Vec<f64> = (0..15).map(weekend).collect();
    let found =
        ask("seasonal", &[&history], &[&[100.0, 100.0, 100.0, 100.0, 10.0, 100.0]], &params(None, None)).unwrap();
    assert_close(&found.expected, &[100.0, 100.0, 100.0, 100.0, 10.0, 10.0], "expected");
    assert_eq!(found.anomalous, [false, false, false, false, false, true]);
    assert_close(&found.scores[5..], &[1.0], "score without spread");
    // Nine days in seasons of seven: two positions have two values, five have one.
    let found = ask("seasonal", &[&history[..9]], &[&[0.0; 7]], &params(None, None)).unwrap();
    assert_eq!(found.expected.iter().filter(|value| value.is_nan()).count(), 5);
    assert_eq!(found.anomalous.iter().filter(|is_anomalous| **is_anomalous).count(), 2);
}

#[test]
fn zero_spread_scores_equal_values_zero_and_others_one() {
    for kind in ["z_score", "iqr", "mad"] {
        // The sum of ten times 0.1, divided by ten, is not 0.1.
        let found = detect(kind, &[0.1; 10], &[0.1, 0.2, NAN]);
        assert_close(&found.scores, &[0.0, 1.0, 0.0], kind);
        assert_close(&found.raw, &[0.0, NAN, NAN], kind);
        assert_eq!(found.anomalous, [false, true, false], "{kind}");
        assert_close(&found.lower_bound, &[0.1; 3], kind);
        assert_close(&found.upper_bound, &[0.1; 3], kind);
    }
}

#[test]
fn series_are_independent_and_may_be_empty() {
    let (low, high) = ([1.0, 2.0, 3.0], [1_000.0, 2_000.0, 3_000.0]);
    for kind in ["z_score", "iqr", "mad", "seasonal"] {
        let season = params(None, Some(2));
        let both = ask(kind, &[&low, &[], &high, &low], &[&[2.0], &[7.0, 8.0], &[2.0], &[]], &season).unwrap();
        let first = ask(kind, &[&low], &[&[2.0]], &season).unwrap();
        let third = ask(kind, &[&high], &[&[2.0]], &season).unwrap();
        assert_close(&both.scores, &[first.scores[0], 0.0, 0.0, third.scores[0]], kind);
        assert_close(&both.expected[1..3], &[NAN, NAN], kind);
    }
}

#[test]
fn unusable_inputs_are_rejected() {
    let history = [1.0, 2.0, 3.0];
    let refused = |kind, params| match ask(kind, &[&history], &[&[1.0]], &params).unwrap_err() {
        PluginError::Unsupported(message) | PluginError::InvalidInput(message) => message,
        other => panic!("{other:?}"),
    };
    assert!(refused("magic", params(None, None)).contains("z_score, iqr, mad, seasonal"));
    for sensitivity in [0.0, -1.0, NAN, f64::INFINITY] {
        assert!(refused("mad", params(Some(sensitivity), None)).contains("sensitivity"));
    }
    assert!(refused("seasonal", params(None, Some(1))).contains("seasonality"));
    let monthly = SeriesBatch { step_ms: None, ..batch(&[&[1.0]]) };
    let error = Standard::detect(
        &CallContext::for_tests(),
        "seasonal",
        &[],
        &batch(&[&history]),
        &monthly,
        &params(None, None),
    );
    assert!(matches!(error, Err(PluginError::InvalidInput(message)) if message.contains("seasonality")));
}

#[test]
fn scores_equal_those_of_numpy_and_scipy() {
    let cases: Json = serde_json::from_str(include_str!("../cases/numpy.json")).unwrap();
    let numbers = |json: &Json| -> Vec<f64> {
        json.as_array().unwrap().iter().map(|value| value.as_f64().unwrap_or(NAN)).collect()
    };
    let season = cases["season"].as_u64().map(|season| season as u32);
    let all = cases["cases"].as_array().unwrap();
    assert!(all.len() > 40);
    for case in all {
        let (name, kind) = (case["name"].as_str().unwrap(), case["kind"].as_str().unwrap());
        let sample = &cases["samples"][name];
        let (history, points) = (numbers(&sample["history"]), numbers(&sample["points"]));
        let sensitivity = case["sensitivity"].as_f64();
        let found = ask(kind, &[&history], &[&points], &params(sensitivity, season)).unwrap();
        let what = |part: &str| format!("{name} {kind} {part}");
        assert_close(&found.raw, &numbers(&case["raw"]), &what("raw"));
        assert_close(&found.scores, &numbers(&case["scores"]), &what("score"));
        assert_close(&found.expected, &numbers(&case["expected"]), &what("expected"));
        assert_close(&found.lower_bound, &numbers(&case["lower_bound"]), &what("low"));
        assert_close(&found.upper_bound, &numbers(&case["upper_bound"]), &what("high"));
        for (raw, is_anomalous) in found.raw.iter().zip(&found.anomalous) {
            assert_eq!(*is_anomalous, raw.abs() > sensitivity.unwrap(), "{}", what("anomalous"));
        }
    }
}

#[test]
fn manifest_matches_the_component() {
    let manifest = include_str!("../plugin.toml");
    for line in [format!("id = {:?}", Standard::INFO.id), format!("version = {:?}", Standard::INFO.version)] {
        assert!(manifest.lines().any(|found| found == line), "{line}");
    }
}
