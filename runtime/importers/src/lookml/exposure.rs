//! Closes everything that the explores do not show to all callers.
//!
//! In: the cubes, and the explores with their rules. Out: the same cubes. A view that no open explore shows becomes
//! private, and so does a field that no explore shows. The rules of an explore become policies of its base and of the
//! views whose fields the rules name. The other views of such an explore become private, unless an explore without
//! rules shows them.

use std::collections::{HashMap, HashSet};

use terrane_authoring::names::snake;
use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::{Diagnostic, Span};

use super::explore::{Explore, ExploreAliases, Part, Rule, RuleKind};
use super::merge::Merged;
use super::scope::ProjectScope;
use super::sql::{self, Aliases, OwnViews};
use crate::draft::{CubeDraft, CubeVisibility, DIMENSIONS, MEASURES, PolicyDraft};
use crate::finding::{changed, closed, closed_by_policy};

const OPEN_CURE: &str = "Remove `public: false` of the cube if all callers may query it.";

/// The views and explores that may be restricted by something that was not imported, each with the reason.
pub(super) struct Closed {
    views: HashMap<String, &'static str>,
    explores: HashSet<String>,
}

impl Closed {
    pub(super) fn new(views: &[Merged], explores: &[Merged], unread: &HashSet<String>) -> Self {
        let is_unread = |item: &Merged| item.lineage.iter().any(|name| unread.contains(name));
        let reason = |item: &Merged| match (is_unread(item), item.is_ambiguous) {
            (true, _) => Some("a file that was not read may restrict it"),
            (false, true) => Some("several views have its name and differ"),
            (false, false) => None,
        };
        Closed {
            views: views.iter().filter_map(|item| Some((item.name.clone(), reason(item)?))).collect(),
            explores: explores.iter().filter(|item| reason(item).is_some()).map(|item| item.name.clone()).collect(),
        }
    }
}

pub(super) fn close(
    drafts: &mut [CubeDraft],
    explores: &[Explore],
    restricted: &Closed,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) {
    for draft in drafts.iter_mut() {
        let Some(reason) = restricted.views.get(&draft.original) else { continue };
        let what = format!("cube `{}` is closed: {reason}", draft.original);
        let cure = "Correct the files and import again, or write the policy in its file of policies/.";
        findings.push(closed(draft.span.clone(), what, cure));
        draft.access.has_policy = true;
    }
    if !scope.settings.has_explores {
        if let Some(draft) = drafts.first() {
            let what = "the folder contains no explore, so that every view can be queried";
            let cure = "Import the folder of the whole project, or write `public: false` of cubes.";
            findings.push(changed(draft.span.clone(), what, cure));
        }
        return;
    }
    for explore in explores {
        for rule in &explore.rules {
            restrict(rule, explore, drafts, scope, findings);
        }
    }
    for draft in drafts.iter_mut() {
        expose(draft, explores, restricted, scope, findings);
    }
}

/// Creates policies from a rule. If the rule has no counterpart, closes the base of its explore.
fn restrict(
    rule: &Rule,
    explore: &Explore,
    drafts: &mut [CubeDraft],
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) {
    let Some(base) = explore.parts.first() else { return };
    let aliases = explore.aliases();
    let mut close_base = |reason: &str| {
        let what = format!("the base of explore `{}` is closed to all callers: {reason}", explore.name);
        findings.push(closed_by_policy(rule.span.clone(), what));
        if let Some(draft) = drafts.iter_mut().find(|draft| draft.original == base.view) {
            draft.access.has_policy = true;
        }
    };
    match &rule.kind {
        RuleKind::Other(key) => close_base(&format!("`{key}` has no counterpart")),
        RuleKind::Condition(text) => match sql::expression(text, &base.alias, &ExploreAliases(&aliases), scope) {
            Ok(translated) => {
                let what = format!("`sql_always_where` of explore `{}` becomes a policy", explore.name);
                let cure = "Check its condition: it applies to every query of the cube.";
                findings.push(changed(rule.span.clone(), what, cure));
                add_policy(drafts, &base.view, &explore.name, translated.sql, &rule.span);
            }
            Err(untranslatable) => close_base(&untranslatable.reason),
        },
        RuleKind::Attribute { field, attribute } => {
            let (alias, name) = field.split_once('.').unwrap_or((base.alias.as_str(), field));
            let found = ExploreAliases(&aliases).resolve(scope, alias);
            let found = found.and_then(|(view, cube)| Some((view, cube, view.field(name)?)));
            let is_name = !attribute.is_empty() && attribute.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            let Some((view, cube, found)) = found.filter(|(.., found)| is_name && found.timeframe.is_none()) else {
                return close_base(&format!("its `access_filter` by `{field}` has no counterpart"));
            };
            let value = format!("IN {{{{ user.attributes.{attribute} }}}}");
            let member = &found.field.name;
            let what = format!("`access_filter` of explore `{}` becomes a policy", explore.name);
            let cure = "Give callers the attribute as a value or a list. A caller without it sees no row; `%` is not a pattern.";
            findings.push(changed(rule.span.clone(), what, cure));
            let own = if alias == base.alias { member.clone() } else { format!("{cube}.{member}") };
            add_policy(drafts, &base.view, &explore.name, format!("{{{own}}} {value}"), &rule.span);
            if alias != base.alias {
                let original = aliases.iter().find(|(known, _)| known == alias).map(|(_, view)| view.clone());
                let owner = original.filter(|_| scope.view(alias).is_some() || !view.cube.is_empty());
                if let Some(owner) = owner {
                    add_policy(drafts, &owner, &explore.name, format!("{{{member}}} {value}"), &rule.span);
                }
            }
        }
    }
}

