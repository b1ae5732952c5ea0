//! Semantic queries for measures and rows in a filter context.
//!
//! In: a measure or a table, and its filters. Out: an index of the query's rows by the values of the pinned columns. A
//! filter applies to a table only if its columns are in that table or on the one side of the table's joins.

use std::rc::Rc;
use std::sync::Arc;

use terrane_compiler::model::{CubeId, DimensionId, Member};
use terrane_compiler::query::{Filter, SemanticQuery};
use terrane_compiler::types::Operator;

use super::context::{Allowed, FilterContext, FilterList, Inseparable, Pin, Restriction};
use super::data::Index;
use super::{Datum, Evaluator, Halt, Result, not_supported};
use crate::bound::{MeasureSource, column_text};
use crate::place::Place;
use crate::plan::{applies, column_ref, value_ref};
use crate::print::{Bracketed, TableName};

/// The largest number of values in one list of a filter. Longer lists are split.
const MAX_LIST: usize = 10_000;
/// The largest number of combinations of several columns that a filter lists.
const MAX_COMBINATIONS: usize = 1_000;

/// The contents of a semantic query.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Item {
    Measure(MeasureSource),
    /// Every row of a table, with these columns.
    Rows(CubeId, Vec<DimensionId>),
    /// The combinations of values that these columns have in the rows of a table.
    Distinct(CubeId, Vec<DimensionId>),
    /// Each value that a column has in the rows of a table, with a measure of the rows that have this value.
    Measured {
        table: CubeId,
        column: DimensionId,
        measure: MeasureSource,
    },
    /// Each date of a column, with the measure or the computed value of the rows that have this date.
    Each {
        column: DimensionId,
        of: Box<Item>,
    },
    /// An aggregate of a value that the warehouse computes for each row, by its number.
    Computed(usize),
    /// The rows of `from` that have no partner in `table`.
    Unmatched {
        from: CubeId,
        table: CubeId,
    },
}

impl Item {
    /// Returns the item whose values are fetched for each value of a column.
    pub(super) fn value(&self) -> &Item {
        match self {
            Item::Each { of, .. } => of.value(),
            other => other,
        }
    }
}

impl<'q> Evaluator<'q> {
    /// Returns a list of filters with its number. Equal lists have the same number.
    pub(super) fn filter_list(&self, filters: Vec<Rc<Restriction>>) -> Rc<FilterList> {
        let text = format!("{filters:?}");
        let mut lists = self.filter_lists.borrow_mut();
        let next = lists.len() as u32;
        let length = text.len();
        let id = *lists.entry(text).or_insert(next);
        // This memory is added without a check. If it exceeds the limit, the next check fails.
        if id == next {
            self.held.set(self.held.get().saturating_add(length));
        }
        Rc::new(FilterList { id, filters })
    }

    /// Returns the pins that apply to the rows of all these tables. Pins that apply to none of the tables are left out.
    /// A pin that applies to only some of them is refused.
    pub(super) fn pins_of(&self, facts: &[CubeId], context: &FilterContext, place: Place) -> Result<Vec<Pin>> {
        let (mut pins, mut unrelated) = (Vec::new(), Vec::new());
        for pin in context.pins.iter() {
            let applying = facts.iter().filter(|fact| applies(self.model, pin.column, **fact)).count();
            match applying {
                0 => unrelated.push(pin),
                all if all == facts.len() => pins.push(pin.clone()),
                _ => return Err(not_supported("a filter that reaches some tables of a measure only", place)),
            }
        }
        let expanded = if unrelated.is_empty() { Vec::new() } else { self.expanded_pins(facts, context, place)? };
        let reaches = |pin: &Pin| {
            let from = pin.expansion.map(|one| self.model.join_paths(one.table));
            from.is_some_and(|from| expanded.iter().any(|other| from.is_to_one(other.column.cube)))
        };
        unrelated.iter().filter(|pin| !reaches(pin)).for_each(|pin| self.warn_unrelated(pin.column));
        let is_new = |pin: &Pin| !pins.iter().any(|other: &Pin| other.column == pin.column);
        let expanded: Vec<Pin> = expanded.iter().filter(|pin| is_new(pin)).cloned().collect();
        pins.extend(expanded);
        Ok(pins)
    }

