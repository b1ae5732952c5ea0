//! Tests the statements that compute column statistics: every dialect has them, and none reads a masked, denied or
//! hidden column.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

use std::fmt::Write as _;

use serde_json::{Value as Json, json};
use terrane_compiler::Authorized;
use terrane_compiler::column_statistics::{
    NoSample, RowSample, SamplingStrategy, Statistic, StatisticsQuery, compile_statistics, has_quantiles, no_sample,
    statistics_as_query, statistics_columns,
};
use terrane_compiler::model::Model;
use terrane_compiler::query::{Bound, DateRange, Filter, Operator, QueryError, Test};
use terrane_compiler::sql::CompiledSql;
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::types::{LogicalType, Value};
use terrane_golden_tests::case::{environment, model, read_caller};
use terrane_golden_tests::{checked, duckdb_profile, first_party_profiles};

/// Cubes with dimensions that are plain, computed, hidden or read from a joined cube, and with measures over columns
/// and over rows.
const CUBES: &str = r#"
cubes:
  - name: orders
    sql_table: raw.orders
    joins:
      - {name: customers, relationship: many_to_one, sql: "{orders}.customer_id = {customers}.id"}
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: status, type: string, sql: status}
      - {name: shouted, type: string, sql: "upper({orders}.status)"}
      - {name: region, type: string, sql: "{customers.region}"}
      - {name: amount, type: number, sql: amount}
      - {name: internal, type: number, sql: internal, hidden: true}
      - {name: created_at, type: time, sql: created_at, primary_time: true}
    measures:
      - {name: count, type: count}
      - {name: revenue, type: sum, sql: amount, filters: [{sql: "{orders}.status = 'paid'"}]}
      - {name: last_status, type: max, sql: status}
      - {name: average, type: number, sql: "{revenue} / {count}"}
  - name: customers
    sql_table: raw.customers
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: region, type: string, sql: region}
policies:
  - {name: own_region, cubes: [customers], when: {roles: [seller]}, row_filter: "{customers}.region = {{ user.attributes.region }}"}
  - {name: paid, cubes: [orders], when: {roles: [seller]}, row_filter: "{orders}.status = 'paid'"}
  - {name: names, cubes: [orders], when: {roles: [clerk]}, mask: {status: hash}, allow_aggregate: true}
  - {name: money, cubes: [orders], when: {roles: [intern]}, deny: [amount]}
"#;

const TYPES: &str = r#"{"orders.id": integer, "orders.status": text, "orders.shouted": text, "orders.region": text, "orders.amount": decimal, "orders.internal": integer, "orders.created_at": timestamp, "orders.revenue": decimal, "orders.last_status": text, "customers.id": integer, "customers.region": text}"#;

fn statement(statistics: Vec<(Option<&str>, Statistic)>, top: Option<(&str, u64)>) -> StatisticsQuery {
    StatisticsQuery {
        cube: "orders".into(),
        range: Some(DateRange::Words("2024-Q1".into())),
        statistics: statistics.into_iter().map(|(name, statistic)| (name.map(Into::into), statistic)).collect(),
        top: top.map(|(name, count)| (name.into(), count)),
        sample: None,
    }
}

/// Returns a sample of 100 of 5,000 rows.
fn sample(strategy: SamplingStrategy) -> Option<RowSample> {
    Some(RowSample { strategy, rows: 100, total: 5_000 })
}

fn strategies() -> [SamplingStrategy; 4] {
    [
        SamplingStrategy::Random,
        SamplingStrategy::Systematic,
        SamplingStrategy::Stratified(None),
        SamplingStrategy::Stratified(Some("region".into())),
    ]
}

