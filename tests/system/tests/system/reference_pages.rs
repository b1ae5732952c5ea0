//! Compares tables of the reference pages with the program: detectors, profiles and GraphQL.
//!
//! In: `detectors-and-checks.md`, `graphql.md`, and answers of the program. Out: a failure for each name, default or
//! bound that differs. Not here: pages that unit tests compare with the code, such as the settings.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::Value;
use terrane_system_tests::{FLIGHTS, Output, Program, Scratch, path};

use crate::BINARY;

const DETECTORS: &str = "runtime/docs/reference/detectors-and-checks.md";
const GRAPHQL: &str = "runtime/docs/reference/graphql.md";

fn call(words: &[&str], arguments: &[&str]) -> Output {
    Program::new(BINARY, words, &path(FLIGHTS)).arguments(arguments).run().unwrap()
}

fn json(words: &[&str], arguments: &[&str]) -> Value {
    let output = call(words, arguments);
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{arguments:?}: {error}\n{}", output.stderr))
}

/// Returns the cells of the first table after `start`, without its head.
fn table(page: &str, start: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path(page)).unwrap().replace("\\|", "¦");
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("{page} has no `{start}`"));
    let lines = rest.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    lines.skip(2).map(cells).collect()
}

/// Returns the names in backticks in a cell.
fn names(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn options_of_anomaly_runs_are_those_of_the_command() {
    let help = table("runtime/docs/reference/command-line.md", "## terrane anomaly run");
    let option = |cell: &str| names(cell)[0].split([' ', '[']).next().unwrap().to_owned();
    let defaults: BTreeMap<String, String> = help.iter().map(|row| (option(&row[0]), row[2].clone())).collect();
    let mut documented = BTreeSet::from(["<DIR>", "--json", "--plot"].map(str::to_owned));
    for row in table(DETECTORS, "## Anomaly runs") {
        for name in names(&row[0]) {
            let default = defaults.get(&name).unwrap_or_else(|| panic!("the command has no {name}"));
            assert!(default.is_empty() || default.trim_matches('`') == row[2].trim_matches('`'), "{name}: {default}");
            documented.insert(name);
        }
    }
    assert_eq!(documented, defaults.into_keys().collect());
}

#[test]
fn bounds_of_anomaly_runs_are_those_of_the_command() {
    let table = table(DETECTORS, "## Anomaly runs");
    for (option, bounds, outside) in
        [("--training-size", "1 to 10,000", ["0", "10001"]), ("--seasonality", "2 to 10,000", ["1", "10001"])]
    {
        let row = table.iter().find(|row| names(&row[0])[0] == option).unwrap();
        assert!(row[1].contains(bounds), "{option}: {}", row[1]);
        for value in outside {
            let arguments = ["--cube", "flights", "--measure", "count", option, value];
            let output = call(&["anomaly", "run"], &arguments);
            assert!(output.code != Some(0) && output.stderr.contains("10000"), "{option} {value}: {}", output.stderr);
        }
    }
}

#[test]
fn detectors_have_the_documented_sensitivities() {
    let found = json(&["anomaly", "detectors"], &["--json"]);
    let found = found["detectors"].as_array().unwrap().iter();
    let found: BTreeMap<String, f64> = found
        .map(|detector| {
            (detector["kind"].as_str().unwrap().to_owned(), detector["default_sensitivity"].as_f64().unwrap())
        })
        .collect();
    let shown = table(DETECTORS, "### Evaluation of a point");
    let shown = shown.iter().map(|row| (names(&row[0])[0].clone(), row[3].parse().unwrap())).collect();
    assert_eq!(found, shown);
}

fn profile(config: &str) -> Output {
    call(&["profile"], &["airlines", "--json", "--config", config])
}

/// Returns the fields that an error about an unknown field lists.
fn known_fields(config: &str) -> BTreeSet<String> {
    let stderr = profile(config).stderr;
    let (_, known) = stderr.lines().next().unwrap().split_once("expected one of ").unwrap();
    known.split(", ").map(str::to_owned).collect()
}

#[test]
fn fields_of_profiles_are_those_of_the_program() {
    let rows = table(DETECTORS, "`--config`, and `config` over HTTP");
    let fields: BTreeSet<String> = rows.iter().flat_map(|row| names(&row[0])).collect();
    assert_eq!(fields, known_fields(r#"{"nonsense": 1}"#));
    let thresholds = rows.iter().find(|row| row[0].contains("quality_thresholds")).unwrap();
    let thresholds: BTreeSet<String> = names(&thresholds[1]).into_iter().collect();
    assert_eq!(thresholds, known_fields(r#"{"quality_thresholds": {"nonsense": 1}}"#));
}

#[test]
fn defaults_of_profiles_are_those_of_the_program() {
    let rows = table(DETECTORS, "`--config`, and `config` over HTTP");
    let defaults: BTreeMap<&str, &str> = rows.iter().map(|row| (&*row[0], &*row[2])).collect();
    let shown = [
        ("`compute_histograms`, `histogram_bins`", "`true`, 20"),
        ("`compute_frequencies`, `top_n_values`", "`true`, 10"),
        ("`compute_percentiles`, `percentile_list`", "`true`, `[25, 50, 75, 90, 95, 99]`"),
        ("`detect_insights`, `insight_sensitivity`", "`true`, 0.8"),
        ("`quality_thresholds`", "0.95, 0.9, 0.8"),
    ];
    for (fields, default) in shown {
        assert_eq!(defaults[fields], default, "{fields}");
    }
    let explicit = r#"{"compute_histograms": true, "histogram_bins": 20, "compute_frequencies": true,
        "top_n_values": 10, "compute_percentiles": true, "percentile_list": [25, 50, 75, 90, 95, 99],
        "detect_insights": true, "insight_sensitivity": 0.8, "sample_size": 0, "quality_thresholds":
        {"completeness_warning": 0.95, "validity_warning": 0.9, "uniqueness_warning": 0.8}}"#;
    let result = |config: &str| {
        let output = call(&["profile"], &["planes", "--json", "--config", config]);
        let mut profile: Value = serde_json::from_str(&output.stdout).unwrap();
        (profile["profiled_at"], profile["as_of"]) = (Value::Null, Value::Null);
        profile
    };
    assert_eq!(result("{}"), result(explicit));
}

#[test]
fn bounds_of_profiles_are_those_of_the_program() {
    let page = fs::read_to_string(path(DETECTORS)).unwrap();
    for (bound, inside, outside) in [
        ("1 to 1,000 bins", r#"{"histogram_bins": 1000}"#, r#"{"histogram_bins": 1001}"#),
        ("the 1 to 1,000 most frequent", r#"{"top_n_values": 1000}"#, r#"{"top_n_values": 1001}"#),
        ("numbers from 0 to 100", r#"{"percentile_list": [0, 100]}"#, r#"{"percentile_list": [101]}"#),
        ("sensitivity from 0 to 1", r#"{"insight_sensitivity": 1}"#, r#"{"insight_sensitivity": 1.1}"#),
        ("at most 1,000,000,000", r#"{"sample_size": 1000000000}"#, r#"{"sample_size": 1000000001}"#),
    ] {
        assert!(page.contains(bound), "{bound}");
        assert_eq!(profile(inside).code, Some(0), "{inside}: {}", profile(inside).stderr);
        assert_eq!(profile(outside).code, Some(1), "{outside}");
    }
}

#[test]
fn quality_score_has_the_documented_weights() {
    let page = fs::read_to_string(path(DETECTORS)).unwrap();
    let profile: Value = serde_json::from_str(&call(&["profile"], &["planes", "--json"]).stdout).unwrap();
    let (mut total, mut sum) = (0.0, 0.0);
    for (name, score) in profile["quality_scores"].as_object().unwrap() {
        let (_, weight) = page.split_once(&format!("{name} (0.")).unwrap_or_else(|| panic!("no weight of {name}"));
        let weight: f64 = format!("0.{}", weight.split(')').next().unwrap()).parse().unwrap();
        total += weight;
        sum += weight * score.as_f64().unwrap();
    }
    assert!((profile["scored_weight"].as_f64().unwrap() - total).abs() < 1e-9, "{profile:#}");
    assert!((profile["overall_quality_score"].as_f64().unwrap() - sum / total).abs() < 1e-9, "{profile:#}");
}

/// Returns the fields of a type of the schema, each with the names of its arguments.
fn fields_of(schema: &str, name: &str) -> BTreeMap<String, Vec<String>> {
    let (_, body) = schema.split_once(&format!("\ntype {name} {{\n")).unwrap();
    let body: String = body.split("\n}").next().unwrap().split("\"\"\"").step_by(2).collect();
    let mut fields: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let (mut word, mut depth, mut field) = (String::new(), 0, String::new());
    for sign in body.chars() {
        match sign {
            '(' => {
                field = std::mem::take(&mut word);
                fields.insert(field.clone(), Vec::new());
                depth += 1;
            }
            ')' => {
                depth -= 1;
                word = String::new();
            }
            ':' if depth == 1 => fields.get_mut(&field).unwrap().push(std::mem::take(&mut word)),
            ':' if !word.is_empty() => {
                fields.insert(std::mem::take(&mut word), Vec::new());
            }
            _ if sign.is_alphanumeric() || sign == '_' => word.push(sign),
            _ => word.clear(),
        }
    }
    fields
}

fn schema() -> String {
    fs::read_to_string(path("runtime/graphql/schema.graphql")).unwrap()
}

#[test]
fn root_fields_of_graphql_are_those_of_the_schema() {
    let queries = &["## Queries", "### Fields of modules"][..];
    for (sections, ty) in [(queries, "Query"), (&["## Mutations"], "Mutation"), (&["## Subscriptions"], "Subscription")]
    {
        let fields = fields_of(&schema(), ty);
        let mut documented = BTreeSet::new();
        let rows = sections.iter().flat_map(|section| table(GRAPHQL, section));
        for shown in rows.flat_map(|row| names(&row[0])) {
            let (name, arguments) = shown.trim_end_matches(')').split_once('(').unwrap_or((&shown, ""));
            let found = fields.get(name).unwrap_or_else(|| panic!("{ty} has no field {name}"));
            let arguments: Vec<&str> =
                arguments.split([',', '¦']).map(str::trim).filter(|name| !name.is_empty()).collect();
            for argument in arguments.iter().filter(|name| **name != "…") {
                assert!(found.iter().any(|name| name == argument), "{ty}.{name} has no argument {argument}");
            }
            assert!(arguments.contains(&"…") || arguments.len() == found.len(), "{ty}.{name} has {found:?}");
            documented.insert(name.to_owned());
        }
        assert_eq!(documented, fields.into_keys().collect(), "{ty}");
    }
}

#[test]
fn operators_of_graphql_are_those_of_the_schema() {
    let schema = schema();
    let (_, body) = schema.split_once("enum FilterOperator {").unwrap();
    let operators: BTreeSet<&str> = body.split('}').next().unwrap().split_whitespace().collect();
    let documented: Vec<String> = table(GRAPHQL, "## Filters").iter().flat_map(|row| names(&row[0])).collect();
    assert_eq!(documented.iter().map(String::as_str).collect::<BTreeSet<_>>(), operators);
}

#[test]
fn limits_of_graphql_are_those_of_the_program() {
    let document = |limit: &str| match limit {
        "document_bytes" => format!("{{ __typename }}{}", " ".repeat(300_000)),
        "tokens" => format!("{{{}}}", " __typename".repeat(5_001)),
        "nesting" => "{ a ".repeat(65),
        "depth" => {
            let (open, close) = (" ofType {".repeat(13), "}".repeat(13));
            format!("{{ __type(name: \"Query\") {{ fields {{ type {{{open} name {close}}}}}}}}}")
        }
        "directives" => format!("{{ __typename {}}}", "@include(if: true) ".repeat(9)),
        "aliases" => format!("{{{}}}", (0..31).map(|index| format!(" a{index}: __typename")).collect::<String>()),
        "selections" => {
            format!("fragment f on Query {{{}}} {{{}}}", " __typename".repeat(100), " ...f".repeat(60))
        }
        "executions" => {
            let query = |index| format!(" a{index}: query(measures: [\"flights.count\"], limit: {index}) {{ data }}");
            format!("{{{}}}", (0..11).map(query).collect::<String>())
        }
        "complexity" => {
            format!("{{ query(measures: [{}], limit: 50000) {{ data }} }}", "\"flights.count\" ".repeat(201))
        }
        "introspection_depth" => {
            "{ __schema { types { fields { type { fields { type { fields { name } } } } } } } }".to_owned()
        }
        other => panic!("no document exceeds the limit `{other}`"),
    };
    let scratch = Scratch::empty();
    for row in table(GRAPHQL, "## Limits") {
        let (limit, max) = (&names(&row[0])[0], row[1].replace(',', ""));
        // Only a running document can exceed this limit, so its setting is compared.
        if limit == "items" {
            let settings = json(&["config", "show"], &["--json"]);
            let setting =
                settings["settings"].as_array().unwrap().iter().find(|entry| entry["key"] == "graphql.max_items");
            assert_eq!(setting.unwrap()["value"], *max);
            continue;
        }
        let file = scratch.path().join("document.graphql");
        fs::write(&file, document(limit)).unwrap();
        let response = json(&["graphql"], &[&format!("@{}", file.display())]);
        let details = &response["errors"][0]["extensions"]["details"];
        assert_eq!((&details["limit"], details["max"].to_string()), (&Value::from(limit.as_str()), max), "{response}");
    }
}
