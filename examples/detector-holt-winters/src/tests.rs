//! Runs the cases in `cases/` natively: training on each history must arrive at the state and the forecasts of NumPy,
//! which agree with those of statsmodels.

use std::fs;
use std::path::Path;

use terrane_sdk::json::Json;

use super::*;

const NEAR: f64 = 1e-9;

fn numbers(json: &Json) -> Vec<f64> {
    json.items().iter().filter_map(Json::number).collect()
}

fn cases() -> Vec<Json> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    files.map(|path| Json::parse(&fs::read_to_string(path).unwrap()).unwrap()).collect()
}

fn batch(json: &Json) -> SeriesBatch {
    SeriesBatch::for_tests(&[&numbers(&json.at(&["series"]).unwrap().items()[0])])
}

fn params(arguments: &Json) -> Params {
    let extra = arguments.at(&["p", "extra"]).unwrap().items().iter().map(|pair| {
        let pair = pair.texts();
        (pair[0].to_owned(), pair[1].to_owned())
    });
    Params { seasonality: Some(4), extra: extra.collect(), ..Params::for_tests() }
}

#[test]
fn training_equals_the_state_and_forecasts_of_numpy() {
    let cases = cases();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let arguments = case.get("args").unwrap();
        let (context, params) = (CallContext::for_tests(), params(arguments));
        let (history, points) = (batch(arguments.get("history").unwrap()), batch(arguments.get("points").unwrap()));
        let models = HoltWinters::train(&context, "holt_winters", &history, &params).unwrap();
        let theirs: Vec<u8> =
            numbers(&arguments.get("models").unwrap().items()[0]).iter().map(|byte| *byte as u8).collect();
        let theirs = Model::from_bytes(&theirs).unwrap();
        let ours = Model::from_bytes(&models[0]).unwrap();
        assert!((ours.deviation() - theirs.deviation()).abs() < NEAR);
        let found = HoltWinters::detect(&context, "holt_winters", &models, &history, &points, &params).unwrap();
        let expected = numbers(case.at(&["expect", "ok", "expected"]).unwrap());
        for (at, (found, expected)) in found.expected.iter().zip(&expected).enumerate() {
            assert!((found - expected).abs() < NEAR, "point {at}: {found} and {expected}");
            assert!((found - theirs.forecast(at + 1).unwrap()).abs() < NEAR);
        }
        assert_eq!(found.anomalous, [false, false, true, false, false, false]);
    }
}

#[test]
fn gap_updates_the_state_with_the_forecast() {
    let wave: Vec<f64> = (0..16).map(|at| [10.0, 20.0, 30.0, 20.0][at % 4]).collect();
    let mut with_gap = wave.clone();
    with_gap[9] = f64::NAN;
    let smoothing = Smoothing { alpha: 0.3, beta: 0.1, gamma: 0.1 };
    let (whole, gap) = (Model::fit(&wave, 4, smoothing), Model::fit(&with_gap, 4, smoothing));
    assert_eq!(whole.forecast(2), gap.forecast(2));
    assert!((whole.forecast(3).unwrap() - 30.0).abs() < NEAR && whole.deviation() < NEAR);
}

#[test]
fn short_history_scores_nothing() {
    let (context, params) = (CallContext::for_tests(), Params { seasonality: Some(4), ..Params::for_tests() });
    let history = SeriesBatch::for_tests(&[&[1.0, 2.0, 3.0]]);
    let models = HoltWinters::train(&context, "holt_winters", &history, &params).unwrap();
    let points = SeriesBatch::for_tests(&[&[1e9, f64::NAN]]);
    let found = HoltWinters::detect(&context, "holt_winters", &models, &history, &points, &params).unwrap();
    assert_eq!((found.scores, found.anomalous), (vec![0.0, 0.0], vec![false, false]));
}

#[test]
fn invalid_settings_are_rejected_by_name() {
    let refused = |params: Params, step_ms: Option<u64>| match settings::Settings::read(&params, step_ms) {
        Err(PluginError::InvalidInput(message)) => message,
        _ => String::new(),
    };
    let alpha = Params { extra: vec![("alpha".to_owned(), "2".to_owned())], ..Params::for_tests() };
    assert!(refused(alpha, Some(86_400_000)).starts_with("alpha:"));
    assert!(refused(Params::for_tests(), None).starts_with("seasonality:"));
    assert!(refused(Params::for_tests(), Some(86_400_000)).is_empty());
}

#[test]
fn manifest_matches_the_plugin() {
    terrane_sdk::manifest::check(HoltWinters::INFO, include_str!("../plugin.toml"));
    assert!(Json::parse(settings::SCHEMA).is_ok());
}
