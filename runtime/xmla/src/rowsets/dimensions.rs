//! Cubes and their dimensions.

use super::columns::{
    CUBE_SOURCE, catalog, column, is_false, is_true, mask, masked, null, restricted, restricted_null, schema,
};
use crate::rowset::ColumnType::{DateTime, Int, Short, String, UnsignedInt, UnsignedShort, Uuid};
use crate::rowset::{Cell, Source, Table};
use crate::scope::{DimensionRef, VisibleProject};

pub(super) static CUBES: Table<usize> = Table {
    name: "MDSCHEMA_CUBES",
    guid: "C8B522D8-5CF3-11CE-ADE5-00AA0044773D",
    description: "The cubes",
    columns: &[
        catalog(),
        schema(),
        restricted("CUBE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[*row].name)),
        restricted("CUBE_TYPE", String, |_, _| Cell::text("CUBE")),
        null("CUBE_GUID", Uuid),
        null("CREATED_ON", DateTime),
        null("LAST_SCHEMA_UPDATE", DateTime),
        null("SCHEMA_UPDATED_BY", String),
        null("LAST_DATA_UPDATE", DateTime),
        null("DATA_UPDATED_BY", String),
        column("DESCRIPTION", String, |scope, row| Cell::optional(scope.cube_description(scope.cubes()[*row]))),
        is_false("IS_DRILLTHROUGH_ENABLED"),
        is_false("IS_LINKABLE"),
        is_false("IS_WRITE_ENABLED"),
        is_false("IS_SQL_ENABLED"),
        column("CUBE_CAPTION", String, |scope, row| Cell::text(&*scope.cubes()[*row].title)),
        restricted_null("BASE_CUBE_NAME", String),
        masked("CUBE_SOURCE", UnsignedShort, |_, _| Cell::Integer(1)),
        column("PREFERRED_QUERY_PATTERNS", UnsignedShort, |_, _| Cell::Integer(1)),
    ],
    restrictions: &[],
    source: Source::EachCube("CUBE_NAME", |_, cube| vec![cube]),
};

/// A dimension of a cube.
pub(super) struct CubeDimension {
    cube: usize,
    dimension: DimensionRef,
    ordinal: i64,
}

pub(super) static DIMENSIONS: Table<CubeDimension> = Table {
    name: "MDSCHEMA_DIMENSIONS",
    guid: "C8B522D9-5CF3-11CE-ADE5-00AA0044773D",
    description: "The dimensions of cubes: measures, the cube itself, and cubes that it reaches by to-one joins",
    columns: &[
        catalog(),
        schema(),
        restricted("CUBE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[row.cube].name)),
        restricted("DIMENSION_NAME", String, |scope, row| Cell::text(row.dimension.name(scope))),
        restricted("DIMENSION_UNIQUE_NAME", String, |scope, row| Cell::text(row.dimension.unique_name(scope))),
        null("DIMENSION_GUID", Uuid),
        column("DIMENSION_CAPTION", String, |scope, row| Cell::text(row.dimension.caption(scope))),
        column("DIMENSION_ORDINAL", UnsignedInt, |_, row| Cell::Integer(row.ordinal)),
        column("DIMENSION_TYPE", Short, |scope, row| Cell::Integer(row.dimension.kind(scope))),
        column("DIMENSION_CARDINALITY", UnsignedInt, |_, _| Cell::Integer(0)),
        column("DEFAULT_HIERARCHY", String, |scope, row| {
            row.dimension.default_hierarchy(scope).map_or(Cell::Null, Cell::text)
        }),
        column("DESCRIPTION", String, |scope, row| Cell::optional(row.dimension.description(scope))),
        is_false("IS_VIRTUAL"),
        is_false("IS_READWRITE"),
        column("DIMENSION_UNIQUE_SETTINGS", Int, |_, _| Cell::Integer(1)),
        column("DIMENSION_MASTER_UNIQUE_NAME", String, |scope, row| Cell::text(row.dimension.name(scope))),
        is_true("DIMENSION_IS_VISIBLE"),
    ],
    restrictions: &[CUBE_SOURCE, (mask("DIMENSION_VISIBILITY"), 1)],
    source: Source::EachCube("CUBE_NAME", cube_dimensions),
};

fn cube_dimensions(scope: &VisibleProject<'_>, cube: usize) -> Vec<CubeDimension> {
    let dimensions = scope.dimensions(scope.cubes()[cube]);
    dimensions.into_iter().zip(0..).map(|(dimension, ordinal)| CubeDimension { cube, dimension, ordinal }).collect()
}
