//! Reads dimensions and groups of dimensions.

use terrane_authoring::names::column_sql;
use terrane_authoring::yaml::Yaml;

use super::fields::Fields;
use super::reader::ViewReader;
use super::scope::TIMEFRAMES;
use super::syntax::{Item, Value};
use crate::draft::Member;
use crate::finding::{changed, left_out};

const GRANULARITIES: [&str; 8] = ["second", "minute", "hour", "day", "week", "month", "quarter", "year"];

pub(super) fn dimension(item: &Item, reader: &mut ViewReader<'_>) -> Vec<Member> {
    let Some((fields, name)) = reader.open(item, "dimension") else { return Vec::new() };
    let ty = fields.text("type").unwrap_or("string");
    let ty = match ty {
        "string" | "zipcode" => "string",
        "number" | "int" => "number",
        "yesno" => "boolean",
        "tier" => return tier(fields, name, reader).into_iter().collect(),
        "location" => return location(fields, &name, reader),
        "date" | "time" | "date_time" | "date_raw" => "time",
        ty if ty.starts_with("date_") => {
            let what = format!("{} is a time by `{ty}`; in the project, queries name its granularity", fields.what);
            reader.findings.push(changed(fields.span_of("type"), what, "Name the granularity in the query."));
            "time"
        }
        other => {
            let reason = format!("its type `{other}` has no counterpart");
            fields.reject(&reason, "Write string, number, yesno or date, with the SQL for it.", reader.findings);
            return Vec::new();
        }
    };
    let sql = match fields.item("case") {
        Some(case) => case_sql(&fields, case, reader),
        None => row_sql(&fields, item, reader),
    };
    let Some(sql) = sql else { return Vec::new() };
    let is_date = matches!(fields.text("type"), Some("date" | "date_date"));
    let sql = match ty {
        // In LookML, a null counts as No.
        "boolean" => format!("COALESCE({}, FALSE)", enclosed(&sql)),
        _ if is_date && fields.text("datatype") != Some("date") => format!("CAST({} AS DATE)", enclosed(&sql)),
        _ => sql,
    };
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text(ty)), ("sql", Yaml::Text(sql))]);
    if fields.is_yes("primary_key") {
        yaml.set("primary_key", Yaml::Boolean(true));
    }
    if ty == "time" && !zone(&fields, &mut yaml, reader) {
        return Vec::new();
    }
    if is_date {
        yaml.set("granularities", Yaml::texts(GRANULARITIES[3..].iter().copied()));
        report_zone(&fields, &mut yaml, reader);
    }
    vec![reader.member(name, yaml, fields)]
}

/// Returns the SQL of a dimension. A dimension without `sql` is the column with its name.
fn row_sql(fields: &Fields<'_>, item: &Item, reader: &mut ViewReader<'_>) -> Option<String> {
    match fields.text("sql") {
        Some(text) => reader.sql(fields, text),
        None => Some(column_sql(item.name().unwrap_or_default())),
    }
}

/// Writes the time zone of a time dimension. Returns false and adds a finding if its column is a number, which the
/// warehouse does not treat as a time.
fn zone(fields: &Fields<'_>, yaml: &mut Yaml, reader: &mut ViewReader<'_>) -> bool {
    let datatype = fields.text("datatype");
    if let Some(datatype @ ("epoch" | "yyyymmdd")) = datatype {
        let reason = format!("its column is a number (`datatype: {datatype}`)");
        fields.reject(&reason, "Write the warehouse's function that makes a timestamp of it.", reader.findings);
        return false;
    }
    let converts = fields.text("convert_tz").is_none_or(|word| word.eq_ignore_ascii_case("yes"));
    if !converts || datatype == Some("date") {
        yaml.set("timezone", Yaml::text("none"));
    }
    true
}

/// Reports a date whose column is a time in the time zone of the warehouse.
fn report_zone(fields: &Fields<'_>, yaml: &mut Yaml, reader: &mut ViewReader<'_>) {
    if yaml.get("timezone").is_none() {
        let what = format!("{} is a date in the time zone of the warehouse, not in that of the query", fields.what);
        let cure = "Write the time as a dimension of type time, and name the granularity in the query.";
        reader.findings.push(changed(fields.span_of("type"), what, cure));
        yaml.set("timezone", Yaml::text("none"));
    }
}

/// Returns SQL as an argument of a function. A comment may end its last line.
fn enclosed(sql: &str) -> String {
    if sql.contains("--") || sql.contains('#') { format!("{sql}\n") } else { sql.to_owned() }
}

