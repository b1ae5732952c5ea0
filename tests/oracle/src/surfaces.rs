//! I7: a query through GraphQL has the same rows and errors as through REST.
//!
//! In: the body of a generated query. Out: the difference between both interfaces, for the same caller. The parts of a
//! body that GraphQL's inputs cannot express are replaced first, so that both interfaces receive the same query: values
//! become strings, lists become `equals` with several values, ranges get both ends, and null values are omitted.

use serde_json::{Map, Value as Json, json};
use terrane_graphql::{GraphQl, GraphQlContext, GraphQlServices, GraphQlSettings, Response};
use terrane_wire::{ErrorBody, query};

use crate::product::{Asker, Served, context};

/// The fields of a query that GraphQL lacks.
const NOT_IN_GRAPHQL: &[&str] = &["ungrouped", "max_age", "pre_aggregations"];
const FIRST_DAY: &str = "0001-01-01";
const LAST_DAY: &str = "9999-12-31";

/// The arguments of the field `query`, with their types.
const ARGUMENTS: &[(&str, &str)] = &[
    ("cube", "String"),
    ("metrics", "[String!]"),
    ("measures", "[String!]"),
    ("dimensions", "[String!]"),
    ("filters", "[FilterInput!]"),
    ("where", "WhereInput"),
    ("segments", "[String!]"),
    ("timeDimensions", "[TimeDimensionInput!]"),
    ("timeRange", "TimeRangeInput"),
    ("order", "[OrderInput!]"),
    ("limit", "Int"),
    ("offset", "Int"),
    ("timezone", "String"),
    ("total", "Boolean"),
    ("totals", "Boolean"),
    ("compareRange", "CompareRangeInput"),
    ("fillGaps", "Boolean"),
];
const FIELDS: &str = "{ data rows columns { name } meta { totalCount totals } }";

/// The result of a query through one interface.
#[derive(Debug, PartialEq)]
enum Seen {
    Rows { keys: Vec<String>, rows: Vec<Vec<Json>>, total_rows: Option<u64>, totals: Json },
    Error { code: String, message: String },
}

/// The result of a comparison.
#[derive(Debug)]
pub enum Compared {
    /// GraphQL cannot express the query.
    NotInGraphql,
    Same,
    /// A description of the difference.
    Different(String),
}

/// Returns the GraphQL interface of a served project.
pub fn executor(served: &Served<'_>) -> GraphQl {
    GraphQl::new(GraphQlServices::from(served.services()), GraphQlSettings::default())
}

/// Compares both interfaces for a query. If `by_variables` is true, the arguments are variables instead of literals.
pub fn compare(graphql: &GraphQl, served: &Served<'_>, body: &Json, asker: Asker, by_variables: bool) -> Compared {
    let body = without_what_graphql_lacks(body);
    let Some((body, arguments)) = body.and_then(|body| arguments(&body).map(|arguments| (body, arguments))) else {
        return Compared::NotInGraphql;
    };
    let surfaces = Surfaces { served, graphql };
    let rest = surfaces.rest(&body, asker);
    let graphql = surfaces.graphql(&arguments, asker, by_variables);
    if is_same(&rest, &graphql) {
        return Compared::Same;
    }
    Compared::Different(format!(
        "I7 REST and GraphQL differ on {body}\n  arguments {arguments:?}\n  REST:    {rest:?}\n  GraphQL: {graphql:?}"
    ))
}

struct Surfaces<'s, 'p> {
    served: &'s Served<'p>,
    graphql: &'s GraphQl,
}

