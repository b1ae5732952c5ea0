//! Reads dimensions.
//!
//! In: a dimension of a model. Out: one dimension, or two for a `geo`.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::project::yaml::{Node, NodeValue};

use super::members::{MemberReader, may_be_true, report_unknown_flag};
use crate::draft::Member;
use crate::entry::Entry;
use crate::finding::{changed, left_out};

pub(super) fn dimension(node: &Node, reader: &mut MemberReader<'_>) -> Vec<Member> {
    let Some((entry, original)) = reader.open(node, "dimension") else { return Vec::new() };
    let name = reader.scope.member(reader.cube, &original);
    if may_be_true(&entry, "sub_query") {
        let cure =
            "Query the measure with this cube's dimensions, or compute it in a model (models/*.sql) and join that.";
        reader.reject(&entry, "its value is a measure of another cube (`sub_query`)", cure);
        return Vec::new();
    }
    if entry.has("time_shift") || may_be_true(&entry, "multi_stage") {
        reader.reject(&entry, "it is computed in several stages", "Write its column or expression.");
        return Vec::new();
    }
    let ty = entry.word("type").unwrap_or_else(|| "string".to_owned());
    match ty.as_str() {
        "geo" => geo(entry, &name, reader),
        "string" | "number" | "time" | "boolean" => plain(entry, &name, &ty, reader).into_iter().collect(),
        other => {
            reader.reject(&entry, &format!("unknown type `{other}`"), "Write string, number, time or boolean.");
            Vec::new()
        }
    }
}

fn plain(entry: Entry<'_>, name: &str, ty: &str, reader: &mut MemberReader<'_>) -> Option<Member> {
    let sql = match entry.node("case") {
        Some(case) => case_sql(&entry, case, reader)?,
        None => reader.sql(&entry, "sql")?,
    };
    let mut yaml = Yaml::map([("name", Yaml::text(name)), ("type", Yaml::text(ty)), ("sql", Yaml::Text(sql))]);
    report_unknown_flag(&entry, "primary_key", reader.findings);
    if entry.boolean("primary_key") == Some(true) {
        yaml.set("primary_key", Yaml::Boolean(true));
    }
    for granularity in entry.list("granularities") {
        let word = Entry::open(granularity, "").and_then(|custom| custom.word("name")).unwrap_or_default();
        let what = format!("the granularity `{word}` of {} is not imported", entry.what);
        let cure = "Write a dimension with the warehouse's SQL. The granularities of the calendar are built in.";
        reader.findings.push(left_out(granularity.origin.span(), what, cure));
    }
    entry.drop_key("suggest_filter_values", "Clients query the values of a dimension.", reader.findings);
    entry.boolean("propagate_filters_to_sub_query");
    reader.wording(&entry, &mut yaml);
    Some(reader.member(name.to_owned(), yaml, entry))
}

/// Translates the key `case` to a CASE expression.
fn case_sql(entry: &Entry<'_>, node: &Node, reader: &mut MemberReader<'_>) -> Option<String> {
    let case = Entry::open(node, format!("`case` of {}", entry.what));
    let Some(case) = case.filter(|case| !case.has("switch") && !case.list("when").is_empty()) else {
        reader.reject(entry, "its `case` has no list of `when`", "Write a CASE expression as its `sql`.");
        return None;
    };
    let mut sql = String::from("CASE");
    for item in case.list("when") {
        let when = Entry::open(item, "");
        let condition = when.as_ref().and_then(|when| when.text("sql"));
        let (Some(when), Some(condition)) = (when, condition) else {
            reader.reject(entry, "one of its `when` has no `sql`", "Write a CASE expression as its `sql`.");
            return None;
        };
        let condition = reader.expression(entry, &condition.value)?;
        let label = label(entry, when.node("label"), reader)?;
        sql.push_str(&format!(" WHEN {condition} THEN {label}"));
    }
    if let Some(other) = case.node("else").and_then(|node| Entry::open(node, "")) {
        let label = label(entry, other.node("label"), reader)?;
        sql.push_str(&format!(" ELSE {label}"));
    }
    sql.push_str(" END");
    Some(sql)
}

/// Translates a label of a CASE, which is a string or an SQL expression.
fn label(entry: &Entry<'_>, node: Option<&Node>, reader: &mut MemberReader<'_>) -> Option<String> {
    match node.map(|node| (&node.value, node)) {
        Some((NodeValue::Scalar { text, .. }, _)) => Some(format!("'{}'", text.replace('\'', "''"))),
        Some((_, node)) => {
            let sql = Entry::open(node, "").and_then(|label| label.text("sql"));
            match sql {
                Some(sql) => reader.expression(entry, &sql.value),
                None => {
                    reader.reject(entry, "one of its labels is not a string", "Write a CASE expression as its `sql`.");
                    None
                }
            }
        }
        None => {
            reader.reject(entry, "one of its cases has no label", "Write a CASE expression as its `sql`.");
            None
        }
    }
}

/// Translates a `geo` dimension to two dimensions, its latitude and its longitude.
fn geo(entry: Entry<'_>, name: &str, reader: &mut MemberReader<'_>) -> Vec<Member> {
    let mut found: Vec<Member> = Vec::new();
    for part in ["latitude", "longitude"] {
        let sql = entry.node(part).and_then(|node| Entry::open(node, "")).and_then(|part| part.text("sql"));
        let Some(sql) = sql else {
            reader.reject(
                &entry,
                &format!("it has no `{part}`"),
                "Write `latitude: {sql: …}` and `longitude: {sql: …}`.",
            );
            return Vec::new();
        };
        let Some(sql) = reader.expression(&entry, &sql.value) else { return Vec::new() };
        let name = format!("{name}_{part}");
        let mut yaml =
            Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text("number")), ("sql", Yaml::Text(sql))]);
        if let Some(description) = entry.word("description") {
            yaml.set("description", Yaml::Text(description));
        }
        // Both dimensions are closed, but one finding is enough.
        let known = reader.findings.len();
        reader.visibility(&entry, &mut yaml);
        if !found.is_empty() {
            reader.findings.truncate(known);
        }
        found.push(Member {
            name,
            yaml,
            span: entry.span.clone(),
            is_masked: entry.has("mask"),
            needs: reader.take_needs(),
            drills: Vec::new(),
        });
    }
    for key in ["title", "meta", "format"] {
        entry.drop_key(key, "Write it for both dimensions.", reader.findings);
    }
    let what = format!("{} becomes two numbers: `{name}_latitude` and `{name}_longitude`", entry.what);
    reader.findings.push(changed(entry.span.clone(), what, "Query both."));
    entry.finish(reader.findings);
    found
}