    /// Warns of filters that have no effect on a measure, or on an aggregate of a column.
    fn warn_ineffective(&self, item: &Item, facts: &[CubeId], filters: &FilterList, place: Place) -> Result<()> {
        let of = match item {
            Item::Measured { column, .. } => column_text(self.model, *column).to_string(),
            Item::Each { of, .. } => return self.warn_ineffective(of, facts, filters, place),
            Item::Measure(MeasureSource::Model(id)) => {
                let (table, name) = (&self.model.cube(id.cube).name, &self.model.measure(*id).name);
                format!("{}{}", TableName(table), Bracketed(name))
            }
            Item::Measure(MeasureSource::Metric(id)) => Bracketed(&self.model.metric(*id).name).to_string(),
            Item::Computed(number) => match self.column_of(*number) {
                Some(column) => column_text(self.model, column).to_string(),
                None => return Ok(()),
            },
            _ => return Ok(()),
        };
        for restriction in &filters.filters {
            let applies = |column: DimensionId| facts.iter().any(|fact| applies(self.model, column, *fact));
            if restriction.overlaps(&applies) || self.is_expanded_to(restriction, facts, place)? {
                continue;
            }
            let columns: Vec<String> = self.shown_in_warning(restriction);
            self.warn(format!("the filter of {} does not reach {of}, which ignores it", columns.join(", ")));
        }
        Ok(())
    }

    /// Returns the names of a filter's columns in a warning: the table, for a filter by rows of a table.
    fn shown_in_warning(&self, restriction: &Restriction) -> Vec<String> {
        match restriction.rows_of {
            Some(table) => vec![TableName(&self.model.cube(table).name).to_string()],
            None => restriction.columns.iter().map(|column| column_text(self.model, *column).to_string()).collect(),
        }
    }

    fn warn_unrelated(&self, column: DimensionId) {
        let name = column_text(self.model, column);
        self.warn(format!("{name} does not filter every measure: some values repeat"));
    }

    /// Returns the rows of a query, grouped by the values of the pinned columns. If they were not fetched yet, records
    /// the query as missing.
    pub(super) fn index(
        &self,
        item: Item,
        keys: Vec<DimensionId>,
        facts: &[CubeId],
        filters: &FilterList,
        place: Place,
    ) -> Result<Rc<Index>> {
        let key = (item, keys, filters.id);
        if let Some(found) = self.indexes.borrow().get(&key) {
            return Ok(Rc::clone(found));
        }
        let (query, layout) = self.semantic_query(&key.0, &key.1, facts, filters, place)?;
        self.warn_ineffective(&key.0, facts, filters, place)?;
        let index = match self.data.rows(&query) {
            Some(rows) => Index::new(rows, &layout, key.1.len()),
            None => match self.combined_rows(&key.0, &query, place)? {
                Some(rows) => Index::new(&rows, &layout, key.1.len()),
                None => {
                    self.request(&key.0, facts, query);
                    return Err(Halt::Missing);
                }
            },
        };
        self.indexes.borrow_mut().insert(key, Rc::clone(&index));
        Ok(index)
    }

    /// Returns a query, and the layout of its rows: the indexes of the key columns, then those of the contents.
    fn semantic_query(
        &self,
        item: &Item,
        keys: &[DimensionId],
        facts: &[CubeId],
        filters: &FilterList,
        place: Place,
    ) -> Result<(SemanticQuery, Vec<usize>)> {
        let own: Vec<DimensionId> = match item {
            Item::Rows(_, columns) | Item::Distinct(_, columns) => columns.clone(),
            Item::Measure(_) | Item::Computed(_) => Vec::new(),
            Item::Measured { column, .. } | Item::Each { column, .. } => vec![*column],
            Item::Unmatched { table, .. } => vec![self.shown_column(*table, place)?],
        };
        let mut dimensions: Vec<DimensionId> = Vec::new();
        for column in keys.iter().chain(&own) {
            if !dimensions.contains(column) {
                dimensions.push(*column);
            }
        }
        let position = |column: &DimensionId| dimensions.iter().position(|other| other == column).unwrap_or_default();
        let mut layout: Vec<usize> = keys.iter().chain(&own).map(position).collect();
        let mut query = SemanticQuery { skip_total: true, ..SemanticQuery::default() };
        match item.value() {
            Item::Measure(source) | Item::Measured { measure: source, .. } => {
                layout.push(dimensions.len());
                query.values = vec![value_ref(self.model, *source).ok_or_else(|| name_with_dot(place))?];
            }
            Item::Computed(number) => {
                layout.push(dimensions.len());
                query.computed = vec![(*self.row_aggregates.borrow()[*number]).clone()];
            }
            Item::Rows(cube, _) | Item::Distinct(cube, _) | Item::Unmatched { from: cube, .. } => {
                query.cube = Some(Arc::clone(&self.model.cube(*cube).name));
                query.ungrouped = matches!(item, Item::Rows(..));
            }
            Item::Each { .. } => {}
        }
        let references = dimensions.iter().map(|column| column_ref(self.model, *column)).collect::<Option<Vec<_>>>();
        query.dimensions = references.ok_or_else(|| name_with_dot(place))?;
        query.filters = self.row_filters(facts, filters, place)?;
        if let Item::Unmatched { table, .. } = item {
            query.filters.push(self.no_row(*table, place)?);
        }
        Ok((query, layout))
    }

