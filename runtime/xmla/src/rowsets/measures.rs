//! Measures of cubes.

use super::columns::{CUBE_SOURCE, catalog, column, is_true, mask, null, restricted, restricted_null, schema};
use crate::rowset::ColumnType::{Int, Short, String, UnsignedShort, Uuid};
use crate::rowset::{Cell, Source, Table};
use crate::scope::{MeasureRef, VisibleProject};

/// A measure of a cube.
pub(super) struct CubeMeasure {
    cube: usize,
    measure: MeasureRef,
}

pub(super) static MEASURES: Table<CubeMeasure> = Table {
    name: "MDSCHEMA_MEASURES",
    guid: "C8B522DC-5CF3-11CE-ADE5-00AA0044773D",
    description: "The measures of cubes, and the metrics that are computed from them",
    columns: &[
        catalog(),
        schema(),
        restricted("CUBE_NAME", String, |scope, row| Cell::text(&*scope.cubes()[row.cube].name)),
        restricted("MEASURE_NAME", String, |scope, row| Cell::text(row.measure.name(scope))),
        restricted("MEASURE_UNIQUE_NAME", String, |scope, row| Cell::text(row.measure.unique_name(scope))),
        column("MEASURE_CAPTION", String, |scope, row| Cell::text(&*row.measure.presentation(scope).title)),
        null("MEASURE_GUID", Uuid),
        column("MEASURE_AGGREGATOR", Int, |scope, row| Cell::Integer(row.measure.aggregator(scope))),
        column("DATA_TYPE", UnsignedShort, |scope, row| Cell::Integer(row.measure.data_type(scope))),
        null("NUMERIC_PRECISION", UnsignedShort),
        null("NUMERIC_SCALE", Short),
        null("MEASURE_UNITS", String),
        column("DESCRIPTION", String, |scope, row| Cell::optional(row.measure.description(scope))),
        null("EXPRESSION", String),
        is_true("MEASURE_IS_VISIBLE"),
        null("LEVELS_LIST", String),
        null("MEASURE_NAME_SQL_COLUMN_NAME", String),
        column("MEASURE_UNQUALIFIED_CAPTION", String, |scope, row| Cell::text(&*row.measure.presentation(scope).title)),
        restricted_null("MEASUREGROUP_NAME", String),
        null("MEASURE_DISPLAY_FOLDER", String),
        column("DEFAULT_FORMAT_STRING", String, |scope, row| match row.measure.presentation(scope).format.as_deref() {
            Some("currency") => Cell::text("Currency"),
            Some("percent") => Cell::text("Percent"),
            _ => Cell::Null,
        }),
    ],
    restrictions: &[CUBE_SOURCE, (mask("MEASURE_VISIBILITY"), 1)],
    source: Source::EachCube("CUBE_NAME", measures),
};

fn measures(scope: &VisibleProject<'_>, cube: usize) -> Vec<CubeMeasure> {
    scope.measures(scope.cubes()[cube]).into_iter().map(|measure| CubeMeasure { cube, measure }).collect()
}
