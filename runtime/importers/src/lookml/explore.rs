//! Reads explores, and turns their joins into joins of cubes.
//!
//! In: merged explores. Out: the views of each explore, with their aliases and the fields that the explore shows; and
//! the joins. Each join is added to the cube that its condition connects with the joined view.

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::fields::Fields;
use super::merge::Merged;
use super::scope::{ProjectScope, ViewNames};
use super::sql::{self, Aliases, Translated, Untranslatable};
use super::syntax::Item;
use crate::draft::{CubeDraft, JOINS, Member, Reference};
use crate::finding::{changed, left_out};

/// An explore with the views that it shows.
pub(super) struct Explore {
    pub(super) name: String,
    /// The base view, followed by the joined views.
    pub(super) parts: Vec<Part>,
    pub(super) rules: Vec<Rule>,
    /// True if all callers may use the explore.
    pub(super) is_open: bool,
    /// The entries of the key `fields`, with its place.
    pub(super) fields: Option<(Vec<String>, Span)>,
}

/// A view of an explore, with the alias that the explore gives it.
pub(super) struct Part {
    pub(super) alias: String,
    pub(super) view: String,
    pub(super) span: Span,
    pub(super) is_open: bool,
    /// The entries of the key `fields` of the join, with its place.
    pub(super) fields: Option<(Vec<String>, Span)>,
    join: Option<Join>,
}

/// A rule that restricts the rows of an explore.
pub(super) struct Rule {
    pub(super) span: Span,
    pub(super) kind: RuleKind,
}

pub(super) enum RuleKind {
    /// Allows the rows in which the field has the value of a caller's attribute.
    Attribute { field: String, attribute: String },
    /// Allows the rows that meet a condition.
    Condition(String),
    /// A rule that has no counterpart, by its key.
    Other(String),
}

struct Join {
    relationship: &'static str,
    /// The condition, or `None` if it has no counterpart, which a finding reports.
    condition: Option<Translated>,
}

/// The aliases of one explore, each with its view.
pub(super) struct ExploreAliases<'e>(pub(super) &'e [(String, String)]);

impl Aliases for ExploreAliases<'_> {
    fn resolve<'s>(&self, scope: &'s ProjectScope, alias: &str) -> Option<(&'s ViewNames, String)> {
        let at = self.0.iter().position(|(known, _)| known == alias)?;
        let (_, view) = &self.0[at];
        let view = scope.view(view)?;
        // The base is always the cube of its view. A join with `from` is an alias of that cube.
        let is_alias = at > 0 && self.0[at].0 != self.0[at].1;
        Some((view, if is_alias { terrane_authoring::names::snake(alias) } else { view.cube.clone() }))
    }
}

impl Explore {
    pub(super) fn aliases(&self) -> Vec<(String, String)> {
        self.parts.iter().map(|part| (part.alias.clone(), part.view.clone())).collect()
    }
}

const GRANTS: &str = "required_access_grants";

pub(super) fn explore(item: &Merged, scope: &ProjectScope, findings: &mut Vec<Diagnostic>) -> Option<Explore> {
    let fields = Fields::open(&item.item, format!("explore `{}`", item.name));
    if fields.text("extension") == Some("required") {
        return None;
    }
    let alias = fields.text("view_name").unwrap_or(&item.name).to_owned();
    let view = fields.text("from").unwrap_or(&alias).to_owned();
    if scope.view(&view).is_none() {
        let cure = "Import the folder of the whole project, or solve the problems of the view first.";
        fields.reject(&format!("the folder does not contain its view `{view}`"), cure, findings);
        return None;
    }
    let is_open = !fields.has(GRANTS) && !fields.is_yes("hidden");
    let mut rules = rules(&fields, findings);
    let base =
        Part { alias: alias.clone(), view: view.clone(), span: fields.span.clone(), is_open, fields: None, join: None };
    let mut parts = vec![base];
    let joins: Vec<&Item> = fields.all("join").collect();
    let mut aliases = vec![(alias, view)];
    for join in &joins {
        let Some(name) = join.name() else { continue };
        let view = Fields::open(join, "").text("from").unwrap_or(name).to_owned();
        aliases.push((name.to_owned(), view));
    }
    for (join, (alias, view)) in joins.iter().zip(aliases.clone().into_iter().skip(1)) {
        let what = format!("join `{alias}` of {}", fields.what);
        parts.push(part(Fields::open(join, what), alias, view, is_open, &aliases, scope, &mut rules, findings));
    }
    let list = list(&fields);
    for key in ["extends", "extends__all", "extension"] {
        fields.all(key).for_each(drop);
    }
    let cure = "Filter the query.";
    ["always_filter", "conditionally_filter"].iter().for_each(|key| fields.drop_key(key, cure, findings));
    let cure = "Write `refresh` of the cubes whose rows change.";
    ["persist_with", "persist_for"].iter().for_each(|key| fields.drop_key(key, cure, findings));
    fields.drop_key("aggregate_table", "Write a pre-aggregation of the cube.", findings);
    fields.finish(findings);
    Some(Explore { name: item.name.clone(), parts, rules, is_open, fields: list })
}

