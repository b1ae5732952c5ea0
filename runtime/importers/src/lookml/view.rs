//! Creates a cube from each view.
//!
//! In: a merged view. Out: a draft with its dimensions and measures. Not here: joins, and whether an explore shows the
//! view.

use std::collections::HashMap;

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use super::fields::Fields;
use super::merge::Merged;
use super::reader::ViewReader;
use super::scope::ProjectScope;
use super::sql::{self, Untranslatable};
use super::{dimension, measure};
use crate::draft::{CubeAccess, CubeDraft, CubeVisibility, Member};
use crate::finding::{changed, closed_by_policy, left_out};

pub(super) fn cube(view: &Merged, scope: &ProjectScope, findings: &mut Vec<Diagnostic>) -> Option<CubeDraft> {
    let names = scope.view(&view.name)?;
    let fields = Fields::open(&view.item, format!("view `{}`", view.name));
    if fields.text("extension") == Some("required") {
        let cure = "Import a view that extends it, or remove `extension`.";
        fields.reject("it is a template for other views", cure, findings);
        return None;
    }
    let (key, relation) = rows(&view.name, &fields, scope, findings)?;
    let mut head = vec![("name".to_owned(), Yaml::text(&*names.cube)), (key.to_owned(), Yaml::Text(relation))];
    for (key, name) in [("label", "title"), ("description", "description")] {
        head.extend(fields.text(key).map(|text| (name.to_owned(), Yaml::text(text))));
    }
    let has_policy = fields.has("required_access_grants");
    if has_policy {
        let what = format!("{} requires an access grant and is closed to all callers", fields.what);
        findings.push(closed_by_policy(fields.span_of("required_access_grants"), what));
    }
    for key in ["extends", "extends__all", "set", "extension"] {
        fields.all(key).for_each(drop);
    }
    let is_hidden = fields.is_yes("fields_hidden_by_default");
    let mut reader = ViewReader { view: &view.name, scope, findings, is_hidden, needs: Vec::new() };
    let mut dimensions: Vec<Member> =
        fields.all("dimension").flat_map(|item| dimension::dimension(item, &mut reader)).collect();
    dimensions.extend(fields.all("dimension_group").filter_map(|item| dimension::group(item, &mut reader)));
    let mut measures: Vec<Member> =
        fields.all("measure").filter_map(|item| measure::measure(item, &mut reader)).collect();
    remove_repeated(&view.name, [&mut dimensions, &mut measures], reader.findings);
    for key in ["filter", "parameter"] {
        for item in fields.all(key) {
            let what = format!("{key} `{}` of {} is not imported", item.name().unwrap_or_default(), fields.what);
            let cure = "Filter the query by a dimension, or write a measure for each value.";
            reader.findings.push(left_out(item.span.clone(), what, cure));
        }
    }
    fields.finish(findings);
    Some(CubeDraft {
        original: view.name.clone(),
        name: names.cube.clone(),
        span: view.item.span.clone(),
        extends: None,
        head,
        data_source: None,
        access: CubeAccess { visibility: CubeVisibility::Unstated, has_policy },
        policies: Vec::new(),
        missing: Vec::new(),
        stand_ins: Vec::new(),
        lists: [Vec::new(), dimensions, measures, Vec::new(), Vec::new()],
    })
}

/// Returns the source of the view's rows: the key `sql_table` or `sql`, and its value.
fn rows(
    name: &str,
    fields: &Fields<'_>,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<(&'static str, String)> {
    let derived =
        fields.item("derived_table").map(|item| Fields::open(item, format!("`derived_table` of {}", fields.what)));
    let Some(derived) = derived else {
        let table = fields.text("sql_table_name").unwrap_or(name);
        return relation("sql_table", table, fields, scope, findings);
    };
    let Some(query) = derived.text("sql") else {
        let cure = "Write its query as a model (models/*.sql), and `sql_table: \"{{ ref('name') }}\"`.";
        fields.reject("Looker derives it from an explore or by several statements", cure, findings);
        return None;
    };
    let persisted = ["datagroup_trigger", "persist_for", "sql_trigger_value", "interval_trigger", "materialized_view"];
    if let Some(key) = persisted.into_iter().find(|key| derived.has(key)) {
        let what = format!("{} is a table that Looker stores; in the project it is a query", fields.what);
        let cure = "Write it as a model with `materialization: table`, or a pre-aggregation.";
        findings.push(changed(derived.span_of(key), what, cure));
    }
    derived.finish(findings);
    relation("sql", query, fields, scope, findings)
}

fn relation(
    key: &'static str,
    text: &str,
    fields: &Fields<'_>,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<(&'static str, String)> {
    match sql::relation(text, scope, 0) {
        // If the name refers to the query of another view, the relation is a query too.
        Ok(sql) if key == "sql_table" && sql.starts_with('(') => {
            Some(("sql", format!("SELECT * FROM {sql} AS rows_of_view")))
        }
        Ok(sql) => Some((key, sql)),
        Err(Untranslatable { reason, cure }) => {
            fields.reject(&reason, cure, findings);
            None
        }
    }
}

/// Removes all fields whose name is not unique, because any of them may be the stricter one.
fn remove_repeated(view: &str, lists: [&mut Vec<Member>; 2], findings: &mut Vec<Diagnostic>) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for member in lists.iter().flat_map(|list| list.iter()) {
        *counts.entry(member.name.clone()).or_default() += 1;
    }
    for list in lists {
        list.retain(|member| {
            let is_unique = counts.get(&member.name) == Some(&1);
            if !is_unique {
                let what = format!("field `{}` of view `{view}` is not imported: its name is not unique", member.name);
                findings.push(left_out(member.span.clone(), what, "Rename or remove one of them."));
            }
            is_unique
        });
    }
}