impl Surfaces<'_, '_> {
    fn rest(&self, body: &Json, asker: Asker) -> Seen {
        let request = match query::from_wire(body.to_string().as_bytes()) {
            Ok(request) => request,
            Err(error) => return seen_error(&ErrorBody::from(error)),
        };
        let (answer, scopes) = self.served.answer(&request.query, asker);
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return seen_error(&ErrorBody::from_run(error, scopes)),
        };
        let keys: Vec<String> = answer.columns.iter().map(|column| column.key.to_string()).collect();
        let written = |columns: &[_], batches: &[_]| {
            let mut out = Vec::new();
            terrane_wire::json::write_rows(columns, batches, terrane_wire::json::Numbers::Plain, &mut out);
            serde_json::from_slice::<Vec<Map<String, Json>>>(&out).unwrap_or_default()
        };
        let rows = written(&answer.columns, &answer.batches);
        let totals =
            answer.totals.as_ref().and_then(|totals| written(&totals.columns, &totals.batches).into_iter().next());
        let cells = |row: &Map<String, Json>| keys.iter().map(|key| row[key].clone()).collect();
        Seen::Rows {
            rows: rows.iter().map(cells).collect(),
            total_rows: answer.total_rows,
            totals: totals.map_or(Json::Null, Json::Object),
            keys,
        }
    }

    fn graphql(&self, arguments: &Map<String, Json>, asker: Asker, by_variables: bool) -> Seen {
        let (document, variables) = if by_variables {
            let used = ARGUMENTS.iter().filter(|(name, _)| arguments.contains_key(*name));
            let (declared, passed): (Vec<String>, Vec<String>) =
                used.map(|(name, ty)| (format!("${name}: {ty}"), format!("{name}: ${name}"))).unzip();
            let (declared, passed) = (declared.join(", "), passed.join(", "));
            (format!("query Random({declared}) {{ query({passed}) {FIELDS} }}"), arguments.clone())
        } else {
            let passed: Vec<String> =
                arguments.iter().map(|(name, value)| format!("{name}: {}", literal(value))).collect();
            (format!("{{ query({}) {FIELDS} }}", passed.join(", ")), Map::new())
        };
        let response = match self.graphql.read(&document, None, variables) {
            Ok(operation) => {
                let context = GraphQlContext { request: context(asker), ..GraphQlContext::default() };
                self.served.block_on(self.graphql.execute(operation, context))
            }
            Err(refusal) => Response::refused(&refusal, ""),
        };
        let response: Json = serde_json::from_slice(response.body()).unwrap_or_default();
        if let Some(error) = response["errors"].get(0) {
            let text = |value: &Json| value.as_str().unwrap_or_default().to_owned();
            return Seen::Error { code: text(&error["extensions"]["code"]), message: text(&error["message"]) };
        }
        seen_rows(&response["data"]["query"])
    }
}

fn seen_rows(result: &Json) -> Seen {
    let list = |value: &Json| value.as_array().cloned().unwrap_or_default();
    let keys: Vec<String> =
        list(&result["columns"]).iter().filter_map(|column| column["name"].as_str().map(str::to_owned)).collect();
    let rows: Vec<Vec<Json>> = list(&result["rows"]).iter().map(&list).collect();
    // GraphQL returns the rows in two forms, which must have the same values.
    let objects = list(&result["data"]).into_iter().map(|row| keys.iter().map(|key| row[key].clone()).collect());
    let objects: Vec<Vec<Json>> = objects.collect();
    if objects != rows {
        return Seen::Error { code: "data and rows differ".to_owned(), message: result.to_string() };
    }
    let meta = &result["meta"];
    Seen::Rows { keys, rows, total_rows: meta["totalCount"].as_u64(), totals: meta["totals"].clone() }
}

fn seen_error(body: &ErrorBody) -> Seen {
    Seen::Error { code: body.code.as_str().to_owned(), message: body.message.clone() }
}

