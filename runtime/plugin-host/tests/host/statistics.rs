//! Tests Terrane's own detectors and checks as components behind their ports. They must return the same results as when
//! their code runs natively, and follow the contract.

use std::sync::Arc;

use crate::standard::{DAY_MS, components, facts, host, native};
use detector_standard::Standard;
use terrane_app::ports::calls::ComponentFault;
use terrane_app::ports::checks::{
    CheckAggregate, CheckAnswer, CheckCall, Checks as _, ProfiledColumn, QualityDimension,
};
use terrane_app::ports::detectors::{DetectorError, DetectorParams, Detectors as _, SeriesBatch};
use terrane_app::ports::plugins::{Limit, PluginFault, PluginRole};
use terrane_app::ports::severity::FindingSeverity;
use terrane_compiler::types::{LogicalType, Value};
use terrane_plugin_host::manifest::RequestedLimits;
use terrane_plugin_host::{ComponentChecks, ComponentDetectors, PluginHost, PluginSettings, SearchPath, Settings};
use terrane_sdk::CallContext;
use terrane_sdk::detector::{Detector as _, Params};

/// Returns a folder that contains the component `of` under another file name.
fn folder_with(name: &str, of: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(components().join(of), folder.path().join(name)).unwrap();
    folder
}

fn batch(series: &[&[f64]]) -> SeriesBatch {
    let mut batch = SeriesBatch::new(Some(DAY_MS as u64));
    for values in series {
        batch.push(values.iter().enumerate().map(|(at, value)| (at as i64 * DAY_MS, *value)));
    }
    batch
}

fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| if value.is_nan() { f64::NAN.to_bits() } else { value.to_bits() }).collect()
}

#[tokio::test]
async fn unlisted_detector_kinds_are_discovered() {
    let list = ComponentDetectors::new(host(components())).kinds().await;
    let kinds: Vec<(&str, f64)> = list.kinds.iter().map(|kind| (&*kind.kind, kind.default_sensitivity)).collect();
    assert_eq!(kinds, [("iqr", 1.5), ("mad", 3.0), ("seasonal", 3.0), ("z_score", 2.5)]);
    assert!(list.kinds.iter().all(|kind| &*kind.component == "detector-standard"));
    assert!(list.faults.is_empty(), "{:?}", list.faults);
}

#[tokio::test]
async fn components_and_native_code_score_identically() {
    let detectors = ComponentDetectors::new(host(components()));
    let wave: Vec<f64> = (0..60).map(|at| f64::from(at * 37 % 101) / 7.0).collect();
    let history = batch(&[&wave[..50], &[1.0; 20], &[f64::NAN, 2.0, 3.0, 5.0, f64::NAN, 7.0, 4.0, 9.0]]);
    let points = batch(&[&wave[50..], &[1.0, 2.0, f64::NAN], &[100.0, f64::INFINITY]]);
    let mut cleaned = native(&points);
    cleaned.values.iter_mut().filter(|value| value.is_infinite()).for_each(|value| *value = f64::NAN);
    for kind in ["z_score", "iqr", "mad", "seasonal"] {
        let params = DetectorParams { sensitivity: Some(1.25), training_size: 50, ..DetectorParams::default() };
        let (asked, of) = (Arc::new(history.clone()), Arc::new(points.clone()));
        let found = detectors.detect(&facts(), kind, Vec::new(), asked, of, &params).await.unwrap();
        let params = Params { sensitivity: Some(1.25), training_size: 50, seasonality: None, extra: Vec::new() };
        let context = CallContext::for_tests();
        let expected = Standard::detect(&context, kind, &[], &native(&history), &cleaned, &params).unwrap();
        assert_eq!(bits(&found.scores), bits(&expected.scores), "{kind}");
        assert_eq!(bits(&found.raw), bits(&expected.raw), "{kind}");
        assert_eq!(bits(&found.expected), bits(&expected.expected), "{kind}");
        assert_eq!(bits(&found.lower_bound), bits(&expected.lower_bound), "{kind}");
        assert_eq!(bits(&found.upper_bound), bits(&expected.upper_bound), "{kind}");
        assert_eq!(found.anomalous, expected.anomalous, "{kind}");
        assert!(found.anomalous.iter().any(|is_anomalous| *is_anomalous), "{kind}");
    }
}

