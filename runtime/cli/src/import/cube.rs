//! Cubes.
//!
//! In: an item of `cubes:`. Out: a draft with its members, or findings that say why there is none. A cube
//! whose rows depend on who asks is left out, or closed until its policies are written.

use std::collections::BTreeMap;

use terrane_compiler::diagnostic::Diagnostic;

use super::draft::Draft;
use super::entry::{Entry, yaml_of};
use super::finding::{changed, closed, left_out};
use super::others::Reading;
use super::read::Written;
use super::references::{Scope, Untranslatable};
use super::{dimension, measure, others};
use crate::authoring::yaml::Yaml;

pub(super) fn cube(written: &Written, scope: &Scope, findings: &mut Vec<Diagnostic>) -> Option<Draft> {
    let original = written.name.clone();
    let entry = Entry::open(&written.node, format!("cube `{original}`"))?;
    let name = scope.cube(&original);
    entry.text("name");
    let mut head = vec![("name".to_owned(), Yaml::text(&*name))];
    let extends = entry.word("extends").map(|name| name.trim_matches(['{', '}']).to_owned());
    if let Some(parent) = &extends {
        head.push(("extends".to_owned(), Yaml::Text(scope.cube(parent))));
    }
    let key = if entry.has("sql_table") { "sql_table" } else { "sql" };
    match entry.text(key) {
        Some(text) => {
            let relation = relation(&text.value, key, scope);
            match relation {
                Ok((kind, sql, notes)) => {
                    for (note, cure) in notes {
                        findings.push(changed(entry.span_of(key), format!("{} {note}", entry.what), cure));
                    }
                    head.push((kind.to_owned(), Yaml::Text(sql)));
                }
                Err(Untranslatable { why, cure }) => {
                    let what = format!("{} is not carried over: {why}", entry.what);
                    findings.push(left_out(written.span.clone(), what, cure));
                    return None;
                }
            }
        }
        None if extends.is_none() => {
            let what = format!("{} is not carried over: it has no `sql_table` and no `sql`", entry.what);
            findings.push(left_out(written.span.clone(), what, "name its table"));
            return None;
        }
        None => {}
    }
    for key in ["title", "description"] {
        if let Some(text) = entry.word(key) {
            head.push((key.to_owned(), Yaml::Text(text)));
        }
    }
    if entry.boolean("public").or(entry.boolean("shown")) == Some(false) {
        head.push(("public".to_owned(), Yaml::Boolean(false)));
    }
    if let Some(meta) = entry.node("meta") {
        head.push(("meta".to_owned(), yaml_of(meta)));
    }
    let is_closed = access(&entry, findings);
    entry.drop_key("refresh_key", "answers are not kept between queries, so there is nothing to refresh", findings);
    entry.drop_key("sql_alias", "names in SQL are made here", findings);
    entry.drop_key("calendar", "the eight granularities of the calendar are there; others are dimensions", findings);
    entry.drop_key("rewrite_queries", "nothing replaces it", findings);
    let data_source = entry.word("data_source").filter(|name| name != "default");
    let mut reading = Reading { cube: &original, scope, findings };
    let joins = others::joins(&entry, &mut reading);
    let dimensions =
        entry.list("dimensions").iter().flat_map(|node| dimension::dimension(node, &mut reading)).collect();
    let measures = entry.list("measures").iter().filter_map(|node| measure::measure(node, &mut reading)).collect();
    let segments = entry.list("segments").iter().filter_map(|node| others::segment(node, &mut reading)).collect();
    let rollups = entry.list("pre_aggregations").iter();
    let pre_aggregations = rollups.filter_map(|node| others::pre_aggregation(node, &mut reading)).collect();
    entry.finish(findings);
    Some(Draft {
        original,
        name,
        span: written.span.clone(),
        head,
        data_source,
        is_closed,
        lists: [joins, dimensions, measures, segments, pre_aggregations],
    })
}

type Relation<'k> = (&'k str, String, Vec<(String, &'static str)>);

fn relation<'k>(text: &str, key: &'k str, scope: &Scope) -> Result<Relation<'k>, Untranslatable> {
    let translated = scope.relation(text)?;
    let sql = translated.sql.trim().trim_end_matches(';').trim_end().to_owned();
    // `SELECT * FROM orders` is how older models name a table.
    let table = sql.strip_prefix("SELECT * FROM ").or_else(|| sql.strip_prefix("select * from "));
    let is_name = |table: &&str| {
        table.split('.').all(|part| {
            part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        })
    };
    match table.map(str::trim).filter(is_name) {
        Some(table) if key == "sql" => Ok(("sql_table", table.to_owned(), translated.notes)),
        _ => Ok((key, sql, translated.notes)),
    }
}

/// Whether somebody may not see everything. Policies there let through, those here hold back, so none is
/// translated: the cube is closed, which is safe, until somebody writes who may see what.
fn access(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> bool {
    let is_closed = entry.has("access_policy");
    if is_closed {
        let what = format!("{} has an access policy, and is closed to everybody here", entry.what);
        let cure = "write who may see which rows in its file of policies/, in the place of `row_filter: \"1 = 0\"`";
        findings.push(closed(entry.span_of("access_policy"), what, cure));
    }
    is_closed
}

/// A project has one warehouse: that of most cubes.
pub(super) fn leave_other_sources(drafts: &mut Vec<Draft>, findings: &mut Vec<Diagnostic>) {
    let mut counts: BTreeMap<Option<String>, usize> = BTreeMap::new();
    for draft in drafts.iter() {
        *counts.entry(draft.data_source.clone()).or_default() += 1;
    }
    let Some(most) =
        counts.iter().max_by_key(|(source, count)| (**count, source.is_none())).map(|(source, _)| source.clone())
    else {
        return;
    };
    drafts.retain(|draft| {
        let is_kept = draft.data_source == most;
        if !is_kept {
            let source = |name: &Option<String>| name.clone().unwrap_or_else(|| "default".to_owned());
            let what = format!(
                "cube `{}` is not carried over: it reads the data source `{}`, and most others `{}`",
                draft.original,
                source(&draft.data_source),
                source(&most)
            );
            findings.push(left_out(
                draft.span.clone(),
                what,
                "make a second project for that warehouse, or bring the tables together",
            ));
        }
        is_kept
    });
}
