//! Reads measures.
//!
//! In: a measure of a view. Out: a measure, or a finding at its place. Measures over finished results, such as
//! `percent_of_total`, have no counterpart.

use terrane_authoring::yaml::Yaml;

use super::fields::Fields;
use super::filter::condition;
use super::reader::ViewReader;
use super::scope::{FieldKind, ViewNames};
use super::sql::is_row_field;
use super::syntax::{Item, Value};
use crate::aggregation::measure_type;
use crate::draft::{Member, Reference};
use crate::finding::left_out;
use crate::measure_sql::{percentile, report_division, report_other_cubes, set_percentile};

pub(super) fn measure(item: &Item, reader: &mut ViewReader<'_>) -> Option<Member> {
    let (fields, name) = reader.open(item, "measure")?;
    let original = fields.text("type").unwrap_or("string");
    let ty = match original {
        "number" => "number",
        "count_distinct" if fields.is_yes("approximate") => "count_distinct_approx",
        "sum_distinct" | "average_distinct" | "median_distinct" | "percentile_distinct" => {
            distinct(&fields, original, reader)?
        }
        "running_total" | "percent_of_total" | "percent_of_previous" => {
            let cure = match original {
                "running_total" => "Compute it in the client, or write a measure of type running_total over a column.",
                "percent_of_total" => "Query its measure with `totals: true`, and divide in the client.",
                _ => "Compute it in the client.",
            };
            fields.reject(&format!("`{original}` is computed over the rows of the result"), cure, reader.findings);
            return None;
        }
        "list" | "string" | "date" | "yesno" | "time" => {
            let reason = format!("a measure of type `{original}` is not a number");
            fields.reject(&reason, "Make it a dimension, or `min` or `max` of one.", reader.findings);
            return None;
        }
        aggregation => {
            match measure_type(aggregation.trim_end_matches("_distinct")).or_else(|_| measure_type(aggregation)) {
                Ok(_) if aggregation == "count_distinct" => "count_distinct",
                Ok(ty) => ty,
                Err(cure) => {
                    fields.reject(&format!("no measure type computes `{aggregation}`"), cure, reader.findings);
                    return None;
                }
            }
        }
    };
    let sql = match fields.text("sql") {
        Some(text) => Some(reader.sql(&fields, text)?),
        None if ty == "count" => None,
        None => {
            fields.reject("it has no `sql`", "Write its expression.", reader.findings);
            return None;
        }
    };
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text(ty))]);
    if let Some(found) = sql.as_deref().filter(|_| ty == "number").and_then(percentile) {
        set_percentile(&found, &mut yaml);
    } else if let Some(sql) = sql {
        if ty == "number" {
            report_division(&fields.what, &sql, fields.span_of("sql"), reader.findings);
        }
        yaml.set("sql", Yaml::Text(sql));
    }
    if ty == "number" {
        report_other_views(&fields, reader);
    }
    if let Some(percentile) =
        fields.text("percentile").and_then(|text| text.parse::<f64>().ok()).filter(|_| ty == "percentile")
    {
        yaml.set("percentile", Yaml::Number(format!("{:.6}", percentile / 100.0)));
    }
    let filters = filters(&fields, reader)?;
    if !filters.is_empty() {
        if ty == "number" {
            fields.reject("it filters computed values", "Filter the measures that it combines.", reader.findings);
            return None;
        }
        yaml.set("filters", Yaml::List(filters));
    }
    fields.is_yes("approximate");
    let drills = drills(&fields, reader);
    Some(Member { drills, ..reader.member(name, yaml, fields) })
}

/// Reports a number that combines measures of several views. In Looker, the joins of the explore decide which rows of
/// the other views are aggregated.
fn report_other_views(fields: &Fields<'_>, reader: &mut ViewReader<'_>) {
    let Some(own) = reader.scope.view(reader.view).map(|view| view.cube.as_str()) else { return };
    let measures = reader.needs.iter().filter(|need| reader.scope.is_measure(need));
    report_other_cubes(&fields.what, own, measures, fields.span_of("sql"), reader.findings);
}

