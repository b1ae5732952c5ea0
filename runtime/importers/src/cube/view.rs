//! Reads views.
//!
//! In: an item of `views:`. Out: a cube with the view's name over the rows of the view's first cube. The new cube has
//! the members of the first cube, and dimensions of the cubes that the view joins. Measures of joined cubes are not
//! imported, because a measure aggregates the rows of its own cube. A query may name both cubes instead.

use std::collections::HashSet;

use terrane_authoring::names::snake;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::yaml::{Node, NodeValue};
use terrane_compiler::text::nearest::suggest;

use super::cubes;
use super::members::{format, members, report_unknown_flag};
use super::read::ModelEntry;
use super::references::ImportScope;
use crate::draft::{CubeAccess, CubeDraft, DIMENSIONS, ITEMS, LISTS, MEASURES, Member, Reference, SEGMENTS, ancestors};
use crate::entry::{Entry, is_template, yaml_of};
use crate::finding::{changed, closed, left_out};

/// One cube of a view.
struct Part<'d> {
    draft: &'d CubeDraft,
    /// The members of the cube by list, including the inherited ones.
    lists: [Vec<&'d Member>; LISTS.len()],
    prefix: Option<String>,
    /// The included members, or `None` if all members are included.
    includes: Option<Vec<Included>>,
    excludes: Vec<String>,
    path: String,
}

struct Included {
    name: String,
    alias: Option<String>,
    overrides: Vec<(String, Yaml)>,
}

pub(super) fn view(
    item: &ModelEntry,
    drafts: &[CubeDraft],
    scope: &ImportScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<CubeDraft> {
    let entry = Entry::open(&item.node, format!("view `{}`", item.name))?;
    let rejected = |reason: &str, cure: &str| {
        left_out(item.span.clone(), format!("{} is not imported: {reason}", entry.what), cure)
    };
    entry.text("name");
    if entry.has("access_policy") {
        // A policy for the view would also apply to its cubes, which all callers may read in the model.
        let cure = "Query its cubes, and write policies for them (policies/*.yml).";
        findings.push(rejected("it has an access policy", cure));
        return None;
    }
    if entry.has("extends") {
        findings.push(rejected("it extends another view", "Write the members that it inherits."));
        return None;
    }
    if entry.has("excludes") {
        findings.push(rejected("its `excludes` does not name a cube", "Write `excludes` below `cubes:`."));
        return None;
    }
    let mut parts = Vec::new();
    for node in entry.list("cubes") {
        match part(node, drafts, scope, &entry, findings) {
            Ok(part) => parts.extend(part),
            Err(finding) => {
                findings.push(*finding);
                findings.push(rejected("its `excludes` cannot be read", "Write `excludes` as a list of names."));
                return None;
            }
        }
    }
    let Some(root) = parts.first() else {
        findings.push(rejected("none of its cubes is imported", "Query the cubes."));
        return None;
    };
    if root.path.contains('.') {
        findings.push(rejected("its first cube is behind a join", "Name the cube first whose rows it has."));
        return None;
    }
    let name = scope.cube(&item.name);
    let mut head = vec![("name".to_owned(), Yaml::text(&*name)), ("extends".to_owned(), Yaml::text(&*root.draft.name))];
    for key in ["title", "description"] {
        head.extend(entry.word(key).map(|text| (key.to_owned(), Yaml::Text(text))));
    }
    let access = CubeAccess { visibility: cubes::visibility(&entry, findings), has_policy: false };
    if let Some(meta) = entry.node("meta") {
        head.push(("meta".to_owned(), yaml_of(meta)));
    }
    let mut draft = CubeDraft {
        original: item.name.clone(),
        name,
        span: item.span.clone(),
        extends: Some(root.draft.name.clone()),
        head,
        data_source: root.draft.data_source.clone(),
        access,
        policies: Vec::new(),
        missing: Vec::new(),
        stand_ins: Vec::new(),
        lists: Default::default(),
    };
    own_members(root, &mut draft, &entry, findings);
    for part in &parts[1..] {
        joined_members(part, &mut draft, &entry, findings);
    }
    for key in ["folders", "hierarchies", "default_filters"] {
        entry.drop_key(key, "Describe the arrangement in `meta`. Write filters in the query.", findings);
    }
    for key in ["measures", "dimensions", "segments", "includes"] {
        entry.drop_key(key, "List members below `cubes:`, with `join_path` and `includes`.", findings);
    }
    entry.finish(findings);
    Some(draft)
}

/// Reads one cube of a view. Returns `Ok(None)` and adds a finding if the cube is left out.
///
/// # Errors
/// `excludes` cannot be read, so that the excluded members are unknown.
fn part<'d>(
    node: &Node,
    drafts: &'d [CubeDraft],
    scope: &ImportScope,
    view: &Entry<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Result<Option<Part<'d>>, Box<Diagnostic>> {
    let Some(entry) = Entry::open(node, format!("a cube of {}", view.what)) else { return Ok(None) };
    let Some(path) = entry.word("join_path").map(|path| path.replace(['{', '}'], "")) else { return Ok(None) };
    let name = path.rsplit('.').next().unwrap_or_default();
    let Some(draft) = drafts.iter().find(|draft| draft.original == name) else {
        let what = format!("{} does not contain cube `{name}`, which is not imported", view.what);
        findings.push(left_out(entry.span_of("join_path"), what, "Solve the problems of the cube first."));
        return Ok(None);
    };
    let alias = entry.word("alias");
    report_unknown_flag(&entry, "prefix", findings);
    let prefix = match (entry.boolean("prefix"), &alias) {
        (Some(true), Some(alias)) => Some(snake(alias)),
        (Some(true), None) => Some(draft.name.clone()),
        _ => None,
    };
    let is_all = entry.word("includes").is_some_and(|word| word == "*");
    let items = entry.list("includes").iter();
    let includes: Option<Vec<Included>> =
        (!is_all).then(|| items.filter_map(|node| included(node, draft, scope, findings)).collect());
    let excludes = excludes(&entry, view)?;
    let excludes: Vec<String> = excludes.iter().map(|name| scope.member(&draft.original, name)).collect();
    let lists = with_inherited(drafts, draft);
    for name in &excludes {
        report_unknown(name, draft, &lists, &entry, "excludes", view, findings);
    }
    for item in includes.iter().flatten() {
        report_unknown(&item.name, draft, &lists, &entry, "includes", view, findings);
    }
    entry.drop_key("split", "Write a view for each.", findings);
    entry.finish(findings);
    Ok(Some(Part { draft, lists, prefix, includes, excludes, path }))
}