    /// Returns the condition that a row has no partner in a table. The condition reads no member, so the caller needs
    /// no right to see the key.
    pub(super) fn no_row(&self, table: CubeId, place: Place) -> Result<Filter> {
        let cube = self.model.cube(table);
        if cube.primary_key.is_empty() {
            return Err(not_supported("the blank row of a table without a primary key", place));
        }
        Ok(Filter::NoRow { cube: Arc::clone(&cube.name) })
    }

    /// Returns a column that the caller may see. Columns of the key are tried first.
    fn shown_column(&self, table: CubeId, place: Place) -> Result<DimensionId> {
        let cube = self.model.cube(table);
        let all = cube.primary_key.iter().copied().chain(0..cube.dimensions.len() as u32);
        let mut ids = all.map(|index| DimensionId { cube: table, index });
        let found = ids.find(|id| self.names_and_sees(*id));
        found.ok_or_else(|| not_supported("the blank row of a table without visible columns", place))
    }

    /// Returns whether a query of the caller may select a column.
    pub(super) fn names_and_sees(&self, id: DimensionId) -> bool {
        let member = Member::Dimension(id);
        self.access.can_name(member) && self.access.offers(member)
    }

    /// Returns those filters that apply to the rows of the aggregated tables, as filters of a semantic query.
    fn row_filters(&self, facts: &[CubeId], filters: &FilterList, place: Place) -> Result<Vec<Filter>> {
        let mut all = Vec::new();
        for restriction in &filters.filters {
            let applies_to = |column: DimensionId, fact: CubeId| applies(self.model, column, fact);
            let is_applied = |column: DimensionId| facts.iter().all(|fact| applies_to(column, *fact));
            let is_mixed =
                |column: &DimensionId| !is_applied(*column) && facts.iter().any(|fact| applies_to(*column, *fact));
            if restriction.columns.iter().any(is_mixed) {
                return Err(not_supported("a filter that reaches some tables of a measure only", place));
            }
            match restriction.only(&is_applied) {
                Ok(Some(part)) => all.push(self.row_filter(&part, place)?),
                Ok(None) => {}
                Err(Inseparable) => return Err(not_supported("a filter of tables that do not all apply", place)),
            }
            all.extend(self.expanded_filters(restriction, facts, place)?);
        }
        Ok(all)
    }

    fn row_filter(&self, restriction: &Restriction, place: Place) -> Result<Filter> {
        match &restriction.allowed {
            Allowed::Condition(filter) => Ok(filter.clone()),
            Allowed::Rows(rows) => self.one_of(&restriction.columns, rows, place),
            Allowed::Dates { first, last } => {
                let bound =
                    |operator, date: &Datum| self.test(restriction.columns[0], operator, vec![date.clone()], place);
                Ok(Filter::And(vec![bound(Operator::Gte, first)?, bound(Operator::Lte, last)?]))
            }
        }
    }

    pub(super) fn test(
        &self,
        column: DimensionId,
        operator: Operator,
        values: Vec<Datum>,
        place: Place,
    ) -> Result<Filter> {
        let member = column_ref(self.model, column).ok_or_else(|| name_with_dot(place))?;
        let values = values.iter().map(Datum::to_value).collect::<Option<Vec<_>>>();
        let values = values.ok_or_else(|| not_supported("a filter by an infinite number", place))?;
        Ok(Filter::Condition { member, operator, values })
    }

    /// Returns the filter that columns have one of these combinations of values.
    pub(super) fn one_of(&self, columns: &[DimensionId], rows: &[Vec<Datum>], place: Place) -> Result<Filter> {
        let list = |values: &[Datum]| self.test(columns[0], Operator::InList, values.to_vec(), place);
        if let [_] = columns {
            let values: Vec<Datum> = rows.iter().map(|row| row[0].clone()).collect();
            if values.len() <= MAX_LIST {
                return list(&values);
            }
            return values.chunks(MAX_LIST).map(list).collect::<Result<Vec<Filter>>>().map(Filter::Or);
        }
        if rows.len() > MAX_COMBINATIONS {
            return Err(not_supported("a filter by so many combinations of values", place));
        }
        let row = |row: &Vec<Datum>| {
            let equal = columns.iter().zip(row);
            let equal = equal.map(|(column, value)| self.test(*column, Operator::InList, vec![value.clone()], place));
            equal.collect::<Result<Vec<Filter>>>().map(Filter::And)
        };
        match rows {
            [] => list(&[]),
            rows => rows.iter().map(row).collect::<Result<Vec<Filter>>>().map(Filter::Or),
        }
    }
}

fn name_with_dot(place: Place) -> Halt {
    not_supported("a name with a dot", place)
}