#[tokio::test]
async fn points_over_the_call_limit_are_split_and_keep_their_order() {
    let detectors = ComponentDetectors::new(host(components()));
    let history: Vec<Vec<f64>> = (0..5).map(|series| vec![f64::from(series), f64::from(series) + 2.0, 9.0]).collect();
    let points: Vec<Vec<f64>> = (0..5).map(|series| vec![f64::from(series); 25_000]).collect();
    let slices = |series: &[Vec<f64>]| {
        let slices: Vec<&[f64]> = series.iter().map(Vec::as_slice).collect();
        Arc::new(batch(&slices))
    };
    let params = DetectorParams { training_size: 3, ..DetectorParams::default() };
    let found =
        detectors.detect(&facts(), "mad", Vec::new(), slices(&history), slices(&points), &params).await.unwrap();
    assert_eq!(found.scores.len(), 125_000);
    for (series, expected) in found.expected.chunks(25_000).enumerate() {
        assert!(expected.iter().all(|value| *value == series as f64 + 2.0), "{series}");
    }
    let long = vec![0.0; 60_001];
    let refused =
        detectors.detect(&facts(), "mad", Vec::new(), slices(&history[..1]), Arc::new(batch(&[&long])), &params).await;
    assert_eq!(refused, Err(DetectorError::TooLong { points: 60_001, limit: 60_000 }));
}

/// Evaluates series that need several calls in one turn, and series that need several turns.
#[tokio::test]
async fn scores_of_a_series_do_not_depend_on_other_series() {
    let detectors = ComponentDetectors::new(host(components()));
    let wave = |series: usize, from: usize, count: usize| -> Vec<f64> {
        (from..from + count).map(|at| (at * (37 + series) % 101) as f64 / 7.0).collect()
    };
    let lengths = [0, 1, 700, 5_999, 6_001, 3_000, 3_000, 20_000, 30_000, 2, 9];
    let of = |series: usize, count: usize| (wave(series, 0, 40), wave(series, 40, count));
    let all: Vec<(Vec<f64>, Vec<f64>)> = lengths.iter().enumerate().map(|(at, count)| of(at, *count)).collect();
    let together = |part: &[(Vec<f64>, Vec<f64>)]| {
        let (history, points): (Vec<&[f64]>, Vec<&[f64]>) = part.iter().map(|(h, p)| (&h[..], &p[..])).unzip();
        (Arc::new(batch(&history)), Arc::new(batch(&points)))
    };
    let params = DetectorParams { training_size: 40, ..DetectorParams::default() };
    for kind in ["z_score", "seasonal"] {
        let (history, points) = together(&all);
        let found = detectors.detect(&facts(), kind, Vec::new(), history, points, &params).await.unwrap();
        let mut start = 0;
        for series in &all {
            let (history, points) = together(std::slice::from_ref(series));
            let alone = detectors.detect(&facts(), kind, Vec::new(), history, points, &params).await.unwrap();
            let own = start..start + series.1.len();
            assert_eq!(bits(&found.scores[own.clone()]), bits(&alone.scores), "{kind}");
            assert_eq!(bits(&found.upper_bound[own.clone()]), bits(&alone.upper_bound), "{kind}");
            assert_eq!(found.anomalous[own.clone()], alone.anomalous, "{kind}");
            start = own.end;
        }
        assert_eq!(found.scores.len(), start);
    }
}

#[tokio::test]
async fn calls_of_one_turn_share_one_fuel_limit() {
    let judged = async |fuel: u64, series: usize| {
        let limits = RequestedLimits { time_ms: Some(600_000), fuel: Some(fuel), memory_mb: None };
        let path = components().join("detector-standard.wasm");
        let plugin = PluginSettings { limits, ..PluginSettings::new("detector-standard", PluginRole::Detector, path) };
        let settings = Settings { plugins: vec![plugin], ..Settings::new(SearchPath::default()) };
        let detectors = ComponentDetectors::new(Arc::new(PluginHost::new(settings).unwrap()));
        let (history, points) = (vec![&[1.0, 2.0, 4.0][..]; series], vec![&[3.0; 6_000][..]; series]);
        let params = DetectorParams { training_size: 3, ..DetectorParams::default() };
        let (history, points) = (Arc::new(batch(&history)), Arc::new(batch(&points)));
        detectors.detect(&facts(), "z_score", Vec::new(), history, points, &params).await.map(drop)
    };
    let mut enough = 10_000;
    while judged(enough, 1).await.is_err() {
        enough *= 2;
    }
    let refused = judged(enough, 4).await.unwrap_err();
    let DetectorError::Fault { fault: ComponentFault { fault: PluginFault::Limit { limit, .. }, .. }, series } =
        &refused
    else {
        panic!("{refused}")
    };
    // Each series is a call of its own here, and the fuel was enough for the first one.
    assert!(*limit == Limit::Fuel && series.len() == 1 && series.start > 0, "{series:?}");
    assert_eq!(judged(5 * enough, 4).await, Ok(()));
}