fn all(profile: &DialectProfile) -> Vec<(&'static str, StatisticsQuery)> {
    let bound = |value| Some(Bound { value: Value::Float(value), inclusive: false });
    let outside =
        Test::AnyOf(vec![Test::Range { low: None, high: bound(-1.5) }, Test::Range { low: bound(99.0), high: None }]);
    let blank = Filter::Condition {
        member: "orders.region".parse().unwrap(),
        operator: Operator::InList,
        values: vec![Value::Text("".into()), Value::Text("N/A".into())],
    };
    let mut plain = vec![
        (None, Statistic::Rows),
        (Some("region"), Statistic::Values),
        (Some("status"), Statistic::Distinct),
        (Some("status"), Statistic::ApproxDistinct),
        (Some("created_at"), Statistic::Min),
        (Some("status"), Statistic::Max),
        (Some("amount"), Statistic::Mean),
        (Some("revenue"), Statistic::Mean),
        (None, Statistic::Where(blank)),
    ];
    if has_quantiles(profile) {
        plain.push((Some("amount"), Statistic::Quantile(0.25)));
    }
    let following = vec![
        (Some("amount"), Statistic::Moment { about: 12.5, power: 3 }),
        (Some("revenue"), Statistic::Passing(outside)),
    ];
    vec![
        ("plain", statement(plain, None)),
        ("following", statement(following, None)),
        ("top", statement(vec![(None, Statistic::Rows)], Some(("region", 5)))),
    ]
}

fn compiled(
    model: &Model,
    profile: &DialectProfile,
    query: &StatisticsQuery,
    caller: &Json,
) -> Result<CompiledSql, QueryError> {
    let caller = read_caller(caller);
    compile_statistics(profile, query, &Authorized::without_hooks(model, &caller), &environment())
}

fn offered(model: &Model, caller: &Json) -> Vec<String> {
    let caller = read_caller(caller);
    let columns = statistics_columns(&duckdb_profile(), &Authorized::without_hooks(model, &caller), "orders").unwrap();
    columns.iter().map(|column| column.name.to_string()).collect()
}

#[test]
fn statements_are_one_row_of_aggregates_or_the_most_frequent_values() {
    let (model, profile) = (model(CUBES, TYPES), duckdb_profile());
    let mut text = String::new();
    for (name, query) in all(&profile) {
        let sql = compiled(&model, &profile, &query, &json!({})).unwrap();
        let _ = write!(text, "# {name}\n{}\n{:?}\n\n", sql.text, sql.params);
    }
    insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("profile", text);
    });
}

