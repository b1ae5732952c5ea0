//! A golden case: a project, a query as people write it, and what each stage makes of it.
//!
//! In: YAML texts. Out: one text with the resolved query, the plan and the SQL, or the refusal. The
//! reader of queries is the cases' own: it knows the shape, and refuses nothing that a surface would.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde_json::Value as Json;
use terrane_compiler::model::{self, ColumnTypes, Member, Model};
use terrane_compiler::plan::{plan, secure};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::query::{
    DateRange, Filter, MemberRef, OrderBy, QueryError, SemanticQuery, TimeDimension, TimeRange, resolve,
};
use terrane_compiler::sql::profile::DialectProfile;
use terrane_compiler::sql::{Parameters, lower, print};
use terrane_compiler::types::{LogicalType, Value};
use terrane_compiler::{Environment, SecurityContext, explain_plan, explain_query};

/// A project of one file, with the types that its warehouse would tell.
///
/// # Panics
/// Where the project has a problem: it is part of the test.
pub fn model(cubes: &str, types: &str) -> Model {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: golden\n".into());
    tree.files.insert("cubes/all.yml".into(), cubes.into());
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut problems) = project::read(&tree, &inputs);
    let (model, more) = model::build(&definitions);
    problems.extend(more);
    let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let types: HashMap<String, String> = serde_saphyr::from_str(types).expect("types are a map of texts");
    let types = column_types(&model, &types);
    model.with_types(&types)
}

fn column_types(model: &Model, named: &HashMap<String, String>) -> ColumnTypes {
    let mut types = ColumnTypes { dimensions: HashMap::new(), measures: HashMap::new() };
    for (name, ty) in named {
        let ty = match ty.as_str() {
            "text" => LogicalType::Text,
            "integer" => LogicalType::Integer,
            "decimal" => LogicalType::Decimal,
            "boolean" => LogicalType::Boolean,
            "date" => LogicalType::Date,
            "timestamp" => LogicalType::Timestamp,
            "timestamp-tz" => LogicalType::TimestampTz,
            other => panic!("{name} has an unknown type {other}"),
        };
        let (cube, member) = name.split_once('.').expect("cube.member");
        match model.cube_named(cube).and_then(|cube| cube.member(member)) {
            Some(Member::Dimension(id)) => types.dimensions.insert(id, ty),
            Some(Member::Measure(id)) => types.measures.insert(id, ty),
            _ => panic!("{name} is no member"),
        };
    }
    types
}

/// Valentine's day of 2024, at noon, in UTC.
pub fn environment() -> Environment {
    Environment {
        now: Timestamp::from_second(1_707_912_000).expect("a time"),
        zones: TimeZoneDatabase::bundled(),
        default_timezone: TimeZone::UTC,
        default_limit: 1_000,
        max_limit: 50_000,
    }
}

/// What each stage makes of a query.
pub fn stages(model: &Model, profile: &DialectProfile, query: &Json) -> String {
    match compile(model, profile, query) {
        Ok(text) => text,
        Err(error) => format!("refused: {:?}\n{error}\n{error:?}\n", error.code()),
    }
}

fn compile(model: &Model, profile: &DialectProfile, query: &Json) -> Result<String, QueryError> {
    let resolved = resolve(model, &read_query(query)?, &environment())?;
    let resolved_text = explain_query(model, &resolved);
    let planned = plan(model, resolved)?;
    let plan_text = explain_plan(&planned);
    let secured = secure(planned, &SecurityContext::default())?;
    let (sql, params) = print(&lower(&secured, profile), profile, Parameters::Bound)?;
    let params: Vec<String> = params.iter().map(|param| format!("{param:?}")).collect();
    Ok(format!("# resolved\n{resolved_text}\n# plan\n{plan_text}\n# sql\n{sql}\n\n# values\n{}\n", params.join("\n")))
}

fn read_query(json: &Json) -> Result<SemanticQuery, QueryError> {
    let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    let members = |key: &str| list(key).iter().map(member).collect::<Result<Vec<_>, _>>();
    let mut values = members("metrics")?;
    values.extend(members("measures")?);
    Ok(SemanticQuery {
        cube: json["cube"].as_str().map(Into::into),
        values,
        dimensions: members("dimensions")?,
        time_dimensions: list("time_dimensions").iter().map(time_dimension).collect::<Result<_, _>>()?,
        time_range: match &json["time_range"] {
            Json::Null => None,
            range => Some(TimeRange { member: None, granularity: None, range: date_range(range) }),
        },
        filters: list("filters").iter().map(filter).collect::<Result<_, _>>()?,
        segments: members("segments")?,
        order: list("order_by").iter().map(order).collect::<Result<_, _>>()?,
        limit: json["limit"].as_u64(),
        offset: json["offset"].as_u64().unwrap_or(0),
        timezone: json["timezone"].as_str().map(Into::into),
        skip_total: json["total"] == Json::Bool(false),
        ..SemanticQuery::default()
    })
}

fn member(json: &Json) -> Result<MemberRef, QueryError> {
    json.as_str().unwrap_or_default().parse()
}

fn order(json: &Json) -> Result<OrderBy, QueryError> {
    Ok(OrderBy { member: member(&json["field"])?, descending: json["direction"] == "desc" })
}

fn time_dimension(json: &Json) -> Result<TimeDimension, QueryError> {
    Ok(TimeDimension {
        member: member(&json["dimension"])?,
        granularity: json["granularity"].as_str().map(|word| word.parse().expect("a granularity")),
        range: (!json["date_range"].is_null()).then(|| date_range(&json["date_range"])),
    })
}

/// Words, `[start, end]` or `{start, end}`.
fn date_range(json: &Json) -> DateRange {
    match json {
        Json::String(words) => DateRange::Words(words.as_str().into()),
        Json::Array(ends) => DateRange::Between(text(&ends[0]), text(&ends[1])),
        range => DateRange::Between(text(&range["start"]), text(&range["end"])),
    }
}

fn text(json: &Json) -> Option<std::sync::Arc<str>> {
    json.as_str().map(Into::into)
}

fn filter(json: &Json) -> Result<Filter, QueryError> {
    let all = |list: &Json| list.as_array().into_iter().flatten().map(filter).collect::<Result<Vec<_>, _>>();
    if !json["and"].is_null() {
        return Ok(Filter::And(all(&json["and"])?));
    }
    if !json["or"].is_null() {
        return Ok(Filter::Or(all(&json["or"])?));
    }
    if !json["not"].is_null() {
        return Ok(Filter::Not(Box::new(filter(&json["not"])?)));
    }
    let values = match json.get("value") {
        None => Vec::new(),
        Some(Json::Array(values)) => values.iter().map(value).collect(),
        Some(single) => vec![value(single)],
    };
    let operator = json["operator"].as_str().unwrap_or_default().parse()?;
    Ok(Filter::Condition { member: member(&json["member"])?, operator, values })
}

fn value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(value) => Value::Boolean(*value),
        Json::Number(number) => match number.as_i64() {
            Some(integer) => Value::Integer(integer),
            None => Value::Decimal(number.to_string().into()),
        },
        Json::String(text) => Value::Text(text.as_str().into()),
        other => panic!("{other} is no scalar"),
    }
}
