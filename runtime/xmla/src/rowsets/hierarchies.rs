//! Hierarchies of dimensions, and their levels.

use super::columns::{CUBE_SOURCE, catalog, column, is_false, is_true, mask, masked, null, restricted, schema};
use crate::rowset::ColumnType::{Int, Short, String, UnsignedInt, UnsignedShort, Uuid};
use crate::rowset::{Cell, Column, Source, Table};
use crate::scope::{Hierarchy, Level, VisibleProject};

/// A hierarchy of a cube.
pub(super) struct CubeHierarchy {
    cube: usize,
    hierarchy: Hierarchy,
    /// The position of the hierarchy in its dimension.
    ordinal: i64,
}

pub(super) static HIERARCHIES: Table<CubeHierarchy> = Table {
    name: "MDSCHEMA_HIERARCHIES",
    guid: "C8B522DA-5CF3-11CE-ADE5-00AA0044773D",
    description: "The hierarchies of dimensions: one for each dimension of a cube, and one of periods for times",
    columns: &HIERARCHY_COLUMNS,
    restrictions: &[CUBE_SOURCE, (mask("HIERARCHY_VISIBILITY"), 1)],
    source: Source::EachCube("CUBE_NAME", hierarchies),
};

static HIERARCHY_COLUMNS: [Column<CubeHierarchy>; 27] = [
    catalog(),
    schema(),
    restricted("CUBE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[row.cube].name)),
    restricted("DIMENSION_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.dimension().unique_name(scope))),
    restricted("HIERARCHY_NAME", String, |scope, row| Cell::text(row.hierarchy.name(scope))),
    restricted("HIERARCHY_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.unique_name(scope))),
    null("HIERARCHY_GUID", Uuid),
    column("HIERARCHY_CAPTION", String, |scope, row| Cell::text(row.hierarchy.caption(scope))),
    column("DIMENSION_TYPE", Short, |scope, row| Cell::Integer(row.hierarchy.kind(scope))),
    column("HIERARCHY_CARDINALITY", UnsignedInt, |_, _| Cell::Integer(0)),
    column("DEFAULT_MEMBER", String, |scope, row| match row.hierarchy {
        Hierarchy::Measures => {
            let first = scope.measures(scope.cubes()[row.cube]).into_iter().next();
            first.map_or(Cell::Null, |measure| Cell::text(measure.unique_name(scope)))
        }
        hierarchy => hierarchy.all_member(scope).map_or(Cell::Null, Cell::text),
    }),
    column("ALL_MEMBER", String, |scope, row| row.hierarchy.all_member(scope).map_or(Cell::Null, Cell::text)),
    column("DESCRIPTION", String, |scope, row| Cell::optional(row.hierarchy.description(scope))),
    column("STRUCTURE", Short, |_, _| Cell::Integer(0)),
    is_false("IS_VIRTUAL"),
    is_false("IS_READWRITE"),
    column("DIMENSION_UNIQUE_SETTINGS", Int, |_, _| Cell::Integer(1)),
    column("DIMENSION_MASTER_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.dimension().name(scope))),
    is_true("DIMENSION_IS_VISIBLE"),
    column("HIERARCHY_ORDINAL", UnsignedInt, |_, row| Cell::Integer(row.ordinal)),
    is_true("DIMENSION_IS_SHARED"),
    is_true("HIERARCHY_IS_VISIBLE"),
    masked("HIERARCHY_ORIGIN", UnsignedShort, |_, row| match row.hierarchy {
        Hierarchy::Calendar(..) => Cell::Integer(1),
        Hierarchy::Measures | Hierarchy::Attribute(..) => Cell::Integer(2),
    }),
    null("HIERARCHY_DISPLAY_FOLDER", String),
    column("INSTANCE_SELECTION", UnsignedShort, |_, _| Cell::Integer(0)),
    column("GROUPING_BEHAVIOR", Short, |_, _| Cell::Integer(1)),
    column("STRUCTURE_TYPE", String, |_, _| Cell::text("Natural")),
];

fn hierarchies(scope: &VisibleProject<'_>, cube: usize) -> Vec<CubeHierarchy> {
    let mut found = Vec::new();
    for dimension in scope.dimensions(scope.cubes()[cube]) {
        let hierarchies = scope.hierarchies(dimension).into_iter().zip(0..);
        found.extend(hierarchies.map(|(hierarchy, ordinal)| CubeHierarchy { cube, hierarchy, ordinal }));
    }
    found
}

/// A level of a hierarchy of a cube.
pub(super) struct CubeLevel {
    cube: usize,
    hierarchy: Hierarchy,
    level: Level,
    number: i64,
}

pub(super) static LEVELS: Table<CubeLevel> = Table {
    name: "MDSCHEMA_LEVELS",
    guid: "C8B522DB-5CF3-11CE-ADE5-00AA0044773D",
    description: "The levels of hierarchies, from the top",
    columns: &LEVEL_COLUMNS,
    restrictions: &[CUBE_SOURCE, (mask("LEVEL_VISIBILITY"), 1)],
    source: Source::EachCube("CUBE_NAME", levels),
};

static LEVEL_COLUMNS: [Column<CubeLevel>; 25] = [
    catalog(),
    schema(),
    restricted("CUBE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[row.cube].name)),
    restricted("DIMENSION_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.dimension().unique_name(scope))),
    restricted("HIERARCHY_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.unique_name(scope))),
    restricted("LEVEL_NAME", String, |scope, row| Cell::text(row.level.name(scope, row.hierarchy))),
    restricted("LEVEL_UNIQUE_NAME", String, |scope, row| Cell::text(row.level.unique_name(scope, row.hierarchy))),
    null("LEVEL_GUID", Uuid),
    column("LEVEL_CAPTION", String, |scope, row| Cell::text(row.level.caption(scope, row.hierarchy))),
    column("LEVEL_NUMBER", UnsignedInt, |_, row| Cell::Integer(row.number)),
    column("LEVEL_CARDINALITY", UnsignedInt, |_, row| Cell::Integer(i64::from(row.level == Level::All))),
    column("LEVEL_TYPE", Int, |_, row| Cell::Integer(row.level.kind())),
    column("DESCRIPTION", String, |scope, row| {
        let hierarchy = (row.level == Level::Attribute).then_some(row.hierarchy);
        Cell::optional(hierarchy.and_then(|hierarchy| hierarchy.description(scope)))
    }),
    column("CUSTOM_ROLLUP_SETTINGS", Int, |_, _| Cell::Integer(0)),
    column("LEVEL_UNIQUE_SETTINGS", Int, |_, row| Cell::Integer(i64::from(row.level == Level::Attribute))),
    is_true("LEVEL_IS_VISIBLE"),
    null("LEVEL_ORDERING_PROPERTY", String),
    column("LEVEL_DBTYPE", Int, |scope, row| match (row.level, row.hierarchy.attribute(scope)) {
        (Level::Attribute, Some(attribute)) => {
            Cell::Integer(crate::scope::data_type(terrane_dax::Type::of_dimension(attribute)))
        }
        _ => Cell::Integer(130),
    }),
    null("LEVEL_MASTER_UNIQUE_NAME", String),
    null("LEVEL_NAME_SQL_COLUMN_NAME", String),
    null("LEVEL_KEY_SQL_COLUMN_NAME", String),
    null("LEVEL_UNIQUE_NAME_SQL_COLUMN_NAME", String),
    column("LEVEL_ATTRIBUTE_HIERARCHY_NAME", String, |scope, row| {
        let attribute = row.hierarchy.attribute(scope).filter(|_| row.level != Level::All);
        attribute.map_or(Cell::Null, |attribute| Cell::text(&*attribute.name))
    }),
    column("LEVEL_KEY_CARDINALITY", UnsignedShort, |_, _| Cell::Integer(1)),
    masked("LEVEL_ORIGIN", UnsignedShort, |_, row| match row.hierarchy {
        Hierarchy::Calendar(..) => Cell::Integer(1),
        Hierarchy::Measures | Hierarchy::Attribute(..) => Cell::Integer(2),
    }),
];

fn levels(scope: &VisibleProject<'_>, cube: usize) -> Vec<CubeLevel> {
    let mut found = Vec::new();
    for CubeHierarchy { hierarchy, .. } in hierarchies(scope, cube) {
        let levels = scope.levels(hierarchy).into_iter().zip(0..);
        found.extend(levels.map(|(level, number)| CubeLevel { cube, hierarchy, level, number }));
    }
    found
}
