//! Whether the cubes and members that policies name exist.
//!
//! In: policy definitions and a finished model. Out: diagnostics alone; `secure` decides what the
//! policies do. A policy that names something unknown is an error, never a policy that does nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use sqlparser::dialect::Dialect;

use super::nearest::suggest;
use super::read::read;
use super::scope::{Place, Scope};
use super::{Cube, Model};
use crate::diagnostic::Diagnostic;
use crate::project::{Definitions, MaskDefinition, PolicyDefinition, SqlText, Text};

pub(super) fn check(
    model: &Model,
    definitions: &Definitions,
    unread: &BTreeSet<Arc<str>>,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) {
    for policy in &definitions.policies {
        let Some(names) = &policy.cubes else { continue };
        for name in names {
            match model.cube_named(&name.value) {
                None if unread.contains(&name.value) => {}
                None => {
                    let known = model.cubes.iter().filter(|cube| cube.alias_of.is_none()).map(|cube| &*cube.name);
                    let message =
                        format!("policy `{}` names a cube `{}` that doesn't exist", policy.name.value, name.value);
                    diagnostics.push(
                        Diagnostic::error("unknown-cube", message)
                            .hint(suggest(&name.value, "cubes", known))
                            .at(name.span()),
                    );
                }
                Some(Cube { alias_of: Some(original), .. }) => {
                    let message =
                        format!("policy `{}` names `{}`, which is only a join's name", policy.name.value, name.value);
                    let hint =
                        format!("name the cube `{}`; its aliases obey the same policies", model.cube(*original).name);
                    diagnostics.push(Diagnostic::error("alias-policy", message).hint(hint).at(name.span()));
                }
                Some(cube) => check_members(policy, cube, model, unread, dialect, diagnostics),
            }
        }
    }
}

/// Marks the cubes that policies speak of, their aliases too. A policy whose cube can't be found might
/// have meant any of them, and so might one that could not be read.
pub(super) fn guard(model: &mut Model, definitions: &Definitions) {
    let mut guarded = vec![definitions.has_broken_policies; model.cubes.len()];
    for policy in &definitions.policies {
        let named = policy.cubes.iter().flatten().map(|name| model.cube_named(&name.value).map(|cube| cube.id));
        match named.collect::<Option<Vec<_>>>() {
            Some(ids) if policy.cubes.is_some() => ids.into_iter().for_each(|id| guarded[id.0 as usize] = true),
            _ => guarded.fill(true),
        }
    }
    for cube in &mut model.cubes {
        let original = cube.alias_of.unwrap_or(cube.id);
        cube.is_guarded = guarded[cube.id.0 as usize] || guarded[original.0 as usize];
    }
}

fn check_members(
    policy: &PolicyDefinition,
    cube: &Cube,
    model: &Model,
    unread: &BTreeSet<Arc<str>>,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let named: Vec<&Text> = policy.masks.iter().map(|(member, _)| member).chain(&policy.deny).collect();
    for member in named {
        if cube.member(&member.value).is_none() && !unread.contains(&member.value) {
            let known = cube.members.keys().map(|name| &**name);
            let message =
                format!("policy `{}`: cube `{}` has no member `{}`", policy.name.value, cube.name, member.value);
            diagnostics.push(
                Diagnostic::error("unknown-member", message)
                    .hint(suggest(&member.value, "members", known))
                    .at(member.span()),
            );
        }
    }
    let masks = policy.masks.iter().filter_map(|(_, mask)| match mask {
        MaskDefinition::Sql(sql) => Some(sql),
        _ => None,
    });
    for sql in policy.row_filter.iter().chain(masks) {
        let scope = Scope { model, cube: Some(cube.id), written_in: &cube.name, place: Place::Policy, unread };
        let without_parameters = SqlText { text: blank_parameters(&sql.text).into(), ..sql.clone() };
        if let Err(problems) = read(&without_parameters, scope, dialect) {
            for problem in problems {
                let diagnostic = problem.in_text(sql);
                if !diagnostics.contains(&diagnostic) {
                    diagnostics.push(diagnostic);
                }
            }
        }
    }
}

/// `{{ user.… }}` as a list of one, of the same length, so that places stay right.
fn blank_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, tag)) = rest.split_once("{{") {
        let Some((inside, after)) = tag.split_once("}}") else { break };
        out.push_str(before);
        out.push_str("(1)");
        out.extend(std::iter::repeat_n(' ', inside.len() + 1));
        rest = after;
    }
    out.push_str(rest);
    out
}