#[test]
fn times_are_profiled_as_times_where_strings_are_times() {
    let types = TYPES.replace(r#""orders.created_at": timestamp"#, r#""orders.created_at": text"#);
    let (model, caller) = (model(CUBES, &types), read_caller(&json!({})));
    let of = |profile: &DialectProfile| {
        let columns = statistics_columns(profile, &Authorized::without_hooks(&model, &caller), "orders").unwrap();
        let column = columns.into_iter().find(|column| &*column.name == "created_at").unwrap();
        (column.ty, column.mismatch.map(|mismatch| mismatch.found))
    };
    let sqlite = first_party_profiles().into_iter().map(checked).find(|profile| &*profile.name == "sqlite").unwrap();
    assert_eq!(of(&sqlite), (LogicalType::Timestamp, None));
    assert_eq!(of(&duckdb_profile()), (LogicalType::Text, Some("a string")));
}

#[test]
fn statements_compile_in_every_dialect() {
    let model = model(CUBES, TYPES);
    let mut interpolating = 0;
    for profile in first_party_profiles() {
        let profile = checked(profile);
        for (name, query) in all(&profile) {
            compiled(&model, &profile, &query, &json!({}))
                .unwrap_or_else(|error| panic!("{} {name}: {error}", profile.name));
        }
        interpolating += usize::from(has_quantiles(&profile));
    }
    assert!(interpolating > 1);
}

#[test]
fn profile_reads_only_rows_visible_to_the_caller() {
    let (model, profile) = (model(CUBES, TYPES), duckdb_profile());
    let seller = json!({"roles": ["seller"], "attributes": {"region": "north"}});
    for (name, query) in all(&profile) {
        let sql = compiled(&model, &profile, &query, &seller).unwrap();
        assert!(sql.text.contains("= 'paid'"), "{name}: {}", sql.text);
    }
}

#[test]
fn masked_columns_are_neither_offered_nor_profiled() {
    let (model, profile) = (model(CUBES, TYPES), duckdb_profile());
    assert_eq!(offered(&model, &json!({})), ["id", "status", "shouted", "region", "amount", "created_at", "revenue"]);
    let clerk = json!({"roles": ["clerk"]});
    assert_eq!(offered(&model, &clerk), ["id", "region", "amount", "created_at", "revenue"]);
    let intern = json!({"roles": ["intern"]});
    assert_eq!(offered(&model, &intern), ["id", "status", "shouted", "region", "created_at"]);
    let statistics = [
        Statistic::Values,
        Statistic::Distinct,
        Statistic::ApproxDistinct,
        Statistic::Min,
        Statistic::Max,
        Statistic::Mean,
        Statistic::Quantile(0.5),
        Statistic::Moment { about: 0.0, power: 2 },
        Statistic::Passing(Test::Not(Box::new(Test::IsNull))),
    ];
    for (caller, columns) in
        [(&clerk, ["status", "shouted", "last_status"]), (&intern, ["amount", "revenue", "amount"])]
    {
        for column in columns {
            for statistic in &statistics {
                let query = statement(vec![(Some(column), statistic.clone())], None);
                assert!(compiled(&model, &profile, &query, caller).is_err(), "{column} {statistic:?}");
            }
            let top = statement(vec![(None, Statistic::Rows)], Some((column, 5)));
            assert!(compiled(&model, &profile, &top, caller).is_err(), "{column}");
            let member = format!("orders.{column}").parse().unwrap();
            let filter = Filter::Condition { member, operator: Operator::Set, values: Vec::new() };
            let condition = statement(vec![(None, Statistic::Where(filter))], None);
            assert!(compiled(&model, &profile, &condition, caller).is_err(), "{column}");
        }
    }
}

#[test]
fn hooks_receive_every_member_that_a_statement_reads() {
    let model = model(CUBES, TYPES);
    let caller = read_caller(&json!({}));
    let authorized = Authorized::without_hooks(&model, &caller);
    let asked = statistics_as_query(&authorized.access(), &all(&duckdb_profile())[0].1).unwrap();
    let names = |members: &[terrane_compiler::query::MemberRef]| {
        let mut names: Vec<String> = members.iter().map(|member| member.member().to_owned()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&asked.dimensions), ["amount", "created_at", "region", "status"]);
    assert_eq!(names(&asked.values), ["revenue"]);
    assert!(asked.time_range.is_some());
    let rows = statistics_as_query(&authorized.access(), &statement(vec![(None, Statistic::Rows)], None)).unwrap();
    assert_eq!(rows.dimensions.len(), 1);
}

/// Cubes whose rows cannot be sampled, or not by every strategy.
const UNSAMPLED: &str = r#"
cubes:
  - name: keyless
    sql_table: raw.keyless
    dimensions:
      - {name: status, type: string, sql: status}
    measures:
      - {name: count, type: count}
  - name: timeless
    sql_table: raw.timeless
    dimensions:
      - {name: id, type: number, sql: id, primary_key: true}
      - {name: shop, type: number, sql: shop, primary_key: true}
      - {name: secret, type: string, sql: secret}
    measures:
      - {name: count, type: count}
policies:
  - {name: secrets, cubes: [timeless], when: {roles: [clerk]}, mask: {secret: hash}}
  - {name: keys, cubes: [timeless], when: {roles: [blind]}, deny: [id]}
  - {name: masks, cubes: [timeless], when: {roles: [veiled]}, mask: {shop: "null"}}
"#;

const UNSAMPLED_TYPES: &str =
    r#"{"keyless.status": text, "timeless.id": integer, "timeless.shop": integer, "timeless.secret": text}"#;

#[test]
fn samples_are_taken_of_filtered_rows_in_every_dialect_with_a_hash() {
    let model = model(CUBES, TYPES);
    let seller = read_caller(&json!({"roles": ["seller"], "attributes": {"region": "north"}}));
    let authorized = Authorized::without_hooks(&model, &seller);
    let mut text = String::new();
    for profile in first_party_profiles() {
        let profile = checked(profile);
        for strategy in strategies() {
            let _ = writeln!(text, "# {} {strategy:?}", profile.name);
            if let Some(reason) = no_sample(&profile, &authorized, "orders", &strategy).unwrap() {
                let _ = write!(text, "{reason:?}\n\n");
                continue;
            }
            let statistics = vec![(None, Statistic::Rows), (Some("amount"), Statistic::Mean)];
            let query = StatisticsQuery { sample: sample(strategy), ..statement(statistics, None) };
            let sql = compile_statistics(&profile, &query, &authorized, &environment()).unwrap();
            let _ = write!(text, "{}\n\n", sql.text);
        }
    }
    insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("profile_samples", text);
    });
}

