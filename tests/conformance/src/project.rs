//! The small project that the cases query, and the tables of its pre-aggregations.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use terrane_app::catalog::Snapshot;
use terrane_compiler::model::{self, ColumnTypes, DimensionId, DimensionType, MeasureId, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::rollup::{ReadyPartition, ReadyRollup, ReadyRollups, RollupOf};
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::duckdb_profile;

/// Returns `project/`, with the column types that its warehouse would report.
///
/// # Panics
/// The project has a problem.
pub fn snapshot() -> Snapshot {
    snapshot_with("")
}

/// Returns the project with policies.
///
/// # Panics
/// The project has a problem.
pub fn snapshot_with(policies: &str) -> Snapshot {
    let mut tree = tree();
    if !policies.is_empty() {
        tree.files.insert("policies/of_a_bench.yml".into(), policies.into());
    }
    snapshot_of(&tree)
}

/// Returns the project with further files, which may cause warnings.
///
/// # Panics
/// The project has an error, or it has a warning although `files` is empty.
pub fn snapshot_with_files(files: &BTreeMap<String, String>) -> Snapshot {
    let mut tree = tree();
    tree.files.extend(files.iter().map(|(path, text)| (path.as_str().into(), text.as_str().into())));
    read(&tree, !files.is_empty())
}

/// Returns the project with cubes that have pre-aggregations.
///
/// # Panics
/// The project has a problem.
pub fn snapshot_with_tables() -> Snapshot {
    let mut tree = tree();
    tree.files.insert("cubes/sales.yml".into(), include_str!("../project_with_tables/sales.yml").into());
    snapshot_of(&tree)
}

/// Returns one table of 40 rows for each pre-aggregation of a project, built one hour ago.
///
/// # Panics
/// A pre-aggregation cannot be built for the snapshot's dialect.
pub fn tables(snapshot: &Snapshot, now: Timestamp) -> ReadyRollups {
    let mut ready = ReadyRollups::default();
    for rollup in RollupOf::all(&snapshot.model) {
        let fingerprint = rollup.fingerprint(&snapshot.profile).expect("the rollup can be built");
        let partition = ReadyPartition {
            relation: ReadyPartition::relation_of(["terrane_preaggregations", &rollup.cube.name]),
            range: None,
            rows: 40,
            built_at: now - SignedDuration::from_hours(1),
        };
        let built = ReadyRollup { fingerprint, generation: 1, extent: None, partitions: vec![partition] };
        ready.insert(rollup.cube.name.clone(), rollup.rollup.name.clone(), built);
    }
    ready
}

fn snapshot_of(tree: &SourceTree) -> Snapshot {
    read(tree, false)
}

fn read(tree: &SourceTree, allows_warnings: bool) -> Snapshot {
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut diagnostics) = project::read(tree, &inputs);
    let (model, more) = model::build(&definitions);
    diagnostics.extend(more);
    let problems: Vec<String> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.is_error() || !allows_warnings)
        .map(ToString::to_string)
        .collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let types = column_types(&model);
    Snapshot::new(model.with_types(&types), definitions, duckdb_profile(), diagnostics)
}

/// Returns the project's files.
pub fn tree() -> SourceTree {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), include_str!("../project/service_project.yml").into());
    tree.files.insert("cubes/shop.yml".into(), include_str!("../project/cubes/shop.yml").into());
    tree
}

fn column_types(model: &Model) -> ColumnTypes {
    let mut types = ColumnTypes::default();
    for cube in &model.cubes {
        for (index, dimension) in (0..).zip(&cube.dimensions) {
            let ty = match dimension.ty {
                DimensionType::Number => LogicalType::Integer,
                DimensionType::Time => LogicalType::TimestampTz,
                DimensionType::Boolean => LogicalType::Boolean,
                DimensionType::String | DimensionType::Geo => LogicalType::Text,
            };
            types.dimensions.insert(DimensionId { cube: cube.id, index }, ty);
        }
        for (index, _) in (0..).zip(&cube.measures) {
            types.measures.insert(MeasureId { cube: cube.id, index }, LogicalType::Decimal);
        }
    }
    types
}
