//! Measures, and the rows and values of tables, in a filter context.
//!
//! In: a filter context. Out: values and rows, which are looked up in the result of one query for all current rows. If
//! a filter depends on the current row, the parts of an additive measure are combined here, so that the filter needs no
//! query of its own.

use std::collections::HashSet;

use terrane_compiler::model::{AggregateFunction, CubeId, DimensionId, MeasureKind, Member};

use super::aggregate::{fold, fold_counted};
use super::context::{Allowed, FilterContext, Pin};
use super::environment::Environment;
use super::source::Item;
use super::timeline::DateRange;
use super::{Datum, Evaluator, Result, not_supported};
use crate::bound::{MeasureCall, MeasureSource};
use crate::functions::Aggregation;
use crate::place::Place;
use crate::plan::{Aggregates, applies, counts, may_lack_partners};
use crate::types::Type;

impl<'q> Evaluator<'q> {
    pub(super) fn measure(&self, call: &MeasureCall, environment: &Environment, place: Place) -> Result<Datum> {
        let environment =
            if call.has_transition { self.transitioned(environment, place)? } else { environment.clone() };
        match call.source {
            MeasureSource::Query(id) => {
                let expression = &self.query.measures[id.0 as usize].expression;
                let environment = environment.of_definition();
                let key = super::TableKey::of(std::ptr::from_ref(expression) as usize, &environment);
                if let Some(found) = self.measures.borrow().get(&key) {
                    return found.clone();
                }
                let value = stacker::maybe_grow(128 * 1024, 2 * 1024 * 1024, || self.scalar(expression, &environment));
                self.hold(size_of::<super::TableKey>() + 64 * key.pins.len(), place)?;
                self.measures.borrow_mut().insert(key, value.clone());
                value
            }
            source => self.model_measure(source, &environment.context, place),
        }
    }

    /// Returns the value of a measure of the model.
    pub(super) fn model_measure(&self, source: MeasureSource, context: &FilterContext, place: Place) -> Result<Datum> {
        let mut aggregates = Aggregates::default();
        aggregates.add(self.model, source);
        if let Some(what) = aggregates.along_time {
            return Err(not_supported(&format!("{what} in an expression"), place));
        }
        let item = Item::Measure(source);
        let value = self.item_value(&item, &aggregates.facts, context, place)?;
        // A count of no rows is BLANK in DAX, and 0 in a semantic query.
        let is_empty_count = value == Datum::Integer(0) && counts(self.model, source);
        Ok(if is_empty_count { Datum::Blank } else { value })
    }

    /// Returns the value of a query for `item`, which has one value for each group.
    pub(super) fn item_value(
        &self,
        item: &Item,
        facts: &[CubeId],
        context: &FilterContext,
        place: Place,
    ) -> Result<Datum> {
        let context = self.along_relationships(context, facts, place)?;
        let context = &*context;
        let pins = self.pins_of(facts, context, place)?;
        let folded = match self.combination(item) {
            Some(aggregation) => self.folded(item, aggregation, facts, context, &pins, place)?,
            None => None,
        };
        if let Some(value) = folded {
            return Ok(value);
        }
        let (keys, values) = split(&pins);
        let index = self.index(item.clone(), keys, facts, &context.filters, place)?;
        Ok(index.rows_of(&values).first().map_or(Datum::Blank, |row| row[0].clone()))
    }

    /// Returns the aggregation by which the values of a measure for parts of the rows are combined into its value for
    /// all rows. Returns `None` if the measure is not additive.
    pub(super) fn additive(&self, source: MeasureSource) -> Option<Aggregation> {
        let MeasureSource::Model(id) = source else { return None };
        let MeasureKind::Aggregate(aggregate) = &self.model.measure(id).kind else { return None };
        match aggregate.function {
            AggregateFunction::Sum | AggregateFunction::Count => Some(Aggregation::Sum),
            AggregateFunction::Min => Some(Aggregation::Min),
            AggregateFunction::Max => Some(Aggregation::Max),
            _ => None,
        }
    }

