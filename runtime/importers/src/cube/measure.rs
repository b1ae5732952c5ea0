//! Reads measures.
//!
//! In: a measure of a model. Out: a measure, or a finding at its place. Measures over finished results
//! (`multi_stage`) and over moving windows have no counterpart.

use terrane_authoring::names::snake;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::project::yaml::Node;

use super::members::{MemberReader, members};
use crate::draft::Member;
use crate::entry::Entry;
use crate::finding::{changed, left_out};
use crate::measure_sql::may_divide_integers;

const MULTI_STAGE: &str =
    "Query the measure with the dimensions and ranges that it needs, or compute it in the client.";

pub(super) fn measure(node: &Node, reader: &mut MemberReader<'_>) -> Option<Member> {
    let (entry, original) = reader.open(node, "measure")?;
    let name = reader.scope.member(reader.cube, &original);
    let Some(original_type) = entry.word("type") else {
        let cure = match entry.misspelling_of("type") {
            Some(key) => format!("Write `type` instead of `{key}`."),
            None => "Write its aggregation: `type: sum`.".to_owned(),
        };
        reader.reject(&entry, "it has no `type`", &cure);
        return None;
    };
    let ty = match snake(&original_type).as_str() {
        "count" => "count",
        "count_distinct" => "count_distinct",
        "count_distinct_approx" => "count_distinct_approx",
        "sum" => "sum",
        "avg" => "avg",
        "min" => "min",
        "max" => "max",
        "number" | "number_agg" => "number",
        "running_total" => "running_total",
        "rank" => {
            reader.reject(&entry, "it ranks finished groups", "Order the query by the measure.");
            return None;
        }
        "string" | "time" | "boolean" => {
            let reason = format!("a measure of type `{original_type}` is not a number");
            reader.reject(&entry, &reason, "Make it a dimension, or `min` or `max` of one.");
            return None;
        }
        _ => {
            let cure =
                "Write count, count_distinct, count_distinct_approx, sum, avg, min, max, number or running_total.";
            reader.reject(&entry, &format!("unknown type `{original_type}`"), cure);
            return None;
        }
    };
    let stages = ["group_by", "reduce_by", "add_group_by", "time_shift", "order_by", "grain", "keep_filters"];
    if entry.boolean("multi_stage") == Some(true) || stages.iter().any(|key| entry.has(key)) {
        reader.reject(&entry, "it is computed in several stages", MULTI_STAGE);
        return None;
    }
    if entry.has("case") {
        reader.reject(&entry, "its value depends on a switch", "Write a measure for each case.");
        return None;
    }
    let window = entry.node("rolling_window").and_then(|node| Entry::open(node, ""));
    let (ty, from_all) = match window {
        Some(window) => (rolling(&entry, &window, ty, reader)?, true),
        // The older type begins with the queried range.
        None => (ty, false),
    };
    let sql = match (ty, entry.has("sql")) {
        ("count", false) => None,
        // A running count is a sum of ones.
        ("running_total", false) => Some("1".to_owned()),
        _ => Some(reader.sql(&entry, "sql")?),
    };
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text(ty))]);
    if let Some(sql) = sql {
        if ty == "number" && may_divide_integers(&sql) {
            let what = format!("{} divides, and the project divides exactly: 3 / 2 is 1.5", entry.what);
            let cure = "If the warehouse divides integers and you rely on it, write floor(a / b).";
            reader.findings.push(changed(entry.span_of("sql"), what, cure));
        }
        yaml.set("sql", Yaml::Text(sql));
    }
    if from_all {
        yaml.set("from", Yaml::text("all"));
    }
    let mut filters = Vec::new();
    for item in entry.list("filters") {
        // Without one of its filters the measure would read other rows.
        let filter = Entry::open(item, format!("a filter of {}", entry.what)).and_then(|filter| filter.text("sql"));
        let Some(text) = filter else {
            reader.reject(&entry, "one of its filters has no `sql`", "Write its condition.");
            return None;
        };
        filters.push(Yaml::map([("sql", Yaml::Text(reader.expression(&entry, &text.value)?))]));
    }
    if !filters.is_empty() {
        if ty == "number" {
            reader.reject(&entry, "it filters finished numbers", "Filter the measures that it combines.");
            return None;
        }
        yaml.set("filters", Yaml::List(filters));
    }
    let drills = members(&entry, "drill_members").iter().map(|m| reader.scope.path(reader.cube, m)).collect();
    reader.wording(&entry, &mut yaml);
    Some(Member { drills, ..reader.member(name, yaml, entry) })
}

/// Translates a window that begins with the first row to a running total. Other windows have no counterpart.
fn rolling(
    entry: &Entry<'_>,
    window: &Entry<'_>,
    ty: &'static str,
    reader: &mut MemberReader<'_>,
) -> Option<&'static str> {
    let is_unbounded = window.word("trailing").as_deref() == Some("unbounded") && !window.has("leading");
    if window.word("type").is_some_and(|word| word != "fixed") || !is_unbounded {
        let cure = "Query the measure over the range itself (`time_range`), or compute the window in the client.";
        reader.reject(
            entry,
            "it has a moving window; Terrane has only running totals from the start of the range",
            cure,
        );
        return None;
    }
    if !matches!(ty, "sum" | "count" | "running_total") || (ty == "count" && entry.has("sql")) {
        reader.reject(entry, &format!("a running total is a sum, and its type is `{ty}`"), "Write it as a sum.");
        return None;
    }
    if let Some(offset) = window.word("offset").filter(|offset| offset != "end") {
        let what = format!("{} has the offset `{offset}`, which is not imported: it includes each step", entry.what);
        reader.findings.push(left_out(
            entry.span_of("rolling_window"),
            what,
            "Compare with the previous step if that is meant.",
        ));
    }
    Some("running_total")
}
