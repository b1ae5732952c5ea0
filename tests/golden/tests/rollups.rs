//! Tests queries over pre-aggregations: which pre-aggregation serves each fact, the reasons why the other
//! pre-aggregations do not, and the SQL.
//!
//! In: `rollups/cases.yml` over `rollups/project.yml`. Out: snapshots. The tables were built one hour ago.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value as Json;
use terrane_compiler::explanation::explain;
use terrane_compiler::model::Model;
use terrane_compiler::query::PreAggregations;
use terrane_compiler::rollup::{
    BucketRange, Fingerprint, MissReason, ReadyPartition, ReadyRollup, ReadyRollups, RollupOf,
};
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::{Authorized, Environment, SecurityContext, compile};
use terrane_golden_tests::case::{environment, model, read_caller, read_query};
use terrane_golden_tests::{checked, first_party_profiles};

const PROJECT: &str = include_str!("../rollups/project.yml");
const TYPES: &str = include_str!("../rollups/types.yml");
const CASES: &str = include_str!("../rollups/cases.yml");

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    /// The built pre-aggregations, each with its number of rows, or with its partitions: the first day, the day after
    /// the last one, and the rows. A name without a cube belongs to `orders`.
    ready: std::collections::BTreeMap<String, Vec<Json>>,
    #[serde(default)]
    extent: Option<[String; 2]>,
    query: Json,
    #[serde(default, rename = "as")]
    caller: Json,
    #[serde(default)]
    max_age: Option<u64>,
    #[serde(default)]
    other_definition: bool,
    #[serde(default)]
    dialects: Vec<String>,
}

fn cases() -> Vec<Case> {
    serde_saphyr::from_str(CASES).unwrap()
}

fn profiles(names: &[String]) -> Vec<DialectProfile> {
    let is_wanted = |profile: &DialectProfile| match names {
        [] => profile.name == "duckdb",
        names => names.contains(&profile.name),
    };
    first_party_profiles().into_iter().map(checked).filter(is_wanted).collect()
}

impl Case {
    fn environment(&self, model: &Model, profile: &DialectProfile) -> Environment {
        let environment = environment();
        let built_at = environment.now - SignedDuration::from_hours(1);
        let mut ready = ReadyRollups::default();
        for (name, partitions) in &self.ready {
            let (cube, name) = name.split_once('.').unwrap_or(("orders", name));
            let of = RollupOf::named(model, cube, name).unwrap();
            let day = |day: &Json| format!("{}T00:00:00Z", day.as_str().unwrap()).parse::<Timestamp>().unwrap();
            let partition = |(index, partition): (usize, &Json)| {
                let (range, rows) = match partition {
                    Json::Array(parts) => {
                        let [start, end] = [&parts[0], &parts[1]].map(|part| day(part).as_microsecond());
                        (Some(BucketRange { start, end }), &parts[2])
                    }
                    rows => (None, rows),
                };
                let table = format!("{cube}_{name}_{index}");
                let relation = ReadyPartition::relation_of(["terrane_rollups", &table]);
                ReadyPartition { relation, range, rows: rows.as_u64().unwrap(), built_at }
            };
            let fingerprint = match self.other_definition {
                true => Fingerprint::parse(&"0".repeat(32)).unwrap(),
                false => of.fingerprint(profile).unwrap(),
            };
            let micros = |end: &String| end.parse::<Timestamp>().unwrap().as_microsecond();
            let extent = self.extent.as_ref().map(|ends| ends.each_ref().map(micros));
            let partitions = partitions.iter().enumerate().map(partition).collect();
            ready.insert(cube, name, ReadyRollup { fingerprint, generation: 1, extent, partitions });
        }
        Environment { rollups: Arc::new(ready), ..environment }
    }

