//! Filter contexts of CALCULATE: rows that become filters, modifiers, and filters that replace others.
//!
//! In: the filters of a call, and its environment. Out: the environment of its expression. This is one file, because
//! the code that adds a kind of filter and the code that removes it must agree.

use std::rc::Rc;

use terrane_compiler::model::{CubeId, DimensionId};

use super::context::{Allowed, Expansion, FilterContext, FilterList, Inseparable, Pin, Restriction, distinct};
use super::environment::{Environment, Frame};
use super::rows::Rows;
use super::walk::{Need, Node};
use super::{Datum, Evaluator, Result, collected, not_supported};
use crate::bound::{
    AllOf, BoundExpression, Filter, FilterKind, MeasureSource, Relationship, Scalar, ScalarKind, Table, TableColumn,
    TableKind, VariableId, column_text,
};
use crate::functions::{Function, Operation};
use crate::place::Place;
use crate::plan::{applies, calendar_of, condition_filter, is_on_one_side};

/// A new filter, and the outer filters that it replaces.
struct NewFilter {
    restriction: Restriction,
    replaced: Replaced,
    place: Place,
}

/// The outer filters that a new filter replaces.
#[derive(Debug, Clone, Copy)]
enum Replaced {
    Nothing,
    /// The filters on the columns of the new filter.
    Columns,
    /// The filters on a table and on all tables that it reaches on the one side, because a row of the table determines
    /// the rows of those tables.
    Table(CubeId),
    /// The filters on a table of dates, because each of its columns depends on the date.
    Calendar(CubeId),
}

/// The properties of a call of CALCULATE that determine the evaluation of its filters.
struct Surroundings {
    /// The pins into which the call turns the current rows. The filters of the call are evaluated without them.
    fresh: Vec<Pin>,
    /// True if the filters around the call remain in effect: no other filter of the call replaces or removes them, and
    /// the call's expression does not change them.
    is_stable: bool,
}

impl<'q> Evaluator<'q> {
    /// Returns the environment in which the visible rows are turned into filters.
    pub(super) fn transitioned(&self, environment: &Environment, place: Place) -> Result<Environment> {
        let mut context = environment.context.clone();
        for frame in environment.visible_frames() {
            context = self.with_row(&context, frame, place)?;
        }
        Ok(environment.with_context(context).without_rows())
    }

    /// Returns a context in which a row is turned into filters. They replace the filters of the row's columns,
    /// including those of outer rows. A row of a table replaces the filters of the table and of the tables on its one
    /// side.
    fn with_row(&self, context: &FilterContext, frame: &Frame, place: Place) -> Result<FilterContext> {
        let own = self.pins_of_row(frame, place)?;
        if self.is_group(frame, &own, context) {
            return Ok(context.clone());
        }
        let tables = frame.table.expansion.iter().filter(|one| one.is_whole).map(|one| one.table);
        let unseen: Vec<CubeId> = tables.filter(|table| !self.is_seen(&frame.table, *table, context)).collect();
        self.refuse_unknown_row(&unseen, context, place)?;
        let is_replaced = |column: DimensionId| {
            own.iter().any(|pin| pin.column == column) || unseen.iter().any(|table| applies(self.model, column, *table))
        };
        // The key of a table determines all its columns.
        let is_of_key = |column: DimensionId| own.iter().any(|pin| pin.row_of == Some(column.cube));
        let is_pin_replaced = |column: DimensionId| is_replaced(column) || is_of_key(column);
        let spread = self.spread(context, &is_pin_replaced, place)?;
        let mut inner = self.without(&spread, &is_replaced, place)?;
        let outer = inner.pins.iter().filter(|pin| !is_of_key(pin.column));
        inner.pins = outer.chain(&own).cloned().collect();
        Ok(inner)
    }

    /// Returns whether a row is a group of SUMMARIZE under the filters of the group. The rows of the summarized table
    /// are one of these filters, and have the values of the group, so the row replaces none of them.
    fn is_group(&self, frame: &Frame, own: &[Pin], context: &FilterContext) -> bool {
        let Some(seen) = frame.table.seen.as_ref().filter(|_| frame.table.expansion.is_empty()) else { return false };
        seen.filters.id == context.filters.id
            && seen.relationships == context.relationships
            && own.iter().all(|pin| context.pins.contains(pin))
    }

