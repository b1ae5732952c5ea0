//! Builds policies from their definitions.
//!
//! In: policy definitions and a finished model. Out: the model's [`Policy`]s and their diagnostics. A policy that
//! refers to something unknown is an error, and closes the cubes that it might have meant; it is never ignored.

use std::cell::Cell;
use std::sync::Arc;

use sqlparser::dialect::Dialect;

use super::policy::{CubePolicy, Mask, Policy};
use super::read::read;
use super::scope::{NameScope, Place};
use super::tables::Readers;
use super::transfer::{is_plain, transfer};
use super::unread::Unread;
use super::{Cube, CubeId, Member, Model, Snippet, invalid_value};
use crate::diagnostic::{Code, Diagnostic};
use crate::project::{Definitions, MaskDefinition, PolicyDefinition, SqlText, Text};
use crate::snippet::grammar::Problem;
use crate::text::nearest::suggest;

/// Reads every policy for every cube that it applies to, and closes cubes that cannot be protected.
pub(super) fn add(
    model: &mut Model,
    definitions: &Definitions,
    unread: &Unread,
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
        let reading = PolicyReader { model, policy, unread, dialect, readers: &readers, is_broken };
        let before = diagnostics.len();
        let cubes = reading.cubes(diagnostics);
        if diagnostics[before..].iter().any(Diagnostic::is_error) || reading.is_broken.get() {
            // It is unknown what the policy would have hidden, so the cubes to which it may apply are closed.
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
            cube.is_guarded = is_guarded;
        }
    }
}

/// Warns of cubes in the project's files that a policy closes without naming them, or because the tables that they read
/// are unknown. The author of such a cube may not know that it is closed.
pub(super) fn warn_of_closed_cubes(model: &Model, definitions: &Definitions, diagnostics: &mut Vec<Diagnostic>) {
    let mut is_reported = vec![false; model.cubes.len()];
    for (policy, definition) in model.policies.iter().zip(&definitions.policies) {
        let mut closed: Vec<CubeId> =
            policy.cubes.iter().filter(|effect| effect.is_closed).map(|effect| effect.cube).collect();
        closed.sort_unstable();
        closed.dedup();
        for cube in closed.into_iter().map(|id| model.cube(id)) {
            if cube.alias_of.is_some() || cube.is_guarded || cube.is_registered() {
                continue;
            }
            let (policy, name) = (&policy.name, &cube.name);
            let diagnostic = if model.tables[cube.id.0 as usize].may_read_anything() {
                if std::mem::replace(&mut is_reported[cube.id.0 as usize], true) {
                    continue;
                }
                let message = format!("policy `{policy}` closes cube `{name}`, whose tables cannot be determined");
                let hint = format!(
                    "Write the names of tables and files in the SQL of `{name}` as literals, or name the cube in the \
                     policy's `cubes`."
                );
                Diagnostic::warning(Code::UnresolvedTables, message).hint(hint)
            } else {
                let (scope, hint) = match &definition.cubes {
                    None => {
                        (" for all cubes", format!("Name the cubes in the policy's `cubes`, with `{name}` among them."))
                    }
                    Some(cubes) if cubes.iter().any(|named| named.value == *name) => continue,
                    Some(_) => ("", format!("Name `{name}` in the policy's `cubes`, or write a policy for it.")),
                };
                let message = format!(
                    "policy `{policy}`{scope} closes cube `{name}`, which reads a table that the policy protects"
                );
                Diagnostic::warning(Code::ClosedCube, message).hint(hint)
            };
            diagnostics.push(match &cube.span {
                Some(span) => diagnostic.at(span.clone()),
                None => diagnostic,
            });
        }
    }
}

/// Warns of a policy on a joined cube that leaves the rows of the joining cube open: orders of a hidden customer stay
/// visible unless a policy on orders hides them.
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
                "To hide rows of `{cube}` that belong to hidden rows of `{target}` too, add a policy for `{cube}` whose `row_filter` \
                 refers to `{{{target}}}`.",
                cube = cube.name
            );
            let diagnostic = Diagnostic::warning(Code::OpenFact, message).hint(hint);
            diagnostics.push(match &join.span {
                Some(span) => diagnostic.at(span.clone()),
                None => diagnostic,
            });
        }
    }
}

