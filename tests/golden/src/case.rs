//! A golden case: a project, queries as users write them, and the result of each stage.
//!
//! In: YAML. Out: one text with the resolved query, the plan and the SQL, or the error. This module parses the queries
//! itself and accepts more than the REST and GraphQL interfaces. Long lists have a short form: among filters
//! `{times: 1001, filter: …}`, as a value `{times: 10001, value: …}`, and for 33 `not`s around a filter
//! `{deep: 33, filter: …}`.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde_json::Value as Json;
use terrane_compiler::model::{self, CatalogNames, ColumnTypes, ForeignKey, Member, Model};
use terrane_compiler::plan::{plan, secure};
use terrane_compiler::project::{self, Inputs, SourceTree};
use terrane_compiler::query::{
    CompareRange, DateRange, Filter, MemberRef, OrderBy, PreAggregations, QueryError, SemanticQuery, TimeDimension,
    TimeRange,
};
use terrane_compiler::sql::dialect_profile::{CaseFolding, DialectProfile};
use terrane_compiler::sql::{Parameters, lower, print};
use terrane_compiler::types::{Granularity, LogicalType, Value};
use terrane_compiler::{
    Attribute, AuthMethod, Authorized, Environment, SecurityContext, explain_plan, explain_query, resolve,
};

/// One file of `cases/`.
#[derive(Debug)]
pub struct Case {
    /// The name of the file without its extension.
    pub name: String,
    /// The purpose of the case, in one sentence.
    pub about: String,
    /// The name of the project's file in `projects/`.
    pub project: String,
    /// The queries: `query`, or `queries` for several related ones.
    pub queries: Vec<Json>,
    /// The caller of the queries.
    pub caller: Json,
}

/// Returns every case, in the order of the names.
///
/// # Panics
/// A case cannot be read.
pub fn cases() -> Vec<Case> {
    let folder = root().join("cases");
    let files = std::fs::read_dir(&folder).expect("a folder of cases").map(|entry| entry.expect("a file").file_name());
    let mut names: Vec<String> =
        files.filter_map(|file| file.to_str()?.strip_suffix(".yml").map(str::to_owned)).collect();
    names.sort();
    names.into_iter().map(case).collect()
}

fn case(name: String) -> Case {
    let mut json: Json =
        serde_saphyr::from_str(&read(&format!("cases/{name}.yml"))).unwrap_or_else(|e| panic!("{name}: {e}"));
    let word = |key: &str| json[key].as_str().map(str::to_owned);
    let about = word("about").unwrap_or_else(|| panic!("{name} is about nothing"));
    let project = word("project").unwrap_or_else(|| "shop".to_owned());
    let queries = match json["queries"].take() {
        Json::Array(queries) => queries,
        _ => vec![json["query"].take()],
    };
    Case { name, about, project, queries, caller: json["as"].take() }
}