fn is_same(rest: &Seen, graphql: &Seen) -> bool {
    match (rest, graphql) {
        (
            Seen::Rows { keys, rows, total_rows, totals },
            Seen::Rows { keys: other_keys, rows: other_rows, total_rows: other_total, totals: other_totals },
        ) => {
            let same_row = |(row, other): (&Vec<Json>, &Vec<Json>)| {
                row.len() == other.len() && row.iter().zip(other).all(|(cell, other)| is_same_cell(cell, other))
            };
            let same_totals = match (totals, other_totals) {
                (Json::Object(totals), Json::Object(others)) => {
                    totals.len() == others.len()
                        && totals
                            .iter()
                            .all(|(key, cell)| others.get(key).is_some_and(|other| is_same_cell(cell, other)))
                }
                (totals, others) => totals == others,
            };
            keys == other_keys
                && total_rows == other_total
                && same_totals
                && rows.len() == other_rows.len()
                && rows.iter().zip(other_rows).all(same_row)
        }
        (rest, graphql) => rest == graphql,
    }
}

/// Returns whether a cell of REST equals the cell of GraphQL. In GraphQL, an exact number is a string if a double may
/// not represent it.
fn is_same_cell(rest: &Json, graphql: &Json) -> bool {
    match (rest, graphql) {
        (Json::Number(number), Json::String(text)) => number.to_string() == *text,
        (rest, graphql) => rest == graphql,
    }
}

/// Returns the body without the parts that GraphQL lacks; `None` if a value is null.
fn without_what_graphql_lacks(body: &Json) -> Option<Json> {
    let mut body = body.as_object()?.clone();
    NOT_IN_GRAPHQL.iter().for_each(|name| {
        body.remove(*name);
    });
    if let Some(filters) = body.get_mut("filters") {
        let all = filters.as_array()?.iter().map(filter).collect::<Option<Vec<_>>>()?;
        // GraphQL has a list of conditions and one tree, so the trees are combined.
        let (mut conditions, trees): (Vec<Json>, Vec<Json>) =
            all.into_iter().partition(|filter| filter.get("member").is_some());
        if !trees.is_empty() {
            conditions.push(json!({ "and": trees }));
        }
        *filters = conditions.into();
    }
    for time in body.get_mut("time_dimensions").and_then(Json::as_array_mut).into_iter().flatten() {
        whole_range(time.get_mut("date_range"));
    }
    whole_range(body.get_mut("compare_range"));
    Some(Json::Object(body))
}

/// Adds the missing ends of a range.
fn whole_range(range: Option<&mut Json>) {
    let Some(Json::Array(ends)) = range else { return };
    for (end, default) in ends.iter_mut().zip([FIRST_DAY, LAST_DAY]) {
        if end.is_null() {
            *end = default.into();
        }
    }
}

/// Returns a filter whose values are strings, with operators that both interfaces have.
fn filter(filter: &Json) -> Option<Json> {
    let object = filter.as_object()?;
    for word in ["and", "or"] {
        if let Some(inner) = object.get(word) {
            let inner = inner.as_array()?.iter().map(self::filter).collect::<Option<Vec<_>>>()?;
            return Some(json!({ word: inner }));
        }
    }
    if let Some(inner) = object.get("not") {
        return Some(json!({ "not": self::filter(inner)? }));
    }
    let member = object.get("member").or_else(|| object.get("dimension"))?;
    let values = match object.get("value").or_else(|| object.get("values")) {
        None | Some(Json::Null) => Vec::new(),
        Some(Json::Array(values)) => values.clone(),
        Some(value) => vec![value.clone()],
    };
    let values: Vec<Json> = values.iter().map(text).collect::<Option<_>>()?;
    let condition =
        |operator: &str, values: &[Json]| json!({ "member": member, "operator": operator, "values": values });
    Some(match (object.get("operator")?.as_str()?, values.as_slice()) {
        ("between", [low, high]) => json!({ "and": [
            condition("gte", std::slice::from_ref(low)), condition("lte", std::slice::from_ref(high)),
        ] }),
        ("between", _) => return None,
        // GraphQL cannot express an empty list.
        ("inList" | "notInList", []) => return None,
        ("inList", values) => condition("equals", values),
        ("notInList", values) => condition("notEquals", values),
        (operator, values) => condition(operator, values),
    })
}

fn text(value: &Json) -> Option<Json> {
    match value {
        Json::Null => None,
        Json::String(_) => Some(value.clone()),
        other => Some(other.to_string().into()),
    }
}