    /// Returns the pins that stand for a row. If the caller sees the unmasked key of the table, only the key has pins,
    /// because it determines all columns of the row. Otherwise each column that the caller sees has a pin.
    fn pins_of_row(&self, frame: &Frame, place: Place) -> Result<Vec<Pin>> {
        let table = &frame.table;
        let key: Vec<DimensionId> = match table.rows_of {
            Some(cube) => self.key_columns(cube, table),
            None => Vec::new(),
        };
        let row_of = table.rows_of.filter(|cube| !self.model.cube(*cube).primary_key.is_empty());
        let mut pins = Vec::new();
        for (at, column) in table.columns.iter().enumerate() {
            let Some(id) = column.lineage else { continue };
            let is_of_row = row_of == Some(id.cube);
            if is_of_row && !key.is_empty() && !key.contains(&id) {
                continue;
            }
            if !table.has(at as u32) {
                return Err(not_supported("a filter by this row", place));
            }
            pins.push(Pin {
                column: id,
                value: frame.row[at].clone(),
                row_of: row_of.filter(|_| is_of_row),
                expansion: table.expansion.iter().find(|one| one.table == id.cube).copied(),
            });
        }
        Ok(pins)
    }

    /// Returns the columns that are the whole key of a table, or nothing if the caller does not see the unmasked key.
    /// For such a caller, rows that are equal in all visible columns count as one row.
    pub(super) fn key_columns(&self, cube: CubeId, table: &Rows) -> Vec<DimensionId> {
        let key = self.model.cube(cube).primary_key.iter();
        let key: Vec<DimensionId> = key.map(|index| DimensionId { cube, index: *index }).collect();
        let has = |id: &DimensionId| {
            self.access.mask(*id).is_none() && table.columns.iter().any(|column| column.lineage == Some(*id))
        };
        if key.iter().all(has) { key } else { Vec::new() }
    }

    /// Returns whether the caller sees all columns of a table's key without a mask.
    pub(super) fn has_visible_key(&self, cube: CubeId) -> bool {
        let mut key = self.model.cube(cube).primary_key.iter().map(|index| DimensionId { cube, index: *index });
        key.all(|id| self.names_and_sees(id) && self.access.mask(id).is_none())
    }

    /// Returns the environment in which the expression of CALCULATE or CALCULATETABLE is evaluated.
    pub(super) fn calculated(
        &self,
        expression: Node<'q>,
        filters: &'q [Filter],
        has_transition: bool,
        environment: &Environment,
        place: Place,
    ) -> Result<Environment> {
        let outer =
            if has_transition { self.transitioned(environment, place)? } else { environment.clone().without_rows() };
        let fresh = outer.context.pins.iter().filter(|pin| !environment.context.pins.contains(pin)).cloned().collect();
        let is_stable = self.is_stable(filters, environment) && self.retains_filters(expression);
        let surroundings = Surroundings { fresh, is_stable };
        let mut context = outer.context.clone();
        for filter in filters {
            if let FilterKind::Remove { function, of } = &filter.kind {
                context = self.removed(&context, function, of, environment.selected.as_deref(), filter.place)?;
            }
        }
        let used = filters.iter().filter_map(|filter| match filter.kind {
            FilterKind::UseRelationship(relationship) => Some(relationship),
            _ => None,
        });
        // If several calls choose a join to the same table, filters follow the join of the innermost call.
        let used: Vec<Relationship> = used.collect();
        if !used.is_empty() {
            let outer = context.relationships.iter().filter(|other| used.iter().all(|own| own.table != other.table));
            context.relationships = outer.chain(&used).copied().collect();
        }
        let mut new = self.new_filters(filters, environment, &surroundings)?;
        for (filter, new) in filters.iter().filter(|filter| filter.is_new()).zip(&mut new) {
            self.replace_calendar(filter, new, &context);
        }
        self.with_filters(&context, new).map(|context| outer.with_context(context))
    }

