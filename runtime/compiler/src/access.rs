//! The part of a model that its policies leave visible to one caller.
//!
//! In: a model and a [`SecurityContext`]. Out: an [`Access`]: the members that exist for the caller, the columns that
//! are masked, and the rows that are hidden. `resolve` resolves names against an [`Access`], and `plan::secure` applies
//! its restrictions. Not here: SQL.

mod authorized;
mod columns;
mod obligations;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub use authorized::{Authorized, AuthorizedAccess};
pub(crate) use obligations::MergedObligations;

use columns::{Column, columns_of, for_each_column, has_query, rows_of};

use crate::model::{
    Aggregate, Cube, CubeId, CubePolicy, DimensionId, Mask, MeasureId, MeasureKind, Member, MetricId, Model, Policy,
    Rollup, Snippet, SqlPart, UserValue,
};
use crate::project::{MissingAttribute, PolicyCondition};
use crate::query::Predicate;
use crate::security::{Attribute, SecurityContext, attribute_value};
use crate::types::Value;

/// The use of a column's values in a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnUse {
    /// The value of each row.
    Row,
    /// The argument or filter of a measure.
    Aggregate,
}

/// A part of what a measure or a metric is computed from.
enum Within<'s> {
    Measure(MeasureId),
    Aggregate(&'s Aggregate),
    /// The `cube.member` of a metric's filter, which may have a granularity.
    Filter(&'s str),
}

/// One caller's view of a model.
#[derive(Debug)]
pub struct Access<'a> {
    model: &'a Model,
    caller: &'a SecurityContext,
    effects: Vec<&'a CubePolicy>,
    policies: Vec<&'a Policy>,
    /// The hooks' obligations, if hooks were called.
    obligations: Option<&'a MergedObligations>,
    denied: HashSet<Member>,
    /// The columns behind masked and denied members. The value is true if measures may still read the column.
    covered: HashMap<Column, bool>,
    /// The columns behind denied dimensions. A metric that reads one of them does not exist for the caller.
    denied_columns: HashSet<Column>,
    /// The columns behind denied measures, except columns that a dimension shows to the caller unchanged. Cubes of the
    /// project's files may compute other measures from these columns. Registered cubes, which callers define, may not
    /// read them.
    behind_measures: HashSet<Column>,
}

/// The reason why a caller may not use a snippet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// The snippet reads a column behind a masked or denied member.
    Covered,
    /// The snippet contains a subquery, to which no policy can be applied.
    Subquery,
}

impl<'a> Access<'a> {
    /// Applies only the project's own policies. Use this function to show metadata; SQL is compiled with an
    /// [`Authorized`](crate::Authorized).
    pub fn of(model: &'a Model, caller: &'a SecurityContext) -> Self {
        let applying: Vec<_> = model.policies.iter().filter(|policy| applies(policy.when.as_ref(), caller)).collect();
        let mut access = Access {
            model,
            caller,
            effects: applying.iter().flat_map(|policy| &policy.cubes).collect(),
            policies: applying,
            obligations: None,
            denied: HashSet::new(),
            covered: HashMap::new(),
            denied_columns: HashSet::new(),
            behind_measures: HashSet::new(),
        };
        for effect in access.effects.clone() {
            effect.denied.iter().for_each(|member| access.deny(*member));
            effect.masks.iter().for_each(|(id, _)| access.cover(*id, effect.allow_aggregate));
        }
        access.cover_measures();
        access
    }

    /// Applies the project's own policies and the obligations of hooks.
    pub(crate) fn with_obligations(
        model: &'a Model,
        caller: &'a SecurityContext,
        obligations: &'a MergedObligations,
    ) -> Self {
        let mut access = Access { obligations: Some(obligations), ..Access::of(model, caller) };
        obligations.denied.iter().for_each(|member| access.deny(*member));
        obligations.masks.keys().for_each(|id| access.cover(*id, false));
        access.cover_measures();
        access
    }

    /// Returns whether no policy and no hook restricts the caller.
    pub fn is_open(&self) -> bool {
        self.effects.is_empty() && !self.obligations.is_some_and(MergedObligations::hides_something)
    }