/// Returns the type of a measure that aggregates one row for each value of a key. If the key is the view's primary key,
/// these are all rows of the view; another key has no counterpart.
fn distinct(fields: &Fields<'_>, ty: &str, reader: &mut ViewReader<'_>) -> Option<&'static str> {
    let own = reader.scope.view(reader.view);
    let key = own.and_then(|view| view.key.as_deref());
    let is_key = |text: &str| {
        let name = text.trim().strip_prefix("${").and_then(|text| text.strip_suffix('}'))?;
        let (view, name) = name.split_once('.').unwrap_or((reader.view, name));
        Some(view.trim() == reader.view && Some(name.trim()) == key)
    };
    if fields.text("sql_distinct_key").is_some_and(|text| is_key(text) != Some(true)) {
        let cure = "Declare the measure in the view whose primary key it is.";
        fields.reject("it aggregates over a key that is not the view's primary key", cure, reader.findings);
        return None;
    }
    Some(match ty {
        "sum_distinct" => "sum",
        "average_distinct" => "avg",
        "median_distinct" => "median",
        _ => "percentile",
    })
}

/// Reads the filters of a measure: `filters: [status: "paid"]`, or the older blocks with `field` and `value`.
fn filters(fields: &Fields<'_>, reader: &mut ViewReader<'_>) -> Option<Vec<Yaml>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for item in fields.all("filters") {
        match &item.value {
            Value::List(entries) => {
                for entry in entries {
                    pairs.push((entry.key.clone()?, entry.text.clone()));
                }
            }
            _ => {
                let filter = Fields::open(item, "");
                let (Some(field), Some(value)) = (filter.text("field"), filter.text("value")) else {
                    let cure = "Write `filters: [status: \"paid\"]`.";
                    fields.reject("one of its filters cannot be read", cure, reader.findings);
                    return None;
                };
                pairs.push((field.to_owned(), value.to_owned()));
            }
        }
    }
    let ignores_case = reader.scope.settings.ignores_case;
    let mut filters = Vec::new();
    for (field, value) in pairs {
        let value = reader.scope.with_constants(&value);
        let found = place(&field, reader);
        let sql = found.as_ref().and_then(|(reference, kind, _)| condition(reference, *kind, &value, ignores_case));
        let (Some((_, _, need)), Some(sql)) = (found, sql) else {
            let reason = format!("its filter `{field}: \"{value}\"` has no counterpart");
            fields.reject(&reason, "Write the condition in SQL: `filters: [{sql: …}]`.", reader.findings);
            return None;
        };
        reader.needs.push(need);
        filters.push(Yaml::map([("sql", Yaml::Text(sql))]));
    }
    Some(filters)
}

/// Returns the reference to a field of a filter as SQL, its kind, and the member that the filter needs.
fn place(field: &str, reader: &ViewReader<'_>) -> Option<(String, FieldKind, Reference)> {
    let (alias, name) = field.split_once('.').unwrap_or((reader.view, field));
    let view: &ViewNames = reader.scope.view(alias)?;
    let found = view.field(name).filter(|found| is_row_field(found.field.kind))?;
    let member = found.field.name.clone();
    let reference = if alias == reader.view { format!("{{{member}}}") } else { format!("{{{}.{member}}}", view.cube) };
    Some((reference, found.field.kind, Reference { cube: view.cube.clone(), member: Some(member) }))
}

/// Reads the drill fields, which clients offer to show details.
fn drills(fields: &Fields<'_>, reader: &mut ViewReader<'_>) -> Vec<(Reference, String)> {
    let mut drills: Vec<(Reference, String)> = Vec::new();
    let mut unknown = Vec::new();
    for entry in fields.list("drill_fields") {
        let (alias, text) = entry.text.split_once('.').unwrap_or((reader.view, &entry.text));
        let Some(view) = reader.scope.view(alias) else {
            unknown.push(format!("`{}`", entry.text));
            continue;
        };
        for name in view.expand(text) {
            // A set may contain fields of other views.
            let (owner, name) = name.split_once('.').unwrap_or((alias, &name));
            let owner = reader.scope.view(owner);
            match owner.and_then(|view| Some((view, view.field(name)?))) {
                Some((view, found)) => {
                    let member = found.field.name.clone();
                    let is_own = reader.scope.view(reader.view).is_some_and(|own| own.cube == view.cube);
                    let text = if is_own { member.clone() } else { format!("{}.{member}", view.cube) };
                    if !drills.iter().any(|(_, known)| *known == text) {
                        drills.push((Reference { cube: view.cube.clone(), member: Some(member) }, text));
                    }
                }
                None => unknown.push(format!("`{name}`")),
            }
        }
    }
    if !unknown.is_empty() {
        let what = format!("`drill_fields` of {} name unknown fields: {}", fields.what, unknown.join(", "));
        reader.findings.push(left_out(fields.span_of("drill_fields"), what, "Correct the names."));
    }
    drills
}
