//! The small project that cases ask.

use terrane_app::catalog::Snapshot;
use terrane_compiler::model::{self, ColumnTypes, DimensionId, DimensionType, MeasureId, Model};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::types::LogicalType;
use terrane_golden_tests::duckdb_profile;

/// `project/`, with the types that its warehouse would tell.
///
/// # Panics
/// Where the project has a problem.
pub fn snapshot() -> Snapshot {
    snapshot_with("")
}

/// The same with policies.
///
/// # Panics
/// Where the project has a problem.
pub fn snapshot_with(policies: &str) -> Snapshot {
    let mut tree = tree();
    if !policies.is_empty() {
        tree.files.insert("policies/of_a_bench.yml".into(), policies.into());
    }
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut diagnostics) = project::read(&tree, &inputs);
    let (model, more) = model::build(&definitions);
    diagnostics.extend(more);
    let problems: Vec<String> = diagnostics.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let types = column_types(&model);
    Snapshot::new(model.with_types(&types), definitions, duckdb_profile(), diagnostics)
}

/// The project's files.
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