    /// Returns whether policies and hooks hide nothing from the caller, and no cube is closed to all callers.
    pub fn sees_everything(&self) -> bool {
        self.is_open() && !self.model.cubes.iter().any(|cube| cube.is_guarded)
    }

    fn deny(&mut self, member: Member) {
        self.denied.insert(member);
        if let Member::Dimension(id) = member {
            let mut columns = Vec::new();
            columns_of(self.model, &self.model.dimension(id).sql, &mut columns);
            self.denied_columns.extend(columns);
            self.cover(id, false);
        }
    }

    /// Records that the columns of a masked or denied dimension are hidden, and whether measures may still aggregate
    /// them. If one rule allows aggregates and another does not, aggregates are not allowed.
    fn cover(&mut self, id: DimensionId, allow_aggregate: bool) {
        let model = self.model;
        let mut columns = Vec::new();
        columns_of(model, &model.dimension(id).sql, &mut columns);
        for column in columns {
            let allowed = self.covered.entry(column).or_insert(allow_aggregate);
            *allowed &= allow_aggregate;
        }
    }

    /// Collects the columns behind denied measures, except columns that a dimension shows unchanged.
    fn cover_measures(&mut self) {
        let model = self.model;
        let mut columns = Vec::new();
        for member in &self.denied {
            let Member::Measure(id) = member else { continue };
            match &model.measure(*id).kind {
                MeasureKind::Number(snippet) => columns_of(model, snippet, &mut columns),
                MeasureKind::Aggregate(aggregate)
                | MeasureKind::RunningTotal { aggregate, .. }
                | MeasureKind::Rolling { aggregate, .. } => {
                    let snippets = aggregate.argument.iter().chain(&aggregate.filters);
                    snippets.for_each(|snippet| columns_of(model, snippet, &mut columns));
                }
            }
        }
        if !columns.is_empty() {
            let shown = self.shown_columns(&columns);
            self.behind_measures = columns.into_iter().filter(|column| !shown.contains(column)).collect();
        }
    }

    /// Returns the columns among `columns` that a dimension of the project's files shows to the caller unchanged.
    fn shown_columns(&self, columns: &[Column]) -> HashSet<Column> {
        let mut shown = HashSet::new();
        for cube in self.model.cubes.iter().filter(|cube| !cube.is_registered() && !self.is_closed(cube)) {
            let rows = rows_of(cube);
            if !columns.iter().any(|column| rows.contains(&column.rows)) {
                continue;
            }
            for (index, dimension) in (0..).zip(&cube.dimensions) {
                let id = DimensionId { cube: cube.id, index };
                let is_shown = self.can_name(Member::Dimension(id)) && self.mask(id).is_none();
                if let ([SqlPart::Column { .. }], true) = (&dimension.sql.parts[..], is_shown) {
                    for_each_column(self.model, &dimension.sql, &mut |_, column| {
                        if !self.covered.contains_key(&column) {
                            shown.insert(column);
                        }
                    });
                }
            }
        }
        shown
    }

