//! Closes inherited members whose replacements were left out.
//!
//! In: drafts of cubes, some of which lost members that replace members of the cubes that they extend. Out: the same
//! drafts, in which the inherited members are private, because the lost ones may show less or compute another value.

use std::collections::HashSet;

use terrane_authoring::yaml::Yaml;
use terrane_compiler::diagnostic::Diagnostic;

use crate::draft::{CubeDraft, DIMENSIONS, JOINS, MEASURES, Member, SEGMENTS, ancestors};
use crate::finding::{closed, left_out};

/// The endings of the names of the members that a `geo` dimension becomes.
const PARTS: [&str; 3] = ["", "_latitude", "_longitude"];

/// Closes the inherited members of all cubes that lost members of the same names, and those that read them.
pub(crate) fn close_overridden(drafts: &mut [CubeDraft], findings: &mut Vec<Diagnostic>) {
    for at in 0..drafts.len() {
        if drafts[at].missing.is_empty() || drafts[at].extends.is_none() {
            continue;
        }
        let overridden = overridden(drafts, &drafts[at]);
        if overridden.is_empty() {
            continue;
        }
        let draft = &mut drafts[at];
        let names: Vec<String> = overridden.iter().map(|(_, member)| format!("`{}`", member.name)).collect();
        let what = format!(
            "inherited members of cube `{}` are closed, since members that replace them are not imported: {}",
            draft.original,
            names.join(", ")
        );
        findings.push(closed(draft.span.clone(), what, "Write the members of the cube, with `public: true`."));
        for (list, mut member) in overridden {
            member.yaml.set("public", Yaml::Boolean(false));
            member.is_masked = true;
            draft.stand_ins.push(member.name.clone());
            draft.lists[list].push(member);
        }
    }
}

/// Removes the cubes that inherit a join because their own one was left out.
pub(crate) fn remove_with_inherited_joins(drafts: &mut Vec<CubeDraft>, findings: &mut Vec<Diagnostic>) {
    let known = drafts.clone();
    drafts.retain(|draft| {
        let Some(join) = overridden_join(&known, draft) else { return true };
        let what = format!(
            "cube `{}` is not imported: it would inherit the join `{join}` instead of its own one",
            draft.original
        );
        findings.push(left_out(draft.span.clone(), what, "Solve the problems of the join first."));
        false
    });
}

/// Returns an inherited join that is replaced by a missing one. Members of the cube would be computed over other rows.
fn overridden_join(drafts: &[CubeDraft], draft: &CubeDraft) -> Option<String> {
    let parents = ancestors(drafts, draft);
    let mut joins = parents.iter().flat_map(|parent| &parent.lists[JOINS]).map(|join| &join.name);
    let is_own = |name: &String| draft.lists[JOINS].iter().any(|join| join.name == *name);
    joins.find(|name| draft.missing.contains(name) && !is_own(name)).cloned()
}

/// Returns the inherited members of a cube that are replaced by missing members, or read such members.
fn overridden(drafts: &[CubeDraft], draft: &CubeDraft) -> Vec<(usize, Member)> {
    let parents = ancestors(drafts, draft);
    let mut known: HashSet<&str> = draft.lists.iter().flatten().map(|member| member.name.as_str()).collect();
    let mut inherited: Vec<(usize, &Member)> = Vec::new();
    for parent in &parents {
        for list in [DIMENSIONS, MEASURES, SEGMENTS] {
            let members = parent.lists[list].iter().filter(|member| !known.contains(member.name.as_str()));
            inherited.extend(members.map(|member| (list, member)));
        }
        known.extend(parent.lists.iter().flatten().map(|member| member.name.as_str()));
    }
    let is_own = |cube: &str| cube == draft.name || parents.iter().any(|parent| parent.name == *cube);
    let mut names: HashSet<String> =
        draft.missing.iter().flat_map(|name| PARTS.map(|part| format!("{name}{part}"))).collect();
    loop {
        let reads = |member: &Member| {
            let mut own = member.needs.iter().filter(|need| is_own(&need.cube));
            own.any(|need| need.member.as_ref().is_some_and(|name| names.contains(name)))
        };
        let found: Vec<String> = inherited
            .iter()
            .filter(|(_, member)| !names.contains(&member.name) && reads(member))
            .map(|(_, member)| member.name.clone())
            .collect();
        if found.is_empty() {
            break;
        }
        names.extend(found);
    }
    let found = inherited.into_iter().filter(|(_, member)| names.contains(&member.name));
    found.map(|(list, member)| (list, member.clone())).collect()
}