    /// Fetches the values of a query grouped by the columns of a filter that lists values, and combines the values of the allowed
    /// groups. Returns `None` if the context has no such filter.
    fn folded(
        &self,
        item: &Item,
        aggregation: Aggregation,
        facts: &[CubeId],
        context: &FilterContext,
        pins: &[Pin],
        place: Place,
    ) -> Result<Option<Datum>> {
        let is_applied = |column: &DimensionId| facts.iter().all(|fact| applies(self.model, *column, *fact));
        let is_list =
            |filter: &super::context::Restriction| filter.lists_values() && filter.columns.iter().all(is_applied);
        let Some(at) = context.filters.filters.iter().position(|filter| is_list(filter)) else { return Ok(None) };
        let mut others = context.filters.filters.clone();
        let list = others.remove(at);
        let others = self.filter_list(others);
        let (mut keys, values) = split(pins);
        let rows = match &list.allowed {
            Allowed::Rows(rows) => rows,
            Allowed::Dates { first, last } => {
                let range = DateRange { column: list.columns[0], first, last };
                let value = self.value_in_range(item, aggregation, &range, (keys, &values), (facts, &others), place)?;
                return Ok(Some(value));
            }
            Allowed::Condition(_) => return Ok(None),
        };
        keys.extend(&list.columns);
        let index = self.index(item.clone(), keys, facts, &others, place)?;
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let key = [&values[..], row].concat();
            found.extend(index.rows_of(&key).iter().map(|row| row[0].clone()));
        }
        fold(aggregation, found.iter(), place).map(Some)
    }

    /// Returns these columns of all rows that a table has in a filter context.
    pub(super) fn rows_of(
        &self,
        table: CubeId,
        columns: &[DimensionId],
        context: &FilterContext,
        place: Place,
    ) -> Result<Vec<Vec<Datum>>> {
        let columns = self.some_column(table, columns, place)?;
        self.items_of(Item::Rows(table, columns), table, context, place)
    }

    /// Returns the rows of a query for `item`, under the filters and the pins of a context.
    fn items_of(&self, item: Item, table: CubeId, context: &FilterContext, place: Place) -> Result<Vec<Vec<Datum>>> {
        let item = self.item_along_relationships(item, table, context, place)?;
        let context = self.along_relationships(context, &[table], place)?;
        let context = &*context;
        let pins = self.pins_of(&[table], context, place)?;
        let (keys, values) = split(&pins);
        let index = self.index(item, keys, &[table], &context.filters, place)?;
        Ok(index.rows_of(&values).to_vec())
    }

    /// Returns the given columns. If there are none, returns one column of the table, because a query without columns
    /// returns no rows.
    fn some_column(&self, table: CubeId, columns: &[DimensionId], place: Place) -> Result<Vec<DimensionId>> {
        if !columns.is_empty() {
            return Ok(columns.to_vec());
        }
        let cube = self.model.cube(table);
        let all = cube.primary_key.iter().copied().chain(0..cube.dimensions.len() as u32);
        let mut ids = all.map(|index| DimensionId { cube: table, index });
        let found = ids.find(|id| self.names_and_sees(*id));
        found.map(|id| vec![id]).ok_or_else(|| not_supported("a table without columns", place))
    }

    /// Returns the combinations of values that columns have in the rows of a table.
    pub(super) fn distinct_of(
        &self,
        table: CubeId,
        columns: &[DimensionId],
        context: &FilterContext,
        place: Place,
    ) -> Result<Vec<Vec<Datum>>> {
        self.items_of(Item::Distinct(table, columns.to_vec()), table, context, place)
    }

    /// Returns the combinations of values that columns of one table have. The blank row is added if `has_unmatched` is
    /// true and rows of other tables lack a partner in the table.
    pub(super) fn values_of(
        &self,
        columns: &[DimensionId],
        has_unmatched: bool,
        context: &FilterContext,
        place: Place,
    ) -> Result<Vec<Vec<Datum>>> {
        let Some(table) = columns.first().map(|column| column.cube) else { return Ok(Vec::new()) };
        let found = self.distinct_of(table, columns, context, place);
        let is_unmatched = if has_unmatched { self.has_unmatched(table, context, place) } else { Ok(false) };
        let (mut found, is_unmatched) = (found?, is_unmatched?);
        let blank = vec![Datum::Blank; columns.len()];
        if is_unmatched && !found.contains(&blank) {
            found.push(blank);
        }
        Ok(found)
    }

    /// Returns whether rows of other tables lack a partner in a table, and the filters allow the table's blank row.
    pub(super) fn has_unmatched(&self, table: CubeId, context: &FilterContext, place: Place) -> Result<bool> {
        let facts = self.tables_that_can_miss(table);
        let mut is_unmatched = false;
        for found in super::collected(facts.into_iter().map(|from| self.lacks_partners(from, table, context, place)))? {
            is_unmatched |= found;
        }
        Ok(is_unmatched)
    }

    /// Returns whether rows of other tables may lack a partner in a table.
    pub(super) fn can_lack_partners(&self, table: CubeId) -> bool {
        !self.tables_that_can_miss(table).is_empty()
    }

    fn tables_that_can_miss(&self, table: CubeId) -> Vec<CubeId> {
        let leads_here = |from: CubeId| from != table && self.model.join_paths(from).is_to_one(table);
        let can_miss = |from: &CubeId| leads_here(*from) && self.can_miss(*from, table);
        self.model.cubes.iter().map(|cube| cube.id).filter(can_miss).collect()
    }

    fn can_miss(&self, from: CubeId, table: CubeId) -> bool {
        let cube = self.model.cube(from);
        may_lack_partners(self.model, table) && cube.public && !self.access.is_closed(cube)
    }

    fn lacks_partners(&self, from: CubeId, table: CubeId, context: &FilterContext, place: Place) -> Result<bool> {
        // The blank row is restricted only by filters on the table and on the tables that it reaches on the one side.
        let reaches = |column: DimensionId| applies(self.model, column, table);
        let mut filters = Vec::new();
        for filter in &context.filters.filters {
            match filter.only(&reaches) {
                Ok(part) => filters.extend(part),
                Err(_) => return Err(not_supported("a filter of tables that do not all apply", place)),
            }
        }
        if context.pins.iter().any(|pin| reaches(pin.column) && !pin.value.is_blank()) {
            return Ok(false);
        }
        if !self.allows_blank_row(table, context, place)? {
            return Ok(false);
        }
        let filters = self.filter_list(filters);
        let index = self.index(Item::Unmatched { from, table }, Vec::new(), &[from], &filters, place)?;
        Ok(!index.rows_of(&[]).is_empty())
    }

    /// Returns an aggregate of a column in a filter context.
    pub(super) fn aggregate(
        &self,
        aggregation: Aggregation,
        column: DimensionId,
        context: &FilterContext,
        place: Place,
    ) -> Result<Datum> {
        if let Some(measure) = self.matching_measure(aggregation, column) {
            return self.model_measure(measure, context, place);
        }
        if let Some(value) = self.computed_aggregate(aggregation, column, context, place)? {
            return Ok(value);
        }
        let rows = match aggregation {
            Aggregation::Min | Aggregation::Max | Aggregation::DistinctCount | Aggregation::DistinctCountNoBlank => {
                self.distinct_of(column.cube, &[column], context, place)?
            }
            _ => match self.counted_values(aggregation, column, context, place)? {
                Some(rows) => return fold_counted(aggregation, &rows, place),
                None => self.rows_of(column.cube, &[column], context, place)?,
            },
        };
        fold(aggregation, rows.iter().map(|row| &row[0]), place)
    }

    /// Returns each value of a column with the number of rows that have it. The column is selected as a group, so the
    /// policies on its rows apply. Returns `None` if no measure counts the rows, or if the aggregate needs the rows one
    /// by one, as for dates.
    fn counted_values(
        &self,
        aggregation: Aggregation,
        column: DimensionId,
        context: &FilterContext,
        place: Place,
    ) -> Result<Option<Vec<Vec<Datum>>>> {
        let adds = matches!(aggregation, Aggregation::Sum | Aggregation::Average);
        if adds && !Type::of_dimension(self.model.dimension(column)).is_number() {
            return Ok(None);
        }
        let Some(measure) = self.count_of_rows(column.cube) else { return Ok(None) };
        let item = Item::Measured { table: column.cube, column, measure };
        self.items_of(item, column.cube, context, place).map(Some)
    }

    /// Returns the measure of the model that aggregates a column in the same way, if the caller may use it.
    fn matching_measure(&self, aggregation: Aggregation, column: DimensionId) -> Option<MeasureSource> {
        let function = match aggregation {
            Aggregation::Sum => AggregateFunction::Sum,
            Aggregation::Average => AggregateFunction::Avg,
            Aggregation::Min => AggregateFunction::Min,
            Aggregation::Max => AggregateFunction::Max,
            _ => return None,
        };
        let sql = &self.model.dimension(column).sql;
        self.measure_with(column.cube, |aggregate| {
            aggregate.function == function && aggregate.argument.as_ref() == Some(sql)
        })
    }

    /// Returns the measure that counts the rows of a table.
    pub(super) fn count_of_rows(&self, table: CubeId) -> Option<MeasureSource> {
        self.measure_with(table, |aggregate| {
            aggregate.function == AggregateFunction::Count && aggregate.argument.is_none()
        })
    }

    fn measure_with(
        &self,
        table: CubeId,
        is_it: impl Fn(&terrane_compiler::model::Aggregate) -> bool,
    ) -> Option<MeasureSource> {
        let measures = (0_u32..).zip(&self.model.cube(table).measures);
        let mut matching = measures.filter(|(_, measure)| match &measure.kind {
            MeasureKind::Aggregate(aggregate) => aggregate.filters.is_empty() && is_it(aggregate),
            _ => false,
        });
        let ids = matching.by_ref().map(|(index, _)| terrane_compiler::model::MeasureId { cube: table, index });
        let mut usable = ids.filter(|id| self.access.can_name(Member::Measure(*id)));
        usable.next().map(MeasureSource::Model)
    }
}

/// Returns the columns and the values of pins.
fn split(pins: &[Pin]) -> (Vec<DimensionId>, Vec<Datum>) {
    let mut seen = HashSet::new();
    pins.iter().filter(|pin| seen.insert(pin.column)).map(|pin| (pin.column, pin.value.clone())).unzip()
}
