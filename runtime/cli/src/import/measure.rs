//! Measures.
//!
//! In: a measure of a model. Out: ours, or a finding with the measure's place. What is computed over
//! finished results (`multi_stage`) or over a moving window has no counterpart and is told.

use terrane_compiler::project::yaml::Node;

use super::draft::Member;
use super::entry::Entry;
use super::finding::{changed, left_out};
use super::others::{Reading, members};
use crate::authoring::names::snake;
use crate::authoring::yaml::Yaml;

const MULTI_STAGE: &str =
    "ask for the measure with the dimensions and ranges it needs, or compute it where the answer is read";

pub(super) fn measure(node: &Node, reading: &mut Reading<'_>) -> Option<Member> {
    let (entry, original) = reading.open(node, "measure")?;
    let name = reading.scope.member(reading.cube, &original);
    let Some(written) = entry.word("type") else {
        let cure = match entry.slip_of("type") {
            Some(key) => format!("write `type` where `{key}` stands"),
            None => "write how it aggregates: `type: sum`".to_owned(),
        };
        reading.lost(&entry, "it has no `type`", &cure);
        return None;
    };
    let ty = match snake(&written).as_str() {
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
            reading.lost(&entry, "it ranks finished groups", "order the query by the measure instead");
            return None;
        }
        "string" | "time" | "boolean" => {
            let why = format!("a measure of the type `{written}` is no number");
            reading.lost(&entry, &why, "make it a dimension, or `min` or `max` of one");
            return None;
        }
        _ => {
            let why = format!("there is no type `{written}` here");
            reading.lost(
                &entry,
                &why,
                "choose count, count_distinct, count_distinct_approx, sum, avg, min, max, number or running_total",
            );
            return None;
        }
    };
    let stages = ["group_by", "reduce_by", "add_group_by", "time_shift", "order_by", "grain", "keep_filters"];
    if entry.boolean("multi_stage") == Some(true) || stages.iter().any(|key| entry.has(key)) {
        reading.lost(&entry, "it is computed in several stages", MULTI_STAGE);
        return None;
    }
    if entry.has("case") {
        reading.lost(&entry, "its value depends on a switch", "write a measure for each case");
        return None;
    }
    let window = entry.node("rolling_window").and_then(|node| Entry::open(node, ""));
    let (ty, from_all) = match window {
        Some(window) => (rolling(&entry, &window, ty, reading)?, true),
        // The old type began with the range.
        None => (ty, false),
    };
    let sql = match (ty, entry.has("sql")) {
        ("count", false) => None,
        // Rows are counted step by step as a sum of ones.
        ("running_total", false) => Some("1".to_owned()),
        _ => Some(reading.sql(&entry, "sql")?),
    };
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text(ty))]);
    if let Some(sql) = sql {
        if ty == "number" && may_cut_off(&sql) {
            let what = format!("{} divides, and division here is real: 3 / 2 is 1.5", entry.what);
            let cure = "where the warehouse cut the rest off, and that is meant, write floor(a / b)";
            reading.findings.push(changed(entry.span_of("sql"), what, cure));
        }
        yaml.set("sql", Yaml::Text(sql));
    }
    if from_all {
        yaml.set("from", Yaml::text("all"));
    }
    let mut filters = Vec::new();
    for item in entry.list("filters") {
        // A filter that is left out would measure other rows.
        let filter = Entry::open(item, format!("a filter of {}", entry.what)).and_then(|filter| filter.text("sql"));
        let Some(text) = filter else {
            reading.lost(&entry, "a filter of it has no `sql`", "write the condition that it stands for");
            return None;
        };
        filters.push(Yaml::map([("sql", Yaml::Text(reading.expression(&entry, &text.value)?))]));
    }
    if !filters.is_empty() {
        if ty == "number" {
            reading.lost(&entry, "it filters finished numbers", "filter the measures that it is made of");
            return None;
        }
        yaml.set("filters", Yaml::List(filters));
    }
    let drills: Vec<String> =
        members(&entry, "drill_members").iter().map(|m| reading.scope.path(reading.cube, m)).collect();
    if !drills.is_empty() {
        yaml.set("drill_members", Yaml::texts(drills));
    }
    reading.wording(&entry, &mut yaml);
    let span = entry.span.clone();
    entry.finish(reading.findings);
    Some(Member { name, yaml, span })
}

/// Whether a warehouse that divides whole numbers as such may have done so: nothing makes one of them a fraction.
fn may_cut_off(sql: &str) -> bool {
    let lower = sql.to_ascii_lowercase();
    let is_fraction = lower.as_bytes().windows(2).any(|pair| pair[0] == b'.' && pair[1].is_ascii_digit());
    lower.contains('/') && !is_fraction && !["::", "cast(", "float", "decimal", "avg"].iter().any(|w| lower.contains(w))
}

/// A window that begins with the first row is a running total; any other moves.
fn rolling(entry: &Entry<'_>, window: &Entry<'_>, ty: &'static str, reading: &mut Reading<'_>) -> Option<&'static str> {
    let is_unbounded = window.word("trailing").as_deref() == Some("unbounded") && !window.has("leading");
    if window.word("type").is_some_and(|word| word != "fixed") || !is_unbounded {
        let cure =
            "ask for the measure over the range itself (`time_range`), or compute the window where the answer is read";
        reading.lost(entry, "its window moves, and a running total here begins with the first row", cure);
        return None;
    }
    if !matches!(ty, "sum" | "count" | "running_total") || (ty == "count" && entry.has("sql")) {
        reading.lost(entry, &format!("a running total adds up, and its type is `{ty}`"), "write it as a sum");
        return None;
    }
    if let Some(offset) = window.word("offset").filter(|offset| offset != "end") {
        let what = format!("{} has the offset `{offset}`, and includes each step here", entry.what);
        reading.findings.push(left_out(
            entry.span_of("rolling_window"),
            what,
            "compare with the step before where that is meant",
        ));
    }
    Some("running_total")
}