    pub fn model(&self) -> &'a Model {
        self.model
    }

    /// Returns the policies that apply to the caller and to one of the cubes.
    pub fn policies_of(&self, cubes: impl Iterator<Item = CubeId>) -> Vec<Arc<str>> {
        let cubes: HashSet<CubeId> = cubes.collect();
        let speaking = self.policies.iter().filter(|policy| policy.cubes.iter().any(|of| cubes.contains(&of.cube)));
        let hooks = self.obligations.into_iter().flat_map(|obligations| &obligations.hooks);
        speaking.map(|policy| policy.name.clone()).chain(hooks.cloned()).collect()
    }

    /// Returns whether a member exists for the caller. A denied member does not.
    pub fn sees(&self, member: Member) -> bool {
        !self.denied.contains(&member)
    }

    /// Returns whether a query of the caller may name a member: it is public and not denied.
    pub fn can_name(&self, member: Member) -> bool {
        let presentation = match member {
            Member::Dimension(id) => &self.model.dimension(id).presentation,
            Member::Measure(id) => &self.model.measure(id).presentation,
            Member::Segment(id) => &self.model.segment(id).presentation,
        };
        !presentation.is_private && self.sees(member)
    }

    /// Returns whether the caller can see nothing of the cube.
    pub fn is_closed(&self, cube: &Cube) -> bool {
        let original = cube.alias_of.unwrap_or(cube.id);
        cube.is_guarded
            || self.obligations.is_some_and(|obligations| obligations.closed.contains(&original))
            || self.effects.iter().any(|effect| effect.cube == cube.id && effect.is_closed)
    }

    /// Returns the policies' conditions that the cube's rows must meet.
    pub fn row_filters(&self, cube: CubeId) -> impl Iterator<Item = &'a Snippet> {
        self.effects.iter().filter(move |effect| effect.cube == cube).filter_map(|effect| effect.row_filter.as_ref())
    }

    /// Returns the hooks' filters on the cube's rows. An alias has the filters of its cube.
    pub fn row_predicates(&self, cube: CubeId) -> &'a [Predicate] {
        self.obligations.and_then(|obligations| obligations.filters.get(&cube)).map_or(&[], Vec::as_slice)
    }

    /// Returns the mask that replaces a dimension's value: the strictest of all masks.
    pub fn mask(&self, id: DimensionId) -> Option<&'a Mask> {
        let of_hooks = self.obligations.and_then(|obligations| obligations.masks.get(&id));
        match (self.own_mask(id), of_hooks) {
            // It is unknown how much of a value an author's own expression hides, so null is the strictest.
            (Some(Mask::Sql(_)), Some(_)) => Some(&Mask::Null),
            (Some(own), Some(other)) => Some(if own.strictness() < other.strictness() { other } else { own }),
            (own, other) => own.or(other),
        }
    }

    fn own_mask(&self, id: DimensionId) -> Option<&'a Mask> {
        let of_cube = self.effects.iter().filter(|effect| effect.cube == id.cube);
        let masks = of_cube.flat_map(|effect| &effect.masks).filter(|(masked, _)| *masked == id);
        masks.map(|(_, mask)| mask).max_by_key(|mask| mask.strictness())
    }

    /// Checks that the caller may use the columns that a snippet reads.
    ///
    /// # Errors
    /// A policy masks a column, or the snippet contains a subquery.
    pub fn check(&self, snippet: &Snippet, column_use: ColumnUse) -> Result<(), Closed> {
        if self.is_open() {
            return Ok(());
        }
        if has_query(self.model, snippet) {
            return Err(Closed::Subquery);
        }
        let mut is_open = true;
        for_each_column(self.model, snippet, &mut |cube, column| {
            is_open &= match self.covered.get(&column) {
                None => {
                    let original = self.model.cube(cube.alias_of.unwrap_or(cube.id));
                    !(original.is_registered() && self.behind_measures.contains(&column))
                }
                Some(allow_aggregate) => column_use == ColumnUse::Aggregate && *allow_aggregate,
            };
        });
        if is_open { Ok(()) } else { Err(Closed::Covered) }
    }

    /// Returns whether every measure that a measure refers to exists for the caller.
    pub fn sees_parts(&self, id: MeasureId) -> bool {
        let sees = |within: Within<'_>| match within {
            Within::Measure(id) => self.sees(Member::Measure(id)),
            Within::Aggregate(_) | Within::Filter(_) => true,
        };
        self.denied.is_empty() || self.all_within(SqlPart::Measure(id), sees)
    }

    /// Returns whether a metric exists for the caller: it refers to no denied measure, filters by no denied dimension,
    /// and aggregates no column of a denied dimension. A metric that reads masked columns exists.
    pub fn sees_metric(&self, id: MetricId) -> bool {
        let exists = |within: Within<'_>| match within {
            Within::Measure(id) => self.sees(Member::Measure(id)),
            Within::Aggregate(aggregate) => !self.aggregates_denied_column(aggregate),
            Within::Filter(member) => !self.filters_by_denied(member),
        };
        self.denied.is_empty() || self.all_within(SqlPart::Metric(id), exists)
    }

    /// Returns whether every member that a rollup stores exists for the caller.
    pub fn sees_rollup(&self, rollup: &Rollup) -> bool {
        let time = rollup.time.iter().map(|time| time.dimension);
        let mut dimensions = rollup.dimensions.iter().copied().chain(time).map(Member::Dimension);
        let mut segments = rollup.segments.iter().copied().map(Member::Segment);
        rollup.measures.iter().all(|id| self.sees(Member::Measure(*id)) && self.sees_parts(*id))
            && dimensions.all(|member| self.sees(member))
            && segments.all(|member| self.sees(member))
    }

    /// Returns whether metadata lists a member: it exists for the caller, and the caller may use the columns that it
    /// reads.
    pub fn offers(&self, member: Member) -> bool {
        if self.is_open() {
            return true;
        }
        self.sees(member)
            && match member {
                Member::Dimension(id) => self.mask(id).is_some() || self.opens_dimension(id),
                Member::Segment(id) => self.check(&self.model.segment(id).sql, ColumnUse::Row).is_ok(),
                Member::Measure(id) => self.offers_all(SqlPart::Measure(id)),
            }
    }

    /// Returns whether metadata lists a metric: all its measures and metrics exist for the caller, and the caller may
    /// use the columns that they read.
    pub fn offers_metric(&self, id: MetricId) -> bool {
        self.is_open() || self.offers_all(SqlPart::Metric(id))
    }

    fn opens_dimension(&self, id: DimensionId) -> bool {
        self.check(&self.model.dimension(id).sql, ColumnUse::Row).is_ok()
    }

    fn offers_all(&self, part: SqlPart) -> bool {
        self.all_within(part, |within| match within {
            Within::Measure(id) => self.sees(Member::Measure(id)) && !self.is_closed(self.model.cube(id.cube)),
            Within::Aggregate(aggregate) => self.opens_aggregate(aggregate),
            Within::Filter(member) => self.opens_filter(member),
        })
    }

    fn opens_aggregate(&self, aggregate: &Aggregate) -> bool {
        aggregate
            .argument
            .iter()
            .chain(&aggregate.filters)
            .all(|snippet| self.check(snippet, ColumnUse::Aggregate).is_ok())
    }

    /// Returns whether the caller may use a metric with a filter on this member. Filters compare raw values, so a mask
    /// closes the metric as well.
    fn opens_filter(&self, name: &str) -> bool {
        match self.filtered(name) {
            Some(Member::Dimension(id)) => self.mask(id).is_none() && self.opens_dimension(id),
            _ => true,
        }
    }

    fn aggregates_denied_column(&self, aggregate: &Aggregate) -> bool {
        aggregate.argument.iter().chain(&aggregate.filters).any(|snippet| self.reads_denied_column(snippet))
    }

    fn reads_denied_column(&self, snippet: &Snippet) -> bool {
        let mut is_denied = false;
        for_each_column(self.model, snippet, &mut |_, column| is_denied |= self.denied_columns.contains(&column));
        is_denied
    }

    /// Returns the member of a metric's filter.
    fn filtered(&self, name: &str) -> Option<Member> {
        let mut parts = name.split('.');
        let cube = self.model.cube_named(parts.next()?)?;
        cube.member(parts.next()?)
    }

    /// Returns whether a metric's filter on this member compares a denied dimension or a column behind one.
    fn filters_by_denied(&self, name: &str) -> bool {
        match self.filtered(name) {
            Some(member @ Member::Dimension(id)) => {
                !self.sees(member) || self.reads_denied_column(&self.model.dimension(id).sql)
            }
            _ => false,
        }
    }

    /// Returns whether `allows` is true for all that a measure or a metric is computed from, directly or through others.
    fn all_within(&self, part: SqlPart, allows: impl Fn(Within<'_>) -> bool) -> bool {
        let (mut open, mut measures, mut metrics) = (vec![part], HashSet::new(), HashSet::new());
        while let Some(part) = open.pop() {
            let (is_allowed, snippet) = match &part {
                SqlPart::Measure(id) if measures.insert(*id) => match &self.model.measure(*id).kind {
                    MeasureKind::Number(snippet) => (allows(Within::Measure(*id)), Some(snippet)),
                    MeasureKind::Aggregate(aggregate)
                    | MeasureKind::RunningTotal { aggregate, .. }
                    | MeasureKind::Rolling { aggregate, .. } => {
                        (allows(Within::Measure(*id)) && allows(Within::Aggregate(aggregate)), None)
                    }
                },
                SqlPart::Metric(id) if metrics.insert(*id) => {
                    let metric = self.model.metric(*id);
                    (metric.filters.iter().all(|filter| allows(Within::Filter(&filter.member))), Some(&metric.body))
                }
                SqlPart::Aggregate(aggregate) => (allows(Within::Aggregate(aggregate)), None),
                _ => (true, None),
            };
            if !is_allowed {
                return false;
            }
            if let Some(snippet) = snippet {
                snippet.for_each(&mut |part| {
                    if let SqlPart::Measure(_) | SqlPart::Metric(_) | SqlPart::Aggregate(_) = part {
                        open.push(part.clone());
                    }
                });
            }
        }
        true
    }

    /// Returns the caller's values of a property that a policy refers to; `None` if the caller has none.
    pub fn values(&self, of: &UserValue) -> Option<Vec<Value>> {
        let texts = |all: &[Arc<str>]| all.iter().map(|text| Value::Text(text.clone())).collect::<Vec<_>>();
        let values = match of {
            UserValue::Id => vec![Value::Text(self.caller.user_id.clone())],
            UserValue::Email => texts(self.caller.email.as_slice()),
            UserValue::Roles => texts(&self.caller.roles),
            UserValue::Groups => texts(&self.caller.groups),
            UserValue::AuthMethod => vec![Value::Text(self.caller.auth_method.as_str().into())],
            UserValue::Attribute(name) => self.caller.attributes.get(name)?.values().to_vec(),
        };
        let is_nameless = *of == UserValue::Id && self.caller.user_id.is_empty();
        (!is_nameless && !values.is_empty() && !values.contains(&Value::Null)).then_some(values)
    }
}

