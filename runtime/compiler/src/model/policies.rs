//! Policy definitions to policies.
//!
//! In: policy definitions and a finished model. Out: the model's [`Policy`]s, and what is wrong with
//! them. A policy that names something unknown is an error, never a policy that does nothing: the cubes
//! that it might have meant are closed.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

use sqlparser::dialect::Dialect;

use super::kept::Notes;
use super::nearest::suggest;
use super::policy::{CubePolicy, Mask, Policy};
use super::read::read;
use super::scope::{Place, Scope};
use super::tables::Readers;
use super::{Cube, CubeId, Member, Model, Snippet, misfit};
use crate::diagnostic::Diagnostic;
use crate::project::{Definitions, MaskDefinition, PolicyDefinition, SqlText, Text};

/// Reads every policy for every cube that it reaches, and closes what can't be protected.
pub(super) fn add(
    model: &mut Model,
    definitions: &Definitions,
    unread: &BTreeSet<Arc<str>>,
    dialect: &dyn Dialect,
    diagnostics: &mut Vec<Diagnostic>,
) {
    let mut closed = vec![definitions.has_broken_policies; model.cubes.len()];
    if definitions.policies.is_empty() && !definitions.has_broken_policies {
        return;
    }
    let readers = Readers::of(&model.tables);
    let mut policies = Vec::with_capacity(definitions.policies.len());
    for policy in &definitions.policies {
        let is_broken = Cell::new(false);
        let reading = Reading { model, policy, unread, dialect, readers: &readers, is_broken };
        let before = diagnostics.len();
        let cubes = reading.cubes(diagnostics);
        if diagnostics.len() > before || reading.is_broken.get() {
            // Nobody knows what it would have hidden.
            match &policy.cubes {
                Some(names) if names.iter().all(|name| model.cube_named(&name.value).is_some()) => {
                    cubes.iter().for_each(|cube| closed[cube.cube.0 as usize] = true);
                }
                _ => closed.fill(true),
            }
        }
        diagnostics.extend(reading.constants());
        policies.push(Policy {
            name: Arc::clone(&policy.name.value),
            when: policy.when.clone(),
            cubes,
            row_filter_span: policy.row_filter.as_ref().map(|sql| sql.origin.span()),
            mask_spans: policy.masks.iter().map(|(name, _)| (Arc::clone(&name.value), name.span())).collect(),
        });
    }
    model.policies = policies;
    for cube in &mut model.cubes {
        let original = cube.alias_of.unwrap_or(cube.id);
        let is_guarded = closed[cube.id.0 as usize] || closed[original.0 as usize];
        if cube.is_guarded != is_guarded {
            Arc::make_mut(cube).is_guarded = is_guarded;
        }
    }
}

/// A hidden customer's orders stay, unless a policy on orders says otherwise (semantics, rule 20).
pub(super) fn warn_of_open_facts(model: &Model, diagnostics: &mut Vec<Diagnostic>) {
    let mut filters: Vec<Option<&Policy>> = vec![None; model.cubes.len()];
    for policy in model.policies.iter().rev() {
        for effect in policy.cubes.iter().filter(|effect| effect.row_filter.is_some() || effect.is_closed) {
            filters[effect.cube.0 as usize] = Some(policy);
        }
    }
    let filter_of = |id: CubeId| filters[id.0 as usize];
    for cube in model.cubes.iter().filter(|cube| cube.alias_of.is_none() && !cube.is_guarded) {
        if filter_of(cube.id).is_some() {
            continue;
        }
        for join in cube.joins.iter().filter(|join| join.relationship.is_to_one()) {
            let Some(policy) = filter_of(join.target) else { continue };
            let target = &model.cube(join.target).name;
            let message = format!(
                "`{}` joins `{target}`, which policy `{}` filters, and has no row filter of its own",
                cube.name, policy.name
            );
            let hint = format!(
                "rows of `{cube}` that belong to hidden rows of `{target}` still count; \
                 to hide them too, add a policy for `{cube}` whose `row_filter` speaks of {{{target}}}",
                cube = cube.name
            );
            let diagnostic = Diagnostic::warning("open-fact", message).hint(hint);
            diagnostics.push(match &join.span {
                Some(span) => diagnostic.at(span.clone()),
                None => diagnostic,
            });
        }
    }
}

