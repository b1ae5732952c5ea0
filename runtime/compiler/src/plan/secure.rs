//! The only way to SQL: a plan becomes a [`SecuredPlan`] only here. Statements that build pre-aggregations read all
//! rows (`without_policies`); all others apply the policies of a caller.
//!
//! In: a [`LogicalPlan`] and a caller's [`Access`]. Out: the plan with that caller's policies: row filters on every
//! cube that it reads, masks, and no use of a covered column (`runtime/architecture/security.md`, "Policies in the
//! plan"). To review access control, it is enough to read [`secure`].

use std::collections::HashMap;

use super::build::member_name;
use super::join_path::{JoinTree, NodeId, joins_for};
use super::user_values::{fitted, type_of};
use super::{ArgumentForm, Fact, GroupOperand, GroupPredicate, LogicalPlan, PlannedTarget, rules};
use crate::access::AuthorizedAccess;
use crate::access::{Access, ColumnUse};
use crate::model::{CubeId, DimensionId, Mask, MeasureKind, Model, Snippet, SqlPart, UserPart, UserValue};
use crate::query::{Operand, Predicate, QueryError, TypedRowValue};
use crate::types::{LogicalType, Value};

/// The deepest nesting of row filters that name cubes with row filters of their own. Beyond it, no row is visible.
const MAX_GUARD_DEPTH: usize = 8;

/// A plan that may run for the caller that it was secured for. Only [`secure`] and, for builds, [`without_policies`]
/// create one; `sql::lower` takes nothing else.
#[derive(Debug)]
pub struct SecuredPlan<'m> {
    plan: LogicalPlan<'m>,
    protection: Protection<'m>,
}

/// The rows and values of the model that the caller sees.
#[derive(Debug, Default)]
pub struct Protection<'m> {
    /// The guards of cubes. A cube without one shows all rows.
    rows: HashMap<CubeId, RowGuard<'m>>,
    masks: HashMap<DimensionId, &'m Mask>,
    /// The values of the caller's attributes, converted to the type that they are compared as.
    values: HashMap<(UserValue, LogicalType), Vec<Value>>,
}

/// The conditions that a cube's rows must meet.
#[derive(Debug)]
pub enum RowGuard<'m> {
    /// Conditions that are ANDed, with the joins that they need.
    Filters {
        tree: JoinTree<'m>,
        all: Vec<&'m Snippet>,
        /// Filters of hooks, over dimensions of the cube.
        predicates: Vec<&'m Predicate>,
    },
    /// No row is visible: a policy refers to a value that the caller does not have.
    Never,
}

impl<'m> SecuredPlan<'m> {
    pub fn plan(&self) -> &LogicalPlan<'m> {
        &self.plan
    }

    pub fn protection(&self) -> &Protection<'m> {
        &self.protection
    }

    /// Returns every cube that the statement reads, including those that only row filters of policies read. Each cube
    /// occurs once; an alias counts as its cube.
    pub fn cubes(&self) -> Vec<CubeId> {
        let model = self.plan.model;
        let guarding = self.protection.rows.values().flat_map(|guard| match guard {
            RowGuard::Filters { tree, .. } => tree.cubes().collect(),
            RowGuard::Never => Vec::new(),
        });
        let read = self.plan.cubes().chain(guarding).map(|id| model.cube(id).alias_of.unwrap_or(id));
        let mut cubes: Vec<CubeId> = read.collect();
        cubes.sort_unstable();
        cubes.dedup();
        cubes
    }

    /// Rewrites the plan. The protection is unchanged, so that no rewrite shows more than the policies allow.
    pub(crate) fn rewrite(mut self, rewrite: impl FnOnce(&mut LogicalPlan<'m>, &Protection<'m>)) -> Self {
        rewrite(&mut self.plan, &self.protection);
        self
    }
}