pub(super) fn group(item: &Item, reader: &mut ViewReader<'_>) -> Option<Member> {
    let (fields, name) = reader.open(item, "dimension group")?;
    if fields.text("type").is_some_and(|ty| ty != "time") {
        let cure = "Write a dimension of type number with the warehouse's function, such as date_diff.";
        fields.reject("it is a duration", cure, reader.findings);
        return None;
    }
    let sql = row_sql(&fields, item, reader)?;
    let mut yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text("time")), ("sql", Yaml::Text(sql))]);
    if !zone(&fields, &mut yaml, reader) {
        return None;
    }
    let timeframes = fields.list("timeframes");
    let granularity =
        |word: &str| TIMEFRAMES.iter().find(|(timeframe, _)| *timeframe == word).map(|(_, granularity)| *granularity);
    let found: Vec<&str> = timeframes.iter().filter_map(|entry| granularity(&entry.text)).collect();
    let known: Vec<&str> = GRANULARITIES.into_iter().filter(|granularity| found.contains(granularity)).collect();
    if !known.is_empty() && known.len() < GRANULARITIES.len() {
        yaml.set("granularities", Yaml::texts(known));
    }
    let others = timeframes.iter().filter(|entry| granularity(&entry.text).is_none() && entry.text != "raw");
    let others: Vec<String> = others.map(|entry| format!("`{}`", entry.text)).collect();
    if !others.is_empty() {
        let what = format!("timeframes of {} are not imported: {}", fields.what, others.join(", "));
        let cure = "Write a dimension with the warehouse's function for each that is needed.";
        reader.findings.push(left_out(fields.span_of("timeframes"), what, cure));
    }
    Some(reader.member(name, yaml, fields))
}

/// Translates the key `case` to a CASE expression.
fn case_sql(fields: &Fields<'_>, case: &Item, reader: &mut ViewReader<'_>) -> Option<String> {
    let mut sql = String::from("CASE");
    let mut other = None;
    for item in case.items() {
        match (item.key.as_str(), &item.value) {
            ("when", Value::Block { .. }) => {
                let when = Fields::open(item, "");
                let (Some(condition), Some(label)) = (when.text("sql"), when.text("label")) else {
                    let cure = "Write a CASE expression as its `sql`.";
                    fields.reject("one of its cases has no `sql` or no `label`", cure, reader.findings);
                    return None;
                };
                let condition = reader.sql(fields, condition)?;
                sql.push_str(&format!(" WHEN {condition} THEN {}", literal(label)));
            }
            ("else", Value::Text(label)) => other = Some(literal(label)),
            _ => {
                fields.reject("its `case` cannot be read", "Write a CASE expression as its `sql`.", reader.findings);
                return None;
            }
        }
    }
    if let Some(other) = other {
        sql.push_str(&format!(" ELSE {other}"));
    }
    sql.push_str(" END");
    Some(sql)
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Translates a tier to a CASE expression whose values are the labels of its intervals.
fn tier(fields: Fields<'_>, name: String, reader: &mut ViewReader<'_>) -> Option<Member> {
    let borders: Vec<String> = fields.list("tiers").iter().map(|entry| entry.text.clone()).collect();
    let is_number = |text: &String| text.parse::<f64>().is_ok_and(f64::is_finite);
    let (Some(text), false, true) = (fields.text("sql"), borders.is_empty(), borders.iter().all(is_number)) else {
        fields.reject("it has no `sql`, or no numbers as `tiers`", "Write both.", reader.findings);
        return None;
    };
    let value = reader.sql(&fields, text)?;
    let mut sql = format!("CASE WHEN ({value}) < {} THEN '(-inf, {0})'", borders[0]);
    for pair in borders.windows(2) {
        sql.push_str(&format!(" WHEN ({value}) < {1} THEN '[{0}, {1})'", pair[0], pair[1]));
    }
    let last = &borders[borders.len() - 1];
    sql.push_str(&format!(" WHEN ({value}) >= {last} THEN '[{last}, inf)' ELSE 'Undefined' END"));
    if fields.text("style") != Some("interval") {
        let what = format!("{} has the labels of intervals, such as `[{}, …)`", fields.what, borders[0]);
        let cure = "Write other labels into its CASE expression.";
        reader.findings.push(changed(fields.span_of("tiers"), what, cure));
    }
    let yaml = Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text("string")), ("sql", Yaml::Text(sql))]);
    Some(reader.member(name, yaml, fields))
}

/// Translates a location to two dimensions, its latitude and its longitude.
fn location(fields: Fields<'_>, name: &str, reader: &mut ViewReader<'_>) -> Vec<Member> {
    let (Some(latitude), Some(longitude)) = (fields.text("sql_latitude"), fields.text("sql_longitude")) else {
        fields.reject("it has no `sql_latitude` or no `sql_longitude`", "Write both.", reader.findings);
        return Vec::new();
    };
    let mut members = Vec::new();
    let is_restricted = fields.has("required_access_grants");
    for (part, text) in [("latitude", latitude), ("longitude", longitude)] {
        let Some(sql) = reader.sql(&fields, text) else { return Vec::new() };
        let name = format!("{name}_{part}");
        let mut yaml =
            Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text("number")), ("sql", Yaml::Text(sql))]);
        for key in ["hidden", "public"] {
            let value = if key == "hidden" { fields.is_yes("hidden") } else { is_restricted };
            if value {
                yaml.set(key, Yaml::Boolean(key == "hidden"));
            }
        }
        let needs = std::mem::take(&mut reader.needs);
        let span = fields.span.clone();
        members.push(Member { name, yaml, span, is_masked: is_restricted, needs, drills: Vec::new() });
    }
    let what = format!("{} becomes two numbers: `{name}_latitude` and `{name}_longitude`", fields.what);
    reader.findings.push(changed(fields.span.clone(), what, "Query both."));
    if is_restricted {
        let what = format!("{} is closed: it requires an access grant", fields.what);
        let cure = "Write a policy with `deny` for the other callers (policies/*.yml), then remove `public: false`.";
        reader.findings.push(crate::finding::closed(fields.span_of("required_access_grants"), what, cure));
    }
    fields.finish(reader.findings);
    members
}
