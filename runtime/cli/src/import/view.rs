//! Views.
//!
//! In: an item of `views:`. Out: a cube over the first cube's rows, under the view's name: that cube's
//! members, and dimensions of the cubes that it joins. Measures of joined cubes stay with their cubes, since
//! a measure counts the rows of its own; whoever asks for both gets both in one answer.

use terrane_compiler::diagnostic::Diagnostic;
use terrane_compiler::project::yaml::{Node, NodeValue};
use terrane_compiler::text::nearest::suggest;

use super::draft::{DIMENSIONS, Draft, ITEMS, MEASURES, Member, SEGMENTS};
use super::entry::{Entry, yaml_of};
use super::finding::{changed, left_out};
use super::others::members;
use super::read::Written;
use super::references::Scope;
use crate::authoring::yaml::Yaml;

/// One cube of a view.
struct Part<'d> {
    draft: &'d Draft,
    prefix: Option<String>,
    /// `None`: all of them.
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
    written: &Written,
    drafts: &[Draft],
    scope: &Scope,
    findings: &mut Vec<Diagnostic>,
) -> Option<Draft> {
    let entry = Entry::open(&written.node, format!("view `{}`", written.name))?;
    let lost = |why: &str, cure: &str| {
        left_out(written.span.clone(), format!("{} is not carried over: {why}", entry.what), cure)
    };
    entry.text("name");
    if entry.has("access_policy") {
        // Its cubes stay open by themselves: a policy of a table would close those too.
        findings.push(lost("it has an access policy", "ask its cubes, and write policies for them (policies/*.yml)"));
        return None;
    }
    if entry.has("extends") {
        findings.push(lost("it extends another view", "write out what it takes from there"));
        return None;
    }
    let parts: Vec<Part<'_>> =
        entry.list("cubes").iter().filter_map(|node| part(node, drafts, scope, &entry, findings)).collect();
    let Some(root) = parts.first() else {
        findings.push(lost("none of its cubes is there", "ask the cubes themselves"));
        return None;
    };
    if root.path.contains('.') {
        findings.push(lost("it begins behind a join", "name the cube whose rows it has first"));
        return None;
    }
    let mut draft = Draft {
        original: written.name.clone(),
        name: scope.cube(&written.name),
        span: written.span.clone(),
        head: Vec::new(),
        data_source: root.draft.data_source.clone(),
        is_closed: false,
        lists: Default::default(),
    };
    draft.head =
        vec![("name".to_owned(), Yaml::text(&*draft.name)), ("extends".to_owned(), Yaml::text(&*root.draft.name))];
    for key in ["title", "description"] {
        draft.head.extend(entry.word(key).map(|text| (key.to_owned(), Yaml::Text(text))));
    }
    if entry.boolean("public").or(entry.boolean("shown")) == Some(false) {
        draft.head.push(("public".to_owned(), Yaml::Boolean(false)));
    }
    if let Some(meta) = entry.node("meta") {
        draft.head.push(("meta".to_owned(), yaml_of(meta)));
    }
    let left = own_members(root, &mut draft);
    if !left.is_empty() {
        let what = format!(
            "{} left out {} of cube `{}`: hidden here, not listed, but whoever knows their names can ask for them",
            entry.what,
            left.join(", "),
            root.draft.original
        );
        let cure = "close them to callers by a policy: `deny: [name]` (policies/*.yml)";
        findings.push(changed(written.span.clone(), what, cure));
    }
    for part in &parts[1..] {
        joined_members(part, &mut draft, &entry, findings);
    }
    for key in ["folders", "hierarchies", "default_filters"] {
        entry.drop_key(key, "tell clients how to arrange members in `meta`; filters belong to the query", findings);
    }
    for key in ["measures", "dimensions", "segments", "includes", "excludes"] {
        entry.drop_key(key, "list members below `cubes:`, with `join_path` and `includes`", findings);
    }
    entry.finish(findings);
    Some(draft)
}

fn part<'d>(
    node: &Node,
    drafts: &'d [Draft],
    scope: &Scope,
    view: &Entry<'_>,
    findings: &mut Vec<Diagnostic>,
) -> Option<Part<'d>> {
    let entry = Entry::open(node, format!("a cube of {}", view.what))?;
    let path = entry.word("join_path")?.replace(['{', '}'], "");
    let name = path.rsplit('.').next().unwrap_or_default();
    let Some(draft) = drafts.iter().find(|draft| draft.original == name) else {
        let what = format!("{}: there is no cube `{name}`, or it was not carried over", view.what);
        findings.push(left_out(entry.span_of("join_path"), what, "carry the cube over first"));
        return None;
    };
    let alias = entry.word("alias");
    let prefix = match (entry.boolean("prefix"), &alias) {
        (Some(true), Some(alias)) => Some(crate::authoring::names::snake(alias)),
        (Some(true), None) => Some(draft.name.clone()),
        _ => None,
    };
    let is_all = entry.word("includes").is_none_or(|word| word == "*") && entry.list("includes").is_empty();
    let items = entry.list("includes").iter();
    let includes: Option<Vec<Included>> =
        (!is_all).then(|| items.filter_map(|node| included(node, draft, scope, findings)).collect());
    let excludes: Vec<String> =
        members(&entry, "excludes").iter().map(|name| scope.member(&draft.original, name)).collect();
    for name in &excludes {
        unknown_member(name, draft, &entry, "excludes", view, findings);
    }
    for item in includes.iter().flatten() {
        unknown_member(&item.name, draft, &entry, "includes", view, findings);
    }
    entry.drop_key("split", "make a view of each", findings);
    entry.finish(findings);
    Some(Part { draft, prefix, includes, excludes, path })
}