/// Returns the member names under `excludes`.
fn excludes(entry: &Entry<'_>, view: &Entry<'_>) -> Result<Vec<String>, Box<Diagnostic>> {
    let names = members(entry, "excludes");
    let is_read = match entry.node("excludes").map(|node| &node.value) {
        None => true,
        Some(NodeValue::Scalar { .. }) => names.len() == 1,
        Some(NodeValue::List(items)) => names.len() == items.len(),
        Some(_) => false,
    };
    if is_read && !names.iter().any(|name| is_template(name)) {
        return Ok(names);
    }
    let what = format!("`excludes` of {} is not a list of names", view.what);
    Err(Box::new(left_out(entry.span_of("excludes"), what, "Write the names that it generates.")))
}

/// Returns the members of a cube and those that it inherits.
fn with_inherited<'d>(drafts: &'d [CubeDraft], draft: &'d CubeDraft) -> [Vec<&'d Member>; LISTS.len()] {
    let mut lists: [Vec<&Member>; LISTS.len()] = Default::default();
    for owner in std::iter::once(draft).chain(ancestors(drafts, draft)) {
        for (list, members) in lists.iter_mut().zip(&owner.lists) {
            let known: HashSet<&str> = list.iter().map(|member| member.name.as_str()).collect();
            list.extend(members.iter().filter(|member| !known.contains(member.name.as_str())));
        }
    }
    lists
}

/// Reports a name if the cube has no member with it.
#[allow(clippy::too_many_arguments, reason = "the parts of one message")]
fn report_unknown(
    name: &str,
    draft: &CubeDraft,
    lists: &[Vec<&Member>],
    entry: &Entry<'_>,
    key: &str,
    view: &Entry<'_>,
    findings: &mut Vec<Diagnostic>,
) {
    let known = || lists.iter().flatten().map(|member| member.name.as_str());
    // A `geo` dimension became two members, whose names begin with its name.
    let is_known =
        known().any(|member| member.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')));
    if !is_known {
        let what = format!(
            "`{key}` of {} names `{name}`, which cube `{}` does not have or which is not imported",
            view.what, draft.original
        );
        findings.push(left_out(entry.span_of(key), what, suggest(name, "members", known())));
    }
}

fn included(node: &Node, draft: &CubeDraft, scope: &ImportScope, findings: &mut Vec<Diagnostic>) -> Option<Included> {
    if let NodeValue::Scalar { text, .. } = &node.value {
        return Some(Included { name: scope.member(&draft.original, text), alias: None, overrides: Vec::new() });
    }
    let entry = Entry::open(node, format!("an item of `includes` of cube `{}`", draft.original))?;
    let name = scope.member(&draft.original, &entry.word("name")?);
    let alias = entry.word("alias").map(|alias| snake(&alias));
    let mut overrides = Vec::new();
    for key in ["title", "description"] {
        overrides.extend(entry.word(key).map(|text| (key.to_owned(), Yaml::Text(text))));
    }
    overrides.extend(format(&entry, findings).map(|text| ("format".to_owned(), Yaml::Text(text))));
    overrides.extend(entry.node("meta").map(|meta| ("meta".to_owned(), yaml_of(meta))));
    entry.finish(findings);
    Some(Included { name, alias, overrides })
}

impl Part<'_> {
    /// Returns the name that an included member has in the view, and its overrides. Returns `None` for other members.
    fn choice(&self, member: &str) -> Option<(String, &[(String, Yaml)])> {
        if self.excludes.iter().any(|name| name == member) {
            return None;
        }
        let found = match &self.includes {
            None => None,
            Some(items) => Some(items.iter().find(|item| item.name == member)?),
        };
        let name = found.and_then(|item| item.alias.as_deref()).unwrap_or(member);
        let name = self.prefix.as_ref().map_or_else(|| name.to_owned(), |prefix| format!("{prefix}_{name}"));
        Some((name, found.map_or(&[][..], |item| item.overrides.as_slice())))
    }
}