/// Returns whether a policy applies to this caller.
///
/// A caller without a value of an attribute meets `attributes` if the policy has `missing: applies`, and is never
/// exempted by `unless_attributes`. Null is not a value.
fn applies(when: Option<&PolicyCondition>, caller: &SecurityContext) -> bool {
    let Some(when) = when else { return true };
    let has_any = |wanted: &[Arc<str>], held: &[Arc<str>]| wanted.iter().any(|name| held.contains(name));
    let held = |name: &Arc<str>| caller.attributes.get(name).map_or(&[][..], Attribute::values);
    let has_attribute = |(name, wanted): &(Arc<str>, Vec<Value>)| {
        held(name).iter().any(|value| wanted.iter().any(|wanted| attribute_value::are_equal(value, wanted)))
    };
    let is_missing = |name: &Arc<str>| held(name).iter().all(|value| *value == Value::Null);
    let counts_missing = when.missing == MissingAttribute::Applies;
    (when.roles.is_empty() || has_any(&when.roles, &caller.roles))
        && (when.groups.is_empty() || has_any(&when.groups, &caller.groups))
        && (when.auth_methods.is_empty() || when.auth_methods.contains(&caller.auth_method))
        && when.attributes.iter().all(|wanted| has_attribute(wanted) || counts_missing && is_missing(&wanted.0))
        && !has_any(&when.unless_roles, &caller.roles)
        && !has_any(&when.unless_groups, &caller.groups)
        && !when.unless_auth_methods.contains(&caller.auth_method)
        && !when.unless_attributes.iter().any(has_attribute)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::security::AuthMethod;

    fn word(text: &str) -> Value {
        Value::Text(text.into())
    }

    fn caller(tier: Option<Attribute>) -> SecurityContext {
        let attributes = tier.map(|tier| ("tier".into(), tier)).into_iter().collect();
        SecurityContext { attributes, ..SecurityContext::default() }
    }

    fn condition(wanted: &[Value], missing: MissingAttribute) -> PolicyCondition {
        PolicyCondition { attributes: vec![("tier".into(), wanted.to_vec())], missing, ..PolicyCondition::default() }
    }

    #[test]
    fn policies_apply_by_authentication_method() {
        use AuthMethod::{Anonymous, ApiKey, Jwt, Operator};
        let by = |auth_method| SecurityContext { auth_method, ..SecurityContext::default() };
        let with = |auth_methods: &[AuthMethod], unless: &[AuthMethod]| PolicyCondition {
            auth_methods: auth_methods.to_vec(),
            unless_auth_methods: unless.to_vec(),
            ..PolicyCondition::default()
        };
        for (condition, restricted) in [
            (with(&[], &[]), &[Anonymous, ApiKey, Jwt, Operator][..]),
            (with(&[Jwt], &[]), &[Jwt]),
            (with(&[Anonymous, ApiKey], &[]), &[Anonymous, ApiKey]),
            (with(&[], &[Operator]), &[Anonymous, ApiKey, Jwt]),
            (with(&[Jwt, ApiKey], &[ApiKey]), &[Jwt]),
        ] {
            for method in AuthMethod::OF_REQUESTS {
                assert_eq!(applies(Some(&condition), &by(method)), restricted.contains(&method), "{method:?}");
            }
        }
    }

    #[test]
    fn policies_apply_by_canonical_value() {
        use Attribute::{Many, One};
        let numbers = [Value::Integer(1), Value::Integer(2)];
        let others = [word("1.0"), Value::Boolean(true)];
        // Each case: the caller's attribute, whether a policy for `numbers` applies, whether a policy for `others`
        // applies, and whether the attribute counts as missing.
        for (tier, of_numbers, of_others, is_missing) in [
            (Some(One(word("1"))), true, false, false),
            (Some(One(word("1.0"))), true, true, false),
            (Some(One(Value::Integer(1))), true, true, false),
            (Some(One(Value::Float(1.0))), true, true, false),
            (Some(One(Value::Decimal("2.00".into()))), true, false, false),
            (Some(One(word("01"))), false, false, false),
            (Some(One(word(" 1"))), false, false, false),
            (Some(One(word(""))), false, false, false),
            (Some(One(Value::Boolean(true))), false, true, false),
            (Some(One(word("True"))), false, true, false),
            (Some(Many(vec![Value::Integer(1)])), true, true, false),
            (Some(Many(vec![word("x"), Value::Null, word("2")])), true, false, false),
            (Some(Many(vec![word("x"), Value::Null])), false, false, false),
            (Some(Many(vec![Value::Null])), false, false, true),
            (Some(Many(Vec::new())), false, false, true),
            (Some(One(Value::Null)), false, false, true),
            (None, false, false, true),
        ] {
            let caller = caller(tier.clone());
            for (wanted, is_equal) in [(&numbers, of_numbers), (&others, of_others)] {
                let skips = condition(wanted, MissingAttribute::Skips);
                assert_eq!(applies(Some(&skips), &caller), is_equal, "{tier:?} in {wanted:?}");
                let closes = condition(wanted, MissingAttribute::Applies);
                assert_eq!(
                    applies(Some(&closes), &caller),
                    is_equal || is_missing,
                    "{tier:?} in {wanted:?}, or missing"
                );
                let exempts = PolicyCondition {
                    unless_attributes: vec![("tier".into(), wanted.to_vec())],
                    missing: MissingAttribute::Applies,
                    ..PolicyCondition::default()
                };
                assert_eq!(applies(Some(&exempts), &caller), !is_equal, "{tier:?} unless in {wanted:?}");
            }
        }
    }

    #[test]
    fn each_missing_attribute_counts_as_matching() {
        let mut when = condition(&[Value::Integer(1)], MissingAttribute::Applies);
        when.attributes.push(("region".into(), vec![word("north")]));
        let with = |region: &str| {
            let mut caller = caller(None);
            caller.attributes.insert("region".into(), Attribute::One(word(region)));
            caller
        };
        assert!(applies(Some(&when), &caller(None)));
        assert!(applies(Some(&when), &with("north")));
        assert!(!applies(Some(&when), &with("south")), "a value that the policy does not name");
    }
}
