//! Case files: a small project in one YAML file to its diagnostics and, for good ones, its model.
//!
//! A new case is a new file under `tests/project/`; its snapshot is read before it is accepted.

#![allow(clippy::unwrap_used, reason = "tests stop at their first fault")]

#[path = "project/summary.rs"]
mod summary;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use terrane_compiler::diagnostic::{Code, Diagnostic};
use terrane_compiler::model::{ColumnTypes, DimensionId, MeasureId, MeasureKind, Model, TimeKind, build};
use terrane_compiler::project::{Inputs, SourceTree, read};
use terrane_compiler::sql::dialect_profile::DialectProfile;
use terrane_compiler::sql::{ProbedMember, column_mistakes, type_probe};
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::{checked, first_party_profiles};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// `name: shop` when there is none.
    files: BTreeMap<String, String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default = "duckdb")]
    warehouse: String,
}

fn duckdb() -> String {
    "duckdb".to_owned()
}

fn load(files: BTreeMap<String, String>, env: BTreeMap<String, String>, warehouse: &str) -> (Model, Vec<Diagnostic>) {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: shop\n".into());
    tree.files.extend(files.into_iter().map(|(path, text)| (path.into(), text.into())));
    let inputs = Inputs { warehouse: warehouse.into(), env, ..Inputs::default() };
    let (definitions, mut diagnostics) = read(&tree, &inputs);
    let (model, more) = build(&definitions);
    diagnostics.extend(more);
    (model, diagnostics)
}

fn cases(folder: &str) -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/project").join(folder);
    let mut cases: Vec<(String, PathBuf)> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yml"))
        .map(|path| (path.file_stem().unwrap().to_string_lossy().into_owned(), path))
        .collect();
    cases.sort();
    cases
}

/// Loads one case; the snapshot holds every diagnostic, then the model where `shows_model`.
fn check(folder: &str, name: &str, path: &Path, shows_model: bool) -> Vec<Diagnostic> {
    let case: Case = serde_saphyr::from_str(&fs::read_to_string(path).unwrap())
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let (model, diagnostics) = load(case.files, case.env, &case.warehouse);
    let mut text: String = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
    if shows_model {
        text.push_str(&summary::of(&model));
    }
    insta::with_settings!({
        snapshot_path => format!("project/{folder}"),
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!(name, text) });
    diagnostics
}

#[test]
fn mistakes_name_place_cause_and_cure() {
    let mut count = 0;
    for (name, path) in cases("mistakes") {
        let diagnostics = check("mistakes", &name, &path, false);
        assert!(!diagnostics.is_empty(), "{name}: nothing was told");
        for diagnostic in &diagnostics {
            assert!(diagnostic.span.is_some(), "{name}: no place: {diagnostic}");
            assert!(diagnostic.hint.is_some(), "{name}: no hint: {diagnostic}");
        }
        count += diagnostics.len();
    }
    assert!(count >= 40, "{count} mistakes are too few");
}

#[test]
fn good_projects_become_models() {
    for (name, path) in cases("good") {
        let diagnostics = check("good", &name, &path, true);
        assert!(!diagnostics.iter().any(Diagnostic::is_error), "{name}: {}", diagnostics[0]);
    }
}

