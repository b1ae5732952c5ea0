//! The body of a query (`runtime/docs/reference/query.md`, "The body").
//!
//! In: bytes. Out: a [`QueryRequest`], or a [`FieldError`] that names the field. Unknown fields are rejected with the
//! nearest known one, so that a misspelt filter does not go unnoticed.

mod text;

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value as Json, json};
use terrane_app::query::CacheControl;
use terrane_compiler::query::{MemberRef, OrderBy, PreAggregations, SemanticQuery};
use terrane_compiler::types::Granularity;

use crate::fields::{FieldError, Fields, Path};
use crate::json::Numbers;
use crate::{body, filter, schema, time};

pub use crate::parameters::from_parameters;
pub use text::to_wire;

/// A query, and the form of its answer.
#[derive(Debug, Default)]
pub struct QueryRequest {
    pub query: SemanticQuery,
    pub numbers: Numbers,
    pub cache: CacheControl,
    /// True to return one statement with its values as literals, for `/query/sql`.
    pub inline: bool,
}

/// A query. Members are `cube.member`, `cube.time_dimension.granularity`, or a metric.
#[derive(Debug, JsonSchema)]
#[schemars(deny_unknown_fields, example = example())]
pub struct Query {
    /// Metrics or measures.
    pub metrics: Option<Vec<Member>>,
    /// Measures or metrics, as `metrics`.
    pub measures: Option<Vec<Member>>,
    pub dimensions: Option<Vec<Member>>,
    pub filters: Option<Vec<filter::Filter>>,
    pub order_by: Option<Vec<Order>>,
    /// The same as `order_by`.
    pub order: Option<Vec<Order>>,
    pub limit: Option<schema::Integer>,
    pub offset: Option<schema::Integer>,
    pub time_range: Option<time::TimeRangeBody>,
    pub time_dimensions: Option<Vec<time::TimeDimensionBody>>,
    pub compare_range: Option<time::CompareRangeBody>,
    pub fill_gaps: Option<bool>,
    /// True for rows instead of groups.
    pub ungrouped: Option<bool>,
    /// The cube of members without a cube name.
    pub cube: Option<String>,
    pub segments: Option<Vec<Member>>,
    /// A time zone of the IANA database, like `Europe/Berlin`.
    pub timezone: Option<String>,
    /// False if `meta.total_rows` is not needed; it may then be null.
    pub total: Option<bool>,
    /// True to add the total of each measure, over all groups, as `meta.totals`.
    pub totals: Option<bool>,
    pub numbers: Option<NumberForm>,
    /// False to compute the rows now instead of reading cached ones.
    pub cache: Option<bool>,
    /// The longest time since cached rows were read from the warehouse, in seconds.
    pub max_age: Option<schema::Integer>,
    /// The seconds for which outdated rows will do while new ones are computed; 0: never.
    pub stale: Option<schema::Integer>,
    pub pre_aggregations: Option<PreAggregationUse>,
}

/// Returns the schema of a query as JSON, draft 2020-12, with the definitions that it refers to in `$defs`.
pub fn json_schema() -> Json {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Query>().to_value()
}

fn example() -> Json {
    json!({
        "measures": ["orders.count"], "dimensions": ["orders.created_at.month"],
        "filters": [{ "dimension": "orders.status", "operator": "equals", "value": "paid" }], "limit": 100,
    })
}

/// A query whose SQL is requested.
#[derive(Debug)]
pub struct SqlQuery;

impl JsonSchema for SqlQuery {
    fn schema_name() -> Cow<'static, str> {
        "SqlQuery".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Query::json_schema(generator);
        schema.insert("description".to_owned(), "A query whose SQL is requested.".into());
        if let Some(Json::Object(properties)) = schema.get_mut("properties") {
            let text = "One statement that contains its values, instead of a statement and its values.";
            properties.insert("inline".to_owned(), json!({ "type": ["boolean", "null"], "description": text }));
        }
        schema
    }
}

/// The name of a member.
#[derive(Debug)]
pub struct Member;

impl JsonSchema for Member {
    fn schema_name() -> Cow<'static, str> {
        "MemberRef".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string", "pattern": r"^[^.]+(\.[^.]+){0,2}$", "maxLength": 1024,
            "description": "`cube.member`, `cube.time_dimension.granularity`, or a metric",
            "examples": ["orders.count", "orders.created_at.month"],
        })
    }
}

/// A sort key.
#[derive(Debug, JsonSchema)]
#[schemars(rename = "OrderBy", deny_unknown_fields)]
pub struct Order {
    pub field: Member,
    pub direction: Option<OrderDirection>,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum OrderDirection {
    Asc,
    Desc,
}

#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum NumberForm {
    Number,
    String,
    Double,
}

