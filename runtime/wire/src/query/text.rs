//! Writes queries of other interfaces as REST bodies, because jobs store their query as text.

use serde_json::{Map, Value as Json, json};
use terrane_compiler::query::{
    CompareRange, DateRange, Filter, MemberRef, OrderBy, PreAggregations, SemanticQuery, TimeDimension, TimeRange,
};
use terrane_compiler::types::Value;

use crate::json::write_value;

/// Returns a body from which [`from_wire`](super::from_wire) reads the same query. `max_staleness` is not part of the
/// body, because it controls the cache and is not part of the query.
pub fn to_wire(query: &SemanticQuery) -> String {
    let mut body = Map::new();
    let mut add = |name: &str, value: Json| body.insert(name.to_owned(), value);
    if let Some(cube) = &query.cube {
        add("cube", (**cube).into());
    }
    for (name, members) in
        [("measures", &query.values), ("dimensions", &query.dimensions), ("segments", &query.segments)]
    {
        if !members.is_empty() {
            add(name, members.iter().map(text).collect());
        }
    }
    if !query.time_dimensions.is_empty() {
        add("time_dimensions", query.time_dimensions.iter().map(time_dimension).collect());
    }
    if let Some(range) = &query.time_range {
        add("time_range", time_range(range));
    }
    if !query.filters.is_empty() {
        add("filters", query.filters.iter().map(filter).collect());
    }
    if !query.order.is_empty() {
        add("order_by", query.order.iter().map(order).collect());
    }
    if let Some(limit) = query.limit {
        add("limit", limit.into());
    }
    if query.offset > 0 {
        add("offset", query.offset.into());
    }
    if let Some(timezone) = &query.timezone {
        add("timezone", (**timezone).into());
    }
    for (name, value, default) in [
        ("total", !query.skip_total, true),
        ("totals", query.totals, false),
        ("fill_gaps", query.fill_gaps, false),
        ("ungrouped", query.ungrouped, false),
    ] {
        if value != default {
            add(name, value.into());
        }
    }
    match &query.compare {
        None => {}
        Some(CompareRange::Shift(shift)) => {
            add("compare_range", json!({ "shift": &**shift }));
        }
        Some(CompareRange::Range(range)) => {
            add("compare_range", dates(range));
        }
    }
    if query.pre_aggregations != PreAggregations::default() {
        add("pre_aggregations", query.pre_aggregations.as_str().into());
    }
    Json::Object(body).to_string()
}

fn text(member: &MemberRef) -> Json {
    (*member.text).into()
}

fn time_dimension(time: &TimeDimension) -> Json {
    let mut body = Map::from_iter([("dimension".to_owned(), text(&time.member))]);
    if let Some(granularity) = time.granularity {
        body.insert("granularity".to_owned(), granularity.as_str().into());
    }
    if let Some(range) = &time.range {
        body.insert("date_range".to_owned(), dates(range));
    }
    body.into()
}

fn time_range(range: &TimeRange) -> Json {
    let mut body = Map::new();
    match &range.range {
        // Words have no dimension and no granularity.
        DateRange::Words(words) => return (**words).into(),
        DateRange::Between(start, end) => {
            for (name, end) in [("start", start), ("end", end)] {
                if let Some(end) = end {
                    body.insert(name.to_owned(), (**end).into());
                }
            }
        }
    }
    if let Some(member) = &range.member {
        body.insert("dimension".to_owned(), text(member));
    }
    if let Some(granularity) = range.granularity {
        body.insert("granularity".to_owned(), granularity.as_str().into());
    }
    body.into()
}

fn dates(range: &DateRange) -> Json {
    match range {
        DateRange::Words(words) => (**words).into(),
        DateRange::Between(start, end) => json!([start.as_deref(), end.as_deref()]),
    }
}

fn filter(filter: &Filter) -> Json {
    match filter {
        Filter::And(all) => json!({ "and": all.iter().map(self::filter).collect::<Vec<_>>() }),
        Filter::Or(all) => json!({ "or": all.iter().map(self::filter).collect::<Vec<_>>() }),
        Filter::Not(inner) => json!({ "not": self::filter(inner) }),
        // A request cannot contain this filter: a reader refuses it.
        Filter::NoRow { cube } => json!({ "no_row": &**cube }),
        Filter::Condition { member, operator, values } => {
            let values: Vec<Json> = values.iter().map(value).collect();
            json!({ "member": text(member), "operator": operator.as_str(), "values": values })
        }
    }
}

fn order(order: &OrderBy) -> Json {
    json!({ "field": text(&order.member), "direction": if order.descending { "desc" } else { "asc" } })
}

fn value(value: &Value) -> Json {
    let mut out = Vec::new();
    write_value(value, &mut out);
    serde_json::from_slice(&out).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::from_wire;
    use super::*;

    #[test]
    fn bodies_round_trip() {
        for body in [
            r#"{"measures": ["orders.count"]}"#,
            r#"{"cube": "orders", "metrics": ["rate"], "measures": ["count"], "dimensions": ["created_at.month"],
                "segments": ["paid"], "limit": 7, "offset": 3, "timezone": "Europe/Berlin", "total": false,
                "totals": true, "fill_gaps": true, "ungrouped": true, "pre_aggregations": "off",
                "order_by": [{"field": "count", "direction": "desc"}, {"field": "created_at.month"}],
                "time_dimensions": [{"dimension": "orders.created_at", "granularity": "day",
                    "date_range": ["2024-01-01", null]}, {"dimension": "orders.paid_at", "date_range": "last 7 days"}],
                "compare_range": {"shift": "1 year"}}"#,
            r#"{"measures": ["a.b"], "time_range": "2024-Q3", "compare_range": ["2023-01-01", "2023-12-31"]}"#,
            r#"{"measures": ["a.b"], "compare_range": "2023",
                "time_range": {"dimension": "a.t", "start": "2024-01-01", "granularity": "week"}}"#,
            r#"{"measures": ["a.b"], "filters": [
                {"and": [{"member": "a.c", "operator": "equals", "values": ["x", null]},
                         {"not": {"dimension": "a.d", "operator": "gte", "value": 1.5}}]},
                {"or": [{"member": "a.e", "operator": "set"}, {"member": "a.f", "operator": "inList", "value": []},
                        {"member": "a.g", "operator": "between", "value": [1, 123456789012345678901234567890.5]}]}]}"#,
        ] {
            let query = from_wire(body.as_bytes()).unwrap().query;
            let text = to_wire(&query);
            assert_eq!(from_wire(text.as_bytes()).unwrap().query, query, "{text}");
        }
    }
}
