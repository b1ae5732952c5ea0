//! Vectors of the check role: without columns, with one column of each type, with many columns, and with unusual names.
//! Each plan is evaluated twice: with answers to its requests, and with the result that nothing could be computed.

use serde_json::{Value, json};
use terrane_plugin_host::test_bench::TestBench;

use super::{ConformanceOutcome, answer_of, arena_problems, index, is_code, list, text};

const TYPES: [&str; 11] =
    ["text", "integer", "decimal", "float", "boolean", "date", "timestamp", "timestamp-tz", "geo", "binary", "unknown"];

pub(super) fn run(bench: &TestBench) -> Vec<ConformanceOutcome> {
    let one_of_each: Vec<Value> = TYPES.iter().enumerate().map(|(at, ty)| column(at, ty)).collect();
    let many = (0..200).map(|at| column(at, TYPES[at % TYPES.len()])).collect();
    let odd = json!({
        "cube": "a\"; DROP", "member": "ü 🦆\n", "ty": "text", "is-measure": true, "is-primary-key": true,
        "tags": ["", "x".repeat(500)], "pii": true,
    });
    let mut outcomes = Vec::new();
    for (name, columns) in [
        ("no columns", vec![]),
        ("one column of each type", one_of_each),
        ("200 columns", many),
        ("odd names", vec![odd]),
    ] {
        let plan = answer_of(bench, "make-plan", json!({"columns": columns}));
        let found = plan.clone();
        outcomes.push(ConformanceOutcome::of_answer(format!("{name}: plan"), found, |plan| {
            plan_problems(plan, columns.len())
        }));
        let Ok(Some(plan)) = plan else { continue };
        for (kind, answers) in [("numbers", answers(&plan)), ("nothing could be computed", no_answers(&plan))] {
            let found = answer_of(bench, "evaluate", json!({"columns": columns, "answers": answers}));
            let problems = |findings: &Value| finding_problems(findings, columns.len());
            outcomes.push(ConformanceOutcome::of_answer(format!("{name}: {kind}"), found, problems));
        }
    }
    outcomes
}

fn column(at: usize, ty: &str) -> Value {
    json!({
        "cube": "orders", "member": format!("c{at}"), "ty": ty, "is-measure": at % 5 == 4, "is-primary-key": at == 0,
        "tags": [], "pii": at % 7 == 3,
    })
}

fn plan_problems(plan: &Value, columns: usize) -> Vec<String> {
    let requests = list(plan, "requests");
    let mut problems = arena_problems(&plan["predicates"]);
    if requests.len() > 4_096.min(columns.saturating_mul(64)) {
        problems.push(format!("{} requests for {columns} columns: 64 a column and 4,096 in all", requests.len()));
    }
    let roots = list(&plan["predicates"], "roots").len();
    for (at, request) in requests.iter().enumerate() {
        if index(&request["column"]) >= columns {
            problems.push(format!("request {at} refers to a column out of range"));
        }
        if request["agg"].get("count-where").is_some_and(|root| index(root) >= roots) {
            problems.push(format!("request {at} refers to a predicate out of range"));
        }
        let quantiles: Vec<f64> = list(&request["agg"], "quantiles").iter().filter_map(Value::as_f64).collect();
        let is_ascending = quantiles.windows(2).all(|pair| pair[0] < pair[1]);
        if quantiles.len() > 100 || !is_ascending || quantiles.iter().any(|fraction| !(0.0..=1.0).contains(fraction)) {
            problems.push(format!("request {at} has quantiles that are not at most 100 ascending fractions"));
        }
        let bins = ["histogram", "top-k"].into_iter().find_map(|name| request["agg"].get(name));
        if bins.is_some_and(|bins| !(1..=1_000).contains(&index(bins))) {
            problems.push(format!("request {at} has a number of bins or values other than 1 to 1,000"));
        }
    }
    problems
}

/// Returns a plausible answer to each request of a plan, for a typical column of 100 rows.
fn answers(plan: &Value) -> Vec<Value> {
    let answer = |(at, request): (usize, &Value)| {
        let (values, counts) = numbers(&request["agg"]);
        json!({"request": at, "values": values, "counts": counts})
    };
    list(plan, "requests").iter().enumerate().map(answer).collect()
}

fn numbers(agg: &Value) -> (Vec<Value>, Vec<u64>) {
    let float = |value: f64| json!({"float": value});
    let name = agg.as_str().or_else(|| agg.as_object().and_then(|o| o.keys().next().map(String::as_str)));
    match name.unwrap_or_default() {
        "row-count" => (vec![json!({"integer": 100})], vec![]),
        "null-count" => (vec![json!({"integer": 5})], vec![]),
        "distinct-count" | "approx-distinct" => (vec![json!({"integer": 90})], vec![]),
        "min" => (vec![float(1.0)], vec![]),
        "max" => (vec![float(50.0)], vec![]),
        "mean" => (vec![float(20.0)], vec![]),
        "stddev" => (vec![float(4.0)], vec![]),
        "skewness" => (vec![json!("null")], vec![]),
        "quantiles" => {
            let fractions = list(agg, "quantiles").iter().filter_map(Value::as_f64);
            (fractions.map(|fraction| float(1.0 + 49.0 * fraction)).collect(), vec![])
        }
        "histogram" => {
            let bins = agg["histogram"].as_u64().unwrap_or(1);
            ((0..=bins).map(|edge| float(edge as f64)).collect(), (0..bins).map(|bin| bin % 3).collect())
        }
        "top-k" => (vec![json!({"text": "a"}), json!({"text": "b"})], vec![60, 30]),
        "sample" => (vec![json!({"text": "a"}), json!("null")], vec![]),
        _ => (vec![json!({"integer": 2})], vec![]),
    }
}

fn no_answers(plan: &Value) -> Vec<Value> {
    (0..list(plan, "requests").len()).map(|request| json!({"request": request})).collect()
}

fn finding_problems(findings: &Value, columns: usize) -> Vec<String> {
    let findings = findings.as_array().map_or(&[][..], Vec::as_slice);
    let mut problems = Vec::new();
    if findings.len() > 4_096 {
        problems.push(format!("{} findings, at most 4,096", findings.len()));
    }
    for (at, finding) in findings.iter().enumerate() {
        if !finding["column"].is_null() && index(&finding["column"]) >= columns {
            problems.push(format!("finding {at} refers to a column out of range"));
        }
        let score = &finding["score"];
        if !score.is_null() && !score.as_f64().is_some_and(|score| (0.0..=1.0).contains(&score)) {
            problems.push(format!("the score of finding {at} is {score}, not 0 to 1"));
        }
        if !is_code(text(finding, "code")) {
            problems.push(format!("`{}` is not a code: [a-z][a-z0-9_]*, at most 64", text(finding, "code")));
        }
        if text(finding, "message").len() > 1_024 {
            problems.push(format!("the message of finding {at} is longer than 1 KiB"));
        }
    }
    problems
}
