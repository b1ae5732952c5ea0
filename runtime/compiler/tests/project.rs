//! Tests case files: each is a small project in one YAML file, whose diagnostics and, without errors, model are
//! compared with a snapshot.
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
use terrane_compiler::sql::{ProbedMember, column_mistakes, missing_templates, type_probe};
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::{checked, first_party_profiles};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The files of the project. If none is a settings file, one with `name: shop` is added.
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

/// Loads one case. The snapshot contains every diagnostic and, if `shows_model` is true, the model.
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
fn mistakes_have_position_cause_and_hint() {
    let mut count = 0;
    for (name, path) in cases("mistakes") {
        let diagnostics = check("mistakes", &name, &path, false);
        assert!(!diagnostics.is_empty(), "{name}: no diagnostic");
        for diagnostic in &diagnostics {
            assert!(diagnostic.span.is_some(), "{name}: no place: {diagnostic}");
            assert!(diagnostic.hint.is_some(), "{name}: no hint: {diagnostic}");
        }
        count += diagnostics.len();
    }
    assert!(count >= 40, "{count} mistakes are too few");
}

#[test]
fn valid_projects_are_loaded() {
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
fn example_project_loads_without_diagnostics() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/flights");
    let mut files = BTreeMap::new();
    files_below(&root, &root, &mut files);
    let (model, diagnostics) = load(files, BTreeMap::new(), "duckdb");
    let lines: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
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

/// Returns the diagnostics of a project whose columns are all of one type.
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
        let warnings = of_columns(cubes, ty, profile).into_iter();
        warnings.map(|warning| warning.split('`').nth(1).unwrap().replace("orders.", "")).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(members(LogicalType::Text, &duckdb), "number placed_at is_open total mean so_far");
    assert_eq!(members(LogicalType::Integer, &duckdb), "placed_at");
    assert_eq!(members(LogicalType::Float, &duckdb), "placed_at is_open");
    assert_eq!(members(LogicalType::Boolean, &duckdb), "number placed_at total mean so_far");
    assert_eq!(members(LogicalType::Date, &duckdb), "number is_open total mean so_far");
    assert_eq!(members(LogicalType::TimestampTz, &duckdb), "number is_open total mean so_far");
    for unchecked in [LogicalType::Unknown, LogicalType::Binary, LogicalType::Geo] {
        assert_eq!(members(unchecked, &duckdb), "");
    }
    assert_eq!(members(LogicalType::Text, &sqlite), "number is_open total mean so_far", "times are texts there");
    assert_eq!(members(LogicalType::Boolean, &mysql), "placed_at", "booleans are integers there");

    let warnings = of_columns(cubes, LogicalType::Text, &duckdb);
    assert_eq!(
        warnings[0],
        "cubes/orders.yml:7:43: warning[column-mismatch]: dimension `orders.number` is a number, but its column is \
         not: it is a string\n  hint: Write `type: string`, or an `sql` that converts it to a number."
    );
    assert_eq!(
        warnings[3],
        "cubes/orders.yml:14:39: warning[column-mismatch]: measure `orders.total` adds up values that are not numbers: it is a \
         string\n  hint: Write an `sql` that converts it to a number, or `type: count_distinct`."
    );
}

/// Conditions of a join from `orders` to `customers`, with the types that the warehouse reports.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JoinCase {
    dialect: String,
    /// Types by `cube.column`; no dimension shows the columns of `orders` whose names begin with `hidden`.
    columns: BTreeMap<String, String>,
    /// The type that the warehouse reports for every expression; absent if it reports no types of expressions.
    #[serde(default)]
    expressions: Option<String>,
    conditions: Vec<String>,
}

impl JoinCase {
    fn type_named(name: &str) -> LogicalType {
        let is_named = |ty: &LogicalType| format!("{ty:?}").eq_ignore_ascii_case(name);
        LogicalType::ALL.into_iter().find(is_named).unwrap_or_else(|| panic!("no type {name}"))
    }