#[test]
fn all_statements_of_a_sample_read_the_same_rows() {
    let (model, profile) = (model(CUBES, TYPES), duckdb_profile());
    let mut text = String::new();
    for (name, query) in all(&profile) {
        let query = StatisticsQuery { sample: sample(SamplingStrategy::Random), ..query };
        let sql = compiled(&model, &profile, &query, &json!({})).unwrap();
        // The null group is removed from the sample, and not from the rows that it is taken from.
        let (sampled, rest) = sql.text.split_once("LIMIT 100\n").unwrap();
        assert!(!sampled.contains("IS NOT NULL"), "{name}: {sampled}");
        assert_eq!(rest.contains("g0 IS NOT NULL"), name == "top", "{name}: {rest}");
        let _ = write!(text, "# {name}\n{}\n{:?}\n\n", sql.text, sql.params);
    }
    insta::with_settings!({ omit_expression => true, snapshot_path => "../snapshots", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("profile_sampled", text);
    });
}

#[test]
fn cube_without_a_key_or_strata_has_no_sample() {
    let (model, profile) = (model(UNSAMPLED, UNSAMPLED_TYPES), duckdb_profile());
    let clerk = read_caller(&json!({"roles": ["clerk"]}));
    let authorized = Authorized::without_hooks(&model, &clerk);
    let found = |cube, strategy| no_sample(&profile, &authorized, cube, &strategy);
    for strategy in [SamplingStrategy::Random, SamplingStrategy::Systematic, SamplingStrategy::Stratified(None)] {
        assert_eq!(found("keyless", strategy), Ok(Some(NoSample::PrimaryKey)));
    }
    assert_eq!(found("timeless", SamplingStrategy::Stratified(None)), Ok(Some(NoSample::Strata)));
    assert_eq!(found("timeless", SamplingStrategy::Random), Ok(None));
    for role in ["blind", "veiled"] {
        let caller = read_caller(&json!({"roles": [role]}));
        let authorized = Authorized::without_hooks(&model, &caller);
        let hidden = no_sample(&profile, &authorized, "timeless", &SamplingStrategy::Systematic);
        assert_eq!(hidden, Ok(Some(NoSample::HiddenKey)), "{role}");
        let query = StatisticsQuery {
            cube: "timeless".into(),
            range: None,
            sample: sample(SamplingStrategy::Random),
            ..statement(vec![(None, Statistic::Rows)], None)
        };
        assert!(compiled(&model, &profile, &query, &json!({"roles": [role]})).is_err(), "{role}");
    }
    for strata in ["secret", "nothing", "count"] {
        assert!(found("timeless", SamplingStrategy::Stratified(Some(strata.into()))).is_err(), "{strata}");
    }
    assert!(found("nothing", SamplingStrategy::Random).is_err());
}
