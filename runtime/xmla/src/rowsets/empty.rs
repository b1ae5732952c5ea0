//! Rowsets for objects that projects do not have. Clients request them and expect their columns.

use super::columns::{CUBE_SOURCE, catalog, mask, null, restricted_null, schema};
use crate::rowset::ColumnType::{Boolean, Int, Short, String, UnsignedInt, UnsignedShort};
use crate::rowset::{Source, Table};

pub(super) static ACTIONS: Table<()> = Table {
    name: "MDSCHEMA_ACTIONS",
    guid: "A07CCD08-8148-11D0-87BB-00C04FC33942",
    description: "Actions of clients: none",
    columns: &[
        catalog(),
        schema(),
        restricted_null("CUBE_NAME", String),
        restricted_null("ACTION_NAME", String),
        restricted_null("ACTION_TYPE", Int),
        restricted_null("COORDINATE", String),
        restricted_null("COORDINATE_TYPE", Int),
        null("ACTION_CAPTION", String),
        null("DESCRIPTION", String),
        null("CONTENT", String),
        null("APPLICATION", String),
        restricted_null("INVOCATION", Int),
    ],
    restrictions: &[CUBE_SOURCE],
    source: Source::Once(|_| Vec::new()),
};

pub(super) static KPIS: Table<()> = Table {
    name: "MDSCHEMA_KPIS",
    guid: "2AE44109-ED3D-4842-B16F-B694D1CB0E3F",
    description: "Key performance indicators: none",
    columns: &[
        catalog(),
        schema(),
        restricted_null("CUBE_NAME", String),
        null("MEASUREGROUP_NAME", String),
        restricted_null("KPI_NAME", String),
        null("KPI_CAPTION", String),
        null("KPI_DESCRIPTION", String),
        null("KPI_DISPLAY_FOLDER", String),
        null("KPI_VALUE", String),
        null("KPI_GOAL", String),
        null("KPI_STATUS", String),
        null("KPI_TREND", String),
        null("KPI_STATUS_GRAPHIC", String),
        null("KPI_TREND_GRAPHIC", String),
        null("KPI_WEIGHT", String),
        null("KPI_CURRENT_TIME_MEMBER", String),
        null("KPI_PARENT_KPI_NAME", String),
        null("SCOPE", Int),
        null("ANNOTATIONS", String),
    ],
    restrictions: &[CUBE_SOURCE],
    source: Source::Once(|_| Vec::new()),
};

pub(super) static MEASUREGROUPS: Table<()> = Table {
    name: "MDSCHEMA_MEASUREGROUPS",
    guid: "E1625EBF-FA96-42FD-BEA6-DB90ADAFD96B",
    description: "Groups of measures: none",
    columns: &[
        catalog(),
        schema(),
        restricted_null("CUBE_NAME", String),
        restricted_null("MEASUREGROUP_NAME", String),
        null("DESCRIPTION", String),
        null("IS_WRITE_ENABLED", Boolean),
        null("MEASUREGROUP_CAPTION", String),
    ],
    restrictions: &[CUBE_SOURCE],
    source: Source::Once(|_| Vec::new()),
};

pub(super) static MEASUREGROUP_DIMENSIONS: Table<()> = Table {
    name: "MDSCHEMA_MEASUREGROUP_DIMENSIONS",
    guid: "A07CCD33-8148-11D0-87BB-00C04FC33942",
    description: "Dimensions of groups of measures: none",
    columns: &[
        catalog(),
        schema(),
        restricted_null("CUBE_NAME", String),
        restricted_null("MEASUREGROUP_NAME", String),
        null("MEASUREGROUP_CARDINALITY", String),
        restricted_null("DIMENSION_UNIQUE_NAME", String),
        null("DIMENSION_CARDINALITY", String),
        null("DIMENSION_IS_VISIBLE", Boolean),
        null("DIMENSION_IS_FACT_DIMENSION", Boolean),
        null("DIMENSION_PATH", String),
        null("DIMENSION_GRANULARITY", String),
    ],
    restrictions: &[CUBE_SOURCE, (mask("DIMENSION_VISIBILITY"), 1)],
    source: Source::Once(|_| Vec::new()),
};

pub(super) static PROPERTIES: Table<()> = Table {
    name: "MDSCHEMA_PROPERTIES",
    guid: "C8B522DD-5CF3-11CE-ADE5-00AA0044773D",
    description: "Properties of members: none",
    columns: &[
        catalog(),
        schema(),
        restricted_null("CUBE_NAME", String),
        restricted_null("DIMENSION_UNIQUE_NAME", String),
        restricted_null("HIERARCHY_UNIQUE_NAME", String),
        restricted_null("LEVEL_UNIQUE_NAME", String),
        restricted_null("MEMBER_UNIQUE_NAME", String),
        restricted_null("PROPERTY_TYPE", Short),
        restricted_null("PROPERTY_NAME", String),
        null("PROPERTY_CAPTION", String),
        null("DATA_TYPE", UnsignedShort),
        null("CHARACTER_MAXIMUM_LENGTH", UnsignedInt),
        null("CHARACTER_OCTET_LENGTH", UnsignedInt),
        null("NUMERIC_PRECISION", UnsignedShort),
        null("NUMERIC_SCALE", Short),
        null("DESCRIPTION", String),
        restricted_null("PROPERTY_CONTENT_TYPE", Short),
        null("SQL_COLUMN_NAME", String),
        null("LANGUAGE", UnsignedShort),
        restricted_null("PROPERTY_ORIGIN", UnsignedShort),
        null("PROPERTY_ATTRIBUTE_HIERARCHY_NAME", String),
        null("PROPERTY_CARDINALITY", String),
        null("MIME_TYPE", String),
        null("PROPERTY_IS_VISIBLE", Boolean),
    ],
    restrictions: &[CUBE_SOURCE, (mask("PROPERTY_VISIBILITY"), 1)],
    source: Source::Once(|_| Vec::new()),
};

pub(super) static SETS: Table<()> = Table {
    name: "MDSCHEMA_SETS",
    guid: "A07CCD0B-8148-11D0-87BB-00C04FC33942",
    description: "Named sets: none",
    columns: &[
        catalog(),
        schema(),
        restricted_null("CUBE_NAME", String),
        restricted_null("SET_NAME", String),
        restricted_null("SCOPE", Int),
        null("DESCRIPTION", String),
        null("EXPRESSION", String),
        null("DIMENSIONS", String),
        null("SET_CAPTION", String),
        null("SET_DISPLAY_FOLDER", String),
        null("SET_EVALUATION_CONTEXT", Int),
    ],
    restrictions: &[CUBE_SOURCE, (mask("SET_VISIBILITY"), 1), (mask("HIERARCHY_VISIBILITY"), 1)],
    source: Source::Once(|_| Vec::new()),
};