    fn made(&self, model: &Model, profile: &DialectProfile, shows_misses: bool) -> String {
        let environment = self.environment(model, profile);
        let mut query = read_query(&self.query).unwrap();
        query.max_staleness = self.max_age.map(Duration::from_secs);
        if let Some(word) = self.query["pre_aggregations"].as_str() {
            query.pre_aggregations = PreAggregations::ALL.into_iter().find(|known| known.as_str() == word).unwrap();
        }
        let caller = read_caller(&self.caller);
        let authorized = Authorized::without_hooks(model, &caller);
        let explanation = explain(profile, &query, &authorized, &environment).unwrap();
        let mut text = String::new();
        for fact in explanation.facts.iter().map(|fact| &fact.rollups).filter(|_| shows_misses) {
            match &fact.served {
                Some(served) => {
                    let rest = if served.is_split { " and rows" } else { "" };
                    let (rollup, rows) = (&served.rollup, served.rows);
                    writeln!(text, "{}: {} tables of {rollup}, {rows} rows{rest}", fact.cube, served.tables).unwrap();
                }
                None => writeln!(text, "{}: rows", fact.cube).unwrap(),
            }
            for miss in &fact.misses {
                let name = miss.rollup.as_deref().unwrap_or("*");
                let members = miss.members.join(", ");
                let fix = miss.fix.as_ref().map(|line| format!(" → {line}")).unwrap_or_default();
                writeln!(text, "  {name}: {} [{members}]{fix}", miss.reason.as_str()).unwrap();
            }
        }
        match compile(profile, &query, &authorized, &environment) {
            Ok(sql) => {
                // The statement that runs is the one that the explanation shows.
                assert_eq!(sql.text, explanation.statement.text, "{}", self.name);
                writeln!(text, "-- {}\n{}", profile.name, sql.text).unwrap();
                if !sql.params.is_empty() {
                    writeln!(text, "-- {:?}", sql.params).unwrap();
                }
            }
            Err(error) => writeln!(text, "refused: {error}").unwrap(),
        }
        text
    }
}

#[test]
fn pre_aggregated_statements_match_the_snapshots() {
    let model = model(PROJECT, TYPES);
    for case in cases() {
        let made: Vec<String> = profiles(&case.dialects)
            .iter()
            .enumerate()
            .map(|(index, profile)| case.made(&model, profile, index == 0))
            .collect();
        let about = case.query.to_string();
        insta::with_settings!({ description => about, omit_expression => true, snapshot_path => "../rollups/snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(case.name.as_str(), made.join("\n"));
        });
    }
}

/// Every reason must have a case, so that a person reviews its sentence and its members.
#[test]
fn every_reason_has_a_case() {
    let model = model(PROJECT, TYPES);
    let profile = &profiles(&[])[0];
    let mut found = Vec::new();
    for case in cases() {
        let environment = case.environment(&model, profile);
        let mut query = read_query(&case.query).unwrap();
        query.max_staleness = case.max_age.map(Duration::from_secs);
        if case.query["pre_aggregations"] == "off" {
            query.pre_aggregations = PreAggregations::Off;
        }
        let caller = read_caller(&case.caller);
        let authorized = Authorized::without_hooks(&model, &caller);
        let explanation = explain(profile, &query, &authorized, &environment).unwrap();
        found.extend(explanation.facts.iter().flat_map(|fact| &fact.rollups.misses).map(|miss| miss.reason));
    }
    // If pre-aggregations are switched off, every query misses them for this reason.
    let disabled = Environment { rollups: Arc::new(ReadyRollups::disabled()), ..environment() };
    let query = read_query(&cases()[0].query).unwrap();
    let caller = SecurityContext::default();
    let explanation = explain(profile, &query, &Authorized::without_hooks(&model, &caller), &disabled).unwrap();
    let misses: Vec<_> =
        explanation.facts.iter().flat_map(|fact| &fact.rollups.misses).map(|miss| miss.reason).collect();
    assert_eq!(misses, [MissReason::Disabled]);
    found.extend(misses);
    // Queries cannot cause these: the first is an error when a project loads, and no dialect stores sketches yet.
    let elsewhere = [MissReason::NotDeterministic, MissReason::SketchUnsupported];
    for reason in MissReason::ALL {
        assert!(found.contains(reason) || elsewhere.contains(reason), "{reason:?} has no case");
    }
}