    /// Returns whether no filter of the call replaces or removes a filter around the call.
    fn is_stable(&self, filters: &[Filter], environment: &Environment) -> bool {
        let context = &environment.context;
        let is_filtered = |column: &DimensionId| {
            let calendar = calendar_of(self.model, &[*column]);
            let is_it = |other: DimensionId| other == *column || calendar == Some(other.cube);
            context.pins.iter().any(|pin| is_it(pin.column))
                || context.filters.filters.iter().any(|filter| filter.overlaps(&is_it))
        };
        let adds = |filter: &Filter| match &filter.kind {
            _ if filter.keeps => true,
            FilterKind::Condition { columns, .. } => !columns.iter().any(is_filtered),
            FilterKind::Table(_) => filters.len() == 1,
            FilterKind::Remove { .. } => false,
            FilterKind::UseRelationship(_) => true,
        };
        filters.iter().all(adds)
    }

    /// Returns whether all parts of an expression are evaluated under exactly the filters around the expression.
    pub(super) fn retains_filters(&self, node: Node<'q>) -> bool {
        let address = node.address();
        if let Some(found) = self.retains.borrow().get(&address) {
            return *found;
        }
        let retains = stacker::maybe_grow(64 * 1024, 1024 * 1024, || self.finds_retained_filters(node));
        self.retains.borrow_mut().insert(address, retains);
        retains
    }

