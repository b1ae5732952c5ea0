//! Rowsets about the server itself: data sources, properties, literals, keywords, and the list of rowsets.

use std::collections::BTreeSet;

use super::columns::{column, restricted};
use crate::rowset::ColumnType::{self, Boolean, Int, Nested, String, UnsignedLong, Uuid};
use crate::rowset::{Cell, Field, Rowset, Source, Table};

const PRODUCT: &str = "Terrane";

pub(super) static DATASOURCES: Table<()> = Table {
    name: "DISCOVER_DATASOURCES",
    guid: "06C03D41-F66D-49F3-B1B8-987F7AF4CF18",
    description: "The data source: this server",
    columns: &[
        restricted("DataSourceName", String, |scope, _| Cell::text(&*scope.info.catalog)),
        column("DataSourceDescription", String, |_, _| Cell::text("the semantic layer of the project")),
        restricted("URL", String, |scope, _| Cell::text(&*scope.info.url)),
        column("DataSourceInfo", String, |scope, _| Cell::text(&*scope.info.catalog)),
        restricted("ProviderName", String, |_, _| Cell::text(PRODUCT)),
        restricted("ProviderType", String, |_, _| Cell::text("TDP")),
        restricted("AuthenticationMode", String, |_, _| Cell::text("Authenticated")),
    ],
    restrictions: &[],
    source: Source::Once(|_| vec![()]),
};

/// A property of requests or of the server.
pub(super) struct Property {
    name: &'static str,
    description: &'static str,
    ty: &'static str,
    access: &'static str,
    value: &'static str,
}

const fn property(
    name: &'static str,
    ty: &'static str,
    access: &'static str,
    value: &'static str,
    description: &'static str,
) -> Property {
    Property { name, description, ty, access, value }
}

const READ: &str = "Read";
const WRITE: &str = "Write";
const READ_WRITE: &str = "ReadWrite";

static ALL_PROPERTIES: [Property; 18] = [
    property("AxisFormat", "string", WRITE, "TupleFormat", "accepted; results are tabular"),
    property("BeginRange", "int", WRITE, "-1", "the index of the first row; -1 for no bound"),
    property("Catalog", "string", READ_WRITE, "", "the catalog: the project"),
    property("Content", "string", WRITE, "SchemaData", "None, Schema, Data or SchemaData"),
    property("DataSourceInfo", "string", READ_WRITE, "", "the data source"),
    property("DBMSVersion", "string", READ, "", "the version of the server"),
    property("EndRange", "int", WRITE, "-1", "the index of the last row; -1 for no bound"),
    property("Format", "string", WRITE, "Tabular", "Tabular"),
    property("LocaleIdentifier", "int", READ_WRITE, "1033", "accepted; messages are in English"),
    property("MDXSupport", "string", READ, "Core", "required by the specification; statements are in DAX"),
    property("Password", "string", WRITE, "", "not used; credentials are in the header of HTTP"),
    property("ProviderName", "string", READ, PRODUCT, "the name of the provider"),
    property("ProviderVersion", "string", READ, "", "the version of the provider"),
    property("ServerName", "string", READ, PRODUCT, "the name of the server"),
    property("StateSupport", "string", READ, "Sessions", "sessions are supported"),
    property("Timeout", "int", READ_WRITE, "0", "the time limit in seconds; 0 for the limit of the server"),
    property("UserName", "string", READ, "", "not used; credentials are in the header of HTTP"),
    property("VisualMode", "int", READ_WRITE, "0", "accepted; results are tabular"),
];