    /// Returns the details of the warnings about one condition, one on a line.
    fn check(&self, condition: &str) -> String {
        let dimension = |column: &String| {
            let name = column.split_once('.').unwrap().1;
            format!("{{name: {name}, type: string, sql: {name}}}")
        };
        let shown = |cube: &str| {
            let columns = self.columns.keys().filter(|column| column.starts_with(cube) && !column.contains(".hidden"));
            columns.map(dimension).collect::<Vec<_>>().join(", ")
        };
        let cubes = format!(
            "
cubes:
  - name: orders
    sql_table: orders
    dimensions: [{}]
    joins:
      - name: customers
        relationship: many_to_one
        sql: >-
          {condition}
  - {{name: customers, sql_table: customers, dimensions: [{}]}}
",
            shown("orders."),
            shown("customers.")
        );
        let files = BTreeMap::from([("cubes/orders.yml".to_owned(), cubes)]);
        let (model, diagnostics) = load(files, BTreeMap::new(), &self.dialect);
        assert!(diagnostics.is_empty(), "{condition}: {diagnostics:?}");
        let profile = first_party_profiles().into_iter().find(|profile| profile.name == self.dialect);
        let profile = checked(profile.unwrap());
        let ty_of = |column: &str| self.columns.get(column).map_or(LogicalType::Unknown, |ty| Self::type_named(ty));
        let mut types = ColumnTypes::default();
        for cube in &model.cubes {
            for (index, dimension) in (0u32..).zip(&cube.dimensions) {
                let ty = ty_of(&format!("{}.{}", cube.name, dimension.name));
                types.dimensions.insert(DimensionId { cube: cube.id, index }, ty);
            }
            let probe = type_probe(&model, cube.id, &profile).unwrap();
            for (at, member) in probe.members.iter().enumerate() {
                let ProbedMember::JoinOperand(id) = member else { continue };
                let ty = match self.column_of(&probe.text, at) {
                    Some(column) => Some(ty_of(column)),
                    None => self.expressions.as_deref().map(Self::type_named),
                };
                types.joined.extend(ty.map(|ty| (*id, ty)));
            }
        }
        let found = column_mistakes(&model.with_types(&types), &types, &profile);
        let details = found.iter().map(|found| {
            assert!(found.code == Code::ColumnMismatch && found.span.is_some(), "{found:?}");
            found.detail.as_ref().map(|detail| detail.text.clone()).unwrap_or_default()
        });
        details.collect::<Vec<_>>().join("\n")
    }

    /// Returns the name of the column of the n-th item of a probe; `None` for an expression.
    fn column_of(&self, probe: &str, item: usize) -> Option<&str> {
        let find = |item: usize| {
            let names = [format!(" AS \"t{item}\""), format!(" AS `t{item}`"), format!(" AS t{item}")];
            names.iter().find_map(|name| probe.find(name.as_str()).map(|at| at..at + name.len()))
        };
        let end = find(item)?.start;
        let begin = item.checked_sub(1).and_then(|before| find(before).map(|name| name.end));
        let sql = probe[begin.unwrap_or(0)..end]
            .trim_start_matches("SELECT")
            .trim_matches(|c: char| c == ',' || c.is_whitespace());
        let sql = sql.replace(['"', '`'], "");
        self.columns.keys().find(|column| **column == sql).map(String::as_str)
    }
}

/// Comparisons in conditions of joins; a new case is another entry of the file.
#[test]
fn join_of_text_and_number_is_found() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/project/join_types.yml");
    let cases: Vec<JoinCase> = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let mut text = String::new();
    for case in &cases {
        for condition in &case.conditions {
            let found = case.check(condition);
            let found = if found.is_empty() { "nothing" } else { &found };
            text.push_str(&format!("{}: {condition}\n    {found}\n", case.dialect));
        }
    }
    insta::with_settings!({
        snapshot_path => "project",
        prepend_module_to_snapshot => false,
        omit_expression => true,
    }, { insta::assert_snapshot!("join_types", text) });
}

#[test]
fn broken_members_are_left_out_and_others_remain() {
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

#[test]
fn measures_that_the_dialect_cannot_write_are_warnings() {
    let cubes = "
cubes:
  - name: orders
    sql_table: orders
    dimensions: [{name: id, type: number, sql: id, primary_key: true}]
    measures:
      - {name: count, type: count}
      - {name: total, type: sum, sql: a}
      - {name: middle, type: median, sql: a}
      - {name: high, type: percentile, percentile: 0.95, sql: a}
      - {name: spread, type: stddev, sql: a}
      - {name: inline, type: number, sql: 'MEDIAN(a) / 2'}
      - {name: about, type: median, approximate: true, sql: a}
      - {name: sample, type: variance, sample: true, sql: a}
  - {name: old_orders, extends: orders, sql_table: old_orders}
";
    let (model, problems) =
        load(BTreeMap::from([("cubes/orders.yml".to_owned(), cubes.to_owned())]), BTreeMap::new(), "duckdb");
    assert!(problems.is_empty(), "{problems:?}");
    let found = |name: &str| -> Vec<String> {
        let profile = first_party_profiles().into_iter().map(checked).find(|profile| profile.name == name).unwrap();
        let found = missing_templates(&model, &profile);
        assert!(found.iter().all(|warning| !warning.is_error() && warning.hint.is_some() && warning.span.is_some()));
        found.iter().map(|warning| warning.message.split('`').nth(1).unwrap().to_owned()).collect()
    };
    assert_eq!(found("duckdb"), [""; 0]);
    assert_eq!(found("mysql"), [""; 0]);
    assert_eq!(found("bigquery"), ["orders.middle", "orders.high", "orders.inline"]);
    assert_eq!(found("trino"), ["orders.middle", "orders.high", "orders.inline"]);
    assert_eq!(found("sqlite"), ["orders.spread", "orders.sample"]);
}
