//! A cube to register (specification, "Cube registration body").

use serde_json::Value as Json;
use terrane_app::projects::{NewCube, NewDimension, NewMeasure};

use super::body::parse;
use super::fields::{Fields, Misfit, Path};

pub(super) const CUBE: &[&str] = &["name", "sql_table", "title", "description", "measures", "dimensions"];
pub(super) const MEASURE: &[&str] = &["name", "type", "sql", "title", "description", "format"];
pub(super) const DIMENSION: &[&str] =
    &["name", "type", "sql", "title", "description", "format", "primary_key", "granularities"];
const NAME_FITS: &str = "a name in snake_case";
const SQL_FITS: &str = "an SQL expression";
const TEXT_FITS: &str = "a text";

/// What isn't a cube is told by the compiler, as for a project's file.
pub(crate) fn cube_from_wire(body: &[u8]) -> Result<NewCube, Misfit> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", CUBE)?;
    Ok(NewCube {
        name: fields.required_text("name", NAME_FITS)?.to_owned(),
        sql_table: fields.required_text("sql_table", "a table's name, such as `sales.orders`")?.to_owned(),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        measures: fields.list("measures", "a list of measures", measure)?,
        dimensions: fields.list("dimensions", "a list of dimensions", dimension)?,
    })
}

fn measure(item: &Json, path: &Path<'_>) -> Result<NewMeasure, Misfit> {
    let fields = Fields::new(item, path, "a measure", MEASURE)?;
    Ok(NewMeasure {
        name: fields.required_text("name", NAME_FITS)?.to_owned(),
        kind: fields.required_text("type", "a measure's type, such as `sum`")?.to_owned(),
        sql: fields.text("sql", SQL_FITS)?.map(str::to_owned),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        format: text(&fields, "format")?,
    })
}

fn dimension(item: &Json, path: &Path<'_>) -> Result<NewDimension, Misfit> {
    let fields = Fields::new(item, path, "a dimension", DIMENSION)?;
    let granularities = fields.list("granularities", "a list of granularities", |item, path| match item {
        Json::String(word) => Ok(word.clone()),
        other => Err(path.wrong_type(other, "a granularity, such as `day`")),
    })?;
    Ok(NewDimension {
        name: fields.required_text("name", NAME_FITS)?.to_owned(),
        kind: fields.required_text("type", "a dimension's type, such as `string`")?.to_owned(),
        sql: fields.required_text("sql", SQL_FITS)?.to_owned(),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        format: text(&fields, "format")?,
        primary_key: fields.flag("primary_key")?.unwrap_or(false),
        granularities: fields.get("granularities").map(|_| granularities),
    })
}

fn text(fields: &Fields<'_>, name: &'static str) -> Result<Option<String>, Misfit> {
    Ok(fields.text(name, TEXT_FITS)?.map(str::to_owned))
}
