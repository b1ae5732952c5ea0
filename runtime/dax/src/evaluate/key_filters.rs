//! Converts filters of tables that a joined table reaches into filters of its keys, for USERELATIONSHIP.
//!
//! In: a filter context and a join to follow. Out: the same context, in which these filters are lists of keys of the
//! joined table. A query reaches the tables behind the joined table only through that table itself, while a list of its
//! keys can be a filter of its alias.

use std::rc::Rc;

use terrane_compiler::model::DimensionId;
use terrane_compiler::query::Filter;
use terrane_compiler::types::{Operator, Value};

use super::context::{Allowed, FilterContext, Pin, Restriction, distinct};
use super::{Datum, Evaluator, Result, not_supported};
use crate::bound::Relationship;
use crate::place::Place;

impl<'q> Evaluator<'q> {
    /// Returns a context in which the filters of the columns behind the table of a relationship are lists of keys of
    /// this table.
    pub(super) fn with_key_filters(
        &self,
        context: &FilterContext,
        relationship: &Relationship,
        is_behind: &dyn Fn(DimensionId) -> bool,
        place: Place,
    ) -> Result<FilterContext> {
        let (behind, pins): (Vec<Pin>, Vec<Pin>) = context.pins.iter().cloned().partition(|pin| is_behind(pin.column));
        let all = context.filters.filters.iter().cloned();
        let (filters_behind, mut filters): (Vec<_>, Vec<_>) = all.partition(|filter| filter.overlaps(is_behind));
        if behind.is_empty() && filters_behind.is_empty() {
            return Ok(context.clone());
        }
        if filters_behind.iter().any(|filter| filter.overlaps(&|column| !is_behind(column))) {
            return Err(not_supported("USERELATIONSHIP with a filter of several tables", place));
        }
        if !behind.is_empty() {
            let has_blank = behind.iter().all(|pin| pin.value.is_blank());
            let only = FilterContext { pins: behind.into(), ..FilterContext::new(self.filter_list(Vec::new())) };
            filters.push(self.keys_under(&only, relationship, has_blank, place)?);
        }
        for filter in filters_behind {
            let has_blank = allows_blank(&filter.allowed);
            let only = FilterContext::new(self.filter_list(vec![filter]));
            filters.push(self.keys_under(&only, relationship, has_blank, place)?);
        }
        let relationships = Rc::clone(&context.relationships);
        Ok(FilterContext { filters: self.filter_list(filters), pins: pins.into(), relationships })
    }

    /// Returns the keys that the table of a relationship has under some filters. `has_blank` adds the blank key, which
    /// rows without a partner have.
    fn keys_under(
        &self,
        only: &FilterContext,
        relationship: &Relationship,
        has_blank: bool,
        place: Place,
    ) -> Result<Rc<Restriction>> {
        let table = relationship.table;
        if self.model.cube(table).primary_key.is_empty() || !self.has_visible_key(table) {
            return Err(not_supported("USERELATIONSHIP for a table behind a table without a visible key", place));
        }
        let key = self.model.cube(table).primary_key.iter();
        let key: Vec<DimensionId> = key.map(|index| DimensionId { cube: table, index: *index }).collect();
        let mut rows = self.values_of(&key, false, only, place)?;
        if has_blank {
            rows.push(vec![Datum::Blank; key.len()]);
        }
        Ok(Rc::new(Restriction::of_columns(key, Allowed::Rows(distinct(rows)))))
    }
}

/// Returns whether a filter allows the row in which all of its columns are BLANK.
fn allows_blank(allowed: &Allowed) -> bool {
    match allowed {
        Allowed::Rows(rows) => rows.iter().any(|row| row.iter().all(Datum::is_blank)),
        Allowed::Dates { .. } => false,
        Allowed::Condition(condition) => holds_for_null(condition),
    }
}

/// Returns whether a condition holds if every member that it compares is null, and the row itself does not exist.
fn holds_for_null(filter: &Filter) -> bool {
    match filter {
        Filter::Condition { operator, values, .. } => {
            let has_null = values.contains(&Value::Null);
            match operator {
                Operator::NotSet | Operator::NotContains | Operator::NotInDateRange => true,
                Operator::Equals | Operator::InList => has_null,
                // A negated comparison is the complement of the comparison, which is false for null.
                Operator::NotEquals | Operator::NotInList => !has_null,
                _ => false,
            }
        }
        Filter::And(parts) => parts.iter().all(holds_for_null),
        Filter::Or(parts) => parts.iter().any(holds_for_null),
        Filter::Not(inner) => !holds_for_null(inner),
        Filter::NoRow { .. } => true,
    }
}
