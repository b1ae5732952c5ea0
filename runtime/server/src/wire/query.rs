//! The body of a query (specification, "Query request").
//!
//! In: bytes. Out: a [`QueryRequest`], or a `Misfit` that names the field. Unknown fields are refused
//! with the nearest known one, so that a misspelt filter can't go unnoticed.

use std::collections::HashSet;

use serde_json::Value as Json;
use terrane_compiler::query::{MemberRef, OrderBy, SemanticQuery};

use super::fields::{Fields, Misfit, Path};
use super::{body, filter, time};
use crate::json::Numbers;

pub(crate) use super::parameters::from_parameters;

/// A query and what only this surface knows of.
#[derive(Debug, Default)]
pub(crate) struct QueryRequest {
    pub(crate) query: SemanticQuery,
    pub(crate) numbers: Numbers,
    /// One runnable text instead of a text and its values; for `/query/sql`.
    pub(crate) inline: bool,
}

const FITS: &str = "a query, which is a JSON object,";
pub(super) const FIELDS_FOR_SQL: &[&str] = &[
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
    "inline",
];
/// All but the last.
pub(super) const FIELDS: &[&str] = match FIELDS_FOR_SQL.split_last() {
    Some((_, others)) => others,
    None => &[],
};
const MEMBERS_FIT: &str = "a list of members, like [\"orders.count\"],";

/// The body of `POST /api/v1/query` and `/query/explain`.
pub(crate) fn from_wire(body: &[u8]) -> Result<QueryRequest, Misfit> {
    read(body, FIELDS)
}

/// The body of `POST /api/v1/query/sql`, which may also ask for `inline`.
pub(crate) fn from_wire_for_sql(body: &[u8]) -> Result<QueryRequest, Misfit> {
    read(body, FIELDS_FOR_SQL)
}

fn read(body: &[u8], known: &'static [&'static str]) -> Result<QueryRequest, Misfit> {
    let value = body::parse(body)?;
    let path = Path::ROOT;
    let fields = Fields::new(&value, &path, FITS, known)?;
    let mut values = fields.list("metrics", MEMBERS_FIT, member_item)?;
    values.extend(fields.list("measures", MEMBERS_FIT, member_item)?);
    let mut order = fields.list("order_by", ORDERS_FIT, order_item)?;
    order.extend(fields.list("order", ORDERS_FIT, order_item)?);
    let query = SemanticQuery {
        cube: fields.text("cube", "a cube's name")?.map(Into::into),
        values: distinct(values),
        dimensions: distinct(fields.list("dimensions", MEMBERS_FIT, member_item)?),
        time_dimensions: fields.list("time_dimensions", "a list of time dimensions", time::dimension)?,
        time_range: match fields.get("time_range") {
            None => None,
            Some(range) => Some(time::range(range, &path.field("time_range"))?),
        },
        filters: fields.list("filters", "a list of filters", filter::from_wire)?,
        segments: distinct(fields.list("segments", "a list of segments, like [\"orders.paid\"],", member_item)?),
        order,
        limit: fields.whole_number("limit")?,
        offset: fields.whole_number("offset")?.unwrap_or(0),
        timezone: fields.text("timezone", "a timezone, like \"Europe/Berlin\",")?.map(Into::into),
        skip_total: fields.flag("total")? == Some(false),
        totals: fields.flag("totals")? == Some(true),
        compare: match fields.get("compare_range") {
            None => None,
            Some(compared) => Some(time::compare(compared, &path.field("compare_range"))?),
        },
        fill_gaps: fields.flag("fill_gaps")? == Some(true),
        ungrouped: fields.flag("ungrouped")? == Some(true),
    };
    Ok(QueryRequest { query, numbers: numbers(&fields, &path)?, inline: fields.flag("inline")? == Some(true) })
}

pub(super) const ORDER_BY: &[&str] = &["field", "direction"];
const ORDERS_FIT: &str = "a list like [{\"field\": …, \"direction\": \"desc\"}]";

fn order_item(value: &Json, path: &Path<'_>) -> Result<OrderBy, Misfit> {
    let fits = "an object like {\"field\": …, \"direction\": \"desc\"}";
    let fields = Fields::new(value, path, fits, ORDER_BY)?;
    let member = member(fields.required_text("field", "a member, like \"orders.count\",")?, &path.field("field"))?;
    let descending = match fields.text("direction", "\"asc\" or \"desc\"")? {
        None | Some("asc") => false,
        Some("desc") => true,
        Some(other) => return Err(path.field("direction").wrong_word(other, "`asc` or `desc`")),
    };
    Ok(OrderBy { member, descending })
}

fn numbers(fields: &Fields<'_>, path: &Path<'_>) -> Result<Numbers, Misfit> {
    match fields.text("numbers", "\"string\" or \"number\"")? {
        None | Some("number") => Ok(Numbers::Plain),
        Some("string") => Ok(Numbers::Strings),
        Some(other) => Err(path.field("numbers").wrong_word(other, "`string` or `number`")),
    }
}

fn member_item(value: &Json, path: &Path<'_>) -> Result<MemberRef, Misfit> {
    match value {
        Json::String(text) => member(text, path),
        other => Err(path.wrong_type(other, "a member, like \"orders.count\",")),
    }
}

pub(super) fn member(text: &str, path: &Path<'_>) -> Result<MemberRef, Misfit> {
    text.parse().map_err(|error| path.refused(error))
}

/// The first of each, in their order.
pub(super) fn distinct(members: Vec<MemberRef>) -> Vec<MemberRef> {
    let mut seen = HashSet::new();
    members.into_iter().filter(|member| seen.insert(member.text.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_names_every_field() {
        let reference = include_str!("../../../QUERY.md");
        let (_, body) = reference.split_once("## The body").unwrap();
        let (body, _) = body.split_once("\n## ").unwrap();
        let cells = body.lines().filter(|line| line.starts_with("| `")).filter_map(|line| line.split('|').nth(1));
        let named: Vec<&str> =
            cells.flat_map(|cell| cell.split(", ")).map(|name| name.trim().trim_matches('`')).collect();
        for field in FIELDS {
            assert!(named.contains(field), "QUERY.md does not name `{field}`");
        }
        for name in named {
            assert!(FIELDS.contains(&name), "QUERY.md names `{name}`, which no query has");
        }
        assert!(reference.contains("`inline: true`"));
    }
}