impl<'m> Protection<'m> {
    pub fn rows(&self, cube: CubeId) -> Option<&RowGuard<'m>> {
        self.rows.get(&cube)
    }

    /// Returns the guard of every cube that has one.
    pub(crate) fn guards(&self) -> impl Iterator<Item = (CubeId, &RowGuard<'m>)> {
        self.rows.iter().map(|(cube, guard)| (*cube, guard))
    }

    /// Returns whether each row of a tree's root has a joined row of a node: every join on the path to the node must
    /// find a row. If an earlier left join finds no row, the key of the next join is null. A join to filtered rows may
    /// find no row either.
    pub(crate) fn is_always_joined(&self, tree: &JoinTree<'_>, node: NodeId) -> bool {
        node.checked_sub(1).is_none_or(|index| {
            let planned = &tree.joins[index];
            let never_misses = planned.join.never_misses() && self.rows(planned.join.target).is_none();
            never_misses && self.is_always_joined(tree, planned.from)
        })
    }

    pub fn mask_of(&self, id: DimensionId) -> Option<&'m Mask> {
        self.masks.get(&id).copied()
    }

    /// Returns the caller's values; none if the caller lacks the property that a policy refers to.
    pub fn values(&self, model: &Model, of: &UserPart) -> &[Value] {
        self.values.get(&key_of(model, of)).map_or(&[], Vec::as_slice)
    }

    /// Collects the guards of a cube and of every cube that these guards join.
    fn guard(&mut self, access: &Access<'m>, cube: CubeId, depth: usize) -> Result<(), QueryError> {
        if self.rows.contains_key(&cube) {
            return Ok(());
        }
        let model = access.model();
        let definition = model.cube(cube);
        if access.is_closed(definition) {
            return Err(QueryError::ClosedCube { cube: definition.name.clone(), why: model.why_closed() });
        }
        let filters: Vec<&Snippet> = access.row_filters(cube).collect();
        let predicates: Vec<&Predicate> = access.row_predicates(cube).iter().collect();
        if filters.is_empty() && predicates.is_empty() {
            return Ok(());
        }
        // The guard is inserted before its joins are known, so that the recursion ends if cubes guard each other.
        self.rows.insert(cube, RowGuard::Never);
        let is_complete = filters.iter().all(|sql| self.bind(access, sql));
        if !is_complete || depth > MAX_GUARD_DEPTH {
            return Ok(());
        }
        let mut read = filters.clone();
        for predicate in &predicates {
            predicate.for_each_operand(&mut |operand| {
                if let Operand::Dimension { id, .. } = operand {
                    read.push(&model.dimension(*id).sql);
                }
            });
        }
        let tree = joins_for(model, cube, read.into_iter())?;
        for node in 1..=tree.joins.len() {
            self.guard(access, tree.cube_of(node), depth + 1)?;
        }
        self.rows.insert(cube, RowGuard::Filters { tree, all: filters, predicates });
        Ok(())
    }

    /// Binds the caller's values. Returns false if a value is missing, if its type is not that of the compared
    /// expression, or if a list has several values where one is expected.
    fn bind(&mut self, access: &Access<'m>, sql: &Snippet) -> bool {
        let mut is_complete = true;
        for part in sql.user_parts() {
            let key = key_of(access.model(), part);
            let values = access.values(&part.value).and_then(|values| fitted(values, key.1)).unwrap_or_default();
            is_complete &= !values.is_empty() && (part.is_list || values.len() == 1);
            self.values.insert(key, values);
        }
        is_complete
    }

    /// Adds a mask. If its SQL refers to an attribute that the caller does not have, the mask shows null.
    fn mask(&mut self, access: &Access<'m>, id: DimensionId, mask: &'m Mask) {
        let is_complete = match mask {
            Mask::Sql(sql) => self.bind(access, sql),
            _ => true,
        };
        self.masks.insert(id, if is_complete { mask } else { &Mask::Null });
    }
}

fn key_of(model: &Model, part: &UserPart) -> (UserValue, LogicalType) {
    let ty = part.compared.as_ref().map_or(LogicalType::Unknown, |compared| type_of(model, compared));
    (part.value.clone(), ty)
}