struct Reading<'m> {
    model: &'m Model,
    policy: &'m PolicyDefinition,
    unread: &'m BTreeSet<Arc<str>>,
    dialect: &'m dyn Dialect,
    readers: &'m Readers<'m>,
    /// It stands on something that could not be read, and was told there.
    is_broken: Cell<bool>,
}

impl Reading<'_> {
    /// The cubes that the policy names, their aliases, and what else reads the same tables.
    fn cubes(&self, diagnostics: &mut Vec<Diagnostic>) -> Vec<CubePolicy> {
        let named = self.named(diagnostics);
        let mut reached: Vec<CubePolicy> = Vec::new();
        let mut is_reached = vec![false; self.model.cubes.len()];
        for cube in &named {
            self.check_members(cube, diagnostics);
            let mut effect = self.effect(cube, cube, Some(diagnostics));
            effect.is_closed = false;
            reached.push(effect);
            is_reached[cube.id.0 as usize] = true;
        }
        // A cube's own names before others: whoever else has its rows may be closed for it.
        for alias in &self.model.cubes {
            let Some(original) = alias.alias_of.filter(|original| is_reached[original.0 as usize]) else { continue };
            is_reached[alias.id.0 as usize] = true;
            reached.push(self.effect(alias, self.model.cube(original), None));
        }
        for origin in named {
            let mut also: Vec<CubeId> = self.readers.of_rows(origin.id).collect();
            also.sort_unstable();
            for id in also {
                if !std::mem::replace(&mut is_reached[id.0 as usize], true) {
                    reached.push(self.effect(self.model.cube(id), origin, None));
                }
            }
        }
        reached
    }

    fn named(&self, diagnostics: &mut Vec<Diagnostic>) -> Vec<&Cube> {
        let policy = &self.policy.name.value;
        let Some(names) = &self.policy.cubes else {
            return self.model.cubes.iter().map(|cube| &**cube).filter(|cube| cube.alias_of.is_none()).collect();
        };
        let mut cubes = Vec::new();
        for name in names {
            match self.model.cube_named(&name.value) {
                // What it would have hidden is not known, nor which other cubes read its table; it was told why.
                None if self.unread.contains(&name.value) => self.is_broken.set(true),
                None => {
                    let known = self.model.cubes.iter().filter(|cube| cube.alias_of.is_none()).map(|cube| &*cube.name);
                    let message = format!("policy `{policy}` names a cube `{}` that doesn't exist", name.value);
                    let hint = suggest(&name.value, "cubes", known);
                    diagnostics.push(Diagnostic::error("unknown-cube", message).hint(hint).at(name.span()));
                }
                Some(Cube { alias_of: Some(original), .. }) => {
                    let message = format!("policy `{policy}` names `{}`, which is only a join's name", name.value);
                    let original = &self.model.cube(*original).name;
                    let hint = format!("name the cube `{original}`; its aliases obey the same policies");
                    diagnostics.push(Diagnostic::error("alias-policy", message).hint(hint).at(name.span()));
                }
                Some(cube) => cubes.push(cube),
            }
        }
        cubes
    }

    /// A policy for all cubes hides a member wherever there is one of that name.
    fn check_members(&self, cube: &Cube, diagnostics: &mut Vec<Diagnostic>) {
        let named: Vec<&Text> = self.policy.masks.iter().map(|(member, _)| member).chain(&self.policy.deny).collect();
        for member in named {
            let is_known = match self.policy.cubes {
                Some(_) => cube.member(&member.value).is_some(),
                None => self.model.cubes.iter().any(|cube| cube.member(&member.value).is_some()),
            };
            if !is_known && self.unread.contains(&member.value) {
                // Its column may stand under other names, which nobody can tell now.
                self.is_broken.set(true);
            } else if !is_known {
                let known = cube.members.keys().map(|name| &**name);
                let policy = &self.policy.name.value;
                let message = format!("policy `{policy}`: cube `{}` has no member `{}`", cube.name, member.value);
                let hint = suggest(&member.value, "members", known);
                diagnostics.push(Diagnostic::error("unknown-member", message).hint(hint).at(member.span()));
            }
        }
        for (member, _) in &self.policy.masks {
            if let Some(Member::Measure(_) | Member::Segment(_)) = cube.member(&member.value) {
                let kind =
                    if matches!(cube.member(&member.value), Some(Member::Measure(_))) { "measure" } else { "segment" };
                let message = format!("`{}.{}` is a {kind}, and only dimensions are masked", cube.name, member.value);
                let hint = "mask the dimension over its column, or deny the member";
                diagnostics.push(Diagnostic::error("misplaced-member", message).hint(hint).at(member.span()));
            }
        }
    }

    /// Each constant that one of its dimensions can't have, told once.
    fn constants(&self) -> Vec<Diagnostic> {
        let named = self.named(&mut Vec::new());
        let masks = self.policy.masks.iter().filter_map(|(member, mask)| match mask {
            MaskDefinition::Constant(constant) => Some((member, constant)),
            _ => None,
        });
        let misfit = |member: &Text, constant| {
            named.iter().find_map(|cube| match cube.member(&member.value) {
                Some(Member::Dimension(id)) => misfit::of_mask(constant, cube, &cube.dimensions[id.index as usize]),
                _ => None,
            })
        };
        masks.filter_map(|(member, constant)| misfit(member, constant)).collect()
    }

    /// What the policy, written for `origin`, does to `cube`.
    fn effect(&self, cube: &Cube, origin: &Cube, diagnostics: Option<&mut Vec<Diagnostic>>) -> CubePolicy {
        let mut problems = Vec::new();
        let mut is_unread = false;
        let is_own = cube.id == origin.id || cube.alias_of == Some(origin.id);
        let row_filter = self.policy.row_filter.as_ref();
        let row_filter = row_filter.and_then(|sql| self.snippet(sql, cube.id, origin, &mut problems, &mut is_unread));
        let mut masks = Vec::new();
        for (member, mask) in self.policy.masks.iter().filter(|_| is_own) {
            let Some(Member::Dimension(id)) = cube.member(&member.value) else { continue };
            let mask = match mask {
                MaskDefinition::Null => Mask::Null,
                MaskDefinition::Hash => Mask::Hash,
                MaskDefinition::Partial => Mask::Partial,
                MaskDefinition::Constant(constant) => Mask::Constant(constant.value.clone()),
                MaskDefinition::Sql(sql) => match self.snippet(sql, cube.id, origin, &mut problems, &mut is_unread) {
                    Some(snippet) => Mask::Sql(snippet),
                    None => Mask::Null,
                },
            };
            masks.push((id, mask));
        }
        let denied = self.policy.deny.iter().filter(|_| is_own).filter_map(|member| cube.member(&member.value));
        let denied = denied.collect();
        // Rows of another relation over the same table can be filtered only if they are that table's own.
        let tables = &self.model.tables;
        let is_same_rows = is_own || tables[cube.id.0 as usize].are_rows_of(&tables[origin.id.0 as usize]);
        let is_closed = !problems.is_empty() || is_unread || !is_same_rows;
        if let Some(diagnostics) = diagnostics {
            self.is_broken.set(self.is_broken.get() || is_unread || !problems.is_empty());
            problems.into_iter().for_each(|problem| {
                if !diagnostics.contains(&problem) {
                    diagnostics.push(problem);
                }
            });
        }
        let allow_aggregate = self.policy.allow_aggregate;
        CubePolicy { cube: cube.id, is_closed, row_filter, masks, denied, allow_aggregate }
    }

    fn snippet(
        &self,
        sql: &SqlText,
        cube: CubeId,
        origin: &Cube,
        problems: &mut Vec<Diagnostic>,
        is_unread: &mut bool,
    ) -> Option<Snippet> {
        let scope = Scope {
            model: self.model,
            cube: Some(cube),
            written_in: &origin.name,
            place: Place::Policy,
            unread: self.unread,
            notes: &Notes::default(),
        };
        match read(sql, scope, self.dialect) {
            Ok(snippet) => Some(snippet),
            Err(found) => {
                let is_silent = found.is_empty();
                problems.extend(found.into_iter().map(|problem| problem.in_text(sql)));
                // What it refers to has been reported, and still it must not count as read.
                *is_unread |= is_silent;
                None
            }
        }
    }
}