fn list(fields: &Fields<'_>) -> Option<(Vec<String>, Span)> {
    fields.item("fields").map(|item| {
        let entries = fields.list("fields");
        (entries.iter().map(|entry| entry.text.clone()).collect(), item.span.clone())
    })
}

/// Reads the rules that restrict an explore's rows.
fn rules(fields: &Fields<'_>, findings: &mut Vec<Diagnostic>) -> Vec<Rule> {
    let mut rules = Vec::new();
    for item in fields.all("access_filter") {
        let filter = Fields::open(item, format!("`access_filter` of {}", fields.what));
        let kind = match (filter.text("field"), filter.text("user_attribute")) {
            (Some(field), Some(attribute)) => {
                RuleKind::Attribute { field: field.to_owned(), attribute: attribute.to_owned() }
            }
            _ => RuleKind::Other("access_filter".to_owned()),
        };
        rules.push(Rule { span: item.span.clone(), kind });
        filter.finish(findings);
    }
    for key in ["sql_always_where", "sql_always_having"] {
        let Some(item) = fields.item(key) else { continue };
        let kind = match fields.text(key).filter(|_| key == "sql_always_where") {
            Some(text) => RuleKind::Condition(text.to_owned()),
            None => RuleKind::Other(key.to_owned()),
        };
        rules.push(Rule { span: item.span.clone(), kind });
    }
    rules
}

#[allow(clippy::too_many_arguments, reason = "a join is read once, with everything of its explore")]
fn part(
    fields: Fields<'_>,
    alias: String,
    view: String,
    is_open: bool,
    aliases: &[(String, String)],
    scope: &ProjectScope,
    rules: &mut Vec<Rule>,
    findings: &mut Vec<Diagnostic>,
) -> Part {
    if let Some(item) = fields.item("sql_where") {
        rules.push(Rule { span: item.span.clone(), kind: RuleKind::Other("sql_where".to_owned()) });
    }
    let is_open = is_open && !fields.has(GRANTS);
    let join = join_of(&fields, &alias, &view, aliases, scope, findings);
    let list = list(&fields);
    for key in ["from", "relationship", "type", "sql_on", "foreign_key"] {
        fields.all(key).for_each(drop);
    }
    let cure = "Check the joins: a query of the project joins only the cubes between those that it names.";
    ["required_joins", "outer_only"].iter().for_each(|key| fields.drop_key(key, cure, findings));
    let span = fields.span.clone();
    fields.finish(findings);
    Part { alias, view, span, is_open, fields: list, join }
}

/// Reads the relationship and the condition of a join. Returns `None` and adds a finding if it has no counterpart.
fn join_of(
    fields: &Fields<'_>,
    alias: &str,
    view: &str,
    aliases: &[(String, String)],
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) -> Option<Join> {
    let Some(joined) = scope.view(view) else {
        let cure = "Import the folder of the whole project, or solve the problems of the view first.";
        fields.reject(&format!("the folder does not contain its view `{view}`"), cure, findings);
        return None;
    };
    let relationship = match fields.text("relationship").unwrap_or("many_to_one") {
        "many_to_one" => "many_to_one",
        "one_to_one" => "one_to_one",
        "one_to_many" => "one_to_many",
        other => {
            let cure = "Join both views to the table between them.";
            fields.reject(&format!("its relationship is `{other}`"), cure, findings);
            return None;
        }
    };
    match fields.text("type").unwrap_or("left_outer") {
        "left_outer" => {}
        "inner" => {
            let what = format!("{} is an inner join; in the project, rows without a joined row stay", fields.what);
            findings.push(changed(fields.span_of("type"), what, "Write `always: true` if each row has a joined row."));
        }
        other => {
            let cure = "Write the joined rows as a model (models/*.sql).";
            fields.reject(&format!("its type is `{other}`"), cure, findings);
            return None;
        }
    }
    let sql = match (fields.text("sql_on"), fields.text("foreign_key"), joined.key.as_ref()) {
        (Some(sql), ..) => sql.to_owned(),
        (None, Some(foreign), Some(key)) => {
            let base = aliases.first().map_or("", |(alias, _)| alias.as_str());
            let foreign = if foreign.contains('.') { foreign.to_owned() } else { format!("{base}.{foreign}") };
            format!("${{{foreign}}} = ${{{alias}.{key}}}")
        }
        _ if fields.has("sql") => {
            let cure = "Write the joined rows as a model (models/*.sql).";
            fields.reject("its SQL is a clause (`sql`), not a condition", cure, findings);
            return None;
        }
        _ => {
            let cure = "Write `sql_on` with the fields of both views.";
            fields.reject("it has no condition", cure, findings);
            return None;
        }
    };
    match sql::expression(&sql, "", &ExploreAliases(aliases), scope) {
        Ok(condition) => Some(Join { relationship, condition: Some(condition) }),
        Err(Untranslatable { reason, cure }) => {
            fields.reject(&reason, cure, findings);
            None
        }
    }
}

