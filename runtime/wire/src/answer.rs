//! Writes answers of queries as JSON: rows, and the facts about them.
//!
//! In: the rows' encoder, the facts that are known before the rows, and the facts that are known after them. Out:
//! `{data, query, meta}`. CSV and Arrow contain only rows. The text around the rows is not written by serde, because
//! rows are streamed in between.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use terrane_app::query::{Freshness, Piece, Totals};
use terrane_compiler::query::FactMatch;
use terrane_compiler::types::Value;

use crate::filter::Scalar;
use crate::json::{self, Numbers, write_string};
use crate::pre_aggregation::FactPreAggregation;
use crate::rows::RowFormat;
use crate::schema;

/// The answer of a query.
#[derive(Debug, JsonSchema)]
pub struct QueryAnswer {
    pub data: Vec<Row>,
    pub query: QueryInfo,
    pub meta: QueryMeta,
}

/// A row by its members.
#[derive(Debug, JsonSchema)]
pub struct Row(pub BTreeMap<String, Scalar>);

/// The statement that was run.
#[derive(Debug, JsonSchema)]
pub struct QueryInfo {
    pub sql: String,
    pub duration_ms: f64,
}

/// Metadata of the rows.
#[derive(Debug, JsonSchema)]
pub struct QueryMeta {
    /// The number of rows before paging; null if it was not asked for.
    pub total_rows: Option<u64>,
    pub returned_rows: u64,
    /// True if rows follow after this page; null if that is unknown.
    pub truncated: Option<bool>,
    pub warnings: Vec<String>,
    /// Each measure without dimensions, if the query requests totals.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub totals: Option<Row>,
    /// True if the rows were computed before, for this or another query.
    pub cached: bool,
    /// A digest of the statements and their values. Equal statements with equal values have the same digest.
    pub cache_key: String,
    /// The rows are at least as new as the data was at this time.
    #[schemars(schema_with = "schema::timestamp")]
    pub as_of: String,
    /// The time since `as_of`, if the rows are cached.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    /// True if the rows are cached, and the data has changed since, or the time limit for cached rows has passed.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub stale: Option<bool>,
    /// The use of pre-aggregations by each fact, if its cube has any.
    #[schemars(with = "Option<Vec<FactPreAggregation<'static>>>", skip_serializing_if = "Option::is_none")]
    pub pre_aggregation: Option<String>,
    /// The `cube` of the query, if it has one.
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub cube: Option<String>,
    #[schemars(skip_serializing_if = "Option::is_none")]
    pub query_time_ms: Option<f64>,
}

/// The SQL of a query, and the values of its parameters.
#[derive(Debug, JsonSchema)]
pub struct Sql {
    pub sql: String,
    #[schemars(schema_with = "schema::any_list")]
    pub params: Vec<Scalar>,
}

/// The facts that are known before the rows.
#[derive(Debug)]
pub struct AnswerFacts {
    pub sql: String,
    pub total_rows: Option<u64>,
    pub totals: Option<Totals>,
    pub warnings: Vec<String>,
    pub cache_key: String,
    pub freshness: Freshness,
    pub pre_aggregations: Vec<FactMatch>,
    /// The `cube` of the query.
    pub cube: Option<String>,
    pub numbers: Numbers,
}

/// Returns the text before the rows.
pub fn before(format: RowFormat) -> Vec<u8> {
    if format == RowFormat::Json { b"{\"data\":[".to_vec() } else { Vec::new() }
}

