//! USERELATIONSHIP: filters of a table that apply to other tables through one of its aliases.
//!
//! In: a filter context with the joins to follow. Out: the same filters on the aliases instead. A query through REST
//! names the alias, while DAX names the table and the join.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::query::Filter;

use super::context::{Allowed, FilterContext, Pin, Restriction};
use super::{Evaluator, Result, not_supported};
use crate::bound::Relationship;
use crate::place::Place;
use crate::plan::{applies, column_ref};

impl<'q> Evaluator<'q> {
    /// Returns a context whose filters are on the aliases of the joins to follow, if the aggregated tables reach those
    /// aliases.
    pub(super) fn along_relationships<'c>(
        &self,
        context: &'c FilterContext,
        facts: &[CubeId],
        place: Place,
    ) -> Result<Cow<'c, FilterContext>> {
        let leads_from = |relationship: &Relationship| {
            let of_alias = DimensionId { cube: relationship.alias, index: 0 };
            relationship.alias != relationship.table && facts.iter().all(|fact| applies(self.model, of_alias, *fact))
        };
        let mut followed = context.relationships.iter().filter(|relationship| leads_from(relationship)).peekable();
        if followed.peek().is_none() {
            return Ok(Cow::Borrowed(context));
        }
        let mut inner = context.clone();
        for relationship in followed {
            inner = self.renamed(&inner, relationship, place)?;
        }
        Ok(Cow::Owned(inner))
    }

    fn renamed(&self, context: &FilterContext, relationship: &Relationship, place: Place) -> Result<FilterContext> {
        let pins = context.pins.iter().map(|pin| {
            let column = self.column_of_alias(pin.column, relationship, place)?;
            let row_of = pin.row_of.map(|table| if table == relationship.table { relationship.alias } else { table });
            Ok(Pin { column, value: pin.value.clone(), row_of })
        });
        let pins = pins.collect::<Result<Vec<Pin>>>()?;
        let filters = context.filters.filters.iter().map(|filter| self.renamed_filter(filter, relationship, place));
        let filters = filters.collect::<Result<Vec<Rc<Restriction>>>>()?;
        Ok(FilterContext { filters: self.filter_list(filters), pins: pins.into(), ..context.clone() })
    }

    fn renamed_filter(
        &self,
        filter: &Rc<Restriction>,
        relationship: &Relationship,
        place: Place,
    ) -> Result<Rc<Restriction>> {
        if !filter.columns.iter().any(|column| column.cube == relationship.table) {
            return Ok(Rc::clone(filter));
        }
        let columns = filter.columns.iter().map(|column| self.column_of_alias(*column, relationship, place));
        let columns = columns.collect::<Result<Vec<DimensionId>>>()?;
        let allowed = match &filter.allowed {
            Allowed::Rows(rows) => Allowed::Rows(rows.clone()),
            Allowed::Condition(condition) => {
                let mut condition = condition.clone();
                for (old, new) in filter.columns.iter().zip(&columns) {
                    self.rename(&mut condition, *old, *new, place)?;
                }
                self.rename_table(&mut condition, relationship);
                Allowed::Condition(condition)
            }
        };
        let rows_of = filter.rows_of.map(|table| if table == relationship.table { relationship.alias } else { table });
        Ok(Rc::new(Restriction { columns, rows_of, allowed }))
    }

    fn rename(&self, condition: &mut Filter, old: DimensionId, new: DimensionId, place: Place) -> Result<()> {
        match condition {
            Filter::Condition { member, .. } => {
                let (Some(old), Some(new)) = (column_ref(self.model, old), column_ref(self.model, new)) else {
                    return Err(not_supported("a name with a dot", place));
                };
                if *member == old {
                    *member = new;
                }
                Ok(())
            }
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter_mut().try_for_each(|part| self.rename(part, old, new, place))
            }
            Filter::Not(inner) => self.rename(inner, old, new, place),
            Filter::NoRow { .. } => Ok(()),
        }
    }

    fn rename_table(&self, condition: &mut Filter, relationship: &Relationship) {
        match condition {
            Filter::Condition { .. } => {}
            Filter::And(parts) | Filter::Or(parts) => {
                parts.iter_mut().for_each(|part| self.rename_table(part, relationship));
            }
            Filter::Not(inner) => self.rename_table(inner, relationship),
            Filter::NoRow { cube } => {
                if *cube == self.model.cube(relationship.table).name {
                    *cube = Arc::clone(&self.model.cube(relationship.alias).name);
                }
            }
        }
    }

    /// Returns the alias's column for a column of the aliased table. Columns of other tables stay.
    fn column_of_alias(&self, column: DimensionId, relationship: &Relationship, place: Place) -> Result<DimensionId> {
        if column.cube != relationship.table {
            return Ok(column);
        }
        let name = &self.model.dimension(column).name;
        let found = (0_u32..).zip(&self.model.cube(relationship.alias).dimensions).find(|(_, of)| of.name == *name);
        let found = found.map(|(index, _)| DimensionId { cube: relationship.alias, index });
        found.ok_or_else(|| not_supported("a column that the alias of a relationship does not have", place))
    }
}