/// Applies a caller's policies and the obligations of hooks.
///
/// # Errors
/// [`QueryError::ClosedCube`], [`QueryError::Masked`], [`QueryError::Covered`]: 403 for this caller.
pub fn secure<'m>(plan: LogicalPlan<'m>, access: &AuthorizedAccess<'m>) -> Result<SecuredPlan<'m>, QueryError> {
    let mut protection = Protection::default();
    for cube in plan.cubes() {
        protection.guard(access, cube, 0)?;
    }
    let check = Check { plan: &plan, access };
    for fact in &plan.facts {
        check.fact(fact)?;
        for id in &fact.groups {
            if let Some(mask) = access.mask(*id) {
                protection.mask(access, *id, mask);
            }
        }
    }
    check.aggregates()?;
    check.order()?;
    plan.group_filters.iter().try_for_each(|filter| check.group_filter(filter))?;
    for order in &plan.order {
        // Rows without groups are ordered by the masks of masked keys. An order by the keys' values would
        // disclose them.
        if let PlannedTarget::Dimension(id) = order.target
            && let Some(mask) = access.mask(id)
        {
            protection.mask(access, id, mask);
        }
    }
    Ok(rules::apply(SecuredPlan { plan, protection }))
}

/// Lets a plan read all rows, for statements whose result no caller sees: those that build the tables of
/// pre-aggregations. A caller's policies apply when these tables are read.
pub(crate) fn without_policies(plan: LogicalPlan<'_>) -> SecuredPlan<'_> {
    SecuredPlan { plan, protection: Protection::default() }
}

/// Checks of the members that the plan reads against the caller's access.
struct Check<'p, 'm> {
    plan: &'p LogicalPlan<'m>,
    access: &'p Access<'m>,
}

impl Check<'_, '_> {
    fn model(&self) -> &Model {
        self.plan.model
    }

    fn covered(&self, id: DimensionId) -> QueryError {
        QueryError::Covered { member: member_name(self.model(), id) }
    }

    fn masked(&self, id: DimensionId) -> QueryError {
        QueryError::Masked { member: member_name(self.model(), id) }
    }

    fn fact(&self, fact: &Fact<'_>) -> Result<(), QueryError> {
        for id in &fact.groups {
            // A masked member may be shown, but another member over the same column may not.
            if self.access.mask(*id).is_none() && self.is_closed(*id) {
                return Err(self.covered(*id));
            }
        }
        fact.row_filters.iter().try_for_each(|filter| self.row_filter(filter))?;
        let inside = fact.semi_joins.iter().flat_map(|semi_join| &semi_join.filters);
        inside.into_iter().try_for_each(|filter| self.row_filter(filter))?;
        for (node, segment) in &fact.segments {
            if self.access.check(segment, ColumnUse::Row).is_err() {
                let cube = self.model().cube(fact.tree.cube_of(*node));
                let name = cube.segments.iter().find(|s| std::ptr::eq(&s.sql, *segment));
                let name = name.map_or("?", |segment| &segment.name);
                return Err(QueryError::Covered { member: format!("{}.{name}", cube.name).into() });
            }
        }
        Ok(())
    }

    fn is_closed(&self, id: DimensionId) -> bool {
        self.access.check(&self.model().dimension(id).sql, ColumnUse::Row).is_err()
    }

    fn row_filter(&self, filter: &Predicate) -> Result<(), QueryError> {
        let mut outcome = Ok(());
        filter.for_each_read(&mut |operand| {
            if let Operand::Dimension { id, .. } = *operand
                && let Err(error) = self.raw_value(id)
            {
                outcome = Err(error);
            }
        });
        outcome
    }

    /// Refuses a value of a row that reads the values behind a mask.
    fn row_value(&self, value: &TypedRowValue) -> Result<(), QueryError> {
        let mut outcome = Ok(());
        value.for_each_dimension(&mut |id, _| {
            if let Err(error) = self.raw_value(id) {
                outcome = Err(error);
            }
        });
        outcome
    }

    /// Refuses the value of a dimension that the caller may see only masked, or not at all.
    fn raw_value(&self, id: DimensionId) -> Result<(), QueryError> {
        match self.access.mask(id) {
            Some(_) => Err(self.masked(id)),
            None if self.is_closed(id) => Err(self.covered(id)),
            None => Ok(()),
        }
    }

    fn aggregates(&self) -> Result<(), QueryError> {
        for planned in &self.plan.aggregates {
            let aggregate = planned.aggregate;
            let mut snippets = aggregate.argument.iter().chain(&aggregate.filters);
            let cube = self.plan.facts[planned.fact].tree.cube;
            // A mask may allow measures to aggregate its column. A statistic, such as the smallest value, can show the
            // value of a row, so it counts as a use of rows.
            let column_use = if planned.shape == ArgumentForm::Measure { ColumnUse::Aggregate } else { ColumnUse::Row };
            if snippets.any(|snippet| self.access.check(snippet, column_use).is_err()) {
                return Err(QueryError::Covered { member: self.measure_of(cube, planned.aggregate) });
            }
            match &planned.shape {
                ArgumentForm::Where(filter) => self.row_filter(filter)?,
                ArgumentForm::Row(value) => self.row_value(value)?,
                _ => {}
            }
            for metric in &planned.metrics {
                let filters = self.plan.metric_filters.iter().filter(|(id, _)| id == metric);
                // The filter may read a member whose existence the caller must not learn, so the error names the
                // metric.
                if filters.flat_map(|(_, all)| all).any(|filter| self.row_filter(filter).is_err()) {
                    return Err(QueryError::Covered { member: self.model().metric(*metric).name.clone() });
                }
            }
        }
        Ok(())
    }

    fn measure_of(&self, cube: CubeId, aggregate: &crate::model::Aggregate) -> std::sync::Arc<str> {
        let cube = self.model().cube(cube);
        let is_it = |kind: &MeasureKind| match kind {
            MeasureKind::Aggregate(own)
            | MeasureKind::RunningTotal { aggregate: own, .. }
            | MeasureKind::Rolling { aggregate: own, .. } => std::ptr::eq(own, aggregate),
            MeasureKind::Number(sql) => {
                let mut holds_it = false;
                sql.for_each(&mut |part| {
                    holds_it |= matches!(part, SqlPart::Aggregate(own) if std::ptr::eq(&**own, aggregate));
                });
                holds_it
            }
        };
        let measure = cube.measures.iter().find(|measure| is_it(&measure.kind));
        match measure {
            Some(measure) => format!("{}.{}", cube.name, measure.name).into(),
            None => cube.name.clone(),
        }
    }

    /// Refuses an order by a masked member, which would rank the hidden values.
    fn order(&self) -> Result<(), QueryError> {
        for order in self.plan.order.iter().filter(|order| order.is_explicit) {
            if let PlannedTarget::Group(index) = order.target {
                self.group(index)?;
            }
        }
        Ok(())
    }

    fn group(&self, index: usize) -> Result<(), QueryError> {
        let masked = self.plan.facts.iter().map(|fact| fact.groups[index]).find(|id| self.access.mask(*id).is_some());
        masked.map_or(Ok(()), |id| Err(self.masked(id)))
    }

    fn group_filter(&self, filter: &GroupPredicate<'_>) -> Result<(), QueryError> {
        match filter {
            GroupPredicate::Not(inner) => self.group_filter(inner),
            GroupPredicate::And(all) | GroupPredicate::Or(all) => all.iter().try_for_each(|f| self.group_filter(f)),
            GroupPredicate::Test { operand: GroupOperand::Group(index), .. } => self.group(*index),
            GroupPredicate::Test { .. } => Ok(()),
        }
    }
}