pub(super) static PROPERTIES: Table<&'static Property> = Table {
    name: "DISCOVER_PROPERTIES",
    guid: "4B40ADFB-8B09-4758-97BB-636E8AE97BCF",
    description: "The properties of requests and of the server",
    columns: &[
        restricted("PropertyName", String, |_, row| Cell::text(row.name)),
        column("PropertyDescription", String, |_, row| Cell::text(row.description)),
        column("PropertyType", String, |_, row| Cell::text(row.ty)),
        column("PropertyAccessType", String, |_, row| Cell::text(row.access)),
        column("IsRequired", Boolean, |_, _| Cell::Boolean(false)),
        column("Value", String, |scope, row| match row.name {
            "Catalog" | "DataSourceInfo" => Cell::text(&*scope.info.catalog),
            "DBMSVersion" | "ProviderVersion" => Cell::text(&*scope.info.version),
            _ => Cell::text(row.value),
        }),
    ],
    restrictions: &[],
    source: Source::Once(|_| ALL_PROPERTIES.iter().collect()),
};

static RESTRICTION_FIELDS: [Field; 2] = [Field::new("Name", String), Field::new("Type", String)];

pub(super) static SCHEMA_ROWSETS: Table<&'static dyn Rowset> = Table {
    name: "DISCOVER_SCHEMA_ROWSETS",
    guid: "EEA0302B-7922-4992-8991-0E605D0E5593",
    description: "The rowsets with their restrictions",
    columns: &[
        restricted("SchemaName", String, |_, row| Cell::text(row.name())),
        column("SchemaGuid", Uuid, |_, row| Cell::text(row.guid())),
        column("Restrictions", Nested(&RESTRICTION_FIELDS), |_, row| {
            let cells = |field: Field| vec![Cell::text(field.name), Cell::text(field.ty.as_str())];
            Cell::Rows(restrictions(*row).into_iter().map(cells).collect())
        }),
        column("Description", String, |_, row| Cell::text(row.description())),
        column("RestrictionsMask", UnsignedLong, |_, row| {
            let count = restrictions(*row).len() as u32;
            Cell::Integer((1_i64 << count.min(62)) - 1)
        }),
    ],
    restrictions: &[],
    source: Source::Once(|_| super::ALL.to_vec()),
};

/// Returns the restrictions that a rowset announces.
fn restrictions(rowset: &dyn Rowset) -> Vec<Field> {
    let constants = rowset.constants().iter().map(|(field, _)| *field);
    rowset.fields().into_iter().filter(|field| field.restriction.is_some()).chain(constants).collect()
}

/// A value of an enumeration that XMLA defines.
pub(super) struct EnumerationValue {
    name: &'static str,
    description: &'static str,
    ty: &'static str,
    element: &'static str,
    element_description: &'static str,
    value: &'static str,
}

const fn enumeration(
    name: &'static str,
    description: &'static str,
    element: &'static str,
    element_description: &'static str,
    value: &'static str,
) -> EnumerationValue {
    EnumerationValue { name, description, ty: "string", element, element_description, value }
}

static ENUMERATION_VALUES: [EnumerationValue; 11] = [
    enumeration("Access", "access to a property", READ, "the property can be read", "1"),
    enumeration("Access", "access to a property", WRITE, "the property can be set", "2"),
    enumeration("Access", "access to a property", READ_WRITE, "the property can be read and set", "3"),
    enumeration("AuthenticationMode", "the credentials of a data source", "Authenticated", "credentials in HTTP", "2"),
    enumeration("Content", "the parts of a result", "None", "neither schema nor data", "0"),
    enumeration("Content", "the parts of a result", "Schema", "the schema alone", "1"),
    enumeration("Content", "the parts of a result", "Data", "the data alone", "2"),
    enumeration("Content", "the parts of a result", "SchemaData", "schema and data", "3"),
    enumeration("Format", "the form of a result", "Tabular", "rows", "0"),
    enumeration("ProviderType", "the kind of a provider", "TDP", "a tabular data provider", "1"),
    enumeration("StateSupport", "the support of sessions", "Sessions", "sessions are supported", "1"),
];