struct PolicyReader<'m> {
    model: &'m Model,
    policy: &'m PolicyDefinition,
    unread: &'m Unread,
    dialect: &'m dyn Dialect,
    readers: &'m Readers<'m>,
    /// True if the policy depends on a definition that could not be read. The problem is reported at that definition.
    is_broken: Cell<bool>,
}

impl PolicyReader<'_> {
    /// Returns the effects on the cubes that the policy names, their aliases, and other cubes that read the same
    /// tables.
    ///
    /// For masks and denied members, `"*"` stands for the cubes that have one of them, and acts like one policy for
    /// each of these cubes. For row filters it stands for every cube. Under `"*"`, a registered cube is subject to its
    /// own effect and to the effects of each cube of the files whose table it reads.
    fn cubes(&self, diagnostics: &mut Vec<Diagnostic>) -> Vec<CubePolicy> {
        let named = self.named(diagnostics);
        let is_all = self.policy.cubes.is_none();
        if named.is_empty() && !is_all {
            diagnostics.extend(self.mistakes_of_any_cube());
        }
        let mut reached: Vec<CubePolicy> = Vec::new();
        let mut is_named = vec![false; self.model.cubes.len()];
        for cube in &named {
            self.check_members(cube, diagnostics);
            let effect = if is_all && cube.is_registered() {
                self.effect(cube, cube, None)
            } else {
                CubePolicy { is_closed: !self.means_itself(cube), ..self.effect(cube, cube, Some(diagnostics)) }
            };
            reached.push(effect);
            is_named[cube.id.0 as usize] = true;
        }
        // The aliases of the named cubes come first, because other cubes over the same rows may be closed.
        for alias in &self.model.cubes {
            let Some(original) = alias.alias_of.filter(|original| is_named[original.0 as usize]) else { continue };
            is_named[alias.id.0 as usize] = true;
            reached.push(self.effect(alias, self.model.cube(original), None));
        }
        for origin in named.iter().filter(|origin| !is_all || !origin.is_registered()) {
            let mut readers: Vec<CubeId> = self.readers.of_rows(origin.id).collect();
            readers.sort_unstable();
            readers.dedup();
            for reader in readers.into_iter().map(|id| self.model.cube(id)) {
                if reader.alias_of.unwrap_or(reader.id) == origin.id {
                    continue;
                }
                let effect = match is_all {
                    true => self.effect_under_all(reader, origin),
                    false if is_named[reader.id.0 as usize] && !reader.is_registered() => None,
                    false => Some(self.effect(reader, origin, None)),
                };
                reached.extend(effect.filter(|effect| !reached.contains(effect)));
            }
        }
        reached
    }

    /// Returns the effect that a policy for all cubes (`"*"`) has on `reader` because it applies to `origin`; `None` if
    /// it has no effect.
    fn effect_under_all(&self, reader: &Cube, origin: &Cube) -> Option<CubePolicy> {
        let is_of_writer = self.model.cube(reader.alias_of.unwrap_or(reader.id)).is_registered();
        let masked = self.policy.masks.iter().map(|(member, _)| member);
        let has_members = masked.chain(&self.policy.deny).any(|member| origin.member(&member.value).is_some());
        let is_filtered = is_of_writer && self.policy.row_filter.is_some();
        if !has_members && !is_filtered {
            return None;
        }
        let effect = self.effect(reader, origin, None);
        if is_of_writer {
            return Some(effect);
        }
        // A policy for `"*"` names `reader` too, and the effect on `reader` as a named cube already filters its rows.
        // Columns that the policy covers in `origin` are covered in every cube over the same rows. So `reader` is
        // closed only if it has other rows or columns than `origin`.
        let is_closed =
            !self.model.has_rows_of(reader.id, origin.id) || !self.model.has_columns_of(reader.id, origin.id);
        is_closed.then_some(CubePolicy { is_closed, row_filter: None, ..effect })
    }

    /// Returns whether the policy can be applied to a cube that it names. A registered cube may define members that
    /// change the meaning of the policy's SQL.
    fn means_itself(&self, cube: &Cube) -> bool {
        !cube.is_registered() || !self.effect(cube, cube, None).is_closed
    }

    fn named(&self, diagnostics: &mut Vec<Diagnostic>) -> Vec<&Cube> {
        let policy = &self.policy.name.value;
        let Some(names) = &self.policy.cubes else {
            return self.model.cubes.iter().filter(|cube| cube.alias_of.is_none()).collect();
        };
        let mut cubes = Vec::new();
        for name in names {
            match self.model.cube_named(&name.value) {
                // It is unknown what the policy would have hidden, and which other cubes read its table. The cause was
                // reported.
                None if self.unread.contains(&name.value) => self.is_broken.set(true),
                None => {
                    let known = self.model.cubes.iter().filter(|cube| cube.alias_of.is_none()).map(|cube| &*cube.name);
                    let message = format!("policy `{policy}` refers to unknown cube `{}`", name.value);
                    let hint = suggest(&name.value, "cubes", known);
                    diagnostics.push(Diagnostic::error(Code::UnknownCube, message).hint(hint).at(name.span()));
                }
                Some(Cube { alias_of: Some(original), .. }) => {
                    let message = format!("policy `{policy}` names `{}`, which is the name of a join", name.value);
                    let original = &self.model.cube(*original).name;
                    let hint = format!("Name the cube `{original}`. Its policies apply to its aliases too.");
                    diagnostics.push(Diagnostic::error(Code::AliasPolicy, message).hint(hint).at(name.span()));
                }
                Some(cube) => cubes.push(cube),
            }
        }
        cubes
    }

    /// Returns the mistakes of the row filter that do not depend on the cube, for a policy whose cubes are unknown.
    fn mistakes_of_any_cube(&self) -> Vec<Diagnostic> {
        let Some(sql) = &self.policy.row_filter else { return Vec::new() };
        let (unread, place) = (self.unread, Place::Policy);
        let scope = NameScope { model: self.model, cube: None, declared_in: "", place, unread };
        let found = read(sql, scope, self.dialect).err().unwrap_or_default();
        let is_certain = |problem: &Problem| {
            use Code::{SqlSyntax, UnclosedBrace, UnknownReference, UserValueInQuotes};
            matches!(problem.code, SqlSyntax | UnclosedBrace | UnknownReference | UserValueInQuotes)
        };
        found.into_iter().filter(is_certain).map(|problem| problem.in_text(sql)).collect()
    }

    /// Checks the members that a policy names. A policy for all cubes needs only one cube with a member of that name.
    fn check_members(&self, cube: &Cube, diagnostics: &mut Vec<Diagnostic>) {
        let named: Vec<&Text> = self.policy.masks.iter().map(|(member, _)| member).chain(&self.policy.deny).collect();
        for member in named {
            let is_known = match self.policy.cubes {
                Some(_) => cube.member(&member.value).is_some(),
                None => self.model.cubes.iter().any(|cube| cube.member(&member.value).is_some()),
            };
            if !is_known && self.unread.may_be_member(cube, &member.value) {
                // Other members may show the column of the unread member. Which members do so is unknown.
                self.is_broken.set(true);
            } else if !is_known {
                let known = cube.members.keys().map(|name| &**name);
                let policy = &self.policy.name.value;
                let message = format!("policy `{policy}`: cube `{}` has no member `{}`", cube.name, member.value);
                let hint = suggest(&member.value, "members", known);
                diagnostics.push(Diagnostic::error(Code::UnknownMember, message).hint(hint).at(member.span()));
            }
        }
        for (member, _) in &self.policy.masks {
            if let Some(Member::Measure(_) | Member::Segment(_)) = cube.member(&member.value) {
                let kind =
                    if matches!(cube.member(&member.value), Some(Member::Measure(_))) { "measure" } else { "segment" };
                let message = format!("`{}.{}` is a {kind}; only dimensions can be masked", cube.name, member.value);
                let hint = "Mask the dimension that reads its column, or deny the member.";
                diagnostics.push(Diagnostic::error(Code::MisplacedMember, message).hint(hint).at(member.span()));
            }
        }
    }

    /// Reports the constants of masks that do not fit the types of the masked dimensions, each constant once.
    fn constants(&self) -> Vec<Diagnostic> {
        let named = self.named(&mut Vec::new());
        let masks = self.policy.masks.iter().filter_map(|(member, mask)| match mask {
            MaskDefinition::Constant(constant) => Some((member, constant)),
            _ => None,
        });
        let invalid_value = |member: &Text, constant| {
            named.iter().find_map(|cube| match cube.member(&member.value) {
                Some(Member::Dimension(id)) => {
                    invalid_value::of_mask(constant, cube, &cube.dimensions[id.index as usize])
                }
                _ => None,
            })
        };
        masks.filter_map(|(member, constant)| invalid_value(member, constant)).collect()
    }

    /// Returns the effect on `cube` of the policy, which is declared for `origin`.
    fn effect(&self, cube: &Cube, origin: &Cube, diagnostics: Option<&mut Vec<Diagnostic>>) -> CubePolicy {
        let mut problems = Vec::new();
        let mut is_unread = false;
        let is_own = cube.id == origin.id || cube.alias_of == Some(origin.id);
        let is_of_writer = self.model.cube(cube.alias_of.unwrap_or(cube.id)).is_registered();
        let mut is_misread = false;
        let row_filter = self.policy.row_filter.as_ref().and_then(|sql| {
            // In another cube's effect, the row filter refers to the columns and members of `origin`, for which it
            // was written.
            let scope = if is_own { cube.id } else { origin.id };
            let snippet = self.snippet(sql, scope, origin, &mut problems, &mut is_unread)?;
            let snippet = match is_own {
                true => Some(snippet).filter(|snippet| !is_of_writer || is_plain(self.model, snippet)),
                false => transfer(self.model, &snippet, origin.id, cube.id, !is_of_writer),
            };
            is_misread |= snippet.is_none();
            snippet
        });
        let mut masks = Vec::new();
        for (member, mask) in self.policy.masks.iter().filter(|_| is_own) {
            let Some(Member::Dimension(id)) = cube.member(&member.value) else { continue };
            let mask = match mask {
                MaskDefinition::Null => Mask::Null,
                MaskDefinition::Hash => Mask::Hash,
                MaskDefinition::Partial => Mask::Partial,
                // Engines refuse to group a constant of a different type, for example a string as a time.
                MaskDefinition::Constant(constant)
                    if invalid_value::of_mask(constant, cube, &cube.dimensions[id.index as usize]).is_some() =>
                {
                    Mask::Null
                }
                MaskDefinition::Constant(constant) => Mask::Constant(constant.value.clone()),
                MaskDefinition::Sql(sql) => match self.snippet(sql, cube.id, origin, &mut problems, &mut is_unread) {
                    Some(snippet) if !is_of_writer || is_plain(self.model, &snippet) => Mask::Sql(snippet),
                    _ => Mask::Null,
                },
            };
            masks.push((id, mask));
        }
        let denied = self.policy.deny.iter().filter(|_| is_own).filter_map(|member| cube.member(&member.value));
        let denied = denied.collect();
        // Another relation over the same table can be filtered only if its rows are rows of the table.
        let is_same_rows = is_own || self.model.has_rows_of(cube.id, origin.id);
        // A column that a query computes cannot be matched with the columns of its table.
        let hides_columns = !self.policy.masks.is_empty() || !self.policy.deny.is_empty();
        let is_uncovered = hides_columns && !is_own && !self.model.has_columns_of(cube.id, origin.id);
        let is_closed = !problems.is_empty() || is_unread || is_misread || !is_same_rows || is_uncovered;
        if let Some(diagnostics) = diagnostics {
            self.is_broken.set(self.is_broken.get() || is_unread || !problems.is_empty());
            // A mistake that occurs in several cubes of the policy is reported once.
            let is_same = |one: &Diagnostic, other: &Diagnostic| one.code == other.code && one.span == other.span;
            problems.into_iter().for_each(|problem| {
                if !diagnostics.iter().any(|other| is_same(other, &problem)) {
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
        let scope = NameScope {
            model: self.model,
            cube: Some(cube),
            declared_in: &origin.name,
            place: Place::Policy,
            unread: self.unread,
        };
        match read(sql, scope, self.dialect) {
            Ok(snippet) => Some(snippet),
            Err(found) => {
                let is_silent = found.is_empty();
                problems.extend(found.into_iter().map(|problem| problem.in_text(sql)));
                // The broken item that the SQL refers to has been reported. The SQL counts as unread, so that the
                // cube is closed.
                *is_unread |= is_silent;
                None
            }
        }
    }
}