    fn finds_retained_filters(&self, node: Node<'q>) -> bool {
        let retains = match node {
            Node::Scalar(scalar) => match &scalar.kind {
                ScalarKind::Calculate { .. } => false,
                ScalarKind::Block { variables, .. } => self.variables_retain_filters(variables),
                ScalarKind::Measure(call) => {
                    !call.has_transition
                        && match call.source {
                            MeasureSource::Query(id) => {
                                let expression = &self.query.measures[id.0 as usize].expression;
                                stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
                                    self.retains_filters(Node::Scalar(expression))
                                })
                            }
                            MeasureSource::Model(_) | MeasureSource::Metric(_) => true,
                        }
                }
                _ => true,
            },
            Node::Table(table) => match &table.kind {
                TableKind::Calculate { .. } | TableKind::SummarizeColumns { .. } | TableKind::Related { .. } => false,
                TableKind::Dates { dates, .. } => dates.is_some(),
                TableKind::Block { variables, .. } => self.variables_retain_filters(variables),
                _ => true,
            },
        };
        let mut all = retains;
        stacker::maybe_grow(64 * 1024, 1024 * 1024, || {
            super::walk::parts(node, &mut |part| all = all && self.retains_filters(part));
        });
        all
    }

    fn variables_retain_filters(&self, variables: &[VariableId]) -> bool {
        variables.iter().all(|id| match &self.query.variables[id.0 as usize].value {
            BoundExpression::Scalar(scalar) => self.retains_filters(Node::Scalar(scalar)),
            BoundExpression::Table(table) => self.retains_filters(Node::Table(table)),
        })
    }

    /// Adds filters to a context, after removing the filters that they replace.
    fn with_filters(&self, context: &FilterContext, new: Vec<NewFilter>) -> Result<FilterContext> {
        let mut inner = context.clone();
        for NewFilter { restriction, replaced, place } in &new {
            inner = match replaced {
                Replaced::Nothing => inner,
                Replaced::Columns => {
                    let is_removed = |column: DimensionId| restriction.columns.contains(&column);
                    let spread = self.spread(&inner, &is_removed, *place)?;
                    self.refuse_parts_of_rows(&spread, &AllOf::Columns(restriction.columns.clone()), *place)?;
                    self.without(&spread, &is_removed, *place)?
                }
                Replaced::Calendar(table) => self.without(&inner, &|column| column.cube == *table, *place)?,
                Replaced::Table(table) => {
                    self.without(&inner, &|column| applies(self.model, column, *table), *place)?
                }
            };
        }
        let mut filters = inner.filters.filters.clone();
        for NewFilter { restriction, .. } in new {
            if !filters.iter().any(|other| **other == restriction) {
                filters.push(Rc::new(restriction));
            }
        }
        Ok(FilterContext { filters: self.filter_list(filters), ..inner })
    }

    /// Adds the filters of SUMMARIZECOLUMNS.
    pub(super) fn filtered_context(&self, filters: &'q [Filter], environment: &Environment) -> Result<FilterContext> {
        let surroundings = Surroundings { fresh: Vec::new(), is_stable: self.is_stable(filters, environment) };
        self.with_filters(&environment.context, self.new_filters(filters, environment, &surroundings)?)
    }

    /// Returns the context of an environment with the rows of a table as a filter. `is_stable` is true if no expression
    /// under the filter changes the filters around it.
    pub(super) fn filtered_by_rows(
        &self,
        table: &'q Table,
        is_stable: bool,
        environment: &Environment,
    ) -> Result<FilterContext> {
        let surroundings = Surroundings { fresh: Vec::new(), is_stable };
        let new = self.table_filter(table, environment, &surroundings, table.place)?;
        self.with_filters(&environment.context, vec![new])
    }

    /// Returns the table of the model from which the rows of a table expression come.
    pub(super) fn table_of_rows(&self, table: &Table) -> Option<CubeId> {
        self.source_table(table).map(SourceTable::cube)
    }

    // Tables of dates

    /// Lets a filter of the key of a table of dates replace the filters of all columns of that table.
    fn replace_calendar(&self, filter: &Filter, new: &mut NewFilter, context: &FilterContext) {
        if !matches!(new.replaced, Replaced::Columns) {
            return;
        }
        if let Some(calendar) = calendar_of(self.model, &new.restriction.columns) {
            new.replaced = Replaced::Calendar(calendar);
            return;
        }
        if let (FilterKind::Table(Table { kind: TableKind::Dates { .. }, .. }), [date]) =
            (&filter.kind, &new.restriction.columns[..])
        {
            self.warn_calendar(*date, context);
        }
    }

    /// Warns that a function of time does not replace the filters of other columns of a table that may be a table of
    /// dates.
    fn warn_calendar(&self, date: DimensionId, context: &FilterContext) {
        let is_other = |column: DimensionId| column.cube == date.cube && column != date;
        let is_filtered = context.pins.iter().any(|pin| is_other(pin.column))
            || context.filters.filters.iter().any(|filter| filter.overlaps(&is_other));
        if is_filtered && is_on_one_side(self.model, date.cube) {
            let name = column_text(self.model, date);
            self.warn(format!(
                "{name} is not the primary key of its table: functions of time do not replace filters of its other columns"
            ));
        }
    }

    // Removing filters

    /// Returns a context without the filters of some columns.
    fn without(
        &self,
        context: &FilterContext,
        is_removed: &dyn Fn(DimensionId) -> bool,
        place: Place,
    ) -> Result<FilterContext> {
        let broken = self.broken_tables(context, is_removed);
        let is_broken = |one: &Expansion| one.is_whole && broken.contains(&one.table);
        let pins = context.pins.iter().filter(|pin| !is_removed(pin.column)).cloned().map(|pin| match pin.expansion {
            Some(one) if is_broken(&one) => Pin { expansion: Some(one.broken()), ..pin },
            _ => pin,
        });
        let pins = pins.collect();
        let is_changed =
            |filter: &Rc<Restriction>| filter.overlaps(is_removed) || filter.expansion.iter().any(is_broken);
        if !context.filters.filters.iter().any(is_changed) {
            return Ok(FilterContext { pins, ..context.clone() });
        }
        let mut filters = Vec::with_capacity(context.filters.filters.len());
        for filter in &context.filters.filters {
            let is_split = filter.overlaps(is_removed) && filter.overlaps(&|column| !is_removed(column));
            if is_split && filter.rows_of.is_some_and(|cube| !self.has_visible_key(cube)) {
                return Err(not_supported("removing the filter of one column of a row", place));
            }
            match filter.without(is_removed) {
                Ok(Some(left)) if left.expansion.iter().any(is_broken) => {
                    let broken = |one: &Expansion| if is_broken(one) { one.broken() } else { *one };
                    let expansion = left.expansion.iter().map(broken).collect();
                    filters.push(Rc::new(Restriction { expansion, ..(*left).clone() }));
                }
                Ok(left) => filters.extend(left),
                Err(Inseparable) => {
                    filters.extend(self.listed(filter, place)?.without(is_removed).unwrap_or_default());
                }
            }
        }
        Ok(FilterContext { filters: self.filter_list(filters), pins, relationships: Rc::clone(&context.relationships) })
    }

    /// Converts a condition over several columns of one table to the list of the combinations of values that meet it.
    /// Unlike a condition, a list can lose a column.
    fn listed(&self, filter: &Rc<Restriction>, place: Place) -> Result<Rc<Restriction>> {
        let context = FilterContext::new(self.filter_list(vec![Rc::clone(filter)]));
        let rows = self.values_of(&filter.columns, true, &context, place)?;
        Ok(Rc::new(Restriction { allowed: Allowed::Rows(distinct(rows)), ..(**filter).clone() }))
    }

    /// Returns the tables whose rows are used as filters, and whose rows on the one side are unknown once the columns
    /// are removed.
    fn broken_tables(&self, context: &FilterContext, is_removed: &dyn Fn(DimensionId) -> bool) -> Vec<CubeId> {
        let of_pins = context.pins.iter().filter_map(|pin| pin.expansion);
        let of_filters = context.filters.filters.iter().flat_map(|filter| filter.expansion.iter().copied());
        let mut broken: Vec<CubeId> = Vec::new();
        for one in of_pins.chain(of_filters).filter(|one| one.is_whole) {
            if !broken.contains(&one.table) && self.breaks(one, is_removed) {
                broken.push(one.table);
            }
        }
        broken
    }

    fn removed(
        &self,
        context: &FilterContext,
        function: &'static Function,
        of: &AllOf,
        selected: Option<&FilterList>,
        place: Place,
    ) -> Result<FilterContext> {
        let is_restored = function.operation == Operation::AllSelected;
        if is_restored && selected.is_none() {
            return Ok(context.clone());
        }
        let reaches = |table: CubeId, column: DimensionId| self.model.join_paths(table).is_to_one(column.cube);
        let is_removed = |column: DimensionId| match of {
            AllOf::Everything => true,
            AllOf::Table(table) => reaches(*table, column),
            AllOf::Columns(columns) => columns.contains(&column),
            AllOf::Except(table, columns) => reaches(*table, column) && !columns.contains(&column),
        };
        let context = self.spread(context, &is_removed, place)?;
        self.refuse_parts_of_rows(&context, of, place)?;
        let inner = self.without(&context, &is_removed, place)?;
        let Some(selected) = selected.filter(|_| is_restored) else { return Ok(inner) };
        let mut filters = inner.filters.filters.clone();
        for filter in selected.filters.iter().filter(|filter| filter.overlaps(&is_removed)) {
            if !filters.contains(filter) {
                filters.push(Rc::clone(filter));
            }
        }
        Ok(FilterContext { filters: self.filter_list(filters), ..inner })
    }

    /// Returns an error if a modifier removes only some columns of a row from a filter by keys, or from a pin of a row
    /// whose key the caller may not see. The columns of such rows cannot be separated.
    fn refuse_parts_of_rows(&self, context: &FilterContext, of: &AllOf, place: Place) -> Result<()> {
        let is_unknown = |pin: &Pin| pin.row_of.is_some_and(|table| !self.has_visible_key(table));
        let columns = match of {
            AllOf::Columns(columns) => columns,
            AllOf::Except(_, columns) => {
                let is_retained = |cube: CubeId| columns.iter().any(|column| column.cube == cube);
                let is_row =
                    context.pins.iter().filter(|pin| is_unknown(pin)).filter_map(|pin| pin.row_of).any(is_retained)
                        || context.filters.filters.iter().filter_map(|filter| filter.rows_of).any(is_retained);
                return if is_row { Err(not_supported("ALLEXCEPT under a filter by rows", place)) } else { Ok(()) };
            }
            AllOf::Everything | AllOf::Table(_) => return Ok(()),
        };
        // A column outside the key can be removed, because the key still determines the row.
        let is_key_of = |cube: CubeId, column: &DimensionId| {
            column.cube == cube && self.model.cube(cube).primary_key.contains(&column.index)
        };
        let holds_rows = |filter: &Rc<Restriction>| {
            filter.rows_of.is_some_and(|cube| columns.iter().any(|column| is_key_of(cube, column)))
        };
        let is_part = |pin: &Pin| is_unknown(pin) && columns.contains(&pin.column);
        if context.pins.iter().any(is_part) || context.filters.filters.iter().any(holds_rows) {
            return Err(not_supported("removing the filter of one column of a row", place));
        }
        Ok(())
    }

    // New filters

    fn new_filters(
        &self,
        filters: &'q [Filter],
        environment: &Environment,
        surroundings: &Surroundings,
    ) -> Result<Vec<NewFilter>> {
        collected(filters.iter().filter_map(|filter| self.new_filter(filter, environment, surroundings).transpose()))
    }

    fn new_filter(
        &self,
        filter: &'q Filter,
        environment: &Environment,
        surroundings: &Surroundings,
    ) -> Result<Option<NewFilter>> {
        let place = filter.place;
        match &filter.kind {
            FilterKind::Remove { .. } | FilterKind::UseRelationship(_) => Ok(None),
            FilterKind::Condition { columns, context, condition } => {
                let restriction = self.condition(columns, *context, condition, environment, place)?;
                let replaced = if filter.keeps { Replaced::Nothing } else { Replaced::Columns };
                Ok(Some(NewFilter { restriction, replaced, place }))
            }
            FilterKind::Table(table) => {
                let NewFilter { restriction, replaced, place } =
                    self.table_filter(table, environment, surroundings, place)?;
                let replaced = if filter.keeps { Replaced::Nothing } else { replaced };
                Ok(Some(NewFilter { restriction, replaced, place }))
            }
        }
    }

    /// Evaluates a logical filter. If the condition is the same for all rows, the result is the condition. Otherwise
    /// the result is the list of the values that meet the condition.
    fn condition(
        &self,
        columns: &[DimensionId],
        context: u32,
        condition: &'q Scalar,
        environment: &Environment,
        place: Place,
    ) -> Result<Restriction> {
        if let Some(filter) = self.fixed_condition(condition, context, columns) {
            return Ok(Restriction::of_columns(columns.to_vec(), Allowed::Condition(filter)));
        }
        let everywhere = self.without(&environment.context, &|_| true, place)?;
        let rows = self.values_of(columns, true, &everywhere, place)?;
        let shown: std::sync::Arc<[TableColumn]> =
            columns.iter().map(|column| TableColumn::of_model(self.model, *column)).collect();
        let table = Rc::new(Rows::new(&shown, rows.into_iter().map(Rc::from).collect()));
        let matching = self.matching(&table, context, &[condition], environment)?;
        let allowed = matching.iter().map(|row| row.to_vec()).collect();
        Ok(Restriction::of_columns(columns.to_vec(), Allowed::Rows(distinct(allowed))))
    }

    /// Returns the rows of a table that meet all conditions.
    pub(super) fn matching(
        &self,
        table: &Rc<Rows>,
        context: u32,
        conditions: &[&'q Scalar],
        environment: &Environment,
    ) -> Result<Vec<Rc<[Datum]>>> {
        let rows = table.rows.iter().map(|row| {
            let inner = environment.in_row(context, table, row);
            for condition in conditions {
                if !self.boolean(condition, &inner)? {
                    return Ok(None);
                }
            }
            Ok(Some(Rc::clone(row)))
        });
        Ok(super::aggregate::collected_early(rows)?.into_iter().flatten().collect())
    }

    fn table_filter(
        &self,
        table: &'q Table,
        environment: &Environment,
        surroundings: &Surroundings,
        place: Place,
    ) -> Result<NewFilter> {
        if let TableKind::TreatAs { table: of, columns } = &table.kind {
            let rows = self.table(of, environment, &Need::All)?;
            let width = columns.len();
            let allowed = Allowed::Rows(distinct(rows.rows.iter().map(|row| row[..width].to_vec()).collect()));
            let restriction = Restriction::of_columns(columns.clone(), allowed);
            return Ok(NewFilter { restriction, replaced: Replaced::Columns, place });
        }
        if let Some(restriction) = self.condition_of_dates(table, environment)? {
            return Ok(NewFilter { restriction, replaced: Replaced::Columns, place });
        }
        if let Some((restriction, replaced)) = self.condition_of_table(table, environment, surroundings, place)? {
            return Ok(NewFilter { restriction, replaced, place });
        }
        let need = self.key_need(table);
        let rows = self.table(table, environment, &need)?;
        let key = rows.rows_of.map(|cube| self.key_columns(cube, &rows)).unwrap_or_default();
        let rows_of = rows.rows_of.filter(|cube| !self.model.cube(*cube).primary_key.is_empty());
        let is_wanted = |id: DimensionId| key.is_empty() || rows_of != Some(id.cube) || key.contains(&id);
        let wanted: Vec<(usize, DimensionId)> = rows
            .columns
            .iter()
            .enumerate()
            .filter_map(|(at, column)| column.lineage.filter(|id| is_wanted(*id)).map(|id| (at, id)))
            .collect();
        if wanted.is_empty() {
            return Err(not_supported("a filter by a table without columns of the model", place));
        }
        if !wanted.iter().all(|(at, _)| rows.has(*at as u32)) {
            return Err(not_supported("a filter by a table whose key was not read", place));
        }
        let is_blank = |row: &Rc<[Datum]>| wanted.iter().all(|(at, _)| row[*at].is_blank());
        if rows_of.is_some() && key.is_empty() && rows.rows.iter().any(is_blank) {
            // Without its key, a row whose visible values are all BLANK looks like the blank row, which does not belong
            // to the table.
            return Err(not_supported("a filter by a row without visible values", place));
        }
        let values = |row: &Rc<[Datum]>| wanted.iter().map(|(at, _)| row[*at].clone()).collect();
        let allowed = Allowed::Rows(distinct(rows.rows.iter().map(values).collect()));
        let columns = wanted.iter().map(|(_, id)| *id).collect();
        let replaced = match self.source_table(table) {
            Some(source) if self.is_fresh(source, surroundings) => Replaced::Table(source.cube()),
            Some(SourceTable::All(cube)) => Replaced::Table(cube),
            // The rows were selected under the filters around the call, so these filters can stay.
            Some(SourceTable::Seen(cube)) if self.is_seen(&rows, cube, &environment.context) => Replaced::Nothing,
            Some(SourceTable::Seen(cube)) => {
                self.refuse_unknown_row(&[cube], &environment.context, place)?;
                Replaced::Table(cube)
            }
            None => Replaced::Columns,
        };
        let expansion = rows.expansion.to_vec();
        Ok(NewFilter { restriction: Restriction { columns, rows_of, expansion, allowed }, replaced, place })
    }

    /// Returns the table of the model from which the rows of a table expression come.
    fn source_table(&self, table: &Table) -> Option<SourceTable> {
        match &table.kind {
            TableKind::Model(cube) | TableKind::ModelWithUnmatched(cube) | TableKind::Related { table: cube, .. } => {
                Some(SourceTable::Seen(*cube))
            }
            TableKind::All { of: AllOf::Table(cube), .. } => Some(SourceTable::All(*cube)),
            TableKind::Filter { table, .. }
            | TableKind::TopN { table, .. }
            | TableKind::Calculate { table, .. }
            | TableKind::AddColumns { table, .. }
            | TableKind::Block { result: table, .. } => self.source_table(table),
            TableKind::Variable(id) => match &self.query.variables[id.0 as usize].value {
                BoundExpression::Table(table) => self.source_table(table),
                BoundExpression::Scalar(_) => None,
            },
            _ => None,
        }
    }

    /// Returns whether the call turns current rows into pins, and a filter by rows of this table replaces these pins.
    fn is_fresh(&self, source: SourceTable, surroundings: &Surroundings) -> bool {
        let restricts = |pin: &Pin| {
            let reaches = |one: Expansion| self.model.join_paths(one.table).is_to_one(source.cube());
            applies(self.model, pin.column, source.cube()) || pin.expansion.is_some_and(reaches)
        };
        surroundings.fresh.iter().any(restricts)
    }

    /// Returns the columns that a table needs if it is a filter. A table of the model needs only its key.
    fn key_need(&self, table: &Table) -> Need {
        match table.kind {
            TableKind::Model(_) | TableKind::Filter { .. } => {
                Need::Only(super::walk::Scan { has_transition: true, ..super::walk::Scan::default() })
            }
            _ => Need::All,
        }
    }

    /// Converts a table of the model, or a FILTER over one or over columns of the model, to a condition. Also returns the filters that the
    /// condition replaces. Returns `None` if only a list of rows can represent the FILTER.
    fn condition_of_table(
        &self,
        table: &'q Table,
        environment: &Environment,
        surroundings: &Surroundings,
        place: Place,
    ) -> Result<Option<(Restriction, Replaced)>> {
        let (of, condition) = match &table.kind {
            TableKind::Filter { table: of, context, condition } => (&**of, Some((*context, &**condition))),
            // All rows of a table exclude the blank row.
            TableKind::Model(_) => (table, None),
            _ => return Ok(None),
        };
        let Some(columns) = of.columns.iter().map(|column| column.lineage).collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let (sees_context, rows_of, replaced) = match &of.kind {
            TableKind::Values { has_unmatched: true, .. } => (true, None, Replaced::Nothing),
            TableKind::Model(cube) if !self.model.cube(*cube).primary_key.is_empty() => {
                (true, Some(*cube), Replaced::Nothing)
            }
            TableKind::All { of: AllOf::Columns(_), function } if function.operation != Operation::AllSelected => {
                (false, None, Replaced::Columns)
            }
            TableKind::All { of: AllOf::Table(cube), function }
                if function.operation != Operation::AllSelected && !self.model.cube(*cube).primary_key.is_empty() =>
            {
                (false, Some(*cube), Replaced::Table(*cube))
            }
            _ => return Ok(None),
        };
        // A condition does not contain the filters around the call. It selects the same rows only if these filters
        // stay.
        let has_filters = !environment.context.pins.is_empty() || !environment.context.filters.filters.is_empty();
        let is_fresh = |column: &DimensionId| match rows_of {
            Some(cube) => self.is_fresh(SourceTable::Seen(cube), surroundings),
            None => surroundings.fresh.iter().any(|pin| pin.column == *column || pin.row_of == Some(column.cube)),
        };
        if sees_context && (columns.iter().any(is_fresh) || has_filters && !surroundings.is_stable) {
            return Ok(None);
        }
        let fixed = match condition {
            Some((context, condition)) => self.fixed_condition(condition, context, &columns),
            None => Some(terrane_compiler::query::Filter::And(Vec::new())),
        };
        let Some(mut filter) = fixed else { return Ok(None) };
        if let Some(cube) = rows_of.filter(|_| sees_context) {
            // The blank row of a table is not one of its rows, so the condition must exclude it.
            let is_row = terrane_compiler::query::Filter::Not(Box::new(self.no_row(cube, place)?));
            filter = match condition {
                Some(_) => terrane_compiler::query::Filter::And(vec![filter, is_row]),
                None => is_row,
            };
        }
        let expansion = rows_of.map(Expansion::of).into_iter().collect();
        Ok(Some((Restriction { columns, rows_of, expansion, allowed: Allowed::Condition(filter) }, replaced)))
    }

    /// Converts a condition that is the same for all rows to a filter of a semantic query. Returns `None` if the
    /// condition depends on the rows, or if a semantic query cannot express it.
    pub(super) fn fixed_condition(
        &self,
        condition: &'q Scalar,
        context: u32,
        columns: &[DimensionId],
    ) -> Option<terrane_compiler::query::Filter> {
        let scan = self.scan(Node::Scalar(condition), context);
        if scan.is_open || scan.has_aggregates {
            return None;
        }
        condition_filter(self.query, self.model, self.parameters, condition, context, columns).ok()
    }
}

/// The table of the model from which the rows of a table expression come.
#[derive(Debug, Clone, Copy)]
enum SourceTable {
    /// The rows that the surrounding filters allow.
    Seen(CubeId),
    /// All rows, regardless of filters.
    All(CubeId),
}

impl SourceTable {
    fn cube(self) -> CubeId {
        match self {
            SourceTable::Seen(cube) | SourceTable::All(cube) => cube,
        }
    }
}
