//! USERELATIONSHIP: filters of a table that apply to other tables through one of its aliases.
//!
//! In: a filter context with the joins to follow. Out: the same filters on the aliases instead. A query through REST
//! names the alias, while DAX names the table and the join.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::query::Filter;

use super::context::{Allowed, Expansion, FilterContext, Pin, Restriction};
use super::source::Item;
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
        let leads_from = |relationship: &&Relationship| self.is_followed(relationship, facts);
        let mut followed = context.relationships.iter().filter(leads_from).peekable();
        if followed.peek().is_none() {
            return Ok(Cow::Borrowed(context));
        }
        let mut inner = context.clone();
        for relationship in followed {
            let is_behind = |column: DimensionId| self.is_behind(column, relationship, facts);
            inner = self.with_key_filters(&inner, relationship, &is_behind, place)?;
            inner = self.renamed(&inner, relationship, place)?;
        }
        Ok(Cow::Owned(inner))
    }

    /// Returns whether the aggregated tables reach the alias of a relationship.
    fn is_followed(&self, relationship: &Relationship, facts: &[CubeId]) -> bool {
        let of_alias = DimensionId { cube: relationship.alias, index: 0 };
        relationship.alias != relationship.table && facts.iter().all(|fact| applies(self.model, of_alias, *fact))
    }

    /// Returns the contents of a query with the columns of the aliases of the joins to follow.
    pub(super) fn item_along_relationships(
        &self,
        item: Item,
        table: CubeId,
        context: &FilterContext,
        place: Place,
    ) -> Result<Item> {
        let followed = context.relationships.iter().filter(|relationship| self.is_followed(relationship, &[table]));
        followed.into_iter().try_fold(item, |item, relationship| {
            let renamed = |columns: Vec<DimensionId>| {
                if columns.iter().any(|column| self.is_behind(*column, relationship, &[table])) {
                    return Err(not_supported(
                        "USERELATIONSHIP for a column of a table behind the joined table",
                        place,
                    ));
                }
                let columns = columns.iter().map(|column| self.column_of_alias(*column, relationship, place));
                columns.collect::<Result<Vec<DimensionId>>>()
            };
            Ok(match item {
                Item::Rows(cube, columns) => Item::Rows(cube, renamed(columns)?),
                Item::Distinct(cube, columns) => Item::Distinct(cube, renamed(columns)?),
                Item::Measured { table, column, measure } => {
                    Item::Measured { table, column: renamed(vec![column])?[0], measure }
                }
                other => other,
            })
        })
    }

    /// Returns whether a query over the aggregated tables reaches the table of a column through the table of a
    /// relationship.
    fn is_behind(&self, column: DimensionId, relationship: &Relationship, facts: &[CubeId]) -> bool {
        facts.iter().any(|fact| self.leads_through(*fact, column.cube, relationship))
    }

    /// Returns whether the path of joins from a table to another one contains the table or the alias of a relationship.
    fn leads_through(&self, from: CubeId, to: CubeId, relationship: &Relationship) -> bool {
        let paths = self.model.join_paths(from);
        let mut next = paths.hop(to).map(|hop| hop.from);
        while let Some(cube) = next.filter(|cube| *cube != from) {
            if cube == relationship.table || cube == relationship.alias {
                return true;
            }
            next = paths.hop(cube).map(|hop| hop.from);
        }
        false
    }

    fn renamed(&self, context: &FilterContext, relationship: &Relationship, place: Place) -> Result<FilterContext> {
        let pins = context.pins.iter().map(|pin| {
            let column = self.column_of_alias(pin.column, relationship, place)?;
            let row_of = pin.row_of.map(|table| renamed_table(table, relationship));
            let expansion = pin.expansion.map(|one| renamed_expansion(one, relationship));
            Ok(Pin { column, value: pin.value.clone(), row_of, expansion })
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
            allowed @ (Allowed::Rows(_) | Allowed::Dates { .. }) => allowed.clone(),
            Allowed::Condition(condition) => {
                let mut condition = condition.clone();
                for (old, new) in filter.columns.iter().zip(&columns) {
                    self.rename(&mut condition, *old, *new, place)?;
                }
                self.rename_table(&mut condition, relationship);
                Allowed::Condition(condition)
            }
        };
        let rows_of = filter.rows_of.map(|table| renamed_table(table, relationship));
        let expansion = filter.expansion.iter().map(|one| renamed_expansion(*one, relationship)).collect();
        Ok(Rc::new(Restriction { columns, rows_of, expansion, allowed }))
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

fn renamed_table(table: CubeId, relationship: &Relationship) -> CubeId {
    if table == relationship.table { relationship.alias } else { table }
}

fn renamed_expansion(expansion: Expansion, relationship: &Relationship) -> Expansion {
    Expansion { table: renamed_table(expansion.table, relationship), ..expansion }
}
