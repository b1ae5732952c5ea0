//! Dimensions.
//!
//! In: a dimension of a model. Out: ours: one, or two for a place on a map.

use terrane_compiler::project::yaml::{Node, NodeValue};

use super::draft::Member;
use super::entry::Entry;
use super::finding::{changed, left_out};
use super::others::Reading;
use crate::authoring::yaml::Yaml;

pub(super) fn dimension(node: &Node, reading: &mut Reading<'_>) -> Vec<Member> {
    let Some((entry, original)) = reading.open(node, "dimension") else { return Vec::new() };
    let name = reading.scope.member(reading.cube, &original);
    if entry.boolean("sub_query") == Some(true) {
        let cure = "ask for the measure beside this cube's dimensions, or write the sum into a model (models/*.sql) and join it";
        reading.lost(&entry, "its value is a measure of another cube (`sub_query`)", cure);
        return Vec::new();
    }
    if entry.has("time_shift") || entry.boolean("multi_stage") == Some(true) {
        reading.lost(
            &entry,
            "it is computed in several stages",
            "write the column or the expression that it stands for",
        );
        return Vec::new();
    }
    let ty = entry.word("type").unwrap_or_else(|| "string".to_owned());
    let found = match ty.as_str() {
        "geo" => place(&entry, &name, reading),
        "string" | "number" | "time" | "boolean" => plain(&entry, &name, &ty, reading).into_iter().collect(),
        other => {
            let why = format!("there is no type `{other}` here");
            reading.lost(&entry, &why, "choose string, number, time or boolean");
            return Vec::new();
        }
    };
    if !found.is_empty() {
        entry.finish(reading.findings);
    }
    found
}

fn plain(entry: &Entry<'_>, name: &str, ty: &str, reading: &mut Reading<'_>) -> Option<Member> {
    let sql = match entry.node("case") {
        Some(case) => case_sql(entry, case, reading)?,
        None => reading.sql(entry, "sql")?,
    };
    let mut yaml = Yaml::map([("name", Yaml::text(name)), ("type", Yaml::text(ty)), ("sql", Yaml::Text(sql))]);
    if entry.boolean("primary_key") == Some(true) {
        yaml.set("primary_key", Yaml::Boolean(true));
    }
    for granularity in entry.list("granularities") {
        let word = Entry::open(granularity, "").and_then(|custom| custom.word("name")).unwrap_or_default();
        let what = format!("the granularity `{word}` of {} is not carried over", entry.what);
        let cure = "make it a dimension of its own, of the warehouse's SQL; the eight of the calendar are there";
        reading.findings.push(left_out(granularity.origin.span(), what, cure));
    }
    entry.drop_key("suggest_filter_values", "clients ask for a dimension's values by a query", reading.findings);
    entry.boolean("propagate_filters_to_sub_query");
    reading.wording(entry, &mut yaml);
    Some(Member { name: name.to_owned(), yaml, span: entry.span.clone() })
}

/// `case:` as the expression that it is.
fn case_sql(entry: &Entry<'_>, node: &Node, reading: &mut Reading<'_>) -> Option<String> {
    let case = Entry::open(node, format!("`case` of {}", entry.what));
    let Some(case) = case.filter(|case| !case.has("switch") && !case.list("when").is_empty()) else {
        reading.lost(entry, "its `case` has no list of `when`", "write a CASE expression as its `sql`");
        return None;
    };
    let mut sql = String::from("CASE");
    for item in case.list("when") {
        let when = Entry::open(item, "");
        let condition = when.as_ref().and_then(|when| when.text("sql"));
        let (Some(when), Some(condition)) = (when, condition) else {
            reading.lost(entry, "a `when` of it has no `sql`", "write a CASE expression as its `sql`");
            return None;
        };
        let condition = reading.expression(entry, &condition.value)?;
        let label = label(entry, when.node("label"), reading)?;
        sql.push_str(&format!(" WHEN {condition} THEN {label}"));
    }
    if let Some(other) = case.node("else").and_then(|node| Entry::open(node, "")) {
        let label = label(entry, other.node("label"), reading)?;
        sql.push_str(&format!(" ELSE {label}"));
    }
    sql.push_str(" END");
    Some(sql)
}

/// A label is a text, or SQL that gives one.
fn label(entry: &Entry<'_>, node: Option<&Node>, reading: &mut Reading<'_>) -> Option<String> {
    match node.map(|node| (&node.value, node)) {
        Some((NodeValue::Scalar { text, .. }, _)) => Some(format!("'{}'", text.replace('\'', "''"))),
        Some((_, node)) => {
            let sql = Entry::open(node, "").and_then(|label| label.text("sql"));
            match sql {
                Some(sql) => reading.expression(entry, &sql.value),
                None => {
                    reading.lost(entry, "a label of it is no text", "write a CASE expression as its `sql`");
                    None
                }
            }
        }
        None => {
            reading.lost(entry, "a case of it has no label", "write a CASE expression as its `sql`");
            None
        }
    }
}

/// A place is its latitude and its longitude.
fn place(entry: &Entry<'_>, name: &str, reading: &mut Reading<'_>) -> Vec<Member> {
    let mut found = Vec::new();
    for part in ["latitude", "longitude"] {
        let sql = entry.node(part).and_then(|node| Entry::open(node, "")).and_then(|part| part.text("sql"));
        let Some(sql) = sql else {
            reading.lost(entry, &format!("it has no `{part}`"), "write `latitude: {sql: …}` and `longitude: {sql: …}`");
            return Vec::new();
        };
        let Some(sql) = reading.expression(entry, &sql.value) else { return Vec::new() };
        let name = format!("{name}_{part}");
        let mut yaml =
            Yaml::map([("name", Yaml::text(&*name)), ("type", Yaml::text("number")), ("sql", Yaml::Text(sql))]);
        if let Some(description) = entry.word("description") {
            yaml.set("description", Yaml::Text(description));
        }
        if entry.boolean("public").or(entry.boolean("shown")) == Some(false) {
            yaml.set("hidden", Yaml::Boolean(true));
        }
        found.push(Member { name, yaml, span: entry.span.clone() });
    }
    for key in ["title", "meta", "format"] {
        entry.drop_key(key, "write it beside the two dimensions that it has become", reading.findings);
    }
    let what = format!("{} is two numbers here: `{name}_latitude` and `{name}_longitude`", entry.what);
    reading.findings.push(changed(entry.span.clone(), what, "ask for both"));
    found
}