/// Returns the arguments of the field `query` for a body.
fn arguments(body: &Json) -> Option<Map<String, Json>> {
    let mut arguments = Map::new();
    for (name, value) in body.as_object()? {
        let (name, value) = match name.as_str() {
            "filters" => {
                let (mut conditions, mut tree) = (Vec::new(), None);
                for filter in value.as_array()? {
                    match condition(filter)? {
                        Json::Object(mut input) if input.contains_key("condition") => {
                            conditions.extend(input.remove("condition"));
                        }
                        input => tree = Some(input),
                    }
                }
                arguments.extend(tree.map(|tree| ("where".to_owned(), tree)));
                ("filters", conditions.into())
            }
            "order_by" => ("order", value.as_array()?.iter().map(order).collect::<Option<Vec<_>>>()?.into()),
            "time_dimensions" => {
                ("timeDimensions", value.as_array()?.iter().map(time_dimension).collect::<Option<Vec<_>>>()?.into())
            }
            "time_range" => (
                "timeRange",
                match value {
                    Json::String(words) => json!({ "words": words }),
                    Json::Object(range) => enums(range),
                    _ => return None,
                },
            ),
            "compare_range" => (
                "compareRange",
                match value {
                    Json::Object(shift) => json!({ "shift": shift.get("shift")? }),
                    range => json!({ "dateRange": dates(range)? }),
                },
            ),
            "fill_gaps" => ("fillGaps", value.clone()),
            name => (ARGUMENTS.iter().find(|(known, _)| *known == name)?.0, value.clone()),
        };
        arguments.insert(name.to_owned(), value);
    }
    Some(arguments)
}

fn condition(filter: &Json) -> Option<Json> {
    for word in ["and", "or"] {
        if let Some(inner) = filter.get(word) {
            let inner = inner.as_array()?.iter().map(condition).collect::<Option<Vec<_>>>()?;
            return Some(json!({ word: inner }));
        }
    }
    if let Some(inner) = filter.get("not") {
        return Some(json!({ "not": condition(inner)? }));
    }
    let operator = upper_snake_case(filter["operator"].as_str()?);
    Some(json!({ "condition": {
        "member": filter["member"], "operator": operator, "values": filter["values"],
    } }))
}

fn order(order: &Json) -> Option<Json> {
    let mut input = json!({ "member": order["field"] });
    if let Some(direction) = order.get("direction").and_then(Json::as_str) {
        input["direction"] = direction.to_uppercase().into();
    }
    Some(input)
}

fn time_dimension(time: &Json) -> Option<Json> {
    let Json::Object(mut input) = enums(time.as_object()?) else { return None };
    if let Some(range) = input.remove("date_range").filter(|range| !range.is_null()) {
        input.insert("dateRange".to_owned(), dates(&range)?);
    }
    Some(input.into())
}

fn dates(range: &Json) -> Option<Json> {
    match range {
        Json::String(words) => Some(json!([words])),
        Json::Array(_) => Some(range.clone()),
        _ => None,
    }
}

/// Returns an object in which granularities are enum values.
fn enums(object: &Map<String, Json>) -> Json {
    let mut object = object.clone();
    if let Some(granularity) = object.get("granularity").and_then(Json::as_str).map(str::to_uppercase) {
        object.insert("granularity".to_owned(), granularity.into());
    }
    object.into()
}

fn upper_snake_case(name: &str) -> String {
    let mut out = String::new();
    for character in name.chars() {
        if character.is_uppercase() {
            out.push('_');
        }
        out.extend(character.to_uppercase());
    }
    out
}

/// Returns a value as a GraphQL literal. Values of fields with an enum type have no quotes.
fn literal(value: &Json) -> String {
    match value {
        Json::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(", ")),
        Json::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| match (name.as_str(), value) {
                ("operator" | "granularity" | "direction", Json::String(word)) => format!("{name}: {word}"),
                _ => format!("{name}: {}", literal(value)),
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}
