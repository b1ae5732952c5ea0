//! Converts the description of a result to metadata of an Arrow schema, and back.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use terrane_app::ports::results::{ResultDescription, ResultsError};
use terrane_compiler::sql::{ColumnFormat, ResultColumn};
use terrane_compiler::types::{DimensionType, Granularity};

use crate::unavailable;

const KEY: &str = "terrane.key";
const MEASURE: &str = "terrane.measure";
const TYPE: &str = "terrane.type";
const FORMAT: &str = "terrane.format";
const GRANULARITY: &str = "terrane.granularity";
const ZONE: &str = "terrane.zone";
const AS_OF: &str = "terrane.as_of";
/// The warnings, one per line.
const WARNINGS: &str = "terrane.warnings";

/// Returns the schema of a stored result: the columns without dictionaries, with the description as metadata.
pub(crate) fn with_description(description: &ResultDescription, schema: &Schema) -> SchemaRef {
    let fields = description.columns.iter().zip(schema.fields()).map(|(column, field)| {
        let ty = match field.data_type() {
            DataType::Dictionary(_, values) => (**values).clone(),
            other => other.clone(),
        };
        Field::new(field.name(), ty, true).with_metadata(metadata(column))
    });
    let mut facts = HashMap::new();
    facts.extend(description.as_of.map(|as_of| (AS_OF.to_owned(), as_of.to_string())));
    if !description.warnings.is_empty() {
        let lines: Vec<String> = description.warnings.iter().map(|warning| warning.replace('\n', " ")).collect();
        facts.insert(WARNINGS.to_owned(), lines.join("\n"));
    }
    Arc::new(Schema::new_with_metadata(fields.collect::<Vec<_>>(), facts))
}

/// Returns the description of a stored result from the metadata of its schema.
pub(crate) fn description(schema: &Schema) -> Result<ResultDescription, ResultsError> {
    let zones = TimeZoneDatabase::bundled();
    let columns = schema.fields().iter().map(|field| column(field.metadata(), &zones)).collect::<Result<_, _>>()?;
    let as_of = schema.metadata().get(AS_OF).map(|time| time.parse().map_err(unavailable)).transpose()?;
    let warnings = schema.metadata().get(WARNINGS).map_or("", String::as_str).lines().map(str::to_owned).collect();
    Ok(ResultDescription { columns, as_of, warnings })
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
        (TYPE.to_owned(), column.ty.as_str().to_owned()),
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
    let ty = DimensionType::ALL.into_iter().find(|known| known.as_str() == ty).ok_or_else(|| odd(TYPE))?;
    Ok(ResultColumn { key: word(KEY)?.into(), is_measure: word(MEASURE)? == "true", ty, format })
}