/// Adds the members of the first cube. The new cube inherits all of them. Members that the view does not include become
/// private. Members with a different name in the view are added under that name.
fn own_members(root: &Part<'_>, draft: &mut CubeDraft, view: &Entry<'_>, findings: &mut Vec<Diagnostic>) {
    for list in [DIMENSIONS, MEASURES, SEGMENTS] {
        for member in root.lists[list].iter().copied() {
            let choice = root.choice(&member.name);
            if choice.as_ref().is_none_or(|(name, _)| *name != member.name) {
                let mut private = member.clone();
                private.yaml.set("public", Yaml::Boolean(false));
                draft.lists[list].push(private);
            }
            let Some((name, overrides)) = choice else { continue };
            report_private(member, root, view, findings);
            if name == member.name && overrides.is_empty() {
                continue;
            }
            let mut yaml = member.yaml.clone();
            yaml.set("name", Yaml::text(&*name));
            // The view also inherits the member under its original name, which is the primary key already.
            if name != member.name && list == DIMENSIONS {
                yaml = without(&yaml, "primary_key");
            }
            overrides.iter().for_each(|(key, value)| yaml.set(key, value.clone()));
            draft.lists[list].push(Member { name, yaml, ..member.clone() });
        }
    }
}

/// Adds the dimensions of a joined cube.
fn joined_members(part: &Part<'_>, draft: &mut CubeDraft, view: &Entry<'_>, findings: &mut Vec<Diagnostic>) {
    // The path may matter only if it has at least two joins, because the first cube has only one join to each other
    // cube.
    if part.path.split('.').count() > 2 {
        let cube = &part.draft.original;
        let what =
            format!("{} reaches `{cube}` by the path {}; the project uses the shortest path", view.what, part.path);
        let cure = "If the model needs this path, join the cube a second time under another name, with `cube:`.";
        findings.push(changed(view.span_of("cubes"), what, cure));
    }
    for member in part.lists[DIMENSIONS].iter().copied() {
        let Some((name, overrides)) = part.choice(&member.name) else { continue };
        report_private(member, part, view, findings);
        let mut yaml = without(&member.yaml, "primary_key");
        yaml.set("name", Yaml::text(&*name));
        yaml.set("sql", Yaml::Text(format!("{{{}.{}}}", part.draft.name, member.name)));
        overrides.iter().for_each(|(key, value)| yaml.set(key, value.clone()));
        let source = Reference { cube: part.draft.name.clone(), member: Some(member.name.clone()) };
        let span = view.span_of("cubes");
        draft.lists[DIMENSIONS].push(Member {
            name,
            yaml,
            span,
            is_masked: member.is_masked,
            needs: vec![source],
            drills: Vec::new(),
        });
    }
    for list in [MEASURES, SEGMENTS] {
        let chosen = part.lists[list].iter().filter(|member| part.choice(&member.name).is_some());
        let names: Vec<String> = chosen.map(|member| format!("{}.{}", part.draft.name, member.name)).collect();
        if !names.is_empty() {
            let item = ITEMS[list];
            let what =
                format!("{} does not contain the {item}s of the joined cube `{}`", view.what, part.draft.original);
            let cure = format!("Query them by their own names: {}.", names.join(", "));
            findings.push(left_out(view.span_of("cubes"), what, cure));
        }
    }
}

/// Reports a private member that the view includes by name, because it stays private in the view.
fn report_private(member: &Member, part: &Part<'_>, view: &Entry<'_>, findings: &mut Vec<Diagnostic>) {
    let is_named = part.includes.as_ref().is_some_and(|items| items.iter().any(|item| item.name == member.name));
    if is_named && member.yaml.get("public") == Some(&Yaml::Boolean(false)) {
        let what = format!("{} includes `{}.{}`, which is closed", view.what, part.draft.original, member.name);
        let cure = "Set `public: true` on the member of the view if its callers may see it.";
        findings.push(closed(view.span_of("cubes"), what, cure));
    }
}

fn without(yaml: &Yaml, key: &str) -> Yaml {
    match yaml {
        Yaml::Map(entries) => Yaml::Map(entries.iter().filter(|(name, _)| name != key).cloned().collect()),
        other => other.clone(),
    }
}