/// Returns the models of all files in `projects/`, by name.
///
/// # Panics
/// A project cannot be read or has a problem.
pub fn models() -> HashMap<String, Model> {
    let files = std::fs::read_dir(root().join("projects")).expect("a folder of projects");
    let files = files.filter_map(|entry| entry.expect("a file").file_name().into_string().ok());
    let names = files.filter_map(|file| file.strip_suffix(".types.yml").map(str::to_owned));
    names
        .map(|name| {
            let [cubes, types] = ["yml", "types.yml"].map(|ending| read(&format!("projects/{name}.{ending}")));
            let keys = std::fs::read_to_string(root().join(format!("projects/{name}.keys.yml")));
            let keys = keys.map_or_else(|_| Vec::new(), |keys| foreign_keys(&keys));
            let model = model(&cubes, &types).with_foreign_keys(&keys, CaseFolding::Keep);
            (name, model)
        })
        .collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Builds the model of a project of one file, with the column types that its warehouse would report.
///
/// # Panics
/// The project has an error.
pub fn model(cubes: &str, types: &str) -> Model {
    let mut tree = SourceTree::default();
    tree.files.insert("service_project.yml".into(), "name: golden\n".into());
    tree.files.insert("cubes/all.yml".into(), cubes.into());
    let inputs = Inputs { warehouse: "duckdb".into(), ..Inputs::default() };
    let (definitions, mut problems) = project::read(&tree, &inputs);
    let (model, more) = model::build(&definitions);
    problems.extend(more);
    // Warnings are accepted: two joins to one cube cause a warning if both lead on to a third cube.
    let problems: Vec<String> = problems.iter().filter(|p| p.is_error()).map(ToString::to_string).collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    let types: HashMap<String, String> = serde_saphyr::from_str(types).expect("types are a map of texts");
    let types = column_types(&model, &types);
    model.with_types(&types)
}

/// Parses foreign keys of the form `{from: schema.table, to: schema.table, columns: {referencing: referenced}}`. The
/// schemas are in the database `golden`, and the names of tables need their schema.
fn foreign_keys(text: &str) -> Vec<ForeignKey> {
    let keys: Vec<Json> = serde_saphyr::from_str(text).expect("a list of keys");
    let names = |table: &Json| {
        let written: Vec<Arc<str>> = table.as_str().expect("a table").split('.').map(Arc::from).collect();
        let full = std::iter::once(Arc::from("golden")).chain(written.iter().cloned()).collect();
        CatalogNames(vec![full, written])
    };
    let column = |(own, other): (&String, &Json)| [Arc::from(own.as_str()), other.as_str().expect("a column").into()];
    let key = |key: &Json| ForeignKey {
        from: names(&key["from"]),
        to: names(&key["to"]),
        columns: key["columns"].as_object().expect("columns").iter().map(column).collect(),
    };
    keys.iter().map(key).collect()
}

fn column_types(model: &Model, named: &HashMap<String, String>) -> ColumnTypes {
    let mut types = ColumnTypes::default();
    for (name, ty) in named {
        let ty = match ty.as_str() {
            "text" => LogicalType::Text,
            "integer" => LogicalType::Integer,
            "decimal" => LogicalType::Decimal,
            "float" => LogicalType::Float,
            "boolean" => LogicalType::Boolean,
            "date" => LogicalType::Date,
            "timestamp" => LogicalType::Timestamp,
            "timestamp-tz" => LogicalType::TimestampTz,
            "geo" => LogicalType::Geo,
            other => panic!("{name} has an unknown type {other}"),
        };
        let (cube, member) = name.split_once('.').expect("cube.member");
        match model.cube_named(cube).and_then(|cube| cube.member(member)) {
            Some(Member::Dimension(id)) => types.dimensions.insert(id, ty),
            Some(Member::Measure(id)) => types.measures.insert(id, ty),
            _ => panic!("unknown member {name}"),
        };
    }
    types
}

/// Returns the environment of all cases: the time is noon of 14 February 2024 in UTC.
pub fn environment() -> Environment {
    Environment {
        now: Timestamp::from_second(1_707_912_000).expect("a time"),
        zones: TimeZoneDatabase::bundled(),
        default_timezone: TimeZone::UTC,
        default_limit: 1_000,
        max_limit: 50_000,
        limit_advice: "",
        rollups: Arc::default(),
    }
}

/// Returns the output of each stage for a query.
pub fn stages(model: &Model, profile: &DialectProfile, query: &Json, caller: &Json) -> String {
    match compile(model, profile, query, &read_caller(caller)) {
        Ok(text) => text,
        Err(error) => format!("refused: {:?}\n{error}\n{error:?}\n", error.code()),
    }
}

/// Returns the SQL of a query in one dialect.
///
/// # Errors
/// Returns the reason why the query has no SQL.
pub fn sql(model: &Model, profile: &DialectProfile, query: &Json, caller: &Json) -> Result<String, QueryError> {
    let query = read_query(query)?;
    let caller = read_caller(caller);
    let authorized = Authorized::without_hooks(model, &caller);
    terrane_compiler::compile(profile, &query, &authorized, &environment()).map(|sql| sql.text)
}

fn compile(
    model: &Model,
    profile: &DialectProfile,
    query: &Json,
    caller: &SecurityContext,
) -> Result<String, QueryError> {
    let authorized = Authorized::without_hooks(model, caller);
    let access = authorized.access();
    let resolved = resolve(&access, &read_query(query)?, &environment())?;
    let resolved_text = explain_query(model, &resolved);
    let planned = plan(model, resolved)?;
    let plan_text = explain_plan(&planned);
    let secured = secure(planned, &access)?;
    let (sql, params) = print(&lower(&secured, profile), profile, Parameters::Bound)?;
    let params: Vec<String> = params.iter().map(|param| format!("{param:?}")).collect();
    Ok(format!("# resolved\n{resolved_text}\n# plan\n{plan_text}\n# sql\n{sql}\n\n# values\n{}\n", params.join("\n")))
}

/// Parses a caller in the form of the cases.
pub fn read_caller(json: &Json) -> SecurityContext {
    let texts = |key: &str| json[key].as_array().into_iter().flatten().filter_map(text).collect();
    let attribute = |value: &Json| match value {
        Json::Array(values) => Attribute::Many(values.iter().map(self::value).collect()),
        one => Attribute::One(self::value(one)),
    };
    let attributes = json["attributes"].as_object().into_iter().flatten();
    SecurityContext {
        user_id: text(&json["user_id"]).unwrap_or_default(),
        email: text(&json["email"]),
        roles: texts("roles"),
        groups: texts("groups"),
        attributes: attributes.map(|(name, value)| (name.as_str().into(), attribute(value))).collect(),
        auth_method: json["auth_method"].as_str().map_or(AuthMethod::default(), |word| {
            AuthMethod::of_request(word).unwrap_or_else(|| panic!("unknown auth_method `{word}`"))
        }),
    }
}

/// Parses a query in the form of the cases.
///
/// # Errors
/// A member is not a string.
pub fn read_query(json: &Json) -> Result<SemanticQuery, QueryError> {
    let list = |key: &str| json[key].as_array().cloned().unwrap_or_default();
    let members = |key: &str| list(key).iter().map(member).collect::<Result<Vec<_>, _>>();
    let mut values = members("metrics")?;
    values.extend(members("measures")?);
    Ok(SemanticQuery {
        cube: json["cube"].as_str().map(Into::into),
        values,
        computed: Vec::new(),
        dimensions: members("dimensions")?,
        time_dimensions: list("time_dimensions").iter().map(time_dimension).collect::<Result<_, _>>()?,
        time_range: match &json["time_range"] {
            Json::Null => None,
            range => Some(TimeRange {
                member: range.get("dimension").map(member).transpose()?,
                granularity: range.get("granularity").map(granularity),
                range: date_range(range),
            }),
        },
        filters: filters(&json["filters"])?,
        segments: members("segments")?,
        order: list("order_by").iter().map(order).collect::<Result<_, _>>()?,
        limit: json["limit"].as_u64(),
        offset: json["offset"].as_u64().unwrap_or(0),
        timezone: json["timezone"].as_str().map(Into::into),
        skip_total: json["total"] == Json::Bool(false),
        totals: false,
        compare: match &json["compare_range"] {
            Json::Null => None,
            Json::Object(shift) => Some(CompareRange::Shift(text(&shift["shift"]).expect("a shift"))),
            range => Some(CompareRange::Range(date_range(range))),
        },
        fill_gaps: json["fill_gaps"] == Json::Bool(true),
        ungrouped: json["ungrouped"] == Json::Bool(true),
        pre_aggregations: PreAggregations::default(),
        max_staleness: None,
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
        granularity: json.get("granularity").map(granularity),
        range: (!json["date_range"].is_null()).then(|| date_range(&json["date_range"])),
    })
}

fn granularity(json: &Json) -> Granularity {
    json.as_str().unwrap_or_default().parse().expect("a granularity")
}

/// Parses a range of dates: words, `[start, end]` or `{start, end}`.
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

fn filters(list: &Json) -> Result<Vec<Filter>, QueryError> {
    let mut filters = Vec::new();
    for json in list.as_array().into_iter().flatten() {
        let times = json["times"].as_u64();
        let filter = filter(times.map_or(json, |_| &json["filter"]))?;
        (0..times.unwrap_or(1)).for_each(|_| filters.push(filter.clone()));
    }
    Ok(filters)
}

fn filter(json: &Json) -> Result<Filter, QueryError> {
    if !json["and"].is_null() {
        return Ok(Filter::And(filters(&json["and"])?));
    }
    if !json["or"].is_null() {
        return Ok(Filter::Or(filters(&json["or"])?));
    }
    if let Some(depth) = json["deep"].as_u64() {
        let innermost = filter(&json["filter"])?;
        return Ok((0..depth).fold(innermost, |inner, _| Filter::Not(Box::new(inner))));
    }
    if !json["not"].is_null() {
        return Ok(Filter::Not(Box::new(filter(&json["not"])?)));
    }
    let values = match json.get("value") {
        None => Vec::new(),
        Some(Json::Array(values)) => values.iter().map(value).collect(),
        Some(Json::Object(many)) => {
            vec![
                value(&many["value"]);
                many["times"].as_u64().and_then(|n| usize::try_from(n).ok()).unwrap_or_default()
            ]
        }
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
        other => panic!("{other} is not a scalar"),
    }
}