fn files_below(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "yml" || extension == "sql") {
            let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
            files.insert(name, fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn the_example_project_loads_without_a_word() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let mut files = BTreeMap::new();
    files_below(&root, &root, &mut files);
    let (model, diagnostics) = load(files, BTreeMap::new(), "duckdb");
    let told: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
    assert_eq!(&*model.project, "flights");
    for name in ["flights", "airports", "origin_airport", "dest_airport", "weather"] {
        assert!(model.cube_named(name).is_some(), "{name}");
    }
}

#[test]
fn date_columns_are_wall_clocks_also_behind_an_alias() {
    let cubes = "
cubes:
  - name: orders
    sql_table: orders
    dimensions: [{name: paid_on, type: time, sql: paid_on}]
    measures: [{name: revenue, type: sum, sql: amount}]
    joins: [{name: first_order, cube: orders, relationship: many_to_one, sql: '{orders}.first = {first_order}.id'}]
";
    let files = BTreeMap::from([("cubes/orders.yml".to_owned(), cubes.to_owned())]);
    let (model, _) = load(files, BTreeMap::new(), "duckdb");
    let orders = model.cube_named("orders").unwrap().id;
    let types = ColumnTypes {
        dimensions: [(DimensionId { cube: orders, index: 0 }, LogicalType::Date)].into(),
        measures: [(MeasureId { cube: orders, index: 0 }, LogicalType::Decimal)].into(),
        ..ColumnTypes::default()
    };
    let model = model.with_types(&types);
    for name in ["orders", "first_order"] {
        let cube = model.cube_named(name).unwrap();
        assert_eq!(cube.dimensions[0].column_type, LogicalType::Date, "{name}");
        assert_eq!(cube.dimensions[0].time, TimeKind::WallClock, "{name}");
        let MeasureKind::Aggregate(revenue) = &cube.measures[0].kind else { panic!("{name}") };
        assert_eq!(revenue.argument_type, LogicalType::Decimal, "{name}");
    }
}

/// What is told of columns that are all of one type.
fn of_columns(cubes: &str, ty: LogicalType, profile: &DialectProfile) -> Vec<String> {
    let files = BTreeMap::from([("cubes/orders.yml".to_owned(), cubes.to_owned())]);
    let (model, _) = load(files, BTreeMap::new(), "duckdb");
    let mut types = ColumnTypes::default();
    for cube in &model.cubes {
        let id = cube.id;
        let ids = move |count: usize| (0..count as u32).map(move |index| (id, index));
        types.dimensions.extend(ids(cube.dimensions.len()).map(|(cube, index)| (DimensionId { cube, index }, ty)));
        types.measures.extend(ids(cube.measures.len()).map(|(cube, index)| (MeasureId { cube, index }, ty)));
    }
    column_mistakes(&model.with_types(&types), &types, profile).iter().map(ToString::to_string).collect()
}

#[test]
fn columns_of_another_type_than_their_members_are_warnings() {
    let cubes = "
cubes:
  - name: orders
    sql_table: orders
    dimensions:
      - {name: label, type: string, sql: a}
      - {name: number, type: number, sql: b}
      - {name: placed_at, type: time, sql: c}
      - {name: is_open, type: boolean, sql: d}
    measures:
      - {name: count, type: count}
      - {name: kinds, type: count_distinct, sql: e}
      - {name: last, type: max, sql: f}
      - {name: total, type: sum, sql: g}
      - {name: mean, type: avg, sql: h}
      - {name: so_far, type: running_total, sql: i}
  - {name: old_orders, extends: orders, sql_table: old_orders}
  - name: lines
    sql_table: lines
    dimensions: [{name: label, type: string, sql: a}]
    joins: [{name: first_order, cube: orders, relationship: many_to_one, sql: '{lines}.first = {first_order}.a'}]
";
    let profiles = || first_party_profiles().into_iter().map(checked);
    let of = |name: &str| profiles().find(|profile| profile.name == name).unwrap();
    let (duckdb, sqlite, mysql) = (of("duckdb"), of("sqlite"), of("mysql"));
    let members = |ty, profile: &DialectProfile| {
        let told = of_columns(cubes, ty, profile).into_iter();
        told.map(|told| told.split('`').nth(1).unwrap().replace("orders.", "")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(members(LogicalType::Text, &duckdb), "number placed_at is_open total mean so_far");
    assert_eq!(members(LogicalType::Integer, &duckdb), "placed_at");
    assert_eq!(members(LogicalType::Float, &duckdb), "placed_at is_open");
    assert_eq!(members(LogicalType::Boolean, &duckdb), "number placed_at total mean so_far");
    assert_eq!(members(LogicalType::Date, &duckdb), "number is_open total mean so_far");
    assert_eq!(members(LogicalType::TimestampTz, &duckdb), "number is_open total mean so_far");
    for nobody_knows in [LogicalType::Unknown, LogicalType::Binary, LogicalType::Geo] {
        assert_eq!(members(nobody_knows, &duckdb), "");
    }
    assert_eq!(members(LogicalType::Text, &sqlite), "number is_open total mean so_far", "times are texts there");
    assert_eq!(members(LogicalType::Boolean, &mysql), "placed_at", "booleans are integers there");

    let told = of_columns(cubes, LogicalType::Text, &duckdb);
    assert_eq!(
        told[0],
        "cubes/orders.yml:7:43: warning[column-mismatch]: dimension `orders.number` is a number, and its column is \
         not: it is a text\n  hint: write `type: string`, or an `sql` that makes a number of it"
    );
    assert_eq!(
        told[3],
        "cubes/orders.yml:14:39: warning[column-mismatch]: measure `orders.total` adds up what is no number: it is a \
         text\n  hint: write an `sql` that makes a number of it, or `type: count_distinct`"
    );
}

/// What is found of joins, by the types of some columns; of `cube.column` where no dimension shows it.
fn of_joins(condition: &str, columns: &[(&str, LogicalType)]) -> Vec<Diagnostic> {
    let cubes = format!(
        "
cubes:
  - name: orders
    sql_table: orders
    dimensions: [{{name: buyer, type: string, sql: customer_id}}]
    joins: [{{name: customers, relationship: many_to_one, sql: \"{condition}\"}}]
  - name: customers
    sql_table: customers
    dimensions: [{{name: id, type: string, sql: id, primary_key: true}}, {{name: code, type: string, sql: code}}]
"
    );
    let files = BTreeMap::from([("cubes/orders.yml".to_owned(), cubes)]);
    let (model, diagnostics) = load(files, BTreeMap::new(), "duckdb");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    let profile = checked(first_party_profiles().into_iter().find(|profile| profile.name == "duckdb").unwrap());
    let mut types = ColumnTypes::default();
    for cube in &model.cubes {
        let ty_of = |name: &str| columns.iter().find(|(column, _)| *column == format!("{}.{name}", cube.name));
        for (index, dimension) in (0u32..).zip(&cube.dimensions) {
            if let Some((_, ty)) = ty_of(&dimension.name) {
                types.dimensions.insert(DimensionId { cube: cube.id, index }, *ty);
            }
        }
        for member in type_probe(&model, cube.id, &profile).unwrap().members {
            if let ProbedMember::JoinOperand(id) = member {
                types.joined.insert(id, ty_of("hidden").unwrap().1);
            }
        }
    }
    column_mistakes(&model.with_types(&types), &types, &profile)
}

#[test]
fn join_of_text_and_number_is_found() {
    let (text, integer, date) = (LogicalType::Text, LogicalType::Integer, LogicalType::Date);
    let found = |condition: &str, columns: &[(&str, LogicalType)]| {
        let told = of_joins(condition, columns);
        assert!(told.iter().all(|told| told.code == Code::ColumnMismatch && told.span.is_some()), "{told:?}");
        told.len()
    };
    let by_id = "{orders}.customer_id = {customers}.id";
    assert_eq!(found(by_id, &[("orders.buyer", text), ("customers.id", integer)]), 1);
    assert_eq!(found(by_id, &[("orders.buyer", integer), ("customers.id", integer)]), 0);
    assert_eq!(found(by_id, &[("orders.buyer", LogicalType::Decimal), ("customers.id", integer)]), 0);
    assert_eq!(found(by_id, &[("orders.buyer", LogicalType::Unknown), ("customers.id", integer)]), 0);
    assert_eq!(found(by_id, &[("orders.buyer", text), ("customers.id", text)]), 0);
    assert_eq!(found("{orders.buyer} = {customers.id}", &[("orders.buyer", text), ("customers.id", integer)]), 1);
    assert_eq!(found("{orders.buyer} >= {customers.id}", &[("orders.buyer", text), ("customers.id", date)]), 1);
    let hidden = "{orders}.bought_by = {customers}.id AND {orders.buyer} = {customers.code}";
    let texts = [("orders.buyer", text), ("customers.code", text), ("customers.id", integer)];
    assert_eq!(found(hidden, &[&texts[..], &[("orders.hidden", text)]].concat()), 1);
    assert_eq!(found(hidden, &[&texts[..], &[("orders.hidden", integer)]].concat()), 0);
    let mixed = [("orders.buyer", text), ("customers.id", integer)];
    assert_eq!(found("CAST({orders}.customer_id AS INTEGER) = {customers}.id", &mixed), 0);
    assert_eq!(found("{orders}.customer_id = {customers}.id || ''", &mixed), 0);
    assert_eq!(found("'x' || {customers}.id = {orders}.customer_id", &mixed), 0);
    assert_eq!(found("({orders}.customer_id = {customers}.id)", &mixed), 1);
    for same in [
        "({orders}.customer_id) = ({customers}.id)",
        "(({orders}.customer_id) = {customers}.id)",
        "{orders}.customer_id IN ({customers}.id)",
        "{orders}.customer_id IS NOT DISTINCT FROM {customers}.id",
    ] {
        assert_eq!(found(same, &mixed), 1, "{same}");
    }
    for other in [
        "trim({orders}.customer_id) = ({customers}.id)",
        "{orders}.customer_id = abs({customers}.id)",
        "{orders}.customer_id IN ({customers}.id, 'x')",
        "({orders}.customer_id) = ({customers}.id || '')",
    ] {
        assert_eq!(found(other, &mixed), 0, "{other}");
    }
}

#[test]
fn what_is_broken_is_left_out_and_the_rest_keeps_its_references() {
    let cubes = "
cubes:
  - name: orders
    sql_table: orders
    dimensions:
      - {name: broken, type: string, sql: '{nothing}'}
      - {name: on_broken, type: string, sql: 'upper({broken})'}
      - {name: status, type: string, sql: status}
      - {name: shout, type: string, sql: 'upper({status})'}
    measures:
      - {name: wrong, type: number, sql: amount}
      - {name: count, type: count}
      - {name: twice, type: number, sql: '{count} * 2'}
      - {name: on_wrong, type: number, sql: '{wrong} / {count}'}
metrics: [{name: a, type: simple, expression: orders.wrong}, {name: b, type: simple, expression: orders.twice}]
";
    let files = BTreeMap::from([("cubes/orders.yml".to_owned(), cubes.to_owned())]);
    let (model, diagnostics) = load(files, BTreeMap::new(), "duckdb");
    assert_eq!(diagnostics.len(), 2, "one report for each cause: {diagnostics:?}");
    insta::with_settings!({
        snapshot_path => "project",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!("left_out", summary::of(&model)) });
}