/// `only`: the query is rejected if pre-aggregations cannot answer it.
#[derive(Debug, JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum PreAggregationUse {
    Off,
    Auto,
    Only,
}

/// The name of a granularity.
#[derive(Debug)]
pub struct GranularityName;

impl JsonSchema for GranularityName {
    fn schema_name() -> Cow<'static, str> {
        "Granularity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::words(&Granularity::ALL.map(Granularity::as_str))
    }
}

/// A query in the body of a module.
#[derive(Debug)]
pub struct ModuleQuery;

impl JsonSchema for ModuleQuery {
    fn schema_name() -> Cow<'static, str> {
        "ModuleQuery".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Query::json_schema(generator);
        schema.insert("description".to_owned(), "A query that a module examines without running it.".into());
        if let Some(Json::Object(properties)) = schema.get_mut("properties") {
            let text = "As `time_dimensions`, also with `dateRange` for `date_range`.";
            let items = json!({ "type": "object" });
            let list = json!({ "type": ["array", "null"], "items": items, "description": text });
            properties.insert(TIME_DIMENSIONS.to_owned(), list);
        }
        schema
    }
}

const TIME_DIMENSIONS: &str = "timeDimensions";
const QUERY: &str = "a query, which is a JSON object";
pub(crate) const FIELDS_FOR_SQL: &[&str] = &[
    "metrics",
    "measures",
    "dimensions",
    "filters",
    "order_by",
    "order",
    "limit",
    "offset",
    "time_range",
    "time_dimensions",
    "compare_range",
    "fill_gaps",
    "ungrouped",
    "cube",
    "segments",
    "timezone",
    "total",
    "totals",
    "numbers",
    "cache",
    "max_age",
    "stale",
    "pre_aggregations",
    "inline",
];
/// The fields of a query, except `inline`.
pub(crate) const FIELDS: &[&str] = match FIELDS_FOR_SQL.split_last() {
    Some((_, others)) => others,
    None => &[],
};
const MEMBERS: &str = "a list of members, like [\"orders.count\"],";

/// Reads the body of `POST /api/v1/query` and `/query/explain`.
///
/// # Errors
/// Names the field that is invalid.
pub fn from_wire(body: &[u8]) -> Result<QueryRequest, FieldError> {
    read(body, FIELDS)
}

/// Reads the body of `POST /api/v1/query/sql`, which may have `inline`.
///
/// # Errors
/// Returns the same errors as [`from_wire`].
pub fn from_wire_for_sql(body: &[u8]) -> Result<QueryRequest, FieldError> {
    read(body, FIELDS_FOR_SQL)
}

/// Reads the query in the body of a module, which accepts the names `timeDimensions` and `dateRange` as well.
pub(crate) fn of_module(value: &Json, path: &Path<'_>) -> Result<SemanticQuery, FieldError> {
    let mut value = value.clone();
    if let Json::Object(query) = &mut value
        && let Some(mut dimensions) = query.remove(TIME_DIMENSIONS)
    {
        if query.contains_key("time_dimensions") {
            return Err(path.both(["time_dimensions", TIME_DIMENSIONS]));
        }
        for dimension in dimensions.as_array_mut().into_iter().flatten().filter_map(Json::as_object_mut) {
            if let Some(range) = dimension.remove("dateRange") {
                dimension.entry("date_range").or_insert(range);
            }
        }
        query.insert("time_dimensions".to_owned(), dimensions);
    }
    read_value(&value, path, FIELDS).map(|request| request.query)
}

fn read(body: &[u8], known: &'static [&'static str]) -> Result<QueryRequest, FieldError> {
    read_value(&body::parse(body)?, &Path::ROOT, known)
}

