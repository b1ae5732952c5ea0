//! The registration of a cube (specification, "Cube registration body").

use schemars::JsonSchema;
use serde_json::Value as Json;
use terrane_app::projects::{NewCube, NewDimension, NewMeasure};

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};

/// A cube to register. Types and SQL are checked as those of a project's files.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CubeRegistration {
    pub name: String,
    /// The name of a table, like `sales.orders`.
    pub sql_table: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub measures: Option<Vec<MeasureRegistration>>,
    pub dimensions: Option<Vec<DimensionRegistration>>,
}

/// A measure of a cube to register.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "NewMeasure", deny_unknown_fields)]
pub struct MeasureRegistration {
    pub name: String,
    pub r#type: String,
    pub sql: Option<String>,
    pub title: Option<String>,
    pub description: Option<String>,
    pub format: Option<String>,
}

/// A dimension of a cube to register.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "NewDimension", deny_unknown_fields)]
pub struct DimensionRegistration {
    pub name: String,
    pub r#type: String,
    pub sql: String,
    pub title: Option<String>,
    pub description: Option<String>,
    pub format: Option<String>,
    pub primary_key: Option<bool>,
    pub granularities: Option<Vec<String>>,
}

pub(crate) const CUBE: &[&str] = &["name", "sql_table", "title", "description", "measures", "dimensions"];
pub(crate) const MEASURE: &[&str] = &["name", "type", "sql", "title", "description", "format"];
pub(crate) const DIMENSION: &[&str] =
    &["name", "type", "sql", "title", "description", "format", "primary_key", "granularities"];
const EXPECTED_NAME: &str = "a name in snake_case";
const EXPECTED_SQL: &str = "an SQL expression";
const EXPECTED_TEXT: &str = "a string";

/// Reads a registration. Types and expressions are checked by the compiler, as those of a project's files.
///
/// # Errors
/// Names the field that is invalid.
pub fn cube_from_wire(body: &[u8]) -> Result<NewCube, FieldError> {
    let json = parse(body)?;
    let fields = Fields::new(&json, &Path::ROOT, "an object", CUBE)?;
    Ok(NewCube {
        name: fields.required_string("name", EXPECTED_NAME)?.to_owned(),
        sql_table: fields.required_string("sql_table", "a table's name, such as `sales.orders`")?.to_owned(),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        measures: fields.list("measures", "a list of measures", measure)?,
        dimensions: fields.list("dimensions", "a list of dimensions", dimension)?,
    })
}

fn measure(item: &Json, path: &Path<'_>) -> Result<NewMeasure, FieldError> {
    let fields = Fields::new(item, path, "a measure", MEASURE)?;
    Ok(NewMeasure {
        name: fields.required_string("name", EXPECTED_NAME)?.to_owned(),
        kind: fields.required_string("type", "a measure's type, such as `sum`")?.to_owned(),
        sql: fields.string("sql", EXPECTED_SQL)?.map(str::to_owned),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        format: text(&fields, "format")?,
    })
}

fn dimension(item: &Json, path: &Path<'_>) -> Result<NewDimension, FieldError> {
    let fields = Fields::new(item, path, "a dimension", DIMENSION)?;
    let granularities = fields.list("granularities", "a list of granularities", |item, path| match item {
        Json::String(word) => Ok(word.clone()),
        other => Err(path.invalid_type(other, "a granularity, such as `day`")),
    })?;
    Ok(NewDimension {
        name: fields.required_string("name", EXPECTED_NAME)?.to_owned(),
        kind: fields.required_string("type", "a dimension's type, such as `string`")?.to_owned(),
        sql: fields.required_string("sql", EXPECTED_SQL)?.to_owned(),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        format: text(&fields, "format")?,
        primary_key: fields.boolean("primary_key")?.unwrap_or(false),
        granularities: fields.get("granularities").map(|_| granularities),
    })
}

fn text(fields: &Fields<'_>, name: &'static str) -> Result<Option<String>, FieldError> {
    Ok(fields.string(name, EXPECTED_TEXT)?.map(str::to_owned))
}
