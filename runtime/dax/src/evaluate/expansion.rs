//! Expanded tables: a filter by rows of a table also restricts the tables that the rows reach on the one side.
//!
//! In: filters and rows of a table, and the tables that a measure aggregates. Out: filters on the keys of the tables on
//! the one side. The keys are fetched only if a measure does not depend on the table itself. For all other measures,
//! the row of the table determines the rows on the one side.

use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};
use terrane_compiler::query::Filter;

use super::context::{Allowed, Expansion, FilterContext, FilterList, Pin, Restriction, distinct};
use super::rows::Rows;
use super::source::Item;
use super::{Datum, Evaluator, Result, not_supported, replaceable};
use crate::place::Place;
use crate::plan::applies;

impl<'q> Evaluator<'q> {
    /// Returns the pins of the rows on the one side of rows whose table the aggregated tables do not reach.
    pub(super) fn expanded_pins(&self, facts: &[CubeId], context: &FilterContext, place: Place) -> Result<Vec<Pin>> {
        let mut tables: Vec<CubeId> =
            context.pins.iter().filter_map(|pin| pin.expansion).map(|one| one.table).collect();
        tables.sort();
        tables.dedup();
        let mut pins = Vec::new();
        for table in tables {
            let shared = self.shared_tables(table, facts, place)?;
            if shared.is_empty() {
                continue;
            }
            let is_own = |pin: &&Pin| pin.column.cube == table;
            let own: Vec<&Pin> = context.pins.iter().filter(is_own).collect();
            let is_whole = own.iter().all(|pin| pin.expansion.is_some_and(|one| one.is_whole));
            if !is_whole || !self.has_visible_key(table) {
                return Err(refusal(place));
            }
            pins.extend(self.pins_on_one_side(table, &own, &shared, place)?);
        }
        let is_twice = |pin: &Pin| pins.iter().any(|other| other.column == pin.column && other.value != pin.value);
        if pins.iter().any(is_twice) || context.pins.iter().any(is_twice) {
            return Err(refusal(place));
        }
        Ok(pins)
    }

    fn pins_on_one_side(&self, table: CubeId, own: &[&Pin], shared: &[CubeId], place: Place) -> Result<Vec<Pin>> {
        let columns = self.keys_of(shared, place)?;
        let keys: Vec<DimensionId> = own.iter().map(|pin| pin.column).collect();
        let values: Vec<Datum> = own.iter().map(|pin| pin.value.clone()).collect();
        let item = Item::Distinct(table, columns.clone());
        let index = self.index(item, keys, &[table], &self.filter_list(Vec::new()), place)?;
        let found = match index.rows_of(&values) {
            [only] => only.clone(),
            // The blank row of a table has the blank rows of the tables on its one side.
            [] if values.iter().all(Datum::is_blank) => vec![Datum::Blank; columns.len()],
            _ => return Err(refusal(place)),
        };
        let pin = |(column, value): (&DimensionId, Datum)| Pin {
            column: *column,
            value,
            row_of: Some(column.cube),
            expansion: Some(Expansion::of(column.cube)),
        };
        Ok(columns.iter().zip(found).map(pin).collect())
    }

    /// Returns the filters of the tables on the one side of rows whose table the aggregated tables do not reach.
    pub(super) fn expanded_filters(
        &self,
        restriction: &Rc<Restriction>,
        facts: &[CubeId],
        place: Place,
    ) -> Result<Vec<Filter>> {
        let mut filters = Vec::new();
        for expansion in &restriction.expansion {
            let shared = self.shared_tables(expansion.table, facts, place)?;
            if !shared.is_empty() {
                let (columns, rows) = self.rows_on_one_side(restriction, *expansion, &shared, place)?;
                filters.push(self.one_of(&columns, &rows, place)?);
            }
        }
        Ok(filters)
    }