/// Returns the text after the rows.
pub fn after(format: RowFormat, facts: &AnswerFacts, end: &Piece) -> Vec<u8> {
    let (RowFormat::Json, Piece::End { returned_rows, truncated, duration }) = (format, end) else {
        return Vec::new();
    };
    let mut out = Vec::with_capacity(512 + facts.sql.len());
    out.extend_from_slice(b"],\"query\":{\"sql\":");
    write_string(&facts.sql, &mut out);
    out.extend_from_slice(b",\"duration_ms\":");
    let duration_ms = duration.as_secs_f64() * 1_000.0;
    write_milliseconds(duration_ms, &mut out);
    out.extend_from_slice(b"},\"meta\":{\"total_rows\":");
    match facts.total_rows {
        Some(rows) => write_integer(rows, &mut out),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"returned_rows\":");
    write_integer(*returned_rows, &mut out);
    out.extend_from_slice(b",\"truncated\":");
    out.extend_from_slice(truncated.map_or("null", |truncated| if truncated { "true" } else { "false" }).as_bytes());
    out.extend_from_slice(b",\"warnings\":");
    write_list(&facts.warnings, |warning, out| write_string(warning, out), &mut out);
    if let Some(totals) = &facts.totals {
        out.extend_from_slice(b",\"totals\":");
        json::write_row(&totals.columns, &totals.batches, facts.numbers, &mut out);
    }
    let Freshness { as_of, is_cached, is_stale, age } = facts.freshness;
    let word = |is_true: bool| if is_true { "true" } else { "false" };
    out.extend_from_slice(b",\"cached\":");
    out.extend_from_slice(word(is_cached).as_bytes());
    out.extend_from_slice(b",\"cache_key\":");
    write_string(&facts.cache_key, &mut out);
    out.extend_from_slice(b",\"as_of\":");
    write_string(&as_of.to_string(), &mut out);
    if is_cached {
        out.extend_from_slice(b",\"age_ms\":");
        write_integer(u64::try_from(age.as_millis()).unwrap_or(u64::MAX), &mut out);
        out.extend_from_slice(b",\"stale\":");
        out.extend_from_slice(word(is_stale).as_bytes());
    }
    if !facts.pre_aggregations.is_empty() {
        out.extend_from_slice(b",\"pre_aggregation\":");
        write_pre_aggregations(&facts.pre_aggregations, &mut out);
    }
    if let Some(cube) = &facts.cube {
        out.extend_from_slice(b",\"cube\":");
        write_string(cube, &mut out);
        out.extend_from_slice(b",\"query_time_ms\":");
        write_milliseconds(duration_ms, &mut out);
    }
    out.extend_from_slice(b"}}");
    out
}

fn write_pre_aggregations(facts: &[FactMatch], out: &mut Vec<u8>) {
    let facts: Vec<_> = facts.iter().map(|fact| FactPreAggregation::new(fact, false)).collect();
    // Strings and numbers always serialize.
    out.extend_from_slice(&serde_json::to_vec(&facts).unwrap_or_else(|_| b"[]".to_vec()));
}

/// Returns `{sql, params}`.
pub fn sql_to_wire(sql: &str, params: &[Value]) -> Vec<u8> {
    let mut out = Vec::with_capacity(sql.len() + sql.len() / 8 + 64);
    out.extend_from_slice(b"{\"sql\":");
    write_string(sql, &mut out);
    out.extend_from_slice(b",\"params\":");
    write_list(params, json::write_value, &mut out);
    out.push(b'}');
    out
}

fn write_list<T>(items: &[T], write: impl Fn(&T, &mut Vec<u8>), out: &mut Vec<u8>) {
    out.push(b'[');
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

fn write_integer(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Writes a duration with at most three decimal places.
fn write_milliseconds(duration_ms: f64, out: &mut Vec<u8>) {
    let rounded = (duration_ms * 1_000.0).round() / 1_000.0;
    out.extend_from_slice(ryu::Buffer::new().format(rounded).as_bytes());
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use serde_json::Value as Json;

    use super::*;
    use crate::schema::Components;

    fn keys(json: &Json) -> BTreeSet<&str> {
        json.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn written_fields_are_those_of_the_schema() {
        let freshness = Freshness {
            as_of: jiff::Timestamp::UNIX_EPOCH,
            is_cached: true,
            is_stale: false,
            age: Duration::from_secs(1),
        };
        let facts = AnswerFacts {
            freshness,
            sql: "SELECT 1".to_owned(),
            total_rows: None,
            totals: None,
            warnings: vec!["a".to_owned(), "b".to_owned()],
            cache_key: "key".to_owned(),
            pre_aggregations: vec![FactMatch {
                cube: "orders".into(),
                served: None,
                misses: Vec::new(),
                is_hidden: false,
            }],
            cube: Some("orders".to_owned()),
            numbers: Numbers::Plain,
        };
        let end = Piece::End { returned_rows: 0, truncated: None, duration: Duration::from_micros(1_500) };
        let text = [before(RowFormat::Json), after(RowFormat::Json, &facts, &end)].concat();
        let answer: Json = serde_json::from_slice(&text).unwrap();
        let mut components = Components::new();
        components.answer(schema::of::<QueryAnswer>());
        let schemas = components.finish();
        assert_eq!(keys(&answer), keys(&schemas["QueryAnswer"]["properties"]));
        assert_eq!(keys(&answer["query"]), keys(&schemas["QueryInfo"]["properties"]));
        let mut meta = keys(&schemas["QueryMeta"]["properties"]);
        assert!(meta.remove("totals"));
        assert_eq!(keys(&answer["meta"]), meta);
        assert_eq!(answer["query"]["duration_ms"], 1.5);
        for required in schemas["QueryMeta"]["required"].as_array().unwrap() {
            assert!(answer["meta"].get(required.as_str().unwrap()).is_some(), "{required}");
        }
    }
}
