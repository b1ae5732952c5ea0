//! Reads cubes.
//!
//! In: an item of `cubes:`. Out: a draft with its members, or a finding with the reason why the item is not imported. A
//! cube whose rows depend on the caller is not imported, or it is closed until the author writes its policies.

use std::collections::{BTreeMap, HashMap};

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::yaml::{Node, NodeValue};

use super::javascript::COMPUTED;
use super::members::MemberReader;
use super::read::ModelEntry;
use super::references::{ImportScope, Note, Untranslatable};
use super::{dimension, measure, members};
use crate::draft::{CubeAccess, CubeDraft, CubeVisibility, Member};
use crate::entry::{Entry, Visibility, is_template, yaml_of};
use crate::finding::{changed, closed, closed_by_policy, left_out};

pub(super) fn cube(item: &ModelEntry, scope: &ImportScope, findings: &mut Vec<Diagnostic>) -> Option<CubeDraft> {
    let original = item.name.clone();
    let entry = Entry::open(&item.node, format!("cube `{original}`"))?;
    let name = scope.cube(&original);
    entry.text("name");
    let mut head = vec![("name".to_owned(), Yaml::text(&*name))];
    let extends = entry.word("extends").map(|parent| scope.cube(parent.trim_matches(['{', '}'])));
    if let Some(parent) = &extends {
        head.push(("extends".to_owned(), Yaml::text(&**parent)));
    }
    head.extend(rows(item, &entry, scope, findings)?);
    for key in ["title", "description"] {
        if let Some(text) = entry.word(key) {
            head.push((key.to_owned(), Yaml::Text(text)));
        }
    }
    let mut access = access(&entry, findings);
    if let Some(meta) = entry.node("meta") {
        head.push(("meta".to_owned(), yaml_of(meta)));
    }
    entry.drop_key("refresh_key", "Write `refresh` of the cube: `refresh: {every: 1 hour}`.", findings);
    entry.drop_key("sql_alias", "Remove it: names in SQL are generated.", findings);
    entry.drop_key("calendar", "Write dimensions for periods that the calendar does not have.", findings);
    entry.drop_key("rewrite_queries", "Remove it: it has no counterpart.", findings);
    let data_source = entry.word("data_source").filter(|name| name != "default");
    let mut reader = MemberReader::new(&original, scope, findings);
    let joins = members::joins(&entry, &mut reader);
    let dimensions = items(&entry, "dimensions", &mut reader, dimension::dimension);
    let measures = items(&entry, "measures", &mut reader, measure::measure);
    let segments = items(&entry, "segments", &mut reader, members::segment);
    let is_unknown =
        extends.is_some() && ["dimensions", "measures", "segments"].iter().any(|key| has_unknown(&entry, key));
    if is_unknown {
        // Cubes that extend this one inherit the policy, but not the visibility.
        let what = format!("{} is closed: an item without a known name may replace an inherited one", entry.what);
        reader.findings.push(closed_by_policy(item.span.clone(), what));
        access.has_policy = true;
    }
    let imported = [&dimensions, &measures, &segments];
    let is_imported = |name: &String| imported.iter().any(|list| list.iter().any(|member| member.name == *name));
    let names = ["dimensions", "measures", "segments"].iter().flat_map(|key| entry.list(key)).filter_map(item_name);
    let mut missing: Vec<String> =
        names.map(|name| scope.member(&original, &name)).filter(|name| !is_imported(name)).collect();
    let targets = entry.list("joins").iter().filter_map(item_name).map(|name| scope.cube(&name));
    missing.extend(targets.filter(|name| !joins.iter().any(|join| join.name == *name)));
    let pre_aggregations = items(&entry, "pre_aggregations", &mut reader, members::pre_aggregation);
    entry.finish(findings);
    Some(CubeDraft {
        original,
        name,
        span: item.span.clone(),
        extends,
        head,
        data_source,
        access,
        policies: Vec::new(),
        missing,
        stand_ins: Vec::new(),
        lists: [joins, dimensions, measures, segments, pre_aggregations],
    })
}

