//! Columns that several rowsets have.

use crate::rowset::{Cell, Column, ColumnType, Field, Match};
use crate::scope::VisibleProject;

/// The function that returns the value of a column in a row.
pub(super) type Value<R> = for<'a> fn(&'a VisibleProject<'a>, &'a R) -> Cell<'a>;

pub(super) const fn column<R>(name: &'static str, ty: ColumnType, value: Value<R>) -> Column<R> {
    Column { field: Field::new(name, ty), value }
}

/// Returns a column by which rows can be restricted.
pub(super) const fn restricted<R>(name: &'static str, ty: ColumnType, value: Value<R>) -> Column<R> {
    Column { field: Field::new(name, ty).restricted(), value }
}

/// Returns a column by which rows can be restricted with a bit mask.
pub(super) const fn masked<R>(name: &'static str, ty: ColumnType, value: Value<R>) -> Column<R> {
    Column { field: Field::new(name, ty).masked(), value }
}

/// Returns a column that is always null.
pub(super) const fn null<R>(name: &'static str, ty: ColumnType) -> Column<R> {
    column(name, ty, |_, _| Cell::Null)
}

/// Returns a column that is always null, by which rows can be restricted.
pub(super) const fn restricted_null<R>(name: &'static str, ty: ColumnType) -> Column<R> {
    restricted(name, ty, |_, _| Cell::Null)
}

pub(super) const fn catalog<R>() -> Column<R> {
    restricted("CATALOG_NAME", ColumnType::String, |scope, _| Cell::text(&*scope.info.catalog))
}

pub(super) const fn schema<R>() -> Column<R> {
    restricted_null("SCHEMA_NAME", ColumnType::String)
}

pub(super) const fn is_true<R>(name: &'static str) -> Column<R> {
    column(name, ColumnType::Boolean, |_, _| Cell::Boolean(true))
}

pub(super) const fn is_false<R>(name: &'static str) -> Column<R> {
    column(name, ColumnType::Boolean, |_, _| Cell::Boolean(false))
}

/// The restriction CUBE_SOURCE. All cubes have the value 1, which marks cubes as opposed to dimensions.
pub(super) const CUBE_SOURCE: (Field, i64) = (mask("CUBE_SOURCE"), 1);

/// Returns a restriction that compares a bit mask and does not belong to a column.
pub(super) const fn mask(name: &'static str) -> Field {
    Field { name, ty: ColumnType::UnsignedShort, restriction: Some(Match::Mask) }
}