fn add_policy(drafts: &mut [CubeDraft], view: &str, explore: &str, row_filter: String, span: &Span) {
    let Some(draft) = drafts.iter_mut().find(|draft| draft.original == view) else { return };
    let number = draft.policies.len() + 1;
    let yaml = Yaml::map([
        ("name", Yaml::text(format!("{}_{}_{number}", draft.name, snake(explore)))),
        ("cubes", Yaml::texts([&*draft.name])),
        ("row_filter", Yaml::Text(row_filter)),
    ]);
    let is_known = draft.policies.iter().any(|policy| policy.yaml.get("row_filter") == yaml.get("row_filter"));
    if !is_known {
        draft.policies.push(PolicyDraft { span: span.clone(), yaml });
    }
}

/// Makes a cube private, or only those of its fields that no explore shows.
fn expose(
    draft: &mut CubeDraft,
    explores: &[Explore],
    restricted: &Closed,
    scope: &ProjectScope,
    findings: &mut Vec<Diagnostic>,
) {
    let shown = explores.iter().filter(|explore| explore.is_open && !restricted.explores.contains(&explore.name));
    let shown = shown.flat_map(|explore| explore.parts.iter().map(move |part| (explore, part)));
    let shown: Vec<(&Explore, &Part)> = shown.filter(|(_, part)| part.is_open && part.view == draft.original).collect();
    let has_own_policy = !draft.policies.is_empty() || draft.access.has_policy;
    let is_base = |explore: &Explore, part: &Part| explore.parts.first().is_some_and(|base| std::ptr::eq(base, part));
    let is_free =
        |(explore, part): &(&Explore, &Part)| explore.rules.is_empty() || is_base(explore, part) || has_own_policy;
    if !shown.iter().any(is_free) {
        let (span, reason) = match shown.first() {
            Some((explore, part)) => {
                (part.span.clone(), format!("explore `{}` shows it only for some rows", explore.name))
            }
            None => (draft.span.clone(), "no explore shows it to all callers".to_owned()),
        };
        findings.push(closed(span, format!("cube `{}` is closed: {reason}", draft.original), OPEN_CURE));
        draft.access.visibility = CubeVisibility::Private;
        return;
    }
    let lists: Vec<&(Vec<String>, Span)> =
        shown.iter().filter_map(|(explore, part)| part.fields.as_ref().or(explore.fields.as_ref())).collect();
    if lists.is_empty() {
        return;
    }
    let is_shown_by = |member: &str, timeframe: Option<&str>| {
        shown.iter().any(|(explore, part)| {
            let shows = |list| shows(list, part, member, timeframe, scope);
            shows(explore.fields.as_ref()) && shows(part.fields.as_ref())
        })
    };
    let timeframes = |member: &str| scope.view(&draft.original).map_or(&[][..], |view| view.timeframes(member));
    // A group of times is one member, so it is shown only if explores show all of its timeframes.
    let is_shown = |member: &str| match timeframes(member) {
        [] => is_shown_by(member, None),
        all => all.iter().all(|timeframe| is_shown_by(member, Some(timeframe))),
    };
    let mut hidden = Vec::new();
    for list in [DIMENSIONS, MEASURES] {
        let names = draft.lists[list].iter().map(|member| &member.name);
        hidden.extend(names.filter(|name| !is_shown(name)).cloned());
    }
    let members = draft.lists.iter_mut().flatten().filter(|member| hidden.contains(&member.name));
    members.for_each(|member| member.yaml.set("public", Yaml::Boolean(false)));
    let hidden: Vec<String> = hidden.iter().map(|name| format!("`{name}`")).collect();
    if let (false, Some((_, span))) = (hidden.is_empty(), lists.first()) {
        let what = format!(
            "fields of cube `{}` are closed, since no explore shows them, or all of their timeframes: {}",
            draft.original,
            hidden.join(", ")
        );
        findings.push(closed(span.clone(), what, "Remove `public: false` of those that all callers may query."));
    }
}

/// Returns true if a list of fields shows a member. Without a list, an explore shows all members.
/// A time is shown by a timeframe, such as `created_month`.
fn shows(
    list: Option<&(Vec<String>, Span)>,
    part: &Part,
    member: &str,
    timeframe: Option<&str>,
    scope: &ProjectScope,
) -> bool {
    let Some((entries, _)) = list else { return true };
    let Some((view, _)) = OwnViews.resolve(scope, &part.view) else { return false };
    let mut is_shown = entries.iter().all(|entry| entry.starts_with('-'));
    for entry in entries {
        let (is_excluded, entry) = entry.strip_prefix('-').map_or((false, entry.as_str()), |entry| (true, entry));
        if entry == "ALL_FIELDS*" {
            is_shown = !is_excluded;
            continue;
        }
        let text = match entry.split_once('.') {
            Some((alias, text)) if alias == part.alias => text,
            Some(_) => continue,
            None => entry,
        };
        let names = view.expand(text);
        let is_named = names.iter().any(|name| {
            let name = name.strip_prefix(&format!("{}.", part.alias)).unwrap_or(name);
            // A location became two members, whose names begin with its name.
            view.field(name).is_some_and(|found| {
                // An exclusion by a name without a timeframe excludes all timeframes.
                let is_timeframe =
                    timeframe.is_none() || found.timeframe == timeframe || (is_excluded && found.timeframe.is_none());
                is_timeframe
                    && member
                        .strip_prefix(&*found.field.name)
                        .is_some_and(|rest| ["", "_latitude", "_longitude"].contains(&rest))
            })
        });
        if is_named {
            is_shown = !is_excluded;
        }
    }
    is_shown
}
