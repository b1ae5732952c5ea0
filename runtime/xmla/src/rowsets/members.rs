//! Members of hierarchies. A query reads them before the rows are written, and they are part of the scope.

use super::columns::{catalog, column, is_false, null, restricted, restricted_null, schema};
use crate::rowset::ColumnType::{Boolean, Int, String, UnsignedInt, Uuid};
use crate::rowset::{Cell, Column, ColumnType, Field, Source, Table};
use crate::scope::{Hierarchy, Level, Member, VisibleProject, bracketed};

/// The name of the rowset whose rows need a query.
pub const NAME: &str = "MDSCHEMA_MEMBERS";
/// The index of `HIERARCHY_UNIQUE_NAME`.
pub const HIERARCHY: usize = 4;

pub(super) static MEMBERS: Table<Member> = Table {
    name: NAME,
    guid: "C8B522DE-5CF3-11CE-ADE5-00AA0044773D",
    description: "The members of one hierarchy, at most 10,000",
    columns: &COLUMNS,
    restrictions: &[super::columns::CUBE_SOURCE, (TREE_OPERATOR, 0xFF)],
    source: Source::Once(|scope| scope.members.clone()),
};

/// The tree operator, which selects members related to the named member. Without a named member, it has no effect.
const TREE_OPERATOR: Field = Field::new("TREE_OP", ColumnType::Int).masked();

static COLUMNS: [Column<Member>; 23] = [
    catalog(),
    schema(),
    restricted("CUBE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[row.cube].name)),
    restricted("DIMENSION_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.dimension().unique_name(scope))),
    restricted("HIERARCHY_UNIQUE_NAME", String, |scope, row| Cell::text(row.hierarchy.unique_name(scope))),
    restricted("LEVEL_UNIQUE_NAME", String, |scope, row| Cell::text(level_unique_name(scope, row))),
    restricted("LEVEL_NUMBER", UnsignedInt, |_, row| Cell::Integer(i64::from(row.level))),
    column("MEMBER_ORDINAL", UnsignedInt, |_, row| Cell::Integer(i64::from(row.ordinal))),
    restricted("MEMBER_NAME", String, |_, row| Cell::text(&*row.caption)),
    restricted("MEMBER_UNIQUE_NAME", String, |scope, row| Cell::text(unique_name(scope, row))),
    restricted("MEMBER_TYPE", Int, |_, row| Cell::Integer(member_type(row))),
    null("MEMBER_GUID", Uuid),
    restricted("MEMBER_CAPTION", String, |_, row| Cell::text(&*row.caption)),
    column("CHILDREN_CARDINALITY", UnsignedInt, |_, row| Cell::Integer(i64::from(row.children))),
    column("PARENT_LEVEL", UnsignedInt, |scope, row| {
        Cell::Integer(parent(scope, row).map_or(0, |parent| i64::from(parent.level)))
    }),
    column("PARENT_UNIQUE_NAME", String, |scope, row| {
        parent(scope, row).map_or(Cell::Null, |parent| Cell::text(unique_name(scope, parent)))
    }),
    column("PARENT_COUNT", UnsignedInt, |_, row| Cell::Integer(i64::from(row.parent.is_some()))),
    null("DESCRIPTION", String),
    null("EXPRESSION", String),
    column("MEMBER_KEY", String, |_, row| Cell::optional(row.key.as_deref())),
    is_false("IS_PLACEHOLDERMEMBER"),
    column("IS_DATAMEMBER", Boolean, |_, _| Cell::Boolean(false)),
    restricted_null("SCOPE", Int),
];

fn level_unique_name(scope: &VisibleProject<'_>, row: &Member) -> std::string::String {
    let levels = scope.levels(row.hierarchy);
    let level = levels.get(row.level as usize).copied().unwrap_or(Level::All);
    level.unique_name(scope, row.hierarchy)
}

/// Returns the parent of a member.
fn parent<'s>(scope: &'s VisibleProject<'_>, row: &Member) -> Option<&'s Member> {
    scope.members.get(row.parent? as usize)
}

/// Returns the unique name of a member. The name of a period contains its level, because a year and a month may have
/// equal keys.
pub(crate) fn unique_name(scope: &VisibleProject<'_>, row: &Member) -> std::string::String {
    let hierarchy = match (row.hierarchy, row.level) {
        (Hierarchy::Calendar(..), 1..) => level_unique_name(scope, row),
        (hierarchy, _) => hierarchy.unique_name(scope),
    };
    match (row.hierarchy, row.level, &row.key) {
        (Hierarchy::Measures, ..) => format!("{hierarchy}.{}", bracketed(&[&row.caption])),
        (_, 0, _) => row.hierarchy.all_member(scope).unwrap_or(hierarchy),
        // Engines write a member without a value in this form.
        (_, _, None) => format!("{hierarchy}.&"),
        (_, _, Some(key)) => format!("{hierarchy}.&{}", bracketed(&[key])),
    }
}

fn member_type(row: &Member) -> i64 {
    match (row.hierarchy, row.level) {
        (Hierarchy::Measures, _) => 3,
        (_, 0) => 2,
        _ => 1,
    }
}