#[test]
fn misses_are_sorted_by_closeness() {
    let model = model(PROJECT, TYPES);
    let profile = &profiles(&[])[0];
    for case in cases() {
        let caller = read_caller(&case.caller);
        let authorized = Authorized::without_hooks(&model, &caller);
        let query = read_query(&case.query).unwrap();
        let explanation = explain(profile, &query, &authorized, &case.environment(&model, profile)).unwrap();
        for fact in &explanation.facts {
            let reasons: Vec<MissReason> = fact.rollups.misses.iter().map(|miss| miss.reason).collect();
            assert!(reasons.is_sorted_by(|one, next| one >= next), "{}: {reasons:?}", case.name);
        }
    }
}

/// A small generator of numbers, so that a failure can be repeated.
struct Numbers(u64);

impl Numbers {
    /// Returns a number below `end`.
    fn below(&mut self, end: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from(self.0 >> 33).unwrap() % end
    }

    /// Returns up to six partitions of the year 2024 as days of the year: mostly adjacent, sometimes with gaps, empty
    /// or overlapping, in any order.
    fn partitions(&mut self) -> Vec<[i64; 3]> {
        let mut start = self.below(60);
        let mut partitions = Vec::new();
        for _ in 0..self.below(7) {
            let end = start + [1, 7, 28, 31, 0][usize::try_from(self.below(5)).unwrap()];
            partitions.insert(usize::try_from(self.below(2)).unwrap() * partitions.len(), [start, end, self.below(90)]);
            start = end + [0, 0, 0, 0, 3, -2][usize::try_from(self.below(6)).unwrap()];
        }
        partitions
    }
}

/// A query tries pre-aggregations in the order of their estimated costs and stops at the first that serves it. An
/// explanation compares all of them.
#[test]
fn query_reads_the_tables_of_its_explanation() {
    let model = model(PROJECT, TYPES);
    let profile = &profiles(&[])[0];
    let mut numbers = Numbers(7);
    let caller = SecurityContext::default();
    let authorized = Authorized::without_hooks(&model, &caller);
    let day = |day: i64| "2024-01-01T00:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_hours(24 * day);
    let mut served = 0;
    for _ in 0..1_500 {
        let mut ready = ReadyRollups::default();
        for name in ["by_day", "by_day_in_berlin", "by_hour", "by_week"] {
            let of = RollupOf::named(&model, "orders", name).unwrap();
            let partition = |[start, end, rows]: [i64; 3]| ReadyPartition {
                relation: ReadyPartition::relation_of(["terrane_rollups", name, &start.to_string()]),
                range: Some(BucketRange { start: day(start).as_microsecond(), end: day(end).as_microsecond() }),
                rows: rows.unsigned_abs(),
                built_at: environment().now,
            };
            let partitions = numbers.partitions().into_iter().map(partition).collect();
            let fingerprint = of.fingerprint(profile).unwrap();
            ready.insert("orders", name, ReadyRollup { fingerprint, generation: 1, extent: None, partitions });
        }
        let environment = Environment { rollups: Arc::new(ready), ..environment() };
        let start = numbers.below(120);
        let ends = [start, start + numbers.below(90)].map(|at| day(at).strftime("%Y-%m-%d").to_string());
        let mut time = serde_json::json!({"dimension": "orders.created_at", "granularity": "month"});
        if numbers.below(8) > 0 {
            time["date_range"] = serde_json::json!(ends);
        }
        let zone = ["UTC", "Europe/Berlin"][usize::try_from(numbers.below(2)).unwrap()];
        let query = serde_json::json!({"measures": ["orders.count"], "time_dimensions": [time], "timezone": zone});
        let query = read_query(&query).unwrap();
        let explanation = explain(profile, &query, &authorized, &environment).unwrap();
        let sql = compile(profile, &query, &authorized, &environment).unwrap();
        assert_eq!(sql.text, explanation.statement.text, "{query:?}\n{:?}", environment.rollups);
        served += usize::from(explanation.facts[0].rollups.served.is_some());
    }
    assert!(served > 500, "{served} queries read pre-aggregations");
}
