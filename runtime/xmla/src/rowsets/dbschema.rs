//! Catalogs, tables and columns, which show the project to relational clients.

use std::borrow::Cow;

use terrane_dax::Type;

use super::columns::{catalog, column, null, restricted, restricted_null};
use crate::rowset::ColumnType::{Boolean, DateTime, Int, Short, String, UnsignedInt, UnsignedShort, Uuid};
use crate::rowset::{Cell, Column, Source, Table};
use crate::scope::{DimensionRef, Hierarchy, MeasureRef, VisibleProject, data_type};

pub(super) static CATALOGS: Table<()> = Table {
    name: "DBSCHEMA_CATALOGS",
    guid: "C8B52211-5CF3-11CE-ADE5-00AA0044773D",
    description: "The catalog: the project",
    columns: &[
        catalog(),
        null("DESCRIPTION", String),
        null("ROLES", String),
        null("DATE_MODIFIED", DateTime),
        column("COMPATIBILITY_LEVEL", Int, |_, _| Cell::Integer(1_200)),
        column("TYPE", Int, |_, _| Cell::Integer(1)),
        column("VERSION", Int, |_, _| Cell::Integer(1)),
        column("DATABASE_ID", String, |scope, _| Cell::text(&*scope.info.catalog)),
        null("DATE_QUERIED", DateTime),
        column("CURRENTLY_USED", Boolean, |_, _| Cell::Boolean(true)),
    ],
    restrictions: &[],
    source: Source::Once(|_| vec![()]),
};

pub(super) static TABLES: Table<usize> = Table {
    name: "DBSCHEMA_TABLES",
    guid: "C8B52229-5CF3-11CE-ADE5-00AA0044773D",
    description: "The cubes as tables",
    columns: &[
        restricted("TABLE_CATALOG", String, |scope, _| Cell::text(&*scope.info.catalog)),
        restricted_null("TABLE_SCHEMA", String),
        restricted("TABLE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[*row].name)),
        restricted("TABLE_TYPE", String, |_, _| Cell::text("TABLE")),
        null("TABLE_GUID", Uuid),
        column("DESCRIPTION", String, |scope, row| Cell::optional(scope.cube_description(scope.cubes()[*row]))),
        null("TABLE_PROPID", UnsignedInt),
        null("DATE_CREATED", DateTime),
        null("DATE_MODIFIED", DateTime),
        restricted("TABLE_OLAP_TYPE", String, |_, _| Cell::text("CUBE")),
    ],
    restrictions: &[],
    source: Source::EachCube("TABLE_NAME", |_, cube| vec![cube]),
};

/// A column of a table, which is a member of a cube.
pub(super) struct TableColumn {
    cube: usize,
    member: TableMember,
    /// The position of the column, counted from 1.
    position: i64,
}

enum TableMember {
    Attribute(Hierarchy),
    Measure(MeasureRef),
}

impl TableColumn {
    fn name<'a>(&'a self, scope: &'a VisibleProject<'a>) -> &'a str {
        match &self.member {
            TableMember::Attribute(hierarchy) => hierarchy.attribute(scope).map_or("", |attribute| &attribute.name),
            TableMember::Measure(measure) => measure.name(scope),
        }
    }

    fn description<'a>(&self, scope: &VisibleProject<'a>) -> Option<Cow<'a, str>> {
        match &self.member {
            TableMember::Attribute(hierarchy) => hierarchy.description(scope),
            TableMember::Measure(measure) => measure.description(scope),
        }
    }

    fn data_type(&self, scope: &VisibleProject<'_>) -> i64 {
        match &self.member {
            TableMember::Attribute(hierarchy) => hierarchy
                .attribute(scope)
                .map_or_else(|| data_type(Type::Text), |attribute| data_type(Type::of_dimension(attribute))),
            TableMember::Measure(measure) => measure.data_type(scope),
        }
    }
}

pub(super) static COLUMNS: Table<TableColumn> = Table {
    name: "DBSCHEMA_COLUMNS",
    guid: "C8B52214-5CF3-11CE-ADE5-00AA0044773D",
    description: "The dimensions and measures of cubes as columns",
    columns: &COLUMN_COLUMNS,
    restrictions: &[],
    source: Source::EachCube("TABLE_NAME", table_columns),
};

static COLUMN_COLUMNS: [Column<TableColumn>; 29] = [
    restricted("TABLE_CATALOG", String, |scope, _| Cell::text(&*scope.info.catalog)),
    restricted_null("TABLE_SCHEMA", String),
    restricted("TABLE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[row.cube].name)),
    restricted("COLUMN_NAME", String, |scope, row| Cell::text(row.name(scope))),
    null("COLUMN_GUID", Uuid),
    null("COLUMN_PROPID", UnsignedInt),
    column("ORDINAL_POSITION", UnsignedInt, |_, row| Cell::Integer(row.position)),
    column("COLUMN_HAS_DEFAULT", Boolean, |_, _| Cell::Boolean(false)),
    null("COLUMN_DEFAULT", String),
    null("COLUMN_FLAGS", UnsignedInt),
    column("IS_NULLABLE", Boolean, |_, _| Cell::Boolean(true)),
    column("DATA_TYPE", UnsignedShort, |scope, row| Cell::Integer(row.data_type(scope))),
    null("TYPE_GUID", Uuid),
    null("CHARACTER_MAXIMUM_LENGTH", UnsignedInt),
    null("CHARACTER_OCTET_LENGTH", UnsignedInt),
    null("NUMERIC_PRECISION", UnsignedShort),
    null("NUMERIC_SCALE", Short),
    null("DATETIME_PRECISION", UnsignedInt),
    null("CHARACTER_SET_CATALOG", String),
    null("CHARACTER_SET_SCHEMA", String),
    null("CHARACTER_SET_NAME", String),
    null("COLLATION_CATALOG", String),
    null("COLLATION_SCHEMA", String),
    null("COLLATION_NAME", String),
    null("DOMAIN_CATALOG", String),
    null("DOMAIN_SCHEMA", String),
    null("DOMAIN_NAME", String),
    column("DESCRIPTION", String, |scope, row| Cell::optional(row.description(scope))),
    restricted("COLUMN_OLAP_TYPE", String, |_, row| match row.member {
        TableMember::Attribute(_) => Cell::text("ATTRIBUTE"),
        TableMember::Measure(_) => Cell::text("MEASURE"),
    }),
];

fn table_columns(scope: &VisibleProject<'_>, cube: usize) -> Vec<TableColumn> {
    let of = scope.cubes()[cube];
    let hierarchies = scope.hierarchies(DimensionRef::Cube(of.id.0)).into_iter();
    let attributes = hierarchies.filter(|hierarchy| matches!(hierarchy, Hierarchy::Attribute(..)));
    let measures = scope.measures(of).into_iter().map(TableMember::Measure);
    let members = attributes.map(TableMember::Attribute).chain(measures);
    members.zip(1..).map(|(member, position)| TableColumn { cube, member, position }).collect()
}