#[tokio::test]
async fn rejection_by_a_detector_names_the_component() {
    let detectors = ComponentDetectors::new(host(components()));
    let empty = || Arc::new(batch(&[&[1.0]]));
    let params = DetectorParams { seasonality: Some(1), training_size: 1, ..DetectorParams::default() };
    let refused = detectors.detect(&facts(), "seasonal", Vec::new(), empty(), empty(), &params).await.unwrap_err();
    let DetectorError::Fault { fault: ComponentFault { component, fault }, .. } = refused else { panic!("{refused}") };
    assert_eq!(&*component, "detector-standard");
    assert!(matches!(fault, PluginFault::Declined { call: "detect", .. }), "{fault}");
    let refused = detectors.detect(&facts(), "magic", Vec::new(), empty(), empty(), &params).await.unwrap_err();
    let DetectorError::Unknown { known, .. } = refused else { panic!("{refused}") };
    assert_eq!(known.len(), 4);
}

#[tokio::test]
async fn component_with_another_id_or_role_is_reported() {
    let folder = folder_with("detector-copy.wasm", "detector-standard.wasm");
    let list = ComponentDetectors::new(host(folder.path().to_owned())).kinds().await;
    assert!(list.kinds.is_empty());
    assert!(list.faults[0].to_string().contains("detector-copy"), "{:?}", list.faults);
    let folder = folder_with("detector-standard.wasm", "check-standard.wasm");
    let list = ComponentDetectors::new(host(folder.path().to_owned())).kinds().await;
    assert!(matches!(list.faults[0].fault, PluginFault::WrongWorld { .. }), "{:?}", list.faults);
}

fn columns() -> Arc<[ProfiledColumn]> {
    let column = |member: &str, ty| ProfiledColumn {
        cube: "orders".into(),
        member: member.into(),
        ty,
        is_measure: false,
        is_primary_key: member == "id",
        tags: Vec::new(),
        pii: false,
    };
    [column("id", LogicalType::Integer), column("status", LogicalType::Text), column("amount", LogicalType::Float)]
        .into()
}

#[tokio::test]
async fn checks_plan_and_assess_in_the_sandbox() {
    let checks = ComponentChecks::new(host(components()));
    let call = CheckCall { facts: facts(), profile_config_json: "{}".into() };
    let plans = checks.plans(&call, columns()).await;
    let plan = plans.into_iter().map(|plan| plan.unwrap()).find(|plan| &*plan.component == "check-standard").unwrap();
    let answers = plan.requests.iter().map(|request| {
        let value = match (&request.aggregate, request.column) {
            (CheckAggregate::Rows, _) => Value::Integer(100),
            (CheckAggregate::Nulls, 1) => Value::Integer(10),
            (CheckAggregate::Nulls, _) => Value::Integer(0),
            (CheckAggregate::Distinct, 0) => Value::Integer(100),
            (CheckAggregate::Where(_), _) => Value::Integer(9),
            (CheckAggregate::Skewness, _) => Value::Float(2.5),
            _ => return CheckAnswer::default(),
        };
        CheckAnswer { values: vec![value], counts: Vec::new() }
    });
    let found = checks.evaluate(&call, "check-standard", columns(), answers.collect()).await.unwrap();
    let score = |column: usize, dimension| {
        found.iter().find(|f| f.column == Some(column) && f.dimension == dimension).and_then(|finding| finding.score)
    };
    assert_eq!(score(1, QualityDimension::Completeness), Some(0.9));
    assert_eq!(score(1, QualityDimension::Validity), Some(0.9));
    assert_eq!(score(0, QualityDimension::Uniqueness), Some(1.0));
    let skewed = found.iter().find(|finding| &*finding.code == "highly_skewed").unwrap();
    assert_eq!((skewed.column, skewed.severity), (Some(2), FindingSeverity::Low));
}

#[tokio::test]
async fn wide_cubes_are_planned() {
    let checks = ComponentChecks::new(host(components()));
    let call = CheckCall { facts: facts(), profile_config_json: "{}".into() };
    let column = columns()[1].clone();
    for count in [24, 100, 400] {
        let named = (0..count).map(|at| ProfiledColumn { member: format!("text_{at}").into(), ..column.clone() });
        let plans = checks.plans(&call, named.collect()).await;
        let asked: Vec<usize> = plans.into_iter().map(|plan| plan.unwrap().requests.len()).collect();
        assert!(asked.iter().any(|requests| *requests >= count), "{count}: {asked:?}");
    }
}

#[tokio::test]
async fn unreadable_check_settings_are_rejected() {
    let checks = ComponentChecks::new(host(components()));
    let config = r#"{"quality_thresholds": {"validity_warning": 7}}"#;
    let call = CheckCall { facts: facts(), profile_config_json: config.into() };
    let plans = checks.plans(&call, columns()).await;
    let fault = plans.into_iter().find_map(Result::err).unwrap();
    assert!(fault.to_string().contains("validity_warning"), "{fault}");
    let missing = checks.evaluate(&call, "check-missing", columns(), Vec::new()).await.unwrap_err();
    assert_eq!(&*missing.component, "check-missing");
}
