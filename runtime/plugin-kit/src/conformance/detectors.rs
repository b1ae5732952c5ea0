//! Vectors of the detector role: series without points, without values or without change, many series, and series in a
//! different order.

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::TestBench;

use super::{ConformanceOutcome, accepted, ask, is_code, list, text};

/// A kind of the detector, with the number of points of history that it needs.
struct Kind {
    name: String,
    history: usize,
    has_model: bool,
}

pub(super) fn run(bench: &TestBench) -> Vec<ConformanceOutcome> {
    let described = ask(bench, "detectors", json!({}));
    let kinds = described.as_ref().map(|answer| answer.as_array().cloned().unwrap_or_default());
    let kinds = kinds.unwrap_or_default();
    let mut outcomes = vec![ConformanceOutcome::new("detectors", described.map(|_| kind_problems(&kinds)))];
    for kind in &kinds {
        let min_points = kind["min-points"].as_u64().unwrap_or(0).min(1_000) as usize;
        let has_model = kind["has-model"].as_bool().unwrap_or_default();
        let kind = Kind { name: text(kind, "kind").to_owned(), history: min_points * 2 + 16, has_model };
        for (name, history, points) in vectors(kind.history) {
            let found = detect(bench, &kind, &history, &points);
            let name = format!("{}: {name}", kind.name);
            outcomes.push(ConformanceOutcome::of_answer(name, found, |answer| problems(answer, &points)));
        }
        outcomes.push(ConformanceOutcome::new(
            format!("{}: series in another order", kind.name),
            order_problems(bench, &kind),
        ));
    }
    outcomes
}

fn kind_problems(kinds: &[Value]) -> Vec<String> {
    let mut problems = Vec::new();
    if kinds.is_empty() || kinds.len() > 32 {
        problems.push(format!("expected 1 to 32 kinds, found {}", kinds.len()));
    }
    for (at, kind) in kinds.iter().enumerate() {
        let name = text(kind, "kind");
        if !is_code(name) {
            problems.push(format!("`{name}` is not a kind name: [a-z][a-z0-9_]*, at most 64"));
        }
        if kinds[..at].iter().any(|other| text(other, "kind") == name) {
            problems.push(format!("duplicate kind `{name}`"));
        }
        if !kind["default-sensitivity"].as_f64().is_some_and(|sensitivity| sensitivity > 0.0) {
            problems.push(format!("the default sensitivity of `{name}` must be greater than 0"));
        }
        let schema = text(kind, "settings-schema-json");
        if !schema.is_empty() && !serde_json::from_str::<Value>(schema).is_ok_and(|schema| schema.is_object()) {
            problems.push(format!("the settings' schema of `{name}` is not a JSON object"));
        }
    }
    problems
}

type Series = Vec<Vec<Value>>;

/// Returns the vectors. Each has a name, histories, and points to evaluate.
fn vectors(length: usize) -> Vec<(&'static str, Series, Series)> {
    let nan = || json!("NaN");
    let with_gaps = wave(length * 2, 3).into_iter().enumerate().map(|(at, v)| if at % 3 == 1 { nan() } else { v });
    vec![
        ("no series", vec![], vec![]),
        ("a series without points", vec![wave(length, 1)], vec![vec![]]),
        ("no history", vec![vec![]], vec![vec![json!(1.0)]]),
        ("one point", vec![wave(length, 1)], vec![vec![json!(1.0e3)]]),
        ("points without values", vec![wave(length, 2)], vec![vec![nan(), json!(5.0), nan()]]),
        ("history with gaps", vec![with_gaps.collect()], vec![wave(4, 5)]),
        ("history of nothing but gaps", vec![vec![nan(); length]], vec![wave(3, 1)]),
        ("a constant series", vec![vec![json!(7.0); length]], vec![vec![json!(7.0), json!(8.0)]]),
        ("a constant zero", vec![vec![json!(0.0); length]], vec![vec![json!(0.0), json!(-1.0)]]),
        ("huge and tiny values", vec![extremes(length)], vec![vec![json!(1e300), json!(-1e300), json!(5e-324)]]),
        ("fifty series", (0..50).map(|seed| wave(length, seed)).collect(), (0..50).map(|seed| wave(5, seed)).collect()),
    ]
}

