//! Reads measures.
//!
//! In: a measure of a model. Out: a measure, or a finding at its place. Two kinds have no counterpart in a project:
//! measures over finished results (`multi_stage`), and windows that restart in each period.

use terrane_authoring::names::snake;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::project::yaml::Node;
use terrane_compiler::types::WindowLength;

use super::members::{MemberReader, may_be_true, members};
use crate::draft::Member;
use crate::entry::Entry;
use crate::measure_sql::{percentile, report_division, set_percentile};

/// The window of a measure, in the terms of the project.
enum Window {
    RunningTotal,
    /// The value of the key `rolling_window`.
    Rolling(Yaml),
}

/// The error of a measure that was rejected and reported.
struct Rejected;

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
            reader.reject(&entry, "it ranks the groups of the result", "Order the query by the measure.");
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
    if may_be_true(&entry, "multi_stage") || stages.iter().any(|key| entry.has(key)) {
        reader.reject(&entry, "it is computed in several stages", MULTI_STAGE);
        return None;
    }
    if entry.has("case") {
        reader.reject(&entry, "its value depends on a switch", "Write a measure for each case.");
        return None;
    }
    let window = match entry.node("rolling_window").and_then(|node| Entry::open(node, "")) {
        Some(window) => Some(rolling(&entry, &window, ty, reader).ok()?),
        // Without a window, a running total of an older model starts at the beginning of the queried range.
        None => None,
    };
    let sql = match (ty, entry.has("sql")) {
        ("count", false) => None,
        // A running count of rows is a running total of the number 1.
        ("running_total", false) => Some("1".to_owned()),
        _ => Some(reader.sql(&entry, "sql")?),
    };
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text(ty))]);
    if let Some(found) = sql.as_deref().filter(|_| ty == "number").and_then(percentile) {
        set_percentile(&found, &mut yaml);
    } else if let Some(sql) = sql {
        if ty == "number" {
            report_division(&entry.what, &sql, entry.span_of("sql"), reader.findings);
            reader.report_other_cubes(&entry);
        }
        yaml.set("sql", Yaml::Text(sql));
    }
    match window {
        Some(Window::Rolling(window)) => yaml.set("rolling_window", window),
        Some(Window::RunningTotal) => yaml.set("from", Yaml::text("all")),
        None => {}
    }
    let mut filters = Vec::new();
    for item in entry.list("filters") {
        // A measure that lacks one of its filters would aggregate other rows, so the whole measure is rejected.
        let filter = Entry::open(item, format!("a filter of {}", entry.what)).and_then(|filter| filter.text("sql"));
        let Some(text) = filter else {
            reader.reject(&entry, "one of its filters has no `sql`", "Write its condition.");
            return None;
        };
        filters.push(Yaml::map([("sql", Yaml::Text(reader.expression(&entry, &text.value)?))]));
    }
    if !filters.is_empty() {
        if ty == "number" {
            reader.reject(&entry, "it filters computed values", "Filter the measures that it combines.");
            return None;
        }
        yaml.set("filters", Yaml::List(filters));
    }
    let drills = members(&entry, "drill_members").iter().map(|m| reader.scope.path(reader.cube, m)).collect();
    reader.wording(&entry, &mut yaml);
    Some(Member { drills, ..reader.member(name, yaml, entry) })
}

/// Reads the rolling window of a measure. A window without a counterpart is reported and returned as `Err`.
fn rolling(
    entry: &Entry<'_>,
    window: &Entry<'_>,
    ty: &'static str,
    reader: &mut MemberReader<'_>,
) -> Result<Window, Rejected> {
    let mut reject = |reason: &str, cure: &str| {
        reader.reject(entry, reason, cure);
        Rejected
    };
    if window.word("type").is_some_and(|word| word != "fixed") {
        let cure = "Compute it in the client, or write a measure for the period itself.";
        return Err(reject("its window restarts in each period", cure));
    }
    let sides = ["trailing", "leading"].map(|side| (side, window.word(side)));
    let is_running_total = matches!(&sides, [(_, Some(trailing)), (_, None)] if trailing == "unbounded");
    if ty == "running_total" {
        return match is_running_total {
            true => Ok(Window::RunningTotal),
            false => Err(reject("it is a running total and has another window", "Write it as a sum.")),
        };
    }
    if ty == "number" {
        let cure = "Add the window to the measures that this measure combines.";
        return Err(reject("it has a window over computed values", cure));
    }
    let mut yaml = Yaml::map([]);
    for (side, length) in sides.iter().filter_map(|(side, length)| Some((side, length.as_ref()?))) {
        let Ok(length) = WindowLength::parse(length) else {
            let reason = format!("its window has the invalid length `{length}`");
            return Err(reject(&reason, "Write an integer and one unit, such as `28 day`."));
        };
        yaml.set(side, Yaml::text(length.to_string()));
    }
    if sides.iter().all(|(_, length)| length.is_none()) {
        return Err(reject("its window has no length", "Write `trailing` or `leading`."));
    }
    match window.word("offset").as_deref() {
        None | Some("end") => {}
        Some("start") => yaml.set("offset", Yaml::text("start")),
        Some(other) => {
            let reason = format!("its window has the unknown offset `{other}`");
            return Err(reject(&reason, "Write `start` or `end`."));
        }
    }
    Ok(Window::Rolling(yaml))
}