    /// Returns whether a filter by rows of a table restricts the aggregated tables through a table on the one side.
    pub(super) fn is_expanded_to(&self, restriction: &Restriction, facts: &[CubeId], place: Place) -> Result<bool> {
        for expansion in &restriction.expansion {
            if !self.shared_tables(expansion.table, facts, place)?.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the keys of the rows on the one side of the rows that a filter allows.
    fn rows_on_one_side(
        &self,
        restriction: &Rc<Restriction>,
        expansion: Expansion,
        shared: &[CubeId],
        place: Place,
    ) -> Result<(Vec<DimensionId>, Vec<Vec<Datum>>)> {
        let table = expansion.table;
        if !expansion.is_whole || restriction.columns.iter().any(|column| column.cube != table) {
            return Err(refusal(place));
        }
        let columns = self.keys_of(shared, place)?;
        let filters = self.filter_list(vec![Rc::clone(restriction)]);
        let index = self.index(Item::Distinct(table, columns.clone()), Vec::new(), &[table], &filters, place)?;
        let mut rows = index.rows_of(&[]).to_vec();
        if let Allowed::Rows(allowed) = &restriction.allowed
            && restriction.rows_of.is_none()
            && allowed.iter().any(|row| row.iter().all(Datum::is_blank))
        {
            rows.push(vec![Datum::Blank; columns.len()]);
        }
        Ok((columns, distinct(rows)))
    }

    /// Returns whether the filters by rows of other tables allow the blank row of a table.
    pub(super) fn allows_blank_row(&self, table: CubeId, context: &FilterContext, place: Place) -> Result<bool> {
        let pins = self.expanded_pins(&[table], context, place)?;
        if pins.iter().any(|pin| !pin.value.is_blank()) {
            return Ok(false);
        }
        for restriction in &context.filters.filters {
            for expansion in &restriction.expansion {
                let shared = self.shared_tables(expansion.table, &[table], place)?;
                if shared.is_empty() {
                    continue;
                }
                let (_, rows) = self.rows_on_one_side(restriction, *expansion, &shared, place)?;
                if !rows.iter().any(|row| row.iter().all(Datum::is_blank)) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns the nearest tables that both a table and the aggregated tables reach on the one side. Returns nothing if
    /// the aggregated tables reach the table itself.
    fn shared_tables(&self, table: CubeId, facts: &[CubeId], place: Place) -> Result<Vec<CubeId>> {
        let reaches = |from: CubeId, to: CubeId| self.model.join_paths(from).is_to_one(to);
        if facts.iter().all(|fact| reaches(*fact, table)) {
            return Ok(Vec::new());
        }
        let is_shared =
            |cube: &CubeId| *cube != table && reaches(table, *cube) && facts.iter().any(|fact| reaches(*fact, *cube));
        let shared: Vec<CubeId> = self.model.cubes.iter().map(|cube| cube.id).filter(is_shared).collect();
        let is_partial = |cube: &CubeId| !facts.iter().all(|fact| reaches(*fact, *cube));
        if shared.iter().any(is_partial) {
            return Err(not_supported("a filter that reaches some tables of a measure only", place));
        }
        let is_nearest = |cube: &CubeId| !shared.iter().any(|other| other != cube && reaches(*other, *cube));
        Ok(shared.iter().copied().filter(is_nearest).collect())
    }

    /// Returns the columns of the keys of tables. The caller must see them without masks.
    fn keys_of(&self, tables: &[CubeId], place: Place) -> Result<Vec<DimensionId>> {
        let mut columns = Vec::new();
        for table in tables {
            let key = &self.model.cube(*table).primary_key;
            if key.is_empty() || !self.has_visible_key(*table) {
                return Err(refusal(place));
            }
            columns.extend(key.iter().map(|index| DimensionId { cube: *table, index: *index }));
        }
        Ok(columns)
    }

    /// Returns whether the removed columns include a column of a table on the one side of the expanded table. The
    /// filter by rows of the expanded table then no longer determines the rows of that table.
    pub(super) fn breaks(&self, expansion: Expansion, is_removed: &dyn Fn(DimensionId) -> bool) -> bool {
        let paths = self.model.join_paths(expansion.table);
        let has_one_side = self.model.cube(expansion.table).joins.iter().any(|join| join.relationship.is_to_one());
        has_one_side
            && self.model.cubes.iter().filter(|cube| paths.is_to_one(cube.id)).any(|cube| {
                (0..cube.dimensions.len() as u32).any(|index| is_removed(DimensionId { cube: cube.id, index }))
            })
    }

    /// Returns whether rows of a table were selected under all filters of a context that apply to the table. The rows
    /// then pass these filters, so that they can stay beside the rows.
    pub(super) fn is_seen(&self, rows: &Rows, table: CubeId, context: &FilterContext) -> bool {
        let Some(seen) = &rows.seen else { return false };
        let is_relevant = |column: DimensionId| applies(self.model, column, table);
        let contains = |list: &FilterList, filter: &Rc<Restriction>| {
            list.filters.iter().any(|other| Rc::ptr_eq(other, filter) || other == filter)
        };
        let mut filters = context.filters.filters.iter().filter(|filter| filter.overlaps(&is_relevant));
        let mut pins = context.pins.iter().filter(|pin| is_relevant(pin.column));
        seen.relationships == context.relationships
            && (seen.filters.id == context.filters.id || filters.all(|filter| contains(&seen.filters, filter)))
            && pins.all(|pin| seen.pins.contains(pin))
    }

    /// Refuses a row without its key if it would replace filters of tables on its one side. The row does not determine
    /// the rows of those tables.
    pub(super) fn refuse_unknown_row(&self, tables: &[CubeId], context: &FilterContext, place: Place) -> Result<()> {
        let is_unknown =
            |table: &&CubeId| self.model.cube(**table).primary_key.is_empty() || !self.has_visible_key(**table);
        for table in tables.iter().filter(is_unknown) {
            let is_other = |column: DimensionId| column.cube != *table && applies(self.model, column, *table);
            let is_filtered = context.pins.iter().any(|pin| is_other(pin.column))
                || context.filters.filters.iter().any(|filter| filter.overlaps(&is_other));
            if is_filtered {
                return Err(not_supported("a row without its key under filters of other tables", place));
            }
        }
        Ok(())
    }

    /// Replaces the pins of a row's key with pins of all columns of the row, if only some of these columns are removed.
    pub(super) fn spread(
        &self,
        context: &FilterContext,
        is_removed: &dyn Fn(DimensionId) -> bool,
        place: Place,
    ) -> Result<FilterContext> {
        let mut inner = context.clone();
        for table in context.pins.iter().filter_map(|pin| pin.row_of) {
            let (own, others): (Vec<Pin>, Vec<Pin>) =
                inner.pins.iter().cloned().partition(|pin| pin.row_of == Some(table));
            let columns = self.shown_columns(table);
            // Without the key, each column that the caller sees has a pin of its own.
            if !self.has_visible_key(table) {
                continue;
            }
            let loses_key = own.iter().any(|pin| is_removed(pin.column));
            if !loses_key || columns.iter().all(|column| is_removed(*column)) {
                continue;
            }
            let values = self.row_by_key(table, &own, &columns, place)?;
            let spread = columns.iter().zip(values).map(|(column, value)| Pin {
                column: *column,
                value,
                row_of: None,
                expansion: Some(Expansion::of(table).broken()),
            });
            inner.pins = others.into_iter().chain(spread).collect();
        }
        Ok(inner)
    }

    fn row_by_key(&self, table: CubeId, key: &[Pin], columns: &[DimensionId], place: Place) -> Result<Vec<Datum>> {
        let keys: Vec<DimensionId> = key.iter().map(|pin| pin.column).collect();
        let values: Vec<Datum> = key.iter().map(|pin| pin.value.clone()).collect();
        let item = Item::Distinct(table, columns.to_vec());
        let index = self.index(item, keys, &[table], &self.filter_list(Vec::new()), place)?;
        match index.rows_of(&values) {
            [only] => Ok(only.clone()),
            _ => Err(not_supported("removing the filter of one column of a row", place)),
        }
    }

    /// Returns the columns of a table that queries of the caller may select.
    fn shown_columns(&self, table: CubeId) -> Vec<DimensionId> {
        let all = 0..self.model.cube(table).dimensions.len() as u32;
        let ids = all.map(|index| DimensionId { cube: table, index });
        ids.filter(|id| self.names_and_sees(*id)).collect()
    }
}

fn refusal(place: Place) -> super::Halt {
    let suggestion = "Filter by columns of the table on the one side, such as its key in SUMMARIZE(table, other[key]), \
                      or read them with RELATED.";
    replaceable("a filter by rows of a table on the many side of another one", suggestion, place)
}