/// Returns values that rise and fall, in a different way for each seed.
fn wave(length: usize, seed: usize) -> Vec<Value> {
    (0..length).map(|at| json!(100.0 + ((at * 37 + seed * 53) % 101) as f64 / 4.0)).collect()
}

fn extremes(length: usize) -> Vec<Value> {
    (0..length).map(|at| json!(if at % 2 == 0 { 1e300 } else { -1e300 })).collect()
}

/// Trains the detector if the kind has models, and returns the detection, or `None` if the plugin declined.
fn detect(bench: &TestBench, kind: &Kind, history: &Series, points: &Series) -> Result<Option<Value>, String> {
    let parameters = json!({"training-size": 10_000});
    let history = json!({"series": history});
    let models = if kind.has_model {
        let arguments = json!({"kind": kind.name, "history": history, "p": parameters});
        match accepted(&ask(bench, "train", arguments)?) {
            Some(models) => models.clone(),
            None => return Ok(None),
        }
    } else {
        json!([])
    };
    let arguments =
        json!({"kind": kind.name, "models": models, "history": history, "points": {"series": points}, "p": parameters});
    Ok(accepted(&ask(bench, "detect", arguments)?).cloned())
}

/// Checks that every list has one entry per point, that scores are from 0 to 1, and that points without a value are not
/// evaluated.
fn problems(detection: &Value, points: &Series) -> Vec<String> {
    let points: Vec<&Value> = points.iter().flatten().collect();
    let mut problems = Vec::new();
    for column in ["scores", "raw", "expected", "lower-bound", "upper-bound", "anomalous"] {
        let found = list(detection, column).len();
        if found != points.len() {
            problems.push(format!("`{column}` has {found} entries for {} points", points.len()));
        }
    }
    for (at, (point, score)) in points.iter().zip(list(detection, "scores")).enumerate() {
        let is_known = point.is_number();
        let is_fitting = |score: f64| (0.0..=1.0).contains(&score) && (is_known || score == 0.0);
        if !score.as_f64().is_some_and(is_fitting) {
            let wanted = if is_known { "0 to 1" } else { "0 for a point without a value" };
            problems.push(format!("the score of point {at} is {score}, not {wanted}"));
        }
        if !is_known && detection["anomalous"][at] == json!(true) {
            problems.push(format!("point {at} is anomalous without a value"));
        }
    }
    problems
}

/// Checks that a different order of the series changes only the order of the answers, because each series is evaluated
/// separately.
fn order_problems(bench: &TestBench, kind: &Kind) -> Result<Vec<String>, String> {
    let series = |count: usize| -> Series { (0..7).map(|seed| wave(count, seed)).collect() };
    let (mut history, mut points) = (series(kind.history), series(3));
    let Some(forwards) = detect(bench, kind, &history, &points)? else { return Ok(vec![]) };
    history.reverse();
    points.reverse();
    let Some(backwards) = detect(bench, kind, &history, &points)? else {
        return Ok(vec!["the same series in another order are declined".to_owned()]);
    };
    let chunks = |detection: &Value, column: &str| -> Vec<Vec<Value>> {
        list(detection, column).chunks(3).map(<[Value]>::to_vec).collect()
    };
    let differs = |column: &&str| {
        let mut turned = chunks(&backwards, column);
        turned.reverse();
        turned != chunks(&forwards, column)
    };
    let columns = ["scores", "raw", "expected", "lower-bound", "upper-bound", "anomalous"];
    let differing: Vec<&str> = columns.into_iter().filter(|column| differs(column)).collect();
    Ok(differing.into_iter().map(|column| format!("`{column}` depends on the order of the series")).collect())
}
