//! The registration of a cube: the body of `POST /api/v1/query/meta/cubes`.

use schemars::JsonSchema;
use serde_json::{Map, Value as Json, json};
use terrane_app::projects::{NewCube, NewDimension, NewMeasure};

use crate::body::parse;
use crate::fields::{FieldError, Fields, Path};

/// A cube to register. Types and SQL are checked as in the files of a project.
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
    let cube = NewCube {
        name: fields.required_string("name", EXPECTED_NAME)?.to_owned(),
        sql_table: fields.required_string("sql_table", "a table's name, such as `sales.orders`")?.to_owned(),
        title: text(&fields, "title")?,
        description: text(&fields, "description")?,
        measures: fields.list("measures", "a list of measures", measure)?,
        dimensions: fields.list("dimensions", "a list of dimensions", dimension)?,
        ..NewCube::default()
    };
    Ok(NewCube { entry: entry(&cube).into(), ..cube })
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

/// Returns the cube as an entry of `cubes:` in a project file.
fn entry(cube: &NewCube) -> String {
    let measures = cube.measures.iter().map(|measure| {
        let mut entry = Map::new();
        put(&mut entry, "name", Some(&measure.name));
        put(&mut entry, "type", Some(&measure.kind));
        put(&mut entry, "sql", measure.sql.as_ref());
        put(&mut entry, "title", measure.title.as_ref());
        put(&mut entry, "description", measure.description.as_ref());
        put(&mut entry, "format", measure.format.as_ref());
        Json::Object(entry)
    });
    let dimensions = cube.dimensions.iter().map(|dimension| {
        let mut entry = Map::new();
        put(&mut entry, "name", Some(&dimension.name));
        put(&mut entry, "type", Some(&dimension.kind));
        put(&mut entry, "sql", Some(&dimension.sql));
        put(&mut entry, "title", dimension.title.as_ref());
        put(&mut entry, "description", dimension.description.as_ref());
        put(&mut entry, "format", dimension.format.as_ref());
        if dimension.primary_key {
            entry.insert("primary_key".to_owned(), json!(true));
        }
        // Metadata has an empty list of granularities for a dimension that is not a time. Such a list is left out, so
        // that a cube can be registered as metadata describes it.
        let is_implied = |list: &&Vec<String>| list.is_empty() && dimension.kind != "time";
        if let Some(granularities) = dimension.granularities.as_ref().filter(|list| !is_implied(list)) {
            entry.insert("granularities".to_owned(), json!(granularities));
        }
        Json::Object(entry)
    });
    let mut entry = Map::new();
    put(&mut entry, "name", Some(&cube.name));
    put(&mut entry, "sql_table", Some(&cube.sql_table));
    put(&mut entry, "title", cube.title.as_ref());
    put(&mut entry, "description", cube.description.as_ref());
    entry.insert("measures".to_owned(), measures.collect());
    entry.insert("dimensions".to_owned(), dimensions.collect());
    Json::Object(entry).to_string()
}

fn put(entry: &mut Map<String, Json>, key: &str, value: Option<&String>) {
    if let Some(value) = value {
        entry.insert(key.to_owned(), json!(value));
    }
}