pub(super) static ENUMERATORS: Table<&'static EnumerationValue> = Table {
    name: "DISCOVER_ENUMERATORS",
    guid: "55A9E78B-ACCB-45B4-95A6-94C5065617A7",
    description: "The enumerations of properties and columns",
    columns: &[
        restricted("EnumName", String, |_, row| Cell::text(row.name)),
        column("EnumDescription", String, |_, row| Cell::text(row.description)),
        column("EnumType", String, |_, row| Cell::text(row.ty)),
        column("ElementName", String, |_, row| Cell::text(row.element)),
        column("ElementDescription", String, |_, row| Cell::text(row.element_description)),
        column("ElementValue", String, |_, row| Cell::text(row.value)),
    ],
    restrictions: &[],
    source: Source::Once(|_| ENUMERATION_VALUES.iter().collect()),
};

/// A literal of statements: a separator or quote, or a kind of names with the characters that such names cannot
/// contain.
pub(super) struct Literal {
    name: &'static str,
    value: Option<&'static str>,
    invalid: Option<&'static str>,
    invalid_start: Option<&'static str>,
    number: i64,
}

const fn literal(name: &'static str, value: &'static str, number: i64) -> Literal {
    Literal { name, value: Some(value), invalid: None, invalid_start: None, number }
}

const fn named(name: &'static str, number: i64) -> Literal {
    Literal { name, value: None, invalid: Some("."), invalid_start: Some("0123456789"), number }
}

static ALL_LITERALS: [Literal; 12] = [
    named("DBLITERAL_CATALOG_NAME", 2),
    literal("DBLITERAL_CATALOG_SEPARATOR", ".", 3),
    named("DBLITERAL_COLUMN_ALIAS", 5),
    named("DBLITERAL_COLUMN_NAME", 6),
    named("DBLITERAL_CUBE_NAME", 21),
    named("DBLITERAL_DIMENSION_NAME", 22),
    named("DBLITERAL_HIERARCHY_NAME", 23),
    named("DBLITERAL_LEVEL_NAME", 24),
    named("DBLITERAL_MEMBER_NAME", 25),
    literal("DBLITERAL_QUOTE_PREFIX", "[", 15),
    literal("DBLITERAL_QUOTE_SUFFIX", "]", 28),
    named("DBLITERAL_TABLE_NAME", 17),
];

pub(super) static LITERALS: Table<&'static Literal> = Table {
    name: "DISCOVER_LITERALS",
    guid: "C3EF5ECB-0A07-4665-A140-B075722DBDC2",
    description: "The literals of names and strings",
    columns: &[
        restricted("LiteralName", String, |_, row| Cell::text(row.name)),
        column("LiteralValue", String, |_, row| Cell::optional(row.value)),
        column("LiteralInvalidChars", String, |_, row| Cell::optional(row.invalid)),
        column("LiteralInvalidStartingChars", String, |_, row| Cell::optional(row.invalid_start)),
        column("LiteralMaxLength", Int, |_, row| Cell::Integer(row.value.map_or(-1, |value| value.len() as i64))),
        column("LiteralNameEnumValue", Int, |_, row| Cell::Integer(row.number)),
    ],
    restrictions: &[],
    source: Source::Once(|_| ALL_LITERALS.iter().collect()),
};

const SYNTAX: [&str; 12] =
    ["ASC", "AT", "BY", "DEFINE", "DESC", "EVALUATE", "IN", "MEASURE", "ORDER", "RETURN", "START", "VAR"];

pub(super) static KEYWORDS: Table<&'static str> = Table {
    name: "DISCOVER_KEYWORDS",
    guid: "1426C443-4CDD-4A40-8F45-572FAB9BBAA1",
    description: "The keywords and functions of DAX",
    columns: &[restricted("Keyword", ColumnType::String, |_, row| Cell::text(*row))],
    restrictions: &[],
    source: Source::Once(|_| {
        let functions = terrane_dax::functions::FUNCTIONS.iter().map(|function| function.name);
        functions.chain(SYNTAX).collect::<BTreeSet<_>>().into_iter().collect()
    }),
};
