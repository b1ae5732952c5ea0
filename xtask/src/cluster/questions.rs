//! The questions of the load and their right answers.
//!
//! In: a server without a cache and without pre-aggregations. Out: each question with its rows. Not here: questions
//! about planes, whose rows the script of faults changes.

use std::io;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::client::Client;

pub(super) const QUERY: &str = "/api/v1/query";
pub(super) const GRAPHQL: &str = "/graphql";

/// A query with its rows.
pub(super) struct Question {
    pub(super) body: Value,
    pub(super) rows: Value,
    /// The same query as a GraphQL document.
    pub(super) document: Value,
}

/// The measures and dimensions of the questions. Pre-aggregations contain the first three.
const SHAPES: [(&[&str], &[&str]); 6] = [
    (&["flights.count", "flights.cancelled"], &["flights.origin"]),
    (&["flights.departed", "flights.minutes_lost"], &["flights.carrier"]),
    (&["flights.count", "flights.arrived"], &["airlines.name"]),
    (&["flights.count", "flights.total_distance"], &["flights.dest"]),
    (&["flights.longest_distance", "flights.total_air_time"], &["flights.carrier", "flights.origin"]),
    (&["flights.count"], &["flights.departure_hour"]),
];
const CARRIERS: [&str; 5] = ["UA", "B6", "EV", "DL", "AA"];

/// Asks a server for the rows of all questions.
pub(super) fn answer(reference: &mut Client) -> Result<Vec<Question>> {
    let carriers = CARRIERS.map(Some).into_iter().chain([None]);
    let pairs: Vec<_> =
        SHAPES.into_iter().flat_map(|shape| carriers.clone().map(move |carrier| (shape, carrier))).collect();
    pairs
        .into_iter()
        .map(|((measures, dimensions), carrier)| question(reference, measures, dimensions, carrier))
        .collect()
}

fn question(reference: &mut Client, measures: &[&str], dimensions: &[&str], carrier: Option<&str>) -> Result<Question> {
    let mut body = json!({"measures": measures, "dimensions": dimensions, "limit": 200});
    let mut filter = String::new();
    if let Some(carrier) = carrier {
        body["filters"] = json!([{"dimension": "flights.carrier", "operator": "equals", "value": carrier}]);
        filter = format!(r#", filters: [{{member: "flights.carrier", operator: EQUALS, values: ["{carrier}"]}}]"#);
    }
    let document = json!({
        "query": format!("{{ query(measures: {}, dimensions: {}{filter}, limit: 200) {{ data }} }}", json!(measures), json!(dimensions))
    });
    let rows = rows(reference.post(QUERY, &body)?.json()).with_context(|| format!("no rows for {body}"))?;
    ensure!(rows.as_array().is_some_and(|rows| !rows.is_empty()), "no rows for {body}");
    let of_graphql = graphql_rows(reference.post(GRAPHQL, &document)?.json());
    ensure!(of_graphql.as_ref() == Some(&rows), "GraphQL answers {of_graphql:?} to {document}, REST {rows}");
    Ok(Question { body, rows, document })
}

/// Returns the rows of an answer of REST.
pub(super) fn rows(mut answer: Value) -> Option<Value> {
    Some(answer.get_mut("data")?.take())
}

/// Returns the rows of an answer of GraphQL, if it has no errors.
pub(super) fn graphql_rows(mut answer: Value) -> Option<Value> {
    if answer.get("errors").is_some() {
        return None;
    }
    Some(answer.get_mut("data")?.get_mut("query")?.get_mut("data")?.take())
}

/// Returns the number of planes and the time of the rows, as a replica answers.
pub(super) fn planes(client: &mut Client) -> io::Result<(Value, Value)> {
    let answer = client.post(QUERY, &json!({"measures": ["planes.count"]}))?.json();
    Ok((answer["data"][0]["planes.count"].clone(), answer["meta"]["as_of"].clone()))
}