/// Adds the joins of all explores to the cubes that own them.
pub(super) fn join(
    drafts: &mut [CubeDraft],
    explores: &[Explore],
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) {
    let mut targets: Vec<(String, String)> =
        drafts.iter().map(|draft| (draft.name.clone(), draft.name.clone())).collect();
    for explore in explores {
        let aliases = explore.aliases();
        for part in &explore.parts {
            let Some(Join { relationship, condition: Some(condition) }) = &part.join else { continue };
            let result = joined(explore, part, &aliases, relationship, condition, drafts, &mut targets, scope);
            if let Err(Untranslatable { reason, cure }) = result {
                let what = format!("join `{}` of explore `{}` is not imported: {reason}", part.alias, explore.name);
                findings.push(left_out(part.span.clone(), what, cure));
            }
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of one join")]
fn joined(
    explore: &Explore,
    part: &Part,
    aliases: &[(String, String)],
    relationship: &str,
    condition: &Translated,
    drafts: &mut [CubeDraft],
    targets: &mut Vec<(String, String)>,
    scope: &ProjectScope,
) -> Result<(), Untranslatable> {
    let failed = |reason: &str, cure: &'static str| Err(Untranslatable { reason: reason.to_owned(), cure });
    let others: Vec<&String> = condition.views.iter().filter(|alias| **alias != part.alias).collect();
    let [owner] = others.as_slice() else {
        return failed("its condition names the fields of more or fewer than two views", "Join two views at a time.");
    };
    let Some((_, owner_view)) = aliases.iter().find(|(alias, _)| alias == *owner) else { return Ok(()) };
    if *owner != owner_view && explore.parts.first().is_none_or(|base| base.alias != **owner) {
        return failed("it is behind a join with `from`", "Write the join in the cube of that view.");
    }
    let resolve = ExploreAliases(aliases).resolve(scope, &part.alias);
    let (Some(owner_cube), Some((target, name))) = (scope.view(owner_view), resolve) else { return Ok(()) };
    match targets.iter().find(|(known, _)| *known == name) {
        Some((_, cube)) if *cube != target.cube => {
            return failed("its alias has another view in another explore", "Rename the alias in one of them.");
        }
        Some(_) => {}
        None => targets.push((name.clone(), target.cube.clone())),
    }
    let Some(draft) = drafts.iter_mut().find(|draft| draft.name == owner_cube.cube) else {
        return failed("the view that it joins to is not imported", "Solve the problems of the view first.");
    };
    let mut yaml = Yaml::map([("name", Yaml::text(&*name))]);
    if name != target.cube {
        yaml.set("cube", Yaml::text(&*target.cube));
    }
    yaml.set("relationship", Yaml::text(relationship));
    yaml.set("sql", Yaml::text(&*condition.sql));
    if let Some(known) = draft.lists[JOINS].iter().find(|join| join.name == name) {
        let is_same = known.yaml == yaml;
        let cure = "Write the other condition as a join with another name and `cube:`.";
        return if is_same { Ok(()) } else { failed("another explore joins the two views in another way", cure) };
    }
    // A reference by an alias needs the cube to which the alias refers.
    let need = |need: &Reference| match need.cube == name {
        true => Reference { cube: target.cube.clone(), member: need.member.clone() },
        false => need.clone(),
    };
    let mut needs: Vec<Reference> = condition.needs.iter().map(need).collect();
    needs.push(Reference { cube: target.cube.clone(), member: None });
    let span = part.span.clone();
    draft.lists[JOINS].push(Member { name, yaml, span, is_masked: false, needs, drills: Vec::new() });
    Ok(())
}