fn read_value(value: &Json, path: &Path<'_>, known: &'static [&'static str]) -> Result<QueryRequest, FieldError> {
    let fields = Fields::new(value, path, QUERY, known)?;
    let mut values = fields.list("metrics", MEMBERS, member_item)?;
    values.extend(fields.list("measures", MEMBERS, member_item)?);
    let mut order = fields.list("order_by", ORDERS, order_item)?;
    order.extend(fields.list("order", ORDERS, order_item)?);
    let seconds = |field| Ok::<_, FieldError>(fields.integer(field)?.map(Duration::from_secs));
    let query = SemanticQuery {
        cube: fields.string("cube", "a cube's name")?.map(Into::into),
        values: distinct(values),
        dimensions: distinct(fields.list("dimensions", MEMBERS, member_item)?),
        time_dimensions: fields.list("time_dimensions", "a list of time dimensions", time::dimension)?,
        time_range: match fields.get("time_range") {
            None => None,
            Some(range) => Some(time::range(range, &path.field("time_range"))?),
        },
        filters: fields.list("filters", "a list of filters", filter::from_wire)?,
        segments: distinct(fields.list("segments", "a list of segments, like [\"orders.paid\"],", member_item)?),
        order,
        limit: fields.integer("limit")?,
        offset: fields.integer("offset")?.unwrap_or(0),
        timezone: fields.string("timezone", "a timezone, like \"Europe/Berlin\",")?.map(Into::into),
        skip_total: fields.boolean("total")? == Some(false),
        totals: fields.boolean("totals")? == Some(true),
        compare: match fields.get("compare_range") {
            None => None,
            Some(compared) => Some(time::compare(compared, &path.field("compare_range"))?),
        },
        fill_gaps: fields.boolean("fill_gaps")? == Some(true),
        ungrouped: fields.boolean("ungrouped")? == Some(true),
        pre_aggregations: match fields.string("pre_aggregations", PRE_AGGREGATIONS)? {
            None => PreAggregations::default(),
            Some(word) => pre_aggregations(word, &path.field("pre_aggregations"))?,
        },
        max_staleness: seconds("max_age")?,
    };
    let bypass = fields.boolean("cache")? == Some(false);
    let cache =
        CacheControl { bypass, max_age: seconds("max_age")?, stale: seconds("stale")?, ..CacheControl::default() };
    Ok(QueryRequest { query, numbers: numbers(&fields, path)?, cache, inline: fields.boolean("inline")? == Some(true) })
}

pub(crate) const ORDER_BY: &[&str] = &["field", "direction"];
const ORDERS: &str = "a list like [{\"field\": …, \"direction\": \"desc\"}]";

fn order_item(value: &Json, path: &Path<'_>) -> Result<OrderBy, FieldError> {
    let expected = "an object like {\"field\": …, \"direction\": \"desc\"}";
    let fields = Fields::new(value, path, expected, ORDER_BY)?;
    let member = member(fields.required_string("field", "a member, like \"orders.count\",")?, &path.field("field"))?;
    let descending = match fields.string("direction", "\"asc\" or \"desc\"")? {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => return Err(path.field("direction").invalid_value(other, "`asc` or `desc`")),
    };
    Ok(OrderBy { member, descending })
}

const PRE_AGGREGATIONS: &str = "`off`, `auto` or `only`";

/// Reads the use of pre-aggregations.
pub(crate) fn pre_aggregations(word: &str, path: &Path<'_>) -> Result<PreAggregations, FieldError> {
    let known = PreAggregations::ALL.into_iter().find(|known| known.as_str() == word);
    known.ok_or_else(|| path.invalid_value(word, PRE_AGGREGATIONS))
}

const NUMBER_FORMS: &str = "`number`, `string` or `double`";

fn numbers(fields: &Fields<'_>, path: &Path<'_>) -> Result<Numbers, FieldError> {
    match fields.string("numbers", NUMBER_FORMS)? {
        None | Some("number") => Ok(Numbers::Plain),
        Some("string") => Ok(Numbers::Strings),
        Some("double") => Ok(Numbers::Doubles),
        Some(other) => Err(path.field("numbers").invalid_value(other, NUMBER_FORMS)),
    }
}

fn member_item(value: &Json, path: &Path<'_>) -> Result<MemberRef, FieldError> {
    match value {
        Json::String(text) => member(text, path),
        other => Err(path.invalid_type(other, "a member, like \"orders.count\",")),
    }
}

pub(crate) fn member(text: &str, path: &Path<'_>) -> Result<MemberRef, FieldError> {
    text.parse().map_err(|error| path.rejected(error))
}

/// Removes repetitions, and keeps the order.
pub fn distinct(members: Vec<MemberRef>) -> Vec<MemberRef> {
    let mut seen = HashSet::new();
    members.into_iter().filter(|member| seen.insert(member.text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reference_names_every_field() {
        let reference = include_str!("../../docs/reference/query.md");
        let (_, body) = reference.split_once("## The body").unwrap();
        let (body, _) = body.split_once("\n## ").unwrap();
        let cells = body.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
        let named: Vec<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim().trim_matches('`')).collect();
        for field in FIELDS {
            assert!(named.contains(field), "query.md does not name `{field}`");
        }
        for name in named {
            assert!(FIELDS.contains(&name), "query.md names `{name}`, which no query has");
        }
        assert!(reference.contains("`inline: true`"));
    }
}
