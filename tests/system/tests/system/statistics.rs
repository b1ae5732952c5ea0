//! Tests `terrane anomaly` and `terrane profile` end to end: the numbers equal those of NumPy and of hand-written SQL
//! (`statistics/figures.py` prints them), and policies apply.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fs;
use std::path::Path;

use serde_json::Value;
use terrane_system_tests::{FLIGHTS, Output, Program, Scratch, path};

use crate::BINARY;

fn call(words: &[&str], folder: &Path, arguments: &[&str]) -> Output {
    Program::new(BINARY, words, folder).arguments(arguments).run().expect("the program runs to its end")
}

fn anomalies(arguments: &[&str]) -> Value {
    let all: Vec<&str> =
        ["--cube", "flights", "--measure", "count", "--json"].into_iter().chain(arguments.iter().copied()).collect();
    let output = call(&["anomaly", "run"], &path(FLIGHTS), &all);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

/// Returns the anomalous days with their raw scores.
fn anomalous(series: &Value) -> Vec<(String, f64)> {
    let points = series["points"].as_array().unwrap().iter().filter(|point| point["anomalous"] == true);
    points.map(|point| (point["time"].as_str().unwrap().to_owned(), point["raw"].as_f64().unwrap())).collect()
}

fn assert_close(found: &Value, expected: f64, what: &str) {
    let found = found.as_f64().unwrap_or_else(|| panic!("{what}: {found}"));
    assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{what}: {found}, expected {expected}");
}

#[test]
fn holidays_and_a_truncated_day_are_anomalous() {
    let run = anomalies(&["--from", "2013-11-01"]);
    let series = &run["series"][0];
    assert_eq!((&run["detector_type"], &run["sensitivity"]), (&"z_score".into(), &2.5.into()));
    assert_eq!((&series["history_points"], series["points"].as_array().unwrap().len()), (&100.into(), 62));
    let first = &series["points"][0];
    assert_eq!(first["time"], "2013-11-01");
    let (mean, deviation) = (935.54, 83.961_469_734_634_82);
    assert_close(&first["expected"], mean, "mean");
    assert_close(&first["lower_bound"], mean - 2.5 * deviation, "lower bound");
    assert_close(&first["upper_bound"], mean + 2.5 * deviation, "upper bound");
    let expected = [
        ("2013-11-29", -4.043_997_813_200_939, "CRITICAL"),
        ("2013-12-25", -2.817_244_633_134_682, "MEDIUM"),
        ("2014-01-01", -10.094_392_138_187_912, "CRITICAL"),
    ];
    let found = anomalous(series);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((day, raw, severity), (found_day, found_raw)) in expected.into_iter().zip(&found) {
        assert_eq!(day, found_day);
        assert_close(&(*found_raw).into(), raw, day);
        let points = series["points"].as_array().unwrap();
        let point = points.iter().find(|point| point["time"] == day).unwrap();
        assert_close(&point["score"], (raw.abs() / 5.0).min(1.0), day);
        assert_eq!(point["severity"], severity, "{day}");
        // The data ends in the morning of the last day.
        assert_eq!(point["complete"], day != "2014-01-01", "{day}");
    }
}

#[test]
fn other_detectors_agree_with_numpy() {
    let run = anomalies(&["--from", "2013-11-01", "--detector", "iqr"]);
    let series = &run["series"][0];
    let days: Vec<String> = anomalous(series).into_iter().map(|(day, _)| day).collect();
    assert_eq!(days, ["2013-11-29", "2013-12-25", "2014-01-01"]);
    assert_close(&series["points"][0]["expected"], 972.5, "median");
    assert_close(&series["points"][0]["lower_bound"], 885.75 - 1.5 * 106.5, "lower fence");
    assert_close(&series["points"][0]["upper_bound"], 992.25 + 1.5 * 106.5, "upper fence");

    let run = anomalies(&["--from", "2013-11-01", "--detector", "seasonal"]);
    let expected = [
        ("2013-11-29", -48.686_636_363_636_36),
        ("2013-12-25", -33.479_727_272_727_274),
        ("2014-01-01", -108.410_545_454_545_46),
    ];
    let found = anomalous(&run["series"][0]);
    for (day, raw) in expected {
        let (_, found) = found.iter().find(|(found, _)| found == day).unwrap();
        assert_close(&(*found).into(), raw, day);
    }
}

#[test]
fn each_value_of_a_dimension_is_a_series() {
    let run = anomalies(&["--from", "2013-11-01", "--dimension", "origin", "--training-size", "30"]);
    let series = run["series"].as_array().unwrap();
    let origins: Vec<&Value> = series.iter().map(|series| &series["dimensions"]["origin"]).collect();
    assert_eq!(origins, ["EWR", "JFK", "LGA"]);
    assert!(series.iter().all(|series| series["history_points"] == 30 && series["judged"] == true));
    let run = anomalies(&["--from", "2013-01-03", "--to", "2013-01-10"]);
    let series = &run["series"][0];
    assert_eq!((&series["history_points"], &series["judged"]), (&2.into(), &false.into()));
    assert_eq!(series["points"], Value::Array(Vec::new()));
}

#[test]
fn points_after_the_history_are_scored_by_default() {
    let run = anomalies(&["--granularity", "month", "--training-size", "6"]);
    let points = run["series"][0]["points"].as_array().unwrap();
    // The data is from 2013-01 to 2014-01, and the first six months are the history.
    assert_eq!((points.len(), &points[0]["time"]), (7, &"2013-07-01".into()));
}

#[test]
fn steps_that_have_not_ended_are_marked() {
    let range = ["--granularity", "month", "--training-size", "6", "--from", "2013-11-01", "--to", "2200-01-01"];
    let run = anomalies(&range);
    let points = run["series"][0]["points"].as_array().unwrap();
    let is_complete: Vec<bool> = points.iter().map(|point| point["complete"].as_bool().unwrap()).collect();
    // The data ends on 2014-01-01.
    assert!(is_complete[0] && is_complete[1] && !is_complete[2], "{is_complete:?}");
    assert!(is_complete.is_sorted_by(|one, next| one >= next), "{is_complete:?}");
}

#[test]
fn step_in_which_the_data_ends_early_is_marked() {
    let settings = "name: t\nwarehouse: {type: duckdb}\n";
    let cubes = "cubes:\n  - name: t\n    sql: SELECT DATE '2023-06-01' + i::INTEGER AS at FROM range(0, 378) AS r(i)\n    \
                 dimensions: [{name: at, type: time, sql: at}]\n    measures: [{name: count, type: count}]\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/t.yml", cubes);
    let arguments = ["--cube", "t", "--measure", "count", "--granularity", "month", "--training-size", "10", "--json"];
    let run: Value = serde_json::from_str(&call(&["anomaly", "run"], project.path(), &arguments).stdout).unwrap();
    let points = run["series"][0]["points"].as_array().unwrap();
    let found: Vec<_> = points.iter().map(|point| (&point["time"], &point["complete"])).collect();
    let [april, may, june] = ["2024-04-01", "2024-05-01", "2024-06-01"].map(Value::from);
    assert_eq!(found, [(&april, &true.into()), (&may, &true.into()), (&june, &false.into())]);

    let text = call(&["anomaly", "run"], project.path(), &arguments[..8]);
    assert!(text.stdout.contains("2024-06-01 (incomplete)"), "{}", text.stdout);
    insta::assert_snapshot!(text.messages(project.path()), @r"
    1 of 3 points in 1 series are anomalous (z_score, sensitivity 2.5, at most 10 steps of history)
    raw: the deviation as the detector computes it; score: the deviation from 0 to 1
    incomplete: rows may follow, because the step contains the end of the data or the current time, or is later
    ");

    let page = project.path().join("page.html");
    let output = call(&["report"], project.path(), &["--out", page.to_str().unwrap(), "--granularity", "month"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("incomplete from 2024-06-01") && page.contains("2024-06-01 (incomplete)"));
}

#[test]
fn strings_of_dates_and_decimals_are_an_insight() {
    let settings = "name: t\nwarehouse: {type: duckdb}\n";
    let cubes = "cubes:\n  - name: t\n    sql: SELECT * FROM (VALUES ('2024-01-01', '1.5', '10115'), ('2024-01-02', '2', '20095')) \
                 AS v(day, price, zip)\n    dimensions:\n      - {name: day, type: string, sql: day}\n      \
                 - {name: price, type: string, sql: price}\n      - {name: zip, type: string, sql: zip}\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/t.yml", cubes);
    let found = profile(project.path(), "t", &[]);
    let forms = found["insights"].as_array().unwrap().iter().filter(|insight| insight["code"] == "text_form");
    let forms: Vec<&str> = forms.filter_map(|insight| insight["message"].as_str()).collect();
    assert_eq!(forms.len(), 2, "{forms:?}");
    assert!(forms[0].contains("`day` is a string, and its most frequent values are dates"), "{forms:?}");
    assert!(forms[1].contains("are numbers, such as `1.5`"), "{forms:?}");
}

#[test]
fn invalid_run_is_rejected_with_the_reason() {
    let folder = path(FLIGHTS);
    for (arguments, words) in [
        (
            &["--cube", "flights", "--measure", "count", "--detector", "magic"][..],
            "possible: iqr, mad, seasonal, z_score",
        ),
        (&["--cube", "flight", "--measure", "count"], "cube `flight`"),
        (&["--cube", "flights", "--measure", "counts"], "counts"),
        (&["--cube", "airlines", "--measure", "count"], "--time"),
        (&["--cube", "flights", "--measure", "count", "--from", "lately"], "2024-01-31"),
        (&["--cube", "flights", "--measure", "count", "--sensitivity", "0"], "greater than 0"),
        (
            &["--cube", "flights", "--measure", "count", "--from", "2020-01-01"],
            "no rows lie in the range from 2020-01-01\n  hint: The data has rows from 2013-01-01 to 2014-01-01",
        ),
        (
            &["--cube", "flights", "--measure", "count", "--from", "2010-01-01", "--to", "2010-02-01"],
            "no rows lie in the range from 2010-01-01 to 2010-02-01",
        ),
        (
            &["--cube", "flights", "--measure", "count", "--from", "2013-06-01", "--to", "2013-05-01"],
            "the range ends before it starts: 2013-06-01 to 2013-05-01",
        ),
        (&["--cube", "flights", "--measure", "count", "--training-size", "0"], "from 1 to"),
        (&["--cube", "flights", "--measure", "count", "--training-size", "9000"], "--from"),
    ] {
        let output = call(&["anomaly", "run"], &folder, arguments);
        assert!(output.code == Some(1) && output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
    for (arguments, words) in [
        (["--granularity", "fortnight"], "second, minute, hour, day, week, month, quarter, year"),
        (["--seasonality", "0"], "2..=10000"),
    ] {
        let arguments = [&["--cube", "flights", "--measure", "count"][..], &arguments].concat();
        let output = call(&["anomaly", "run"], &folder, &arguments);
        assert!(output.code == Some(2) && output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
}

#[test]
fn detectors_are_listed() {
    let output = call(&["anomaly", "detectors"], &path(FLIGHTS), &["--json"]);
    let list: Value = serde_json::from_str(&output.stdout).unwrap();
    let kinds: Vec<&Value> = list["detectors"].as_array().unwrap().iter().map(|kind| &kind["kind"]).collect();
    for kind in ["iqr", "mad", "seasonal", "z_score"] {
        assert!(kinds.contains(&&kind.into()), "{list}");
    }
}

fn profile(folder: &Path, cube: &str, arguments: &[&str]) -> Value {
    let all: Vec<&str> = [cube, "--json"].into_iter().chain(arguments.iter().copied()).collect();
    let output = call(&["profile"], folder, &all);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    serde_json::from_str(&output.stdout).unwrap()
}

fn column<'a>(profile: &'a Value, kind: &str, name: &str) -> &'a Value {
    let columns = profile[kind].as_array().unwrap();
    columns.iter().find(|column| column["name"] == name).unwrap_or_else(|| panic!("no column {name}"))
}

#[test]
fn profile_of_the_flights_agrees_with_numpy_and_sql() {
    let found = profile(&path(FLIGHTS), "flights", &[]);
    assert_eq!((&found["cube_name"], &found["row_count"]), (&"flights".into(), &336_776.into()));
    let delay = column(&found, "dimension_profiles", "departure_delay");
    assert_eq!((&delay["null_count"], &delay["distinct_count"]), (&8_255.into(), &527.into()));
    assert_eq!((&delay["min"], &delay["max"]), (&(-43).into(), &1_301.into()));
    assert_close(&delay["completeness"], 328_521.0 / 336_776.0, "completeness");
    assert_close(&delay["mean"], 12.639_070_257_304_708, "mean");
    assert_close(&delay["stddev"], 40.209_999_693_467_61, "deviation");
    assert_close(&delay["skewness"], 4.802_518_583_045_286, "skewness");
    for (percentile, value) in [("25", -5.0), ("50", -2.0), ("75", 11.0), ("90", 49.0), ("95", 88.0), ("99", 191.0)] {
        assert_close(&delay["percentiles"][percentile], value, percentile);
    }
    assert_eq!(delay["outlier_count"], 43_216);
    let counts: Vec<u64> =
        delay["histogram"].as_array().unwrap().iter().map(|bin| bin["count"].as_u64().unwrap()).collect();
    let numpy = [272_831, 40_168, 10_043, 3_560, 1_239, 436, 149, 34, 15, 8, 8, 4, 10, 7, 4, 2, 0, 2, 0, 1];
    assert_eq!(counts, numpy);
    let dest = column(&found, "dimension_profiles", "dest");
    let top: Vec<(&Value, &Value)> =
        dest["top_values"].as_array().unwrap().iter().map(|top| (&top["value"], &top["count"])).take(3).collect();
    let expected = [("ORD", 17_283), ("ATL", 17_215), ("LAX", 16_174)];
    assert_eq!(
        top,
        expected
            .map(|(value, count)| (Value::from(value), Value::from(count)))
            .iter()
            .map(|(a, b)| (a, b))
            .collect::<Vec<_>>()
    );
    let measure = column(&found, "measure_profiles", "average_departure_delay");
    assert_close(&measure["skewness"], 4.802_518_583_045_286, "skewness beneath a measure");

    let insights = found["insights"].as_array().unwrap();
    let about = |code: &str, name: &str| insights.iter().find(|i| i["code"] == code && i["column"] == name);
    assert!(about("highly_skewed", "departure_delay").is_some());
    assert_eq!(about("outliers", "departure_delay").unwrap()["evidence"]["count"], "43216");
    assert_eq!(about("accuracy", "departure_delay").unwrap()["evidence"]["count"], "27059");
    assert!(about("very_low_cardinality", "carrier").is_some());
    assert!(insights.iter().all(|insight| insight["code"] != "check_unavailable"), "{insights:?}");
    let score = found["overall_quality_score"].as_f64().unwrap();
    assert!((0.9..1.0).contains(&score), "{score}");
}

#[test]
fn profile_is_narrowed_by_time_and_by_its_configuration() {
    let config = r#"{"compute_histograms": false, "percentile_list": [50], "top_n_values": 1}"#;
    let found = profile(&path(FLIGHTS), "flights", &["--date-range", "2013-01-01", "--config", config]);
    // The expected number is the result of:
    // SELECT count(*) FROM flights WHERE CAST(time_hour AS DATE) = DATE '2013-01-01'
    assert_eq!(found["row_count"], 709);
    let delay = column(&found, "dimension_profiles", "departure_delay");
    assert_eq!(delay["histogram"], Value::Array(Vec::new()));
    assert_eq!(delay["percentiles"].as_object().unwrap().len(), 1);
    for (arguments, words) in [
        (&["flights", "--config", "{\"bins\": 3}"][..], "bins"),
        (&["flight"], "cube `flight`"),
        (&["flights", "--date-range", "some day"], "--date-range: `some day` is not a time range"),
        (
            &["planes", "--date-range", "2013"],
            "--date-range needs a primary time dimension, and cube `planes` has none",
        ),
    ] {
        let output = call(&["profile"], &path(FLIGHTS), arguments);
        assert!(output.code == Some(1) && output.stderr.contains(words), "{arguments:?}: {}", output.stderr);
    }
}

const SETTINGS: &str = "name: clinic\nsecurity: {anonymous: {scopes: [read]}}\nwarehouse:\n  type: duckdb\n  init:\n    \
    - \"CREATE TABLE visits AS SELECT i AS id, CASE WHEN i % 4 = 0 THEN 'north' ELSE 'south' END AS ward, 'secret-' || i AS name, \
    i * 10 AS fee, DATE '2024-01-01' + CAST(i // 2 AS INTEGER) AS day FROM range(40) AS r(i)\"\n";
const CUBE: &str = "cubes:\n  - name: visits\n    sql_table: visits\n    dimensions:\n      \
    - {name: id, type: number, sql: id, primary_key: true}\n      - {name: ward, type: string, sql: ward}\n      \
    - {name: name, type: string, sql: name}\n      - {name: shouted, type: string, sql: \"upper({visits}.name)\"}\n      \
    - {name: day, type: time, sql: day, primary_time: true}\n    measures:\n      - {name: count, type: count}\n      \
    - {name: fees, type: sum, sql: fee}\n      - {name: names, type: max, sql: name}\n";
const POLICIES: &str = "policies:\n  - {name: own_ward, cubes: [visits], when: {roles: [nurse]}, row_filter: \"{visits}.ward = 'north'\"}\n  \
    - {name: names, cubes: [visits], when: {roles: [nurse]}, mask: {name: hash}, allow_aggregate: true}\n  \
    - {name: fees, cubes: [visits], when: {roles: [clerk]}, deny: [fees]}\n";

#[test]
fn policies_hold_for_profiles_and_runs() {
    let project = Scratch::empty().with("service_project.yml", SETTINGS).with("cubes/visits.yml", CUBE);
    let project = project.with("policies/visits.yml", POLICIES);
    let caller = project.path().join("caller.json");
    let as_caller = ["--as", caller.to_str().unwrap()];
    fs::write(&caller, r#"{"roles": ["nurse"]}"#).unwrap();
    let found = profile(project.path(), "visits", &as_caller);
    assert_eq!(found["row_count"], 10);
    let fees = column(&found, "measure_profiles", "fees");
    assert_eq!((&fees["min"], &fees["max"]), (&0.into(), &360.into()));
    // The mask lets measures read the column. A profile shows values, so the profile omits the column.
    let text = found.to_string().to_lowercase();
    assert!(!text.contains("secret") && !text.contains("shouted") && !text.contains("\"name\":\"name\""), "{text}");
    assert!(!text.contains("south"), "{text}");

    let mut arguments = vec!["--cube", "visits", "--measure", "count", "--json", "--training-size", "10"];
    arguments.extend(as_caller);
    let output = call(&["anomaly", "run"], project.path(), &arguments);
    let run: Value = serde_json::from_str(&output.stdout).unwrap();
    let points = run["series"][0]["points"].as_array().unwrap();
    // Every other day has one visit of the north. The days between are steps without a visit.
    assert_eq!(points.len(), 9);
    assert!(points.iter().all(|point| point["value"].as_f64().unwrap() <= 1.0), "{points:?}");

    fs::write(&caller, r#"{"roles": ["clerk"]}"#).unwrap();
    let found = profile(project.path(), "visits", &as_caller);
    assert_eq!(found["row_count"], 40);
    assert_eq!(found["measure_profiles"], Value::Array(Vec::new()));
    assert!(found.to_string().contains("secret-1"));
    let refused = call(
        &["anomaly", "run"],
        project.path(),
        &["--cube", "visits", "--measure", "fees", as_caller[0], as_caller[1]],
    );
    assert!(refused.code == Some(1) && refused.stderr.contains("fees"), "{}", refused.stderr);
}

#[test]
fn spellings_of_one_value_are_an_insight() {
    let settings = "name: t\nwarehouse: {type: duckdb}\n";
    let cubes = "cubes:\n  - name: t\n    sql: SELECT unnest(['north', 'North', 'south']) AS region\n    \
                 dimensions: [{name: region, type: string, sql: region}]\n";
    let project = Scratch::empty().with("service_project.yml", settings).with("cubes/t.yml", cubes);
    let found = profile(project.path(), "t", &[]);
    let spellings = |profile: &Value| -> Vec<Value> {
        let insights = profile["insights"].as_array().unwrap();
        insights.iter().filter(|insight| insight["code"] == "spelling_variants").cloned().collect()
    };
    let [spelling] = &spellings(&found)[..] else { panic!("{found}") };
    assert_eq!(spelling["column"], "region");
    insta::assert_snapshot!(spelling["message"].as_str().unwrap(), @"`region` has 3 distinct values, but 2 if case and outer spaces are ignored, such as `North` and `north`: each spelling is a separate group until the source or the `sql` of the dimension makes them equal");
    let strict = profile(project.path(), "t", &["--config", "{\"insight_sensitivity\": 0.1}"]);
    assert_eq!(spellings(&strict), [] as [Value; 0], "{strict}");
}