/// Tells of a name that the cube doesn't have.
fn unknown_member(
    name: &str,
    draft: &Draft,
    entry: &Entry<'_>,
    key: &str,
    view: &Entry<'_>,
    findings: &mut Vec<Diagnostic>,
) {
    let known = || draft.lists.iter().flatten().map(|member| member.name.as_str());
    // A place is two members here.
    let is_known =
        known().any(|member| member.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('_')));
    if !is_known {
        let what = format!(
            "`{key}` of {} names `{name}`, which cube `{}` doesn't have, or which was not carried over",
            view.what, draft.original
        );
        findings.push(left_out(entry.span_of(key), what, suggest(name, "members", known())));
    }
}

fn included(node: &Node, draft: &Draft, scope: &Scope, findings: &mut Vec<Diagnostic>) -> Option<Included> {
    if let NodeValue::Scalar { text, .. } = &node.value {
        return Some(Included { name: scope.member(&draft.original, text), alias: None, overrides: Vec::new() });
    }
    let entry = Entry::open(node, format!("an item of `includes` of cube `{}`", draft.original))?;
    let name = scope.member(&draft.original, &entry.word("name")?);
    let alias = entry.word("alias").map(|alias| crate::authoring::names::snake(&alias));
    let mut overrides = Vec::new();
    for key in ["title", "description", "format"] {
        overrides.extend(entry.word(key).map(|text| (key.to_owned(), Yaml::Text(text))));
    }
    overrides.extend(entry.node("meta").map(|meta| ("meta".to_owned(), yaml_of(meta))));
    entry.finish(findings);
    Some(Included { name, alias, overrides })
}

impl Part<'_> {
    /// How a member is included: under which name, and with what of its own.
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

/// Members of the first cube are inherited. Those that the view leaves out are hidden, those that it calls
/// otherwise stand there a second time. Out: the names of what it leaves out.
fn own_members(root: &Part<'_>, draft: &mut Draft) -> Vec<String> {
    let mut left = Vec::new();
    for list in [DIMENSIONS, MEASURES, SEGMENTS] {
        for member in &root.draft.lists[list] {
            let choice = root.choice(&member.name);
            if choice.is_none() {
                left.push(format!("`{}`", member.name));
            }
            if choice.as_ref().is_none_or(|(name, _)| *name != member.name) {
                let mut hidden = member.yaml.clone();
                hidden.set("hidden", Yaml::Boolean(true));
                draft.lists[list].push(Member { yaml: hidden, ..member.clone() });
            }
            let Some((name, overrides)) = choice else { continue };
            if name == member.name && overrides.is_empty() {
                continue;
            }
            let mut yaml = member.yaml.clone();
            yaml.set("name", Yaml::text(&*name));
            // Its SQL stands in for the member, which is the key.
            if name != member.name && list == DIMENSIONS {
                yaml = without(&yaml, "primary_key");
            }
            overrides.iter().for_each(|(key, value)| yaml.set(key, value.clone()));
            draft.lists[list].push(Member { name, yaml, span: member.span.clone() });
        }
    }
    left
}

/// Dimensions of a joined cube, read through the join.
fn joined_members(part: &Part<'_>, draft: &mut Draft, view: &Entry<'_>, findings: &mut Vec<Diagnostic>) {
    // The first hop is the only one of its kind; behind it there may be another way.
    if part.path.split('.').count() > 2 {
        let cube = &part.draft.original;
        let what =
            format!("{} goes to `{cube}` by the path {}, here by the best path that there is", view.what, part.path);
        let cure = "where that is another path, join the cube under another name: `cube:` of a join";
        findings.push(changed(view.span_of("cubes"), what, cure));
    }
    for member in &part.draft.lists[DIMENSIONS] {
        let Some((name, overrides)) = part.choice(&member.name) else { continue };
        let mut yaml = without(&member.yaml, "primary_key");
        yaml.set("name", Yaml::text(&*name));
        yaml.set("sql", Yaml::Text(format!("{{{}.{}}}", part.draft.name, member.name)));
        overrides.iter().for_each(|(key, value)| yaml.set(key, value.clone()));
        draft.lists[DIMENSIONS].push(Member { name, yaml, span: view.span_of("cubes") });
    }
    for list in [MEASURES, SEGMENTS] {
        let chosen = part.draft.lists[list].iter().filter(|member| part.choice(&member.name).is_some());
        let names: Vec<String> = chosen.map(|member| format!("{}.{}", part.draft.name, member.name)).collect();
        if !names.is_empty() {
            let item = ITEMS[list];
            let what = format!("{item}s of the joined cube `{}` are not in {}", part.draft.original, view.what);
            let cure = format!("ask for them by their own names: {}", names.join(", "));
            findings.push(left_out(view.span_of("cubes"), what, cure));
        }
    }
}

fn without(yaml: &Yaml, key: &str) -> Yaml {
    match yaml {
        Yaml::Map(entries) => Yaml::Map(entries.iter().filter(|(name, _)| name != key).cloned().collect()),
        other => other.clone(),
    }
}
