//! The conformance vectors (test calls) of the dialect role, for all functions except the profile. The host checks the
//! profile when it loads the dialect. Tests against an engine check whether the dialect's SQL means the right thing
//! (`terrane_sdk::conformance`, `cargo xtask dialects`).

use serde_json::{Value, json};
use terrane_app::ports::plugins::PluginRole;
use terrane_plugin_host::test_bench::TestBench;

use super::{ConformanceOutcome, ask, text};

/// A part of a warehouse error, which callers must not see.
const SECRET: &str = "row-4711-of-ann";

pub(super) fn run(bench: &TestBench) -> Vec<ConformanceOutcome> {
    let profile = bench.probe(PluginRole::Dialect).map(|_| vec![]).map_err(|fault| format!("it {fault}"));
    let mut outcomes = vec![ConformanceOutcome::new("profile", profile)];
    outcomes.push(ConformanceOutcome::new(
        "describe-dialect twice",
        ask(bench, "describe-dialect", json!({})).map(|_| vec![]),
    ));
    for (name, code, message) in [
        ("an unknown error", "", format!("something about {SECRET}")),
        ("a SQLSTATE", "42P01", format!("relation \"{SECRET}\" does not exist")),
        ("a vendor's number", "1064", format!("You have an error near '{SECRET}'")),
        ("a long message", "XX000", SECRET.repeat(2_000)),
    ] {
        let found = ask(bench, "classify-error", json!({"err": {"code": code, "message": message}}));
        let has_secret = |answer: &Value| text(answer, "public-message").contains(SECRET);
        let found = found.map(|answer| has_secret(&answer).then(|| "it repeats the warehouse's message".to_owned()));
        outcomes.push(ConformanceOutcome::new(
            format!("classify-error: {name}"),
            found.map(|problem| problem.into_iter().collect()),
        ));
    }
    let names = json!(["VARCHAR(20)", "", "decimal(18, 3)", "🦆", "x".repeat(10_000)]);
    let found = ask(bench, "map-types", json!({"native": names}));
    let found = found.map(|answer| match answer.as_array().map(Vec::len) {
        Some(5) => vec![],
        found => vec![format!("{} types for 5 names", found.unwrap_or(0))],
    });
    outcomes.push(ConformanceOutcome::new("map-types: any names", found));
    for plan in ["", "{", "Seq Scan on orders (cost=0.00..1.01 rows=1 width=4)"] {
        let found = ask(bench, "parse-explain", json!({"plan-text": plan})).map(|_| vec![]);
        outcomes.push(ConformanceOutcome::new(format!("parse-explain: {} bytes", plan.len()), found));
    }
    outcomes
}