/// Reads the items of a list. Items with the same name are all left out, because any of them may be the stricter one.
fn items<M: IntoIterator<Item = Member>>(
    entry: &Entry<'_>,
    key: &str,
    reader: &mut MemberReader<'_>,
    read: impl Fn(&Node, &mut MemberReader<'_>) -> M,
) -> Vec<Member> {
    if entry.node(key).is_some_and(|node| !matches!(node.value, NodeValue::List(_))) {
        let what = format!("`{key}` of {} are not imported: expected a list", entry.what);
        reader.findings.push(left_out(entry.span_of(key), what, "Write `- name: …` for each."));
    }
    let nodes = entry.list(key);
    let name = item_name;
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in nodes.iter().filter_map(name) {
        *counts.entry(name).or_default() += 1;
    }
    let mut members = Vec::new();
    for node in nodes {
        match name(node).filter(|name| counts.get(name).is_some_and(|count| *count > 1)) {
            Some(name) => {
                let what = format!("`{name}` of `{key}` of {} is not imported: its name is not unique", entry.what);
                reader.findings.push(left_out(node.origin.span(), what, "Rename or remove one of them."));
            }
            None if is_computed(node) => {}
            None => members.extend(read(node, reader)),
        }
    }
    members
}

fn item_name(node: &Node) -> Option<String> {
    Entry::open(node, "").and_then(|item| item.word("name"))
}

/// Returns true for an item that a finding of the JavaScript reader has reported.
fn is_computed(node: &Node) -> bool {
    match &node.value {
        NodeValue::Scalar { text, .. } => is_template(text),
        NodeValue::Map(entries) => entries.iter().any(|(key, _)| &*key.text == COMPUTED),
        _ => false,
    }
}

/// Returns true if the names of some items of a list are unknown.
fn has_unknown(entry: &Entry<'_>, key: &str) -> bool {
    match entry.node(key).map(|node| &node.value) {
        None => false,
        Some(NodeValue::List(items)) => items.iter().any(|item| item_name(item).is_none_or(|name| is_template(&name))),
        Some(_) => true,
    }
}

/// Returns the source of the cube's rows: the key `sql_table` or `sql`, and its value. Returns `None` and adds a
/// finding if the cube has no rows.
fn rows(
    item: &ModelEntry,
    entry: &Entry<'_>,
    scope: &ImportScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<Option<(String, Yaml)>> {
    let key = if entry.has("sql_table") { "sql_table" } else { "sql" };
    let Some(text) = entry.text(key) else {
        if entry.has("extends") && !entry.has(key) {
            return Some(None);
        }
        let what = format!("{} is not imported: it has no `sql_table` and no `sql`", entry.what);
        findings.push(left_out(item.span.clone(), what, "Name its table."));
        return None;
    };
    match relation(&text.value, key, scope) {
        Ok((kind, sql, notes)) => {
            for (note, cure) in notes {
                findings.push(changed(entry.span_of(key), format!("{} {note}", entry.what), cure));
            }
            Some(Some((kind.to_owned(), Yaml::Text(sql))))
        }
        Err(Untranslatable { reason, cure }) => {
            let what = format!("{} is not imported: {reason}", entry.what);
            findings.push(left_out(item.span.clone(), what, cure));
            None
        }
    }
}

type Relation<'k> = (&'k str, String, Vec<Note>);

fn relation<'k>(text: &str, key: &'k str, scope: &ImportScope) -> Result<Relation<'k>, Untranslatable> {
    let translated = scope.relation(text)?;
    let sql = translated.sql.trim().trim_end_matches(';').trim_end().to_owned();
    // Older models write `SELECT * FROM orders` to name a table.
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

/// Reads the access to a cube. Policies of the model grant access, while policies of the project restrict it. So no
/// policy is translated, and a cube with policies is closed until the author writes one.
fn access(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> CubeAccess {
    let has_policy = entry.has("access_policy");
    if has_policy {
        let what = format!("{} has an access policy and is closed to all callers", entry.what);
        findings.push(closed_by_policy(entry.span_of("access_policy"), what));
    }
    CubeAccess { visibility: visibility(entry, findings), has_policy }
}

/// Reads the visibility of a cube or view.
pub(super) fn visibility(entry: &Entry<'_>, findings: &mut Vec<Diagnostic>) -> CubeVisibility {
    let visibility = entry.visibility();
    if visibility == Visibility::Unknown {
        let what = format!("{} is closed: its `public` is neither true nor false", entry.what);
        let cure =
            "Write `public: true` in the project if all callers may see it; else write a policy (policies/*.yml).";
        findings.push(closed(entry.visibility_span(), what, cure));
    }
    match visibility {
        Visibility::Public if entry.has("public") || entry.has("shown") => CubeVisibility::Public,
        Visibility::Public => CubeVisibility::Unstated,
        Visibility::Private | Visibility::Unknown => CubeVisibility::Private,
    }
}

/// Closes cubes that extend a closed cube, because cubes of the model inherit the access of the cube that they extend.
pub(super) fn inherit_access(drafts: &mut [CubeDraft], findings: &mut Vec<Diagnostic>) {
    loop {
        let access: HashMap<String, CubeAccess> =
            drafts.iter().map(|draft| (draft.name.clone(), draft.access)).collect();
        let mut is_changed = false;
        for draft in drafts.iter_mut() {
            let parent = draft.extends.as_ref().and_then(|parent| Some((parent, access.get(parent)?)));
            let Some((name, parent)) = parent else { continue };
            let visibility = match (draft.access.visibility, parent.visibility) {
                (CubeVisibility::Unstated, CubeVisibility::Private) => CubeVisibility::Private,
                (own, _) => own,
            };
            let inherited = CubeAccess { visibility, has_policy: draft.access.has_policy || parent.has_policy };
            if inherited != draft.access {
                draft.access = inherited;
                is_changed = true;
                let what = format!("cube `{}` is closed like cube `{name}`, which it extends", draft.original);
                let cure = "Set `public: true`, or write its policy in policies/, to open it.";
                findings.push(closed(draft.span.clone(), what, cure));
            }
        }
        if !is_changed {
            return;
        }
    }
}

/// Removes the cubes that do not read the data source of most cubes, because a project has one warehouse.
pub(super) fn remove_other_sources(drafts: &mut Vec<CubeDraft>, findings: &mut Vec<Diagnostic>) {
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
        let is_same = draft.data_source == most;
        if !is_same {
            let source = |name: &Option<String>| name.clone().unwrap_or_else(|| "default".to_owned());
            let what = format!(
                "cube `{}` is not imported: it reads the data source `{}`, and most others read `{}`",
                draft.original,
                source(&draft.data_source),
                source(&most)
            );
            let cure = "Create a second project for that warehouse, or move the tables into one.";
            findings.push(left_out(draft.span.clone(), what, cure));
        }
        is_same
    });
}
