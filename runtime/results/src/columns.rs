//! Converts the columns of a query to metadata of Arrow fields, and back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_app::ports::results::ResultsError;
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::{DimensionType, Granularity};

use crate::unavailable;

const KEY: &str = "terrane.key";
const MEASURE: &str = "terrane.measure";
const TYPE: &str = "terrane.type";
const FORMAT: &str = "terrane.format";
const GRANULARITY: &str = "terrane.granularity";
const ZONE: &str = "terrane.zone";

const TYPES: [DimensionType; 5] =
    [DimensionType::String, DimensionType::Number, DimensionType::Time, DimensionType::Boolean, DimensionType::Geo];

const fn type_name(ty: DimensionType) -> &'static str {
    match ty {
        DimensionType::String => "string",
        DimensionType::Number => "number",
        DimensionType::Time => "time",
        DimensionType::Boolean => "boolean",
        DimensionType::Geo => "geo",
    }
}

/// Returns the schema of a stored result: the columns without dictionaries, with the query's columns as metadata.
pub(crate) fn with_columns(columns: &[ResultColumn], schema: &Schema) -> SchemaRef {
    let fields = columns.iter().zip(schema.fields()).map(|(column, field)| {
        let ty = match field.data_type() {
            DataType::Dictionary(_, values) => (**values).clone(),
            other => other.clone(),
        };
        Field::new(field.name(), ty, true).with_metadata(metadata(column))
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Returns the columns of a stored result from the metadata of its schema.
pub(crate) fn columns(schema: &Schema) -> Result<Vec<ResultColumn>, ResultsError> {
    let zones = TimeZoneDatabase::bundled();
    schema.fields().iter().map(|field| column(field.metadata(), &zones)).collect()
}

fn metadata(column: &ResultColumn) -> HashMap<String, String> {
    let (format, granularity, zone) = match &column.format {
        ColumnFormat::Plain => ("plain", None, None),
        ColumnFormat::Date(granularity) => ("date", Some(*granularity), None),
        ColumnFormat::Clock(granularity) => ("clock", Some(*granularity), None),
        ColumnFormat::InstantBucket(granularity, zone) => ("instant_bucket", Some(*granularity), Some(zone)),
        ColumnFormat::Instant(zone) => ("instant", None, Some(zone)),
        ColumnFormat::WallClock => ("wall_clock", None, None),
    };
    let mut metadata = HashMap::from([
        (KEY.to_owned(), column.key.to_string()),
        (MEASURE.to_owned(), column.is_measure.to_string()),
        (TYPE.to_owned(), type_name(column.ty).to_owned()),
        (FORMAT.to_owned(), format.to_owned()),
    ]);
    metadata.extend(granularity.map(|granularity| (GRANULARITY.to_owned(), granularity.as_str().to_owned())));
    metadata.extend(zone.map(|zone| (ZONE.to_owned(), zone.iana_name().unwrap_or("UTC").to_owned())));
    metadata
}

fn column(metadata: &HashMap<String, String>, zones: &TimeZoneDatabase) -> Result<ResultColumn, ResultsError> {
    let word = |name: &str| {
        metadata.get(name).map(String::as_str).ok_or_else(|| unavailable(format!("a column has no `{name}`")))
    };
    let odd = |name: &str| unavailable(format!("the `{name}` of a column is unknown"));
    let granularity = || {
        let word = word(GRANULARITY)?;
        Granularity::ALL.into_iter().find(|known| known.as_str() == word).ok_or_else(|| odd(GRANULARITY))
    };
    let zone = || -> Result<TimeZone, ResultsError> { zones.get(word(ZONE)?).map_err(|_| odd(ZONE)) };
    let format = match word(FORMAT)? {
        "plain" => ColumnFormat::Plain,
        "date" => ColumnFormat::Date(granularity()?),
        "clock" => ColumnFormat::Clock(granularity()?),
        "instant_bucket" => ColumnFormat::InstantBucket(granularity()?, zone()?),
        "instant" => ColumnFormat::Instant(zone()?),
        "wall_clock" => ColumnFormat::WallClock,
        _ => return Err(odd(FORMAT)),
    };
    let ty = word(TYPE)?;
    let ty = TYPES.into_iter().find(|known| type_name(*known) == ty).ok_or_else(|| odd(TYPE))?;
    Ok(ResultColumn { key: word(KEY)?.into(), is_measure: word(MEASURE)? == "true", ty, format })
}
